//! Tokens of a declaration: how each is asked for, and where in the answer it is.

use std::collections::BTreeMap;

use http::HeaderName;
use serde::Deserialize;

use crate::wasm::egress::{TokenBody, TokenRefused};

use super::declaration::Declaration;

/// `[tokens.<name>]`: a token that the network gives for credentials and wants with every request.
#[derive(Clone, Debug, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct TokenTerms {
    /// The call that gets it.
    pub call: String,
    /// Parameters of its query.
    #[serde(default)]
    pub query: BTreeMap<String, String>,
    /// The secrets that are user and password, where it wants them so.
    pub basic: Option<[String; 2]>,
    /// Headers beside that, in lowercase.
    #[serde(default)]
    pub headers: BTreeMap<String, Said>,
    /// Members of its body; there is none without them.
    #[serde(default)]
    pub body: BTreeMap<String, Said>,
    /// How the body is written.
    #[serde(default)]
    pub encoding: TokenBody,
    /// The member of the JSON answer that holds it; with points, a member of a member.
    pub token: String,
    /// The member that holds its lifetime in seconds; five minutes without one.
    pub lifetime_s: Option<String>,
    /// How else than with 401 the network says that it does not take one any more: by an answer of this
    /// status with this text in it.
    pub refused: Option<TokenRefused>,
}

/// What a request for a token says under a name.
#[derive(Clone, Debug, Deserialize)]
#[serde(rename_all = "lowercase")]
pub enum Said {
    /// These words.
    Text(String),
    /// The value of a secret.
    Secret(String),
}

impl TokenTerms {
    /// The secrets that it is asked for with.
    pub fn secrets(&self) -> impl Iterator<Item = &String> {
        let said = self.headers.values().chain(self.body.values());
        let named = said.filter_map(|said| match said {
            Said::Secret(name) => Some(name),
            Said::Text(_) => None,
        });
        self.basic.iter().flatten().chain(named)
    }

    /// Whether it is asked for with this secret.
    #[must_use]
    pub fn presents(&self, secret: &str) -> bool {
        self.secrets().any(|name| name == secret)
    }
}

impl Declaration {
    pub(super) fn tokens_nonsense(&self) -> Option<String> {
        for (name, terms) in &self.tokens {
            let mut calls = self.endpoints.values().flat_map(|endpoint| &endpoint.calls);
            let call = calls.find(|call| call.name == terms.call && !call.moves_money);
            let Some(call) = call else {
                return Some(format!("tokens.{name}.call names no call that moves no money"));
            };
            if call.method == "GET" && !terms.body.is_empty() {
                return Some(format!("tokens.{name}.body: {} is a GET, and has none", call.name));
            }
            if let Some(secret) = terms.secrets().find(|it| !self.secrets.contains_key(*it)) {
                return Some(format!("tokens.{name} names {secret}, which is no secret"));
            }
            if terms.secrets().next().is_none() {
                return Some(format!("tokens.{name} is asked for without any secret"));
            }
            let is_hosts = |header: &&String| {
                let is_header = HeaderName::from_lowercase(header.as_bytes()).is_ok();
                !is_header || HOSTS.contains(&header.as_str())
            };
            if let Some(header) = terms.headers.keys().find(is_hosts) {
                return Some(format!(
                    "tokens.{name}.headers: {header} is no header in lowercase that a rail may set"
                ));
            }
            if let Some(refused) = &terms.refused
                && (!(400..600).contains(&refused.status) || refused.holds.is_empty())
            {
                return Some(format!(
                    "tokens.{name}.refused: says a status from 400 to 599 and a text in the answer"
                ));
            }
            if let Some(odd) = [Some(&terms.token), terms.lifetime_s.as_ref()]
                .into_iter()
                .flatten()
                .find(|path| path.split('.').any(str::is_empty))
            {
                return Some(format!("tokens.{name}: {odd:?} is no member of an answer"));
            }
        }
        None
    }
}

/// Headers of a request for a token that are the host's own.
const HOSTS: [&str; 11] = [
    "authorization",
    "connection",
    "content-length",
    "content-type",
    "cookie",
    "host",
    "proxy-authorization",
    "te",
    "trailer",
    "transfer-encoding",
    "upgrade",
];
