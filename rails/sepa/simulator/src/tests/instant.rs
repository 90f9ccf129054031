//! Instant payments, questions, recalls, and names.

use railhead_simulator::types::{Answer, Event, State};

use super::{
    INSTANT, PAYMENT, QUESTION, RECALL, came_to, errors, install, post, read, request, told,
};
use crate::{handle, tell};

fn paid(scenario: &str) -> (u16, String) {
    install(scenario);
    read(post("/instant/payments", PAYMENT))
}

fn asked() -> (u16, String) {
    read(post("/instant/status-requests", QUESTION))
}

fn word(word: &str) -> String {
    format!("<TxSts>{word}</TxSts>")
}

#[test]
fn each_scenario() {
    for (scenario, now, later, executed) in [
        ("paid", "ACSC", "ACSC", 1),
        ("processing", "PDNG", "PDNG", 0),
        ("failed", "RJCT", "RJCT", 0),
        ("reject_rr04", "RJCT", "RJCT", 0),
        ("returned", "ACSC", "ACSC", 1),
        ("duplicate_callback", "ACSP", "ACSC", 1),
        ("delayed", "ACSP", "ACSC", 1),
    ] {
        let (status, answer) = paid(scenario);
        assert!(status == 200 && answer.contains(&word(now)), "{scenario}: {answer}");
        let (status, answer) = asked();
        assert!(status == 200 && answer.contains(&word(later)), "{scenario}: {answer}");
        assert_eq!((came_to(INSTANT).1, errors()), (executed, 0), "{scenario}");
    }
    assert!(paid("reject_rr04").1.contains("<Cd>RR04</Cd>"));
}

#[test]
fn what_is_not_answered() {
    for (scenario, status, later) in [
        ("timeout_then_paid", 200, "ACSC"),
        ("timeout_then_failed", 200, "RJCT"),
        ("timeout_then_unknown", 500, "internal"),
    ] {
        install(scenario);
        assert!(matches!(post("/instant/payments", PAYMENT), Answer::Silence));
        let (found, answer) = asked();
        assert!(found == status && answer.contains(later), "{scenario}: {answer}");
    }
    install("never_received");
    assert!(matches!(post("/instant/payments", PAYMENT), Answer::NotReceived));
    let (status, answer) = asked();
    assert!(status == 404 && answer.contains(INSTANT), "{answer}");
    assert_eq!(read(post("/instant/payments", PAYMENT)).0, 200);
    assert_eq!(came_to(INSTANT), (2, 1, State::Paid));
    install("provider_down");
    assert_eq!(read(post("/instant/payments", PAYMENT)).0, 503);
    assert_eq!(asked().0, 503);
}

#[test]
fn nothing_is_paid_twice() {
    paid("paid");
    let (status, answer) = read(post("/instant/payments", PAYMENT));
    assert!(status == 200 && answer.contains("AM05"), "{answer}");
    assert_eq!(came_to(INSTANT), (2, 1, State::Paid));
}

#[test]
fn what_it_tells_by_itself() {
    paid("returned");
    assert!(told()[0].contains("<RtrRsnInf><Rsn><Cd>AC04</Cd></Rsn></RtrRsnInf>"));
    paid("duplicate_callback");
    let words: Vec<bool> = told().iter().map(|it| it.contains(&word("ACSC"))).collect();
    assert_eq!(words, [true, false, true]);
    for (event, part) in [(Event::Settle, "ACSC"), (Event::Fail, "<Cd>AC01</Cd>")] {
        paid("processing");
        tell(INSTANT, event).expect("it happens");
        assert!(told()[0].contains(part));
    }
    paid("paid");
    tell(INSTANT, Event::Return).expect("it comes back");
    assert!(told()[0].contains("PmtRtr"));
    assert!(tell(INSTANT, Event::Return).is_err());
}

#[test]
fn recalls() {
    let recalled = || read(post("/recalls", RECALL));
    paid("processing");
    assert!(recalled().1.contains("<Conf>CNCL</Conf>"));
    assert!(told()[0].contains("<Cd>CUST</Cd>") && came_to(INSTANT).1 == 0);
    paid("paid");
    assert!(recalled().1.contains("<Conf>PDCR</Conf>"));
    assert_eq!(recalled().0, 409);
    paid("returned");
    assert!(recalled().1.contains("<Cd>ARDT</Cd>"));
    install("paid");
    assert!(recalled().1.contains("<Cd>NOOR</Cd>"));
}

#[test]
fn names() {
    let body = "{\"party\":{\"name\":\"Jane Smith\"},\
                \"partyAccount\":{\"iban\":\"DE89370400440532013000\"},\
                \"partyAgent\":{\"financialInstitutionId\":{\"bicfi\":\"COBADEFFXXX\"}}}";
    let compared = |body: &str| {
        read(handle(&request("POST", "/vop/v1/payee-verifications", "application/json", body)))
    };
    for (scenario, status, part) in [
        ("paid", 200, "MTCH"),
        ("name_mismatch", 200, "NMTC"),
        ("name_unchecked", 200, "NOAP"),
        ("close_match", 200, "Jane A Smith"),
        ("unresolvable", 404, "AC01"),
        ("provider_down", 503, "unavailable"),
    ] {
        install(scenario);
        let (found, answer) = compared(body);
        assert!(found == status && answer.contains(part), "{scenario}: {answer}");
    }
    install("paid");
    for odd in ["", "{}", "[]", &body.replace("DE89", "DE88"), &body.replace("Jane Smith", "")] {
        assert_eq!(compared(odd).0, 400, "{odd}");
    }
    assert_eq!(errors(), 5);
}
