//! A beneficiary as merchants see it.

use serde::Serialize;
use utoipa::ToSchema;

use crate::clock::Moment;
use crate::recipients::Beneficiary;

/// A beneficiary.
#[derive(Clone, Debug, Serialize, ToSchema)]
#[schema(as = Beneficiary)]
pub struct BeneficiaryView {
    /// Always `beneficiary`.
    #[schema(example = "beneficiary")]
    pub object: &'static str,
    /// The id, which sorts by time of creation.
    pub id: String,
    /// Your label for it.
    pub name: String,
    /// Its email address.
    pub email: Option<String>,
    /// The telephone number, as the merchant wrote it.
    pub phone: Option<String>,
    /// The currency that it is paid in.
    pub currency: String,
    /// `test` or `live`.
    pub env: &'static str,
    /// The code of the bank, in the network's own list.
    #[schema(example = "058")]
    pub bank_code: Option<String>,
    /// The bank's name.
    pub bank_name: Option<String>,
    /// The account number.
    #[schema(example = "0123456785")]
    pub account_number: Option<String>,
    /// The name on the account, as the bank has it.
    pub account_name: Option<String>,
    /// CAD Interac only.
    pub interac_email: Option<String>,
    /// CAD Interac only.
    pub interac_first_name: Option<String>,
    /// CAD Interac only.
    pub interac_last_name: Option<String>,
    /// Your own reference.
    pub external_reference: Option<String>,
    /// `pending`, `verified` or `failed`.
    pub verification: &'static str,
    /// Whether it was deleted.
    pub is_archived: bool,
    /// Whether it is blocked.
    pub is_blacklisted: bool,
    /// `manual` or `auto`.
    pub source: &'static str,
    /// When it was created.
    #[schema(value_type = String, format = DateTime)]
    pub created_at: Moment,
    /// When it last changed.
    #[schema(value_type = String, format = DateTime)]
    pub updated_at: Moment,
    /// When it was deleted.
    #[serde(skip_serializing_if = "Option::is_none")]
    #[schema(value_type = Option<String>, format = DateTime)]
    pub deleted_at: Option<Moment>,
    /// The account that it had.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub deleted_account_number: Option<String>,
    /// Whether this request created it; on the upsert only.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub created: Option<bool>,
    /// Whether this request restored it; on the upsert only.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub restored: Option<bool>,
}

impl BeneficiaryView {
    /// What a merchant sees of it.
    #[must_use]
    pub fn of(beneficiary: &Beneficiary) -> Self {
        let shown = |value: &str| Some(value.to_owned()).filter(|value| !value.is_empty());
        let is_archived = beneficiary.deleted_at.is_some();
        let account_number = shown(beneficiary.recipient.account());
        Self {
            object: "beneficiary",
            id: beneficiary.id.to_string(),
            name: beneficiary.name.clone(),
            email: beneficiary.email.clone(),
            phone: beneficiary.phone.clone(),
            currency: beneficiary.currency.to_string(),
            env: beneficiary.env.as_str(),
            bank_code: shown(beneficiary.recipient.bank()),
            bank_name: shown(beneficiary.recipient.bank_name()),
            // The account's place is free again; what it was stands below.
            account_number: match is_archived {
                true => Some(format!("deleted:{}", beneficiary.id)),
                false => account_number.clone(),
            },
            account_name: beneficiary.account_name.clone(),
            interac_email: None,
            interac_first_name: None,
            interac_last_name: None,
            external_reference: beneficiary.external_reference.clone(),
            verification: beneficiary.verification.as_str(),
            is_archived,
            is_blacklisted: beneficiary.is_blacklisted,
            source: beneficiary.source.as_str(),
            created_at: beneficiary.created_at,
            updated_at: beneficiary.updated_at,
            deleted_at: beneficiary.deleted_at,
            deleted_account_number: account_number.filter(|_| is_archived),
            created: None,
            restored: None,
        }
    }
}
