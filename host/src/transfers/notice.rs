//! Messages that a network sends by itself.
//!
//! The host checks who speaks: by a token, in a header or in the address that the network was
//! given, or by the signature of the message. What the rail reads out of a message is a hint: the
//! host asks the rail and believes only the answer, unless the rail declares that this channel is
//! to be believed. A message speaks for payments that went over a route whose credentials it
//! carries, and for no others; what it says of others becomes a case. A paused route takes none,
//! but from a network that says a thing once: others say it again when the route is resumed.

use std::sync::Arc;
use std::time::Duration;

use secrecy::ExposeSecret as _;
use sha2::{Digest as _, Sha256};
use subtle::ConstantTimeEq as _;

use crate::cases::{self, Case, CaseKind};
use crate::config::limits;
use crate::env::Env;
use crate::error::{ErrorCode, Problem};
use crate::ledger::{Command, Effects};
use crate::rails::declaration::NoticeAuth;
use crate::rails::route::ReadyRoute;
use crate::wasm::egress::Exchange;
use crate::wasm::rail::{
    Called, Finding, Message, News, Notice, Refusal, Reply, ReturnOfFunds, Subject,
};

use super::Transfers;
use super::attempt::{self, Attempt, AttemptState};
use super::calls::{Answered, Calls};
use super::carry::{Carry, Over};
use super::finding::{Learnt, Same};
use super::order::{Failure, Feature, Order, OrderStage, Step, Writes};
use super::work::{Claim, Claimed};

/// How long an answer to the network waits for the rail to be asked; the asking goes on.
const ASK_WAIT: Duration = Duration::from_secs(2);
/// How often a claim is looked for that somebody holds.
const POLL: Duration = Duration::from_millis(50);
/// How often an object is read again that somebody changes meanwhile.
const TRIES: u32 = 5;

/// Signatures in base64, of keys from 2048 to 8192 bits.
const SIGNATURE_LENGTHS: std::ops::RangeInclusive<usize> = 342..=1_368;

/// Longest name of a payment that is shown where nobody knows it.
const REFERENCE_SHOWN_MAX: usize = 80;

/// Texts with more digits than that are masked, where nobody knows what they are.
const DIGITS_SHOWN_MAX: usize = 6;

/// A message as it arrived.
pub struct Arrived<'a> {
    /// Through which door.
    pub by: Door<'a>,
    /// The message, still without its body.
    pub message: Message,
}

/// What the network is answered.
pub struct Answer {
    /// The content type.
    pub content_type: String,
    /// Further headers.
    pub headers: Vec<(String, String)>,
    /// The body.
    pub body: Vec<u8>,
}

/// A way in for networks.
#[derive(Clone, Copy, Debug)]
pub enum Door<'a> {
    /// That of a rail, whose networks present a bearer token each.
    Rail {
        /// Test or live.
        env: Env,
        /// The rail's name.
        rail: &'a str,
        /// The bearer token, if there was one.
        token: Option<&'a str>,
    },
    /// That of one route, whose network was given an address with a token in it.
    Route {
        /// The route's id.
        id: &'a str,
        /// The token.
        token: &'a str,
    },
}

/// What a rail makes of a message: the answer for the network, and what it says.
type Read = Called<Result<(Reply, Vec<Notice>), String>>;

impl Transfers {
    /// Takes a message in; answers what the network is to be told.
    ///
    /// # Errors
    /// `not_found` for a rail or path that takes none, `unauthorized` without the right token,
    /// `invalid_body` for a message that the rail does not take, `service_unavailable` where
    /// the network should say it again, as it should to a route that is paused.
    pub async fn receive<F: Feature>(
        &self,
        feature: &F,
        arrived: Arrived<'_>,
        body: impl Future<Output = Result<Vec<u8>, Problem>>,
    ) -> Result<Answer, Problem> {
        let Arrived { by, mut message } = arrived;
        // Nobody is listened to before it is known who speaks; but whoever signs what he says.
        let routes = match self.is_signed(by, &message).await? {
            true => {
                message.body = body.await?;
                self.authenticate(by, &message).await?
            }
            false => {
                let routes = self.authenticate(by, &message).await?;
                message.body = body.await?;
                routes
            }
        };
        let route = &routes[0];
        let called = route.rail.code.receive(&route.pure_grant(self.now()), &message).await;
        let mut called = called;
        let heard = Exchange::heard(&message.method, &message.path, &message.body);
        called.exchanges.push(heard);
        let (reply, notices) = match &called.result {
            Ok(Ok(read)) => read.clone(),
            Ok(Err(why)) => return Err(Problem::because(ErrorCode::InvalidBody, why.clone())),
            Err(broken) => return Err(Problem::internal(broken.clone())),
        };
        let headers = route.reply_headers(&reply).map_err(Problem::internal)?;
        let answer = Answer { content_type: reply.content_type, headers, body: reply.body };
        // Its own task: a network that hangs up must not leave half of it undone.
        let (engine, feature) = (self.clone(), feature.clone());
        let taking = self.tasks.spawn(async move {
            let (read, mut first) = ((&message, &called), Ok(()));
            // One that cannot be taken now keeps none of the others out.
            for notice in notices {
                let taken = engine.take(&feature, &routes, notice, read).await;
                first = first.and(taken);
            }
            first
        });
        taking.await.map_err(Problem::internal)??;
        Ok(answer)
    }

