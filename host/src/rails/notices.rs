//! What a rail declares of the messages that its network sends by itself.

use serde::Deserialize;

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

/// `[notices.auth.signature]`: the base64 of a signature of the body, in a header.
#[derive(Clone, Debug, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct SignatureTerms {
    /// The key that it is checked by.
    pub key: String,
    /// The header that it is in, in lowercase.
    pub header: String,
}

/// `[notices.auth]`: one of these.
#[derive(Clone, Debug, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct NoticeAuth {
    /// The secret that it presents as a bearer token.
    pub bearer: Option<String>,
    /// It was given an address with a token in it.
    #[serde(default)]
    pub path_token: bool,
    /// It signs the body.
    pub signature: Option<SignatureTerms>,
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
