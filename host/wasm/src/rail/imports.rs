//! What a rail gets when it calls the host.

use std::collections::{BTreeMap, BTreeSet, HashMap};
use std::sync::Arc;

use percent_encoding::{PercentEncode, percent_encode};
use secrecy::{ExposeSecret as _, SecretString};
use subtle::ConstantTimeEq as _;
use wasmtime::component::{HasSelf, Linker};

use crate::config::limits;
use crate::egress::{
    Answer, Call, Errand, Failure, Filled, Outgoing, TokenSource, UNRESERVED, spellings,
};
use crate::keyring::Keyring;
use crate::keys::Key;
use crate::tables::{ReferenceTable, TableRow};

use super::bindings::railhead::host::{clock, http, keys, log, settings, tables};
use super::{Guest, Reply};

/// What calls may reach. It names everything; what is not in here does not exist for the guest.
#[derive(Default)]
pub struct Access {
    /// The rail's name, for logs.
    pub rail: String,
    /// Declared calls by name; none for what must be pure.
    pub calls: HashMap<String, Arc<Call>>,
    /// The operator's settings.
    pub settings: BTreeMap<String, String>,
    /// Secrets by name: put into requests, used as keys, never shown.
    pub secrets: BTreeMap<String, SecretString>,
    /// Of these, the ones that leave encrypted only, and under which key.
    pub sealed_with: BTreeMap<String, String>,
    /// Keys by name: what leaves is signed and sealed with them, and they are never shown.
    pub keys: BTreeMap<String, Arc<Key>>,
    /// Tokens by name.
    pub tokens: HashMap<String, TokenSource>,
    /// Where the network reaches this host, if it may be told.
    pub door: Option<Door>,
    /// Reference tables by name.
    pub tables: BTreeMap<String, Arc<ReferenceTable>>,
}

/// Where a network reaches this host by itself.
pub struct Door {
    /// The address up to the token, with a slash at the end.
    pub address: String,
    /// Whoever has it may speak.
    pub token: SecretString,
    /// Paths that it may be given; a final `*` stands for one or more segments.
    pub paths: Vec<String>,
}

/// What one call may use.
#[derive(Clone, Default)]
pub struct Grant {
    /// What it may reach.
    pub access: Arc<Access>,
    /// The instant of the call.
    pub now_ms: u64,
    /// Headers that the host adds to every request: idempotency, the sandbox scenario.
    pub headers: Vec<(String, String)>,
    /// Whether it may make a call that moves money.
    pub money: Money,
    /// What it is made for.
    pub errand: Errand,
    /// The texts that nobody can guess of the attempt that it is about, by name.
    pub seeds: BTreeMap<String, SecretString>,
}

/// Whether money may move.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub enum Money {
    /// Nothing is asked for that could move any.
    #[default]
    Stays,
    /// One call may leave that moves some.
    MayMove,
}

pub(super) fn link(linker: &mut Linker<Guest>) -> wasmtime::Result<()> {
    type Own = HasSelf<Guest>;
    http::add_to_linker::<Guest, Own>(linker, |guest| guest)?;
    settings::add_to_linker::<Guest, Own>(linker, |guest| guest)?;
    keys::add_to_linker::<Guest, Own>(linker, |guest| guest)?;
    tables::add_to_linker::<Guest, Own>(linker, |guest| guest)?;
    clock::add_to_linker::<Guest, Own>(linker, |guest| guest)?;
    log::add_to_linker::<Guest, Own>(linker, |guest| guest)
}

impl http::Host for Guest {
    async fn send(
        &mut self,
        request: http::Request,
    ) -> wasmtime::Result<Result<http::Response, http::Failure>> {
        let refused = |why: String| Ok(Err(http::Failure::NotSent(why)));
        if self.requests_left == 0 {
            return refused(format!("more than {} requests", limits::GUEST_REQUESTS_MAX));
        }
        self.requests_left -= 1;
        let Some(call) = self.grant.access.calls.get(&request.call).cloned() else {
            return refused(format!("the call {} is not granted here", request.call));
        };
        let answer = match self.permit(&call) {
            Ok(()) => self.ask(&call, request).await,
            Err(why) => Err(self.egress.refuse(&call, why)),
        };
        Ok(answer.map(response).map_err(|failure| match failure {
            Failure::NotSent(why) => http::Failure::NotSent(why),
            Failure::NoAnswer(why) => http::Failure::NoAnswer(why),
        }))
    }
}

