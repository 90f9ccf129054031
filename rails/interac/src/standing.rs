//! How a transfer stands, and what that proves.

use railhead_rail::fields::field;
use railhead_rail::types::{Field, Finding, Receipt, Refusal};

use crate::amount;
use crate::codes::{self, Class, FAILED};
use crate::messages::Standing;

/// The fact that merchants are shown: what the recipient is asked.
pub const QUESTION: &str = "question";
/// What says that a recipient has to answer the transfer's own question.
const TO_BE_ANSWERED: &str = "PAYMENT_LEVEL";
/// Most characters of the network's own name for a transfer.
const NETWORK_ID_MAX: usize = 35;

/// What a standing proves by itself: of which transfer and of how much, it says, and whoever asked
/// compares. No end is believed of a transfer whose amount is not said. `question` is what the
/// recipient is asked, where that is known.
#[must_use]
pub fn finding(standing: &Standing, question: Option<&str>) -> Finding {
    let word = standing.payment_status.as_deref().unwrap_or_default();
    let amount_minor = cents(standing);
    if standing.amount.is_some() && amount_minor.is_none() {
        return Finding::Unknown("the transfer's amount is none of Canadian dollars".to_owned());
    }
    let receipt = || Receipt {
        code: word.to_owned(),
        network_id: network_id(standing),
        amount_minor,
        facts: facts(standing, question),
    };
    match codes::status(word) {
        Class::Waiting => Finding::Accepted(receipt()),
        _ if amount_minor.is_none() => {
            let word = codes::plain(word);
            Finding::Unknown(format!("the participant says {word:?}, and not of how much"))
        }
        Class::Paid => Finding::Paid(receipt()),
        Class::Ended => Finding::Refused(refusal(word)),
        Class::Unclear => unclear(word, standing),
    }
}

/// A refusal by this code.
#[must_use]
pub fn refusal(code: &str) -> Refusal {
    Refusal { code: code.to_owned(), message: codes::meaning(code).to_owned() }
}

/// Of a transfer that failed, a listed code says that it is over.
fn unclear(word: &str, standing: &Standing) -> Finding {
    let code = standing.failure_code.as_deref().unwrap_or_default();
    if word == FAILED && codes::refusal(code) == Class::Ended {
        return Finding::Refused(refusal(code));
    }
    let (word, code) = (codes::plain(word), codes::plain(code));
    Finding::Unknown(format!("the transfer is {word:?} at the participant, with {code:?}"))
}

/// How much it is, where that is said in Canadian dollars.
fn cents(standing: &Standing) -> Option<i64> {
    let amount = standing.amount.as_ref().map(|it| &it.0)?;
    (amount.currency == "CAD").then(|| amount::cents(&amount.amount)).flatten()
}

fn network_id(standing: &Standing) -> Option<String> {
    let id = standing.clearing_system_reference.as_deref()?;
    let is_name = (1..=NETWORK_ID_MAX).contains(&id.len())
        && id.bytes().all(|byte| byte.is_ascii_alphanumeric() || byte == b'-');
    is_name.then(|| id.to_owned())
}

fn facts(standing: &Standing, question: Option<&str>) -> Vec<Field> {
    let is_asked = standing.authentication_type.as_deref() == Some(TO_BE_ANSWERED);
    question.filter(|_| is_asked).map(|question| field(QUESTION, question)).into_iter().collect()
}
