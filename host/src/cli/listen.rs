//! `railhead listen`: events to a server on this machine, in the form that webhooks have.

use std::collections::BTreeSet;
use std::time::{Duration, Instant};

use clap::Args;
use reqwest::{Client, Response, Url, redirect};
use secrecy::SecretString;
use serde::Deserialize;
use serde_json::value::RawValue;

use crate::clock::{Clock, Moment};
use crate::config::{Config, limits};
use crate::events::canonical;
use crate::events::outbox::{Head, spelling};
use crate::id::{DeliveryId, EventId, IdGenerator};
use crate::outbound::sign::{Letter, headers, is_secret, new_secret};
use crate::start::{Sources, StartError};

use super::account::{Account, Api, http_url, innermost, say};
use super::serve;

/// How long until the first attempt to connect again, and at most.
const PAUSE: (Duration, Duration) = (Duration::from_millis(250), Duration::from_secs(8));
/// A stream that is silent for longer than a few of its signs of life is dead.
const SILENCE_MAX: Duration = limits::STREAM_KEEP_ALIVE.saturating_mul(3);
/// Largest message that is taken: far above any event.
const MESSAGE_BYTES_MAX: usize = 4 * 1024 * 1024;

/// Arguments of the command.
#[derive(Args)]
pub(super) struct Listen {
    /// Where events are posted, for example http://127.0.0.1:3000/webhooks.
    #[arg(long, value_name = "URL", value_parser = web_address)]
    forward_to: Url,
    /// Names of events in either spelling, separated by commas; all of them if left out.
    #[arg(long, value_delimiter = ',')]
    events: Vec<String>,
    /// What signs them; a new secret for each run if left out.
    #[arg(long, value_name = "WHSEC")]
    secret: Option<String>,
    #[command(flatten)]
    account: Account,
}

/// An address that something can be posted to.
fn web_address(text: &str) -> Result<Url, String> {
    http_url(text)?.parse().map_err(|cause| format!("{cause}"))
}

impl Listen {
    pub(super) async fn run(self, config: &Config) -> Result<(), StartError> {
        let events = match self.events.as_slice() {
            [] => vec!["*".to_owned()],
            given => given.to_vec(),
        };
        if let Some(unknown) = events.iter().find(|name| *name != "*" && canonical(name).is_none())
        {
            return Err(format!("there is no event {unknown}").into());
        }
        let Sources { clock, ids } = Sources::system()?;
        let secret = self.secret.unwrap_or_else(|| new_secret(&ids));
        if !is_secret(&secret) {
            return Err("a secret is whsec_ followed by base64".into());
        }
        let api = self.account.open(config)?;
        let mut stream = api.stream(None).await?;
        say(&format!("Signing secret: {secret}"))?;
        say(&format!("Forwarding {} to {}", events.join(", "), self.forward_to))?;
        let mut listener = Listener {
            receiver: Receiver {
                client: Client::builder().redirect(redirect::Policy::none()).no_proxy().build()?,
                url: self.forward_to,
                secrets: [secret.into()],
                events: serde_json::to_string(&events)?,
                clock,
                ids,
            },
            heard: Heard::default(),
        };
        let listening = async {
            loop {
                listener.read(&mut stream).await?;
                stream = listener.connect(&api).await?;
            }
        };
        tokio::select! {
            () = serve::told_to_stop()? => Ok(()),
            ended = listening => ended,
        }
    }
}

/// What reads a stream and forwards what is new.
struct Listener {
    receiver: Receiver,
    heard: Heard,
}

impl Listener {
    /// Reads a stream until it ends, whatever ends it.
    async fn read(&mut self, stream: &mut Response) -> Result<(), StartError> {
        let mut messages = Messages::default();
        while let Ok(Ok(Some(bytes))) = tokio::time::timeout(SILENCE_MAX, stream.chunk()).await {
            messages.push(&bytes)?;
            while let Some(message) = messages.next() {
                if self.heard.is_new(&message) {
                    self.receiver.forward(&message.data).await?;
                }
            }
        }
        Ok(())
    }

    /// Connects again, however long it takes.
    async fn connect(&mut self, api: &Api) -> Result<Response, StartError> {
        say("The stream ended; connecting again")?;
        self.heard.is_resumed = true;
        let (mut pause, longest) = PAUSE;
        loop {
            tokio::time::sleep(pause).await;
            let trouble = match api.stream(self.heard.cursor.as_ref().map(EventId::as_str)).await {
                Ok(stream) => {
                    say("Connected again")?;
                    return Ok(stream);
                }
                Err(trouble) if trouble.may_pass() => trouble,
                Err(trouble) => return Err(trouble.into()),
            };
            pause = (pause * 2).min(longest).max(trouble.retry_after());
        }
    }
}

/// What was heard, so that nothing is forwarded twice.
#[derive(Default)]
struct Heard {
    /// Where listening began: what a later stream repeats from before is none of ours.
    begin: Option<String>,
    is_resumed: bool,
    /// The latest event; the next stream begins [`limits::STREAM_LOOK_BACK`] before it.
    cursor: Option<EventId>,
    known: BTreeSet<String>,
}

impl Heard {
    fn is_new(&mut self, message: &Message) -> bool {
        let Some(id) = EventId::parse(&message.id) else { return false };
        let began = self.begin.get_or_insert_with(|| message.id.clone());
        let is_before = self.is_resumed && message.id < *began;
        if self.cursor.as_ref().is_none_or(|cursor| *cursor < id) {
            self.cursor = Some(id);
        }
        !message.data.is_empty() && !is_before && self.remember(&message.id)
    }

