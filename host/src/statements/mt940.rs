//! MT940: lines with tags, of which those matter that open a statement (`:20:`), name the account
//! (`:25:`) and its balances (`:60F:`, `:62F:`), and tell of entries (`:61:`, `:86:`).

use std::io::BufRead;

use jiff::civil::Date;

use crate::money::Minor;

use super::{Days, Entry, Lines, SAID_MAX, Statement, Terms, Unreadable, add, amount, shown};

pub(super) fn read(file: impl BufRead, terms: &Terms) -> Result<Vec<Statement>, Unreadable> {
    let mut lines = Lines::of(file);
    let mut reading = Reading { terms, done: Vec::new(), open: None };
    let mut field: Option<(u64, Field)> = None;
    while let Some(line) = lines.next()? {
        let begun = Field::begun(&line);
        let ends = begun.is_some() || line.starts_with('-') || line.starts_with('{');
        if ends && let Some((number, field)) = field.take() {
            reading
                .take(&field)
                .map_err(|why| Unreadable::at(format_args!("line {number}"), why))?;
        }
        match (begun, &mut field) {
            (Some(begun), _) => field = Some((lines.number, begun)),
            (None, Some((_, field))) if !ends => field.go_on(&line),
            _ => {}
        }
    }
    if let Some((number, field)) = field {
        reading.take(&field).map_err(|why| Unreadable::at(format_args!("line {number}"), why))?;
    }
    match reading.open {
        Some(open) => {
            let id = shown(&open.statement.id);
            let why = format!("statement {id} has no end: its closing balance is missing");
            Err(lines.odd(why))
        }
        None if reading.done.is_empty() => Err(lines.odd("there is no statement in it")),
        None => Ok(reading.done),
    }
}

/// A tag, and what stands after it in its line and the following ones: as much as an entry can say.
struct Field {
    tag: String,
    content: String,
}

impl Field {
    /// The field that a line begins, if it does: a text may begin with a colon as well.
    fn begun(line: &str) -> Option<Self> {
        // A statement may begin in the line of the envelope: {4::20:X.
        let line = line.rsplit_once("{4:").map_or(line, |(_, rest)| rest);
        let (tag, content) = line.strip_prefix(':')?.split_once(':')?;
        let (digits, letter) = tag.split_at_checked(2)?;
        let is_tag = digits.bytes().all(|byte| byte.is_ascii_digit())
            && (letter.is_empty()
                || (letter.len() == 1 && letter.bytes().all(|byte| byte.is_ascii_uppercase())));
        is_tag.then(|| Self { tag: tag.to_owned(), content: content.to_owned() })
    }

    fn go_on(&mut self, line: &str) {
        add(&mut self.content, line, SAID_MAX);
    }
}

struct Reading<'a> {
    terms: &'a Terms,
    done: Vec<Statement>,
    open: Option<Open>,
}

/// A statement of which the closing balance has not come yet.
#[derive(Default)]
struct Open {
    statement: Statement,
    days: Days,
    /// What the last entry says, which may go on.
    said: String,
}

impl Open {
    fn begin(&mut self, mut entry: Entry) {
        self.end_entry();
        self.said = std::mem::take(&mut entry.said).into();
        self.statement.entries.push(entry);
    }

    fn end_entry(&mut self) {
        if let Some(entry) = self.statement.entries.last_mut() {
            entry.said = std::mem::take(&mut self.said).into();
        }
    }

    fn close(mut self, (day, closing): (Date, Minor)) -> Statement {
        self.end_entry();
        self.statement.closing = Some(closing);
        Days { closed_on: Some(day), ..self.days }.cover(self.statement)
    }
}

