//! Amounts as banks write them.

use crate::money::Minor;

/// Reads an amount in major units without a sign: digits, and at most one mark before the minor
/// ones, of which those beyond the currency's must be zero.
pub(super) fn plain(text: &str, mark: char, places: u8) -> Option<Minor> {
    let (whole, part) = text.split_once(mark).unwrap_or((text, ""));
    let is_digits = |text: &str| text.bytes().all(|byte| byte.is_ascii_digit());
    if whole.is_empty() || !is_digits(whole) || !is_digits(part) {
        return None;
    }
    let places = usize::from(places);
    let (kept, beyond) = part.split_at(part.len().min(places));
    if beyond.bytes().any(|byte| byte != b'0') {
        return None;
    }
    format!("{whole}{kept:0<places$}").parse().ok().map(Minor::new)
}

/// Reads an amount of a table, with its sign and with marks between thousands. Which mark is which
/// is told by what stands after the last one: as many digits as the currency has minor ones, or
/// fewer, or a group of three.
pub(super) fn grouped(text: &str, places: u8) -> Option<Minor> {
    let text = text.trim();
    let (text, in_brackets) = match text.strip_prefix('(').and_then(|t| t.strip_suffix(')')) {
        Some(inner) => (inner, true),
        None => (text, false),
    };
    let (text, is_below) = match text.strip_prefix(['-', '\u{2212}']) {
        Some(rest) => (rest, true),
        None => match text.strip_suffix('-') {
            Some(rest) => (rest, true),
            None => (text.strip_prefix('+').unwrap_or(text), false),
        },
    };
    let is_space = |c: char| c.is_whitespace() || c == '\'' || c == '\u{202f}';
    let text: String = text.chars().filter(|c| !is_space(*c)).collect();
    let last = text.rfind(['.', ',']).map(|at| (at, text.len() - at - 1));
    let decimal = last.filter(|(_, after)| *after <= usize::from(places) && *after > 0);
    let amount = match decimal {
        Some((at, _)) => {
            let mark = text[at..].chars().next()?;
            let whole = thousands(&text[..at], if mark == '.' { ',' } else { '.' })?;
            plain(&format!("{whole}.{}", &text[at + 1..]), '.', places)?
        }
        None => {
            let mark = last.map_or(',', |(at, _)| text[at..].chars().next().unwrap_or(','));
            plain(&thousands(&text, mark)?, '.', places)?
        }
    };
    match is_below || in_brackets {
        true => amount.negated().ok(),
        false => Some(amount),
    }
}

/// Digits without the marks between groups of three.
fn thousands(text: &str, mark: char) -> Option<String> {
    let mut groups = text.split(mark);
    let first = groups.next()?;
    let rest: Vec<&str> = groups.collect();
    let is_grouped = rest.is_empty()
        || ((1..=3).contains(&first.len()) && rest.iter().all(|group| group.len() == 3));
    is_grouped.then(|| format!("{first}{}", rest.concat()))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn plain_amounts_have_one_mark() {
        let read = |text| plain(text, ',', 2).map(Minor::units);
        for (text, units) in
            [("12,5", 1250), ("12,", 1200), ("0,07", 7), ("12", 1200), ("1,230", 123)]
        {
            assert_eq!(read(text), Some(units), "{text}");
        }
        for text in ["", ",5", "1,234", "1.5", "-1,0", "1,2,3", "99999999999999999999,0", "1 0"] {
            assert_eq!(read(text), None, "{text}");
        }
        assert_eq!(plain("1500", '.', 0).map(Minor::units), Some(1500));
    }

    #[test]
    fn marks_of_tables_are_told_by_what_stands_after_them() {
        for (text, units) in [
            ("1,234.56", 123_456),
            ("1.234,56", 123_456),
            ("1 234,5", 123_450),
            ("1'234.50", 123_450),
            ("-1,234", -123_400),
            ("1,234,567", 123_456_700),
            ("(12.00)", -1_200),
            ("12.00-", -1_200),
            ("+12", 1_200),
            ("\u{2212}0.07", -7),
        ] {
            assert_eq!(grouped(text, 2).map(Minor::units), Some(units), "{text}");
        }
        for text in ["", "-", "1,23,456.00", "1.2345", "12a", "NGN 12", "1..5", "1,2.3,4", "."] {
            assert_eq!(grouped(text, 2), None, "{text}");
        }
    }
}
