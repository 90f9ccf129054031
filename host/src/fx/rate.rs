//! Rates, and what they make of amounts.
//!
//! A rate `r` says how many major units of the currency that is bought one major unit of the
//! currency that is sold comes to. Where the first has `b` decimal places and the second `s`, a
//! minor unit comes to `ρ = r · 10^(b − s)` minor units, and
//!
//! - of an exact amount that is sold, the wallet is credited `⌊sold · ρ⌋`;
//! - for an exact amount that is bought, the wallet is debited `⌈bought / ρ⌉`.
//!
//! What is lost to rounding is less than one minor unit, and stays with the platform both times.
//! So with rates there and back whose product is at most one, nobody gains by going round:
//! `⌊⌊x · ρ⌋ · ρ'⌋ ≤ x · ρ · ρ' ≤ x`, and `⌈⌈y / ρ⌉ / ρ'⌉ ≥ y / (ρ · ρ') ≥ y`.
//!
//! Everything is done in whole numbers: a rate is a count of 10⁻¹².

use std::fmt;

use serde::{Deserialize, Deserializer, Serialize, Serializer};

use crate::money::{Minor, Overflow};

/// Decimal places of a rate.
const PLACES: u32 = 12;
/// One, in units of a rate.
const ONE: u128 = 10_u128.pow(PLACES);
/// Digits before the point.
const WHOLE_DIGITS_MAX: usize = 6;
/// A whole, in basis points.
pub const WHOLE_BPS: i64 = 10_000;

/// How much of one currency a unit of another comes to: above zero, below a million, with up to
/// twelve decimal places.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord)]
pub struct Rate(u64);

impl Rate {
    /// Reads a decimal: `1550.25`. No sign, no exponent, no empty side of the point.
    #[must_use]
    pub fn parse(text: &str) -> Option<Self> {
        let (whole, part) = text.split_once('.').map_or((text, None), |(a, b)| (a, Some(b)));
        let is_digits = |text: &str, most: usize| {
            !text.is_empty() && text.len() <= most && text.bytes().all(|b| b.is_ascii_digit())
        };
        let places = PLACES as usize;
        if !is_digits(whole, WHOLE_DIGITS_MAX) || !part.is_none_or(|part| is_digits(part, places)) {
            return None;
        }
        let digits = format!("{whole}{:0<places$}", part.unwrap_or_default());
        digits.parse().ok().filter(|units| *units > 0).map(Self)
    }

    /// The rate with a share of it kept back, in basis points, rounded down; nothing where nothing
    /// is left.
    #[must_use]
    pub fn less(self, bps: i64) -> Option<Self> {
        let left = u128::try_from(WHOLE_BPS.checked_sub(bps)?).ok()?;
        let whole = u128::from(WHOLE_BPS.unsigned_abs());
        Self::of(u128::from(self.0).checked_mul(left)? / whole)
    }

    /// The rate in the other direction, rounded down; nothing where it has no place among rates.
    #[must_use]
    pub fn inverse(self) -> Option<Self> {
        Self::of(ONE * ONE / u128::from(self.0))
    }

    /// This rate and then another one, rounded down; nothing where that has no place among rates.
    #[must_use]
    pub fn then(self, next: Self) -> Option<Self> {
        Self::of(u128::from(self.0) * u128::from(next.0) / ONE)
    }

    fn of(units: u128) -> Option<Self> {
        let most = 10_u128.pow(PLACES) * 10_u128.pow(u32::try_from(WHOLE_DIGITS_MAX).ok()?);
        u64::try_from(units).ok().filter(|units| *units > 0 && u128::from(*units) < most).map(Self)
    }

    /// Whether who converts at this rate and back at the other one has more than before.
    #[must_use]
    pub fn gains_with(self, back: Self) -> bool {
        u128::from(self.0) * u128::from(back.0) > ONE * ONE
    }

    /// The same where he goes by way of a third currency.
    #[must_use]
    pub fn gains_by_way(self, second: Self, third: Self) -> bool {
        u128::from(self.0) * u128::from(second.0) > ONE * ONE * ONE / u128::from(third.0)
    }

    /// Whether another rate is no further from this one than so many basis points of the smaller one:
    /// the two directions of a pair are judged alike.
    #[must_use]
    pub fn moves_within(self, next: Self, bps: u32) -> bool {
        let apart = u128::from(self.0.abs_diff(next.0)) * u128::from(WHOLE_BPS.unsigned_abs());
        apart <= u128::from(self.0.min(next.0)) * u128::from(bps)
    }

