//! The bank's reports on files that it was delivered.

use railhead_rail::bank_files::{self, Limits, Rejected, Status};
use railhead_rail::strict::Object;
use railhead_rail::types::Notice;
use serde::Deserialize;
use serde_json::value::RawValue;

use crate::entries::AMOUNT_MAX;
use crate::refusals;
use crate::returns::is_trace;

const LIMITS: Limits =
    Limits { file: refusals::FILE, payment: refusals::ENTRY, amount_minor_max: AMOUNT_MAX };

/// A report on a file, as it is written. What nobody documented may say that it is another one.
#[derive(Debug, Deserialize)]
#[serde(deny_unknown_fields)]
struct Report {
    #[serde(rename = "report")]
    _kind: String,
    reference_code: String,
    status: Status,
    code: Option<String>,
    message: Option<String>,
    /// Of the file as the bank received it, with those that it rejects.
    entries: Option<u64>,
    /// In cents, of the same entries.
    total_credit: Option<i64>,
    rejected_entries: Option<Vec<Box<RawValue>>>,
}

/// An entry that is not carried out, of a file that is.
#[derive(Debug, Deserialize)]
#[serde(deny_unknown_fields)]
struct Entry {
    trace_number: String,
    #[serde(rename = "amount")]
    _amount: Option<u64>,
    code: String,
    message: Option<String>,
}

/// What a report says: of the whole file, and of entries that are not carried out.
///
/// # Errors
/// It is no report on a file, contradicts itself, or says what nobody documented.
pub fn read(content: &[u8]) -> Result<Vec<Notice>, String> {
    let report: Report = bank_files::report(content)?;
    let code = &report.reference_code;
    if code.len() != 8 || !code.bytes().all(|byte| byte.is_ascii_digit()) {
        return Err("its reference code is not eight digits".to_owned());
    }
    let rejected = report.rejected_entries.unwrap_or_default();
    let report = bank_files::Report {
        file: report.reference_code,
        status: report.status,
        code: report.code,
        message: report.message,
        payments: report.entries,
        total_minor: report.total_credit,
        rejected: rejected.iter().map(|entry| self::rejected(entry)).collect(),
    };
    report.notices(&LIMITS)
}

/// An entry that is not carried out, by its trace number.
fn rejected(entry: &RawValue) -> Option<Rejected> {
    let Object(entry) = serde_json::from_str::<Object<Entry>>(entry.get()).ok()?;
    let Entry { trace_number: network_id, code, message, .. } = entry;
    is_trace(&network_id).then_some(Rejected { network_id, code, message })
}

#[cfg(test)]
#[cfg(not(target_family = "wasm"))]
mod tests {
    use railhead_rail::host::double::{self, Host};
    use railhead_rail::types::{Finding, News, Subject};
    use serde_json::{Value, json};

    use super::read;

    const FIRST: &str = "121042880000001";
    const FOURTH: &str = "121042880000004";

    /// A report that accepts a file of five entries, with other members.
    fn report(members: &Value) -> Vec<u8> {
        let mut report = json!({
            "report": "file", "reference_code": "00000042", "status": "accepted",
            "entries": 5, "total_credit": 12_345,
        });
        for (name, value) in members.as_object().expect("members") {
            report[name] = value.clone();
        }
        report.to_string().into_bytes()
    }

    fn rejected(trace: &str) -> Value {
        json!({"trace_number": trace, "amount": 5, "code": "limit", "message": "Too much"})
    }

