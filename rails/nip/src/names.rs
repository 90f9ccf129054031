//! Who holds an account.

use railhead_rail::fields::{self, field};
use railhead_rail::types::{Enquiry, Refusal, Resolution, Verdict};

use crate::codes::{self, Class};
use crate::gateway::{self, Answer};
use crate::requests;
use crate::session;
use crate::settings::Settings;

/// The name on an account. The resolution's reference is the enquiry's SessionID, which a
/// transfer repeats as `NameEnquiryRef`. NIP tells the name and compares nothing; only codes
/// about the account itself count as a refusal.
#[must_use]
pub fn resolve(enquiry: &Enquiry) -> Verdict {
    verdict(enquiry).unwrap_or_else(Verdict::Unavailable)
}

fn verdict(enquiry: &Enquiry) -> Result<Verdict, String> {
    let (session, answer) = ask(enquiry)?;
    match answer.class(|code| code.enquiry) {
        Class::Done => resolution(session, &answer, enquiry).map(Verdict::Named),
        Class::Refused => Ok(Verdict::Refused(Refusal {
            code: answer.code.clone(),
            message: codes::meaning(&answer.code).into(),
        })),
        Class::Pending | Class::NotFound | Class::Unclear => Err(answer.sentence()),
    }
}

fn ask(enquiry: &Enquiry) -> Result<(String, Answer), String> {
    let settings = Settings::read();
    let session = session::make(&settings.institution_code, enquiry.begun_at_ms, enquiry.serial)?;
    let body = requests::name_enquiry(&session, &enquiry.account, &settings)?;
    let answer = gateway::ask(gateway::NAME_ENQUIRY, body, "NESingleResponse", &session)?;
    Ok((session, answer))
}

fn resolution(session: String, answer: &Answer, enquiry: &Enquiry) -> Result<Resolution, String> {
    if answer.get("AccountNumber") != fields::value(&enquiry.account, "account_number") {
        return Err("NIP answered about another account than was asked for".into());
    }
    let name = tidy(answer.get("AccountName"));
    if name.is_empty() {
        return Err("NIP answered without a name".into());
    }
    let attributes = vec![
        field("bvn", answer.get("BankVerificationNumber")),
        field("kyc_level", answer.get("KYCLevel")),
    ];
    Ok(Resolution { name, reference: session, attributes })
}

/// Banks pad names to fixed widths and differ in case; the API shows capitals.
fn tidy(name: &str) -> String {
    name.split_whitespace().collect::<Vec<_>>().join(" ").to_uppercase()
}

#[cfg(test)]
#[cfg(not(target_family = "wasm"))]
mod tests {
    use railhead_rail::fields::{field, value};
    use railhead_rail::imports::http::Failure;

    use railhead_rail::types::{Enquiry, Verdict};

    use super::resolve;
    use crate::codes::{Class, all};
    use crate::fixtures::{self, REFERENCE};

    fn enquiry() -> Enquiry {
        Enquiry::about(&fixtures::payment())
    }

    fn answer(code: &str) -> String {
        format!(
            "<NESingleResponse><SessionID>{REFERENCE}</SessionID>\
             <AccountNumber>0123456785</AccountNumber>\
             <AccountName> Ada  Ọbi\n</AccountName>\
             <BankVerificationNumber>22212345678</BankVerificationNumber>\
             <KYCLevel>3</KYCLevel><ResponseCode>{code}</ResponseCode></NESingleResponse>"
        )
    }

    fn resolved(body: &str) -> Verdict {
        fixtures::gateway(Ok((200, body.to_owned())));
        resolve(&enquiry())
    }

    #[test]
    fn a_name_and_what_the_transfer_needs() {
        let Verdict::Named(resolution) = resolved(&answer("00")) else { panic!("a name") };
        assert_eq!(resolution.name, "ADA ỌBI");
        assert_eq!(resolution.reference, REFERENCE);
        assert_eq!(value(&resolution.attributes, "bvn"), "22212345678");
        assert_eq!(value(&resolution.attributes, "kyc_level"), "3");
    }

    #[test]
    fn every_code() {
        for row in all().iter().filter(|row| row.enquiry != Class::Done) {
            match resolved(&answer(row.code)) {
                Verdict::Refused(_) => assert_eq!(row.enquiry, Class::Refused, "{}", row.code),
                Verdict::Unavailable(_) => assert_ne!(row.enquiry, Class::Refused, "{}", row.code),
                other => panic!("{}: {other:?}", row.code),
            }
        }
    }

    #[test]
    fn answers_of_no_use() {
        let whole = answer("00");
        for body in [
            whole.replace(REFERENCE, "999998261121100000000000000003"),
            whole.replace("0123456785", "0123456786"),
            whole.replace(" Ada  Ọbi\n", "  "),
            answer("07").replace(REFERENCE, "999998261121100000000000000003"),
            String::new(),
        ] {
            assert!(matches!(resolved(&body), Verdict::Unavailable(_)), "{body}");
        }
        fixtures::gateway(Err(Failure::NoAnswer("timeout".into())));
        assert!(matches!(resolve(&enquiry()), Verdict::Unavailable(_)));
    }

    #[test]
    fn an_account_that_is_not_whole_is_not_asked_for() {
        let sent = fixtures::gateway(Ok((200, answer("00"))));
        let account = vec![field("account_number", "0123456785")];
        let short = resolve(&Enquiry { account, ..enquiry() });
        assert!(matches!(short, Verdict::Unavailable(_)));
        let unnumbered = resolve(&Enquiry { serial: u64::MAX, ..enquiry() });
        assert!(matches!(unnumbered, Verdict::Unavailable(_)));
        assert!(sent.borrow().is_empty());
    }
}
