//! A simulated NIBSS Instant Payments gateway.

use axum::Router;
use axum::body::Bytes;
use axum::extract::State as From;
use axum::middleware::from_fn;
use axum::response::{IntoResponse as _, Response};
use axum::routing::post;
use http::{HeaderMap, StatusCode, header};

use crate::clock::Moment;
use crate::wasm::egress::HangUp;

use super::transfers::{State, Transfer};
use super::{OwnMessage, Simulator, authenticate, hang_up};

/// "Do not honour": what refused transfers are refused with.
pub(super) const REFUSAL: &str = "05";

const FIRST_NAMES: [&str; 10] =
    ["ADA", "BOLA", "CHIDI", "DAYO", "EMEKA", "FUNKE", "GARBA", "HALIMA", "IFEANYI", "JUMOKE"];
const LAST_NAMES: [&str; 10] =
    ["OBI", "ADEYEMI", "OKAFOR", "BELLO", "NWOSU", "IBRAHIM", "EZE", "LAWAL", "MUSA", "OJO"];

pub(super) fn router(simulator: Simulator) -> Router {
    Router::new()
        .route("/nip/nameenquirysingleitem", post(name_enquiry))
        .route("/nip/fundtransfersingleitem_dc", post(fund_transfer))
        .route("/nip/txnstatusquerysingleitem", post(status_query))
        .layer(from_fn(authenticate))
        .with_state(simulator)
}

/// The elements of a message, in order of appearance.
struct Message(Vec<(String, String)>);

impl Message {
    /// Reads a message whose outermost element is `root`.
    fn read(body: &[u8], root: &str) -> Result<Self, String> {
        let text = std::str::from_utf8(body).map_err(|_| "not UTF-8".to_owned())?;
        let document = roxmltree::Document::parse(text).map_err(|cause| cause.to_string())?;
        let outermost = document.root_element();
        if outermost.tag_name().name() != root {
            return Err(format!("{root} was expected, not {}", outermost.tag_name().name()));
        }
        let children = outermost.children().filter(roxmltree::Node::is_element);
        let elements = children
            .map(|node| (node.tag_name().name().to_owned(), node.text().unwrap_or("").to_owned()));
        Ok(Self(elements.collect()))
    }

    fn get(&self, name: &str) -> &str {
        self.0.iter().find(|(known, _)| known == name).map_or("", |(_, value)| value)
    }

    /// An element that must be there and have this many digits.
    fn digits(&self, name: &str, count: usize) -> Result<&str, String> {
        let value = self.get(name);
        let is_right = value.len() == count && value.bytes().all(|byte| byte.is_ascii_digit());
        is_right.then_some(value).ok_or_else(|| format!("{name} must be {count} digits: {value:?}"))
    }

    /// An element that must not be empty, and not longer than this.
    fn text(&self, name: &str, most: usize) -> Result<&str, String> {
        let value = self.get(name);
        let length = value.chars().count();
        (1..=most)
            .contains(&length)
            .then_some(value)
            .ok_or_else(|| format!("{name} must have 1 to {most} characters, not {length}"))
    }

    /// The amount in kobo: naira with exactly two decimals.
    fn amount(&self) -> Result<i64, String> {
        let value = self.get("Amount");
        let wrong = || format!("Amount must be naira with two decimals: {value:?}");
        let (naira, kobo) = value.split_once('.').ok_or_else(wrong)?;
        let digits = |part: &str| !part.is_empty() && part.bytes().all(|b| b.is_ascii_digit());
        if !digits(naira) || !digits(kobo) || kobo.len() != 2 {
            return Err(wrong());
        }
        format!("{naira}{kobo}").parse().ok().filter(|&amount| amount > 0).ok_or_else(wrong)
    }
}

/// Writes an element with its text escaped.
fn element(name: &str, value: &str) -> String {
    let value = value.replace('&', "&amp;").replace('<', "&lt;").replace('>', "&gt;");
    format!("<{name}>{value}</{name}>")
}

fn document(root: &str, elements: &[(&str, &str)]) -> String {
    let inner: String = elements.iter().map(|(name, value)| element(name, value)).collect();
    format!(
        "<?xml version=\"1.0\" encoding=\"UTF-8\"?>\
         <ns2:{root} xmlns:ns2=\"http://core.nip.nibss/\">{inner}</ns2:{root}>"
    )
}

fn answer(body: String) -> Response {
    ([(header::CONTENT_TYPE, "application/xml; charset=utf-8")], body).into_response()
}

