//! HTTPS requests to addresses that merchants gave: to the public internet and nowhere else.
//!
//! What a name stands for is filtered in the resolver that is used for connecting, so a name
//! cannot be checked as one address and reached as another. Redirects are not followed, no
//! proxy is taken from the environment, and one deadline covers everything.

pub mod mailer;
pub mod post;
pub mod receiver;
pub mod sign;

use std::net::{IpAddr, SocketAddr};
use std::sync::Arc;
use std::time::{Duration, Instant};

use http::{HeaderMap, StatusCode, header};
use ipnet::IpNet;
use reqwest::dns::{Addrs, Name, Resolve, Resolving};
use reqwest::redirect::Policy;
use reqwest::{Client, Url};
use rustls::ClientConfig;
use tokio::sync::Semaphore;

use crate::address;
use crate::config::{self, limits};

/// The setting that opens a private network, named in refusals.
const SETTING: &str = "webhooks.allow_private_networks";
/// Ports on which receivers of webhooks listen; others are databases, mail, somebody's printer.
const PORTS: [u16; 2] = [443, 8443];
/// Longest address that is taken.
const URL_LENGTH_MAX: usize = 2048;

/// What receivers read in every request.
pub const USER_AGENT: &str = "Service-Webhooks/1.0";

/// The client for requests to addresses that merchants gave.
#[derive(Clone)]
pub struct OutboundClient {
    client: Client,
    networks: Arc<Networks>,
    extra_ports: Arc<[u16]>,
}

/// What came of a request.
#[derive(Clone, Debug, Default)]
pub struct Answer {
    /// HTTP status, if a head arrived.
    pub status: Option<u16>,
    /// The beginning of the body, as text.
    pub body: Option<String>,
    /// Why there is no whole answer.
    pub error: Option<String>,
    /// How long the receiver asks to be left alone.
    pub retry_after: Option<Duration>,
    /// How long it took.
    pub took: Duration,
}

impl Answer {
    /// Whether the receiver took it: a whole answer with 2xx, in time.
    #[must_use]
    pub fn is_good(&self) -> bool {
        self.error.is_none() && self.status.is_some_and(|status| (200..300).contains(&status))
    }
}

/// Networks that may be reached besides public ones.
struct Networks {
    open: Vec<IpNet>,
    /// The setting that opens them, named in refusals.
    setting: &'static str,
    /// Turns to resolve a name. It takes a thread for as long as the system waits for an answer,
    /// whoever has given up on it: names that nobody answers for leave banks' names theirs.
    turns: Arc<Semaphore>,
}

impl Networks {
    fn new(open: Vec<IpNet>, setting: &'static str) -> Self {
        Self { open, setting, turns: Arc::new(Semaphore::new(limits::NAMES_AT_ONCE)) }
    }

    fn permit(&self, ip: IpAddr) -> bool {
        address::is_public(ip) || self.open(ip)
    }

    /// Whether the operator opened the network of this address.
    fn open(&self, ip: IpAddr) -> bool {
        self.open.iter().any(|network| network.contains(&ip))
    }

    fn not_public(&self, host: &str) -> String {
        let setting = self.setting;
        format!(
            "{host} is not on the public internet; the operator's {setting} can allow its network"
        )
    }

    async fn resolve(&self, host: &str) -> Result<Vec<SocketAddr>, String> {
        let turn = Arc::clone(&self.turns).acquire_owned().await;
        let turn = turn.map_err(|cause| format!("resolving {host}: {cause}"))?;
        let name = host.to_owned();
        let looking = tokio::spawn(async move {
            let found = tokio::net::lookup_host((name, 0)).await;
            drop(turn);
            found.map(Iterator::collect::<Vec<_>>)
        });
        let found = looking.await.map_err(std::io::Error::other).flatten();
        let found = found.map_err(|cause| format!("resolving {host}: {cause}"))?.into_iter();
        let (permitted, other): (Vec<_>, Vec<_>) =
            found.partition(|address| self.permit(address.ip()));
        match (permitted.is_empty(), other.is_empty()) {
            (false, _) => Ok(permitted),
            (true, true) => Err(format!("{host} has no address")),
            (true, false) => Err(self.not_public(host)),
        }
    }
}