impl Reading<'_> {
    fn take(&mut self, Field { tag, content }: &Field) -> Result<(), String> {
        let line = content.lines().next().unwrap_or_default().trim();
        if tag == "20" {
            if let Some(open) = &self.open {
                let id = shown(&open.statement.id);
                return Err(format!("statement {id} has no closing balance"));
            }
            let statement = Statement { id: line.to_owned(), ..Statement::default() };
            self.open = Some(Open { statement, ..Open::default() });
            return Ok(());
        }
        let open = match tag.as_str() {
            "25" | "60F" | "60M" | "61" | "62F" | "62M" => {
                self.open.as_mut().ok_or_else(|| format!(":{tag}: stands in no statement"))?
            }
            "86" => match &mut self.open {
                Some(open) => open,
                // It tells of the statement as a whole.
                None => return Ok(()),
            },
            _ => return Ok(()),
        };
        match tag.as_str() {
            "25" => line.clone_into(&mut open.statement.account),
            "60F" | "60M" => {
                let (day, amount) = balance(line, self.terms)?;
                open.days.closed_before_on = Some(day);
                open.statement.opening = Some(amount);
            }
            "61" => open.begin(entry(content, self.terms)?),
            "86" => {
                if !open.statement.entries.is_empty() {
                    add(&mut open.said, &text(content), SAID_MAX);
                }
            }
            _ => {
                let closing = balance(line, self.terms)?;
                self.done.extend(self.open.take().map(|open| open.close(closing)));
            }
        }
        Ok(())
    }
}

/// `C260921EUR1111,10`.
fn balance(text: &str, terms: &Terms) -> Result<(Date, Minor), String> {
    let odd = || format!("{} is no balance", shown(text));
    let (sign, rest) = text.split_at_checked(1).ok_or_else(odd)?;
    let (day, rest) = rest.split_at_checked(6).ok_or_else(odd)?;
    let day = date(day).ok_or_else(odd)?;
    let (currency, amount) = rest.split_at_checked(3).ok_or_else(odd)?;
    if currency != terms.currency.as_str() {
        let own = terms.currency;
        return Err(format!("it is in {}, and the account in {own}", shown(currency)));
    }
    let amount = amount::plain(amount, ',', terms.places).ok_or_else(odd)?;
    match sign {
        "C" => Ok((day, amount)),
        "D" => amount.negated().map(|amount| (day, amount)).map_err(|_| odd()),
        _ => Err(odd()),
    }
}

/// `2609240924D5,34N426NONREF//BANKREF`, and more in a further line. The day of the entry, where it
/// is said, is that of the year which brings it nearest to the value date.
fn entry(content: &str, terms: &Terms) -> Result<Entry, String> {
    let odd = || format!(":61:{} is no entry", shown(content.lines().next().unwrap_or_default()));
    let (line, supplement) = content.split_once('\n').unwrap_or((content, ""));
    let (day, rest) = line.split_at_checked(6).ok_or_else(odd)?;
    let valued_on = date(day).ok_or_else(odd)?;
    let is_day = |day: &str| day.bytes().all(|byte| byte.is_ascii_digit());
    let (booked_on, rest) = match rest.split_at_checked(4).filter(|(day, _)| is_day(day)) {
        Some((day, rest)) => (nearest(valued_on, day).ok_or_else(odd)?, rest),
        None => (valued_on, rest),
    };
    let marks = [("RC", -1), ("RD", 1), ("C", 1), ("D", -1)];
    let mark = marks.iter().find_map(|(mark, sign)| Some((rest.strip_prefix(mark)?, *sign)));
    let (rest, sign) = mark.ok_or_else(odd)?;
    // The third letter of the currency may stand before the amount.
    let rest = rest.strip_prefix(|c: char| c.is_ascii_uppercase()).unwrap_or(rest);
    let end = rest.find(|c: char| !c.is_ascii_digit() && c != ',').ok_or_else(odd)?;
    let amount = amount::plain(&rest[..end], ',', terms.places).ok_or_else(odd)?;
    let amount = if sign < 0 { amount.negated().map_err(|_| odd())? } else { amount };
    let kind = rest[end..].split_at_checked(4).filter(|(kind, _)| is_kind(kind));
    let (_, references) = kind.ok_or_else(odd)?;
    let (own, of_bank) = references.split_once("//").unwrap_or((references, ""));
    let said = |text: &str| Some(text.trim()).filter(|text| !is_nothing(text)).map(str::to_owned);
    let lines: Vec<String> =
        [said(own), said(of_bank), said(supplement)].into_iter().flatten().collect();
    Ok(Entry {
        booked_on,
        amount,
        bank_reference: said(of_bank).map(Into::into),
        said: lines.join("\n").into(),
    })
}

/// What kind of transaction it is: a letter, and three letters or digits.
fn is_kind(text: &str) -> bool {
    text.starts_with(['N', 'F', 'S']) && text.bytes().all(|byte| byte.is_ascii_alphanumeric())
}

