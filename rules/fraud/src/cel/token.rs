//! Text to tokens.

use super::Mistake;

/// A token and the byte where it starts.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(super) struct Token {
    pub(super) at: usize,
    pub(super) kind: Kind,
}

#[derive(Clone, Debug, PartialEq, Eq)]
pub(super) enum Kind {
    /// Without its sign, so that the smallest number can be written.
    Int(u64),
    String(String),
    Name(String),
    Mark(&'static str),
    End,
}

/// Longer marks stand before the ones they start with.
const MARKS: &[&str] = &[
    "&&", "||", "==", "!=", "<=", ">=", "<", ">", "+", "-", "*", "/", "%", "!", "?", ":", "(", ")",
    "[", "]", "{", "}", ",", ".",
];

/// All tokens of a text, the last of them [`Kind::End`].
pub(super) fn tokens(source: &str) -> Result<Vec<Token>, Mistake> {
    let mut found = Vec::new();
    let mut at = 0;
    loop {
        at = skip_blank(source, at);
        let rest = source.get(at..).unwrap_or_default();
        let Some(first) = rest.chars().next() else {
            found.push(Token { at, kind: Kind::End });
            return Ok(found);
        };
        let (kind, length) = match first {
            '0'..='9' => number(rest, at)?,
            'a'..='z' | 'A'..='Z' | '_' => word(rest, at)?,
            '\'' | '"' => string(rest, at)?,
            _ => mark(rest, at)?,
        };
        found.push(Token { at, kind });
        at += length;
    }
}

/// Blanks, and comments to the end of their line.
fn skip_blank(source: &str, mut at: usize) -> usize {
    loop {
        let rest = source.get(at..).unwrap_or_default();
        let code = rest.trim_start_matches([' ', '\t', '\n', '\r']);
        at += rest.len() - code.len();
        if !code.starts_with("//") {
            return at;
        }
        at += code.find('\n').unwrap_or(code.len());
    }
}

fn number(rest: &str, at: usize) -> Result<(Kind, usize), Mistake> {
    let wordy = |text: &str| {
        text.find(|c: char| !c.is_ascii_alphanumeric() && c != '_').unwrap_or(text.len())
    };
    let length = wordy(rest);
    let written = rest.get(..length).unwrap_or_default();
    let (digits, radix) = match written.strip_prefix("0x").or_else(|| written.strip_prefix("0X")) {
        Some(digits) => (digits, 16),
        None => (written, 10),
    };
    let after = rest.get(length..).unwrap_or_default();
    let has_fraction = after
        .strip_prefix('.')
        .is_some_and(|places| places.starts_with(|c: char| c.is_ascii_digit()));
    let has_exponent = radix == 10 && digits.contains(['e', 'E']);
    if has_fraction || has_exponent {
        let message = "numbers with a fraction or an exponent are not offered; write amounts in \
                       minor units, such as 150000 for 1,500.00";
        return Err(Mistake::new(at, message));
    }
    if digits.ends_with(['u', 'U']) {
        return Err(Mistake::new(at, "unsigned numbers are not offered; leave out the u"));
    }
    match u64::from_str_radix(digits, radix) {
        Ok(value) => Ok((Kind::Int(value), length)),
        Err(_) if !digits.is_empty() && digits.chars().all(|c| c.is_digit(radix)) => {
            Err(Mistake::new(at, "the number does not fit 64 bits"))
        }
        Err(_) => Err(Mistake::new(at, format!("`{written}` is not a number"))),
    }
}

fn word(rest: &str, at: usize) -> Result<(Kind, usize), Mistake> {
    let length = rest.find(|c: char| !c.is_ascii_alphanumeric() && c != '_').unwrap_or(rest.len());
    let (name, after) = rest.split_at(length);
    if after.starts_with(['\'', '"']) {
        let what = match name {
            "r" | "R" => "raw strings are not offered; write \\\\ for a backslash",
            "b" | "B" => "bytes are not offered; leave out the b",
            _ => "an operator is missing before this string",
        };
        return Err(Mistake::new(at, what));
    }
    Ok((Kind::Name(name.to_owned()), length))
}

fn string(rest: &str, at: usize) -> Result<(Kind, usize), Mistake> {
    if rest.starts_with("'''") || rest.starts_with("\"\"\"") {
        return Err(Mistake::new(at, "strings in three quotes are not offered; use one quote"));
    }
    let mut letters = rest.char_indices();
    let quote = letters.next().map_or('\'', |(_, quote)| quote);
    let mut value = String::new();
    while let Some((offset, letter)) = letters.next() {
        match letter {
            _ if letter == quote => return Ok((Kind::String(value), offset + 1)),
            '\n' | '\r' => break,
            '\\' => value.push(escaped(&mut letters, at + offset)?),
            _ => value.push(letter),
        }
    }
    Err(Mistake::new(at, "the string has no end; close it with the quote that it begins with"))
}

fn escaped(letters: &mut std::str::CharIndices<'_>, at: usize) -> Result<char, Mistake> {
    let unknown =
        || Mistake::new(at, "unknown escape; known are \\\\ \\' \\\" \\n \\r \\t and \\uXXXX");
    match letters.next().map(|(_, letter)| letter) {
        Some(same @ ('\\' | '\'' | '"')) => Ok(same),
        Some('n') => Ok('\n'),
        Some('r') => Ok('\r'),
        Some('t') => Ok('\t'),
        Some('u') => {
            let digits: Option<u32> = (0..4).try_fold(0, |value, _| {
                let (_, letter) = letters.next()?;
                Some(value * 16 + letter.to_digit(16)?)
            });
            digits.and_then(char::from_u32).ok_or_else(unknown)
        }
        _ => Err(unknown()),
    }
}

fn mark(rest: &str, at: usize) -> Result<(Kind, usize), Mistake> {
    if let Some(mark) = MARKS.iter().find(|mark| rest.starts_with(**mark)) {
        return Ok((Kind::Mark(mark), mark.len()));
    }
    let letter = rest.chars().next().unwrap_or_default();
    Err(Mistake::new(
        at,
        match letter {
            '=' => "`=` is not an operator; compare with `==`".to_owned(),
            '&' | '|' => {
                format!("`{letter}` is not an operator; write it twice: `{letter}{letter}`")
            }
            '‘' | '’' | '“' | '”' => "strings stand in straight quotes: 'NGN'".to_owned(),
            _ => format!("`{}` has no meaning here", letter.escape_debug()),
        },
    ))
}
