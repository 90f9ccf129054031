//! The bank's reports on files that it was delivered.

use railhead_rail::host;
use railhead_rail::types::{Finding, News, Notice, Receipt, Refusal, Subject};
use serde::Deserialize;
use serde_json::Value;

use crate::gateway::{is_duplicate, plain};
use crate::returns::is_trace;

/// The kind of report that [`crate::gateway`] puts in place of what could not be fetched.
const UNFETCHABLE: &str = "unfetchable";

/// What every report has.
#[derive(Debug, Deserialize)]
struct Kind {
    report: String,
}

/// A report on a file, as it is written.
#[derive(Debug, Deserialize)]
struct Report {
    reference_code: String,
    status: Status,
    code: Option<String>,
    message: Option<String>,
    /// Of the file as the bank received it, with those that it rejects.
    entries: Option<u64>,
    /// In cents, of the same entries.
    total_credit: Option<i64>,
    rejected_entries: Option<Vec<Value>>,
}

#[derive(Debug, PartialEq, Eq, Deserialize)]
#[serde(rename_all = "lowercase")]
enum Status {
    Accepted,
    Rejected,
}

/// An entry that is not carried out, of a file that is.
#[derive(Debug, Deserialize)]
struct Rejected {
    trace_number: String,
    code: String,
    message: Option<String>,
}

/// What a report says: of the whole file, and of entries that are not carried out.
///
/// Where one of those cannot be read, nobody knows which payments were taken: the others are told,
/// and the file itself is not called accepted, so that a person looks. A duplicate is not refused:
/// what it is one of may be carried out.
///
/// # Errors
/// It is no report on a file, or contradicts itself.
pub fn read(content: &[u8]) -> Result<Vec<Notice>, String> {
    let odd = |cause: serde_json::Error| format!("it is no report: {cause}");
    let kind: Kind = serde_json::from_slice(content).map_err(odd)?;
    match kind.report.as_str() {
        "file" => {}
        UNFETCHABLE => return Err("the gateway listed it, and it could not be fetched".to_owned()),
        _ => return Err("it is a report on something else than a file".to_owned()),
    }
    let report: Report = serde_json::from_slice(content).map_err(odd)?;
    let code = &report.reference_code;
    if code.len() != 8 || !code.bytes().all(|byte| byte.is_ascii_digit()) {
        return Err("its reference code is not eight digits".to_owned());
    }
    match report.status {
        Status::Rejected if report.turned_down().is_empty() => Ok(vec![rejected(&report)]),
        Status::Rejected => Err("it rejects the file, and entries of it".to_owned()),
        Status::Accepted => accepted(&report),
    }
}

impl Report {
    fn turned_down(&self) -> &[Value] {
        self.rejected_entries.as_deref().unwrap_or_default()
    }
}

fn rejected(report: &Report) -> Notice {
    let finding = refused(report.code.as_deref(), report.message.as_deref());
    notice(Subject::File(report.reference_code.clone()), finding)
}

fn accepted(report: &Report) -> Result<Vec<Notice>, String> {
    let all = report.turned_down();
    let most = report.entries.and_then(|entries| usize::try_from(entries).ok());
    if most.is_some_and(|most| all.len() > most) {
        return Err("it rejects more entries than the file has".to_owned());
    }
    let turned_down: Vec<Notice> = all.iter().filter_map(turned_down).collect();
    if turned_down.len() < all.len() {
        let unread = all.len() - turned_down.len();
        let why = format!("{unread} rejected entries of a report cannot be read");
        host::warn(&why);
        return if turned_down.is_empty() { Err(why) } else { Ok(turned_down) };
    }
    let receipt = Receipt {
        code: "accepted".to_owned(),
        network_id: None,
        amount_minor: report.total_credit,
        facts: Vec::new(),
    };
    let file = Subject::File(report.reference_code.clone());
    let mut notices = vec![notice(file, Finding::Accepted(receipt))];
    notices.extend(turned_down);
    Ok(notices)
}

fn turned_down(entry: &Value) -> Option<Notice> {
    let entry = Rejected::deserialize(entry).ok()?;
    let finding = refused(Some(&entry.code), entry.message.as_deref());
    let about = Subject::NetworkId(entry.trace_number);
    matches!(&about, Subject::NetworkId(trace) if is_trace(trace)).then(|| notice(about, finding))
}

