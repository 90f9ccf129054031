//! Percentages without floats.

/// A percentage in millionths: 1 % is 10,000.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct Percent(i64);

impl Percent {
    /// Reads a decimal with at most four places, from 0 to 100.
    #[must_use]
    pub fn parse(text: &str) -> Option<Self> {
        let (whole, places) = text.split_once('.').unwrap_or((text, "0"));
        let digits = |part: &str| !part.is_empty() && part.bytes().all(|b| b.is_ascii_digit());
        if !digits(whole) || !digits(places) || places.len() > 4 || whole.len() > 3 {
            return None;
        }
        let millionths =
            whole.parse::<i64>().ok()? * 10_000 + format!("{places:0<4}").parse::<i64>().ok()?;
        (millionths <= 1_000_000).then_some(Self(millionths))
    }

    /// This share of an amount that is not negative, rounded half to even: over many payments
    /// the rounding favours neither side.
    #[must_use]
    pub fn of(self, amount_minor: i64) -> Option<i64> {
        let product = i128::from(amount_minor) * i128::from(self.0);
        let (whole, rest) = (product / 1_000_000, product % 1_000_000);
        let up = rest > 500_000 || (rest == 500_000 && whole % 2 == 1);
        i64::try_from(whole + i128::from(up)).ok()
    }
}

impl<'de> serde::Deserialize<'de> for Percent {
    fn deserialize<D: serde::Deserializer<'de>>(deserializer: D) -> Result<Self, D::Error> {
        let text = String::deserialize(deserializer)?;
        Self::parse(&text).ok_or_else(|| {
            serde::de::Error::custom("must be a decimal from 0 to 100 with at most four places")
        })
    }
}

#[cfg(all(test, not(target_family = "wasm")))]
mod tests {
    use proptest::prelude::*;

    use super::Percent;

    #[test]
    fn reads_decimals() {
        for (text, millionths) in
            [("0", 0), ("7.5", 75_000), ("1", 10_000), ("0.0001", 1), ("100", 1_000_000)]
        {
            assert_eq!(Percent::parse(text), Some(Percent(millionths)), "{text}");
        }
        for text in ["", ".5", "5.", "-1", "1e2", "100.0001", "0.00001", "1,5", "٧"] {
            assert_eq!(Percent::parse(text), None, "{text}");
        }
    }

    #[test]
    fn halves_go_to_the_even_side() {
        let half = Percent::parse("50").expect("valid");
        let rounded: Vec<_> = [1, 3, 5, 7].into_iter().map(|n| half.of(n)).collect();
        assert_eq!(rounded, [Some(0), Some(2), Some(2), Some(4)]);
    }

    proptest! {
        #[test]
        fn never_more_than_half_a_unit_off(amount in 0..=i64::MAX, millionths in 0..=1_000_000i64) {
            let share = Percent(millionths).of(amount).expect("at most the amount");
            let exact = i128::from(amount) * i128::from(millionths);
            prop_assert!((i128::from(share) * 1_000_000 - exact).abs() <= 500_000);
        }
    }
}
