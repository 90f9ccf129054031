//! What becomes of a wire, of questions about it, and of asking for it back.
//!
//! The book holds wires by their UETR, and under `imad/<IMAD>` whose wire has used an IMAD.

use base64::Engine as _;
use base64::prelude::BASE64_STANDARD as BASE64;
use railhead_simulator::answers::{answer, unavailable};
use railhead_simulator::host;
use railhead_simulator::types::{Answer, Event, Message, Obstacle, Place, State, Transfer};

use crate::orders::{self, About, Fault, Wire};
use crate::reports::{self, CALLED_OFF, CREATED_AT, FROM, IMAD, NAME, TO};

/// "The routing number is not permissible to receive": what Fedwire rejects wires with here.
const REFUSAL: &str = "E433";
/// "Account closed": why money comes back.
const RETURNED: &str = "AC04";
/// "Following cancellation request": the same where it was asked back.
const ASKED_BACK: &str = "FOCR";
/// "Duplicate": a UETR that was used before.
const DUPLICATE: &str = "AM05";
/// An IMAD that was used before: what Fedwire rejects a message with here, whatever is in it.
const USED: &str = "X001";

/// The note of whose wire used an IMAD.
const UETR: &str = "uetr";

/// The key that messages are signed with.
const KEY: &str = "gateway";
/// Where they go, below the rail's notice address.
const PLACE: &str = "/messages";

/// What the gateway does with a wire once it has written it down.
enum Reply {
    /// Answers how it stands.
    Status,
    /// Answers that it has it.
    Taken,
    /// Does not understand it.
    NotUnderstood,
    /// Answers about another one.
    Another,
    /// It is not answered.
    Silence,
}

/// Takes a wire.
///
/// # Errors
/// No gateway would understand it.
pub fn take(body: &[u8]) -> Result<Answer, Fault> {
    let order = orders::wire(body)?;
    let mut wire = host::find(&order.uetr).unwrap_or_else(|| noted(&order));
    if wire.scenario == "provider_down" {
        // Nothing has arrived. What it would have been is remembered all the same, for a question
        // to find the gateway as far down.
        host::keep(&wire);
        return Ok(unavailable());
    }
    wire.received += 1;
    if wire.state != State::Lost {
        host::keep(&wire);
        return Ok(xml(409, &reports::said(&wire, "RJCT", Some(DUPLICATE))));
    }
    if wire.scenario == "never_received" && wire.received == 1 {
        host::keep(&wire);
        return Ok(Answer::NotReceived);
    }
    // What is sent again on another day has another IMAD.
    let mut wire = wire.noting(IMAD, &order.imad).noting(CREATED_AT, &order.created_at);
    if !first_use(&order) {
        // The gateway knows no such wire afterwards, either.
        return Ok(xml(200, &reports::said(&wire, "RJCT", Some(USED))));
    }
    let reply = receive(&mut wire);
    host::keep(&wire);
    Ok(match reply {
        Reply::Silence => Answer::Silence,
        Reply::Status => xml(200, &reports::status(&wire)),
        Reply::Taken => xml(202, &reports::said(&wire, "PDNG", None)),
        Reply::NotUnderstood => {
            xml(400, &reports::rejection(&order.imad, "E990", "The message is not understood"))
        }
        Reply::Another => {
            let another = "8a562c67-ca16-48ba-b074-65581be6f011";
            xml(200, &reports::status(&wire).replace(&wire.reference, another))
        }
    })
}

/// Whether no other wire has used the IMAD; this one has from now on. The book holds it as a
/// transfer of nothing.
fn first_use(order: &Wire) -> bool {
    let name = format!("imad/{}", order.imad);
    if let Some(used) = host::find(&name) {
        return used.noted(UETR) == order.uetr;
    }
    let page = Transfer {
        reference: name,
        amount_minor: 0,
        account: String::new(),
        state: State::Unclear,
        received: 0,
        executed: 0,
        scenario: String::new(),
        notes: Vec::new(),
    };
    host::keep(&page.noting(UETR, &order.uetr));
    true
}

fn noted(order: &Wire) -> Transfer {
    Transfer::new(&order.uetr, order.amount_minor, &order.account)
        .noting(FROM, &order.from)
        .noting(TO, &order.to)
        .noting(NAME, &order.name)
}

/// What becomes of a wire that has arrived, and what the gateway tells of it by itself.
fn receive(wire: &mut Transfer) -> Reply {
    let scenario = wire.scenario.clone();
    let refused = |code: &str| State::Refused(code.to_owned());
    match scenario.as_str() {
        "processing" | "recall_accepted" | "recall_refused" => wire.state = State::Pending,
        "failed" | "timeout_then_failed" | "rejected_later" => wire.state = refused(REFUSAL),
        "rejected_ac01" => wire.state = refused("AC01"),
        "rejected_ac04" => wire.state = refused("AC04"),
        "message_rejected" => wire.state = refused("E990"),
        "timeout_then_unknown" => wire.state = State::Unclear,
        _ => wire.pay(),
    }
    match scenario.as_str() {
        "message_rejected" => Reply::NotUnderstood,
        "answered_for_another" => Reply::Another,
        it if it.starts_with("timeout_") => Reply::Silence,
        "rejected_later" | "settled_later" => {
            host::send(&signed(wire, &reports::status(wire)));
            Reply::Taken
        }
        "duplicate_callback" => {
            // Settled, an older "pending", and settled once more.
            let settled = signed(wire, &reports::status(wire));
            host::send(&settled);
            host::send(&signed(wire, &reports::said(wire, "PDNG", None)));
            host::send(&settled);
            Reply::Taken
        }
        "told_by_a_stranger" => {
            let rejected = reports::said(wire, "RJCT", Some(REFUSAL));
            let headers = signed(wire, &reports::status(wire)).headers;
            host::send(&Message { headers, ..signed(wire, &rejected) });
            Reply::Taken
        }
        "returned" => {
            let back = reports::returned(wire, wire.amount_minor, RETURNED);
            host::send(&signed(wire, &back));
            wire.state = State::Returned;
            Reply::Status
        }
        "returned_less" => {
            let part = (wire.amount_minor / 2).max(1);
            host::send(&signed(wire, &reports::returned(wire, part, RETURNED)));
            Reply::Status
        }
        _ => Reply::Status,
    }
}

