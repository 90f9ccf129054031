//! The test cases of the specification of the modulus check.
//!
//! Its weight table is not ours to pass on. Whoever has it names its folder in `RAILHEAD_VALACDOS`.

use std::io::Write as _;
use std::path::Path;

use railhead_rail::host::Row;
use railhead_rail::host::double::{self, Host};

use crate::modulus::{SUBSTITUTIONS, WEIGHTS, is_possible};

const CASES_CSV: &str = include_str!("../fixtures/specification.csv");
const WEIGHTS_CSV: &str = include_str!("../fixtures/specification_weights.csv");

/// The folder with the operator's own `valacdos.txt` and `scsubtab.txt`.
const FOLDER: &str = "RAILHEAD_VALACDOS";

/// Fields of a line of `valacdos.txt` that has no exception.
const FIELDS: usize = 17;

/// Cases that pass or not as they should, with the tables that are installed.
fn run(cases: &[Row]) {
    for case in cases {
        let (sort_code, account) = (case.get("sort_code"), case.get("account"));
        let about = format!("{}: {sort_code} {account}, {}", case.get("number"), case.get("about"));
        assert_eq!(is_possible(sort_code, account), case.get("passes") == "yes", "{about}");
    }
}

fn install(weights: &str, substitutions: &str) {
    let mut host = Host::default();
    host.tables.insert(WEIGHTS.into(), double::table(weights));
    host.tables.insert(SUBSTITUTIONS.into(), double::table(substitutions));
    double::install(host);
}

#[test]
fn the_cases_are_whole() {
    let cases = double::table(CASES_CSV);
    for (index, case) in cases.iter().enumerate() {
        assert_eq!(case.get("number"), (index + 1).to_string());
        assert!(matches!(case.get("passes"), "yes" | "no"), "{case:?}");
        assert!(matches!(case.get("weights"), "text" | "table"), "{case:?}");
        let digits = [case.get("sort_code").len(), case.get("account").len()];
        assert!(digits == [6, 8] && !case.get("about").is_empty(), "{case:?}");
    }
    assert_eq!(cases.len(), 34);
    assert_eq!(cases.iter().filter(|case| case.get("passes") == "no").count(), 8);
}

#[test]
fn cases_for_which_the_text_is_enough() {
    let mut cases = double::table(CASES_CSV);
    cases.retain(|case| case.get("weights") == "text");
    assert_eq!(cases.len(), 4);
    install(WEIGHTS_CSV, "sort_code,substitute");
    run(&cases);
    // By the weights of their rows alone, none of them would pass.
    let head_and_rows = WEIGHTS_CSV.lines().map(|line| match line.rsplit_once(',') {
        Some((row, exception)) if exception.parse::<u8>().is_ok() => format!("{row},\n"),
        _ => format!("{line}\n"),
    });
    install(&head_and_rows.collect::<String>(), "sort_code,substitute");
    assert!(cases.iter().all(|case| !is_possible(case.get("sort_code"), case.get("account"))));
}

#[test]
fn all_cases_with_the_operators_tables() {
    let Ok(folder) = std::env::var(FOLDER) else {
        let why = format!("{FOLDER} names no folder with valacdos.txt and scsubtab.txt");
        // What a test prints is shown where it fails; this is shown in any case.
        let _ = writeln!(std::io::stderr(), "NOT RUN: the specification's 34 cases; {why}");
        return;
    };
    let folder = Path::new(&folder);
    let read = |name: &str| std::fs::read_to_string(folder.join(name)).expect(name);
    install(&weights(&read("valacdos.txt")), &substitutions(&read("scsubtab.txt")));
    run(&double::table(CASES_CSV));
}

/// `valacdos.txt` as the table that the rail reads.
fn weights(text: &str) -> String {
    let lines = text.lines().map(|line| line.split_whitespace().collect::<Vec<_>>());
    let rows = lines.filter(|fields| fields.len() >= FIELDS).map(|fields| {
        let exception = fields.get(FIELDS).copied().unwrap_or_default();
        format!("{},{exception}\n", fields[..FIELDS].join(","))
    });
    let rows: String = rows.collect();
    assert!(!rows.is_empty(), "valacdos.txt has no row");
    format!("start,end,method,u,v,w,x,y,z,a,b,c,d,e,f,g,h,exception\n{rows}")
}

/// `scsubtab.txt` as the table that the rail reads.
fn substitutions(text: &str) -> String {
    let lines = text.lines().map(|line| line.split_whitespace().collect::<Vec<_>>());
    let rows: String =
        lines.filter(|fields| fields.len() == 2).map(|fields| fields.join(",") + "\n").collect();
    format!("sort_code,substitute\n{rows}")
}
