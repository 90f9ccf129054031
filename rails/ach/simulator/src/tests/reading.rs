//! What the bank takes for a file, and what it does not.

use railhead_simulator::host::double;
use railhead_simulator::types::State;
use serde_json::Value;

use super::writer::{credit, draft};
use super::{came_to, errors, install, kept, read, refusal, report, sent};
use crate::tests::contents;

/// A file of two batches, written by hand.
#[rustfmt::skip]
const RECORDS: [&str; 10] = [
    "101 12104288212104288212603061600A094101FIRST BANK             EXAMPLE PAYOUTS INC    00000042",
    "5220EXAMPLE PAYOUTS                     1210428821PPDPAYOUT          260309   1121042880000001",
    "62212100024812345678         0000012345R16000000000001JANE DOE                0121042880000001",
    "6320210000219876-54321       0000000050R16000000000002RICHARD ROE             1121042880000002",
    "705INVOICE 17, WITH THANKS                                                         00010000002",
    "822000000300142000260000000000000000000123951210428821                         121042880000001",
    "5220EXAMPLE PAYOUTS                     1210428821CCDPAYOUT          260309   1121042880000002",
    "622011000015000123456789012340100000000R16000000000003EXAMPLE SUPPLIES LLC    0121042880000003",
    "822000000100011000010000000000000001000000001210428821                         121042880000002",
    "9000002000001000000040015300027000000000000000100012395                                       ",
];

fn text(records: &[String]) -> String {
    records.iter().map(|record| format!("{record}\n")).collect()
}

fn good() -> Vec<String> {
    RECORDS.map(str::to_owned).to_vec()
}

/// The file with other characters in one record, from a position on; records count from 1.
fn with(record: usize, from: usize, characters: &str) -> String {
    let mut records = good();
    records[record - 1].replace_range(from - 1..from - 1 + characters.len(), characters);
    text(&records)
}

/// The file with other records in place of one.
fn instead(record: usize, others: &[&str]) -> String {
    let mut records = good();
    records.splice(record - 1..record, others.iter().map(|&it| it.to_owned()));
    text(&records)
}

/// Sends what is no file, and hears that it is none.
fn refused_for(why: &str, body: &str) {
    let (status, answer) = read(sent("bad.ach", body));
    assert_eq!(status, 422, "{why}: {answer}");
    let answer: Value = serde_json::from_str(&answer).expect("JSON");
    assert_eq!(answer["code"], "invalid_file");
    let message = answer["message"].as_str().expect("a text");
    assert!(message.contains(why), "{message}, not {why}");
    let logged = double::with(|host| host.errors.pop().expect("an error"));
    assert!(logged.contains(message), "{logged}");
    double::with(|host| assert!(host.book.is_empty(), "{why}"));
}

#[test]
fn a_file_is_taken_carried_out_once_and_reported_on() {
    install("paid");
    let (status, answer) = read(sent("a.ach", &text(&good())));
    assert_eq!(status, 201, "{answer}");
    for (reference, cents, account) in [
        ("R16000000000001", 12_345, "12345678"),
        ("R16000000000002", 50, "9876-54321"),
        ("R16000000000003", 100_000_000, "00012345678901234"),
    ] {
        assert_eq!(came_to(reference), (1, 1, State::Paid));
        let kept = kept(reference);
        assert_eq!((kept.amount_minor, kept.account.as_str()), (cents, account));
    }
    let noted = kept("R16000000000003");
    for (name, value) in [
        ("trace", "121042880000003"),
        ("rdfi", "01100001"),
        ("name", "EXAMPLE SUPPLIES LLC"),
        ("transaction_code", "22"),
        ("file", "a.ach"),
        ("file_number", "00000042"),
        ("effective_date", "260309"),
        ("class", "CCD"),
    ] {
        assert_eq!(noted.noted(name), value, "{name}");
    }
    let contents = contents();
    let [content] = contents.as_slice() else { panic!("{contents:?}") };
    let wanted = "{\"report\":\"file\",\"reference_code\":\"00000042\",\"status\":\"accepted\",\
                  \"entries\":3,\"total_credit\":100012395,\"rejected_entries\":[]}";
    assert_eq!(content, wanted);
    assert_eq!(report(content)["status"], "accepted");
    assert_eq!(errors(), 0);
    double::with(|host| {
        let others = host.book.values().filter(|it| !it.reference.starts_with('R'));
        for page in others {
            assert_eq!((page.amount_minor, page.received, page.executed), (0, 0, 0));
            assert_eq!(page.state, State::Unclear);
        }
    });
}

