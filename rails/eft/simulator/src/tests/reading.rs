//! What the bank takes for a file, and what it does not.

use railhead_simulator::host::double;
use railhead_simulator::types::State;
use serde_json::Value;

use super::contents;
use super::written::{credit, id, plain, records};
use super::{came_to, errors, install, kept, read, refusal, report, sent};

/// A file of seven payments: records A, C, C and Z.
fn good() -> Vec<String> {
    records(42, &(1..=7).map(credit).collect::<Vec<_>>())
}

fn text(records: &[String]) -> String {
    records.iter().map(|record| format!("{record}\r\n")).collect()
}

/// The file with other characters in one record, from a position on; records count from 1.
fn with(record: usize, from: usize, characters: &str) -> String {
    let mut records = good();
    records[record - 1].replace_range(from - 1..from - 1 + characters.len(), characters);
    text(&records)
}

/// Sends what is no file, and hears that it is none.
fn refused_for(why: &str, body: &str) {
    let (status, answer) = read(sent("bad.txt", body));
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
    let (status, answer) = read(sent("a.txt", &text(&good())));
    assert_eq!(status, 201, "{answer}");
    for serial in 1..=7 {
        assert_eq!(came_to(&id(serial)), (1, 1, State::Paid));
    }
    let noted = kept(&id(7));
    assert_eq!((noted.amount_minor, noted.account.as_str()), (12_345, "7654321"));
    for (name, value) in [
        ("file", "a.txt"),
        ("file_number", "0042"),
        ("institution", "000400012"),
        ("name", "JANE DOE"),
        ("transaction_code", "450"),
        ("date", "026068"),
        ("sundry", ""),
    ] {
        assert_eq!(noted.noted(name), value, "{name}");
    }
    let contents = contents();
    let [content] = contents.as_slice() else { panic!("{contents:?}") };
    let wanted = "{\"report\":\"file\",\"file_name\":\"a.txt\",\"file_creation_number\":\"0042\",\
                  \"status\":\"accepted\",\"payments\":7,\"total_credit\":86415,\
                  \"rejected_payments\":[]}";
    assert_eq!(content, wanted);
    assert_eq!(report(content)["status"], "accepted");
    assert_eq!(errors(), 0);
    double::with(|host| {
        let others = host.book.values().filter(|it| !it.reference.starts_with('E'));
        for page in others {
            assert_eq!((page.amount_minor, page.received, page.executed), (0, 0, 0));
            assert_eq!(page.state, State::Unclear);
        }
    });
}

#[test]
fn a_file_may_be_framed_in_other_ways_but_only_in_one() {
    let good = good();
    let lf: String = good.iter().map(|record| format!("{record}\n")).collect();
    let trimmed: String = good.iter().map(|record| format!("{}\r\n", record.trim_end())).collect();
    let front = format!("$$AAPACPA1464[PROD[NL$$\r\n{}", text(&good));
    for body in [lf.clone(), good.concat(), trimmed, front] {
        install("paid");
        assert_eq!(read(sent("a.txt", &body)).0, 201);
        assert_eq!((came_to(&id(7)), errors()), ((1, 1, State::Paid), 0));
    }
    install("paid");
    for (body, why) in [
        (text(&good).replacen("\r\n", "\n", 1), "ended as the others"),
        (lf.replacen('\n', "\r\n", 1), "ended as the others"),
        (text(&good).trim_end().to_owned(), "ended as the others"),
        (good.concat() + " ", "no records of 1464"),
        (good.concat()[..1464 * 4 - 1].to_owned(), "no records of 1464"),
        (text(&good).replacen("CAD ", "CAD", 1), "blanks at the end"),
        (text(&good).replacen("CAD ", "CAD  ", 1), "1465 characters"),
        (text(&good) + "\r\n", "blanks at the end"),
        (with(1, 60, "\t"), "printable"),
        (with(2, 106, "É"), "printable"),
        (String::new(), "no records"),
        ("\r\n".to_owned(), "blanks at the end"),
    ] {
        refused_for(why, &body);
    }
}

#[test]
fn each_field_of_the_header_and_of_the_trailer() {
    install("paid");
    for (record, from, characters, why) in [
        (1, 1, "C", "where A is due"),
        (1, 10, "2", "logical record count"),
        (1, 11, "-", "originator's number"),
        (1, 20, " ", "originator's number"),
        (1, 21, "0000", "that of a test"),
        (1, 21, "TEST", "file creation number"),
        (1, 21, "  42", "file creation number"),
        (1, 25, "026366", "file creation date"),
        (1, 25, "126065", "file creation date"),
        (1, 31, "00000", "data centre"),
        (1, 31, "  320", "data centre"),
        (1, 40, "X", "reserved"),
        (1, 56, "USD", "currency"),
        (1, 56, "cad", "currency"),
        (1, 59, "0", "filler"),
        (1, 1464, "X", "filler"),
        (4, 1, "A", "where Z is due"),
        (4, 10, "3", "logical record count"),
        (4, 11, "X", "originator's number"),
        (4, 24, "3", "file creation number"),
        (4, 38, "1", "total of debits"),
        (4, 46, "1", "number of debits"),
        (4, 60, "6", "total of credits"),
        (4, 47, " ", "total of credits"),
        (4, 68, "2", "number of credits"),
        (4, 68, "6", "number of credits"),
        (4, 82, "1", "reversals of credits"),
        (4, 112, "1", "reversals of debits"),
        (4, 113, "0", "filler"),
    ] {
        refused_for(why, &with(record, from, characters));
    }
}

