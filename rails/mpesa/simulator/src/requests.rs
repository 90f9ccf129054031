//! What Daraja is sent, as it documents it.

use railhead_simulator::{CREDENTIAL, host};
use serde::Deserialize;

/// A request for payment.
#[derive(Deserialize)]
#[serde(deny_unknown_fields, rename_all = "PascalCase")]
pub struct PaymentRequest {
    /// Our name for it.
    #[serde(rename = "OriginatorConversationID")]
    pub reference: String,
    initiator_name: String,
    security_credential: String,
    #[serde(rename = "CommandID")]
    command: String,
    /// Whole shillings.
    pub amount: i64,
    party_a: String,
    /// The customer's number.
    pub party_b: String,
    remarks: String,
    /// Where it is told that it waited too long.
    #[serde(rename = "QueueTimeOutURL")]
    pub timeout_url: String,
    /// Where the outcome is told.
    #[serde(rename = "ResultURL")]
    pub result_url: String,
    /// Daraja's own spelling.
    #[serde(rename = "Occassion")]
    occasion: String,
}

/// A question about a payment.
#[derive(Deserialize)]
#[serde(deny_unknown_fields, rename_all = "PascalCase")]
pub struct StatusRequest {
    initiator: String,
    security_credential: String,
    #[serde(rename = "CommandID")]
    command: String,
    /// Our name for the payment.
    #[serde(rename = "OriginalConversationID")]
    pub reference: String,
    party_a: String,
    identifier_type: String,
    /// Where the answer is told.
    #[serde(rename = "ResultURL")]
    pub result_url: String,
    #[serde(rename = "QueueTimeOutURL")]
    timeout_url: String,
    remarks: String,
    occasion: String,
}

impl PaymentRequest {
    /// # Errors
    /// The first thing that Daraja would not have.
    pub fn read(body: &[u8]) -> Result<Self, String> {
        let read: Self = serde_json::from_slice(body).map_err(|cause| cause.to_string())?;
        let is_command =
            matches!(&*read.command, "BusinessPayment" | "SalaryPayment" | "PromotionPayment");
        let is_wallet = ["2547", "2541"].iter().any(|start| read.party_b.starts_with(start))
            && is_digits(&read.party_b, 12..=12);
        let is_text = |text: &str, least| {
            (least..=100).contains(&text.trim().chars().count()) && !text.contains(char::is_control)
        };
        first_fault(&[
            (is_word(&read.reference), "OriginatorConversationID"),
            (is_word(&read.initiator_name), "InitiatorName"),
            (is_password(&read.security_credential), "SecurityCredential"),
            (is_command, "CommandID"),
            ((10..=250_000).contains(&read.amount), "Amount"),
            (is_digits(&read.party_a, 5..=7), "PartyA"),
            (is_wallet, "PartyB"),
            (is_text(&read.remarks, 2), "Remarks"),
            (is_address(&read.timeout_url), "QueueTimeOutURL"),
            (is_address(&read.result_url), "ResultURL"),
            (is_text(&read.occasion, 1), "Occassion"),
        ])?;
        Ok(read)
    }
}

impl StatusRequest {
    /// # Errors
    /// The first thing that Daraja would not have.
    pub fn read(body: &[u8]) -> Result<Self, String> {
        let read: Self = serde_json::from_slice(body).map_err(|cause| cause.to_string())?;
        first_fault(&[
            (is_word(&read.initiator), "Initiator"),
            (is_password(&read.security_credential), "SecurityCredential"),
            (read.command == "TransactionStatusQuery", "CommandID"),
            (is_word(&read.reference), "OriginalConversationID"),
            (is_digits(&read.party_a, 5..=7), "PartyA"),
            (read.identifier_type == "4", "IdentifierType"),
            (is_address(&read.result_url), "ResultURL"),
            (is_address(&read.timeout_url), "QueueTimeOutURL"),
            ((2..=100).contains(&read.remarks.chars().count()), "Remarks"),
            (!read.occasion.is_empty(), "Occasion"),
        ])?;
        Ok(read)
    }
}

/// The initiator's password, encrypted with the network's certificate.
fn is_password(sealed: &str) -> bool {
    host::open("safaricom", sealed).is_some_and(|password| password == CREDENTIAL.as_bytes())
}

fn first_fault(checks: &[(bool, &str)]) -> Result<(), String> {
    match checks.iter().find(|(is_right, _)| !is_right) {
        Some((_, name)) => Err((*name).to_owned()),
        None => Ok(()),
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
    let rest = text.strip_prefix("https://").or_else(|| text.strip_prefix("http://"));
    let Some((host, path)) = rest.and_then(|rest| rest.split_once('/')) else { return false };
    !host.is_empty() && !path.is_empty() && text.bytes().all(|byte| byte.is_ascii_graphic())
}
