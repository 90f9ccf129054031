//! A simulated Daraja: M-Pesa's payments from a business to its customers.
//!
//! It acknowledges what it is sent and tells the outcome at the address that it was given.

use axum::body::Bytes;
use axum::extract::State as From;
use axum::response::{IntoResponse as _, Response};
use axum::routing::{get, post};
use axum::{Json, Router};
use base64::Engine as _;
use base64::prelude::BASE64_STANDARD as BASE64;
use http::{HeaderMap, StatusCode, header};
use serde::Deserialize;
use serde_json::{Value, json};

use crate::wasm::egress::HangUp;

use super::own::OwnMessage;
use super::transfers::{State, Transfer};
use super::{Simulator, TOKEN, hang_up};

/// "The recipient is not registered": what refused payments are refused with.
pub(super) const REFUSAL: &str = "2040";

/// What it gives for credentials, for an hour.
const BEARER: &str = "a-token-of-the-simulated-daraja";

pub(super) fn router(simulator: Simulator) -> Router {
    Router::new()
        .route("/oauth/v1/generate", get(token))
        .route("/mpesa/b2c/v3/paymentrequest", post(payment))
        .route("/mpesa/transactionstatus/v1/query", post(status))
        .with_state(simulator)
}

/// A request for payment, as Daraja documents it.
#[derive(Deserialize)]
#[serde(deny_unknown_fields, rename_all = "PascalCase")]
struct PaymentRequest {
    #[serde(rename = "OriginatorConversationID")]
    reference: String,
    initiator_name: String,
    security_credential: String,
    #[serde(rename = "CommandID")]
    command: String,
    amount: i64,
    party_a: String,
    party_b: String,
    remarks: String,
    #[serde(rename = "QueueTimeOutURL")]
    timeout_url: String,
    #[serde(rename = "ResultURL")]
    result_url: String,
    /// Daraja's own spelling.
    #[serde(rename = "Occassion")]
    occasion: String,
}

/// A question about a payment.
#[derive(Deserialize)]
#[serde(deny_unknown_fields, rename_all = "PascalCase")]
struct StatusRequest {
    initiator: String,
    security_credential: String,
    #[serde(rename = "CommandID")]
    command: String,
    #[serde(rename = "OriginalConversationID")]
    reference: String,
    party_a: String,
    identifier_type: String,
    #[serde(rename = "ResultURL")]
    result_url: String,
    #[serde(rename = "QueueTimeOutURL")]
    timeout_url: String,
    remarks: String,
    occasion: String,
}

impl PaymentRequest {
    /// The first thing that Daraja would not have.
    fn fault(&self) -> Option<&'static str> {
        let is_command =
            matches!(&*self.command, "BusinessPayment" | "SalaryPayment" | "PromotionPayment");
        let is_wallet = ["2547", "2541"].iter().any(|start| self.party_b.starts_with(start))
            && is_digits(&self.party_b, 12..=12);
        let is_text = |text: &str, least| {
            (least..=100).contains(&text.trim().chars().count()) && !text.contains(char::is_control)
        };
        [
            (is_word(&self.reference), "OriginatorConversationID"),
            (is_word(&self.initiator_name), "InitiatorName"),
            (self.security_credential == TOKEN, "SecurityCredential"),
            (is_command, "CommandID"),
            ((10..=250_000).contains(&self.amount), "Amount"),
            (is_digits(&self.party_a, 5..=7), "PartyA"),
            (is_wallet, "PartyB"),
            (is_text(&self.remarks, 2), "Remarks"),
            (is_address(&self.timeout_url), "QueueTimeOutURL"),
            (is_address(&self.result_url), "ResultURL"),
            (is_text(&self.occasion, 1), "Occassion"),
        ]
        .into_iter()
        .find_map(|(is_right, name)| (!is_right).then_some(name))
    }
}

