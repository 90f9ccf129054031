//! The body of a payout, and what it asks for once it is understood.

use std::collections::BTreeMap;

use base64::Engine as _;
use base64::prelude::BASE64_URL_SAFE_NO_PAD;
use serde::{Deserialize, Serialize};
use serde_json::Value;
use sha2::{Digest as _, Sha256};
use utoipa::ToSchema;

use crate::error::{ErrorCode, Problem};
use crate::http::body::object_or_null;
use crate::http::texts::{self, Kind};
use crate::money::{Currency, Minor};
use crate::rails::{placed, refuse_no_block};

use super::across::{Across, AmountFields, Asked};

/// `POST /v1/payouts`.
#[derive(Clone, Debug, Default, Deserialize, ToSchema)]
#[serde(default)]
pub struct CreatePayout {
    /// What the recipient gets, in minor units of `currency`. This or, with `funding_currency`,
    /// `funding_amount_minor` is required.
    #[schema(example = "2500000")]
    pub amount_minor: Option<String>,
    /// What the recipient gets it in. Required.
    #[schema(example = "NGN")]
    pub currency: Option<String>,
    /// The recipient; its fields depend on the currency. This or `beneficiary_id` is required.
    #[schema(schema_with = recipient_schema)]
    pub recipient: Option<BTreeMap<String, Value>>,
    /// A saved recipient of the same currency; overrides `recipient`.
    pub beneficiary_id: Option<String>,
    /// The wallet of `currency` that it is paid from; found by the currency if left out.
    pub wallet_id: Option<String>,
    /// Your own reference, unique for 30 days; at most 128 characters.
    #[schema(max_length = 128)]
    pub merchant_reference: Option<String>,
    /// What the recipient reads on the statement.
    #[schema(max_length = 100)]
    pub narration: Option<String>,
    /// The customer that this is attributed to.
    pub customer_id: Option<String>,
    /// Your own word for that customer; at most 64 characters.
    #[schema(max_length = 64)]
    pub customer_reference: Option<String>,
    /// The customer that pays (GBP, USD, EUR, CAD). There are none yet: leave it out.
    #[schema(max_length = 128)]
    pub sender_customer_id: Option<String>,
    /// Who pays, for compliance.
    #[serde(deserialize_with = "object_or_null")]
    pub sender: Option<Sender>,
    /// Pay a recipient again within five minutes.
    pub allow_duplicate: Option<bool>,
    /// How to send it, where the currency has several ways.
    pub method: Option<String>,
    /// The currency that pays, if another one.
    pub funding_currency: Option<String>,
    /// What is spent, in minor units of `funding_currency`; the fee comes on top unless
    /// `fee_inclusive`.
    pub funding_amount_minor: Option<String>,
    /// The most that may leave the funding wallet; with `amount_minor` and `funding_currency`.
    pub max_debit_minor: Option<String>,
    /// The least that the recipient may get; with `funding_amount_minor`.
    pub min_receive_minor: Option<String>,
    /// Whether the fee is part of `funding_amount_minor`; it is not if left out.
    pub fee_inclusive: Option<bool>,
    /// `source` or `destination`.
    pub amount_basis: Option<String>,
}

