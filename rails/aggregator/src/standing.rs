//! How a payout stands, as the aggregator writes it.

use railhead_rail::fields::{self, field};
use railhead_rail::strict::Object;
use railhead_rail::types::{Field, Payment, Receipt, Refusal};
use serde::Deserialize;

use crate::{codes, words};

/// The fact that the aggregator has taken a payout on. That it knows none of it later proves
/// nothing then.
pub const TAKEN: &str = "taken";
/// Most characters of the aggregator's own name for a payout.
const TRANSACTION_CHARS_MAX: usize = 64;

/// What a document proves.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum Said {
    /// The wallet has the money.
    Paid(Receipt),
    /// The aggregator has it, and it is not decided.
    TakenOn(Receipt),
    /// The wallet does not have the money, and will not.
    Refused(Refusal),
}

/// A document that says how a payout stands.
#[derive(Clone, Debug, Deserialize)]
pub struct Standing {
    /// Our reference.
    pub reference: String,
    status: String,
    amount: String,
    currency: String,
    operator: String,
    account: String,
    transaction_id: Option<String>,
    code: Option<String>,
}

/// What a document says about a payment.
///
/// # Errors
/// A sentence, where it proves nothing, or is about another payment.
pub fn said(body: &[u8], payment: &Payment) -> Result<Said, String> {
    let standing = Standing::read(body)?;
    standing.is_about(payment)?;
    standing.said()
}

impl Standing {
    /// Reads a document.
    ///
    /// # Errors
    /// It is another one, or not as documented.
    pub fn read(body: &[u8]) -> Result<Self, String> {
        let read = serde_json::from_slice::<Object<Self>>(body);
        let Object(standing) =
            read.map_err(|_| "the aggregator did not say how the payout stands".to_owned())?;
        Ok(standing)
    }

    /// What it says, of whichever payout it is about. "Paid" has the amount.
    ///
    /// # Errors
    /// A sentence, where it proves nothing.
    pub fn said(&self) -> Result<Said, String> {
        let is_name = |id: &str| {
            (1..=TRANSACTION_CHARS_MAX).contains(&id.len())
                && id.bytes().all(|byte| byte.is_ascii_graphic())
        };
        if !self.transaction_id.as_deref().is_none_or(is_name) {
            return Err("the aggregator's transaction_id is none".to_owned());
        }
        let amount_minor = words::amount_minor(&self.amount)
            .ok_or_else(|| "the aggregator's amount is none".to_owned())?;
        let receipt = |amount_minor| Receipt {
            code: self.status.clone(),
            network_id: self.transaction_id.clone(),
            amount_minor,
            facts: taken(),
        };
        let code = self.code.as_deref();
        match (self.status.as_str(), code, code.and_then(codes::refusing)) {
            ("SUCCESS", None, _) => Ok(Said::Paid(receipt(Some(amount_minor)))),
            ("PENDING", None, _) => Ok(Said::TakenOn(receipt(None))),
            ("FAILED", Some(code), Some(meaning)) => {
                Ok(Said::Refused(Refusal { code: code.to_owned(), message: meaning.to_owned() }))
            }
            (status, code, _) => {
                let (status, code) = (codes::shown(status), codes::shown(code.unwrap_or_default()));
                Err(format!("the payout is {status:?} with {code:?} at the aggregator"))
            }
        }
    }

    /// # Errors
    /// It is about another payout than was sent.
    fn is_about(&self, payment: &Payment) -> Result<(), String> {
        let recipient = |name| fields::value(&payment.recipient, name);
        let other = match () {
            () if self.reference != payment.reference => "reference",
            () if self.currency != payment.currency => "currency",
            () if words::amount(payment.amount_minor).as_ref() != Some(&self.amount) => "amount",
            () if self.operator != recipient("mobile_operator") => "operator",
            () if self.account != recipient("mobile_number") => "wallet",
            () => return Ok(()),
        };
        Err(format!("the aggregator answered about another {other} than was sent"))
    }
}

/// What is noted of a payout that the aggregator has taken on.
#[must_use]
pub fn taken() -> Vec<Field> {
    vec![field(TAKEN, "yes")]
}
