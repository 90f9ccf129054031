//! The same file again, the same number again, the same payment again.

use railhead_simulator::types::State;

use super::written::{id, plain};
use super::{
    came_to, contents, errors, install, kept, read, refusal, rejected, report, sent, standing,
};

#[test]
fn the_same_file_again_is_known_and_does_nothing() {
    for scenario in ["paid", "failed", "returned", "processing", "file_rejected"] {
        install(scenario);
        let file = plain(7, &[1, 2]);
        assert_eq!(read(sent("a.txt", &file)).0, 201);
        let (before, told) = (kept(&id(1)), contents().len());
        assert_eq!(read(sent("a.txt", &file)).0, 200, "{scenario}");
        let after = kept(&id(1));
        assert_eq!((after.received, after.executed), (2, before.executed), "{scenario}");
        assert_eq!((after.state, contents().len()), (before.state, told), "{scenario}");
    }
}

#[test]
fn a_name_is_used_once_and_a_number_not_soon_again() {
    install("paid");
    assert_eq!(read(sent("a.txt", &plain(7, &[1]))).0, 201);
    for (name, body, code) in [
        ("a.txt", plain(8, &[2]), "duplicate_name"),
        ("a.txt", plain(7, &[2]), "duplicate_name"),
        ("b.txt", plain(7, &[1]), "duplicate_file"),
        ("b.txt", plain(7, &[2]), "duplicate_file"),
    ] {
        assert_eq!(refusal(sent(name, &body)), (409, code.to_owned()), "{name}");
    }
    assert_eq!(came_to(&id(1)), (1, 1, State::Paid));
    assert_eq!((contents().len(), errors()), (1, 0));
    for number in 8..=16 {
        assert_eq!(read(sent(&format!("{number}.txt"), &plain(number, &[number]))).0, 201);
    }
    assert_eq!(refusal(sent("b.txt", &plain(7, &[2]))).1, "duplicate_file");
    // After ten others it comes round.
    assert_eq!(read(sent("17.txt", &plain(17, &[17]))).0, 201);
    assert_eq!(read(sent("b.txt", &plain(7, &[2]))).0, 201);
    assert_eq!(came_to(&id(2)), (1, 1, State::Paid));
}

#[test]
fn a_payment_that_came_in_another_file_is_rejected_and_not_made_again() {
    for (scenario, executed) in [("paid", 1), ("failed", 0), ("returned", 1), ("processing", 0)] {
        install(scenario);
        assert_eq!(read(sent("a.txt", &plain(7, &[1]))).0, 201);
        let state = kept(&id(1)).state;
        super::play("paid");
        let told = contents().len();
        assert_eq!(read(sent("b.txt", &plain(8, &[2, 1]))).0, 201, "{scenario}");
        let contents = contents();
        assert_eq!(contents.len(), told + 1, "{scenario}");
        let report = report(&contents[told]);
        assert_eq!(rejected(&report), [("duplicate_payment", id(1).as_str())], "{scenario}");
        assert_eq!(came_to(&id(1)), (2, executed, state), "{scenario}");
        assert_eq!(kept(&id(1)).noted("file"), "a.txt");
        assert_eq!(came_to(&id(2)), (1, 1, State::Paid));
        assert_eq!(standing("b.txt"), "accepted");
    }
}

#[test]
fn a_file_of_nothing_but_duplicates_is_accepted_without_them() {
    install("processing");
    assert_eq!(read(sent("a.txt", &plain(7, &[1, 2]))).0, 201);
    assert!(contents().is_empty());
    assert_eq!(read(sent("b.txt", &plain(8, &[1, 2]))).0, 201);
    let report = report(&contents()[0]);
    assert_eq!((rejected(&report).len(), &report["status"]), (2, &"accepted".into()));
    assert_eq!(came_to(&id(1)), (2, 0, State::Pending));
}
