//! What happens to payments from outside.

use railhead_simulator::types::{Event, Obstacle, State};

use super::nacha;
use super::writer::{id, plain, trace};
use super::{
    asked, came_to, contents, install, kept, play, read, refused, rejected, report, sent, standing,
};
use crate::tell;

#[test]
fn what_is_open_ends_and_then_the_file_is_reported_on() {
    for scenario in ["processing", "timeout_then_unknown"] {
        install(scenario);
        super::sent("a.ach", &plain(7, &[1, 2, 3]));
        let settled = tell(&id(1), Event::Settle).expect("settled");
        assert_eq!((settled.state, settled.executed, settled.received), (State::Paid, 1, 1));
        let failed = tell(&id(3), Event::Fail).expect("failed");
        assert_eq!((failed.state, failed.executed), (refused("invalid_account"), 0));
        assert!(contents().is_empty(), "one is open");
        assert_ne!(asked("/outgoing/a.ach"), (200, "accepted".to_owned()));
        assert_eq!(tell(&id(2), Event::Settle).expect("settled").executed, 1);
        let contents = contents();
        let [content] = contents.as_slice() else { panic!("{contents:?}") };
        let report = report(content);
        assert_eq!((&report["status"], &report["entries"]), (&"accepted".into(), &3.into()));
        assert_eq!(rejected(&report), [("invalid_account", trace(7, 3).as_str())]);
        assert_eq!(standing("a.ach"), "accepted", "{scenario}");
        for (serial, event) in
            [(1, Event::Settle), (1, Event::Fail), (3, Event::Settle), (3, Event::Return)]
        {
            assert_eq!(tell(&id(serial), event), Err(Obstacle::Impossible), "{serial}");
        }
        assert_eq!((kept(&id(1)).executed, kept(&id(3)).executed), (1, 0));
        assert_eq!(read(sent("a.ach", &plain(7, &[1, 2, 3]))).0, 200);
        assert_eq!(super::contents().len(), 1);
    }
}

#[test]
fn a_duplicate_in_a_file_that_waits_is_rejected_in_its_report() {
    install("paid");
    assert_eq!(read(sent("a.ach", &plain(7, &[1]))).0, 201);
    play("processing");
    assert_eq!(read(sent("b.ach", &plain(8, &[1, 2]))).0, 201);
    assert_eq!((contents().len(), standing("b.ach")), (1, "received".to_owned()));
    assert_eq!(tell(&id(1), Event::Settle), Err(Obstacle::Impossible));
    tell(&id(2), Event::Fail).expect("failed");
    let report = report(&contents()[1]);
    let (first, second) = (trace(8, 1), trace(8, 2));
    assert_eq!(
        rejected(&report),
        [("duplicate_entry", first.as_str()), ("invalid_account", second.as_str())]
    );
    assert_eq!(came_to(&id(1)), (2, 1, State::Paid));
}

#[test]
fn what_was_paid_comes_back_once() {
    install("paid");
    assert_eq!(read(sent("a.ach", &plain(7, &[1, 2]))).0, 201);
    let returned = tell(&id(2), Event::Return).expect("returned");
    assert_eq!((returned.state, returned.executed), (State::Returned, 1));
    assert_eq!(came_to(&id(2)), (1, 1, State::Returned));
    let contents = contents();
    assert_eq!(contents.len(), 2);
    let (_, entries) = nacha::read(&contents[1]);
    let [entry] = entries.as_slice() else { panic!("{entries:?}") };
    assert_eq!((entry.id.as_str(), entry.what.as_str()), ("R16000000000002", "99R03"));
    assert_eq!((entry.cents, &entry.original_trace), (12_345, &trace(7, 2)));
    for event in [Event::Return, Event::Settle, Event::Fail] {
        assert_eq!(tell(&id(2), event), Err(Obstacle::Impossible));
    }
    // Traces of the bank's own do not come again.
    tell(&id(1), Event::Return).expect("returned");
    let (_, others) = nacha::read(&super::contents()[2]);
    assert_ne!(others[0].trace, entry.trace);
}

#[test]
fn what_never_arrived_and_what_is_no_payment() {
    install("never_received");
    sent("a.ach", &plain(7, &[1]));
    for event in [Event::Settle, Event::Fail, Event::Return] {
        assert_eq!(tell(&id(1), event), Err(Obstacle::Impossible));
        assert_eq!(tell(&id(2), event), Err(Obstacle::Unknown));
    }
    sent("a.ach", &plain(7, &[1]));
    assert_eq!(contents().len(), 1);
    for reference in ["feed", "feed/00000001", "file/a.ach", "file-number/00000007", ""] {
        assert_eq!(tell(reference, Event::Settle), Err(Obstacle::Unknown), "{reference}");
    }
    for scenario in ["file_rejected", "file_duplicate"] {
        install(scenario);
        sent("a.ach", &plain(7, &[1]));
        for event in [Event::Settle, Event::Fail, Event::Return] {
            assert_eq!(tell(&id(1), event), Err(Obstacle::Impossible), "{scenario}");
        }
    }
}
