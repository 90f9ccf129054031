//! Confirmation of Payee: whether a name is the one on an account.

use railhead_rail::fields;
use railhead_rail::imports::http::Response;
use railhead_rail::types::{Enquiry, Refusal, Resolution, Verdict};
use serde::{Deserialize, Serialize};

use crate::codes;
use crate::gateway::{self, NAME_CHECK};
use crate::reference;
use railhead_rail::strict::Object;

/// What a name check asks for. A recipient does not say whose account it is; the other kind is
/// answered with codes of its own, and the name is compared all the same.
const OWNER_TYPE: &str = "Personal";

/// Compares the name that the merchant gave with the account's.
#[must_use]
pub fn resolve(enquiry: &Enquiry) -> Verdict {
    verdict(enquiry).unwrap_or_else(Verdict::Unavailable)
}

#[derive(Serialize)]
#[serde(rename_all = "PascalCase")]
struct Question<'a> {
    scheme_name: &'a str,
    legal_owner_type: &'a str,
    identification: String,
    owner_name: String,
    end_to_end_identification: &'a str,
}

#[derive(Deserialize)]
#[serde(rename_all = "PascalCase")]
struct Answer {
    data: Object<Data>,
}

#[derive(Deserialize)]
#[serde(rename_all = "PascalCase")]
struct Data {
    verification_report: Object<Report>,
}

#[derive(Deserialize)]
#[serde(rename_all = "PascalCase")]
struct Report {
    matched: bool,
    name: Option<String>,
    reason_code: Option<String>,
}

fn verdict(enquiry: &Enquiry) -> Result<Verdict, String> {
    let reference = reference::name_check(enquiry.begun_at_ms, enquiry.serial)
        .ok_or("no reference can be made for the name check")?;
    let name = fields::value(&enquiry.account, "name");
    let body = question(enquiry, name, &reference)?;
    let response = gateway::post(NAME_CHECK, &reference, body)?;
    let report = report(&response)?;
    let code = codes::plain(report.reason_code.as_deref().unwrap_or_default());
    let resolution =
        |name: &str| Resolution { name: name.to_owned(), reference, attributes: Vec::new() };
    match (report.matched, code.as_str()) {
        // Somebody's of the other kind, of this name: whose account it is was not asked for.
        (true, "") | (_, "BANM" | "PANM") => Ok(Verdict::Matches(resolution(name))),
        (false, "MBAM" | "BAMM" | "PAMM") => {
            let said = report.name.as_deref().unwrap_or_default().trim();
            if said.is_empty() {
                return Err("the name is nearly the account's, whose own was not told".to_owned());
            }
            Ok(Verdict::Close(resolution(said)))
        }
        (false, "ANNM") => Ok(Verdict::Differs(None)),
        (false, "AC01") => {
            let message = "The bank knows no account with this sort code and number".to_owned();
            Ok(Verdict::Refused(Refusal { code, message }))
        }
        (false, code) => Err(unanswered(code)),
        (true, code) => Err(format!("the name matches, and does not: {code}")),
    }
}

fn question(enquiry: &Enquiry, name: &str, reference: &str) -> Result<String, String> {
    let account = |field| fields::value(&enquiry.account, field);
    let (sort_code, number) = (account("sort_code"), account("account_number"));
    if name.is_empty() || sort_code.is_empty() || number.is_empty() {
        return Err("there is no whole account and name to ask about".to_owned());
    }
    // Three parts between commas: title, first names and, alone of them, the whole name. A comma
    // in the name would begin a fourth.
    let whole: String = name.replace(',', " ").chars().take(130).collect();
    let question = Question {
        scheme_name: "SortCodeAccountNumber",
        legal_owner_type: OWNER_TYPE,
        identification: format!("{sort_code}{number}"),
        owner_name: format!(",,{}", whole.split_whitespace().collect::<Vec<_>>().join(" ")),
        end_to_end_identification: reference,
    };
    serde_json::to_string(&question).map_err(|_| "the question cannot be written".to_owned())
}

