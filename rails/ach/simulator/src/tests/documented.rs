//! What the bank says of files is what the rail's README documents, and nothing else.

use serde_json::Value;

use super::writer::{id, plain};
use super::{cast, contents, install, read, refusal, rejected, report, sent};

/// The page that both sides are written from.
fn readme() -> String {
    let page = std::path::Path::new(env!("CARGO_MANIFEST_DIR")).join("../README.md");
    std::fs::read_to_string(page).expect("the page")
}

/// Members of a report, and of an entry that it rejects.
const REPORT: [&str; 8] = [
    "code",
    "entries",
    "message",
    "reference_code",
    "rejected_entries",
    "report",
    "status",
    "total_credit",
];
const ENTRY: [&str; 4] = ["amount", "code", "message", "trace_number"];

fn holds_only(object: &Value, documented: &[&str]) {
    let object = object.as_object().expect("an object");
    for member in object.keys() {
        assert!(documented.contains(&member.as_str()), "{member}");
        assert!(readme().contains(member), "{member}");
    }
    if let Some(code) = object.get("code") {
        assert!(readme().contains(&format!("`{}`", code.as_str().expect("a code"))), "{code}");
    }
}

#[test]
fn reports_hold_what_is_documented() {
    for scenario in ["paid", "failed", "file_rejected", "duplicate_callback", "timeout_then_failed"]
    {
        install("paid");
        cast(&id(2), scenario);
        sent("a.ach", &plain(7, &[1, 2, 3]));
        sent("b.ach", &plain(8, &[3, 4]));
        let reports: Vec<Value> = contents().iter().map(|content| report(content)).collect();
        assert!(reports.len() >= 2, "{scenario}");
        for report in reports {
            holds_only(&report, &REPORT);
            let is_rejected = report["status"] == "rejected";
            assert_eq!(report.get("code").is_some(), is_rejected, "{report}");
            assert_eq!(report.get("message").is_some(), is_rejected, "{report}");
            assert!(report["entries"].is_u64() && report["total_credit"].is_u64(), "{report}");
            if !is_rejected {
                rejected(&report);
                let entries = report["rejected_entries"].as_array().expect("a list");
                entries.iter().for_each(|entry| holds_only(entry, &ENTRY));
            }
        }
    }
}

#[test]
fn files_are_refused_with_codes_that_are_documented() {
    install("paid");
    assert_eq!(read(sent("a.ach", &plain(7, &[1]))).0, 201);
    for (name, body, answer) in [
        ("a b.ach", plain(8, &[2]), (422, "invalid_name")),
        ("b.ach", "odd".to_owned(), (422, "invalid_file")),
        ("b.ach", "x".repeat(600 * 1024), (413, "too_large")),
        ("a.ach", plain(8, &[2]), (409, "duplicate_name")),
        ("b.ach", plain(7, &[1]), (409, "duplicate_file")),
    ] {
        let (status, code) = refusal(sent(name, &body));
        assert_eq!((status, &*code), answer);
        assert!(readme().contains(&format!("`{code}`")), "{code}");
    }
}
