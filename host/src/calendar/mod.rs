//! Calendars of networks: on which days they settle, and when their windows close.
//!
//! A calendar is dated data, not rules. It knows the years that its table covers; asked about any
//! other day it answers [`NotCovered`], because a guess would send a file for a day on which nothing
//! settles. Stock copies come with the host; files in `<modules.dir>/calendars` replace them or stand
//! beside them.

pub mod windows;

use std::collections::BTreeMap;
use std::io::ErrorKind;
use std::path::{Path, PathBuf};
use std::sync::Arc;

use jiff::civil::{Date, Weekday};

/// The copies that come with the host.
const STOCK: [(&str, &str); 4] = [
    ("canada", include_str!("canada.csv")),
    ("england", include_str!("england.csv")),
    ("target", include_str!("target.csv")),
    ("us-federal-reserve", include_str!("us-federal-reserve.csv")),
];

/// The folder in `modules.dir` with the operator's tables.
const FOLDER: &str = "calendars";

/// Days on which a network does not settle. Saturdays and Sundays are among them, listed or not.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Calendar {
    name: String,
    first: Date,
    last: Date,
    holidays: BTreeMap<Date, String>,
}

/// A calendar was asked about a day beyond what its table covers.
#[derive(Clone, Debug, PartialEq, Eq, thiserror::Error)]
#[error("the calendar {name} covers {first} to {last}, and not {date}")]
pub struct NotCovered {
    /// The calendar's name.
    pub name: String,
    /// The first day that it covers.
    pub first: Date,
    /// The last one.
    pub last: Date,
    /// The day that it was asked about, or came to.
    pub date: Date,
}

/// A table cannot be read.
#[derive(Clone, Debug, PartialEq, Eq, thiserror::Error)]
#[error("line {line}: {why}")]
pub struct Malformed {
    /// Counted from 1; the last one where something is missing.
    pub line: usize,
    /// What is the matter.
    pub why: String,
}

impl Calendar {
    /// The names of the stock copies.
    pub fn names() -> impl Iterator<Item = &'static str> {
        STOCK.iter().map(|(name, _)| *name)
    }

    /// The stock copy of this name.
    #[must_use]
    pub fn stock(name: &str) -> Option<Self> {
        let (name, csv) = STOCK.iter().find(|(known, _)| *known == name)?;
        Self::read(name, csv).ok()
    }

    /// Reads a table: comments that begin with `#`, among them one `# covers 2025-01-01 to
    /// 2032-12-31`, then the line `date,name`, then a line for each holiday. A name may contain
    /// commas.
    ///
    /// # Errors
    /// The line with what does not fit: no date, no name, a date twice or beyond what is covered.
    pub fn read(name: &str, csv: &str) -> Result<Self, Malformed> {
        let mut covers = None;
        let mut has_header = false;
        let mut rows = Vec::new();
        let mut lines = 1;
        // Spreadsheets begin a file with a byte order mark.
        for (index, text) in csv.trim_start_matches('\u{feff}').lines().enumerate() {
            lines = index + 1;
            let malformed = |why: String| Malformed { line: lines, why };
            match (text.trim(), has_header) {
                ("", _) => {}
                (comment, _) if comment.starts_with('#') => {
                    let Some(span) = span(comment).map_err(malformed)? else { continue };
                    if covers.replace(span).is_some() {
                        return Err(malformed("a second line says what is covered".to_owned()));
                    }
                }
                ("date,name", false) => has_header = true,
                (_, false) => return Err(malformed("the columns are `date,name`".to_owned())),
                (row, true) => rows.push((lines, holiday(row).map_err(malformed)?)),
            }
        }
        let missing = |what: &str| Malformed { line: lines, why: format!("no line `{what}`") };
        let (first, last) = covers.ok_or_else(|| missing("# covers 2025-01-01 to 2032-12-31"))?;
        if !has_header {
            return Err(missing("date,name"));
        }
        let mut calendar = Self { name: name.to_owned(), first, last, holidays: BTreeMap::new() };
        for (line, (date, holiday)) in rows {
            calendar.add(date, holiday).map_err(|why| Malformed { line, why })?;
        }
        Ok(calendar)
    }

    fn add(&mut self, date: Date, holiday: String) -> Result<(), String> {
        self.covered(date).map_err(|cause| cause.to_string())?;
        match self.holidays.insert(date, holiday) {
            Some(_) => Err(format!("{date} stands there twice")),
            None => Ok(()),
        }
    }

    /// Its name.
    #[must_use]
    pub fn name(&self) -> &str {
        &self.name
    }

    /// The first day that the table covers.
    #[must_use]
    pub const fn first_known(&self) -> Date {
        self.first
    }

    /// The last day that the table covers.
    #[must_use]
    pub const fn last_known(&self) -> Date {
        self.last
    }

    /// Holidays in the order of their dates, those that fall on a weekend included.
    pub fn holidays(&self) -> impl Iterator<Item = (Date, &str)> {
        self.holidays.iter().map(|(date, name)| (*date, name.as_str()))
    }

    /// Whether the network settles on this day.
    ///
    /// # Errors
    /// The table does not cover it.
    pub fn is_business_day(&self, date: Date) -> Result<bool, NotCovered> {
        self.covered(date)?;
        Ok(!is_weekend(date) && !self.holidays.contains_key(&date))
    }

    /// This day where it is a business day, else the next one that is.
    ///
    /// # Errors
    /// The table does not cover the days up to there.
    pub fn next_business_day_on_or_after(&self, mut date: Date) -> Result<Date, NotCovered> {
        while !self.is_business_day(date)? {
            date = self.day_after(date)?;
        }
        Ok(date)
    }

    /// The `n`th business day after this day, which itself does not count; where `n` is 0, as
    /// [`Self::next_business_day_on_or_after`].
    ///
    /// # Errors
    /// The table does not cover the days up to there.
    pub fn plus_business_days(&self, date: Date, n: u32) -> Result<Date, NotCovered> {
        if n == 0 {
            return self.next_business_day_on_or_after(date);
        }
        self.covered(date)?;
        (0..n).try_fold(date, |date, _| self.next_business_day_on_or_after(self.day_after(date)?))
    }

    fn covered(&self, date: Date) -> Result<(), NotCovered> {
        match self.first <= date && date <= self.last {
            true => Ok(()),
            false => Err(self.not_covered(date)),
        }
    }

    pub(crate) fn day_after(&self, date: Date) -> Result<Date, NotCovered> {
        date.tomorrow().map_err(|_| self.not_covered(date))
    }

    fn not_covered(&self, date: Date) -> NotCovered {
        NotCovered { name: self.name.clone(), first: self.first, last: self.last, date }
    }
}

