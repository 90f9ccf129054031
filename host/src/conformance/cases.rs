//! Cases as rails ship them: `cases/*.toml`.

use std::collections::BTreeMap;
use std::path::{Path, PathBuf};

use serde::Deserialize;

/// All cases of a folder.
#[derive(Debug, Default, Deserialize)]
#[serde(default, deny_unknown_fields)]
pub struct Cases {
    /// Recipients that pass, and those that do not.
    pub recipients: Vec<RecipientCase>,
    /// Calls, what they send, and what an answer means.
    pub exchanges: Vec<ExchangeCase>,
    /// Every code of the network, and what it means in each call.
    pub codes: Vec<CodeCase>,
    /// Answers for codes, by call, with `{code}` and `{reference}` to fill in. For receive it is
    /// the message.
    pub code_templates: BTreeMap<String, String>,
    /// The path of the messages that tell codes; for receive only.
    pub code_path: String,
    /// The payment that codes and scenarios are tried with.
    pub code_payment: Option<PaymentCase>,
    /// Scenarios that cannot happen in this network.
    pub unplayed: Vec<String>,
    /// Files, and the payments that they are made of.
    pub assemblies: Vec<AssemblyCase>,
    /// Answers to a delivery of the first assembly's file, and what they mean.
    pub deliveries: Vec<FileCallCase>,
    /// Answers to looking for that file, and what they mean.
    pub looks: Vec<FileCallCase>,
    /// What files of the network say.
    pub readings: Vec<ReadingCase>,
    /// Where the files lie that cases name.
    #[serde(skip)]
    folder: PathBuf,
}

/// A recipient as a client sends it.
#[derive(Debug, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct RecipientCase {
    /// What the case shows, for the report.
    pub name: String,
    /// The method; the rail's default if left out.
    pub method: Option<String>,
    /// The recipient's fields by name.
    pub fields: BTreeMap<String, String>,
    /// Canonical fields that must come back, if it passes.
    pub returns: Option<BTreeMap<String, String>>,
    /// What must be found, if it does not.
    #[serde(default)]
    pub violations: Vec<ViolationCase>,
}

/// A violation that must be found.
#[derive(Debug, Deserialize, PartialEq, Eq)]
#[serde(deny_unknown_fields)]
pub struct ViolationCase {
    /// The name of the field that is wrong.
    pub field: String,
    /// The word that the component has for what is wrong.
    pub code: String,
}

/// A call with a scripted answer.
#[derive(Clone, Debug, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct ExchangeCase {
    /// What the case shows, for the report.
    pub name: String,
    /// prepare, submit, query, recall, resolve or receive.
    pub call: String,
    /// For submit and query.
    pub payment: Option<PaymentCase>,
    /// The account to enquire about; for resolve only.
    #[serde(default)]
    pub account: BTreeMap<String, String>,
    /// How that account would be paid; the rail's first method if left out. For resolve only.
    pub pays_by: Option<String>,
    /// The number of an enquiry or a recall, from which its reference is made.
    #[serde(default)]
    pub serial: u64,
    /// When it was begun, in milliseconds since 1970 UTC.
    #[serde(default)]
    pub begun_at_ms: u64,
    /// The path of the network's message; for receive only.
    #[serde(default)]
    pub path: String,
    /// Its HTTP method.
    #[serde(default = "post")]
    pub method: String,
    /// The body of the network's message; for receive only.
    #[serde(default)]
    pub body: String,
    /// What must have been sent.
    pub expects: Option<Expected>,
    /// What the network answers.
    pub answer: Option<AnswerCase>,
    /// What it must come to.
    pub outcome: OutcomeCase,
}

/// What must have been sent.
#[derive(Clone, Debug, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct Expected {
    /// The name of the call that was made last.
    pub call: Option<String>,
    /// Its path with the query, to the letter; secrets are stars.
    pub path: Option<String>,
    /// Parts of its body; secrets are stars.
    #[serde(default)]
    pub contains: Vec<String>,
    /// Whether nothing at all may be sent.
    #[serde(default)]
    pub nothing: bool,
}

