//! Amounts as banks write them.

use crate::money::Minor;

use super::shown;

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

/// How a column of a table writes its amounts, as far as those that were read have shown it.
#[derive(Default)]
pub(super) struct Marks {
    /// The mark before the minor units: a point or a comma.
    decimal: Option<char>,
}

/// What an amount shows of the marks of its column.
enum Form {
    /// It has neither a point nor a comma.
    Bare,
    /// There is one way to read it: this is the mark before the minor units.
    Shown(char),
    /// `1,234` and `12.500`: the mark may stand between thousands or before three decimal places.
    Unclear,
}

impl Marks {
    /// Reads an amount, with its sign and with marks between thousands. One that can be read in two
    /// ways is read as those before it were written.
    ///
    /// # Errors
    /// It is none, is written unlike those before it, or can be read in two ways.
    pub(super) fn read(&mut self, text: &str, places: u8) -> Result<Minor, String> {
        let none = || format!("{} is no amount", shown(text));
        let (digits, sign) = apart(text);
        let decimal = match (form(digits), self.decimal) {
            (Form::Bare, _) => None,
            (Form::Shown(mark), Some(known)) if mark != known => {
                return Err(format!("{} has other marks than the amounts before it", shown(text)));
            }
            (Form::Shown(mark), _) => Some(mark),
            (Form::Unclear, Some(known)) => Some(known),
            (Form::Unclear, None) => return Err(unclear(text, places)),
        };
        let amount = grouped(digits, decimal.unwrap_or('.'), places).ok_or_else(none)?;
        self.decimal = decimal.or(self.decimal);
        match sign {
            Sign::Minus => amount.negated().map_err(|_| none()),
            Sign::Plus => Ok(amount),
        }
    }
}

enum Sign {
    Plus,
    Minus,
}

/// What stands between a sign, and the sign; brackets are a minus as well.
fn apart(text: &str) -> (&str, Sign) {
    let text = text.trim();
    let (text, in_brackets) = match text.strip_prefix('(').and_then(|t| t.strip_suffix(')')) {
        Some(inner) => (inner.trim(), true),
        None => (text, false),
    };
    let (text, is_below) = match text.strip_prefix(['-', '\u{2212}']) {
        Some(rest) => (rest, true),
        None => match text.strip_suffix('-') {
            Some(rest) => (rest, true),
            None => (text.strip_prefix('+').unwrap_or(text), false),
        },
    };
    (text.trim(), if is_below || in_brackets { Sign::Minus } else { Sign::Plus })
}

fn form(text: &str) -> Form {
    let is_mark = |c: &char| matches!(c, '.' | ',');
    let mut marks = text.chars().filter(is_mark);
    let Some(first) = marks.next() else { return Form::Bare };
    match marks.next_back() {
        Some(last) if last != first => Form::Shown(last),
        // The same one again stands between thousands.
        Some(_) => Form::Shown(if first == '.' { ',' } else { '.' }),
        None => {
            let (whole, part) = text.split_once(first).unwrap_or((text, ""));
            let is_digits = |text: &str| text.bytes().all(|byte| byte.is_ascii_digit());
            // Four digits without a mark, or a mark of another kind, tell that this one is not
            // between thousands; no group of thousands is a zero.
            let is_group = (1..=3).contains(&whole.len()) && is_digits(whole) && whole != "0";
            match is_group && part.len() == 3 && is_digits(part) {
                true => Form::Unclear,
                false => Form::Shown(first),
            }
        }
    }
}

/// Says what to do, which depends on the decimal places of the currency: three of them, and no more,
/// look like thousands.
fn unclear(text: &str, places: u8) -> String {
    let way = match places {
        0 => "without marks between thousands, as 1234",
        3 => "with all decimal places and a zero after them, as 12.5000",
        _ => "with all decimal places, as 12.50",
    };
    format!("{} can be read in two ways: write amounts {way}", shown(text))
}

fn grouped(text: &str, decimal: char, places: u8) -> Option<Minor> {
    match text.split_once(decimal) {
        Some((_, "")) => None,
        Some((whole, part)) => plain(&format!("{}.{part}", thousands(whole)?), '.', places),
        None => plain(&thousands(text)?, '.', places),
    }
}

