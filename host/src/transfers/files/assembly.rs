//! Making a file of the payments that have joined it.

use std::collections::BTreeMap;
use std::sync::Arc;

use sha2::{Digest as _, Sha256};

use crate::cases::CaseKind;
use crate::config::limits;
use crate::error::{ErrorCode, Problem};
use crate::ledger::Command;
use crate::rails::ReadyRoute;
use crate::rails::assembled::objection;
use crate::wasm::egress::Exchange;
use crate::wasm::rail::{Assembled, Broken, Called, Payment, Refusal, Window};

use super::super::Transfers;
use super::super::attempt::{self, Attempt};
use super::super::calls::{Calls, untellable};
use super::super::conclude::{needless, no_longer_unknown};
use super::super::finding::Learnt;
use super::super::order::{Feature, Order, Step, Writes};
use super::super::strangers::presentable;
use super::super::work::{Claim, Claimed};
use super::closing;
use super::entries::{self, ENTRY_KEYS, EntryKey};
use super::table::{FileState, PaymentFile};
use super::{CHUNK, Next, orders, table, timetable};

/// A payment that has joined.
struct Entry {
    attempt: Attempt,
    order: Order,
}

/// What has joined a file.
#[derive(Default)]
struct Joined {
    /// By reference.
    entries: BTreeMap<String, Entry>,
    /// The same as the rail is told of them.
    payments: Vec<Payment>,
    /// What cannot be read, and why.
    unreadable: Vec<(Attempt, Problem)>,
}

impl Transfers {
    /// Has the rail make the file, and commits what it is before anything can leave. Whoever makes
    /// it again makes the same: nothing of it has left.
    pub(super) async fn assemble<F: Feature>(
        &self,
        feature: &F,
        route: &Arc<ReadyRoute>,
        file: &mut PaymentFile,
    ) -> Result<Next, Problem> {
        let joined = self.joined(feature, route, file).await?;
        if !joined.unreadable.is_empty() {
            return self.separate(file, &joined).await;
        }
        let Joined { entries, payments, .. } = joined;
        if self.leave_out(feature, file, &entries).await? {
            return Ok(Next::Go);
        }
        if payments.is_empty() {
            file.state = FileState::Empty;
            return Ok(Next::At(self.now()));
        }
        let window = window(file, &payments[0]);
        let grant = route.pure_grant(file.closes_at);
        let called = route.rail.code.assemble(&grant, &window, &payments).await;
        let made = match called.result {
            Ok(Ok(made)) => {
                let joined = entries.keys().map(String::as_str).collect();
                objection(&made, &joined).map_or(Ok(made), Err)
            }
            Ok(Err(why)) => Err(why),
            // It may be too much for it, or one payment may be.
            Err(broken @ Broken::Trapped(_)) if entries.len() > 1 => {
                return self.halve(file, &payments, &entries, &broken).await;
            }
            // The machine has no time for it, or no room.
            Err(broken @ (Broken::TimedOut(_) | Broken::Crowded)) => return Err(broken.into()),
            Err(broken) => Err(broken.to_string()),
        };
        let made = match made {
            Ok(made)
                if table::is_used(self.db.pool(), file, (&made.name, &made.identity)).await? =>
            {
                let why =
                    format!("{} or {} was the name of another file", made.name, made.identity);
                return self.cannot_be_made(file, why).await;
            }
            Ok(made) => made,
            Err(why) => return self.cannot_be_made(file, why).await,
        };
        for turned_down in &made.refused {
            let entry = &entries[turned_down.reference.as_str()];
            self.turn_down(feature, route, (file, entry), turned_down.why.clone()).await?;
        }
        self.put_into_the_next(route, file, &entries, &made.later).await?;
        file.name = Some(made.name.clone());
        file.identity = Some(made.identity.clone());
        file.digest = Some(hex::encode(Sha256::digest(&made.content)));
        self.name_entries(route, file, (&entries, &made)).await?;
        let placed = made.placed.iter().map(|placed| &entries[placed.reference.as_str()]);
        file.amount_minor = placed.map(|entry| entry.order.amount.units()).sum();
        file.entries = i64::try_from(made.placed.len()).unwrap_or(i64::MAX);
        if made.placed.is_empty() {
            file.state = FileState::Empty;
            return Ok(Next::At(self.now()));
        }
        let place = (&self.db, &*self.keyring, &*self.ids);
        table::keep_content(place, file, &made.content).await?;
        entries::take_out_ended(&self.db, file).await?;
        file.state = FileState::Assembled;
        Ok(Next::Go)
    }

