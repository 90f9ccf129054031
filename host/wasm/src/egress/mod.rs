//! Requests of rails to their networks.
//!
//! The host owns the socket, so the host knows what a guest could only claim: whether a byte
//! of a request left. [`Failure::NotSent`] is that promise; everything else that goes wrong is
//! [`Failure::NoAnswer`], and the outcome is unknown.

mod connection;
mod filled;
mod throttle;
mod token;

use std::sync::{Arc, Mutex, PoisonError};
use std::time::{Duration, Instant};

use ::http::{HeaderName, HeaderValue, Method, Request, Response};
use axum::Router;
use axum::body::Body;
use http_body_util::{BodyExt as _, Limited};
use ipnet::IpNet;
use percent_encoding::{AsciiSet, NON_ALPHANUMERIC};
use rustls::ClientConfig;
use secrecy::{ExposeSecret as _, SecretString};
use tower::ServiceExt as _;

use connection::Pool;
pub(super) use filled::Filled;
use filled::STARS;
pub(super) use filled::spellings;
use throttle::Turn;
pub use throttle::{Errand, Pace, Throttle};
pub use token::{TokenBody, TokenRefused, TokenSource, TokenWord};

/// Where the requests of one endpoint go.
pub enum Target {
    /// Into another part of this process: the simulator of the sandbox. No socket exists.
    InProcess(Router),
    /// Over the network.
    Network(Network),
}

impl Target {
    /// Where it leads, as text.
    #[must_use]
    pub fn address(&self) -> String {
        match self {
            Self::InProcess(_) => "sandbox".to_owned(),
            Self::Network(network) => {
                let Network { scheme, host, port, base, .. } = network;
                format!("{scheme:?}://{host}:{port}{base}")
            }
        }
    }
}

/// A server, and how to reach it.
pub struct Network {
    /// TLS or plain.
    pub scheme: Scheme,
    /// Name or address.
    pub host: String,
    /// The TCP port.
    pub port: u16,
    /// What every path begins with; empty or `/…` without a slash at the end.
    pub base: String,
    /// Trusted certificates.
    pub tls: Arc<ClientConfig>,
    /// Addresses that are not public and may be reached all the same.
    pub allowed: Vec<IpNet>,
    pool: Pool,
}

/// How a server is spoken to.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Scheme {
    /// For simulators on this machine.
    Http,
    /// For everything else.
    Https,
}

/// One declared call with its limits.
pub struct Call {
    /// The name in the declaration.
    pub name: String,
    /// The network address or, in the sandbox, the simulator.
    pub target: Arc<Target>,
    /// By which method it is made.
    pub method: Method,
    /// On which path; a final `/*` stands for one or more segments that the rail gives.
    pub path: String,
    /// Whether it may move money.
    pub moves_money: bool,
    /// Time for connecting, sending and the whole answer.
    pub timeout: Duration,
    /// Largest answer.
    pub answer_bytes_max: usize,
    /// How fast its network may be asked.
    pub throttle: Option<Arc<Throttle>>,
}

/// A request as it leaves, secrets filled in.
pub(super) struct Outgoing {
    /// With the query.
    pub(super) path: Filled,
    pub(super) headers: Vec<(String, String)>,
    pub(super) body: Filled,
    /// What its network is told in confidence, as it may repeat it.
    pub(super) secrets: Vec<Vec<u8>>,
}

/// A whole answer.
#[derive(Clone, Debug)]
pub struct Answer {
    /// The HTTP status.
    pub status: u16,
    /// Headers with a textual value.
    pub headers: Vec<(String, String)>,
    /// The body, within the endpoint's limit.
    pub body: Vec<u8>,
}

/// Fewer bytes may be a word of the network's own: what it says with it is heard.
const SECRET_BYTES_MIN: usize = 8;

/// Headers by which a network says for how long it wants to be left alone.
const PATIENCE: [&str; 2] = ["retry-after", "date"];

/// How a request failed.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum Failure {
    /// No byte of it left this host.
    NotSent(String),
    /// Some of it left, and no whole answer came.
    NoAnswer(String),
}

/// A request and what came of it, as evidence. Headers are left out: they hold secrets.
#[derive(Clone, Debug)]
pub struct Exchange {
    /// The name of the declared call.
    pub call: String,
    /// Whether it may move money.
    pub moves_money: bool,
    /// Whether the host made it to get a token: what is in it is nobody's business.
    pub is_for_token: bool,
    /// HTTP method.
    pub method: String,
    /// Path below the endpoint, with the query; secrets are masked.
    pub path: String,
    /// The request's body; secrets are masked.
    pub request: Vec<u8>,
    /// What came back.
    pub result: Result<Answer, Failure>,
    /// How long it took.
    pub took: Duration,
    /// Whether this host itself kept it back: that says nothing about the network.
    pub is_kept_back: bool,
    /// It was kept back because others wait already.
    pub is_crowded: bool,
}

