//! Files of the bank's: whole ones, and the same damaged in every place.

use railhead_rail::types::{Finding, News, Notice, ReturnOfFunds, Subject};

use crate::arrivals::read;
use crate::fixtures;

const RETURNS: &[u8] = include_bytes!("../cases/golden/returns.txt");
const REPORT: &[u8] = br#"{"report":"file","file_name":"EFT-0123456789-20260306-00000042-0042.txt",
"file_creation_number":"0042","status":"accepted","total_credit":12345,
"rejected_payments":[{"cross_reference_number":"E16000000000001","amount":5,"code":"limit"}]}"#;

fn returned(notice: &Notice) -> Option<&ReturnOfFunds> {
    match &notice.news {
        News::Found(Finding::Returned(funds)) => Some(funds),
        _ => None,
    }
}

fn about(notice: &Notice) -> &str {
    match &notice.about {
        Subject::Reference(text) | Subject::NetworkId(text) | Subject::File(text) => text,
    }
}

/// What is said about whom, with the code.
fn told(notices: &[Notice]) -> Vec<String> {
    let tell = |notice: &Notice| match returned(notice) {
        Some(funds) => format!("{} {} {}", about(notice), funds.code, funds.amount_minor),
        None => about(notice).to_owned(),
    };
    notices.iter().map(tell).collect()
}

#[test]
fn the_same_however_it_is_written() {
    fixtures::install();
    let expected = [
        "E16000000000002 905 125050",
        "E16000000000004 910 9999999999",
        "E16000000000003 922 1",
        "E16000000000005 912 25000",
        "E16000000000006 902 250",
        "E16000000000007 900 999",
        "E16000000000008 914 777",
    ];
    for content in [
        RETURNS,
        include_bytes!("../cases/golden/returns-trimmed.txt"),
        include_bytes!("../cases/golden/returns-unbroken.txt"),
        include_bytes!("../cases/golden/returns-front.txt"),
        include_bytes!("../cases/golden/returns-records.txt"),
    ] {
        let notices = read("incoming", "a.txt", content).expect("a file");
        assert_eq!(told(&notices), expected);
        let traces: Vec<_> = notices.iter().map(|it| returned(it).expect("one").clone()).collect();
        assert_eq!(traces[6].network_id.as_deref(), Some("0012100000000000000007"));
        assert!(traces.iter().all(|funds| !funds.message.is_empty()));
    }
}

#[test]
fn what_is_bad_or_about_something_else_hides_nothing() {
    fixtures::install();
    let content = include_bytes!("../cases/golden/neighbours.txt");
    let notices = read("incoming", "a.txt", content).expect("a file");
    let expected = [
        "a payment that could not be read, record 2 segment 1 of a.txt",
        "E16000000000050 902 5000",
        "a payment that could not be read, record 2 segment 3 of a.txt",
        "a return with the cross-reference number \"PO-0001\" 905 1500",
        "a return with the cross-reference number \"\" 905 1600",
        "E16000000000074 905 1700",
        "a payment that could not be read, record 3 segment 1 of a.txt",
        "E16000000000051 999 700",
    ];
    assert_eq!(told(&notices), expected);
    // Of a trace that is only zeros nobody can tell two returns apart.
    assert_eq!(returned(&notices[5]).expect("a return").network_id, None);
    for (file, count) in [
        (&include_bytes!("../cases/golden/strangers.txt")[..], 1),
        (include_bytes!("../cases/golden/accents.txt"), 1),
        (include_bytes!("../cases/golden/elsewhere.txt"), 0),
        (include_bytes!("../cases/golden/empty.txt"), 0),
    ] {
        let notices = read("incoming", "a.txt", file).expect("a file");
        assert_eq!(notices.len(), count);
        assert!(notices.iter().all(|it| about(it) == "E16000000000002"));
    }
    let unreadable = include_bytes!("../cases/golden/unreadable.txt");
    assert!(read("incoming", "a.txt", unreadable).is_err());
}