    /// What an exact amount that is sold comes to: `⌊sold · ρ⌋`. `shift` is by how many decimal
    /// places the currency that is bought has more.
    ///
    /// # Errors
    /// It does not fit.
    pub fn bought(self, sold: Minor, shift: i32) -> Result<Minor, Overflow> {
        let (up, down) = powers(shift)?;
        let whole = units(sold)?.checked_mul(self.0.into()).ok_or(Overflow)?;
        let whole = whole.checked_mul(up).ok_or(Overflow)?;
        minor(whole / ONE.checked_mul(down).ok_or(Overflow)?)
    }

    /// What has to be sold for an exact amount that is bought: `⌈bought / ρ⌉`.
    ///
    /// # Errors
    /// It does not fit.
    pub fn sold(self, bought: Minor, shift: i32) -> Result<Minor, Overflow> {
        let (up, down) = powers(shift)?;
        let whole = units(bought)?.checked_mul(ONE).ok_or(Overflow)?;
        let whole = whole.checked_mul(down).ok_or(Overflow)?;
        minor(whole.div_ceil(u128::from(self.0).checked_mul(up).ok_or(Overflow)?))
    }
}

fn powers(shift: i32) -> Result<(u128, u128), Overflow> {
    let power = |by: u32| 10_u128.checked_pow(by).ok_or(Overflow);
    let by = power(shift.unsigned_abs())?;
    Ok(if shift < 0 { (1, by) } else { (by, 1) })
}

fn units(amount: Minor) -> Result<u128, Overflow> {
    u128::try_from(amount.units()).map_err(|_| Overflow)
}

fn minor(units: u128) -> Result<Minor, Overflow> {
    i64::try_from(units).map(Minor::new).map_err(|_| Overflow)
}

impl fmt::Display for Rate {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let (whole, part) = (u128::from(self.0) / ONE, u128::from(self.0) % ONE);
        let part = format!("{part:012}");
        match part.trim_end_matches('0') {
            "" => write!(f, "{whole}"),
            part => write!(f, "{whole}.{part}"),
        }
    }
}

impl Serialize for Rate {
    fn serialize<S: Serializer>(&self, serializer: S) -> Result<S::Ok, S::Error> {
        serializer.collect_str(self)
    }
}

impl<'de> Deserialize<'de> for Rate {
    fn deserialize<D: Deserializer<'de>>(deserializer: D) -> Result<Self, D::Error> {
        let text = String::deserialize(deserializer)?;
        Self::parse(&text).ok_or_else(|| serde::de::Error::custom("not a rate"))
    }
}

#[cfg(test)]
mod tests {
    use proptest::prelude::*;

    use super::*;

    fn rate(text: &str) -> Rate {
        Rate::parse(text).unwrap_or_else(|| panic!("{text}"))
    }

    #[test]
    fn rates_are_plain_decimals() {
        for (text, shown) in [
            ("1", "1"),
            ("1550.25", "1550.25"),
            ("0.000645", "0.000645"),
            ("007.500", "7.5"),
            ("999999.999999999999", "999999.999999999999"),
            ("0.000000000001", "0.000000000001"),
        ] {
            assert_eq!(rate(text).to_string(), shown);
        }
        for text in [
            "",
            "0",
            "0.0",
            "-1",
            "+1",
            ".5",
            "5.",
            "1e3",
            "1,5",
            " 1",
            "1000000",
            "0.0000000000001",
        ] {
            assert_eq!(Rate::parse(text), None, "{text:?}");
        }
    }

    #[test]
    fn amounts_are_rounded_for_the_platform() {
        let naira = rate("1550.25");
        assert_eq!(naira.bought(Minor::new(1), 0), Ok(Minor::new(1550)));
        assert_eq!(naira.bought(Minor::new(4), 0), Ok(Minor::new(6201)));
        assert_eq!(naira.sold(Minor::new(1550), 0), Ok(Minor::new(1)));
        assert_eq!(naira.sold(Minor::new(1551), 0), Ok(Minor::new(2)));
        // A yen has no minor unit, a dinar a thousand.
        assert_eq!(rate("151.5").bought(Minor::new(100), -2), Ok(Minor::new(151)));
        assert_eq!(rate("151.5").sold(Minor::new(151), -2), Ok(Minor::new(100)));
        assert_eq!(rate("0.307").bought(Minor::new(100), 1), Ok(Minor::new(307)));
        assert_eq!(rate("0.307").sold(Minor::new(308), 1), Ok(Minor::new(101)));
        assert_eq!(rate("2").bought(Minor::new(i64::MAX), 0), Err(Overflow));
        assert_eq!(rate("0.5").sold(Minor::new(i64::MAX), 0), Err(Overflow));
        assert_eq!(rate("1").bought(Minor::new(-1), 0), Err(Overflow));
    }