impl Exchange {
    /// A message that came in by itself.
    #[must_use]
    pub fn heard(method: &str, path: &str, body: &[u8]) -> Self {
        Self {
            call: "notice".to_owned(),
            moves_money: false,
            is_for_token: false,
            method: method.to_owned(),
            path: path.to_owned(),
            request: body.to_vec(),
            result: Ok(Answer { status: 200, headers: Vec::new(), body: Vec::new() }),
            took: Duration::ZERO,
            is_kept_back: false,
            is_crowded: false,
        }
    }

    /// The same message without what its network was given to show who it is, and may repeat.
    #[must_use]
    pub fn without(mut self, tokens: &[String]) -> Self {
        for token in tokens.iter().flat_map(|token| spellings(token.as_bytes())) {
            if let Some(shown) = starred(&self.request, &token) {
                self.request = shown;
            }
        }
        self
    }

    /// A request that is about to leave.
    fn of(call: &Call, outgoing: &Outgoing) -> Self {
        Self {
            call: call.name.clone(),
            moves_money: call.moves_money,
            is_for_token: false,
            method: call.method.to_string(),
            path: String::from_utf8_lossy(outgoing.path.shown()).into_owned(),
            request: outgoing.body.shown().to_vec(),
            // Stands if this call is cut short: by then, something may have left.
            result: Err(Failure::NoAnswer("the call was cut short".into())),
            took: Duration::ZERO,
            is_kept_back: false,
            is_crowded: false,
        }
    }

    /// Whether a byte of the request left the host.
    #[must_use]
    pub fn bytes_left(&self) -> bool {
        !matches!(self.result, Err(Failure::NotSent(_)))
    }
}

/// What has to be encoded in a query: everything but what is unreserved in every URL.
pub(super) const UNRESERVED: &AsciiSet =
    &NON_ALPHANUMERIC.remove(b'-').remove(b'.').remove(b'_').remove(b'~');

/// Why a call is not made.
#[derive(Clone, Copy, PartialEq, Eq)]
enum Because {
    /// It cannot be, or must not.
    Refused,
    /// Others wait already.
    Crowded,
}

/// Bytes with stars in place of others, in small letters or large ones; nothing where they are not
/// there.
fn starred(bytes: &[u8], hidden: &[u8]) -> Option<Vec<u8>> {
    let first = hidden.first()?;
    let (small, large) = (first.to_ascii_lowercase(), first.to_ascii_uppercase());
    let (mut shown, mut after) = (Vec::new(), 0);
    for at in memchr::memchr2_iter(small, large, bytes) {
        let is_it = |found: &[u8]| found.eq_ignore_ascii_case(hidden);
        if at >= after && bytes.get(at..at + hidden.len()).is_some_and(is_it) {
            shown.extend_from_slice(&bytes[after..at]);
            shown.extend_from_slice(STARS);
            after = at + hidden.len();
        }
    }
    if after == 0 {
        return None;
    }
    shown.extend_from_slice(&bytes[after..]);
    Some(shown)
}

/// One guest's way out, which writes down every exchange.
pub(super) struct Egress {
    journal: Arc<Mutex<Vec<Exchange>>>,
    /// What its calls are made for.
    pub(super) errand: Errand,
    /// Texts that are put into requests, and that no answer may tell the guest.
    pub(super) hidden: Vec<SecretString>,
}

impl Egress {
    pub(super) fn new(journal: Arc<Mutex<Vec<Exchange>>>) -> Self {
        Self { journal, errand: Errand::default(), hidden: Vec::new() }
    }

    /// Makes a call and waits for the whole answer.
    pub(super) async fn send(&self, call: &Call, outgoing: Outgoing) -> Result<Answer, Failure> {
        let shown = Exchange::of(call, &outgoing);
        self.send_as(shown, (call, self.errand), outgoing, Clone::clone).await
    }

    /// The same for a token: its exchange is written down without the answer.
    async fn send_for_token(&self, call: &Call, outgoing: Outgoing) -> Result<Answer, Failure> {
        let shown = Exchange { is_for_token: true, ..Exchange::of(call, &outgoing) };
        let hidden = |result: &Result<Answer, Failure>| match result {
            Ok(Answer { status, headers, .. }) => {
                // For how long it wants to be left alone is no secret.
                let is_plain = |(name, _): &&(String, String)| PATIENCE.contains(&name.as_str());
                let headers = headers.iter().filter(is_plain).cloned().collect();
                Ok(Answer { status: *status, headers, body: STARS.to_vec() })
            }
            Err(failure) => Err(failure.clone()),
        };
        // Payments wait for it as well, whoever fetches it.
        self.send_as(shown, (call, Errand::Payment), outgoing, hidden).await
    }