impl StatusRequest {
    fn fault(&self) -> Option<&'static str> {
        [
            (is_word(&self.initiator), "Initiator"),
            (self.security_credential == TOKEN, "SecurityCredential"),
            (self.command == "TransactionStatusQuery", "CommandID"),
            (is_word(&self.reference), "OriginalConversationID"),
            (is_digits(&self.party_a, 5..=7), "PartyA"),
            (self.identifier_type == "4", "IdentifierType"),
            (is_address(&self.result_url), "ResultURL"),
            (is_address(&self.timeout_url), "QueueTimeOutURL"),
            ((2..=100).contains(&self.remarks.chars().count()), "Remarks"),
            (!self.occasion.is_empty(), "Occasion"),
        ]
        .into_iter()
        .find_map(|(is_right, name)| (!is_right).then_some(name))
    }
}

fn is_digits(text: &str, length: std::ops::RangeInclusive<usize>) -> bool {
    length.contains(&text.len()) && text.bytes().all(|byte| byte.is_ascii_digit())
}

fn is_word(text: &str) -> bool {
    let is_plain = |b: u8| b.is_ascii_alphanumeric() || matches!(b, b'-' | b'_' | b'.');
    (1..=50).contains(&text.len()) && text.bytes().all(is_plain)
}

fn is_address(text: &str) -> bool {
    let address: Option<http::Uri> = text.parse().ok();
    address.is_some_and(|address| {
        matches!(address.scheme_str(), Some("http" | "https")) && address.host().is_some()
    })
}

async fn token(headers: HeaderMap, uri: http::Uri) -> Response {
    let basic = format!("Basic {}", BASE64.encode(format!("{TOKEN}:{TOKEN}")));
    let is_right = headers.get(header::AUTHORIZATION).is_some_and(|sent| *sent == *basic);
    match (is_right, uri.query()) {
        (true, Some("grant_type=client_credentials")) => {
            Json(json!({ "access_token": BEARER, "expires_in": "3599" })).into_response()
        }
        (true, _) => error(StatusCode::BAD_REQUEST, "400.008.02", "Invalid grant type passed"),
        (false, _) => error(StatusCode::BAD_REQUEST, "400.008.01", "Invalid Authentication passed"),
    }
}

async fn payment(From(simulator): From<Simulator>, headers: HeaderMap, body: Bytes) -> Response {
    if let Some(refused) = unauthorized(&headers) {
        return refused;
    }
    let request: PaymentRequest = match read(&body, PaymentRequest::fault) {
        Ok(request) => request,
        Err(refused) => return *refused,
    };
    let scenario = simulator.scenario(&headers, &request.party_b);
    if scenario == "provider_down" {
        return StatusCode::SERVICE_UNAVAILABLE.into_response();
    }
    let recorded = simulator.0.transfers.change(&request.reference, |found| {
        let transfer = found.get_or_insert_with(|| Transfer {
            reference: request.reference.clone(),
            amount_minor: request.amount * 100,
            account: request.party_b.clone(),
            state: State::Lost,
            received: 0,
            executed: 0,
            scenario: scenario.clone(),
            tell_at: Some(request.result_url.clone()),
        });
        (receive(transfer), transfer.clone())
    });
    let (reply, transfer) = match recorded.await {
        Ok(recorded) => recorded,
        Err(cause) => {
            tracing::error!(%cause, "the simulator cannot record a payment");
            return StatusCode::SERVICE_UNAVAILABLE.into_response();
        }
    };
    match reply {
        Reply::Lost => hang_up(HangUp::NotSent),
        Reply::Silence => hang_up(HangUp::Received),
        Reply::Duplicate => error(
            StatusCode::INTERNAL_SERVER_ERROR,
            "500.002.1001",
            "Duplicate OriginatorConversationID.",
        ),
        Reply::Taken(results) => {
            for code in results {
                simulator.send(&transfer.reference, result(&transfer, &code));
            }
            if transfer.scenario == "queue_timeout" {
                let message = told_at(request.timeout_url, &json!({ "Result": {} }));
                simulator.send(&transfer.reference, message);
            }
            acknowledged(&transfer.reference)
        }
    }
}

