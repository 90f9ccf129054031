//! Amounts: pounds as JSON numbers, which are read and written as text.

use serde::de::Error as _;
use serde::ser::Error as _;
use serde::{Deserialize, Deserializer, Serialize, Serializer};
use serde_json::value::RawValue;

/// An amount in pence. In JSON it is a number of pounds: it is written with two decimals,
/// and read with two at most.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Pounds(pub i64);

impl Pounds {
    /// Reads a JSON number's own characters.
    #[must_use]
    pub fn read(text: &str) -> Option<Self> {
        let (whole, fraction) = match text.split_once('.') {
            Some((whole, fraction)) => (whole, fraction),
            None => (text, "00"),
        };
        let is_digits = |part: &str| !part.is_empty() && part.bytes().all(|b| b.is_ascii_digit());
        if !is_digits(whole) || !is_digits(fraction) || fraction.len() > 2 {
            return None;
        }
        format!("{whole}{fraction:0<2}").parse().ok().map(Self)
    }
}

impl<'de> Deserialize<'de> for Pounds {
    fn deserialize<D: Deserializer<'de>>(deserializer: D) -> Result<Self, D::Error> {
        let number = Box::<RawValue>::deserialize(deserializer)?;
        Self::read(number.get())
            .ok_or_else(|| D::Error::custom("an amount is a number with two decimals at most"))
    }
}

impl Serialize for Pounds {
    fn serialize<S: Serializer>(&self, serializer: S) -> Result<S::Ok, S::Error> {
        let text = format!("{}.{:02}", self.0 / 100, self.0 % 100);
        RawValue::from_string(text).map_err(S::Error::custom)?.serialize(serializer)
    }
}

#[cfg(test)]
mod tests {
    use super::Pounds;

    #[test]
    fn an_amount_is_read_from_its_characters() {
        for (text, pence) in [
            ("1250.50", Some(125_050)),
            ("1250.5", Some(125_050)),
            ("1250", Some(125_000)),
            ("0.01", Some(1)),
            ("0", Some(0)),
            ("1250.505", None),
            ("1250.500", None),
            ("1250.", None),
            (".50", None),
            ("-1", None),
            ("1e3", None),
            ("1.5E2", None),
            ("\"1250.50\"", None),
            ("null", None),
            ("99999999999999999999", None),
        ] {
            assert_eq!(Pounds::read(text), pence.map(Pounds), "{text}");
        }
    }

    #[test]
    fn an_amount_is_written_with_two_decimals() {
        for (pence, text) in [(1, "0.01"), (125_050, "1250.50"), (100_000_000, "1000000.00")] {
            assert_eq!(serde_json::to_string(&Pounds(pence)).expect("written"), text);
        }
    }
}
