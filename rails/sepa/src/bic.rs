//! BIC (ISO 9362:2022): eight characters for a party, and three more for a branch of it.

use crate::iban;

/// Territories with country codes of their own, whose accounts have the IBANs of another country
/// (EPC409-09, version 8.0 of 24 December 2025).
const TERRITORIES: &[&str] =
    &["AX", "BL", "GF", "GG", "GP", "IM", "JE", "MF", "MQ", "PM", "RE", "YT"];

/// What stands where a message has no BIC. It has the shape of one, at a bank in Romania.
const NOT_PROVIDED: &str = "NOTPROVIDED";

/// What is wrong with a BIC.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Fault {
    /// It does not look like one.
    Shape,
    /// No bank that SEPA reaches has it.
    Country,
}

/// The BIC in capitals.
///
/// # Errors
/// No bank that SEPA reaches can have it.
pub fn canonical(text: &str) -> Result<String, Fault> {
    let bic = text.trim().to_ascii_uppercase();
    let bytes = bic.as_bytes();
    let is_shaped = matches!(bytes.len(), 8 | 11)
        && bytes.iter().all(u8::is_ascii_alphanumeric)
        && bytes[4..6].iter().all(u8::is_ascii_uppercase)
        && bic != NOT_PROVIDED;
    if !is_shaped {
        return Err(Fault::Shape);
    }
    let country = &bic[4..6];
    let is_reached = iban::is_sepa(country) || TERRITORIES.contains(&country);
    if is_reached { Ok(bic) } else { Err(Fault::Country) }
}

#[cfg(test)]
#[cfg(not(target_family = "wasm"))]
mod tests {
    use super::{Fault, canonical};

    #[test]
    fn banks() {
        for bic in ["DEUTDEFF", "DEUTDEFF500", "E097FRXX", "CRLYGPGX", "NDEAAX22"] {
            assert_eq!(canonical(bic).as_deref(), Ok(bic));
        }
        assert_eq!(canonical(" deutdeffxxx ").as_deref(), Ok("DEUTDEFFXXX"));
    }

    #[test]
    fn what_no_bank_has() {
        for (bic, fault) in [
            ("", Fault::Shape),
            ("DEUTDEF", Fault::Shape),
            ("DEUTDEFF5", Fault::Shape),
            ("DEUTDEFF5000", Fault::Shape),
            ("DEUT1EFF", Fault::Shape),
            ("DEUTDÉFF", Fault::Shape),
            ("DEUT-EFF", Fault::Shape),
            ("NOTPROVIDED", Fault::Shape),
            ("DEUTXXFF", Fault::Country),
            ("E097AEXX", Fault::Country),
            ("CHASUS33", Fault::Country),
        ] {
            assert_eq!(canonical(bic), Err(fault), "{bic}");
        }
    }
}
