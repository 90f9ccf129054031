//! Messages that are broken in every way: none is taken, and each is said in the log.

use super::{FILE, NAME, PAYMENT, QUESTION, RECALL, errors, install, post, put, read};

/// What is replaced in each message, and by what.
const CHANGES: &[(&str, &str)] = &[
    ("<Document", "<Dokument"),
    ("iso:std", "iso:other"),
    ("</Document>", ""),
    ("<?xml", "<!DOCTYPE x><?xml"),
    ("<CreDtTm>2026", "<CreDtTm>x026"),
    ("EUR", "USD"),
    ("1250.50", "1250.505"),
    ("1250.50", "-1250.50"),
    ("1250.50", ""),
    ("RAILDEFFXXX", "RAILDEFFX"),
    ("<EndToEndId>", "<EndToEndId>//"),
    ("<EndToEndId>", "<EndToEndId>ÄÖÜ"),
    ("EndToEndId>", "EndId>"),
];

fn broken(message: &str, send: impl Fn(&str) -> u16) {
    let mut tried = 0;
    for (what, by) in CHANGES.iter().filter(|(what, _)| message.contains(what)) {
        install("paid");
        let status = send(&message.replace(what, by));
        assert!(matches!(status, 400 | 422), "{what} {by}: {status}");
        assert_eq!(errors(), 1, "{what} {by}");
        tried += 1;
    }
    assert!(tried >= 5, "{tried}");
    // Each element is left out, and stands twice.
    let lines: Vec<&str> = message.lines().collect();
    for (index, line) in lines.iter().enumerate() {
        let line = line.trim_start();
        let is_value = !line.starts_with("</") && line.contains("</");
        if !is_value || OPTIONAL.iter().any(|name| line.contains(&format!("<{name}>"))) {
            continue;
        }
        for times in [0, 2] {
            install("paid");
            let mut changed = lines.clone();
            changed.splice(index..=index, std::iter::repeat_n(line, times));
            let status = send(&changed.join("\n"));
            assert!(matches!(status, 400 | 422), "{times} of {line}: {status}");
        }
    }
}

/// Elements that need not be there; what holds them would be empty without some.
const OPTIONAL: &[&str] = &["InstrId", "StrtNm", "PstCd", "OrgnlInstrId", "OrgnlIntrBkSttlmDt"];

#[test]
fn files() {
    broken(FILE, |body| read(put(NAME, body)).0);
    for (what, by) in [
        ("<NbOfTxs>1<", "<NbOfTxs>2<"),
        ("<CtrlSum>1250.50<", "<CtrlSum>1250.51<"),
        ("<PmtMtd>TRF", "<PmtMtd>CHK"),
        ("<ChrgBr>SLEV", "<ChrgBr>SHAR"),
        ("<Cd>SEPA", "<Cd>URGP"),
        ("<Dt>2026-03-06", "<Dt>2026-02-30"),
        ("DE89370400440532013000", "DE88370400440532013000"),
        ("<Ctry>DE", "<Ctry>de"),
        ("Jane Smith", "Jane_Smith"),
        ("Invoice 17", "Invoice 17 "),
    ] {
        install("paid");
        assert!(FILE.contains(what), "{what}");
        let (status, _) = read(put(NAME, &FILE.replace(what, by)));
        assert_eq!((status, errors()), (422, 1), "{what}");
    }
}

#[test]
fn payments() {
    broken(PAYMENT, |body| read(post("/instant/payments", body)).0);
}

#[test]
fn questions() {
    broken(QUESTION, |body| read(post("/instant/status-requests", body)).0);
}

#[test]
fn recalls() {
    broken(RECALL, |body| read(post("/recalls", body)).0);
}
