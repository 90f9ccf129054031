//! E-mail, over the operator's own server.

use std::time::Duration;

use lettre::message::Mailbox;
use lettre::message::header::ContentType;
use lettre::transport::smtp::client::{Certificate, Tls, TlsParameters};
use lettre::{AsyncSmtpTransport, AsyncTransport as _, Message, Tokio1Executor};
use reqwest::Url;
use secrecy::ExposeSecret as _;

use crate::clock::Moment;
use crate::config::{Email, limits};

/// What sends letters; nothing where no server is configured.
#[derive(Clone)]
pub struct Mailer {
    transport: AsyncSmtpTransport<Tokio1Executor>,
    from: Mailbox,
}

/// Why a letter was not taken.
pub struct Untaken {
    /// Whether asking again makes no difference.
    pub for_good: bool,
    /// In a few words.
    pub why: String,
}

/// A letter.
pub struct Letter<'a> {
    /// What it is called, the same whenever it is sent again.
    pub id: &'a str,
    /// The address.
    pub to: &'a str,
    /// One line.
    pub subject: &'a str,
    /// The text, in lines.
    pub text: &'a str,
    /// What it is dated.
    pub written_at: Moment,
}

impl Mailer {
    /// The one that is configured, if one is.
    ///
    /// # Errors
    /// Something configured cannot be used, in words that name it.
    pub fn open(config: &Email) -> Result<Option<Self>, String> {
        let Some(address) = &config.smtp_url else { return Ok(None) };
        let named = |why: &dyn std::fmt::Display| format!("email.smtp_url: {why}");
        let address = address.expose_secret();
        // What it says of the address may hold the password.
        let url = Url::parse(address).map_err(|cause| named(&cause))?;
        let host = url.host_str().unwrap_or_default().to_owned();
        let tls = url.query_pairs().find(|(name, _)| name == "tls").map(|(_, value)| value);
        let parameters = || tls_of(config, &host);
        let tls = match (url.scheme(), tls.as_deref()) {
            ("smtps", _) => Tls::Wrapper(parameters()?),
            ("smtp", Some("required")) => Tls::Required(parameters()?),
            ("smtp", None) if is_here(&host) => Tls::None,
            ("smtp", _) => {
                let why = "passwords and letters leave this machine encrypted only: smtps://…, or \
                           smtp://…?tls=required";
                return Err(named(&why));
            }
            _ => return Err(named(&"must begin with smtps:// or smtp://")),
        };
        let builder = AsyncSmtpTransport::<Tokio1Executor>::from_url(address);
        let builder = builder.map_err(|_| named(&"is not the address of a mail server"))?;
        let transport = builder.tls(tls).timeout(Some(limits::NOTIFICATION_MAX)).build();
        let from = config.from.as_deref().ok_or("email.smtp_url needs email.from")?;
        let from = from.parse().map_err(|cause| format!("email.from: {cause}"))?;
        Ok(Some(Self { transport, from }))
    }

    /// Hands a letter to the server. A letter that is handed over twice has one name.
    ///
    /// # Errors
    /// It was not taken.
    pub async fn send(&self, letter: Letter<'_>) -> Result<(), Untaken> {
        let for_good = |why: String| Untaken { for_good: true, why };
        let to: Mailbox = letter.to.parse().map_err(|_| for_good("no e-mail address".into()))?;
        let domain = self.from.email.domain();
        let seconds = u64::try_from(letter.written_at.micros() / 1_000_000).unwrap_or(0);
        let message = Message::builder()
            .from(self.from.clone())
            .to(to)
            .subject(letter.subject)
            .message_id(Some(format!("<{}@{domain}>", letter.id)))
            .date(std::time::UNIX_EPOCH + Duration::from_secs(seconds))
            .header(ContentType::TEXT_PLAIN)
            .body(letter.text.to_owned())
            .map_err(|cause| for_good(cause.to_string()))?;
        let sent = self.transport.send(message).await;
        sent.map(drop).map_err(|cause| Untaken {
            for_good: is_about_the_recipient(&cause),
            why: cause.to_string().chars().take(300).collect(),
        })
    }
}

/// Whether a refusal is about whom the letter is for, so that it will be the same another time. A
/// password that is wrong, a server that takes nothing from here and one that is full are mended by
/// somebody.
fn is_about_the_recipient(cause: &lettre::transport::smtp::Error) -> bool {
    let code = cause.status().map(|code| code.to_string()).unwrap_or_default();
    // 5.7 is about who sends.
    matches!(code.as_str(), "550" | "551" | "553") && !cause.to_string().contains("5.7.")
}

/// Whether a server is on this machine.
pub(super) fn is_here(host: &str) -> bool {
    let ip = host.trim_matches(['[', ']']).parse::<std::net::IpAddr>();
    ip.map_or(host == "localhost", |ip| ip.is_loopback())
}

fn tls_of(config: &Email, host: &str) -> Result<TlsParameters, String> {
    let mut builder = TlsParameters::builder(host.to_owned());
    if let Some(path) = &config.extra_ca_file {
        let named = |why: &dyn std::fmt::Display| format!("email.extra_ca_file: {why}");
        let pem = std::fs::read(path).map_err(|cause| named(&cause))?;
        builder = builder
            .add_root_certificate(Certificate::from_pem(&pem).map_err(|cause| named(&cause))?);
    }
    builder.build_rustls().map_err(|cause| format!("email.smtp_url: {cause}"))
}

#[cfg(test)]
mod tests {
    use super::*;

    fn open(url: &str, from: Option<&str>) -> Result<bool, String> {
        let _ = rustls::crypto::ring::default_provider().install_default();
        let config = Email {
            smtp_url: Some(url.to_owned().into()),
            from: from.map(str::to_owned),
            extra_ca_file: None,
        };
        Mailer::open(&config).map(|mailer| mailer.is_some())
    }

    #[tokio::test]
    async fn letters_leave_this_machine_encrypted_only() {
        let from = Some("Acme <pay@acme.example>");
        for url in [
            "smtp://127.0.0.1:2525",
            "smtp://localhost:2525",
            "smtp://[::1]:2525",
            "smtps://user:secret@mail.example:465",
            "smtp://user:secret@mail.example:587?tls=required",
        ] {
            assert_eq!(open(url, from), Ok(true), "{url}");
        }
        for (url, word) in [
            ("smtp://mail.example", "encrypted"),
            ("smtp://mail.example?tls=opportunistic", "encrypted"),
            ("smtp://127.0.0.1.example", "encrypted"),
            ("https://mail.example", "must begin"),
            ("mail.example:25", "must begin"),
            ("", "email.smtp_url"),
        ] {
            let refusal = open(url, from).expect_err(url);
            assert!(refusal.contains(word), "{url}: {refusal}");
        }
        assert!(open("smtps://mail.example", None).expect_err("nobody").contains("email.from"));
        assert!(open("smtps://mail.example", Some("x")).expect_err("odd").contains("email.from"));
        assert!(Mailer::open(&Email::default()).expect("none").is_none());
    }
}
