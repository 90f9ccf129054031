//! Name checks.

use serde_json::{Value, json};

use super::{errors, install, posted, read};
use crate::handle;

const NAMES: &str = "/open-banking/outbound/v1/name-verification";

pub(super) fn question() -> Value {
    json!({
        "SchemeName": "SortCodeAccountNumber",
        "LegalOwnerType": "Personal",
        "Identification": "08999966374958",
        "OwnerName": ",,Jane Smith",
        "EndToEndIdentification": "RN01A1FD557A800000000002",
    })
}

pub(super) fn named(question: &Value) -> (u16, Value) {
    read(handle(&posted(NAMES, "RN01A1FD557A800000000002", &question.to_string())))
}

#[test]
fn a_name_is_compared() {
    for (scenario, code) in [
        ("paid", None),
        ("failed", None),
        ("name_mismatch", Some("ANNM")),
        ("unresolvable", Some("AC01")),
    ] {
        install(scenario);
        let (status, answer) = named(&question());
        let report = &answer["Data"]["VerificationReport"];
        assert_eq!((status, &report["Matched"]), (200, &json!(code.is_none())), "{scenario}");
        assert_eq!(report.get("ReasonCode"), code.map(|code| json!(code)).as_ref(), "{scenario}");
        assert_eq!(report.get("Name"), None, "{scenario}");
        assert_eq!(report["MatchedBank"], "Simulated Bank");
    }
}

#[test]
fn a_name_that_nearly_matches_is_told_and_matches_then() {
    install("close_match");
    let (_, answer) = named(&question());
    let report = &answer["Data"]["VerificationReport"];
    assert_eq!((&report["Matched"], &report["ReasonCode"]), (&json!(false), &json!("MBAM")));
    assert_eq!(report["Name"], "Jane A Smith");
    let mut corrected = question();
    corrected["OwnerName"] = json!(",,Jane A Smith");
    assert_eq!(named(&corrected).1["Data"]["VerificationReport"]["Matched"], true);
}

#[test]
fn a_name_check_is_read_strictly() {
    install("paid");
    let mutations = [
        ("SchemeName", json!("IBAN")),
        ("LegalOwnerType", json!("Charity")),
        ("Identification", json!("0899996637495")),
        ("Identification", json!("08-99-9966374958")),
        ("OwnerName", json!("Jane Smith")),
        ("OwnerName", json!(",,")),
        ("OwnerName", json!(",,Smith, Jane")),
        ("OwnerName", json!(format!(",,{}", "x".repeat(139)))),
        ("SecondaryIdentification", json!("x".repeat(141))),
        ("EndToEndIdentification", json!("x".repeat(141))),
        ("Name", json!("Jane Smith")),
        ("SchemeName", Value::Null),
    ];
    for (index, (member, value)) in mutations.into_iter().enumerate() {
        let mut question = question();
        question[member] = value.clone();
        let (status, answer) = named(&question);
        assert_eq!(status, 400, "{member}: {value}");
        assert!(answer["Error"]["Reason"].is_string(), "{answer}");
        assert_eq!(errors(), index + 1, "{member}: {value}");
    }
    let mut structured = question();
    structured["OwnerName"] = json!("Ms, Jane, Smith");
    assert_eq!(named(&structured).0, 200);
    structured["LegalOwnerType"] = json!("Business");
    assert_eq!(named(&structured).0, 400);
}
