//! `[files]` of a declaration: payments that are collected until a window closes, and its clock.

use std::sync::Arc;
use std::time::Duration;

use jiff::civil::Time;
use jiff::tz::TimeZone;
use serde::Deserialize;

use crate::calendar::Calendar;
use crate::calendar::windows::{Closing, NoClosing, Schedule, Window, local, settles_at};
use crate::clock::Moment;
use crate::money::Minor;

/// `[files]`
#[derive(Clone, Debug, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct FilesTerms {
    /// Where the network is, as the IANA database names it.
    pub timezone: String,
    /// The table of its holidays.
    pub calendar: String,
    /// Most payments in one file.
    pub entries_max: usize,
    /// From when on the value date what was acknowledged counts as paid: a time there.
    pub settles_at: String,
    /// After how long a person is told that an acknowledgement is missing.
    pub acknowledged_within_s: u64,
    /// Whether what is delivered twice under one name is one file: then the same bytes are
    /// delivered again where the network says that it has not taken them.
    #[serde(default)]
    pub idempotent_delivery: bool,
    /// The setting by whose value files are counted, where the network counts those of each payer.
    /// All files of the rail are counted together, if left out.
    pub numbered_by: Option<String>,
    /// How often what lies ready is looked for.
    pub poll_s: u64,
    /// Where it lies.
    #[serde(default)]
    pub feeds: Vec<String>,
    /// When files are made.
    pub windows: Vec<WindowTerms>,
}

/// `[[files.windows]]`
#[derive(Clone, Debug, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct WindowTerms {
    /// Its name.
    pub name: String,
    /// When it closes: a time where the network is.
    pub closes: String,
    /// Business days until recipients have the money.
    pub value_days: u32,
    /// From when on the value date what was acknowledged counts as paid; `files.settles_at`, if
    /// left out.
    pub settles_at: Option<String>,
    /// The largest payment that it takes; any, if left out.
    pub amount_minor_max: Option<i64>,
    /// The setting without which it is not used.
    pub when: Option<WhenTerms>,
}

/// `[files.windows.when]`
#[derive(Clone, Debug, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct WhenTerms {
    /// A setting of the route.
    pub setting: String,
    /// What it has to be.
    pub is: String,
}

/// When the files of a route are made.
#[derive(Clone, Debug)]
pub struct Timetable {
    /// What the rail declares.
    pub terms: Arc<FilesTerms>,
    /// What its files are counted by, beside their rail.
    pub numbered_by: Option<String>,
    windows: Vec<Used>,
    timezone: TimeZone,
    calendar: Arc<Calendar>,
}

/// A window that a route uses.
#[derive(Clone, Debug)]
struct Used {
    window: Window,
    most: Option<i64>,
    settles: Time,
}

/// A closing, and when its payments count as paid.
#[derive(Clone, Debug)]
pub struct Planned {
    /// When and for which day.
    pub closing: Closing,
    /// From then on what was acknowledged is paid.
    pub settles_at: Moment,
}

