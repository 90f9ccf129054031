//! The body of a batch, and its rows.

use std::collections::BTreeMap;

use serde::Deserialize;
use serde_json::{Map, Value};
use utoipa::ToSchema;

use crate::error::{ErrorCode, Problem};
use crate::money::{Currency, Minor};
use crate::payouts::request::{CreatePayout, NewPayout};

use super::findings::{ITEMS, of_row};

/// The most rows of a batch.
pub(super) const ROWS_MAX: usize = 150;
/// The only currency that batches are paid in.
pub const CURRENCY: &str = "NGN";

/// `POST /v1/batches`.
#[derive(Debug, Default, Deserialize, ToSchema)]
#[serde(default)]
pub struct CreateBatch {
    /// The currency of all rows: NGN. Required.
    #[schema(example = "NGN")]
    pub currency: Option<String>,
    /// The payouts: 1 to 150. Required.
    #[schema(value_type = Vec<BatchItem>, min_items = 1, max_items = 150)]
    pub items: Option<Value>,
    /// The wallet that pays; found by the currency if left out.
    pub wallet_id: Option<String>,
}

/// A row of a batch: a payout, of which some fields may be named as in files of payments.
#[derive(Debug, ToSchema)]
pub(super) struct BatchItem {}

/// Fields by the names that they have in files of payments, and where a payout has them: the block,
/// and the field.
pub const BULK_NAMES: &[(&str, &str, &str)] = &[
    ("recipient_bank_code", "recipient", "bank_code"),
    ("recipient_account_number", "recipient", "account_number"),
    ("recipient_name", "recipient", "name"),
    ("recipient_email", "recipient", "email"),
    ("sender_id_type", "sender", "id_type"),
    ("sender_id_number", "sender", "id_number"),
    ("sender_id_expiry", "sender", "id_expiry"),
    ("sender_date_of_birth", "sender", "date_of_birth"),
    ("sender_country", "sender", "country"),
    ("sender_first_name", "sender", "first_name"),
    ("sender_last_name", "sender", "last_name"),
    ("sender_business_name", "sender", "business_name"),
];

/// What a sender can show, and where only one country gives it out, which.
const ID_TYPES: [(&str, Option<&str>); 7] = [
    ("passport", None),
    ("drivers_license", None),
    ("national_id", None),
    ("nin", Some("NG")),
    ("voters_card", Some("NG")),
    ("ssn_card", Some("US")),
    ("state_id", Some("US")),
];

/// A batch that was asked for: every field of the right kind, nothing looked up yet.
#[derive(Debug)]
pub(super) struct NewBatch {
    /// Of all rows.
    pub currency: Currency,
    /// The payouts, in order.
    pub rows: Vec<NewRow>,
    /// What their recipients get together.
    pub total: Minor,
}

/// A row that was asked for.
#[derive(Clone, Debug)]
pub(super) struct NewRow {
    /// The payout.
    pub payout: NewPayout,
    /// Fields that were sent under the names of files: where a payout has them, and the name.
    named: Vec<(String, &'static str)>,
}

impl NewRow {
    /// A payout's field, by the name under which it was sent.
    pub(super) fn name_of(&self, field: &str) -> String {
        name_of(&self.named, field)
    }