impl Guest {
    /// # Errors
    /// Money would move that must not.
    fn permit(&self, call: &Call) -> Result<(), String> {
        let name = &call.name;
        match self.grant.money {
            _ if !call.moves_money => Ok(()),
            Money::Stays => Err(format!("{name} moves money, and nothing is sent here")),
            Money::MayMove if self.egress.may_have_moved_money() => {
                Err(format!("{name} moves money, and a call that does has left already"))
            }
            Money::MayMove => Ok(()),
        }
    }

    async fn ask(&self, call: &Call, request: http::Request) -> Result<Answer, Failure> {
        let refuse = |why| self.egress.refuse(call, why);
        let tokens = self.tokens(named(&request)).await.map_err(refuse)?;
        let outgoing = self.outgoing(call, request, &tokens).map_err(refuse)?;
        let answer = self.egress.send(call, outgoing).await;
        if let Ok(answer) = &answer {
            // The next request fetches another one.
            for (source, token) in tokens.values().filter(|(source, _)| source.is_refused(answer)) {
                source.forget(token).await;
            }
        }
        answer
    }

    /// The tokens of these names.
    async fn tokens(&self, names: BTreeSet<String>) -> Result<Tokens<'_>, String> {
        let mut tokens = Tokens::new();
        for name in names {
            let source = self.grant.access.tokens.get(&name);
            let source = source.ok_or(format!("the token {name} is not configured"))?;
            let with = (self.grant.now_ms, self.grant.headers.as_slice());
            let token = source.get(&self.egress, with).await?;
            tokens.insert(name, (source, token));
        }
        Ok(tokens)
    }

    /// The request as it leaves; why it cannot, otherwise.
    fn outgoing(
        &self,
        call: &Call,
        request: http::Request,
        tokens: &Tokens<'_>,
    ) -> Result<Outgoing, String> {
        let mut path = Filled::default();
        path.open(call.path(&request.path)?.into_bytes());
        for (index, parameter) in request.query.into_iter().enumerate() {
            let separator = if index == 0 { '?' } else { '&' };
            path.open(format!("{separator}{}=", encoded(parameter.name.as_bytes())).into_bytes());
            self.fill((&mut path, tokens), parameter.value, |bytes| {
                encoded(&bytes).to_string().into_bytes()
            })?;
        }
        let mut body = Filled::default();
        self.fill((&mut body, tokens), request.body, std::convert::identity)?;
        let mut secrets = [path.take_secrets(), body.take_secrets()].concat();
        // It may have been told in another call.
        if let Some(Door { token, .. }) = &self.grant.access.door {
            secrets.extend(spellings(token.expose_secret().as_bytes()));
        }
        let headers = self.headers((request.headers, &mut secrets), tokens, body.leaving())?;
        Ok(Outgoing { path, headers, body, secrets })
    }

    /// The guest's headers with secrets and signatures of the body filled in, then the host's own.
    fn headers(
        &self,
        (wanted, secrets): (Vec<http::Parameter>, &mut Vec<Vec<u8>>),
        tokens: &Tokens<'_>,
        body: &[u8],
    ) -> Result<Vec<(String, String)>, String> {
        let mut headers = Vec::new();
        for header in wanted {
            let name = header.name.to_ascii_lowercase();
            if FORBIDDEN.contains(&name.as_str()) || self.grant.headers.iter().any(|h| h.0 == name)
            {
                return Err(format!("the header {name} belongs to the host"));
            }
            let mut value = Filled::default();
            for part in header.value {
                match part {
                    http::Part::Signature(key) => {
                        value.open(self.grant.access.signature(&key, body)?.into_bytes());
                    }
                    part => {
                        self.fill((&mut value, tokens), vec![part], std::convert::identity)?;
                    }
                }
            }
            secrets.append(&mut value.take_secrets());
            let value = String::from_utf8(value.leaves());
            headers.push((name.clone(), value.map_err(|_| format!("{name} is not a text"))?));
        }
        headers.extend(self.grant.headers.iter().cloned());
        Ok(headers)
    }

    /// Puts the pieces together, each written as its place wants it.
    fn fill(
        &self,
        (filled, tokens): (&mut Filled, &Tokens<'_>),
        parts: Vec<http::Part>,
        written: impl Fn(Vec<u8>) -> Vec<u8>,
    ) -> Result<(), String> {
        let hide = |filled: &mut Filled, secret: &SecretString| {
            let plain = secret.expose_secret().as_bytes();
            filled.secret(&written(plain.to_vec()));
            filled.also_secret(plain);
        };
        for part in parts {
            match part {
                http::Part::Bytes(bytes) => filled.open(written(bytes)),
                http::Part::Secret(name) => {
                    let secret = self.grant.access.shown(&name)?;
                    hide(filled, secret);
                }
                http::Part::Sealed((key, name)) => {
                    let sealed = self.grant.access.sealed(&key, &name)?;
                    filled.secret(&written(sealed.into_bytes()));
                }
                http::Part::Token(name) => {
                    let (_, token) = tokens.get(&name).ok_or("a token that was not fetched")?;
                    hide(filled, token);
                }
                http::Part::Seed(name) => {
                    let seed = self.grant.seeds.get(&name);
                    let seed = seed.ok_or(format!("there is no seed {name} here"))?;
                    hide(filled, seed);
                }
                http::Part::Signature(_) => {
                    return Err("a signature of the body stands in a header only".to_owned());
                }
                http::Part::CallbackUrl(path) => {
                    let Door { address, token, .. } = self.door(&path)?;
                    filled.open(written(address.clone().into_bytes()));
                    hide(filled, token);
                    filled.open(written(path.into_bytes()));
                }
            }
        }
        Ok(())
    }
}