    async fn send_as(
        &self,
        shown: Exchange,
        (call, errand): (&Call, Errand),
        outgoing: Outgoing,
        written: impl Fn(&Result<Answer, Failure>) -> Result<Answer, Failure>,
    ) -> Result<Answer, Failure> {
        // Nothing is written down before it is its turn: whoever is cut short here sent nothing.
        let entering = call.enter(errand).await;
        let _turn = entering.map_err(|why| self.keep_back(call, why, Because::Crowded))?;
        let begun = Instant::now();
        let index = self.note(shown);
        let mut outgoing = outgoing;
        let secrets = std::mem::take(&mut outgoing.secrets);
        let result = call.send(outgoing).await;
        let result = result.map(|answer| self.without_hidden(answer, &secrets));
        let mut journal = self.journal.lock().unwrap_or_else(PoisonError::into_inner);
        if let Some(exchange) = journal.get_mut(index) {
            exchange.result = written(&result);
            exchange.took = begun.elapsed();
        }
        result
    }

    /// An answer in which the network repeats nothing that it was told in confidence.
    fn without_hidden(&self, mut answer: Answer, secrets: &[Vec<u8>]) -> Answer {
        let seeds = self.hidden.iter().map(|it| it.expose_secret().as_bytes());
        let secrets = secrets.iter().map(Vec::as_slice);
        for hidden in seeds.chain(secrets.filter(|it| it.len() >= SECRET_BYTES_MIN)) {
            if let Some(body) = starred(&answer.body, hidden) {
                answer.body = body;
            }
            for (_, value) in &mut answer.headers {
                if let Some(shown) = starred(value.as_bytes(), hidden) {
                    *value = String::from_utf8_lossy(&shown).into_owned();
                }
            }
        }
        answer
    }

    /// Takes note of a call that is not made.
    pub(super) fn refuse(&self, call: &Call, why: String) -> Failure {
        self.keep_back(call, why, Because::Refused)
    }

    fn keep_back(&self, call: &Call, why: String, because: Because) -> Failure {
        let failure = Failure::NotSent(why);
        let mut path = Filled::default();
        path.open(call.path.clone().into_bytes());
        let (headers, body) = (Vec::new(), Filled::default());
        let unsent = Outgoing { path, headers, body, secrets: Vec::new() };
        let result = Err(failure.clone());
        let is_crowded = because == Because::Crowded;
        let shown = Exchange::of(call, &unsent);
        self.note(Exchange { result, is_kept_back: true, is_crowded, ..shown });
        failure
    }

    /// Whether a byte of a call left that may move money.
    pub(super) fn may_have_moved_money(&self) -> bool {
        let journal = self.journal.lock().unwrap_or_else(PoisonError::into_inner);
        journal.iter().any(|exchange| exchange.moves_money && exchange.bytes_left())
    }

    fn note(&self, exchange: Exchange) -> usize {
        let mut journal = self.journal.lock().unwrap_or_else(PoisonError::into_inner);
        journal.push(exchange);
        journal.len() - 1
    }
}

impl Call {
    /// The path with what the rail gives for its final `*`.
    pub(super) fn path(&self, rest: &str) -> Result<String, String> {
        let odd = |c: char| c.is_control() || c.is_whitespace() || "\\#?@%".contains(c);
        let is_plain = || {
            let mut segments = rest.split('/');
            segments.all(|part| !part.is_empty() && part != "." && !part.contains(".."))
        };
        match self.path.strip_suffix('*') {
            Some(_) if rest.contains(odd) || !is_plain() => {
                Err(format!("{rest:?} cannot stand at the end of the path of {}", self.name))
            }
            Some(before) => Ok(format!("{before}{rest}")),
            None if rest.is_empty() => Ok(self.path.clone()),
            None => Err(format!("the path of {} is declared whole", self.name)),
        }
    }