    /// Whether a message is one that may be known by its signature, so that its body has to be
    /// read first: it carries what looks like one, for a route that could check it.
    async fn is_signed(&self, by: Door<'_>, message: &Message) -> Result<bool, Problem> {
        Ok(self.routes.all().await?.iter().any(|route| {
            let terms = route.rail.declaration.notice(&message.method, &message.path);
            let terms = terms.and_then(|terms| terms.auth.signature.as_ref());
            let is_ready = route.missing().is_none() && by.leads_to(route);
            terms.filter(|_| is_ready).is_some_and(|terms| {
                let mut headers = message.headers.iter();
                let found = headers.find(|(name, _)| *name == terms.header);
                let is_plausible = |it: &String| SIGNATURE_LENGTHS.contains(&it.len());
                found.is_some_and(|(_, it)| is_plausible(it)) && route.is_spoken_for(by.token())
            })
        }))
    }

    /// The routes whose token or signature the message carries, at least one.
    async fn authenticate(
        &self,
        by: Door<'_>,
        message: &Message,
    ) -> Result<Vec<Arc<ReadyRoute>>, Problem> {
        let (mut is_known, mut matching) = (false, Vec::new());
        for route in self.routes.all().await?.iter() {
            let terms = route.rail.declaration.notice(&message.method, &message.path);
            let Some(terms) = terms else { continue };
            if route.missing().is_some() || !by.leads_to(route) {
                continue;
            }
            is_known = true;
            if by.is_opened(route, &terms.auth, message) {
                matching.push(Arc::clone(route));
            }
        }
        // Who was given an address says a thing once, and is heard even then.
        let may_wait = matches!(by, Door::Rail { .. });
        let is_paused = may_wait && matching.iter().all(|route| route.route.is_paused);
        match (matching.is_empty(), is_known) {
            (false, _) if is_paused => Err(later(&matching[0])),
            (false, _) => Ok(matching),
            (true, true) => Err(Problem::new(ErrorCode::Unauthorized)),
            (true, false) => Err(Problem::new(ErrorCode::NotFound)),
        }
    }

