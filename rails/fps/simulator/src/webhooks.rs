//! What the gateway tells by itself: how payments ended, that one came back, that one was held.
//!
//! Members and their names are those of ClearBank's webhooks: TransactionSettled 6,
//! TransactionRejected 2, OutboundHeldTransaction 1, PaymentMessageAssesmentFailed 1 (as it
//! spells it).

use base64::Engine as _;
use base64::prelude::BASE64_STANDARD as BASE64;
use railhead_simulator::host;
use railhead_simulator::types::{Message, Place, Transfer};
use serde::Serialize;

use crate::accounts::{LongNames, long_names};
use crate::amounts::Pounds;
use crate::identifiers::{self, guid};
use crate::payments::{CREATED_AT, CREDITOR, DEBTOR, NAME, REFUSAL, REMITTANCE};
use crate::time;

/// The return code of "account closed".
pub const RETURN_CODE: &str = "00000002";

/// Where webhooks go, below the rail's notice address.
const PLACE: &str = "/webhooks";
/// The key that they are signed with.
const KEY: &str = "gateway";
/// How long before its settlement a payment was held for a review.
const HELD_FOR_MS: u64 = 60_000;

#[derive(Serialize)]
#[serde(rename_all = "PascalCase")]
struct Webhook<T> {
    r#type: &'static str,
    version: u8,
    payload: T,
    nonce: u32,
}

#[derive(Serialize)]
#[serde(rename_all = "PascalCase")]
struct Settled<'a> {
    transaction_id: String,
    status: &'static str,
    scheme: &'static str,
    end_to_end_transaction_id: &'a str,
    amount: Pounds,
    timestamp_settled: String,
    timestamp_created: &'a str,
    currency_code: &'static str,
    debit_credit_code: &'static str,
    reference: &'a str,
    is_return: bool,
    account: Party<'a>,
    counterpart_account: Party<'a>,
    actual_end_to_end_transaction_id: String,
    supplementary_data: Vec<Pair>,
}

#[derive(Serialize)]
#[serde(rename_all = "PascalCase")]
struct Party<'a> {
    #[serde(flatten)]
    names: LongNames,
    owner_name: &'a str,
    transaction_owner_name: &'a str,
    institution_name: &'static str,
}

#[derive(Serialize)]
#[serde(rename_all = "PascalCase")]
struct Pair {
    name: &'static str,
    value: String,
}

#[derive(Serialize)]
#[serde(rename_all = "PascalCase")]
struct Rejected<'a> {
    transaction_id: String,
    status: &'static str,
    scheme: &'static str,
    end_to_end_transaction_id: &'a str,
    amount: Pounds,
    timestamp_modified: String,
    currency_code: &'static str,
    debit_credit_code: &'static str,
    reference: &'a str,
    is_return: bool,
    cancellation_reason: &'static str,
    cancellation_code: &'static str,
    account: LongNames,
    counterpart_account: LongNames,
}

#[derive(Serialize)]
#[serde(rename_all = "PascalCase")]
struct Held<'a> {
    timestamp_created: String,
    scheme: &'static str,
    counterpart_account: LongNames,
    account: LongNames,
    transaction_amount: Pounds,
    payment_reference: &'a str,
    end_to_end_transaction_id: &'a str,
}

#[derive(Serialize)]
#[serde(rename_all = "PascalCase")]
struct AssessmentFailed<'a> {
    message_id: String,
    payment_method_type: &'static str,
    assesment_failure: [Failure<'a>; 1],
    account_identification: Identified<'a>,
}

#[derive(Serialize)]
#[serde(rename_all = "PascalCase")]
struct Failure<'a> {
    end_to_end_id: &'a str,
    reasons: [&'static str; 1],
}

#[derive(Serialize)]
#[serde(rename_all = "PascalCase")]
struct Identified<'a> {
    debtor: LongNames,
    creditors: [Creditor<'a>; 1],
}

#[derive(Serialize)]
#[serde(rename_all = "PascalCase")]
struct Creditor<'a> {
    reference: &'a str,
    amount: Pounds,
    currency_code: &'static str,
    #[serde(flatten)]
    names: LongNames,
}

/// The payment settled: our account was debited, and the payee has the money.
#[must_use]
pub fn settled(payment: &Transfer) -> Message {
    let screened = Pair { name: "AbusiveMessageScreeningResult", value: "Pass".to_owned() };
    let payload = Settled {
        transaction_id: guid(&payment.reference, "transaction"),
        status: "Settled",
        scheme: "FasterPayments",
        end_to_end_transaction_id: &payment.reference,
        amount: Pounds(payment.amount_minor),
        timestamp_settled: time::written(host::now_ms()),
        timestamp_created: payment.noted(CREATED_AT),
        currency_code: "GBP",
        debit_credit_code: "Debit",
        reference: payment.noted(REMITTANCE),
        is_return: false,
        account: payer(payment),
        counterpart_account: payee(payment),
        actual_end_to_end_transaction_id: identifiers::fpid(&payment.reference),
        supplementary_data: vec![screened],
    };
    signed(payment, "TransactionSettled", 6, payload)
}

/// How a return names the payment that came back.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Naming {
    /// By the payer's reference, and by the scheme's own name of the payment.
    Reference,
    /// By the scheme's own name alone: the reference is the returning bank's.
    Scheme,
}

