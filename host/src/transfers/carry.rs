//! One object on its way: sent, asked about, sent over another route, ended.

use std::collections::VecDeque;
use std::sync::Arc;
use std::time::Duration;

use crate::cases::{self, Case, CaseKind};
use crate::clock::Moment;
use crate::config::limits;
use crate::db::bulk::RowChange;
use crate::env::Env;
use crate::error::{ErrorCode, Problem};
use crate::id::RouteId;
use crate::ledger::Done;
use crate::ledger::{Command, Effects, Guard};
use crate::rails::ReadyRoute;
use crate::rails::declaration::Query;
use crate::rails::granted::scenario_header;
use crate::wasm::rail::{Kept, Money, Outcome};

use super::Transfers;
use super::attempt::{self, Attempt, AttemptState};
use super::begin::{CROWDED, Later};
use super::calls::{Answered, Calls, untellable};
use super::dispatch::Turn;
use super::finding::{Earlier, Learnt};
use super::lanes::Place;
use super::order::{Feature, Order, OrderStage, Step, Writes};
use super::stuck;
use super::work::{self, Claim, PutOff, Stage, UnderWay};

/// An object that this process has claimed.
pub(super) struct Carry<'a, F: Feature> {
    pub(super) engine: &'a Transfers,
    pub(super) feature: &'a F,
    /// The dispatcher's place, which is handed on once no call is made any more.
    pub(super) turn: Option<&'a Turn<F>>,
    pub(super) claim: Claim,
    pub(super) object: F::Object,
    pub(super) order: Order,
}

/// An attempt over its route.
pub(super) struct Over {
    pub(super) attempt: Attempt,
    pub(super) route: Arc<ReadyRoute>,
    /// The guest that prepared it, until it is sent.
    pub(super) kept: Option<Kept>,
    /// The place in its lane, where it took another one than the dispatcher's.
    pub(super) place: Option<Place>,
}

impl Over {
    pub(super) fn new(attempt: Attempt, route: Arc<ReadyRoute>) -> Self {
        Self { attempt, route, kept: None, place: None }
    }

    /// The same, to be asked about before it is sent.
    pub(super) fn unsent(self) -> Self {
        Self::new(Attempt { sends: 0, ..self.attempt }, self.route)
    }
}

/// What is to be done next with an object, if anything. It is answered and not called: so however
/// many routes are tried, no call stands on another.
pub(super) type Then<'a, F> = Option<Box<(Carry<'a, F>, Todo)>>;

/// What is to be done next.
pub(super) enum Todo {
    /// A route is chosen that was not tried yet.
    Begin { tried: Vec<Attempt>, before: Option<(Over, Answered)> },
    /// A committed attempt is sent.
    Send { over: Over, tried: Vec<Attempt>, before: Earlier },
    /// The rail is asked about an attempt.
    Ask { attempt: Attempt, tried: Vec<Attempt> },
}

impl Transfers {
    /// Does what there is to do for claimed work.
    ///
    /// # Errors
    /// The database failed. Nothing is lost: the lease runs out.
    pub async fn work<F: Feature>(&self, feature: &F, claim: Claim) -> Result<(), Problem> {
        let object = feature.load(&claim.id).await?;
        Box::pin(self.carry((feature, None), claim, object)).await
    }

    /// The same, the object being at hand.
    pub(super) async fn carry<F: Feature>(
        &self,
        (feature, turn): (&F, Option<&Turn<F>>),
        claim: Claim,
        object: Option<F::Object>,
    ) -> Result<(), Problem> {
        let Some(object) = object else {
            return Err(Problem::internal(format!(
                "work for {}, which is not there or cannot be read",
                claim.id
            )));
        };
        let order = feature.order(&object)?;
        let carry = Carry { engine: self, feature, turn, claim, object, order };
        match carry.order.stage {
            OrderStage::Ended => Ok(work::drop_work(&self.db, &carry.claim).await?),
            OrderStage::Queued | OrderStage::UnderWay => Box::pin(carry.run()).await,
        }
    }
}

