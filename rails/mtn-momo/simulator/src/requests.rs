//! Transfers as they are sent, as MTN documents them.

use railhead_simulator::types::Request;
use serde::Deserialize;

use crate::CURRENCY;

/// Most characters of a text, by the stricter of MTN's documents.
const NOTE_MAX: usize = 128;

/// A request to make a transfer.
pub struct TransferRequest {
    /// `X-Reference-Id`.
    pub reference: String,
    /// Where the outcome is told; empty where nobody wants to hear it.
    pub callback_url: String,
    /// What is to be done.
    pub order: Order,
    /// The amount in minor units.
    pub amount_minor: i64,
}

/// The body.
#[derive(Deserialize)]
#[serde(deny_unknown_fields, rename_all = "camelCase")]
pub struct Order {
    amount: String,
    currency: String,
    /// The payer's own name for it.
    pub external_id: String,
    /// Who is paid.
    pub payee: Party,
    /// The text for the payer's statement.
    pub payer_message: String,
    /// The text for the payee's statement.
    pub payee_note: String,
}

/// Who is paid.
#[derive(Deserialize)]
#[serde(deny_unknown_fields, rename_all = "camelCase")]
pub struct Party {
    party_id_type: String,
    /// The wallet's number.
    pub party_id: String,
}

/// Why a request is turned away: the status, MTN's word, and what is wrong with it.
pub struct Fault {
    /// The HTTP status.
    pub status: u16,
    /// MTN's word.
    pub code: &'static str,
    /// Where it is.
    pub at: String,
}

impl TransferRequest {
    /// # Errors
    /// The first thing that MTN would not have.
    pub fn read(request: &Request) -> Result<Self, Fault> {
        let reference = request.header("x-reference-id");
        let callback_url = request.header("x-callback-url");
        let media_type = request.header("content-type").split(';').next().unwrap_or_default();
        first_fault(&[
            (media_type.trim() == "application/json", "Content-Type"),
            (is_uuid_4(reference), "X-Reference-Id"),
        ])?;
        if !callback_url.is_empty() && !is_address(callback_url) {
            let at = "X-Callback-Url".to_owned();
            return Err(Fault { status: 500, code: "INVALID_CALLBACK_URL_HOST", at });
        }
        let order: Order =
            serde_json::from_slice(&request.body).map_err(|cause| invalid(&cause.to_string()))?;
        if order.currency != CURRENCY {
            let at = "currency".to_owned();
            return Err(Fault { status: 500, code: "INVALID_CURRENCY", at });
        }
        let amount_minor = pesewas(&order.amount);
        first_fault(&[
            (amount_minor.is_some_and(|amount| amount > 0), "amount"),
            (is_word(&order.external_id), "externalId"),
            (order.payee.party_id_type == "MSISDN", "partyIdType"),
            (is_ghanaian(&order.payee.party_id), "partyId"),
            (is_note(&order.payer_message), "payerMessage"),
            (is_note(&order.payee_note), "payeeNote"),
        ])?;
        let (reference, callback_url) = (reference.to_owned(), callback_url.to_owned());
        Ok(Self { reference, callback_url, order, amount_minor: amount_minor.unwrap_or_default() })
    }
}

fn first_fault(checks: &[(bool, &str)]) -> Result<(), Fault> {
    match checks.iter().find(|(is_right, _)| !is_right) {
        Some((_, at)) => Err(invalid(at)),
        None => Ok(()),
    }
}

fn invalid(at: &str) -> Fault {
    Fault { status: 400, code: "VALIDATION_ERROR", at: at.to_owned() }
}

/// Whether it is a UUID of version 4: RFC 9562.
fn is_uuid_4(text: &str) -> bool {
    let is_right = |(at, byte): (usize, u8)| match at {
        8 | 13 | 18 | 23 => byte == b'-',
        14 => byte == b'4',
        19 => matches!(byte, b'8' | b'9' | b'a' | b'b'),
        _ => matches!(byte, b'0'..=b'9' | b'a'..=b'f'),
    };
    text.len() == 36 && text.bytes().enumerate().all(is_right)
}

/// Cedis with two decimals at most, in pesewas.
fn pesewas(text: &str) -> Option<i64> {
    let (cedis, decimals) = match text.split_once('.') {
        Some((cedis, decimals)) if (1..=2).contains(&decimals.len()) => (cedis, decimals),
        Some(_) => return None,
        None => (text, "00"),
    };
    let is_digits = |part: &str| !part.is_empty() && part.chars().all(|c| c.is_ascii_digit());
    if !is_digits(cedis) || !is_digits(decimals) {
        return None;
    }
    let tenths = if decimals.len() == 1 { 10 } else { 1 };
    let pesewas = decimals.parse::<i64>().ok()? * tenths;
    cedis.parse::<i64>().ok()?.checked_mul(100)?.checked_add(pesewas)
}

fn is_ghanaian(number: &str) -> bool {
    let is_mobile = matches!(number.get(3..4), Some("2" | "5"));
    number.len() == 12
        && number.starts_with("233")
        && is_mobile
        && number.chars().all(|c| c.is_ascii_digit())
}

fn is_word(text: &str) -> bool {
    (1..=64).contains(&text.len()) && text.bytes().all(|byte| byte.is_ascii_graphic())
}

/// Whether a text has nothing in it that MTN would not have: it says of the apostrophe only that it
/// is such a character.
fn is_note(text: &str) -> bool {
    let is_plain = |c: char| c.is_ascii_alphanumeric() || matches!(c, ' ' | '.' | ',' | '-');
    (1..=NOTE_MAX).contains(&text.len()) && text.chars().all(is_plain)
}

/// Whether it is an address with the name of a host.
fn is_address(text: &str) -> bool {
    let rest = text.strip_prefix("https://").or_else(|| text.strip_prefix("http://"));
    let Some((host, path)) = rest.and_then(|rest| rest.split_once('/')) else { return false };
    !host.is_empty() && !path.is_empty() && text.bytes().all(|byte| byte.is_ascii_graphic())
}