#[test]
fn each_field_of_a_payment() {
    install("paid");
    for (from, characters, why) in [
        (1, "D", "where C is due"),
        (10, "3", "logical record count"),
        (11, "X", "originator's number"),
        (24, "3", "file creation number"),
        (25, "199", "transaction code"),
        (25, "800", "transaction code"),
        (25, "900", "transaction code"),
        (25, "45 ", "transaction code"),
        (28, "0000000000", "amount"),
        (28, "     12345", "amount"),
        (28, "00000123.5", "amount"),
        (38, "026034", "date of funds"),
        (38, "026239", "date of funds"),
        (38, "026366", "date of funds"),
        (38, "000000", "date of funds"),
        (44, "1", "recipient's institution"),
        (45, "000", "recipient's institution"),
        (48, "00000", "recipient's institution"),
        (48, "0012 ", "recipient's institution"),
        (53, " ", "account number"),
        (54, " ", "account number"),
        (54, "-", "account number"),
        (53, "            ", "account number"),
        (65, "1", "item trace number"),
        (86, " ", "item trace number"),
        (89, "1", "stored transaction type"),
        (90, "               ", "short name"),
        (105, "        ", "payee's name"),
        (105, " ", "payee's name"),
        (135, "                   ", "long name"),
        (90, "EXAMPLE \"PAY\"", "short name must not hold '\"'"),
        (105, "JANE@DOE", "payee's name must not hold '@'"),
        (105, "JANE*DOE", "payee's name must not hold '*'"),
        (135, "$EXAMPLE", "long name must not hold '$'"),
        (165, "X", "user's number"),
        (175, "                   ", "cross-reference number"),
        (176, "e", "cross-reference number"),
        (176, "/", "cross-reference number"),
        (175, " ", "cross-reference number"),
        (194, "1", "institution for returns"),
        (194, "         ", "institution for returns"),
        (203, "       ", "account for returns"),
        (204, "X", "account for returns"),
        (215, "50% OFF", "sundry information must not hold '%'"),
        (216, "X", "sundry information must stand on the left"),
        (230, "0", "filler"),
        (252, "0", "settlement code"),
        (264, " ", "invalid data element"),
        (264, "1", "invalid data element"),
        // Right by itself, and not what the trailer says.
        (37, "6", "total of credits"),
    ] {
        refused_for(why, &with(2, from, characters));
    }
    // The same in the last segment of a record, and in the only one.
    refused_for("segment 6: positions 28 to 37", &with(2, 28 + 5 * 240, "0000000000"));
    refused_for("record 3, segment 1", &with(3, 44, "9"));
    refused_for("is there twice", &with(2, 175 + 240, &id(1)));
}

#[test]
fn texts_of_every_character_that_is_taken() {
    for (from, text) in [(90, "A. B, C-D'E/(F)"), (105, "o&m 0123456789"), (215, "Loyer - aout 20")]
    {
        install("paid");
        assert_eq!(read(sent("a.txt", &with(2, from, text))).0, 201, "{text}");
    }
}

#[test]
fn records_and_segments_in_another_order() {
    install("paid");
    let good = good();
    let blank = " ".repeat(240);
    let whole = |records: &[&String]| {
        let records: Vec<String> = records.iter().map(|it| (*it).clone()).collect();
        text(&records)
    };
    let [a, b, c, z] = good.as_slice() else { panic!("four records") };
    for (body, why) in [
        (whole(&[a]), "ends where"),
        (whole(&[a, z]), "logical record count"),
        (whole(&[b, c, z]), "where A is due"),
        (whole(&[a, b, c]), "where Z is due"),
        (whole(&[a, c, b, z]), "logical record count"),
        (whole(&[a, b, b, z]), "logical record count"),
        (whole(&[a, b, c, z, z]), "where C is due"),
        (whole(&[a, a, c, z]), "where C is due"),
        (with(3, 25, &blank), "no payment in it"),
        (with(2, 25, &blank), "no payment in it"),
        (with(2, 25 + 240, &blank), "behind a segment"),
        (plain(42, &[]), "no payment before it"),
    ] {
        refused_for(why, &body);
    }
    let (status, _) = refusal(super::handle(&super::Request {
        body: vec![0xff, 0xfe],
        ..super::request("PUT", "/outgoing/bad.txt", "")
    }));
    assert_eq!(status, 422);
}

#[test]
fn who_is_not_known_and_what_is_no_file() {
    install("paid");
    let put = super::request("PUT", "/outgoing/a.txt", &text(&good()));
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
        ("PUT", "/incoming/a.txt"),
        ("POST", "/outgoing/a.txt"),
        ("DELETE", "/outgoing/a.txt"),
        ("GET", "/outgoing/never.txt"),
        ("GET", "/incoming/never.txt"),
        ("GET", "/incoming/"),
    ] {
        let answer = super::handle(&super::request(method, path, ""));
        assert_eq!(refusal(answer), (404, "not_found".to_owned()), "{method} {path}");
    }
}