/// Who pays, for compliance.
#[derive(Clone, Debug, Default, PartialEq, Eq, Serialize, Deserialize, ToSchema)]
#[serde(default)]
#[allow(missing_docs, reason = "the names are the contract's own")]
pub struct Sender {
    #[serde(skip_serializing_if = "Option::is_none")]
    #[schema(max_length = 140)]
    pub first_name: Option<String>,
    #[serde(skip_serializing_if = "Option::is_none")]
    #[schema(max_length = 140)]
    pub last_name: Option<String>,
    #[serde(skip_serializing_if = "Option::is_none")]
    #[schema(max_length = 140)]
    pub business_name: Option<String>,
    #[serde(skip_serializing_if = "Option::is_none")]
    #[schema(max_length = 10)]
    pub date_of_birth: Option<String>,
    #[serde(skip_serializing_if = "Option::is_none")]
    #[schema(max_length = 2)]
    pub country: Option<String>,
    #[serde(skip_serializing_if = "Option::is_none")]
    #[schema(max_length = 120)]
    pub street: Option<String>,
    #[serde(skip_serializing_if = "Option::is_none")]
    #[schema(max_length = 120)]
    pub city: Option<String>,
    #[serde(skip_serializing_if = "Option::is_none")]
    #[schema(max_length = 120)]
    pub state: Option<String>,
    #[serde(skip_serializing_if = "Option::is_none")]
    #[schema(max_length = 20)]
    pub zip_code: Option<String>,
    #[serde(skip_serializing_if = "Option::is_none")]
    #[schema(max_length = 64)]
    pub id_type: Option<String>,
    #[serde(skip_serializing_if = "Option::is_none")]
    #[schema(max_length = 64)]
    pub id_number: Option<String>,
    #[serde(skip_serializing_if = "Option::is_none")]
    #[schema(max_length = 10)]
    pub id_expiry: Option<String>,
    #[serde(skip_serializing_if = "Option::is_none")]
    #[schema(max_length = 40)]
    pub phone: Option<String>,
    #[serde(skip_serializing_if = "Option::is_none")]
    #[schema(max_length = 254)]
    pub email: Option<String>,
}

/// Stands in the document until the loaded rails' schemas take its place.
fn recipient_schema() -> utoipa::openapi::schema::Ref {
    utoipa::openapi::schema::Ref::from_schema_name("PayoutRecipient")
}

/// A payout that was asked for: every field of the right kind, nothing looked up yet.
#[derive(Clone, Debug)]
pub struct NewPayout {
    /// How much, and out of what.
    pub asked: Asked,
    /// The currency that the recipient gets.
    pub currency: Currency,
    /// The recipient: a block of fields, or a saved one.
    pub to: To,
    /// The wallet, if one was named.
    pub wallet_id: Option<String>,
    /// Your own reference.
    pub merchant_reference: Option<String>,
    /// The text for the recipient's statement.
    pub narration: Option<String>,
    /// The customer that it is attributed to.
    pub customer_id: Option<String>,
    /// The customer whose account pays.
    pub sender_customer_id: Option<String>,
    /// Your own word for it.
    pub customer_reference: Option<String>,
    /// Who pays, for compliance.
    pub sender: Option<Sender>,
    /// Whether the cool-down is waived.
    pub allow_duplicate: bool,
    /// How, if named.
    pub method: Option<String>,
}

impl NewPayout {
    /// What was sent in a field of the recipient, named by its path: `recipient.bank_code`.
    #[must_use]
    pub fn sent_as(&self, path: &str) -> Option<String> {
        match &self.to {
            To::Inline(fields) => sent_in_block(fields, path.strip_prefix("recipient.")?),
            To::Beneficiary(_) => None,
        }
    }

    /// The amount, where the wallet of the same currency pays.
    ///
    /// # Errors
    /// `invalid_funding_currency` where another one does.
    pub fn plain_amount(&self) -> Result<Minor, Problem> {
        match &self.asked {
            Asked::Plain(amount) => Ok(*amount),
            Asked::Across(_) => Err(Problem::new(ErrorCode::InvalidFundingCurrency)),
        }
    }
}

/// Whom to pay.
#[derive(Clone, Debug)]
pub enum To {
    /// A saved recipient.
    Beneficiary(String),
    /// Fields by name.
    Inline(BTreeMap<String, Value>),
}

impl Sender {
    /// Refuses a field that is too long or malformed. An empty one counts as left out.
    fn check(&self) -> Result<(), Problem> {
        for (name, value, kind) in [
            ("first_name", &self.first_name, texts::NAME),
            ("last_name", &self.last_name, texts::NAME),
            ("business_name", &self.business_name, texts::NAME),
            ("date_of_birth", &self.date_of_birth, texts::DAY),
            ("country", &self.country, texts::COUNTRY),
            ("street", &self.street, texts::ADDRESS_LINE),
            ("city", &self.city, texts::ADDRESS_LINE),
            ("state", &self.state, texts::ADDRESS_LINE),
            ("zip_code", &self.zip_code, texts::POSTCODE),
            ("id_type", &self.id_type, texts::DOCUMENT),
            ("id_number", &self.id_number, texts::DOCUMENT),
            ("id_expiry", &self.id_expiry, texts::DAY),
            ("phone", &self.phone, texts::PHONE),
            ("email", &self.email, texts::EMAIL),
        ] {
            let value = value.as_deref().filter(|value| !value.is_empty());
            kind.check(name, value).map_err(|problem| problem.within("sender"))?;
        }
        Ok(())
    }
}

