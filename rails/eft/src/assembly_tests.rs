//! Files of many sizes, read back by a reader of the tests' own.

use std::collections::BTreeSet;

use railhead_rail::fields::set;
use railhead_rail::types::{Assembled, Payment, Window};

use crate::assembly::{assemble, key, number_in};
use crate::fixtures::{self, payment, window};

const BRANCHES: [(&str, &str); 4] =
    [("003", "00320"), ("001", "25039"), ("815", "90000"), ("010", "00010")];

/// Numbers that look like chance and are the same every time.
struct Dice(u64);

impl Dice {
    fn roll(&mut self, sides: u64) -> u64 {
        self.0 = self.0.wrapping_mul(6_364_136_223_846_793_005).wrapping_add(1_442_695_040_888_963);
        (self.0 >> 33) % sides
    }

    fn pick<T: Copy>(&mut self, list: &[T]) -> T {
        let place = self.roll(list.len() as u64);
        list[usize::try_from(place).expect("a place")]
    }
}

fn some_payment(serial: u64, dice: &mut Dice) -> Payment {
    let mut given = Payment {
        serial,
        reference: format!("E16{serial:012}"),
        amount_minor: match dice.roll(4) {
            0 => 1,
            1 => 9_999_999_999,
            _ => i64::try_from(1 + dice.roll(2_000_000_000)).expect("cents"),
        },
        narration: dice
            .pick(&["", "Invoice 17", "Loyer café", "日本\n", "a\u{7f}b\tc", "50% \"off\"!"])
            .to_owned(),
        ..payment()
    };
    let length = usize::try_from(1 + dice.roll(12)).expect("few");
    let (institution, transit) = dice.pick(&BRANCHES);
    for (name, value) in [
        ("account_number", &"901234567890"[..length]),
        ("institution_number", institution),
        ("transit_number", transit),
        (
            "name",
            dice.pick(&[
                "Jane Smith",
                "A*B <C> $5",
                "Zoë 東京 Côté-Łuczak van den Berg-Tremblay",
                "A\r\nB",
            ]),
        ),
    ] {
        set(&mut given.recipient, name, value);
    }
    given
}

/// A payment as it stands in a file.
struct Read {
    reference: String,
    cents: u64,
    sundry: String,
    name: String,
    entry: String,
}

fn digits(text: &str) -> u64 {
    assert!(text.bytes().all(|byte| byte.is_ascii_digit()), "{text:?}");
    text.parse().expect("a number")
}

/// Everything that must be so in a file of whole records, whatever is in it.
fn check(records: &[String], number: &str, counts_records: &str) -> Vec<Read> {
    assert!(records.iter().all(|record| record.len() == 1464 && record.is_ascii()));
    let (first, last) = (&records[0], records.last().expect("a trailer"));
    assert!(first.starts_with("A000000001") && last.starts_with('Z'));
    for (place, record) in (1..).zip(records) {
        assert_eq!(digits(&record[1..10]), place);
        assert_eq!((&record[10..20], &record[20..24]), ("0123456789", number));
    }
    assert!(first[58..].trim().is_empty() && last[112..].trim().is_empty());
    let mut read = Vec::new();
    let payments = &records[1..records.len() - 1];
    for (at, record) in payments.iter().enumerate() {
        assert!(record.starts_with('C'));
        let segments: Vec<&str> = (0..6).map(|place| &record[24 + place * 240..][..240]).collect();
        let used = segments.iter().filter(|segment| !segment.trim().is_empty()).count();
        assert!(segments[used..].iter().all(|segment| segment.trim().is_empty()));
        assert!(used == 6 || at + 1 == payments.len() && used > 0);
        for segment in &segments[..used] {
            let at = |first: usize, last: usize| &segment[first - 25..last - 24];
            assert!(at(25, 27) == "450" && at(38, 43) == "026068");
            assert!(at(44, 44) == "0" && digits(at(44, 52)) > 0);
            assert!(!at(53, 64).starts_with(' ') && digits(at(53, 64).trim_end()) > 0);
            assert_eq!((digits(at(65, 89)), digits(at(254, 264))), (0, 0));
            for (first, last) in [(90, 104), (105, 134), (135, 164)] {
                assert!(!at(first, last).starts_with(' '), "{first}");
            }
            assert_eq!((at(165, 174), at(194, 202)), ("0123456789", "000300320"));
            assert!(at(203, 214).trim_end() == "1234567" && at(230, 253).trim().is_empty());
            let is_carried = |c: char| c.is_ascii_alphanumeric() || " .,-'/&()".contains(c);
            assert!(segment.chars().all(is_carried), "{segment}");
            read.push(Read {
                reference: at(175, 193).trim_end().to_owned(),
                cents: digits(at(28, 37)),
                sundry: at(215, 229).to_owned(),
                name: at(105, 134).trim_end().to_owned(),
                entry: (*segment).to_owned(),
            });
        }
    }
    let count = if counts_records == "records" { payments.len() } else { read.len() };
    assert_eq!((digits(&last[24..38]), digits(&last[38..46])), (0, 0));
    assert_eq!(digits(&last[46..60]), read.iter().map(|one| one.cents).sum::<u64>());
    assert_eq!(digits(&last[60..68]), count as u64);
    assert_eq!(digits(&last[68..112]), 0);
    read
}

