//! What an order may hold, and what it may not.

use railhead_simulator::host::double;
use serde_json::{Value, json};

use super::{errors, install, order, sent};

/// Puts a value in an order, or takes a member out.
fn changed(pointer: &str, value: Option<Value>) -> String {
    let mut order = order();
    let (parent, member) = pointer.rsplit_once('/').expect("a pointer");
    let parent = order.pointer_mut(parent).expect("a member");
    match (value, parent) {
        (Some(value), Value::Object(members)) => drop(members.insert(member.to_owned(), value)),
        (None, Value::Object(members)) => drop(members.remove(member).expect("a member")),
        (_, other) => panic!("{other}"),
    }
    order.to_string()
}

/// What makes a good order a bad one: a member, and what stands there instead.
fn mutations() -> Vec<(String, Option<Value>)> {
    let one = |member: &str| format!("/paymentInstructions/0/{member}");
    let transfer = |member: &str| format!("/paymentInstructions/0/creditTransfers/0/{member}");
    let other = |account: &str, member: &str| format!("{account}/identification/other/{member}");
    let reference =
        transfer("remittanceInformation/structured/creditorReferenceInformation/reference");
    vec![
        ("/paymentInstructions".into(), Some(json!([]))),
        ("/paymentInstructions".into(), Some(json!(vec![&order()["paymentInstructions"][0]; 11]))),
        ("/paymentInstructions".into(), None),
        ("/batchId".into(), Some(json!("x"))),
        (one("paymentInstructionIdentification"), None),
        (one("paymentInstructionIdentification"), Some(json!(""))),
        (one("paymentInstructionIdentification"), Some(json!("x".repeat(36)))),
        (one("paymentTypeCode"), Some(json!("ABC"))),
        (one("paymentTypeCode"), Some(Value::Null)),
        (one("debtor"), None),
        (one("debtor/address"), Some(json!(""))),
        (one("debtor/address"), Some(json!("x".repeat(141)))),
        (one("debtor/address"), Some(json!("1 High Street; London"))),
        (one("debtor/name"), Some(json!("Acme"))),
        (one("debtorAccount"), None),
        (other(&one("debtorAccount"), "identification"), Some(json!("GBR0400040000000"))),
        (one("creditTransfers"), Some(json!([]))),
        (transfer("paymentIdentification/endToEndIdentification"), None),
        (transfer("paymentIdentification/endToEndIdentification"), Some(json!(""))),
        (transfer("paymentIdentification/endToEndIdentification"), Some(json!("x".repeat(36)))),
        (transfer("paymentIdentification/instructionIdentification"), None),
        (transfer("paymentIdentification/instructionIdentification"), Some(json!("x".repeat(36)))),
        (transfer("amount/instructedAmount"), None),
        (transfer("amount/instructedAmount"), Some(json!("1250.50"))),
        (transfer("amount/instructedAmount"), Some(json!(1250.505))),
        (transfer("amount/instructedAmount"), Some(json!(0))),
        (transfer("amount/instructedAmount"), Some(json!(-1))),
        (transfer("amount/instructedAmount"), Some(json!(1_000_000.01))),
        (transfer("amount/instructedAmount"), Some(json!(1e30))),
        (transfer("amount/currency"), Some(json!("EUR"))),
        (transfer("creditor/name"), None),
        (transfer("creditor/name"), Some(json!(" "))),
        (transfer("creditor/name"), Some(json!("x".repeat(141)))),
        (transfer("creditor/name"), Some(json!("Siobh\u{e1}n"))),
        (transfer("creditor/name"), Some(json!("Jane O\u{2019}Brien"))),
        (transfer("creditor/name"), Some(json!("Jane_Smith"))),
        (transfer("creditor/address"), Some(json!("x"))),
        (transfer("creditorAccount"), None),
        (transfer("creditorAccount/identification"), Some(json!({}))),
        (other(&transfer("creditorAccount"), "identification"), Some(json!("08999966374958"))),
        (other(&transfer("creditorAccount"), "schemeName"), Some(json!({ "proprietary": "X" }))),
        (other(&transfer("creditorAccount"), "schemeName"), None),
        (transfer("remittanceInformation"), None),
        (reference.clone(), Some(json!("x".repeat(36)))),
        (reference.clone(), Some(json!("Invoice_17"))),
        (reference, Some(json!(17))),
        (transfer("enforceSendToScheme"), Some(Value::Null)),
        (transfer("enforceSendToScheme"), Some(json!("true"))),
    ]
}

#[test]
fn every_member_is_read_as_strictly_as_it_is_documented() {
    for (pointer, value) in mutations() {
        install("paid");
        let body = changed(&pointer, value.clone());
        let (status, problem) = sent(&body);
        assert_eq!(status, 400, "{pointer} {value:?}: {problem}");
        assert!(problem["errors"].is_object(), "{pointer}: {problem}");
        assert_eq!(errors(), 1, "{pointer} {value:?}");
        double::with(|host| assert!(host.book.is_empty() && host.sent.is_empty(), "{pointer}"));
    }
    for body in ["", "[]", "{}", "{\"paymentInstructions\":null}", "\u{feff}{}"] {
        install("paid");
        assert_eq!(sent(body).0, 400, "{body}");
    }
    for number in ["1250.500", "1.2505e3", "1250.50 ,\"instructedAmount\":1"] {
        install("paid");
        assert_eq!(sent(&order().to_string().replace("1250.5", number)).0, 400, "{number}");
    }
}

#[test]
fn what_is_documented_beside_what_the_rail_sends_is_taken() {
    let transfer = |member: &str| format!("/paymentInstructions/0/creditTransfers/0/{member}");
    for (pointer, value) in [
        (transfer("enforceSendToScheme"), Some(json!(true))),
        (transfer("amount/currency"), None),
        (transfer("amount/instructedAmount"), Some(json!(1_000_000))),
        (transfer("amount/instructedAmount"), Some(json!(0.01))),
        (transfer("creditor/legalEntityIndentifier"), Some(Value::Null)),
        (transfer("remittanceInformation"), Some(json!({}))),
        (
            transfer("creditorAccount/identification"),
            Some(json!({ "iban": "GB29NWBK60161331926819" })),
        ),
        ("/paymentInstructions/0/paymentTypeCode".to_owned(), None),
    ] {
        install("paid");
        let (status, answer) = sent(&changed(&pointer, value));
        assert_eq!(status, 202, "{pointer}: {answer}");
    }
}
