//! Files of many sizes, read back by a reader of the tests' own.

use std::collections::BTreeSet;

use railhead_rail::fields::set;
use railhead_rail::host::double;
use railhead_rail::types::{Assembled, Payment, Window};

use crate::assembly::assemble;
use crate::fixtures::{self, payment, window};

const ROUTING: [&str; 5] = ["021000021", "011000015", "121042882", "231380104", "721000004"];

/// Numbers that look like chance and are the same every time.
struct Dice(u64);

impl Dice {
    fn roll(&mut self, sides: u64) -> u64 {
        self.0 = self.0.wrapping_mul(6_364_136_223_846_793_005).wrapping_add(1_442_695_040_888_963);
        (self.0 >> 33) % sides
    }

    fn pick<'a>(&mut self, list: &[&'a str]) -> &'a str {
        let place = self.roll(list.len() as u64);
        list[usize::try_from(place).expect("a place")]
    }
}

fn some_payment(serial: u64, dice: &mut Dice) -> Payment {
    let texts = ["", "Invoice 17", "Loyer café", "日本\n", "a\u{7f}b\tc", " x "];
    let mut given = Payment {
        serial,
        reference: format!("R16{serial:012}"),
        amount_minor: match dice.roll(4) {
            0 => 1,
            1 => 9_999_999_999,
            _ => i64::try_from(1 + dice.roll(2_000_000_000)).expect("cents"),
        },
        narration: dice.pick(&texts).repeat(usize::try_from(dice.roll(9)).expect("few")),
        ..payment()
    };
    let account = "9A".repeat(9)[..usize::try_from(1 + dice.roll(17)).expect("few")].to_owned();
    for (name, value) in [
        ("account_number", account.as_str()),
        ("routing_number", dice.pick(&ROUTING[..4])),
        ("account_type", dice.pick(&["checking", "savings"])),
        ("type", dice.pick(&["individual", "business", ""])),
        ("name", dice.pick(&["Jane Smith", "Zoë 東京 Ångström-Łuczak van den Berg", "A\r\nB"])),
    ] {
        set(&mut given.recipient, name, value);
    }
    given
}

fn digits(line: &str, first: usize, last: usize) -> u64 {
    line[first - 1..last].parse().expect("a number")
}

/// What a stretch of a file adds up to: records, hash, cents.
fn sums<'a>(lines: impl Iterator<Item = &'a str>) -> (u64, u64, u64) {
    let mut sums = (0, 0, 0);
    for line in lines {
        if line.starts_with(['6', '7']) {
            sums.0 += 1;
        }
        if line.starts_with('6') {
            sums.1 = (sums.1 + digits(line, 4, 11)) % 10_u64.pow(10);
            sums.2 += digits(line, 30, 39);
        }
    }
    sums
}

/// Everything that must be so in a file, whatever is in it. Answers references and trace numbers.
fn check(content: &[u8]) -> Vec<(String, String)> {
    let content = std::str::from_utf8(content).expect("ASCII");
    assert!(content.is_ascii() && content.ends_with('\n'));
    let lines: Vec<&str> = content.split_terminator('\n').collect();
    assert!(lines.iter().all(|line| line.len() == 94 && !line.contains(|c: char| c.is_control())));
    assert_eq!(lines.len() % 10, 0);
    let end = lines.iter().position(|line| line.starts_with('9')).expect("a file control");
    assert!(lines.len() - end <= 10);
    assert!(lines[end + 1..].iter().all(|line| line.bytes().all(|byte| byte == b'9')));
    assert!(lines[0].starts_with('1') && lines[1].starts_with('5'));

    let (control, mut batches, mut found) = (lines[end], 0, Vec::new());
    let mut seen = BTreeSet::new();
    for batch in lines[1..end].split_inclusive(|line| line.starts_with('8')) {
        batches += 1;
        let (header, body, close) = (batch[0], &batch[1..batch.len() - 1], batch[batch.len() - 1]);
        let inside = (digits(close, 5, 10), digits(close, 11, 20), digits(close, 33, 44));
        assert_eq!(inside, sums(body.iter().copied()));
        assert_eq!((digits(close, 21, 32), digits(close, 88, 94)), (0, batches));
        assert_eq!(header[1..4], close[1..4]);
        assert_eq!(header[79..], close[79..]);
        let mut last = 0;
        for (at, line) in body.iter().enumerate() {
            let (trace, has_addenda) = (&line[79..], line.as_bytes()[78] == b'1');
            if line.starts_with('7') {
                assert_eq!((&line[..3], &line[83..87]), ("705", "0001"));
                assert_eq!(&line[87..], &body[at - 1][87..]);
                continue;
            }
            let next = body.get(at + 1).is_some_and(|next| next.starts_with('7'));
            assert_eq!(has_addenda, next);
            assert!(at == 0 || digits(line, 80, 94) > last);
            last = digits(line, 80, 94);
            assert!(seen.insert(last), "{trace} is there twice");
            found.push((line[39..54].trim_end().to_owned(), trace.to_owned()));
        }
    }
    let whole = sums(lines.iter().copied());
    let told = (digits(control, 14, 21), digits(control, 22, 31), digits(control, 44, 55));
    assert_eq!(told, whole);
    assert_eq!((digits(control, 2, 7), digits(control, 32, 43)), (batches, 0));
    assert_eq!(digits(control, 8, 13), (lines.len() / 10) as u64);
    found
}