    /// Whether this one was not known.
    fn remember(&mut self, id: &str) -> bool {
        let is_new = self.known.insert(id.to_owned());
        if let Some(cursor) = &self.cursor {
            let low = EventId::first_at(cursor.made_at().before(limits::STREAM_LOOK_BACK));
            self.known = self.known.split_off(low.as_str());
        }
        is_new
    }
}

/// The developer's server.
struct Receiver {
    client: Client,
    url: Url,
    secrets: [SecretString; 1],
    events: String,
    clock: Clock,
    ids: IdGenerator,
}

/// An event as the stream shows it.
#[derive(Deserialize)]
struct Event {
    id: String,
    event: String,
    created_at: String,
    env: String,
    sequence: i64,
    data: Box<RawValue>,
}

impl Receiver {
    /// Posts an event and says what came of it.
    async fn forward(&self, event: &str) -> Result<(), StartError> {
        let event: Event = serde_json::from_str(event)?;
        let Some(name) = spelling(&self.events, &event.event) else { return Ok(()) };
        let head = Head {
            id: &event.id,
            created_at: Moment::parse(&event.created_at).ok_or("an event without an instant")?,
            env: &event.env,
            sequence: event.sequence,
        };
        let body = head.body(&name, event.data.get()).ok_or("an event without its object")?;
        let (id, now): (DeliveryId, _) = (self.ids.id(), self.clock.now());
        let letter = Letter { id: id.as_str(), event: &name, is_test: false, body: &body };
        let headers = headers(&letter, &self.secrets, now);
        let begun = Instant::now();
        let outcome = match self.post(headers, body).await {
            Ok(status) => status.to_string(),
            Err(cause) => innermost(&cause),
        };
        let took = begun.elapsed().as_millis();
        Ok(say(&format!("{now}  {name:<18} {}  {outcome}  {took} ms", event.id))?)
    }

    async fn post(&self, headers: http::HeaderMap, body: String) -> reqwest::Result<u16> {
        let request = self.client.post(self.url.clone()).headers(headers).body(body);
        let request = request.header("user-agent", crate::outbound::USER_AGENT);
        let answer = request.timeout(limits::WEBHOOK_EXCHANGE_MAX).send().await?;
        let status = answer.status().as_u16();
        // As with a webhook, an answer counts when all of it is there.
        answer.bytes().await?;
        Ok(status)
    }
}

/// A message of a stream.
#[derive(Debug, Default, PartialEq, Eq)]
struct Message {
    id: String,
    data: String,
}

/// Messages out of bytes, as the HTML standard describes event streams, as far as this one
/// goes: ids and data.
#[derive(Default)]
struct Messages {
    bytes: Vec<u8>,
    message: Message,
}

impl Messages {
    fn push(&mut self, bytes: &[u8]) -> Result<(), StartError> {
        if self.bytes.len() + self.message.data.len() + bytes.len() > MESSAGE_BYTES_MAX {
            return Err("the stream holds something that is no event".into());
        }
        self.bytes.extend_from_slice(bytes);
        Ok(())
    }

    /// The next whole message.
    fn next(&mut self) -> Option<Message> {
        while let Some(end) = self.bytes.iter().position(|byte| *byte == b'\n') {
            let line: Vec<u8> = self.bytes.drain(..=end).collect();
            let line = String::from_utf8_lossy(&line);
            let line = line.trim_end_matches(['\n', '\r']);
            if line.is_empty() {
                let message = std::mem::take(&mut self.message);
                if message != Message::default() {
                    return Some(message);
                }
                continue;
            }
            let (name, value) = line.split_once(':').unwrap_or((line, ""));
            let value = value.strip_prefix(' ').unwrap_or(value);
            match name {
                "id" => value.clone_into(&mut self.message.id),
                "data" => self.message.data.push_str(value),
                _ => {}
            }
        }
        None
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn message(at_s: i64, data: &str) -> Message {
        let id = EventId::first_at(Moment::from_micros(at_s * 1_000_000));
        Message { id: id.to_string(), data: data.into() }
    }

    #[test]
    fn messages_are_read_however_they_are_cut() {
        let text = b": still here\n\nid: evt_1\n\nid:evt_2\r\ndata: {\"a\":1}\r\n\r\nid: evt_3\n";
        for size in 1..text.len() {
            let (mut messages, mut read) = (Messages::default(), Vec::new());
            for bytes in text.chunks(size) {
                messages.push(bytes).expect("few");
                read.extend(std::iter::from_fn(|| messages.next()));
            }
            let read: Vec<_> = read.iter().map(|m| (m.id.as_str(), m.data.as_str())).collect();
            assert_eq!(read, [("evt_1", ""), ("evt_2", "{\"a\":1}")]);
        }
    }

    #[test]
    fn what_is_repeated_and_what_was_before_is_dropped() {
        let mut heard = Heard::default();
        let mut is_new = |at_s, data| heard.is_new(&message(at_s, data));
        assert!(!is_new(1000, ""), "where listening begins");
        for late in [1010, 1005, 999] {
            assert!(is_new(late, "{}") && !is_new(late, "{}"), "{late}");
        }
        heard.is_resumed = true;
        let mut is_new = |at_s, data| heard.is_new(&message(at_s, data));
        for known in [998, 999, 1005, 1010] {
            assert!(!is_new(known, "{}"), "{known}");
        }
        assert!(is_new(1001, "{}") && is_new(1200, "{}"));
        assert_eq!(heard.known.len(), 1, "what no stream repeats is forgotten");
        assert_eq!(heard.cursor.map(|id| id.made_at().seconds()), Some(1200));
    }
}
