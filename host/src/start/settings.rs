//! Settings: which of them a host refuses, and whom it trusts because of them.

use std::path::Path;
use std::sync::Arc;

use rustls::pki_types::CertificateDer;
use rustls::pki_types::pem::PemObject as _;
use secrecy::ExposeSecret;

use crate::auth::key::SECRET_PREFIX;
use crate::caller::OPERATOR;
use crate::config::Config;
use crate::id::{Id as _, MemberId};
use crate::operator::team::invitations;
use crate::team::session;

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
    if let Some(url) = &config.server.public_url
        && !["http://", "https://"].iter().any(|scheme| url.starts_with(scheme))
    {
        return Err(format!("server.public_url is {url}: begin with https:// or http://").into());
    }
    refuse_odd_operators(config)?;
    refuse_distant_simulator(config)
}

/// Operators are told apart by name and token; the audit log's own actors are taken.
fn refuse_odd_operators(config: &Config) -> Result<(), StartError> {
    let mut tokens: Vec<&str> =
        config.operator_token.iter().map(ExposeSecret::expose_secret).collect();
    if let Some(token) = tokens.first() {
        refuse_others_token("RAILHEAD_OPERATOR_TOKEN", token)?;
    }
    for (name, token) in &config.admin.operators {
        let token = token.expose_secret();
        refuse_others_token(&format!("admin.operators.{name}"), token)?;
        if matches!(name.as_str(), "host" | OPERATOR | "unknown")
            || name.starts_with(MemberId::PREFIX)
        {
            return Err(format!("admin.operators.{name}: this name is taken").into());
        }
        if tokens.contains(&token) {
            let why = "a token belongs to one operator, and another one, or \
                       RAILHEAD_OPERATOR_TOKEN, has it";
            return Err(format!("admin.operators.{name}: {why}").into());
        }
        tokens.push(token);
    }
    // The one whose token has no name is one of them.
    config.approvals.check(config.admin.operators.len() + 1)?;
    Ok(())
}

/// Whoever signs in, or calls with a key, is no operator: their token stands in the environment of a
/// terminal, and must not become the operator's there.
fn refuse_others_token(setting: &str, token: &str) -> Result<(), StartError> {
    let others = [session::TOKEN_PREFIX, invitations::TOKEN_PREFIX, SECRET_PREFIX];
    match others.iter().any(|prefix| token.starts_with(prefix)) {
        false => Ok(()),
        true => Err(format!(
            "{setting} is the token of a session, of an invitation or of a merchant's key, and not \
             an operator's: unset it, or give the operator a token of their own"
        )
        .into()),
    }
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

#[cfg(test)]
mod tests {
    use secrecy::SecretString;

    use super::*;

    #[test]
    fn nobody_elses_token_becomes_an_operators() {
        let session = SecretString::from("rhs_0123456789abcdefghij");
        let refusal = |config: &Config| refuse_odd_operators(config).map_err(|it| it.to_string());
        let mut config = Config { operator_token: Some(session.clone()), ..Config::default() };
        let why = refusal(&config).expect_err("a session's");
        assert!(why.contains("RAILHEAD_OPERATOR_TOKEN"), "{why}");
        config.operator_token = Some(SecretString::from("op_0123456789abcdefghij"));
        assert_eq!(refusal(&config), Ok(()));
        config.admin.operators.insert("ada".to_owned(), session);
        let why = refusal(&config).expect_err("a session's");
        assert!(why.contains("admin.operators.ada"), "{why}");
    }
}
