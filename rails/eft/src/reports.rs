//! The bank's reports on files that it was delivered.

use railhead_rail::bank_files::{self, Limits, Rejected, Status};
use railhead_rail::strict::Object;
use railhead_rail::types::Notice;
use serde::Deserialize;
use serde_json::value::RawValue;

use crate::assembly::{key, number_in};
use crate::entries::{self, AMOUNT_MAX};
use crate::refusals;

const LIMITS: Limits =
    Limits { file: refusals::FILE, payment: refusals::PAYMENT, amount_minor_max: AMOUNT_MAX };

/// A report on a file, as it is written. What nobody documented may say that it is another one.
#[derive(Debug, Deserialize)]
#[serde(deny_unknown_fields)]
struct Report {
    #[serde(rename = "report")]
    _kind: String,
    /// The name that it was delivered under.
    file_name: String,
    /// The number that stands in it, which the name ends with.
    file_creation_number: String,
    status: Status,
    code: Option<String>,
    message: Option<String>,
    /// Of the file as the bank received it, with those that it rejects.
    payments: Option<u64>,
    /// In cents, of the same payments.
    total_credit: Option<i64>,
    rejected_payments: Option<Vec<Box<RawValue>>>,
}

/// A payment that is not carried out, of a file that is.
#[derive(Debug, Deserialize)]
#[serde(deny_unknown_fields)]
struct Payment {
    cross_reference_number: String,
    #[serde(rename = "amount")]
    _amount: Option<u64>,
    code: String,
    message: Option<String>,
}

/// What a report says: of the whole file, and of payments that are not carried out.
///
/// # Errors
/// It is no report on a file, contradicts itself, or says what nobody documented.
pub fn read(content: &[u8]) -> Result<Vec<Notice>, String> {
    let report: Report = bank_files::report(content)?;
    let file = report.file_name;
    if number_in(&file) != Some(report.file_creation_number.as_str()) {
        return Err("it does not name a file of ours by its name and its number".to_owned());
    }
    let rejected = report.rejected_payments.unwrap_or_default();
    let report = bank_files::Report {
        status: report.status,
        code: report.code,
        message: report.message,
        payments: report.payments,
        total_minor: report.total_credit,
        rejected: rejected.iter().map(|payment| self::rejected(&file, payment)).collect(),
        file,
    };
    report.notices(&LIMITS)
}

/// A payment that is not carried out. It is called by its file as well: it may stand in a later one
/// again, of which nothing is said.
fn rejected(file: &str, payment: &RawValue) -> Option<Rejected> {
    let Object(payment) = serde_json::from_str::<Object<Payment>>(payment.get()).ok()?;
    let reference = payment.cross_reference_number.trim();
    entries::is_ours(reference).then(|| Rejected {
        network_id: key(file, reference),
        code: payment.code,
        message: payment.message,
    })
}

#[cfg(test)]
#[cfg(not(target_family = "wasm"))]
mod tests {
    use railhead_rail::host::double::{self, Host};
    use railhead_rail::types::{Finding, News, Subject};
    use serde_json::{Value, json};

    use super::read;

    const FILE: &str = "EFT-0123456789-20260306-00000042-0042.txt";
    const FIRST: &str = "E16000000000001";
    const FOURTH: &str = "E16000000000004";

    /// A report that accepts a file of five payments, with other members.
    fn report(members: &Value) -> Vec<u8> {
        let mut report = json!({
            "report": "file", "file_name": FILE, "file_creation_number": "0042",
            "status": "accepted", "payments": 5, "total_credit": 12_345,
        });
        for (name, value) in members.as_object().expect("members") {
            report[name] = value.clone();
        }
        report.to_string().into_bytes()
    }

    fn rejected(reference: &str) -> Value {
        json!({"cross_reference_number": reference, "amount": 5, "code": "limit",
               "message": "Too much"})
    }

