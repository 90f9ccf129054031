//! Instant payments: made when they arrive, and told of by pacs.002.001.10.

use railhead_simulator::CREDENTIAL;
use railhead_simulator::answers::{answer, malformed};
use railhead_simulator::host;
use railhead_simulator::types::{
    Answer, Event, Message as Sent, Obstacle, Place, Request, State, Transfer,
};
use serde_json::json;

use crate::requests::{self, Instant, PAYMENT};
use crate::scenarios::{self, PROVIDER_DOWN, REJECTION, RETURN};
use crate::xml::Message;
use crate::{XML, as_json, down, error, files, time};

/// Where the bank speaks by itself.
const NOTICES: &str = "/sepa/notices";
/// Notes of an instant payment: its message, and its transaction.
const MESSAGE: &str = "message";
const TRANSACTION: &str = "transaction";

/// Makes a payment.
#[must_use]
pub fn take(request: &Request) -> Answer {
    let root = requests::root(&request.body, PAYMENT);
    let named = root.as_ref().ok().and_then(|root| root.first("EndToEndId"));
    let order = match root.as_ref().map_err(Clone::clone).and_then(requests::payment) {
        Ok(order) => order,
        Err(why) => {
            malformed("payment", &why);
            let body = json!({ "code": "invalid_message", "message": why, "end_to_end_id": named });
            return as_json(400, &body);
        }
    };
    let mut payment = host::find(&order.reference).unwrap_or_else(|| new(&order));
    if host::scenario(&order.iban) == PROVIDER_DOWN {
        // Nothing has arrived. What it would have been about is remembered all the same, for a
        // question to find the bank as far down.
        host::keep(&payment);
        return down();
    }
    payment.received += 1;
    if payment.state != State::Lost {
        host::keep(&payment);
        return as_xml(&status(&payment, "RJCT", Some("AM05")));
    }
    if payment.scenario == "never_received" && payment.received == 1 {
        host::keep(&payment);
        return Answer::NotReceived;
    }
    let answer = make(&mut payment);
    host::keep(&payment);
    answer
}

fn new(order: &Instant) -> Transfer {
    Transfer::new(&order.reference, order.cents, &order.iban)
        .noting(MESSAGE, &order.message)
        .noting(TRANSACTION, &order.transaction)
        .noting("name", &order.name)
}

fn make(payment: &mut Transfer) -> Answer {
    let scenario = payment.scenario.clone();
    match scenario.as_str() {
        "timeout_then_unknown" => payment.state = State::Unclear,
        _ => scenarios::carry_out(payment),
    }
    match (scenario.as_str(), &payment.state) {
        (it, _) if it.starts_with("timeout_") => Answer::Silence,
        ("delayed" | "duplicate_callback", _) => {
            // Settled, an older "pending", and the same once more.
            let settled = notice(payment, &status(payment, "ACSC", None));
            host::send(&settled);
            if scenario == "duplicate_callback" {
                host::send(&notice(payment, &status(payment, "PDNG", None)));
                host::send(&settled);
            }
            as_xml(&status(payment, "ACSP", None))
        }
        (_, State::Refused(code)) => as_xml(&status(payment, "RJCT", Some(code))),
        (_, State::Pending) => as_xml(&status(payment, "PDNG", None)),
        (it, _) => {
            let told = status(payment, "ACSC", None);
            if let Some(code) = scenarios::returning(it) {
                payment.state = State::Returned;
                host::send(&notice(payment, &returned(payment, &code)));
            }
            as_xml(&told)
        }
    }
}

/// Answers how a payment stands.
#[must_use]
pub fn ask(request: &Request) -> Answer {
    let root = requests::root(&request.body, "pacs.028.001.03");
    let reference = match root.as_ref().map_err(Clone::clone).and_then(requests::question) {
        Ok(reference) => reference,
        Err(why) => {
            malformed("question about a payment", &why);
            return error(400, "invalid_message", &why);
        }
    };
    let found = host::find(&reference);
    let account = found.as_ref().map_or("", |payment| payment.account.as_str());
    if host::scenario(account) == PROVIDER_DOWN {
        return down();
    }
    let Some(payment) = found.filter(|it| it.state != State::Lost) else {
        let message = "There is no such payment.";
        let body = json!({ "code": "not_found", "message": message, "end_to_end_id": reference });
        return as_json(404, &body);
    };
    match &payment.state {
        State::Unclear | State::Lost => error(500, "internal", "The bank does not know."),
        State::Pending => as_xml(&status(&payment, "PDNG", None)),
        // A payment that came back was made: the return is another one.
        State::Paid | State::Returned => as_xml(&status(&payment, "ACSC", None)),
        State::Refused(code) => as_xml(&status(&payment, "RJCT", Some(code))),
    }
}

