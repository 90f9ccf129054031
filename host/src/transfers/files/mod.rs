//! Payments by file: collected until a window closes, assembled by the rail, committed, delivered,
//! acknowledged, settled.
//!
//! | state | what is durable | what happens next |
//! |---|---|---|
//! | `collecting` | payments that have joined: attempts that name the file | its window closes |
//! | `closed` | its numbers | the rail assembles it; the same every time |
//! | `assembled` | bytes, digest, and what the network calls each payment | it is delivered; `closed` again where payments have ended since and it has not left |
//! | `sending` | that a byte may leave | a host that dies here has it looked for |
//! | `unclear` | that a byte may have left | it is looked for, and never made again |
//! | `delivered` | that the network has it | the network says whether it carries it out |
//! | `acknowledged` | that it does | its payments are paid when the value date has come |
//! | `refused` | that nothing of it is carried out | its payments join another file, once |
//!
//! A file is somebody's while he has its lease; a write under an older fence changes nothing. What
//! the network says of a file counts in any case: it takes the file out of the hands of whoever
//! holds it. Its payments keep their own work, which is due when the value date has come, and
//! at once where the network has spoken.

mod assembly;
mod claims;
pub mod closing;
mod delivery;
mod entries;
pub(super) mod entry;
mod feeds;
mod news;
pub mod table;
mod transport;

use std::pin::Pin;
use std::sync::Arc;

use sha2::{Digest as _, Sha256};

use crate::cases::{self, Case, CaseKind};
use crate::clock::Moment;
use crate::config::limits;
use crate::db;
use crate::env::Env;
use crate::error::{ErrorCode, Problem};
use crate::id::PaymentFileId;
use crate::ledger::Command;
use crate::money::{Currency, Minor};
use crate::rails::ReadyRoute;

use super::Transfers;
use super::attempt::{self, Attempt};
use super::order::{Feature, Order};

use table::{FileState, Lease, PaymentFile};

/// What comes after a step.
enum Next {
    /// The next step, under the same claim.
    Go,
    /// Nothing before this instant.
    At(Moment),
}

/// What leads back to where it is called from: news of a file is news of its payments.
type Doing<'a> = Pin<Box<dyn Future<Output = Result<(), Problem>> + Send + 'a>>;

impl Transfers {
    /// Makes and delivers files, and fetches what lies ready, until the host is told to stop.
    pub async fn carry_files<F: Feature>(self, feature: F) {
        while !self.stopping.is_cancelled() {
            match db::in_time(claims::claim_due(&self.db, self.now())).await {
                Ok(files) => {
                    for mut file in files {
                        let (engine, feature) = (self.clone(), feature.clone());
                        self.tasks.spawn(async move {
                            if let Err(problem) = engine.run_in_turn(&feature, &mut file).await {
                                engine.set_aside(&file, &problem).await;
                            }
                        });
                    }
                }
                Err(cause) => tracing::warn!(%cause, "looking for files"),
            }
            if let Err(problem) = db::in_time(self.poll_what_is_due(&feature)).await {
                tracing::warn!(%problem, "looking for what lies ready");
            }
            tokio::select! {
                () = self.stopping.cancelled() => return,
                () = tokio::time::sleep(limits::FILES_POLL) => {}
            }
        }
    }

