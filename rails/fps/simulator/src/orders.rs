//! Payments as they are ordered, read as ClearBank's document of its API describes them.
//!
//! What that document does not name, forbids or finds too long is refused: a member too many, a
//! text for a number, an eleventh payment.

use std::fmt;

use serde::{Deserialize, Deserializer};

use crate::accounts::Account;
use crate::amounts::Pounds;

/// Most payment instructions in an order, and most credit transfers in an instruction.
const LIST_MAX: usize = 10;
/// The scheme's limit for one payment: a million pounds.
const AMOUNT_MAX: Pounds = Pounds(100_000_000);

/// What is wrong with a message.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Fault {
    /// The member that it is about; `$` where it is the whole.
    pub at: String,
    /// What is wrong with it.
    pub why: String,
}

impl Fault {
    /// A fault of the whole message, such as that it is no JSON.
    #[must_use]
    pub fn whole(why: &impl ToString) -> Self {
        Self { at: "$".to_owned(), why: why.to_string() }
    }
}

impl fmt::Display for Fault {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "{} {}", self.at, self.why)
    }
}

/// A single payment of an order.
#[derive(Clone, Debug)]
pub struct Order {
    /// The payer's name for it, by which it is known to have come before.
    pub reference: String,
    /// What is paid.
    pub amount: Pounds,
    /// The account that it is paid from.
    pub debtor: Account,
    /// The account that it is paid to.
    pub creditor: Account,
    /// The name that it is paid to.
    pub name: String,
    /// The text for the payee's statement.
    pub remittance: String,
}

/// The payments of an order.
///
/// # Errors
/// The first thing that ClearBank would not have.
pub fn read(body: &[u8]) -> Result<Vec<Order>, Fault> {
    let batch: Batch = serde_json::from_slice(body).map_err(|cause| Fault::whole(&cause))?;
    let instructions = &batch.payment_instructions;
    first_fault("", &[(is_list(instructions), "paymentInstructions", "must have 1 to 10 items")])?;
    let mut orders = Vec::new();
    for (index, instruction) in instructions.iter().enumerate() {
        let at = format!("paymentInstructions[{index}].");
        let debtor = instruction.read(&at)?;
        for (index, transfer) in instruction.credit_transfers.iter().enumerate() {
            let at = format!("{at}creditTransfers[{index}].");
            orders.push(transfer.read(&at, &debtor)?);
        }
    }
    Ok(orders)
}

#[derive(Deserialize)]
#[serde(deny_unknown_fields, rename_all = "camelCase")]
struct Batch {
    payment_instructions: Vec<Instruction>,
}

#[derive(Deserialize)]
#[serde(deny_unknown_fields, rename_all = "camelCase")]
struct Instruction {
    debtor: Debtor,
    payment_instruction_identification: String,
    #[serde(default, deserialize_with = "never_null")]
    payment_type_code: Option<String>,
    debtor_account: NamedAccount,
    credit_transfers: Vec<CreditTransfer>,
}

#[derive(Deserialize)]
#[serde(deny_unknown_fields, rename_all = "camelCase")]
struct Debtor {
    address: String,
    legal_entity_identifier: Option<String>,
}

#[derive(Deserialize)]
#[serde(deny_unknown_fields, rename_all = "camelCase")]
struct CreditTransfer {
    payment_identification: PaymentIdentification,
    amount: Amount,
    creditor: Creditor,
    creditor_account: NamedAccount,
    remittance_information: Remittance,
    // "Included but left blank" is documented to be refused.
    #[serde(default, deserialize_with = "never_null", rename = "enforceSendToScheme")]
    _enforce_send_to_scheme: Option<bool>,
}

#[derive(Deserialize)]
#[serde(deny_unknown_fields, rename_all = "camelCase")]
struct PaymentIdentification {
    instruction_identification: String,
    end_to_end_identification: String,
}

#[derive(Deserialize)]
#[serde(deny_unknown_fields, rename_all = "camelCase")]
struct Amount {
    instructed_amount: Pounds,
    currency: Option<String>,
}

