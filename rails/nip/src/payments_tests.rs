use std::mem::discriminant;

use railhead_rail::host::double;
use railhead_rail::imports::http::Failure;
use railhead_rail::types::{Finding, Outcome, Payment, Receipt, Refusal};

use super::{query, reference, submit};
use crate::codes::{Class, all};
use crate::fixtures::{self, REFERENCE, payment};

fn transfer_answer(code: &str) -> String {
    format!(
        "<FTSingleCreditResponse><SessionID>{REFERENCE}</SessionID>\
         <BeneficiaryAccountNumber>0123456785</BeneficiaryAccountNumber>\
         <Amount>1250.50</Amount><ResponseCode>{code}</ResponseCode></FTSingleCreditResponse>"
    )
}

fn query_answer(code: &str) -> String {
    format!(
        "<TSQuerySingleResponse><SourceInstitutionCode>999998</SourceInstitutionCode>\
         <ChannelCode>7</ChannelCode><SessionID>{REFERENCE}</SessionID>\
         <ResponseCode>{code}</ResponseCode></TSQuerySingleResponse>"
    )
}

fn submitted(body: &str) -> Outcome {
    fixtures::gateway(Ok((200, body.to_owned())));
    submit(&payment())
}

fn queried(body: &str) -> Finding {
    fixtures::gateway(Ok((200, body.to_owned())));
    query(&payment())
}

#[test]
fn the_reference_is_the_session() {
    fixtures::install();
    assert_eq!(reference(&payment()), REFERENCE);
    assert_eq!(reference(&Payment { serial: 1_000_000_000_000, ..payment() }), "");
    double::install(double::Host::default());
    assert_eq!(reference(&payment()), "");
}

fn receipt(code: &str) -> Receipt {
    Receipt { code: code.into(), network_id: None, amount_minor: None, facts: Vec::new() }
}

#[test]
fn approved_and_pending() {
    let of = |amount_minor| move |code: &str| Receipt { amount_minor, ..receipt(code) };
    let (repeated, silent) = (of(Some(125_050)), of(None));
    assert_eq!(submitted(&transfer_answer("00")), Outcome::Paid(repeated("00")));
    assert_eq!(submitted(&transfer_answer("09")), Outcome::Accepted(repeated("09")));
    assert_eq!(queried(&query_answer("00")), Finding::Paid(silent("00")));
    assert_eq!(queried(&query_answer("09")), Finding::Accepted(silent("09")));
}

#[test]
fn refusals_carry_the_code_and_its_meaning() {
    let refusal =
        |code: &str, message: &str| Refusal { code: code.into(), message: message.into() };
    let expected = Outcome::Refused(refusal("07", "Invalid account"));
    assert_eq!(submitted(&transfer_answer("07")), expected);
    let expected = Outcome::Refused(refusal("25", "Unable to locate record"));
    assert_eq!(submitted(&transfer_answer("25")), expected);
    let expected = Finding::Refused(refusal("61", "Transfer limit exceeded"));
    assert_eq!(queried(&query_answer("61")), expected);
    // Whoever ordered it has money enough: it is our own account that has not.
    let ours = refusal("51", "NIP takes no transfers from this service at present");
    assert_eq!(submitted(&transfer_answer("51")), Outcome::Refused(ours.clone()));
    assert_eq!(queried(&query_answer("51")), Finding::Refused(ours));
    assert!(matches!(queried(&query_answer("25")), Finding::NeverReceived(_)));
}

#[test]
fn every_code_in_both_calls() {
    let receipt = || receipt("");
    let refusal = || Refusal { code: String::new(), message: String::new() };
    for row in all() {
        let outcome = match row.transfer {
            Class::Done => Outcome::Paid(receipt()),
            Class::Pending => Outcome::Accepted(receipt()),
            Class::Refused => Outcome::Refused(refusal()),
            Class::NotFound | Class::Unclear => Outcome::Unknown(String::new()),
        };
        let actual = submitted(&transfer_answer(row.code));
        assert_eq!(discriminant(&actual), discriminant(&outcome), "{}: {actual:?}", row.code);
        let finding = match row.query {
            Class::Done => Finding::Paid(receipt()),
            Class::Pending => Finding::Accepted(receipt()),
            Class::Refused => Finding::Refused(refusal()),
            Class::NotFound => Finding::NeverReceived(String::new()),
            Class::Unclear => Finding::Unknown(String::new()),
        };
        let actual = queried(&query_answer(row.code));
        assert_eq!(discriminant(&actual), discriminant(&finding), "{}: {actual:?}", row.code);
    }
}

#[test]
fn an_approval_of_something_else_is_unknown() {
    let approved = transfer_answer("00");
    for body in [
        approved.replace(REFERENCE, "999998261121100000000000000003"),
        approved.replace("0123456785", "0123456786"),
        approved.replace("1250.50", "1250.51"),
        approved.replace("1250.50", "125050"),
        approved.replace("<Amount>1250.50</Amount>", ""),
        approved.replace("SessionID", "Session"),
        approved.replace("FTSingleCreditResponse", "TSQuerySingleResponse"),
        approved.replace("</FTSingleCreditResponse>", ""),
        "OK".into(),
        String::new(),
    ] {
        let outcome = submitted(&body);
        assert!(matches!(outcome, Outcome::Unknown(_)), "{body}: {outcome:?}");
    }
    let same = approved.replace("1250.50", "1250.5");
    assert!(matches!(submitted(&same), Outcome::Paid(_)));
}

#[test]
fn a_refusal_of_something_else_gives_no_money_back() {
    let other = "999998261121100000000000000003";
    let outcome = submitted(&transfer_answer("07").replace(REFERENCE, other));
    assert!(matches!(outcome, Outcome::Unknown(_)), "{outcome:?}");
    for code in ["00", "07", "25"] {
        let finding = queried(&query_answer(code).replace(REFERENCE, other));
        assert!(matches!(finding, Finding::Unknown(_)), "{finding:?}");
    }
}

#[test]
fn silence_is_unknown() {
    for failure in [Failure::NotSent("refused".into()), Failure::NoAnswer("timeout".into())] {
        fixtures::gateway(Err(failure));
        assert!(matches!(submit(&payment()), Outcome::Unknown(_)));
        assert!(matches!(query(&payment()), Finding::Unknown(_)));
    }
    for status in [302, 401, 404, 408, 429, 500, 503] {
        fixtures::gateway(Ok((status, "sorry".into())));
        assert!(matches!(submit(&payment()), Outcome::Unknown(_)), "{status}");
        assert!(matches!(query(&payment()), Finding::Unknown(_)), "{status}");
    }
}

#[test]
fn nothing_is_sent_without_a_name_enquiry_or_a_session() {
    let sent = fixtures::gateway(Ok((200, transfer_answer("00"))));
    let outcome = submit(&Payment { resolution: None, ..payment() });
    assert_eq!(outcome, Outcome::Unknown("the name enquiry is missing".into()));
    let broken = Payment { reference: "po_0001".into(), ..payment() };
    assert!(matches!(submit(&broken), Outcome::Unknown(_)));
    assert!(matches!(query(&broken), Finding::Unknown(_)));
    assert!(sent.borrow().is_empty());
}
