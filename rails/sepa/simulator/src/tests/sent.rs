//! Files, and what is said about them.

use railhead_simulator::host::double;
use railhead_simulator::types::{Answer, Event, Obstacle, State};

use super::{
    FILE, NAME, NOW_MS, REFERENCE, came_to, contents, errors, get, install, kept, put, read,
};
use crate::tell;

/// Where the payment of the file begins, and the one after it would.
fn entry() -> (usize, usize) {
    let end = "</CdtTrfTxInf>\n";
    let begin = FILE.find("   <CdtTrfTxInf>").expect("a payment");
    (begin, FILE.find(end).expect("its end") + end.len())
}

/// What the payment of this number is called in a file of many.
fn reference(number: usize) -> String {
    format!("RE01A1FD557A80{number:010X}")
}

/// The file with so many payments.
fn file_of(count: usize) -> String {
    let (begin, end) = entry();
    let (head, one, tail) = (&FILE[..begin], &FILE[begin..end], &FILE[end..]);
    let cents = 125_050 * count;
    let sum = format!("<CtrlSum>{}.{:02}<", cents / 100, cents % 100);
    let head = head.replace("<CtrlSum>1250.50<", &sum);
    let head = head.replace("<NbOfTxs>1<", &format!("<NbOfTxs>{count}<"));
    let entry = |number| one.replace("A1FD557A800000000002", &reference(number)[4..]);
    [head, (1..=count).map(entry).collect(), tail.to_owned()].concat()
}

fn taken(scenario: &str) -> Vec<String> {
    install(scenario);
    assert_eq!(read(put(NAME, FILE)).0, 201, "{scenario}");
    assert_eq!(errors(), 0);
    contents()
}

#[test]
fn what_is_carried_out_is_reported_on() {
    let said = taken("paid");
    assert_eq!(said.len(), 1);
    assert!(said[0].contains("<PmtInfSts>ACSP</PmtInfSts>"), "{}", said[0]);
    assert!(said[0].contains("<OrgnlCtrlSum>1250.50</OrgnlCtrlSum>"));
    assert_eq!(came_to(REFERENCE), (1, 1, State::Paid));
    assert_eq!(get(&format!("/outgoing/{NAME}")).0, 200);
    assert_eq!(get("/outgoing/other.xml").0, 404);
}

#[test]
fn what_is_rejected_or_comes_back_has_its_code() {
    for (scenario, code) in [("failed", "AC01"), ("reject_md07", "MD07"), ("reject_am05", "AM05")] {
        let said = taken(scenario);
        assert!(said[0].contains(&format!("<TxSts>RJCT</TxSts><StsRsnInf><Rsn><Cd>{code}</Cd>")));
        assert_eq!(came_to(REFERENCE), (1, 0, State::Refused(code.to_owned())));
    }
    for (scenario, code) in [("returned", "AC04"), ("return_ms02", "MS02")] {
        let said = taken(scenario);
        assert!(said[1].contains(&format!("<RtrInf><Rsn><Cd>{code}</Cd></Rsn></RtrInf>")));
        assert!(said[1].contains(&format!("<EndToEndId>{REFERENCE}</EndToEndId>")));
        assert_eq!(came_to(REFERENCE), (1, 1, State::Returned));
    }
}

#[test]
fn whole_files() {
    assert!(taken("file_rejected")[0].contains("<GrpSts>RJCT</GrpSts>"));
    assert_eq!(came_to(REFERENCE).1, 0);
    // Another file may bring the payment.
    let other = FILE.replace("000000042", "000000043");
    assert_eq!(read(put("other.xml", &other)).0, 201);
    assert_eq!(came_to(REFERENCE), (2, 1, State::Paid));
    assert!(taken("file_unclear")[0].contains("<GrpSts>PART</GrpSts>"));
    assert_eq!(taken("duplicate_callback").len(), 4);
    install("file_duplicate");
    assert_eq!(read(put(NAME, FILE)).0, 409);
    assert_eq!(read(put(NAME, FILE)).0, 409);
    assert!(contents().is_empty());
}

#[test]
fn what_is_not_answered() {
    for (scenario, executed, reports) in
        [("timeout_then_paid", 1, 1), ("timeout_then_failed", 0, 1), ("timeout_then_unknown", 0, 0)]
    {
        install(scenario);
        assert!(matches!(put(NAME, FILE), Answer::Silence), "{scenario}");
        assert_eq!((came_to(REFERENCE).1, contents().len()), (executed, reports), "{scenario}");
        let is_there = get(&format!("/outgoing/{NAME}")).0 == 200;
        assert_eq!(is_there, scenario != "timeout_then_unknown");
    }
    install("never_received");
    assert!(matches!(put(NAME, FILE), Answer::NotReceived));
    assert_eq!(came_to(REFERENCE), (1, 0, State::Lost));
    assert_eq!(read(put(NAME, FILE)).0, 201);
    assert_eq!(came_to(REFERENCE), (2, 1, State::Paid));
    install("provider_down");
    assert_eq!((read(put(NAME, FILE)).0, get("/incoming").0), (503, 503));
}