#[test]
fn notices_of_change_hide_no_payment() {
    fixtures::install();
    let returns = told(&read("incoming", "a.txt", RETURNS).expect("a file"));
    for (file, records) in [
        (&include_bytes!("../cases/golden/notices-of-change.txt")[..], &[2, 4, 6][..]),
        (include_bytes!("../cases/golden/notices-uncounted.txt"), &[3, 6, 7, 8]),
    ] {
        let told = told(&read("incoming", "a.txt", file).expect("a file"));
        assert_eq!(told[..7], returns);
        let cases = records.iter().map(|record| {
            format!("a notice of change, which is not read, record {record} of a.txt")
        });
        assert_eq!(told[7..], cases.collect::<Vec<_>>());
    }
    assert!(read("incoming", "a", include_bytes!("../cases/golden/notices-only.txt")).is_err());
    let under_s = include_bytes!("../cases/golden/wrong-kind.txt");
    assert!(read("incoming", "a", under_s).is_err());
}

#[test]
fn whose_payments_they_are_the_settings_say() {
    // Our references with another originator's number: a person looks.
    fixtures::install_with(&[("originator_id", "9876543210")]);
    let notices = read("incoming", "a.txt", RETURNS).expect("a file");
    assert_eq!(notices.len(), 7);
    for notice in &notices {
        let about = about(notice);
        assert!(about.starts_with("a return to the originator 0123456789 with"), "{about}");
        assert!(matches!(notice.about, Subject::NetworkId(_)));
    }
    // A number that is left out.
    fixtures::install();
    let nameless = include_bytes!("../cases/golden/nameless.txt");
    let notices = read("incoming", "a.txt", nameless).expect("a file");
    assert_eq!(told(&notices), ["E16000000000002 905 125050"]);
    fixtures::install_with(&[("originator_id", "")]);
    assert!(read("incoming", "a.txt", RETURNS).is_err());
    assert!(read("incoming", "a.json", REPORT).is_ok());
}

#[test]
fn neither_report_nor_file() {
    fixtures::install();
    for content in [&b""[..], b"<html></html>", b" A", b"\xff\xfe", b"A", b"$$", b"$$\r\nA", b"{"] {
        assert!(read("incoming", "a", content).is_err(), "{}", content.escape_ascii());
    }
    assert!(read("outgoing", "a", RETURNS).is_err());
}

/// What a damaged file says must stand in the good one: nobody's amount may be another one.
fn try_it(damaged: &[u8], good: &[Notice]) -> bool {
    let Ok(notices) = read("incoming", "a.txt", damaged) else { return false };
    for notice in &notices {
        let Some(funds) = returned(notice) else { continue };
        let is_known =
            good.iter().filter_map(returned).any(|it| it.amount_minor == funds.amount_minor);
        assert!(is_known, "{funds:?}");
    }
    true
}

#[test]
fn a_file_that_is_cut_off_says_nothing() {
    fixtures::install();
    let good = read("incoming", "a.txt", RETURNS).expect("a file");
    let end = RETURNS.len() - 2 - 1464 + 112;
    for length in 0..RETURNS.len() {
        let is_read = try_it(&RETURNS[..length], &good);
        // What is left out of a trailer is nothing, and so are the blanks behind it.
        assert!(!is_read || length >= end - 44, "{length}");
    }
}

#[test]
fn no_character_of_a_file_makes_another_amount_of_it() {
    fixtures::install();
    let good = read("incoming", "a.txt", RETURNS).expect("a file");
    let mut read = 0;
    for place in 0..RETURNS.len() {
        for byte in *b"0 9IZ\n" {
            let mut damaged = RETURNS.to_vec();
            damaged[place] = byte;
            read += usize::from(try_it(&damaged, &good));
        }
    }
    assert!(read > 1_000, "{read}");
}