#[test]
fn a_file_to_the_letter() {
    fixtures::install();
    let one = |serial, amount_minor, narration: &str, changes: &[(&str, &str)]| {
        let mut given = Payment {
            reference: format!("R16{serial:012}"),
            amount_minor,
            narration: narration.to_owned(),
            ..payment()
        };
        for (name, value) in changes {
            set(&mut given.recipient, name, *value);
        }
        given
    };
    let acme = [
        ("name", "Acme & Sons, LLC"),
        ("type", "business"),
        ("account_type", "savings"),
        ("account_number", "00-44-AB"),
        ("routing_number", "021000021"),
    ];
    let jose = [
        ("name", "José Núñez-Łuczak"),
        ("account_type", "savings"),
        ("account_number", "12345678901234567"),
    ];
    let long = [("name", "Bartholomew Featherstonehaugh III"), ("routing_number", "231380104")];
    let widgets = [
        ("name", "Widgets of the Midwest Incorporated"),
        ("type", "business"),
        ("account_number", "0"),
        ("routing_number", "011000015"),
    ];
    let payments = [
        one(2, 125_050, "Invoice 17", &[]),
        one(3, 4_200_000, "Rent, March; café – unit 4", &acme),
        one(4, 1, "", &jose),
        one(5, 9_999_999_999, &"x".repeat(100), &long),
        one(6, 99, "", &widgets),
    ];
    let made = assemble(&window(), &payments).expect("a file");
    let written = String::from_utf8(made.content).expect("ASCII");
    assert_eq!(written, include_str!("../cases/golden/two-batches.ach"));
    assert_eq!(made.name, "ACH-20260306-00000042.ach");
}

fn placed(made: &Assembled) -> Vec<(String, String)> {
    let mut placed: Vec<_> =
        made.placed.iter().map(|it| (it.reference.clone(), it.key.clone())).collect();
    placed.sort();
    placed
}

#[test]
fn files_of_many_sizes() {
    for addenda in ["yes", "no"] {
        let mut host = fixtures::host();
        host.settings.insert("addenda".into(), addenda.into());
        double::install(host);
        let mut dice = Dice(17);
        for count in (1..60).chain([200, 1_000]) {
            let payments: Vec<_> = (0..count).map(|at| some_payment(at, &mut dice)).collect();
            let window = Window { first_entry: count * 7, number: count, ..window() };
            let made = assemble(&window, &payments).expect("a file");
            let mut found = check(&made.content);
            found.sort();
            assert_eq!(found, placed(&made), "{count}");
            let kept = made.placed.len() + made.refused.len() + made.later.len();
            assert_eq!((kept, made.refused.len()), (payments.len(), 0));
            assert_eq!(assemble(&window, &payments), Ok(made));
        }
    }
}