/// Whether this day is a Saturday or a Sunday.
#[must_use]
pub fn is_weekend(date: Date) -> bool {
    matches!(date.weekday(), Weekday::Saturday | Weekday::Sunday)
}

/// What a comment says is covered, if it says so.
fn span(comment: &str) -> Result<Option<(Date, Date)>, String> {
    let words: Vec<&str> = comment.trim_start_matches('#').split_whitespace().collect();
    match words.as_slice() {
        ["covers", first, "to", last] => match (date(first)?, date(last)?) {
            (first, last) if first <= last => Ok(Some((first, last))),
            (first, last) => Err(format!("{first} to {last} is no span of time")),
        },
        ["covers", ..] => Err("what is covered is said as 2025-01-01 to 2032-12-31".to_owned()),
        _ => Ok(None),
    }
}

fn holiday(row: &str) -> Result<(Date, String), String> {
    let (day, name) = row.split_once(',').ok_or("a date, a comma and a name are expected")?;
    let day = date(day.trim())?;
    match name.trim().trim_matches('"').trim() {
        "" => Err(format!("{day} has no name")),
        name => Ok((day, name.to_owned())),
    }
}

/// Reads YYYY-MM-DD and nothing else: jiff takes further forms, and drops a time.
fn date(text: &str) -> Result<Date, String> {
    let date = text.parse::<Date>().ok().filter(|date| date.to_string() == text);
    date.ok_or_else(|| format!("{text:?} is not a date such as 2026-12-25"))
}

/// Where a calendar comes from.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum Origin {
    /// It came with the host.
    Stock,
    /// It came inside this file of a rail.
    Rail(PathBuf),
    /// This file, which the operator put there.
    Operator(PathBuf),
}

/// All calendars that a host knows, by name.
#[derive(Clone, Debug, Default)]
pub struct Calendars {
    known: BTreeMap<String, (Arc<Calendar>, Origin)>,
}

