//! Files of returns and of notifications of change, from the bank to the originator.
//!
//! The layouts are those of the Nacha Operating Rules, appendices four and five. Each receiving
//! bank sends its own batch: it stands in the place of the originating bank, and its trace numbers
//! begin with it. Dates and times are UTC.

use std::collections::BTreeMap;

use railhead_simulator::host;

use crate::corrections::corrected;
use crate::days::{Day, time_of_day};
use crate::fields::{BLOCK, WIDTH};
use crate::files::{Batch, Entry, File, HASH};
use crate::incoming::Feed;
use crate::routing::check_digit;

/// What a receiving bank says about an entry.
#[derive(Clone, Debug)]
pub struct News<'a> {
    /// The batch that it came in.
    pub batch: &'a Batch,
    /// The entry.
    pub entry: &'a Entry,
    /// What it says.
    pub what: What,
}

/// What a receiving bank can say.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum What {
    /// The money comes back, for this reason.
    Returned(String),
    /// It stays, and something has to be changed. Code and corrected data.
    Corrected(String, String),
}

impl What {
    /// What is said in a scenario of entries, if that is one in which something is said.
    #[must_use]
    pub fn of(scenario: &str, entry: &Entry) -> Option<Self> {
        if scenario == "returned" {
            return Some(Self::Returned("R03".to_owned()));
        }
        if let Some(code) = scenario.strip_prefix("return_") {
            let code = code.to_ascii_uppercase();
            let number = code.strip_prefix('R')?;
            let is_code = number.len() == 2 && number.bytes().all(|byte| byte.is_ascii_digit());
            return is_code.then_some(Self::Returned(code));
        }
        let code = scenario.strip_prefix("correction_")?.to_ascii_uppercase();
        let data = corrected(&code, entry)?;
        Some(Self::Corrected(code, data))
    }
}

/// Batches are of one class, one original batch and one receiving bank.
type Key<'a> = (&'a str, u64, &'a str);

/// What control records tell again.
#[derive(Default)]
struct Sums {
    records: u64,
    hash: u64,
    credit: u64,
}

impl Sums {
    fn add(&mut self, more: &Self) {
        self.records += more.records;
        self.hash = (self.hash + more.hash) % HASH;
        self.credit += more.credit;
    }
}

/// Writes what receiving banks say about entries of a file as the next file of the feed.
#[must_use]
pub fn written(file: &File, news: &[News<'_>], feed: &mut Feed) -> String {
    let mut batches: BTreeMap<Key<'_>, Vec<&News<'_>>> = BTreeMap::new();
    for news in news {
        let class = match news.what {
            What::Returned(_) => news.batch.class.as_str(),
            What::Corrected(..) => "COR",
        };
        let key = (class, news.batch.number, news.entry.rdfi.as_str());
        batches.entry(key).or_default().push(news);
    }
    let mut records = vec![header(file, feed)];
    let mut sums = Sums::default();
    for (number, ((class, _, rdfi), news)) in (1..).zip(&batches) {
        let place = Place { number, class, rdfi };
        sums.add(&place.write(news, feed, &mut records));
    }
    let blocks = (records.len() + 1).div_ceil(BLOCK);
    records.push(format!(
        "9{:06}{blocks:06}{:08}{:010}{:012}{:012}{:39}",
        batches.len(),
        sums.records,
        sums.hash,
        0,
        sums.credit,
        "",
    ));
    records.resize(blocks * BLOCK, "9".repeat(WIDTH));
    records.join("\n") + "\n"
}

fn header(file: &File, feed: &Feed) -> String {
    let now_ms = host::now_ms();
    let (day, time) = (Day::of_instant(now_ms).written(), time_of_day(now_ms));
    let header = &file.header;
    format!(
        "101{}{}{day}{time}{}094101{:<23}{:<23}{}",
        header.origin,
        header.destination,
        feed.modifier(),
        header.origin_name,
        header.destination_name,
        feed.next_cursor(),
    )
}

/// A batch of the file: its number, its class, and the bank that it comes from.
struct Place<'a> {
    number: u64,
    class: &'a str,
    rdfi: &'a str,
}

impl Place<'_> {
    fn write(&self, news: &[&News<'_>], feed: &mut Feed, records: &mut Vec<String>) -> Sums {
        let mut sums = Sums::default();
        let Self { number, class, rdfi } = self;
        let Some(News { batch, .. }) = news.first() else { return sums };
        let settled_on = Day::of_instant(host::now_ms()).of_year();
        records.push(format!(
            "5220{:<16}{:<20}{:<10}{class}{:<10}{:<6}{}{settled_on:03}1{rdfi}{number:07}",
            batch.company_name,
            batch.discretionary,
            batch.company_id,
            batch.description,
            batch.descriptive_date,
            batch.effective_date,
        ));
        for news in news {
            let trace = format!("{rdfi}{:07}", feed.next_trace());
            sums.add(&news.write(&trace, records));
        }
        records.push(format!(
            "8220{:06}{:010}{:012}{:012}{:<10}{:25}{rdfi}{number:07}",
            sums.records, sums.hash, 0, sums.credit, batch.company_id, "",
        ));
        sums
    }
}

impl News<'_> {
    /// The entry and its addenda record. It goes to the bank that the original came from.
    fn write(&self, trace: &str, records: &mut Vec<String>) -> Sums {
        let Self { batch, entry, what } = self;
        let code = if entry.code == "22" { "21" } else { "31" };
        let amount = match what {
            What::Returned(_) => entry.amount,
            What::Corrected(..) => 0,
        };
        records.push(format!(
            "6{code}{}{}{:<17}{amount:010}{:<15}{:<22}{:<2}1{trace}",
            batch.odfi,
            check_digit(&batch.odfi).unwrap_or_default(),
            entry.account,
            entry.id,
            entry.name,
            entry.discretionary,
        ));
        let (original, rdfi) = (&entry.trace, &entry.rdfi);
        records.push(match what {
            What::Returned(code) => {
                format!("799{code}{original}{:6}{rdfi}{:44}{trace}", "", "")
            }
            What::Corrected(code, data) => {
                format!("798{code}{original}{:6}{rdfi}{data}{:15}{trace}", "", "")
            }
        });
        Sums { records: 2, hash: batch.odfi.parse().unwrap_or_default(), credit: amount }
    }
}
