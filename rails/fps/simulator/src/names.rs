//! Confirmation of Payee: whether a name is the one on an account.

use railhead_simulator::answers::unavailable;
use railhead_simulator::host;
use railhead_simulator::types::Answer;
use serde::{Deserialize, Serialize};

use crate::accounts::Account;
use crate::as_json;
use crate::orders::Fault;

/// The middle initial of everybody whose name nearly matches.
const INITIAL: &str = "A";

#[derive(Deserialize)]
#[serde(deny_unknown_fields, rename_all = "PascalCase")]
struct Question {
    scheme_name: String,
    legal_owner_type: String,
    identification: String,
    owner_name: String,
    secondary_identification: Option<String>,
    end_to_end_identification: Option<String>,
}

#[derive(Serialize)]
#[serde(rename_all = "PascalCase")]
struct Reply {
    data: Data,
}

#[derive(Serialize)]
#[serde(rename_all = "PascalCase")]
struct Data {
    verification_report: Report,
}

/// What the account's bank says. Name, code and description are not there where it matches.
#[derive(Serialize)]
#[serde(rename_all = "PascalCase")]
struct Report {
    matched: bool,
    #[serde(skip_serializing_if = "Option::is_none")]
    name: Option<String>,
    #[serde(skip_serializing_if = "Option::is_none")]
    reason_code: Option<&'static str>,
    #[serde(skip_serializing_if = "Option::is_none")]
    reason_code_description: Option<&'static str>,
    matched_bank: &'static str,
    response_within_sla: bool,
    legal_owner_type: String,
}

#[derive(Serialize)]
#[serde(rename_all = "PascalCase")]
struct Refused {
    error: Error,
}

#[derive(Serialize)]
#[serde(rename_all = "PascalCase")]
struct Error {
    reason: String,
    participant_name: Option<String>,
}

/// Compares a name with the account's.
///
/// # Errors
/// ClearBank would not understand the question.
pub fn compare(body: &[u8]) -> Result<Answer, Fault> {
    let question: Question = serde_json::from_slice(body).map_err(|cause| Fault::whole(&cause))?;
    let (account, name) = question.read()?;
    let scenario = host::scenario(&account.number);
    // The codes are Pay.UK's, as banks that take part publish them.
    let (name, code) = match scenario.as_str() {
        "provider_down" => return Ok(unavailable()),
        "name_mismatch" => (None, Some(("ANNM", "The name does not match the account"))),
        "unresolvable" => (None, Some(("AC01", "There is no account of this number"))),
        "close_match" if !has_initial(&name) => {
            (Some(with_initial(&name)), Some(("MBAM", "The name may match the account")))
        }
        _ => (None, None),
    };
    let report = Report {
        matched: code.is_none(),
        name,
        reason_code: code.map(|(code, _)| code),
        reason_code_description: code.map(|(_, description)| description),
        matched_bank: "Simulated Bank",
        response_within_sla: true,
        legal_owner_type: question.legal_owner_type,
    };
    Ok(as_json(200, &Reply { data: Data { verification_report: report } }))
}

/// What is answered to a question that is not understood.
#[must_use]
pub fn refused(fault: &Fault) -> Answer {
    as_json(400, &Refused { error: Error { reason: fault.to_string(), participant_name: None } })
}

impl Question {
    /// The account and the name that are asked about.
    fn read(&self) -> Result<(Account, String), Fault> {
        let fault = |member: &str, why: &str| Fault { at: member.to_owned(), why: why.to_owned() };
        if self.scheme_name != "SortCodeAccountNumber" {
            return Err(fault("SchemeName", "must be SortCodeAccountNumber"));
        }
        if !matches!(self.legal_owner_type.as_str(), "Personal" | "Business") {
            return Err(fault("LegalOwnerType", "must be Personal or Business"));
        }
        let is_short =
            |text: &Option<String>| text.as_ref().is_none_or(|it| it.chars().count() <= 140);
        if !is_short(&self.secondary_identification) {
            return Err(fault("SecondaryIdentification", "must have 140 characters at most"));
        }
        if !is_short(&self.end_to_end_identification) {
            return Err(fault("EndToEndIdentification", "must have 140 characters at most"));
        }
        let account = Account::read_digits(&self.identification)
            .ok_or_else(|| fault("Identification", "must be sort code and account: 14 digits"))?;
        let name = self
            .name()
            .ok_or_else(|| fault("OwnerName", "must be a name in three parts with two commas"))?;
        Ok((account, name))
    }

    /// The whole name: in the last of three parts or, of a person, in all of them.
    fn name(&self) -> Option<String> {
        if self.owner_name.chars().count() > 140 {
            return None;
        }
        let parts: Vec<&str> = self.owner_name.split(',').map(str::trim).collect();
        let [title, first_names, last] = parts.as_slice() else { return None };
        let is_unstructured = title.is_empty() && first_names.is_empty();
        let is_right = is_unstructured || self.legal_owner_type == "Personal";
        let name = format!("{first_names} {last}").trim().to_owned();
        (is_right && !last.is_empty()).then_some(name)
    }
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
