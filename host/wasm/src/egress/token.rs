//! Tokens that a network wants with every request, and gives for credentials.

use std::collections::BTreeMap;
use std::sync::Arc;
use std::time::Duration;

use ::http::header::AUTHORIZATION;
use base64::Engine as _;
use base64::prelude::BASE64_STANDARD as BASE64;
use percent_encoding::utf8_percent_encode;
use secrecy::{ExposeSecret as _, SecretString};
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
    /// User and password.
    pub basic: [SecretString; 2],
    /// The member of the answer that holds it.
    pub token: String,
    /// The member that holds its lifetime in seconds.
    pub lifetime_s: Option<String>,
    /// One is fetched at a time.
    pub kept: Mutex<Option<Kept>>,
}

/// A token, and until when it is used.
pub struct Kept {
    token: SecretString,
    until_ms: u64,
}

impl TokenSource {
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
        let margin = (lifetime / 10).max(MARGIN_MIN);
        let lasts = u64::try_from(lifetime.saturating_sub(margin).as_millis()).unwrap_or(0);
        *kept = Some(Kept { token: token.clone(), until_ms: now_ms.saturating_add(lasts) });
        Ok(token)
    }

    /// Forgets the token: the network does not take it any more.
    pub(crate) async fn forget(&self) {
        *self.kept.lock().await = None;
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
        let [user, password] = &self.basic;
        let pair = format!("{}:{}", user.expose_secret(), password.expose_secret());
        let basic = format!("Basic {}", BASE64.encode(pair));
        let mut all = vec![(AUTHORIZATION.as_str().to_owned(), basic)];
        all.extend_from_slice(headers);
        Ok(Outgoing { path, headers: all, body: Filled::default() })
    }

    fn read(&self, answer: &Answer) -> Result<(SecretString, Duration), String> {
        let status = answer.status;
        if !(200..300).contains(&status) {
            return Err(format!("no token: HTTP {status}"));
        }
        let body: serde_json::Value = serde_json::from_slice(&answer.body)
            .map_err(|_| "no token: the answer is not JSON".to_owned())?;
        let token = body[&self.token].as_str().filter(|token| !token.is_empty());
        let token = token.ok_or_else(|| format!("no token: the answer has no {}", self.token))?;
        let lifetime = self.lifetime_s.as_ref().map(|name| &body[name]);
        let seconds = lifetime.and_then(|value| match value {
            serde_json::Value::String(text) => text.trim().parse().ok(),
            other => other.as_u64(),
        });
        Ok((token.into(), seconds.map_or(LIFETIME_DEFAULT, Duration::from_secs)))
    }
}
