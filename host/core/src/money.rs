//! Amounts and currencies.
//!
//! An amount is a whole number of minor units (kobo, pence, cents) in an `i64`. Arithmetic is
//! checked: what does not fit is an error, never a wrong figure.

use std::fmt;

use serde::{Deserialize, Serialize};

/// A whole number of minor units of some currency. On the wire, a string of digits.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub struct Minor(i64);

/// A sum or difference left the range of an amount.
#[derive(Debug, Clone, Copy, PartialEq, Eq, thiserror::Error)]
#[error("the amount does not fit 63 bits")]
pub struct Overflow;

impl Minor {
    /// An amount of nothing.
    pub const ZERO: Self = Self(0);

    /// From the column or the component that holds minor units.
    #[must_use]
    pub const fn new(units: i64) -> Self {
        Self(units)
    }

    /// Minor units as a plain number.
    #[must_use]
    pub const fn units(self) -> i64 {
        self.0
    }

    /// Reads an amount as requests carry it: digits only, 1 to 2^63-1.
    #[must_use]
    pub fn parse(text: &str) -> Option<Self> {
        let digits = !text.is_empty() && text.bytes().all(|byte| byte.is_ascii_digit());
        digits.then(|| text.parse().ok()).flatten().filter(|&units| units > 0).map(Self)
    }

    /// The amount in major units: `-12.05`, for a currency with so many decimal places.
    #[must_use]
    pub fn major(self, places: u8) -> String {
        let (sign, units) = (if self.0 < 0 { "-" } else { "" }, self.0.unsigned_abs());
        let base = 10_u64.pow(places.into());
        match places {
            0 => format!("{sign}{units}"),
            _ => format!("{sign}{}.{:0width$}", units / base, units % base, width = places.into()),
        }
    }

    /// Sum, where it fits.
    ///
    /// # Errors
    /// [`Overflow`].
    pub fn plus(self, other: Self) -> Result<Self, Overflow> {
        self.0.checked_add(other.0).map(Self).ok_or(Overflow)
    }

    /// Difference, where it fits.
    ///
    /// # Errors
    /// [`Overflow`].
    pub fn minus(self, other: Self) -> Result<Self, Overflow> {
        self.0.checked_sub(other.0).map(Self).ok_or(Overflow)
    }

    /// The same amount in the other direction.
    ///
    /// # Errors
    /// [`Overflow`] for the one number that has no opposite.
    pub fn negated(self) -> Result<Self, Overflow> {
        self.0.checked_neg().map(Self).ok_or(Overflow)
    }

    /// Sum of many.
    ///
    /// # Errors
    /// [`Overflow`].
    pub fn total(amounts: impl IntoIterator<Item = Self>) -> Result<Self, Overflow> {
        amounts.into_iter().try_fold(Self::ZERO, Self::plus)
    }

    /// Less than nothing.
    #[must_use]
    pub const fn is_negative(self) -> bool {
        self.0 < 0
    }
}

impl fmt::Display for Minor {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "{}", self.0)
    }
}

impl Serialize for Minor {
    fn serialize<S: serde::Serializer>(&self, serializer: S) -> Result<S::Ok, S::Error> {
        serializer.collect_str(self)
    }
}

/// As it was written, for what this program keeps: requests have [`Minor::parse`].
impl<'de> Deserialize<'de> for Minor {
    fn deserialize<D: serde::Deserializer<'de>>(deserializer: D) -> Result<Self, D::Error> {
        let text = String::deserialize(deserializer)?;
        text.parse().map(Self).map_err(serde::de::Error::custom)
    }
}

impl From<Overflow> for crate::error::Problem {
    fn from(cause: Overflow) -> Self {
        Self::because(crate::error::ErrorCode::InvalidAmount, "The amount is too large.")
            .caused_by(cause)
    }
}

/// An ISO 4217 code: three capital letters. Which ones can be used is for the loaded rails.
#[derive(Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub struct Currency([u8; 3]);

impl Currency {
    /// Three capital letters, or nothing.
    #[must_use]
    pub fn parse(text: &str) -> Option<Self> {
        let letters: [u8; 3] = text.as_bytes().try_into().ok()?;
        letters.iter().all(u8::is_ascii_uppercase).then_some(Self(letters))
    }

    /// The three letters.
    #[must_use]
    pub fn as_str(&self) -> &str {
        std::str::from_utf8(&self.0).unwrap_or("XXX")
    }
}

impl fmt::Display for Currency {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(self.as_str())
    }
}

impl fmt::Debug for Currency {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(self.as_str())
    }
}

impl Serialize for Currency {
    fn serialize<S: serde::Serializer>(&self, serializer: S) -> Result<S::Ok, S::Error> {
        serializer.serialize_str(self.as_str())
    }
}

impl<'de> Deserialize<'de> for Currency {
    fn deserialize<D: serde::Deserializer<'de>>(deserializer: D) -> Result<Self, D::Error> {
        let text = String::deserialize(deserializer)?;
        Self::parse(&text).ok_or_else(|| serde::de::Error::custom("not a currency code"))
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn amounts_are_digits_only() {
        for text in ["", "0", "-1", "+1", "1.0", "1e3", " 1", "9223372036854775808", "١"] {
            assert_eq!(Minor::parse(text), None, "{text:?}");
        }
        assert_eq!(Minor::parse("9223372036854775807"), Some(Minor::new(i64::MAX)));
        assert_eq!(Minor::parse("007"), Some(Minor::new(7)));
    }

    #[test]
    fn arithmetic_is_checked() {
        assert_eq!(Minor::new(i64::MAX).plus(Minor::new(1)), Err(Overflow));
        assert_eq!(Minor::new(i64::MIN).minus(Minor::new(1)), Err(Overflow));
        assert_eq!(Minor::new(i64::MIN).negated(), Err(Overflow));
        assert_eq!(Minor::total([Minor::new(2), Minor::new(3)]), Ok(Minor::new(5)));
    }

    #[test]
    fn currencies_are_three_capitals() {
        assert!(Currency::parse("NGN").is_some());
        for text in ["ngn", "NG", "NGNN", "N1N", "ÉU"] {
            assert!(Currency::parse(text).is_none(), "{text}");
        }
    }

    #[test]
    fn amounts_are_written_in_major_units() {
        for (units, places, written) in [
            (0, 2, "0.00"),
            (5, 2, "0.05"),
            (-5, 2, "-0.05"),
            (123_456, 2, "1234.56"),
            (123_456, 0, "123456"),
            (i64::MIN, 2, "-92233720368547758.08"),
        ] {
            assert_eq!(Minor::new(units).major(places), written);
        }
    }
}