impl CreatePayout {
    /// Understands the body, in the order of the contract's error table.
    ///
    /// # Errors
    /// The first thing that is wrong with it.
    pub fn read(self) -> Result<NewPayout, Problem> {
        let currency = required("currency", self.currency.as_deref())?;
        let currency = Currency::parse(currency).ok_or_else(|| {
            Problem::because(ErrorCode::CurrencyNotActive, "currency is not a currency code.")
                .field("currency")
        })?;
        let asked = self.asked(currency)?;
        let to = match (self.beneficiary_id, self.recipient) {
            (Some(id), _) => To::Beneficiary(id),
            (None, Some(fields)) => To::Inline(fields),
            (None, None) => return Err(missing("recipient")),
        };
        if let To::Inline(fields) = &to {
            check_email(fields)?;
        }
        if let (Some(customer), Some(sender)) = (&self.customer_id, &self.sender_customer_id)
            && customer != sender
        {
            return Err(Problem::new(ErrorCode::CustomerIdMismatch).field("sender_customer_id"));
        }
        texts::REFERENCE.check("sender_customer_id", self.sender_customer_id.as_deref())?;
        if let Some(sender) = &self.sender {
            sender.check()?;
        }
        Ok(NewPayout {
            asked,
            currency,
            to,
            wallet_id: self.wallet_id,
            merchant_reference: text(
                "merchant_reference",
                self.merchant_reference,
                texts::REFERENCE,
            )?,
            narration: text("narration", self.narration, texts::NARRATION)?,
            customer_id: self.customer_id,
            sender_customer_id: self.sender_customer_id,
            customer_reference: text(
                "customer_reference",
                self.customer_reference,
                texts::CUSTOMER_REFERENCE,
            )?,
            sender: self.sender,
            allow_duplicate: self.allow_duplicate.unwrap_or(false),
            method: self.method,
        })
    }

    /// How much is paid, and out of what.
    fn asked(&self, currency: Currency) -> Result<Asked, Problem> {
        let fields = AmountFields {
            amount: self.amount_minor.as_deref(),
            funding_amount: self.funding_amount_minor.as_deref(),
            max_debit: self.max_debit_minor.as_deref(),
            min_receive: self.min_receive_minor.as_deref(),
            fee_inclusive: self.fee_inclusive,
            basis: self.amount_basis.as_deref(),
        };
        if let Some(from) = fields.funding(currency, self.funding_currency.as_deref())? {
            return Ok(Asked::Across(Across { from, method: fields.method(amount)? }));
        }
        if fields.funding_amount.is_some() {
            let message = "funding_amount_minor needs funding_currency: another one than currency.";
            let missing = Problem::because(ErrorCode::InvalidFundingCurrency, message);
            return Err(missing.field("funding_currency"));
        }
        fields.refuse_guards()?;
        let text = required("amount_minor", fields.amount)?;
        Ok(Asked::Plain(amount("amount_minor", text)?))
    }

    /// The first half of the SHA-256 over what makes two payments different, amount and recipient's
    /// account, in hex.
    #[must_use]
    pub fn subject(&self) -> String {
        let sent = |name: &str| {
            let fields = self.recipient.as_ref().filter(|_| self.beneficiary_id.is_none());
            fields.and_then(|fields| fields.get(name)).map(Value::to_string).unwrap_or_default()
        };
        let mut hash = Sha256::new();
        let whole =
            [&self.amount_minor, &self.funding_amount_minor, &self.currency, &self.beneficiary_id];
        for part in whole {
            hash.update(part.as_deref().unwrap_or(""));
            hash.update("\n");
        }
        for name in ACCOUNT_FIELDS {
            hash.update(sent(name));
            hash.update("\n");
        }
        if let Some(funding) = &self.funding_currency {
            hash.update(funding);
        }
        BASE64_URL_SAFE_NO_PAD.encode(&hash.finalize()[..16])
    }
}

