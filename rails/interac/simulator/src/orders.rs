//! Transfers as they are ordered: every member that is needed, and no other, each within its
//! bounds.

use serde::Deserialize;
use serde_json::value::RawValue;

/// Most cents of one transfer, as participants commonly allow a business.
const AMOUNT_MINOR_MAX: i64 = 2_500_000;
/// Most characters of an identification of ISO 20022.
const IDENTIFICATION_MAX: usize = 35;
/// Most characters of a question, and the least and most of its answer.
const QUESTION_MAX: usize = 40;
const ANSWER_MIN: usize = 3;
const ANSWER_MAX: usize = 25;
/// Most characters of a name, and of the text for the recipient.
const NAME_MAX: usize = 140;
const MEMO_MAX: usize = 140;

/// What is wrong with an order.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Fault {
    /// The code that it is refused with.
    pub code: &'static str,
    /// What is wrong.
    pub why: String,
}

impl Fault {
    /// A fault that has no code of its own.
    #[must_use]
    pub fn invalid(why: impl Into<String>) -> Self {
        Self { code: "INVALID_REQUEST", why: why.into() }
    }

    fn with(code: &'static str, why: &str) -> Self {
        Self { code, why: why.to_owned() }
    }
}

/// A transfer as it is ordered.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Order {
    /// The sender's name for it, by which it is known to have come before.
    pub reference: String,
    /// In cents.
    pub amount_minor: i64,
    /// The address that it is sent to.
    pub email: String,
}

#[derive(Deserialize)]
#[serde(deny_unknown_fields)]
struct Payment {
    product_code: String,
    message_identification: String,
    end_to_end_identification: String,
    language: String,
    instructed_amount: Amount,
    debtor: Debtor,
    debtor_account: Account,
    creditor: Creditor,
    creditor_account: Alias,
    remittance_information: Remittance,
    payment_authentication: Authentication,
}

#[derive(Deserialize)]
#[serde(deny_unknown_fields)]
struct Amount {
    amount: Box<RawValue>,
    currency: String,
}

#[derive(Deserialize)]
#[serde(deny_unknown_fields)]
struct Debtor {
    name: String,
}

#[derive(Deserialize)]
#[serde(deny_unknown_fields)]
struct Account {
    identification: Identification,
}

#[derive(Deserialize)]
#[serde(deny_unknown_fields)]
struct Identification {
    other: Other,
}

#[derive(Deserialize)]
#[serde(deny_unknown_fields)]
struct Other {
    identification: String,
}

#[derive(Deserialize)]
#[serde(deny_unknown_fields)]
struct Creditor {
    name: String,
    contact_details: ContactDetails,
}

#[derive(Deserialize)]
#[serde(deny_unknown_fields)]
struct ContactDetails {
    email_address: String,
}

#[derive(Deserialize)]
#[serde(deny_unknown_fields)]
struct Alias {
    proxy: Proxy,
}

#[derive(Deserialize)]
#[serde(deny_unknown_fields)]
struct Proxy {
    r#type: ProxyType,
    identification: String,
}

#[derive(Deserialize)]
#[serde(deny_unknown_fields)]
struct ProxyType {
    proprietary: String,
}

#[derive(Deserialize)]
#[serde(deny_unknown_fields)]
struct Remittance {
    unstructured: String,
}

#[derive(Deserialize)]
#[serde(deny_unknown_fields)]
struct Authentication {
    security_question: String,
    security_answer: String,
}

/// Reads an order.
///
/// # Errors
/// The first thing that would not be taken.
pub fn read(body: &[u8]) -> Result<Order, Fault> {
    let payment: Payment =
        serde_json::from_slice(body).map_err(|cause| Fault::invalid(cause.to_string()))?;
    payment.identified()?;
    payment.authenticated()?;
    let amount_minor = payment.instructed_amount.read()?;
    Ok(Order {
        reference: payment.end_to_end_identification,
        amount_minor,
        email: payment.creditor_account.proxy.identification,
    })
}