impl Calendars {
    /// The stock copies, and the operator's `calendars/<name>.csv` in the modules folder. A file
    /// replaces the stock copy of its name, all of it.
    ///
    /// # Errors
    /// A file cannot be read; the message names it.
    pub fn load(modules: Option<&Path>) -> Result<Self, String> {
        let mut calendars = Self::default();
        for (name, csv) in STOCK {
            calendars.add(name, csv, Origin::Stock).map_err(|why| format!("{name}: {why}"))?;
        }
        for path in modules.map(tables).transpose()?.into_iter().flatten() {
            let named = |why: String| format!("{}: {why}", path.display());
            let name = path.file_stem().and_then(|stem| stem.to_str()).unwrap_or_default();
            if !is_name(name) {
                return Err(named("a calendar's name has letters a-z, digits, - and _".to_owned()));
            }
            let csv = std::fs::read_to_string(&path).map_err(|cause| named(cause.to_string()))?;
            let origin = Origin::Operator(path.clone());
            calendars.add(name, &csv, origin).map_err(|why| named(why.to_string()))?;
        }
        Ok(calendars)
    }

    fn add(&mut self, name: &str, csv: &str, origin: Origin) -> Result<(), Malformed> {
        let calendar = Arc::new(Calendar::read(name, csv)?);
        self.known.insert(name.to_owned(), (calendar, origin));
        Ok(())
    }

    /// The calendar of this name.
    #[must_use]
    pub fn get(&self, name: &str) -> Option<&Arc<Calendar>> {
        self.known.get(name).map(|(calendar, _)| calendar)
    }

    /// The calendar that a rail means: the operator's, its own, or the stock copy.
    #[must_use]
    pub fn for_rail(
        &self,
        name: &str,
        own: &BTreeMap<String, Arc<Calendar>>,
    ) -> Option<Arc<Calendar>> {
        let known = self.known.get(name);
        let operators = known.filter(|(_, origin)| *origin != Origin::Stock);
        let found = operators.map(|(calendar, _)| calendar).or_else(|| own.get(name));
        found.or_else(|| known.map(|(calendar, _)| calendar)).cloned()
    }

    /// Adds a calendar that a rail brings, for lists: as `<file>/<name>`, because no other rail
    /// knows it.
    ///
    /// # Errors
    /// It cannot be read.
    pub fn add_of_rail(&mut self, file: &Path, (name, csv): (&str, &str)) -> Result<(), String> {
        let stem = file.file_stem().and_then(|stem| stem.to_str()).unwrap_or_default();
        let origin = Origin::Rail(file.to_owned());
        let added = self.add(&format!("{stem}/{name}"), csv, origin);
        added.map_err(|why| format!("{}: calendars.{name}: {why}", file.display()))
    }

    /// Where the calendar of this name comes from.
    #[must_use]
    pub fn origin(&self, name: &str) -> Option<&Origin> {
        self.known.get(name).map(|(_, origin)| origin)
    }

    /// Every calendar and where it comes from, by name.
    pub fn iter(&self) -> impl Iterator<Item = (&Calendar, &Origin)> {
        self.known.values().map(|(calendar, origin)| (calendar.as_ref(), origin))
    }
}

/// The operator's tables. There may be none; the modules folder has to be there.
fn tables(modules: &Path) -> Result<Vec<PathBuf>, String> {
    let folder = modules.join(FOLDER);
    let entries = match std::fs::read_dir(&folder) {
        Ok(entries) => entries,
        Err(cause) if cause.kind() == ErrorKind::NotFound && modules.is_dir() => {
            return Ok(Vec::new());
        }
        Err(cause) => return Err(format!("modules.dir {}: {cause}", folder.display())),
    };
    let mut paths = Vec::new();
    for entry in entries {
        let entry = entry.map_err(|cause| format!("{}: {cause}", folder.display()))?;
        paths.push(entry.path());
    }
    paths.retain(|path| path.extension().is_some_and(|ending| ending == "csv"));
    paths.sort();
    Ok(paths)
}

fn is_name(name: &str) -> bool {
    let is_allowed =
        |c: u8| c.is_ascii_lowercase() || c.is_ascii_digit() || matches!(c, b'-' | b'_');
    !name.is_empty() && name.bytes().all(is_allowed)
}

#[cfg(test)]
mod tests {
    use super::*;

    fn day(text: &str) -> Date {
        date(text).expect("a date")
    }

    fn stock(name: &str) -> Calendar {
        Calendar::stock(name).expect("a stock calendar")
    }

    /// The days between Monday and Friday of a year on which nothing settles.
    fn closed(name: &str, year: i16) -> Vec<String> {
        let calendar = stock(name);
        let days = calendar.holidays().map(|(date, _)| date);
        let days = days.filter(|date| date.year() == year && !is_weekend(*date));
        days.map(|date| date.strftime("%m-%d").to_string()).collect()
    }