/// A scripted answer, or how there is none.
#[derive(Clone, Debug, Default, Deserialize)]
#[serde(default, deny_unknown_fields)]
pub struct AnswerCase {
    /// The HTTP status; none where there is no answer.
    pub status: Option<u16>,
    /// The body of the answer.
    pub body: String,
    /// `not-sent` or `no-answer`.
    pub failure: Option<String>,
}

/// What a call must come to.
#[derive(Clone, Debug, Default, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct OutcomeCase {
    /// paid, accepted, refused, unknown, never-received, resolved, unavailable, ask, returned,
    /// rejected.
    pub kind: String,
    /// The network's code.
    pub code: Option<String>,
    /// A part of the message.
    pub message: Option<String>,
    /// The network's own name for the payment.
    pub network_id: Option<String>,
}

/// A payment.
#[derive(Clone, Debug, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct PaymentCase {
    /// The amount in minor units.
    pub amount_minor: i64,
    /// The text for the recipient's statement.
    #[serde(default)]
    pub narration: String,
    /// The recipient's fields in canonical form.
    pub recipient: BTreeMap<String, String>,
    /// What a name enquiry said.
    pub resolution: Option<ResolutionCase>,
    /// The method; the rail's first if left out.
    pub method: Option<String>,
    /// The attempt's number, from which its reference is made.
    pub serial: u64,
    /// When the attempt was begun, in milliseconds since 1970 UTC.
    pub begun_at_ms: u64,
    /// The reference that must be made.
    pub reference: String,
    /// The network's own name for the payment, where it told one.
    pub network_id: Option<String>,
    /// What is known from earlier calls, by name.
    #[serde(default)]
    pub facts: BTreeMap<String, String>,
}

/// A file that is made of payments.
#[derive(Debug, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct AssemblyCase {
    /// What the case shows, for the report.
    pub name: String,
    /// What closed, and the numbers that the host allotted.
    pub window: WindowCase,
    /// Every payment that joined, in order.
    pub payments: Vec<PaymentCase>,
    /// What must come of it, byte for byte: a file in the folder of cases.
    pub file: String,
    /// The name that it must be delivered under.
    pub file_name: String,
    /// What acknowledgements must call it.
    pub identity: String,
    /// What the entries must be called, by reference.
    #[serde(default)]
    pub placed: BTreeMap<String, String>,
    /// Codes of payments that it must not carry, by reference.
    #[serde(default)]
    pub refused: BTreeMap<String, String>,
    /// References that must go with the next file.
    #[serde(default)]
    pub later: Vec<String>,
}

/// A window that closed. Method, currency and exponent are the payments'.
#[derive(Clone, Debug, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct WindowCase {
    /// As rail.toml declares it.
    pub name: String,
    /// The file's number over the route.
    pub number: u64,
    /// Its number among those of its business date.
    pub number_of_day: u32,
    /// The number of its first entry.
    pub first_entry: u64,
    /// The day on which it closed, such as `2026-03-06`.
    pub business_date: String,
    /// The time at which it closed, such as `16:45`.
    pub local_time: String,
    /// When recipients shall have the money.
    pub value_date: String,
}

/// A call about a file, with a scripted answer.
#[derive(Debug, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct FileCallCase {
    /// What the case shows, for the report.
    pub name: String,
    /// What must have been sent.
    pub expects: Option<Expected>,
    /// What the network answers.
    pub answer: Option<AnswerCase>,
    /// What it must come to. A delivery: taken, refused, not-taken, unknown. Looking for it:
    /// present, absent, unknown.
    pub outcome: String,
}

/// A file of the network's.
#[derive(Debug, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct ReadingCase {
    /// What the case shows, for the report.
    pub name: String,
    /// Where it lay; the rail's first feed if left out.
    pub feed: Option<String>,
    /// What is in it.
    pub content: Option<String>,
    /// The same as a file in the folder of cases. It is read under that file's name.
    pub file: Option<String>,
    /// What it must say, in this order.
    #[serde(default)]
    pub notices: Vec<NoticeCase>,
    /// Whether it must be an error.
    #[serde(default)]
    pub error: bool,
}

