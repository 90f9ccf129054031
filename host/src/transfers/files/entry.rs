//! One payment of a file: how it joins, and how it ends.

use std::sync::Arc;

use crate::cases::{self, Case, CaseKind};
use crate::clock::Moment;
use crate::config::limits;
use crate::db::Moves;
use crate::db::bulk::RowChange;
use crate::env::Env;
use crate::error::{ErrorCode, Problem};
use crate::id::RouteId;
use crate::ledger::Guard;
use crate::rails::ReadyRoute;
use crate::rails::files::Planned;
use crate::wasm::egress::Exchange;
use crate::wasm::rail::{Called, Receipt};

use super::super::attempt::{self, Attempt, AttemptState};
use super::super::begin::{CROWDED, Later, Prepared};
use super::super::calls::Answered;
use super::super::carry::{Carry, Next, Over, Then, is_blocked, is_not_now};
use super::super::conclude::outcome_unknown;
use super::super::finding::Learnt;
use super::super::order::{Feature, Order, OrderStage, Step, Writes};
use super::super::serials;
use super::super::strangers::presentable;
use super::super::work::{self, Claimed, InFile};
use super::closing::{self, Ahead, NewFile, slot};
use super::table::{self, FileState, PaymentFile};
use super::{Doing, digest_of, timetable};

/// Files that a payment goes into of its own accord: after that, a person has to look.
const SENDS_MAX: i64 = 2;

/// Whether a payment can join a file.
enum Joining {
    /// This one.
    Now(Box<PaymentFile>),
    /// Not before this instant.
    At(Moment),
    /// There is no closing for it.
    Never(String),
}

/// Whether a payment is to join another file than the one that it is in: that was refused, is empty,
/// or was made without it.
pub(in super::super) fn goes_with_another(attempt: &Attempt, file: &PaymentFile) -> bool {
    match file.state {
        FileState::Acknowledged => attempt.network_id.is_none(),
        FileState::Refused => attempt.sends < SENDS_MAX,
        FileState::Empty => true,
        _ => false,
    }
}