/// The records of a file, whole, however it is written.
fn records(content: &[u8], framing: &str, padding: &str) -> Vec<String> {
    let text = std::str::from_utf8(content).expect("ASCII");
    let lines: Vec<&str> = match framing {
        "none" => {
            assert!(text.len().is_multiple_of(1464) && !text.contains('\n'));
            (0..text.len() / 1464).map(|at| &text[at * 1464..][..1464]).collect()
        }
        framing => {
            let end = if framing == "crlf" { "\r\n" } else { "\n" };
            assert_eq!(text.matches('\r').count() == 0, framing == "lf");
            text.strip_suffix(end).expect("an end").split(end).collect()
        }
    };
    match padding {
        "full" => assert!(lines.iter().all(|line| line.len() == 1464)),
        _ => assert!(lines.iter().all(|line| line.trim_end() == *line)),
    }
    lines.into_iter().map(|line| format!("{line:<1464}")).collect()
}

/// An amount, an institution, a transit, an account and a name.
type Given<'a> = (i64, &'a str, &'a str, &'a str, &'a str);

fn given(
    reference: String,
    (amount_minor, institution, transit, account, name): Given<'_>,
) -> Payment {
    let mut payment = Payment { amount_minor, reference, ..payment() };
    for (field, value) in [
        ("institution_number", institution),
        ("transit_number", transit),
        ("account_number", account),
        ("name", name),
    ] {
        set(&mut payment.recipient, field, value);
    }
    payment
}

/// That a file is the same to the letter.
fn is_written(window: &Window, payments: &[Payment], golden: &[u8]) {
    let made = assemble(window, payments).expect("a file");
    assert_eq!(made.content.len(), golden.len());
    assert!(made.content == golden, "{}", String::from_utf8_lossy(&made.content));
}

#[test]
fn a_file_that_another_program_has_written() {
    fixtures::install_with(&[
        ("short_name", "GRID PAY"),
        ("long_name", "GRID PAYMENTS INC"),
        ("transaction_code", "460"),
    ]);
    let payments = [
        (123_456, "003", "00320", "1234567", "José Tremblay"),
        (1, "001", "25039", "000012345", "A"),
        (9_999_999_999, "004", "10202", "5123456", "Max Amount Ltd"),
        (25_000, "010", "00010", "7654321", "C D"),
        (250, "006", "00011", "12345678901", "E F"),
        (999, "815", "90000", "123456", "G H"),
        (777, "002", "11759", "1", "I J"),
    ];
    let payments = (1..).zip(payments).map(|(at, it)| given(format!("PO-{at:04}"), it));
    let window = Window {
        number: 1,
        business_date: "2026-11-20".into(),
        value_date: "2026-11-21".into(),
        ..window()
    };
    let golden = include_bytes!("../cases/golden/seven-credits.txt");
    is_written(&window, &payments.collect::<Vec<_>>(), golden);
}

#[test]
fn names_of_every_kind_in_two_records() {
    fixtures::install();
    let payments = [
        (125_050, "003", "00320", "1234567", "José Tremblay"),
        (1, "001", "25039", "000012345", "Élodie Côté-Lefèvre"),
        (9_999_999_999, "004", "10202", "123456789012", "Bartholomew Featherstonehaugh III"),
        (25_000, "010", "00010", "7654321", "O\u{2019}Brien & Fils Ltée"),
        (250, "006", "00011", "12345678901", "A"),
        (999, "815", "90000", "0123456", "Cœur à l\u{2019}œuvre inc."),
        (777, "002", "11759", "1", "I J"),
    ];
    let payments = (2..).zip(payments).map(|(at, it)| given(format!("E16{at:012}"), it));
    let payments: Vec<Payment> = payments.collect();
    is_written(&window(), &payments, include_bytes!("../cases/golden/six-and-one.txt"));
}

