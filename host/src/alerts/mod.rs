//! What an operator has to look at, told once: by e-mail and by a signed webhook, with what to do.
//!
//! Every host looks at what is the matter, and one alert is open for each thing at a time. What a
//! host alone can know (that it leaves a network alone, say) is its own alert; what the database
//! says belongs to all of them. Whoever changes alerts holds their turn, so that two hosts that see
//! the same tell it once.

mod matters;
pub mod sql;
mod steps;
pub mod watch;

use serde::Serialize;
use serde_json::json;
use utoipa::ToSchema;

use crate::app::App;
use crate::clock::Moment;
use crate::db::bulk::RowChange;
use crate::error::Problem;
use crate::id::AlertId;
use crate::notifications::{self, Content};

/// What kind of thing is the matter.
#[derive(Clone, Copy, Debug, PartialEq, Eq, strum::EnumIter)]
pub enum AlertKind {
    /// Cases about live money are open.
    Cases,
    /// Money has been in question for long.
    Suspense,
    /// A rule pack was taken out, and payouts are held since.
    RulesHeld,
    /// A host leaves a network alone.
    RouteLeftAlone,
    /// No route takes what waits to be sent.
    NoRoute,
    /// Nothing live is sent.
    Quarantine,
    /// A host cannot write down what is about to leave, and so sends nothing live.
    IntentsUnwritten,
    /// No rates come from a provider.
    RateSource,
    /// The books were not anchored.
    AnchorMissed,
    /// People were not told what they should have been.
    NotTold,
    /// Nothing is: an operator tries whether alerts arrive. It is told, and never kept.
    Test,
}

impl AlertKind {
    /// The word used on the wire and in the database.
    #[must_use]
    pub const fn as_str(self) -> &'static str {
        match self {
            Self::Cases => "cases",
            Self::Suspense => "suspense",
            Self::RulesHeld => "rules_held",
            Self::RouteLeftAlone => "route_left_alone",
            Self::NoRoute => "no_route",
            Self::Quarantine => "quarantine",
            Self::IntentsUnwritten => "intents_unwritten",
            Self::RateSource => "rate_source",
            Self::AnchorMissed => "anchor_missed",
            Self::NotTold => "not_told",
            Self::Test => "test",
        }
    }

    /// Reads the word.
    #[must_use]
    pub fn parse(text: &str) -> Option<Self> {
        use strum::IntoEnumIterator as _;
        Self::iter().find(|kind| kind.as_str() == text)
    }
}

/// Something that is the matter, or was.
#[derive(Clone, Debug)]
pub struct Alert {
    /// Its id.
    pub id: AlertId,
    /// What makes it the same as one that is open already.
    pub key: String,
    /// What kind of thing it is.
    pub kind: AlertKind,
    /// What is the matter, in one sentence.
    pub summary: String,
    /// What to do.
    pub advice: String,
    /// How many are concerned.
    pub count: i64,
    /// The host that sees it, where others do not.
    pub host: Option<String>,
    /// Since when.
    pub opened_at: Moment,
    /// When it was seen last: to the minute where one host alone sees it, otherwise to ten minutes.
    pub seen_at: Moment,
    /// When it was told last; [`Self::UNTOLD`] where no host that has seen it has anybody to tell.
    pub told_at: Moment,
    /// How many were concerned then.
    pub told_count: i64,
    /// Who looks after it, and since when: reminders have stopped.
    pub acknowledged: Option<(String, Moment)>,
    /// When it was over.
    pub ended_at: Option<Moment>,
}

impl Alert {
    /// When something was told that nobody has been told yet.
    pub const UNTOLD: Moment = Moment::from_micros(-1);
}

/// What is told of an alert.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Telling {
    /// It is new.
    Opened,
    /// It goes on, or there is more of it.
    Reminder,
    /// It is over.
    Ended,
    /// Nothing is the matter: somebody tries whether word arrives.
    Test,
}

impl Telling {
    const fn event(self) -> &'static str {
        match self {
            Self::Opened => "alert.opened",
            Self::Reminder => "alert.reminder",
            Self::Ended => "alert.ended",
            Self::Test => "alert.test",
        }
    }

    const fn word(self) -> &'static str {
        match self {
            Self::Opened => "Alert",
            Self::Reminder => "Still",
            Self::Ended => "Over",
            Self::Test => "Test",
        }
    }
}

