//! Files that are sent to the bank, and questions about them.

use railhead_simulator::answers::malformed;
use railhead_simulator::host;
use railhead_simulator::types::{Answer, Request, State, Transfer};
use serde_json::json;

use crate::incoming::Feed;
use crate::orders::{self, File, Payment};
use crate::reports::{self, REPORT, Report};
use crate::scenarios::{self, PROVIDER_DOWN, Play};
use crate::{XML, as_json, down, error, is_file_name, not_found, page};

/// Most bytes of a file, and most payments: a call about them takes half of its memory.
const BYTES_MAX: usize = 12 * 1024 * 1024;
const PAYMENTS_MAX: usize = 10_000;

/// Notes of a file: how it stands, a number that is made of its bytes, and what there will be to
/// say about it.
const STATUS: &str = "status";
const DIGEST: &str = "digest";
const SAID: &str = "said";
/// Notes of a payment: the file that it came in, what the entry is called, and who pays.
pub(crate) const FILE: &str = "file";
pub(crate) const ENTRY: &str = "entry";
pub(crate) const DEBTOR: &str = "debtor";

/// How a file stands: nobody hears of it again.
const UNKNOWN: &str = "unknown";
/// It was refused as if it had come before.
const DUPLICATE: &str = "duplicate";
/// It was sent while the gateway was down.
const DOWN: &str = "down";
/// Some of its payments wait.
const WAITING: &str = "received";
/// All is said about it.
const REPORTED: &str = "reported";

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
    if request.header("content-type") != XML {
        return refuse((415, "unsupported_media_type"), &format!("it is not {XML}"));
    }
    let too_large = format!("it has more than {BYTES_MAX} bytes or {PAYMENTS_MAX} payments");
    if request.body.len() > BYTES_MAX {
        return refuse((413, "too_large"), &too_large);
    }
    let file = match orders::read(&request.body) {
        Ok(file) => file,
        Err(why) => return refuse((422, "invalid_message"), &why),
    };
    if file.payments().count() > PAYMENTS_MAX {
        return refuse((413, "too_large"), &too_large);
    }
    let sent = Sent { name, file: &file, body: &request.body };
    if file.payments().any(|(_, payment)| host::scenario(&payment.iban) == PROVIDER_DOWN) {
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
    body: &'a [u8],
}

/// A payment of a file, as the bank knows it.
struct Standing<'a> {
    /// The number of its batch.
    part: usize,
    entry: &'a Payment,
    payment: Transfer,
    /// Whether the payment came in another file, which counts.
    is_duplicate: bool,
}

impl Sent<'_> {
    fn record(&self) -> String {
        record_of(self.name)
    }

    /// What no other file may have.
    fn message(&self) -> String {
        format!("message/{}", self.file.message)
    }

    /// What a file is answered that was sent before, or that looks like one.
    fn repeated(&self) -> Option<Answer> {
        let known = host::find(&self.record()).filter(|known| known.noted(STATUS) != DOWN);
        let Some(known) = known else {
            return host::find(&self.message()).is_some().then(duplicate);
        };
        if known.noted(DIGEST) != digest(self.body) {
            return Some(error(409, "duplicate_name", "Another file has this name."));
        }
        for (_, entry) in self.file.payments() {
            if let Some(payment) = host::find(&entry.reference) {
                host::keep(&Transfer { received: payment.received + 1, ..payment });
            }
        }
        match known.noted(STATUS) {
            DUPLICATE => Some(duplicate()),
            _ => Some(as_json(200, &self.told())),
        }
    }

    fn arrive(&self) -> Answer {
        let payments = self.file.payments();
        let mut standings: Vec<Standing<'_>> =
            payments.map(|(part, entry)| self.arriving(part, entry)).collect();
        let play = Play::of(standings.iter().map(|it| &it.payment));
        for standing in &mut standings {
            standing.payment.received += 1;
            if !standing.is_duplicate {
                standing.carry_out(play);
            }
        }
        let answer = match play {
            Play::NotReceived => Answer::NotReceived,
            Play::Silent | Play::Unknown => Answer::Silence,
            Play::Duplicate => duplicate(),
            _ => as_json(201, &self.told()),
        };
        if play != Play::NotReceived {
            self.remember(play, &mut standings);
        }
        standings.iter().for_each(|it| host::keep(&it.payment));
        answer
    }

    /// A payment that arrives in the file: as an earlier one left it, where that counts.
    fn arriving<'a>(&'a self, part: usize, entry: &'a Payment) -> Standing<'a> {
        let known = host::find(&entry.reference);
        let is_duplicate = known.as_ref().is_some_and(is_used);
        let new = || {
            Transfer::new(&entry.reference, entry.cents, &entry.iban)
                .noting(FILE, self.name)
                .noting(ENTRY, &entry.entry)
                .noting(DEBTOR, &self.file.batches[part].debtor)
                .noting("name", &entry.name)
        };
        let payment = match known {
            Some(known) if is_duplicate => known,
            Some(known) => Transfer { received: known.received, scenario: known.scenario, ..new() },
            None => new(),
        };
        Standing { part, entry, payment, is_duplicate }
    }

    /// Writes the file down, and lays out what is to be said about it.
    fn remember(&self, play: Play, standings: &mut [Standing<'_>]) {
        let mut feed = Feed::open();
        let report = report(self.file, standings);
        let status = match play {
            Play::Unknown => UNKNOWN,
            Play::Duplicate => DUPLICATE,
            Play::Plain | Play::Silent | Play::Twice if report.is_open() => WAITING,
            _ => REPORTED,
        };
        match play {
            Play::Rejected => feed.post(REPORT, &report.rejected(&feed, "FF01")),
            Play::Unclear => feed.post(REPORT, &report.unclear(&feed)),
            Play::Plain | Play::Silent | Play::Twice => {
                if status == WAITING || play == Play::Twice {
                    feed.post(REPORT, &report.received(&feed));
                }
                if status == REPORTED {
                    feed.post(REPORT, &report.carried_out(&feed));
                }
                if play == Play::Twice {
                    feed.post(REPORT, &report.received(&feed));
                    feed.post(REPORT, &report.carried_out(&feed));
                }
                send_back(standings, &mut feed);
            }
            Play::NotReceived | Play::Duplicate | Play::Unknown => {}
        }
        feed.close();
        let record = page(&self.record()).noting(STATUS, status).noting(DIGEST, &digest(self.body));
        let record = record.noting("message_id", &self.file.message);
        host::keep(&if status == WAITING { remembering(record, &report) } else { record });
        host::keep(&page(&self.message()).noting("name", self.name));
    }

    fn told(&self) -> serde_json::Value {
        json!({ "name": self.name, "message_id": self.file.message, "status": "received" })
    }
}