    async fn take<F: Feature>(
        &self,
        feature: &F,
        routes: &[Arc<ReadyRoute>],
        notice: Notice,
        (message, called): (&Message, &Read),
    ) -> Result<(), Problem> {
        let rail = &routes[0].route.rail;
        let found = attempt::find_attempts(self.db.pool(), rail, &notice.about).await?;
        let over = |found: &Attempt| routes.iter().find(|route| route.route.id == found.route_id);
        // A name of the network's that several payments have says which of them nobody.
        let mut ours = found.into_iter().filter(|found| over(found).is_some());
        let found = ours.next().filter(|_| ours.next().is_none());
        let route = found.as_ref().and_then(over);
        let terms = routes[0].rail.declaration.notice(&message.method, &message.path);
        let may_wait = terms.is_some_and(|terms| !terms.auth.path_token);
        if let Some(paused) = route.filter(|route| may_wait && route.route.is_paused) {
            return Err(later(paused));
        }
        let Some((attempt, route)) = found.zip(route) else {
            return self.unknown(&routes[0], message, &notice).await;
        };
        match notice.news {
            News::Found(Finding::Returned(funds)) if route.believes(message) => {
                self.returned(feature, route, attempt, (funds, called)).await
            }
            News::Found(finding) => {
                let same = Same::of(&attempt.fingerprint, route.fingerprints(&self.keyring));
                // Another gateway than it was sent to proves that it was paid, and nothing else.
                let is_proof =
                    |learnt: &Learnt| matches!(learnt, Learnt::Paid(_)) || same != Same::Nothing;
                let definite = Learnt::from_notice(&finding)
                    .filter(|learnt| route.believes(message) && is_proof(learnt));
                let order = feature.order(&object(feature, &attempt).await?)?;
                match definite.map(|learnt| learnt.of(order.amount)) {
                    open @ (Some(Learnt::Unknown(_)) | None) => {
                        let is_answer = route.is_answer(message);
                        let why =
                            open.map_or_else(|| said(&finding, str::to_owned), |it| it.words());
                        let words = format!("told: {why}");
                        let with = (words.as_str(), called);
                        self.write_down(&order, route, &attempt, with).await?;
                        match is_answer {
                            true => Ok(()),
                            false => self.ask_about(feature, attempt).await,
                        }
                    }
                    Some(learnt) => self.told(feature, route, attempt, (learnt, called)).await,
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
        }
    }

    /// What became of a payment, said by a network that is believed. Whoever is at the payment
    /// finishes first: it may be the very call that this is the answer to.
    async fn told<F: Feature>(
        &self,
        feature: &F,
        route: &Arc<ReadyRoute>,
        attempt: Attempt,
        (learnt, called): (Learnt, &Read),
    ) -> Result<(), Problem> {
        let words = learnt.words();
        let claim = match self.claimed(&attempt).await {
            Ok(claim) => claim,
            Err(problem) => {
                // The network may not say it twice: whoever is at it asks once more.
                let order = feature.order(&object(feature, &attempt).await?)?;
                self.write_down(&order, route, &attempt, (&words, called)).await?;
                self.nudge(&attempt.transfer_id).await?;
                return Err(problem);
            }
        };
        let object = object(feature, &attempt).await?;
        let order = feature.order(&object)?;
        let calls = Calls { engine: self, order: &order };
        let evidence = calls.evidence(Some(&attempt), (&route.rail, "receive"), called, &words);
        let Some(claim) = claim else {
            return self.late(feature, &attempt, (learnt, evidence)).await;
        };
        let known = attempt::list_attempts(self.db.pool(), &order.id).await?;
        let open = known.iter().find(|known| known.state == AttemptState::Open).cloned();
        let own = known.into_iter().find(|known| known.id == attempt.id);
        let own = own.ok_or_else(|| Problem::internal("an attempt is gone"))?;
        let over = Over::new(Attempt { bytes_left: true, ..own }, Arc::clone(route));
        let answered = Answered { learnt, evidence, was_asked: false };
        let carry = Carry { engine: self, feature, claim, object, order };
        match open {
            Some(open) if open.id == attempt.id => carry.conclude(over, answered).await,
            other => carry.overtaken(other, over, answered).await,
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
                // The network tries again.
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
        (words, called): (&str, &Read),
    ) -> Result<(), Problem> {
        let calls = Calls { engine: self, order };
        let evidence = calls.evidence(Some(attempt), (&route.rail, "receive"), called, words);
        self.write_evidence(evidence).await
    }

    /// Money came back. It may be told before this host knows that it was paid, or twice.
    async fn returned<F: Feature>(
        &self,
        feature: &F,
        route: &ReadyRoute,
        attempt: Attempt,
        (funds, called): (ReturnOfFunds, &Read),
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
            let known = attempts.into_iter().find(|known| known.id == attempt.id);
            let known = known.ok_or_else(|| Problem::internal("an attempt is gone"))?;
            let calls = Calls { engine: self, order: &order };
            let message = route.rail.redactor.text(&funds.message, &order.recipient);
            let own = funds.network_id.as_ref().map(|id| format!(", {id}")).unwrap_or_default();
            let words = format!("returned ({}{own}): {message}", funds.code);
            let failure =
                Failure { code: funds.code.clone(), message, id: funds.network_id.clone() };
            let evidence = calls.evidence(Some(&known), (&route.rail, "receive"), called, &words);
            if order.env == Env::Test && funds.amount_minor > order.amount.units() {
                let message = "More came back than was sent.";
                return Err(Problem::because(ErrorCode::InvalidBody, message));
            }
            let is_whole = funds.amount_minor == order.amount.units();
            let is_back = known.state == AttemptState::Returned;
            let is_same = own.is_empty()
                || known.message.as_ref().is_some_and(|known| known.contains(&format!("{own})")));
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
                    rows.extend(super::carry::no_longer_unknown(&back, now));
                    Step::Returned(known.fixed(), failure.clone())
                }
                false => {
                    let part = crate::money::Minor::new(funds.amount_minor);
                    Step::PartReturned(known.fixed(), failure.clone(), part)
                }
            };
            match feature.commit(&object, step, Writes { rows, fence: None }).await {
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

    /// A message about a payment that did not go over a route of its sender.
    async fn unknown(
        &self,
        route: &ReadyRoute,
        message: &Message,
        Notice { about, news }: &Notice,
    ) -> Result<(), Problem> {
        let (Subject::Reference(named) | Subject::NetworkId(named)) = about;
        let shown = named.chars().filter(|c| !c.is_control()).take(REFERENCE_SHOWN_MAX);
        let reference: &str = &shown.collect::<String>();
        let said = match news {
            News::Ask => "there is news".to_owned(),
            News::Found(finding) => said(finding, masked),
        };
        let (env, rail) = (route.route.env, &route.route.rail);
        if env == Env::Test {
            tracing::info!(rail.name = rail, reference, "a notice about a payment unknown here");
            return Ok(());
        }
        // Two messages that say the same of different money are two, by the network's own name
        // for it or, where nothing is said, by all of their words.
        let own = match news {
            News::Found(Finding::Returned(ReturnOfFunds { network_id, .. })) => network_id.clone(),
            News::Ask => Some(hex::encode(Sha256::digest(&message.body))),
            News::Found(_) => None,
        };
        let own = own.unwrap_or_default();
        let digest = hex::encode(Sha256::digest(format!("{reference}\n{said}\n{own}")));
        let case = Case {
            id: self.ids.id(),
            kind: CaseKind::UnknownReference,
            fingerprint: format!("unknown_reference/{env}/{rail}/{digest}"),
            env,
            merchant_id: None,
            subject_type: "route",
            subject_id: route.route.id.to_string(),
            route: Some(route.route.name.clone()),
            amount: None,
            summary: format!(
                "The network of {} spoke of {reference}, which was not sent there from here.",
                route.route.name
            ),
            evidence: serde_json::json!({ "reference": reference, "said": said }),
            opened_at: self.now(),
        };
        let (fingerprint, ids) = (case.fingerprint.clone(), Arc::clone(&self.ids));
        let command = Command::new(move |locked| {
            let rows = case.open_once(locked, &ids);
            Ok(Effects { rows, ..Effects::default() }.and(()))
        });
        let command = command.row(&cases::sql::CASES_BY_FINGERPRINT, fingerprint);
        self.writer.work(command).await.map(drop)
    }
}

impl<'a> Door<'a> {
    /// The bearer token, if there is one.
    const fn token(&self) -> Option<&'a str> {
        match self {
            Self::Rail { token, .. } => *token,
            Self::Route { .. } => None,
        }
    }

    fn leads_to(&self, route: &ReadyRoute) -> bool {
        match self {
            Self::Rail { env, rail, .. } => {
                (route.route.env, route.route.rail.as_str()) == (*env, *rail)
            }
            Self::Route { id, .. } => route.route.id.as_str() == *id,
        }
    }

    fn is_opened(&self, route: &ReadyRoute, auth: &NoticeAuth, message: &Message) -> bool {
        match (self, auth) {
            // Nothing is nobody's token, whatever was configured.
            (Self::Rail { token: Some(token), .. }, NoticeAuth { bearer: Some(bearer), .. })
                if !token.is_empty() =>
            {
                let secret = route.secret(bearer).map(|secret| secret.expose_secret().as_bytes());
                secret.is_some_and(|secret| secret.ct_eq(token.as_bytes()).into())
            }
            (Self::Rail { token, .. }, NoticeAuth { signature: Some(terms), .. }) => {
                let mut headers = message.headers.iter();
                let found = headers.find(|(name, _)| *name == terms.header);
                found.is_some_and(|(_, signature)| {
                    route.is_signed(&terms.key, *token, (&message.body, signature))
                })
            }
            (Self::Route { token, .. }, NoticeAuth { path_token: true, .. }) => route.opens(token),
            _ => false,
        }
    }
}

/// What an attempt belongs to.
async fn object<F: Feature>(feature: &F, attempt: &Attempt) -> Result<F::Object, Problem> {
    let gone = || Problem::internal("an attempt without its object");
    feature.load(&attempt.transfer_id).await?.ok_or_else(gone)
}

/// What a network is told that speaks to a paused route.
fn later(paused: &ReadyRoute) -> Problem {
    tracing::warn!(route.name = paused.route.name, "a notice for a route that is paused");
    let message = "This route is paused. Say it again later.";
    Problem::because(ErrorCode::ServiceUnavailable, message).retry_after(60)
}

/// A finding in words, with the network's own as `shown` shows them.
fn said(finding: &Finding, shown: impl Fn(&str) -> String) -> String {
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

/// A text about nobody that is known here: whatever may be an account's number is masked.
fn masked(text: &str) -> String {
    let digits = text.chars().filter(char::is_ascii_digit).count();
    match digits <= DIGITS_SHOWN_MAX {
        true => text.to_owned(),
        false => text.chars().map(|c| if c.is_ascii_digit() { '*' } else { c }).collect(),
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