    /// What is wrong with a field, said of the one that was sent.
    pub(super) fn in_its_words(&self, problem: Problem) -> Problem {
        in_its_words(&self.named, problem)
    }
}

fn name_of(named: &[(String, &'static str)], field: &str) -> String {
    let found = named.iter().find(|(place, _)| place == field);
    found.map_or_else(|| field.to_owned(), |(_, name)| (*name).to_owned())
}

fn in_its_words(named: &[(String, &'static str)], problem: Problem) -> Problem {
    match problem.about().map(|field| name_of(named, field)) {
        Some(name) => problem.field(name),
        None => problem,
    }
}

/// A batch whose rows nobody has looked into.
pub(super) struct Outline {
    /// Of all rows.
    pub currency: Currency,
    /// The wallet, if one was named.
    pub wallet_id: Option<String>,
    rows: Vec<Map<String, Value>>,
}

impl CreateBatch {
    /// The currency and the rows, without looking into them.
    ///
    /// # Errors
    /// `missing_field`, `currency_not_supported`, `invalid_body`, `items_empty`, `items_too_many`.
    pub(super) fn outline(self) -> Result<Outline, Problem> {
        let missing = |name: &str| {
            Problem::because(ErrorCode::MissingField, format!("{name} is required.")).field(name)
        };
        let currency = self.currency.filter(|currency| !currency.is_empty());
        let currency = currency.ok_or_else(|| missing("currency"))?;
        let currency = Currency::parse(&currency)
            .filter(|currency| currency.as_str() == CURRENCY)
            .ok_or_else(|| Problem::new(ErrorCode::BatchCurrencyNotSupported).field("currency"))?;
        let items = match self.items {
            None | Some(Value::Null) => return Err(missing(ITEMS)),
            Some(Value::Array(items)) => items,
            Some(_) => {
                let message = "items must be a list of payouts.";
                return Err(Problem::because(ErrorCode::InvalidBody, message).field(ITEMS));
            }
        };
        match items.len() {
            0 => return Err(Problem::new(ErrorCode::ItemsEmpty).field(ITEMS)),
            n if n > ROWS_MAX => {
                let message =
                    format!("A batch holds at most {ROWS_MAX} items, and this one {n}: split it.");
                return Err(Problem::because(ErrorCode::ItemsTooMany, message).field(ITEMS));
            }
            _ => {}
        }
        let object = |(index, item): (usize, Value)| match item {
            Value::Object(fields) => Ok(fields),
            _ => {
                let message = "It must be an object: a payout.";
                Err(Problem::because(ErrorCode::InvalidFormat, message).of_item(ITEMS, index))
            }
        };
        let rows = items.into_iter().enumerate().map(object).collect::<Result<_, _>>()?;
        Ok(Outline { currency, wallet_id: self.wallet_id, rows })
    }
}

impl NewBatch {
    /// Reads the rows, one after the other.
    ///
    /// # Errors
    /// What is wrong with the first bad one, with its place in field and message.
    pub(super) fn read(outline: Outline, today: &str) -> Result<Self, Problem> {
        let Outline { currency, wallet_id, rows } = outline;
        let mut batch = Self { currency, rows: Vec::with_capacity(rows.len()), total: Minor::ZERO };
        let mut references: BTreeMap<String, usize> = BTreeMap::new();
        for (index, fields) in rows.into_iter().enumerate() {
            let row = row(fields, (currency, wallet_id.as_deref()), today);
            let row = row.map_err(|problem| of_row(index, problem))?;
            if let Some(reference) = &row.payout.merchant_reference
                && let Some(first) = references.insert(reference.clone(), index)
            {
                let message = format!("merchant_reference is that of items[{first}] as well.");
                let problem = Problem::because(ErrorCode::MerchantReferenceDuplicate, message);
                return Err(of_row(index, problem.field("merchant_reference")));
            }
            batch.total = batch.total.plus(row.payout.plain_amount()?).map_err(|_| {
                let message = "The amounts of this batch come to more than any wallet holds.";
                of_row(index, Problem::because(ErrorCode::InvalidAmount, message))
            })?;
            batch.rows.push(row);
        }
        Ok(batch)
    }
}

/// Understands one row.
fn row(
    mut fields: Map<String, Value>,
    (currency, wallet_id): (Currency, Option<&str>),
    today: &str,
) -> Result<NewRow, Problem> {
    refuse_mistyped(&fields)?;
    for other in ["funding_currency", "funding_amount_minor"] {
        if fields.get(other).is_some_and(|value| !value.is_null()) {
            let message =
                format!("{other} is for single payouts: a batch is paid from one wallet.");
            return Err(Problem::because(ErrorCode::InvalidField, message).field(other));
        }
    }
    match fields.get("currency") {
        None | Some(Value::Null) => {
            fields.insert("currency".to_owned(), currency.as_str().into());
        }
        Some(Value::String(text)) if text == currency.as_str() => {}
        Some(_) => {
            let message = format!("currency must be {currency}, as the batch's is.");
            let problem = Problem::because(ErrorCode::CurrencyMismatch, message);
            return Err(problem.field("currency"));
        }
    }
    if let Some(id) = wallet_id {
        fields.entry("wallet_id").or_insert_with(|| id.into());
    }
    let named = take_bulk_names(&mut fields, today)?;
    let payout = serde_path_to_error::deserialize::<_, CreatePayout>(Value::Object(fields));
    let payout = payout.map_err(|error| {
        let path = error.path().to_string();
        let message = format!("{}.", error.into_inner());
        Problem::because(ErrorCode::InvalidField, message).field(path)
    })?;
    let payout = payout.read().map_err(|problem| in_its_words(&named, problem))?;
    Ok(NewRow { payout, named })
}

/// Refuses money that is no string; everything else is refused as it is read.
fn refuse_mistyped(fields: &Map<String, Value>) -> Result<(), Problem> {
    match fields.get("amount_minor") {
        None | Some(Value::Null | Value::String(_)) => Ok(()),
        Some(_) => {
            let message = "amount_minor must be a string of digits, in minor units.";
            Err(Problem::because(ErrorCode::InvalidAmount, message).field("amount_minor"))
        }
    }
}

/// Puts fields that are named as in files of payments where a payout has them; answers which. Where
/// something else stands there already, nobody knows who is meant.
fn take_bulk_names(
    fields: &mut Map<String, Value>,
    today: &str,
) -> Result<Vec<(String, &'static str)>, Problem> {
    let mut named = Vec::new();
    for &(bulk, block, name) in BULK_NAMES {
        let text = match fields.remove(bulk) {
            None | Some(Value::Null) => continue,
            Some(Value::String(text)) if text.is_empty() => continue,
            Some(Value::String(text)) => text,
            Some(_) => {
                let message = format!("{bulk} must be a string.");
                return Err(Problem::because(ErrorCode::InvalidField, message).field(bulk));
            }
        };
        let value = match name {
            "id_expiry" => day(bulk, &text, |day| day >= today, "must not be in the past")?,
            "date_of_birth" => day(bulk, &text, |day| day < today, "must be in the past")?,
            _ => text,
        };
        let place = fields.entry(block).or_insert(Value::Null);
        if place.is_null() {
            *place = Value::Object(Map::new());
        }
        let Value::Object(fields) = place else { continue };
        match fields.get(name).filter(|known| !known.is_null()) {
            None => {
                fields.insert(name.to_owned(), value.into());
                named.push((format!("{block}.{name}"), bulk));
            }
            Some(known) if *known == Value::String(value) => {}
            Some(_) => {
                let message = format!("{bulk} is not what {block}.{name} says: send one of them.");
                return Err(Problem::because(ErrorCode::InvalidField, message).field(bulk));
            }
        }
    }
    let said = |name: &str| fields.get("sender").and_then(|sender| sender[name].as_str());
    refuse_document(said("id_type"), said("country"))
        .map_err(|problem| in_its_words(&named, problem))?;
    Ok(named)
}

/// DDMMYYYY as a payout has it: YYYY-MM-DD.
fn day(
    field: &str,
    text: &str,
    fits: impl Fn(&str) -> bool,
    wanted: &str,
) -> Result<String, Problem> {
    let read = || {
        let is_digits = text.len() == 8 && text.bytes().all(|byte| byte.is_ascii_digit());
        let number = |range: std::ops::Range<usize>| text.get(range)?.parse::<i16>().ok();
        let (day, month, year) = (number(0..2)?, number(2..4)?, number(4..8)?);
        let date = jiff::civil::Date::new(year, month.try_into().ok()?, day.try_into().ok()?);
        date.ok().filter(|_| is_digits).map(|date| date.to_string())
    };
    let refuse = |wanted: &str| {
        Problem::because(ErrorCode::InvalidField, format!("{field} {wanted}.")).field(field)
    };
    let day = read().ok_or_else(|| refuse("must be a day, written DDMMYYYY"))?;
    match fits(&day) {
        true => Ok(day),
        false => Err(refuse(wanted)),
    }
}

/// Refuses a document that there is not, or that the sender's country does not give out.
fn refuse_document(id_type: Option<&str>, country: Option<&str>) -> Result<(), Problem> {
    let Some(id_type) = id_type.filter(|id_type| !id_type.is_empty()) else { return Ok(()) };
    let is_given_out = |(_, of): &&(&str, Option<&str>)| match (of, country) {
        (Some(of), Some(country)) if !country.is_empty() => *of == country,
        _ => true,
    };
    let known: Vec<&str> = ID_TYPES.iter().filter(is_given_out).map(|(name, _)| *name).collect();
    match known.contains(&id_type) {
        true => Ok(()),
        false => {
            let message = format!("id_type must be one of {}.", known.join(", "));
            Err(Problem::because(ErrorCode::InvalidIdType, message).field("sender.id_type"))
        }
    }
}

#[cfg(test)]
mod tests {
    use serde_json::json;

    use super::*;

    fn read(items: Value) -> Result<NewBatch, Problem> {
        let body = CreateBatch {
            currency: Some("NGN".into()),
            items: Some(items),
            ..CreateBatch::default()
        };
        NewBatch::read(body.outline()?, "2026-11-21")
    }

    fn row() -> Value {
        json!({
            "amount_minor": "500",
            "recipient_bank_code": "058",
            "recipient_account_number": "0123456785",
        })
    }

    fn with(changes: &Value) -> Value {
        let mut row = row();
        for (name, value) in changes.as_object().into_iter().flatten() {
            row[name] = value.clone();
        }
        json!([super::tests::row(), row])
    }

    fn refusal(items: Value) -> (&'static str, String) {
        let problem = read(items).expect_err("a refusal");
        (problem.code().entry().code, problem.about().unwrap_or_default().to_owned())
    }

    #[test]
    fn a_batch_is_a_list_of_payouts() {
        let batch = read(json!([row(), row()])).expect("a batch");
        assert_eq!((batch.rows.len(), batch.total), (2, Minor::new(1000)));
        assert_eq!(batch.rows[0].payout.sent_as("recipient.bank_code").as_deref(), Some("058"));
        for (items, code) in [
            (json!([]), "items_empty"),
            (json!({}), "invalid_body"),
            (json!(null), "missing_field"),
            (json!(vec![row(); 151]), "items_too_many"),
        ] {
            assert_eq!(refusal(items), (code, "items".to_owned()));
        }
        assert_eq!(refusal(json!([row(), 3])), ("invalid_format", "items[1]".to_owned()));
    }

    #[test]
    fn the_first_bad_row_is_named() {
        for (change, code, field) in [
            (json!({ "amount_minor": 5 }), "invalid_amount", "amount_minor"),
            (json!({ "amount_minor": "1.5" }), "invalid_amount", "amount_minor"),
            (json!({ "amount_minor": null }), "missing_field", "amount_minor"),
            (json!({ "narration": 5 }), "invalid_format", "narration"),
            (json!({ "currency": "GBP" }), "currency_mismatch", "currency"),
            (json!({ "funding_currency": "USD" }), "invalid_format", "funding_currency"),
            (json!({ "recipient_bank_code": 58 }), "invalid_format", "recipient_bank_code"),
            (json!({ "sender_id_type": "fishing" }), "invalid_id_type", "sender_id_type"),
            (json!({ "sender": { "id_type": "fishing" } }), "invalid_id_type", "sender.id_type"),
            (json!({ "sender_id_expiry": "31022030" }), "invalid_format", "sender_id_expiry"),
            (
                json!({ "recipient": { "account_number": "0123456786" } }),
                "invalid_format",
                "recipient_account_number",
            ),
            (json!({ "sender_country": "Nigeria" }), "invalid_format", "sender_country"),
            (json!({ "currency": 5 }), "currency_mismatch", "currency"),
            (json!({ "sender_id_expiry": "01012001" }), "invalid_format", "sender_id_expiry"),
            (
                json!({ "sender_date_of_birth": "01012099" }),
                "invalid_format",
                "sender_date_of_birth",
            ),
            (
                json!({ "sender_id_type": "ssn_card", "sender_country": "NG" }),
                "invalid_id_type",
                "sender_id_type",
            ),
            (json!({ "allow_duplicate": "yes" }), "invalid_format", "allow_duplicate"),
            (json!({ "recipient": { "email": "x" } }), "invalid_format", "recipient.email"),
        ] {
            assert_eq!(refusal(with(&change)), (code, format!("items[1].{field}")));
        }
        let twice = json!([
            with(&json!({ "merchant_reference": "a" }))[1],
            row(),
            with(&json!({ "merchant_reference": "a" }))[1],
        ]);
        let twice = refusal(twice);
        let field = "items[2].merchant_reference".to_owned();
        assert_eq!(twice, ("merchant_reference_duplicate", field));
    }

    #[test]
    fn fields_of_files_are_those_of_payouts() {
        let batch = read(with(&json!({
            "sender_id_type": "nin",
            "sender_date_of_birth": "24021990",
            "sender": { "country": "NG" },
            "sender_country": "NG",
            "recipient": { "bank_code": "058" },
        })));
        let batch = batch.expect("a batch");
        let row = &batch.rows[1].payout;
        let sender = row.sender.as_ref().expect("a sender");
        assert_eq!(sender.date_of_birth.as_deref(), Some("1990-02-24"));
        assert_eq!(sender.country.as_deref(), Some("NG"));
        assert_eq!(row.sent_as("recipient.bank_code").as_deref(), Some("058"));
        assert_eq!(row.sent_as("recipient.account_number").as_deref(), Some("0123456785"));
    }
}
