//! How a file leaves, and how one is fetched: by the rail's own calls or, where the operator has
//! said where to, by the host.
//!
//! The host writes a file under another name, looks whether all of it is there, and then renames it:
//!
//! | what fails | what is known | what follows |
//! |---|---|---|
//! | anything before the renaming | a bank takes no file under such a name | the same bytes go again |
//! | the renaming, or its answer | nothing | the file is looked for, and never made again |
//! | nothing | the file lies there | its acknowledgement is waited for |
//!
//! In an object store a file appears in one step, which stands in for the renaming.
//!
//! What lies ready is left where it is: [`cursor`] says what was fetched.

mod bucket;
mod cursor;
mod folder;
mod sftp;

use std::sync::Arc;
use std::sync::atomic::{AtomicU8, Ordering};
use std::time::{Duration, Instant};

use sha2::{Digest as _, Sha256};

use crate::config::limits;
use crate::rails::ReadyRoute;
use crate::rails::file_transport::{Place, Way};
use crate::wasm::egress::{Answer, Exchange, Failure};
use crate::wasm::rail::{Arrival, Called, Delivery, File, Grant, Presence};

use cursor::Cursor;

/// Longest that a whole call may take, as of a rail's.
const CALL_MAX: Duration = limits::RAIL_WALL_MAX;
/// After so long a call fetches no further file: what it has is kept.
const FETCH_MAX: Duration = Duration::from_secs(30);
/// Longest that one file may take.
const READ_MAX: Duration = Duration::from_secs(20);
/// Files that are fetched in one call.
const FETCHED_MAX: usize = 20;
/// Files that a folder may have for it to be read.
const LISTED_MAX: usize = 50_000;
/// What changed less than this ago, by its own date, may still grow.
const GROWS_S: u64 = 10;
/// What cannot be read so long after it was written is a person's to look at.
const UNREADABLE_S: u64 = 3_600;
/// Longest name of a file that is fetched, in bytes.
const NAME_MAX: usize = 255;
/// How names end that are not finished yet.
const UNFINISHED: [&str; 3] = [".part", ".tmp", ".filepart"];

/// A file in a folder.
#[derive(Clone, Debug, PartialEq, Eq)]
struct Entry {
    name: String,
    bytes: u64,
    /// Seconds since 1970, as whoever keeps it says.
    changed_s: i64,
}

impl Entry {
    /// Whether it is as it was listed. Some servers give dates of single files only.
    fn is_still(&self, listed: &Self) -> bool {
        let is_as_old = listed.changed_s == 0 || self.changed_s == listed.changed_s;
        is_as_old && self.bytes == listed.bytes
    }

    fn left_out(self, why: String) -> LeftOut {
        let version = format!("{} {}", self.bytes, self.changed_s);
        LeftOut { name: self.name, version, why }
    }
}

/// What lay ready.
pub(super) struct Fetched {
    pub(super) arrivals: Vec<Arrival>,
    /// Files that nobody can read: a person has to look.
    pub(super) left_out: Vec<LeftOut>,
}

/// A file that is not fetched.
pub(super) struct LeftOut {
    pub(super) name: String,
    /// Another one for every change of it.
    pub(super) version: String,
    pub(super) why: String,
}

/// A folder that is open.
enum Store<'a> {
    Folder(folder::Opened),
    Sftp(Box<sftp::Session>),
    Bucket(bucket::Opened<'a>),
}

/// What a delivery passes once, right before its name appears. Whoever gives it up shuts it: what
/// still runs gets no further.
#[derive(Default)]
struct Gate(AtomicU8);

const OPEN: u8 = 0;
const PASSED: u8 = 1;
const SHUT: u8 = 2;

impl Gate {
    fn pass(&self) -> Result<(), String> {
        let passed = self.0.compare_exchange(OPEN, PASSED, Ordering::SeqCst, Ordering::SeqCst);
        passed.map(drop).map_err(|_| "it was given up".to_owned())
    }

    /// Whether it was passed.
    fn shut(&self) -> bool {
        let shut = self.0.compare_exchange(OPEN, SHUT, Ordering::SeqCst, Ordering::SeqCst);
        shut == Err(PASSED)
    }
}

