//! What simulated networks send by themselves, and who waits for it to arrive.

use std::collections::HashMap;
use std::sync::{Arc, Mutex, PoisonError};

use tokio::sync::{Notify, mpsc};

use crate::wasm::simulator::{Message, Place};

/// A message that a simulated network sends to the host.
#[derive(Clone, Debug, Default)]
pub struct OwnMessage {
    /// The rail that it is for.
    pub rail: String,
    /// The HTTP method.
    pub method: http::Method,
    /// The path below the rail's notice address.
    pub path: String,
    /// The address that the network was given, which stands in place of all others.
    pub url: Option<String>,
    /// Headers that belong to it.
    pub headers: Vec<(String, String)>,
    /// The body of the message.
    pub body: Vec<u8>,
    /// Until it is dropped, the message is on its way.
    pub on_its_way: Option<Arc<OnItsWay>>,
}

impl OwnMessage {
    /// The body, where it is a text.
    #[must_use]
    pub fn text(&self) -> String {
        String::from_utf8_lossy(&self.body).into_owned()
    }
}

/// The way out of a simulator.
#[derive(Clone, Debug)]
pub(super) struct Outbox {
    messages: mpsc::UnboundedSender<OwnMessage>,
    underway: Underway,
}

/// Messages that are on their way, by the payment that they are about.
#[derive(Clone, Debug, Default)]
pub struct Underway(Arc<Board>);

#[derive(Debug, Default)]
struct Board {
    counts: Mutex<HashMap<String, usize>>,
    changed: Notify,
}

/// A message on its way; it has arrived when this is dropped.
#[derive(Debug)]
pub struct OnItsWay {
    reference: String,
    board: Arc<Board>,
}

impl Outbox {
    pub(super) fn new() -> (Self, mpsc::UnboundedReceiver<OwnMessage>) {
        let (messages, receiver) = mpsc::unbounded_channel();
        (Self { messages, underway: Underway::default() }, receiver)
    }

    pub(super) fn underway(&self) -> Underway {
        self.underway.clone()
    }

    /// Sends a message of a rail's network.
    pub(super) fn send(&self, rail: &str, message: Message) {
        let (path, url) = match message.to {
            Place::Notice(path) => (path, None),
            Place::Url(url) => (String::new(), Some(url)),
        };
        let message = OwnMessage {
            rail: rail.to_owned(),
            method: message.method.parse().unwrap_or(http::Method::POST),
            path,
            url,
            headers: message.headers,
            body: message.body,
            on_its_way: Some(Arc::new(self.underway.begin(&message.about))),
        };
        // Without a receiver there is no host to tell.
        let _ = self.messages.send(message);
    }
}

impl Underway {
    fn begin(&self, reference: &str) -> OnItsWay {
        let mut counts = self.0.counts.lock().unwrap_or_else(PoisonError::into_inner);
        *counts.entry(reference.to_owned()).or_default() += 1;
        OnItsWay { reference: reference.to_owned(), board: Arc::clone(&self.0) }
    }

    /// Whether there was anything to wait for, once nothing about a payment is on its way.
    pub async fn arrived(&self, reference: &str) -> bool {
        let mut has_waited = false;
        loop {
            let changed = self.0.changed.notified();
            tokio::pin!(changed);
            // From here on nothing is missed.
            changed.as_mut().enable();
            let is_there = || {
                let counts = self.0.counts.lock().unwrap_or_else(PoisonError::into_inner);
                counts.contains_key(reference)
            };
            if !is_there() {
                return has_waited;
            }
            has_waited = true;
            changed.await;
        }
    }
}

impl Drop for OnItsWay {
    fn drop(&mut self) {
        let mut counts = self.board.counts.lock().unwrap_or_else(PoisonError::into_inner);
        if let Some(count) = counts.get_mut(&self.reference) {
            *count -= 1;
            if *count == 0 {
                counts.remove(&self.reference);
                self.board.changed.notify_waiters();
            }
        }
    }
}