    #[test]
    fn the_stock_copies_are_what_the_networks_announced() {
        // The Saturdays of 2026 and 2027 move nothing; 4 July 2027 is a Sunday.
        let fed_2026 = [
            "01-01", "01-19", "02-16", "05-25", "06-19", "09-07", "10-12", "11-11", "11-26",
            "12-25",
        ];
        assert_eq!(closed("us-federal-reserve", 2026), fed_2026);
        let fed_2027 =
            ["01-01", "01-18", "02-15", "05-31", "07-05", "09-06", "10-11", "11-11", "11-25"];
        assert_eq!(closed("us-federal-reserve", 2027), fed_2027);
        assert_eq!(closed("target", 2027), ["01-01", "03-26", "03-29"]);
        assert_eq!(closed("target", 2025), ["01-01", "04-18", "04-21", "05-01", "12-25", "12-26"]);
        let england = [
            (2025, ["01-01", "04-18", "04-21", "05-05", "05-26", "08-25", "12-25", "12-26"]),
            (2026, ["01-01", "04-03", "04-06", "05-04", "05-25", "08-31", "12-25", "12-28"]),
            (2027, ["01-01", "03-26", "03-29", "05-03", "05-31", "08-30", "12-27", "12-28"]),
            (2028, ["01-03", "04-14", "04-17", "05-01", "05-29", "08-28", "12-25", "12-26"]),
        ];
        for (year, days) in england {
            assert_eq!(closed("england", year), days, "{year}");
        }
        let canada_2026 = [
            "01-01", "04-03", "05-18", "07-01", "09-07", "09-30", "10-12", "11-11", "12-25",
            "12-28",
        ];
        assert_eq!(closed("canada", 2026), canada_2026);
    }

    #[test]
    fn every_year_of_a_stock_copy_has_its_holidays() {
        for (name, count) in
            [("us-federal-reserve", 11), ("target", 6), ("england", 8), ("canada", 10)]
        {
            let calendar = stock(name);
            assert_eq!((calendar.first.year(), calendar.last), (2025, day("2032-12-31")), "{name}");
            for year in 2025..=2032 {
                let holidays = calendar.holidays().filter(|(date, _)| date.year() == year);
                assert_eq!(holidays.count(), count, "{name} {year}");
            }
        }
        assert!(Calendar::names().eq(STOCK.map(|(name, _)| name)));
        assert!(Calendar::stock("atlantis").is_none());
    }

    #[test]
    fn business_days_are_counted_over_weekends_and_holidays() {
        let fed = stock("us-federal-reserve");
        let plus =
            |from: &str, n| fed.plus_business_days(day(from), n).expect("covered").to_string();
        assert_eq!(plus("2026-11-25", 1), "2026-11-27", "Thanksgiving");
        assert_eq!(plus("2026-11-25", 2), "2026-11-30");
        assert_eq!(plus("2026-07-02", 1), "2026-07-03", "a holiday on Saturday moves nothing");
        assert_eq!(plus("2027-07-02", 1), "2027-07-06", "one on Sunday is observed on Monday");
        assert_eq!(plus("2026-11-21", 0), "2026-11-23", "a Saturday");
        assert_eq!(plus("2026-11-21", 1), "2026-11-23");
        assert_eq!(plus("2026-11-23", 0), "2026-11-23");
        let england = stock("england");
        let after = england.next_business_day_on_or_after(day("2027-12-25")).expect("covered");
        assert_eq!(after, day("2027-12-29"));
    }

    #[test]
    fn beyond_its_table_a_calendar_knows_nothing() {
        let fed = stock("us-federal-reserve");
        assert_eq!(fed.is_business_day(fed.last_known()), Ok(true));
        let beyond = fed.is_business_day(day("2033-01-01")).expect_err("beyond");
        assert_eq!(
            beyond.to_string(),
            "the calendar us-federal-reserve covers 2025-01-01 to 2032-12-31, and not 2033-01-01"
        );
        assert!(fed.is_business_day(day("2024-12-31")).is_err());
        assert!(fed.plus_business_days(day("2032-12-30"), 1).is_ok());
        assert!(fed.plus_business_days(day("2032-12-30"), 2).is_err());
        assert!(fed.plus_business_days(day("2033-01-03"), 0).is_err());
        assert!(fed.plus_business_days(day("2024-12-31"), 1).is_err());
        assert!(fed.plus_business_days(Date::MAX, u32::MAX).is_err());
    }

