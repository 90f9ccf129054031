//! API keys.

use std::net::IpAddr;

use ipnet::IpNet;
use serde::{Deserialize, Serialize};
use serde_json::json;
use strum::{EnumIter, IntoStaticStr};
use utoipa::ToSchema;

use crate::clock::Moment;
use crate::config::limits;
use crate::env::Env;
use crate::error::{ErrorCode, Problem};
use crate::id::{IdGenerator, KeyId, MerchantId};

/// Characters of a key that remain visible.
pub const SHOWN_LENGTH: usize = 12;

/// What a key may do.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, Deserialize, IntoStaticStr, ToSchema)]
#[serde(rename_all = "snake_case")]
#[strum(serialize_all = "snake_case")]
#[allow(missing_docs, reason = "the words are the contract's own")]
pub enum Capability {
    PayoutCreate,
    PayoutFx,
    Conversion,
    CollectionsCreate,
    Refunds,
    VirtualAccountsCreate,
    Bulk,
}

/// What somebody may do: a member of a team, or the one behind a key. Keys have those only that a
/// call of the API asks for.
#[derive(
    Clone, Copy, Debug, PartialEq, Eq, Serialize, Deserialize, EnumIter, IntoStaticStr, ToSchema,
)]
#[serde(rename_all = "snake_case")]
#[strum(serialize_all = "snake_case")]
pub enum Permission {
    /// Make payouts, and keys that do.
    PayoutCreate,
    /// Approve payouts that wait for a teammate.
    PayoutApprove,
    /// Cancel payouts that others made.
    PayoutCancel,
    /// Make batches.
    PayoutBulkUpload,
    /// Approve batches that wait for a second person.
    PayoutBulkApprove,
    /// See what customers did.
    CustomerTransactionView,
    /// Save, change and delete beneficiaries.
    BeneficiaryManage,
    /// Manage webhook endpoints.
    WebhookManage,
    /// Make, replace and revoke keys.
    KeyManage,
    /// Invite members, change and remove them.
    MemberManage,
    /// Accept terms, and say how many people payments take.
    SettingsManage,
}

impl Permission {
    /// Whether a key can have it.
    #[must_use]
    pub const fn is_of_keys(self) -> bool {
        matches!(
            self,
            Self::PayoutBulkUpload
                | Self::PayoutBulkApprove
                | Self::CustomerTransactionView
                | Self::WebhookManage
                | Self::BeneficiaryManage
                | Self::PayoutCancel
        )
    }
}

/// A key as the host knows it: everything but the secret.
#[derive(Clone, Debug)]
pub struct ApiKey {
    /// The key's id, which is no secret.
    pub id: KeyId,
    /// Whose it is.
    pub merchant_id: MerchantId,
    /// The environment that it gives access to.
    pub env: Env,
    /// The operator's name for the key; it decides nothing.
    pub label: String,
    /// The first characters of the secret.
    pub prefix: String,
    /// What calls with this key may do.
    pub capabilities: Vec<Capability>,
    /// What the one behind it may do.
    pub permissions: Vec<Permission>,
    /// Networks that it may be used from; empty means any.
    pub ip_allowlist: Vec<IpNet>,
    /// When it stops working.
    pub expires_at: Option<Moment>,
    /// Until when it works although it was replaced.
    pub grace_until: Option<Moment>,
    /// When it was revoked.
    pub revoked_at: Option<Moment>,
    /// The operator who made it, and saw its secret.
    pub created_by: String,
    /// When it was created.
    pub created_at: Moment,
}

impl ApiKey {
    /// Whether the key works now and from here; if not, why.
    ///
    /// # Errors
    /// `invalid_api_key`, `key_expired`, `grace_expired` or `ip_not_allowed`.
    pub fn admits(&self, now: Moment, from: IpAddr) -> Result<(), ErrorCode> {
        if self.revoked_at.is_some() {
            return Err(ErrorCode::InvalidApiKey);
        }
        if self.expires_at.is_some_and(|at| at <= now) {
            return Err(ErrorCode::KeyExpired);
        }
        if self.grace_until.is_some_and(|at| at <= now) {
            return Err(ErrorCode::GraceExpired);
        }
        let listed = self.ip_allowlist.is_empty()
            || self.ip_allowlist.iter().any(|network| network.contains(&from.to_canonical()));
        if listed { Ok(()) } else { Err(ErrorCode::IpNotAllowed) }
    }

    /// Whether it has a capability.
    #[must_use]
    pub fn can(&self, capability: Capability) -> bool {
        self.capabilities.contains(&capability)
    }

    /// Whether the one behind it has a permission.
    #[must_use]
    pub fn may(&self, permission: Permission) -> bool {
        self.permissions.contains(&permission)
    }
}

impl Capability {
    /// What a member of a team must be able to do to give a live key this capability.
    #[must_use]
    pub const fn needs(self) -> Option<Permission> {
        match self {
            Self::PayoutCreate | Self::PayoutFx | Self::Conversion | Self::Refunds => {
                Some(Permission::PayoutCreate)
            }
            Self::Bulk => Some(Permission::PayoutBulkUpload),
            Self::CollectionsCreate | Self::VirtualAccountsCreate => None,
        }
    }

    /// The refusal of a key without it.
    #[must_use]
    pub fn missing(self) -> Problem {
        missing("capability", self.into())
    }
}

impl Permission {
    /// The refusal of a key without it.
    #[must_use]
    pub fn missing(self) -> Problem {
        missing("permission", self.into())
    }

    /// The refusal of a member of a team without it.
    #[must_use]
    pub fn missing_of_member(self) -> Problem {
        let name: &str = self.into();
        let message = format!("Your role lacks the permission {name}.");
        Problem::because(ErrorCode::PermissionDenied, message).detail(json!({ "missing": [name] }))
    }
}