/// Refuses a message that no gateway would understand, loudly.
fn malformed(call: &str, why: &str) -> Response {
    tracing::error!(call, why, "the simulator was sent a malformed message");
    (StatusCode::BAD_REQUEST, format!("malformed {call}: {why}")).into_response()
}

fn unavailable() -> Response {
    (StatusCode::SERVICE_UNAVAILABLE, "the gateway is down").into_response()
}

async fn name_enquiry(
    From(simulator): From<Simulator>,
    headers: HeaderMap,
    body: Bytes,
) -> Response {
    let message = match Message::read(&body, "NESingleRequest") {
        Ok(message) => message,
        Err(why) => return malformed("name enquiry", &why),
    };
    let read = || {
        let session = message.digits("SessionID", 30)?;
        let institution = message.digits("DestinationInstitutionCode", 6)?;
        let account = message.digits("AccountNumber", 10)?;
        message.text("ChannelCode", 2)?;
        Ok::<_, String>((session, institution, account))
    };
    let (session, institution, account) = match read() {
        Ok(fields) => fields,
        Err(why) => return malformed("name enquiry", &why),
    };
    let scenario = simulator.scenario(&headers, account);
    if scenario == "provider_down" {
        return unavailable();
    }
    let is_known = scenario != "unresolvable";
    let name = if is_known { name_of(account) } else { String::new() };
    let bvn = if is_known { format!("222{}", &account[2..]) } else { String::new() };
    answer(document(
        "NESingleResponse",
        &[
            ("SessionID", session),
            ("DestinationInstitutionCode", institution),
            ("ChannelCode", message.get("ChannelCode")),
            ("AccountNumber", account),
            ("AccountName", &name),
            ("BankVerificationNumber", &bvn),
            ("KYCLevel", "3"),
            ("ResponseCode", if is_known { "00" } else { "07" }),
        ],
    ))
}

/// The name on an account: always the same one.
fn name_of(account: &str) -> String {
    let digit = |index: usize| usize::from(account.as_bytes()[index] - b'0');
    format!("{} {}", FIRST_NAMES[digit(7)], LAST_NAMES[digit(8)])
}

/// What the network does with a transfer after it has recorded it.
enum Reply {
    Code(String),
    HangUp(HangUp),
}

async fn fund_transfer(
    From(simulator): From<Simulator>,
    headers: HeaderMap,
    body: Bytes,
) -> Response {
    let message = match Message::read(&body, "FTSingleCreditRequest") {
        Ok(message) => message,
        Err(why) => return malformed("transfer", &why),
    };
    let read = || {
        let session = message.digits("SessionID", 30)?;
        message.digits("NameEnquiryRef", 30)?;
        message.digits("DestinationInstitutionCode", 6)?;
        message.digits("OriginatorAccountNumber", 10)?;
        message.text("BeneficiaryAccountName", 140)?;
        message.text("OriginatorAccountName", 140)?;
        message.text("PaymentReference", 100)?;
        message.text("ChannelCode", 2)?;
        if message.get("Narration").chars().count() > 100 {
            return Err("Narration has more than 100 characters".to_owned());
        }
        let account = message.digits("BeneficiaryAccountNumber", 10)?;
        Ok((session, account, message.amount()?))
    };
    let (session, account, amount) = match read() {
        Ok(fields) => fields,
        Err(why) => return malformed("transfer", &why),
    };
    let scenario = simulator.scenario(&headers, account);
    if scenario == "provider_down" {
        return unavailable();
    }
    let recorded = simulator.0.transfers.change(session, |found| {
        let transfer = found.get_or_insert_with(|| Transfer {
            reference: session.to_owned(),
            amount_minor: amount,
            account: account.to_owned(),
            state: State::Lost,
            received: 0,
            executed: 0,
            scenario: scenario.clone(),
            tell_at: None,
        });
        let reply = receive(transfer);
        (reply, transfer.clone())
    });
    let (reply, transfer) = match recorded.await {
        Ok(recorded) => recorded,
        Err(cause) => {
            tracing::error!(%cause, "the simulator cannot record a transfer");
            return unavailable();
        }
    };
    tell(&simulator, &transfer);
    match reply {
        Reply::HangUp(how) => hang_up(how),
        Reply::Code(code) => {
            let mut elements: Vec<(&str, &str)> =
                message.0.iter().map(|(name, value)| (name.as_str(), value.as_str())).collect();
            elements.push(("ResponseCode", &code));
            answer(document("FTSingleCreditResponse", &elements))
        }
    }
}