fn report(response: &Response) -> Result<Report, String> {
    if response.status != 200 {
        return Err(match response.status {
            422 => "the account's bank takes no part in Confirmation of Payee".to_owned(),
            424 => "the account's bank could not answer".to_owned(),
            _ => gateway::useless(response),
        });
    }
    let Object(Answer { data: Object(data) }) =
        serde_json::from_slice(&response.body).map_err(|_| gateway::useless(response))?;
    let Object(report) = data.verification_report;
    Ok(report)
}

/// Why a name was not compared. None of it says that the account cannot be paid: payments follow
/// a switched account to its new bank.
fn unanswered(code: &str) -> String {
    let why = match code {
        "CASS" => "the account has been switched to another bank",
        "OPTO" => "the account holder has opted out",
        "ACNS" => "the bank does not check names of such accounts",
        "SCNS" => "the bank does not check names at this sort code",
        "IVCR" => "the account can only be found with a reference",
        _ => "with a code that is not known here",
    };
    format!("the name was not compared ({code}): {why}")
}

#[cfg(test)]
#[cfg(not(target_family = "wasm"))]
mod tests {
    use railhead_rail::fields::set;
    use railhead_rail::request::{secret, signature, text};
    use railhead_rail::types::{Enquiry, Verdict};

    use super::resolve;
    use crate::fixtures;

    fn enquiry() -> Enquiry {
        Enquiry::about(&fixtures::payment())
    }

    fn asked(report: &str) -> Verdict {
        let body = format!("{{\"Data\":{{\"VerificationReport\":{report}}}}}");
        fixtures::gateway(Ok((200, body)));
        resolve(&enquiry())
    }

    #[test]
    fn a_question_is_signed_and_names_itself() {
        let sent = fixtures::gateway(Ok((403, String::new())));
        assert!(matches!(resolve(&enquiry()), Verdict::Unavailable(_)));
        let sent = sent.borrow();
        let [request] = sent.as_slice() else { panic!("one request") };
        let header = |name: &str| {
            let found = request.headers.iter().find(|header| header.name == name);
            found.map(|header| header.value.clone())
        };
        assert_eq!(header("Authorization"), Some(vec![text("Bearer "), secret("api_token")]));
        assert_eq!(header("DigitalSignature"), Some(vec![signature("signing")]));
        assert_eq!(header("X-Request-Id"), Some(vec![text("RN01A1FD557A800000000002")]));
        assert_eq!(request.call, "name_check");
    }

    #[test]
    fn verdicts() {
        let Verdict::Matches(found) = asked("{\"Matched\":true,\"MatchedBank\":\"B\"}") else {
            panic!("matches")
        };
        assert_eq!((found.name.as_str(), found.reference.len()), ("Jane Smith", 24));
        let close = "{\"Matched\":false,\"ReasonCode\":\"MBAM\",\"Name\":\" Jayne Smith \"}";
        let Verdict::Close(found) = asked(close) else { panic!("close") };
        assert_eq!(found.name, "Jayne Smith");
        let differs = asked("{\"Matched\":false,\"ReasonCode\":\"ANNM\"}");
        assert_eq!(differs, Verdict::Differs(None));
    }

    #[test]
    fn a_comma_in_a_name_is_no_part() {
        let mut account = fixtures::recipient();
        set(&mut account, "name", "Smith, Jane");
        let sent = fixtures::gateway(Ok((403, String::new())));
        let _ = resolve(&Enquiry { account, ..enquiry() });
        assert!(fixtures::body(&sent).contains("\"OwnerName\":\",,Smith Jane\""));
    }

    #[test]
    fn nothing_whole_to_ask_about_is_not_asked() {
        let sent = fixtures::gateway(Ok((200, String::new())));
        for field in ["name", "sort_code", "account_number"] {
            let mut account = fixtures::recipient();
            set(&mut account, field, "");
            let verdict = resolve(&Enquiry { account, ..enquiry() });
            assert!(matches!(verdict, Verdict::Unavailable(_)), "{field}");
        }
        let verdict = resolve(&Enquiry { serial: u64::MAX, ..enquiry() });
        assert!(matches!(verdict, Verdict::Unavailable(_)));
        assert!(sent.borrow().is_empty());
    }
}
