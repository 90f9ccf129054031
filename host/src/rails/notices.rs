//! What a rail declares of the messages that its network sends by itself.

use base64::Engine as _;
use base64::prelude::BASE64_STANDARD as BASE64;
use http::HeaderName;
use serde::Deserialize;

use crate::clock::Moment;
use crate::wasm::rail::Message;

/// `[[notices]]`
#[derive(Clone, Debug, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct NoticeTerms {
    /// Below the rail's notice address.
    pub path: String,
    /// HTTP methods by which it comes.
    #[serde(default = "post")]
    pub methods: Vec<String>,
    /// How the network shows who it is.
    pub auth: NoticeAuth,
    /// How far what it says by itself is believed.
    #[serde(default)]
    pub trust: Trust,
    /// Whether this is where the network answers questions. What is said there is no reason to
    /// ask again: question and answer would never end.
    #[serde(default)]
    pub answers_queries: bool,
}

/// `[notices.auth.signature]`: a signature of the message, in a header.
#[derive(Clone, Debug, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct SignatureTerms {
    /// The key that it is checked by.
    pub key: String,
    /// The header that it is in, in lowercase.
    pub header: String,
    /// What stands before it there, as in `sha256=`.
    #[serde(default)]
    pub prefix: String,
    /// How its bytes are written.
    #[serde(default)]
    pub encoding: Encoding,
    /// What is signed, one after the other; the body, if left out.
    #[serde(default = "body")]
    pub over: Vec<Piece>,
    /// When it was signed, where the network says so.
    pub signed_at: Option<SignedAt>,
}

/// How the bytes of a signature are written.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Deserialize)]
#[serde(rename_all = "lowercase")]
pub enum Encoding {
    /// RFC 4648, section 4.
    #[default]
    Base64,
    /// Two digits for a byte, of either case.
    Hex,
}

/// A piece of what is signed.
#[derive(Clone, Debug, PartialEq, Eq, Deserialize)]
#[serde(rename_all = "lowercase")]
pub enum Piece {
    /// The body, as it arrived.
    Body,
    /// The value of a header, by its name in lowercase.
    Header(String),
    /// This text.
    Text(String),
}

/// `[notices.auth.signature.signed_at]`: a message that is older is not believed, nor one of later.
#[derive(Clone, Debug, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct SignedAt {
    /// The header that has it, in lowercase. It must be signed, too.
    pub header: String,
    /// How it is written.
    #[serde(default)]
    pub unit: Unit,
    /// By how many seconds it may differ from this host's clock.
    pub within_s: u32,
}

/// How an instant is written.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Deserialize)]
#[serde(rename_all = "lowercase")]
pub enum Unit {
    /// Seconds since 1970.
    #[default]
    S,
    /// Milliseconds since 1970.
    Ms,
    /// As in 2026-03-06T15:00:00Z.
    Rfc3339,
}

/// `[notices.auth]`: all of these that are declared, and one at least.
#[derive(Clone, Debug, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct NoticeAuth {
    /// The secret that it presents as a bearer token.
    pub bearer: Option<String>,
    /// It was given an address with a token in it.
    #[serde(default)]
    pub path_token: bool,
    /// It signs what it sends.
    pub signature: Option<SignatureTerms>,
}

impl SignatureTerms {
    /// What the header has of a signature, if it is short enough to be one.
    #[must_use]
    pub fn carried<'a>(&self, message: &'a Message) -> Option<&'a str> {
        let text = header(message, &self.header)?.strip_prefix(self.prefix.as_str())?;
        (!text.is_empty() && text.len() <= SIGNATURE_MAX).then_some(text)
    }

    /// What a message has signed, and with what; nothing where a piece is missing, or where it was
    /// signed at another time.
    #[must_use]
    pub fn signed(&self, message: &Message, now: Moment) -> Option<(Vec<u8>, Vec<u8>)> {
        let carried = self.carried(message)?;
        let signature = match self.encoding {
            Encoding::Base64 => BASE64.decode(carried.trim()).ok()?,
            Encoding::Hex => hex::decode(carried.trim()).ok()?,
        };
        if self.signed_at.as_ref().is_some_and(|terms| !terms.is_near(message, now)) {
            return None;
        }
        let mut signed = Vec::new();
        for piece in &self.over {
            match piece {
                Piece::Body => signed.extend_from_slice(&message.body),
                Piece::Header(name) => signed.extend_from_slice(header(message, name)?.as_bytes()),
                Piece::Text(text) => signed.extend_from_slice(text.as_bytes()),
            }
        }
        Some((signed, signature))
    }

    /// Why it makes no sense, if it does not.
    pub(super) fn nonsense(&self) -> Option<String> {
        let signs = |name: &String| self.over.contains(&Piece::Header(name.clone()));
        let named = self.over.iter().filter_map(|piece| match piece {
            Piece::Header(name) => Some(name),
            Piece::Body | Piece::Text(_) => None,
        });
        let mut names = named.chain([&self.header]);
        if let Some(name) = names.find(|it| HeaderName::from_lowercase(it.as_bytes()).is_err()) {
            return Some(format!("{name} is no header in lowercase"));
        }
        if !self.over.contains(&Piece::Body) {
            return Some("a signature is over the body at least".to_owned());
        }
        let varies = |piece: &Piece| !matches!(piece, Piece::Text(text) if !text.is_empty());
        if self.over.windows(2).any(|two| varies(&two[0]) && varies(&two[1])) {
            let why = "two pieces that vary need a text between them in over";
            return Some(why.to_owned());
        }
        let at = self.signed_at.as_ref()?;
        let is_odd = !signs(&at.header) || !(1..=3_600).contains(&at.within_s);
        let why = "signed_at.header must stand in over, and within_s be from 1 to 3600";
        is_odd.then(|| why.to_owned())
    }
}

impl SignedAt {
    fn is_near(&self, message: &Message, now: Moment) -> bool {
        let text = header(message, &self.header).unwrap_or_default();
        let at_ms: Option<i64> = match self.unit {
            Unit::S => text.parse().ok().and_then(|it: i64| it.checked_mul(1_000)),
            Unit::Ms => text.parse().ok(),
            Unit::Rfc3339 => text.parse().ok().map(|it: jiff::Timestamp| it.as_millisecond()),
        };
        let now_ms = now.micros() / 1_000;
        at_ms.is_some_and(|at| at.abs_diff(now_ms) <= u64::from(self.within_s) * 1_000)
    }
}

/// The longest text of a signature: hex of one by a key of 8192 bits.
const SIGNATURE_MAX: usize = 2_048;

/// A header that a message has once.
fn header<'a>(message: &'a Message, name: &str) -> Option<&'a str> {
    let mut found = message.headers.iter().filter(|(known, _)| known == name);
    found.next().filter(|_| found.next().is_none()).map(|(_, value)| value.as_str())
}

fn body() -> Vec<Piece> {
    vec![Piece::Body]
}

fn post() -> Vec<String> {
    vec!["POST".to_owned()]
}

/// How far a network is believed where it speaks by itself.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Deserialize)]
#[serde(rename_all = "lowercase")]
pub enum Trust {
    /// A message is a reason to ask, and the answer is believed.
    #[default]
    Hint,
    /// What became of a payment is believed as it is told: no question would show it.
    Outcome,
}

#[cfg(test)]
#[path = "notices_tests.rs"]
mod tests;
