//! Where the host listens: for everybody, and for its operators if they have a door of their own.

use std::net::SocketAddr;
use std::path::Path;
use std::sync::Arc;

use rustix::process::{Resource, Rlimit, getrlimit, setrlimit};
use rustls::pki_types::pem::PemObject as _;
use rustls::pki_types::{CertificateDer, PrivateKeyDer};
use tokio::net::TcpListener;
use tokio::task::JoinHandle;
use tokio_rustls::TlsAcceptor;

use crate::app::App;
use crate::config::{Config, limits};
use crate::http::server::{Patience, Serving, serve};
use crate::keyring::is_readable_by_others;
use crate::routes::{Door, service};

/// Why the host cannot listen, in words for the operator.
type ListenError = Box<dyn std::error::Error + Send + Sync>;

/// Open listeners, and what their connections may take.
pub struct Listeners {
    public: TcpListener,
    operators: Option<TcpListener>,
    tls: Option<TlsAcceptor>,
    connections_max: usize,
}

impl Listeners {
    /// Opens them. Port 0 stands for any that is free; afterwards the settings name it, for links in
    /// answers.
    ///
    /// # Errors
    /// An address is taken, a certificate cannot be read, or there are too few file descriptors.
    pub async fn open(config: &mut Config) -> Result<Self, ListenError> {
        let tls = tls(config)?;
        warn_of_odd_settings(config, tls.as_ref());
        let connections_max = connections(config)?;
        let public = bind("server.address", &mut config.server.address).await?;
        let operators = match &mut config.admin.address {
            Some(address) => Some(bind("admin.address", address).await?),
            None => None,
        };
        Ok(Self { public, operators, tls, connections_max })
    }

    /// Serves on all of them until the app is told to stop.
    #[must_use]
    pub fn serve(self, app: &App) -> JoinHandle<()> {
        let serving = |door, connections_max| Serving {
            service: service(app, door),
            tls: self.tls.clone(),
            connections_max,
            patience: Patience::default(),
            stopping: app.stopping.clone(),
        };
        match self.operators {
            None => tokio::spawn(serve(self.public, serving(Door::Whole, self.connections_max))),
            Some(operators) => {
                let merchants = serving(Door::Public, self.connections_max);
                // Operators are few, and what they need is counted with what the host needs itself.
                let own = serving(Door::Operators, limits::CONNECTIONS_CROWDED_MAX);
                tokio::spawn(async move {
                    tokio::join!(serve(self.public, merchants), serve(operators, own));
                })
            }
        }
    }
}

async fn bind(setting: &str, address: &mut SocketAddr) -> Result<TcpListener, ListenError> {
    let listener = TcpListener::bind(*address).await;
    let listener = listener.map_err(|cause| format!("{setting} {address}: {cause}"))?;
    *address = listener.local_addr()?;
    Ok(listener)
}

/// The certificate that this host shows, if it has one.
fn tls(config: &Config) -> Result<Option<TlsAcceptor>, ListenError> {
    let server = &config.server;
    let (chain, key) = match (&server.tls_certificate_file, &server.tls_key_file) {
        (None, None) => return Ok(None),
        (Some(chain), Some(key)) => (chain, key),
        _ => return Err("server.tls_certificate_file and server.tls_key_file go together".into()),
    };
    let read = |setting: &str, path: &Path, cause: &dyn std::fmt::Display| {
        format!("server.{setting} {}: {cause}", path.display())
    };
    let certificates: Result<Vec<_>, _> =
        CertificateDer::pem_file_iter(chain).and_then(Iterator::collect);
    let certificates = certificates.map_err(|cause| read("tls_certificate_file", chain, &cause))?;
    let key_der = PrivateKeyDer::from_pem_file(key);
    let key_der = key_der.map_err(|cause| read("tls_key_file", key, &cause))?;
    let provider = Arc::new(rustls::crypto::ring::default_provider());
    let mut tls = rustls::ServerConfig::builder_with_provider(provider)
        .with_safe_default_protocol_versions()?
        .with_no_client_auth()
        .with_single_cert(certificates, key_der)
        .map_err(|cause| read("tls_certificate_file", chain, &cause))?;
    tls.alpn_protocols = vec![b"http/1.1".to_vec()];
    Ok(Some(TlsAcceptor::from(Arc::new(tls))))
}

/// Places for callers: as many as are configured, if the system has descriptors for them.
fn connections(config: &Config) -> Result<usize, ListenError> {
    let wanted = config.server.connections_max.max(limits::CONNECTIONS_MIN);
    let crowded = u64::try_from(limits::CONNECTIONS_CROWDED_MAX)?;
    let doors = if config.admin.address.is_some() { 2 } else { 1 };
    let own = limits::DESCRIPTORS_OWN + doors * crowded;
    let needed = own + u64::try_from(wanted)?;
    let known = getrlimit(Resource::Nofile);
    if known.current.is_some_and(|now| now < needed) {
        let current = known.maximum.map_or(needed, |most| most.min(needed));
        // What it may not raise stays as it is, and is looked at next.
        let _ = setrlimit(Resource::Nofile, Rlimit { current: Some(current), ..known });
    }
    let Some(descriptors) = getrlimit(Resource::Nofile).current else { return Ok(wanted) };
    let left = usize::try_from(descriptors.saturating_sub(own))?;
    if left < limits::CONNECTIONS_MIN {
        let message = format!(
            "the system lets this process open {descriptors} files, and it needs {needed}: raise \
             the limit (ulimit -n {needed}, or LimitNOFILE={needed} of its systemd unit)"
        );
        return Err(message.into());
    }
    if left < wanted {
        tracing::warn!(
            "the system lets this process open {descriptors} files: {left} connections are served \
             at once, and not the {wanted} of server.connections_max (ulimit -n {needed})"
        );
    }
    Ok(wanted.min(left))
}

fn warn_of_odd_settings(config: &Config, tls: Option<&TlsAcceptor>) {
    let server = &config.server;
    let has_proxy = server.public_url.as_ref().is_some_and(|url| url.starts_with("https://"));
    // A proxy in front of the merchants' door says nothing about the operators'.
    let open = [Some(server.address).filter(|_| !has_proxy), config.admin.address];
    let reachable = open.into_iter().flatten().find(|at| !at.ip().is_loopback());
    if let Some(address) = reachable.filter(|_| tls.is_none()) {
        tracing::warn!(
            %address,
            "keys and payouts cross the network unencrypted: set server.tls_certificate_file and \
             server.tls_key_file, or put a proxy with TLS in front and its address into \
             server.public_url"
        );
    }
    if server.tls_key_file.as_deref().is_some_and(is_readable_by_others) {
        tracing::warn!("server.tls_key_file can be read by others than its owner: chmod 600 it");
    }
    if server.trusted_proxies.iter().any(|network| network.prefix_len() == 0) {
        tracing::warn!(
            "server.trusted_proxies believes everybody: any caller can pretend to be at any \
             address, and allow-lists of keys mean nothing"
        );
    }
}