#[test]
fn each_field_of_the_header_and_of_the_controls() {
    install("paid");
    for (record, from, characters, why) in [
        (1, 2, "02", "priority code"),
        (1, 4, "1", "immediate destination"),
        (1, 13, "3", "immediate destination"),
        (1, 14, "-", "immediate origin"),
        (1, 20, "X", "immediate origin"),
        (1, 24, "260229", "file creation date"),
        (1, 24, "2603 6", "file creation date"),
        (1, 30, "2400", "file creation time"),
        (1, 34, "a", "file ID modifier"),
        (1, 35, "095", "record size"),
        (1, 38, "09", "blocking factor"),
        (1, 40, "2", "format code"),
        (1, 41, " ", "immediate destination name"),
        (1, 41, "          ", "immediate destination name"),
        (1, 64, " ", "immediate origin name"),
        (1, 87, "      42", "reference code"),
        (1, 87, "0000004A", "reference code"),
        (6, 2, "200", "service class"),
        (6, 5, "000002", "entry/addenda count"),
        (6, 20, "7", "entry hash"),
        (6, 32, "1", "total of debits"),
        (6, 44, "4", "total of credits"),
        (6, 45, "2", "company identification"),
        (6, 55, "X", "message authentication code"),
        (6, 74, "X", "reserved"),
        (6, 80, "0", "originating bank"),
        (6, 94, "2", "batch number"),
        (10, 7, "1", "batch count"),
        (10, 13, "2", "block count"),
        (10, 21, "3", "entry/addenda count"),
        (10, 31, "8", "entry hash"),
        (10, 43, "1", "total of debits"),
        (10, 55, "6", "total of credits"),
        (10, 44, " ", "total of credits"),
        (10, 94, "0", "reserved"),
    ] {
        refused_for(why, &with(record, from, characters));
    }
}

#[test]
fn each_field_of_a_batch_and_of_an_entry() {
    install("paid");
    for (record, from, characters, why) in [
        (2, 2, "200", "service class"),
        (2, 2, "225", "service class"),
        (2, 5, " ", "company name"),
        (2, 50, " ", "company identification"),
        (2, 51, "WEB", "standard entry class"),
        (2, 51, "CTX", "standard entry class"),
        (2, 54, "      ", "company entry description"),
        (2, 70, "260307", "effective entry date"),
        (2, 70, "260308", "effective entry date"),
        (2, 70, "260305", "effective entry date"),
        (2, 70, "260407", "effective entry date"),
        (2, 70, "261309", "effective entry date"),
        (2, 70, "      ", "effective entry date"),
        (2, 76, "068", "settlement date"),
        (2, 79, "2", "originator status code"),
        (2, 80, "9", "originating bank"),
        (2, 88, "0000000", "batch number"),
        (7, 88, "0000001", "batch number"),
        (3, 2, "27", "transaction code"),
        (3, 2, "23", "transaction code"),
        (3, 12, "9", "receiving bank"),
        (3, 4, "000000000", "receiving bank"),
        (3, 4, "400000008", "receiving bank"),
        (3, 13, " ", "DFI account number"),
        (3, 15, " ", "DFI account number"),
        (3, 15, "/", "DFI account number"),
        (3, 13, "        ", "DFI account number"),
        (3, 30, "0000000000", "amount"),
        (3, 30, "     12345", "amount"),
        (3, 30, "00000123.5", "amount"),
        (3, 40, "               ", "identification number"),
        (3, 40, " ", "identification number"),
        (3, 41, "/", "identification number"),
        (3, 41, "r", "identification number"),
        (3, 55, " ", "name"),
        (3, 55, "        ", "name"),
        (3, 79, " ", "addenda record indicator"),
        (3, 79, "2", "addenda record indicator"),
        (3, 87, "9", "trace number"),
        (3, 94, " ", "trace number"),
        (3, 94, "2", "trace number"),
        (4, 94, "1", "trace number"),
        (8, 87, "9", "trace number"),
        (8, 94, "1", "is there twice"),
        (8, 54, "1", "is there twice"),
        (5, 2, "99", "addenda type code"),
        (5, 4, "                       ", "payment related information"),
        (5, 84, "0002", "addenda sequence number"),
        (5, 94, "1", "entry detail sequence number"),
        // Right by themselves, and not what the controls say.
        (3, 39, "6", "total of credits"),
        (3, 4, "011000015", "entry hash"),
    ] {
        refused_for(why, &with(record, from, characters));
    }
}

