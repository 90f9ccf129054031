//! A merchant and what the operator has set for it.

use std::collections::BTreeMap;
use std::time::Duration;

use jiff::tz::TimeZone;
use serde::{Deserialize, Serialize};
use serde_tuple::{Deserialize_tuple, Serialize_tuple};
use utoipa::ToSchema;

use crate::clock::Moment;
use crate::config::limits;
use crate::env::Env;
use crate::error::{ErrorCode, Problem};
use crate::id::MerchantId;
use crate::money::{Currency, Minor};

/// Whether a merchant may act.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, Deserialize, ToSchema)]
#[serde(rename_all = "lowercase")]
pub enum MerchantStatus {
    /// Its keys work.
    Active,
    /// Its keys are refused for now.
    Suspended,
    /// Its keys never work again.
    Closed,
}

impl MerchantStatus {
    /// The word used on the wire and in the database.
    #[must_use]
    pub const fn as_str(self) -> &'static str {
        match self {
            Self::Active => "active",
            Self::Suspended => "suspended",
            Self::Closed => "closed",
        }
    }

    /// Refuses whoever may not act.
    ///
    /// # Errors
    /// `merchant_suspended` or `merchant_closed`.
    pub fn refuse_inactive(self) -> Result<(), Problem> {
        match self {
            Self::Active => Ok(()),
            Self::Suspended => Err(Problem::new(ErrorCode::MerchantSuspended)),
            Self::Closed => Err(Problem::new(ErrorCode::MerchantClosed)),
        }
    }

    /// Reads the word that [`Self::as_str`] writes.
    #[must_use]
    pub fn parse(text: &str) -> Option<Self> {
        [Self::Active, Self::Suspended, Self::Closed].into_iter().find(|s| s.as_str() == text)
    }
}

/// For how long a former timezone is remembered. What a day has used up is counted for two days;
/// what is given back later finds nothing.
const FORMER_KEPT: Duration = Duration::from_secs(7 * 24 * 3600);

/// A timezone that a merchant had; stored as an array of its fields.
#[derive(Clone, Debug, PartialEq, Eq, Serialize_tuple, Deserialize_tuple)]
pub struct FormerTimezone {
    /// Its IANA name.
    pub name: String,
    /// When another one took its place, in microseconds.
    pub until: i64,
}

/// A customer of the platform, with the settings that its payouts follow.
#[derive(Clone, Debug)]
pub struct Merchant {
    /// The id, which sorts by time of creation.
    pub id: MerchantId,
    /// The name that operators see.
    pub name: String,
    /// ISO 3166 alpha-2.
    pub country: String,
    /// The calendar by which its days and reports run.
    pub timezone: TimeZone,
    /// Those by which they ran of late, oldest first.
    pub former_timezones: Vec<FormerTimezone>,
    /// Whether it may act.
    pub status: MerchantStatus,
    /// What the operator has set.
    pub settings: Settings,
    /// When it was created.
    pub created_at: Moment,
    /// When it last changed.
    pub updated_at: Moment,
}

impl Merchant {
    /// The calendar by which its days ran at an instant.
    #[must_use]
    pub fn timezone_at(&self, at: Moment) -> TimeZone {
        let then = self.former_timezones.iter().find(|former| at.micros() < former.until);
        let then = then.and_then(|former| TimeZone::get(&former.name).ok());
        then.unwrap_or_else(|| self.timezone.clone())
    }

    /// From now on its days run by another calendar.
    pub fn change_timezone(&mut self, timezone: TimeZone, now: Moment) {
        if timezone.iana_name() == self.timezone.iana_name() {
            return;
        }
        let since = now.before(FORMER_KEPT).micros();
        self.former_timezones.retain(|former| former.until >= since);
        let name = self.timezone.iana_name().unwrap_or("UTC").to_owned();
        self.former_timezones.push(FormerTimezone { name, until: now.micros() });
        self.timezone = timezone;
    }
}

