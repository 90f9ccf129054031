//! Recalls: instant payments that are to be called off, and what is answered (camt.029.001.09).

use railhead_simulator::answers::malformed;
use railhead_simulator::host;
use railhead_simulator::types::{Answer, Request, State, Transfer};

use crate::payments::{as_xml, ended, is_instant};
use crate::requests::{self, Recall};
use crate::xml::Message;
use crate::{down, error, scenarios, time};

/// The note of a recall that waits for the recipient.
const RECALLED: &str = "recalled";
/// Why a payment is not made that was called off in time.
const CALLED_OFF: &str = "CUST";

/// Takes a recall. What was not made yet is called off; what was made, its recipient is asked for.
#[must_use]
pub fn take(request: &Request) -> Answer {
    let root = requests::root(&request.body, "camt.056.001.08");
    let recall = match root.as_ref().map_err(Clone::clone).and_then(requests::recall) {
        Ok(recall) => recall,
        Err(why) => {
            malformed("recall", &why);
            return error(400, "invalid_message", &why);
        }
    };
    let is_one = |it: &Transfer| !it.account.is_empty() && is_instant(it);
    let found = host::find(&recall.reference).filter(is_one);
    if found.as_ref().is_some_and(|it| host::scenario(&it.account) == scenarios::PROVIDER_DOWN) {
        return down();
    }
    let Some(mut payment) = found.filter(|it| it.amount_minor == recall.cents) else {
        return resolution(&recall, "RJCR", Some("NOOR"));
    };
    match &payment.state {
        State::Pending => {
            payment.state = State::Refused(CALLED_OFF.to_owned());
            ended(&payment, CALLED_OFF);
            host::keep(&payment);
            resolution(&recall, "CNCL", None)
        }
        State::Paid if !payment.noted(RECALLED).is_empty() => {
            error(409, "duplicate_recall", "The payment was recalled before.")
        }
        State::Paid => {
            host::keep(&Transfer::noting(payment, RECALLED, &recall.name));
            resolution(&recall, "PDCR", None)
        }
        State::Returned => resolution(&recall, "RJCR", Some("ARDT")),
        State::Refused(_) | State::Lost | State::Unclear => {
            resolution(&recall, "RJCR", Some("NOOR"))
        }
    }
}

fn resolution(recall: &Recall, word: &str, code: Option<&str>) -> Answer {
    let bank = |message: Message, name| {
        message.open(&[name, "Agt", "FinInstnId"]).put("BICFI", "RAILDEFFXXX").close(3)
    };
    let own = match word {
        "CNCL" => "ACCR",
        other => other,
    };
    let message = Message::new("camt.029.001.09", "RsltnOfInvstgtn")
        .open(&["Assgnmt"])
        .put("Id", &format!("A{}", recall.name));
    let message = bank(bank(message, "Assgnr"), "Assgne");
    let mut message = message
        .put("CreDtTm", &time::written(host::now_ms()))
        .close(1)
        .open(&["Sts"])
        .put("Conf", word)
        .close(1)
        .open(&["CxlDtls", "TxInfAndSts"])
        .put("CxlStsId", &format!("A{}", recall.name))
        .put("OrgnlEndToEndId", &recall.reference)
        .put("TxCxlSts", own);
    if let Some(code) = code {
        message = message.reason("CxlStsRsnInf", code);
    }
    as_xml(&message.done())
}