#[test]
fn nothing_is_carried_out_twice() {
    taken("paid");
    assert_eq!(read(put(NAME, FILE)).0, 200);
    assert_eq!(came_to(REFERENCE), (2, 1, State::Paid));
    assert_eq!(read(put("another-name.xml", FILE)).0, 409);
    assert_eq!(read(put(NAME, &FILE.replace("Invoice 17", "Invoice 18"))).0, 409);
    // The payment in another file.
    let other = FILE.replace("000000042", "000000043");
    assert_eq!(read(put("other.xml", &other)).0, 201);
    assert_eq!(came_to(REFERENCE), (3, 1, State::Paid));
    assert!(contents()[1].contains("AM05"));
}

#[test]
fn what_waits_is_told() {
    let said = taken("processing");
    assert!(said.len() == 1 && said[0].contains("ACTC"), "{said:?}");
    assert_eq!(tell("nobody", Event::Settle), Err(Obstacle::Unknown));
    assert_eq!(tell(&format!("file/{NAME}"), Event::Settle), Err(Obstacle::Unknown));
    assert_eq!(tell(REFERENCE, Event::Return), Err(Obstacle::Impossible));
    assert_eq!(tell(REFERENCE, Event::Settle).map(|it| it.state), Ok(State::Paid));
    assert!(contents()[1].contains("<PmtInfSts>ACSP</PmtInfSts>"));
    assert_eq!(tell(REFERENCE, Event::Fail), Err(Obstacle::Impossible));
    assert_eq!(tell(REFERENCE, Event::Return).map(|it| it.state), Ok(State::Returned));
    assert!(contents()[2].contains("<RtrInf>"));
    taken("processing");
    tell(REFERENCE, Event::Fail).expect("it fails");
    assert!(contents()[1].contains("<Cd>AC01</Cd>"));
}

#[test]
fn as_many_as_rails_put_into_a_file() {
    for (scenario, said) in [("failed", "<TxSts>RJCT</TxSts>"), ("returned", "<RtrInf>")] {
        install(scenario);
        assert_eq!(read(put(NAME, &file_of(10_000))).0, 201);
        let last = contents().pop().expect("a message");
        assert_eq!(last.matches(said).count(), 10_000);
        // What the host fetches at once.
        assert!(last.len() < 4 * 1024 * 1024, "{}", last.len());
    }
    install("paid");
    assert_eq!(read(put(NAME, &file_of(10_001))).0, 413);
    assert!(contents().is_empty());
}

#[test]
fn what_waits_is_told_once_all_of_it_has_ended() {
    install("processing");
    assert_eq!(read(put(NAME, &file_of(3))).0, 201);
    assert!(double::with(|host| !host.book.values().any(|it| it.noted("said").len() > 1_000)));
    tell(&reference(2), Event::Fail).expect("it fails");
    tell(&reference(3), Event::Settle).expect("it is paid");
    assert_eq!(contents().len(), 1);
    tell(&reference(1), Event::Settle).expect("it is paid");
    let said = contents();
    assert_eq!(said.len(), 2);
    let told = [
        format!("<OrgnlEndToEndId>{}</OrgnlEndToEndId><TxSts>RJCT</TxSts>", reference(2)),
        "<DtldNbOfTxs>2</DtldNbOfTxs><DtldSts>ACSP</DtldSts>".to_owned(),
        "<PmtInfSts>PART</PmtInfSts>".to_owned(),
    ];
    for told in told {
        assert!(said[1].contains(&told), "{told}: {}", said[1]);
    }
    assert!(!said[1].contains(&reference(1)) && kept(&reference(1)).state == State::Paid);
    // The whole file again, of which nothing waits any more.
    assert_eq!(read(put(NAME, &file_of(3))).0, 200);
    assert_eq!(contents().len(), 2);
}

#[test]
fn a_payment_stands_where_it_belongs() {
    let (begin, end) = entry();
    let one = &FILE[begin..end];
    let elsewhere = [
        FILE.replace("  <PmtInf>\n", &format!("{one}  <PmtInf>\n")),
        FILE.replace("  </PmtInf>\n", &format!("  </PmtInf>\n{one}")),
        FILE.replace("   <ChrgBr>", &format!("{one}   <ChrgBr>")),
        FILE.replace("    <PmtId>\n", &format!("{one}    <PmtId>\n")),
        FILE.replace(one, "   <CdtTrfTxInf>\n   </CdtTrfTxInf>\n"),
        FILE.replace(one, ""),
    ];
    for body in elsewhere {
        install("paid");
        assert_ne!(body, FILE);
        assert_eq!((read(put(NAME, &body)).0, errors()), (422, 1), "{body}");
    }
}

#[test]
fn strangers_and_odd_requests() {
    install("paid");
    let mut request = super::request("PUT", &format!("/outgoing/{NAME}"), "application/xml", FILE);
    request.headers[0].1 = "Bearer other".to_owned();
    assert_eq!(read(crate::handle(&request)).0, 401);
    let plain = super::request("PUT", &format!("/outgoing/{NAME}"), "text/plain", FILE);
    assert_eq!(read(crate::handle(&plain)).0, 415);
    assert_eq!(read(put("a b.xml", FILE)).0, 422);
    assert_eq!(read(put(NAME, &" ".repeat(13_000_000))).0, 413);
    assert_eq!(get("/elsewhere").0, 404);
    assert_eq!(get("/incoming/none.xml").0, 404);
    assert_eq!(double::with(|host| host.now_ms), NOW_MS);
}
