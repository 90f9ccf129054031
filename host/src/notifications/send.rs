//! The job that sends what people are to be told.

use std::time::Duration;

use futures::future::join_all;

use crate::app::App;
use crate::clock::Moment;
use crate::config::limits;
use crate::db;
use crate::outbound::mailer::{Letter, Untaken};

use super::sql::{self, Ended, Taken};
use super::{Channel, Content, place};

/// Notifications that are under way at a time, on each channel.
const AT_A_TIME: i64 = 4;

/// Sends whatever is due by one channel, until the host stops: one that hangs keeps the others waiting
/// for nothing. What is under way then is sent again when its lease has run out, by the same name.
pub async fn send(app: App, channel: Channel) {
    while !app.stopping.is_cancelled() {
        let due = due(&app, channel);
        match db::in_time(sql::claim(&app.db, (channel, AT_A_TIME), due)).await {
            Ok(taken) if taken.is_empty() => {}
            Ok(taken) => {
                let sending = taken.into_iter().map(|taken| one(app.clone(), taken));
                tokio::select! {
                    _ = join_all(sending) => continue,
                    () = app.stopping.cancelled() => return,
                }
            }
            Err(cause) => tracing::warn!(%cause, "looking for what is to be told"),
        }
        tokio::select! {
            () = app.stopping.cancelled() => return,
            () = tokio::time::sleep(limits::NOTIFICATIONS_POLL) => {}
        }
    }
}

/// Up to when what is due is taken by this host. Where it could not send it, hosts that can go first:
/// if there are none, somebody has to learn why it is not sent.
fn due(app: &App, channel: Channel) -> Moment {
    let can_send = match channel {
        Channel::Email => app.post.mailer.is_some(),
        Channel::Webhook => app.config.alerts.webhook_url.is_some(),
    };
    if can_send { app.now() } else { app.now().before(limits::NOTIFICATION_OTHERS_FIRST) }
}

async fn one(app: App, taken: Taken) {
    let tried = tokio::time::timeout(2 * limits::NOTIFICATION_MAX, attempt(&app, &taken)).await;
    let late = || Err(Untaken { for_good: false, why: "no answer in time".to_owned() });
    let ended = match tried.unwrap_or_else(|_| late()) {
        Ok(()) => Ended::Sent,
        Err(Untaken { for_good: true, why }) => Ended::GivenUp(why),
        Err(Untaken { for_good: false, why }) => match next(taken.tries, app.now()) {
            Some(due) => Ended::Later(due, why),
            None => Ended::GivenUp(why),
        },
    };
    if let Ended::GivenUp(why) = &ended {
        tracing::error!(notification.id = %taken.id, why, "somebody is not told");
    }
    if let Err(cause) = db::in_time(sql::end(&app.db, &taken, (&ended, app.now()))).await {
        tracing::warn!(notification.id = %taken.id, %cause, "what came of telling somebody");
    }
}

/// When one is tried again that was tried so often before.
fn next(tries: i64, now: Moment) -> Option<Moment> {
    let delay = limits::NOTIFICATION_DELAYS_S.get(usize::try_from(tries).ok()?)?;
    Some(now.after(Duration::from_secs(*delay)))
}

async fn attempt(app: &App, taken: &Taken) -> Result<(), Untaken> {
    let for_good = |why: String| Untaken { for_good: true, why };
    let opened = app.keyring.open(&place(&taken.id), &taken.content);
    // Another host may have a newer master key.
    let opened = opened.map_err(|cause| Untaken { for_good: false, why: cause.to_string() })?;
    let content = serde_json::from_slice(&opened).map_err(|cause| for_good(cause.to_string()))?;
    match content {
        Content::Email { to, subject, text } => {
            let none = || Untaken { for_good: false, why: "email.smtp_url is not set".to_owned() };
            let mailer = app.post.mailer.as_ref().ok_or_else(none)?;
            let (id, written_at) = (taken.id.as_str(), app.now());
            mailer.send(Letter { id, to: &to, subject: &subject, text: &text, written_at }).await
        }
        Content::Webhook { event, body } => {
            let later = |why: String| Untaken { for_good: false, why };
            let none = || later("alerts.webhook_url is not set".to_owned());
            let receiver = app.post.receiver.as_ref().ok_or_else(none)?;
            receiver.tell(taken.id.as_str(), (&event, body), app.now()).await.map_err(later)
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn it_is_tried_for_a_day_and_a_half_and_then_given_up() {
        let now = Moment::from_micros(0);
        assert_eq!(next(0, now), Some(now.after(Duration::from_secs(60))));
        assert_eq!(next(5, now), Some(now.after(Duration::from_secs(86_400))));
        assert_eq!(next(6, now), None);
    }
}