    /// Everything that has joined and has not ended.
    async fn joined<F: Feature>(
        &self,
        feature: &F,
        route: &ReadyRoute,
        file: &mut PaymentFile,
    ) -> Result<Joined, Problem> {
        let attempts = self.divided(route, file).await?;
        let mut joined = Joined::default();
        for (attempt, order) in orders(feature, attempts).await? {
            let read = order.and_then(|order| {
                if let Some(why) = untellable(&order, &route.rail) {
                    return Err(Problem::because(ErrorCode::StateConflict, why));
                }
                let payment = Calls { engine: self, order: &order }.payment((&attempt, route))?;
                Ok((order, payment))
            });
            match read {
                Ok((order, payment)) => {
                    joined.payments.push(payment);
                    let reference = attempt.rail_reference.clone();
                    joined.entries.insert(reference, Entry { attempt, order });
                }
                Err(problem) => joined.unreadable.push((attempt, problem)),
            }
        }
        Ok(joined)
    }

    /// What cannot be read keeps nobody else waiting: it goes into a further file, about which a person
    /// is told.
    async fn separate(&self, file: &mut PaymentFile, joined: &Joined) -> Result<Next, Problem> {
        let named = joined.unreadable.iter().map(|(attempt, _)| attempt.rail_reference.as_str());
        let named = named.collect::<Vec<_>>().join(", ");
        if joined.entries.is_empty() {
            return self.cannot_be_made(file, format!("{named} cannot be read")).await;
        }
        let why = &joined.unreadable[0].1;
        tracing::error!(file.id = %file.id, named, %why, "what cannot be read is set aside");
        let further = file.further(self.ids.id(), self.now());
        let ids = joined.unreadable.iter().map(|(attempt, _)| attempt.id.clone());
        entries::split(&self.db, &ids.collect::<Vec<_>>(), (file, &further)).await?;
        Ok(Next::Go)
    }

    /// The rail fails over so many, or over one of them: half of them go into a further file, until
    /// what is the matter stands alone.
    async fn halve(
        &self,
        file: &mut PaymentFile,
        payments: &[Payment],
        entries: &BTreeMap<String, Entry>,
        broken: &Broken,
    ) -> Result<Next, Problem> {
        tracing::warn!(file.id = %file.id, entries = entries.len(), %broken, "a file is halved");
        let half = payments[payments.len() / 2..].iter();
        let half = half.map(|payment| entries[payment.reference.as_str()].attempt.id.clone());
        let further = file.further(self.ids.id(), self.now());
        entries::split(&self.db, &half.collect::<Vec<_>>(), (file, &further)).await?;
        Ok(Next::Go)
    }

    /// The rail makes nothing of it: a person is told, and it is tried again later.
    async fn cannot_be_made(&self, file: &mut PaymentFile, why: String) -> Result<Next, Problem> {
        tracing::error!(file.id = %file.id, rail.name = file.rail, why, "a file is not made");
        let why = presentable(&why);
        let summary = format!("A file over {} cannot be made: {why}.", file.route);
        let case = (CaseKind::FileStuck, why.as_str(), summary);
        self.file_case(file, case, serde_json::Value::Null).await?;
        file.message = Some(why);
        Ok(Next::At(self.now().after(limits::FILE_RETRY)))
    }

    /// Ends those of which an earlier attempt was paid after all: none of them has to be sent.
    /// Whether there were any.
    async fn leave_out<F: Feature>(
        &self,
        feature: &F,
        file: &PaymentFile,
        entries: &BTreeMap<String, Entry>,
    ) -> Result<bool, Problem> {
        let mut were_any = false;
        for Entry { attempt, order } in entries.values() {
            let mut others = self.paid_before(attempt).await?;
            let Some(paid) = others.pop_front() else { continue };
            let Some(claim) = self.claim_entry(order).await? else { continue };
            let Some(object) = feature.load(&order.id).await? else { continue };
            let rows = needless(attempt, &paid, self.now());
            let (fence, beside) = (Some(claim.guard()), Some(file.untouched()));
            let with = Writes { rows, fence, beside };
            if let Err(problem) = feature.commit(&object, Step::Paid(paid.fixed()), with).await {
                self.give_back(&claim).await;
                return Err(problem);
            }
            self.also_paid(feature, &others).await?;
            were_any = true;
        }
        Ok(were_any)
    }

    /// The work of a payment that has joined; none where there is nothing to do any more.
    async fn claim_entry(&self, order: &Order) -> Result<Option<Claim>, Problem> {
        match self.claim(&order.id).await? {
            Claimed::Yes(claim) => Ok(Some(claim)),
            Claimed::NoWork => Ok(None),
            Claimed::Busy => Err(Problem::new(ErrorCode::ServiceUnavailable)),
        }
    }

