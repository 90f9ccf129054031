//! What differs between the countries in which MTN has wallets. Another country is a row here, a
//! block of `[[methods]]` and one of `[[operators]]` in rail.toml.
//!
//! A prefix says who gave a number out, not who serves it today: numbers are portable. So a number
//! only has to be a mobile one of the country, and whether MTN knows it is for MTN to say.

/// A country in which MTN has wallets.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Country {
    /// What its wallets hold, by ISO 4217.
    pub currency: &'static str,
    /// Decimal places of that currency's major unit.
    pub exponent: u8,
    /// As people of the country are called, for messages.
    pub adjective: &'static str,
    /// Its calling code, without a plus.
    pub calling_code: &'static str,
    /// What stands before a number that is dialled within the country.
    pub trunk: &'static str,
    /// Digits of a number without calling code and trunk prefix.
    pub digits: usize,
    /// What mobile numbers begin with, without calling code and trunk prefix.
    pub mobile: &'static [&'static str],
    /// A mobile number as it is dialled, for messages.
    pub example: &'static str,
}

/// Mobile ranges: metadata of Google's libphonenumber as of July 2026.
const COUNTRIES: &[Country] = &[Country {
    currency: "GHS",
    exponent: 2,
    adjective: "Ghanaian",
    calling_code: "233",
    trunk: "0",
    digits: 9,
    mobile: &[
        "20", "23", "24", "256", "257", "26", "27", "28", "29", "50", "53", "54", "55", "56", "57",
        "591", "592", "593", "594", "595", "596", "597", "598", "599",
    ],
    example: "0241234567",
}];

/// The country whose wallets hold this currency, if MTN's wallets there are paid here.
#[must_use]
pub fn of_currency(currency: &str) -> Option<&'static Country> {
    COUNTRIES.iter().find(|country| country.currency == currency)
}

impl Country {
    /// A number as people write it in digits with the calling code, such as `233241234567`;
    /// nothing where it is no mobile number of the country.
    #[must_use]
    pub fn mobile_number(&self, written: &str) -> Option<String> {
        let compact: String = written.chars().filter(|c| !matches!(c, ' ' | '-')).collect();
        let national = match compact.strip_prefix('+') {
            Some(international) => international.strip_prefix(self.calling_code)?,
            None => compact
                .strip_prefix(self.calling_code)
                .or_else(|| compact.strip_prefix(self.trunk))?,
        };
        let is_number =
            national.len() == self.digits && national.bytes().all(|byte| byte.is_ascii_digit());
        let is_mobile = self.mobile.iter().any(|prefix| national.starts_with(prefix));
        (is_number && is_mobile).then(|| format!("{}{national}", self.calling_code))
    }
}

#[cfg(test)]
#[cfg(not(target_family = "wasm"))]
mod tests {
    use super::{COUNTRIES, Country, of_currency};

    #[test]
    fn numbers_as_people_write_them() {
        let ghana = of_currency("GHS").expect("Ghana");
        for (written, wire) in [
            ("0241234567", "233241234567"),
            ("0201234567", "233201234567"),
            ("0271234567", "233271234567"),
            ("0591234567", "233591234567"),
            ("0561234567", "233561234567"),
            ("0257123456", "233257123456"),
            ("233241234567", "233241234567"),
            ("+233 24 123-4567", "233241234567"),
        ] {
            assert_eq!(ghana.mobile_number(written).as_deref(), Some(wire), "{written}");
        }
        for written in [
            "",
            "+",
            "241234567",
            "0302345678",
            "0581234567",
            "0590123456",
            "0255123456",
            "0211234567",
            "024123456",
            "02412345678",
            "+0241234567",
            "+233 0241234567",
            "+254712345678",
            "00233241234567",
            "024123456a",
            "०२४१२३४५६७",
        ] {
            assert_eq!(ghana.mobile_number(written), None, "{written:?}");
        }
    }

    /// Another country takes a row, and no code.
    #[test]
    fn another_country_is_a_row() {
        let uganda = Country {
            currency: "UGX",
            exponent: 0,
            adjective: "Ugandan",
            calling_code: "256",
            trunk: "0",
            digits: 9,
            mobile: &["76", "77", "78"],
            example: "0771234567",
        };
        assert_eq!(uganda.mobile_number("0771234567").as_deref(), Some("256771234567"));
        assert_eq!(uganda.mobile_number("0241234567"), None);
    }

    #[test]
    fn rows_make_sense() {
        for country in COUNTRIES {
            assert_eq!(of_currency(country.currency), Some(country));
            let example = country.mobile_number(country.example);
            assert!(example.is_some_and(|it| it.len() == country.calling_code.len() + 9));
        }
        assert_eq!(of_currency("KES"), None);
    }

    /// The whole of a country's numbers against the pattern of the metadata, digit by digit.
    #[test]
    fn ghana_has_the_ranges_of_the_metadata() {
        let ghana = of_currency("GHS").expect("Ghana");
        // 2(?:[0346-9]\d|5[67])|5(?:[03-7]\d|9[1-9]), and six digits more.
        let is_mobile = |number: u32| match (number / 100, number / 10 % 10, number % 10) {
            (2, 0 | 3 | 4 | 6..=9, _) | (2, 5, 6 | 7) | (5, 0 | 3..=7, _) => true,
            (5, 9, last) => last >= 1,
            _ => false,
        };
        for start in 0..1_000 {
            let number = format!("0{start:03}123456");
            assert_eq!(ghana.mobile_number(&number).is_some(), is_mobile(start), "{number}");
        }
    }
}