/// Digits without the marks between groups of three, which are all the same.
fn thousands(text: &str) -> Option<String> {
    let is_mark = |c: char| matches!(c, '.' | ',' | '\'' | '\u{2019}') || c.is_whitespace();
    let Some(mark) = text.chars().find(|c| is_mark(*c)) else { return Some(text.to_owned()) };
    let mut groups = text.split(mark);
    let first = groups.next()?;
    let rest: Vec<&str> = groups.collect();
    let is_grouped = (1..=3).contains(&first.len()) && rest.iter().all(|group| group.len() == 3);
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

    /// Reads amounts of a column, one after the other, and gives what the last one is.
    fn read(texts: &[&str], places: u8) -> Result<i64, String> {
        let mut marks = Marks::default();
        let each = texts.iter().map(|text| marks.read(text, places).map(Minor::units));
        each.last().expect("one")
    }

    #[test]
    fn what_can_be_read_in_one_way_is_read() {
        for (text, units) in [
            ("1,234.56", 123_456),
            ("1.234,56", 123_456),
            ("1234.5", 123_450),
            ("12.50", 1_250),
            ("12,50", 1_250),
            ("1 234,5", 123_450),
            ("1 234,50", 123_450),
            ("1\u{a0}234\u{a0}567,500", 123_456_750),
            ("1'234.50", 123_450),
            ("1\u{2019}234", 123_400),
            ("-1,234.00", -123_400),
            ("1,234,567", 123_456_700),
            ("1.234.567", 123_456_700),
            ("1234.500", 123_450),
            ("0.500", 50),
            ("1,234.560", 123_456),
            ("(12.00)", -1_200),
            ("12.00-", -1_200),
            ("- 12.00", -1_200),
            ("+12", 1_200),
            ("\u{2212}0.07", -7),
        ] {
            assert_eq!(read(&[text], 2), Ok(units), "{text}");
        }
        assert_eq!(read(&["1,234.567"], 3), Ok(1_234_567));
        assert_eq!(read(&["1'234.567"], 3), Ok(1_234_567));
        assert_eq!(read(&["12.5000"], 3), Ok(12_500));
        assert_eq!(read(&["1,234.00"], 0), Ok(1_234));
    }

    #[test]
    fn what_is_no_amount_is_refused() {
        for text in [
            "",
            "-",
            "1,23,456.00",
            "1.2345",
            "12a",
            "NGN 12",
            "1..5",
            "1,2.3,4",
            ".",
            "12.",
            ".5",
            "1 23",
            "1 234'567",
            "1,234,56",
            "1.234,567.89",
            "--1",
            "12.5 0",
        ] {
            let refused = read(&[text], 2).expect_err(text);
            assert!(refused.contains("is no amount"), "{refused}");
        }
        assert!(read(&["1,234.50"], 0).is_err());
    }

    #[test]
    fn what_can_be_read_in_two_ways_is_read_as_those_before_it() {
        for (places, way) in [(0, "as 1234"), (2, "all decimal places, as 12.50"), (3, "12.5000")] {
            for text in ["1,234", "12.500", "-1.000", "(123,456)"] {
                let refused = read(&[text], places).expect_err(text);
                let is_said = refused.contains("in two ways") && refused.ends_with(way);
                assert!(is_said, "{refused}");
            }
        }
        assert_eq!(read(&["0.05", "1,234"], 2), Ok(123_400));
        assert_eq!(read(&["0.05", "12.500"], 2), Ok(1_250));
        assert_eq!(read(&["0,05", "12.500"], 2), Ok(1_250_000));
        assert_eq!(read(&["1,234,567", "7", "1,234"], 2), Ok(123_400));
        assert_eq!(read(&["1.5", "1,234"], 3), Ok(1_234_000));
        assert_eq!(read(&["1,5", "1,234"], 3), Ok(1_234));
        // What is no amount of the currency has not become one.
        assert!(read(&["0.05", "12.345"], 2).is_err());
        // Neither what has no marks nor what is refused shows anything.
        assert!(read(&["1234", "1,234"], 2).is_err());
        assert!(read(&["1 234", "1,234"], 2).is_err());
        assert!(read(&["1,2345", "1,234"], 2).is_err());
    }

    #[test]
    fn a_column_has_one_decimal_mark() {
        for texts in [["1.50", "1,50"], ["1,234.56", "1.234,56"], ["1,50", "1,234,567"]] {
            let refused = read(&texts, 2).expect_err("other marks");
            assert!(refused.contains("other marks"), "{refused}");
        }
    }
}
