//! What networks say by themselves: in messages, and in files that lay ready.
//!
//! What the rail reads out of it is a hint: the host asks the rail and believes only the answer,
//! unless the rail declares that this channel is to be believed. A message speaks for payments that
//! went over a route whose credentials it carries, and for no others; what it says of others
//! becomes a case, which ends by itself if it turns out to be ours after all.

use std::sync::Arc;
use std::sync::atomic::AtomicUsize;
use std::time::Duration;

use sha2::{Digest as _, Sha256};

use crate::clock::Moment;
use crate::config::limits;
use crate::env::Env;
use crate::error::{ErrorCode, Problem};
use crate::rails::ReadyRoute;
use crate::rails::declaration::FieldTerms;
use crate::wasm::rail::{
    self, Called, Finding, Message, News, Notice, Refusal, ReturnOfFunds, Subject,
};

use super::Transfers;
use super::attempt::{self, Attempt, AttemptState};
use super::calls::{Answered, Calls};
use super::carry::{Carry, Over};
use super::door::later;
use super::finding::{self, Learnt, Same};
use super::order::{Correction, Failure, Feature, Order, OrderStage, Step, Writes};
use super::work::{Claim, Claimed};

/// How long an answer to the network waits for the rail to be asked; the asking goes on.
const ASK_WAIT: Duration = Duration::from_secs(2);
/// How often a claim is looked for that somebody holds.
const POLL: Duration = Duration::from_millis(50);
/// Longest text of a correction.
const CORRECTED_MAX: usize = 140;
/// How often an object is read again that somebody changes meanwhile.
const TRIES: u32 = 5;

/// What was heard, and how far it is believed.
pub(super) struct Heard {
    /// Whether what became of a payment is believed as it is told.
    is_believed: bool,
    /// Whether this is where the network answers questions.
    is_answer: bool,
    /// Whether a paused route does not listen.
    may_wait: bool,
    /// Whether what it says was looked at before, and was about nothing that was known.
    pub(super) was_unknown: bool,
    /// When it was heard.
    pub(super) received_at: Moment,
    /// Keeps apart what is said in the same words.
    pub(super) digest: String,
    /// How often it spoke of payments that are not known here.
    pub(super) strangers: AtomicUsize,
    /// `receive` or `read`.
    pub(super) operation: &'static str,
    /// The call that read it, with what was heard.
    pub(super) called: Called<()>,
}

/// What became of something that was said.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum Taken {
    /// It had its effect, or has none.
    Acted,
    /// It is about nothing that is known here now.
    Unknown,
    /// The same, and a person has looked at it.
    LookedAt,
}

impl Heard {
    /// Whether what is said is believed as it is told.
    pub(super) const fn is_believed(&self) -> bool {
        self.is_believed
    }

    /// A message that the network of a route sent by itself.
    pub(super) fn message(
        route: &ReadyRoute,
        (message, received_at): (&Message, Moment),
        called: Called<()>,
    ) -> Self {
        let terms = route.rail.declaration.notice(&message.method, &message.path);
        Self {
            is_believed: route.believes(message),
            is_answer: route.is_answer(message),
            may_wait: terms.is_some_and(|terms| !terms.auth.path_token),
            was_unknown: false,
            received_at,
            digest: hex::encode(Sha256::digest(&message.body)),
            strangers: AtomicUsize::new(0),
            operation: "receive",
            called,
        }
    }

    /// A file that this host fetched where the network puts what it has to say.
    pub(super) fn file((content, received_at): (&[u8], Moment), called: Called<()>) -> Self {
        Self {
            is_believed: true,
            is_answer: true,
            may_wait: false,
            was_unknown: false,
            received_at,
            digest: hex::encode(Sha256::digest(content)),
            strangers: AtomicUsize::new(0),
            operation: "read",
            called,
        }
    }
}

