//! Requests of rails to their networks.
//!
//! The host owns the socket, so the host knows what a guest could only claim: whether a byte
//! of a request left. [`Failure::NotSent`] is that promise; everything else that goes wrong is
//! [`Failure::NoAnswer`], and the outcome is unknown.

mod connection;

use std::sync::{Arc, Mutex, PoisonError};
use std::time::{Duration, Instant};

use ::http::{HeaderName, HeaderValue, Method, Request, Response};
use axum::Router;
use axum::body::Body;
use http_body_util::{BodyExt as _, Limited};
use ipnet::IpNet;
use rustls::ClientConfig;
use tower::ServiceExt as _;

use connection::Pool;

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

/// One declared endpoint with its limits.
pub struct Endpoint {
    /// The name in the declaration.
    pub name: String,
    /// The network address or, in the sandbox, the simulator.
    pub target: Target,
    /// Paths that may be asked for; a final `/*` stands for one or more segments.
    pub paths: Vec<String>,
    /// Methods that may be used.
    pub methods: Vec<Method>,
    /// Time for connecting, sending and the whole answer.
    pub timeout: Duration,
    /// Largest answer.
    pub answer_bytes_max: usize,
}

/// A request as it leaves, secrets filled in.
pub(super) struct Outgoing {
    pub(super) method: Method,
    pub(super) path: String,
    pub(super) headers: Vec<(String, String)>,
    pub(super) body: Vec<u8>,
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
    /// The endpoint's name.
    pub endpoint: String,
    /// HTTP method.
    pub method: String,
    /// Path below the endpoint.
    pub path: String,
    /// The request's body.
    pub request: Vec<u8>,
    /// What came back.
    pub result: Result<Answer, Failure>,
    /// How long it took.
    pub took: Duration,
}

impl Exchange {
    /// Whether a byte of the request left the host.
    #[must_use]
    pub fn bytes_left(&self) -> bool {
        !matches!(self.result, Err(Failure::NotSent(_)))
    }
}

/// One guest's way out, which writes down every exchange.
pub(super) struct Egress {
    journal: Arc<Mutex<Vec<Exchange>>>,
}

impl Egress {
    pub(super) fn new(journal: Arc<Mutex<Vec<Exchange>>>) -> Self {
        Self { journal }
    }

    /// Sends a request and waits for the whole answer.
    pub(super) async fn send(
        &self,
        endpoint: &Endpoint,
        outgoing: Outgoing,
    ) -> Result<Answer, Failure> {
        let begun = Instant::now();
        let exchange = Exchange {
            endpoint: endpoint.name.clone(),
            method: outgoing.method.to_string(),
            path: outgoing.path.clone(),
            request: outgoing.body.clone(),
            // Stands if this call is cut short: by then, something may have left.
            result: Err(Failure::NoAnswer("the call was cut short".into())),
            took: Duration::ZERO,
        };
        if let Err(why) = endpoint.permits(&outgoing) {
            let result = Err(Failure::NotSent(why));
            self.note(Exchange { result: result.clone(), ..exchange });
            return result;
        }
        let index = self.note(exchange);
        let result = endpoint.send(outgoing).await;
        let mut journal = self.journal.lock().unwrap_or_else(PoisonError::into_inner);
        if let Some(exchange) = journal.get_mut(index) {
            exchange.result = result.clone();
            exchange.took = begun.elapsed();
        }
        result
    }

    fn note(&self, exchange: Exchange) -> usize {
        let mut journal = self.journal.lock().unwrap_or_else(PoisonError::into_inner);
        journal.push(exchange);
        journal.len() - 1
    }
}

impl Endpoint {
    fn permits(&self, outgoing: &Outgoing) -> Result<(), String> {
        if !self.methods.contains(&outgoing.method) {
            return Err(format!("{} is not declared for {}", outgoing.method, self.name));
        }
        let path = outgoing.path.split('?').next().unwrap_or("");
        let odd = |c: char| c.is_control() || c.is_whitespace() || "\\#@%".contains(c);
        if !path.starts_with('/')
            || path.contains("//")
            || path.contains("..")
            || path.contains(odd)
        {
            return Err(format!("{path:?} is not a path that can be asked for"));
        }
        let declared = self.paths.iter().any(|pattern| match pattern.strip_suffix("/*") {
            Some(prefix) => path
                .strip_prefix(prefix)
                .is_some_and(|rest| rest.starts_with('/') && rest.len() > 1),
            None => path == pattern,
        });
        if declared { Ok(()) } else { Err(format!("{path} is not declared for {}", self.name)) }
    }

    async fn send(&self, outgoing: Outgoing) -> Result<Answer, Failure> {
        match &self.target {
            Target::InProcess(router) => {
                let request = outgoing.request("", "simulator").map_err(Failure::NotSent)?;
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
    fn request(self, base: &str, host: &str) -> Result<Request<Body>, String> {
        let mut request = Request::builder()
            .method(self.method)
            .uri(format!("{base}{}", self.path))
            .header(::http::header::HOST, host)
            .body(Body::from(self.body))
            .map_err(|cause| cause.to_string())?;
        for (name, value) in &self.headers {
            let name =
                HeaderName::from_bytes(name.as_bytes()).map_err(|cause| cause.to_string())?;
            let value = HeaderValue::from_str(value)
                .map_err(|_| format!("the value of {name} is not a header value"))?;
            request.headers_mut().insert(name, value);
        }
        Ok(request)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn endpoint() -> Endpoint {
        Endpoint {
            name: "api".into(),
            target: Target::InProcess(Router::new()),
            paths: vec!["/v1/transfers".into(), "/v1/transfers/*".into()],
            methods: vec![Method::POST],
            timeout: Duration::from_secs(1),
            answer_bytes_max: 1024,
        }
    }

    fn to(path: &str) -> Outgoing {
        let (method, path) = (Method::POST, path.to_owned());
        Outgoing { method, path, headers: Vec::new(), body: Vec::new() }
    }

    #[test]
    fn only_declared_paths_are_asked_for() {
        for path in ["/v1/transfers", "/v1/transfers/1", "/v1/transfers/1/status?x=1"] {
            assert_eq!(endpoint().permits(&to(path)), Ok(()), "{path}");
        }
        for path in [
            "",
            "v1/transfers",
            "/v1/transfersX",
            "/v1/transfers/",
            "/v1/transfers/../admin",
            "/v1//transfers",
            "/v1/transfers/%2e%2e",
            "/v1/transfers\\..",
            "http://169.254.169.254/v1/transfers",
            "/v1/transfers/@evil",
            "/v1/transfers/\r\nHost: evil",
            "/v2/transfers",
        ] {
            assert!(endpoint().permits(&to(path)).is_err(), "{path:?}");
        }
        assert!(
            endpoint().permits(&Outgoing { method: Method::GET, ..to("/v1/transfers") }).is_err()
        );
    }
}