/// What the network does with a payment after it has recorded it.
enum Reply {
    /// It never came.
    Lost,
    /// It came, and is not answered.
    Silence,
    /// It came before.
    Duplicate,
    /// It is acknowledged, and these results are told.
    Taken(Vec<Value>),
}

fn receive(transfer: &mut Transfer) -> Reply {
    let is_first = transfer.received == 0;
    transfer.received += 1;
    match (transfer.scenario.as_str(), is_first) {
        ("never_received", true) => Reply::Lost,
        ("never_received", false) if transfer.state == State::Lost => {
            transfer.pay();
            Reply::Taken(vec![json!(0)])
        }
        (_, false) => Reply::Duplicate,
        ("processing", true) => {
            transfer.state = State::Pending;
            Reply::Taken(Vec::new())
        }
        ("failed", true) => {
            transfer.state = State::Refused(REFUSAL.to_owned());
            Reply::Taken(vec![json!(2040)])
        }
        ("timeout_then_paid", true) => {
            transfer.pay();
            Reply::Silence
        }
        ("timeout_then_failed", true) => {
            transfer.state = State::Refused(REFUSAL.to_owned());
            Reply::Silence
        }
        ("timeout_then_unknown", true) => {
            transfer.state = State::Unclear;
            Reply::Silence
        }
        // It stays in a queue for too long, is carried out all the same, and nobody tells.
        ("queue_timeout", true) => {
            transfer.pay();
            Reply::Taken(Vec::new())
        }
        // As a text and as a number, as it comes in practice.
        ("duplicate_callback", true) => {
            transfer.pay();
            Reply::Taken(vec![json!("0"), json!(0)])
        }
        (_, true) => {
            transfer.pay();
            Reply::Taken(vec![json!(0)])
        }
    }
}

async fn status(From(simulator): From<Simulator>, headers: HeaderMap, body: Bytes) -> Response {
    if let Some(refused) = unauthorized(&headers) {
        return refused;
    }
    let request: StatusRequest = match read(&body, StatusRequest::fault) {
        Ok(request) => request,
        Err(refused) => return *refused,
    };
    let found = simulator.0.transfers.change(&request.reference, |found| found.clone()).await;
    let account = found.as_ref().ok().and_then(|found| Some(found.as_ref()?.account.clone()));
    if simulator.scenario(&headers, account.as_deref().unwrap_or("")) == "provider_down" {
        return StatusCode::SERVICE_UNAVAILABLE.into_response();
    }
    let answer = match found {
        Ok(Some(transfer)) => answer(&transfer),
        Ok(None) => Some(json!({ "Result": { "ResultCode": 2, "ResultDesc": "not found" } })),
        Err(cause) => {
            tracing::error!(%cause, "the simulator cannot read a payment");
            return StatusCode::SERVICE_UNAVAILABLE.into_response();
        }
    };
    if let Some(answer) = answer {
        simulator.send(&request.reference, told_at(request.result_url, &answer));
    }
    acknowledged(&format!("question-about-{}", request.reference))
}

/// What is told about a payment that was asked about; nothing, where nobody knows.
fn answer(transfer: &Transfer) -> Option<Value> {
    let status = match &transfer.state {
        State::Paid | State::Returned => "Completed",
        State::Refused(_) => "Failed",
        State::Pending => "Pending",
        State::Unclear => return None,
        State::Lost => {
            return Some(json!({ "Result": { "ResultCode": "2", "ResultDesc": "not found" } }));
        }
    };
    let parameters = [
        ("DebitPartyName", json!("600000 - Railhead")),
        ("DebitPartyName", json!("600000 - Railhead")),
        ("TransactionStatus", json!(status)),
        ("Amount", json!(transfer.amount_minor / 100)),
        ("ReceiptNo", json!(receipt(transfer))),
    ];
    Some(json!({ "Result": {
        "ResultType": 0,
        "ResultCode": 0,
        "ResultDesc": "The service request is processed successfully.",
        "OriginatorConversationID": "of the question itself",
        "ConversationID": "AG_of_the_question",
        "TransactionID": "0000000000",
        "ResultParameters": { "ResultParameter": listed(&parameters) },
    } }))
}