/// Whether a name is one that the public internet does not have.
fn is_local(host: &str) -> bool {
    let name = host.trim_end_matches('.').to_ascii_lowercase();
    let ends = ["localhost", "local", "internal", "intranet", "lan", "home.arpa"];
    ends.iter().any(|end| name == *end || name.ends_with(&format!(".{end}")))
}

/// What resolves names to public addresses, and to those of the networks that a setting opens.
fn resolver(open: Vec<IpNet>, setting: &'static str) -> Arc<impl Resolve + 'static> {
    Arc::new(Filtered(Arc::new(Networks::new(open, setting))))
}

/// A client for addresses that the operator gave: it reaches no address that is not public, unless
/// `setting` opens its network, and no server whose certificate is not trusted. Literal addresses
/// are not resolved: [`refuse_private`] looks at them.
///
/// # Errors
/// The client cannot be made.
pub fn operators_client(
    tls: &ClientConfig,
    (open, setting): (Vec<IpNet>, &'static str),
) -> reqwest::Result<Client> {
    Client::builder()
        .dns_resolver(resolver(open, setting))
        .redirect(Policy::none())
        .no_proxy()
        .retry(reqwest::retry::never())
        .tls_backend_preconfigured(tls.clone())
        .build()
}

/// Refuses a literal address that is not public, unless the setting opens its network; which
/// address it is, if it is one.
///
/// # Errors
/// Why, for the operator.
pub fn refuse_private(
    host: &str,
    (open, setting): (&[IpNet], &str),
) -> Result<Option<IpAddr>, String> {
    let ip = host.trim_matches(['[', ']']).parse::<IpAddr>().ok();
    let is_open = |ip: IpAddr| open.iter().any(|network| network.contains(&ip));
    match ip {
        Some(ip) if !address::is_public(ip) && !is_open(ip) => {
            Err(format!("{ip} is not public; {setting} can allow its network"))
        }
        ip => Ok(ip),
    }
}

struct Filtered(Arc<Networks>);

impl Resolve for Filtered {
    fn resolve(&self, name: Name) -> Resolving {
        let networks = Arc::clone(&self.0);
        Box::pin(async move {
            let addresses = networks.resolve(name.as_str()).await?;
            Ok(Box::new(addresses.into_iter()) as Addrs)
        })
    }
}

impl OutboundClient {
    /// A client that trusts the system's certificates and those in the file, as PEM.
    ///
    /// # Errors
    /// The file cannot be read.
    pub fn new(
        webhooks: &config::Webhooks,
    ) -> Result<Self, Box<dyn std::error::Error + Send + Sync>> {
        let open = webhooks.allow_private_networks.clone();
        let networks = Arc::new(Networks::new(open, SETTING));
        let mut builder = Client::builder()
            .dns_resolver(Filtered(Arc::clone(&networks)))
            .redirect(Policy::none())
            .no_proxy()
            .https_only(true)
            .http1_only()
            .referer(false)
            .retry(reqwest::retry::never())
            .user_agent(USER_AGENT)
            .pool_max_idle_per_host(limits::UNDER_WAY_PER_ENDPOINT_MAX)
            .pool_idle_timeout(Duration::from_secs(30));
        if let Some(path) = &webhooks.extra_ca_file {
            let named = |cause: &dyn std::fmt::Display| {
                format!("webhooks.extra_ca_file {}: {cause}", path.display())
            };
            let pem = std::fs::read(path).map_err(|cause| named(&cause))?;
            let extra = reqwest::Certificate::from_pem_bundle(&pem);
            builder = builder.tls_certs_merge(extra.map_err(|cause| named(&cause))?);
        }
        let extra_ports = webhooks.extra_ports.clone().into();
        Ok(Self { client: builder.build()?, networks, extra_ports })
    }

    /// Reads an address that requests may be sent to.
    ///
    /// # Errors
    /// Why not, for the one who gave it.
    pub fn read(&self, text: &str) -> Result<Url, String> {
        let too_long = || Err(format!("the url is longer than {URL_LENGTH_MAX} characters"));
        if text.len() > URL_LENGTH_MAX {
            return too_long();
        }
        if text.chars().any(|letter| letter.is_control() || letter.is_whitespace()) {
            return Err("the url has white space or control characters".into());
        }
        let url = Url::parse(text).map_err(|cause| format!("the url is not one: {cause}"))?;
        // As it is sent, each letter beyond ASCII takes three for each of its bytes.
        if url.as_str().len() > URL_LENGTH_MAX {
            return too_long();
        }
        if url.scheme() != "https" {
            return Err("the url must begin with https://".into());
        }
        if !url.username().is_empty() || url.password().is_some() {
            return Err("the url must not carry a user name or password".into());
        }
        if url.fragment().is_some() {
            return Err("the url must not have a fragment".into());
        }
        match url.host_str() {
            None | Some("") => Err("the url has no host".into()),
            // No name, though some resolvers would read the rest of it as an address.
            Some(host) if host.starts_with('.') || host.contains("..") => {
                Err("the url's host has two dots in a row, or begins with one".into())
            }
            Some(host) => self.permit(host, url.port_or_known_default()).map(|()| url),
        }
    }

    /// Refuses literal addresses, in whatever spelling, and names, that are not public, and ports
    /// on which nobody takes webhooks. The parser has brought every spelling of an address into its
    /// one form. What is in a network that the operator opened may use any port.
    fn permit(&self, host: &str, port: Option<u16>) -> Result<(), String> {
        let literal = host.trim_start_matches('[').trim_end_matches(']').parse::<IpAddr>();
        let is_open = match literal {
            Ok(ip) if !self.networks.permit(ip) => return Err(self.networks.not_public(host)),
            Ok(ip) => self.networks.open(ip),
            Err(_) if is_local(host) && self.networks.open.is_empty() => {
                return Err(self.networks.not_public(host));
            }
            // Only what it stands for tells whether its network is one of those.
            Err(_) => is_local(host),
        };
        let known =
            port.is_some_and(|port| PORTS.contains(&port) || self.extra_ports.contains(&port));
        match is_open || known {
            true => Ok(()),
            false => {
                let port = port.map_or_else(String::new, |port| format!(" {port}"));
                Err(format!("port{port} is not delivered to: use 443 or 8443, or ask the operator"))
            }
        }
    }

    /// Refuses a name that stands for no public address at present. A name that cannot be
    /// resolved now may be later, unless it is one that only private networks know.
    ///
    /// # Errors
    /// Why not, for the one who gave it.
    pub async fn look_up(&self, url: &Url) -> Result<(), String> {
        let Some(host) = url.domain() else { return Ok(()) };
        let looking = self.networks.resolve(host);
        match tokio::time::timeout(Duration::from_secs(3), looking).await {
            Ok(Err(why)) if why.contains(SETTING) => Err(why),
            Ok(Err(_)) | Err(_) if is_local(host) => Err(self.networks.not_public(host)),
            _ => Ok(()),
        }
    }

    /// Sends a JSON body and waits for the answer, for [`limits::WEBHOOK_EXCHANGE_MAX`] in all.
    pub async fn post(&self, url: &str, headers: HeaderMap, body: String) -> Answer {
        let begun = Instant::now();
        let mut answer = Answer::default();
        let exchange = self.exchange(url, (headers, body), &mut answer);
        let ended = tokio::time::timeout(limits::WEBHOOK_EXCHANGE_MAX, exchange).await;
        answer.error = match ended {
            Ok(Ok(())) => None,
            Ok(Err(why)) => Some(why),
            Err(_) => Some(format!("no whole answer within {:?}", limits::WEBHOOK_EXCHANGE_MAX)),
        };
        answer.took = begun.elapsed();
        answer
    }

    async fn exchange(
        &self,
        url: &str,
        (headers, body): (HeaderMap, String),
        answer: &mut Answer,
    ) -> Result<(), String> {
        let url = self.read(url)?;
        let request = self.client.post(url).headers(headers).body(body);
        let mut response = request.send().await.map_err(|cause| reason(&cause))?;
        answer.status = Some(response.status().as_u16());
        answer.retry_after = retry_after(response.status(), response.headers());
        let mut kept = Vec::new();
        let whole = loop {
            match response.chunk().await {
                Ok(Some(chunk)) => kept.extend_from_slice(&chunk),
                Ok(None) => break Ok(()),
                Err(cause) => break Err(reason(&cause)),
            }
            if kept.len() >= limits::WEBHOOK_ANSWER_BYTES_MAX {
                // Enough is known; an answer without end is not read to its end.
                kept.truncate(limits::WEBHOOK_ANSWER_BYTES_MAX);
                break Ok(());
            }
        };
        // No engine stores a NUL in a text.
        answer.body = Some(String::from_utf8_lossy(&kept).replace('\0', "\u{fffd}"));
        whole
    }
}

/// The innermost cause, in a few words: outer ones repeat the address.
pub fn reason(cause: &reqwest::Error) -> String {
    let mut innermost: &dyn std::error::Error = cause;
    while let Some(source) = innermost.source() {
        innermost = source;
    }
    let mut text = innermost.to_string();
    text.truncate(text.floor_char_boundary(300));
    text
}

/// Seconds, as 429 and 503 give them; a date is not worth the trouble of a skewed clock.
fn retry_after(status: StatusCode, headers: &HeaderMap) -> Option<Duration> {
    if !matches!(status, StatusCode::TOO_MANY_REQUESTS | StatusCode::SERVICE_UNAVAILABLE) {
        return None;
    }
    let seconds = headers.get(header::RETRY_AFTER)?.to_str().ok()?.trim().parse().ok()?;
    Some(Duration::from_secs(seconds).min(limits::WEBHOOK_RETRY_AFTER_MAX))
}

#[cfg(test)]
mod tests {
    use super::*;

    fn client(allowed: &[&str]) -> OutboundClient {
        let _ = rustls::crypto::ring::default_provider().install_default();
        let allowed = allowed.iter().map(|network| network.parse().expect("a network"));
        let webhooks = config::Webhooks {
            allow_private_networks: allowed.collect(),
            extra_ports: vec![9443],
            ..config::Webhooks::default()
        };
        OutboundClient::new(&webhooks).expect("a client")
    }

    #[test]
    fn ports_of_other_services_are_refused_but_in_networks_that_were_opened() {
        let client = client(&["10.1.0.0/16"]);
        let taken = ["example.com", "example.com:8443", "example.com:9443", "10.1.2.3:25"];
        for host in taken {
            assert!(client.read(&format!("https://{host}/")).is_ok(), "{host}");
        }
        let refused = ["example.com:25", "8.8.8.8:5432", "example.com:80", "10.2.0.1", "127.0.0.1"];
        for host in refused {
            assert!(client.read(&format!("https://{host}/")).is_err(), "{host}");
        }
    }

    /// One private network that is opened opens no other, whatever its names.
    #[tokio::test]
    async fn local_names_stay_closed_where_another_network_is_opened() {
        let client = client(&["10.1.0.0/16"]);
        for host in ["localhost", "metadata.google.internal", "printer.local"] {
            let url = client.read(&format!("https://{host}/"));
            let url = url.expect("what it stands for is looked up");
            assert!(client.look_up(&url).await.is_err(), "{host}");
        }
    }

    #[test]
    fn what_is_not_public_is_refused_in_every_spelling() {
        let client = client(&[]);
        for url in [
            "http://example.com/",
            "ftp://example.com/",
            "example.com",
            "https://",
            "https://user@example.com/",
            "https://user:pw@example.com/",
            "https://example.com/#x",
            "https://example.com/\r\nHost: evil",
            "https://exa mple.com/",
            "https://127.0.0.1/",
            "https://127.1/",
            "https://2130706433/",
            "https://0x7f000001/",
            "https://0177.0.0.1/",
            "https://0x7f.1/",
            "https://127.0.0.1./",
            "https://①②⑦.0.0.1/",
            "https://0/",
            "https://10.0.0.1/",
            "https://172.16.0.1/",
            "https://192.168.0.1/",
            "https://169.254.169.254/latest/meta-data",
            "https://100.64.0.1/",
            "https://192.0.0.1/",
            "https://198.18.0.1/",
            "https://224.0.0.1/",
            "https://240.0.0.1/",
            "https://255.255.255.255/",
            "https://[::1]/",
            "https://[::]/",
            "https://[fc00::1]/",
            "https://[fe80::1]/",
            "https://[::ffff:127.0.0.1]/",
            "https://[::ffff:7f00:1]/",
            "https://[64:ff9b::7f00:1]/",
            "https://[2002:7f00:1::]/",
            "https://[5f00::1]/",
            "https://localhost/",
            "https://LOCALHOST./",
            "https://a.localhost:8443/",
            "https://metadata.google.internal/",
            "https://printer.local/",
            "https://169.254.169.254../",
            "https://.example.com/",
            "https://a..b/",
        ] {
            assert!(client.read(url).is_err(), "{url}");
        }
        for url in ["https://example.com/hooks?x=1", "https://8.8.8.8:8443/", "https://a.b./"] {
            assert!(client.read(url).is_ok(), "{url}");
        }
        for long in ["x".repeat(2048), "ü".repeat(700)] {
            assert!(client.read(&format!("https://example.com/{long}")).is_err());
        }
    }

    /// One that nothing is opened to, for many questions.
    fn strict() -> &'static OutboundClient {
        static STRICT: std::sync::OnceLock<OutboundClient> = std::sync::OnceLock::new();
        STRICT.get_or_init(|| client(&[]))
    }

    /// Pieces that addresses are made of, and some that confuse readers of them.
    const PIECES: &str = r"(https|HTTPS|http|ftp|)(://|:/|:|//|)([a-z0-9.:@%/?#\\\[\]-]{0,12}|\PC{0,8}|127|0x7f|0177|::1|::ffff:|localhost|10\.0\.0\.1|2130706433|169\.254\.169\.254|\[|\]|@|\.){0,6}";

    proptest::proptest! {
        #[test]
        fn whatever_is_given_is_read_or_refused_and_never_leads_inside(text in PIECES) {
            if let Ok(url) = strict().read(&text) {
                proptest::prop_assert_eq!(url.scheme(), "https");
                proptest::prop_assert!(url.username().is_empty() && url.password().is_none());
                let host = url.host_str().expect("a host").trim_end_matches('.');
                let literal = host.trim_matches(['[', ']']).parse::<IpAddr>();
                let inside = literal.map_or(host == "localhost", |ip| !address::is_public(ip));
                proptest::prop_assert!(!inside, "{url}");
            }
        }

        #[test]
        fn an_address_is_judged_alike_however_it_is_written(bits: u32) {
            let ip = std::net::Ipv4Addr::from(bits);
            let [a, b, c, d] = ip.octets();
            let is_public = address::is_public(ip.into());
            for host in [
                ip.to_string(),
                format!("{bits}"),
                format!("{bits:#x}"),
                format!("0{bits:o}"),
                format!("{a:#x}.{b}.0{c:o}.{d}"),
                format!("{a}.{}", bits & 0x00ff_ffff),
                format!("[::ffff:{ip}]"),
                format!("[64:ff9b::{ip}]"),
                format!("[2002:{:x}:{:x}::1]", bits >> 16, bits & 0xffff),
            ] {
                let read = strict().read(&format!("https://{host}:8443/"));
                // Nobody has to be reached by way of a translation; inside must nobody be.
                let may_be_refused = host.starts_with('[');
                proptest::prop_assert!(read.is_err() || is_public, "{host}");
                proptest::prop_assert!(read.is_ok() || !is_public || may_be_refused, "{host}");
            }
        }
    }

    #[test]
    fn an_operator_can_open_a_network_and_only_that() {
        let client = client(&["127.0.0.0/8"]);
        assert!(client.read("https://127.0.0.1:9000/").is_ok());
        assert!(client.read("https://10.0.0.1/").is_err_and(|why| why.contains(SETTING)));
    }

    #[tokio::test]
    async fn a_name_is_judged_by_what_it_stands_for() {
        let url = Url::parse("https://localhost/").expect("a url");
        assert!(client(&[]).look_up(&url).await.is_err());
        assert!(client(&["127.0.0.0/8", "::1/128"]).look_up(&url).await.is_ok());
        let nowhere = Url::parse("https://nowhere.invalid/").expect("a url");
        assert!(client(&[]).look_up(&nowhere).await.is_ok());
    }
}
