//! What one call may keep: the host cuts off one that keeps more.

use std::collections::BTreeMap;

use railhead_simulator::host::double;
use railhead_simulator::types::{State, Transfer};

use super::writer::{Credit, Draft, credit, draft};
use super::{contents, errors, install, nacha, play, read, refusal, rejected, report, sent};

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
fn full(number: u32, entries: u32) -> Draft {
    // Each entry goes to another bank, so that each comes back in a batch of its own.
    let routings = (0..entries).map(|count| {
        let institution = format!("{:08}", 12_000_000 + count);
        let digit = crate::routing::check_digit(&institution).expect("digits");
        &*Box::leak(format!("{institution}{digit}").into_boxed_str())
    });
    let credits = (1..).zip(routings).map(|(serial, routing)| Credit {
        routing,
        account: "12345678901234567",
        addenda: Some("THANKS"),
        ..credit(serial)
    });
    Draft { batches: vec![("PPD", credits.collect())], ..draft(number, &[]) }
}

#[test]
fn a_full_file_is_kept_by_one_call_whatever_becomes_of_it() {
    let name = "a".repeat(80);
    let file = full(7, 2_000).text();
    for scenario in ["return_r03", "correction_c03", "timeout_then_failed", "never_received"] {
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
    assert_eq!(read(sent("a.ach", &file)).0, 201);
    play("duplicate_callback");
    double::with(|host| {
        host.book.values_mut().for_each(|it| it.scenario = "duplicate_callback".to_owned());
        host.book.retain(|_, it| it.state == State::Pending);
        let first = host.book.get_mut("R16000000000001").expect("the first");
        (first.received, first.state) = (0, State::Lost);
    });
    let before = book();
    assert_eq!(read(sent(&name, &file)).0, 201);
    assert_eq!((contents().len(), rejected(&report(&contents()[0])).len()), (2, 1_999));
    assert!(kept_since(&before) < KEPT_MAX);
}

#[test]
fn a_return_of_every_entry_is_a_file_that_can_be_read() {
    install("returned");
    assert_eq!(read(sent("a.ach", &full(7, 2_000).text())).0, 201);
    let (_, entries) = nacha::read(&contents()[1]);
    assert_eq!(entries.len(), 2_000);
}

#[test]
fn more_than_one_call_can_keep_is_refused_before_anything_is_kept() {
    install("paid");
    let answer = sent("a.ach", &full(7, 2_001).text());
    assert_eq!(refusal(answer), (413, "too_large".to_owned()));
    // Hardly any entries, and too many bytes.
    let long = full(7, 1).text() + &"9".repeat(512 * 1024);
    assert_eq!(refusal(sent("a.ach", &long)), (413, "too_large".to_owned()));
    assert_eq!(errors(), 2);
    assert!(book().is_empty());
}
