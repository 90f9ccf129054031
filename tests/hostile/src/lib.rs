//! A rail that does everything that a rail must not, as the payment's narration says: before
//! anything has left, or after the payment was sent. A minute later it has come to its senses.

#![cfg(target_family = "wasm")]
#![allow(unsafe_code, reason = "the macros' own")]

use std::hint::black_box;

use railhead_rail::host;
use railhead_rail::imports::http::{Failure, Request, Response};
use railhead_rail::request;
use railhead_rail::types::{
    Arrival, Assembled, Delivery, Field, File, Finding, Message, News, Notice, Opening, Outcome,
    Payment, Placement, Presence, RecallRequest, Receipt, Refusal, Reply, ReturnOfFunds, Subject,
    TurnedDown, Violation, Window,
};
use railhead_rail::{
    Files, Notices, Payouts, Recalls, Recipients, export_files, export_notices, export_payouts,
    export_recalls, export_recipients,
};

struct Hostile;

export_files!(Hostile);
export_notices!(Hostile);
export_payouts!(Hostile);
export_recalls!(Hostile);
export_recipients!(Hostile);

const MINUTE_MS: u64 = 60_000;

impl Recipients for Hostile {
    fn check(
        _method: String,
        _currency: String,
        fields: Vec<Field>,
    ) -> Result<Vec<Field>, Vec<Violation>> {
        match railhead_rail::fields::value(&fields, "name") {
            "" => Ok(fields),
            deed => {
                // The deed may come back; it must not come far.
                drop(run(deed));
                Ok(fields)
            }
        }
    }
}

impl Payouts for Hostile {
    fn prepare(payment: Payment) -> Result<Opening, Refusal> {
        let deed = payment.narration.as_str();
        if deed == "refuse at once" {
            return Err(Refusal { code: "NO".into(), message: "not even tried".into() });
        }
        let reference = format!("hostile-{:012}", payment.serial);
        Ok(Opening { reference, facts: Vec::new() })
    }

    fn submit(payment: Payment) -> Outcome {
        if host::now_ms() >= payment.begun_at_ms + MINUTE_MS {
            return pay(&payment);
        }
        if payment.narration == "refuse us" {
            return Outcome::Refused(Refusal { code: "US".into(), message: "as asked".into() });
        }
        if payment.narration == "echo" {
            let account = railhead_rail::fields::value(&payment.recipient, "account_number");
            return Outcome::Unknown(format!("the account {account} is busy"));
        }
        if payment.narration == "accept" {
            return match post("pay", payment.reference.clone()) {
                Ok(_) => Outcome::Accepted(accepted(&payment)),
                Err(failure) => Outcome::Unknown(words(failure)),
            };
        }
        match payment.narration.split_once("sent, then ") {
            Some((_, deed)) => {
                drop(pay(&payment));
                run(deed)
            }
            None => run(&payment.narration),
        }
    }

    fn query(payment: Payment) -> Finding {
        if payment.narration.ends_with("pay again") {
            return Finding::Unknown(words_of(post("pay", payment.reference)));
        }
        let answer = post("ask", payment.reference.clone());
        if let Some(back) = answer.as_ref().ok().and_then(|answer| amount(&answer.body)) {
            return returned("", back);
        }
        if payment.narration == "accept" {
            let told = accepted(&payment);
            let is_known = payment.network_id == told.network_id && payment.facts == told.facts;
            return match is_known {
                true => Finding::Accepted(told),
                false => Finding::Unknown("what it had been told is forgotten".into()),
            };
        }
        match answer {
            Ok(answer) if answer.status == 200 => Finding::Paid(receipt("00")),
            Ok(_) => Finding::NeverReceived("unknown".into()),
            Err(failure) => Finding::Unknown(words(failure)),
        }
    }
}

/// The network answers with a word, the name that it has for what came back, and an amount.
impl Recalls for Hostile {
    fn recall(payment: Payment, request: RecallRequest) -> Finding {
        let RecallRequest { serial, reason, .. } = request;
        let answer = match post("recall", format!("{} {serial} {reason:?}", payment.reference)) {
            Ok(answer) => String::from_utf8_lossy(&answer.body).into_owned(),
            Err(failure) => return Finding::Unknown(words(failure)),
        };
        let said: Vec<&str> = answer.split(' ').collect();
        match said.as_slice() {
            ["returned", name, amount] => returned(name, amount.parse().unwrap_or_default()),
            ["refused"] => Finding::Refused(refusal()),
            ["paid"] => Finding::Paid(receipt("00")),
            _ => Finding::Unknown(answer),
        }
    }
}