/// Fields that name an account, in any currency.
const ACCOUNT_FIELDS: &[&str] = &[
    "account_number",
    "bank_code",
    "sort_code",
    "routing_number",
    "iban",
    "institution_number",
    "transit_number",
    "mobile_operator",
    "mobile_number",
    "email",
];

/// The value of a field of a recipient block, whatever JSON it was sent as.
#[must_use]
pub(super) fn sent(fields: &BTreeMap<String, Value>, name: &str) -> Option<String> {
    written(fields.get(name)?)
}

/// The same of a field that may stand in a block: `bank_address.line1`.
#[must_use]
pub(super) fn sent_in_block(fields: &BTreeMap<String, Value>, place: &str) -> Option<String> {
    written(placed(fields, place)?)
}

fn written(value: &Value) -> Option<String> {
    match value {
        Value::Null => None,
        Value::String(text) => Some(text.clone()),
        other => Some(other.to_string()),
    }
}

/// Refuses declared recipient fields that are not strings, and what is no block where one of them
/// stands in a block; other blocks are for other rails.
///
/// # Errors
/// `invalid_field`.
pub(super) fn refuse_non_strings<'a>(
    fields: &BTreeMap<String, Value>,
    declared: impl Iterator<Item = &'a str>,
) -> Result<(), Problem> {
    for name in declared {
        refuse_no_block(fields, name)?;
        if !matches!(placed(fields, name), None | Some(Value::String(_) | Value::Null)) {
            let message = format!("{name} must be a string.");
            return Err(Problem::because(ErrorCode::InvalidField, message).field(name));
        }
    }
    Ok(())
}

fn check_email(fields: &BTreeMap<String, Value>) -> Result<(), Problem> {
    let email = sent(fields, "email");
    // Here the contract has a status of its own for it.
    texts::EMAIL
        .check("email", email.as_deref())
        .map_err(|problem| problem.with_code(ErrorCode::RecipientFieldInvalid).within("recipient"))
}

fn required<'a>(name: &str, value: Option<&'a str>) -> Result<&'a str, Problem> {
    value.filter(|value| !value.is_empty()).ok_or_else(|| missing(name))
}

fn missing(name: &str) -> Problem {
    Problem::because(ErrorCode::MissingField, format!("{name} is required.")).field(name)
}

fn amount(name: &str, text: &str) -> Result<Minor, Problem> {
    Minor::parse(text).ok_or_else(|| {
        let most = i64::MAX;
        let message =
            format!("{name} must be a string of digits, from 1 to {most}, in minor units.");
        Problem::because(ErrorCode::InvalidField, message).field(name)
    })
}

fn text(name: &str, value: Option<String>, kind: Kind) -> Result<Option<String>, Problem> {
    let value = value.map(|value| value.trim().to_owned()).filter(|value| !value.is_empty());
    kind.check(name, value.as_deref())?;
    Ok(value)
}

#[cfg(test)]
mod tests {
    use super::super::across::Method;
    use super::*;

    fn body() -> CreatePayout {
        let recipient = [("account_number".to_owned(), Value::from("0123456785"))];
        CreatePayout {
            amount_minor: Some("100".into()),
            currency: Some("NGN".into()),
            recipient: Some(recipient.into()),
            ..CreatePayout::default()
        }
    }

