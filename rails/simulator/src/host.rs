//! The host's imports as plain functions.
//!
//! In the sandbox they call the host. Natively, where a simulator's own tests run, they use
//! [`double`], which remembers on the test's thread.

use crate::types::{Message, Transfer};

/// The transfer of this reference, if the network knows it.
#[must_use]
pub fn find(reference: &str) -> Option<Transfer> {
    platform::find(reference)
}

/// Remembers how a transfer stands.
pub fn keep(transfer: &Transfer) {
    platform::keep(transfer);
}

/// The scenario that the request asks for, or that the recipient stands for; "paid" otherwise.
#[must_use]
pub fn scenario(account: &str) -> String {
    platform::scenario(account)
}

/// The network's signature of a message, for a key that the rail verifies by.
#[must_use]
pub fn sign(key: &str, message: &[u8]) -> Vec<u8> {
    platform::sign(key, message)
}

/// Whether a signature of a message is the rail's, for a key that it signs by.
#[must_use]
pub fn verify(key: &str, message: &[u8], signature: &[u8]) -> bool {
    platform::verify(key, message, signature)
}

/// What the rail has encrypted for the network alone, under a key that it seals under.
#[must_use]
pub fn open(key: &str, sealed: &str) -> Option<Vec<u8>> {
    platform::open(key, sealed)
}

/// Sends a message by itself.
pub fn send(message: &Message) {
    platform::send(message);
}

/// The instant of this call, milliseconds since 1970 UTC.
#[must_use]
pub fn now_ms() -> u64 {
    platform::now_ms()
}

/// A line for the log, as an error.
pub fn error(message: &str) {
    platform::error(message);
}

#[cfg(target_family = "wasm")]
mod platform {
    use crate::bindings::railhead::host::{clock, log};
    use crate::bindings::railhead::simulator::{book, keys, outbox, play};
    use crate::types::{Message, Transfer};

    pub(super) fn find(reference: &str) -> Option<Transfer> {
        book::find(reference)
    }

    pub(super) fn keep(transfer: &Transfer) {
        book::keep(transfer);
    }

    pub(super) fn scenario(account: &str) -> String {
        play::scenario(account)
    }

    pub(super) fn sign(key: &str, message: &[u8]) -> Vec<u8> {
        keys::sign(key, message)
    }

    pub(super) fn verify(key: &str, message: &[u8], signature: &[u8]) -> bool {
        keys::verify(key, message, signature)
    }

    pub(super) fn open(key: &str, sealed: &str) -> Option<Vec<u8>> {
        keys::open(key, sealed)
    }

    pub(super) fn send(message: &Message) {
        outbox::send(message);
    }

    pub(super) fn now_ms() -> u64 {
        clock::now_ms()
    }

    pub(super) fn error(message: &str) {
        log::write(log::Level::Error, message);
    }
}

#[cfg(not(target_family = "wasm"))]
mod platform {
    use super::double;
    use crate::types::{Message, Transfer};

    pub(super) fn find(reference: &str) -> Option<Transfer> {
        double::with(|host| host.book.get(reference).cloned())
    }

    pub(super) fn keep(transfer: &Transfer) {
        double::with(|host| host.book.insert(transfer.reference.clone(), transfer.clone()));
    }

    pub(super) fn scenario(_account: &str) -> String {
        double::with(|host| host.scenario.clone())
    }

    pub(super) fn sign(key: &str, message: &[u8]) -> Vec<u8> {
        double::signature(key, message)
    }

    pub(super) fn verify(key: &str, message: &[u8], signature: &[u8]) -> bool {
        double::signature(key, message) == signature
    }

    pub(super) fn open(key: &str, sealed: &str) -> Option<Vec<u8>> {
        sealed.strip_prefix(&double::seal(key)).map(|secret| secret.as_bytes().to_vec())
    }

    pub(super) fn send(message: &Message) {
        double::with(|host| host.sent.push(message.clone()));
    }

    pub(super) fn now_ms() -> u64 {
        double::with(|host| host.now_ms)
    }

    pub(super) fn error(message: &str) {
        double::with(|host| host.errors.push(message.to_owned()));
    }
}

/// A stand-in for the host in a simulator's native tests.
#[cfg(not(target_family = "wasm"))]
pub mod double {
    use std::cell::RefCell;
    use std::collections::BTreeMap;

    use crate::types::{Message, Transfer};

    /// The host as one test wants it, and what it was told.
    #[derive(Default)]
    pub struct Host {
        /// What the network remembers.
        pub book: BTreeMap<String, Transfer>,
        /// The scenario of every request.
        pub scenario: String,
        /// What was sent.
        pub sent: Vec<Message>,
        /// The instant of the call.
        pub now_ms: u64,
        /// Errors that were logged.
        pub errors: Vec<String>,
    }

    thread_local! {
        static HOST: RefCell<Host> = RefCell::default();
    }

    /// Installs `host` for this thread.
    pub fn install(host: Host) {
        HOST.set(host);
    }

    /// What stands for a signature here: the key's name and the message.
    #[must_use]
    pub fn signature(key: &str, message: &[u8]) -> Vec<u8> {
        [key.as_bytes(), b":", message].concat()
    }

    /// What stands before a secret here that is encrypted under a key.
    #[must_use]
    pub fn seal(key: &str) -> String {
        format!("sealed under {key}:")
    }

    /// Looks at, or changes, the host of this thread.
    pub fn with<T>(act: impl FnOnce(&mut Host) -> T) -> T {
        HOST.with_borrow_mut(act)
    }
}