/// One of the things that a file says. Whatever is left out may be anything.
#[derive(Debug, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct NoticeCase {
    /// `reference:`, `network-id:` or `file:`, and which.
    pub about: String,
    /// ask, corrected, paid, accepted, refused, returned, unknown, never-received.
    pub kind: String,
    /// The network's code.
    pub code: Option<String>,
    /// How much was paid, or came back.
    pub amount_minor: Option<i64>,
    /// The network's own name for the payment, or for what came back.
    pub network_id: Option<String>,
    /// The fields that it corrects: all of them.
    pub fields: Option<BTreeMap<String, String>>,
}

/// What a name enquiry said.
#[derive(Clone, Debug, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct ResolutionCase {
    /// The name on the account.
    pub name: String,
    /// The enquiry's reference.
    pub reference: String,
    /// Further attributes of the account, by name.
    #[serde(default)]
    pub attributes: BTreeMap<String, String>,
}

/// A code of the network.
#[derive(Debug, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct CodeCase {
    /// The code as the network writes it.
    pub code: String,
    /// What a submission comes to.
    pub submit: Option<String>,
    /// What a question comes to.
    pub query: Option<String>,
    /// What a name enquiry comes to.
    pub resolve: Option<String>,
    /// What a message of the network comes to.
    pub receive: Option<String>,
}

fn post() -> String {
    "POST".to_owned()
}

impl Cases {
    /// Reads every `.toml` of a folder.
    ///
    /// # Errors
    /// The folder or a file cannot be read.
    pub fn read(folder: &Path) -> Result<Self, String> {
        let fail = |path: &Path, cause: String| format!("{}: {cause}", path.display());
        let entries = std::fs::read_dir(folder).map_err(|e| fail(folder, e.to_string()))?;
        let mut paths: Vec<_> = entries.filter_map(|entry| Some(entry.ok()?.path())).collect();
        paths.sort();
        let mut all = Self { folder: folder.to_owned(), ..Self::default() };
        for path in paths.iter().filter(|path| path.extension().is_some_and(|e| e == "toml")) {
            let text = std::fs::read_to_string(path).map_err(|e| fail(path, e.to_string()))?;
            let cases: Self = toml::from_str(&text).map_err(|e| fail(path, e.to_string()))?;
            all.recipients.extend(cases.recipients);
            all.exchanges.extend(cases.exchanges);
            all.codes.extend(cases.codes);
            all.code_templates.extend(cases.code_templates);
            all.code_payment = cases.code_payment.or(all.code_payment);
            all.unplayed.extend(cases.unplayed);
            all.assemblies.extend(cases.assemblies);
            all.deliveries.extend(cases.deliveries);
            all.looks.extend(cases.looks);
            all.readings.extend(cases.readings);
            if !cases.code_path.is_empty() {
                all.code_path = cases.code_path;
            }
        }
        Ok(all)
    }

    /// A file in the folder of cases.
    pub(super) fn content(&self, file: &str) -> Result<Vec<u8>, String> {
        let path = self.folder.join(file);
        std::fs::read(&path).map_err(|cause| format!("{}: {cause}", path.display()))
    }

    /// Every code in every call, as exchanges.
    #[must_use]
    pub fn codes(&self) -> Vec<ExchangeCase> {
        let Some(payment) = &self.code_payment else { return Vec::new() };
        let mut cases = Vec::new();
        for code in &self.codes {
            for (call, kind) in [
                ("submit", &code.submit),
                ("query", &code.query),
                ("resolve", &code.resolve),
                ("receive", &code.receive),
            ] {
                let Some(kind) = kind else { continue };
                let template = self.code_templates.get(call).map_or("", String::as_str);
                let body = template
                    .replace("{code}", &code.code)
                    .replace("{reference}", &payment.reference);
                cases.push(ExchangeCase {
                    name: code.code.clone(),
                    call: call.to_owned(),
                    payment: Some(payment.clone()),
                    account: payment.recipient.clone(),
                    pays_by: payment.method.clone(),
                    serial: payment.serial,
                    begun_at_ms: payment.begun_at_ms,
                    path: self.code_path.clone(),
                    method: post(),
                    body: body.clone(),
                    expects: None,
                    answer: Some(AnswerCase { status: Some(200), body, failure: None }),
                    outcome: OutcomeCase { kind: kind.clone(), ..OutcomeCase::default() },
                });
            }
        }
        cases
    }
}
