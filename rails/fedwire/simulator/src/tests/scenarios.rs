//! What becomes of wires in each scenario.

use railhead_simulator::host::double;
use railhead_simulator::types::{Answer, Event, Obstacle, State};

use super::{QUESTION, RECALL, UETR, WIRE, answered, executed, play, says, send, told};

fn asked() -> (u16, String) {
    send("/status-requests", QUESTION)
}

#[test]
fn a_wire_is_paid_once() {
    play("paid");
    let (status, body) = send("/wires", WIRE);
    assert_eq!(status, 200, "{body}");
    assert!(says(&body, "TxSts", "ACSC") && says(&body, "OrgnlUETR", UETR));
    assert!(says(&body, "OrgnlMsgId", "20261123B1QDRCQR000005"));
    let (status, again) = send("/wires", WIRE);
    assert!(
        status == 409 && says(&again, "TxSts", "RJCT") && says(&again, "Cd", "AM05"),
        "{again}"
    );
    assert!(says(&asked().1, "TxSts", "ACSC"));
    assert_eq!(executed(), 1);
    assert!(told().is_empty());
}

#[test]
fn rejections() {
    for (scenario, expected, element, code) in [
        ("failed", 200, "Prtry", "E433"),
        ("rejected_ac01", 200, "Cd", "AC01"),
        ("rejected_ac04", 200, "Cd", "AC04"),
        ("message_rejected", 400, "RjctgPtyRsn", "E990"),
    ] {
        play(scenario);
        let (status, body) = send("/wires", WIRE);
        assert!(status == expected && says(&body, element, code), "{scenario} {body}");
        assert!(says(&asked().1, "TxSts", "RJCT"), "{scenario}");
        assert_eq!(executed(), 0);
    }
    play("rejected_later");
    let (status, body) = send("/wires", WIRE);
    assert!(status == 202 && says(&body, "TxSts", "PDNG"), "{body}");
    assert!(says(&told()[0], "TxSts", "RJCT") && says(&told()[0], "Prtry", "E433"));
}

#[test]
fn no_answer() {
    for (scenario, expected, times) in [
        ("timeout_then_paid", Some("ACSC"), 1),
        ("timeout_then_failed", Some("RJCT"), 0),
        ("timeout_then_unknown", None, 0),
    ] {
        play(scenario);
        assert_eq!(answered("/wires", WIRE), Answer::Silence);
        let (status, body) = asked();
        match expected {
            Some(word) => assert!(status == 200 && says(&body, "TxSts", word), "{body}"),
            None => assert_eq!(status, 500),
        }
        assert_eq!(executed(), times, "{scenario}");
    }
}

#[test]
fn never_received_and_sent_again() {
    play("never_received");
    assert_eq!(answered("/wires", WIRE), Answer::NotReceived);
    let (status, body) = asked();
    assert!(status == 404 && says(&body, "Ref", "Q0000001"), "{body}");
    let (status, body) = send("/wires", WIRE);
    assert!(status == 200 && says(&body, "TxSts", "ACSC"), "{body}");
    assert_eq!(executed(), 1);
}

#[test]
fn a_gateway_that_is_down() {
    play("provider_down");
    assert_eq!(send("/wires", WIRE).0, 503);
    assert_eq!(asked().0, 503);
    assert_eq!(executed(), 0);
}

#[test]
fn what_it_tells_by_itself() {
    play("duplicate_callback");
    assert!(says(&send("/wires", WIRE).1, "TxSts", "PDNG"));
    let words: Vec<bool> = told().iter().map(|body| says(body, "TxSts", "ACSC")).collect();
    assert_eq!((words, executed()), (vec![true, false, true], 1));
    play("settled_later");
    assert_eq!(send("/wires", WIRE).0, 202);
    assert!(told().len() == 1 && says(&told()[0], "TxSts", "ACSC"));
    play("told_by_a_stranger");
    send("/wires", WIRE);
    assert!(says(&told()[0], "TxSts", "RJCT") && says(&asked().1, "TxSts", "ACSC"));
    double::with(|host| {
        let signature = &host.sent[0].headers[1];
        assert_eq!(signature.0, "x-signature");
    });
    play("answered_for_another");
    assert!(!send("/wires", WIRE).1.contains(UETR) && asked().1.contains(UETR));
}

#[test]
fn returns() {
    play("returned");
    assert!(says(&send("/wires", WIRE).1, "TxSts", "ACSC"));
    let back = &told()[0];
    assert!(back.contains("<RtrdIntrBkSttlmAmt Ccy=\"USD\">1250.50</RtrdIntrBkSttlmAmt>"));
    assert!(says(back, "Cd", "AC04") && says(back, "OrgnlUETR", UETR));
    // What came back was made: its own status stays.
    assert!(says(&asked().1, "TxSts", "ACSC"));
    play("returned_less");
    send("/wires", WIRE);
    assert!(told()[0].contains("<RtrdIntrBkSttlmAmt Ccy=\"USD\">625.25</RtrdIntrBkSttlmAmt>"));
}