impl Standing<'_> {
    fn carry_out(&mut self, play: Play) {
        let payment = &mut self.payment;
        match play {
            Play::NotReceived => payment.state = State::Lost,
            Play::Rejected | Play::Duplicate => payment.state = State::Refused(WHOLE.to_owned()),
            Play::Unknown | Play::Unclear => payment.state = State::Unclear,
            Play::Plain | Play::Silent | Play::Twice => scenarios::carry_out(payment),
        }
    }
}

/// Why a payment was refused with its file: another file may bring it again.
const WHOLE: &str = "file";

/// What there is to say about a file.
fn report(file: &File, standings: &[Standing<'_>]) -> Report {
    let mut report = Report::on(file);
    for Standing { part, entry, payment, is_duplicate } in standings {
        let duplicate = || "AM05".to_owned();
        let code = if *is_duplicate { Some(duplicate()) } else { reports::why(payment) };
        match code {
            Some(code) => report.reject(*part, (&entry.entry, &entry.reference), code),
            None if is_open(payment) => report.wait(*part, &entry.reference),
            None => {}
        }
    }
    report
}

/// The record of a file, with what there will be to say about it.
fn remembering(record: Transfer, report: &Report) -> Transfer {
    match serde_json::to_string(report) {
        Ok(said) => record.noting(SAID, &said),
        Err(cause) => {
            host::error(&format!("a report could not be remembered: {cause}"));
            record
        }
    }
}

/// Payments come back that were made and play it.
fn send_back(standings: &mut [Standing<'_>], feed: &mut Feed) {
    let mut returned = Vec::new();
    for it in standings.iter_mut().filter(|it| !it.is_duplicate) {
        let code = scenarios::returning(&it.payment.scenario);
        if let Some(code) = code.filter(|_| it.payment.state == State::Paid) {
            it.payment.state = State::Returned;
            returned.push((it.payment.clone(), code));
        }
    }
    reports::book_returns(&returned, feed);
}

/// Something has happened to a payment of a file: it is reported on, once nothing in it waits.
pub(crate) fn report_at_last(payment: &Transfer) {
    let record = host::find(&record_of(payment.noted(FILE)));
    let Some(record) = record.filter(|it| it.noted(STATUS) == WAITING) else { return };
    let mut report: Report = match serde_json::from_str(record.noted(SAID)) {
        Ok(report) => report,
        Err(why) => return host::error(&format!("a report cannot be read again: {why}")),
    };
    report.end(payment);
    if report.is_open() {
        return host::keep(&remembering(record, &report));
    }
    let mut feed = Feed::open();
    feed.post(REPORT, &report.carried_out(&feed));
    feed.close();
    host::keep(&record.noting(STATUS, REPORTED).noting(SAID, ""));
}

/// Whether it is still open what becomes of a payment.
fn is_open(payment: &Transfer) -> bool {
    matches!(payment.state, State::Pending | State::Unclear)
}

/// Whether a payment counts: no later one of its reference is made.
fn is_used(payment: &Transfer) -> bool {
    payment.state != State::Lost && payment.state != State::Refused(WHOLE.to_owned())
}

fn duplicate() -> Answer {
    error(409, "duplicate_message", "A file of this message identification was sent.")
}

fn record_of(name: &str) -> String {
    format!("file/{name}")
}

/// Tells the bytes of one file from those of another (FNV-1a, and how many there are).
fn digest(bytes: &[u8]) -> String {
    let mix = |hash: u64, byte: &u8| (hash ^ u64::from(*byte)).wrapping_mul(0x0100_0000_01b3);
    format!("{:016x}-{}", bytes.iter().fold(0xcbf2_9ce4_8422_2325, mix), bytes.len())
}

/// Answers how a file stands.
#[must_use]
pub fn status(name: &str) -> Answer {
    let record = host::find(&record_of(name)).filter(|_| is_file_name(name));
    let Some(record) = record else { return not_found() };
    match record.noted(STATUS) {
        DOWN => down(),
        UNKNOWN | DUPLICATE => not_found(),
        status => {
            let message = record.noted("message_id");
            as_json(200, &json!({ "name": name, "message_id": message, "status": status }))
        }
    }
}