#[derive(Deserialize)]
#[serde(deny_unknown_fields)]
struct Creditor {
    name: String,
    /// ClearBank's own spelling.
    #[serde(rename = "legalEntityIndentifier")]
    legal_entity_identifier: Option<String>,
}

#[derive(Deserialize)]
#[serde(deny_unknown_fields)]
struct NamedAccount {
    identification: Identification,
}

#[derive(Deserialize)]
#[serde(deny_unknown_fields)]
struct Identification {
    iban: Option<String>,
    #[serde(default, deserialize_with = "never_null")]
    other: Option<Other>,
}

#[derive(Deserialize)]
#[serde(deny_unknown_fields, rename_all = "camelCase")]
struct Other {
    identification: String,
    scheme_name: Scheme,
    issuer: Option<String>,
}

#[derive(Deserialize)]
#[serde(deny_unknown_fields)]
struct Scheme {
    code: Option<String>,
    proprietary: Option<String>,
}

#[derive(Deserialize)]
#[serde(deny_unknown_fields)]
struct Remittance {
    #[serde(default, deserialize_with = "never_null")]
    structured: Option<Structured>,
    #[serde(default, deserialize_with = "never_null")]
    unstructured: Option<Unstructured>,
}

#[derive(Deserialize)]
#[serde(deny_unknown_fields, rename_all = "camelCase")]
struct Structured {
    #[serde(default, deserialize_with = "never_null")]
    creditor_reference_information: Option<Reference>,
}

#[derive(Deserialize)]
#[serde(deny_unknown_fields, rename_all = "camelCase")]
struct Unstructured {
    #[serde(default, deserialize_with = "never_null")]
    additional_reference_information: Option<Reference>,
}

#[derive(Deserialize)]
#[serde(deny_unknown_fields)]
struct Reference {
    reference: Option<String>,
}

impl Instruction {
    /// The account that is debited, once the instruction's own members are right.
    fn read(&self, at: &str) -> Result<Account, Fault> {
        let address = &self.debtor.address;
        let is_address = is_text(address, 1, 140) && address.chars().all(is_address_character);
        let kind = self.payment_type_code.as_deref().unwrap_or("SIP");
        let entity = self.debtor.legal_entity_identifier.as_deref().unwrap_or_default();
        let identification = &self.payment_instruction_identification;
        first_fault(
            at,
            &[
                (is_address, "debtor.address", "must be 1 to 140 characters of those allowed"),
                (is_text(entity, 0, 35), "debtor.legalEntityIdentifier", TOO_LONG),
                (is_text(identification, 1, 35), "paymentInstructionIdentification", TOO_LONG),
                (matches!(kind, "SIP" | "SOP" | "FDP"), "paymentTypeCode", "must be SIP, SOP, FDP"),
                (is_list(&self.credit_transfers), "creditTransfers", "must have 1 to 10 items"),
            ],
        )?;
        self.debtor_account.read(at, "debtorAccount")
    }
}

impl CreditTransfer {
    fn read(&self, at: &str, debtor: &Account) -> Result<Order, Fault> {
        let ids = &self.payment_identification;
        let amount = self.amount.instructed_amount;
        let currency = self.amount.currency.as_deref().unwrap_or("GBP");
        let name = &self.creditor.name;
        let entity = self.creditor.legal_entity_identifier.as_deref().unwrap_or_default();
        let remittance = self.remittance_information.structured();
        let unstructured = self.remittance_information.unstructured();
        let is_end_to_end = is_text(&ids.end_to_end_identification, 1, 35);
        let is_instruction = is_text(&ids.instruction_identification, 1, 35);
        let is_name = is_text(name, 1, 140) && !name.trim().is_empty();
        first_fault(
            at,
            &[
                (is_end_to_end, "paymentIdentification.endToEndIdentification", TOO_LONG),
                (is_instruction, "paymentIdentification.instructionIdentification", TOO_LONG),
                (amount.0 > 0, "amount.instructedAmount", "must be more than nothing"),
                (amount.0 <= AMOUNT_MAX.0, "amount.instructedAmount", "must be 1000000 at most"),
                (currency == "GBP", "amount.currency", "must be GBP"),
                (is_name, "creditor.name", "must have 1 to 140 characters"),
                (name.chars().all(is_carried), "creditor.name", NOT_CARRIED),
                (is_text(entity, 0, 35), "creditor.legalEntityIndentifier", TOO_LONG),
                (is_text(remittance, 0, 35), "remittanceInformation.structured", TOO_LONG),
                (
                    remittance.chars().all(is_carried),
                    "remittanceInformation.structured",
                    NOT_CARRIED,
                ),
                (is_text(unstructured, 0, 140), "remittanceInformation.unstructured", TOO_LONG),
            ],
        )?;
        Ok(Order {
            reference: ids.end_to_end_identification.clone(),
            amount,
            debtor: debtor.clone(),
            creditor: self.creditor_account.read(at, "creditorAccount")?,
            name: name.clone(),
            remittance: remittance.to_owned(),
        })
    }
}

