//! What is to be done about alerts: from what is the matter and what is open, no more.

use std::collections::HashMap;
use std::time::Duration;

use crate::cases::CaseKind;
use crate::clock::Moment;
use crate::config::limits;
use crate::id::AlertId;

use super::matters::{Matter, OF_CASES, Visibility};
use super::{Alert, Telling};

/// A change of an alert.
#[derive(Debug)]
pub(super) struct Step {
    /// The alert as it is from now on.
    pub(super) alert: Alert,
    /// What is told of it, if anything.
    pub(super) telling: Option<Telling>,
}

/// How somebody looks.
pub(super) struct Eye<'a> {
    /// Which host it is.
    pub(super) host: &'a str,
    /// The present instant.
    pub(super) now: Moment,
    /// After how long what goes on is told again.
    pub(super) remind: Duration,
    /// Whether it has anybody to tell. What it cannot tell is left to a host that can.
    pub(super) has_receivers: bool,
}

impl Eye<'_> {
    /// When something is told that is told now, if it is.
    fn told_at(&self) -> Moment {
        if self.has_receivers { self.now } else { Alert::UNTOLD }
    }
}

/// How often it is written down that one host still sees what only it sees.
const SEEN_EVERY: Duration = Duration::from_secs(60);
/// How often it is written down that what all hosts see is still seen: by whoever is first, so that
/// nobody ends what others see.
const SHARED_SEEN_EVERY: Duration = Duration::from_secs(600);
/// A host that has not said for so long that it still sees something is not there any more.
const GONE_AFTER: Duration = Duration::from_secs(600);
/// When nobody will tell any more that something is over which was told before.
const UNTOLD_AFTER: Duration = Duration::from_secs(24 * 3600);

/// What is to be changed, given what is the matter and what is open.
pub(super) fn steps(
    eye: &Eye<'_>,
    (matters, open): (Vec<Matter>, Vec<Alert>),
    new_id: impl Fn() -> AlertId,
) -> Vec<Step> {
    let mut open: HashMap<String, Alert> =
        open.into_iter().map(|alert| (alert.key.clone(), alert)).collect();
    let mut steps = Vec::new();
    for matter in matters {
        match open.remove(&matter.key) {
            _ if matter.visibility == Visibility::WithinClockSkew => {}
            None => steps.push(opened(eye, matter, new_id())),
            Some(alert) => steps.extend(goes_on(eye, &alert, matter)),
        }
    }
    for alert in open.into_values() {
        let is_untold = alert.told_at == Alert::UNTOLD;
        let is_gone = match &alert.host {
            None => !is_of_a_newer_host(&alert.key),
            Some(host) => host == eye.host || eye.now.since(alert.seen_at) >= GONE_AFTER,
        };
        // Who has heard of it hears of its end, unless nobody is told anything any more.
        let heard_at = if alert.host.is_some() { alert.told_at } else { alert.seen_at };
        let may_end = eye.has_receivers || is_untold || eye.now.since(heard_at) >= UNTOLD_AFTER;
        let is_due = alert.acknowledged.is_none() && eye.now.since(alert.told_at) >= eye.remind;
        if is_gone && may_end {
            let alert = Alert { ended_at: Some(eye.now), ..alert };
            steps.push(Step { alert, telling: (!is_untold).then_some(Telling::Ended) });
        } else if eye.has_receivers && alert.host.is_some() && (is_untold || is_due) {
            let telling = if is_untold { Telling::Opened } else { Telling::Reminder };
            steps.push(told_now(eye, (alert, telling)));
        }
    }
    steps
}

/// An alert that is told by a host which can, whoever has seen it.
fn told_now(eye: &Eye<'_>, (alert, telling): (Alert, Telling)) -> Step {
    let told_count = alert.count;
    Step { alert: Alert { told_at: eye.now, told_count, ..alert }, telling: Some(telling) }
}

/// Whether an alert is about cases of a kind that this host does not know, and so cannot see.
fn is_of_a_newer_host(key: &str) -> bool {
    let kind = key.strip_prefix(OF_CASES).and_then(|rest| rest.split('/').next());
    kind.is_some_and(|kind| CaseKind::parse(kind).is_none())
}

fn opened(eye: &Eye<'_>, matter: Matter, id: AlertId) -> Step {
    let Matter { key, kind, summary, advice, count, visibility } = matter;
    let alert = Alert {
        id,
        key,
        kind,
        summary,
        advice,
        count,
        host: (visibility == Visibility::ThisHost).then(|| eye.host.to_owned()),
        opened_at: eye.now,
        seen_at: eye.now,
        told_at: eye.told_at(),
        told_count: count,
        acknowledged: None,
        ended_at: None,
    };
    Step { alert, telling: Some(Telling::Opened) }
}

