//! The operator's settings, as rail.toml declares them.

use railhead_rail::host;

use crate::{bic, charset, iban};

/// Values that go into messages.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Settings {
    /// Whose account pays.
    pub debtor_name: String,
    /// That account.
    pub debtor_iban: String,
    /// Its bank.
    pub debtor_bic: String,
    /// What the bank calls whoever sends files; empty where it asks for nothing.
    pub initiator_id: String,
    /// Whether a file is one debit of the account.
    pub is_batch_booked: bool,
    /// A code for what payments are for (`ExternalPurpose1Code`); empty for none.
    pub purpose: String,
    /// Whether recipients' addresses travel.
    pub has_addresses: bool,
    /// Whether senders' names travel.
    pub has_senders: bool,
}

impl Settings {
    /// The settings of this call.
    ///
    /// # Errors
    /// One is missing, or cannot stand in a message.
    pub fn read() -> Result<Self, String> {
        let debtor_name = text("debtor_name");
        if debtor_name.is_empty() || charset::cut(&debtor_name, 70) != debtor_name {
            return Err(odd("debtor_name"));
        }
        let initiator_id = text("initiator_id");
        if charset::cut(&initiator_id, 35) != initiator_id {
            return Err(odd("initiator_id"));
        }
        let purpose = text("purpose");
        let is_code = |code: &str| {
            code.len() == 4 && code.bytes().all(|b| b.is_ascii_uppercase() || b.is_ascii_digit())
        };
        if !purpose.is_empty() && !is_code(&purpose) {
            return Err(odd("purpose"));
        }
        Ok(Self {
            debtor_name,
            debtor_iban: debtor_iban()?,
            debtor_bic: bic::canonical(&text("debtor_bic")).map_err(|_| odd("debtor_bic"))?,
            initiator_id,
            is_batch_booked: text("batch_booking") != "no",
            purpose,
            has_addresses: text("creditor_address") != "none",
            has_senders: text("ultimate_debtor") == "yes",
        })
    }
}

/// The account that pays.
///
/// # Errors
/// It is missing, or none.
pub fn debtor_iban() -> Result<String, String> {
    iban::canonical(&text("debtor_iban")).map_err(|_| odd("debtor_iban"))
}

/// A setting that is one of a few words; the first of them where it is none.
#[must_use]
pub fn word(name: &str, words: &[&'static str]) -> &'static str {
    let set = text(name);
    let found = words.iter().find(|word| **word == set).or(words.first());
    found.copied().unwrap_or_default()
}

fn text(name: &str) -> String {
    host::setting(name).unwrap_or_default().trim().to_owned()
}

fn odd(name: &str) -> String {
    format!("the setting {name} is missing, or cannot stand in a message")
}

#[cfg(test)]
#[cfg(not(target_family = "wasm"))]
mod tests {
    use railhead_rail::host::double;

    use super::{Settings, word};
    use crate::fixtures;

    #[test]
    fn each_must_fit_into_its_place() {
        fixtures::install();
        assert!(Settings::read().expect("settings").is_batch_booked);
        for (name, bad) in [
            ("debtor_name", ""),
            ("debtor_name", "Müller"),
            ("debtor_iban", "DE00370400440532013000"),
            ("debtor_bic", "NOTPROVIDED"),
            ("initiator_id", "a_b"),
            ("purpose", "sal"),
        ] {
            let mut host = fixtures::host();
            host.settings.insert(name.into(), bad.into());
            double::install(host);
            assert!(Settings::read().expect_err(name).contains(name), "{name} {bad:?}");
        }
    }

    #[test]
    fn a_word_that_is_none_is_the_first() {
        fixtures::install();
        assert_eq!(word("acceptance", &["ACCP", "ACTC"]), "ACCP");
        assert_eq!(word("nothing", &["ACSC", "ACCP"]), "ACSC");
    }
}
