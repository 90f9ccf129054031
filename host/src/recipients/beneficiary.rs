//! A saved recipient.

use std::collections::BTreeMap;

use utoipa::ToSchema;

use crate::clock::Moment;
use crate::env::Env;
use crate::id::{BeneficiaryId, MerchantId};
use crate::money::Currency;
use crate::rails::{Rail, RecipientFields, Registry};
use crate::wasm::rail::Resolution;

/// Whether the bank knows the account.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Verification {
    /// Not asked, or not answered.
    Pending,
    /// The bank knows it.
    Verified,
    /// The bank does not know it.
    Failed,
}

impl Verification {
    /// The word used on the wire and in the database.
    #[must_use]
    pub const fn as_str(self) -> &'static str {
        match self {
            Self::Pending => "pending",
            Self::Verified => "verified",
            Self::Failed => "failed",
        }
    }

    pub(super) fn parse(text: &str) -> Self {
        match text {
            "verified" => Self::Verified,
            "failed" => Self::Failed,
            _ => Self::Pending,
        }
    }
}

/// How it came to be saved.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum BeneficiarySource {
    /// By the merchant.
    Manual,
    /// By a payout.
    Auto,
}

impl BeneficiarySource {
    /// The word used on the wire and in the database.
    #[must_use]
    pub const fn as_str(self) -> &'static str {
        match self {
            Self::Manual => "manual",
            Self::Auto => "auto",
        }
    }
}

/// A saved recipient of one merchant, environment and currency.
#[derive(Clone, Debug)]
pub struct Beneficiary {
    /// The id, which sorts by time of creation.
    pub id: BeneficiaryId,
    /// Whose it is.
    pub merchant_id: MerchantId,
    /// Test or live.
    pub env: Env,
    /// In what it is paid.
    pub currency: Currency,
    /// How it is paid.
    pub method: String,
    /// What makes it the same as another one.
    pub identity: String,
    /// The rail's fields in canonical form.
    pub recipient: RecipientFields,
    /// The merchant's label for it.
    pub name: String,
    /// The email address, as the merchant wrote it.
    pub email: Option<String>,
    /// The telephone number, as the merchant wrote it.
    pub phone: Option<String>,
    /// The merchant's own reference.
    pub external_reference: Option<String>,
    /// The name on the account, as the bank has it.
    pub account_name: Option<String>,
    /// What the bank said about the account, opened.
    pub resolution: Option<Resolution>,
    /// When it said so.
    pub resolved_at: Option<Moment>,
    /// Whether the bank knows it.
    pub verification: Verification,
    /// What a network has said of it that is not right any more, as JSON of a
    /// [`RecipientCorrection`]; until the merchant has saved it anew.
    pub correction: Option<String>,
    /// Whether the merchant or the platform blocks it; read, never written.
    pub is_blacklisted: bool,
    /// How it came to be saved.
    pub source: BeneficiarySource,
    /// When it was deleted.
    pub deleted_at: Option<Moment>,
    /// When it was created.
    pub created_at: Moment,
    /// When it last changed; serves as its version.
    pub updated_at: Moment,
}

impl Beneficiary {
    /// Whether what is known of its account was said by this rail's network.
    #[must_use]
    pub fn is_known_to(&self, rails: &Registry, rail: &Rail) -> bool {
        let home = rails.home(self.currency, &self.method);
        home.is_some_and(|home| home.declaration.rail.name == rail.declaration.rail.name)
    }

    /// The same, of whose account nothing is known.
    #[must_use]
    pub fn unasked(self) -> Self {
        Self {
            account_name: None,
            resolution: None,
            resolved_at: None,
            verification: Verification::Pending,
            ..self
        }
    }
}

/// How a network wants a recipient to be addressed.
#[derive(Clone, Debug, serde::Serialize, serde::Deserialize, ToSchema)]
pub struct RecipientCorrection {
    /// The network's code.
    #[schema(example = "C01")]
    pub code: String,
    /// Its meaning.
    pub message: String,
    /// Fields of the recipient with the values that the network has for them.
    pub fields: BTreeMap<String, String>,
}
