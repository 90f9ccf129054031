use railhead_rail::fields::{field, set};
use railhead_rail::host::double;
use railhead_rail::types::{Payment, Window};

use super::{ENTRIES_MAX, assemble};
use crate::fixtures::{self, REFERENCE, payment, window};
use crate::reference;

const IDENTITY: &str = "RF2026030600000004201A1FD557A80";

fn written(settings: &[(&str, &str)], payment: Payment) -> String {
    let mut host = fixtures::host();
    for (name, value) in settings {
        host.settings.insert((*name).into(), (*value).into());
    }
    double::install(host);
    let made = assemble(&window(), vec![payment]).expect("a file");
    String::from_utf8(made.content).expect("UTF-8")
}

#[test]
fn names_and_entries() {
    fixtures::install();
    let second = Payment { reference: reference::collected(1, 3).expect("one"), ..payment() };
    let made = assemble(&window(), vec![payment(), second]).expect("a file");
    assert_eq!((&*made.identity, &*made.name), (IDENTITY, &*format!("{IDENTITY}.xml")));
    let keys: Vec<&str> = made.placed.iter().map(|placed| placed.key.as_str()).collect();
    assert_eq!(keys, ["RI00000004201A1FD557A800000000002", "RI0000000420000000000010000000003"]);
    assert_eq!(made.placed[0].reference, REFERENCE);
    let content = String::from_utf8(made.content).expect("UTF-8");
    for placed in &made.placed {
        let entry = std::str::from_utf8(&placed.entry).expect("UTF-8");
        assert!(content.contains(entry) && entry.contains(&placed.key), "{entry}");
    }
    assert_eq!(content.matches("<NbOfTxs>2</NbOfTxs><").count(), 0);
    assert_eq!(content.matches("<NbOfTxs>2</NbOfTxs>").count(), 2);
    assert_eq!(content.matches("<CtrlSum>2501.00</CtrlSum>").count(), 2);
}

#[test]
fn settings_are_where_they_belong() {
    let plain = written(&[], payment());
    for absent in ["<OrgId>", "<Purp>", "<UltmtDbtr>", "false"] {
        assert!(!plain.contains(absent), "{absent}");
    }
    let sender = vec![field("business_name", "Acme & Söhne")];
    let settings = [
        ("initiator_id", "ES1234"),
        ("batch_booking", "no"),
        ("purpose", "SALA"),
        ("creditor_address", "none"),
        ("ultimate_debtor", "yes"),
    ];
    let other = written(&settings, Payment { sender, ..payment() });
    for present in [
        "<Id>ES1234</Id>",
        "<BtchBookg>false</BtchBookg>",
        "<Cd>SALA</Cd>",
        "<Nm>Acme + Sohne</Nm>",
    ] {
        assert!(other.contains(present), "{present}");
    }
    assert!(plain.contains("<PstlAdr>") && !other.contains("<PstlAdr>"));
}

#[test]
fn an_address_without_a_town_stays_behind() {
    let mut payment = payment();
    set(&mut payment.recipient, "city", "");
    assert!(!written(&[], payment).contains("<PstlAdr>"));
}

#[test]
fn what_is_beyond_the_size_goes_with_the_next_file() {
    fixtures::install();
    let many = |serial| Payment {
        reference: reference::collected(1, serial).expect("one"),
        narration: "x".repeat(140),
        ..payment()
    };
    let payments: Vec<Payment> = (0..16_000).map(many).collect();
    let references: Vec<String> = payments.iter().map(|it| it.reference.clone()).collect();
    let made = assemble(&window(), payments).expect("a file");
    assert!(!made.later.is_empty() && made.content.len() < ENTRIES_MAX + 4096);
    assert_eq!(made.placed.len() + made.later.len(), references.len());
    assert_eq!(made.later.first(), references.get(made.placed.len()));
}

/// What rail.toml allows in a file, and what the simulated bank takes.
#[test]
fn as_many_of_the_longest_as_are_allowed_fit() {
    let allowed = include_str!("../rail.toml").split_once("\nentries_max = ").expect("a bound").1;
    let allowed = allowed.lines().next().expect("a line").replace('_', "");
    let allowed: u64 = allowed.parse().expect("a number");
    // What the simulated bank takes.
    assert_eq!(allowed, 10_000);
    let mut host = fixtures::host();
    host.settings.insert("ultimate_debtor".into(), "yes".into());
    host.settings.insert("purpose".into(), "SALA".into());
    double::install(host);
    let longest = |serial| {
        let mut recipient = fixtures::recipient();
        for (name, length) in
            [("name", 140), ("street", 140), ("city", 70), ("zip_code", 16), ("bic_code", 11)]
        {
            let value = if name == "bic_code" { "MALTMTMTXXX".into() } else { "x".repeat(length) };
            set(&mut recipient, name, &value);
        }
        set(&mut recipient, "iban", "MT84MALT011000012345MTLCAST001S");
        let reference = reference::collected(u64::from(u32::MAX), serial).expect("one");
        let sender = vec![field("business_name", "x".repeat(140))];
        let amount_minor = 1_000_000_000;
        let narration = "x".repeat(140);
        Payment { reference, recipient, sender, narration, amount_minor, ..payment() }
    };
    let payments: Vec<Payment> = (0..allowed).map(longest).collect();
    let made = assemble(&window(), payments).expect("a file");
    assert_eq!((made.later.len(), made.refused.len()), (0, 0));
    assert!(made.content.len() <= 12 * 1024 * 1024, "{}", made.content.len());
}

#[test]
fn windows_and_payments_that_make_no_sense() {
    fixtures::install();
    for odd in [
        Window { currency: "GBP".into(), ..window() },
        Window { exponent: 0, ..window() },
        Window { business_date: "2026-3-6".into(), ..window() },
        Window { value_date: String::new(), ..window() },
        Window { local_time: "24:00".into(), ..window() },
        Window { number: u64::MAX, ..window() },
    ] {
        assert!(assemble(&odd, vec![payment()]).is_err(), "{odd:?}");
    }
    assert!(assemble(&window(), vec![payment(), payment()]).is_err());
    assert!(assemble(&window(), Vec::new()).is_err());
    let nobody = Payment { reference: "x".into(), ..payment() };
    let made = assemble(&window(), vec![nobody]).expect("nothing");
    assert!(made.content.is_empty() && made.refused[0].why.code == "reference");
    double::install(double::Host::default());
    assert!(assemble(&window(), vec![payment()]).is_err());
}
