use railhead_rail::host::double::{self, Host};
use railhead_rail::types::{News, Notice, Subject};

use crate::arrivals::read;
use crate::fixtures;

const RETURNS: &str = include_str!("../cases/returns.toml");

/// The notification of the case of this name.
fn case(name: &str) -> &'static str {
    let (_, rest) = RETURNS.split_once(&format!("name = \"{name}\"")).expect(name);
    rest.split("'''").nth(1).expect("a notification")
}

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

/// What a case says in the sandbox, and what it says once another account pays.
fn before_and_after(body: &str) -> [Vec<Notice>; 2] {
    ["DE66999999991234567890", "DE89370400440532013000"].map(|account| {
        let mut host = fixtures::host();
        host.settings.insert("debtor_iban".into(), account.into());
        double::install(host);
        read("incoming", "a.xml", body.as_bytes()).expect("a notification")
    })
}

#[test]
fn our_reference_counts_in_an_account_that_paid_before() {
    let [before, after] = before_and_after(case("a payment came back"));
    assert_eq!(before.len(), 1);
    assert_eq!(before, after);
    let [before, after] = before_and_after(case("several in one entry, and somebody else's"));
    assert_eq!(before.len(), 2);
    assert_eq!(before, after);
    // What our own money did there is known, and what is taken back is for a person.
    for (name, count) in [("the debit of our own file", 0), ("what came back is taken back", 1)] {
        let [before, after] = before_and_after(case(name));
        assert_eq!((before.len(), &before), (count, &after), "{name}");
    }
}

#[test]
fn in_another_account_nothing_but_our_reference_counts() {
    for (name, count) in [
        ("nothing of it is ours", 0),
        ("it does not say what came back", 1),
        ("NOTPROVIDED came back", 1),
        ("one cannot be understood, the other can", 2),
    ] {
        let [before, after] = before_and_after(case(name));
        assert_eq!(before.len(), count, "{name}");
        let named = before.into_iter().filter(|it| matches!(it.about, Subject::Reference(_)));
        assert_eq!(after, named.collect::<Vec<_>>(), "{name}");
    }
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