#[test]
fn asked_back() {
    play("recall_accepted");
    assert!(says(&send("/wires", WIRE).1, "TxSts", "PDNG") && says(&asked().1, "TxSts", "PDNG"));
    assert_eq!((executed(), told().len()), (0, 0));
    let (status, body) = send("/return-requests", RECALL);
    assert!(status == 200 && says(&body, "Ref", "20261123B1QDRCQR000006"), "{body}");
    let then = told();
    assert!(says(&then[0], "TxSts", "ACSC") && says(&then[1], "Conf", "ACCR"));
    assert!(says(&then[2], "Cd", "FOCR") && executed() == 1);
    assert!(says(&asked().1, "TxSts", "ACSC"));
    let (_, again) = send("/return-requests", RECALL);
    assert!(says(&again, "Conf", "RJCR") && told().len() == 3);
    for (scenario, words) in [
        ("recall_refused", &[("TxSts", "ACSC"), ("Conf", "RJCR")][..]),
        ("paid", &[("Conf", "PDCR")]),
    ] {
        play(scenario);
        send("/wires", WIRE);
        send("/return-requests", RECALL);
        let then = told();
        assert_eq!(then.len(), words.len(), "{scenario}");
        for (body, (element, word)) in then.iter().zip(words) {
            assert!(says(body, element, word), "{scenario} {body}");
        }
        assert_eq!(double::with(|host| host.book[UETR].state.clone()), State::Paid);
    }
    play("processing");
    send("/wires", WIRE);
    assert!(says(&send("/return-requests", RECALL).1, "TxSts", "CANC"));
    assert!(says(&asked().1, "TxSts", "CANC") && executed() == 0);
    play("paid");
    assert_eq!(send("/return-requests", RECALL).0, 404);
    send("/wires", WIRE);
    assert_eq!(send("/return-requests", &RECALL.replace("1250.50", "1250.51")).0, 400);
}

#[test]
fn an_imad_is_used_once() {
    play("paid");
    assert!(says(&send("/wires", WIRE).1, "TxSts", "ACSC"));
    let other = "8a562c67-ca16-48ba-b074-65581be6f011";
    let (status, body) = send("/wires", &WIRE.replace(UETR, other));
    assert!(
        status == 200 && says(&body, "TxSts", "RJCT") && says(&body, "Prtry", "X001"),
        "{body}"
    );
    assert!(says(&body, "OrgnlUETR", other));
    // It is not known afterwards, nor paid under another IMAD by mistake; the first one stands.
    assert_eq!(send("/status-requests", &QUESTION.replace(UETR, other)).0, 404);
    assert!(double::with(|host| !host.book.contains_key(other)) && executed() == 1);
    assert!(says(&asked().1, "TxSts", "ACSC"));
    assert_eq!(crate::tell("imad/20261123B1QDRCQR000005", Event::Settle), Err(Obstacle::Unknown));
    let next = WIRE.replace(UETR, other).replace("QR000005", "QR000007");
    assert!(says(&send("/wires", &next).1, "TxSts", "ACSC"));
    // What has not arrived has used none.
    play("never_received");
    assert_eq!(answered("/wires", WIRE), Answer::NotReceived);
    assert!(double::with(|host| !host.book.contains_key("imad/20261123B1QDRCQR000005")));
}

#[test]
fn told_from_outside() {
    play("processing");
    assert_eq!(crate::tell(UETR, Event::Settle), Err(Obstacle::Unknown));
    assert_eq!(send("/wires", WIRE).0, 200);
    assert_eq!(crate::tell(UETR, Event::Return), Err(Obstacle::Impossible));
    assert_eq!(crate::tell(UETR, Event::Settle).expect("a wire").state, State::Paid);
    assert_eq!(crate::tell(UETR, Event::Settle), Err(Obstacle::Impossible));
    assert_eq!(crate::tell(UETR, Event::Return).expect("a wire").state, State::Returned);
    assert_eq!(crate::tell(UETR, Event::Fail), Err(Obstacle::Impossible));
    let bodies = told();
    assert!(bodies.len() == 2 && says(&bodies[0], "TxSts", "ACSC"));
    assert!(bodies[1].contains("pacs.004.001.10") && executed() == 1);
    play("timeout_then_unknown");
    answered("/wires", WIRE);
    let failed = crate::tell(UETR, Event::Fail).expect("a wire").state;
    assert_eq!(failed, State::Refused("E433".to_owned()));
    assert!(says(&asked().1, "TxSts", "RJCT"));
}

#[test]
fn the_day_has_to_be_that_of_writing() {
    let at = |hours: u64| {
        play("paid");
        double::with(|host| host.now_ms += hours * 3_600_000);
    };
    let evening = WIRE.replace("T10:00:00-05:00", "T21:00:00-05:00");
    at(11);
    assert_eq!(send("/wires", &evening).0, 400);
    let next = evening.replace("20261123B", "20261124B");
    assert_eq!(send("/wires", &next).0, 400);
    let whole = next.replace("IntrBkSttlmDt>2026-11-23", "IntrBkSttlmDt>2026-11-24");
    assert_eq!(send("/wires", &whole).0, 200);
}

#[test]
fn the_day_has_to_be_the_networks() {
    let after = |ms: i64, path, body| {
        play("paid");
        double::with(|host| host.now_ms = host.now_ms.saturating_add_signed(ms));
        send(path, body).0
    };
    const HOUR_MS: i64 = 3_600_000;
    for (ms, status) in [
        (0, 200),
        (11 * HOUR_MS - 1, 200),
        // Written before nine in the evening, it may arrive just after.
        (11 * HOUR_MS + 30_000, 200),
        (11 * HOUR_MS + 61_000, 400),
        (24 * HOUR_MS, 400),
        (-14 * HOUR_MS, 400),
    ] {
        assert_eq!(after(ms, "/wires", WIRE), status, "{ms}");
    }
    assert_eq!(after(24 * HOUR_MS, "/return-requests", RECALL), 400);
}
