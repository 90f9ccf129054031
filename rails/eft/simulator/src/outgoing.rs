//! Files that are sent to the bank, and questions about them.

use railhead_simulator::answers::malformed;
use railhead_simulator::host;
use railhead_simulator::types::{Answer, Event, Obstacle, Request, State, Transfer};
use serde_json::json;

use crate::files::{self, File};
use crate::incoming::Feed;
use crate::reports::{self, DUPLICATE_FILE, EXPOSURE_LIMIT, INVALID_ACCOUNT, Reason};
use crate::returns::{self, Returned};
use crate::scenarios::{FILE, Names, PROVIDER_DOWN, Play, Standing, is_open, refused};
use crate::{as_json, down, error, is_file_name, not_found, page};

/// Most bytes of a file, and most payments. What the host lets one call keep and send is four
/// megabytes, and every transfer counts as one kilobyte more than it is long: a full file leaves
/// room for a return of each of its payments.
const BYTES_MAX: usize = 400 * 1024;
const PAYMENTS_MAX: usize = 1_500;

/// How many creation numbers are remembered, which no other file may have.
const NUMBERS_MAX: usize = 10;

/// What it is sent, and nothing else.
const MEDIA_TYPE: &str = "text/plain; charset=us-ascii";

/// The note of a file's content, and of how it stands: as its sender is told, or one of the next.
const CONTENT: &str = "content";
const STATUS: &str = "status";
/// The note of its creation number.
const NUMBER: &str = "number";
/// The record of the last creation numbers, and its note of them.
const NUMBERS: &str = "file-numbers";
const LAST: &str = "last";
/// Nobody hears of the file again.
const UNKNOWN: &str = "unknown";
/// It was refused as if it had come before.
const DUPLICATE: &str = "duplicate";
/// It was sent while the gateway was down.
const DOWN: &str = "down";

/// Takes a file under a name.
#[must_use]
pub fn take(name: &str, request: &Request) -> Answer {
    let refuse = |(status, code): (u16, &str), why: &str| {
        malformed("file", why);
        error(status, code, why)
    };
    if !is_file_name(name) {
        return refuse((422, "invalid_name"), "its name is no file name");
    }
    if request.header("content-type") != MEDIA_TYPE {
        return refuse((415, "unsupported_media_type"), &format!("it is not {MEDIA_TYPE}"));
    }
    let too_large = format!("it has more than {BYTES_MAX} bytes or {PAYMENTS_MAX} payments");
    if request.body.len() > BYTES_MAX {
        return refuse((413, "too_large"), &too_large);
    }
    let file = match files::read(&request.body) {
        Ok(file) => file,
        Err(why) => return refuse((422, "invalid_file"), &why),
    };
    if file.payments.len() > PAYMENTS_MAX {
        return refuse((413, "too_large"), &too_large);
    }
    let sent = Sent { name, file: &file, content: &String::from_utf8_lossy(&request.body) };
    if file.payments.iter().any(|it| host::scenario(&it.account) == PROVIDER_DOWN) {
        // Nothing has arrived. The name is remembered all the same, for a question to find the
        // gateway as far down.
        if host::find(&sent.record()).is_none() {
            host::keep(&page(&sent.record()).noting(STATUS, DOWN));
        }
        return down();
    }
    sent.repeated().unwrap_or_else(|| sent.arrive())
}

/// A file as it was sent.
struct Sent<'a> {
    name: &'a str,
    file: &'a File,
    content: &'a str,
}

