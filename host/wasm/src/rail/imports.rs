//! What a rail gets when it calls the host.

use std::collections::{BTreeMap, HashMap};
use std::sync::Arc;

use secrecy::{ExposeSecret as _, SecretString};
use subtle::ConstantTimeEq as _;
use wasmtime::component::{HasSelf, Linker};

use crate::config::limits;
use crate::egress::{Endpoint, Failure, Outgoing};
use crate::keyring::Keyring;
use crate::tables::ReferenceTable;

use super::Guest;
use super::bindings::railhead::host::{clock, http, keys, log, settings, tables};

/// What calls may reach. It names everything; what is not in here does not exist for the guest.
#[derive(Default)]
pub struct Access {
    /// The rail's name, for logs.
    pub rail: String,
    /// Endpoints by name; none for calls that must be pure.
    pub endpoints: HashMap<String, Arc<Endpoint>>,
    /// The operator's settings.
    pub settings: BTreeMap<String, String>,
    /// Secrets by name: filled into headers, used as keys, never shown.
    pub secrets: BTreeMap<String, SecretString>,
    /// Reference tables by name.
    pub tables: BTreeMap<String, Arc<ReferenceTable>>,
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
        let Some(endpoint) = self.grant.access.endpoints.get(&request.endpoint).cloned() else {
            return refused(format!("endpoint {} is not granted to this call", request.endpoint));
        };
        let headers = match self.headers(&request.headers) {
            Ok(headers) => headers,
            Err(why) => return refused(why),
        };
        let outgoing = Outgoing {
            method: method(request.method),
            path: request.path,
            headers,
            body: request.body,
        };
        let answer = self.egress.send(&endpoint, outgoing).await;
        Ok(answer.map(response).map_err(|failure| match failure {
            Failure::NotSent(why) => http::Failure::NotSent(why),
            Failure::NoAnswer(why) => http::Failure::NoAnswer(why),
        }))
    }
}

impl Guest {
    /// The guest's headers with secrets filled in, then the host's own.
    fn headers(&self, wanted: &[http::Header]) -> Result<Vec<(String, String)>, String> {
        let mut headers = Vec::new();
        for header in wanted {
            let name = header.name.to_ascii_lowercase();
            if FORBIDDEN.contains(&name.as_str()) || self.grant.headers.iter().any(|h| h.0 == name)
            {
                return Err(format!("the header {name} belongs to the host"));
            }
            headers.push((name, self.fill(&header.value)?));
        }
        headers.extend(self.grant.headers.iter().cloned());
        Ok(headers)
    }

    /// Replaces every `{secret:name}`.
    fn fill(&self, value: &str) -> Result<String, String> {
        let mut filled = String::new();
        let mut rest = value;
        while let Some((before, after)) = rest.split_once("{secret:") {
            let (name, tail) = after.split_once('}').ok_or("a placeholder is not closed")?;
            let secret = self.grant.access.secrets.get(name);
            let secret = secret.ok_or_else(|| format!("the secret {name} is not configured"))?;
            filled.push_str(before);
            filled.push_str(secret.expose_secret());
            rest = tail;
        }
        filled.push_str(rest);
        Ok(filled)
    }
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

fn method(method: http::Method) -> ::http::Method {
    match method {
        http::Method::Get => ::http::Method::GET,
        http::Method::Post => ::http::Method::POST,
        http::Method::Put => ::http::Method::PUT,
        http::Method::Delete => ::http::Method::DELETE,
    }
}

fn response(answer: crate::egress::Answer) -> http::Response {
    let headers = answer.headers.into_iter();
    http::Response {
        status: answer.status,
        headers: headers.map(|(name, value)| http::Header { name, value }).collect(),
        body: answer.body,
    }
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
        let Some(secret) = self.grant.access.secrets.get(&key) else {
            return Ok(Err(keys::Failure::UnknownKey));
        };
        Ok(Ok(Keyring::sign(secret.expose_secret().as_bytes(), &message).to_vec()))
    }

    async fn verify(
        &mut self,
        key: String,
        message: Vec<u8>,
        signature: Vec<u8>,
    ) -> wasmtime::Result<Result<bool, keys::Failure>> {
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
        let rows = table.find(&column, &value);
        Ok(rows
            .map(|row| {
                row.cells()
                    .map(|(column, value)| tables::Cell {
                        column: column.to_owned(),
                        value: value.to_owned(),
                    })
                    .collect()
            })
            .collect())
    }
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
fn presentable(message: &str) -> String {
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
    use super::presentable;

    #[test]
    fn lines_of_guests_forge_nothing_and_show_nobodys_numbers() {
        let shown = presentable("bvn 22212345678, account 0123456785\nERROR code 00, 1500000 kobo");
        assert_eq!(shown, "bvn *******5678, account ******6785 ERROR code 00, 1500000 kobo");
        assert_eq!(presentable(&"x".repeat(10_000)).len(), 500);
    }
}