/// What the operator sets per merchant. Unset means: no limit; features on in test and off in
/// live; paying from its own account.
#[derive(Clone, Debug, Default, PartialEq, Serialize, Deserialize, ToSchema)]
#[serde(default, deny_unknown_fields)]
pub struct Settings {
    /// Features by name, where the operator has decided.
    pub features: Features,
    /// Terms that an owner has accepted.
    pub terms: Terms,
    /// Limits by currency.
    #[schema(value_type = BTreeMap<String, Limits>)]
    pub limits: BTreeMap<Currency, Limits>,
    /// By currency: a single payout above this amount waits for a teammate.
    #[schema(value_type = BTreeMap<String, String>)]
    pub dual_control_threshold_minor: BTreeMap<Currency, Amount>,
    /// By currency: a batch above this total waits for a second admin.
    #[schema(value_type = BTreeMap<String, String>)]
    pub batch_approval_threshold_minor: BTreeMap<Currency, Amount>,
    /// By currency: larger single payouts that take more than one teammate.
    #[schema(value_type = BTreeMap<String, Vec<Tier>>)]
    pub payout_approval_tiers: BTreeMap<Currency, Vec<Tier>>,
    /// By currency: larger batches that take more than one.
    #[schema(value_type = BTreeMap<String, Vec<Tier>>)]
    pub batch_approval_tiers: BTreeMap<Currency, Vec<Tier>>,
    /// Whether a member gives a one-time code with each approval of a live payout.
    pub approval_otp: bool,
    /// Whether recipients of live payouts who have an e-mail address are sent a receipt.
    pub receipts: bool,
    /// Whether every payout must carry the sender's identity.
    pub sender_info_required: bool,
    /// Whose account foreign currencies are paid from.
    pub payer_mode: PayerMode,
    /// Currencies that are active; unset: all that a route serves.
    #[schema(value_type = Option<Vec<String>>)]
    pub currencies: Option<Vec<Currency>>,
    /// Currencies that cross-currency payouts may start from; unset: all.
    #[schema(value_type = Option<Vec<String>>)]
    pub fx_sources: Option<Vec<Currency>>,
    /// By the currency that pays: what cross-currency payouts may be in; unset: every pair.
    #[schema(value_type = Option<BTreeMap<String, Vec<String>>>)]
    pub fx_pairs: Option<BTreeMap<Currency, Vec<Currency>>>,
    /// Into which currency what comes into a wallet is converted at once, by the wallet's
    /// currency, where the feature `auto_convert` is on.
    #[schema(value_type = BTreeMap<String, String>)]
    pub auto_convert: BTreeMap<Currency, Currency>,
    /// Rail for Canadian recipients that could take either.
    pub default_cad_method: Option<String>,
}

impl Settings {
    /// How this merchant is paid out in a currency where nothing else decides.
    #[must_use]
    pub fn usual_method(&self, currency: Currency) -> Option<&str> {
        self.default_cad_method.as_deref().filter(|_| currency.as_str() == "CAD")
    }

    /// How many teammates have to approve a payout of this amount: none, unless it is above a
    /// threshold.
    #[must_use]
    pub fn payout_approvers(&self, currency: Currency, amount: Minor) -> u32 {
        let threshold = self.dual_control_threshold_minor.get(&currency);
        approvers(threshold, self.payout_approval_tiers.get(&currency), amount)
    }

    /// The same of a batch with this total.
    #[must_use]
    pub fn batch_approvers(&self, currency: Currency, total: Minor) -> u32 {
        let threshold = self.batch_approval_threshold_minor.get(&currency);
        approvers(threshold, self.batch_approval_tiers.get(&currency), total)
    }

    /// What stands against these settings.
    ///
    /// # Errors
    /// `invalid_field`, with the field.
    pub fn check(&self) -> Result<(), Problem> {
        let all = [
            ("payout_approval_tiers", &self.payout_approval_tiers),
            ("batch_approval_tiers", &self.batch_approval_tiers),
        ];
        for (name, tiers) in all {
            for (currency, tiers) in tiers {
                let (most, people) = (limits::APPROVAL_TIERS_MAX, limits::APPROVERS_MAX);
                let is_odd = |tier: &Tier| !(1..=people).contains(&tier.approvers);
                if tiers.len() > most || tiers.iter().any(is_odd) {
                    let message = format!(
                        "{name} holds {most} tiers of a currency at most, each with 1 to {people} \
                         approvers."
                    );
                    let problem = Problem::because(ErrorCode::InvalidField, message);
                    return Err(problem.field(format!("{name}.{currency}")));
                }
            }
        }
        Ok(())
    }
}

