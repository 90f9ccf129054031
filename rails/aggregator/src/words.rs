//! Amounts and texts as they are sent.

/// Decimal places of every currency that is paid here.
pub const EXPONENT: u8 = 2;
/// Most characters of the text for the recipient.
const NARRATION_CHARS_MAX: usize = 100;
/// What stands where nothing of it is left: a text must not be empty.
const NARRATION: &str = "Payment";

/// An amount in major units with both decimals, such as `1250.50`; nothing where there is nothing
/// to pay.
#[must_use]
pub fn amount(amount_minor: i64) -> Option<String> {
    let (whole, fraction) = (amount_minor / 100, amount_minor % 100);
    (amount_minor > 0).then(|| format!("{whole}.{fraction:02}"))
}

/// Minor units of an amount that is written exactly like that; nothing where it is not.
#[must_use]
pub fn amount_minor(text: &str) -> Option<i64> {
    let (whole, fraction) = text.split_once('.')?;
    let is_digits = |part: &str| part.bytes().all(|byte| byte.is_ascii_digit());
    if !is_digits(whole) || !is_digits(fraction) || fraction.len() != usize::from(EXPONENT) {
        return None;
    }
    let minor = format!("{whole}{fraction}").parse().ok()?;
    (amount(minor).as_deref() == Some(text)).then_some(minor)
}

/// A name without what cannot be seen: one space between words.
#[must_use]
pub fn name(text: &str) -> String {
    let visible = |c: char| if c.is_control() { ' ' } else { c };
    joined(text.chars().map(visible))
}

/// The text for the recipient in plain letters, digits, points, commas and hyphens, as every
/// operator takes it; anything else becomes a space.
#[must_use]
pub fn narration(text: &str) -> String {
    let is_plain = |c: char| c.is_ascii_alphanumeric() || matches!(c, '.' | ',' | '-');
    let plain = joined(text.chars().map(|c| if is_plain(c) { c } else { ' ' }));
    let short: String = plain.chars().take(NARRATION_CHARS_MAX).collect();
    match short.trim_end() {
        "" => NARRATION.to_owned(),
        short => short.to_owned(),
    }
}

fn joined(chars: impl Iterator<Item = char>) -> String {
    let text: String = chars.collect();
    text.split_whitespace().collect::<Vec<_>>().join(" ")
}

#[cfg(test)]
#[cfg(not(target_family = "wasm"))]
mod tests {
    use super::{amount, amount_minor, name, narration};

    #[test]
    fn amounts() {
        for (minor, text) in [
            (1, "0.01"),
            (10, "0.10"),
            (100, "1.00"),
            (125_050, "1250.50"),
            (i64::MAX, "92233720368547758.07"),
        ] {
            assert_eq!(amount(minor).as_deref(), Some(text));
            assert_eq!(amount_minor(text), Some(minor));
        }
        for text in [
            "",
            ".",
            "1",
            "1.",
            ".50",
            "1.5",
            "1.500",
            "01.50",
            "00.50",
            "0.00",
            "-1.50",
            "+1.50",
            "1e3.00",
            "1,250.00",
            " 1.50",
            "1.50 ",
            "1.-5",
            "१.५०",
            "92233720368547758.08",
        ] {
            assert_eq!(amount_minor(text), None, "{text:?}");
        }
        for minor in [0, -1, -100, i64::MIN] {
            assert_eq!(amount(minor), None);
        }
    }

    #[test]
    fn names() {
        for (text, left) in [
            (" Ama  Mensah ", "Ama Mensah"),
            ("Ama\u{a0}\tMensah\n", "Ama Mensah"),
            ("N\u{0}'\u{7f}Golo Kanté", "N ' Golo Kanté"),
            ("\u{0}\u{1b}", ""),
        ] {
            assert_eq!(name(text), left, "{text:?}");
        }
    }

    #[test]
    fn narrations() {
        for (text, left) in [
            ("Invoice 17", "Invoice 17"),
            ("Ama's  salary,\nMay-2026.", "Ama s salary, May-2026."),
            ("Ɛdwuma", "dwuma"),
            ("", "Payment"),
            (" '\"\u{1f600}' ", "Payment"),
        ] {
            assert_eq!(narration(text), left, "{text:?}");
        }
        assert_eq!(narration(&"a".repeat(500)).len(), 100);
        // What is cut off does not end with a space.
        assert_eq!(narration(&"abc ".repeat(500)).len(), 99);
    }
}
