//! How a transfer stands, as MTN writes it: in the answer to a question, and in what it tells by
//! itself.

use railhead_rail::document::Document;
use railhead_rail::fields::field;
use railhead_rail::types::{Field, Finding, Receipt, Refusal};

use crate::amount;
use crate::countries;
use crate::reasons;
use crate::settings::Unclear;

/// The fact that MTN has taken a transfer on. That it knows none of it later proves nothing then.
pub const TAKEN: &str = "taken";

/// A document that says how a transfer stands.
#[derive(Clone, Copy, Debug)]
pub struct Standing<'a>(pub &'a Document);

impl Standing<'_> {
    /// Our reference, which a transfer has as its `externalId`.
    #[must_use]
    pub fn reference(&self) -> &str {
        self.0.text("externalId")
    }

    /// The currency, by ISO 4217.
    #[must_use]
    pub fn currency(&self) -> &str {
        self.0.text("currency")
    }

    /// The amount in minor units of the currency, which has to be one that is paid here.
    #[must_use]
    pub fn amount_minor(&self) -> Option<i64> {
        let country = countries::of_currency(self.currency())?;
        amount::read(self.0.text("amount"), country.exponent)
    }

    /// Whether it speaks of this wallet, however it writes the number, or of none.
    #[must_use]
    pub fn is_to(&self, number: &str) -> bool {
        match self.0.get("payee") {
            payee @ Document::Object(_) => {
                let country = countries::of_currency(self.currency());
                let said = country.and_then(|it| it.mobile_number(payee.text("partyId")));
                said.as_deref() == Some(number)
            }
            _ => !self.0.has("payee"),
        }
    }

    /// What it says became of the transfer. "Paid" has the amount.
    ///
    /// # Errors
    /// A sentence, where it proves nothing.
    pub fn finding(&self, unclear: Unclear) -> Result<Finding, String> {
        let status = self.0.text("status");
        let receipt = |amount_minor| Receipt {
            code: status.to_owned(),
            network_id: Some(self.0.text("financialTransactionId").to_owned())
                .filter(|id| !id.is_empty()),
            amount_minor,
            facts: taken(),
        };
        match status {
            "SUCCESSFUL" => {
                let said = self.amount_minor().ok_or("MTN says that it is paid, and no amount")?;
                Ok(Finding::Paid(receipt(Some(said))))
            }
            // CREATED is not documented; MTN's sandbox says it of a transfer before PENDING.
            "PENDING" | "CREATED" => Ok(Finding::Accepted(receipt(None))),
            "FAILED" => {
                let reason = self.reason();
                let meaning = reasons::refusing(reason, unclear).ok_or_else(|| {
                    let reason = reasons::shown(reason);
                    format!("MTN says that it failed for {reason:?}, which proves nothing")
                })?;
                let (code, message) = (reason.to_owned(), meaning.to_owned());
                Ok(Finding::Refused(Refusal { code, message }))
            }
            other => Err(format!("the transfer is {:?} at MTN", reasons::shown(other))),
        }
    }

    /// The reason of a failure: a word, or an object that has it as its code.
    fn reason(&self) -> &str {
        match self.0.get("reason") {
            reason @ Document::Object(_) => reason.text("code"),
            _ => self.0.text("reason"),
        }
    }
}

/// What is noted of a transfer that MTN has taken on.
#[must_use]
pub fn taken() -> Vec<Field> {
    vec![field(TAKEN, "yes")]
}
