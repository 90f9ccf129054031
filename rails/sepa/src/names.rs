//! Verification of Payee: whether a name is the one on an account (EPC218-23, the scheme's API
//! between banks, which gateways offer their customers in the same shape).

use railhead_rail::fields;
use railhead_rail::file_gateway::{fault, sentence};
use railhead_rail::imports::http::Response;
use railhead_rail::request;
use railhead_rail::strict::Object;
use railhead_rail::types::{Enquiry, Refusal, Resolution, Verdict};
use railhead_rail::wording::plain;
use serde::{Deserialize, Serialize};

use crate::gateway;
use crate::{codes, reference};

/// The call that compares a name with an account's.
const NAME_CHECK: &str = "name_check";
/// The longest name that is asked about, and that is told.
const NAME_MAX: usize = 140;
/// The gateway's word for an account that there is not.
const NO_ACCOUNT: &str = "AC01";

/// Compares the name that the merchant gave with the account's.
#[must_use]
pub fn resolve(enquiry: &Enquiry) -> Verdict {
    verdict(enquiry).unwrap_or_else(Verdict::Unavailable)
}

#[derive(Serialize)]
struct Question<'a> {
    party: Party<'a>,
    #[serde(rename = "partyAccount")]
    account: Account<'a>,
    #[serde(rename = "partyAgent", skip_serializing_if = "Option::is_none")]
    agent: Option<Agent<'a>>,
}

#[derive(Serialize)]
struct Party<'a> {
    name: &'a str,
}

#[derive(Serialize)]
struct Account<'a> {
    iban: &'a str,
}

#[derive(Serialize)]
#[serde(rename_all = "camelCase")]
struct Agent<'a> {
    financial_institution_id: Institution<'a>,
}

#[derive(Serialize)]
struct Institution<'a> {
    bicfi: &'a str,
}

#[derive(Deserialize)]
#[serde(rename_all = "camelCase")]
struct Answer {
    party_name_match: String,
    matched_name: Option<String>,
}

fn verdict(enquiry: &Enquiry) -> Result<Verdict, String> {
    let reference = reference::name_check(enquiry.begun_at_ms, enquiry.serial)
        .ok_or("no reference can be made for the name check")?;
    let name: String = fields::value(&enquiry.account, "name").chars().take(NAME_MAX).collect();
    let body = question(enquiry, &name)?;
    let response =
        gateway::post(NAME_CHECK, "application/json", &reference, body).map_err(request::why)?;
    if response.status != 200 {
        return refused(&response);
    }
    let Object(answer): Object<Answer> =
        serde_json::from_slice(&response.body).map_err(|_| sentence(response.status, None))?;
    let resolution =
        |name: &str| Resolution { name: name.to_owned(), reference, attributes: Vec::new() };
    let matched = plain(answer.matched_name.as_deref().unwrap_or_default(), NAME_MAX);
    match answer.party_name_match.as_str() {
        "MTCH" => Ok(Verdict::Matches(resolution(&name))),
        "CMTC" if !matched.is_empty() => Ok(Verdict::Close(resolution(&matched))),
        "CMTC" => Err("the name is nearly the account's, whose own was not told".to_owned()),
        "NMTC" => Ok(Verdict::Differs(None)),
        "NOAP" => Err("the account's bank could not compare the name".to_owned()),
        other => Err(format!("the name check came to {:?}", codes::plain(other))),
    }
}

fn question(enquiry: &Enquiry, name: &str) -> Result<Vec<u8>, String> {
    let account = |field| fields::value(&enquiry.account, field);
    let (iban, bic) = (account("iban"), account("bic_code"));
    if name.is_empty() || iban.is_empty() {
        return Err("there is no whole account and name to ask about".to_owned());
    }
    let institution = Institution { bicfi: bic };
    let agent = (!bic.is_empty()).then_some(Agent { financial_institution_id: institution });
    let question = Question { party: Party { name }, account: Account { iban }, agent };
    serde_json::to_vec(&question).map_err(|_| "the question cannot be written".to_owned())
}

/// There is no such account only where the gateway itself says so.
fn refused(response: &Response) -> Result<Verdict, String> {
    match fault(response) {
        Some(fault) if response.status == 404 && fault.code == NO_ACCOUNT => {
            let message = codes::meaning(NO_ACCOUNT).to_owned();
            Ok(Verdict::Refused(Refusal { code: fault.code, message }))
        }
        fault => Err(sentence(response.status, fault.as_ref())),
    }
}

#[cfg(test)]
#[cfg(not(target_family = "wasm"))]
#[path = "names_tests.rs"]
mod tests;
