//! A strict reader of what the bank sends: it checks all that the file tells twice.

/// An entry with its addenda record.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(super) struct Entry {
    pub(super) class: String,
    /// The bank that the batch comes from.
    pub(super) from: String,
    pub(super) code: String,
    /// The bank that it goes to: nine digits.
    pub(super) to: String,
    pub(super) account: String,
    pub(super) cents: u64,
    pub(super) id: String,
    pub(super) name: String,
    pub(super) trace: String,
    /// Type and code: `99R03`.
    pub(super) what: String,
    pub(super) original_trace: String,
    pub(super) original_bank: String,
    /// From position 36 to position 64.
    pub(super) data: String,
}

/// Positions as the standard counts them.
fn at(record: &str, from: usize, to: usize) -> &str {
    &record[from - 1..to]
}

fn number(record: &str, from: usize, to: usize) -> u64 {
    let text = at(record, from, to);
    assert!(text.bytes().all(|byte| byte.is_ascii_digit()), "{text:?} in {record}");
    text.parse().expect("a number")
}

fn only(record: &str, from: usize, to: usize, wanted: &str) {
    assert_eq!(at(record, from, to), wanted, "{from} to {to} of {record}");
}

fn is_routing(text: &str) -> bool {
    let weigh = |(digit, weight): (u8, u32)| u32::from(digit - b'0') * weight;
    text.len() == 9
        && text.bytes().zip([3, 7, 1].into_iter().cycle()).map(weigh).sum::<u32>() % 10 == 0
}

/// The file header, and all entries.
pub(super) fn read(text: &str) -> (String, Vec<Entry>) {
    assert!(text.is_ascii() && text.ends_with('\n'));
    let records: Vec<&str> = text.lines().collect();
    assert!(records.iter().all(|record| record.len() == 94), "{text}");
    assert_eq!(records.len() % 10, 0);
    let header = records[0];
    only(header, 1, 3, "101");
    only(header, 35, 40, "094101");
    number(header, 87, 94);
    let (mut entries, mut totals, mut batches) = (Vec::new(), (0, 0, 0), 0);
    let mut rest = records[1..].iter();
    let control = loop {
        let record = rest.next().expect("a control record");
        if at(record, 1, 1) == "9" {
            break record;
        }
        batches += 1;
        assert_eq!(number(record, 88, 94), batches, "batches count up");
        let own = batch(record, &mut rest, &mut entries);
        totals = (totals.0 + own.0, totals.1 + own.1, totals.2 + own.2);
    };
    assert_eq!(number(control, 2, 7), batches);
    assert_eq!(number(control, 8, 13), u64::try_from(records.len() / 10).expect("small"));
    assert_eq!(number(control, 14, 21), totals.0);
    assert_eq!(number(control, 22, 31), totals.1 % 10_000_000_000);
    assert_eq!((number(control, 32, 43), number(control, 44, 55)), (0, totals.2));
    only(control, 56, 94, &" ".repeat(39));
    assert!(rest.len() < 10 && rest.all(|record| *record == "9".repeat(94)));
    (header.to_owned(), entries)
}

/// Count, hash and total of a batch.
fn batch(
    header: &str,
    rest: &mut std::slice::Iter<'_, &str>,
    entries: &mut Vec<Entry>,
) -> (u64, u64, u64) {
    only(header, 1, 4, "5220");
    only(header, 5, 50, &format!("{:16}{:20}{:10}", "EXAMPLE PAYOUTS", "", "1210428821"));
    only(header, 54, 75, &format!("{:10}{:6}260309", "PAYOUT", ""));
    // 6 March is the 65th day.
    only(header, 76, 79, "0651");
    let from = at(header, 80, 87);
    let (mut sums, mut last) = ((0, 0, 0), 0);
    loop {
        let record = rest.next().expect("a control record");
        if at(record, 1, 1) == "8" {
            assert!(sums.0 > 0);
            only(record, 2, 4, "220");
            assert_eq!((number(record, 5, 10), number(record, 11, 20)), (sums.0, sums.1));
            assert_eq!((number(record, 21, 32), number(record, 33, 44)), (0, sums.2));
            only(record, 45, 54, at(header, 41, 50));
            only(record, 55, 79, &" ".repeat(25));
            only(record, 80, 94, at(header, 80, 94));
            return sums;
        }
        let addenda = rest.next().expect("an addenda record");
        let entry = entry((at(header, 51, 53), from), record, addenda);
        let trace = number(record, 80, 94);
        assert!(trace > last && entry.trace.starts_with(from), "{record}");
        last = trace;
        sums = (sums.0 + 2, sums.1 + number(record, 4, 11), sums.2 + entry.cents);
        entries.push(entry);
    }
}

fn entry((class, from): (&str, &str), record: &str, addenda: &str) -> Entry {
    only(record, 1, 1, "6");
    only(record, 79, 79, "1");
    assert!(is_routing(at(record, 4, 12)), "{record}");
    only(addenda, 1, 1, "7");
    only(addenda, 80, 94, at(record, 80, 94));
    only(addenda, 22, 27, &" ".repeat(6));
    let blank_from = if at(addenda, 2, 3) == "98" { 65 } else { 36 };
    assert!(at(addenda, blank_from, 79).trim().is_empty(), "{addenda}");
    let text = |from, to| at(record, from, to).trim_end().to_owned();
    Entry {
        class: class.to_owned(),
        from: from.to_owned(),
        code: text(2, 3),
        to: text(4, 12),
        account: text(13, 29),
        cents: number(record, 30, 39),
        id: text(40, 54),
        name: text(55, 76),
        trace: text(80, 94),
        what: at(addenda, 2, 6).to_owned(),
        original_trace: at(addenda, 7, 21).to_owned(),
        original_bank: at(addenda, 28, 35).to_owned(),
        data: at(addenda, 36, 64).to_owned(),
    }
}