/// Delivers a file.
pub(super) async fn deliver(
    route: &ReadyRoute,
    grant: &Arc<Grant>,
    file: &File,
) -> Called<Delivery> {
    let Some(place) = route.transport.deliver_to() else {
        return route.rail.code.deliver(grant, file).await;
    };
    let (begun, gate) = (Instant::now(), Gate::default());
    let put = in_time(put(place, file, &gate)).await;
    let (delivery, answer) = match (put, gate.shut()) {
        (Ok(delivery), _) => (delivery, Ok(())),
        (Err(why), true) => (Delivery::Unknown(why.clone()), Err(Failure::NoAnswer(why))),
        (Err(why), false) => (Delivery::NotTaken(why.clone()), Err(Failure::NotSent(why))),
    };
    let lies_there = !matches!(delivery, Delivery::NotTaken(_));
    Called {
        may_have_moved_money: lies_there,
        ..called(delivery, ("deliver", &file.name), answer, begun)
    }
}

/// Looks for a file of which nobody knows whether it was delivered.
pub(super) async fn look(route: &ReadyRoute, grant: &Arc<Grant>, file: &File) -> Called<Presence> {
    let Some(place) = route.transport.deliver_to() else {
        return route.rail.code.look(grant, file).await;
    };
    let begun = Instant::now();
    let (presence, answer) = match in_time(find(place, file)).await {
        Ok(presence) => (presence, Ok(())),
        Err(why) => (Presence::Unknown(why.clone()), Err(Failure::NotSent(why))),
    };
    called(presence, ("look", &file.name), answer, begun)
}

/// What lies ready in a feed after a cursor.
pub(super) async fn poll(
    route: &ReadyRoute,
    grant: &Arc<Grant>,
    (feed, after): (&str, &str),
) -> Called<Result<Fetched, String>> {
    let Some(place) = route.transport.feed(feed) else {
        // What the host wrote down for itself means nothing to a rail.
        let after = if Cursor::is_one(after) { "" } else { after };
        let called = route.rail.code.poll(grant, (feed, after)).await;
        let all = |arrivals| Fetched { arrivals, left_out: Vec::new() };
        return called.map(|result| result.map(all));
    };
    let begun = Instant::now();
    let now_s = i64::try_from(grant.now_ms / 1_000).unwrap_or(i64::MAX);
    let fetched = in_time(fetch(place, after, now_s)).await;
    let answer = fetched.as_ref().map(drop).map_err(|why| Failure::NotSent(why.clone()));
    called(fetched, ("poll", feed), answer, begun)
}

async fn in_time<T>(doing: impl Future<Output = Result<T, String>>) -> Result<T, String> {
    let done = tokio::time::timeout(CALL_MAX, doing).await;
    done.unwrap_or_else(|_| Err(format!("it took longer than {CALL_MAX:?}")))
}

/// A call as it is judged elsewhere.
fn called<T>(
    result: T,
    (call, path): (&str, &str),
    answer: Result<(), Failure>,
    begun: Instant,
) -> Called<T> {
    let nothing = Answer { status: 200, headers: Vec::new(), body: Vec::new() };
    let exchange = Exchange {
        call: call.to_owned(),
        moves_money: call == "deliver",
        is_for_token: false,
        method: "FILE".to_owned(),
        path: path.to_owned(),
        request: Vec::new(),
        result: answer.map(|()| nothing),
        took: begun.elapsed(),
        is_kept_back: false,
        is_crowded: false,
    };
    Called {
        result: Ok(result),
        bytes_left: exchange.bytes_left(),
        may_have_moved_money: false,
        took: exchange.took,
        exchanges: vec![exchange],
    }
}

/// Puts a file where nothing lies under its name. An error is one before anything can lie there if
/// the gate was not passed.
async fn put(place: &Place, file: &File, gate: &Gate) -> Result<Delivery, String> {
    let name = &file.name;
    if !is_plain(name) {
        return Err(format!("{name:?} is no name for a file"));
    }
    let store = Store::open(place).await?;
    if let Some(lies) = store.stat(name).await? {
        return Ok(match store.holds(&lies, &file.content).await {
            Ok(true) => Delivery::Taken,
            Ok(false) => Delivery::Unknown(format!("another file {name} lies there")),
            Err(why) => Delivery::Unknown(format!("a file {name} lies there: {why}")),
        });
    }
    store.place(name, &file.content, gate).await?;
    store.close().await;
    Ok(Delivery::Taken)
}