/// How a payment stands.
fn status(payment: &Transfer, word: &str, code: Option<&str>) -> String {
    let now = time::written(host::now_ms());
    let mut message = Message::new("pacs.002.001.10", "FIToFIPmtStsRpt")
        .open(&["GrpHdr"])
        .put("MsgId", &format!("S{}", payment.reference))
        .put("CreDtTm", &now)
        .close(1)
        .open(&["OrgnlGrpInfAndSts"])
        .put("OrgnlMsgId", payment.noted(MESSAGE))
        .put("OrgnlMsgNmId", PAYMENT)
        .close(1)
        .open(&["TxInfAndSts"])
        .put("OrgnlInstrId", &payment.reference)
        .put("OrgnlEndToEndId", &payment.reference)
        .put("OrgnlTxId", payment.noted(TRANSACTION))
        .put("TxSts", word);
    if let Some(code) = code {
        message = message.reason("StsRsnInf", code);
    }
    message
        .put("ClrSysRef", &format!("CS{}", payment.reference))
        .open(&["OrgnlTxRef"])
        .euros("IntrBkSttlmAmt", payment.amount_minor)
        .done()
}

/// A payment came back.
pub(crate) fn returned(payment: &Transfer, code: &str) -> String {
    let now_ms = host::now_ms();
    Message::new("pacs.004.001.09", "PmtRtr")
        .open(&["GrpHdr"])
        .put("MsgId", &format!("R{}", payment.reference))
        .put("CreDtTm", &time::written(now_ms))
        .put("NbOfTxs", "1")
        .open(&["SttlmInf"])
        .put("SttlmMtd", "CLRG")
        .close(2)
        .open(&["TxInf"])
        .put("RtrId", &format!("R{}", payment.reference))
        .put("OrgnlEndToEndId", &payment.reference)
        .put_some("OrgnlTxId", payment.noted(TRANSACTION))
        .euros("OrgnlIntrBkSttlmAmt", payment.amount_minor)
        .euros("RtrdIntrBkSttlmAmt", payment.amount_minor)
        .put("IntrBkSttlmDt", &time::date(now_ms))
        .reason("RtrRsnInf", code)
        .done()
}

/// The bank tells something by itself.
pub(crate) fn notice(payment: &Transfer, body: &str) -> Sent {
    let header = |name: &str, value: &str| (name.to_owned(), value.to_owned());
    let bearer = format!("Bearer {CREDENTIAL}");
    let headers = vec![header("content-type", XML), header("authorization", &bearer)];
    Sent { headers, ..payment.message(Place::Notice(NOTICES.to_owned()), body) }
}

pub(crate) fn as_xml(body: &str) -> Answer {
    answer(200, XML, body)
}

/// Whether a payment came by itself, and not in a file.
pub(crate) fn is_instant(payment: &Transfer) -> bool {
    payment.noted(files::FILE).is_empty()
}

/// Something happens to a payment.
///
/// # Errors
/// There is none of this reference, or it does not happen to it as it stands.
pub fn tell(reference: &str, event: Event) -> Result<Transfer, Obstacle> {
    let mut payment =
        host::find(reference).filter(|it| !it.account.is_empty()).ok_or(Obstacle::Unknown)?;
    match (event, &payment.state) {
        (Event::Settle, State::Pending | State::Unclear) => payment.pay(),
        (Event::Fail, State::Pending | State::Unclear) => {
            payment.state = State::Refused(REJECTION.to_owned());
        }
        (Event::Return, State::Paid) => payment.state = State::Returned,
        _ => return Err(Obstacle::Impossible),
    }
    ended(&payment, RETURN);
    host::keep(&payment);
    Ok(payment)
}

/// Tells what has become of a payment that was open, or that came back for this reason.
pub(crate) fn ended(payment: &Transfer, reason: &str) {
    match &payment.state {
        State::Returned if is_instant(payment) => {
            host::send(&notice(payment, &returned(payment, reason)));
        }
        State::Returned => {
            let mut feed = crate::incoming::Feed::open();
            crate::reports::book_returns(&[(payment.clone(), reason.to_owned())], &mut feed);
            feed.close();
        }
        State::Refused(code) if is_instant(payment) => {
            host::send(&notice(payment, &status(payment, "RJCT", Some(code))));
        }
        _ if is_instant(payment) => {
            host::send(&notice(payment, &status(payment, "ACSC", None)));
        }
        _ => files::report_at_last(payment),
    }
}
