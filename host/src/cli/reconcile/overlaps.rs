//! What several files have in common: where statements overlap, what two of them have counts once.
//! Pure.
//!
//! Statements that follow each other, days or pages of one day, have nothing in common, however
//! much their entries look alike: the closing balance of one is the opening balance of the next, in
//! amount and day. Whatever else is in another file may overlap.

use std::collections::{BTreeMap, BTreeSet, HashMap, HashSet};
use std::path::PathBuf;

use jiff::civil::Date;
use sha2::{Digest as _, Sha256};

use crate::money::Minor;
use crate::reconciliation::matching::reference_of;
use crate::statements::{Entry, Statement};

/// In how many forms a bank has written its statements.
#[derive(Clone, Copy, Debug)]
pub(super) enum Forms {
    One,
    /// The same entry has different texts, and the bank's own reference is what they share.
    Several,
}

/// What all files have, each thing once.
pub(super) struct Once {
    pub entries: Vec<Entry>,
    pub short: Vec<Imbalance>,
}

/// Statements of which something has counted once, and that do not add up with what is left.
#[derive(Debug, PartialEq, Eq)]
pub(super) struct Imbalance {
    /// The files in which they stand, by their numbers.
    pub files: BTreeSet<usize>,
    /// What is missing, where it can be said.
    pub by: Option<Minor>,
}

/// By what an entry is known in another file.
type Same = [u8; 32];

#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
struct Balance {
    amount: Minor,
    on: Date,
}

/// The balances between which a statement is, and how many entries.
#[derive(Clone, Copy)]
struct Span {
    from: Balance,
    to: Balance,
    length: usize,
}

/// A statement, and the number of its file.
struct Placed<'a> {
    file: usize,
    statement: &'a Statement,
    /// Nothing where one of its balances, or the day of one, is not said.
    span: Option<Span>,
}

/// All statements, in the order of the files.
struct All<'a> {
    placed: Vec<Placed<'a>>,
    forms: Forms,
    /// To which balances statements lead from one, and from which ones they come to it.
    onward: HashMap<Balance, Vec<Balance>>,
    back: HashMap<Balance, Vec<Balance>>,
}

/// Some entries that are the same and count: in how many statements each of them stands.
struct Group {
    stands_in: Vec<usize>,
    count: usize,
}

/// The entries of all files. What is the same in two statements that may overlap is one; what a
/// file has twice happened twice.
pub(super) fn once_each(files: &[(PathBuf, Vec<Statement>)], forms: Forms) -> Once {
    if files.len() < 2 {
        let statements = files.iter().flat_map(|(_, statements)| statements);
        let entries = statements.flat_map(|statement| &statement.entries).cloned().collect();
        return Once { entries, short: Vec::new() };
    }
    let all = All::of(files, forms);
    let mut runs = Runs::of(&all);
    let mut known: HashMap<Same, Vec<Group>> = HashMap::new();
    let mut entries = Vec::new();
    for (own, placed) in all.placed.iter().enumerate() {
        let keys = all.keys(own);
        let mut counts: HashMap<Same, usize> = HashMap::new();
        keys.iter().for_each(|same| *counts.entry(*same).or_default() += 1);
        let mut near = Near { all: &all, own, reach: None, known: HashMap::new() };
        for (same, count) in &mut counts {
            // From here on, how many of them count already.
            *count = near.find(known.entry(*same).or_default(), *count, &mut runs);
        }
        for (entry, same) in placed.statement.entries.iter().zip(keys) {
            match counts.get_mut(&same) {
                Some(count) if *count > 0 => *count -= 1,
                _ => {
                    runs.sums[own] += i128::from(entry.amount.units());
                    entries.push(entry.clone());
                }
            }
        }
    }
    Once { entries, short: runs.short(&all) }
}

impl<'a> All<'a> {
    fn of(files: &'a [(PathBuf, Vec<Statement>)], forms: Forms) -> Self {
        let each = files.iter().enumerate();
        let each = each.flat_map(|(file, (_, all))| all.iter().map(move |it| (file, it)));
        let placed: Vec<Placed<'a>> = each
            .map(|(file, statement)| Placed { file, statement, span: Span::of(statement) })
            .collect();
        let mut onward: HashMap<Balance, Vec<Balance>> = HashMap::new();
        let mut back: HashMap<Balance, Vec<Balance>> = HashMap::new();
        for Span { from, to, .. } in placed.iter().filter_map(|it| it.span) {
            onward.entry(from).or_default().push(to);
            back.entry(to).or_default().push(from);
        }
        Self { placed, forms, onward, back }
    }

