//! One table: what each code means, to machines and to people.

use std::collections::HashMap;
use std::sync::LazyLock;

use serde::Deserialize;

use super::ErrorCode;

/// The `type` of an error, which groups codes by what a client does about them.
#[derive(Clone, Copy, Debug, PartialEq, Eq, strum::EnumIter)]
pub enum Kind {
    /// Malformed, or against a business rule: fix it before retrying.
    InvalidRequest,
    /// The caller is not known.
    Authentication,
    /// The caller is known and may not.
    Permission,
    /// The maker may not approve.
    SelfApproval,
    /// Missing, or not the caller's.
    NotFound,
    /// Too many requests.
    RateLimit,
    /// The network behind a rail failed; nothing was committed.
    Provider,
    /// The host failed.
    Api,
}

impl Kind {
    /// The word used on the wire.
    #[must_use]
    pub const fn literal(self) -> &'static str {
        match self {
            Self::InvalidRequest => "invalid_request_error",
            Self::Authentication => "authentication_error",
            Self::Permission => "permission_error",
            Self::SelfApproval => "self_approval_denied",
            Self::NotFound => "not_found_error",
            Self::RateLimit => "rate_limit_error",
            Self::Provider => "provider_error",
            Self::Api => "api_error",
        }
    }
}

/// What the catalogue says about one code.
#[derive(Clone, Copy, Debug)]
pub struct Entry {
    /// Literal code, on which clients branch.
    pub code: &'static str,
    /// Group of the code.
    pub kind: Kind,
    /// The HTTP status of every answer with this code.
    pub status: u16,
}

const fn entry(kind: Kind, status: u16, code: &'static str) -> Entry {
    Entry { code, kind, status }
}

/// The catalogue's prose about one code.
#[derive(Clone, Debug, Deserialize)]
pub struct Texts {
    /// Message when the handler has nothing more precise to say.
    pub message: String,
    /// What it means.
    pub meaning: String,
    /// What to do about it.
    pub remedy: String,
}

static TEXTS: LazyLock<HashMap<String, Texts>> =
    LazyLock::new(|| toml::from_str(include_str!("texts.toml")).unwrap_or_default());

