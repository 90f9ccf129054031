use railhead_rail::host::double::{self, Host};
use railhead_rail::types::{News, Subject};

use crate::arrivals::read;
use crate::fixtures;

const RETURNS: &str = include_str!("../cases/returns.toml");

#[test]
fn nothing_is_read_while_nobody_knows_which_account_is_ours() {
    let body = RETURNS.split("'''").nth(1).expect("a notification");
    fixtures::install();
    assert_eq!(read("incoming", "a.xml", body.as_bytes()).expect("a return").len(), 1);
    double::install(Host::default());
    assert!(
        read("incoming", "a.xml", body.as_bytes()).expect_err("no account").contains("debtor_iban")
    );
}

#[test]
fn what_cannot_be_understood_is_told_under_a_name_that_fits() {
    fixtures::install();
    let body = RETURNS.split("'''").nth(1).expect("a notification").replace("EUR", "USD");
    let name = "x".repeat(500) + "\n";
    let notices = read("incoming", &name, body.as_bytes()).expect("a notice");
    let Subject::NetworkId(named) = &notices[0].about else { panic!("{notices:?}") };
    assert!(named.len() < 140 && !named.contains('\n'), "{named}");
    assert_eq!(notices[0].news, News::Ask);
}
