//! Files of payments, and answers to them.
//!
//! A file has its number, count and total in the first line, then reference, wallet, amount and
//! name of each payment. An answer has the number of the file and a count, then reference, state,
//! reason and amount. Answers are numbered from 1. A reference that came before is not paid again:
//! the answer tells what became of it then.

use std::collections::BTreeSet;

use railhead_simulator::answers::{answer, malformed, plain, unavailable};
use railhead_simulator::host;
use railhead_simulator::types::{Answer, Request, State, Transfer};

use crate::{REFUSAL, is_wallet};

/// The note of a payment about the file that it came in.
pub const FILE: &str = "file";
const CONTENT: &str = "content";
/// How many answers there are.
const COUNT: &str = "count";

struct Line<'a> {
    reference: &'a str,
    wallet: &'a str,
    amount: i64,
}

/// Takes a file under a name.
pub fn take(name: &str, request: &Request) -> Answer {
    let refuse = |why: &str| {
        malformed("file", why);
        plain(422, why)
    };
    if request.header("content-type") != "text/csv" {
        return refuse("it is not text/csv");
    }
    let Ok(content) = std::str::from_utf8(&request.body) else { return refuse("it is no text") };
    let lines = match read(content) {
        Ok(lines) => lines,
        Err(why) => return refuse(&why),
    };
    if lines.iter().any(|line| host::scenario(line.wallet) == "provider_down") {
        return unavailable();
    }
    let known = host::find(&page_of(name));
    if known.as_ref().is_some_and(|known| known.noted(CONTENT) != content) {
        return plain(409, "another file has this name");
    }
    let mut payments: Vec<Transfer> = lines.iter().map(|line| payment(name, line)).collect();
    let is_lost = payments.iter().any(|it| it.received == 0 && it.scenario == "never_received");
    for payment in &mut payments {
        payment.received += 1;
        if payment.state == State::Lost && !is_lost {
            carry_out(payment);
        }
        host::keep(payment);
    }
    if is_lost {
        return Answer::NotReceived;
    }
    if known.is_some() {
        return plain(200, "it was here before");
    }
    host::keep(&page(&page_of(name)).noting(CONTENT, content));
    tell_all(content, &payments);
    match payments.iter().any(|it| it.scenario.starts_with("timeout_")) {
        true => Answer::Silence,
        false => plain(201, "taken"),
    }
}

/// The first line of a file, if there is one of this name.
pub fn look(name: &str) -> Answer {
    match host::find(&page_of(name)) {
        Some(file) => plain(200, file.noted(CONTENT).lines().next().unwrap_or_default()),
        None => plain(404, "there is no such file"),
    }
}

/// The answer of this number.
pub fn answer_of(number: &str) -> Answer {
    match host::find(&format!("answer/{number}")) {
        Some(found) => answer(200, "text/csv", found.noted(CONTENT)),
        None => plain(404, "there is no such answer yet"),
    }
}

/// Something has happened to a payment that came in a file.
pub fn tell(payment: &Transfer) {
    let Some(file) = host::find(&page_of(payment.noted(FILE))) else { return };
    let content = file.noted(CONTENT);
    match (&payment.state, read(content)) {
        (State::Returned, _) => put("returns", content, std::slice::from_ref(payment)),
        (_, Ok(lines)) => {
            let payments: Option<Vec<Transfer>> =
                lines.iter().map(|line| host::find(line.reference)).collect();
            tell_all(content, &payments.unwrap_or_default());
        }
        (_, Err(why)) => host::error(&why),
    }
}

/// Answers a file, once nothing in it is open, and lets come back what does.
fn tell_all(content: &str, payments: &[Transfer]) {
    if payments.iter().any(|it| matches!(it.state, State::Pending | State::Unclear)) {
        return;
    }
    let twice = payments.iter().any(|it| it.scenario == "duplicate_callback");
    for _ in 0..if twice { 2 } else { 1 } {
        put("answer", content, payments);
    }
    for payment in payments.iter().filter(|it| it.scenario == "returned") {
        let payment = Transfer { state: State::Returned, ..payment.clone() };
        host::keep(&payment);
        put("returns", content, &[payment]);
    }
}

/// Lays out the next answer.
fn put(kind: &str, content: &str, payments: &[Transfer]) {
    let answers = host::find("answers").unwrap_or_else(|| page("answers"));
    let number = answers.noted(COUNT).parse().unwrap_or(0) + 1;
    let file = content.split(',').next().unwrap_or_default();
    let mut text = format!("{kind},{file},{}\n", payments.len());
    for payment in payments {
        let (state, reason) = match &payment.state {
            State::Refused(reason) => ("refused", reason.as_str()),
            State::Returned => ("returned", "wallet_closed"),
            _ => ("accepted", ""),
        };
        let amount = payment.amount_minor / 100;
        text += &format!("{},{state},{reason},{amount}\n", payment.reference);
    }
    host::keep(&page(&format!("answer/{number}")).noting(CONTENT, &text));
    host::keep(&answers.noting(COUNT, &number.to_string()));
}

fn carry_out(payment: &mut Transfer) {
    match payment.scenario.as_str() {
        "failed" | "timeout_then_failed" => payment.state = State::Refused(REFUSAL.to_owned()),
        "processing" => payment.state = State::Pending,
        "timeout_then_unknown" => payment.state = State::Unclear,
        _ => payment.pay(),
    }
}

fn payment(file: &str, line: &Line<'_>) -> Transfer {
    host::find(line.reference).unwrap_or_else(|| {
        Transfer::new(line.reference, line.amount * 100, line.wallet).noting(FILE, file)
    })
}

fn read(content: &str) -> Result<Vec<Line<'_>>, String> {
    let mut lines = content.strip_suffix('\n').ok_or("the last line has no end")?.split('\n');
    let header: Vec<&str> = lines.next().unwrap_or_default().split(',').collect();
    let [number, count, total] = header[..] else {
        return Err("the first line is number, count and total".to_owned());
    };
    let lines = lines.map(read_line).collect::<Result<Vec<_>, _>>()?;
    let sum: i64 = lines.iter().map(|line| line.amount).sum();
    let references: BTreeSet<_> = lines.iter().map(|line| line.reference).collect();
    if number.parse::<u64>().is_err() {
        return Err("the file has no number".to_owned());
    }
    if lines.is_empty() || references.len() != lines.len() {
        return Err("it has no payments, or one of them twice".to_owned());
    }
    if (count, total) != (&*lines.len().to_string(), &*sum.to_string()) {
        return Err("count or total is another".to_owned());
    }
    Ok(lines)
}

fn read_line(line: &str) -> Result<Line<'_>, String> {
    let fields: Vec<&str> = line.splitn(4, ',').collect();
    let [reference, wallet, amount, name] = fields[..] else {
        return Err("a line is reference, wallet, amount and name".to_owned());
    };
    let amount = amount.parse().ok().filter(|it| (100..=5_000_000).contains(it) && it % 5 == 0);
    match amount {
        Some(amount) if is_wallet(wallet) && !reference.is_empty() && !name.is_empty() => {
            Ok(Line { reference, wallet, amount })
        }
        _ => Err(format!("the line of {reference} makes no sense")),
    }
}

fn page_of(file: &str) -> String {
    format!("file/{file}")
}

/// Something to remember that is no payment: it never arrives.
fn page(reference: &str) -> Transfer {
    Transfer { state: State::Unclear, ..Transfer::new(reference, 0, "") }
}
