//! What Airtel is sent, as it documents it.

use railhead_simulator::types::Request;
use railhead_simulator::{CREDENTIAL, host};
use serde::Deserialize;

use crate::CURRENCY;

/// A request for payment.
#[derive(Deserialize)]
#[serde(deny_unknown_fields)]
pub struct PaymentRequest {
    /// Who is paid.
    pub payee: Payee,
    reference: String,
    pin: String,
    /// What is paid.
    pub transaction: Transaction,
}

/// Who is paid.
#[derive(Deserialize)]
#[serde(deny_unknown_fields)]
pub struct Payee {
    currency: String,
    /// The number, without country code.
    pub msisdn: String,
    name: Option<String>,
}

/// What is paid.
#[derive(Deserialize)]
#[serde(deny_unknown_fields)]
pub struct Transaction {
    /// Whole shillings.
    pub amount: i64,
    /// The payer's name for it.
    pub id: String,
    #[serde(rename = "type")]
    kind: String,
}

/// Why a request is turned away.
pub struct Fault {
    /// Airtel's code.
    pub code: &'static str,
    /// What is wrong.
    pub at: String,
}

impl PaymentRequest {
    /// # Errors
    /// The first thing that Airtel would not have.
    pub fn read(request: &Request) -> Result<Self, Fault> {
        let fault = |code, at: &str| Fault { code, at: at.to_owned() };
        if !request.header("content-type").starts_with("application/json") {
            return Err(fault("ROUTER003", "Content-Type"));
        }
        let read: Self = serde_json::from_slice(&request.body)
            .map_err(|cause| fault("ROUTER003", &cause.to_string()))?;
        let Self { payee, reference, pin, transaction } = &read;
        let name = payee.name.as_deref().unwrap_or("x");
        let is_name = !name.trim().is_empty() && name.is_ascii() && !name.contains('"');
        let is_open =
            host::open("airtel", pin).is_some_and(|opened| opened == CREDENTIAL.as_bytes());
        let checks = [
            (is_open, "ROUTER116", "pin"),
            (payee.currency == CURRENCY, "ESB000035", "payee.currency"),
            (is_kenyan(&payee.msisdn), "DP00900001012", "payee.msisdn"),
            (is_name, "ESB000008", "payee.name"),
            (is_plain(reference, 4), "ESB000008", "reference"),
            (is_plain(&transaction.id, 1), "ESB000008", "transaction.id"),
            ((1..=250_000).contains(&transaction.amount), "DP00900001004", "transaction.amount"),
            (transaction.kind == "B2C", "ESB000008", "transaction.type"),
        ];
        match checks.iter().find(|(is_right, ..)| !is_right) {
            Some((_, code, at)) => Err(fault(code, at)),
            None => Ok(read),
        }
    }

    /// The wallet, by its number with the country code.
    #[must_use]
    pub fn account(&self) -> String {
        format!("254{}", self.payee.msisdn)
    }
}

/// Nine digits that begin as a Kenyan mobile number does.
fn is_kenyan(number: &str) -> bool {
    let is_digits = number.bytes().all(|byte| byte.is_ascii_digit());
    number.len() == 9 && is_digits && number.starts_with(['1', '7'])
}

fn is_plain(text: &str, least: usize) -> bool {
    (least..=64).contains(&text.len()) && text.bytes().all(|byte| byte.is_ascii_alphanumeric())
}
