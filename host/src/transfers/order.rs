//! What the engine and a feature say to each other.
//!
//! The engine carries payments out and knows nothing of payouts or refunds. A feature hands it
//! an [`Order`], and gets back what was learnt, with the rows to commit in the same transaction.

use std::collections::{BTreeMap, HashMap};

use serde::Serialize;

use crate::clock::Moment;
use crate::db::bulk::RowChange;
use crate::env::Env;
use crate::error::Problem;
use crate::id::MerchantId;
use crate::ledger::Guard;
use crate::money::{Currency, Minor};
use crate::rails::RecipientFields;
use crate::wasm::rail::{Field, Resolution};

/// Where the object of an order stands.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum OrderStage {
    /// To be sent.
    Queued,
    /// Sent, or about to be; not known to have ended.
    UnderWay,
    /// Nothing is to be sent or asked any more.
    Ended,
}

/// What is to be sent. It never changes once the object is queued, but for its stage.
#[derive(Clone, Debug)]
pub struct Order {
    /// The object's id.
    pub id: String,
    /// Its reference towards the merchant.
    pub reference: String,
    /// Whose money it is.
    pub merchant_id: MerchantId,
    /// Test or live.
    pub env: Env,
    /// What the recipient gets it in.
    pub currency: Currency,
    /// How it is sent.
    pub method: String,
    /// What the recipient gets.
    pub amount: Minor,
    /// The recipient in canonical form.
    pub recipient: RecipientFields,
    /// The sender's identity; nothing where it cannot be read, and nothing is sent then.
    pub sender: Option<Vec<Field>>,
    /// For the recipient's statement.
    pub narration: String,
    /// The sandbox scenario.
    pub scenario: Option<String>,
    /// When it was made.
    pub made_at: Moment,
    /// When it was queued.
    pub queued_at: Moment,
    /// Where the object stands.
    pub stage: OrderStage,
    /// What merchants are shown of it already, as its rail declares it: a JSON object.
    pub shown: Option<String>,
}

/// Why a payment did not get through, for the merchant.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Failure {
    /// The network's own code, or one of the host's.
    pub code: String,
    /// Its meaning.
    pub message: String,
    /// The network's own name for what it told, if it gave one: two returns have two.
    pub id: Option<String>,
}

/// What the network has otherwise about a recipient.
#[derive(Clone, Debug, PartialEq, Eq, Serialize)]
pub struct Correction {
    /// The network's code.
    pub code: String,
    /// Its meaning.
    pub message: String,
    /// Fields of the recipient, each with its right value.
    pub fields: BTreeMap<String, String>,
}

impl Correction {
    /// As payouts and events show it.
    #[must_use]
    pub fn json(&self) -> String {
        serde_json::to_string(self).unwrap_or_default()
    }
}

/// The attempt that a step is about.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Fixed {
    /// The route's name.
    pub route: String,
    /// The network's reference.
    pub reference: String,
    /// Whether it was sent, or is about to be: otherwise its network is only asked about it.
    pub is_sent: bool,
}

/// What has become of an order.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum Step {
    /// Its first attempt is fixed, and is about to be sent.
    Begun(Fixed),
    /// The same, where merchants are told once the network has taken it on.
    BegunUntold(Fixed),
    /// Nothing left over the route before, and another one takes over.
    Rerouted(Fixed),
    /// The network never received it, and the same is about to be sent once more.
    Resent(Fixed),
    /// The network has taken it on, and merchants are shown this of it: a JSON object.
    Accepted(Fixed, String),
    /// The network says that it is paid.
    Paid(Fixed),
    /// The network refuses it for good.
    Refused(Fixed, Failure),
    /// All of it came back.
    Returned(Fixed, Failure),
    /// Another amount than all of it came back.
    PartReturned(Fixed, Failure, Minor),
    /// It stands, and the recipient should be addressed otherwise from now on.
    Corrected(Fixed, Correction),
}

/// What goes with a step into the same transaction.
#[derive(Clone, Debug, Default)]
pub struct Writes {
    /// Rows of the engine: attempts, evidence, work.
    pub rows: Vec<RowChange>,
    /// The claim under which this is written. Without one, news has come from outside, and the
    /// rows are written whether or not the object makes anything of it.
    pub fence: Option<Guard>,
    /// What else must be as it was.
    pub beside: Option<Guard>,
}

/// A feature with something to send. Cheap to clone.
pub trait Feature: Clone + Send + Sync + 'static {
    /// What it sends: a payout, a refund.
    type Object: Send + Sync;

    /// The object of this id, as it is now.
    fn load(&self, id: &str) -> impl Future<Output = Result<Option<Self::Object>, Problem>> + Send;

    /// The objects of these ids, by id. One that cannot be read is left out.
    fn load_all(
        &self,
        ids: &[String],
    ) -> impl Future<Output = Result<HashMap<String, Self::Object>, sqlx::Error>> + Send;

    /// What is to be sent for it.
    ///
    /// # Errors
    /// The object is not one to be sent.
    fn order(&self, object: &Self::Object) -> Result<Order, Problem>;

    /// What is known of the recipient's account now. An attempt keeps what was known when it
    /// was fixed.
    fn resolution(
        &self,
        object: &Self::Object,
    ) -> impl Future<Output = Result<Option<Resolution>, Problem>> + Send;

    /// Commits a step with what goes with it; answers the object afterwards. `state_conflict`
    /// means that somebody else changed it first. Where the object ends, its work is removed in
    /// the same transaction ([`super::work::WORK_DONE`]).
    ///
    /// Before anything is sent ([`Step::Begun`], [`Step::Rerouted`], [`Step::Resent`]) the
    /// feature may refuse, as it does where the wallet is frozen; the engine tries later.
    fn commit(
        &self,
        object: &Self::Object,
        step: Step,
        with: Writes,
    ) -> impl Future<Output = Result<Self::Object, Problem>> + Send;
}