impl Guest {
    /// The way in that a network may be told for this path.
    fn door(&self, path: &str) -> Result<&Door, String> {
        let door = self.grant.access.door.as_ref().ok_or("no message is taken here")?;
        let is_it = |declared: &String| match declared.strip_suffix('*') {
            Some(before) => path.strip_prefix(before).is_some_and(is_segment),
            None => declared == path,
        };
        match door.paths.iter().any(is_it) {
            true => Ok(door),
            false => Err(format!("{path} is not declared for messages with a path token")),
        }
    }
}

/// Whether a text may stand for the end of an address as it is.
fn is_segment(text: &str) -> bool {
    let is_plain = |b: u8| b.is_ascii_alphanumeric() || matches!(b, b'-' | b'_' | b'.' | b'~');
    !text.is_empty() && text.bytes().all(is_plain)
}

impl Access {
    /// The signature of a body under a key that signs.
    fn signature(&self, key: &str, body: &[u8]) -> Result<String, String> {
        match self.keys.get(key).map(Arc::as_ref) {
            Some(Key::Sign(key)) => key.sign_text(body),
            Some(Key::Verify(_) | Key::Seal(_)) | None => {
                Err(format!("the key {key} does not sign here"))
            }
        }
    }

    /// A secret that requests may hold, or be signed with.
    fn shown(&self, secret: &str) -> Result<&SecretString, String> {
        if self.sealed_with.contains_key(secret) {
            return Err(format!("the secret {secret} leaves encrypted only"));
        }
        let value = self.secrets.get(secret);
        value.ok_or_else(|| format!("the secret {secret} is not configured"))
    }

    /// A secret, encrypted under the key for it.
    fn sealed(&self, key: &str, secret: &str) -> Result<String, String> {
        if self.sealed_with.get(secret).is_none_or(|wanted| wanted != key) {
            return Err(format!("the secret {secret} is not declared to be sealed with {key}"));
        }
        let value = self.secrets.get(secret);
        let value = value.ok_or(format!("the secret {secret} is not configured"))?;
        match self.keys.get(key).map(Arc::as_ref) {
            Some(Key::Seal(key)) => key.seal(value.expose_secret().as_bytes()),
            Some(Key::Sign(_) | Key::Verify(_)) | None => {
                Err(format!("the key {key} does not encrypt here"))
            }
        }
    }

    /// The headers that a rail wants its reply to have.
    ///
    /// # Errors
    /// A value holds anything but bytes and signatures, or the key is not there.
    pub fn reply_headers(&self, reply: &Reply) -> Result<Vec<(String, String)>, String> {
        let value = |parts: &[http::Part]| {
            let mut value = Vec::new();
            for part in parts {
                match part {
                    http::Part::Bytes(bytes) => value.extend_from_slice(bytes),
                    http::Part::Signature(key) => {
                        value.extend(self.signature(key, &reply.body)?.into_bytes());
                    }
                    _ => return Err("a reply holds bytes and signatures only".to_owned()),
                }
            }
            String::from_utf8(value).map_err(|_| "a header is not a text".to_owned())
        };
        let headers = reply.headers.iter().map(|header| {
            let (name, value) = (header.name.to_ascii_lowercase(), value(&header.value)?);
            let is_hosts = FORBIDDEN.contains(&name.as_str())
                || ["content-type", "set-cookie"].contains(&name.as_str());
            let is_one = ::http::HeaderName::try_from(&name).is_ok()
                && ::http::HeaderValue::try_from(&value).is_ok();
            match is_one && !is_hosts {
                true => Ok((name, value)),
                false => Err(format!("a reply cannot have the header {name:?}")),
            }
        });
        headers.collect()
    }
}