fn goes_on(eye: &Eye<'_>, alert: &Alert, matter: Matter) -> Option<Step> {
    let told = eye.now.since(alert.told_at);
    let is_more = matter.count > alert.told_count && told >= limits::ALERT_MORE_AFTER;
    let is_due = alert.acknowledged.is_none() && told >= eye.remind;
    let mut next = Alert {
        summary: matter.summary,
        advice: matter.advice,
        count: matter.count,
        seen_at: eye.now,
        told_count: alert.told_count.min(matter.count),
        ..alert.clone()
    };
    if eye.has_receivers && alert.told_at == Alert::UNTOLD {
        return Some(told_now(eye, (next, Telling::Opened)));
    }
    if eye.has_receivers && (is_more || is_due) {
        // Whoever looks after it knows of less than there is now.
        if is_more {
            next.acknowledged = None;
        }
        (next.told_at, next.told_count) = (eye.now, next.count);
        return Some(Step { alert: next, telling: Some(Telling::Reminder) });
    }
    let seen_every = if alert.host.is_some() { SEEN_EVERY } else { SHARED_SEEN_EVERY };
    let is_stale = eye.now.since(alert.seen_at) >= seen_every;
    let is_other = alert.count != next.count || alert.summary != next.summary;
    (is_stale || is_other).then_some(Step { alert: next, telling: None })
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::alerts::AlertKind;
    use crate::id::Id as _;

    const HOUR: Duration = Duration::from_secs(3600);

    fn at(hours: u32) -> Moment {
        Moment::from_micros(0).after(HOUR * hours)
    }

    fn matter(count: i64) -> Matter {
        Matter {
            key: "cases/paid_twice/ngn".to_owned(),
            kind: AlertKind::Cases,
            summary: format!("{count} cases"),
            advice: String::new(),
            count,
            visibility: Visibility::Shared,
        }
    }

    fn own(count: i64) -> Matter {
        Matter { visibility: Visibility::ThisHost, ..matter(count) }
    }

    fn look(now: Moment, matters: Vec<Matter>, open: &[Step]) -> Vec<Step> {
        look_as("here", now, (matters, open))
    }

    fn look_as(host: &str, now: Moment, (matters, open): (Vec<Matter>, &[Step])) -> Vec<Step> {
        let open = open.iter().map(|step| step.alert.clone()).collect();
        let eye = Eye { host, now, remind: 24 * HOUR, has_receivers: true };
        steps(&eye, (matters, open), || AlertId::from_text("alert_1".to_owned()))
    }

    fn told(steps: &[Step]) -> Vec<Option<Telling>> {
        steps.iter().map(|step| step.telling).collect()
    }

    /// It may be written down that somebody still sees it.
    fn nobody_hears(steps: &[Step]) -> bool {
        steps.iter().all(|step| step.telling.is_none())
    }

    #[test]
    fn what_goes_on_is_told_once_then_daily_and_when_it_is_over() {
        let opened = look(at(0), vec![matter(1)], &[]);
        assert_eq!(told(&opened), [Some(Telling::Opened)]);
        for hours in [0, 1, 23] {
            assert!(nobody_hears(&look(at(hours), vec![matter(1)], &opened)), "{hours}");
        }
        let reminded = look(at(24), vec![matter(1)], &opened);
        assert_eq!(told(&reminded), [Some(Telling::Reminder)]);
        assert!(nobody_hears(&look(at(47), vec![matter(1)], &reminded)));
        let ended = look(at(25), Vec::new(), &reminded);
        assert_eq!(told(&ended), [Some(Telling::Ended)]);
        assert_eq!(ended[0].alert.ended_at, Some(at(25)));
    }

    #[test]
    fn what_is_still_seen_is_written_down_now_and_then() {
        let after = |seconds| at(0).after(Duration::from_secs(seconds));
        for (seen, often) in [(matter as fn(i64) -> Matter, 600), (own, 60)] {
            let opened = look(at(0), vec![seen(1)], &[]);
            assert!(look(after(often - 1), vec![seen(1)], &opened).is_empty());
            let still = look(after(often), vec![seen(1)], &opened);
            assert_eq!((told(&still), still[0].alert.seen_at), (vec![None], after(often)));
            assert_eq!(still[0].alert.told_at, opened[0].alert.told_at);
        }
    }

    #[test]
    fn more_of_it_is_told_hourly_at_most() {
        let opened = look(at(0), vec![matter(1)], &[]);
        let more = look(at(0), vec![matter(5)], &opened);
        assert_eq!((told(&more).as_slice(), more[0].alert.count), ([None].as_slice(), 5));
        let reminded = look(at(1), vec![matter(5)], &more);
        assert_eq!(told(&reminded), [Some(Telling::Reminder)]);
        assert!(nobody_hears(&look(at(2), vec![matter(5)], &reminded)));
        // What falls and rises again is more once more.
        let less = look(at(3), vec![matter(2)], &reminded);
        assert_eq!(told(&less), [None]);
        assert_eq!(told(&look(at(4), vec![matter(3)], &less)), [Some(Telling::Reminder)]);
    }

    /// Of two hosts one is a little ahead, and sees it first; or is another version.
    #[test]
    fn what_one_host_cannot_see_yet_is_not_ended_by_it() {
        let within_skew = || vec![Matter { visibility: Visibility::WithinClockSkew, ..matter(1) }];
        assert!(look(at(0), within_skew(), &[]).is_empty());
        let opened = look(at(0), vec![matter(1)], &[]);
        assert!(look(at(0), within_skew(), &opened).is_empty());
        assert_eq!(told(&look(at(0), Vec::new(), &opened)), [Some(Telling::Ended)]);
        let newer = Matter { key: "cases/something_new/ngn".to_owned(), ..matter(1) };
        let opened = look(at(0), vec![newer], &[]);
        assert!(look_as("there", at(0), (Vec::new(), &opened)).is_empty());
    }

    #[test]
    fn what_a_host_without_receivers_has_seen_is_told_by_another() {
        let look = |hours, has_receivers, open: Vec<Alert>| {
            let eye = Eye { host: "here", now: at(hours), remind: 24 * HOUR, has_receivers };
            steps(&eye, (vec![matter(1)], open), || AlertId::from_text("alert_1".to_owned()))
        };
        let alerts = |steps: &[Step]| steps.iter().map(|step| step.alert.clone()).collect();
        let opened = look(1, false, Vec::new());
        assert_eq!(opened[0].alert.told_at, Alert::UNTOLD);
        assert_eq!(told(&look(100, false, alerts(&opened))), [None]);
        let open = look(101, true, alerts(&opened));
        assert_eq!((told(&open), open[0].alert.told_at), (vec![Some(Telling::Opened)], at(101)));
        assert_eq!(told(&look(102, true, alerts(&open))), [None]);
        let over = |has_receivers, open: &[Step]| {
            let eye = Eye { host: "here", now: at(103), remind: 24 * HOUR, has_receivers };
            steps(&eye, (Vec::new(), alerts(open)), || AlertId::from_text("alert_2".to_owned()))
        };
        assert!(over(false, &open).is_empty(), "whoever was told is told of its end");
        let mut long_ago = look(101, true, alerts(&opened));
        (long_ago[0].alert.told_at, long_ago[0].alert.seen_at) = (at(60), at(103));
        assert!(over(false, &long_ago).is_empty(), "as long as somebody sees it");
        assert_eq!(told(&over(true, &open)), [Some(Telling::Ended)]);
        assert_eq!(told(&over(false, &opened)), [None], "nobody knows of it");
        // What only one host sees, which has nobody to tell.
        let mut own = look_as("there", at(1), (vec![own(1)], &[]));
        own[0].alert.told_at = Alert::UNTOLD;
        own[0].alert.seen_at = at(103);
        assert_eq!(told(&over(true, &own)), [Some(Telling::Opened)]);
        // What only this host saw, and told long ago, it ends by itself.
        (own[0].alert.host, own[0].alert.told_at) = (Some("here".to_owned()), at(60));
        assert_eq!(told(&over(false, &own)), [Some(Telling::Ended)]);
    }

    #[test]
    fn whoever_looks_after_it_hears_only_of_more() {
        let mut opened = look(at(0), vec![matter(1)], &[]);
        opened[0].alert.acknowledged = Some(("ada".to_owned(), at(0)));
        assert!(nobody_hears(&look(at(240), vec![matter(1)], &opened)));
        let more = look(at(240), vec![matter(2)], &opened);
        assert_eq!(told(&more), [Some(Telling::Reminder)]);
        assert!(more[0].alert.acknowledged.is_none());
    }

    #[test]
    fn what_one_host_sees_is_ended_by_it_or_when_it_is_gone() {
        let opened = look(at(0), vec![own(1)], &[]);
        assert_eq!(opened[0].alert.host.as_deref(), Some("here"));
        let minutes = |minutes: u64| at(0).after(Duration::from_secs(60 * minutes));
        assert!(look_as("there", minutes(9), (Vec::new(), &opened)).is_empty());
        let seen = look(minutes(9), vec![own(1)], &opened);
        assert_eq!(told(&seen), [None]);
        assert!(look_as("there", minutes(18), (Vec::new(), &seen)).is_empty());
        let gone = look_as("there", minutes(19), (Vec::new(), &seen));
        assert_eq!(told(&gone), [Some(Telling::Ended)]);
        assert_eq!(told(&look(minutes(10), Vec::new(), &seen)), [Some(Telling::Ended)]);
    }
}
