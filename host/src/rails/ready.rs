//! A route that is ready to be called, and what it knows of its network.

use std::collections::BTreeMap;
use std::net::IpAddr;
use std::sync::{Arc, OnceLock};

use ipnet::IpNet;
use secrecy::{ExposeSecret as _, SecretString};
use subtle::ConstantTimeEq as _;

use crate::clock::Moment;
use crate::env::Env;
use crate::keyring::Keyring;
use crate::money::Minor;
use crate::wasm::egress::{Errand, Throttle};
use crate::wasm::keys::Key;
use crate::wasm::rail::{Access, Grant, Message, Money, Reply};

use super::bounds::Bounds;
use super::configuration::Configured;
use super::enquiries::Enquiries;
use super::file_transport::FileTransport;
use super::files::Timetable;
use super::hours::Hours;
use super::notices::{SignatureTerms, Trust};
use super::registry::Rail;
use super::route::Route;

/// A route with its rail, ready to be called.
pub struct ReadyRoute {
    /// The route as the operator set it.
    pub route: Route,
    /// The rail that serves it, as it is loaded now.
    pub rail: Arc<Rail>,
    /// What calls over it reach.
    pub(super) access: Arc<Access>,
    /// The same without endpoints and secrets.
    pub(super) pure: Arc<Access>,
    /// SHA-256 of each client certificate that it shows, with its key.
    pub(super) certificates: Vec<String>,
    /// Where each endpoint leads, as text.
    pub(super) addresses: BTreeMap<String, String>,
    pub(super) fingerprints: OnceLock<Vec<String>>,
    pub(super) configured: Configured,
    /// What an address holds at which its network may speak: one under every master key.
    pub door_tokens: Vec<String>,
    /// Where its network speaks from; anywhere, if nothing is said.
    pub(super) speaks_from: Vec<IpNet>,
    /// What a simulated network presents besides its signature, with keys that everybody knows;
    /// nothing inside where none may speak.
    pub(super) simulated_token: Option<Option<SecretString>>,
    /// When its files are made, where it pays by file.
    pub(super) timetable: Option<Timetable>,
    pub(super) hours: Option<Hours>,
    /// Which amounts it takes.
    pub(super) bounds: Bounds,
    /// How its files travel.
    pub transport: FileTransport,
    /// Places for questions that somebody waits for.
    pub enquiries: Enquiries,
    /// How fast its network may be asked.
    pub(super) throttle: Option<Arc<Throttle>>,
    /// What is missing before it can be called.
    pub(super) missing: Option<String>,
}

impl ReadyRoute {
    /// What a call over this route may use, with headers that the host adds.
    #[must_use]
    pub fn grant(&self, now: Moment, headers: Vec<(String, String)>, money: Money) -> Arc<Grant> {
        Arc::new(self.granted(now, headers, money))
    }

    /// The same, with the texts that were made for an attempt.
    #[must_use]
    pub fn grant_with(
        &self,
        (now, headers, money): (Moment, Vec<(String, String)>, Money),
        seeds: BTreeMap<String, SecretString>,
    ) -> Arc<Grant> {
        Arc::new(Grant { seeds, ..self.granted(now, headers, money) })
    }

    fn granted(&self, now: Moment, headers: Vec<(String, String)>, money: Money) -> Grant {
        let access = Arc::clone(&self.access);
        Grant { access, now_ms: now.millis(), headers, money, ..Grant::default() }
    }

    /// What a question may use that somebody waits for.
    #[must_use]
    pub fn enquiry_grant(&self, now: Moment, headers: Vec<(String, String)>) -> Arc<Grant> {
        let (access, errand) = (Arc::clone(&self.access), Errand::Enquiry);
        Arc::new(Grant { access, now_ms: now.millis(), headers, errand, ..Grant::default() })
    }

    /// How many payments over it are worth having under way; nothing where its network does not
    /// say how fast it may be asked.
    #[must_use]
    pub fn payments_max(&self) -> Option<usize> {
        self.throttle.as_ref().map(|throttle| throttle.payments_max())
    }

    /// What a call without requests may use.
    #[must_use]
    pub fn pure_grant(&self, now: Moment) -> Arc<Grant> {
        let access = Arc::clone(&self.pure);
        Arc::new(Grant { access, now_ms: now.millis(), ..Grant::default() })
    }

    /// What the route is configured to: its addresses and settings, then its credentials, each
    /// as a keyed hash. Two that are alike lead to the same gateway in the same name. There is one
    /// under every master key, the current one's first.
    #[must_use]
    pub fn fingerprints(&self, keyring: &Keyring) -> &[String] {
        self.fingerprints.get_or_init(|| {
            let Access { rail, settings, secrets, keys, .. } = &*self.access;
            let place = format!("{:?}", (rail, &self.addresses, settings));
            let secrets = secrets.iter().map(|(name, secret)| (name, secret.expose_secret()));
            let mut credentials = format!("{:?}", secrets.collect::<Vec<_>>());
            // The network's own keys say nothing about who we are to it.
            for (name, key) in keys {
                if let Key::Sign(key) = &**key {
                    credentials += &format!("{name} {}", key.digest());
                }
            }
            credentials += &self.certificates.join(" ");
            let (place, credentials) =
                (keyring.settings_tags(&place), keyring.settings_tags(&credentials));
            place.zip(credentials).map(|(place, who)| format!("{place}.{who}")).collect()
        })
    }

