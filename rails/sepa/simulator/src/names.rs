//! Verification of Payee: whether a name is the one on an account.

use railhead_simulator::answers::malformed;
use railhead_simulator::host;
use railhead_simulator::types::{Answer, Request};
use serde::Deserialize;
use serde_json::json;

use crate::accounts::is_iban;
use crate::{as_json, down, error, scenarios};

/// The middle initial of everybody whose name nearly matches.
const INITIAL: &str = "A";

#[derive(Deserialize)]
#[serde(deny_unknown_fields, rename_all = "camelCase")]
struct Question {
    party: Party,
    party_account: Account,
    #[serde(rename = "partyAgent")]
    _agent: Option<Agent>,
}

#[derive(Deserialize)]
#[serde(deny_unknown_fields)]
struct Party {
    name: String,
}

#[derive(Deserialize)]
#[serde(deny_unknown_fields)]
struct Account {
    iban: String,
}

#[derive(Deserialize)]
#[serde(deny_unknown_fields, rename_all = "camelCase")]
struct Agent {
    #[serde(rename = "financialInstitutionId")]
    _institution: Institution,
}

#[derive(Deserialize)]
#[serde(deny_unknown_fields)]
struct Institution {
    #[serde(rename = "bicfi")]
    _bic: String,
}

/// Compares a name with the account's.
#[must_use]
pub fn compare(request: &Request) -> Answer {
    let question: Question = match serde_json::from_slice(&request.body) {
        Ok(question) => question,
        Err(cause) => return refuse(&cause.to_string()),
    };
    let (name, iban) = (question.party.name.trim(), question.party_account.iban.as_str());
    if !(1..=140).contains(&name.chars().count()) || !is_iban(iban) {
        return refuse("it has no name of up to 140 characters, or no IBAN");
    }
    match host::scenario(iban).as_str() {
        scenarios::PROVIDER_DOWN => down(),
        "unresolvable" => error(404, "AC01", "There is no account of this IBAN."),
        "name_mismatch" => as_json(200, &json!({ "partyNameMatch": "NMTC" })),
        "name_unchecked" => as_json(200, &json!({ "partyNameMatch": "NOAP" })),
        "close_match" if !has_initial(name) => {
            let own = with_initial(name);
            as_json(200, &json!({ "partyNameMatch": "CMTC", "matchedName": own }))
        }
        _ => as_json(200, &json!({ "partyNameMatch": "MTCH" })),
    }
}

fn refuse(why: &str) -> Answer {
    malformed("name check", why);
    error(400, "invalid_request", why)
}

/// Whether somebody whose name nearly matched gives it as it stands on the account.
fn has_initial(name: &str) -> bool {
    name.split(' ').rev().nth(1) == Some(INITIAL)
}

fn with_initial(name: &str) -> String {
    match name.rsplit_once(' ') {
        Some((first_names, last)) => format!("{first_names} {INITIAL} {last}"),
        None => format!("{INITIAL} {name}"),
    }
}
