//! `railhead calendar`: on which days networks settle, as this host's tables have it.

use clap::{Args, Subcommand};
use jiff::civil::Date;
use jiff::tz::TimeZone;

use crate::calendar::windows::date_in;
use crate::calendar::{Calendar as Holidays, Calendars, Origin, is_weekend};
use crate::config::Config;
use crate::start::{self, Sources, StartError};

use super::{say, warn};

/// With fewer days left a table is to be replaced: payments of its last days need the next year's.
const DAYS_LEFT_MIN: i32 = 180;

/// Arguments of the command.
#[derive(Args)]
pub(super) struct Calendar {
    #[command(subcommand)]
    command: CalendarCommand,
}

#[derive(Subcommand)]
enum CalendarCommand {
    /// List every calendar, where it comes from and how far it reaches.
    List,
    /// Show the holidays of a calendar.
    Show {
        /// Its name.
        name: String,
        /// One year only.
        #[arg(long)]
        year: Option<i16>,
    },
}

impl Calendar {
    pub(super) fn run(self, config: &Config) -> Result<(), StartError> {
        let folder = config.modules.dir.as_deref();
        let mut calendars = Calendars::load(folder)?;
        start::add_calendars_of_rails(&mut calendars, folder)?;
        let today = date_in(Sources::system()?.clock.now(), &TimeZone::UTC);
        match self.command {
            CalendarCommand::List => {
                list(&calendars, today).into_iter().for_each(say);
                warnings(&calendars, today).into_iter().for_each(warn);
            }
            CalendarCommand::Show { name, year } => {
                show(&calendars, &name, year)?.into_iter().for_each(say);
            }
        }
        Ok(())
    }
}

/// A line for each calendar, below a line that names the columns.
fn list(calendars: &Calendars, today: Date) -> Vec<String> {
    let row = |[name, source, until, left, next]: [&str; 5]| {
        format!("{name:<24}  {source:<8}  {until:<12}  {left:>9}  {next}")
    };
    let mut lines = vec![row(["name", "source", "covers until", "days left", "next holiday"])];
    for (calendar, origin) in calendars.iter() {
        let last = calendar.last_known();
        let next = match next_holiday(calendar, today) {
            Some((date, name)) => format!("{date} {name}"),
            None => "none known".to_owned(),
        };
        let left = days_left(calendar, today).max(0).to_string();
        lines.push(row([calendar.name(), source(origin), &last.to_string(), &left, &next]));
    }
    lines
}

/// What to do about tables that come to their end.
fn warnings(calendars: &Calendars, today: Date) -> Vec<String> {
    let mut lines = Vec::new();
    for (calendar, _) in calendars.iter() {
        let (name, last) = (calendar.name(), calendar.last_known());
        let left = days_left(calendar, today);
        let until = match left {
            DAYS_LEFT_MIN.. => continue,
            1.. => format!("ends on {last}, in {left} days"),
            0 => "ends today".to_owned(),
            _ => format!("ended on {last}: no window of its networks closes any more"),
        };
        // One that a rail brings is named after its file, too.
        let table = name.rsplit('/').next().unwrap_or(name);
        lines.push(format!(
            "the calendar {name} {until}; put a table that reaches further into \
             calendars/{table}.csv in modules.dir"
        ));
    }
    lines
}

/// The holidays of one calendar.
fn show(calendars: &Calendars, name: &str, year: Option<i16>) -> Result<Vec<String>, String> {
    let (Some(calendar), Some(origin)) = (calendars.get(name), calendars.origin(name)) else {
        let known: Vec<_> = calendars.iter().map(|(calendar, _)| calendar.name()).collect();
        return Err(format!("there is no calendar {name}, but {}", known.join(", ")));
    };
    let (first, last) = (calendar.first_known(), calendar.last_known());
    if let Some(year) = year.filter(|year| !(first.year()..=last.year()).contains(year)) {
        return Err(format!("the calendar {name} covers {first} to {last}, and nothing of {year}"));
    }
    let from = match origin {
        Origin::Stock => "stock".to_owned(),
        Origin::Rail(file) => format!("inside {}", file.display()),
        Origin::Operator(path) => path.display().to_string(),
    };
    let mut lines = vec![format!("{name} ({from}) covers {first} to {last}")];
    for (date, holiday) in calendar.holidays() {
        if year.is_none_or(|year| year == date.year()) {
            let weekday = date.strftime("%A").to_string();
            lines.push(format!("  {date}  {weekday:<9}  {holiday}"));
        }
    }
    Ok(lines)
}

