//! Payouts as they are sent, as the protocol has them.

use railhead_simulator::types::Request;
use serde::Deserialize;

use crate::wallets;

/// Most characters of a name.
const NAME_MAX: usize = 140;
/// Most characters of the text for the recipient.
const NARRATION_MAX: usize = 100;

/// A request to make a payout.
#[derive(Deserialize)]
#[serde(deny_unknown_fields)]
pub struct Order {
    /// What identifies it.
    pub reference: String,
    amount: String,
    /// ISO 4217.
    pub currency: String,
    /// Whose wallet is paid.
    pub operator: String,
    /// The wallet's number.
    pub account: String,
    name: String,
    narration: String,
    /// Where the outcome is told.
    pub callback_url: Option<String>,
}

impl Order {
    /// # Errors
    /// The first thing that is not as documented.
    pub fn read(request: &Request) -> Result<(Self, i64), String> {
        let body = object(request)?;
        let order: Self = serde_json::from_slice(body).map_err(|cause| cause.to_string())?;
        let amount_minor = wallets::amount_minor(&order.currency, &order.amount);
        let checks = [
            (is_uuid_4(&order.reference), "reference"),
            (request.header("idempotency-key") == order.reference, "Idempotency-Key"),
            (wallets::currency(&order.operator).is_some(), "operator"),
            (wallets::currency(&order.operator) == Some(&order.currency), "currency"),
            (amount_minor.is_some(), "amount"),
            (wallets::is_wallet(&order.operator, &order.account), "account"),
            (is_name(&order.name), "name"),
            (is_narration(&order.narration), "narration"),
            (order.callback_url.as_deref().is_none_or(is_address), "callback_url"),
        ];
        match checks.iter().find(|(is_right, _)| !is_right) {
            Some((_, at)) => Err((*at).to_owned()),
            None => Ok((order, amount_minor.unwrap_or_default())),
        }
    }
}

/// The body of a request, which has to be a JSON object.
///
/// # Errors
/// It is something else, or said to be.
pub fn object(request: &Request) -> Result<&[u8], String> {
    let media_type = request.header("content-type").split(';').next().unwrap_or_default();
    if media_type.trim() != "application/json" {
        return Err("Content-Type".to_owned());
    }
    // The reader would take a list for an object.
    match request.body.first() {
        Some(b'{') => Ok(&request.body),
        _ => Err("no object".to_owned()),
    }
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

fn is_name(text: &str) -> bool {
    (1..=NAME_MAX).contains(&text.chars().count())
        && text.trim() == text
        && !text.chars().any(char::is_control)
}

fn is_narration(text: &str) -> bool {
    let is_plain = |c: char| c.is_ascii_alphanumeric() || matches!(c, ' ' | '.' | ',' | '-');
    (1..=NARRATION_MAX).contains(&text.len()) && text.chars().all(is_plain)
}

/// Whether it is an address with the name of a host.
fn is_address(text: &str) -> bool {
    let rest = text.strip_prefix("https://").or_else(|| text.strip_prefix("http://"));
    let Some((host, path)) = rest.and_then(|rest| rest.split_once('/')) else { return false };
    !host.is_empty() && !path.is_empty() && text.bytes().all(|byte| byte.is_ascii_graphic())
}
