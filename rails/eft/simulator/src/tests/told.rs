//! What happens to payments from outside.

use railhead_simulator::types::{Event, Obstacle, State};

use super::written::{self, id, plain};
use super::{
    asked, came_to, contents, install, kept, play, read, refused, rejected, report, sent, standing,
};
use crate::tell;

#[test]
fn what_is_open_ends_and_then_the_file_is_reported_on() {
    for scenario in ["processing", "timeout_then_unknown"] {
        install(scenario);
        super::sent("a.txt", &plain(7, &[1, 2, 3]));
        let settled = tell(&id(1), Event::Settle).expect("settled");
        assert_eq!((settled.state, settled.executed, settled.received), (State::Paid, 1, 1));
        let failed = tell(&id(3), Event::Fail).expect("failed");
        assert_eq!((failed.state, failed.executed), (refused("invalid_account"), 0));
        assert!(contents().is_empty(), "one is open");
        assert_ne!(asked("/outgoing/a.txt"), (200, "accepted".to_owned()));
        assert_eq!(tell(&id(2), Event::Settle).expect("settled").executed, 1);
        let contents = contents();
        let [content] = contents.as_slice() else { panic!("{contents:?}") };
        let report = report(content);
        assert_eq!((&report["status"], &report["payments"]), (&"accepted".into(), &3.into()));
        assert_eq!(rejected(&report), [("invalid_account", id(3).as_str())]);
        assert_eq!(standing("a.txt"), "accepted", "{scenario}");
        for (serial, event) in
            [(1, Event::Settle), (1, Event::Fail), (3, Event::Settle), (3, Event::Return)]
        {
            assert_eq!(tell(&id(serial), event), Err(Obstacle::Impossible), "{serial}");
        }
        assert_eq!((kept(&id(1)).executed, kept(&id(3)).executed), (1, 0));
        assert_eq!(read(sent("a.txt", &plain(7, &[1, 2, 3]))).0, 200);
        assert_eq!(super::contents().len(), 1);
    }
}

#[test]
fn a_duplicate_in_a_file_that_waits_is_rejected_in_its_report() {
    install("paid");
    assert_eq!(read(sent("a.txt", &plain(7, &[1]))).0, 201);
    play("processing");
    assert_eq!(read(sent("b.txt", &plain(8, &[1, 2]))).0, 201);
    assert_eq!((contents().len(), standing("b.txt")), (1, "received".to_owned()));
    assert_eq!(tell(&id(1), Event::Settle), Err(Obstacle::Impossible));
    tell(&id(2), Event::Fail).expect("failed");
    let report = report(&contents()[1]);
    let (first, second) = (id(1), id(2));
    assert_eq!(
        rejected(&report),
        [("duplicate_payment", first.as_str()), ("invalid_account", second.as_str())]
    );
    assert_eq!(came_to(&id(1)), (2, 1, State::Paid));
}

#[test]
fn what_was_paid_comes_back_once() {
    install("paid");
    assert_eq!(read(sent("a.txt", &plain(7, &[1, 2]))).0, 201);
    let returned = tell(&id(2), Event::Return).expect("returned");
    assert_eq!((returned.state, returned.executed), (State::Returned, 1));
    assert_eq!(came_to(&id(2)), (1, 1, State::Returned));
    let contents = contents();
    assert_eq!(contents.len(), 2);
    let back = written::read(&contents[1]);
    let [one] = back.as_slice() else { panic!("{back:?}") };
    assert_eq!((one.reference.as_str(), one.code.as_str()), ("E16000000000002", "902"));
    assert_eq!((one.cents, one.original.as_str()), (12_345, "0032000000007000000002"));
    for event in [Event::Return, Event::Settle, Event::Fail] {
        assert_eq!(tell(&id(2), event), Err(Obstacle::Impossible));
    }
    // Traces of the bank's own do not come again.
    tell(&id(1), Event::Return).expect("returned");
    let others = written::read(&super::contents()[2]);
    assert_ne!(others[0].trace, one.trace);
}

#[test]
fn what_never_arrived_and_what_is_no_payment() {
    install("never_received");
    sent("a.txt", &plain(7, &[1]));
    for event in [Event::Settle, Event::Fail, Event::Return] {
        assert_eq!(tell(&id(1), event), Err(Obstacle::Impossible));
        assert_eq!(tell(&id(2), event), Err(Obstacle::Unknown));
    }
    sent("a.txt", &plain(7, &[1]));
    assert_eq!(contents().len(), 1);
    for reference in ["feed", "feed/00000001", "file/a.txt", "file-numbers", ""] {
        assert_eq!(tell(reference, Event::Settle), Err(Obstacle::Unknown), "{reference}");
    }
    for scenario in ["file_rejected", "file_duplicate"] {
        install(scenario);
        sent("a.txt", &plain(7, &[1]));
        for event in [Event::Settle, Event::Fail, Event::Return] {
            assert_eq!(tell(&id(1), event), Err(Obstacle::Impossible), "{scenario}");
        }
    }
}