/// What stands where there is no reference.
fn is_nothing(text: &str) -> bool {
    matches!(text, "" | "NONREF" | "NOREF" | "KREF+")
}

/// `YYMMDD`, in this century.
fn date(text: &str) -> Option<Date> {
    let numbers = text.len() == 6 && text.bytes().all(|byte| byte.is_ascii_digit());
    let part = |range: std::ops::Range<usize>| text.get(range)?.parse::<i8>().ok();
    let (year, month, day) = (part(0..2)?, part(2..4)?, part(4..6)?);
    Date::new(2000 + i16::from(year), month, day).ok().filter(|_| numbers)
}

/// `MMDD`, as near to a day as can be.
fn nearest(to: Date, text: &str) -> Option<Date> {
    let (month, day) = (text.get(..2)?.parse().ok()?, text.get(2..)?.parse().ok()?);
    let years = [to.year() - 1, to.year(), to.year() + 1];
    let days = years.into_iter().filter_map(|year| Date::new(year, month, day).ok());
    days.min_by_key(|day| to.until(*day).map_or(i32::MAX, |span| span.get_days().abs()))
}

/// The text of `:86:`: where it has numbered parts, those that begin with a word of their own
/// (`EREF+`) become lines, and the others are joined. Banks break their lines anywhere.
fn text(content: &str) -> String {
    let joined: String = content.lines().collect();
    if !joined.contains("?20") && !joined.contains("?00") {
        return content.to_owned() + "\n" + &joined;
    }
    let mut text = String::with_capacity(joined.len());
    for (at, part) in joined.split('?').enumerate() {
        let numbered = part
            .split_at_checked(2)
            .filter(|(number, _)| at > 0 && number.bytes().all(|b| b.is_ascii_digit()));
        let Some((number, part)) = numbered else {
            text.push_str(part);
            continue;
        };
        let is_word = |word: &str| word.bytes().all(|byte| byte.is_ascii_uppercase());
        let begins = part.split_once('+').is_some_and(|(word, _)| word.len() == 4 && is_word(word));
        let is_text = number.starts_with('2') || number.starts_with('6');
        if begins || !is_text {
            text.push('\n');
        }
        text.push_str(part);
    }
    text
}

#[cfg(test)]
mod tests {
    use super::super::tests::{day, short, terms};
    use super::*;

    const STATEMENT: &str = "{1:F01BANKNGLAAXXX0000000000}{2:I940BANKXXXXN}{4:\r\n\
        :20:STMT4711\r\n:25:058/0123456785\r\n:28C:00232/001\r\n:60F:C261120NGN1000000,00\r\n\
        :61:2611211121D1000,00NTRFPO01KAZ//BR000001\r\nsupplement\r\n:86:NIP/000013261121090000\r\n\
        123456789012/Ada Obi\r\n:61:261121C250,5NMSCNONREF\r\n:61:2612310101RC7,NCHGX//BR2\r\n\
        :86:166?00REVERSAL?20EREF+END TO?21 END 1?22SVWZ+of the fee?32Somebody\r\n\
        :62F:C261121NGN999243,50\r\n:86:of the whole\r\n-}\r\n";

    #[test]
    fn a_statement_is_read_with_its_envelope() {
        let statements = super::super::read(STATEMENT.as_bytes(), &terms("NGN")).expect("one");
        let [statement] = statements.as_slice() else { panic!("{statements:?}") };
        assert_eq!(
            (statement.id.as_str(), statement.account.as_str()),
            ("STMT4711", "058/0123456785")
        );
        assert_eq!(
            short(statement),
            [
                ("2026-11-21".to_owned(), -100_000, "BR000001"),
                ("2026-11-21".to_owned(), 25_050, ""),
                ("2027-01-01".to_owned(), -700, "BR2"),
            ]
        );
        assert_eq!(statement.discrepancy(), Ok(Some(Minor::ZERO)));
        assert_eq!(
            (statement.from, statement.to),
            (Some(day("2026-11-21")), Some(day("2026-11-21")))
        );
        let [first, second, third] = statement.entries.as_slice() else { panic!("three") };
        let lines = |entry: &Entry| entry.said.lines().map(str::to_owned).collect::<Vec<_>>();
        assert!(
            lines(first).contains(&"PO01KAZ".to_owned())
                && lines(first).contains(&"supplement".to_owned())
        );
        // A reference may be broken where the line is.
        assert!(
            first.said.contains("NIP/000013261121090000123456789012/Ada Obi"),
            "{}",
            first.said
        );
        assert_eq!(&*second.said, "");
        assert!(lines(third).contains(&"EREF+END TO END 1".to_owned()), "{}", third.said);
        assert!(lines(third).contains(&"SVWZ+of the fee".to_owned()));
    }