    fn refusal(body: CreatePayout) -> &'static str {
        body.read().expect_err("a refusal").code().entry().code
    }

    #[test]
    fn a_plain_body_is_read() {
        let payout = body().read().expect("accepted");
        assert!(matches!(payout.asked, Asked::Plain(amount) if amount == Minor::new(100)));
        assert!(!payout.allow_duplicate);
    }

    #[test]
    fn cross_currency_fields_have_their_own_refusals() {
        let with = |change: &dyn Fn(&mut CreatePayout)| {
            let mut changed = body();
            change(&mut changed);
            refusal(changed)
        };
        assert_eq!(with(&|b| b.funding_currency = Some("NGN".into())), "invalid_funding_currency");
        assert_eq!(with(&|b| b.funding_currency = Some(String::new())), "invalid_funding_currency");
        assert_eq!(with(&|b| b.funding_amount_minor = Some("5".into())), "ambiguous_amount");
        assert_eq!(
            with(&|b| {
                b.amount_minor = None;
                b.funding_amount_minor = Some("5".into());
            }),
            "invalid_funding_currency"
        );
        assert_eq!(with(&|b| b.max_debit_minor = Some("5".into())), "guard_field_wrong_method");
        assert_eq!(with(&|b| b.fee_inclusive = Some(false)), "guard_field_wrong_method");
        assert_eq!(with(&|b| b.amount_basis = Some("source".into())), "amount_basis_mismatch");
        let across = |change: &dyn Fn(&mut CreatePayout)| {
            with(&|b| {
                b.funding_currency = Some("USD".into());
                change(b);
            })
        };
        assert_eq!(across(&|b| b.amount_minor = None), "amount_required");
        assert_eq!(across(&|b| b.amount_minor = Some("0".into())), "invalid_field");
        assert_eq!(across(&|b| b.max_debit_minor = Some("x".into())), "invalid_field");
        assert_eq!(across(&|b| b.min_receive_minor = Some("5".into())), "guard_field_wrong_method");
        assert_eq!(across(&|b| b.fee_inclusive = Some(false)), "guard_field_wrong_method");
        assert_eq!(across(&|b| b.amount_basis = Some("source".into())), "amount_basis_mismatch");
        assert_eq!(across(&|b| b.amount_basis = Some("both".into())), "amount_basis_mismatch");
        let spending = |change: &dyn Fn(&mut CreatePayout)| {
            across(&|b| {
                b.amount_minor = None;
                b.funding_amount_minor = Some("5".into());
                change(b);
            })
        };
        assert_eq!(spending(&|b| b.max_debit_minor = Some("5".into())), "guard_field_wrong_method");
        assert_eq!(
            spending(&|b| b.amount_basis = Some("destination".into())),
            "amount_basis_mismatch"
        );
    }

    #[test]
    fn an_amount_in_another_currency_is_read_with_its_guard() {
        let read = |change: &dyn Fn(&mut CreatePayout)| {
            let mut changed = body();
            changed.funding_currency = Some("USD".into());
            change(&mut changed);
            match changed.read().expect("accepted").asked {
                Asked::Across(across) => across.method,
                Asked::Plain(_) => panic!("not across"),
            }
        };
        let (amount, guard) = (Minor::new(100), Some(Minor::new(5)));
        assert_eq!(
            read(&|b| {
                b.max_debit_minor = Some("5".into());
                b.amount_basis = Some("destination".into());
            }),
            Method::Destination { amount, max_debit: guard }
        );
        assert_eq!(
            read(&|b| {
                b.funding_amount_minor = b.amount_minor.take();
                b.min_receive_minor = Some("5".into());
                b.fee_inclusive = Some(true);
                b.amount_basis = Some("source".into());
            }),
            Method::Source { amount, is_inclusive: true, min_receive: guard }
        );
    }

    #[test]
    fn fields_are_checked_in_order() {
        let with = |change: &dyn Fn(&mut CreatePayout)| {
            let mut changed = body();
            change(&mut changed);
            refusal(changed)
        };
        assert_eq!(with(&|b| b.currency = None), "missing_field");
        assert_eq!(with(&|b| b.amount_minor = Some("1.5".into())), "invalid_field");
        assert_eq!(with(&|b| b.recipient = None), "missing_field");
        assert_eq!(with(&|b| b.narration = Some("x".repeat(101))), "invalid_field");
        assert_eq!(with(&|b| b.customer_reference = Some("x".repeat(65))), "invalid_field");
        assert_eq!(
            with(&|b| {
                b.customer_id = Some("cus_1".into());
                b.sender_customer_id = Some("cus_2".into());
            }),
            "customer_id_mismatch"
        );
    }

    #[test]
    fn the_subject_is_amount_and_account() {
        let base = body();
        let mut renamed = body();
        renamed.narration = Some("rent".into());
        if let Some(recipient) = &mut renamed.recipient {
            recipient.insert("name".into(), "Ada".into());
        }
        assert_eq!(base.subject(), renamed.subject());
        let mut dearer = body();
        dearer.amount_minor = Some("101".into());
        assert_ne!(base.subject(), dearer.subject());
    }
}