fn missing(what: &'static str, name: &'static str) -> Problem {
    let message = format!("This key lacks the {what} {name}.");
    Problem::because(ErrorCode::PermissionDenied, message).detail(json!({ "missing": [name] }))
}

/// What a secret begins with.
pub const SECRET_PREFIX: &str = "sk_";

/// A new secret: a prefix that tells the environment, and 43 letters and digits.
#[must_use]
pub fn new_secret(ids: &IdGenerator, env: Env) -> String {
    format!("{SECRET_PREFIX}{env}_{}", ids.secret())
}

/// Whether a text looks as a secret does.
#[must_use]
pub fn is_secret(text: &str) -> bool {
    let rest = text.strip_prefix(SECRET_PREFIX).and_then(|rest| rest.split_once('_'));
    let rest = rest.filter(|(env, _)| Env::parse(env).is_some());
    rest.is_some_and(|(_, rest)| {
        rest.len() == 43 && rest.bytes().all(|it| it.is_ascii_alphanumeric())
    })
}

/// What holds so much that it says nothing of where a key is used.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum TooWide {
    /// A network of an allow-list.
    Network(IpNet),
    /// Its networks of IPv4 together.
    Together,
}

impl TooWide {
    /// The first such thing in an allow-list. A key may be older than this rule.
    #[must_use]
    pub fn of(networks: &[IpNet]) -> Option<Self> {
        let (v4, v6) = limits::KEY_PREFIX_MIN;
        let is_wide = |network: &&IpNet| {
            network.prefix_len() < if network.addr().is_ipv4() { v4 } else { v6 }
        };
        if let Some(wide) = networks.iter().find(is_wide) {
            return Some(Self::Network(*wide));
        }
        let held = networks.iter().filter(|network| network.addr().is_ipv4());
        let held: u64 = held.map(|network| 1 << (32 - network.prefix_len())).sum();
        (held > limits::KEY_WIDEST_MAX << (32 - v4)).then_some(Self::Together)
    }
}

/// Reads an entry of an allowlist: a network, or a single address.
#[must_use]
pub fn parse_network(text: &str) -> Option<IpNet> {
    // Callers are known by their IPv4 address, however it is written.
    const MAPPED: u8 = 96;
    let canonical = |network: IpNet| match (network.network().to_canonical(), network.prefix_len())
    {
        (ip @ IpAddr::V4(_), length) if network.max_prefix_len() == 128 && length >= MAPPED => {
            IpNet::new(ip, length - MAPPED).unwrap_or(network)
        }
        _ => network,
    };
    let network = text.parse::<IpNet>().ok().map(|network| canonical(network.trunc()));
    network.or_else(|| text.parse::<IpAddr>().ok().map(|ip| IpNet::from(ip.to_canonical())))
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::clock::Clock;
    use crate::id::Id as _;

    fn key() -> ApiKey {
        ApiKey {
            id: KeyId::from_text("c1".into()),
            merchant_id: MerchantId::from_text("c2".into()),
            env: Env::Test,
            label: String::new(),
            prefix: String::new(),
            capabilities: vec![Capability::PayoutCreate],
            permissions: Vec::new(),
            ip_allowlist: Vec::new(),
            expires_at: None,
            grace_until: None,
            revoked_at: None,
            created_by: String::new(),
            created_at: Moment::default(),
        }
    }

    #[test]
    fn allowlists_know_both_families() {
        let list = ["203.0.113.0/24", "198.51.100.7", "2001:db8::/32", "::ffff:192.0.2.1"];
        let networks = list.iter().map(|text| parse_network(text).expect("a network")).collect();
        let key = ApiKey { ip_allowlist: networks, ..key() };
        let admits = |from: &str| key.admits(Moment::default(), from.parse().expect("an address"));
        for from in
            ["203.0.113.255", "198.51.100.7", "2001:db8:1::1", "::ffff:203.0.113.9", "192.0.2.1"]
        {
            assert_eq!(admits(from), Ok(()), "{from}");
        }
        for from in ["203.0.114.0", "198.51.100.8", "2001:db9::1", "::1"] {
            assert_eq!(admits(from), Err(ErrorCode::IpNotAllowed), "{from}");
        }
        assert!(parse_network("203.0.113.0/33").is_none() && parse_network("office").is_none());
    }

    #[test]
    fn a_key_ends_in_its_own_way() {
        let (now, from) = (Moment::from_micros(10), "127.0.0.1".parse().expect("an address"));
        let at = Some(Moment::from_micros(10));
        let later = Some(Moment::from_micros(11));
        let ends = |key: ApiKey| key.admits(now, from);
        assert_eq!(ends(ApiKey { expires_at: at, ..key() }), Err(ErrorCode::KeyExpired));
        assert_eq!(ends(ApiKey { grace_until: at, ..key() }), Err(ErrorCode::GraceExpired));
        assert_eq!(ends(ApiKey { revoked_at: at, ..key() }), Err(ErrorCode::InvalidApiKey));
        assert_eq!(ends(ApiKey { expires_at: later, grace_until: later, ..key() }), Ok(()));
    }

    #[test]
    fn secrets_tell_their_world() {
        let ids = IdGenerator::seeded(Clock::System, 1);
        let secret = new_secret(&ids, Env::Live);
        assert!(secret.starts_with("sk_live_") && secret.len() == 51);
        assert!(is_secret(&secret) && !is_secret(&secret[1..]) && !is_secret(&secret[..50]));
        assert_ne!(secret, new_secret(&ids, Env::Live));
    }
}
