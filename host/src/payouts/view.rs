//! A payout as merchants see it.

use serde::Serialize;
use utoipa::ToSchema;

use crate::clock::Moment;
use crate::fx::Rate;
use crate::id::BatchId;
use crate::money::{Currency, Minor};
use crate::rails::shown::Told;
use crate::recipients::RecipientCorrection;

use super::model::{Funded, Funding, Payout, Status};

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
    /// Everything that leaves the wallet of `currency`; what left a funding wallet is
    /// `fx.source_debit_minor`.
    #[schema(value_type = String, example = "2507688")]
    pub total_debit_minor: Minor,
    /// The name that the bank has on record, where a network tells it; otherwise the one that
    /// you sent.
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
    /// Why it failed: the network's code, or a word of this service (`review_rejected`, `not_paid`,
    /// `marked_failed`, `reversed`).
    pub failure_code: Option<&'a str>,
    /// What the code means.
    pub failure_message: Option<&'a str>,
    /// What the network has otherwise about the recipient, once it said so. The payment stands;
    /// the next one should be addressed like this.
    #[schema(value_type = Option<RecipientCorrection>)]
    #[serde(skip_serializing_if = "Option::is_none")]
    pub recipient_correction: Option<&'a serde_json::value::RawValue>,
    /// What paid for it, where that is another currency.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub fx: Option<PayoutFx<'a>>,
    /// What its rail has merchants told of it.
    #[schema(ignore)]
    #[serde(flatten, skip_serializing_if = "Option::is_none")]
    pub told: Option<serde_json::Map<String, serde_json::Value>>,
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

/// What paid for a payout out of another currency. Until it goes, nothing is bought for it.
#[derive(Debug, Serialize, ToSchema)]
pub struct PayoutFx<'a> {
    /// The currency that pays.
    #[schema(value_type = String, example = "USD")]
    pub funding_currency: Currency,
    /// The wallet that what it takes is bought from.
    pub funding_wallet_id: &'a str,
    /// What left that wallet.
    #[schema(value_type = Option<String>, example = "1626")]
    pub source_debit_minor: Option<Minor>,
    /// What of it is for fee, tax and levy.
    #[schema(value_type = Option<String>, example = "4")]
    pub fee_source_minor: Option<Minor>,
    /// How much of the payout's currency one major unit of the other came to: a decimal.
    #[schema(value_type = Option<String>, example = "1542.25")]
    pub rate: Option<Rate>,
    /// What came into the wallet that the payout is paid from.
    #[schema(value_type = Option<String>, example = "2507688")]
    pub converted_minor: Option<Minor>,
    /// The conversion.
    pub conversion_id: Option<&'a str>,
    /// What would have left that wallet when the payout was made.
    #[schema(value_type = String, example = "1626")]
    pub quoted_debit_minor: Minor,
    /// The most that may leave it, where that was agreed.
    #[schema(value_type = Option<String>, example = "1700")]
    pub max_debit_minor: Option<Minor>,
}

impl<'a> PayoutFx<'a> {
    fn of(funding: &'a Funding, funded: Option<&'a Funded>) -> Self {
        Self {
            funding_currency: funding.currency,
            funding_wallet_id: funding.wallet_id.as_str(),
            source_debit_minor: funded.map(|funded| funded.sold),
            fee_source_minor: funded.map(|funded| funded.charges),
            rate: funded.map(|funded| funded.rate),
            converted_minor: funded.map(|funded| funded.bought),
            conversion_id: funded.map(|funded| funded.conversion_id.as_str()),
            quoted_debit_minor: funding.quoted,
            max_debit_minor: funding.most,
        }
    }
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
            batch_id: payout.batch_id.as_ref().map(BatchId::as_str),
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
            fx: payout.funding.as_ref().map(|it| PayoutFx::of(it, payout.funded.as_ref())),
            told: payout.told.as_deref().map(|json| told(json, payout.status)),
            created_at: payout.created_at,
            queued_at: payout.queued_at,
            processing_at: payout.processing_at,
            completed_at: payout.completed_at,
        }
    }

    /// The object as operators see it: without what whoever has it could take the money with.
    #[must_use]
    pub fn guarded(payout: &'a Payout) -> Self {
        let open = payout.told.as_deref().map(|json| told(json, Status::Paid));
        Self { told: open, ..Self::of(payout) }
    }

    /// The same as JSON text.
    #[must_use]
    pub fn guarded_json(payout: &Payout) -> String {
        serde_json::to_string(&PayoutView::guarded(payout)).unwrap_or_default()
    }

    /// The object as JSON text, as replies, deliveries and the feed show it.
    #[must_use]
    pub fn json(payout: &Payout) -> String {
        serde_json::to_string(&PayoutView::of(payout)).unwrap_or_default()
    }
}

/// What merchants are told of it; how to claim the money only as long as nobody has.
fn told(json: &str, status: Status) -> serde_json::Map<String, serde_json::Value> {
    let Told { mut open, claim } = serde_json::from_str(json).unwrap_or_default();
    if !status.is_final() {
        open.extend(claim);
    }
    open
}

fn shown(value: &str) -> Option<&str> {
    Some(value).filter(|value| !value.is_empty())
}

#[cfg(test)]
mod tests {
    use utoipa::PartialSchema as _;

    use crate::rails::shown::PAYOUT_MEMBERS;

    use super::PayoutView;

    /// A rail shows nothing under a name that payouts have.
    #[test]
    fn the_members_of_payouts_are_known_to_rails() {
        let schema = serde_json::to_value(PayoutView::schema()).expect("a schema");
        for name in schema["properties"].as_object().expect("members").keys() {
            let is_known = PAYOUT_MEMBERS.contains(&name.as_str());
            assert!(is_known, "{name}");
        }
    }
}