impl Transfers {
    /// Gives something that was said its effect.
    ///
    /// # Errors
    /// It has none now: the database failed, somebody is at the payment, the route is paused.
    pub(super) async fn take<F: Feature>(
        &self,
        feature: &F,
        routes: &[Arc<ReadyRoute>],
        notice: Notice,
        heard: &Heard,
    ) -> Result<Taken, Problem> {
        if let Subject::File(identity) = &notice.about {
            let taken =
                self.take_about_file(feature, routes, (identity, &notice.news), heard).await?;
            return match taken {
                Taken::Unknown => self.unknown(&routes[0], heard, &notice).await,
                taken => Ok(taken),
            };
        }
        let rail = &routes[0].route.rail;
        let found = attempt::find_attempts(self.db.pool(), rail, &notice.about).await?;
        let over = |found: &Attempt| {
            routes.iter().find(|route| route.route.id == found.configuration.route_id)
        };
        // A name of the network's that several payments have says which of them nobody.
        let mut ours = found.into_iter().filter(|found| over(found).is_some());
        let found = ours.next().filter(|_| ours.next().is_none());
        let route = found.as_ref().and_then(over);
        if let Some(paused) = route.filter(|route| heard.may_wait && route.route.is_paused) {
            return Err(later(paused));
        }
        let Some((attempt, route)) = found.zip(route) else {
            return self.unknown(&routes[0], heard, &notice).await;
        };
        self.no_longer_a_stranger(&routes[0], heard, &notice).await?;
        let taking = Box::pin(self.take_about(feature, route, (attempt, notice.news), heard));
        taking.await.map(|()| Taken::Acted)
    }

    /// Gives news about an attempt its effect.
    async fn take_about<F: Feature>(
        &self,
        feature: &F,
        route: &Arc<ReadyRoute>,
        (attempt, news): (Attempt, News),
        heard: &Heard,
    ) -> Result<(), Problem> {
        match news {
            News::Found(Finding::Returned(funds)) if heard.is_believed => {
                Box::pin(self.returned(feature, route, attempt, (funds, heard))).await
            }
            News::Found(finding) => {
                // As the version that sent it is configured: what another one wants besides is no matter.
                let sent = self.routes.as_sent(&attempt.configuration).await?;
                let same =
                    Same::of(&attempt.configuration.fingerprint, sent.fingerprints(&self.keyring));
                // Another gateway than it was sent to proves that it was paid, and nothing else.
                let is_proof =
                    |learnt: &Learnt| matches!(learnt, Learnt::Paid(_)) || same != Same::Nothing;
                let definite = Learnt::from_notice(&finding)
                    .filter(|learnt| heard.is_believed && is_proof(learnt));
                let order = feature.order(&object(feature, &attempt).await?)?;
                match definite.map(|learnt| learnt.of(order.amount)) {
                    open @ (Some(Learnt::Unknown(_)) | None) => {
                        let why =
                            open.map_or_else(|| said(&finding, str::to_owned), |it| it.words());
                        let words = format!("told: {why}");
                        let with = (words.as_str(), heard);
                        self.write_down(&order, route, &attempt, with).await?;
                        // That its file is carried out says nothing of it any more.
                        let is_fine = matches!(&finding, Finding::Accepted(receipt)
                            if receipt.amount_minor.is_none_or(|it| it == order.amount.units()));
                        let is_odd = heard.is_believed && !is_fine;
                        if is_odd && attempt.file_id.is_some() {
                            self.in_question((&order, &attempt), &why).await?;
                        }
                        match heard.is_answer {
                            true => Ok(()),
                            false => self.ask_about(feature, attempt).await,
                        }
                    }
                    Some(learnt) => {
                        Box::pin(self.told(feature, route, attempt, (learnt, heard))).await
                    }
                }
            }
            News::Ask => {
                let is_known = self.is_ended(feature, &attempt).await?
                    && attempt.was_just_answered(self.now());
                match is_known {
                    true => Ok(()),
                    false => self.ask_about(feature, attempt).await,
                }
            }
            News::Corrected(correction) if !heard.is_believed => {
                let order = feature.order(&object(feature, &attempt).await?)?;
                let words = format!("told: corrected ({})", correction.code);
                self.write_down(&order, route, &attempt, (&words, heard)).await
            }
            News::Corrected(correction) => {
                Box::pin(self.corrected(feature, route, &attempt, (correction, heard))).await
            }
        }
    }