/// The tokens that a request names.
fn named(request: &http::Request) -> BTreeSet<String> {
    let values = request.headers.iter().chain(&request.query).map(|it| &it.value);
    let named = |part: &http::Part| match part {
        http::Part::Token(name) => Some(name.clone()),
        _ => None,
    };
    values.chain([&request.body]).flatten().filter_map(named).collect()
}

/// Tokens by name, each with where it came from.
type Tokens<'a> = BTreeMap<String, (&'a TokenSource, SecretString)>;

/// As it may stand in a query.
fn encoded(bytes: &[u8]) -> PercentEncode<'_> {
    percent_encode(bytes, UNRESERVED)
}

/// Headers that decide where a request goes and how it is framed.
const FORBIDDEN: &[&str] = &[
    "host",
    "content-length",
    "transfer-encoding",
    "connection",
    "upgrade",
    "te",
    "trailer",
    "proxy-authorization",
    "cookie",
];

fn response(answer: crate::egress::Answer) -> http::Response {
    http::Response { status: answer.status, headers: answer.headers, body: answer.body }
}

impl settings::Host for Guest {
    async fn get(&mut self, name: String) -> wasmtime::Result<Option<String>> {
        Ok(self.grant.access.settings.get(&name).cloned())
    }
}

impl keys::Host for Guest {
    async fn sign(
        &mut self,
        key: String,
        message: Vec<u8>,
    ) -> wasmtime::Result<Result<Vec<u8>, keys::Failure>> {
        let access = &self.grant.access;
        match access.keys.get(&key).map(Arc::as_ref) {
            Some(Key::Sign(key)) => Ok(key.sign(&message).map_err(|_| keys::Failure::Refused)),
            Some(Key::Verify(_) | Key::Seal(_)) => Ok(Err(keys::Failure::Refused)),
            None => Ok(access
                .shown(&key)
                .map(|it| Keyring::sign(it.expose_secret().as_bytes(), &message).to_vec())
                .map_err(|_| keys::Failure::UnknownKey)),
        }
    }

    async fn verify(
        &mut self,
        key: String,
        message: Vec<u8>,
        signature: Vec<u8>,
    ) -> wasmtime::Result<Result<bool, keys::Failure>> {
        if let Some(Key::Verify(key)) = self.grant.access.keys.get(&key).map(Arc::as_ref) {
            return Ok(Ok(key.verify(&message, &signature)));
        }
        if self.grant.access.keys.contains_key(&key) {
            return Ok(Err(keys::Failure::Refused));
        }
        let expected = self.sign(key, message).await?;
        Ok(expected.map(|expected| bool::from(expected.ct_eq(&signature))))
    }
}

impl tables::Host for Guest {
    async fn find(
        &mut self,
        table: String,
        column: String,
        value: String,
    ) -> wasmtime::Result<Vec<Vec<tables::Cell>>> {
        let Some(table) = self.grant.access.tables.get(&table) else { return Ok(Vec::new()) };
        Ok(table.find(&column, &value).map(cells).collect())
    }

    async fn range(
        &mut self,
        table: String,
        value: String,
    ) -> wasmtime::Result<Vec<Vec<tables::Cell>>> {
        let Some(table) = self.grant.access.tables.get(&table) else { return Ok(Vec::new()) };
        Ok(table.range(&value).map(cells).collect())
    }

    async fn present(&mut self, table: String) -> wasmtime::Result<bool> {
        Ok(self.grant.access.tables.contains_key(&table))
    }
}

fn cells(row: TableRow<'_>) -> Vec<tables::Cell> {
    let owned = |(column, value): (&str, &str)| tables::Cell {
        column: column.to_owned(),
        value: value.to_owned(),
    };
    row.cells().map(owned).collect()
}

