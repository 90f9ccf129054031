//! The hours of a network: payments that come outside them wait until it opens.

use std::sync::Arc;

use jiff::civil::Time;
use jiff::tz::TimeZone;
use serde::Deserialize;

use crate::calendar::windows::{date_in, settles_at};
use crate::calendar::{Calendar, NotCovered};
use crate::clock::Moment;

use super::declaration::Declaration;
use super::files::time;

/// `[methods.hours]`: when a network takes payments, on each of its business days.
#[derive(Clone, Debug, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct HoursTerms {
    /// The clock that they are by.
    pub timezone: String,
    /// The days on which it is open.
    pub calendar: String,
    /// From this time on.
    pub opens: String,
    /// Whether that is the evening before.
    #[serde(default)]
    pub opens_day_before: bool,
    /// Up to this time.
    pub closes: String,
    /// The setting that holds another time, where one was agreed: an earlier one.
    pub closes_setting: Option<String>,
}

/// The hours of a route.
#[derive(Clone, Debug)]
pub(super) struct Hours {
    opens: Time,
    opens_day_before: bool,
    closes: Time,
    timezone: TimeZone,
    calendar: Arc<Calendar>,
}

impl Hours {
    /// The hours of a route with these settings.
    ///
    /// # Errors
    /// A time, the timezone or the calendar makes no sense, in words.
    pub(super) fn new(
        terms: &HoursTerms,
        calendar: Option<Arc<Calendar>>,
        setting: impl Fn(&str) -> Option<String>,
    ) -> Result<Self, String> {
        let read = |text: &str| time(text).ok_or_else(|| format!("{text} is no time"));
        let agreed = terms.closes_setting.as_ref().and_then(|name| setting(name));
        let closes = read(&terms.closes)?;
        let agreed = agreed.map(|text| read(&text)).transpose()?;
        let zone = TimeZone::get(&terms.timezone);
        Ok(Self {
            opens: read(&terms.opens)?,
            opens_day_before: terms.opens_day_before,
            // Nobody can agree to more than there is.
            closes: agreed.map_or(closes, |agreed| agreed.min(closes)),
            timezone: zone.map_err(|cause| format!("{}: {cause}", terms.timezone))?,
            calendar: calendar.ok_or_else(|| format!("no calendar {} is known", terms.calendar))?,
        })
    }

    /// When it opens next; nothing where it is open.
    ///
    /// # Errors
    /// The calendar ends before.
    pub(super) fn opens_at(&self, now: Moment) -> Result<Option<Moment>, NotCovered> {
        let mut date = date_in(now, &self.timezone);
        loop {
            let closes_at = settles_at(date, self.closes, &self.timezone);
            if closes_at > now && self.calendar.is_business_day(date)? {
                let eve = if self.opens_day_before { date.yesterday().ok() } else { None };
                let opens_at = settles_at(eve.unwrap_or(date), self.opens, &self.timezone);
                return Ok((opens_at > now).then_some(opens_at));
            }
            date = self.calendar.day_after(date)?;
        }
    }
}

impl HoursTerms {
    fn nonsense(&self, declaration: &Declaration) -> Option<String> {
        if let Err(cause) = TimeZone::get(&self.timezone) {
            return Some(format!("timezone {}: {cause}", self.timezone));
        }
        let (Some(opens), Some(closes)) = (time(&self.opens), time(&self.closes)) else {
            return Some(format!("{} or {} is no time, such as 18:45", self.opens, self.closes));
        };
        if opens >= closes && !self.opens_day_before {
            return Some("it closes before it opens: say opens_day_before".to_owned());
        }
        let setting = self.closes_setting.as_ref()?;
        let is_known = declaration.settings.contains_key(setting);
        (!is_known).then(|| format!("closes_setting {setting} is no setting"))
    }
}

impl Declaration {
    pub(super) fn hours_nonsense(&self) -> Option<String> {
        self.methods.iter().find_map(|terms| {
            let why = terms.hours.as_ref()?.nonsense(self)?;
            Some(format!("method {}: hours: {why}", terms.name))
        })
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn wires(closes: Option<&str>) -> Hours {
        let terms = HoursTerms {
            timezone: "America/New_York".into(),
            calendar: "us-federal-reserve".into(),
            opens: "21:00".into(),
            opens_day_before: true,
            closes: "18:45".into(),
            closes_setting: Some("cutoff".into()),
        };
        let calendar = Calendar::stock("us-federal-reserve").map(Arc::new);
        Hours::new(&terms, calendar, |_| closes.map(str::to_owned)).expect("hours")
    }

    /// A network that opens the evening before: over a weekend, a holiday, and on the day on which
    /// clocks are changed.
    #[test]
    fn a_network_is_open_from_the_evening_before_until_it_closes() {
        let at = |text: &str| Moment::parse(text).expect("an instant");
        for (now, opens) in [
            // Friday afternoon, and a minute after the end.
            ("2026-11-20T20:00:00Z", None),
            ("2026-11-20T23:44:59Z", None),
            ("2026-11-20T23:45:00Z", Some("2026-11-23T02:00:00Z")),
            ("2026-11-22T12:00:00Z", Some("2026-11-23T02:00:00Z")),
            ("2026-11-23T02:00:00Z", None),
            // Between two days.
            ("2026-11-24T01:00:00Z", Some("2026-11-24T02:00:00Z")),
            // Thanksgiving: what comes on its eve is Friday's.
            ("2026-11-26T03:00:00Z", Some("2026-11-27T02:00:00Z")),
            // Clocks go back on the first of November.
            ("2026-11-01T12:00:00Z", Some("2026-11-02T02:00:00Z")),
        ] {
            assert_eq!(wires(None).opens_at(at(now)), Ok(opens.map(at)), "{now}");
        }
        let agreed = wires(Some("17:00"));
        let next = Ok(Some(at("2026-11-23T02:00:00Z")));
        assert_eq!(agreed.opens_at(at("2026-11-20T22:00:00Z")), next);
        let later = wires(Some("23:00"));
        assert_eq!(later.opens_at(at("2026-11-20T23:45:00Z")), next);
    }
}