/// A message is a line: what became of a payment, how it is named, its name, and an amount. What
/// came back has a name of its own, behind a colon.
impl Notices for Hostile {
    fn receive(message: Message) -> Result<(Reply, Vec<Notice>), String> {
        let line = String::from_utf8_lossy(&message.body).into_owned();
        let words: Vec<&str> = line.split(' ').collect();
        let [what, named, name, amount] = words.as_slice() else {
            return Err("not a line of four words".into());
        };
        let about = match *named {
            "network-id" => Subject::NetworkId((*name).into()),
            _ => Subject::Reference((*name).into()),
        };
        let amount_minor = amount.parse().ok();
        let found = match what.split_once(':').unwrap_or((what, "")) {
            ("paid", _) => Finding::Paid(Receipt { amount_minor, ..receipt("00") }),
            ("refused", _) => Finding::Refused(refusal()),
            ("returned", own) => returned(own, amount_minor.unwrap_or_default()),
            _ => Finding::Unknown("it does not know".into()),
        };
        let asked = message.headers.iter().find(|(name, _)| name == "x-answer-with");
        let status = asked.and_then(|(_, status)| status.parse().ok()).unwrap_or(200);
        let reply = Reply { status, ..Reply::ok("text/plain", b"heard") };
        Ok((reply, vec![Notice { about, news: News::Found(found) }]))
    }
}

/// A file is a line for each payment: its reference and its narration, which is the deed.
impl Files for Hostile {
    fn prepare(payment: Payment) -> Result<Opening, Refusal> {
        let reference = format!("bulk-{:012}", payment.serial);
        Ok(Opening { reference, facts: Vec::new() })
    }

    fn assemble(window: Window, payments: Vec<Payment>) -> Result<Assembled, String> {
        let does = |deed: &str| payments.iter().any(|payment| payment.narration == deed);
        if does("dawdle") || does("dawdle, then trap") {
            (0..400_000_000_u32).for_each(|turn| drop(black_box(turn)));
        }
        if does("dawdle, then trap") {
            panic!("as asked");
        }
        if does("trap") {
            panic!("as asked");
        }
        if does("refuse to make it") {
            return Err("as asked".into());
        }
        let line = |payment: &Payment| format!("{} {}\n", payment.reference, payment.narration);
        let is_refused = |payment: &&Payment| payment.narration == "turn down";
        let refused = payments.iter().filter(is_refused).map(|payment| TurnedDown {
            reference: payment.reference.clone(),
            why: Refusal { code: "NO".into(), message: "as asked".into() },
        });
        let sent = payments.iter().filter(|payment| !is_refused(payment));
        let is_left_out = |payment: &&Payment| ["lose", "turn down"].contains(&&*payment.narration);
        let placed = payments.iter().filter(|payment| !is_left_out(payment));
        let placed = placed.map(|payment| Placement {
            reference: payment.reference.clone(),
            key: format!("key of {}", payment.reference),
            entry: line(payment).into_bytes(),
        });
        // One that uses a name again.
        let number = if does("repeat the name") { 1 } else { window.number };
        Ok(Assembled {
            name: format!("bulk-{number}"),
            identity: format!("{number}"),
            content: sent.map(line).collect::<String>().into_bytes(),
            placed: placed.collect(),
            refused: refused.collect(),
            later: Vec::new(),
        })
    }

    fn deliver(file: File) -> Delivery {
        let content = String::from_utf8_lossy(&file.content).into_owned();
        if content.contains("claim that it was taken") {
            return Delivery::Taken;
        }
        match post("pay", content.clone()) {
            Ok(_) if content.contains("deny that it was taken") => {
                Delivery::NotTaken("as asked".into())
            }
            Ok(_) => Delivery::Taken,
            Err(failure) => Delivery::Unknown(words(failure)),
        }
    }

    fn look(_file: File) -> Presence {
        drop(post("pay", "looked\n".to_owned()));
        Presence::Absent
    }

    /// What lies ready after as many.
    fn poll(_feed: String, after: String) -> Result<Vec<Arrival>, String> {
        let answer = post("feed", after.clone()).map_err(words)?;
        let number = after.parse().unwrap_or(0) + 1;
        match (answer.status, answer.body.is_empty()) {
            (200, true) => Ok(Vec::new()),
            (200, false) => Ok(vec![Arrival {
                cursor: format!("{number}"),
                name: format!("news-{number}"),
                content: answer.body,
            }]),
            (status, _) => Err(format!("HTTP {status}")),
        }
    }

