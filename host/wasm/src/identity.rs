//! Client certificates: who this host is to a network that wants to see it in the handshake.

use std::sync::Arc;

use rustls::ClientConfig;
use rustls::client::Resumption;
use rustls::sign::{CertifiedKey, SingleCertAndKey};
use rustls_pki_types::pem::PemObject as _;
use rustls_pki_types::{CertificateDer, PrivateKeyDer};

/// The same connections with a certificate: one PEM text with the chain, ours first, and its
/// private key.
///
/// # Errors
/// It is none, in words that hold nothing of it.
pub fn presenting(plain: &ClientConfig, pem: &str) -> Result<ClientConfig, String> {
    let chain: Result<Vec<_>, _> = CertificateDer::pem_slice_iter(pem.as_bytes()).collect();
    let chain = chain.map_err(|_| "it must be PEM")?;
    if chain.is_empty() {
        return Err("it must be PEM with BEGIN CERTIFICATE in it".to_owned());
    }
    let key = PrivateKeyDer::from_pem_slice(pem.as_bytes())
        .map_err(|_| "it must be PEM with the certificate's BEGIN PRIVATE KEY in it, too")?;
    let ours = CertifiedKey::from_der(chain, key, plain.crypto_provider())
        .map_err(|cause| format!("certificate and private key do not go together: {cause}"))?;
    let mut config = plain.clone();
    config.client_auth_cert_resolver = Arc::new(SingleCertAndKey::from(ours));
    // A session that began without it must not go on.
    config.resumption = Resumption::default();
    Ok(config)
}
