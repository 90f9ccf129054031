//! The same file again, the same number again, the same payment again.

use railhead_simulator::types::State;

use super::writer::{Draft, draft, id, plain, trace};
use super::{
    came_to, contents, errors, install, kept, read, refusal, rejected, report, sent, standing,
};

#[test]
fn the_same_file_again_is_known_and_does_nothing() {
    for scenario in ["paid", "failed", "returned", "processing", "file_rejected"] {
        install(scenario);
        let file = plain(7, &[1, 2]);
        assert_eq!(read(sent("a.ach", &file)).0, 201);
        let (before, told) = (kept(&id(1)), contents().len());
        assert_eq!(read(sent("a.ach", &file)).0, 200, "{scenario}");
        let after = kept(&id(1));
        assert_eq!((after.received, after.executed), (2, before.executed), "{scenario}");
        assert_eq!((after.state, contents().len()), (before.state, told), "{scenario}");
    }
}

#[test]
fn a_name_and_a_number_are_used_once() {
    install("paid");
    assert_eq!(read(sent("a.ach", &plain(7, &[1]))).0, 201);
    let other_modifier = Draft { modifier: 'Z', ..draft(7, &[2]) }.text();
    let other_number = Draft { modifier: draft(7, &[]).modifier, ..draft(8, &[2]) }.text();
    for (name, body, code) in [
        ("a.ach", plain(8, &[2]), "duplicate_name"),
        ("a.ach", plain(7, &[2]), "duplicate_name"),
        ("b.ach", plain(7, &[1]), "duplicate_file"),
        ("b.ach", other_modifier, "duplicate_file"),
    ] {
        assert_eq!(refusal(sent(name, &body)), (409, code.to_owned()), "{name}");
    }
    assert_eq!(came_to(&id(1)), (1, 1, State::Paid));
    assert_eq!((contents().len(), errors()), (1, 0));
    // Another number is another file, whatever its modifier.
    assert_eq!(read(sent("b.ach", &other_number)).0, 201);
    assert_eq!(came_to(&id(2)), (1, 1, State::Paid));
}

#[test]
fn a_payment_that_came_in_another_file_is_rejected_and_not_made_again() {
    for (scenario, executed) in [("paid", 1), ("failed", 0), ("returned", 1), ("processing", 0)] {
        install(scenario);
        assert_eq!(read(sent("a.ach", &plain(7, &[1]))).0, 201);
        let state = kept(&id(1)).state;
        super::play("paid");
        let told = contents().len();
        assert_eq!(read(sent("b.ach", &plain(8, &[2, 1]))).0, 201, "{scenario}");
        let contents = contents();
        assert_eq!(contents.len(), told + 1, "{scenario}");
        let report = report(&contents[told]);
        assert_eq!(rejected(&report), [("duplicate_entry", trace(8, 2).as_str())], "{scenario}");
        assert_eq!(came_to(&id(1)), (2, executed, state), "{scenario}");
        assert_eq!(kept(&id(1)).noted("trace"), trace(7, 1));
        assert_eq!(came_to(&id(2)), (1, 1, State::Paid));
        assert_eq!(standing("b.ach"), "accepted");
    }
}

#[test]
fn a_file_of_nothing_but_duplicates_is_accepted_without_them() {
    install("processing");
    assert_eq!(read(sent("a.ach", &plain(7, &[1, 2]))).0, 201);
    assert!(contents().is_empty());
    assert_eq!(read(sent("b.ach", &plain(8, &[1, 2]))).0, 201);
    let report = report(&contents()[0]);
    assert_eq!((rejected(&report).len(), &report["status"]), (2, &"accepted".into()));
    assert_eq!(came_to(&id(1)), (2, 0, State::Pending));
}
