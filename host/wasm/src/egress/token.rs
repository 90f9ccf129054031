//! Tokens that a network wants with every request, and gives for credentials.

use std::collections::BTreeMap;
use std::sync::Arc;
use std::time::Duration;

use ::http::header::{AUTHORIZATION, CONTENT_TYPE};
use base64::Engine as _;
use base64::prelude::BASE64_STANDARD as BASE64;
use percent_encoding::utf8_percent_encode;
use secrecy::{ExposeSecret as _, SecretString};
use serde::Deserialize;
use tokio::sync::Mutex;

use crate::config::limits;

use super::{Answer, Call, Egress, Filled, Outgoing, UNRESERVED};

/// Of a token that does not say how long it lives.
const LIFETIME_DEFAULT: Duration = Duration::from_secs(300);
/// No clock is exact, and a request takes a while: a token is renewed that much before its end, or
/// in the last tenth of its life if that is longer.
const MARGIN_MIN: Duration = Duration::from_secs(20);

/// Where a token comes from. It is kept until shortly before its end, for all calls over a route.
pub struct TokenSource {
    /// The call that gets it.
    pub call: Arc<Call>,
    /// Parameters of its query.
    pub query: BTreeMap<String, String>,
    /// User and password, where it wants them so.
    pub basic: Option<[SecretString; 2]>,
    /// Further headers.
    pub headers: Vec<(String, TokenWord)>,
    /// Members of its body; there is none without them.
    pub body: Vec<(String, TokenWord)>,
    /// How the body is written.
    pub encoding: TokenBody,
    /// The member of the answer that holds it; with points, a member of a member.
    pub token: String,
    /// The member that holds its lifetime in seconds.
    pub lifetime_s: Option<String>,
    /// How else than with 401 the network says that it does not take it any more.
    pub refused: Option<TokenRefused>,
    /// One is fetched at a time.
    pub kept: Mutex<Option<Kept>>,
}

/// An answer by which a network says that it does not take a token any more.
#[derive(Clone, Debug, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct TokenRefused {
    /// Its status.
    pub status: u16,
    /// A text in its body.
    pub holds: String,
}

/// What a request for a token says under a name.
pub enum TokenWord {
    /// These words.
    Text(String),
    /// What nobody may see.
    Secret(SecretString),
}

impl TokenWord {
    fn exposed(&self) -> &str {
        match self {
            Self::Text(text) => text,
            Self::Secret(secret) => secret.expose_secret(),
        }
    }
}

/// How the body of a request for a token is written.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Deserialize)]
#[serde(rename_all = "lowercase")]
pub enum TokenBody {
    /// A JSON object of texts.
    #[default]
    Json,
    /// As a form in a browser.
    Form,
}

impl TokenBody {
    const fn content_type(self) -> &'static str {
        match self {
            Self::Json => "application/json",
            Self::Form => "application/x-www-form-urlencoded",
        }
    }

    /// A text as it stands between the marks of this encoding.
    fn written(self, text: &str) -> Vec<u8> {
        match self {
            Self::Json => serde_json::Value::from(text).to_string().into_bytes(),
            Self::Form => utf8_percent_encode(text, UNRESERVED).to_string().into_bytes(),
        }
    }

    fn body(self, members: &[(String, TokenWord)]) -> Filled {
        let (opens, between, is, closes) = match self {
            Self::Json => ("{", ",", ":", "}"),
            Self::Form => ("", "&", "=", ""),
        };
        let mut body = Filled::default();
        for (index, (name, word)) in members.iter().enumerate() {
            body.open((if index == 0 { opens } else { between }).into());
            body.open([&self.written(name), is.as_bytes()].concat());
            match word {
                TokenWord::Text(text) => body.open(self.written(text)),
                TokenWord::Secret(secret) => body.secret(&self.written(secret.expose_secret())),
            }
        }
        if !members.is_empty() {
            body.open(closes.into());
        }
        body
    }
}

/// A token, and until when it is used.
pub struct Kept {
    token: SecretString,
    until_ms: u64,
}

impl TokenSource {
    /// Whether an answer says that the token which was shown is not taken any more.
    #[must_use]
    pub fn is_refused(&self, answer: &Answer) -> bool {
        let says = |refused: &TokenRefused| {
            let text = refused.holds.as_bytes();
            answer.status == refused.status
                && answer.body.windows(text.len().max(1)).any(|part| part == text)
        };
        answer.status == 401 || self.refused.as_ref().is_some_and(says)
    }