async fn find(place: &Place, file: &File) -> Result<Presence, String> {
    if !is_plain(&file.name) {
        return Ok(Presence::Absent);
    }
    let store = Store::open(place).await?;
    let Some(lies) = store.stat(&file.name).await? else {
        store.close().await;
        return Ok(Presence::Absent);
    };
    let holds = store.holds(&lies, &file.content).await;
    store.close().await;
    let is_as_long = usize::try_from(lies.bytes) == Ok(file.content.len());
    // Some servers show what was delivered, and let nobody read it.
    Ok(match holds.unwrap_or(is_as_long) {
        true => Presence::Present,
        false => Presence::Unknown(format!("another file {} lies there", file.name)),
    })
}

async fn fetch(place: &Place, after: &str, now_s: i64) -> Result<Fetched, String> {
    let (begun, mut cursor) = (Instant::now(), Cursor::read(&place.address, after));
    let store = Store::open(place).await?;
    let mut entries = store.list().await?;
    entries.retain(|entry| is_wanted(entry) && cursor.is_new(entry) && !grows(entry, now_s));
    entries.sort_by(|a, b| (a.changed_s, &a.name).cmp(&(b.changed_s, &b.name)));
    let (mut arrivals, mut bytes) = (Vec::new(), 0);
    let (mut left_out, mut failed) = (Vec::new(), Vec::new());
    for entry in entries {
        if entry.bytes > limit() {
            let why = format!("it has {} bytes, and at most {} are read", entry.bytes, limit());
            left_out.push(entry.left_out(why));
            continue;
        }
        if arrivals.len() >= FETCHED_MAX || begun.elapsed() > FETCH_MAX {
            break;
        }
        bytes += entry.bytes;
        if !arrivals.is_empty() && bytes > limit() {
            break;
        }
        match store.read_whole(&entry).await {
            Ok(Some(content)) => {
                cursor.note(&entry, now_s);
                arrivals.push(Arrival { cursor: cursor.text(), name: entry.name, content });
            }
            Ok(None) => {
                tracing::info!(name = entry.name, "a file that changes, fetched another time");
            }
            // It keeps nothing out, and may be whole in a moment.
            Err(why) => failed.push((entry, why)),
        }
    }
    store.close().await;
    // One that nobody can ever read says nothing of the place that it lies in; where several fail and
    // none was read, it is the place.
    let is_old = |entry: &Entry| entry.changed_s.abs_diff(now_s) >= UNREADABLE_S;
    let is_of_place = failed.len() > 1 || failed.iter().any(|(entry, _)| !is_old(entry));
    match failed.first() {
        Some((_, why)) if is_of_place && arrivals.is_empty() && left_out.is_empty() => {
            return Err(why.clone());
        }
        _ => {}
    }
    let old = failed.into_iter().filter(|(entry, _)| is_old(entry));
    left_out.extend(old.map(|(entry, why)| entry.left_out(why)));
    // The newest: what has lain there for long was told of before.
    let told = left_out.len().saturating_sub(FETCHED_MAX);
    drop(left_out.drain(..told));
    Ok(Fetched { arrivals, left_out })
}

fn limit() -> u64 {
    u64::try_from(limits::FILE_BYTES_MAX).unwrap_or(u64::MAX)
}

/// Whether it is a name and no path, and none that is left out where files are fetched.
fn is_plain(name: &str) -> bool {
    let odd = |c: char| c.is_control() || c == '/' || c == '\\';
    !name.is_empty() && !name.starts_with('.') && !name.contains(odd)
}

fn is_wanted(entry: &Entry) -> bool {
    let name = entry.name.to_ascii_lowercase();
    let is_finished = !UNFINISHED.iter().any(|end| name.ends_with(end));
    is_plain(&name) && name.len() <= NAME_MAX && is_finished
}

/// A file of the future has a date from another clock: that says nothing.
fn grows(entry: &Entry, now_s: i64) -> bool {
    entry.changed_s.abs_diff(now_s) < GROWS_S
}

impl<'a> Store<'a> {
    async fn open(place: &'a Place) -> Result<Self, String> {
        match place.way()? {
            Way::Folder(folder) => folder::Opened::open(folder).await.map(Self::Folder),
            Way::Sftp(server) => {
                sftp::Session::open(server).await.map(|session| Self::Sftp(Box::new(session)))
            }
            Way::Bucket(bucket) => bucket::Opened::open(bucket).await.map(Self::Bucket),
        }
    }

    /// The file of this name, if there is one.
    async fn stat(&self, name: &str) -> Result<Option<Entry>, String> {
        match self {
            Self::Folder(folder) => folder.stat(name).await,
            Self::Sftp(session) => session.stat(name).await,
            Self::Bucket(bucket) => bucket.stat(name).await,
        }
    }