/// From which amount on a payment takes how many teammates.
#[derive(Clone, Copy, Debug, PartialEq, Serialize, Deserialize, ToSchema)]
#[serde(deny_unknown_fields)]
pub struct Tier {
    /// Amounts above this one.
    #[schema(value_type = String, example = "50000000")]
    pub above_minor: Amount,
    /// Teammates who have to approve, besides whoever made it.
    #[schema(example = 2)]
    pub approvers: u32,
}

fn approvers(threshold: Option<&Amount>, tiers: Option<&Vec<Tier>>, amount: Minor) -> u32 {
    let one = u32::from(threshold.is_some_and(|threshold| amount > threshold.0));
    let tiers = tiers.into_iter().flatten().filter(|tier| amount > tier.above_minor.0);
    tiers.map(|tier| tier.approvers).fold(one, u32::max)
}

/// An amount in settings: a string of digits, as everywhere.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Amount(pub Minor);

impl Serialize for Amount {
    fn serialize<S: serde::Serializer>(&self, serializer: S) -> Result<S::Ok, S::Error> {
        self.0.serialize(serializer)
    }
}

impl<'de> Deserialize<'de> for Amount {
    fn deserialize<D: serde::Deserializer<'de>>(deserializer: D) -> Result<Self, D::Error> {
        let text = String::deserialize(deserializer)?;
        Minor::parse(&text).map(Self).ok_or_else(|| {
            serde::de::Error::custom("an amount is a string of digits, in minor units, above zero")
        })
    }
}

/// Limits of one currency.
#[derive(Clone, Debug, Default, PartialEq, Serialize, Deserialize, ToSchema)]
#[serde(default, deny_unknown_fields)]
pub struct Limits {
    /// Largest single payout.
    #[schema(value_type = Option<String>)]
    pub per_transaction_minor: Option<Amount>,
    /// Sum of a day, in the merchant's timezone.
    #[schema(value_type = Option<String>)]
    pub daily_minor: Option<Amount>,
    /// Sum of a day to one recipient.
    #[schema(value_type = Option<String>)]
    pub per_beneficiary_minor: Option<Amount>,
}

/// Features that the operator switches.
#[derive(Clone, Debug, Default, PartialEq, Serialize, Deserialize, ToSchema)]
#[serde(default, deny_unknown_fields)]
#[allow(missing_docs, reason = "the names are the contract's own")]
pub struct Features {
    pub international_accounts: Option<bool>,
    pub fx_payouts: Option<bool>,
    pub conversions: Option<bool>,
    pub collections: Option<bool>,
    pub submerchant_accounts: Option<bool>,
    pub auto_convert: Option<bool>,
}

/// The currencies that are paid from international accounts.
const INTERNATIONAL: [&str; 3] = ["GBP", "USD", "EUR"];

/// A feature.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
#[allow(missing_docs, reason = "the names are the contract's own")]
pub enum Feature {
    InternationalAccounts,
    FxPayouts,
    Conversions,
    Collections,
    SubmerchantAccounts,
    AutoConvert,
}

/// Terms that an owner accepts.
#[derive(Clone, Debug, Default, PartialEq, Serialize, Deserialize, ToSchema)]
#[serde(default, deny_unknown_fields)]
pub struct Terms {
    /// Of cross-currency payouts.
    pub fx_payouts: bool,
    /// Of sub-merchant accounts.
    pub submerchant_accounts: bool,
}

/// Whose account foreign currencies are paid from.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Serialize, Deserialize, ToSchema)]
#[serde(rename_all = "lowercase")]
pub enum PayerMode {
    /// The merchant's own.
    #[default]
    Own,
    /// A customer's.
    Customer,
    /// Either, per payout.
    Both,
}