/// What a rejection proves: that nothing is carried out, unless it is one of a duplicate.
fn refused(code: Option<&str>, message: Option<&str>) -> Finding {
    let or = |text: Option<&str>, most: usize, otherwise: &str| {
        let text = plain(text.unwrap_or_default(), most);
        if text.is_empty() { otherwise.to_owned() } else { text }
    };
    let code = or(code, 40, "rejected");
    let message = or(message, 300, "The bank gave no reason");
    match is_duplicate(&code) {
        true => Finding::Unknown(format!("rejected as a duplicate ({code}): {message}")),
        false => Finding::Refused(Refusal { code, message }),
    }
}

fn notice(about: Subject, finding: Finding) -> Notice {
    Notice { about, news: News::Found(finding) }
}

#[cfg(test)]
#[cfg(not(target_family = "wasm"))]
mod tests {
    use railhead_rail::host::double::{self, Host};
    use railhead_rail::types::{Finding, News, Subject};
    use serde_json::{Value, json};

    use super::read;

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

    #[test]
    fn of_whole_files() {
        assert_eq!(told(&json!({})), Ok(vec!["00000042 accepted of 12345".to_owned()]));
        let why = json!({"status": "rejected", "code": "unbalanced", "message": "Wrong\ntotals"});
        assert_eq!(told(&why), Ok(vec!["00000042 unbalanced: Wrong totals".to_owned()]));
        let silent = told(&json!({"status": "rejected"})).expect("a refusal");
        assert_eq!(silent, ["00000042 rejected: The bank gave no reason"]);
    }

    #[test]
    fn of_entries_that_are_not_carried_out() {
        let one = rejected("121042880000001");
        let members = json!({"rejected_entries": [one, rejected("121042880000004")]});
        let expected = [
            "00000042 accepted of 12345",
            "121042880000001 limit: Too much",
            "121042880000004 limit: Too much",
        ];
        assert_eq!(told(&members).expect("notices"), expected);
    }

    #[test]
    fn what_is_null_is_absent() {
        let nulls = json!({
            "code": null, "message": null, "entries": null, "total_credit": null,
            "rejected_entries": null,
        });
        assert_eq!(told(&nulls).expect("a notice"), ["00000042 accepted"]);
        let mut nulls = nulls;
        nulls["status"] = json!("rejected");
        let silent = told(&nulls).expect("a refusal");
        assert_eq!(silent, ["00000042 rejected: The bank gave no reason"]);
        let mut entry = rejected("121042880000001");
        entry["message"] = Value::Null;
        let told = told(&json!({"rejected_entries": [entry]})).expect("notices");
        assert_eq!(told[1], "121042880000001 limit: The bank gave no reason");
    }

    #[test]
    fn a_duplicate_is_not_refused() {
        for code in ["duplicate_file", "duplicate", " Duplicate_Name"] {
            let members = json!({"status": "rejected", "code": code, "message": "Twice"});
            let said =
                format!("00000042 unknown: rejected as a duplicate ({}): Twice", code.trim());
            assert_eq!(told(&members), Ok(vec![said]));
        }
        let mut entry = rejected("121042880000001");
        entry["code"] = json!("duplicate_entry");
        let members = json!({"rejected_entries": [entry, rejected("121042880000004")]});
        let expected = [
            "00000042 accepted of 12345",
            "121042880000001 unknown: rejected as a duplicate (duplicate_entry): Too much",
            "121042880000004 limit: Too much",
        ];
        assert_eq!(told(&members).expect("notices"), expected);
    }

    #[test]
    fn a_file_is_not_called_accepted_where_an_entry_cannot_be_read() {
        for odd in [json!({}), json!(1), rejected("1"), json!({"trace_number": "1", "code": 1})] {
            let members = json!({"rejected_entries": [odd, rejected("121042880000004")]});
            let told = told(&members).expect("notices");
            assert_eq!(told, ["121042880000004 limit: Too much"]);
        }
        assert!(told(&json!({"rejected_entries": [{}]})).is_err());
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
            json!({"entries": 0, "rejected_entries": [rejected("121042880000001")]}),
            json!({"status": "rejected", "rejected_entries": [rejected("121042880000001")]}),
        ] {
            assert!(told(&members).is_err(), "{members}");
        }
        let twice = br#"{"report":"file","reference_code":"00000042","status":"accepted","status":"rejected"}"#;
        assert!(read(twice).is_err());
    }
}