    #[test]
    fn whatever_is_no_statement_is_refused_by_its_line() {
        let change = |from: &str, to: &str| STATEMENT.replace(from, to);
        for (text, line, word) in [
            (change("1000,00N", "1000.00N"), "line 6", "is no entry"),
            (change("2611211121D", "2613211121D"), "line 6", "is no entry"),
            (change("1121D", "1121X"), "line 6", "is no entry"),
            (change("C261120NGN", "C261120EUR"), "line 5", "in EUR"),
            (change("C261120NGN", "X261120NGN"), "line 5", "no balance"),
            (change(":62F:C261121NGN999243,50\r\n", ""), "line 14", "no end"),
            (change(":62F:", ":20:"), "line 13", "no closing balance"),
            (change(":20:STMT4711\r\n", ":21:X\r\n:20X:\r\n"), "line 4", "in no statement"),
            (":20:\u{e9}\r\n".to_owned(), "line 1", "no end"),
        ] {
            let refused = super::super::read(text.as_bytes(), &terms("NGN")).expect_err(word);
            let refused = refused.to_string();
            assert!(refused.starts_with(line) && refused.contains(word), "{refused}");
        }
    }

    #[test]
    fn days_are_those_after_the_closing_of_the_one_before() {
        let days = |text: &str| {
            let statement =
                super::super::read(text.as_bytes(), &terms("NGN")).expect("one").remove(0);
            (statement.from, statement.to)
        };
        let on = |text| Some(day(text));
        let text = STATEMENT.replace(":62F:C261121", ":62M:C261130");
        assert_eq!(days(&text), (on("2026-11-21"), on("2026-11-30")));
        // A further page of the same day.
        let text = STATEMENT.replace(":60F:C261120", ":60M:C261121");
        assert_eq!(days(&text), (on("2026-11-21"), on("2026-11-21")));
        let page = super::super::read(text.as_bytes(), &terms("NGN")).expect("one").remove(0);
        assert_eq!((page.opening_on, page.closing_on), (on("2026-11-21"), on("2026-11-21")));
        let text = STATEMENT.replace(":60F:C261120NGN1000000,00\r\n", "");
        assert_eq!(days(&text), (None, on("2026-11-21")));
    }

    #[test]
    fn what_an_entry_says_is_bounded_and_not_copied_anew() {
        let statement = |entry: &str| {
            let text = format!(
                ":20:X\n:60F:C261120NGN1,\n:61:261121C1,NMSCREF\n{entry}:62F:C261121NGN2,\n"
            );
            super::super::read(text.as_bytes(), &terms("NGN")).expect("one").remove(0)
        };
        let texts = statement(&":86:one more\n".repeat(200_000));
        let said = &texts.entries[0].said;
        assert!(said.starts_with("REF\none more\none more\n"));
        assert!((SAID_MAX - 10..=SAID_MAX).contains(&said.len()), "{}", said.len());
        let lines = statement(&format!(":86:a\n{}", "one more\n".repeat(200_000)));
        let said = &lines.entries[0].said;
        assert!((SAID_MAX - 10..=SAID_MAX).contains(&said.len()), "{}", said.len());
        let supplement = statement(&"one more\n".repeat(200_000));
        assert!(supplement.entries[0].said.len() <= SAID_MAX);
    }

    #[test]
    fn a_day_without_a_year_is_the_nearest() {
        assert_eq!(nearest(day("2026-12-31"), "0101"), Some(day("2027-01-01")));
        assert_eq!(nearest(day("2026-01-01"), "1231"), Some(day("2025-12-31")));
        assert_eq!(nearest(day("2028-02-28"), "0229"), Some(day("2028-02-29")));
        assert_eq!(nearest(day("2026-02-28"), "1340"), None);
    }
}