impl<'a, F: Feature> Carry<'a, F> {
    /// Goes on until there is nothing to do now.
    async fn run(self) -> Result<(), Problem> {
        // Each step apart: together they are more than a thread's stack should have to hold.
        let mut then = Box::pin(self.go_on()).await?;
        while let Some(next) = then {
            let (carry, todo) = *next;
            then = match todo {
                Todo::Begin { tried, before } => Box::pin(carry.begin(tried, before)).await?,
                Todo::Send { over, tried, before } => {
                    Box::pin(carry.send(over, tried, before)).await?
                }
                Todo::Ask { attempt, tried } => Box::pin(carry.ask(attempt, tried)).await?,
            };
        }
        Ok(())
    }

    /// This is to be done next.
    pub(super) fn then(self, todo: Todo) -> Result<Then<'a, F>, Problem> {
        Ok(Some(Box::new((self, todo))))
    }

    /// Goes on from whatever state is found.
    async fn go_on(self) -> Result<Then<'a, F>, Problem> {
        // Attempts are made under a claim: before the first one there are none.
        let attempts = match self.claim.fence {
            1 => Vec::new(),
            _ => attempt::list_attempts(self.engine.db.pool(), &self.order.id).await?,
        };
        if let Some(left) = self.forgotten(&attempts).await? {
            return self.ask_about_forgotten(attempts, left).await;
        }
        if let Some(open) = attempts.iter().find(|attempt| attempt.state == AttemptState::Open) {
            let attempt = open.clone();
            return self.then(Todo::Ask { attempt, tried: attempts });
        }
        let step = match attempts.last() {
            None => return self.then(Todo::Begin { tried: Vec::new(), before: None }),
            Some(last) if let Some(paid) = attempt::paid_besides(&attempts, last).next() => {
                Some(Step::Paid(paid.fixed()))
            }
            Some(last) => match last.state {
                AttemptState::Open | AttemptState::NotSent => {
                    return self.then(Todo::Begin { tried: attempts, before: None });
                }
                AttemptState::Paid => Some(Step::Paid(last.fixed())),
                AttemptState::Refused => Some(Step::Refused(last.fixed(), last.failure())),
                AttemptState::Returned => Some(Step::Returned(last.fixed(), last.failure())),
                AttemptState::Closed => None,
            },
        };
        match step {
            // The attempt says how it ended, and the object does not know yet.
            Some(step) => {
                let with = Writes { rows: Vec::new(), fence: Some(self.fence()), beside: None };
                self.feature.commit(&self.object, step, with).await.map(|_| None)
            }
            None => {
                let why = "the operator closed its last attempt, but the payout has not ended";
                self.cannot_send(why).await.map(|()| None)
            }
        }
    }

    /// Calls the rail under a committed attempt and commits what came of it. `before` says
    /// whether a byte of an earlier sending of the same reference left.
    pub(super) async fn send(
        self,
        over: Over,
        tried: Vec<Attempt>,
        before: Earlier,
    ) -> Result<Then<'a, F>, Problem> {
        let Over { attempt, route, kept, place } = over;
        if self.held_back().is_some() {
            // The database moved while this was committed.
            return self.put_off_unsent(&route).await;
        }
        let payment = self.calls().payment((&attempt, &route))?;
        if let Err(cause) = self.intend(&attempt).await {
            // What is not written down does not leave, over no route.
            tracing::error!(%cause, "the intent journal");
            let bytes_left = before == Earlier::Left;
            let unsent = Attempt { bytes_left, message: Some(cause.to_string()), ..attempt };
            let next = self.next_question(&route);
            let rows = vec![attempt::ATTEMPT_STATES.change(&unsent)];
            return self.put_off(rows, next, None).await.map(|()| None);
        }
        if self.held_back().is_some() {
            // Whoever shut the gate meanwhile may not have seen that intent.
            return self.put_off_unsent(&route).await;
        }
        let headers = scenario_header(self.order.scenario.as_deref());
        let seeds = self.calls().seeds(&attempt)?;
        let grant = route.grant_with((self.engine.now(), headers, Money::MayMove), seeds);
        let called = route.rail.code.submit(kept, &grant, &payment).await;
        // As with the dispatcher's: the database is none of the network's business.
        drop(place);
        let learnt = Learnt::from_submit(&called, before).of(self.order.amount);
        // A rail that claims that it was taken on has sent something, whatever is declared of it.
        let is_claimed = matches!(called.result, Ok(Outcome::Paid(_) | Outcome::Accepted(_)));
        let bytes_left = before == Earlier::Left
            || called.may_have_moved_money
            || (is_claimed && called.bytes_left);
        let attempt = Attempt { bytes_left, never_received: 0, ..attempt };
        let answered = self.calls().note((&attempt, &route), "submit", &called, learnt);
        if !matches!(answered.learnt, Learnt::Unknown(_)) {
            self.wake_parked();
        }
        if !bytes_left && matches!(answered.learnt, Learnt::Unknown(_)) {
            let mut tried = tried;
            tried.push(attempt.clone());
            let before = Some((Over::new(attempt, route), answered));
            return self.then(Todo::Begin { tried, before });
        }
        Box::pin(self.conclude(Over::new(attempt, route), answered)).await.map(|()| None)
    }

    /// Asks the rail about an attempt whose outcome is not known.
    pub(super) async fn ask(
        self,
        attempt: Attempt,
        tried: Vec<Attempt>,
    ) -> Result<Then<'a, F>, Problem> {
        if attempt.file_id.is_some() {
            return Box::pin(self.in_file(attempt)).await.map(|()| None);
        }
        let sent = self.engine.routes.as_sent(&attempt.configuration).await;
        let route = match sent {
            Ok(route) => route,
            Err(problem) if problem.code() == ErrorCode::RailNotConfigured => {
                let why = format!("the route {} or its rail is not there", attempt.route);
                return self.cannot_send(&why).await.map(|()| None);
            }
            Err(problem) => return Err(problem),
        };
        if route.goes_by_file() {
            let why = "it left in a file that the database has forgotten";
            return self.may_be_forgotten(why).await.map(|()| None);
        }
        if let Some(at) = self.first_question(&attempt, &route) {
            let next = Next { route: route.route.id.clone(), ..self.same(at) };
            return self.put_off(Vec::new(), next, None).await.map(|()| None);
        }
        let is_live = self.order.env == Env::Live;
        if let Some(pause) = self.engine.lanes.patience(&route.route.id).filter(|_| is_live) {
            let (id, now) = (route.route.id.clone(), self.engine.now());
            // Who asks out of turn changes nothing about the turns.
            let at = now.after(pause).max(self.claim.due_at);
            let case = self.unanswered((&attempt, &route), now);
            let next = Next { route: id, ..self.same(at) };
            return self.put_off(Vec::new(), next, case).await.map(|()| None);
        }
        // What the database says of it may be older than what became of it.
        let may_have_left = self.engine.quarantine.asks_first(self.order.env, attempt.created_at);
        let attempt = Attempt { bytes_left: attempt.bytes_left || may_have_left, ..attempt };
        let answered = match self.calls().query((&attempt, &route)).await {
            Err(problem) if problem.code() == ErrorCode::ServiceOverloaded => {
                return self.wait_or_resend(tried, None, CROWDED).await;
            }
            answered => answered?,
        };
        let never_received = match answered.learnt {
            Learnt::NeverReceived(_) => attempt.never_received + 1,
            _ => 0,
        };
        let attempt = Attempt { queries: attempt.queries + 1, never_received, ..attempt };
        let is_unknown = matches!(answered.learnt, Learnt::Unknown(_) | Learnt::NeverReceived(_));
        let over = Over::new(attempt, route);
        let paid: VecDeque<_> = attempt::paid_besides(&tried, &over.attempt).cloned().collect();
        if !paid.is_empty() && is_unknown && self.never_had(&over) {
            let needless = self.never_needed(over, paid, Some(answered));
            return Box::pin(needless).await.map(|()| None);
        }
        match over.attempt.bytes_left || !is_unknown || !paid.is_empty() {
            // Nothing of it left: another route may have come free meanwhile.
            false => self.then(Todo::Begin { tried, before: Some((over, answered)) }),
            true if paid.is_empty() && self.may_send_again(&over, &answered) => {
                Box::pin(self.resend(over, tried, answered)).await
            }
            true => Box::pin(self.conclude(over, answered)).await.map(|()| None),
        }
    }

    /// Whether the network says often enough that it never had an attempt.
    fn never_had(&self, over: &Over) -> bool {
        let query = &over.route.rail.declaration.query;
        was_never_received(query, &over.attempt, self.engine.now())
    }

    /// Whether the same reference may be sent again: the network says often enough that it never
    /// came, or nothing of it left and the network was asked since, whatever it had to say. The
    /// route must take payments at all, by a rail that knows the account: the version that sent it,
    /// or, where that is gone, the loaded one.
    fn may_send_again(&self, over: &Over, answered: &Answered) -> bool {
        let now = self.engine.now();
        let is_taken = !over.route.route.is_paused
            && over.route.opens_at(now).is_none()
            && over.route.takes(self.order.amount)
            && untellable(&self.order, &over.route.rail).is_none();
        let may_use_route = is_taken && self.held_back().is_none();
        // A definite answer counts, whatever this host thought of its own sending.
        let is_open = matches!(answered.learnt, Learnt::Unknown(_) | Learnt::NeverReceived(_));
        if !is_open {
            return false;
        }
        let is_unsent = answered.was_asked && !over.attempt.bytes_left;
        may_use_route && (is_unsent || self.never_had(over))
    }

    /// Commits that the same reference is sent once more, and sends it.
    async fn resend(
        mut self,
        over: Over,
        tried: Vec<Attempt>,
        answered: Answered,
    ) -> Result<Then<'a, F>, Problem> {
        let is_let =
            self.order.env == Env::Test || self.engine.lanes.admit(&over.route.route.id).is_ok();
        if !is_let {
            return Box::pin(self.conclude(over, answered)).await.map(|()| None);
        }
        let before = if over.attempt.bytes_left { Earlier::Left } else { Earlier::Nothing };
        let again = Attempt {
            bytes_left: true,
            sends: over.attempt.sends + 1,
            sent_at: self.engine.now(),
            never_received: 0,
            ..over.attempt.clone()
        };
        let rows = vec![
            attempt::ATTEMPT_STATES.change(&again),
            answered.evidence.clone(),
            self.under_way(&over.route),
        ];
        let with = Writes { rows, fence: Some(self.fence()), beside: None };
        match self.feature.commit(&self.object, Step::Resent(again.fixed()), with).await {
            Ok(object) => self.object = object,
            Err(problem) if is_not_now(&problem) => {
                return Box::pin(self.conclude(over, answered)).await.map(|()| None);
            }
            Err(problem) => {
                return self.lost(problem, Some((over, answered))).await.map(|()| None);
            }
        }
        let over = Over::new(again, over.route);
        // The attempt itself is the one that may be given up for another route.
        let tried = tried.into_iter().filter(|known| known.id != over.attempt.id).collect();
        self.then(Todo::Send { over, tried, before })
    }

    /// No other route takes it now: the same reference is sent again over its own route where that
    /// is permitted, and otherwise the work waits.
    pub(super) async fn wait_or_resend(
        self,
        tried: Vec<Attempt>,
        before: Option<(Over, Answered)>,
        later: Later,
    ) -> Result<Then<'a, F>, Problem> {
        match (before, later) {
            (Some((over, answered)), _) => match self.may_send_again(&over, &answered) {
                true => Box::pin(self.resend(over, tried, answered)).await,
                false => Box::pin(self.conclude(over, answered)).await.map(|()| None),
            },
            (None, Later::Crowded(pause)) => {
                let at = self.engine.now().after(pause);
                let unrouted_since = self.claim.unrouted_since;
                let next = Next { unrouted_since, ..self.same(at) };
                self.put_off(Vec::new(), next, None).await.map(|()| None)
            }
            (None, Later::After(pause)) => {
                let at = self.engine.now().after(self.parked(pause).await);
                self.put_off(Vec::new(), self.same(at), None).await.map(|()| None)
            }
            (None, Later::Nobody) => {
                let now = self.engine.now();
                let at = now.after(self.parked(limits::SEND_LATER).await);
                let unrouted_since = self.claim.unrouted_since.or(Some(now));
                let next = Next { unrouted_since, ..self.same(at) };
                self.put_off(Vec::new(), next, None).await.map(|()| None)
            }
            (None, Later::Unbounded) => {
                let why = "no route takes its amount any more";
                self.cannot_send(why).await.map(|()| None)
            }
            (None, Later::InLane(route)) => {
                let route = route.route.id.clone();
                let next = Next { route, ..self.same(self.engine.now()) };
                self.put_off(Vec::new(), next, None).await.map(|()| None)
            }
        }
    }

    /// The rail makes nothing of it: tried again later, and after some tries a person's.
    pub(super) async fn cannot_send(self, why: &str) -> Result<(), Problem> {
        self.stands_still(why, limits::SEND_TRIES_MAX).await
    }

    /// It may have left in a file that the database has forgotten, and no network can be asked about
    /// that: a person's at once.
    pub(super) async fn may_be_forgotten(self, why: &str) -> Result<(), Problem> {
        self.stands_still(why, 1).await
    }

    /// Tried again later; a person's after so many tries.
    async fn stands_still(self, why: &str, told_after: i64) -> Result<(), Problem> {
        let (now, tries) = (self.engine.now(), self.claim.tries + 1);
        let at = now.after(stuck::pause_after(tries));
        let case = (tries >= told_after).then(|| {
            self.case(
                CaseKind::CannotSend,
                stuck::cannot_send(&self.order.id),
                format!("{} can neither be sent nor asked about: {why}.", self.order.reference),
                now,
            )
        });
        tracing::error!(transfer.id = self.order.id, why, "neither sent nor asked about");
        let next = Next { tries, ..self.same(at) };
        self.put_off(Vec::new(), next, case).await
    }

    /// Its recipient is blocked: it waits, and a person is told.
    pub(super) async fn held_by_a_block(self) -> Result<(), Problem> {
        let (now, id) = (self.engine.now(), &self.order.id);
        let summary = format!("{} is not sent: its recipient is blocked.", self.order.reference);
        let case = self.case(CaseKind::CannotSend, format!("blocked/{id}"), summary, now);
        let at = now.after(2 * limits::SEND_LATER);
        self.put_off(Vec::new(), self.same(at), Some(case)).await
    }

    pub(super) fn case(
        &self,
        kind: CaseKind,
        fingerprint: String,
        summary: String,
        now: Moment,
    ) -> Case {
        let order = &self.order;
        Case {
            id: self.engine.ids.id(),
            kind,
            fingerprint,
            env: order.env,
            merchant_id: Some(order.merchant_id.to_string()),
            subject_type: "payout",
            subject_id: order.id.clone(),
            route: None,
            amount: Some((order.currency, order.amount)),
            summary,
            evidence: serde_json::Value::Null,
            opened_at: now,
        }
    }

    /// When the rail is asked next. Who asks out of turn changes nothing about the turns.
    pub(super) fn next_question(&self, route: &ReadyRoute) -> Next {
        let (claim, now) = (&self.claim, self.engine.now());
        let id = route.route.id.clone();
        if claim.due_at > now {
            return Next { route: id, ..self.same(claim.due_at) };
        }
        let schedule = &route.rail.declaration.query.schedule_s;
        let last = schedule.len() - 1;
        let index = usize::try_from(claim.tries).unwrap_or(last).min(last);
        let at = now.after(Duration::from_secs(schedule[index]));
        let tries = if claim.nudges > 0 { claim.tries } else { claim.tries + 1 };
        Next { route: id, tries, ..self.same(at) }
    }

    /// As it was, but for when it is due, and that some route takes it.
    pub(super) fn same(&self, at: Moment) -> Next {
        let Claim { route_id, tries, .. } = &self.claim;
        Next { route: route_id.clone(), at, tries: *tries, unrouted_since: None }
    }

    /// When the rail is asked for the first time about what was sent by somebody who did not live to
    /// say so, if that is later than now, there is no news, and nobody asks out of turn. Whoever did
    /// has put it off for as long.
    fn first_question(&self, attempt: &Attempt, route: &ReadyRoute) -> Option<Moment> {
        let is_first = attempt.sends > 0 && attempt.queries == 0;
        let is_in_turn = self.turn.is_some() && self.claim.nudges == 0;
        let first = Duration::from_secs(route.rail.declaration.query.schedule_s[0]);
        let at = attempt.sent_at.after(first.min(limits::LEASE));
        (is_first && is_in_turn && at > self.engine.now()).then_some(at)
    }

    /// Ends the lease and says when the work is due again: now, if there has been news since it
    /// was claimed.
    pub(super) async fn put_off(
        &self,
        rows: Vec<RowChange>,
        next: Next,
        case: Option<Case>,
    ) -> Result<(), Problem> {
        let (ids, now) = (Arc::clone(&self.engine.ids), self.engine.now());
        let (id, known) = (self.claim.id.clone(), self.claim.nudges);
        let stage = match self.order.stage {
            OrderStage::Queued => Stage::Queued,
            OrderStage::UnderWay | OrderStage::Ended => Stage::Sent,
        };
        let fingerprint = case.as_ref().map(|case| case.fingerprint.clone());
        let mut command = Command::new(move |locked| {
            let gone = || Problem::new(ErrorCode::StateConflict);
            let nudges = locked.row(&work::WORK_FENCES, &id).ok_or_else(gone)?.int("nudges")?;
            let has_news = nudges > known;
            let mut rows = rows.clone();
            rows.push(work::WORK_PUT_OFF.change(&PutOff {
                id: id.clone(),
                route_id: next.route.clone(),
                stage,
                due_at: if has_news { now } else { next.at },
                tries: next.tries,
                unrouted_since: next.unrouted_since,
                nudges: if has_news { nudges - known } else { 0 },
            }));
            if let Some(case) = &case {
                rows.extend(case.open_once(locked, &ids));
            }
            Ok(Effects { rows, ..Effects::default() }.and(has_news))
        });
        command = command.guards([self.fence()]).row(&work::WORK_FENCES, self.claim.id.clone());
        if let Some(fingerprint) = fingerprint {
            command = command.row(&cases::sql::CASES_BY_FINGERPRINT, fingerprint);
        }
        if let Done::Now(true) = self.engine.writer.work(command).await? {
            self.engine.wake();
        }
        Ok(())
    }

    /// The claim as a guard: a write under an older one is refused.
    pub(super) fn fence(&self) -> Guard {
        self.claim.guard()
    }

    pub(super) fn calls(&self) -> Calls<'_> {
        Calls { engine: self.engine, order: &self.order }
    }

    /// Work that goes on under its lease, due again soon should this host die.
    pub(super) fn under_way(&self, route: &ReadyRoute) -> RowChange {
        let due_at = self.next_question(route).at.min(self.engine.now().after(limits::LEASE));
        let (id, route_id) = (self.claim.id.clone(), route.route.id.clone());
        work::WORK_UNDER_WAY.change(&UnderWay { id, route_id, due_at })
    }
}