    /// Each notice in a word: about what, and with which code it is accepted or refused.
    fn told(members: &Value) -> Result<Vec<String>, String> {
        double::install(Host::default());
        let notices = read(&report(members))?;
        let tell = |(about, news)| match (about, news) {
            (Subject::File(name), News::Found(Finding::Accepted(receipt))) => {
                let total = receipt.amount_minor;
                total.map_or(format!("{name} accepted"), |it| format!("{name} accepted of {it}"))
            }
            (
                Subject::File(name) | Subject::NetworkId(name),
                News::Found(Finding::Unknown(why)),
            ) => format!("{name} unknown: {why}"),
            (
                Subject::File(name) | Subject::NetworkId(name),
                News::Found(Finding::Refused(why)),
            ) => {
                format!("{name} {}: {}", why.code, why.message)
            }
            other => panic!("{other:?}"),
        };
        Ok(notices.into_iter().map(|notice| tell((notice.about, notice.news))).collect())
    }

    #[test]
    fn of_whole_files() {
        assert_eq!(told(&json!({})), Ok(vec![format!("{FILE} accepted of 12345")]));
        let why = json!({"status": "rejected", "code": "unbalanced", "message": "Wrong\ntotals"});
        assert_eq!(told(&why), Ok(vec![format!("{FILE} unbalanced: Wrong totals")]));
        let silent = told(&json!({"status": "rejected", "code": "invalid_file"}));
        assert_eq!(silent, Ok(vec![format!("{FILE} invalid_file: The bank gave no reason")]));
    }

    /// What is said of a rejection that proves nothing.
    fn nothing(about: &str, code: &str, message: &str) -> String {
        format!("{about} unknown: rejected, which proves nothing with {code}: {message}")
    }

    #[test]
    fn of_payments_that_are_not_carried_out() {
        let members = json!({"rejected_payments": [rejected(FIRST), rejected(FOURTH)]});
        let expected = [
            format!("{FILE} accepted of 12345"),
            format!("{FILE}/{FIRST} limit: Too much"),
            format!("{FILE}/{FOURTH} limit: Too much"),
        ];
        assert_eq!(told(&members).expect("notices"), expected);
    }

    #[test]
    fn what_is_null_is_absent() {
        let mut nulls = json!({
            "code": null, "message": null, "payments": null, "rejected_payments": null,
        });
        assert_eq!(told(&nulls).expect("a notice"), [format!("{FILE} accepted of 12345")]);
        nulls["status"] = json!("rejected");
        nulls["total_credit"] = Value::Null;
        let silent = told(&nulls).expect("a notice");
        assert_eq!(silent, [nothing(FILE, "no code", "The bank gave no reason")]);
        let mut payment = rejected(FIRST);
        payment["message"] = Value::Null;
        let told = told(&json!({"rejected_payments": [payment]})).expect("notices");
        assert_eq!(told[1], format!("{FILE}/{FIRST} limit: The bank gave no reason"));
    }

    #[test]
    fn an_acceptance_says_how_much_and_contradicts_nothing() {
        for members in [
            json!({"total_credit": null}),
            json!({"total_credit": 0}),
            json!({"total_credit": -12_345}),
            json!({"total_credit": 4}),
            json!({"total_credit": 49_999_999_996_i64}),
            json!({"payments": 0}),
            json!({"payments": 1, "rejected_payments": [rejected(FIRST), rejected(FOURTH)]}),
            json!({"code": "exposure_limit"}),
            json!({"code": ""}),
            json!({"message": "The file is rejected"}),
            json!({"test": true}),
            json!({"received_at": "2026-03-06T21:46:00Z"}),
            json!({"rejected_payments": [rejected(FIRST), rejected(FIRST)]}),
        ] {
            assert!(told(&members).is_err(), "{members}");
        }
        for members in [
            json!({"total_credit": 5}),
            json!({"total_credit": 49_999_999_995_i64}),
            json!({"payments": null, "total_credit": 1}),
        ] {
            assert_eq!(told(&members).map(|told| told.len()), Ok(1), "{members}");
        }
    }

