//! The operator's receiver of alerts: signed requests to one address.

use reqwest::{Client, Url};
use rustls::ClientConfig;
use secrecy::SecretString;

use crate::clock::Moment;
use crate::config::{Alerts, Egress, limits};

use super::mailer::is_here;
use super::sign::{self, headers, is_secret};
use super::{operators_client, reason, refuse_private};

/// The setting that opens a private network, named in refusals.
const SETTING: &str = "egress.allow_private_networks";

/// Where alerts are sent to.
pub struct Receiver {
    client: Client,
    url: Url,
    secret: SecretString,
}

impl Receiver {
    /// The one that is configured, if one is.
    ///
    /// # Errors
    /// Something configured cannot be used, in words that name it.
    pub fn open(
        alerts: &Alerts,
        (egress, tls): (&Egress, &ClientConfig),
    ) -> Result<Option<Self>, String> {
        let Some(text) = &alerts.webhook_url else { return Ok(None) };
        let named = |why: &dyn std::fmt::Display| format!("alerts.webhook_url: {why}");
        let url = Url::parse(text).map_err(|cause| named(&cause))?;
        let host = url.host_str().unwrap_or_default();
        let is_anonymous = url.username().is_empty() && url.password().is_none();
        match (url.scheme(), is_anonymous) {
            ("http", true) if is_here(host) => {}
            ("https", true) => {
                let allowed = &egress.allow_private_networks;
                refuse_private(host, (allowed, SETTING)).map_err(|why| named(&why))?;
            }
            _ => return Err(named(&"must be an https address without user")),
        }
        let secret = alerts.webhook_secret.clone().filter(|secret| {
            use secrecy::ExposeSecret as _;
            is_secret(secret.expose_secret())
        });
        let secret = secret.ok_or(
            "alerts.webhook_url needs alerts.webhook_secret, whsec_ and base64: the receiver \
             knows by it who is speaking",
        )?;
        let allowed = egress.allow_private_networks.clone();
        let client = operators_client(tls, (allowed, SETTING)).map_err(|cause| named(&cause))?;
        Ok(Some(Self { client, url, secret }))
    }

    /// Sends something there, under a name that is the same whenever it is sent again.
    ///
    /// # Errors
    /// Why it was not taken.
    pub async fn tell(
        &self,
        id: &str,
        (event, body): (&str, String),
        now: Moment,
    ) -> Result<(), String> {
        let letter = sign::Letter { id, event, is_test: false, body: &body };
        let headers = headers(&letter, std::slice::from_ref(&self.secret), now);
        let request = self.client.post(self.url.clone()).headers(headers).body(body);
        let sent = tokio::time::timeout(limits::NOTIFICATION_MAX, request.send()).await;
        let answer = sent.map_err(|_| "no answer in time".to_owned())?;
        let answer = answer.map_err(|cause| reason(&cause))?;
        match answer.status().is_success() {
            true => Ok(()),
            false => Err(format!("the receiver answered {}", answer.status())),
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn open(url: &str, secret: &str) -> Result<bool, String> {
        let provider = rustls::crypto::ring::default_provider();
        let tls = ClientConfig::builder_with_provider(provider.into())
            .with_safe_default_protocol_versions()
            .expect("versions")
            .with_root_certificates(rustls::RootCertStore::empty())
            .with_no_client_auth();
        let alerts = Alerts {
            webhook_url: Some(url.to_owned()),
            webhook_secret: Some(secret.to_owned().into()),
            ..Alerts::default()
        };
        Receiver::open(&alerts, (&Egress::default(), &tls)).map(|receiver| receiver.is_some())
    }

    #[test]
    fn it_is_reached_encrypted_and_signed_only() {
        let secret = "whsec_MDEyMzQ1Njc4OWFiY2RlZg==";
        for url in ["https://alerts.example/railhead?key=x", "http://127.0.0.1:9/x"] {
            assert_eq!(open(url, secret), Ok(true), "{url}");
        }
        for (url, secret, word) in [
            ("http://alerts.example", secret, "https"),
            ("https://user:word@alerts.example", secret, "without user"),
            ("https://10.0.0.1/x", secret, "allow_private_networks"),
            ("alerts.example", secret, "alerts.webhook_url"),
            ("https://alerts.example", "secret", "webhook_secret"),
            ("https://alerts.example", "whsec_", "webhook_secret"),
        ] {
            let refusal = open(url, secret).expect_err(url);
            assert!(refusal.contains(word), "{url}: {refusal}");
        }
    }
}
