//! How accounts are named: in orders as IBAN, as BBAN or by country, in webhooks as IBAN and BBAN.

use serde::Serialize;

/// Letters of the bank that every account of this simulation is at.
const BANK: &str = "CLRB";

/// An account in the United Kingdom.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Account {
    /// Six digits.
    pub sort_code: String,
    /// Eight digits.
    pub number: String,
}

/// An account's two long names.
#[derive(Debug, Serialize)]
#[serde(rename_all = "UPPERCASE")]
pub struct LongNames {
    /// With country and check digits.
    pub iban: String,
    /// Without.
    pub bban: String,
}

impl Account {
    /// Sort code and number in one: 14 digits.
    #[must_use]
    pub fn read_digits(text: &str) -> Option<Self> {
        if text.len() != 14 || !text.bytes().all(|byte| byte.is_ascii_digit()) {
            return None;
        }
        let (sort_code, number) = text.split_at(6);
        Some(Self { sort_code: sort_code.to_owned(), number: number.to_owned() })
    }

    /// The bank's four letters and the 14 digits.
    #[must_use]
    pub fn read_bban(text: &str) -> Option<Self> {
        let (bank, digits) = text.split_at_checked(4)?;
        let is_bank = bank.bytes().all(|byte| byte.is_ascii_uppercase());
        Self::read_digits(digits).filter(|_| is_bank)
    }

    /// `GB`, check digits that hold, and a BBAN.
    #[must_use]
    pub fn read_iban(text: &str) -> Option<Self> {
        let (start, bban) = text.split_at_checked(4)?;
        let account = Self::read_bban(bban)?;
        (start == format!("GB{}", check_digits(bban))).then_some(account)
    }

    /// `GBR` and the 14 digits, as ClearBank's clients write it.
    #[must_use]
    pub fn read_by_country(text: &str) -> Option<Self> {
        Self::read_digits(text.strip_prefix("GBR")?)
    }

    /// The 14 digits.
    #[must_use]
    pub fn digits(&self) -> String {
        format!("{}{}", self.sort_code, self.number)
    }
}

/// The long names of an account that is known by its 14 digits.
#[must_use]
pub fn long_names(digits: &str) -> LongNames {
    let bban = format!("{BANK}{digits}");
    LongNames { iban: format!("GB{}{bban}", check_digits(&bban)), bban }
}

/// ISO 13616: a letter counts as 10 to 35, and the whole, `GB00` behind, leaves 1 by 97.
fn check_digits(bban: &str) -> String {
    let remainder = format!("{bban}GB00").bytes().fold(0_u32, |remainder, byte| match byte {
        b'0'..=b'9' => (remainder * 10 + u32::from(byte - b'0')) % 97,
        _ => (remainder * 100 + 10 + u32::from(byte.wrapping_sub(b'A'))) % 97,
    });
    format!("{:02}", 98 - remainder)
}

#[cfg(test)]
mod tests {
    use super::{Account, long_names};

    #[test]
    fn three_ways_to_write_an_account() {
        let account = Account { sort_code: "601613".to_owned(), number: "31926819".to_owned() };
        // The example of the IBAN registry.
        assert_eq!(Account::read_iban("GB29NWBK60161331926819"), Some(account.clone()));
        assert_eq!(Account::read_bban("NWBK60161331926819"), Some(account.clone()));
        assert_eq!(Account::read_by_country("GBR60161331926819"), Some(account.clone()));
        assert_eq!(account.digits(), "60161331926819");
        let names = long_names("60161331926819");
        assert_eq!(Account::read_iban(&names.iban), Some(account));
        assert_eq!(names.bban, "CLRB60161331926819");
    }

    #[test]
    fn what_is_no_account() {
        for text in ["GB28NWBK60161331926819", "GB29nwbk60161331926819", "GB29", "", "£££££££££££"]
        {
            assert_eq!(Account::read_iban(text), None, "{text}");
        }
        for text in ["60161331926819", "GBR6016133192681", "GBR6016133192681X", "GBR60-16-13 319"] {
            assert_eq!(Account::read_by_country(text), None, "{text}");
        }
    }
}