impl FilesTerms {
    /// The first thing that makes no sense.
    pub(super) fn nonsense(&self) -> Option<String> {
        if let Err(cause) = TimeZone::get(&self.timezone) {
            return Some(format!("files.timezone {}: {cause}", self.timezone));
        }
        if self.entries_max == 0 || self.poll_s == 0 || self.acknowledged_within_s == 0 {
            return Some(
                "files: entries_max, poll_s and acknowledged_within_s are positive".into(),
            );
        }
        let mut times = vec![&self.settles_at];
        times.extend(self.windows.iter().map(|window| &window.closes));
        times.extend(self.windows.iter().filter_map(|window| window.settles_at.as_ref()));
        if let Some(time) = times.into_iter().find(|text| time(text).is_none()) {
            return Some(format!("files: {time} is no time, such as 16:45"));
        }
        for (index, window) in self.windows.iter().enumerate() {
            let is_same = |other: &WindowTerms| other.name == window.name;
            if window.name.is_empty() || self.windows[..index].iter().any(is_same) {
                return Some(format!("files: the window {:?} is declared twice", window.name));
            }
            // Whoever closes one of them early could not tell which payments wait for it.
            let mut before = self.windows[..index].iter();
            if let Some(other) = before.find(|other| other.closes_with(window)) {
                let (one, other) = (&other.name, &window.name);
                return Some(format!("files: the windows {one} and {other} close together"));
            }
            if window.amount_minor_max.is_some_and(|most| most < 1) {
                return Some(format!("files: the window {} takes nothing", window.name));
            }
        }
        let is_twice = |(index, feed): (usize, &String)| self.feeds[..index].contains(feed);
        if self.feeds.iter().enumerate().any(is_twice) {
            return Some("files: a feed is named twice".to_owned());
        }
        let settles =
            |window: &WindowTerms| time(window.settles_at.as_ref().unwrap_or(&self.settles_at));
        let is_early = |window: &&WindowTerms| {
            window.value_days == 0 && settles(window) <= time(&window.closes)
        };
        if let Some(window) = self.windows.iter().find(is_early) {
            return Some(format!("files: the window {} settles before it closes", window.name));
        }
        let is_always = |window: &WindowTerms| window.when.is_none();
        let is_open = |window: &WindowTerms| window.amount_minor_max.is_none();
        // Otherwise some payment would wait for ever.
        let has_one = self.windows.iter().any(|window| is_always(window) && is_open(window));
        (!has_one).then(|| "files needs a window for every amount and setting".to_owned())
    }
}

impl WindowTerms {
    /// Whether a route can have both windows, and they close at the same time.
    fn closes_with(&self, other: &Self) -> bool {
        let is_either = matches!((&self.when, &other.when), (Some(one), Some(another))
            if one.setting == another.setting && one.is != another.is);
        time(&self.closes) == time(&other.closes) && !is_either
    }
}

impl Timetable {
    /// The timetable of a route with these settings.
    ///
    /// # Errors
    /// A time, the timezone or the calendar makes no sense, in words.
    pub(super) fn new(
        terms: &FilesTerms,
        calendar: Option<Arc<Calendar>>,
        setting: impl Fn(&str) -> Option<String>,
    ) -> Result<Self, String> {
        let odd = |text: &str| format!("{text} is no time");
        let calendar = calendar.ok_or_else(|| format!("no calendar {} is known", terms.calendar));
        let is_used = |terms: &&WindowTerms| {
            let when = terms.when.as_ref();
            when.is_none_or(|when| setting(&when.setting).as_ref() == Some(&when.is))
        };
        let own = |text: Option<&String>| {
            let text = text.unwrap_or(&terms.settles_at);
            time(text).ok_or_else(|| odd(text))
        };
        let window = |terms: &WindowTerms| {
            let closes = time(&terms.closes).ok_or_else(|| odd(&terms.closes))?;
            let window = Window { name: terms.name.clone(), closes, value_days: terms.value_days };
            let settles = own(terms.settles_at.as_ref())?;
            Ok(Used { window, most: terms.amount_minor_max, settles })
        };
        let windows: Result<_, String> = terms.windows.iter().filter(is_used).map(window).collect();
        Ok(Self {
            windows: windows?,
            timezone: TimeZone::get(&terms.timezone).map_err(|cause| cause.to_string())?,
            calendar: calendar?,
            numbered_by: terms.numbered_by.as_deref().and_then(setting),
            terms: Arc::new(terms.clone()),
        })
    }

    /// The next closing at or after an instant of a window that takes so much.
    ///
    /// # Errors
    /// The calendar ends before.
    pub fn next(&self, at: Moment, amount: Minor) -> Result<Planned, NoClosing> {
        let takes = |used: &&Used| used.most.is_none_or(|most| amount.units() <= most);
        let windows = self.windows.iter().filter(takes);
        let windows: Vec<Window> = windows.map(|used| used.window.clone()).collect();
        let schedule =
            Schedule { windows: &windows, timezone: &self.timezone, calendar: &self.calendar };
        schedule.next(at).map(|closing| self.planned(closing))
    }