impl NamedAccount {
    /// The account that is meant. An account has one name here, as it has in ISO 20022.
    fn read(&self, at: &str, member: &str) -> Result<Account, Fault> {
        let read = match (self.identification.iban.as_deref(), &self.identification.other) {
            (Some(iban), None) => Account::read_iban(iban),
            (None, Some(other)) => other.read(),
            _ => None,
        };
        let why = "must be a GB IBAN, a BBAN, or GBR with sort code and number".to_owned();
        read.ok_or_else(|| Fault { at: format!("{at}{member}.identification"), why })
    }
}

impl Other {
    fn read(&self) -> Option<Account> {
        if !is_text(self.issuer.as_deref().unwrap_or_default(), 0, 35) {
            return None;
        }
        match (self.scheme_name.code.as_deref(), self.scheme_name.proprietary.as_deref()) {
            (Some("BBAN"), None) | (None, Some("BBAN")) => Account::read_bban(&self.identification),
            // The documentation names no scheme for sort code and number; the clients that are
            // published use this one.
            (None, Some("PRTY_COUNTRY_SPECIFIC")) => Account::read_by_country(&self.identification),
            _ => None,
        }
    }
}

impl Remittance {
    fn structured(&self) -> &str {
        let structured = self.structured.as_ref();
        text_of(structured.and_then(|it| it.creditor_reference_information.as_ref()))
    }

    fn unstructured(&self) -> &str {
        let unstructured = self.unstructured.as_ref();
        text_of(unstructured.and_then(|it| it.additional_reference_information.as_ref()))
    }
}

const TOO_LONG: &str = "is missing or too long";
const NOT_CARRIED: &str = "must only contain valid Faster Payments characters";

/// A condition that must hold, the member that it is about, and what is wrong otherwise.
type Check<'a> = (bool, &'a str, &'a str);

fn first_fault(at: &str, checks: &[Check<'_>]) -> Result<(), Fault> {
    match checks.iter().find(|(is_right, ..)| !is_right) {
        Some((_, member, why)) => {
            Err(Fault { at: format!("{at}{member}"), why: (*why).to_owned() })
        }
        None => Ok(()),
    }
}

/// A member that may be left out and, where it is there, is not `null`.
fn never_null<'de, T: Deserialize<'de>, D: Deserializer<'de>>(
    deserializer: D,
) -> Result<Option<T>, D::Error> {
    T::deserialize(deserializer).map(Some)
}

fn text_of(reference: Option<&Reference>) -> &str {
    reference.and_then(|it| it.reference.as_deref()).unwrap_or_default()
}

fn is_list<T>(items: &[T]) -> bool {
    (1..=LIST_MAX).contains(&items.len())
}

fn is_text(text: &str, least: usize, most: usize) -> bool {
    (least..=most).contains(&text.chars().count())
}

fn is_address_character(c: char) -> bool {
    c.is_ascii_alphanumeric() || "/-?:().,'+ ".contains(c)
}

/// What names and references may hold. The documentation's pattern prints a curved apostrophe,
/// beside "right double quote" for the straight one that the pattern has: an editor's work. The
/// scheme carries ASCII.
fn is_carried(c: char) -> bool {
    c.is_ascii_alphanumeric() || "/-?:().,'+ \r\n#=!\"%&*<>;{@".contains(c)
}