impl clock::Host for Guest {
    async fn now_ms(&mut self) -> wasmtime::Result<u64> {
        Ok(self.grant.now_ms)
    }
}

impl log::Host for Guest {
    async fn write(&mut self, level: log::Level, message: String) -> wasmtime::Result<()> {
        if self.log_lines_left == 0 {
            return Ok(());
        }
        self.log_lines_left -= 1;
        let rail = self.grant.access.rail.as_str();
        let line = presentable(&message);
        match level {
            log::Level::Debug => tracing::debug!(rail.name = rail, "{line}"),
            log::Level::Info => tracing::info!(rail.name = rail, "{line}"),
            log::Level::Warn => tracing::warn!(rail.name = rail, "{line}"),
            log::Level::Error => tracing::error!(rail.name = rail, "{line}"),
        }
        Ok(())
    }
}

/// Longest run of digits that a guest's log line may show: accounts, identity numbers and
/// telephone numbers are longer, and no log needs them.
const DIGITS_SHOWN_MAX: usize = 7;

/// A guest's line as it may stand in the log: one line, of limited length, with the numbers of
/// people masked but for their last four digits.
pub(crate) fn presentable(message: &str) -> String {
    let letters: Vec<char> = message
        .chars()
        // Control characters would let a guest forge lines.
        .map(|letter| if letter.is_control() { ' ' } else { letter })
        .take(limits::GUEST_LOG_LINE_MAX)
        .collect();
    let mut line = String::with_capacity(letters.len());
    for run in letters.chunk_by(|a, b| a.is_ascii_digit() == b.is_ascii_digit()) {
        let hidden = match run {
            [first, ..] if first.is_ascii_digit() && run.len() > DIGITS_SHOWN_MAX => run.len() - 4,
            _ => 0,
        };
        line.extend(std::iter::repeat_n('*', hidden));
        line.extend(&run[hidden..]);
    }
    line
}

#[cfg(test)]
mod tests {
    use super::{Access, Reply, http, presentable};

    #[test]
    fn a_reply_has_headers_of_its_own_and_none_of_the_hosts() {
        let with = |name: &str, value: Vec<http::Part>| {
            let headers = vec![http::Parameter { name: name.to_owned(), value }];
            let content_type = "text/plain".to_owned();
            let reply = Reply { status: 200, content_type, headers, body: Vec::new() };
            Access::default().reply_headers(&reply)
        };
        let text = |text: &str| vec![http::Part::Bytes(text.as_bytes().to_vec())];
        let own = with("X-Nonce", text("17")).expect("its own");
        assert_eq!(own, [("x-nonce".to_owned(), "17".to_owned())]);
        for name in ["Content-Length", "transfer-encoding", "Set-Cookie", "Content-Type", "a b"] {
            assert!(with(name, text("1")).is_err(), "{name}");
        }
        assert!(with("x-nonce", text("1\r\nset-cookie: a")).is_err());
        assert!(with("x-nonce", vec![http::Part::Secret("key".to_owned())]).is_err());
        // A key that is not there signs nothing.
        assert!(with("x-nonce", vec![http::Part::Signature("key".to_owned())]).is_err());
    }

    #[test]
    fn a_secret_that_leaves_encrypted_leaves_in_no_other_way() {
        let secret = |name: &str| (name.to_owned(), secrecy::SecretString::from("a password"));
        let access = Access {
            secrets: ["pin", "token"].map(secret).into(),
            sealed_with: [("pin".to_owned(), "bank".to_owned())].into(),
            ..Access::default()
        };
        assert!(access.shown("token").is_ok());
        assert!(access.shown("pin").expect_err("sealed").contains("encrypted only"));
        for (key, name) in [("other", "pin"), ("bank", "token")] {
            let why = access.sealed(key, name).expect_err("another key, or none");
            assert!(why.contains("not declared"), "{why}");
        }
        // As declared; the key itself is not configured.
        assert!(access.sealed("bank", "pin").expect_err("no key").contains("does not encrypt"));
    }

    #[test]
    fn lines_of_guests_forge_nothing_and_show_nobodys_numbers() {
        let shown = presentable("bvn 22212345678, account 0123456785\nERROR code 00, 1500000 kobo");
        assert_eq!(shown, "bvn *******5678, account ******6785 ERROR code 00, 1500000 kobo");
        assert_eq!(presentable(&"x".repeat(10_000)).len(), 500);
    }
}