impl<'a, F: Feature> Carry<'a, F> {
    /// Has it join the file of the next closing, or waits until that closes.
    pub(in super::super) async fn into_file(
        self,
        (route, opens_at): (Arc<ReadyRoute>, Option<Moment>),
        tried: Vec<Attempt>,
        before: Option<(Over, Answered)>,
    ) -> Result<Then<'a, F>, Problem> {
        // One that would have been chosen before it may open earlier than this one closes.
        let sooner = |at: Moment| opens_at.map_or(at, |opens_at| at.min(opens_at));
        let joining = match self.joining(&route).await? {
            Joining::At(at) => Joining::At(sooner(at)),
            joining => joining,
        };
        let file = match joining {
            Joining::Now(file) => *file,
            // At that very instant: a moment later it would be late.
            Joining::At(at) if before.is_none() => {
                return self.due_at(&route, at).await.map(|()| None);
            }
            Joining::At(at) => {
                let pause = at.since(self.engine.now());
                return self.wait_or_resend(tried, before, Later::After(pause)).await;
            }
            Joining::Never(why) if before.is_none() => {
                return self.cannot_send(&why).await.map(|()| None);
            }
            Joining::Never(_) => {
                return self.wait_or_resend(tried, before, Later::After(limits::SEND_LATER)).await;
            }
        };
        let now = self.engine.now();
        let nth = tried.iter().map(|tried| serials::nth_of(tried.number)).max().unwrap_or(0);
        let ask_first = self.engine.quarantine.asks_first(self.order.env, self.order.made_at);
        let prepared = self.fix(&route, nth + 1).await?;
        let mut ended = Vec::new();
        if let Some((over, answered)) = &before {
            let not_sent = over.attempt.not_sent(answered.learnt.words(), now);
            ended.push(attempt::ATTEMPT_STATES.change(&not_sent));
            ended.push(answered.evidence.clone());
        }
        match prepared {
            Prepared::Ready(_) | Prepared::Refused(..) if ask_first => {
                let why = "it may have left in a file before the database was restored";
                self.may_be_forgotten(why).await.map(|()| None)
            }
            Prepared::Broken(why, _) => self.cannot_send(&why).await.map(|()| None),
            // In its turn at once: later, its window may have closed.
            Prepared::Crowded if before.is_none() => {
                let at = self.claim.due_at;
                self.due_at(&route, at).await.map(|()| None)
            }
            Prepared::Crowded => self.wait_or_resend(tried, before, CROWDED).await,
            Prepared::Refused(over, failure, evidence) => {
                ended.push(evidence);
                self.commit_refused((over, failure), tried, (before, ended)).await
            }
            Prepared::Ready(over) => {
                let attempt = Attempt { file_id: Some(file.id.clone()), ..over.attempt };
                let step = match self.order.stage {
                    OrderStage::Queued => Step::Begun(attempt.fixed()),
                    OrderStage::UnderWay | OrderStage::Ended => Step::Rerouted(attempt.fixed()),
                };
                let moves = self.push_attempt(&mut ended, (&attempt, &route));
                self.join((route, file, moves), step, ended).await.map(|()| None)
            }
        }
    }

    /// Commits that it has joined a file, perhaps with how its route is set: then with where
    /// connections led before. In the sandbox the file goes out at once.
    async fn join(
        self,
        (route, file, moves): (Arc<ReadyRoute>, PaymentFile, Option<Moves>),
        step: Step,
        mut rows: Vec<RowChange>,
    ) -> Result<(), Problem> {
        rows.push(work::WORK_IN_FILE.change(&InFile {
            id: self.claim.id.clone(),
            route_id: route.route.id.clone(),
            due_at: match self.order.env {
                Env::Live => file.settles_at,
                Env::Test => self.engine.now().after(limits::FILE_HELD_POLL),
            },
        }));
        let with = Writes { rows, fence: Some(self.fence()), beside: Some(file.door()) };
        let joined = self.feature.commit(&self.object, step, with).await;
        if let (Ok(_), Some(moves)) = (&joined, moves) {
            route.written().note(moves);
        }
        match joined {
            Ok(_) if self.order.env == Env::Live => Ok(()),
            Ok(_) => {
                self.engine.file_now(self.feature, &route, &file.id).await?;
                self.engine.settle_now(self.feature, &self.order.id).await
            }
            Err(problem) if is_blocked(&problem) => self.held_by_a_block().await,
            Err(problem) if is_not_now(&problem) => self.later(2 * limits::SEND_LATER).await,
            // Somebody has closed the window meanwhile, or has the payment.
            Err(problem) if problem.code() == ErrorCode::StateConflict => {
                self.later(limits::FILES_POLL).await
            }
            Err(problem) => Err(problem),
        }
    }

    /// What must be as it is where an attempt is in a file that others may still join: nothing of it
    /// has left.
    pub(in super::super) async fn in_open_file(
        &self,
        attempt: &Attempt,
    ) -> Result<Option<Guard>, Problem> {
        let Some(id) = &attempt.file_id else { return Ok(None) };
        let file = table::get(self.engine.db.pool(), id).await?;
        // After a restore it may have left in one that the database has forgotten.
        let in_doubt = self.engine.quarantine.asks_first(self.order.env, attempt.created_at);
        let is_open = |file: &PaymentFile| file.state == FileState::Collecting && !in_doubt;
        Ok(file.filter(is_open).map(|file| file.door()))
    }

    /// What is to be done about a payment that is in a file.
    pub(in super::super) async fn in_file(self, attempt: Attempt) -> Result<(), Problem> {
        let Some(id) = attempt.file_id.clone() else {
            return Err(Problem::internal("a payment in no file"));
        };
        let file = table::get(self.engine.db.pool(), &id).await?;
        let is_answered = file
            .is_some_and(|file| matches!(file.state, FileState::Acknowledged | FileState::Refused));
        if self.order.env == Env::Test && !is_answered {
            let route = self.engine.routes.get(&attempt.configuration.route_id).await?;
            // The news that comes of it has to find nobody at it.
            self.engine.give_back(&self.claim).await;
            self.engine.file_now(self.feature, &route, &id).await?;
            return self.engine.settle_now(self.feature, &self.order.id).await;
        }
        Box::pin(self.settle(attempt)).await
    }

    /// Ends it where the network carries its file out and the day has come, or has it join another
    /// file where that one was refused.
    async fn settle(self, attempt: Attempt) -> Result<(), Problem> {
        let id = attempt.file_id.clone();
        let id = id.ok_or_else(|| Problem::internal("a payment in no file"))?;
        let file = table::get(self.engine.db.pool(), &id).await?;
        let file = file.ok_or_else(|| Problem::internal("a payment of a file that is gone"))?;
        let now = self.engine.now();
        match file.state {
            FileState::Acknowledged | FileState::Refused if file.is_contradicted => {
                let why = "its network has both refused and acknowledged its file";
                self.cannot_send(why).await
            }
            // What its network says of the file does not fit, and a person finds out first.
            FileState::Acknowledged | FileState::Refused
                if self.engine.is_in_question(&file).await? =>
            {
                self.later(limits::FILE_RETRY).await
            }
            // It has joined, and was left out when the file was made.
            FileState::Acknowledged if goes_with_another(&attempt, &file) => {
                let sends = attempt.sends - 1;
                self.join_another(Attempt { sends, ..attempt }).await
            }
            FileState::Acknowledged if file.settles_at <= now => {
                let asked_about = outcome_unknown(&attempt);
                if cases::sql::is_any_open(self.engine.db.pool(), &asked_about).await? {
                    return self.later(limits::FILE_RETRY).await;
                }
                let route = self.engine.routes.get(&attempt.configuration.route_id).await?;
                let answered = self.settled(&attempt, &route, &file);
                Box::pin(self.conclude(Over::new(attempt, route), answered)).await
            }
            FileState::Acknowledged => self.wait_until(file.settles_at, None).await,
            // Nothing of it was in there.
            FileState::Empty => {
                let sends = attempt.sends - 1;
                self.join_another(Attempt { sends, ..attempt }).await
            }
            FileState::Refused if goes_with_another(&attempt, &file) => {
                self.engine.tell_of_refusal(&file).await?;
                self.join_another(attempt).await
            }
            FileState::Refused => self.refused_twice(attempt, &file).await,
            _ => self.wait_until(file.settles_at.max(now.after(limits::FILE_RETRY)), None).await,
        }
    }

    /// What it means that a file was acknowledged and that its day has come.
    fn settled(&self, attempt: &Attempt, route: &ReadyRoute, file: &PaymentFile) -> Answered {
        let name = file.name.as_deref().unwrap_or_default();
        let receipt = Receipt {
            code: "settled".to_owned(),
            network_id: attempt.network_id.clone(),
            amount_minor: None,
            facts: Vec::new(),
        };
        let (value_date, learnt) = (&file.value_date, Learnt::Paid(receipt));
        let why = format!("acknowledged; value date {value_date}");
        let called = Called {
            result: Ok(()),
            exchanges: vec![Exchange::heard("FILE", name, why.as_bytes())],
            bytes_left: false,
            may_have_moved_money: false,
            took: std::time::Duration::ZERO,
        };
        let by = (&*route.rail, "settle");
        let evidence = self.calls().evidence(Some(attempt), by, &called, &learnt.words());
        Answered { learnt, evidence, part: None, was_asked: false }
    }

    /// The file that it was in was refused as a whole: nothing of it was carried out, and the same
    /// reference goes into another one.
    async fn join_another(self, attempt: Attempt) -> Result<(), Problem> {
        // It may have joined one already that the database has forgotten.
        if self.engine.quarantine.asks_first(self.order.env, attempt.created_at) {
            let why = "it may have left in another file before the database was restored";
            return self.may_be_forgotten(why).await;
        }
        // Its network has said of it what nobody can act on: a person finds out first.
        if cases::sql::is_any_open(self.engine.db.pool(), &outcome_unknown(&attempt)).await? {
            return self.later(limits::FILE_RETRY).await;
        }
        let route = self.engine.routes.get(&attempt.configuration.route_id).await?;
        let paid = self.engine.paid_before(&attempt).await?;
        if !paid.is_empty() {
            return Box::pin(self.never_needed(Over::new(attempt, route), paid, None)).await;
        }
        if route.route.is_paused || self.held_back().is_some() {
            return self.later(limits::FILE_HELD_POLL).await;
        }
        let file = match self.joining(&route).await? {
            Joining::Now(file) => *file,
            Joining::At(at) => return self.due_at(&route, at).await,
            Joining::Never(why) => return self.cannot_send(&why).await,
        };
        let again = Attempt {
            file_id: Some(file.id.clone()),
            network_id: None,
            bytes_left: true,
            sends: attempt.sends + 1,
            sent_at: self.engine.now(),
            ..attempt
        };
        let step = Step::Resent(again.fixed());
        let rows = vec![attempt::ATTEMPT_STATES.change(&again)];
        self.join((route, file, None), step, rows).await
    }

    /// A network that refuses file after file will not take the next one either.
    async fn refused_twice(self, attempt: Attempt, file: &PaymentFile) -> Result<(), Problem> {
        let paid = self.engine.paid_before(&attempt).await?;
        if !paid.is_empty() {
            let route = self.engine.routes.get(&attempt.configuration.route_id).await?;
            return Box::pin(self.never_needed(Over::new(attempt, route), paid, None)).await;
        }
        let now = self.engine.now();
        let why = file.message.clone().unwrap_or_default();
        let summary = format!(
            "{} was in two files over {}, and both were refused ({why}).",
            self.order.reference, attempt.route
        );
        // A case that somebody has resolved before was about something else.
        let fingerprint = format!("refused_twice/{}/{}", self.order.id, file.id);
        let case = self.case(CaseKind::CannotSend, fingerprint, summary, now);
        self.wait_until(now.after(limits::UNANSWERED_MAX), Some(case)).await
    }

    /// The file of the closing that it is in time for.
    async fn joining(&self, route: &Arc<ReadyRoute>) -> Result<Joining, Problem> {
        let planned = match self.planned(route).await? {
            Ok(planned) => planned,
            Err(why) => return Ok(Joining::Never(why)),
        };
        let now = self.engine.now();
        if planned.closing.closes_at > now {
            let (pool, own) = (self.engine.db.pool(), (self.order.queued_at, self.order.amount));
            return Ok(match closing::ahead(pool, (route, planned), own).await? {
                Ahead::Joins(file) => Joining::Now(file),
                Ahead::Waits(planned, _) => Joining::At(planned.closing.closes_at),
                Ahead::Never(why) => Joining::Never(why),
            });
        }
        let file = self.file(route, &planned).await?;
        Ok(match file.state {
            FileState::Collecting => Joining::Now(Box::new(file)),
            _ => Joining::At(now.after(limits::FILES_POLL)),
        })
    }

    /// The closing that it has waited for, if that was a moment ago, and otherwise the next.
    async fn planned(&self, route: &ReadyRoute) -> Result<Result<Planned, String>, Problem> {
        let (timetable, now, amount) = (timetable(route)?, self.engine.now(), self.order.amount);
        let planned = match self.order.env {
            Env::Test => timetable.at_once(now),
            Env::Live => {
                let waited = timetable.next(self.claim.due_at.min(now), amount);
                let is_in_time =
                    |it: &Planned| it.closing.closes_at.after(limits::WINDOW_GRACE) > now;
                match waited {
                    Ok(planned)
                        if is_in_time(&planned) && self.is_open(route, &planned).await? =>
                    {
                        Ok(planned)
                    }
                    _ => timetable.next(now.after(std::time::Duration::from_micros(1)), amount),
                }
            }
        };
        Ok(planned.map_err(|why| why.to_string()))
    }

    /// Whether nobody has closed a window of a route yet.
    async fn is_open(&self, route: &ReadyRoute, planned: &Planned) -> Result<bool, Problem> {
        let found = table::by_slot(self.engine.db.pool(), &slot(route, &planned.closing)).await?;
        Ok(found.is_none_or(|file| file.state == FileState::Collecting))
    }

    async fn file(
        &self,
        route: &Arc<ReadyRoute>,
        planned: &Planned,
    ) -> Result<PaymentFile, Problem> {
        let Order { id, env, .. } = &self.order;
        let (now, closes_at) = (self.engine.now(), planned.closing.closes_at);
        let (slot, due_at) = match env {
            Env::Live => (slot(route, &planned.closing), closes_at),
            // One for each payment, each time; whoever makes it carries it out.
            Env::Test => {
                let slot = format!("{}/{id}/{}", route.route.id, self.claim.fence);
                (slot, now.after(limits::FILE_HELD_POLL))
            }
        };
        let new = NewFile { route, planned, slot, due_at, now };
        Ok(closing::open(&self.engine.db, &self.engine.ids, &new).await?)
    }

    async fn later(&self, pause: std::time::Duration) -> Result<(), Problem> {
        self.wait_until(self.engine.now().after(pause), None).await
    }

    async fn wait_until(&self, at: Moment, case: Option<Case>) -> Result<(), Problem> {
        self.in_lane(self.claim.route_id.clone(), at, case).await
    }

    /// Waits in the lane of the route that it is to go over: whoever closes a window there knows
    /// of it.
    async fn due_at(&self, route: &ReadyRoute, at: Moment) -> Result<(), Problem> {
        self.in_lane(route.route.id.clone(), at, None).await
    }

    async fn in_lane(&self, route: RouteId, at: Moment, case: Option<Case>) -> Result<(), Problem> {
        self.put_off(Vec::new(), Next { route, ..self.same(at) }, case).await
    }
}