/// The result of a payment, for the address that the request gave.
pub(super) fn result(transfer: &Transfer, code: &Value) -> OwnMessage {
    let parameters = [
        ("TransactionAmount", json!(transfer.amount_minor / 100)),
        ("TransactionReceipt", json!(receipt(transfer))),
        ("ReceiverPartyPublicName", json!(format!("{} - Wanjiku Kamau", transfer.account))),
    ];
    let message = json!({ "Result": {
        "ResultType": 0,
        "ResultCode": code,
        "ResultDesc": "as the code says",
        "OriginatorConversationID": transfer.reference,
        "ConversationID": conversation(&transfer.reference),
        "TransactionID": receipt(transfer),
        "ResultParameters": { "ResultParameter": listed(&parameters) },
    } });
    told_at(transfer.tell_at.clone().unwrap_or_default(), &message)
}

/// The result that a payment has come to, once somebody has decided it.
pub(super) fn decided(transfer: &Transfer) -> OwnMessage {
    match &transfer.state {
        State::Refused(code) => result(transfer, &json!(code)),
        _ => result(transfer, &json!(0)),
    }
}

fn listed(parameters: &[(&str, Value)]) -> Vec<Value> {
    parameters.iter().map(|(key, value)| json!({ "Key": key, "Value": value })).collect()
}

fn told_at(url: String, body: &Value) -> OwnMessage {
    OwnMessage { rail: "mpesa", url: Some(url), body: body.to_string(), ..OwnMessage::default() }
}

fn acknowledged(reference: &str) -> Response {
    let answer = json!({
        "ConversationID": conversation(reference),
        "OriginatorConversationID": reference,
        "ResponseCode": "0",
        "ResponseDescription": "Accept the service request successfully.",
    });
    Json(answer).into_response()
}

fn conversation(reference: &str) -> String {
    format!("AG_{reference}")
}

/// A receipt number: always the same for a payment.
fn receipt(transfer: &Transfer) -> String {
    let tail: String = transfer.reference.chars().rev().take(8).collect();
    format!("RH{}", tail.to_uppercase())
}

fn unauthorized(headers: &HeaderMap) -> Option<Response> {
    let is_right =
        headers.get(header::AUTHORIZATION).is_some_and(|sent| *sent == *format!("Bearer {BEARER}"));
    (!is_right).then(|| error(StatusCode::UNAUTHORIZED, "404.001.03", "Invalid Access Token"))
}

/// Reads a message; refuses one that Daraja would not understand, loudly.
fn read<T: for<'a> Deserialize<'a>>(
    body: &[u8],
    fault: impl Fn(&T) -> Option<&'static str>,
) -> Result<T, Box<Response>> {
    let malformed = |why: String| {
        tracing::error!(why, "the simulator was sent a malformed message");
        let message = format!("Bad Request - Invalid {why}");
        Box::new(error(StatusCode::BAD_REQUEST, "400.002.02", &message))
    };
    let read: T = serde_json::from_slice(body).map_err(|cause| malformed(cause.to_string()))?;
    match fault(&read) {
        Some(name) => Err(malformed(name.to_owned())),
        None => Ok(read),
    }
}

fn error(status: StatusCode, code: &str, message: &str) -> Response {
    let body = json!({ "requestId": "1", "errorCode": code, "errorMessage": message });
    (status, Json(body)).into_response()
}