    #[test]
    fn only_documented_codes_refuse() {
        for (code, message) in [
            ("duplicate_file", "Twice"),
            ("duplicate", "Twice"),
            ("Duplicate_Name", "Twice"),
            ("FCN_DUPLICATE", "Twice"),
            ("already_received", "We have it"),
            ("FCN_IN_USE", "The number was used before"),
            ("fichier_recu", "Ce fichier nous est parvenu"),
            ("4012", "Duplicate file creation number"),
            ("invalid_file", "Duplicate file creation number"),
            ("invalid_account", "A code of payments"),
            ("rejected", "Nothing else"),
        ] {
            let members = json!({"status": "rejected", "code": code, "message": message});
            assert_eq!(told(&members), Ok(vec![nothing(FILE, code, message)]));
        }
        for code in ["duplicate_payment", "already_paid", "exposure_limit", ""] {
            let mut payment = rejected(FIRST);
            payment["code"] = json!(code);
            let members = json!({"rejected_payments": [payment, rejected(FOURTH)]});
            let code = if code.is_empty() { "no code" } else { code };
            let expected = [
                format!("{FILE} accepted of 12345"),
                nothing(&format!("{FILE}/{FIRST}"), code, "Too much"),
                format!("{FILE}/{FOURTH} limit: Too much"),
            ];
            assert_eq!(told(&members).expect("notices"), expected);
        }
    }

    #[test]
    fn a_file_is_not_called_accepted_where_a_payment_cannot_be_read() {
        for odd in [
            json!({}),
            json!(1),
            rejected("1"),
            rejected("PO-0001"),
            json!([FIRST, "limit"]),
            json!({"cross_reference_number": FIRST, "code": 1}),
            json!({"cross_reference_number": FIRST}),
            json!({"cross_reference_number": FIRST, "code": "limit", "carried_out": true}),
            json!({"cross_reference_number": FIRST, "code": "limit", "amount": "5"}),
        ] {
            let members = json!({"rejected_payments": [odd, rejected(FOURTH)]});
            let told = told(&members).expect("notices");
            assert_eq!(told, [format!("{FILE}/{FOURTH} limit: Too much")]);
        }
        assert!(told(&json!({"rejected_payments": [{}]})).is_err());
        // Of two numbers nobody knows which payment it is.
        let payments = [rejected(FIRST), rejected(FOURTH)];
        let text = String::from_utf8(report(&json!({"rejected_payments": payments})));
        let number = format!("\"cross_reference_number\":\"{FIRST}\"");
        let twice = format!("{number},{}", number.replace("001", "002"));
        let odd = text.expect("a text").replace(&number, &twice);
        assert_eq!(read(odd.as_bytes()).expect("notices").len(), 1);
    }

    #[test]
    fn what_is_no_report_or_contradicts_itself() {
        for members in [
            json!({"report": "account"}),
            json!({"report": "unfetchable"}),
            json!({"report": null}),
            json!({"total_credit": "12345"}),
            json!({"total_credit": 123.45}),
            json!({"status": "pending"}),
            json!({"status": true}),
            json!({"file_creation_number": "42"}),
            json!({"file_creation_number": "0043"}),
            json!({"file_creation_number": 42}),
            json!({"file_creation_number": null}),
            json!({"file_name": "EFT-0123456789-20260306-00000042-0043.txt"}),
            json!({"file_name": "EFT-0123456789-20260306-00000042-0042"}),
            json!({"file_name": "0042"}),
            json!({"file_name": ""}),
            json!({"payments": -1}),
            json!({"rejected_payments": {}}),
            json!({"payments": 0, "rejected_payments": [rejected(FIRST)]}),
            json!({"status": "rejected", "rejected_payments": [rejected(FIRST)]}),
        ] {
            assert!(told(&members).is_err(), "{members}");
        }
        let twice = String::from_utf8(report(&json!({}))).expect("a text");
        let twice = twice.replace("\"accepted\"", "\"accepted\",\"status\":\"rejected\"");
        assert!(read(twice.as_bytes()).is_err());
    }
}
