//! Payments by file.
//!
//! What leaves, in CSV: number of the file, count and total in ariary, then a line for each payment
//! with our reference, wallet, amount and name. A name has commas if it likes: it comes last.
//!
//! ```text
//! 7,2,3500
//! rh000000000012,261341234567,1500,Rasoa Rakoto
//! rh000000000013,261349876543,2000,Hery Rabe
//! ```
//!
//! What Vola answers lies ready in files that are numbered from 1: number of our file and count,
//! then our reference, state, reason and amount. An `answer` has all lines of our file, and
//! `returns` those that come back later.
//!
//! ```text
//! answer,7,2
//! rh000000000012,accepted,,1500
//! rh000000000013,refused,no_wallet,2000
//! ```

use railhead_rail::fields::value;
use railhead_rail::host;
use railhead_rail::imports::http::Failure;
use railhead_rail::request::{self, Request, parameter, text, why};
use railhead_rail::types::{
    Arrival, Assembled, Delivery, File, Finding, News, Notice, Opening, Payment, Placement,
    Presence, Receipt, Refusal, ReturnOfFunds, Subject, TurnedDown, Window,
};

use crate::messages::refusal;
use crate::payments::{self, authorization};

/// A name that ends its line is refused: what follows would be another payment.
pub fn prepare(payment: &Payment) -> Result<Opening, Refusal> {
    match value(&payment.recipient, "name").contains(char::is_control) {
        true => Err(Refusal {
            code: "name".to_owned(),
            message: "No file can carry this name".to_owned(),
        }),
        false => Ok(payments::prepare(payment)),
    }
}

/// Pure: made again of the same payments it is the same file.
pub fn assemble(window: &Window, payments: &[Payment]) -> Result<Assembled, String> {
    let number = window.number;
    let (mut lines, mut total) = (String::new(), 0_i64);
    let (mut placed, mut refused) = (Vec::new(), Vec::new());
    for payment in payments {
        let reference = payment.reference.clone();
        if let Err(why) = prepare(payment) {
            refused.push(TurnedDown { reference, why });
            continue;
        }
        let recipient = &payment.recipient;
        let (wallet, name) = (value(recipient, "mobile_number"), value(recipient, "name"));
        let amount = payment.amount_minor / 100;
        total = total.checked_add(amount).ok_or("the total is too large")?;
        let line = format!("{reference},{wallet},{amount},{name}\n");
        lines.push_str(&line);
        let key = format!("{number}-{}", placed.len() + 1);
        placed.push(Placement { reference, key, entry: line.into_bytes() });
    }
    Ok(Assembled {
        name: format!("payments-{number}.csv"),
        identity: number.to_string(),
        content: format!("{number},{},{total}\n{lines}", placed.len()).into_bytes(),
        placed,
        refused,
        later: Vec::new(),
    })
}

/// The same file may be delivered again: Vola knows it by its name.
pub fn deliver(file: File) -> Delivery {
    let answer = host::send(&Request {
        path: file.name,
        headers: vec![authorization(), parameter("Content-Type", [text("text/csv")])],
        body: vec![text(file.content)],
        ..request::call("deliver")
    });
    match answer.map(|answer| answer.status) {
        Ok(200 | 201) => Delivery::Taken,
        // Refused as it stands: no line of it is carried out.
        Ok(422) => Delivery::Refused(Refusal {
            code: "422".to_owned(),
            message: "Vola does not take this file".to_owned(),
        }),
        // Vola says so before it reads a file.
        Ok(status @ (401 | 503)) => Delivery::NotTaken(format!("Vola answered HTTP {status}")),
        // 409 among them: another file has the name, and a person must look.
        Ok(status) => Delivery::Unknown(format!("Vola answered HTTP {status}")),
        Err(Failure::NotSent(why)) => Delivery::NotTaken(why),
        Err(Failure::NoAnswer(why)) => Delivery::Unknown(why),
    }
}

