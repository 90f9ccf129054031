//! Whom the host tells something by itself, besides merchants' webhooks.

use std::path::PathBuf;

use secrecy::SecretString;
use serde::Deserialize;

use super::listed;

/// How e-mail leaves; none does unless `smtp_url` is set.
#[derive(Clone, Debug, Default, Deserialize)]
#[serde(default, deny_unknown_fields)]
pub struct Email {
    /// `smtps://user:password@host:465`, or `smtp://user:password@host:587?tls=required`; without
    /// encryption only to this machine: `smtp://127.0.0.1:25`.
    pub smtp_url: Option<SecretString>,
    /// From whom it is, such as `Acme Pay <pay@acme.example>`.
    pub from: Option<String>,
    /// Certificates to trust besides the system's, as PEM.
    pub extra_ca_file: Option<PathBuf>,
}

/// Who hears of what an operator has to look at.
#[derive(Clone, Debug, Deserialize)]
#[serde(default, deny_unknown_fields)]
pub struct Alerts {
    /// An address that is told by signed webhooks.
    pub webhook_url: Option<String>,
    /// What they are signed with: `whsec_` and base64 of at least 16 bytes.
    pub webhook_secret: Option<SecretString>,
    /// Addresses that are told by e-mail.
    #[serde(deserialize_with = "listed")]
    pub email_to: Vec<String>,
    /// Hours after which what goes on is told again.
    pub remind_hours: u32,
}

impl Default for Alerts {
    fn default() -> Self {
        Self { webhook_url: None, webhook_secret: None, email_to: Vec::new(), remind_hours: 24 }
    }
}

/// Anchors: what the books were, kept outside the database.
#[derive(Clone, Debug, Deserialize)]
#[serde(default, deny_unknown_fields)]
pub struct Anchors {
    /// The folder that they are written to, on another disk than the database; none unless set.
    pub dir: Option<PathBuf>,
    /// Hours between two.
    pub every_hours: u32,
}

impl Default for Anchors {
    fn default() -> Self {
        Self { dir: None, every_hours: 24 }
    }
}

impl Alerts {
    /// What stands against these settings.
    ///
    /// # Errors
    /// The setting, and what it must be.
    pub fn check(&self, email: &Email) -> Result<(), String> {
        if !self.email_to.is_empty() && email.smtp_url.is_none() {
            return Err("alerts.email_to needs email.smtp_url".into());
        }
        Ok(())
    }
}