#[test]
fn records_in_another_order_or_of_another_shape() {
    install("paid");
    let nines = "9".repeat(94);
    let [header, _, entry, _, addenda, ..] = RECORDS;
    for (record, others, why) in [
        (1, vec![], "fill blocks"),
        (1, vec![nines.as_str()], "type 9, where 1 is due"),
        (2, vec![header], "type 1, where 9 is due"),
        (2, vec![nines.as_str()], "no batch"),
        (3, vec![addenda], "type 7, where 8 is due"),
        (5, vec![entry], "type 6, where 7 is due"),
        (6, vec![entry], "trace number"),
        (9, vec![nines.as_str()], "type 9, where 8 is due"),
        (10, vec![RECORDS[8]], "type 8, where 9 is due"),
        (10, vec![""], "0 characters"),
        (10, vec![&RECORDS[9][..93]], "93 characters"),
    ] {
        refused_for(why, &instead(record, &others));
    }
    let whole = text(&good());
    let descending = with(7, 94, "1").replace("121042880000002\n9000", "121042880000001\n9000");
    for (body, why) in [
        (descending, "must be 2 or more"),
        (String::new(), "line feed"),
        ("\n".to_owned(), "0 characters"),
        (whole.trim_end().to_owned(), "line feed"),
        (format!("{whole}\n"), "0 characters"),
        (whole.replace('\n', "\r\n"), "printable"),
        (with(3, 60, "\t"), "printable"),
        (with(3, 60, "É"), "printable"),
        // A block too many.
        (whole.clone() + &format!("{nines}\n").repeat(10), "block count"),
        (with(10, 13, "2") + &format!("{nines}\n").repeat(10), "nines to fill"),
        (whole.clone() + &whole, "block count"),
        (draft(1, &[1]).text().replacen(&nines, &"9".repeat(93), 1), "93 characters"),
        (draft(1, &[1]).text().replacen(&nines, &"8".repeat(94), 1), "nines"),
        (draft(1, &[]).text(), "no entry"),
        (super::writer::Draft { batches: Vec::new(), ..draft(1, &[]) }.text(), "no batch"),
    ] {
        refused_for(why, &body);
    }
    let (status, _) = refusal(super::handle(&super::Request {
        body: vec![0xff, 0xfe],
        ..super::request("PUT", "/outgoing/bad.ach", "")
    }));
    assert_eq!(status, 422);
}

#[test]
fn a_hash_keeps_ten_digits_and_amounts_may_have_ten() {
    install("paid");
    let mut big = draft(1, &[]);
    let credits = (1..=200).map(|serial| super::writer::Credit {
        cents: if serial <= 50 { 9_999_999_999 } else { 1 },
        addenda: (serial % 2 == 0).then_some("THANKS"),
        routing: if serial % 10 == 0 { "021000021" } else { "725000000" },
        ..credit(serial)
    });
    big.batches = vec![("CCD", credits.collect())];
    let (status, answer) = read(sent("big.ach", &big.text()));
    assert_eq!(status, 201, "{answer}");
    assert_eq!(report(&contents()[0])["total_credit"], 500_000_000_100_u64);
    assert_eq!(kept("R16000000000050").amount_minor, 9_999_999_999);
}

#[test]
fn who_is_not_known_and_what_is_no_file() {
    install("paid");
    let put = super::request("PUT", "/outgoing/a.ach", &text(&good()));
    let without = |name: &str, value: &str| {
        let mut request = put.clone();
        request.headers.retain(|(known, _)| known != name);
        request.headers.push((name.to_owned(), value.to_owned()));
        request
    };
    for value in ["", "Bearer", "Bearer another", "Basic simulator"] {
        let mut stranger = without("authorization", value);
        assert_eq!(refusal(super::handle(&stranger)), (401, "unauthorized".to_owned()), "{value}");
        stranger.method = "GET".to_owned();
        stranger.path = "/incoming".to_owned();
        assert_eq!(refusal(super::handle(&stranger)).0, 401, "{value}");
    }
    for value in ["", "application/json", "text/plain"] {
        assert_eq!(refusal(super::handle(&without("content-type", value))).0, 415, "{value}");
    }
    for name in ["", "a b", "a%2Fb", "a/b", "\u{e9}", &"a".repeat(81)] {
        assert_eq!(refusal(sent(name, &text(&good()))), (422, "invalid_name".to_owned()), "{name}");
    }
    assert_eq!(errors(), 9);
    double::with(|host| assert!(host.book.is_empty()));
    for (method, path) in [
        ("GET", "/"),
        ("GET", ""),
        ("GET", "/outgoing"),
        ("PUT", "/incoming/a.ach"),
        ("POST", "/outgoing/a.ach"),
        ("DELETE", "/outgoing/a.ach"),
        ("GET", "/outgoing/never.ach"),
        ("GET", "/incoming/never.ach"),
        ("GET", "/incoming/"),
    ] {
        let answer = super::handle(&super::request(method, path, ""));
        assert_eq!(refusal(answer), (404, "not_found".to_owned()), "{method} {path}");
    }
}
