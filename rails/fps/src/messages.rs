//! The gateway's messages of payments. A member that stands twice makes a message unreadable, and
//! so does one of another kind than is documented.

use serde::{Deserialize, Serialize};
use serde_json::Value;
use serde_json::value::RawValue;

use railhead_rail::strict::{Object, Unrepeated};

/// How ClearBank's clients name a sort code and account number.
const ACCOUNT_SCHEME: &str = "PRTY_COUNTRY_SPECIFIC";
/// What those clients put in front of them.
const ACCOUNT_COUNTRY: &str = "GBR";

/// A payment, as it is ordered. Only what the gateway requires, and the reference.
#[derive(Clone, Debug)]
pub struct Order {
    /// Ours.
    pub reference: String,
    /// SIP, SOP or FDP.
    pub payment_type: String,
    /// The address of whose account is debited.
    pub debtor_address: String,
    /// Its sort code and number.
    pub debtor_account: (String, String),
    /// The payee's name.
    pub name: String,
    /// The payee's sort code and number.
    pub account: (String, String),
    /// Pounds with two decimals.
    pub pounds: Box<RawValue>,
    /// The text for the payee's statement.
    pub remittance: String,
}

impl Order {
    /// The body of the request.
    ///
    /// # Errors
    /// It cannot be written, which does not happen.
    pub fn write(&self) -> Result<String, String> {
        let written = Instructions {
            payment_instructions: [Instruction {
                payment_instruction_identification: &self.reference,
                payment_type_code: &self.payment_type,
                debtor: Debtor { address: &self.debtor_address },
                debtor_account: account(&self.debtor_account),
                credit_transfers: [CreditTransfer {
                    payment_identification: PaymentIdentification {
                        instruction_identification: &self.reference,
                        end_to_end_identification: &self.reference,
                    },
                    amount: WrittenAmount { instructed_amount: &self.pounds, currency: "GBP" },
                    creditor: Creditor { name: &self.name },
                    creditor_account: account(&self.account),
                    remittance_information: Remittance {
                        structured: Structured {
                            creditor_reference_information: CreditorReference {
                                reference: &self.remittance,
                            },
                        },
                    },
                }],
            }],
        };
        serde_json::to_string(&written).map_err(|_| "the order cannot be written".to_owned())
    }
}

fn account((sort_code, number): &(String, String)) -> Account {
    Account {
        identification: AccountIdentification {
            other: OtherAccount {
                identification: format!("{ACCOUNT_COUNTRY}{sort_code}{number}"),
                scheme_name: SchemeName { proprietary: ACCOUNT_SCHEME },
            },
        },
    }
}

#[derive(Serialize)]
#[serde(rename_all = "camelCase")]
struct Instructions<'a> {
    payment_instructions: [Instruction<'a>; 1],
}

#[derive(Serialize)]
#[serde(rename_all = "camelCase")]
struct Instruction<'a> {
    payment_instruction_identification: &'a str,
    payment_type_code: &'a str,
    debtor: Debtor<'a>,
    debtor_account: Account,
    credit_transfers: [CreditTransfer<'a>; 1],
}

#[derive(Serialize)]
struct Debtor<'a> {
    address: &'a str,
}

#[derive(Serialize)]
struct Account {
    identification: AccountIdentification,
}

#[derive(Serialize)]
struct AccountIdentification {
    other: OtherAccount,
}

#[derive(Serialize)]
#[serde(rename_all = "camelCase")]
struct OtherAccount {
    identification: String,
    scheme_name: SchemeName,
}

#[derive(Serialize)]
struct SchemeName {
    proprietary: &'static str,
}

#[derive(Serialize)]
#[serde(rename_all = "camelCase")]
struct CreditTransfer<'a> {
    payment_identification: PaymentIdentification<'a>,
    amount: WrittenAmount<'a>,
    creditor: Creditor<'a>,
    creditor_account: Account,
    remittance_information: Remittance<'a>,
}

#[derive(Serialize)]
#[serde(rename_all = "camelCase")]
struct PaymentIdentification<'a> {
    instruction_identification: &'a str,
    end_to_end_identification: &'a str,
}

#[derive(Serialize)]
#[serde(rename_all = "camelCase")]
struct WrittenAmount<'a> {
    instructed_amount: &'a RawValue,
    currency: &'static str,
}

#[derive(Serialize)]
struct Creditor<'a> {
    name: &'a str,
}

#[derive(Serialize)]
struct Remittance<'a> {
    structured: Structured<'a>,
}

#[derive(Serialize)]
#[serde(rename_all = "camelCase")]
struct Structured<'a> {
    creditor_reference_information: CreditorReference<'a>,
}

#[derive(Serialize)]
struct CreditorReference<'a> {
    reference: &'a str,
}

/// The answer to an order: what was decided of each payment in it.
#[derive(Clone, Debug, Default, Deserialize)]
pub struct Decisions {
    /// One for each payment, or none where the order as a whole was refused.
    #[serde(default)]
    pub transactions: Option<Vec<Object<Decision>>>,
    /// What is wrong with the order, by member.
    #[serde(default)]
    pub errors: Option<Unrepeated<Vec<String>>>,
}

/// What was decided of one payment.
#[derive(Clone, Debug, Deserialize)]
#[serde(rename_all = "camelCase")]
pub struct Decision {
    /// The payer's reference.
    pub end_to_end_identification: String,
    /// The gateway's word.
    pub response: String,
}

/// The answer to a question about a payment.
#[derive(Clone, Debug, Deserialize)]
#[serde(rename_all = "camelCase")]
pub struct Status {
    /// The payer's reference.
    pub end_to_end_identification: String,
    /// Where the payment stands, as a word. Of one that is not known there is none; a document
    /// of a problem has the HTTP status here.
    pub status: Option<Value>,
    /// The scheme's own name for the payment.
    pub fpid: Option<String>,
    /// The gateway's own name for it.
    pub transaction_id: Option<String>,
    /// How much was paid.
    pub amount: Option<Object<Amount>>,
    /// Why it was refused, as a code.
    pub reason_code: Option<String>,
}

/// An amount of a currency.
#[derive(Clone, Debug, Deserialize)]
#[serde(rename_all = "camelCase")]
pub struct Amount {
    /// In major units, as it was written.
    pub instructed_amount: Box<RawValue>,
    /// ISO 4217.
    pub currency: String,
}