    /// What became of a payment, said by a network that is believed. Whoever is at the payment
    /// finishes first: it may be the very call that this is the answer to.
    async fn told<F: Feature>(
        &self,
        feature: &F,
        route: &Arc<ReadyRoute>,
        attempt: Attempt,
        (learnt, heard): (Learnt, &Heard),
    ) -> Result<(), Problem> {
        let words = learnt.words();
        let claim = self.claimed(&attempt).await?;
        let object = object(feature, &attempt).await?;
        let order = feature.order(&object)?;
        let calls = Calls { engine: self, order: &order };
        let by = (&*route.rail, heard.operation);
        let evidence = calls.evidence(Some(&attempt), by, &heard.called, &words);
        let Some(claim) = claim else {
            return self.late(feature, &attempt, (learnt, evidence)).await;
        };
        let known = attempt::list_attempts(self.db.pool(), &order.id).await?;
        let open = known.iter().find(|known| known.state == AttemptState::Open).cloned();
        let own = known.into_iter().find(|known| known.id == attempt.id);
        let own = own.ok_or_else(|| Problem::internal("an attempt is gone"))?;
        let over = Over::new(Attempt { bytes_left: true, ..own }, Arc::clone(route));
        let answered = Answered { learnt, evidence, part: None, was_asked: false };
        let carry = Carry { engine: self, feature, turn: None, claim, object, order };
        match open {
            Some(open) if open.id == attempt.id => {
                // Told of a payment that has ended, it says nothing of how things stand.
                if carry.order.env == Env::Live
                    && let Some(reached) = self.refused_us(route, &answered.learnt)
                {
                    self.lanes.note(&route.route.id, reached);
                }
                Box::pin(carry.conclude(over, answered)).await
            }
            other => Box::pin(carry.overtaken(other, over, answered)).await,
        }
    }

    /// The work for what an attempt belongs to, once nobody else is at it; none where there is
    /// nothing to do any more.
    async fn claimed(&self, attempt: &Attempt) -> Result<Option<Claim>, Problem> {
        let begun = tokio::time::Instant::now();
        loop {
            match self.claim(&attempt.transfer_id).await? {
                Claimed::NoWork => return Ok(None),
                Claimed::Yes(claim) => return Ok(Some(claim)),
                Claimed::Busy if begun.elapsed() < limits::NOTICE_WAIT => {
                    tokio::time::sleep(POLL).await;
                }
                // It lies in the inbox until then.
                Claimed::Busy => {
                    return Err(Problem::new(ErrorCode::ServiceUnavailable).retry_after(5));
                }
            }
        }
    }

    /// Asks about a payment that there is news of. Somebody who is at it asks again.
    async fn ask_about<F: Feature>(&self, feature: &F, attempt: Attempt) -> Result<(), Problem> {
        let is_ended = self.is_ended(feature, &attempt).await?;
        let (engine, feature) = (self.clone(), feature.clone());
        if !is_ended {
            // Durable before the network hears that it was understood.
            self.nudge(&attempt.transfer_id).await?;
        }
        let asking = self.tasks.spawn(async move {
            let asked = match is_ended {
                true => engine.ask_again(&feature, &attempt).await,
                false => engine.work_now(&feature, &attempt.transfer_id).await,
            };
            if let Err(problem) = asked
                && problem.code() != ErrorCode::StateConflict
            {
                tracing::error!(transfer.id = attempt.transfer_id, %problem, "asking after a notice");
            }
        });
        // The network need not wait for its own answer to our question.
        let _ = tokio::time::timeout(ASK_WAIT, asking).await;
        Ok(())
    }

