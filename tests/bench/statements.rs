//! Statements of banks with very many entries: read, and compared with books that have as many.

use std::fmt::Write as _;
use std::fs::File;
use std::io::BufReader;
use std::time::Instant;

use railhead::money::{Currency, Minor};
use railhead::reconciliation::SettlementEntry;
use railhead::reconciliation::matching::{Books, Period};
use railhead::statements::{Columns, Entry, Terms, read};

use super::files::resident_mb;

/// Reads a statement of so many entries in two forms, and compares one with the books: all but one
/// in a thousand belong together.
pub(crate) fn run(entries: u64) {
    println!("statements of {entries} entries; resident memory {} MB before", resident_mb());
    let folder = tempfile::tempdir().unwrap();
    let mut found: Vec<Entry> = Vec::new();
    for (name, text) in [("camt.053", camt as fn(u64) -> String), ("MT940", mt940)] {
        let path = folder.path().join(name);
        std::fs::write(&path, text(entries)).unwrap();
        let bytes = std::fs::metadata(&path).unwrap().len();
        let currency = Currency::parse("NGN").unwrap();
        let terms = Terms { currency, places: 2, columns: Columns::default() };
        let begun = Instant::now();
        let file = BufReader::with_capacity(1 << 20, File::open(&path).unwrap());
        let statement = read(file, &terms).unwrap().remove(0);
        assert_eq!(statement.discrepancy().unwrap(), Some(Minor::ZERO));
        println!(
            "    {name}: {:.0} MB read in {:.1} s; resident {} MB",
            bytes as f64 / 1e6,
            begun.elapsed().as_secs_f64(),
            resident_mb()
        );
        found = statement.entries;
    }
    let begun = Instant::now();
    let mut books = Books::default();
    for number in (0..entries).filter(|number| number % 1_000 != 0) {
        let day = "2026-11-21".parse().unwrap();
        books.add(&line(number), (day, Period::Within));
    }
    let taken = begun.elapsed();
    let compared = books.compare(&found).unwrap();
    assert_eq!(compared.at_the_bank.len() as u64, entries.div_ceil(1_000));
    println!(
        "    {} lines of the books taken in in {:.1} s, compared in {:.1} s: {} found, {} left \
         over; resident {} MB\n",
        books.lines().len(),
        taken.as_secs_f64(),
        (begun.elapsed() - taken).as_secs_f64(),
        compared.matched,
        compared.at_the_bank.len(),
        resident_mb()
    );
}

/// What the networks call a payment: as long as a NIP session id.
fn reference(number: u64) -> String {
    format!("000013261121{number:018}")
}

fn line(number: u64) -> SettlementEntry {
    SettlementEntry {
        journal_id: format!("c{number}"),
        kind: "payout_settlement".to_owned(),
        amount_minor: Minor::new(150_000),
        subject_id: format!("c{number:026}"),
        references: vec![format!("c{number:026}"), format!("po_{number:026}"), reference(number)],
        file_id: None,
        file_references: Vec::new(),
        booked_on: None,
        created_at: String::new(),
    }
}

fn mt940(entries: u64) -> String {
    let mut text =
        ":20:S1\r\n:25:0123456785\r\n:28C:1/1\r\n:60F:C261120NGN9999999999,00\r\n".to_owned();
    for number in 0..entries {
        let reference = reference(number);
        write!(
            text,
            ":61:2611211121D1500,00NTRFNONREF//FT{number:010}\r\n:86:NIP/{reference}/ADA OBI\r\n"
        )
        .unwrap();
    }
    write!(text, ":62F:C261121NGN{},00\r\n-\r\n", 9_999_999_999 - 1_500 * entries).unwrap();
    text
}

fn camt(entries: u64) -> String {
    let balance = |kind: &str, amount: u64| {
        format!(
            "<Bal><Tp><CdOrPrtry><Cd>{kind}</Cd></CdOrPrtry></Tp><Amt Ccy=\"NGN\">{amount}.00</Amt>\
             <CdtDbtInd>CRDT</CdtDbtInd><Dt><Dt>2026-11-21</Dt></Dt></Bal>"
        )
    };
    let mut text = format!(
        "<Document xmlns=\"urn:iso:std:iso:20022:tech:xsd:camt.053.001.08\"><BkToCstmrStmt><Stmt>\
         <Id>S1</Id>{}{}",
        balance("OPBD", 9_999_999_999),
        balance("CLBD", 9_999_999_999 - 1_500 * entries)
    );
    for number in 0..entries {
        let reference = reference(number);
        writeln!(
            text,
            "<Ntry><Amt Ccy=\"NGN\">1500.00</Amt><CdtDbtInd>DBIT</CdtDbtInd><Sts><Cd>BOOK</Cd></Sts>\
             <BookgDt><Dt>2026-11-21</Dt></BookgDt><AcctSvcrRef>FT{number:010}</AcctSvcrRef>\
             <NtryDtls><TxDtls><Refs><EndToEndId>{reference}</EndToEndId></Refs>\
             <RmtInf><Ustrd>ADA OBI</Ustrd></RmtInf></TxDtls></NtryDtls></Ntry>"
        )
        .unwrap();
    }
    text.push_str("</Stmt></BkToCstmrStmt></Document>");
    text
}