    /// Lines: what became of a payment, or of a file, its name, and an amount (0 where an
    /// acknowledgement says none).
    fn read(_feed: String, _name: String, content: Vec<u8>) -> Result<Vec<Notice>, String> {
        let content = String::from_utf8_lossy(&content).into_owned();
        if content == "trap" {
            panic!("as asked");
        }
        let read = |line: &str| {
            let words: Vec<&str> = line.split(' ').collect();
            let [what, name, amount] = words.as_slice() else { return Err("odd".to_owned()) };
            let amount_minor: i64 = amount.parse().map_err(|_| "odd".to_owned())?;
            let (about, found) = match *what {
                "returned" => (Subject::Reference((*name).into()), returned("", amount_minor)),
                "unknown" => {
                    let nobody = Finding::Unknown("of a payment that it may have".to_owned());
                    (Subject::Reference((*name).into()), nobody)
                }
                "refused" => (Subject::File((*name).into()), Finding::Refused(refusal())),
                _ => {
                    let amount_minor = (amount_minor != 0).then_some(amount_minor);
                    let receipt = Receipt { amount_minor, ..receipt("00") };
                    (Subject::File((*name).into()), Finding::Accepted(receipt))
                }
            };
            Ok(Notice { about, news: News::Found(found) })
        };
        content.lines().map(read).collect()
    }
}

fn refusal() -> Refusal {
    Refusal { code: "91".into(), message: "the network says no".into() }
}

/// The amount that is all that an answer says.
fn amount(body: &[u8]) -> Option<i64> {
    std::str::from_utf8(body).ok()?.parse().ok()
}

/// Money came back, under this name of the network's own if it has one.
fn returned(own: &str, amount_minor: i64) -> Finding {
    let (code, message) = ("R01".to_owned(), "it came back".to_owned());
    let network_id = (!own.is_empty()).then(|| own.to_owned());
    Finding::Returned(ReturnOfFunds { code, message, amount_minor, network_id })
}

/// What the network tells on accepting a payment.
fn accepted(payment: &Payment) -> Receipt {
    let name = format!("N-{}", payment.reference);
    let facts = vec![railhead_rail::fields::field("seen", "once")];
    Receipt { network_id: Some(name), facts, ..receipt("02") }
}

fn receipt(code: &str) -> Receipt {
    Receipt { code: code.into(), network_id: None, amount_minor: None, facts: Vec::new() }
}

fn pay(payment: &Payment) -> Outcome {
    match post("pay", payment.reference.clone()) {
        Ok(_) => Outcome::Paid(receipt("00")),
        Err(failure) => Outcome::Unknown(words(failure)),
    }
}

fn post(call: &str, body: String) -> Result<Response, Failure> {
    host::send(&Request { body: vec![request::text(body)], ..request::call(call) })
}

fn words_of(answer: Result<Response, Failure>) -> String {
    answer.map_or_else(words, |answer| format!("HTTP {}", answer.status))
}

fn words(failure: Failure) -> String {
    match failure {
        Failure::NotSent(why) | Failure::NoAnswer(why) => why,
    }
}

/// Does what is asked for. What it answers is as good as nothing.
fn run(deed: &str) -> Outcome {
    match deed {
        "loop" => loop {
            black_box(deed);
        },
        "allocate" => {
            let mut hoard = Vec::new();
            loop {
                hoard.push(black_box(vec![1_u8; 1 << 20]));
            }
        }
        "recurse" => Outcome::Unknown(recurse(1).to_string()),
        "trap" => panic!("as asked"),
        "log" => loop {
            host::warn(&"a line that never ends ".repeat(1000));
        },
        "claim" => Outcome::Paid(receipt("00")),
        // It asks, and takes the answer for one to a payment.
        "ask" => told(post("ask", String::new())),
        "giant" => Outcome::Unknown("x".repeat(16 << 20)),
        "garbage" => Outcome::Unknown(garbage()),
        "again" => told(post("pay", "again".to_owned())),
        "knock" => {
            let knock = || told(post("knock", String::new()));
            (0..100).fold(knock(), |_, _| knock())
        }
        "flood" => told(post("flood", String::new())),
        "stranger" => told(post("http://169.254.169.254", String::new())),
        "undeclared" => told(post("control", String::new())),
        "climb" => {
            let climb = Request { path: "../control".into(), ..request::call("open") };
            told(host::send(&climb))
        }
        "files" => Outcome::Unknown(files()),
        other => Outcome::Unknown(format!("{other} is not a deed")),
    }
}

fn told(answer: Result<Response, Failure>) -> Outcome {
    match answer {
        Ok(response) => Outcome::Paid(receipt(&response.status.to_string())),
        Err(failure) => Outcome::Unknown(words(failure)),
    }
}

/// Grows the stack until there is none.
#[allow(unconditional_recursion, reason = "that is the point")]
fn recurse(depth: u64) -> u64 {
    let frame = black_box([depth; 64]);
    recurse(depth + 1) + frame[7]
}

/// A text that is none.
#[allow(unsafe_code, reason = "a guest can send any bytes for a string")]
fn garbage() -> String {
    // SAFETY: nobody in here reads it; it goes straight to the host, which checks.
    unsafe { String::from_utf8_unchecked(vec![0xff, 0xfe, 0x80]) }
}

#[cfg(feature = "files")]
fn files() -> String {
    std::fs::read_to_string("/etc/passwd").unwrap_or_default()
}

#[cfg(not(feature = "files"))]
fn files() -> String {
    String::new()
}
