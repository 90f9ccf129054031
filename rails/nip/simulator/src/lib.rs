//! A simulated NIBSS Instant Payments gateway.
//!
//! | module | holds |
//! |---|---|
//! | [`message`] | reading and writing its XML |
//! | [`transfers`] | what becomes of a transfer, and what the network says of it by itself |

#[cfg(target_family = "wasm")]
mod guest;
pub mod message;
pub mod transfers;

use railhead_simulator::CREDENTIAL;
use railhead_simulator::answers::{answer, malformed, plain, unavailable};
use railhead_simulator::host;
use railhead_simulator::types::{Answer, Request, State, Transfer};

use message::{Message, document};
pub use transfers::tell;
use transfers::{Reply, receive, speak};

const FIRST_NAMES: [&str; 10] =
    ["ADA", "BOLA", "CHIDI", "DAYO", "EMEKA", "FUNKE", "GARBA", "HALIMA", "IFEANYI", "JUMOKE"];
const LAST_NAMES: [&str; 10] =
    ["OBI", "ADEYEMI", "OKAFOR", "BELLO", "NWOSU", "IBRAHIM", "EZE", "LAWAL", "MUSA", "OJO"];

/// Answers a request.
#[must_use]
pub fn handle(request: &Request) -> Answer {
    if request.header("authorization") != format!("Bearer {CREDENTIAL}") {
        return plain(401, "the gateway's token is missing");
    }
    let (what, answered) = match request.what() {
        ("POST", "/nip/nameenquirysingleitem") => ("name enquiry", name_enquiry(&request.body)),
        ("POST", "/nip/fundtransfersingleitem_dc") => ("transfer", fund_transfer(&request.body)),
        ("POST", "/nip/txnstatusquerysingleitem") => ("status query", status_query(&request.body)),
        _ => return plain(404, "there is nothing here"),
    };
    answered.unwrap_or_else(|why| {
        malformed(what, &why);
        plain(400, &format!("malformed {what}: {why}"))
    })
}

fn xml(body: &str) -> Answer {
    answer(200, "application/xml; charset=utf-8", body)
}

/// # Errors
/// No gateway would understand it.
fn name_enquiry(body: &[u8]) -> Result<Answer, String> {
    let message = Message::read(body, "NESingleRequest")?;
    let session = message.digits("SessionID", 30)?;
    let institution = message.digits("DestinationInstitutionCode", 6)?;
    let account = message.digits("AccountNumber", 10)?;
    let channel = message.text("ChannelCode", 2)?;
    let scenario = host::scenario(account);
    if scenario == "provider_down" {
        return Ok(unavailable());
    }
    let is_known = scenario != "unresolvable";
    let name = if is_known { name_of(account) } else { String::new() };
    let bvn = if is_known { format!("222{}", &account[2..]) } else { String::new() };
    Ok(xml(&document(
        "NESingleResponse",
        &[
            ("SessionID", session),
            ("DestinationInstitutionCode", institution),
            ("ChannelCode", channel),
            ("AccountNumber", account),
            ("AccountName", &name),
            ("BankVerificationNumber", &bvn),
            ("KYCLevel", "3"),
            ("ResponseCode", if is_known { "00" } else { "07" }),
        ],
    )))
}

/// The name on an account: always the same one.
fn name_of(account: &str) -> String {
    let digit = |index: usize| usize::from(account.as_bytes()[index] - b'0');
    format!("{} {}", FIRST_NAMES[digit(7)], LAST_NAMES[digit(8)])
}

/// # Errors
/// No gateway would understand it.
fn fund_transfer(body: &[u8]) -> Result<Answer, String> {
    let message = Message::read(body, "FTSingleCreditRequest")?;
    let session = message.digits("SessionID", 30)?;
    message.digits("NameEnquiryRef", 30)?;
    message.digits("DestinationInstitutionCode", 6)?;
    message.digits("OriginatorAccountNumber", 10)?;
    message.text("BeneficiaryAccountName", 140)?;
    message.text("OriginatorAccountName", 140)?;
    message.text("PaymentReference", 100)?;
    message.text("ChannelCode", 2)?;
    if message.get("Narration").chars().count() > 100 {
        return Err("Narration has more than 100 characters".to_owned());
    }
    let account = message.digits("BeneficiaryAccountNumber", 10)?;
    let amount = message.amount()?;
    if host::scenario(account) == "provider_down" {
        return Ok(unavailable());
    }
    let known = host::find(session);
    let mut transfer = known.unwrap_or_else(|| Transfer::new(session, amount, account));
    let reply = receive(&mut transfer);
    host::keep(&transfer);
    speak(&transfer);
    Ok(match reply {
        Reply::NotReceived => Answer::NotReceived,
        Reply::Silence => Answer::Silence,
        Reply::Code(code) => {
            let sent = message.elements().iter().map(|(name, value)| (name.as_str(), &**value));
            let elements: Vec<(&str, &str)> = sent.chain([("ResponseCode", code)]).collect();
            xml(&document("FTSingleCreditResponse", &elements))
        }
    })
}

/// # Errors
/// No gateway would understand it.
fn status_query(body: &[u8]) -> Result<Answer, String> {
    let message = Message::read(body, "TSQuerySingleRequest")?;
    let source = message.digits("SourceInstitutionCode", 6)?;
    let channel = message.text("ChannelCode", 2)?;
    let session = message.digits("SessionID", 30)?;
    if host::scenario("") == "provider_down" {
        return Ok(unavailable());
    }
    let found = host::find(session);
    let code = match found.as_ref().map_or(&State::Lost, |transfer| &transfer.state) {
        State::Lost => "25",
        State::Pending => "09",
        // A transfer that came back was made: its own status stays.
        State::Paid | State::Returned => "00",
        State::Refused(code) => code,
        State::Unclear => "01",
    };
    Ok(xml(&document(
        "TSQuerySingleResponse",
        &[
            ("SourceInstitutionCode", source),
            ("ChannelCode", channel),
            ("SessionID", session),
            ("ResponseCode", code),
        ],
    )))
}
