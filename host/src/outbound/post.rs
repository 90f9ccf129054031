//! How the host reaches people.

use rustls::ClientConfig;

use crate::config::Config;

use super::mailer::Mailer;
use super::receiver::Receiver;

/// See the module.
pub struct Post {
    /// What sends letters; nothing where no server is configured.
    pub mailer: Option<Mailer>,
    /// Where alerts are sent to, if anywhere.
    pub receiver: Option<Receiver>,
}

impl Post {
    /// What is configured.
    ///
    /// # Errors
    /// Something configured cannot be used, in words that name it.
    pub fn open(config: &Config, tls: &ClientConfig) -> Result<Self, String> {
        Ok(Self {
            mailer: Mailer::open(&config.email)?,
            receiver: Receiver::open(&config.alerts, (&config.egress, tls))?,
        })
    }
}
