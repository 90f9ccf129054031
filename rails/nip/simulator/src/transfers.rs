//! What becomes of a transfer, and what the network says of it by itself.

use railhead_simulator::host;
use railhead_simulator::types::{Event, Message, Obstacle, Place, State, Transfer};

use crate::message::document;

/// "Do not honour": what refused transfers are refused with.
const REFUSAL: &str = "05";

/// What the network does with a transfer once it has written it down.
pub enum Reply {
    /// Answers with this code.
    Code(&'static str),
    /// It never came.
    NotReceived,
    /// It came, and is not answered.
    Silence,
}

/// What becomes of a transfer that arrives. A SessionID that was used before is a duplicate.
pub fn receive(transfer: &mut Transfer) -> Reply {
    let is_first = transfer.received == 0;
    transfer.received += 1;
    if !is_first {
        let was_lost = transfer.scenario == "never_received" && transfer.state == State::Lost;
        return match was_lost {
            true => paid(transfer),
            false => Reply::Code("94"),
        };
    }
    match transfer.scenario.as_str() {
        "never_received" => return Reply::NotReceived,
        "processing" => {
            transfer.state = State::Pending;
            return Reply::Code("09");
        }
        "failed" | "timeout_then_failed" => transfer.state = State::Refused(REFUSAL.to_owned()),
        "timeout_then_unknown" => transfer.state = State::Unclear,
        _ => transfer.pay(),
    }
    match transfer.scenario.as_str() {
        "failed" => Reply::Code(REFUSAL),
        "duplicate_callback" => Reply::Code("09"),
        "returned" => {
            transfer.state = State::Returned;
            Reply::Code("00")
        }
        scenario if scenario.starts_with("timeout_") => Reply::Silence,
        _ => Reply::Code("00"),
    }
}

fn paid(transfer: &mut Transfer) -> Reply {
    transfer.pay();
    Reply::Code("00")
}

/// What the network sends by itself once a transfer has arrived.
pub fn speak(transfer: &Transfer) {
    if transfer.received != 1 {
        return;
    }
    match transfer.scenario.as_str() {
        "returned" => host::send(&returned_funds(transfer)),
        // Paid, then an older "in progress", then paid again.
        "duplicate_callback" => {
            for code in ["00", "09", "00"] {
                host::send(&status(transfer, code));
            }
        }
        _ => {}
    }
}

/// Something happens to a transfer.
///
/// # Errors
/// There is none of this reference, or it does not happen to it as it stands.
pub fn tell(reference: &str, event: Event) -> Result<Transfer, Obstacle> {
    let mut transfer = host::find(reference).ok_or(Obstacle::Unknown)?;
    match (event, &transfer.state) {
        (Event::Settle, State::Pending | State::Unclear) => transfer.pay(),
        (Event::Fail, State::Pending | State::Unclear) => {
            transfer.state = State::Refused(REFUSAL.to_owned());
        }
        (Event::Return, State::Paid) => {
            transfer.state = State::Returned;
            host::send(&returned_funds(&transfer));
        }
        _ => return Err(Obstacle::Impossible),
    }
    host::keep(&transfer);
    Ok(transfer)
}

/// The recipient's bank sends a transfer back, as a transfer of its own.
fn returned_funds(transfer: &Transfer) -> Message {
    let amount = format!("{}.{:02}", transfer.amount_minor / 100, transfer.amount_minor % 100);
    let seconds = host::now_ms() / 1000;
    // The tail of the first SessionID makes the bank's own one unique enough for a simulation.
    let session = format!("000013{:012}{}", seconds % 1_000_000_000_000, &transfer.reference[18..]);
    let body = document(
        "FTSingleCreditRequest",
        &[
            ("SessionID", &session),
            ("DestinationInstitutionCode", &transfer.reference[..6]),
            ("OriginatorAccountNumber", &transfer.account),
            ("Narration", "Account closed"),
            ("PaymentReference", &format!("RVSL/{}", transfer.reference)),
            ("Amount", &amount),
        ],
    );
    transfer.message(Place::Notice("/nip/fundtransfersingleitem_dc".to_owned()), &body)
}

fn status(transfer: &Transfer, code: &str) -> Message {
    let elements = [("SessionID", transfer.reference.as_str()), ("ResponseCode", code)];
    let body = document("TSQuerySingleResponse", &elements);
    transfer.message(Place::Notice("/nip/txnstatusresponse".to_owned()), &body)
}

#[cfg(test)]
mod tests {
    use railhead_simulator::CREDENTIAL;
    use railhead_simulator::host::double::{self, Host};
    use railhead_simulator::types::{Answer, Request};

    use super::*;

    const SESSION: &str = "999998261122000000000000000001";

    fn send(path: &str, body: String) -> (u16, String) {
        let request = Request {
            method: "POST".to_owned(),
            path: path.to_owned(),
            query: Vec::new(),
            headers: vec![("authorization".to_owned(), format!("Bearer {CREDENTIAL}"))],
            body: body.into_bytes(),
        };
        match crate::handle(&request) {
            Answer::Response(it) => (it.status, String::from_utf8(it.body).expect("a text")),
            other => panic!("{other:?}"),
        }
    }

    fn transfer(amount: &str) -> (u16, String) {
        let body = document(
            "FTSingleCreditRequest",
            &[
                ("SessionID", SESSION),
                ("NameEnquiryRef", SESSION),
                ("DestinationInstitutionCode", "000013"),
                ("ChannelCode", "7"),
                ("BeneficiaryAccountName", "ADA OBI"),
                ("BeneficiaryAccountNumber", "0123456785"),
                ("OriginatorAccountName", "ACME"),
                ("OriginatorAccountNumber", "0000000000"),
                ("Narration", "Invoice"),
                ("PaymentReference", "po_1"),
                ("Amount", amount),
            ],
        );
        send("/nip/fundtransfersingleitem_dc", body)
    }

    #[test]
    fn a_transfer_is_made_once() {
        double::install(Host { scenario: "paid".to_owned(), ..Host::default() });
        let (status, answer) = transfer("1500.00");
        assert_eq!(status, 200);
        assert!(answer.contains("<ResponseCode>00</ResponseCode>"), "{answer}");
        let (_, again) = transfer("1500.00");
        assert!(again.contains("<ResponseCode>94</ResponseCode>"), "{again}");
        let kept = double::with(|host| host.book[SESSION].clone());
        assert_eq!((kept.executed, kept.received, kept.amount_minor), (1, 2, 150_000));
        assert_eq!(tell(SESSION, Event::Settle), Err(Obstacle::Impossible));
        assert_eq!(tell(SESSION, Event::Return).expect("returned").state, State::Returned);
        double::with(|host| {
            let sent = String::from_utf8(host.sent[0].body.clone()).expect("a text");
            assert!(sent.contains(&format!("RVSL/{SESSION}")), "{sent}");
        });
    }

    #[test]
    fn what_no_gateway_understands_is_refused_loudly() {
        double::install(Host::default());
        for amount in ["1500", "15.0", "1,500.00", "0.00", "-1.00"] {
            let (status, answer) = transfer(amount);
            assert_eq!(status, 400, "{amount}: {answer}");
        }
        double::with(|host| {
            assert_eq!(host.errors.len(), 5);
            assert!(host.book.is_empty());
        });
    }
}