#[test]
fn every_file_adds_up_however_it_is_written() {
    let mut dice = Dice(17);
    for (size, framing, padding, counts) in [
        (1, "crlf", "full", "payments"),
        (5, "lf", "full", "records"),
        (6, "none", "full", "payments"),
        (7, "crlf", "trimmed", "records"),
        (12, "lf", "trimmed", "payments"),
        (13, "crlf", "full", "payments"),
        (500, "none", "full", "records"),
    ] {
        fixtures::install_with(&[
            ("framing", framing),
            ("padding", padding),
            ("counts", counts),
            ("sundry", "entry"),
        ]);
        let payments: Vec<_> = (1..=size).map(|serial| some_payment(serial, &mut dice)).collect();
        let given = Window { first_entry: 1000, ..window() };
        let made = assemble(&given, &payments).expect("a file");
        assert_eq!(assemble(&given, &payments).as_ref(), Ok(&made));
        let records = records(&made.content, framing, padding);
        let read = check(&records, "0042", counts);
        assert!(made.refused.is_empty() && made.later.is_empty());
        assert_eq!(read.len(), payments.len());
        for (at, (payment, read)) in payments.iter().zip(&read).enumerate() {
            assert_eq!(payment.reference, read.reference);
            assert_eq!(payment.amount_minor.unsigned_abs(), read.cents);
            assert_eq!(read.sundry.trim_end(), format!("{:012}", 1000 + at));
            assert!(!read.name.contains(|c: char| c.is_ascii_lowercase()));
        }
        shows_its_own(&made, &read);
    }
}

/// Each payment is shown as it stands in the file, and none of the others with it.
fn shows_its_own(made: &Assembled, read: &[Read]) {
    let content = String::from_utf8(made.content.clone()).expect("ASCII");
    let mut keys = BTreeSet::new();
    for (placed, read) in made.placed.iter().zip(read) {
        assert_eq!(placed.reference, read.reference);
        assert_eq!(placed.key, format!("{}/{}", made.name, read.reference));
        assert!(keys.insert(&placed.key));
        let entry = String::from_utf8(placed.entry.clone()).expect("ASCII");
        assert!(content.contains(&entry) && entry.contains(read.entry.trim_end()), "{entry}");
        assert_eq!(entry.matches("RAILHEAD DEMO INC").count(), 1, "{entry}");
    }
    assert_eq!(keys.len(), read.len());
}

#[test]
fn names_and_numbers_of_files() {
    for (number, offset, last, expected) in [
        (1, "0", "9999", "0001"),
        (9_999, "0", "9999", "9999"),
        (10_000, "0", "9999", "0001"),
        (19_998, "0", "9999", "9999"),
        (1, "41", "9999", "0042"),
        (9_999, "41", "9999", "0041"),
        (1, "9998", "9999", "9999"),
        (100, "0", "99", "0001"),
        (123_456_789_012, "0", "9999", "5925"),
    ] {
        fixtures::install_with(&[("file_number_offset", offset), ("file_number_last", last)]);
        let made = assemble(&Window { number, ..window() }, &[payment()]).expect("a file");
        let own = number % 100_000_000;
        assert_eq!(
            made.name,
            format!("EFT-0123456789-20260306-{own:08}-{expected}.txt"),
            "{number}"
        );
        assert_eq!((made.identity.as_str(), number_in(&made.name)), (&*made.name, Some(expected)));
        assert_eq!(&made.content[20..24], expected.as_bytes());
        assert_eq!(made.placed[0].key, key(&made.name, "E16000000000002"));
    }
    for odd in [
        "",
        "EFT-0123456789-20260306-00000042-0042",
        "EFT-0123456789-20260306-00000042-042.txt",
        "EFT-0123456789-2026036-00000042-0042.txt",
        "EFT-20260306-00000042-0042.txt",
        "EFT-012345678-20260306-00000042-0042.txt",
        "EFT-0123456789-20260306-0000042-0042.txt",
        "EFT-0123456789-20260306-00000042-00A2.txt",
        "ACH-20260306-00000042-0042.txt",
        "EFT-0123456789-20260306-0042.txt",
        "EFT-0123456789-20260306-00000042-0042.txt.txt",
    ] {
        assert_eq!(number_in(odd), None, "{odd}");
    }
}