/// The money came back, as a payment of its own to our account. The documentation does not say
/// whether such a payment repeats the reference of the first, so that both happen here.
#[must_use]
pub fn returned(payment: &Transfer, naming: Naming) -> Message {
    let fpid = identifiers::fpid(&payment.reference);
    let reference = match naming {
        Naming::Reference => payment.reference.clone(),
        Naming::Scheme => identifiers::of_returning_bank(&payment.reference),
    };
    let now = time::written(host::now_ms());
    let payload = Settled {
        transaction_id: guid(&payment.reference, "return"),
        status: "Settled",
        scheme: "FasterPayments",
        end_to_end_transaction_id: &reference,
        amount: Pounds(payment.amount_minor),
        timestamp_settled: now.clone(),
        timestamp_created: &now,
        currency_code: "GBP",
        debit_credit_code: "Credit",
        reference: payment.noted(REMITTANCE),
        is_return: true,
        account: payer(payment),
        counterpart_account: payee(payment),
        actual_end_to_end_transaction_id: identifiers::fpid(&reference_of_return(payment)),
        supplementary_data: vec![
            Pair { name: "ReturnedPaymentFpId", value: fpid },
            Pair { name: "PaymentReturnCode", value: RETURN_CODE.to_owned() },
        ],
    };
    signed(payment, "TransactionSettled", 6, payload)
}

/// The payment was rejected.
#[must_use]
pub fn rejected(payment: &Transfer) -> Message {
    let payload = Rejected {
        transaction_id: guid(&payment.reference, "transaction"),
        status: "Rejected",
        scheme: "FasterPayments",
        end_to_end_transaction_id: &payment.reference,
        amount: Pounds(payment.amount_minor),
        timestamp_modified: time::written(host::now_ms()),
        currency_code: "GBP",
        debit_credit_code: "Debit",
        reference: payment.noted(REMITTANCE),
        is_return: false,
        cancellation_reason: "Beneficiary Sort Code/Account Number unknown",
        cancellation_code: REFUSAL,
        account: long_names(payment.noted(DEBTOR)),
        counterpart_account: long_names(payment.noted(CREDITOR)),
    };
    signed(payment, "TransactionRejected", 2, payload)
}

/// The payment had been held for a review, before it settled: no outcome.
#[must_use]
pub fn held(payment: &Transfer) -> Message {
    let payload = Held {
        timestamp_created: time::written(host::now_ms().saturating_sub(HELD_FOR_MS)),
        scheme: "FasterPayments",
        counterpart_account: long_names(payment.noted(CREDITOR)),
        account: long_names(payment.noted(DEBTOR)),
        transaction_amount: Pounds(payment.amount_minor),
        payment_reference: payment.noted(REMITTANCE),
        end_to_end_transaction_id: &payment.reference,
    };
    signed(payment, "OutboundHeldTransaction", 1, payload)
}

/// A second payment under a reference that was used is not made.
#[must_use]
pub fn duplicate(payment: &Transfer) -> Message {
    let creditor = Creditor {
        reference: payment.noted(REMITTANCE),
        amount: Pounds(payment.amount_minor),
        currency_code: "GBP",
        names: long_names(payment.noted(CREDITOR)),
    };
    let payload = AssessmentFailed {
        message_id: guid(&payment.reference, "assessment"),
        payment_method_type: "FasterPayments",
        assesment_failure: [Failure {
            end_to_end_id: &payment.reference,
            reasons: ["Duplicate transaction has been detected"],
        }],
        account_identification: Identified {
            debtor: long_names(payment.noted(DEBTOR)),
            creditors: [creditor],
        },
    };
    signed(payment, "PaymentMessageAssesmentFailed", 1, payload)
}

/// What somebody says who has not the key, and one of the gateway's messages: that the payment
/// was rejected, under the signature of the other one. It was made.
#[must_use]
pub fn forged(payment: &Transfer) -> Message {
    Message { headers: settled(payment).headers, ..rejected(payment) }
}

/// The same message, signed with a key that the gateway has told nobody of. There is one pair of
/// keys here: its signature of other bytes stands for the other key's, and fits as little.
#[must_use]
pub fn by_another_key(message: Message) -> Message {
    let signature = host::sign(KEY, &[b"another key: ", &message.body[..]].concat());
    Message { headers: headers(&signature), ..message }
}

fn payer(payment: &Transfer) -> Party<'static> {
    Party {
        names: long_names(payment.noted(DEBTOR)),
        owner_name: "RAILHEAD",
        transaction_owner_name: "RAILHEAD",
        institution_name: "Railhead",
    }
}

fn payee(payment: &Transfer) -> Party<'_> {
    Party {
        names: long_names(payment.noted(CREDITOR)),
        owner_name: payment.noted(NAME),
        transaction_owner_name: payment.noted(NAME),
        institution_name: "Simulated Bank",
    }
}

fn reference_of_return(payment: &Transfer) -> String {
    identifiers::of_returning_bank(&payment.reference)
}

fn signed(payment: &Transfer, kind: &'static str, version: u8, payload: impl Serialize) -> Message {
    let nonce = identifiers::nonce(&payment.reference, kind, host::now_ms());
    let webhook = Webhook { r#type: kind, version, payload, nonce };
    let body = serde_json::to_string(&webhook).unwrap_or_else(|cause| {
        host::error(&format!("a webhook could not be written: {cause}"));
        String::new()
    });
    let headers = headers(&host::sign(KEY, body.as_bytes()));
    Message { headers, ..payment.message(Place::Notice(PLACE.to_owned()), &body) }
}

fn headers(signature: &[u8]) -> Vec<(String, String)> {
    vec![
        ("content-type".to_owned(), "application/json".to_owned()),
        ("DigitalSignature".to_owned(), BASE64.encode(signature)),
    ]
}
