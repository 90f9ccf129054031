use std::collections::{HashMap, HashSet};

use railhead_rail::host::{Row, double};

use super::{Bank, Unlisted, find};
use crate::fixtures;

fn code_of(input: &str) -> Result<String, Unlisted> {
    find(input).map(|bank| bank.code)
}

#[test]
fn every_namespace_leads_to_the_same_bank() {
    fixtures::install();
    let expected = Bank {
        institution: "000016".into(),
        code: "011".into(),
        name: "First Bank of Nigeria".into(),
        kind: "dmb".into(),
        check_codes: vec!["011".into()],
    };
    assert_eq!(find("011"), Ok(expected.clone()));
    assert_eq!(find("000016"), Ok(expected));
    for code in ["50515", "090405", "950515"] {
        assert_eq!(code_of(code), Ok("50515".into()), "{code}");
    }
    for code in ["999992", "100004"] {
        assert_eq!(code_of(code), Ok("100004".into()), "{code}");
    }
    assert_eq!(code_of("00103"), Ok("103".into()));
}

#[test]
fn retired_codes_lead_to_the_successor() {
    fixtures::install();
    let diamond = find("063").expect("a bank");
    assert_eq!((diamond.institution.as_str(), diamond.code.as_str()), ("000014", "044"));
    assert_eq!(diamond.check_codes, ["063", "044"]);
    for (retired, now) in
        [("000005", "044"), ("069", "044"), ("056", "050"), ("085", "214"), ("014", "076")]
    {
        assert_eq!(code_of(retired), Ok(now.into()), "{retired}");
    }
    // The microfinance bank's numbers were not made with the later bank's code.
    assert_eq!(find("526").map(|bank| bank.check_codes), Ok(Vec::new()));
}

#[test]
fn what_cannot_be_paid() {
    fixtures::install();
    for code in ["030", "000020"] {
        assert_eq!(find(code), Err(Unlisted::Revoked("Heritage Bank".into())));
    }
    assert_eq!(find("084"), Err(Unlisted::Revoked("Enterprise Bank".into())));
    for code in ["", "999", "12345", "950000", "000044", "58", "0", "05８", "058 ", "GTB"] {
        assert_eq!(find(code), Err(Unlisted::Unknown), "{code:?}");
    }
}

#[test]
fn a_table_that_contradicts_itself_pays_nobody() {
    let mut host = double::Host::default();
    let table = "nip_code,cbn_code,aliases,name,slug,kind,status,successor\n\
        000001,111,777,One,one,dmb,active,\n\
        000002,222,777,Two,two,dmb,active,\n\
        000003,333,,Three,three,dmb,merged,000004\n\
        000004,444,,Four,four,dmb,merged,000003\n\
        000005,555,,Five,five,dmb,merged,999999\n\
        ,666,,Six,six,dmb,active,\n";
    host.tables.insert("banks".into(), double::table(table));
    double::install(host);
    assert_eq!(find("777"), Err(Unlisted::Ambiguous));
    for code in ["333", "555", "666"] {
        assert_eq!(find(code), Err(Unlisted::Unknown), "{code}");
    }
}

fn shipped() -> Vec<Row> {
    double::table(include_str!("../banks.csv"))
}

/// Every code of a row, in all namespaces.
fn codes(row: &Row) -> Vec<String> {
    [row.get("nip_code"), row.get("cbn_code")]
        .into_iter()
        .filter(|code| !code.is_empty())
        .chain(row.get("aliases").split_whitespace())
        .map(str::to_owned)
        .collect()
}

fn is_digits(text: &str, lengths: &[usize]) -> bool {
    lengths.contains(&text.len()) && text.bytes().all(|byte| byte.is_ascii_digit())
}

#[test]
fn the_shipped_table_keeps_to_its_own_rules() {
    let text = include_str!("../banks.csv");
    let mut lines = text.lines().filter(|line| !line.starts_with('#'));
    let columns = "nip_code,cbn_code,aliases,name,slug,kind,status,successor";
    assert_eq!(lines.next(), Some(columns));
    assert!(lines.all(|line| line.split(',').count() == 8 && !line.contains('"')));
    let kinds = ["dmb", "mfb", "mobile_money", "psb", "merchant_bank", "fintech"];
    let mut slugs = HashSet::new();
    for row in shipped() {
        let is_active = row.get("status") == "active";
        assert!(is_digits(row.get("nip_code"), if is_active { &[6] } else { &[0, 6] }), "{row:?}");
        let is_bank = matches!(row.get("kind"), "dmb" | "merchant_bank");
        assert!(is_digits(row.get("cbn_code"), if is_bank { &[0, 3] } else { &[0, 5] }), "{row:?}");
        assert!(codes(&row).iter().all(|code| is_digits(code, &[3, 5, 6])), "{row:?}");
        assert!(matches!(row.get("status"), "active" | "merged" | "revoked"), "{row:?}");
        assert_eq!(row.get("status") == "merged", !row.get("successor").is_empty(), "{row:?}");
        assert!(kinds.contains(&row.get("kind")) && !row.get("name").is_empty(), "{row:?}");
        let slug = row.get("slug").to_owned();
        let is_plain = |byte: u8| matches!(byte, b'a'..=b'z' | b'0'..=b'9' | b'-');
        assert!(!slug.is_empty() && slug.bytes().all(is_plain), "{row:?}");
        assert!(slugs.insert(slug), "{row:?}");
    }
}

#[test]
fn no_code_belongs_to_two_institutions() {
    let mut owners = HashMap::new();
    for row in shipped() {
        for code in codes(&row) {
            assert_eq!(owners.insert(code, row.clone()), None, "{row:?}");
        }
    }
    // The form with the NUBAN prefix is derived, so it must not be a code of its own.
    for code in owners.keys().filter(|code| code.len() == 5) {
        assert!(!owners.contains_key(&format!("9{code}")), "{code}");
    }
}

#[test]
fn every_code_leads_where_its_row_says() {
    fixtures::install();
    let rows = shipped();
    let active = |code: &str| {
        let found = rows.iter().find(|row| row.get("nip_code") == code).expect("a successor");
        assert_eq!(found.get("status"), "active", "{code}");
        found
    };
    for row in &rows {
        let end = match row.get("status") {
            "merged" => active(row.get("successor")),
            _ => row,
        };
        for code in codes(row) {
            match find(&code) {
                Ok(bank) => {
                    assert_eq!(bank.institution, end.get("nip_code"), "{code}");
                    assert_eq!(bank.name, end.get("name"), "{code}");
                    assert_eq!(find(&bank.code).map(|again| again.code), Ok(bank.code), "{code}");
                }
                Err(unlisted) => {
                    assert_eq!(unlisted, Unlisted::Revoked(row.get("name").into()), "{code}");
                    assert_eq!(row.get("status"), "revoked", "{code}");
                }
            }
        }
    }
}

#[test]
fn the_table_is_dated_as_declared() {
    let table = include_str!("../rail.toml").split("[tables.banks]").nth(1).expect("a table");
    let dated = table.split("dated = \"").nth(1).and_then(|rest| rest.split('"').next());
    let dated = dated.expect("a date");
    assert!(include_str!("../banks.csv").lines().next().expect("a line").contains(dated));
}