impl ErrorCode {
    /// The code's prose.
    #[must_use]
    pub fn texts(self) -> &'static Texts {
        static NONE: Texts =
            Texts { message: String::new(), meaning: String::new(), remedy: String::new() };
        let Entry { code, status, .. } = self.entry();
        TEXTS.get(code).or_else(|| TEXTS.get(&format!("{code} {status}"))).unwrap_or(&NONE)
    }

    /// The code's type, status and literal.
    #[must_use]
    #[expect(clippy::too_many_lines, reason = "a table, one row a code")]
    pub const fn entry(self) -> Entry {
        use Kind::{Api, Authentication, InvalidRequest, NotFound, Permission, Provider};
        use Kind::{RateLimit, SelfApproval};
        match self {
            Self::MissingApiKey => entry(Authentication, 401, "missing_api_key"),
            Self::InvalidApiKey => entry(Authentication, 401, "invalid_api_key"),
            Self::KeyExpired => entry(Authentication, 401, "key_expired"),
            Self::GraceExpired => entry(Authentication, 401, "grace_expired"),
            Self::Unauthorized => entry(Authentication, 401, "unauthorized"),
            Self::InvalidCredentials => entry(Authentication, 401, "invalid_credentials"),
            Self::SessionExpired => entry(Authentication, 401, "session_expired"),
            Self::PermissionDenied => entry(Permission, 403, "permission_denied"),
            Self::MerchantSuspended => entry(Permission, 403, "merchant_suspended"),
            Self::MerchantClosed => entry(Permission, 403, "merchant_closed"),
            Self::IpNotAllowed => entry(Permission, 403, "ip_not_allowed"),
            Self::BeneficiaryBlacklistedForPayout => {
                entry(Permission, 403, "beneficiary_blacklisted")
            }
            Self::BeneficiaryGloballyBlocked => {
                entry(Permission, 403, "beneficiary_globally_blocked")
            }
            Self::WalletFrozen => entry(Permission, 403, "wallet_frozen"),
            Self::FxFeaturesNotEnabled => entry(Permission, 403, "fx_features_not_enabled"),
            Self::NoActiveInternationalAccount => {
                entry(Permission, 403, "no_active_international_account")
            }
            Self::ProviderNotEntitled => entry(Permission, 403, "provider_not_entitled"),
            Self::ProviderPaused => entry(Permission, 403, "provider_paused"),
            Self::FxPayoutDisabled => entry(Permission, 403, "fx_payout_disabled"),
            Self::FxPayoutTermsNotAccepted => {
                entry(Permission, 403, "fx_payout_terms_not_accepted")
            }
            Self::BulkDisabledForKey => entry(Permission, 403, "bulk_disabled_for_key"),
            Self::BulkRequiresIpAllowlist => entry(Permission, 403, "bulk_requires_ip_allowlist"),
            Self::SubmerchantVaNotEnabled => entry(Permission, 403, "submerchant_va_not_enabled"),
            Self::ForbiddenVirtualAccountCreate => {
                entry(Permission, 403, "forbidden_virtual_account_create")
            }
            Self::ForbiddenCollectionCreate => {
                entry(Permission, 403, "forbidden_collection_create")
            }
            Self::CollectionsNotEnabled => entry(Permission, 403, "collections_not_enabled"),
            Self::CollectionsPaused => entry(Permission, 403, "collections_paused"),
            Self::ForbiddenRefundCreate => entry(Permission, 403, "forbidden_refund_create"),
            Self::SelfApprovalDenied => entry(SelfApproval, 403, "self_approval_denied"),
            Self::RecentLoginRequired => entry(Permission, 403, "recent_login_required"),
            Self::OtpRequired => entry(Permission, 403, "otp_required"),
            Self::InvalidOtp => entry(Permission, 403, "invalid_otp"),
            Self::NotFound => entry(NotFound, 404, "not_found"),
            Self::PayoutNotFound => entry(NotFound, 404, "payout_not_found"),
            Self::BatchNotFound => entry(NotFound, 404, "batch_not_found"),
            Self::WalletNotFound => entry(NotFound, 404, "wallet_not_found"),
            Self::BeneficiaryNotFound => entry(NotFound, 404, "beneficiary_not_found"),
            Self::CustomerNotFound => entry(NotFound, 404, "customer_not_found"),
            Self::WebhookEndpointNotFound => entry(NotFound, 404, "webhook_endpoint_not_found"),
            Self::WebhookDeliveryNotFound => entry(NotFound, 404, "webhook_delivery_not_found"),
            Self::EventNotFound => entry(NotFound, 404, "event_not_found"),
            Self::CaseNotFound => entry(NotFound, 404, "case_not_found"),
            Self::VirtualAccountNotFound => entry(NotFound, 404, "virtual_account_not_found"),
            Self::CollectionNotFound => entry(NotFound, 404, "collection_not_found"),
            Self::RefundNotFound => entry(NotFound, 404, "refund_not_found"),
            Self::RefundCollectionNotFound => entry(NotFound, 404, "refund_collection_not_found"),
            Self::BatchCurrencyNotSupported => entry(NotFound, 404, "currency_not_supported"),
            Self::MissingField => entry(InvalidRequest, 400, "missing_field"),
            Self::InvalidField => entry(InvalidRequest, 400, "invalid_field"),
            Self::InvalidJson => entry(InvalidRequest, 400, "invalid_json"),
            Self::InvalidBody => entry(InvalidRequest, 400, "invalid_body"),
            Self::InvalidUrl => entry(InvalidRequest, 400, "invalid_url"),
            Self::InvalidEventType => entry(InvalidRequest, 400, "invalid_event_type"),
            Self::WebhookEndpointInactive => {
                entry(InvalidRequest, 400, "webhook_endpoint_inactive")
            }
            Self::InvalidLimit => entry(InvalidRequest, 400, "invalid_limit"),
            Self::InvalidFilter => entry(InvalidRequest, 400, "invalid_filter"),
            Self::InvalidAmount => entry(InvalidRequest, 400, "invalid_amount"),
            Self::InvalidFormat => entry(InvalidRequest, 400, "invalid_format"),
            Self::InvalidIdType => entry(InvalidRequest, 400, "invalid_id_type"),
            Self::ItemsEmpty => entry(InvalidRequest, 400, "items_empty"),
            Self::ItemsTooMany => entry(InvalidRequest, 400, "items_too_many"),
            Self::AmbiguousAmount => entry(InvalidRequest, 400, "ambiguous_amount"),
            Self::AmountRequired => entry(InvalidRequest, 400, "amount_required"),
            Self::GuardFieldWrongMethod => entry(InvalidRequest, 400, "guard_field_wrong_method"),
            Self::AmountBasisMismatch => entry(InvalidRequest, 400, "amount_basis_mismatch"),
            Self::InvalidFundingCurrency => entry(InvalidRequest, 400, "invalid_funding_currency"),
            Self::InvalidCurrencyPair => entry(InvalidRequest, 400, "invalid_currency_pair"),
            Self::UnsupportedCurrency => entry(InvalidRequest, 400, "unsupported_currency"),
            Self::IdempotencyKeyRequired => entry(InvalidRequest, 400, "idempotency_key_required"),
            Self::BeneficiaryCurrencyMismatch => {
                entry(InvalidRequest, 400, "beneficiary_currency_mismatch")
            }
            Self::CustomerIdMismatch => entry(InvalidRequest, 400, "customer_id_mismatch"),
            Self::NoTreasuryCustomer => entry(InvalidRequest, 400, "no_treasury_customer"),
            Self::UsdBeneficiaryMissingMethod => {
                entry(InvalidRequest, 400, "usd_beneficiary_missing_method")
            }
            Self::InvalidAccount => entry(InvalidRequest, 400, "invalid_account"),
            Self::BeneficiaryBlacklisted => entry(InvalidRequest, 400, "beneficiary_blacklisted"),
            Self::CurrencyMismatch => entry(InvalidRequest, 400, "currency_mismatch"),
            Self::WalletEnvMismatch => entry(InvalidRequest, 400, "env_mismatch"),
            Self::CountryNotSupported => entry(InvalidRequest, 400, "country_not_supported"),
            Self::InvalidPostcode => entry(InvalidRequest, 400, "invalid_postcode"),
            Self::SandboxOnly => entry(InvalidRequest, 400, "sandbox_only"),
            Self::MissingCurrency => entry(InvalidRequest, 400, "missing_currency"),
            Self::InsufficientFunds => entry(InvalidRequest, 402, "insufficient_funds"),
            Self::MethodNotAllowed => entry(InvalidRequest, 405, "method_not_allowed"),
            Self::IdempotencyKeyConflict => entry(InvalidRequest, 409, "idempotency_key_conflict"),
            Self::IdempotencyConflict => entry(InvalidRequest, 409, "idempotency_conflict"),
            Self::MerchantReferenceDuplicate => {
                entry(InvalidRequest, 409, "merchant_reference_duplicate")
            }
            Self::EnvMismatch => entry(InvalidRequest, 409, "env_mismatch"),
            Self::ReferenceConflict => entry(InvalidRequest, 409, "reference_conflict"),
            Self::RefundAlreadyExists => entry(InvalidRequest, 409, "refund_already_exists"),
            Self::PayoutNotCancellable => entry(InvalidRequest, 409, "payout_not_cancellable"),
            Self::BatchNotCancellable => entry(InvalidRequest, 409, "batch_not_cancellable"),
            Self::StateConflict => entry(InvalidRequest, 409, "state_conflict"),
            Self::BodyTooLarge => entry(InvalidRequest, 413, "body_too_large"),
            Self::UnsupportedMediaType => entry(InvalidRequest, 415, "unsupported_media_type"),
            Self::RecipientFieldMissing => entry(InvalidRequest, 422, "missing_field"),
            Self::RecipientFieldInvalid => entry(InvalidRequest, 422, "invalid_field"),
            Self::UnknownBankCode => entry(InvalidRequest, 422, "unknown_bank_code"),
            Self::UnknownOperator => entry(InvalidRequest, 422, "unknown_operator"),
            Self::PayoutWalletNotFound => entry(InvalidRequest, 422, "wallet_not_found"),
            Self::CurrencyNotActive => entry(InvalidRequest, 422, "unsupported_currency"),
            Self::RecipientUnresolvable => entry(InvalidRequest, 422, "recipient_unresolvable"),
            Self::LimitViolation => entry(InvalidRequest, 422, "limit_violation"),
            Self::FraudRuleBlocked => entry(InvalidRequest, 422, "fraud_rule_blocked"),
            Self::SenderAccountNotProvisioned => {
                entry(InvalidRequest, 422, "sender_account_not_provisioned")
            }
            Self::SenderInfoRequired => entry(InvalidRequest, 422, "sender_info_required"),
            Self::RoutingFailed => entry(InvalidRequest, 422, "routing_failed"),
            Self::CustomerNotVerified => entry(InvalidRequest, 422, "customer_not_verified"),
            Self::InvalidRecipient => entry(InvalidRequest, 422, "invalid_recipient"),
            Self::NameMismatch => entry(InvalidRequest, 422, "name_mismatch"),
            Self::FxPayoutSourceNotAllowed => {
                entry(InvalidRequest, 422, "fx_payout_source_not_allowed")
            }
            Self::FxPayoutTierInvalid => entry(InvalidRequest, 422, "fx_payout_tier_invalid"),
            Self::FxRateUnavailable => entry(InvalidRequest, 422, "fx_rate_unavailable"),
            Self::FxRateStale => entry(InvalidRequest, 422, "fx_rate_stale"),
            Self::FxRateInverted => entry(InvalidRequest, 422, "fx_rate_inverted"),
            Self::MinReceiveNotMet => entry(InvalidRequest, 422, "min_receive_not_met"),
            Self::FundingBelowFee => entry(InvalidRequest, 422, "funding_below_fee"),
            Self::MaxDebitExceeded => entry(InvalidRequest, 422, "max_debit_exceeded"),
            Self::FxExposureCapExceeded => entry(InvalidRequest, 422, "fx_exposure_cap_exceeded"),
            Self::BatchInsufficientFunds => entry(InvalidRequest, 422, "insufficient_funds"),
            Self::BatchWalletFrozen => entry(InvalidRequest, 422, "wallet_frozen"),
            Self::ValidationFailed => entry(InvalidRequest, 422, "validation_failed"),
            Self::DocumentQualityFailed => entry(InvalidRequest, 422, "document_quality_failed"),
            Self::FileNotFound => entry(InvalidRequest, 422, "file_not_found"),
            Self::InvalidBvn => entry(InvalidRequest, 422, "invalid_bvn"),
            Self::CollectionCurrencyNotSupported => {
                entry(InvalidRequest, 422, "currency_not_supported")
            }
            Self::AmountBelowMinimum => entry(InvalidRequest, 422, "amount_below_minimum"),
            Self::RefundNotAllowed => entry(InvalidRequest, 422, "refund_not_allowed"),
            Self::BeneficiaryCooldown => entry(InvalidRequest, 429, "beneficiary_cooldown"),
            Self::RateLimitExceeded => entry(RateLimit, 429, "rate_limit_exceeded"),
            Self::ApiError => entry(Api, 500, "api_error"),
            Self::ProviderError => entry(Provider, 502, "provider_error"),
            Self::ProviderUnreachable => entry(Provider, 502, "provider_unreachable"),
            Self::DeliveryFailed => entry(Provider, 502, "delivery_failed"),
            Self::VaProvisioningFailed => entry(Provider, 502, "va_provisioning_failed"),
            Self::CollectionCreateFailed => entry(Provider, 502, "collection_create_failed"),
            Self::RailNotConfigured => entry(Provider, 503, "rail_not_configured"),
            Self::FxPayoutUnavailable => entry(Provider, 503, "fx_payout_unavailable"),
            Self::FxConvertUnavailable => entry(Provider, 503, "fx_convert_unavailable"),
            Self::CollectionsUnavailable => entry(Provider, 503, "collections_unavailable"),
            Self::CollectionCostUnpriceable => entry(Provider, 503, "collection_cost_unpriceable"),
            Self::CollectionsDisabled => entry(Provider, 503, "collections_disabled"),
            Self::CollectionsRailDisabled => entry(Provider, 503, "collections_rail_disabled"),
            Self::ServiceOverloaded => entry(Api, 503, "service_overloaded"),
            Self::ServiceUnavailable => entry(Api, 503, "service_unavailable"),
            Self::RequestTimeout => entry(Api, 503, "request_timeout"),
        }
    }
}
