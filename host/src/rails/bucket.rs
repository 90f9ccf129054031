//! A folder of an object store that speaks S3: where some banks take files, and leave theirs.
//!
//! `s3://bucket/folder` is one of AWS's; `?region=` says in which region, and `?endpoint=` where
//! another maker's store is.

use std::sync::Arc;

use ipnet::IpNet;
use object_store::ClientOptions;
use object_store::RetryConfig;
use object_store::aws::{AmazonS3, AmazonS3Builder};
use object_store::client::{HttpClient, HttpConnector};
use object_store::path::Path;
use reqwest::Url;
use rustls::ClientConfig;
use secrecy::{ExposeSecret as _, SecretString};

use crate::outbound;

/// The setting that opens a private network, named in refusals.
const SETTING: &str = "egress.allow_private_networks";
/// AWS's first: other makers' stores take it for any.
const REGION: &str = "us-east-1";

/// A folder of an object store.
pub struct Bucket {
    /// The store that the bucket is in.
    pub store: AmazonS3,
    /// Where in it; empty for all of it.
    pub folder: Path,
}

/// What shows who puts and fetches.
pub(super) struct AccessKey {
    pub(super) id: String,
    pub(super) secret: SecretString,
}

/// An address of a bucket, as far as it can be read without a configuration.
#[derive(Debug, PartialEq, Eq)]
pub(super) struct Address {
    bucket: String,
    folder: Vec<String>,
    region: String,
    endpoint: Option<Url>,
}

impl Address {
    /// Reads an address, if it is one of a bucket.
    pub(super) fn read(address: &str) -> Option<Result<Self, String>> {
        address.starts_with("s3://").then(|| Self::parse(address))
    }

    fn parse(address: &str) -> Result<Self, String> {
        let shape =
            || "must be s3://bucket/folder, with ?region= and ?endpoint= at most".to_owned();
        let url = Url::parse(address).map_err(|_| shape())?;
        let bucket = url.host_str().unwrap_or_default().to_owned();
        let is_plain = |c: char| c.is_ascii_lowercase() || c.is_ascii_digit() || "-.".contains(c);
        let is_named = (3..=63).contains(&bucket.len()) && bucket.chars().all(is_plain);
        let is_bare = url.username().is_empty() && url.password().is_none() && url.port().is_none();
        if !is_named || !is_bare || url.fragment().is_some() {
            return Err(shape());
        }
        let folder =
            super::file_transport::below(if url.path().is_empty() { "/" } else { url.path() })?;
        let mut read = Self { bucket, folder, region: REGION.to_owned(), endpoint: None };
        for (name, value) in url.query_pairs() {
            match &*name {
                "region" if !value.is_empty() => read.region = value.into_owned(),
                "endpoint" => read.endpoint = Some(endpoint(&value)?),
                _ => return Err(shape()),
            }
        }
        Ok(read)
    }

    /// The bucket, reached with what is configured.
    ///
    /// # Errors
    /// It may not be reached.
    pub(super) fn open(
        self,
        key: &AccessKey,
        (tls, allowed): (&Arc<ClientConfig>, &[IpNet]),
    ) -> Result<Bucket, String> {
        let connector = Connector { tls: Arc::clone(tls), allowed: allowed.to_vec() };
        let retry = RetryConfig { max_retries: 0, ..RetryConfig::default() };
        let mut builder = AmazonS3Builder::new()
            .with_bucket_name(self.bucket)
            .with_region(self.region)
            .with_access_key_id(&key.id)
            .with_secret_access_key(key.secret.expose_secret())
            .with_http_connector(connector)
            .with_retry(retry);
        if let Some(endpoint) = self.endpoint {
            let host = endpoint.host_str().unwrap_or_default();
            let ip = outbound::refuse_private(host, (allowed, SETTING))?;
            let is_plain = endpoint.scheme() == "http";
            if is_plain && !ip.is_some_and(|ip| ip.is_loopback()) {
                return Err("must be reached over https".to_owned());
            }
            let endpoint = endpoint.as_str().trim_end_matches('/');
            builder = builder.with_endpoint(endpoint).with_allow_http(is_plain);
        }
        let store = builder.build().map_err(|cause| words(&cause))?;
        let folder = self.folder.into_iter().collect();
        Ok(Bucket { store, folder })
    }
}

fn endpoint(value: &str) -> Result<Url, String> {
    let shape = || "endpoint must be the https address of a store".to_owned();
    let url = Url::parse(value).map_err(|_| shape())?;
    let is_bare = url.username().is_empty() && url.password().is_none();
    let is_root = url.path() == "/" && url.query().is_none() && url.fragment().is_none();
    match ["https", "http"].contains(&url.scheme()) && is_bare && is_root {
        true => Ok(url),
        false => Err(shape()),
    }
}

/// What a store says is shown in so many characters.
const WORDS_MAX: usize = 300;

/// What went wrong at a store, in few words.
pub fn words(cause: &object_store::Error) -> String {
    cause.to_string().chars().filter(|c| !c.is_control()).take(WORDS_MAX).collect()
}

/// Connects as everything else of the host does: to no address that is not public, unless its
/// network is allowed, and to no server whose certificate is not trusted.
#[derive(Debug)]
struct Connector {
    tls: Arc<ClientConfig>,
    allowed: Vec<IpNet>,
}

impl HttpConnector for Connector {
    fn connect(&self, _options: &ClientOptions) -> object_store::Result<HttpClient> {
        let client = outbound::operators_client(&self.tls, (self.allowed.clone(), SETTING));
        let generic = |cause| object_store::Error::Generic { store: "S3", source: Box::new(cause) };
        client.map(HttpClient::new).map_err(generic)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn addresses_of_buckets_are_read() {
        let of = |address: &str| Address::read(address).expect("a bucket");
        let plain = of("s3://acme-out/ach/sent/").expect("an address");
        assert_eq!((plain.bucket.as_str(), plain.region.as_str()), ("acme-out", REGION));
        assert_eq!(plain.folder, ["ach", "sent"]);
        let other = of("s3://acme?region=eu-west-2&endpoint=https%3A%2F%2Fstore.bank.example");
        let other = other.expect("an address");
        assert_eq!((other.region.as_str(), other.folder.len()), ("eu-west-2", 0));
        assert_eq!(other.endpoint.expect("an endpoint").as_str(), "https://store.bank.example/");
        for wrong in [
            "s3://",
            "s3://a/b",
            "s3://Acme_Out/x",
            "s3://key:secret@acme/x",
            "s3://acme:9000/x",
            "s3://acme/a%20b",
            "s3://acme/x?other=1",
            "s3://acme/x?region=",
            "s3://acme/x?endpoint=ftp://bank",
            "s3://acme/x?endpoint=https://a:b@bank",
            "s3://acme/x#y",
        ] {
            assert!(of(wrong).is_err(), "{wrong}");
        }
        assert!(Address::read("sftp://acme@bank/x").is_none());
    }
}