impl Sent<'_> {
    fn record(&self) -> String {
        record_of(self.name)
    }

    /// What a file is answered that was sent before, or that looks like one.
    fn repeated(&self) -> Option<Answer> {
        let known = host::find(&self.record()).filter(|known| known.noted(STATUS) != DOWN);
        let Some(known) = known else {
            let is_known = numbers().noted(LAST).split(' ').any(|it| it == self.file.number);
            return is_known.then(|| refusal(DUPLICATE_FILE));
        };
        if known.noted(CONTENT) != self.content {
            return Some(error(409, "duplicate_name", "Another file has this name."));
        }
        for payment in &self.file.payments {
            if let Some(transfer) = host::find(&payment.reference) {
                host::keep(&Transfer { received: transfer.received + 1, ..transfer });
            }
        }
        if known.noted(STATUS) == DUPLICATE {
            return Some(refusal(DUPLICATE_FILE));
        }
        Some(as_json(200, &told(self.name, &self.file.number, "received")))
    }

    fn arrive(&self) -> Answer {
        let names = Names { name: self.name, number: &self.file.number };
        let payments = self.file.payments.iter();
        let mut standings: Vec<Standing<'_>> =
            payments.map(|it| Standing::arriving(names, it)).collect();
        let play = Play::of(&standings);
        for standing in &mut standings {
            standing.transfer.received += 1;
            if !standing.is_duplicate {
                standing.carry_out(play);
            }
            host::keep(&standing.transfer);
        }
        if play == Play::NotReceived {
            return Answer::NotReceived;
        }
        self.remember(play);
        self.tell(play, &standings);
        match play {
            Play::Silent | Play::Unknown => Answer::Silence,
            Play::Duplicate => refusal(DUPLICATE_FILE),
            _ => as_json(201, &told(self.name, &self.file.number, "received")),
        }
    }

    fn remember(&self, play: Play) {
        let status = match play {
            Play::Rejected => "rejected",
            Play::Unknown => UNKNOWN,
            Play::Duplicate => DUPLICATE,
            Play::Waiting | Play::NotReceived => "received",
            Play::Plain | Play::Silent | Play::Twice => "accepted",
        };
        let number = &self.file.number;
        let record = page(&self.record()).noting(STATUS, status).noting(CONTENT, self.content);
        host::keep(&record.noting(NUMBER, number));
        let numbers = numbers();
        let others = numbers.noted(LAST).split(' ').filter(|it| !it.is_empty());
        let last: Vec<&str> =
            [number.as_str()].into_iter().chain(others).take(NUMBERS_MAX).collect();
        host::keep(&numbers.clone().noting(LAST, &last.join(" ")));
    }

    /// Reports on the file, and lets what comes back come.
    fn tell(&self, play: Play, standings: &[Standing<'_>]) {
        let number = &self.file.number;
        let mut feed = Feed::open();
        match play {
            Play::Rejected => {
                let report = reports::rejected(self.name, self.file, EXPOSURE_LIMIT);
                feed.post_report(number, &report);
            }
            Play::Plain | Play::Silent | Play::Twice => {
                let report = report(self.name, self.file, standings);
                feed.post_report(number, &report);
                if play == Play::Twice {
                    feed.post_report(number, &report);
                }
                let back: Vec<Returned<'_>> =
                    standings.iter().filter_map(Standing::returned).collect();
                if !back.is_empty() {
                    let content = returns::written(self.file, &back, &mut feed);
                    feed.post_file(&content);
                }
            }
            Play::NotReceived | Play::Duplicate | Play::Unknown | Play::Waiting => return,
        }
        feed.close();
    }
}

fn report(name: &str, file: &File, standings: &[Standing<'_>]) -> String {
    let rejected = standings.iter().filter_map(|it| Some((it.payment, it.rejection()?)));
    reports::accepted(name, file, &rejected.collect::<Vec<_>>())
}

/// The creation numbers that no other file may have.
fn numbers() -> Transfer {
    host::find(NUMBERS).unwrap_or_else(|| page(NUMBERS))
}

fn refusal(reason: Reason) -> Answer {
    error(409, reason.code, reason.message)
}

fn told(name: &str, number: &str, status: &str) -> serde_json::Value {
    json!({ "name": name, "file_creation_number": number, "status": status })
}

fn record_of(name: &str) -> String {
    format!("file/{name}")
}

/// Answers how a file stands.
#[must_use]
pub fn status(name: &str) -> Answer {
    let record = host::find(&record_of(name)).filter(|_| is_file_name(name));
    let Some(record) = record else { return not_found() };
    match record.noted(STATUS) {
        DOWN => down(),
        UNKNOWN | DUPLICATE => not_found(),
        status => as_json(200, &told(name, record.noted(NUMBER), status)),
    }
}

/// Something happens to a payment.
///
/// # Errors
/// There is none of this reference, or it does not happen to it as it stands.
pub fn tell(reference: &str, event: Event) -> Result<Transfer, Obstacle> {
    // Whatever else stands in the book never arrived.
    let payment = host::find(reference).filter(|it| it.received > 0);
    let mut payment = payment.ok_or(Obstacle::Unknown)?;
    match event {
        Event::Settle if is_open(&payment) => payment.pay(),
        Event::Fail if is_open(&payment) => payment.state = refused(INVALID_ACCOUNT),
        Event::Return if payment.state == State::Paid => payment.state = State::Returned,
        _ => return Err(Obstacle::Impossible),
    }
    let record = host::find(&record_of(payment.noted(FILE))).ok_or(Obstacle::Impossible)?;
    let file = files::read(record.noted(CONTENT).as_bytes()).map_err(|why| {
        host::error(&format!("a file that was taken cannot be read: {why}"));
        Obstacle::Impossible
    })?;
    host::keep(&payment);
    if event == Event::Return {
        let mut feed = Feed::open();
        let own = file.payments.iter().filter(|it| it.reference == reference);
        let back = own.map(|payment| Returned { payment, code: returns::NO_ACCOUNT.to_owned() });
        let content = returns::written(&file, &back.collect::<Vec<_>>(), &mut feed);
        feed.post_file(&content);
        feed.close();
    } else {
        report_at_last(record, &file, payment.noted(FILE));
    }
    Ok(payment)
}

/// Reports on a file that waited, once nothing in it is open.
fn report_at_last(record: Transfer, file: &File, name: &str) {
    let standings: Vec<Standing<'_>> =
        file.payments.iter().filter_map(|it| Standing::arrived(name, it)).collect();
    if standings.iter().any(Standing::is_open) {
        return;
    }
    let mut feed = Feed::open();
    feed.post_report(&file.number, &report(name, file, &standings));
    feed.close();
    host::keep(&record.noting(STATUS, "accepted"));
}
