use super::*;

fn day(text: &str) -> Date {
    text.parse().expect("a day")
}

fn line(kind: &str, amount: i64, references: &[&str]) -> SettlementEntry {
    SettlementEntry {
        journal_id: "c1".to_owned(),
        kind: kind.to_owned(),
        amount_minor: Minor::new(amount),
        subject_id: references[0].to_owned(),
        references: references.iter().map(|it| (*it).to_owned()).collect(),
        file_id: None,
        file_references: Vec::new(),
        booked_on: None,
        created_at: String::new(),
    }
}

fn in_file(amount: i64, reference: &str) -> SettlementEntry {
    let file_references = vec!["ACH-2026112101".to_owned()];
    let file_id = Some("pf_1".to_owned());
    SettlementEntry { file_id, file_references, ..line(PAID, amount, &[reference]) }
}

fn entry(amount: i64, said: &str) -> Entry {
    let booked_on = day("2026-11-21");
    Entry { booked_on, amount: Minor::new(amount), bank_reference: None, said: said.into() }
}

const PAID: &str = "payout_settlement";

fn compare(lines: &[SettlementEntry], entries: &[Entry]) -> Comparison {
    let mut books = Books::default();
    lines.iter().for_each(|it| books.add(it, (day("2026-11-21"), Period::Within)));
    books.compare(entries).expect("sums")
}

#[test]
fn a_payment_is_found_by_any_reference_in_any_writing() {
    let line = line(PAID, 100, &["po_01kaz3v8d1", "000013261121090000123456789012"]);
    for said in [
        "000013261121090000123456789012",
        "NIP/000013261121090000123456789012/ADA OBI",
        "EREF+PO_01KAZ3V8D1",
        "transfer\nPO-01KAZ3V8D1 thanks",
        "po01kaz3v8d1",
    ] {
        let found = compare(std::slice::from_ref(&line), &[entry(-100, said)]);
        assert_eq!(found, Comparison { matched: 1, ..Comparison::default() }, "{said}");
    }
    for said in ["000013261121090000123456789013", "NIP", "", "po_01kaz3v8d", "100"] {
        let found = compare(std::slice::from_ref(&line), &[entry(-100, said)]);
        assert_eq!((found.matched, found.in_the_books.as_slice()), (0, [0].as_slice()));
        assert_eq!(found.at_the_bank, [(0, Some(0))], "a person may look: {said}");
    }
}

#[test]
fn the_direction_and_the_amount_count_and_each_line_once() {
    let lines = [line(PAID, 100, &["REF-0001"]), line("payout_reversal", -100, &["REF-0001"])];
    let both = [entry(100, "REF-0001"), entry(-100, "REF-0001")];
    assert_eq!(compare(&lines, &both).matched, 2);
    let twice = [entry(-100, "REF-0001"), entry(-100, "REF-0001")];
    let found = compare(&lines[..1], &twice);
    assert_eq!((found.matched, found.at_the_bank), (1, vec![(1, None)]));
    let other = compare(&lines[..1], &[entry(-90, "REF-0001")]);
    assert_eq!((other.different, other.in_the_books.len()), (vec![(0, 0)], 0));
}

#[test]
fn a_file_may_be_booked_as_one_or_one_by_one() {
    let lines = [in_file(100, "TRACE-01"), in_file(50, "TRACE-02")];
    let whole = compare(&lines, &[entry(-150, "ACH-2026112101 SETTLEMENT")]);
    assert_eq!(whole, Comparison { matched: 1, ..Comparison::default() });
    let each = [entry(-100, "TRACE-01 ACH-2026112101"), entry(-50, "TRACE-02")];
    assert_eq!(compare(&lines, &each), Comparison { matched: 2, ..Comparison::default() });
    let wrong = compare(&lines, &[entry(-140, "ACH-2026112101")]);
    assert_eq!((wrong.at_the_bank, wrong.in_the_books), (vec![(0, None)], vec![0, 1]));
}