impl Settings {
    /// Whether a feature is on.
    #[must_use]
    pub fn has(&self, feature: Feature, env: Env) -> bool {
        let features = &self.features;
        let decided = match feature {
            Feature::InternationalAccounts => features.international_accounts,
            Feature::FxPayouts => features.fx_payouts,
            Feature::Conversions => features.conversions,
            Feature::Collections => features.collections,
            Feature::SubmerchantAccounts => features.submerchant_accounts,
            Feature::AutoConvert => features.auto_convert,
        };
        decided.unwrap_or(env == Env::Test)
    }

    /// Refuses a currency that the merchant does not use, and an international one where that
    /// feature is off.
    ///
    /// # Errors
    /// `currency_not_active`, `fx_features_not_enabled`.
    pub fn refuse_currency(&self, currency: Currency, env: Env) -> Result<(), Problem> {
        if !self.is_active(currency) {
            return Err(inactive_currency());
        }
        let is_international = INTERNATIONAL.contains(&currency.as_str());
        match is_international && !self.has(Feature::InternationalAccounts, env) {
            true => Err(Problem::new(ErrorCode::FxFeaturesNotEnabled).field("currency")),
            false => Ok(()),
        }
    }

    /// The limits of a currency; none where the operator set none.
    #[must_use]
    pub fn limits(&self, currency: Currency) -> Limits {
        self.limits.get(&currency).cloned().unwrap_or_default()
    }

    /// Whether a currency is active.
    #[must_use]
    pub fn is_active(&self, currency: Currency) -> bool {
        self.currencies.as_ref().is_none_or(|active| active.contains(&currency))
    }
}

/// A currency that nobody knows, or that the merchant does not use.
#[must_use]
pub fn inactive_currency() -> Problem {
    Problem::new(ErrorCode::CurrencyNotActive).field("currency")
}

/// The timezone of a country's merchants, where they name none; UTC where it is not known here.
/// Countries with one timezone only, or one that most businesses keep.
#[must_use]
pub fn default_timezone(country: &str) -> &'static str {
    match country {
        "NG" => "Africa/Lagos",
        "GH" => "Africa/Accra",
        "KE" => "Africa/Nairobi",
        "GB" => "Europe/London",
        "US" => "America/New_York",
        "CA" => "America/Toronto",
        "AT" => "Europe/Vienna",
        "BE" => "Europe/Brussels",
        "DE" => "Europe/Berlin",
        "ES" => "Europe/Madrid",
        "FI" => "Europe/Helsinki",
        "FR" => "Europe/Paris",
        "GR" => "Europe/Athens",
        "IE" => "Europe/Dublin",
        "IT" => "Europe/Rome",
        "LU" => "Europe/Luxembourg",
        "NL" => "Europe/Amsterdam",
        "PT" => "Europe/Lisbon",
        "RW" => "Africa/Kigali",
        "TZ" => "Africa/Dar_es_Salaam",
        "UG" => "Africa/Kampala",
        "ZA" => "Africa/Johannesburg",
        "ZM" => "Africa/Lusaka",
        _ => "UTC",
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn larger_amounts_take_more_teammates() {
        let settings: Settings = serde_json::from_str(
            r#"{ "dual_control_threshold_minor": { "NGN": "100" }, "payout_approval_tiers": {
                "NGN": [{ "above_minor": "1000", "approvers": 2 }, { "above_minor": "5000",
                "approvers": 3 }], "GHS": [{ "above_minor": "10", "approvers": 1 }] } }"#,
        )
        .expect("settings");
        let takes = |currency: &str, amount: i64| {
            let currency = Currency::parse(currency).expect("a currency");
            settings.payout_approvers(currency, Minor::new(amount))
        };
        let told = [100, 101, 1_000, 1_001, 5_001].map(|amount| takes("NGN", amount));
        assert_eq!(told, [0, 1, 1, 2, 3]);
        assert_eq!((takes("GHS", 10), takes("GHS", 11), takes("KES", i64::MAX)), (0, 1, 0));
        assert!(settings.check().is_ok());
        let odd = |approvers: u32| {
            let tier = Tier { above_minor: Amount(Minor::new(1)), approvers };
            let tiers = [(Currency::parse("NGN").expect("a currency"), vec![tier])].into();
            Settings { batch_approval_tiers: tiers, ..Settings::default() }.check().is_err()
        };
        assert!(odd(0) && !odd(1) && !odd(5) && odd(6));
    }
}
