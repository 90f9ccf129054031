//! A beneficiary as merchants see it.

use std::collections::BTreeMap;

use serde::{Deserialize, Serialize};
use serde_json::{Map, Value, json};
use utoipa::ToSchema;

use crate::clock::Moment;
use crate::rails::{self, Registry};
use crate::recipients::{Beneficiary, RecipientCorrection};

/// A beneficiary.
#[derive(Clone, Debug, Serialize, ToSchema)]
#[schema(as = Beneficiary)]
pub struct BeneficiaryView {
    /// Always `beneficiary`.
    #[schema(example = "beneficiary")]
    pub object: &'static str,
    /// The id, which sorts by time of creation.
    pub id: String,
    /// Your label for it.
    pub name: String,
    /// Its email address.
    pub email: Option<String>,
    /// The telephone number, as the merchant wrote it.
    pub phone: Option<String>,
    /// The currency that it is paid in.
    pub currency: String,
    /// `test` or `live`.
    pub env: &'static str,
    /// Of an account that is named by bank and number: where, and which.
    #[serde(flatten)]
    #[schema(value_type = AccountView)]
    pub account: Option<AccountView>,
    /// The name on the account, as the bank has it; as it was given, where no network tells it.
    pub account_name: Option<String>,
    /// `individual` or `business`, where recipients are told apart.
    #[serde(rename = "type", skip_serializing_if = "Option::is_none")]
    pub kind: Option<String>,
    /// Of recipients that are saved with a bank: what names the account there.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub bank: Option<BankView>,
    /// Where the recipient lives.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub address: Option<AddressView>,
    /// Of mobile money: the operator.
    #[serde(skip_serializing_if = "Option::is_none")]
    #[schema(example = "mpesa")]
    pub mobile_operator: Option<String>,
    /// Of mobile money: the number.
    #[serde(skip_serializing_if = "Option::is_none")]
    #[schema(example = "254712345678")]
    pub mobile_number: Option<String>,
    /// Whatever else its network names a recipient by, as it was saved.
    #[serde(flatten)]
    pub further: BTreeMap<String, Value>,
    /// Your own reference.
    pub external_reference: Option<String>,
    /// `pending`, `verified` or `failed`.
    pub verification: &'static str,
    /// What its bank says of it that is not right any more: save it anew. It is gone then.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub correction: Option<RecipientCorrection>,
    /// Whether it was deleted.
    pub is_archived: bool,
    /// Whether it is blocked.
    pub is_blacklisted: bool,
    /// `manual` or `auto`.
    pub source: &'static str,
    /// When it was created.
    #[schema(value_type = String, format = DateTime)]
    pub created_at: Moment,
    /// When it last changed.
    #[schema(value_type = String, format = DateTime)]
    pub updated_at: Moment,
    /// When it was deleted.
    #[serde(skip_serializing_if = "Option::is_none")]
    #[schema(value_type = Option<String>, format = DateTime)]
    pub deleted_at: Option<Moment>,
    /// The account that it had.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub deleted_account_number: Option<String>,
    /// Whether this request created it; on the upsert only.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub created: Option<bool>,
    /// Whether this request restored it; on the upsert only.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub restored: Option<bool>,
}

/// Where an account is, and which.
#[derive(Clone, Debug, Serialize, ToSchema)]
pub struct AccountView {
    /// The code of the bank, in the network's own list.
    #[schema(example = "058")]
    pub bank_code: Option<String>,
    /// The bank's name.
    pub bank_name: Option<String>,
    /// The account number.
    #[schema(example = "0123456785")]
    pub account_number: Option<String>,
    /// CAD Interac only.
    pub interac_email: Option<String>,
    /// CAD Interac only.
    pub interac_first_name: Option<String>,
    /// CAD Interac only.
    pub interac_last_name: Option<String>,
}

/// What names an account at a bank: what its currency knows.
#[derive(Clone, Debug, Default, Serialize, Deserialize, ToSchema)]
#[serde(default)]
pub struct BankView {
    /// The bank's name.
    pub bank_name: Option<String>,
    /// How it is paid.
    #[schema(example = "ach")]
    pub method: Option<String>,
    /// The account number.
    pub account_number: Option<String>,
    /// `checking` or `savings`.
    pub account_type: Option<String>,
    /// ABA routing number.
    pub routing_number: Option<String>,
    /// UK sort code.
    pub sort_code: Option<String>,
    /// ISO 13616.
    pub iban: Option<String>,
    /// ISO 9362.
    pub bic_code: Option<String>,
    /// ISO 9362, of the bank abroad.
    pub swift_code: Option<String>,
}

/// Where a recipient lives.
#[derive(Clone, Debug, Default, Serialize, Deserialize, ToSchema)]
#[serde(default)]
pub struct AddressView {
    /// Street and number.
    pub street: Option<String>,
    /// The city.
    pub city: Option<String>,
    /// State or province.
    pub state: Option<String>,
    /// ZIP or postal code.
    pub zip_code: Option<String>,
}