impl super::Transfers {
    /// The network says something of a payment in a file that nobody can act on: a person has to
    /// find out, and until then it is not paid because its file is.
    ///
    /// # Errors
    /// The database cannot be written.
    pub(in super::super) async fn in_question(
        &self,
        (order, attempt): (&Order, &Attempt),
        why: &str,
    ) -> Result<(), Problem> {
        if !matches!(attempt.state, AttemptState::Open | AttemptState::Paid) {
            return Ok(());
        }
        let case = Case {
            id: self.ids.id(),
            kind: CaseKind::OutcomeUnknown,
            // What is said later is another thing, though a person has looked at the first.
            fingerprint: format!("{}/{}", outcome_unknown(attempt), digest_of(why)),
            env: order.env,
            merchant_id: Some(order.merchant_id.to_string()),
            subject_type: "payout",
            subject_id: order.id.clone(),
            route: None,
            amount: Some((order.currency, order.amount)),
            summary: format!(
                "{} left in a file over {} as {}, and its network says of it: {}.",
                order.reference,
                attempt.route,
                attempt.rail_reference,
                presentable(why)
            ),
            evidence: serde_json::Value::Null,
            opened_at: self.now(),
        };
        self.writer.work(case.opening(&self.ids)).await.map(drop)
    }

    /// Ends a payment of the sandbox, where nobody waits for days, if its network has spoken.
    fn settle_now<'a, F: Feature>(&'a self, feature: &'a F, id: &'a str) -> Doing<'a> {
        Box::pin(self.settle_if_it_can(feature, id))
    }

    async fn settle_if_it_can<F: Feature>(&self, feature: &F, id: &str) -> Result<(), Problem> {
        let Claimed::Yes(claim) = self.claim(id).await? else { return Ok(()) };
        let Some(object) = feature.load(id).await? else { return Ok(()) };
        let order = feature.order(&object)?;
        if order.stage == OrderStage::Ended {
            return Ok(work::drop_work(&self.db, &claim).await?);
        }
        let attempts = attempt::list_attempts(self.db.pool(), id).await?;
        let open = attempts.into_iter().find(|known| known.state == AttemptState::Open);
        let carry = Carry { engine: self, feature, turn: None, claim, object, order };
        match open {
            Some(open) => Box::pin(carry.settle(open)).await,
            None => carry.later(limits::SEND_LATER).await,
        }
    }

    /// Takes in what lies ready for the route of an attempt of the sandbox; nothing where its
    /// network leaves no files.
    ///
    /// # Errors
    /// The database failed.
    pub async fn take_in_files<F: Feature>(
        &self,
        feature: &F,
        attempt: &Attempt,
    ) -> Result<(), Problem> {
        let route = self.routes.get(&attempt.configuration.route_id).await?;
        match &attempt.file_id {
            Some(_) => self.poll(feature, &route).await,
            None => Ok(()),
        }
    }
}