#[test]
fn an_adjusting_entry_is_found_beside_what_it_explains() {
    // The bank's charge, by its own reference or by what it says.
    let charge = entry(-5, "SMS CHARGES");
    let by_text = line(JOURNAL_KIND, 5, &[&reference_of(&charge)]);
    let found = compare(&[by_text], &[charge]);
    assert_eq!(found, Comparison { matched: 1, ..Comparison::default() });
    let charge = Entry { bank_reference: Some("FT 0042".into()), ..entry(-5, "") };
    let found = compare(&[line(JOURNAL_KIND, 5, &["FT0042"])], &[charge]);
    assert_eq!(found.matched, 1);
    // What the books have and the bank never did.
    let lines = [line(PAID, 100, &["REF-0001"]), line(JOURNAL_KIND, -100, &["REF-0001"])];
    assert_eq!(compare(&lines, &[]), Comparison::default());
}

#[test]
fn entries_that_nothing_tells_apart_are_counted() {
    let same = [entry(-4, "SMS"), entry(-4, "SMS"), entry(-5, "SMS")];
    let references = references_of(&same);
    assert_eq!(references[1], format!("{}-2", references[0]));
    assert!(references.iter().all(|reference| can_be_found(reference)), "{references:?}");
    let lines: Vec<SettlementEntry> = [(4, 1), (4, 0), (5, 2)]
        .map(|(amount, at): (i64, usize)| line(JOURNAL_KIND, amount, &[&references[at]]))
        .into();
    assert_eq!(compare(&lines, &same), Comparison { matched: 3, ..Comparison::default() });
    // What a bank calls it counts only where it can be found again.
    for odd in ["T1", "услуга", "", &"x".repeat(141)] {
        let named = Entry { bank_reference: Some(odd.into()), ..entry(-4, "SMS") };
        let reference = reference_of(&named);
        assert!(reference.starts_with("STMT-") && can_be_found(&reference), "{odd}");
    }
}

#[test]
fn a_charge_and_its_refund_are_both_at_the_bank() {
    let named = |amount| Entry { bank_reference: Some("REFUND01".into()), ..entry(amount, "") };
    let lines = [line(JOURNAL_KIND, 5, &["REFUND01"]), line(JOURNAL_KIND, -5, &["REFUND01"])];
    let found = compare(&lines, &[named(-5), named(5)]);
    assert_eq!(found, Comparison { matched: 2, ..Comparison::default() });
    // What was booked by mistake and taken back is nowhere.
    assert_eq!(compare(&lines, &[]), Comparison::default());
}

#[test]
fn what_is_of_other_days_is_found_and_not_missed() {
    let mut books = Books::default();
    let beside = (day("2026-11-19"), Period::Beside);
    books.add(&line(PAID, 100, &["REF-0001"]), beside);
    books.add(&line(PAID, 70, &["REF-0002"]), beside);
    let found = books.compare(&[entry(-100, "REF-0001")]).expect("sums");
    assert_eq!(found, Comparison { matched: 1, ..Comparison::default() });
}

#[test]
fn a_payment_is_not_matched_with_an_older_one_that_its_text_mentions() {
    let lines = [line(PAID, 7_000, &["po_01first1"]), line(PAID, 7_000, &["po_01second"])];
    let retry = entry(-7_000, "TRF/po_01second/retry of po_01first1");
    let first = entry(-7_000, "TRF/po_01first1/first");
    let both = Comparison { matched: 2, ..Comparison::default() };
    assert_eq!(compare(&lines, &[retry.clone(), first.clone()]), both);
    assert_eq!(compare(&lines, &[first.clone(), retry.clone()]), both);
    // What it says first is what it is: alone, it leaves the older one.
    let alone = compare(&lines, &[retry]);
    assert_eq!((alone.matched, alone.in_the_books), (1, vec![0]));
    // The older one is named first, and goes to the entry that names no other.
    let odd = entry(-7_000, "retry of po_01first1: po_01second");
    assert_eq!(compare(&lines, &[odd.clone(), first.clone()]), both);
    assert_eq!(compare(&lines, &[first, odd]), both);
}

/// A payout's lines: each with its kind and amount, under its id, its reference and the network's.
fn of_payout(payout: &str, each: &[(&str, i64)]) -> Vec<SettlementEntry> {
    let references = [format!("c{payout}"), format!("po_{payout}"), "BATCH-0001".to_owned()];
    let references: Vec<&str> = references.iter().map(String::as_str).collect();
    each.iter().map(|(kind, amount)| line(kind, *amount, &references)).collect()
}