    /// Does what there is to do about a file of the sandbox, and takes in what lies ready.
    fn file_now<'a, F: Feature>(
        &'a self,
        feature: &'a F,
        route: &'a Arc<ReadyRoute>,
        id: &'a PaymentFileId,
    ) -> Doing<'a> {
        let (engine, feature) = (self.clone(), feature.clone());
        let (route, id) = (Arc::clone(route), id.clone());
        // Its own task: news of a file leads back to where this is called from, and deep.
        let doing =
            self.tasks.spawn(async move { engine.file_through(&feature, &route, &id).await });
        Box::pin(async move { doing.await.map_err(Problem::internal)? })
    }

    async fn file_through<F: Feature>(
        &self,
        feature: &F,
        route: &Arc<ReadyRoute>,
        id: &PaymentFileId,
    ) -> Result<(), Problem> {
        let before = table::get(self.db.pool(), id).await?;
        if let Some(mut file) = claims::claim_one(&self.db, id).await? {
            self.run_file(feature, &mut file).await?;
        }
        let after = table::get(self.db.pool(), id).await?;
        let state = |file: &Option<PaymentFile>| file.as_ref().map(|file| file.state);
        // What was not answered a moment ago is asked about when somebody wants to know.
        let is_new = state(&before) != state(&after);
        match state(&after) {
            Some(FileState::Unclear | FileState::Assembled) if is_new => Ok(()),
            _ => self.poll(feature, route).await,
        }
    }

    /// Does what there is to do about a file that is due. In the sandbox nobody polls otherwise.
    async fn run_in_turn<F: Feature>(
        &self,
        feature: &F,
        file: &mut PaymentFile,
    ) -> Result<(), Problem> {
        self.run_file(feature, file).await?;
        if file.env == Env::Test {
            let route = self.routes.get(&file.route_id).await?;
            self.poll(feature, &route).await?;
        }
        Ok(())
    }

    /// Takes step after step, until there is nothing to do for a while.
    async fn run_file<F: Feature>(
        &self,
        feature: &F,
        file: &mut PaymentFile,
    ) -> Result<(), Problem> {
        loop {
            let route = self.routes.get(&file.route_id).await?;
            if self.is_forgotten(file).await? {
                return Ok(());
            }
            let is_shut = file.env == Env::Live && self.quarantine.is_closed();
            let next = match file.state {
                // It may have left, for all that the database knows.
                _ if file.is_unsent() && (is_shut || file.is_held) => {
                    let why = if is_shut { "nothing live is sent" } else { "it is held back" };
                    self.kept_back(&route, file, why).await?
                }
                FileState::Collecting => self.close(file).await?,
                FileState::Closed => self.assemble(feature, &route, file).await?,
                FileState::Assembled => self.deliver(feature, &route, file).await?,
                FileState::Sending | FileState::Unclear => self.look(&route, file).await?,
                FileState::Delivered => self.overdue(&route, file).await?,
                FileState::Acknowledged | FileState::Refused | FileState::Empty => {
                    Next::At(self.now())
                }
            };
            match next {
                Next::Go => table::save(&self.db, file, Lease::Kept).await?,
                Next::At(due_at) => {
                    file.due_at = due_at;
                    table::save(&self.db, file, Lease::Ended).await?;
                    return match file.state {
                        FileState::Empty => {
                            self.end_file_cases(file, "Nothing was left in it.".to_owned()).await
                        }
                        _ => Ok(()),
                    };
                }
            }
        }
    }

    /// A file does not leave for now. A person is told once its network should have answered.
    async fn kept_back(
        &self,
        route: &ReadyRoute,
        file: &PaymentFile,
        why: &str,
    ) -> Result<Next, Problem> {
        let now = self.now();
        if file.env == Env::Live && self.acknowledged_by(route, file)? <= now {
            match file.may_have_left {
                true => self.unacknowledged(file).await?,
                false => self.stuck(file, why).await?,
            }
        }
        Ok(Next::At(now.after(limits::FILE_HELD_POLL)))
    }

    /// Closes the window of a file, once everybody who may join has.
    async fn close(&self, file: &mut PaymentFile) -> Result<Next, Problem> {
        let now = self.now();
        // Until the window was to close, whoever was in time may join.
        let is_late = file.planned_at.after(limits::WINDOW_GRACE) <= now;
        let was_early = file.env == Env::Live && file.closes_at < file.planned_at;
        if was_early && closing::call_in(&self.db, file).await? > 0 {
            self.wake();
            return Ok(Next::At(now.after(limits::FILES_POLL)));
        }
        let is_waited_for = file.env == Env::Live
            && !is_late
            && entries::is_waited_for(self.db.pool(), file).await?;
        if is_waited_for {
            return Ok(Next::At(now.after(limits::FILES_POLL)));
        }
        // From here on nobody joins.
        file.state = FileState::Closed;
        Ok(Next::Go)
    }

    /// What has joined a file; what is too much for one goes into further ones. With its numbers,
    /// which are allotted once.
    async fn divided(
        &self,
        route: &ReadyRoute,
        file: &mut PaymentFile,
    ) -> Result<Vec<Attempt>, Problem> {
        let mut joined = attempt::list_in_file(self.db.pool(), &file.id).await?;
        let timetable = timetable(route)?;
        let most = timetable.terms.entries_max;
        while joined.len() > most {
            let surplus = joined.split_off(joined.len() - most);
            let surplus: Vec<_> = surplus.into_iter().map(|entry| entry.id).collect();
            let further = file.further(self.ids.id(), self.now());
            entries::split(&self.db, &surplus, (file, &further)).await?;
        }
        if file.number == 0 && !joined.is_empty() {
            let count = i64::try_from(joined.len()).unwrap_or(i64::MAX);
            let by = timetable.numbered_by.as_deref();
            let numbers = entries::allot(&self.db, (file, by), count).await?;
            (file.number, file.number_of_day) = (numbers.number, numbers.number_of_day);
            file.first_entry = numbers.first_entry;
            table::save(&self.db, file, Lease::Kept).await?;
        }
        Ok(joined)
    }

    /// Whether a file may have left before the database was restored. It is held back, once for each
    /// time that the database was, and a person has to say whether the bank has it.
    async fn is_forgotten(&self, file: &PaymentFile) -> Result<bool, Problem> {
        let is_before = |moment| self.quarantine.asks_first(file.env, moment);
        let is_decided = file.restored_at.is_some_and(|at| !is_before(at));
        if !file.is_unsent() || !is_before(file.created_at) || is_decided {
            return Ok(false);
        }
        let summary = format!(
            "A file over {} of {} may have been delivered before the database was restored.",
            file.route, file.business_date
        );
        let before = file.restored_at.map_or(0, Moment::micros).to_string();
        let case = (CaseKind::FileForgotten, before.as_str(), summary);
        self.file_case(file, case, serde_json::json!({ "window": file.window })).await?;
        // The last thing: whoever dies before it says the same again.
        // By whichever clock: it is held back once.
        let at = self.now().max(self.quarantine.decided_from());
        let held = PaymentFile { restored_at: Some(at), ..file.clone() };
        self.writer.work(claims::hold_restored(&held, (&self.ids, self.now()))).await?;
        Ok(true)
    }

    /// Lets an operator decide nothing about a file that the database may have forgotten to have
    /// left: it is held back first, and shown as one that may have.
    ///
    /// # Errors
    /// `state_conflict` where that is so; the database failed.
    pub async fn refuse_in_doubt(&self, file: &PaymentFile) -> Result<(), Problem> {
        let refusal = |why| Err(Problem::because(ErrorCode::StateConflict, why));
        if file.env == Env::Live && file.is_unsent() && self.quarantine.is_closed() {
            let why = "It may have left before the database was restored: end the quarantine \
                       first, and look again.";
            return refusal(why);
        }
        match self.is_forgotten(file).await? {
            true => refusal("It may have left before the database was restored: look again."),
            false => Ok(()),
        }
    }

    /// Leaves a file alone for a while that could not be worked on: it keeps no other one out.
    async fn set_aside(&self, file: &PaymentFile, problem: &Problem) {
        let now_is = table::get(self.db.pool(), &file.id).await;
        if let Ok(Some(now_is)) = now_is
            && now_is.fence != file.fence
        {
            // The network, or an operator, has said something meanwhile.
            return;
        }
        tracing::error!(file.id = %file.id, %problem, "a file of payments");
        let now = self.now();
        let at = now.after(limits::FILE_HELD_POLL);
        if file.env == Env::Live && file.closes_at.after(limits::FILE_RETRY) <= now {
            let told = self.stuck(file, problem.message()).await;
            told.unwrap_or_else(|cause| tracing::error!(%cause, "telling of a file"));
        }
        if let Err(cause) = claims::put_off(&self.db, file, (at, problem.message())).await {
            tracing::warn!(%cause, file.id = %file.id, "putting a file off");
        }
    }

    /// Tells a person of a file that stands still.
    async fn stuck(&self, file: &PaymentFile, why: &str) -> Result<(), Problem> {
        let name = file.name.as_deref().unwrap_or("a file");
        let summary = format!("Nothing becomes of {name} over {}: {why}.", file.route);
        let case = (CaseKind::FileStuck, why, summary);
        self.file_case(file, case, serde_json::json!({ "state": file.state.as_str() })).await
    }

    /// Opens a case about a file, once for each thing that is said.
    async fn file_case(
        &self,
        file: &PaymentFile,
        (kind, said, summary): (CaseKind, &str, String),
        evidence: serde_json::Value,
    ) -> Result<(), Problem> {
        let currency = Currency::parse(&file.currency);
        let case = Case {
            id: self.ids.id(),
            kind,
            fingerprint: format!("{}/{}/{}", kind.as_str(), file.id, digest_of(said)),
            env: file.env,
            merchant_id: None,
            subject_type: "file",
            subject_id: file.id.to_string(),
            route: Some(file.route.clone()),
            amount: currency.map(|currency| (currency, Minor::new(file.amount_minor))),
            summary,
            evidence,
            opened_at: self.now(),
        };
        self.writer.work(case.opening(&self.ids)).await.map(drop)
    }

    /// Whether a network has both refused and acknowledged a file, or has said of it, since it answered,
    /// what does not fit that, and nobody has looked yet. What was said a moment before may have been
    /// written down by another clock.
    ///
    /// # Errors
    /// The database cannot be read.
    pub async fn is_in_question(&self, file: &PaymentFile) -> Result<bool, Problem> {
        let about = (file.id.as_str(), CaseKind::FileContradicted);
        let since = file.answered_at.unwrap_or_default().before(limits::CLOCKS_APART);
        Ok(file.is_contradicted || cases::sql::is_open_since(self.db.pool(), about, since).await?)
    }

    /// Ends the cases about what nobody knew of a file.
    async fn end_file_cases(&self, file: &PaymentFile, evidence: String) -> Result<(), Problem> {
        let ended = cases::sql::Ended { of: file.id.to_string(), evidence, at: self.now() };
        let rows = vec![cases::sql::FILE_CASES_ENDED.change(&ended)];
        self.writer.work(Command::rows(rows)).await.map(drop)
    }
}

/// Payments that are read, and written, together.
const CHUNK: usize = 500;

/// Attempts with what was ordered, where that can be read.
async fn orders<F: Feature>(
    feature: &F,
    attempts: Vec<Attempt>,
) -> Result<Vec<(Attempt, Result<Order, Problem>)>, Problem> {
    let mut orders = Vec::with_capacity(attempts.len());
    for chunk in attempts.chunks(CHUNK) {
        let ids: Vec<String> = chunk.iter().map(|it| it.transfer_id.clone()).collect();
        let mut objects = feature.load_all(&ids).await?;
        for attempt in chunk {
            let object = objects.remove(&attempt.transfer_id);
            let unreadable = || Problem::internal("it is not there, or cannot be read");
            let order = object.ok_or_else(unreadable).and_then(|object| feature.order(&object));
            orders.push((attempt.clone(), order));
        }
    }
    Ok(orders)
}

/// What tells one thing that is said from another, in few characters.
fn digest_of(said: &str) -> String {
    hex::encode(&Sha256::digest(said)[..6])
}

fn timetable(route: &ReadyRoute) -> Result<&crate::rails::files::Timetable, Problem> {
    route.timetable().ok_or_else(|| Problem::internal("a file over a route that makes none"))
}
