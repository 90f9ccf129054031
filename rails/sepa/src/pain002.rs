//! The bank's reports on files that it was delivered: pain.002.001.10.
//!
//! A report speaks of a file as a whole (`GrpSts`), of what the file holds under one date, which
//! here is the same (`PmtInfSts`), and of single payments (`TxSts`).

use railhead_rail::host;
use railhead_rail::types::{Finding, News, Notice, Receipt, Refusal, Subject};

use crate::amount;
use crate::reference;
use crate::settings;
use crate::status::{self, Judged, Stage, Standing};
use crate::xml::{Element, Odd};

/// What a report says of a single payment.
struct Told {
    /// Its entry.
    about: Subject,
    /// Its reference.
    name: String,
    standing: Standing,
    judged: Option<Judged>,
}

/// What a report says of a file.
struct Report<'a> {
    identity: &'a str,
    /// Where something is said of all of it: of the group, and of what it holds.
    levels: Vec<&'a Element>,
    /// What is said of all of it, once or twice.
    whole: Vec<Standing>,
    /// How many payments it has, where that is told.
    count: Option<u64>,
    /// What they come to, in cents, where that is told.
    sum: Option<i64>,
    /// How many payments stand how; none of which there are none.
    tallies: Vec<(Standing, u64)>,
    told: Vec<Told>,
    /// Payments of which it says what cannot be read.
    unread: usize,
}

/// What a report says. Where it is not certain of which payments it is, the file is not called
/// accepted, so that a person looks. A duplicate is not refused: what it is one of may be carried
/// out. Where a payment by itself is one, the file is accepted all the same: of that payment it is
/// told that nobody knows, and the host keeps it unpaid until a person has looked.
///
/// # Errors
/// It cannot be read, or contradicts itself.
pub fn read(content: &Element) -> Result<Vec<Notice>, Odd> {
    if content.name() != "CstmrPmtStsRpt" {
        return Err("it is no report on a file".to_owned());
    }
    let group = content.find("OrgnlGrpInfAndSts")?.ok_or("it names no file")?;
    let identity = group.need(&["OrgnlMsgId"])?;
    let kind = group.need(&["OrgnlMsgNmId"])?;
    if !kind.starts_with("pain.001") || !reference::is_file(identity) {
        host::warn("a report of the bank's is on a file that was not made here");
        return Ok(Vec::new());
    }
    Report::read(identity, group, content.find("OrgnlPmtInfAndSts")?)?.notices()
}

impl<'a> Report<'a> {
    fn read(
        identity: &'a str,
        group: &'a Element,
        batch: Option<&'a Element>,
    ) -> Result<Self, Odd> {
        if let Some(batch) = batch
            && batch.need(&["OrgnlPmtInfId"])? != reference::batch(identity)
        {
            return Err("it names something that the file does not hold".to_owned());
        }
        let mut report = Self {
            identity,
            levels: [Some(group), batch].into_iter().flatten().collect(),
            whole: Vec::new(),
            count: agreed([Some(group), batch], |it| number(it, "OrgnlNbOfTxs"))?,
            sum: agreed([Some(group), batch], |it| {
                let sum = it.text(&["OrgnlCtrlSum"])?;
                let odd = || "its sum is no amount".to_owned();
                sum.map(|sum| amount::cents(sum).ok_or_else(odd)).transpose()
            })?,
            tallies: Vec::new(),
            told: Vec::new(),
            unread: 0,
        };
        for (part, name) in [(Some(group), "GrpSts"), (batch, "PmtInfSts")] {
            let Some(part) = part else { continue };
            if let Some(word) = part.text(&[name])? {
                report.whole.push(Standing::read(word)?);
            }
            let tallies = tallies(part)?;
            if !tallies.is_empty() && !report.tallies.is_empty() && tallies != report.tallies {
                return Err("it counts or adds up in two ways".to_owned());
            }
            if report.tallies.is_empty() {
                report.tallies = tallies;
            }
        }
        let reasons = report.reasons()?;
        for payment in batch.into_iter().flat_map(|batch| batch.all("TxInfAndSts")) {
            match told(payment, identity, &reasons) {
                Ok(told) => report.told.push(told),
                Err(why) => {
                    host::warn(&format!("a payment of a report cannot be read: {why}"));
                    report.unread += 1;
                }
            }
        }
        Ok(report)
    }