/// Answers how a wire stands. It is known by its UETR, whatever IMAD the question names.
///
/// # Errors
/// No gateway would understand the question.
pub fn stand(body: &[u8]) -> Result<Answer, Fault> {
    let About { id, uetr, .. } = orders::question(body)?;
    let found = host::find(&uetr);
    if found.as_ref().is_some_and(|wire| wire.scenario == "provider_down") {
        return Ok(unavailable());
    }
    Ok(match found.filter(|wire| wire.state != State::Lost) {
        Some(Transfer { state: State::Unclear, .. }) => xml(500, ""),
        Some(wire) => xml(200, &reports::status(&wire)),
        None => not_known(&id),
    })
}

/// Takes a request to send a wire back.
///
/// # Errors
/// No gateway would understand it.
pub fn recall(body: &[u8]) -> Result<Answer, Fault> {
    let About { id, uetr, amount_minor } = orders::recall(body)?;
    let found = host::find(&uetr).filter(|wire| wire.state != State::Lost);
    let Some(mut wire) = found else { return Ok(not_known(&id)) };
    if wire.amount_minor != amount_minor {
        let why = "the amount is not the wire's".to_owned();
        return Err(Fault { about: id, why });
    }
    let scenario = wire.scenario.clone();
    let taken = |wire: &Transfer| xml(200, &reports::acknowledgement(wire, &id));
    let resolution = |wire: &Transfer, word: &str| reports::resolution(wire, &id, word);
    Ok(match (&wire.state, scenario.as_str()) {
        // It has gone out meanwhile and settles: the recipient's bank decides.
        (State::Pending, "recall_accepted" | "recall_refused") => {
            let agrees = scenario == "recall_accepted";
            wire.pay();
            host::send(&signed(&wire, &reports::status(&wire)));
            let word = if agrees { "ACCR" } else { "RJCR" };
            host::send(&signed(&wire, &resolution(&wire, word)));
            if agrees {
                let back = reports::returned(&wire, wire.amount_minor, ASKED_BACK);
                host::send(&signed(&wire, &back));
                wire.state = State::Returned;
            }
            host::keep(&wire);
            taken(&wire)
        }
        // It has not gone out yet: the gateway itself calls it off.
        (State::Pending, _) => {
            wire.state = State::Refused(CALLED_OFF.to_owned());
            host::keep(&wire);
            xml(200, &reports::status(&wire))
        }
        (State::Paid, _) => {
            host::send(&signed(&wire, &resolution(&wire, "PDCR")));
            taken(&wire)
        }
        _ => xml(200, &resolution(&wire, "RJCR")),
    })
}

/// Something happens to a wire.
///
/// # Errors
/// There is none of this reference, or it does not happen to it as it stands.
pub fn tell(reference: &str, event: Event) -> Result<Transfer, Obstacle> {
    let is_wire = |it: &Transfer| !it.account.is_empty();
    let mut wire = host::find(reference).filter(is_wire).ok_or(Obstacle::Unknown)?;
    let body = match (event, &wire.state) {
        (Event::Settle, State::Pending | State::Unclear) => {
            wire.pay();
            reports::status(&wire)
        }
        (Event::Fail, State::Pending | State::Unclear) => {
            wire.state = State::Refused(REFUSAL.to_owned());
            reports::status(&wire)
        }
        (Event::Return, State::Paid) => {
            wire.state = State::Returned;
            reports::returned(&wire, wire.amount_minor, RETURNED)
        }
        _ => return Err(Obstacle::Impossible),
    };
    host::keep(&wire);
    host::send(&signed(&wire, &body));
    Ok(wire)
}

fn not_known(question: &str) -> Answer {
    xml(404, &reports::rejection(question, "NotFound", "There is no wire of this UETR"))
}

fn xml(status: u16, body: &str) -> Answer {
    answer(status, "application/xml; charset=utf-8", body)
}

/// A message to the rail, with the gateway's signature.
fn signed(wire: &Transfer, body: &str) -> Message {
    let signature = BASE64.encode(host::sign(KEY, body.as_bytes()));
    let headers = vec![
        ("content-type".to_owned(), "application/xml; charset=utf-8".to_owned()),
        ("x-signature".to_owned(), signature),
    ];
    Message { headers, ..wire.message(Place::Notice(PLACE.to_owned()), body) }
}