    #[test]
    fn a_spread_and_the_other_direction_are_rounded_down() {
        assert_eq!(rate("1550").less(50), Some(rate("1542.25")));
        assert_eq!(rate("0.000000000003").less(5_000), Some(rate("0.000000000001")));
        assert_eq!(rate("0.000000000001").less(1), None);
        assert_eq!(rate("1").less(WHOLE_BPS), None);
        assert_eq!(rate("1550").inverse(), Some(rate("0.000645161290")));
        assert_eq!(rate("0.000000000001").inverse(), None);
        assert_eq!(rate("1.5").then(rate("0.5")), Some(rate("0.75")));
    }

    #[test]
    fn a_way_by_a_third_currency_gains_by_the_last_digit() {
        let gains = |a: &str, b: &str, c: &str| rate(a).gains_by_way(rate(b), rate(c));
        assert!(!gains("2", "0.5", "1"));
        assert!(gains("2", "0.5", "1.000000000001"));
        assert!(!gains("0.000000000001", "999999", "999999"));
        assert!(gains("999999.999999999999", "999999.999999999999", "999999.999999999999"));
        assert!(!gains("3", "0.333333333333", "1"));
    }

    #[test]
    fn a_move_is_judged_alike_in_both_directions() {
        assert!(rate("100").moves_within(rate("110"), 1_000));
        assert!(rate("110").moves_within(rate("100"), 1_000));
        assert!(!rate("100").moves_within(rate("110.000000000001"), 1_000));
        assert!(!rate("100").moves_within(rate("90.9"), 1_000));
        assert!(!rate("0.000000000001").moves_within(rate("0.000000000002"), 9_999));
        assert!(rate("1").moves_within(rate("1"), 1));
        assert!(rate("1").moves_within(rate("400000"), u32::MAX));
    }

    fn rates() -> impl Strategy<Value = Rate> {
        (1..10_u64.pow(18), 0..15_u32).prop_map(|(units, by)| Rate((units / 10_u64.pow(by)).max(1)))
    }

    proptest! {
        #[test]
        fn what_is_written_is_read(rate in rates()) {
            prop_assert_eq!(Rate::parse(&rate.to_string()), Some(rate));
        }

        /// Less than one minor unit is lost, and it is the merchant's.
        #[test]
        fn rounding_is_less_than_a_unit(rate in rates(), amount in 1..i64::MAX, shift in -3..=3_i32) {
            let exact = |sold: i64| {
                let (up, down) = powers(shift).expect("small");
                // The numerator and the denominator of sold · ρ.
                (u128::try_from(sold).ok()?.checked_mul(rate.0.into())?.checked_mul(up)).zip(ONE.checked_mul(down))
            };
            if let (Ok(bought), Some((above, below))) = (rate.bought(Minor::new(amount), shift), exact(amount)) {
                let bought = u128::try_from(bought.units()).expect("no less than nothing");
                prop_assert!(bought * below <= above && above < (bought + 1) * below);
            }
            if let Ok(sold) = rate.sold(Minor::new(amount), shift) {
                // What does not fit is more than enough.
                prop_assert!(!rate.bought(sold, shift).is_ok_and(|bought| bought.units() < amount));
                if sold.units() > 1 {
                    prop_assert!(!rate.bought(Minor::new(sold.units() - 1), shift)
                        .is_ok_and(|bought| bought.units() >= amount));
                }
            }
        }

        /// More buys no less.
        #[test]
        fn more_is_never_less(rate in rates(), a in 1..i64::MAX, b in 1..i64::MAX, shift in -3..=3_i32) {
            let (less, more) = (a.min(b), a.max(b));
            if let (Ok(less), Ok(more)) =
                (rate.bought(Minor::new(less), shift), rate.bought(Minor::new(more), shift))
            {
                prop_assert!(less <= more);
            }
            if let (Ok(less), Ok(more)) =
                (rate.sold(Minor::new(less), shift), rate.sold(Minor::new(more), shift))
            {
                prop_assert!(less <= more);
            }
        }

        /// With rates that are not inverted nobody gains by going round, on either basis.
        #[test]
        fn there_and_back_gains_nothing(
            rate in rates(), spread in 0..2_000_i64, amount in 1..i64::MAX, shift in -3..=3_i32,
        ) {
            let Some(back) = rate.inverse().and_then(|back| back.less(spread)) else { return Ok(()) };
            prop_assert!(!rate.gains_with(back));
            if let Ok(there) = rate.bought(Minor::new(amount), shift)
                && let Ok(again) = back.bought(there, -shift)
            {
                prop_assert!(again.units() <= amount);
            }
            // Selling what buys the amount, and selling what buys that.
            if let Ok(there) = rate.sold(Minor::new(amount), shift)
                && let Ok(again) = back.sold(there, -shift)
            {
                prop_assert!(again.units() >= amount);
            }
        }
    }
}
