//! Settings: which of them a host refuses, and whom it trusts because of them.

use std::path::Path;
use std::sync::Arc;

use rustls::pki_types::CertificateDer;
use rustls::pki_types::pem::PemObject as _;
use secrecy::ExposeSecret;

use crate::caller::OPERATOR;
use crate::config::Config;
use crate::id::{Id as _, MemberId};

use super::StartError;

/// Where the certificates are named that rails trust besides the system's.
const OWN_AUTHORITIES: &str = "egress.extra_ca_file";

/// Refuses settings that no host can work with, and those that each make sense, and together do
/// harm.
pub(super) fn refuse_odd_settings(config: &Config) -> Result<(), StartError> {
    config.check_numbers()?;
    config.check_tokens()?;
    config.alerts.check(&config.email)?;
    for (setting, path) in [
        (OWN_AUTHORITIES, &config.egress.extra_ca_file),
        ("webhooks.extra_ca_file", &config.webhooks.extra_ca_file),
        ("email.extra_ca_file", &config.email.extra_ca_file),
    ] {
        if let Some(path) = path {
            certificates(setting, path)?;
        }
    }
    refuse_odd_operators(config)?;
    refuse_distant_simulator(config)
}

/// Operators are told apart by name and token; the audit log's own actors are taken.
fn refuse_odd_operators(config: &Config) -> Result<(), StartError> {
    let mut tokens: Vec<&str> =
        config.operator_token.iter().map(ExposeSecret::expose_secret).collect();
    for (name, token) in &config.admin.operators {
        let token = token.expose_secret();
        if matches!(name.as_str(), "host" | OPERATOR | "unknown")
            || name.starts_with(MemberId::PREFIX)
        {
            return Err(format!("admin.operators.{name}: this name is taken").into());
        }
        if tokens.contains(&token) {
            let why = "a token belongs to one operator";
            return Err(format!("admin.operators.{name}: {why}").into());
        }
        tokens.push(token);
    }
    // The one whose token has no name is one of them.
    config.approvals.check(config.admin.operators.len() + 1)?;
    Ok(())
}

/// The simulator moves no money, and takes credentials that are no secret, over plain HTTP.
fn refuse_distant_simulator(config: &Config) -> Result<(), StartError> {
    let Some(url) = &config.simulator.url else { return Ok(()) };
    let uri: Option<http::Uri> = url.parse().ok();
    let host = uri.as_ref().and_then(|uri| uri.host()).unwrap_or_default();
    let literal = host.trim_matches(['[', ']']).parse::<std::net::IpAddr>();
    match literal.map_or(host == "localhost", |ip| ip.is_loopback()) {
        true => Ok(()),
        false => Err(format!("simulator.url {url}: the simulator is on this machine only").into()),
    }
}

/// Certificates that rails trust: the system's, and the operator's own.
pub(super) fn tls(config: &Config) -> Result<Arc<rustls::ClientConfig>, StartError> {
    let mut roots = rustls::RootCertStore::empty();
    for certificate in rustls_native_certs::load_native_certs().certs {
        // One that cannot be read is one less to trust.
        let _ = roots.add(certificate);
    }
    if let Some(path) = &config.egress.extra_ca_file {
        for certificate in certificates(OWN_AUTHORITIES, path)? {
            let added = roots.add(certificate);
            added.map_err(|cause| format!("{OWN_AUTHORITIES} {}: {cause}", path.display()))?;
        }
    }
    let provider = Arc::new(rustls::crypto::ring::default_provider());
    let config = rustls::ClientConfig::builder_with_provider(provider)
        .with_safe_default_protocol_versions()?
        .with_root_certificates(roots)
        .with_no_client_auth();
    Ok(Arc::new(config))
}

/// The certificates in a file that a setting names: one at least.
fn certificates(setting: &str, path: &Path) -> Result<Vec<CertificateDer<'static>>, StartError> {
    let named = |why: &dyn std::fmt::Display| format!("{setting} {}: {why}", path.display());
    let read: Result<Vec<_>, _> = CertificateDer::pem_file_iter(path).and_then(Iterator::collect);
    let read = read.map_err(|cause| named(&cause))?;
    match read.is_empty() {
        true => Err(named(&"there is no certificate in it").into()),
        false => Ok(read),
    }
}