    /// Whether what lies ready in a feed lies in the same place for another route: in the same
    /// folder, or at the same gateway for the same customer.
    #[must_use]
    pub fn shares_feed(&self, other: &Self, feed: &str, keyring: &Keyring) -> bool {
        let is_alike = (self.route.env, &self.route.rail) == (other.route.env, &other.route.rail);
        let folder = |route: &Self| route.transport.feed(feed).map(|place| place.address.clone());
        is_alike
            && match (folder(self), folder(other)) {
                (None, None) => self.fingerprints(keyring) == other.fingerprints(keyring),
                (own, others) => own == others,
            }
    }

    /// When its files are made, where it pays by file.
    #[must_use]
    pub const fn timetable(&self) -> Option<&Timetable> {
        self.timetable.as_ref()
    }

    /// Whether its payments leave in files.
    #[must_use]
    pub const fn goes_by_file(&self) -> bool {
        self.timetable.is_some()
    }

    /// Whether its rail can carry payments of its method.
    #[must_use]
    pub fn takes_payments(&self) -> bool {
        match self.timetable {
            Some(_) => self.rail.code.makes_files(),
            None => self.rail.code.makes_payouts(),
        }
    }

    /// Why it cannot be called, if it cannot.
    #[must_use]
    pub fn missing(&self) -> Option<&str> {
        self.missing.as_deref()
    }

    /// Whether its network is believed, where it says by itself what became of a payment.
    #[must_use]
    pub fn believes(&self, message: &Message) -> bool {
        let notice = self.rail.declaration.notice(&message.method, &message.path);
        notice.is_some_and(|notice| notice.trust == Trust::Outcome)
    }

    /// Whether this is where its network answers questions.
    #[must_use]
    pub fn is_answer(&self, message: &Message) -> bool {
        let notice = self.rail.declaration.notice(&message.method, &message.path);
        notice.is_some_and(|notice| notice.answers_queries)
    }

    /// Whether its network was given an address with this token in it.
    #[must_use]
    pub fn opens(&self, token: &str) -> bool {
        let is_it = |known: &String| bool::from(known.as_bytes().ct_eq(token.as_bytes()));
        // All of them are looked at, whichever it is.
        self.door_tokens.iter().filter(|known| is_it(known)).count() > 0
    }

    /// Whether its operator lets it take an amount.
    #[must_use]
    pub fn takes(&self, amount: Minor) -> bool {
        self.bounds.take(amount)
    }

    /// Whether its network may speak from an address.
    #[must_use]
    pub fn hears(&self, from: IpAddr) -> bool {
        let from = from.to_canonical();
        // Its simulator is this host itself.
        self.route.env == Env::Test
            || self.speaks_from.is_empty()
            || self.speaks_from.iter().any(|net| net.contains(&from))
    }

    /// When its network opens; nothing where it takes payments now. The sandbox always does.
    #[must_use]
    pub fn opens_at(&self, now: Moment) -> Option<Moment> {
        let hours = self.hours.as_ref().filter(|_| self.route.env == Env::Live)?;
        hours.opens_at(now).unwrap_or_else(|why| {
            // Nobody knows whether it is open: a payment that it does not take comes back.
            tracing::error!(route.name = self.route.name, %why, "the hours of a route");
            None
        })
    }

    /// Whether whoever presents this token may speak for its network, if he can sign: a simulated
    /// one presents its own, and one in earnest none.
    #[must_use]
    pub fn is_spoken_for(&self, token: Option<&str>) -> bool {
        match &self.simulated_token {
            None => true,
            Some(expected) => expected.as_ref().zip(token).is_some_and(|(expected, token)| {
                expected.expose_secret().as_bytes().ct_eq(token.as_bytes()).into()
            }),
        }
    }

    /// Whether a message is signed by its network, as these terms say.
    #[must_use]
    pub fn is_signed(&self, terms: &SignatureTerms, message: &Message, now: Moment) -> bool {
        let Some(Key::Verify(key)) = self.access.keys.get(&terms.key).map(Arc::as_ref) else {
            return false;
        };
        let signed = terms.signed(message, now);
        signed.is_some_and(|(signed, signature)| key.verify(&signed, &signature))
    }

    /// The headers that the rail wants its reply to have.
    ///
    /// # Errors
    /// It may not have them.
    pub fn reply_headers(&self, reply: &Reply) -> Result<Vec<(String, String)>, String> {
        self.access.reply_headers(reply)
    }

    /// The value of one of its secrets.
    #[must_use]
    pub fn secret(&self, name: &str) -> Option<&SecretString> {
        self.access.secrets.get(name)
    }
}