    /// The token to use now.
    pub(crate) async fn get(
        &self,
        egress: &Egress,
        (now_ms, headers): (u64, &[(String, String)]),
    ) -> Result<SecretString, String> {
        let waiting = tokio::time::timeout(limits::THROTTLE_WAIT_MAX, self.kept.lock()).await;
        let mut kept = waiting.map_err(|_| "no token: others wait for it already".to_owned())?;
        if let Some(Kept { token, .. }) = kept.as_ref().filter(|kept| now_ms < kept.until_ms) {
            return Ok(token.clone());
        }
        let answer = egress.send_for_token(&self.call, self.outgoing(headers)?).await;
        let answer = answer.map_err(|failure| format!("no token: {failure:?}"))?;
        let (token, lifetime) = self.read(&answer)?;
        // Of one that lives for a moment only, half.
        let margin = (lifetime / 10).max(MARGIN_MIN).min(lifetime / 2);
        let lasts = u64::try_from(lifetime.saturating_sub(margin).as_millis()).unwrap_or(0);
        *kept = Some(Kept { token: token.clone(), until_ms: now_ms.saturating_add(lasts) });
        Ok(token)
    }

    /// Forgets a token that the network does not take any more, unless another one is there already.
    pub(crate) async fn forget(&self, refused: &SecretString) {
        let mut kept = self.kept.lock().await;
        let is_it = |kept: &Kept| kept.token.expose_secret() == refused.expose_secret();
        if kept.as_ref().is_some_and(is_it) {
            *kept = None;
        }
    }

    fn outgoing(&self, headers: &[(String, String)]) -> Result<Outgoing, String> {
        let mut path = Filled::default();
        path.open(self.call.path("")?.into_bytes());
        for (index, (name, value)) in self.query.iter().enumerate() {
            let separator = if index == 0 { '?' } else { '&' };
            let encoded = |text| utf8_percent_encode(text, UNRESERVED).to_string();
            let (name, value) = (encoded(name), encoded(value));
            path.open(format!("{separator}{name}={value}").into_bytes());
        }
        let mut all = Vec::new();
        if let Some([user, password]) = &self.basic {
            let pair = format!("{}:{}", user.expose_secret(), password.expose_secret());
            let basic = format!("Basic {}", BASE64.encode(pair));
            all.push((AUTHORIZATION.as_str().to_owned(), basic));
        }
        for (name, word) in &self.headers {
            all.push((name.clone(), word.exposed().to_owned()));
        }
        if !self.body.is_empty() {
            all.push((CONTENT_TYPE.as_str().to_owned(), self.encoding.content_type().to_owned()));
        }
        all.extend_from_slice(headers);
        let body = self.encoding.body(&self.body);
        // Nothing of the answer is written down.
        Ok(Outgoing { path, headers: all, body, secrets: Vec::new() })
    }

    fn read(&self, answer: &Answer) -> Result<(SecretString, Duration), String> {
        let status = answer.status;
        if !(200..300).contains(&status) {
            return Err(format!("no token: HTTP {status}"));
        }
        let body: serde_json::Value = serde_json::from_slice(&answer.body)
            .map_err(|_| "no token: the answer is not JSON".to_owned())?;
        let token = member(&body, &self.token).as_str().filter(|token| !token.is_empty());
        let token = token.ok_or_else(|| format!("no token: the answer has no {}", self.token))?;
        let lifetime = self.lifetime_s.as_ref().map(|name| member(&body, name));
        let seconds = lifetime.and_then(|value| match value {
            serde_json::Value::String(text) => text.trim().parse().ok(),
            other => other.as_u64(),
        });
        Ok((token.into(), seconds.map_or(LIFETIME_DEFAULT, Duration::from_secs)))
    }
}

/// A member of a JSON object; with points, a member of a member.
fn member<'a>(body: &'a serde_json::Value, path: &str) -> &'a serde_json::Value {
    path.split('.').fold(body, |within, name| &within[name])
}

#[cfg(test)]
mod tests {
    use super::*;

    fn words() -> Vec<(String, TokenWord)> {
        let secret = TokenWord::Secret("p\"w&d".into());
        vec![
            ("grant_type".to_owned(), TokenWord::Text("client credentials".to_owned())),
            ("client_secret".to_owned(), secret),
        ]
    }

    #[test]
    fn a_body_is_written_as_its_encoding_wants_it_and_hides_its_secrets() {
        let json = TokenBody::Json.body(&words());
        let shown = String::from_utf8_lossy(json.shown()).into_owned();
        assert_eq!(shown, "{\"grant_type\":\"client credentials\",\"client_secret\":****}");
        let left: serde_json::Value = serde_json::from_slice(&json.leaves()).expect("JSON");
        assert_eq!(left["client_secret"], "p\"w&d");
        let form = TokenBody::Form.body(&words());
        assert_eq!(form.shown(), b"grant_type=client%20credentials&client_secret=****");
        assert_eq!(form.leaves(), b"grant_type=client%20credentials&client_secret=p%22w%26d");
        assert_eq!(TokenBody::Json.body(&[]).leaves(), b"");
    }

    #[test]
    fn a_member_of_a_member_is_found() {
        let body = serde_json::json!({ "data": { "token": "t" }, "data.token": "no" });
        assert_eq!(member(&body, "data.token"), "t");
        assert!(member(&body, "data.other.token").is_null());
    }
}