    async fn is_ended<F: Feature>(&self, feature: &F, attempt: &Attempt) -> Result<bool, Problem> {
        let object = object(feature, attempt).await?;
        Ok(feature.order(&object)?.stage == OrderStage::Ended)
    }

    /// Keeps what shows that a network has said something.
    async fn write_down(
        &self,
        order: &Order,
        route: &ReadyRoute,
        attempt: &Attempt,
        (words, heard): (&str, &Heard),
    ) -> Result<(), Problem> {
        let calls = Calls { engine: self, order };
        let by = (&*route.rail, heard.operation);
        let evidence = calls.evidence(Some(attempt), by, &heard.called, words);
        self.write_evidence(evidence).await
    }

    /// Money came back. It may be told before this host knows that it was paid, or twice.
    async fn returned<F: Feature>(
        &self,
        feature: &F,
        route: &ReadyRoute,
        attempt: Attempt,
        (funds, heard): (ReturnOfFunds, &Heard),
    ) -> Result<(), Problem> {
        if funds.amount_minor <= 0 {
            let message = "A return of nothing was not understood.";
            return Err(Problem::because(ErrorCode::InvalidBody, message));
        }
        self.finish_first(feature, &attempt).await?;
        for _ in 0..TRIES {
            let object = object(feature, &attempt).await?;
            let order = feature.order(&object)?;
            let attempts = attempt::list_attempts(self.db.pool(), &order.id).await?;
            let other = attempt::paid_besides(&attempts, &attempt).next().cloned();
            let known = attempts.into_iter().find(|known| known.id == attempt.id);
            let known = known.ok_or_else(|| Problem::internal("an attempt is gone"))?;
            let calls = Calls { engine: self, order: &order };
            let message = route.rail.redactor.text(&funds.message, &order.recipient);
            let words = finding::returned(&funds, &message);
            let failure =
                Failure { code: funds.code.clone(), message, id: funds.network_id.clone() };
            let by = (&*route.rail, heard.operation);
            let evidence = calls.evidence(Some(&known), by, &heard.called, &words);
            if order.env == Env::Test && funds.amount_minor > order.amount.units() {
                let message = "More came back than was sent.";
                return Err(Problem::because(ErrorCode::InvalidBody, message));
            }
            let is_whole = funds.amount_minor == order.amount.units();
            let is_back = known.state == AttemptState::Returned;
            let is_same = finding::is_of_return(known.message.as_deref(), &funds);
            if is_whole && is_back && is_same {
                return self.write_evidence(evidence).await;
            }
            // All of it came back before: what comes now is more.
            let is_whole = is_whole && !is_back;
            let mut rows = vec![evidence];
            let step = match is_whole {
                true => {
                    let now = self.now();
                    let back = Attempt {
                        state: AttemptState::Returned,
                        bytes_left: true,
                        code: Some(funds.code.clone()),
                        message: Some(words.clone()),
                        answered_at: Some(now),
                        ..known.clone()
                    };
                    rows.push(attempt::ATTEMPT_STATES.change(&back));
                    rows.push(super::conclude::end_question(&back, now));
                    match other.filter(|_| order.stage != OrderStage::Ended) {
                        Some(paid) => {
                            rows.push(super::conclude::end_question(&paid, now));
                            Step::Paid(paid.fixed())
                        }
                        None => Step::Returned(known.fixed(), failure.clone()),
                    }
                }
                false => {
                    let part = crate::money::Minor::new(funds.amount_minor);
                    Step::PartReturned(known.fixed(), failure.clone(), part)
                }
            };
            match feature.commit(&object, step, Writes { rows, fence: None, beside: None }).await {
                Err(problem) if problem.code() == ErrorCode::StateConflict => {}
                other => return other.map(drop),
            }
        }
        Err(Problem::new(ErrorCode::ServiceUnavailable).retry_after(1))
    }