/// An alert as operators see it, and as receivers of alerts do.
#[derive(Debug, Serialize, ToSchema)]
pub struct AlertView {
    /// Always `alert`.
    #[schema(example = "alert")]
    pub object: &'static str,
    /// Its id.
    #[schema(example = "alert_01kaz3v8d1f7wq5n2x4y6z8ab9")]
    pub id: String,
    /// What kind of thing is the matter: `cases`, `suspense`, `rules_held`, `route_left_alone`,
    /// `no_route`, `quarantine`, `intents_unwritten`, `rate_source`, `anchor_missed` or `not_told`.
    #[schema(example = "cases")]
    pub kind: &'static str,
    /// `open`, `acknowledged` or `ended`.
    #[schema(example = "open")]
    pub status: &'static str,
    /// What is the matter, in one sentence.
    pub summary: String,
    /// What to do.
    pub advice: String,
    /// How many are concerned.
    pub count: i64,
    /// The host that sees it, where others do not.
    pub host: Option<String>,
    /// Since when.
    #[schema(value_type = String, format = DateTime)]
    pub opened_at: Moment,
    /// When it was told last; null where no host has anybody to tell.
    #[schema(value_type = Option<String>, format = DateTime)]
    pub told_at: Option<Moment>,
    /// Who looks after it.
    pub acknowledged_by: Option<String>,
    /// Since when.
    #[schema(value_type = Option<String>, format = DateTime)]
    pub acknowledged_at: Option<Moment>,
    /// When it was over.
    #[schema(value_type = Option<String>, format = DateTime)]
    pub ended_at: Option<Moment>,
}

impl AlertView {
    /// See [`Alert`].
    #[must_use]
    pub fn of(alert: &Alert) -> Self {
        let status = match (&alert.ended_at, &alert.acknowledged) {
            (Some(_), _) => "ended",
            (None, Some(_)) => "acknowledged",
            (None, None) => "open",
        };
        Self {
            object: "alert",
            id: alert.id.to_string(),
            kind: alert.kind.as_str(),
            status,
            summary: alert.summary.clone(),
            advice: alert.advice.clone(),
            count: alert.count,
            host: alert.host.clone(),
            opened_at: alert.opened_at,
            told_at: Some(alert.told_at).filter(|at| *at != Alert::UNTOLD),
            acknowledged_by: alert.acknowledged.as_ref().map(|(who, _)| who.clone()),
            acknowledged_at: alert.acknowledged.as_ref().map(|(_, at)| *at),
            ended_at: alert.ended_at,
        }
    }
}

/// Whether this host has anybody to tell.
fn has_receivers(app: &App) -> bool {
    let alerts = &app.config.alerts;
    let has_mail = app.post.mailer.is_some() && !alerts.email_to.is_empty();
    alerts.webhook_url.is_some() || has_mail
}

/// Everybody who is told, in every way that is configured.
pub(crate) fn tell(app: &App, alert: &Alert, telling: Telling) -> Result<Vec<RowChange>, Problem> {
    let alerts = &app.config.alerts;
    let mut rows = Vec::new();
    let about = ("alert", alert.id.as_str());
    if alerts.webhook_url.is_some() {
        let event = telling.event().to_owned();
        let body = json!({
            "type": event,
            "created_at": app.now(),
            "data": AlertView::of(alert),
        });
        let content = Content::Webhook { event, body: body.to_string() };
        rows.push(notifications::queued(app, about, &content)?);
    }
    let subject = format!("[{}] {}", telling.word(), notifications::in_one_line(&alert.summary));
    for to in &alerts.email_to {
        let (to, subject) = (to.clone(), subject.clone());
        let content = Content::Email { to, subject, text: letter(alert, telling) };
        rows.push(notifications::queued(app, about, &content)?);
    }
    Ok(rows)
}

fn letter(alert: &Alert, telling: Telling) -> String {
    let Alert { summary, advice, opened_at, id, .. } = alert;
    let host = alert.host.as_ref().map(|host| format!("\nHost: {host}")).unwrap_or_default();
    match telling {
        Telling::Opened | Telling::Reminder => format!(
            "{summary}\n\nWhat to do: {advice}\n\nSince: {opened_at}{host}\nAlert: {id}\n\nYou are \
             reminded until it is over, or until somebody looks after it:\n\
             railhead admin alert acknowledge {id}\n"
        ),
        Telling::Ended => {
            format!("This is over: {summary}\n\nIt began: {opened_at}{host}\nAlert: {id}\n")
        }
        Telling::Test => format!("{summary}\n\n{advice}\n"),
    }
}

#[cfg(test)]
mod tests {
    use strum::IntoEnumIterator as _;

    use super::*;

    #[test]
    fn a_kind_is_read_by_its_word() {
        for kind in AlertKind::iter() {
            assert_eq!(AlertKind::parse(kind.as_str()), Some(kind));
        }
        assert_eq!(AlertKind::parse("fire"), None);
    }
}