fn many(count: u64, amount_minor: i64) -> Vec<Payment> {
    let one = |serial| Payment { reference: format!("R16{serial:012}"), amount_minor, ..payment() };
    (0..count).map(one).collect()
}

#[test]
fn totals_have_twelve_digits() {
    fixtures::install();
    let mut payments = many(102, 9_999_999_999);
    payments[101].amount_minor = 99;
    let made = assemble(&window(), &payments).expect("a file");
    check(&made.content);
    assert_eq!(made.later, ["R16000000000100"]);
    let text = String::from_utf8(made.content).expect("ASCII");
    assert!(text.contains("999999999999"), "a hundred times the most, and 99 cents");
}

#[test]
fn hashes_keep_ten_digits() {
    fixtures::install();
    let mut payments = many(200, 1);
    for payment in &mut payments {
        set(&mut payment.recipient, "routing_number", ROUTING[4]);
    }
    let made = assemble(&window(), &payments).expect("a file");
    check(&made.content);
    let control = made.content.split(|byte| *byte == b'\n').find(|line| line.starts_with(b"9"));
    // 200 times 72100000 is 14420000000.
    assert_eq!(control.map(|line| &line[21..31]), Some(&b"4420000000"[..]));
}

#[test]
fn a_sequence_does_not_begin_anew_within_a_file() {
    fixtures::install();
    let payments = many(5, 100);
    for (first_entry, carried, first_key) in [
        (9_999_995, 5, "121042889999995"),
        (9_999_996, 4, "121042889999996"),
        (9_999_999, 1, "121042889999999"),
        (10_000_000, 5, "121042880000000"),
        (30_000_001, 5, "121042880000001"),
    ] {
        let made = assemble(&Window { first_entry, ..window() }, &payments).expect("a file");
        check(&made.content);
        assert_eq!((made.placed.len(), made.later.len()), (carried, 5 - carried), "{first_entry}");
        assert_eq!(made.placed[0].key, first_key);
        assert!(made.later.iter().eq(payments[carried..].iter().map(|it| &it.reference)));
    }
}

#[test]
fn modifiers_of_a_day() {
    fixtures::install();
    let modifier = |number_of_day| {
        let made = assemble(&Window { number_of_day, ..window() }, &many(1, 1));
        made.map(|made| char::from(made.content[33]))
    };
    let all: String = (1..=36).filter_map(|number| modifier(number).ok()).collect();
    assert_eq!(all, "ABCDEFGHIJKLMNOPQRSTUVWXYZ0123456789");
    assert!(modifier(0).is_err());
    // Its time and its reference code tell it from the first one.
    assert_eq!(modifier(37), Ok('A'));
}

#[test]
fn what_makes_no_sense_makes_no_file() {
    fixtures::install();
    let payments = many(1, 1);
    for bad in ["", "2026-3-06", "2026-13-01", "2026-03-32", "26-03-06", "2026/03/06", "é026-03-06"]
    {
        let business = Window { business_date: bad.into(), ..window() };
        let value = Window { value_date: bad.into(), ..window() };
        assert!(assemble(&business, &payments).is_err(), "{bad}");
        assert!(assemble(&value, &payments).is_err(), "{bad}");
    }
    for bad in ["", "1645", "24:00", "16:60", "16:45:00", "1:45"] {
        let window = Window { local_time: bad.into(), ..window() };
        assert!(assemble(&window, &payments).is_err(), "{bad}");
    }
    let euros = Window { currency: "EUR".into(), ..window() };
    assert!(assemble(&euros, &payments).is_err());
    let twice = [payments[0].clone(), payments[0].clone()];
    assert!(assemble(&window(), &twice).is_err());
    double::install(double::Host::default());
    assert!(assemble(&window(), &payments).expect_err("no settings").contains("company_name"));
}

#[test]
fn a_file_of_nothing_is_empty() {
    fixtures::install();
    let made = assemble(&window(), &[]).expect("nothing");
    assert!(made.content.is_empty() && made.placed.is_empty());
    assert_eq!((&*made.name, &*made.identity), ("ACH-20260306-00000042.ach", "00000042"));
}
