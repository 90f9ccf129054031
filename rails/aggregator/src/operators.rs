//! The operators whose wallets are paid here.

/// An operator.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Operator {
    /// As recipients and the aggregator name it.
    pub slug: &'static str,
    /// As people call it.
    pub name: &'static str,
    /// What its wallets hold, by ISO 4217.
    pub currency: &'static str,
    /// What it was called before, as recipients may still name it.
    former: &'static [&'static str],
}

const OPERATORS: &[Operator] = &[
    // Vodafone Cash before.
    Operator { slug: "telecel", name: "Telecel Cash", currency: "GHS", former: &["vodafone"] },
    // AirtelTigo Money before, and Tigo Cash before that.
    Operator { slug: "at", name: "AT Money", currency: "GHS", former: &["airteltigo", "tigo"] },
    Operator { slug: "tkash", name: "T-Kash", currency: "KES", former: &[] },
];

/// The operator of this name, past or present, whose wallets hold the currency.
#[must_use]
pub fn find(currency: &str, name: &str) -> Option<&'static Operator> {
    let is_it =
        |it: &&Operator| it.currency == currency && (it.slug == name || it.former.contains(&name));
    OPERATORS.iter().find(is_it)
}

#[cfg(test)]
#[cfg(not(target_family = "wasm"))]
mod tests {
    use super::{OPERATORS, find};

    #[test]
    fn by_the_name_of_today_and_of_yesterday() {
        for (currency, name, slug) in [
            ("GHS", "telecel", "telecel"),
            ("GHS", "vodafone", "telecel"),
            ("GHS", "at", "at"),
            ("GHS", "airteltigo", "at"),
            ("GHS", "tigo", "at"),
            ("KES", "tkash", "tkash"),
        ] {
            assert_eq!(find(currency, name).map(|it| it.slug), Some(slug), "{name}");
        }
        for (currency, name) in [
            ("GHS", "tkash"),
            ("KES", "telecel"),
            ("GHS", "mtn"),
            ("KES", "airtel"),
            ("GHS", "Telecel"),
            ("GHS", ""),
            ("", "telecel"),
        ] {
            assert_eq!(find(currency, name), None, "{name}");
        }
    }

    #[test]
    fn a_declaration_names_each_and_is_selected_by_each_name() {
        let declarations =
            [("GHS", include_str!("../rail.toml")), ("KES", include_str!("../kenya/rail.toml"))];
        for it in OPERATORS {
            for (currency, declaration) in declarations {
                let block = format!("slug = \"{}\"\nname = \"{}\"\n", it.slug, it.name);
                assert_eq!(declaration.contains(&block), currency == it.currency, "{}", it.slug);
                let (_, values) = declaration.split_once("\nvalues = [").expect("a selection");
                let (values, _) = values.split_once(']').expect("an end");
                for name in [it.slug].iter().chain(it.former) {
                    let is_there = values.contains(&format!("\"{name}\""));
                    assert_eq!(is_there, currency == it.currency, "{name}");
                }
            }
        }
    }
}