/// What becomes of a transfer that arrives. A SessionID that was used before is a duplicate.
fn receive(transfer: &mut Transfer) -> Reply {
    let is_first = transfer.received == 0;
    transfer.received += 1;
    let code = |code: &str| Reply::Code(code.to_owned());
    match (transfer.scenario.as_str(), is_first) {
        ("never_received", true) => Reply::HangUp(HangUp::NotSent),
        ("never_received", false) if transfer.state == State::Lost => {
            transfer.pay();
            code("00")
        }
        (_, false) => code("94"),
        ("processing", true) => {
            transfer.state = State::Pending;
            code("09")
        }
        ("failed", true) => {
            transfer.state = State::Refused(REFUSAL.to_owned());
            code(REFUSAL)
        }
        ("timeout_then_paid", true) => {
            transfer.pay();
            Reply::HangUp(HangUp::Received)
        }
        ("timeout_then_failed", true) => {
            transfer.state = State::Refused(REFUSAL.to_owned());
            Reply::HangUp(HangUp::Received)
        }
        ("timeout_then_unknown", true) => {
            transfer.state = State::Unclear;
            Reply::HangUp(HangUp::Received)
        }
        ("duplicate_callback", true) => {
            transfer.pay();
            code("09")
        }
        ("returned", true) => {
            transfer.pay();
            transfer.state = State::Returned;
            code("00")
        }
        (_, true) => {
            transfer.pay();
            code("00")
        }
    }
}

/// What the network sends by itself after a transfer arrived.
fn tell(simulator: &Simulator, transfer: &Transfer) {
    if transfer.received != 1 {
        return;
    }
    match transfer.scenario.as_str() {
        "returned" => {
            simulator.send(&transfer.reference, returned_funds(transfer, simulator.0.clock.now()));
        }
        // Paid, then an older "in progress", then paid again.
        "duplicate_callback" => {
            for code in ["00", "09", "00"] {
                simulator.send(&transfer.reference, status(transfer, code));
            }
        }
        _ => {}
    }
}

/// The recipient's bank sends a transfer back, as a transfer of its own.
pub(super) fn returned_funds(transfer: &Transfer, now: Moment) -> OwnMessage {
    let amount = format!("{}.{:02}", transfer.amount_minor / 100, transfer.amount_minor % 100);
    // The tail of our reference makes the bank's own one unique enough for a simulation.
    let session =
        format!("000013{:012}{}", now.seconds() % 1_000_000_000_000, &transfer.reference[18..]);
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
    OwnMessage {
        rail: "nip",
        path: "/nip/fundtransfersingleitem_dc",
        body,
        ..OwnMessage::default()
    }
}

fn status(transfer: &Transfer, code: &str) -> OwnMessage {
    let elements = [("SessionID", transfer.reference.as_str()), ("ResponseCode", code)];
    let body = document("TSQuerySingleResponse", &elements);
    OwnMessage { rail: "nip", path: "/nip/txnstatusresponse", body, ..OwnMessage::default() }
}

async fn status_query(
    From(simulator): From<Simulator>,
    headers: HeaderMap,
    body: Bytes,
) -> Response {
    let message = match Message::read(&body, "TSQuerySingleRequest") {
        Ok(message) => message,
        Err(why) => return malformed("status query", &why),
    };
    let read = || {
        let source = message.digits("SourceInstitutionCode", 6)?;
        message.text("ChannelCode", 2)?;
        Ok::<_, String>((source, message.digits("SessionID", 30)?))
    };
    let (source, session) = match read() {
        Ok(fields) => fields,
        Err(why) => return malformed("status query", &why),
    };
    if simulator.scenario(&headers, "") == "provider_down" {
        return unavailable();
    }
    let found = simulator.0.transfers.change(session, |found| {
        found.as_ref().map_or(State::Lost, |transfer| transfer.state.clone())
    });
    let state = match found.await {
        Ok(state) => state,
        Err(cause) => {
            tracing::error!(%cause, "the simulator cannot read a transfer");
            return unavailable();
        }
    };
    let code = match &state {
        State::Lost => "25",
        State::Pending => "09",
        // A transfer that came back was made: its own status stays.
        State::Paid | State::Returned => "00",
        State::Refused(code) => code,
        State::Unclear => "01",
    };
    answer(document(
        "TSQuerySingleResponse",
        &[
            ("SourceInstitutionCode", source),
            ("ChannelCode", message.get("ChannelCode")),
            ("SessionID", session),
            ("ResponseCode", code),
        ],
    ))
}