    /// All files, in no order.
    async fn list(&self) -> Result<Vec<Entry>, String> {
        match self {
            Self::Folder(folder) => folder.list().await,
            Self::Sftp(session) => session.list().await,
            Self::Bucket(bucket) => bucket.list().await,
        }
    }

    /// All of a file, as long as it is as long as it was.
    async fn read(&self, entry: &Entry) -> Result<Vec<u8>, String> {
        let bytes = usize::try_from(entry.bytes).unwrap_or(usize::MAX);
        if bytes > limits::FILE_BYTES_MAX {
            return Err(format!("it has {bytes} bytes"));
        }
        let content = match self {
            Self::Folder(folder) => folder.read(&entry.name, bytes).await?,
            Self::Sftp(session) => session.read(&entry.name, bytes).await?,
            Self::Bucket(bucket) => bucket.read(&entry.name, bytes).await?,
        };
        match content.len() == bytes {
            true => Ok(content),
            false => Err(format!("it had {bytes} bytes, and {} could be read", content.len())),
        }
    }

    /// A file as it was listed; nothing where it has changed meanwhile.
    async fn read_whole(&self, entry: &Entry) -> Result<Option<Vec<u8>>, String> {
        if entry.name.contains(char::REPLACEMENT_CHARACTER) {
            return Err("its name is not in UTF-8".to_owned());
        }
        let reading = async {
            let content = self.read(entry).await;
            let now = self.stat(&entry.name).await?;
            match now.is_some_and(|now| now.is_still(entry)) {
                true => content.map(Some),
                false => Ok(None),
            }
        };
        let read = tokio::time::timeout(READ_MAX, reading).await;
        read.unwrap_or_else(|_| Err(format!("reading it took longer than {READ_MAX:?}")))
    }

    /// Whether a file is this one.
    async fn holds(&self, entry: &Entry, content: &[u8]) -> Result<bool, String> {
        if usize::try_from(entry.bytes) != Ok(content.len()) {
            return Ok(false);
        }
        let found = self.read(entry).await?;
        Ok(Sha256::digest(found) == Sha256::digest(content))
    }

    /// Puts a file there under its name, all of it at once. An error is one before anything can lie
    /// there if the gate was not passed.
    async fn place(&self, name: &str, content: &[u8], gate: &Gate) -> Result<(), String> {
        let part = format!(".{name}.part");
        match self {
            Self::Folder(folder) => folder.write(&part, content).await?,
            Self::Sftp(session) => session.write(&part, content).await?,
            Self::Bucket(bucket) => {
                gate.pass()?;
                return bucket.put(name, content).await;
            }
        }
        let (wrote, lies) = (content.len(), self.stat(&part).await?);
        if lies.as_ref().is_none_or(|lies| usize::try_from(lies.bytes) != Ok(wrote)) {
            return Err(format!("{wrote} bytes were written, and not all of them are there"));
        }
        gate.pass()?;
        match self {
            Self::Folder(folder) => folder.rename(&part, name).await,
            Self::Sftp(session) => session.rename(&part, name).await,
            Self::Bucket(_) => Ok(()),
        }
    }

    /// Says goodbye. Whoever is not told finds out.
    async fn close(self) {
        match self {
            Self::Folder(_) | Self::Bucket(_) => {}
            Self::Sftp(session) => session.close().await,
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_gate_is_passed_or_shut() {
        let gate = Gate::default();
        assert!(gate.pass().is_ok());
        assert!(gate.pass().is_err(), "once");
        assert!(gate.shut());
        let gate = Gate::default();
        assert!(!gate.shut());
        assert!(gate.pass().is_err(), "whoever was given up gets no further");
        assert!(!gate.shut());
    }

    #[test]
    fn what_is_not_finished_is_left_alone() {
        let entry = |name: &str| Entry { name: name.to_owned(), bytes: 1, changed_s: 0 };
        for name in ["report.json", "a b.ach", "part", "tmp.txt"] {
            assert!(is_wanted(&entry(name)), "{name}");
        }
        for name in [".report", "a.part", "a.TMP", "a.filepart", "", "..", "a/b", "a\nb"] {
            assert!(!is_wanted(&entry(name)), "{name}");
        }
        let at = |changed_s| Entry { changed_s, ..entry("a") };
        assert!(grows(&at(1_000), 1_009) && grows(&at(1_000), 1_000) && grows(&at(1_005), 1_000));
        assert!(!grows(&at(1_000), 1_010) && !grows(&at(9_000), 1_000));
    }
}