    /// Ends a payment that no file can carry.
    async fn turn_down<F: Feature>(
        &self,
        feature: &F,
        route: &Arc<ReadyRoute>,
        (file, entry): (&PaymentFile, &Entry),
        why: Refusal,
    ) -> Result<(), Problem> {
        let Some(claim) = self.claim_entry(&entry.order).await? else { return Ok(()) };
        let Some(object) = feature.load(&entry.order.id).await? else { return Ok(()) };
        let order = feature.order(&object)?;
        let learnt = Learnt::Refused(why);
        let calls = Calls { engine: self, order: &order };
        let by = (&*route.rail, "assemble");
        let called = shown("refused", &[]);
        let evidence = calls.evidence(Some(&entry.attempt), by, &called, &learnt.words());
        let (attempt, now) = (calls.told(&entry.attempt, &learnt)?, self.now());
        let step = learnt.step(attempt.fixed());
        let (step, state) = step.ok_or_else(|| Problem::internal("a refusal ends nothing"))?;
        let ended = Attempt { state, bytes_left: false, answered_at: Some(now), ..attempt };
        let mut rows = vec![attempt::ATTEMPT_STATES.change(&ended), evidence];
        rows.extend(no_longer_unknown(&ended, now));
        let (step, others) = self.counting((&ended, step), &mut rows).await?;
        // Whoever was overtaken at the file, or at the payment, ends nothing.
        let (fence, beside) = (Some(claim.guard()), Some(file.untouched()));
        if let Err(problem) = feature.commit(&object, step, Writes { rows, fence, beside }).await {
            self.give_back(&claim).await;
            return Err(problem);
        }
        self.also_paid(feature, &others).await
    }

    /// Moves what the rail wants to go later into the file of the next closing.
    async fn put_into_the_next(
        &self,
        route: &ReadyRoute,
        file: &PaymentFile,
        entries: &BTreeMap<String, Entry>,
        later: &[String],
    ) -> Result<(), Problem> {
        if later.is_empty() {
            return Ok(());
        }
        let after = self.now().max(file.closes_at).after(limits::WINDOW_GRACE);
        let moving: Vec<_> = later.iter().map(|it| &entries[it.as_str()]).collect();
        let largest = moving.iter().map(|entry| entry.order.amount).max();
        let largest = largest.unwrap_or(crate::money::Minor::new(1));
        let planned = timetable(route)?.next(after, largest);
        let planned = planned.map_err(Problem::internal)?;
        let planned = (route, planned, largest);
        let next = closing::first_open((&self.db, &self.ids), planned, self.now()).await?;
        let moving: Vec<_> = moving.iter().map(|entry| entry.attempt.id.clone()).collect();
        entries::shift(&self.db, &moving, (file, &next)).await
    }

    /// Writes down what the network calls each payment, and what shows where it stands.
    async fn name_entries(
        &self,
        route: &ReadyRoute,
        file: &PaymentFile,
        (entries, made): (&BTreeMap<String, Entry>, &Assembled),
    ) -> Result<(), Problem> {
        for chunk in made.placed.chunks(CHUNK) {
            let mut rows = Vec::with_capacity(2 * chunk.len());
            for placed in chunk {
                let Entry { attempt, order } = &entries[placed.reference.as_str()];
                let (attempt_id, key) = (attempt.id.clone(), placed.key.clone());
                rows.push(ENTRY_KEYS.change(&EntryKey { attempt: attempt_id, key }));
                let words = format!("in the file {} as {}", made.name, placed.key);
                let calls = Calls { engine: self, order };
                let called = shown(&made.name, &placed.entry);
                let by = (&*route.rail, "assemble");
                rows.push(calls.evidence(Some(attempt), by, &called, &words));
            }
            // Whoever was overtaken writes nothing down.
            self.writer.work(Command::rows(rows).guards([file.untouched()])).await?;
        }
        tracing::info!(file.id = %file.id, entries = made.placed.len(), "a file of payments");
        Ok(())
    }
}

/// A call as the timeline shows it: the part of a file that is one payment's.
fn shown(name: &str, entry: &[u8]) -> Called<()> {
    let exchanges = match entry.is_empty() {
        true => Vec::new(),
        false => vec![Exchange::heard("FILE", name, entry)],
    };
    let took = std::time::Duration::ZERO;
    Called { result: Ok(()), exchanges, bytes_left: false, may_have_moved_money: false, took }
}

fn window(file: &PaymentFile, payment: &Payment) -> Window {
    let number = |value: i64| u64::try_from(value).unwrap_or(0);
    Window {
        name: file.window.clone(),
        method: file.method.clone(),
        currency: file.currency.clone(),
        exponent: payment.exponent,
        number: number(file.number),
        number_of_day: u32::try_from(file.number_of_day).unwrap_or(u32::MAX),
        first_entry: number(file.first_entry),
        business_date: file.business_date.clone(),
        local_time: file.local_time.clone(),
        value_date: file.value_date.clone(),
    }
}