#[test]
fn what_was_paid_by_mistake_and_put_right_needs_no_bank() {
    let reversed = of_payout("01kaz3v8d1", &[(PAID, 6_000), ("payout_reversal", -6_000)]);
    assert_eq!(compare(&reversed, &[]), Comparison::default());
    let refused = of_payout("01kaz3v8d1", &[(PAID, 6_000), ("case_opened", -6_000)]);
    assert_eq!(compare(&refused, &[]), Comparison::default());
    let twice = [PAID, "case_opened", "case_opened", "payout_reversal"];
    let twice: Vec<(&str, i64)> = twice.into_iter().zip([6_000, 6_000, -6_000, -6_000]).collect();
    assert_eq!(compare(&of_payout("01kaz3v8d1", &twice), &[]), Comparison::default());
    // What the bank has comes first: the money of one that it paid has to come back there, too.
    let paid = compare(&reversed, &[entry(-6_000, "po_01kaz3v8d1")]);
    assert_eq!((paid.matched, paid.in_the_books), (1, vec![1]));
    // A sum that is not the same is another matter, and so is another payout of the same file.
    let part = of_payout("01kaz3v8d1", &[(PAID, 6_000), ("case_opened", -2_000)]);
    assert_eq!(compare(&part, &[]).in_the_books, [0, 1]);
    let paid = of_payout("01kaz3v8d1", &[(PAID, 6_000)]);
    let other = of_payout("01kaz3v8d2", &[("payout_reversal", -6_000)]);
    assert_eq!(compare(&[paid, other].concat(), &[]).in_the_books, [0, 1]);
}

#[test]
fn what_was_put_right_beside_the_days_compared_is_shown_with_its_other_half() {
    let lines = of_payout("01kaz3v8d1", &[(PAID, 6_000), ("payout_reversal", -6_000)]);
    let mut books = Books::default();
    books.add(&lines[0], (day("2026-11-20"), Period::Beside));
    books.add(&lines[1], (day("2026-11-21"), Period::Within));
    // The bank may have paid it on the day before, and then the money has to come back.
    let found = books.compare(&[]).expect("sums");
    let expected = Comparison {
        in_the_books: vec![1],
        put_right_beside: vec![(1, 0)],
        ..Comparison::default()
    };
    assert_eq!(found, expected);
}

#[test]
fn a_file_is_booked_with_or_without_what_was_put_right() {
    let back = SettlementEntry {
        amount_minor: Minor::new(-100),
        kind: "payout_reversal".to_owned(),
        ..in_file(100, "po_01kaz3v8d1")
    };
    let lines = [in_file(100, "po_01kaz3v8d1"), in_file(50, "po_01kaz3v8d2"), back];
    let without = compare(&lines, &[entry(-50, "ACH-2026112101")]);
    assert_eq!(without, Comparison { matched: 1, ..Comparison::default() });
    // It was paid with the others, and comes back by itself.
    let with = compare(&lines, &[entry(-150, "ACH-2026112101")]);
    assert_eq!((with.matched, with.in_the_books), (1, vec![2]));
    let both = compare(&lines, &[entry(-150, "ACH-2026112101"), entry(100, "po_01kaz3v8d1")]);
    assert_eq!(both, Comparison { matched: 2, ..Comparison::default() });
}

#[test]
fn an_adjusting_entry_is_taken_back_by_its_id_or_by_its_reference_and_once() {
    let mistake = || line(JOURNAL_KIND, 5, &["FT0042", "adj_01kaz3v8d1"]);
    let by_id = || line(JOURNAL_KIND, -5, &["adj_01kaz3v8d1", "adj_01kaz3v8d2"]);
    let by_reference = || line(JOURNAL_KIND, -5, &["FT0042", "adj_01kaz3v8d3"]);
    for back in [by_id(), by_reference()] {
        assert_eq!(compare(&[mistake(), back.clone()], &[]), Comparison::default());
        assert_eq!(compare(&[back, mistake()], &[]), Comparison::default());
    }
    // Whoever takes it back under both names has taken back one too many.
    let twice = compare(&[mistake(), by_reference(), by_id()], &[]);
    assert_eq!(twice.in_the_books, [1], "the one that names no id may be the bank's own");
}