    /// Where reasons stand that are each payment's, too: those for which all of it is rejected, and
    /// those of an earlier copy.
    fn reasons(&self) -> Result<Vec<&'a Element>, Odd> {
        if self.is(|it| it.is_over()) {
            return Ok(self.levels.clone());
        }
        let copies = self.levels.iter().map(|level| Ok((*level, status::is_of_a_copy(level)?)));
        let copies = copies.collect::<Result<Vec<_>, Odd>>()?;
        Ok(copies.into_iter().filter(|(_, is_copy)| *is_copy).map(|(level, _)| level).collect())
    }

    /// Whether this is said of all of it, once at least.
    fn is(&self, wanted: fn(&Standing) -> bool) -> bool {
        self.whole.iter().any(wanted)
    }

    fn notices(self) -> Result<Vec<Notice>, Odd> {
        let mut seen = std::collections::BTreeSet::new();
        if self.told.iter().any(|told| !seen.insert(&told.name)) {
            return Err("it names a payment twice".to_owned());
        }
        let about_payments: Vec<Notice> = self.told.iter().filter_map(Told::notice).collect();
        if self.is(|it| it.is_over()) {
            // A part of it that is carried out, on whichever level it is told, would be paid twice.
            if self.is(|it| !it.is_over())
                || self.told.iter().any(|told| !told.standing.is_over())
                || self.tallies.iter().any(|(it, _)| !it.is_over())
            {
                return Err("it rejects the file, and does not".to_owned());
            }
            let whole = self.rejection()?;
            return Ok(about_payments.into_iter().chain([self.about(whole)]).collect());
        }
        let acceptance = self.acceptance();
        let Some(acceptance) = acceptance else {
            return match (about_payments.is_empty(), self.unread) {
                (true, 1..) => Err("what it says of payments cannot be read".to_owned()),
                _ => Ok(about_payments),
            };
        };
        Ok([self.about(acceptance)].into_iter().chain(about_payments).collect())
    }

    /// What the rejection of all of it proves. Where payments are named that the bank has already,
    /// they must not go with another file; nor where one cannot be read.
    fn rejection(&self) -> Result<Finding, Odd> {
        let unknown = |why: &str| Ok(Finding::Unknown(why.to_owned()));
        if self.is(|it| *it == Standing::Cancelled) {
            return unknown("the bank calls the file cancelled");
        }
        // Another file with the same payments is not what whoever stopped this one wants.
        for level in &self.levels {
            if status::is_stopped(level)? {
                return unknown("the file was stopped, by a person or for compliance");
            }
        }
        // Of two levels one may leave the reason to the other.
        let has_reason = |level: &&Element| level.all("StsRsnInf").next().is_some();
        let why = match self.levels.iter().any(has_reason) {
            false => None,
            true => match status::judged(&self.levels)? {
                Judged::Refused(refusal) => Some(refusal),
                Judged::Unclear(unclear) => return unknown(&format!("the file is {unclear}")),
            },
        };
        if self.unread > 0 || self.told.iter().any(Told::is_unclear) {
            return unknown("the file is rejected, and of some payments that is not certain");
        }
        let tallied = self.tallied(|_| true);
        if !self.tallies.is_empty() && self.count.is_some_and(|count| count != tallied) {
            return unknown("the file is rejected, and its tallies are not of all payments");
        }
        let own = || Refusal { code: "RJCT".into(), message: "Each payment was rejected".into() };
        match why.or_else(|| self.is_each_refused().then(own)) {
            Some(why) => Ok(Finding::Refused(why)),
            None => unknown("the file is rejected without a reason"),
        }
    }

    /// Who rejects each payment for a reason of its own need not give one for the file.
    fn is_each_refused(&self) -> bool {
        let count = u64::try_from(self.told.len()).ok();
        let is_refused = |told: &Told| {
            told.standing == Standing::Rejected && matches!(told.judged, Some(Judged::Refused(_)))
        };
        count.is_some() && count == self.count && self.told.iter().all(is_refused)
    }

    /// Whether the bank carries the file out, but for payments that are named.
    fn acceptance(&self) -> Option<Finding> {
        let wanted = acceptance();
        if self.unread > 0 {
            let why = "what the bank says of some payments of the file cannot be read";
            return Some(Finding::Unknown(why.to_owned()));
        }
        // What waits as a whole, waits whatever is said of its parts.
        if self.is_waiting(wanted) {
            return None;
        }
        if self.is_whole(wanted) {
            return Some(self.accepted());
        }
        if self.is_each_decided(wanted) {
            // Names and tallies are of this file only if it comes to what was sent.
            let why = "the bank carries payments of the file out, and does not say its sum";
            let unknown = || Finding::Unknown(why.to_owned());
            return Some(self.sum.map_or_else(unknown, |_| self.accepted()));
        }
        let is_partly = self.is(|it| *it == Standing::Partly)
            || (!self.whole.is_empty() && self.standings().any(Standing::is_over));
        // What is on its way is told of again.
        let is_open = self.standings().any(|it| !it.is_over() && !it.has_reached(wanted));
        let why = "the bank carries a part of the file out, and does not say which";
        (is_partly && !is_open).then(|| Finding::Unknown(why.to_owned()))
    }

    fn accepted(&self) -> Finding {
        let code = self.whole.last().map_or("listed", |_| "accepted");
        Finding::Accepted(Receipt {
            code: code.to_owned(),
            network_id: None,
            amount_minor: self.sum,
            facts: Vec::new(),
        })
    }

    /// How payments stand that are named, or counted.
    fn standings(&self) -> impl Iterator<Item = Standing> {
        let named = self.told.iter().map(|told| told.standing);
        named.chain(self.tallies.iter().map(|(standing, _)| *standing))
    }

    /// Whether all of it has come as far as this, and nothing else is said of any payment.
    fn is_whole(&self, wanted: Stage) -> bool {
        !self.whole.is_empty()
            && self.whole.iter().copied().chain(self.standings()).all(|it| it.has_reached(wanted))
    }

    fn is_waiting(&self, wanted: Stage) -> bool {
        self.whole.iter().any(|it| *it != Standing::Partly && !it.has_reached(wanted))
    }

    /// Whether it is said of every payment that it is accepted, or which one is not: by tallies
    /// that come to the count, and as many names as were rejected, or by naming all of them.
    fn is_each_decided(&self, wanted: Stage) -> bool {
        let is_decided = |it: Standing| it.is_over() || it.has_reached(wanted);
        let over = self.told.iter().filter(|told| told.standing.is_over()).count();
        let (Some(count), Ok(over), Ok(named)) =
            (self.count, u64::try_from(over), u64::try_from(self.told.len()))
        else {
            return false;
        };
        if self.told.iter().any(|told| !is_decided(told.standing)) {
            return false;
        }
        let by_tallies = !self.tallies.is_empty()
            && self.tallies.iter().all(|(it, _)| is_decided(*it))
            && self.tallied(|_| true) == count
            && self.tallied(Standing::is_over) == over;
        by_tallies || (self.tallies.is_empty() && named == count && count > 0)
    }

    /// How many payments are counted that stand so.
    fn tallied(&self, wanted: impl Fn(Standing) -> bool) -> u64 {
        let counts = self.tallies.iter().filter(|(it, _)| wanted(*it)).map(|(_, count)| *count);
        counts.fold(0, u64::saturating_add)
    }

    fn about(&self, finding: Finding) -> Notice {
        Notice { about: Subject::File(self.identity.to_owned()), news: News::Found(finding) }
    }
}

