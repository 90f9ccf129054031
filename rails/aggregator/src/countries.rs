//! Mobile numbers, by country.
//!
//! A prefix says who gave a number out, not who serves it today: numbers are portable in both
//! countries. So a number only has to be a mobile one of the country. Whose wallet it is, the
//! recipient says; whether that is so, the operator.

/// A country whose operators are paid here.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Country {
    /// What its wallets hold, by ISO 4217.
    pub currency: &'static str,
    /// The least amount that its wallets hold, in minor units. All amounts are multiples of it.
    pub step_minor: i64,
    /// As people of the country are called, for messages.
    pub adjective: &'static str,
    /// Its calling code, without a plus.
    pub calling_code: &'static str,
    /// What mobile numbers begin with, without calling code and trunk prefix.
    mobile: &'static [&'static str],
    /// A mobile number as it is dialled, for messages.
    pub example: &'static str,
}

/// What stands before a number that is dialled within the country, in both of them.
const TRUNK: char = '0';
/// Digits of a number without calling code and trunk prefix, in both of them.
const DIGITS: usize = 9;

/// Mobile ranges: metadata of Google's libphonenumber as of July 2026.
const COUNTRIES: &[Country] = &[
    Country {
        currency: "GHS",
        step_minor: 1,
        adjective: "Ghanaian",
        calling_code: "233",
        mobile: &[
            "20", "23", "24", "256", "257", "26", "27", "28", "29", "50", "53", "54", "55", "56",
            "57", "591", "592", "593", "594", "595", "596", "597", "598", "599",
        ],
        example: "0201234567",
    },
    Country {
        currency: "KES",
        // Whole shillings: whether T-Kash takes cents is not public.
        step_minor: 100,
        adjective: "Kenyan",
        calling_code: "254",
        mobile: &[
            "7", "100", "101", "102", "103", "104", "105", "106", "107", "108", "11", "120", "121",
            "124", "130", "140", "141", "142", "143", "144", "145", "18",
        ],
        example: "0771234567",
    },
];

/// The country whose wallets hold this currency.
#[must_use]
pub fn of_currency(currency: &str) -> Option<&'static Country> {
    COUNTRIES.iter().find(|country| country.currency == currency)
}

impl Country {
    /// A number as people write it in twelve digits with the calling code, such as
    /// `233201234567`; nothing where it is no mobile number of the country.
    #[must_use]
    pub fn mobile_number(&self, written: &str) -> Option<String> {
        let compact: String = written.chars().filter(|c| !matches!(c, ' ' | '-')).collect();
        let national = match compact.strip_prefix('+') {
            Some(international) => international.strip_prefix(self.calling_code)?,
            None => {
                compact.strip_prefix(self.calling_code).or_else(|| compact.strip_prefix(TRUNK))?
            }
        };
        let is_number = national.len() == DIGITS && national.bytes().all(|b| b.is_ascii_digit());
        let is_mobile = self.mobile.iter().any(|prefix| national.starts_with(prefix));
        (is_number && is_mobile).then(|| format!("{}{national}", self.calling_code))
    }
}

#[cfg(test)]
#[cfg(not(target_family = "wasm"))]
mod tests {
    use super::{COUNTRIES, of_currency};

    #[test]
    fn numbers_as_people_write_them() {
        for (currency, written, canonical) in [
            ("GHS", "0201234567", "233201234567"),
            ("GHS", "0241234567", "233241234567"),
            ("GHS", "0257123456", "233257123456"),
            ("GHS", "233271234567", "233271234567"),
            ("GHS", "+233 50 123-4567", "233501234567"),
            ("KES", "0771234567", "254771234567"),
            ("KES", "0110123456", "254110123456"),
            ("KES", "0120123456", "254120123456"),
            ("KES", "254712345678", "254712345678"),
            ("KES", "+254 771 234-567", "254771234567"),
        ] {
            let country = of_currency(currency).expect("a country");
            assert_eq!(country.mobile_number(written).as_deref(), Some(canonical), "{written}");
        }
        for written in [
            "",
            "+",
            "201234567",
            "0302345678",
            "0581234567",
            "0590123456",
            "0255123456",
            "0202345678",
            "020123456",
            "02012345678",
            "+0201234567",
            "+233 0201234567",
            "00233201234567",
            "020123456a",
            "०२०१२३४५६७",
            "0122123456",
            "0109123456",
            "0146123456",
            "0800123456",
        ] {
            // A Ghanaian number is no Kenyan one.
            let kenya = of_currency("KES").expect("Kenya");
            assert_eq!(kenya.mobile_number(written), None, "{written:?}");
        }
        let ghana = of_currency("GHS").expect("Ghana");
        for written in ["0771234567", "+254771234567", "0255123456", "0590123456", "020123456"] {
            assert_eq!(ghana.mobile_number(written), None, "{written:?}");
        }
    }

    #[test]
    fn rows_make_sense() {
        for country in COUNTRIES {
            assert_eq!(of_currency(country.currency), Some(country));
            let example = country.mobile_number(country.example).expect("a number");
            assert_eq!((example.len(), 100 % country.step_minor), (12, 0));
        }
        assert_eq!(of_currency("NGN"), None);
    }

    /// All numbers of a country against the pattern of the metadata, digit by digit.
    #[test]
    fn ranges_are_those_of_the_metadata() {
        // 2(?:[0346-9]\d|5[67])|5(?:[03-7]\d|9[1-9]), and six digits more.
        let ghana = |number: u32| match (number / 100, number / 10 % 10, number % 10) {
            (2, 0 | 3 | 4 | 6..=9, _) | (2, 5, 6 | 7) | (5, 0 | 3..=7, _) => true,
            (5, 9, last) => last >= 1,
            _ => false,
        };
        // 1(?:0[0-8]|[18]\d|2[014]|30|4[0-5])|7\d\d, and six digits more.
        let kenya = |number: u32| match (number / 100, number / 10 % 10, number % 10) {
            (7, ..) | (1, 1 | 8, _) => true,
            (1, 0, last) => last <= 8,
            (1, 2, last) => matches!(last, 0 | 1 | 4),
            (1, 3, last) => last == 0,
            (1, 4, last) => last <= 5,
            _ => false,
        };
        for start in 0..1_000 {
            let number = format!("0{start:03}123456");
            for (currency, is_mobile) in [("GHS", ghana(start)), ("KES", kenya(start))] {
                let country = of_currency(currency).expect("a country");
                assert_eq!(country.mobile_number(&number).is_some(), is_mobile, "{number}");
            }
        }
    }
}