/// The next holiday that is not on a weekend.
fn next_holiday(calendar: &Holidays, today: Date) -> Option<(Date, &str)> {
    calendar.holidays().find(|(date, _)| *date >= today && !is_weekend(*date))
}

/// Days after today that the calendar covers; less than none where it has ended.
fn days_left(calendar: &Holidays, today: Date) -> i32 {
    (calendar.last_known() - today).get_days()
}

const fn source(origin: &Origin) -> &'static str {
    match origin {
        Origin::Stock => "stock",
        Origin::Rail(_) => "rail",
        Origin::Operator(_) => "operator",
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn day(text: &str) -> Date {
        text.parse().expect("a date")
    }

    /// The stock copies, and one of the operator's that ends with 2026.
    fn calendars() -> Calendars {
        let folder = tempfile::tempdir().expect("a folder");
        let tables = folder.path().join("calendars");
        std::fs::create_dir(&tables).expect("a folder");
        let csv = "# covers 2026-01-01 to 2026-12-31\ndate,name\n2026-12-26,Boxing Day\n";
        std::fs::write(tables.join("lagos.csv"), csv).expect("written");
        Calendars::load(Some(folder.path())).expect("calendars")
    }

    #[test]
    fn every_calendar_is_listed() {
        let lines = list(&calendars(), day("2026-11-23"));
        assert_eq!(
            lines,
            [
                "name                      source    covers until  days left  next holiday",
                "canada                    stock     2032-12-31         2230  2026-12-25 Christmas Day",
                "england                   stock     2032-12-31         2230  2026-12-25 Christmas Day",
                "lagos                     operator  2026-12-31           38  none known",
                "target                    stock     2032-12-31         2230  2026-12-25 Christmas Day",
                "us-federal-reserve        stock     2032-12-31         2230  2026-11-26 Thanksgiving Day",
            ]
        );
    }

    #[test]
    fn a_calendar_that_ends_soon_is_told_of() {
        let calendars = calendars();
        let told = |today: &str| warnings(&calendars, day(today)).join("\n");
        assert_eq!(told("2026-07-04"), "", "180 days");
        assert_eq!(
            told("2026-07-05"),
            "the calendar lagos ends on 2026-12-31, in 179 days; put a table that reaches further \
             into calendars/lagos.csv in modules.dir"
        );
        assert!(told("2026-12-31").contains("lagos ends today"));
        assert!(told("2027-01-01").contains("lagos ended on 2026-12-31"));
        assert_eq!(warnings(&calendars, day("2032-12-01")).len(), 5);
    }

    #[test]
    fn the_holidays_of_a_calendar_are_shown() {
        let calendars = calendars();
        let lines = show(&calendars, "target", Some(2027)).expect("shown");
        assert_eq!(
            lines,
            [
                "target (stock) covers 2025-01-01 to 2032-12-31",
                "  2027-01-01  Friday     New Year's Day",
                "  2027-03-26  Friday     Good Friday",
                "  2027-03-29  Monday     Easter Monday",
                "  2027-05-01  Saturday   Labour Day",
                "  2027-12-25  Saturday   Christmas Day",
                "  2027-12-26  Sunday     26 December",
            ]
        );
        assert_eq!(show(&calendars, "target", None).expect("shown").len(), 1 + 8 * 6);
        let lines = show(&calendars, "lagos", None).expect("shown");
        assert!(lines[0].contains("/calendars/lagos.csv) covers 2026-01-01"), "{lines:?}");
    }

    #[test]
    fn what_is_not_known_is_said() {
        let calendars = calendars();
        let why = show(&calendars, "atlantis", None).expect_err("unknown");
        assert_eq!(
            why,
            "there is no calendar atlantis, but canada, england, lagos, target, us-federal-reserve"
        );
        let why = show(&calendars, "lagos", Some(2027)).expect_err("beyond");
        assert_eq!(why, "the calendar lagos covers 2026-01-01 to 2026-12-31, and nothing of 2027");
    }
}