impl Payment {
    fn identified(&self) -> Result<(), Fault> {
        let is_id = |id: &str| {
            (1..=IDENTIFICATION_MAX).contains(&id.len())
                && id.bytes().all(|byte| byte.is_ascii_alphanumeric() || byte == b'-')
        };
        let debtor_account = &self.debtor_account.identification.other.identification;
        for (is_right, member) in [
            (self.product_code == "DOMESTIC", "product_code"),
            (is_id(&self.message_identification), "message_identification"),
            (is_id(&self.end_to_end_identification), "end_to_end_identification"),
            (matches!(self.language.as_str(), "EN" | "FR"), "language"),
            (is_text(&self.debtor.name, NAME_MAX), "debtor.name"),
            (is_id(debtor_account), "debtor_account"),
            (is_text(&self.creditor.name, NAME_MAX), "creditor.name"),
            (self.creditor_account.proxy.r#type.proprietary == "EMAIL", "creditor_account.proxy"),
        ] {
            if !is_right {
                return Err(Fault::invalid(format!("{member} is not as documented")));
            }
        }
        let email = &self.creditor_account.proxy.identification;
        if !is_email(email) || self.creditor.contact_details.email_address != *email {
            return Err(Fault::with("INVALID_HANDLE", "the creditor has no email address"));
        }
        Ok(())
    }

    /// The question, its answer, and the memo, which tells neither.
    fn authenticated(&self) -> Result<(), Fault> {
        let Authentication { security_question, security_answer } = &self.payment_authentication;
        let memo = self.remittance_information.unstructured.to_lowercase();
        let (question, answer) = (security_question.to_lowercase(), security_answer.to_lowercase());
        let wrong = |why: &str| Err(Fault::with("INVALID_SECURITY_QUESTION", why));
        if !is_question(security_question) {
            return wrong("the question is not one of 1 to 40 characters that are carried");
        }
        if !is_answer(security_answer) {
            return wrong("the answer is not 3 to 25 letters and digits");
        }
        if question.contains(&answer) {
            return wrong("the question tells the answer");
        }
        if !is_text(&memo, MEMO_MAX) || memo.contains(&question) || memo.contains(&answer) {
            return Err(Fault::with(
                "INVALID_MEMO",
                "the memo is too long, empty, or tells too much",
            ));
        }
        Ok(())
    }
}

impl Amount {
    /// Cents of an amount with two decimals.
    fn read(&self) -> Result<i64, Fault> {
        let digits = |part: &str| part.bytes().all(|byte| byte.is_ascii_digit());
        let parts = self.amount.get().split_once('.');
        let is_amount = |(whole, cents): &(&str, &str)| {
            (1..=9).contains(&whole.len()) && cents.len() == 2 && digits(whole) && digits(cents)
        };
        let Some((whole, cents)) = parts.filter(is_amount).filter(|_| self.currency == "CAD")
        else {
            return Err(Fault::invalid("the amount is not dollars with two decimals"));
        };
        let amount_minor = format!("{whole}{cents}").parse::<i64>();
        match amount_minor.map_err(|cause| Fault::invalid(cause.to_string()))? {
            ..=0 => Err(Fault::with("AMOUNT_TOO_LOW", "there is nothing to send")),
            amount_minor if amount_minor > AMOUNT_MINOR_MAX => {
                Err(Fault::with("AMOUNT_TOO_HIGH", "it is more than one transfer carries"))
            }
            amount_minor => Ok(amount_minor),
        }
    }
}

/// Whether it is a security question.
#[must_use]
pub fn is_question(text: &str) -> bool {
    let is_carried = |c: char| c.is_alphanumeric() || " '_,.?-".contains(c);
    is_text(text, QUESTION_MAX) && text.chars().all(is_carried)
}

/// Whether it is an answer to one.
#[must_use]
pub fn is_answer(text: &str) -> bool {
    (ANSWER_MIN..=ANSWER_MAX).contains(&text.len())
        && text.bytes().all(|byte| byte.is_ascii_alphanumeric())
}

fn is_text(text: &str, most: usize) -> bool {
    !text.trim().is_empty() && text.chars().count() <= most && !text.chars().any(char::is_control)
}

fn is_email(text: &str) -> bool {
    let Some((local, domain)) = text.split_once('@') else { return false };
    let is_plain = text.bytes().all(|byte| byte.is_ascii_graphic() && byte != b',');
    is_plain && !local.is_empty() && domain.contains('.') && !domain.contains('@')
}