    #[test]
    fn tables_are_read_as_people_write_them() {
        let csv = "\u{feff}# mine\r\n#covers 2026-01-01 to 2026-12-31\r\n\r\ndate,name\r\n\
                   2026-12-24, Eve, the day before\r\n2026-12-25,\"Christmas\"\r\n";
        let calendar = Calendar::read("mine", csv).expect("a table");
        let named: Vec<_> = calendar.holidays().map(|(_, name)| name.to_owned()).collect();
        assert_eq!(named, ["Eve, the day before", "Christmas"]);
        assert_eq!(calendar.is_business_day(day("2026-12-24")), Ok(false));
    }

    #[test]
    fn a_table_that_does_not_fit_is_refused_with_its_line() {
        let covers = "# covers 2026-01-01 to 2026-12-31";
        for (csv, line, why) in [
            ("", 1, "no line `# covers"),
            ("date,name\n2026-12-25,Christmas", 2, "no line `# covers"),
            (covers, 1, "no line `date,name`"),
            ("# covers 2026 to 2027\ndate,name", 1, "\"2026\" is not a date"),
            ("# covers 2026-01-01 until ever\ndate,name", 1, "what is covered is said as"),
            ("# covers 2026-12-31 to 2026-01-01\ndate,name", 1, "no span of time"),
            (&format!("{covers}\n{covers}\ndate,name"), 2, "a second line"),
            (&format!("{covers}\n2026-12-25,Christmas"), 2, "the columns are"),
            (&format!("{covers}\nname,date"), 2, "the columns are"),
            (&format!("{covers}\ndate,name\n2026-12-25"), 3, "a comma"),
            (&format!("{covers}\ndate,name\n\n2026-12-25,"), 4, "has no name"),
            (&format!("{covers}\ndate,name\n25.12.2026,Christmas"), 3, "is not a date"),
            (&format!("{covers}\ndate,name\n2026-02-29,Leap day"), 3, "is not a date"),
            (&format!("{covers}\ndate,name\n2026-12-25T10:00,Christmas"), 3, "is not a date"),
            (&format!("{covers}\ndate,name\n2027-01-01,New Year"), 3, "and not 2027-01-01"),
            (&format!("{covers}\ndate,name\n2026-12-25,A\n2026-12-25,B"), 4, "stands there twice"),
        ] {
            let malformed = Calendar::read("mine", csv).expect_err(csv);
            assert_eq!(malformed.line, line, "{csv}: {malformed}");
            assert!(malformed.why.contains(why), "{csv}: {malformed}");
        }
    }

    #[test]
    fn the_operators_tables_replace_and_add() {
        let folder = tempfile::tempdir().expect("a folder");
        let stock = Calendars::load(None).expect("stock");
        assert!(stock.iter().all(|(_, origin)| *origin == Origin::Stock));
        assert_eq!(stock.iter().count(), STOCK.len());
        let none = Calendars::load(Some(folder.path())).expect("stock only");
        assert_eq!(none.iter().count(), STOCK.len());

        let tables = folder.path().join("calendars");
        std::fs::create_dir(&tables).expect("a folder");
        let csv = "# covers 2026-01-01 to 2040-12-31\ndate,name\n2026-12-24,Eve\n";
        for file in ["target.csv", "lagos.csv", "notes.txt"] {
            std::fs::write(tables.join(file), csv).expect("written");
        }
        let calendars = Calendars::load(Some(folder.path())).expect("all");
        assert_eq!(calendars.iter().count(), STOCK.len() + 1);
        let target = calendars.get("target").expect("replaced");
        assert_eq!((target.last_known(), target.holidays().count()), (day("2040-12-31"), 1));
        let origin = Origin::Operator(tables.join("lagos.csv"));
        assert_eq!(calendars.origin("lagos"), Some(&origin));
        assert_eq!(calendars.origin("england"), Some(&Origin::Stock));
        assert!(calendars.get("notes").is_none());
    }

    #[test]
    fn an_operators_table_that_cannot_be_read_is_named() {
        let folder = tempfile::tempdir().expect("a folder");
        let refused = |modules: &Path| Calendars::load(Some(modules)).expect_err("refused");
        assert!(refused(&folder.path().join("nowhere")).contains("modules.dir"));
        let tables = folder.path().join("calendars");
        std::fs::create_dir(&tables).expect("a folder");
        std::fs::write(tables.join("lagos.csv"), "date,name\n").expect("written");
        let why = refused(folder.path());
        assert!(why.contains("lagos.csv: line 1: no line `# covers"), "{why}");
        std::fs::rename(tables.join("lagos.csv"), tables.join("Lagos.csv")).expect("renamed");
        let why = refused(folder.path());
        assert!(why.contains("Lagos.csv: a calendar's name has letters a-z"), "{why}");
    }
}