/// Vola shows the first line of a file that it has.
pub fn look(file: &File) -> Presence {
    let answer = host::send(&Request {
        path: file.name.clone(),
        headers: vec![authorization()],
        ..request::call("look")
    });
    match answer {
        Ok(answer) if answer.status == 200 => {
            let first = file.content.split(|byte| *byte == b'\n').next().unwrap_or_default();
            match answer.body == first {
                true => Presence::Present,
                false => Presence::Unknown("Vola has another file of this name".to_owned()),
            }
        }
        Ok(answer) if answer.status == 404 => Presence::Absent,
        Ok(answer) => Presence::Unknown(format!("Vola answered HTTP {}", answer.status)),
        Err(failure) => Presence::Unknown(why(failure)),
    }
}

/// The next answer, if there is one: the cursor is the number of the last one.
pub fn poll(after: &str) -> Result<Vec<Arrival>, String> {
    let last = match after {
        "" => Some(0),
        number => number.parse::<u64>().ok(),
    };
    let next = last.and_then(|last| last.checked_add(1)).ok_or("the cursor is no number")?;
    let answer = host::send(&Request {
        path: next.to_string(),
        headers: vec![authorization()],
        ..request::call("answer")
    });
    match answer {
        Ok(answer) if answer.status == 200 => Ok(vec![Arrival {
            cursor: next.to_string(),
            name: format!("answer-{next}.csv"),
            content: answer.body,
        }]),
        Ok(answer) if answer.status == 404 => Ok(Vec::new()),
        Ok(answer) => Err(format!("Vola answered HTTP {}", answer.status)),
        Err(failure) => Err(why(failure)),
    }
}

/// Nothing is believed of an answer that cannot be read from beginning to end: a line that is lost
/// might be a refusal.
pub fn read(content: &[u8]) -> Result<Vec<Notice>, String> {
    let content = std::str::from_utf8(content).map_err(|cause| cause.to_string())?;
    let mut lines = content.strip_suffix('\n').ok_or("its end is missing")?.split('\n');
    let header: Vec<&str> = lines.next().unwrap_or_default().split(',').collect();
    let (mut notices, count) = match header[..] {
        ["answer", file, count] => (vec![accepted(file)], count),
        ["returns", _, count] => (Vec::new(), count),
        _ => return Err("it is no answer of Vola's".to_owned()),
    };
    let mut found = 0;
    for line in lines {
        found += 1;
        notices.extend(read_line(line)?);
    }
    match count == found.to_string() {
        true => Ok(notices),
        false => Err(format!("it has {found} lines, and says {count}")),
    }
}

fn accepted(file: &str) -> Notice {
    let receipt = Receipt {
        code: "accepted".to_owned(),
        network_id: None,
        amount_minor: None,
        facts: Vec::new(),
    };
    let about = Subject::File(file.to_owned());
    Notice { about, news: News::Found(Finding::Accepted(receipt)) }
}

/// What a line says beyond that the file is accepted.
fn read_line(line: &str) -> Result<Option<Notice>, String> {
    let [reference, state, reason, amount] = line.split(',').collect::<Vec<_>>()[..] else {
        return Err("a line has other fields".to_owned());
    };
    let finding = match state {
        "accepted" => return Ok(None),
        "refused" => Finding::Refused(refusal(reason)),
        "returned" => {
            let amount = amount.parse::<i64>().ok().and_then(|amount| amount.checked_mul(100));
            Finding::Returned(ReturnOfFunds {
                code: reason.to_owned(),
                message: "The payment came back from the wallet".to_owned(),
                amount_minor: amount.ok_or("the amount of a return is no number")?,
                network_id: None,
            })
        }
        _ => return Err(format!("a line has the state {state}")),
    };
    let about = Subject::Reference(reference.to_owned());
    Ok(Some(Notice { about, news: News::Found(finding) }))
}
