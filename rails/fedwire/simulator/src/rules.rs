//! What a text of a message has to be.

/// What an element holds.
#[derive(Clone, Copy, Debug)]
pub enum Rule {
    /// Up to so many characters.
    Text(usize),
    /// One of these words.
    Word(&'static [&'static str]),
    /// A UUID of version 4, in small letters.
    Uetr,
    /// Day, source and number.
    Imad,
    /// Date and time with the distance to UTC.
    Instant,
    /// A date.
    Date,
    /// A routing number, check digit included.
    Routing,
    /// Nine capitals and digits.
    Connection,
    /// Two capitals.
    Country,
    /// A bank's BIC.
    Bic,
    /// Four capitals and digits.
    Code,
    /// Dollars with two decimals, more than nothing and less than ten billion.
    Dollars,
}

impl Rule {
    /// Whether a text is that.
    #[must_use]
    pub fn is_kept_by(self, text: &str) -> bool {
        match self {
            Self::Text(most) => {
                let length = text.chars().count();
                (1..=most).contains(&length)
                    && text.trim() == text
                    && !text.chars().any(char::is_control)
            }
            Self::Word(words) => words.contains(&text),
            Self::Uetr => is_uetr(text),
            Self::Imad => {
                is(text, "99999999XXXXXXXX999999")
                    && is_date(&text[..8])
                    && !text.ends_with("000000")
            }
            Self::Instant => {
                is(text, "9999-99-99T99:99:99-99:99") && is_date(&text[..10].replace('-', ""))
            }
            Self::Date => is(text, "9999-99-99") && is_date(&text.replace('-', "")),
            Self::Routing => is(text, "999999999") && is_routing(text),
            Self::Connection => is(text, "XXXXXXXXX"),
            Self::Country => is(text, "AA"),
            Self::Bic => is(text, "XXXXAAXX") || is(text, "XXXXAAXXXXX"),
            Self::Code => is(text, "XXXX"),
            Self::Dollars => cents(text).is_some(),
        }
    }
}

/// The cents of an amount.
#[must_use]
pub fn cents(text: &str) -> Option<i64> {
    let (dollars, cents) = text.split_once('.')?;
    let is_number = |part: &str| part.bytes().all(|byte| byte.is_ascii_digit());
    let is_plain = (1..=10).contains(&dollars.len())
        && cents.len() == 2
        && is_number(dollars)
        && is_number(cents)
        && (dollars == "0" || !dollars.starts_with('0'));
    let amount = format!("{dollars}{cents}").parse().ok().filter(|amount| *amount > 0);
    amount.filter(|_| is_plain)
}

/// A pattern: 9 is a digit, A a capital, X either, and anything else itself.
fn is(text: &str, pattern: &str) -> bool {
    text.len() == pattern.len()
        && text.bytes().zip(pattern.bytes()).all(|(byte, wanted)| match wanted {
            b'9' => byte.is_ascii_digit(),
            b'A' => byte.is_ascii_uppercase(),
            b'X' => byte.is_ascii_digit() || byte.is_ascii_uppercase(),
            other => byte == other,
        })
}

fn is_uetr(text: &str) -> bool {
    let parts: Vec<&str> = text.split('-').collect();
    let is_its = |byte: u8| byte.is_ascii_digit() || (b'a'..=b'f').contains(&byte);
    parts.iter().map(|part| part.len()).eq([8, 4, 4, 4, 12])
        && parts.iter().all(|part| part.bytes().all(is_its))
        && parts[2].starts_with('4')
        && parts[3].starts_with(['8', '9', 'a', 'b'])
}

/// Eight digits that may be a date.
fn is_date(digits: &str) -> bool {
    let part = |from, to| digits.get(from..to).and_then(|part| part.parse().ok()).unwrap_or(0);
    (1..=12).contains(&part(4, 6)) && (1..=31).contains(&part(6, 8))
}

fn is_routing(digits: &str) -> bool {
    let weighed = digits.bytes().zip([3_u32, 7, 1].into_iter().cycle());
    let sum: u32 = weighed.map(|(byte, weight)| u32::from(byte - b'0') * weight).sum();
    sum.is_multiple_of(10) && digits != "000000000"
}

#[cfg(test)]
mod tests {
    use super::{Rule, cents};

    #[test]
    fn what_is_kept_and_what_is_not() {
        for (rule, good, bad) in [
            (Rule::Text(3), "a b", "abcd"),
            (Rule::Text(3), "a", " a"),
            (Rule::Text(3), "a", ""),
            (Rule::Text(3), "a", "a\nb"),
            (Rule::Word(&["CLRG"]), "CLRG", "clrg"),
            (
                Rule::Uetr,
                "96136a50-afd9-4639-89ca-25b870dd3859",
                "96136a50-afd9-1639-89ca-25b870dd3859",
            ),
            (Rule::Imad, "20261123B1QDRCQR000005", "20261123B1QDRCQR000000"),
            (Rule::Imad, "20261123B1QDRCQR000005", "20261323B1QDRCQR000005"),
            (Rule::Instant, "2026-11-23T10:00:00-05:00", "2026-11-23T10:00:00Z"),
            (Rule::Date, "2026-11-23", "20261123"),
            (Rule::Routing, "121042882", "121042883"),
            (Rule::Connection, "021151080", "02115108"),
            (Rule::Country, "US", "us"),
            (Rule::Bic, "WFBIUS6S", "WFBI1S6S"),
            (Rule::Code, "CUST", "CUS"),
            (Rule::Dollars, "1250.50", "1250.5"),
        ] {
            assert!(rule.is_kept_by(good) && !rule.is_kept_by(bad), "{rule:?} {good} {bad}");
        }
        for text in ["0.00", "-1.00", "01.00", "1,000.00", "10000000000.00", "1e3.00", ".50"] {
            assert_eq!(cents(text), None, "{text}");
        }
        assert_eq!(cents("9999999999.99"), Some(999_999_999_999));
    }
}