    /// By what each entry of a statement is known.
    fn keys(&self, number: usize) -> Vec<Same> {
        let key = |entry: &Entry| -> Same {
            let said = match self.forms {
                Forms::One => &*entry.said,
                Forms::Several => "",
            };
            let what = (reference_of(entry), entry.booked_on, entry.amount.units(), said);
            Sha256::digest(format!("{what:?}")).into()
        };
        self.placed[number].statement.entries.iter().map(key).collect()
    }

    /// Whether one of two statements has all that the other one has.
    fn one_holds_the_other(&self, one: usize, other: usize) -> bool {
        let (mut few, mut many) = (self.keys(one), self.keys(other));
        if few.len() > many.len() {
            std::mem::swap(&mut few, &mut many);
        }
        few.sort_unstable();
        many.sort_unstable();
        let mut rest = many.into_iter();
        few.into_iter().all(|key| rest.any(|it| it == key))
    }
}

impl Span {
    fn of(statement: &Statement) -> Option<Self> {
        let from = Balance { amount: statement.opening?, on: statement.opening_on? };
        let to = Balance { amount: statement.closing?, on: statement.closing_on? };
        Some(Self { from, to, length: statement.entries.len() })
    }
}

/// A statement among the others, and what has been found out about them.
struct Near<'a> {
    all: &'a All<'a>,
    own: usize,
    /// The balances that come after it, and those before it.
    reach: Option<(HashSet<Balance>, HashSet<Balance>)>,
    known: HashMap<usize, bool>,
}

impl Near<'_> {
    /// How many of so many same entries are in other statements, too; they and the rest join those
    /// that are known.
    fn find(&mut self, groups: &mut Vec<Group>, count: usize, runs: &mut Runs) -> usize {
        let mut left = count;
        let mut found = Vec::new();
        for group in groups.iter_mut() {
            // One that stands in two statements that follow each other would be two.
            if left == 0 || !group.stands_in.iter().all(|other| self.may_overlap(*other)) {
                continue;
            }
            runs.join_by_entry(self.own, group.stands_in[0]);
            let taken = left.min(group.count);
            left -= taken;
            group.count -= taken;
            let stands_in = group.stands_in.iter().copied().chain([self.own]).collect();
            found.push(Group { stands_in, count: taken });
        }
        groups.retain(|group| group.count > 0);
        groups.extend(found);
        if left > 0 {
            groups.push(Group { stands_in: vec![self.own], count: left });
        }
        count - left
    }

    fn may_overlap(&mut self, other: usize) -> bool {
        if let Some(known) = self.known.get(&other) {
            return *known;
        }
        let found = self.overlaps(other);
        self.known.insert(other, found);
        found
    }

    fn overlaps(&mut self, other: usize) -> bool {
        let all = self.all;
        let (own, their) = (&all.placed[self.own], &all.placed[other]);
        if own.file == their.file {
            return false;
        }
        let (Some(span), Some(theirs)) = (own.span, their.span) else { return true };
        // The same statement twice, or as far as it had come: where its entries come to nothing, it
        // follows itself by its balances.
        let shares_end = span.from == theirs.from || span.to == theirs.to;
        if shares_end && all.one_holds_the_other(self.own, other) {
            return true;
        }
        let reach = || (walk(&all.onward, span.to), walk(&all.back, span.from));
        let (after, before) = self.reach.get_or_insert_with(reach);
        !after.contains(&theirs.from) && !before.contains(&theirs.to)
    }
}

/// All balances to which steps lead, and the one where they begin.
fn walk(steps: &HashMap<Balance, Vec<Balance>>, from: Balance) -> HashSet<Balance> {
    let (mut known, mut waiting) = (HashSet::from([from]), vec![from]);
    while let Some(next) = waiting.pop() {
        let steps = steps.get(&next).into_iter().flatten();
        waiting.extend(steps.copied().filter(|step| known.insert(*step)));
    }
    known
}

/// Which statements hang together, by their balances or by what counts once, and what their entries
/// come to.
struct Runs {
    /// Another one of the same run, or itself.
    above: Vec<usize>,
    /// Those of which something has counted once.
    is_joined: Vec<bool>,
    /// What the entries of each that count come to, in minor units.
    sums: Vec<i128>,
}

