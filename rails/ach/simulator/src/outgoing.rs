//! Files that are sent to the bank, and questions about them.

use railhead_simulator::answers::malformed;
use railhead_simulator::host;
use railhead_simulator::types::{Answer, Event, Obstacle, Request, State, Transfer};
use serde_json::json;

use crate::files::{self, File};
use crate::incoming::Feed;
use crate::reports::{self, DUPLICATE_FILE, EXPOSURE_LIMIT, INVALID_ACCOUNT, Reason};
use crate::returns::{self, News, What};
use crate::scenarios::{FILE, Names, PROVIDER_DOWN, Play, Standing, is_open, refused};
use crate::{as_json, down, error, is_file_name, not_found, page};

/// Most bytes of a file, and most entries. What the host lets one call keep and send is four
/// megabytes, and every transfer counts as one kilobyte more than it is long: a full file leaves
/// room for a return of each of its entries.
const BYTES_MAX: usize = 512 * 1024;
const ENTRIES_MAX: usize = 2_000;

/// What it is sent, and nothing else.
const MEDIA_TYPE: &str = "text/plain; charset=us-ascii";

/// The note of a file's content, and of how it stands: as its sender is told, or one of the next.
const CONTENT: &str = "content";
const STATUS: &str = "status";
/// The note of the name of the file that has a number.
const NAME: &str = "name";
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
    let too_large = format!("it has more than {BYTES_MAX} bytes or {ENTRIES_MAX} entries");
    if request.body.len() > BYTES_MAX {
        return refuse((413, "too_large"), &too_large);
    }
    let file = match files::read(&request.body) {
        Ok(file) => file,
        Err(why) => return refuse((422, "invalid_file"), &why),
    };
    if file.entries().count() > ENTRIES_MAX {
        return refuse((413, "too_large"), &too_large);
    }
    let sent = Sent { name, file: &file, content: &String::from_utf8_lossy(&request.body) };
    if file.entries().any(|(_, entry)| host::scenario(&entry.account) == PROVIDER_DOWN) {
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

    /// What no other file may have beside its name. The modifiers of a day would not do: where
    /// every payment is a file of its own, there are more files than modifiers.
    fn number(&self) -> String {
        format!("file-number/{}", self.file.header.reference_code)
    }

    /// What a file is answered that was sent before, or that looks like one.
    fn repeated(&self) -> Option<Answer> {
        let known = host::find(&self.record()).filter(|known| known.noted(STATUS) != DOWN);
        let Some(known) = known else {
            let is_known = host::find(&self.number()).is_some();
            return is_known.then(|| refusal(DUPLICATE_FILE));
        };
        if known.noted(CONTENT) != self.content {
            return Some(error(409, "duplicate_name", "Another file has this name."));
        }
        for (_, entry) in self.file.entries() {
            if let Some(payment) = host::find(&entry.id) {
                host::keep(&Transfer { received: payment.received + 1, ..payment });
            }
        }
        if known.noted(STATUS) == DUPLICATE {
            return Some(refusal(DUPLICATE_FILE));
        }
        Some(as_json(200, &told(self.name, &self.file.header.reference_code, "received")))
    }

    fn arrive(&self) -> Answer {
        let names = Names { name: self.name, reference_code: &self.file.header.reference_code };
        let entries = self.file.entries();
        let mut standings: Vec<Standing<'_>> =
            entries.map(|it| Standing::arriving(names, it)).collect();
        let play = Play::of(&standings);
        for standing in &mut standings {
            standing.payment.received += 1;
            if !standing.is_duplicate {
                standing.carry_out(play);
            }
            host::keep(&standing.payment);
        }
        if play == Play::NotReceived {
            return Answer::NotReceived;
        }
        self.remember(play);
        self.tell(play, &standings);
        match play {
            Play::Silent | Play::Unknown => Answer::Silence,
            Play::Duplicate => refusal(DUPLICATE_FILE),
            _ => as_json(201, &told(self.name, &self.file.header.reference_code, "received")),
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
        let code = &self.file.header.reference_code;
        let record = page(&self.record()).noting(STATUS, status).noting(CONTENT, self.content);
        host::keep(&record.noting("reference_code", code));
        host::keep(&page(&self.number()).noting(NAME, self.name));
    }

    /// Reports on the file, and lets the receivers' banks say what they have to.
    fn tell(&self, play: Play, standings: &[Standing<'_>]) {
        let code = &self.file.header.reference_code;
        let mut feed = Feed::open();
        match play {
            Play::Rejected => {
                feed.post_report(code, &reports::rejected(self.file, EXPOSURE_LIMIT));
            }
            Play::Plain | Play::Silent | Play::Twice => {
                let report = report(self.file, standings);
                feed.post_report(code, &report);
                if play == Play::Twice {
                    feed.post_report(code, &report);
                }
                let news: Vec<News<'_>> = standings.iter().filter_map(Standing::news).collect();
                if !news.is_empty() {
                    let content = returns::written(self.file, &news, &mut feed);
                    feed.post_file(&content);
                }
            }
            Play::NotReceived | Play::Duplicate | Play::Unknown | Play::Waiting => return,
        }
        feed.close();
    }
}

fn report(file: &File, standings: &[Standing<'_>]) -> String {
    let rejected = standings.iter().filter_map(|it| Some((it.entry, it.rejection()?)));
    reports::accepted(file, &rejected.collect::<Vec<_>>())
}

fn refusal(reason: Reason) -> Answer {
    error(409, reason.code, reason.message)
}

fn told(name: &str, reference_code: &str, status: &str) -> serde_json::Value {
    json!({ "name": name, "reference_code": reference_code, "status": status })
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
        status => as_json(200, &told(name, record.noted("reference_code"), status)),
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
        let own = file.entries().filter(|(_, entry)| entry.id == reference);
        let what = What::Returned("R03".to_owned());
        let news = own.map(|(batch, entry)| News { batch, entry, what: what.clone() });
        let content = returns::written(&file, &news.collect::<Vec<_>>(), &mut feed);
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
        file.entries().filter_map(|it| Standing::arrived(name, it)).collect();
    if standings.iter().any(Standing::is_open) {
        return;
    }
    let mut feed = Feed::open();
    feed.post_report(&file.header.reference_code, &report(file, &standings));
    feed.close();
    host::keep(&record.noting(STATUS, "accepted"));
}