/// When and where work is looked at again.
pub(super) struct Next {
    pub(super) route: RouteId,
    pub(super) at: Moment,
    pub(super) tries: i64,
    /// Since when no route takes it, if none does.
    pub(super) unrouted_since: Option<Moment>,
}

/// Whether enough answers of "never received" permit sending the same reference again: at once
/// where no byte of it left, otherwise after as many answers and as long as the rail declares,
/// and never fewer or sooner than the host itself wants.
fn was_never_received(query: &Query, attempt: &Attempt, now: Moment) -> bool {
    if attempt.never_received == 0 {
        return false;
    }
    let after = Duration::from_secs(query.never_received_after_s);
    let after = after.max(limits::NEVER_RECEIVED_AFTER_MIN);
    let answers = query.never_received_answers.max(limits::NEVER_RECEIVED_ANSWERS_MIN);
    !attempt.bytes_left
        || (attempt.never_received >= answers && attempt.sent_at.after(after) <= now)
}

/// Whether nothing may be sent to whom it is for.
pub fn is_blocked(problem: &Problem) -> bool {
    use ErrorCode as E;
    matches!(problem.code(), E::BeneficiaryGloballyBlocked | E::BeneficiaryBlacklistedForPayout)
}

/// Whether a feature says "not now": what is refused may be let go again.
pub(super) fn is_not_now(problem: &Problem) -> bool {
    use ErrorCode as E;
    is_blocked(problem)
        || matches!(problem.code(), E::WalletFrozen | E::MerchantSuspended | E::MerchantClosed)
}
