//! The two declarations say the same wherever they do not speak of a country.

use crate::countries::of_currency;

const GHANA: &str = include_str!("../rail.toml");
const KENYA: &str = include_str!("../kenya/rail.toml");

/// What stands from one text to another.
fn between<'a>(text: &'a str, from: &str, to: &str) -> &'a str {
    let (_, rest) = text.split_once(from).expect("a beginning");
    rest.split_once(to).expect("an end").0
}

#[test]
fn what_is_the_same_in_both_countries() {
    for (from, to) in [
        ("# ---- sender", "[scenarios.values]"),
        ("[recipient]", "example ="),
        ("[scenarios.own]", "\nwallet_full"),
    ] {
        assert_eq!(between(GHANA, from, to), between(KENYA, from, to), "{from}");
    }
}

#[test]
fn sandbox_numbers_are_canonical_and_choose_the_same() {
    let chosen = |text: &str, currency: &str| -> Vec<(String, String)> {
        let country = of_currency(currency).expect("a country");
        let lines = between(text, "[scenarios.values]\n", "\n[scenarios.own]").lines();
        lines
            .map(|line| {
                let mut parts = line.split('"');
                let (number, scenario) = (parts.nth(1).expect("a key"), parts.nth(1));
                assert_eq!(country.mobile_number(number).as_deref(), Some(number));
                (number[9..].to_owned(), scenario.expect("a scenario").to_owned())
            })
            .collect()
    };
    let ghana = chosen(GHANA, "GHS");
    assert!(ghana.len() > 20);
    assert_eq!(ghana, chosen(KENYA, "KES"));
}

#[test]
fn examples_and_steps_are_those_of_the_country() {
    for (text, currency) in [(GHANA, "GHS"), (KENYA, "KES")] {
        let country = of_currency(currency).expect("a country");
        assert!(text.contains(&format!("\ncurrency = \"{currency}\"\n")));
        assert!(text.contains(&format!("\nexample = \"{}\"\n", country.example)));
        assert_eq!(text.contains("\nstep = 100\n"), country.step_minor == 100);
    }
}