    async fn enter(&self, errand: Errand) -> Result<Option<Turn<'_>>, String> {
        match &self.throttle {
            Some(throttle) => throttle.enter(errand).await.map(Some),
            None => Ok(None),
        }
    }

    async fn send(&self, outgoing: Outgoing) -> Result<Answer, Failure> {
        match &*self.target {
            Target::InProcess(router) => {
                let request = outgoing.request(self, "", "simulator").map_err(Failure::NotSent)?;
                let answering = async {
                    let response = router.clone().oneshot(request).await;
                    // A router cannot fail; the type says so.
                    let Ok(response) = response;
                    self.answer(response).await
                };
                match tokio::time::timeout(self.timeout, answering).await {
                    Ok(answer) => answer,
                    Err(_) => Err(Failure::NoAnswer(self.too_slow())),
                }
            }
            Target::Network(network) => network.send(self, outgoing).await,
        }
    }

    /// Reads a response to its end, within the limit.
    async fn answer<B>(&self, response: Response<B>) -> Result<Answer, Failure>
    where
        B: axum::body::HttpBody,
        B::Error: Into<Box<dyn std::error::Error + Send + Sync>>,
    {
        let (head, body) = response.into_parts();
        if let Some(how) = head.extensions.get() {
            let why = "the connection was lost".to_owned();
            return Err(match how {
                HangUp::NotSent => Failure::NotSent(why),
                HangUp::Received => Failure::NoAnswer(why),
            });
        }
        let body = Limited::new(body, self.answer_bytes_max).collect().await;
        let body = body.map_err(|cause| Failure::NoAnswer(cause.to_string()))?;
        let headers = head.headers.iter().filter_map(|(name, value)| {
            Some((name.as_str().to_owned(), value.to_str().ok()?.to_owned()))
        });
        Ok(Answer {
            status: head.status.as_u16(),
            headers: headers.collect(),
            body: body.to_bytes().to_vec(),
        })
    }

    fn too_slow(&self) -> String {
        format!("no whole answer within {:?}", self.timeout)
    }
}

/// What an in-process peer puts into a response to say that it hung up instead.
#[derive(Clone, Copy, Debug)]
pub enum HangUp {
    /// Before a byte of the request was sent.
    NotSent,
    /// After it had received the request.
    Received,
}

impl Outgoing {
    fn request(self, call: &Call, base: &str, host: &str) -> Result<Request<Body>, String> {
        let path = String::from_utf8(self.path.leaves()).map_err(|cause| cause.to_string())?;
        let is_empty = self.body.leaving().is_empty();
        let mut request = Request::builder()
            .method(call.method.clone())
            .uri(format!("{base}{path}"))
            .header(::http::header::HOST, host)
            .body(Body::from(self.body.leaves()))
            .map_err(|cause| cause.to_string())?;
        for (name, value) in &self.headers {
            let name =
                HeaderName::from_bytes(name.as_bytes()).map_err(|cause| cause.to_string())?;
            let value = HeaderValue::from_str(value)
                .map_err(|_| format!("the value of {name} is not a header value"))?;
            request.headers_mut().insert(name, value);
        }
        // Gateways refuse a POST that does not say that it has no body.
        if is_empty && [Method::POST, Method::PUT, Method::PATCH].contains(&call.method) {
            let nothing = HeaderValue::from_static("0");
            request.headers_mut().insert(::http::header::CONTENT_LENGTH, nothing);
        }
        Ok(request)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn what_was_told_in_confidence_is_not_heard_again() {
        let said = |text: &str| {
            starred(text.as_bytes(), b"evrtfn").map(|it| String::from_utf8_lossy(&it).into_owned())
        };
        assert_eq!(said("answer 'evrtfn' is weak").as_deref(), Some("answer '****' is weak"));
        assert_eq!(said("WEAK_EVRTFNevrtfn").as_deref(), Some("WEAK_********"));
        assert_eq!((said("evrtf"), said(""), starred(b"x", b"")), (None, None, None));
    }

    fn call(path: &str) -> Call {
        Call {
            name: "ask".into(),
            target: Arc::new(Target::InProcess(Router::new())),
            method: Method::POST,
            path: path.into(),
            moves_money: false,
            timeout: Duration::from_secs(1),
            answer_bytes_max: 1024,
            throttle: None,
        }
    }

    #[test]
    fn a_rail_gives_nothing_but_the_end_of_a_path_that_is_declared_open() {
        let whole = call("/v1/transfers");
        assert_eq!(whole.path("").as_deref(), Ok("/v1/transfers"));
        assert!(whole.path("1").is_err());
        let open = call("/v1/transfers/*");
        assert_eq!(open.path("1").as_deref(), Ok("/v1/transfers/1"));
        assert_eq!(open.path("1/status").as_deref(), Ok("/v1/transfers/1/status"));
        for rest in [
            "",
            "/",
            "1/",
            "/1",
            "1//2",
            "..",
            "../admin",
            "1/../admin",
            "./1",
            "%2e%2e",
            "1\\..",
            "1?x=1",
            "1#2",
            "@evil",
            "\r\nHost: evil",
            "1 2",
        ] {
            assert!(open.path(rest).is_err(), "{rest:?}");
        }
    }
}