    /// The payment stands, and the recipient should be addressed otherwise.
    async fn corrected<F: Feature>(
        &self,
        feature: &F,
        route: &ReadyRoute,
        attempt: &Attempt,
        (told, heard): (rail::Correction, &Heard),
    ) -> Result<(), Problem> {
        let rail::Correction { code, message, fields } = told;
        let declared = &route.rail.declaration.recipient.fields;
        let is_declared = |(name, value): &(String, String)| {
            let terms = declared.iter().find(|terms| terms.name == *name);
            let most = |terms: &FieldTerms| terms.max_length.unwrap_or(CORRECTED_MAX);
            terms.is_some_and(|terms| value.chars().count() <= most(terms))
        };
        let fields = fields.into_iter().map(|field| (field.name, field.value));
        let fields = fields.filter(is_declared).collect();
        let cut = |text: String| text.chars().take(CORRECTED_MAX).collect::<String>();
        let (code, message) = (cut(code), cut(message));
        let words = format!("corrected ({code}): {message}");
        let correction = Correction { code, message, fields };
        for _ in 0..TRIES {
            let object = object(feature, attempt).await?;
            let order = feature.order(&object)?;
            let calls = Calls { engine: self, order: &order };
            let by = (&*route.rail, heard.operation);
            let rows = vec![calls.evidence(Some(attempt), by, &heard.called, &words)];
            let step = Step::Corrected(attempt.fixed(), correction.clone());
            match feature.commit(&object, step, Writes { rows, fence: None, beside: None }).await {
                Err(problem) if problem.code() == ErrorCode::StateConflict => {}
                other => return other.map(drop),
            }
        }
        Err(Problem::new(ErrorCode::ServiceUnavailable).retry_after(1))
    }

    /// Lets whoever is at a payment finish, and asks about it where it is still on its way.
    async fn finish_first<F: Feature>(
        &self,
        feature: &F,
        attempt: &Attempt,
    ) -> Result<(), Problem> {
        let Some(claim) = self.claimed(attempt).await? else { return Ok(()) };
        match self.work(feature, claim).await {
            Err(problem) if problem.code() == ErrorCode::StateConflict => Ok(()),
            other => other,
        }
    }
}

/// What an attempt belongs to.
async fn object<F: Feature>(feature: &F, attempt: &Attempt) -> Result<F::Object, Problem> {
    let gone = || Problem::internal("an attempt without its object");
    feature.load(&attempt.transfer_id).await?.ok_or_else(gone)
}

/// A finding in words, with the network's own as `shown` shows them.
pub(super) fn said(finding: &Finding, shown: impl Fn(&str) -> String) -> String {
    match finding {
        Finding::Paid(receipt) => format!("paid ({})", receipt.code),
        Finding::Accepted(receipt) => format!("accepted ({})", receipt.code),
        Finding::Refused(Refusal { code, message }) => {
            format!("refused ({code}): {}", shown(message))
        }
        Finding::Returned(ReturnOfFunds { code, message, amount_minor, .. }) => {
            format!("{amount_minor} came back ({code}): {}", shown(message))
        }
        Finding::Unknown(why) => format!("unknown: {}", shown(why)),
        Finding::NeverReceived(why) => format!("never received: {}", shown(why)),
    }
}

impl Attempt {
    /// Whether the bank itself has said a moment ago how it ended.
    fn was_just_answered(&self, now: crate::clock::Moment) -> bool {
        let is_banks = matches!(
            self.state,
            AttemptState::Paid | AttemptState::Refused | AttemptState::Returned
        );
        is_banks && self.answered_at.is_some_and(|at| at.after(limits::ANSWER_FRESH) > now)
    }
}