impl Told {
    /// Whether it is rejected, and may be carried out all the same.
    fn is_unclear(&self) -> bool {
        matches!(self.judged, Some(Judged::Unclear(_)))
    }

    /// What is worth telling: that a payment is not carried out.
    fn notice(&self) -> Option<Notice> {
        let finding = match &self.judged {
            Some(Judged::Refused(refusal)) => Finding::Refused(refusal.clone()),
            Some(Judged::Unclear(why)) => Finding::Unknown(why.clone()),
            None => return None,
        };
        Some(Notice { about: self.about.clone(), news: News::Found(finding) })
    }
}

/// What is said of a payment, which may be rejected for reasons of the whole, too. It is told under
/// the name of its entry: a payment whose file was rejected goes with another one, of which this
/// report says nothing.
fn told(payment: &Element, file: &str, reasons: &[&Element]) -> Result<Told, Odd> {
    let standing = Standing::read(payment.need(&["TxSts"])?)?;
    if standing == Standing::Partly {
        return Err("it says of a payment what cannot be".to_owned());
    }
    let (about, name) = named(payment, file)?;
    let parts: Vec<&Element> = [payment].into_iter().chain(reasons.iter().copied()).collect();
    let judged = match standing {
        Standing::Rejected => Some(status::judged(&parts)?),
        Standing::Cancelled => Some(called_off(&parts)?),
        _ => None,
    };
    Ok(Told { about, name, standing, judged })
}

