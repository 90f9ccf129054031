//! What a payout was made as.

use base64::Engine as _;
use base64::prelude::BASE64_URL_SAFE_NO_PAD;
use sha2::{Digest as _, Sha256};

use crate::clock::Moment;
use crate::env::Env;
use crate::id::{BatchId, BeneficiaryId, MerchantId, PayoutId, WalletId};
use crate::money::{Currency, Minor};
use crate::rails::RecipientFields;

use super::across::Funding;
use super::costs::Costs;

/// What a payout was made as, and stays. Whoever has another version of it has the same terms.
#[derive(Clone, Debug)]
pub struct Terms {
    /// The id, which sorts by time of creation.
    pub id: PayoutId,
    /// The merchant who pays.
    pub merchant_id: MerchantId,
    /// Test or live.
    pub env: Env,
    /// From which wallet.
    pub wallet_id: WalletId,
    /// The batch that it is a row of.
    pub batch_id: Option<BatchId>,
    /// The currency of the wallet and of all its costs.
    pub currency: Currency,
    /// The payment method, which with the currency decides the routes.
    pub method: String,
    /// What it costs.
    pub costs: Costs,
    /// The saved recipient.
    pub beneficiary_id: BeneficiaryId,
    /// What makes the recipient the same as another one.
    pub recipient_identity: String,
    /// The name that the bank has on record, or the one that was sent.
    pub recipient_name: String,
    /// The recipient in canonical form.
    pub recipient: RecipientFields,
    /// The sender's identity, where one was given; sealed.
    pub sender: Option<String>,
    /// For the recipient's statement.
    pub narration: Option<String>,
    /// The merchant's own reference.
    pub merchant_reference: Option<String>,
    /// The merchant's own word for its customer.
    pub customer_reference: Option<String>,
    /// The tariff that it was charged by.
    pub tariff: String,
    /// What was charged for each of its lines, in minor units.
    pub charges: Vec<i64>,
    /// Why it is held.
    pub hold: Option<String>,
    /// The sandbox scenario.
    pub scenario: Option<String>,
    /// The key that made it.
    pub maker: String,
    /// What its network said of the account under the name that it goes to, sealed; nothing where
    /// that is known of the saved recipient, whatever it is called.
    pub resolution: Option<String>,
    /// Who is sent a receipt when it has arrived.
    pub receipt_to: Option<String>,
    /// What pays for it, where that is another currency.
    pub funding: Option<Funding>,
    /// When it was created.
    pub created_at: Moment,
}

impl Terms {
    /// The first half of the SHA-256 over all that merchants see of the terms, in base64: events keep
    /// it, so that a change of the terms behind the host's back contradicts them.
    pub(super) fn digest(&self) -> String {
        let costs = self.costs;
        let seen = serde_json::to_vec(&(
            (&self.id, &self.wallet_id, self.batch_id.as_ref(), self.created_at.micros()),
            (self.currency.as_str(), &self.method, &self.hold),
            [costs.amount, costs.fee, costs.tax, costs.levy].map(Minor::units),
            (&self.beneficiary_id, &self.recipient_identity, &self.recipient_name),
            (self.recipient.to_json(), &self.funding),
            (&self.sender, &self.narration, &self.merchant_reference, &self.customer_reference),
        ));
        let digest = Sha256::digest(seen.unwrap_or_default());
        BASE64_URL_SAFE_NO_PAD.encode(&digest[..16])
    }
}
