//! A payout as merchants see it.

use serde::Serialize;
use utoipa::ToSchema;

use crate::clock::Moment;
use crate::money::Minor;

use super::model::{Payout, Status};

/// The payout object.
#[derive(Debug, Serialize, ToSchema)]
#[schema(as = Payout)]
pub struct PayoutView<'a> {
    /// Always `payout`.
    #[schema(example = "payout")]
    pub object: &'static str,
    /// The id, which sorts by time of creation.
    pub id: &'a str,
    /// The reference for people: `po_` and the id.
    pub reference: String,
    /// Where it stands.
    #[schema(example = "paid")]
    pub status: &'static str,
    /// What the recipient gets it in.
    #[schema(example = "NGN")]
    pub currency: &'a str,
    /// How it is sent.
    #[schema(example = "nip")]
    pub method: &'a str,
    /// What the recipient gets, in minor units.
    #[schema(value_type = String, example = "2500000")]
    pub amount_minor: Minor,
    /// What the platform charges, in minor units.
    #[schema(value_type = String, example = "2500")]
    pub fee_minor: Minor,
    /// Tax on the fee.
    #[schema(value_type = String, example = "188")]
    pub tax_minor: Minor,
    /// Statutory levy.
    #[schema(value_type = String, example = "5000")]
    pub levy_minor: Minor,
    /// Everything that leaves the wallet.
    #[schema(value_type = String, example = "2507688")]
    pub total_debit_minor: Minor,
    /// The name that the bank has on record.
    #[schema(example = "ADA OBI")]
    pub recipient_name: &'a str,
    /// The recipient's account.
    #[schema(example = "0123456785")]
    pub recipient_account: Option<&'a str>,
    /// The recipient's bank.
    #[schema(example = "058")]
    pub recipient_bank_code: Option<&'a str>,
    /// The saved recipient.
    pub beneficiary_id: &'a str,
    /// The wallet that pays.
    pub wallet_id: &'a str,
    /// The interbank reference (NGN), once it is sent.
    pub nip_reference: Option<&'a str>,
    /// Your own reference.
    pub merchant_reference: Option<&'a str>,
    /// What the recipient reads on the statement.
    pub narration: Option<&'a str>,
    /// The customer that it is attributed to.
    pub customer_id: Option<&'a str>,
    /// Your own word for that customer.
    pub customer_reference: Option<&'a str>,
    /// The batch that it is a row of.
    pub batch_id: Option<&'a str>,
    /// Why it is held for review, while it is: what the platform's rules say about it to you.
    #[schema(example = "This payout is being reviewed.")]
    #[serde(skip_serializing_if = "Option::is_none")]
    pub hold_reason: Option<&'a str>,
    /// The network's code for why it failed.
    pub failure_code: Option<&'a str>,
    /// What the code means.
    pub failure_message: Option<&'a str>,
    /// What the network has otherwise about the recipient, once it said so. The payment stands;
    /// the next one should be addressed like this.
    #[schema(value_type = Option<RecipientCorrection>)]
    #[serde(skip_serializing_if = "Option::is_none")]
    pub recipient_correction: Option<&'a serde_json::value::RawValue>,
    /// When it was created.
    #[schema(value_type = String, format = DateTime)]
    pub created_at: Moment,
    /// When the wallet was debited.
    #[schema(value_type = Option<String>, format = DateTime)]
    pub queued_at: Option<Moment>,
    /// When it was sent.
    #[schema(value_type = Option<String>, format = DateTime)]
    pub processing_at: Option<Moment>,
    /// When it ended.
    #[schema(value_type = Option<String>, format = DateTime)]
    pub completed_at: Option<Moment>,
}

/// How a network wants a recipient to be addressed.
#[derive(Debug, Serialize, ToSchema)]
pub(super) struct RecipientCorrection {
    /// The network's code.
    #[schema(example = "C01")]
    pub code: String,
    /// Its meaning.
    pub message: String,
    /// Fields of the recipient with the values that the network has for them.
    pub fields: std::collections::BTreeMap<String, String>,
}

impl<'a> PayoutView<'a> {
    /// What a merchant sees of this payout.
    #[must_use]
    pub fn of(payout: &'a Payout) -> Self {
        Self {
            object: "payout",
            id: payout.id.as_str(),
            reference: payout.id.reference(),
            status: payout.status.as_str(),
            currency: payout.currency.as_str(),
            method: &payout.method,
            amount_minor: payout.costs.amount,
            fee_minor: payout.costs.fee,
            tax_minor: payout.costs.tax,
            levy_minor: payout.costs.levy,
            // The sum was checked when the payout was made.
            total_debit_minor: payout.costs.total().unwrap_or(payout.costs.amount),
            recipient_name: &payout.recipient_name,
            recipient_account: shown(payout.recipient.account()),
            recipient_bank_code: shown(payout.recipient.bank()),
            beneficiary_id: payout.beneficiary_id.as_str(),
            wallet_id: payout.wallet_id.as_str(),
            nip_reference: payout.rail_reference.as_deref().filter(|_| payout.method == "nip"),
            merchant_reference: payout.merchant_reference.as_deref(),
            narration: payout.narration.as_deref(),
            customer_id: None,
            customer_reference: payout.customer_reference.as_deref(),
            batch_id: None,
            hold_reason: payout
                .hold
                .as_deref()
                .filter(|_| payout.status == Status::AwaitingAdminReview),
            failure_code: payout.failure_code.as_deref(),
            failure_message: payout.failure_message.as_deref(),
            recipient_correction: payout
                .correction
                .as_deref()
                .and_then(|json| serde_json::from_str(json).ok()),
            created_at: payout.created_at,
            queued_at: payout.queued_at,
            processing_at: payout.processing_at,
            completed_at: payout.completed_at,
        }
    }

    /// The object as JSON text, as replies and events carry it.
    #[must_use]
    pub fn json(payout: &Payout) -> String {
        serde_json::to_string(&PayoutView::of(payout)).unwrap_or_default()
    }
}

fn shown(value: &str) -> Option<&str> {
    Some(value).filter(|value| !value.is_empty())
}
