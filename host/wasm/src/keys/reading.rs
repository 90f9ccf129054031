//! Public keys, out of PEM.

use rustls_pki_types::pem::PemObject as _;
use rustls_pki_types::{CertificateDer, SubjectPublicKeyInfoDer};
use spki::{ObjectIdentifier, SubjectPublicKeyInfoRef};

use super::Bits;

/// What a public key is, by its object identifier, and as people call it.
pub(super) type Kind = (ObjectIdentifier, &'static str);

/// RFC 3279.
pub(super) const RSA: Kind = (ObjectIdentifier::new_unwrap("1.2.840.113549.1.1.1"), "an RSA key");
/// RFC 5480; which curve, a parameter says.
pub(super) const ELLIPTIC: Kind =
    (ObjectIdentifier::new_unwrap("1.2.840.10045.2.1"), "a key of an elliptic curve");
/// RFC 8410.
pub(super) const ED25519: Kind = (ObjectIdentifier::new_unwrap("1.3.101.112"), "an Ed25519 key");
/// P-256.
const CURVE: ObjectIdentifier = ObjectIdentifier::new_unwrap("1.2.840.10045.3.1.7");

/// A public key in PEM, as DER.
pub(super) fn public(pem: &str) -> Result<SubjectPublicKeyInfoDer<'_>, String> {
    SubjectPublicKeyInfoDer::from_pem_slice(pem.as_bytes())
        .map_err(|_| "it must be PEM that begins with BEGIN PUBLIC KEY".to_owned())
}

/// The same, or the one in a certificate.
pub(super) fn public_or_certified(pem: &str) -> Result<SubjectPublicKeyInfoDer<'_>, String> {
    if let Ok(info) = public(pem) {
        return Ok(info);
    }
    let certificate = CertificateDer::from_pem_slice(pem.as_bytes())
        .map_err(|_| "it must be PEM that begins with BEGIN PUBLIC KEY or BEGIN CERTIFICATE")?;
    let read = webpki::EndEntityCert::try_from(&certificate);
    let read = read.map_err(|cause| format!("it is not a certificate: {cause}"))?;
    Ok(read.subject_public_key_info().into_owned())
}

/// What stands in a public key of this kind.
pub(super) fn inner(der: &[u8], (kind, name): Kind) -> Result<Vec<u8>, String> {
    let info = SubjectPublicKeyInfoRef::try_from(der)
        .map_err(|cause| format!("it is not a public key: {cause}"))?;
    if info.algorithm.oid != kind {
        return Err(format!("it is not {name}"));
    }
    let curve = || info.algorithm.parameters_oid().ok();
    if kind == ELLIPTIC.0 && curve() != Some(CURVE) {
        return Err("its curve is not P-256".to_owned());
    }
    let key = info.subject_public_key.as_bytes().ok_or("it is not a public key")?;
    let is_whole = match key {
        _ if kind == RSA.0 => true,
        // A point that is not compressed (SEC 1, section 2.3.3).
        [4, point @ ..] if kind == ELLIPTIC.0 => point.len() == 64,
        _ => kind == ED25519.0 && key.len() == 32,
    };
    if !is_whole {
        return Err(format!("it is not {name} as it must be written, with its whole point"));
    }
    Ok(key.to_vec())
}

/// The RSA key in a public key, as PKCS#1 in DER.
pub(super) fn rsa(der: &[u8], bits: Bits) -> Result<Vec<u8>, String> {
    let key = inner(der, RSA)?;
    if key.len() < bits.bytes_min() {
        let least = if bits == Bits::Long { 2048 } else { 1024 };
        return Err(format!("it is not an RSA key of {least} bits at least"));
    }
    Ok(key)
}