#[test]
fn a_first_line_stands_in_front_of_the_header() {
    fixtures::install_with(&[("first_line", "$$AAPACPA1464[PROD[NL$$")]);
    let made = assemble(&window(), &[payment()]).expect("a file");
    let text = String::from_utf8(made.content).expect("ASCII");
    let rest = text.strip_prefix("$$AAPACPA1464[PROD[NL$$\r\n").expect("the line");
    check(&records(rest.as_bytes(), "crlf", "full"), "0042", "payments");
}

#[test]
fn what_is_chosen_by_settings() {
    let made = |changes: &[(&str, &str)]| {
        fixtures::install_with(changes);
        let mut given = payment();
        set(&mut given.recipient, "name", "Élodie Côté");
        given.narration = "Loyer – août 2026, 3e étage".into();
        let made = assemble(&window(), &[given]).expect("a file");
        String::from_utf8(made.content).expect("ASCII")
    };
    let at = |text: &str, first: usize, last: usize| text[1466 + first - 1..1466 + last].to_owned();
    let plain = made(&[]);
    assert_eq!(at(&plain, 105, 134).trim_end(), "ELODIE COTE");
    assert_eq!((at(&plain, 215, 229).trim(), &plain[55..58]), ("", "CAD"));
    let capitals = made(&[
        ("short_name", "Grid Pay"),
        ("long_name", "Grid Payments (Québec) Inc."),
        ("sundry", "narration"),
    ]);
    assert_eq!(at(&capitals, 90, 104).trim_end(), "GRID PAY");
    assert_eq!(at(&capitals, 135, 164).trim_end(), "GRID PAYMENTS (QUEBEC) INC.");
    assert_eq!(at(&capitals, 215, 229), "LOYER - AOUT 20");
    let other = made(&[
        ("capitals", "no"),
        ("sundry", "narration"),
        ("currency", "blank"),
        ("transaction_code", "200"),
        ("data_centre", "00330"),
        ("short_name", "Grid Pay"),
    ]);
    assert_eq!(at(&other, 90, 104).trim_end(), "Grid Pay");
    assert_eq!(at(&other, 105, 134).trim_end(), "Elodie Cote");
    assert_eq!(at(&other, 215, 229), "Loyer - aout 20");
    assert_eq!((at(&other, 25, 27).as_str(), &other[30..35]), ("200", "00330"));
    assert_eq!(&other[55..58], "   ");
}

#[test]
fn what_no_file_carries_and_what_waits() {
    fixtures::install();
    let with = |serial: u64, amount_minor: i64| Payment {
        reference: format!("E16{serial:012}"),
        amount_minor,
        ..payment()
    };
    let made = assemble(&window(), &[with(1, 0), with(2, 5), with(3, 10_000_000_000)]);
    let made = made.expect("a file");
    let refused: Vec<_> =
        made.refused.iter().map(|one| (&*one.reference, &*one.why.code)).collect();
    assert_eq!(refused, [("E16000000000001", "amount"), ("E16000000000003", "amount")]);
    assert_eq!(made.placed.len(), 1);
    // A total has fourteen digits: of the largest payments ten thousand fit, and one cent more.
    let many = (1..=10_003).map(|serial| with(serial, 9_999_999_999));
    let mut many: Vec<Payment> = many.collect();
    many.push(with(10_004, 9_999));
    let made = assemble(&window(), &many).expect("a file");
    assert_eq!(made.placed.len(), 10_001);
    assert_eq!(made.later, ["E16000000010001", "E16000000010002", "E16000000010003"]);
    assert_eq!(made.placed[10_000].reference, "E16000000010004");
    let none = assemble(&window(), &[with(1, 0)]).expect("nothing");
    assert!(none.content.is_empty() && none.placed.is_empty() && none.refused.len() == 1);
}

#[test]
fn what_makes_no_sense() {
    fixtures::install();
    assert!(assemble(&window(), &[payment(), payment()]).is_err());
    for odd in [
        Window { currency: "USD".into(), ..window() },
        Window { exponent: 0, ..window() },
        Window { number: 0, ..window() },
        Window { business_date: "2026-02-30".into(), ..window() },
        Window { value_date: "tomorrow".into(), ..window() },
        Window { value_date: "2026-03-05".into(), ..window() },
    ] {
        assert!(assemble(&odd, &[payment()]).is_err(), "{odd:?}");
    }
    fixtures::install_with(&[("originator_id", "")]);
    assert!(assemble(&window(), &[payment()]).is_err());
}
