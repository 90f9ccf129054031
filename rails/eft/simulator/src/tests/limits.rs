//! What one call may keep: the host cuts off one that keeps more.

use std::collections::BTreeMap;

use railhead_simulator::host::double;
use railhead_simulator::types::{State, Transfer};

use super::written::{self, Credit, credit, text};
use super::{contents, errors, install, play, read, refusal, rejected, report, sent};

/// What the host lets one call keep and send, and what it counts for each beside its bytes.
const KEPT_MAX: usize = 4 * 1024 * 1024;
const COST: usize = 1024;

fn cost(transfer: &Transfer) -> usize {
    let notes = transfer.notes.iter().map(|(name, value)| name.len() + value.len());
    let texts = [&transfer.reference, &transfer.account, &transfer.scenario];
    notes.sum::<usize>() + texts.map(String::len).iter().sum::<usize>() + COST
}

fn book() -> BTreeMap<String, Transfer> {
    double::with(|host| host.book.clone())
}

/// What a call has kept, where it keeps everything once.
fn kept_since(before: &BTreeMap<String, Transfer>) -> usize {
    let changed = |transfer: &&Transfer| before.get(&transfer.reference) != Some(*transfer);
    book().values().filter(changed).map(cost).sum()
}

/// As much as a file can have in every way.
fn full(number: u32, payments: u32) -> String {
    let credits = (1..=payments).map(|serial| Credit { account: "123456789012", ..credit(serial) });
    text(number, &credits.collect::<Vec<_>>())
}

#[test]
fn a_full_file_is_kept_by_one_call_whatever_becomes_of_it() {
    let name = "a".repeat(80);
    let file = full(7, 1_500);
    for scenario in ["return_902", "failed", "timeout_then_failed", "never_received"] {
        install(scenario);
        let before = book();
        sent(&name, &file);
        let kept = kept_since(&before);
        assert!(kept < KEPT_MAX, "{scenario}: {kept}");
        let before = book();
        sent(&name, &file);
        assert!(kept_since(&before) < KEPT_MAX, "{scenario}, again");
        assert_eq!(errors(), 0);
    }
    // All of it rejected, and told twice.
    install("processing");
    assert_eq!(read(sent("a.txt", &file)).0, 201);
    play("duplicate_callback");
    double::with(|host| {
        host.book.values_mut().for_each(|it| it.scenario = "duplicate_callback".to_owned());
        host.book.retain(|_, it| it.state == State::Pending);
        let first = host.book.get_mut("E16000000000001").expect("the first");
        (first.received, first.state) = (0, State::Lost);
    });
    let before = book();
    assert_eq!(read(sent(&name, &file)).0, 201);
    assert_eq!((contents().len(), rejected(&report(&contents()[0])).len()), (2, 1_499));
    assert!(kept_since(&before) < KEPT_MAX);
}

#[test]
fn a_return_of_every_payment_is_a_file_that_can_be_read() {
    install("returned");
    assert_eq!(read(sent("a.txt", &full(7, 1_500))).0, 201);
    assert_eq!(written::read(&contents()[1]).len(), 1_500);
}

#[test]
fn more_than_one_call_can_keep_is_refused_before_anything_is_kept() {
    install("paid");
    let answer = sent("a.txt", &full(7, 1_501));
    assert_eq!(refusal(answer), (413, "too_large".to_owned()));
    // Hardly any payments, and too many bytes.
    let long = full(7, 1) + &" ".repeat(400 * 1024);
    assert_eq!(refusal(sent("a.txt", &long)), (413, "too_large".to_owned()));
    assert_eq!(errors(), 2);
    assert!(book().is_empty());
}