    /// The next closing of every window.
    ///
    /// # Errors
    /// The calendar ends before.
    pub fn upcoming(&self, at: Moment) -> Result<Vec<Planned>, NoClosing> {
        let of = |used: &Used| {
            let (timezone, calendar) = (&self.timezone, &self.calendar);
            let windows = std::slice::from_ref(&used.window);
            Schedule { windows, timezone, calendar }.next(at).map(|closing| self.planned(closing))
        };
        self.windows.iter().map(of).collect()
    }

    /// The date and the time of day of an instant, where the network is.
    #[must_use]
    pub fn local(&self, at: Moment) -> (String, String) {
        let local = local(at, &self.timezone);
        (local.date().to_string(), local.time().strftime("%H:%M").to_string())
    }

    /// The closing of the same window after this one.
    ///
    /// # Errors
    /// The calendar ends before.
    pub fn following(&self, planned: &Planned) -> Result<Planned, NoClosing> {
        let after = planned.closing.closes_at.after(Duration::from_micros(1));
        let own = self.upcoming(after)?.into_iter();
        let mut own = own.filter(|it| it.closing.window == planned.closing.window);
        Ok(own.next().unwrap_or_else(|| planned.clone()))
    }

    /// A closing at this very instant, whatever the clock shows: in the sandbox.
    ///
    /// # Errors
    /// The calendar ends before.
    pub fn at_once(&self, at: Moment) -> Result<Planned, NoClosing> {
        let next = self.next(at, Minor::new(1))?.closing;
        Ok(Planned { closing: Closing { closes_at: at, ..next }, settles_at: at })
    }

    fn planned(&self, closing: Closing) -> Planned {
        let its = self.windows.iter().find(|used| used.window.name == closing.window);
        let settles = its.map_or(Time::midnight(), |used| used.settles);
        let settles_at = settles_at(closing.value_date, settles, &self.timezone);
        Planned { settles_at, closing }
    }
}

pub(super) fn time(text: &str) -> Option<Time> {
    Time::strptime("%H:%M", text).ok()
}

#[cfg(test)]
mod tests {
    use super::FilesTerms;

    /// What makes no sense about windows that close at these times; one is only used where a
    /// setting is `yes`, or `no`.
    fn nonsense(windows: &[(&str, &str, Option<&str>)]) -> Option<String> {
        let mut declared = "timezone = \"Europe/Berlin\"\ncalendar = \"target\"\nentries_max = 9\n\
                            settles_at = \"18:00\"\nacknowledged_within_s = 60\npoll_s = 60\n"
            .to_owned();
        for (name, closes, when) in windows {
            declared +=
                &format!("[[windows]]\nname = \"{name}\"\ncloses = \"{closes}\"\nvalue_days = 1\n");
            if let Some(is) = when {
                declared += &format!("when = {{ setting = \"same_day\", is = \"{is}\" }}\n");
            }
        }
        toml::from_str::<FilesTerms>(&declared).expect("readable").nonsense()
    }

    #[test]
    fn no_two_windows_of_a_route_close_together() {
        assert_eq!(nonsense(&[("a", "15:00", None), ("b", "16:00", None)]), None);
        let together = Some("files: the windows a and b close together".to_owned());
        assert_eq!(nonsense(&[("a", "15:00", None), ("b", "15:00", None)]), together);
        assert_eq!(nonsense(&[("a", "15:00", None), ("b", "15:00", Some("yes"))]), together);
        let either =
            [("c", "16:00", None), ("a", "15:00", Some("no")), ("b", "15:00", Some("yes"))];
        assert_eq!(nonsense(&either), None);
    }
}
