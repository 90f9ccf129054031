//! What people are told by the host itself: receipts and invitations by e-mail, alerts by e-mail and
//! by the operator's own webhook. It is written in the transaction of what it tells, sealed, sent by
//! whichever host takes it, again and again until it is taken, and emptied then.

pub mod send;
pub mod sql;

use serde::{Deserialize, Serialize};

use crate::app::App;
use crate::db::bulk::RowChange;
use crate::error::Problem;
use crate::id::NotificationId;

/// What somebody is told, and how.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
#[serde(tag = "channel", rename_all = "snake_case")]
pub enum Content {
    /// A letter in plain text.
    Email {
        /// The address.
        to: String,
        /// One line.
        subject: String,
        /// The text, in lines.
        text: String,
    },
    /// A request to the operator's address.
    Webhook {
        /// The event's name.
        event: String,
        /// The JSON body.
        body: String,
    },
}

impl Content {
    /// How it leaves.
    #[must_use]
    pub const fn channel(&self) -> Channel {
        match self {
            Self::Email { .. } => Channel::Email,
            Self::Webhook { .. } => Channel::Webhook,
        }
    }
}

/// How a notification leaves.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Channel {
    /// Over the operator's mail server.
    Email,
    /// To the operator's own address.
    Webhook,
}

impl Channel {
    /// The word used on the wire and in the database.
    #[must_use]
    pub const fn as_str(self) -> &'static str {
        match self {
            Self::Email => "email",
            Self::Webhook => "webhook",
        }
    }
}

/// Something that is to be told: `kind` is `receipt`, `invitation` or `alert`, `subject_id` names
/// what it is about.
///
/// # Errors
/// It cannot be sealed.
pub fn queued(
    app: &App,
    (kind, subject_id): (&'static str, &str),
    content: &Content,
) -> Result<RowChange, Problem> {
    let id: NotificationId = app.ids.id();
    let text = serde_json::to_string(content).map_err(Problem::internal)?;
    let sealed = app.keyring.seal(&app.ids, &place(&id), text.as_bytes());
    Ok(sql::NOTIFICATIONS.insert(&sql::New {
        content: sealed.map_err(Problem::internal)?,
        channel: content.channel(),
        kind,
        subject_id: subject_id.to_owned(),
        created_at: app.now(),
        id,
    }))
}

/// What a notification is sealed for.
fn place(id: &NotificationId) -> String {
    format!("notifications/{id}")
}

/// A text in one line, for a subject.
#[must_use]
pub fn in_one_line(text: &str) -> String {
    let spaced: String = text.chars().map(|c| if c.is_control() { ' ' } else { c }).collect();
    spaced.split_whitespace().collect::<Vec<_>>().join(" ")
}