    /// Each notice in a word: about what, and with which code it is accepted or refused.
    fn told(members: &Value) -> Result<Vec<String>, String> {
        double::install(Host::default());
        let notices = read(&report(members))?;
        let tell = |(about, news)| match (about, news) {
            (Subject::File(code), News::Found(Finding::Accepted(receipt))) => {
                let total = receipt.amount_minor;
                total.map_or(format!("{code} accepted"), |it| format!("{code} accepted of {it}"))
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

    /// What is said of a rejection that proves nothing.
    fn nothing(about: &str, code: &str, message: &str) -> String {
        format!("{about} unknown: rejected, which proves nothing with {code}: {message}")
    }

    #[test]
    fn of_whole_files() {
        assert_eq!(told(&json!({})), Ok(vec!["00000042 accepted of 12345".to_owned()]));
        let why = json!({"status": "rejected", "code": "unbalanced", "message": "Wrong\ntotals"});
        assert_eq!(told(&why), Ok(vec!["00000042 unbalanced: Wrong totals".to_owned()]));
        let silent = told(&json!({"status": "rejected", "code": "invalid_file"}));
        assert_eq!(silent, Ok(vec!["00000042 invalid_file: The bank gave no reason".to_owned()]));
    }

    #[test]
    fn of_entries_that_are_not_carried_out() {
        let one = rejected(FIRST);
        let members = json!({"rejected_entries": [one, rejected(FOURTH)]});
        let expected = [
            "00000042 accepted of 12345",
            "121042880000001 limit: Too much",
            "121042880000004 limit: Too much",
        ];
        assert_eq!(told(&members).expect("notices"), expected);
    }

    #[test]
    fn what_is_null_is_absent() {
        let mut nulls = json!({
            "code": null, "message": null, "entries": null, "rejected_entries": null,
        });
        assert_eq!(told(&nulls).expect("a notice"), ["00000042 accepted of 12345"]);
        nulls["status"] = json!("rejected");
        nulls["total_credit"] = Value::Null;
        let silent = told(&nulls).expect("a notice");
        assert_eq!(silent, [nothing("00000042", "no code", "The bank gave no reason")]);
        let mut entry = rejected(FIRST);
        entry["message"] = Value::Null;
        let told = told(&json!({"rejected_entries": [entry]})).expect("notices");
        assert_eq!(told[1], format!("{FIRST} limit: The bank gave no reason"));
    }

    #[test]
    fn an_acceptance_says_how_much_and_contradicts_nothing() {
        for members in [
            json!({"total_credit": null}),
            json!({"total_credit": 0}),
            json!({"total_credit": -12_345}),
            json!({"total_credit": 4}),
            json!({"total_credit": 49_999_999_996_i64}),
            json!({"entries": 0}),
            json!({"entries": 1, "rejected_entries": [rejected(FIRST), rejected(FOURTH)]}),
            json!({"code": "exposure_limit"}),
            json!({"code": ""}),
            json!({"message": "The file is rejected"}),
            json!({"test": true}),
            json!({"received_at": "2026-03-06T21:46:00Z"}),
            json!({"rejected_entries": [rejected(FIRST), rejected(FIRST)]}),
        ] {
            assert!(told(&members).is_err(), "{members}");
        }
        let missing = br#"{"report":"file","reference_code":"00000042","status":"accepted"}"#;
        assert!(read(missing).is_err());
        for members in [
            json!({"total_credit": 5}),
            json!({"total_credit": 49_999_999_995_i64}),
            json!({"entries": null, "total_credit": 1}),
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
            ("FILE_DUPLICATE", "Twice"),
            ("already_received", "We have it"),
            ("REFERENCE_IN_USE", "The number was used before"),
            ("archivo_recibido", "Este archivo ya fue recibido"),
            ("4012", "Duplicate file ID modifier"),
            ("invalid_file", "Duplicate file ID modifier"),
            ("INVALID_FILE", "Not in capitals"),
            ("invalid_account", "A code of entries"),
            ("R03", "A code of returns"),
            ("rejected", "Nothing else"),
        ] {
            let members = json!({"status": "rejected", "code": code, "message": message});
            assert_eq!(told(&members), Ok(vec![nothing("00000042", code, message)]));
        }
        for code in ["duplicate_entry", "already_paid", "exposure_limit", "R03", ""] {
            let mut entry = rejected(FIRST);
            entry["code"] = json!(code);
            let members = json!({"rejected_entries": [entry, rejected(FOURTH)]});
            let code = if code.is_empty() { "no code" } else { code };
            let expected = [
                "00000042 accepted of 12345".to_owned(),
                nothing(FIRST, code, "Too much"),
                format!("{FOURTH} limit: Too much"),
            ];
            assert_eq!(told(&members).expect("notices"), expected);
        }
    }

    #[test]
    fn a_file_is_not_called_accepted_where_an_entry_cannot_be_read() {
        for odd in [
            json!({}),
            json!(1),
            rejected("1"),
            json!([FIRST, 5, "limit", "Too much"]),
            json!({"trace_number": FIRST, "code": 1}),
            json!({"trace_number": FIRST}),
            json!({"trace_number": FIRST, "code": "limit", "carried_out": true}),
            json!({"trace_number": FIRST, "code": "limit", "amount": "5"}),
        ] {
            let members = json!({"rejected_entries": [odd, rejected(FOURTH)]});
            let told = told(&members).expect("notices");
            assert_eq!(told, ["121042880000004 limit: Too much"]);
        }
        assert!(told(&json!({"rejected_entries": [{}]})).is_err());
        // Of two numbers nobody knows which entry it is.
        let entries = [rejected(FIRST), rejected(FOURTH)];
        let text = String::from_utf8(report(&json!({"rejected_entries": entries})));
        let number = "\"trace_number\":\"121042880000001\"";
        let twice = format!("{number},\"trace_number\":\"121042880000002\"");
        let odd = text.expect("a text").replace(number, &twice);
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
            json!({"reference_code": "42"}),
            json!({"reference_code": "0000004X"}),
            json!({"reference_code": 42}),
            json!({"entries": -1}),
            json!({"rejected_entries": {}}),
            json!({"entries": 0, "rejected_entries": [rejected(FIRST)]}),
            json!({"status": "rejected", "rejected_entries": [rejected(FIRST)]}),
            json!({"status": "rejected", "code": "unbalanced", "carried_out": 5}),
        ] {
            assert!(told(&members).is_err(), "{members}");
        }
        let twice = br#"{"report":"file","reference_code":"00000042","status":"accepted","status":"rejected"}"#;
        assert!(read(twice).is_err());
    }
}