impl Runs {
    fn of(all: &All<'_>) -> Self {
        let count = all.placed.len();
        let (above, is_joined) = ((0..count).collect(), vec![false; count]);
        let mut runs = Self { above, is_joined, sums: vec![0; count] };
        let mut first: HashMap<Balance, usize> = HashMap::new();
        for (number, placed) in all.placed.iter().enumerate() {
            for balance in placed.span.iter().flat_map(|span| [span.from, span.to]) {
                let other = *first.entry(balance).or_insert(number);
                runs.join(number, other);
            }
        }
        runs
    }

    fn top(&mut self, mut number: usize) -> usize {
        while self.above[number] != number {
            self.above[number] = self.above[self.above[number]];
            number = self.above[number];
        }
        number
    }

    fn join(&mut self, one: usize, other: usize) {
        let (one, other) = (self.top(one), self.top(other));
        self.above[one.max(other)] = one.min(other);
    }

    fn join_by_entry(&mut self, one: usize, other: usize) {
        self.is_joined[one] = true;
        self.join(one, other);
    }

    /// The runs of which something has counted once, and that do not add up.
    fn short(mut self, all: &All<'_>) -> Vec<Imbalance> {
        let mut runs: BTreeMap<usize, Vec<usize>> = BTreeMap::new();
        for number in 0..all.placed.len() {
            runs.entry(self.top(number)).or_default().push(number);
        }
        let joined = runs.into_values().filter(|run| run.iter().any(|it| self.is_joined[*it]));
        let short = joined.filter_map(|run| {
            let sum: i128 = run.iter().map(|it| self.sums[*it]).sum();
            let placed: Vec<&Placed<'_>> = run.iter().map(|it| &all.placed[*it]).collect();
            let by = missing(&placed, sum)?;
            let files = placed.iter().map(|it| it.file).collect();
            Some(Imbalance { files, by: i64::try_from(by).ok().map(Minor::new) })
        });
        short.collect()
    }
}

/// By how much a run is short of its last closing balance, if it is. What does not say its balances
/// cannot be, and one that does not add up by itself is told of by itself.
fn missing(run: &[&Placed<'_>], sum: i128) -> Option<i128> {
    let spans: Option<Vec<Span>> = run.iter().map(|it| it.span).collect();
    let spans = spans?;
    if run.iter().any(|it| it.statement.discrepancy() != Ok(Some(Minor::ZERO))) {
        return None;
    }
    let units = |amount: &Minor| i128::from(amount.units());
    let (first, last) = (outermost(&spans, Side::First), outermost(&spans, Side::Last));
    // Where what there is does not say which one comes first, or last, all of them have to fit.
    let each = first.iter().flat_map(|opening| last.iter().map(move |closing| (opening, closing)));
    let mut by = each.map(|(opening, closing)| units(closing) - units(opening) - sum);
    by.find(|by| *by != 0)
}

#[derive(Clone, Copy)]
enum Side {
    First,
    Last,
}

/// With which balances a run may begin, or end: those that no other statement leads to, or from, by
/// their amount, and of these the earliest, or the latest.
fn outermost(spans: &[Span], side: Side) -> BTreeSet<Minor> {
    let ends = |span: &Span| match side {
        Side::First => (span.from, span.to),
        Side::Last => (span.to, span.from),
    };
    let mut others: HashMap<Minor, usize> = HashMap::new();
    for span in spans {
        *others.entry(ends(span).1.amount).or_default() += 1;
    }
    let is_outer = |span: &Span| {
        let (own, other) = ends(span);
        let itself = usize::from(own.amount == other.amount);
        others.get(&own.amount).is_none_or(|count| *count <= itself)
    };
    let mut outer: Vec<Span> = spans.iter().copied().filter(is_outer).collect();
    if outer.is_empty() {
        outer = spans.to_vec();
    }
    // Of those that meet at the other end, the longest has what the others have.
    let mut longest: HashMap<Balance, usize> = HashMap::new();
    for span in &outer {
        let length = longest.entry(ends(span).1).or_default();
        *length = span.length.max(*length);
    }
    outer.retain(|span| longest.get(&ends(span).1) == Some(&span.length));
    let days = outer.iter().map(|span| ends(span).0.on);
    let day = match side {
        Side::First => days.min(),
        Side::Last => days.max(),
    };
    let balances = outer.iter().map(|span| ends(span).0);
    balances.filter(|own| Some(own.on) == day).map(|own| own.amount).collect()
}

#[cfg(test)]
#[path = "overlaps_tests.rs"]
mod tests;
