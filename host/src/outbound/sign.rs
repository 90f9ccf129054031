//! What a receiver verifies: a signature of the service's own and that of Standard Webhooks.

use base64::Engine as _;
use base64::engine::general_purpose::STANDARD as BASE64;
use http::{HeaderMap, HeaderName, HeaderValue};
use secrecy::{ExposeSecret as _, SecretString};

use crate::clock::Moment;
use crate::id::IdGenerator;
use crate::keyring::Keyring;

/// What every secret begins with.
const PREFIX: &str = "whsec_";

/// A new secret: 256 random bits in the form that Standard Webhooks prescribes.
#[must_use]
pub fn new_secret(ids: &IdGenerator) -> String {
    format!("{PREFIX}{}", BASE64.encode(ids.bytes::<32>()))
}

/// Whether a text can sign: `whsec_` and base64 of something.
#[must_use]
pub fn is_secret(text: &str) -> bool {
    let bytes = text.strip_prefix(PREFIX).map(|rest| BASE64.decode(rest));
    matches!(bytes, Some(Ok(bytes)) if !bytes.is_empty())
}

/// What is sent about a delivery besides its body.
pub struct Letter<'a> {
    /// The delivery's id.
    pub id: &'a str,
    /// The event's name.
    pub event: &'a str,
    /// Whether it is a test.
    pub is_test: bool,
    /// The body, as it is sent.
    pub body: &'a str,
}

/// The headers of a delivery, signed by every secret that counts at `now`.
#[must_use]
pub fn headers(letter: &Letter<'_>, secrets: &[SecretString], now: Moment) -> HeaderMap {
    let at = now.seconds().to_string();
    let own = secrets.iter().map(|secret| {
        let message = format!("{at}.{}", letter.body);
        format!(
            "v1={}",
            hex::encode(Keyring::sign(secret.expose_secret().as_bytes(), message.as_bytes()))
        )
    });
    let own = format!("t={at},{}", own.collect::<Vec<_>>().join(","));
    let standard = secrets.iter().map(|secret| {
        let message = format!("{}.{at}.{}", letter.id, letter.body);
        format!("v1,{}", BASE64.encode(Keyring::sign(&raw(secret), message.as_bytes())))
    });
    let standard = standard.collect::<Vec<_>>().join(" ");
    let mut headers = HeaderMap::new();
    let mut put = |name: &'static str, value: &str| {
        if let Ok(value) = HeaderValue::from_str(value) {
            headers.insert(HeaderName::from_static(name), value);
        }
    };
    put("content-type", "application/json");
    put("x-service-signature", &own);
    put("x-service-event", letter.event);
    put("x-service-delivery", letter.id);
    put("webhook-id", letter.id);
    put("webhook-timestamp", &at);
    put("webhook-signature", &standard);
    if letter.is_test {
        put("x-service-test", "true");
    }
    headers
}

/// The bytes that a secret's text stands for.
fn raw(secret: &SecretString) -> Vec<u8> {
    let text = secret.expose_secret();
    BASE64.decode(text.strip_prefix(PREFIX).unwrap_or(text)).unwrap_or_default()
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_standard_vector_is_signed_as_others_sign_it() {
        // The example of the Standard Webhooks specification's reference libraries.
        let secret = SecretString::from("whsec_MfKQ9r8GKYqrTwjUPD8ILPZIo2LaLaSw");
        let letter = Letter {
            id: "msg_p5jXN8AQM9LWM0D4loKWxJek",
            event: "x",
            is_test: false,
            body: r#"{"test": 2432232314}"#,
        };
        let headers = headers(&letter, &[secret], Moment::from_micros(1_614_265_330_000_000));
        assert_eq!(headers["webhook-signature"], "v1,g0hM9SsE+OTPJTGt/tmIKtSyZlE3uFJELVlNIOLJ1OE=");
        assert_eq!(headers["webhook-timestamp"], "1614265330");
    }

    #[test]
    fn a_secret_is_known_by_its_form() {
        assert!(is_secret("whsec_MfKQ9r8GKYqrTwjUPD8ILPZIo2LaLaSw"));
        assert!(!["whsec_", "whsec_?", "MfKQ9r8GKYqr"].into_iter().any(is_secret));
    }

    #[test]
    fn during_a_rotation_both_secrets_sign() {
        let secrets = ["whsec_YQ==", "whsec_Yg=="].map(SecretString::from);
        let letter = Letter { id: "ckwhd_1", event: "payout.paid", is_test: true, body: "{}" };
        let headers = headers(&letter, &secrets, Moment::from_micros(1_000_000));
        let own = headers["x-service-signature"].to_str().expect("text");
        assert_eq!(own.matches("v1=").count(), 2);
        assert!(own.starts_with("t=1,v1="));
        assert_eq!(headers["webhook-signature"].to_str().expect("text").split(' ').count(), 2);
        assert_eq!(headers["x-service-test"], "true");
    }
}