/// Which payment it is: an entry has to be of this file, and its payment the one that is named. Where
/// the bank names the payment alone, its entry follows from that and the file.
fn named(payment: &Element, file: &str) -> Result<(Subject, String), Odd> {
    let own = payment.text(&["OrgnlEndToEndId"])?;
    let Some(entry) = payment.text(&["OrgnlInstrId"])? else {
        let own = own.ok_or("it names no payment")?;
        let number = reference::number_of(file).and_then(|number| number.parse().ok());
        let entry = number.and_then(|number| reference::entry(number, own));
        let entry = entry.ok_or("it names no payment that was made here")?;
        return Ok((Subject::NetworkId(entry), own.to_owned()));
    };
    let placed = reference::placed(entry).ok_or("it names no entry that was made here")?;
    if Some(placed.file) != reference::number_of(file) {
        return Err("it names an entry of another file".to_owned());
    }
    if own.is_some_and(|own| own != placed.payment) {
        return Err("it names two payments".to_owned());
    }
    Ok((Subject::NetworkId(entry.to_owned()), placed.payment))
}

fn called_off(parts: &[&Element]) -> Result<Judged, Odd> {
    for part in parts {
        if status::is_of_a_copy(part)? {
            return Ok(Judged::Unclear("called off as a duplicate".to_owned()));
        }
    }
    let message = "The payment was called off".to_owned();
    Ok(Judged::Refused(Refusal { code: "CANC".to_owned(), message }))
}

/// How many payments stand how, in order.
fn tallies(level: &Element) -> Result<Vec<(Standing, u64)>, Odd> {
    let mut tallies = level.all("NbOfTxsPerSts").map(tally).collect::<Result<Vec<_>, _>>()?;
    tallies.retain(|(_, count)| *count > 0);
    tallies.sort_unstable();
    Ok(tallies)
}

fn tally(element: &Element) -> Result<(Standing, u64), Odd> {
    let count = number(element, "DtldNbOfTxs")?.ok_or("a tally has no count")?;
    Ok((Standing::read(element.need(&["DtldSts"])?)?, count))
}

fn number(element: &Element, name: &str) -> Result<Option<u64>, Odd> {
    let Some(text) = element.text(&[name])? else { return Ok(None) };
    let is_number = text.bytes().all(|byte| byte.is_ascii_digit());
    let number = text.parse().ok().filter(|_| is_number);
    number.map(Some).ok_or_else(|| format!("{name} is no number"))
}

/// What one or both parts say.
fn agreed<T: PartialEq>(
    parts: [Option<&Element>; 2],
    read: impl Fn(&Element) -> Result<Option<T>, Odd>,
) -> Result<Option<T>, Odd> {
    let mut agreed = None;
    for part in parts.into_iter().flatten() {
        match (read(part)?, &agreed) {
            (Some(said), Some(before)) if said != *before => {
                return Err("it counts or adds up in two ways".to_owned());
            }
            (Some(said), _) => agreed = Some(said),
            (None, _) => {}
        }
    }
    Ok(agreed)
}

/// How far a file must have come to count as carried out.
fn acceptance() -> Stage {
    match settings::word("acceptance", &["ACCP", "ACTC", "ACSP", "ACSC"]) {
        "ACTC" => Stage::Technical,
        "ACSP" => Stage::InProcess,
        "ACSC" => Stage::Settled,
        _ => Stage::Profile,
    }
}

#[cfg(test)]
#[cfg(not(target_family = "wasm"))]
#[path = "pain002_tests.rs"]
mod tests;