/// What a beneficiary has by itself: no field of a rail stands in its place.
const OWN: [&str; 20] = [
    "object",
    "id",
    "name",
    "email",
    "phone",
    "currency",
    "env",
    "account_name",
    "external_reference",
    "verification",
    "correction",
    "is_archived",
    "is_blacklisted",
    "source",
    "created_at",
    "updated_at",
    "deleted_at",
    "deleted_account_number",
    "created",
    "restored",
];

/// A recipient's fields where the body that saved it had them; of a deleted one the account's place
/// is free again.
fn places(beneficiary: &Beneficiary) -> Map<String, Value> {
    let (account, mut found) = (beneficiary.recipient.account(), Map::new());
    let shown = |value: &str| match beneficiary.deleted_at {
        Some(_) if value == account => json!(format!("deleted:{}", beneficiary.id)),
        _ => json!(value),
    };
    for (place, value) in beneficiary.recipient.placed().filter(|(_, value)| !value.is_empty()) {
        put(&mut found, place, shown(value));
    }
    found
}

/// Puts a value at its place, unless a beneficiary has something by itself there.
fn put(found: &mut Map<String, Value>, place: &str, value: Value) {
    let outer = place.split_once('.').map_or(place, |(outer, _)| outer);
    if !OWN.contains(&outer) {
        rails::put(found, place, value);
    }
}

impl BeneficiaryView {
    /// What a merchant sees of it.
    #[must_use]
    pub fn of(beneficiary: &Beneficiary, rails: &Registry) -> Self {
        let home = rails.home(beneficiary.currency, &beneficiary.method);
        let has_names = home.is_none_or(|home| home.declaration.names.is_some());
        // Where no network tells names there is the one that was given.
        let given = || Some(beneficiary.name.clone()).filter(|_| !has_names);
        let shown = |value: &str| Some(value.to_owned()).filter(|value| !value.is_empty());
        let is_archived = beneficiary.deleted_at.is_some();
        let account_number = shown(beneficiary.recipient.account());
        let mut places = places(beneficiary);
        // An account that is named by bank and number has them beside everything else.
        let account = places.contains_key("account_number").then(|| {
            places = Map::new();
            AccountView {
                bank_code: shown(beneficiary.recipient.bank()),
                bank_name: shown(beneficiary.recipient.bank_name()),
                // The account's place is free again; what it was stands below.
                account_number: match is_archived {
                    true => Some(format!("deleted:{}", beneficiary.id)),
                    false => account_number.clone(),
                },
                interac_email: None,
                interac_first_name: None,
                interac_last_name: None,
            }
        });
        let text = |value: Value| value.as_str().map(str::to_owned);
        let mut take = |name: &str| places.remove(name).unwrap_or_default();
        // One that is named by an address has no bank.
        let account = account.or_else(|| {
            Some(AccountView {
                bank_code: None,
                bank_name: None,
                account_number: None,
                interac_email: Some(text(take("interac_email"))?),
                interac_first_name: text(take("interac_first_name")),
                interac_last_name: text(take("interac_last_name")),
            })
        });
        let (kind, operator, number) =
            (take("type"), take("mobile_operator"), take("mobile_number"));
        let (bank, address) = (take("bank"), take("address"));
        Self {
            account,
            kind: text(kind),
            bank: serde_json::from_value(bank).unwrap_or_default(),
            address: serde_json::from_value(address).unwrap_or_default(),
            mobile_operator: text(operator),
            mobile_number: text(number),
            further: places.into_iter().collect(),
            object: "beneficiary",
            id: beneficiary.id.to_string(),
            name: beneficiary.name.clone(),
            email: beneficiary.email.clone(),
            phone: beneficiary.phone.clone(),
            currency: beneficiary.currency.to_string(),
            env: beneficiary.env.as_str(),
            account_name: beneficiary.account_name.clone().or_else(given),
            external_reference: beneficiary.external_reference.clone(),
            verification: beneficiary.verification.as_str(),
            correction: beneficiary
                .correction
                .as_deref()
                .and_then(|json| serde_json::from_str(json).ok()),
            is_archived,
            is_blacklisted: beneficiary.is_blacklisted,
            source: beneficiary.source.as_str(),
            created_at: beneficiary.created_at,
            updated_at: beneficiary.updated_at,
            deleted_at: beneficiary.deleted_at,
            deleted_account_number: account_number.filter(|_| is_archived),
            created: None,
            restored: None,
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn no_field_of_a_rail_stands_in_for_what_a_beneficiary_has_itself() {
        let mut found = Map::new();
        for place in
            ["id", "source", "currency.code", "wallet", "wallet.number", "bank.iban", "bank"]
        {
            put(&mut found, place, json!(place));
        }
        let wanted = json!({ "wallet": "wallet", "bank": { "iban": "bank.iban" } });
        assert_eq!(Value::Object(found), wanted);
    }
}
