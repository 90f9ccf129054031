//! The participant's messages. A member that stands twice makes a message unreadable, and so does
//! one of another kind than is documented.

use railhead_rail::request::{Part, seed, text};
use railhead_rail::strict::Object;
use serde::{Deserialize, Serialize};
use serde_json::value::RawValue;

/// The seed that is the recipient's answer, by its name in rail.toml.
pub const ANSWER: &str = "answer";

/// A transfer, as it is ordered.
#[derive(Clone, Debug)]
pub struct Order {
    /// Ours.
    pub reference: String,
    /// `EN` or `FR`.
    pub language: String,
    /// Dollars with two decimals.
    pub dollars: Box<RawValue>,
    /// Who sends it, as the recipient reads it.
    pub sender_name: String,
    /// The account that it is paid from.
    pub debtor_account: String,
    /// The recipient's name.
    pub name: String,
    /// The recipient's email address.
    pub email: String,
    /// The text for the recipient.
    pub memo: String,
    /// What the recipient is asked who has no Autodeposit.
    pub question: String,
}

impl Order {
    /// The body of the request. The answer is put in by the host, as its last text.
    ///
    /// # Errors
    /// It cannot be written, which does not happen.
    pub fn write(&self) -> Result<Vec<Part>, String> {
        let written = Payment {
            product_code: "DOMESTIC",
            message_identification: &self.reference,
            end_to_end_identification: &self.reference,
            language: &self.language,
            instructed_amount: WrittenAmount { amount: &self.dollars, currency: "CAD" },
            debtor: Debtor { name: &self.sender_name },
            debtor_account: Account {
                identification: Identification {
                    other: Other { identification: &self.debtor_account },
                },
            },
            creditor: Creditor {
                name: &self.name,
                contact_details: ContactDetails { email_address: &self.email },
            },
            creditor_account: Alias {
                proxy: Proxy {
                    r#type: ProxyType { proprietary: "EMAIL" },
                    identification: &self.email,
                },
            },
            remittance_information: Remittance { unstructured: &self.memo },
        };
        let failed = |_| "the transfer cannot be written".to_owned();
        let head = serde_json::to_string(&written).map_err(failed)?;
        let head = head.strip_suffix('}').ok_or("the transfer is no object")?;
        let question = serde_json::to_string(&self.question).map_err(failed)?;
        let head = format!(
            "{head},\"payment_authentication\":{{\"security_question\":{question},\
             \"security_answer\":\""
        );
        Ok(vec![text(head), seed(ANSWER), text("\"}}")])
    }
}

/// Why a transfer is cancelled, as a body.
#[must_use]
pub fn cancellation() -> Vec<Part> {
    vec![text("{\"cancellation_reason\":\"REQUESTED_BY_SENDER\"}")]
}

#[derive(Serialize)]
struct Payment<'a> {
    product_code: &'static str,
    message_identification: &'a str,
    end_to_end_identification: &'a str,
    language: &'a str,
    instructed_amount: WrittenAmount<'a>,
    debtor: Debtor<'a>,
    debtor_account: Account<'a>,
    creditor: Creditor<'a>,
    creditor_account: Alias<'a>,
    remittance_information: Remittance<'a>,
}

#[derive(Serialize)]
struct WrittenAmount<'a> {
    amount: &'a RawValue,
    currency: &'static str,
}

#[derive(Serialize)]
struct Debtor<'a> {
    name: &'a str,
}

#[derive(Serialize)]
struct Account<'a> {
    identification: Identification<'a>,
}

#[derive(Serialize)]
struct Identification<'a> {
    other: Other<'a>,
}

#[derive(Serialize)]
struct Other<'a> {
    identification: &'a str,
}

#[derive(Serialize)]
struct Creditor<'a> {
    name: &'a str,
    contact_details: ContactDetails<'a>,
}

#[derive(Serialize)]
struct ContactDetails<'a> {
    email_address: &'a str,
}

#[derive(Serialize)]
struct Alias<'a> {
    proxy: Proxy<'a>,
}

#[derive(Serialize)]
struct Proxy<'a> {
    r#type: ProxyType,
    identification: &'a str,
}

#[derive(Serialize)]
struct ProxyType {
    proprietary: &'static str,
}

#[derive(Serialize)]
struct Remittance<'a> {
    unstructured: &'a str,
}

/// An answer: how a transfer stands, or why there is nothing of it.
#[derive(Clone, Debug, Default, Deserialize)]
pub struct Answer {
    /// The transfer.
    pub data: Option<Object<Standing>>,
    /// What is to be said about the request.
    pub notifications: Option<Vec<Object<Notification>>>,
}

/// How a transfer stands.
#[derive(Clone, Debug, Deserialize)]
pub struct Standing {
    /// Our reference.
    pub end_to_end_identification: String,
    /// A word for it; none of a transfer that is not known.
    pub payment_status: Option<String>,
    /// Why it failed.
    pub failure_code: Option<String>,
    /// The network's own name for it, which its recipient is told.
    pub clearing_system_reference: Option<String>,
    /// `PAYMENT_LEVEL` where the recipient has to answer the transfer's own question, and
    /// `NOT_REQUIRED` with Autodeposit.
    pub authentication_type: Option<String>,
    /// How much it is.
    pub amount: Option<Object<Amount>>,
}

/// An amount of a currency.
#[derive(Clone, Debug, Deserialize)]
pub struct Amount {
    /// In dollars, as it was written.
    pub amount: Box<RawValue>,
    /// ISO 4217.
    pub currency: String,
}

/// What is to be said about a request.
#[derive(Clone, Debug, Deserialize)]
pub struct Notification {
    /// The participant's code.
    pub code: String,
}

/// A message that the participant sends by itself.
#[derive(Clone, Debug, Deserialize)]
pub struct Event {
    /// How the transfer stands by now.
    pub data: Object<Standing>,
}
