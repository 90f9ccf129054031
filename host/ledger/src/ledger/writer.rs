//! The threads that own a connection each and turn what waits into one transaction.
//!
//! A thread of its own, and not a task among those of requests: on PostgreSQL a batch takes half a
//! dozen trips to the database, and after each it would have to wait for whatever else is ready to
//! run. The system lets a thread go on that has slept. SQLite's statements run on this very thread.

use std::any::Any;
use std::hash::{DefaultHasher, Hash as _, Hasher as _};
use std::marker::PhantomData;
use std::panic::AssertUnwindSafe;
use std::sync::Arc;
use std::task::{Context, Poll};
use std::time::{Duration, Instant};

use futures::FutureExt as _;
use tokio::runtime::Handle;
use tokio::sync::mpsc::error::TrySendError;
use tokio::sync::{mpsc, oneshot};
use tokio_util::sync::CancellationToken;
use tokio_util::task::TaskTracker;

use crate::clock::Clock;
use crate::config::limits;
use crate::db::{Checkpointer, Db, Engine, Moves, Native, REPLACED};
use crate::error::{ErrorCode, Problem, database};
use crate::id::{IdGenerator, WalletId};

use super::batch::{self, Interrupted, IsClean, Outcomes, Surroundings, Try};
use super::command::{Command, Done};
use super::hook::OutboxHook;
use super::lane_health::LaneHealth;
use super::metrics::WriterMetrics;
use super::places::{Kind, Places};
use super::seal::{self, Chain};
use super::state::{AnyCommand, Computed, Outcome};

struct Queued {
    command: AnyCommand,
    answer: oneshot::Sender<Outcome>,
    since: Instant,
}

/// Where commands are handed in. Cheap to clone; its threads end when told to, or when the
/// last one is dropped.
///
/// There is a lane for work, and there are some for requests. Work (what a bank answered, what was
/// delivered, what an operator does) waits for room in its queue: what is under way comes to an end
/// whatever else arrives. Requests are turned away when too many wait; those that name the same
/// wallet first are in one lane, so that two lanes seldom want the same rows. On PostgreSQL each
/// lane has a thread and a connection: one decides its batch while the database carries out
/// another's. On SQLite, where one writes at a time, there is one lane for requests, and one thread
/// serves both, work first.
#[derive(Clone)]
pub struct Writer {
    requests: Arc<[Lane]>,
    work: Lane,
    places: Arc<Places>,
    metrics: Arc<WriterMetrics>,
    stopping: CancellationToken,
    threads: TaskTracker,
}

/// A queue, and how long the thread that serves it has been at it.
#[derive(Clone)]
struct Lane {
    kind: Kind,
    queue: mpsc::Sender<Queued>,
    health: Arc<LaneHealth>,
}

impl Lane {
    fn new(kind: Kind) -> (Self, mpsc::Receiver<Queued>) {
        let (queue, waiting) = mpsc::channel(limits::QUEUE_MAX);
        (Self { kind, queue, health: LaneHealth::new() }, waiting)
    }

    /// Whoever came now would wait for longer than it is worth.
    fn is_late(&self) -> bool {
        self.queue.capacity() == 0 || self.health.waiting() > limits::READY_WAIT_MAX
    }
}

/// What a writer is made of.
pub struct WriterParts {
    /// The database.
    pub db: Db,
    /// The time.
    pub clock: Clock,
    /// Ids of journals.
    pub ids: Arc<IdGenerator>,
    /// What follows from new rows.
    pub hook: Option<Arc<OutboxHook>>,
    /// Commands per transaction at most.
    pub batch_max: usize,
    /// Cancelled should the storage break, or one of the writer's threads end by itself.
    pub broken: CancellationToken,
}

impl Writer {
    /// Starts the writer's threads.
    ///
    /// # Errors
    /// The database cannot be reached.
    pub async fn start(parts: WriterParts) -> Result<Self, sqlx::Error> {
        let engine = parts.db.engine();
        let lanes = match engine {
            Engine::Sqlite => 1,
            Engine::Postgres => limits::REQUEST_LANES,
        };
        let (work, work_queue) = Lane::new(Kind::Work);
        let (requests, request_queues): (Vec<_>, Vec<_>) =
            (0..lanes).map(|_| Lane::new(Kind::Requests)).unzip();
        let writer = Self {
            requests: requests.into(),
            work,
            places: Places::new(lanes),
            metrics: Arc::default(),
            stopping: CancellationToken::new(),
            threads: TaskTracker::new(),
        };
        match engine {
            Engine::Sqlite => {
                let queues = [work_queue].into_iter().chain(request_queues).collect();
                let checkpointer = Checkpointer::of(&parts.db).await?;
                let (committed, told) = mpsc::channel(1);
                writer.serve(queues, Some(committed), &writer.requests[0], &parts).await?;
                writer.threads.spawn(checkpointer.run(told, parts.broken.clone()));
            }
            Engine::Postgres => {
                writer.serve(vec![work_queue], None, &writer.work, &parts).await?;
                for (lane, queue) in writer.requests.iter().zip(request_queues) {
                    writer.serve(vec![queue], None, lane, &parts).await?;
                }
            }
        }
        writer.threads.close();
        Ok(writer)
    }

    /// Has a thread of its own serve these queues as this lane, the first before the others, and
    /// tell of each batch where somebody wants to know.
    async fn serve(
        &self,
        queues: Vec<mpsc::Receiver<Queued>>,
        committed: Option<mpsc::Sender<()>>,
        lane: &Lane,
        parts: &WriterParts,
    ) -> Result<(), sqlx::Error> {
        let WriterParts { db, clock, ids, hook, batch_max, broken } = parts;
        let turn = db.turn().await;
        let chain = seal::begin(db).await?;
        drop(turn);
        let task = Task {
            native: None,
            chain: Some(chain),
            db: db.clone(),
            home: Handle::current(),
            clock: clock.clone(),
            ids: Arc::clone(ids),
            hook: hook.clone(),
            batch_max: *batch_max,
            metrics: Arc::clone(&self.metrics),
            health: Arc::clone(&lane.health),
            place: (lane.kind, Arc::clone(&self.places)),
            committed,
            broken: broken.clone(),
        };
        let (stopping, broken) = (self.stopping.clone(), broken.clone());
        let runtime = tokio::runtime::Builder::new_current_thread().enable_all().build()?;
        let is_running = self.threads.token();
        std::thread::Builder::new().name("writer".into()).spawn(move || {
            let run = AssertUnwindSafe(task.run(Queues(queues), &stopping));
            if runtime.block_on(run.catch_unwind()).is_err() {
                tracing::error!("the writer panicked; this host stops");
                broken.cancel();
            }
            drop(is_running);
        })?;
        Ok(())
    }

    /// Hands in what a caller of the API asks for, and waits until it is durable or refused.
    ///
    /// # Errors
    /// The decision's refusal; `state_conflict` when a guarded row changed;
    /// `service_overloaded` when too much waits; `service_unavailable` when the database is
    /// away, and then nobody knows whether it was carried out.
    pub async fn request<T>(&self, command: Command<T>) -> Result<Done<T>, Problem>
    where
        T: Any + Send,
    {
        // What names no wallet (recipients, endpoints, replays) may be in any. A second wallet may be
        // another lane's: they meet at its row.
        let any = || self.requests.iter().position(|lane| !lane.is_late()).unwrap_or(0);
        let lane = command.needs.wallets.first().map_or_else(any, |wallet| self.lane_of(wallet));
        let lane = &self.requests[lane];
        if lane.is_late() {
            return Err(self.shed());
        }
        let (queued, waiting) = enqueue(command);
        lane.queue.try_send(queued).map_err(|refused| match refused {
            TrySendError::Full(_) => self.shed(),
            TrySendError::Closed(_) => stopped(),
        })?;
        waiting.outcome().await
    }

    /// Hands in what this host has to write down, or an operator's act: waits for room in the
    /// queue, and for no request.
    ///
    /// # Errors
    /// As for [`Self::request`], but never `service_overloaded`.
    pub async fn work<T>(&self, command: Command<T>) -> Result<Done<T>, Problem>
    where
        T: Any + Send,
    {
        let (queued, waiting) = enqueue(command);
        let sent = self.work.queue.send(queued).await;
        sent.map_err(|_| stopped())?;
        waiting.outcome().await
    }

    /// Takes nothing more, brings what waits to its end, and closes the connections.
    pub async fn stop(&self) {
        self.stopping.cancel();
        self.threads.wait().await;
    }

    /// Refuses a request that would be refused in whichever lane, before anything is done for it.
    ///
    /// # Errors
    /// `service_overloaded`.
    pub fn admit(&self) -> Result<(), Problem> {
        match self.requests.iter().all(Lane::is_late) {
            true => Err(self.shed()),
            false => Ok(()),
        }
    }

    /// Refuses a request about this wallet that would be refused in its lane, before more is done
    /// for it.
    ///
    /// # Errors
    /// `service_overloaded`.
    pub fn admit_for(&self, wallet: &WalletId) -> Result<(), Problem> {
        match self.requests[self.lane_of(wallet)].is_late() {
            true => Err(self.shed()),
            false => Ok(()),
        }
    }

    fn shed(&self) -> Problem {
        self.metrics.shed.inc();
        Problem::new(ErrorCode::ServiceOverloaded).retry_after(1)
    }

    /// Whether the database does not take what is to be written: work waits for too long, or requests
    /// in whichever lane; or it has just not accepted a batch.
    #[must_use]
    pub fn is_late(&self) -> bool {
        let is_late = |lane: &Lane| lane.health.waiting() > limits::READY_WAIT_MAX;
        let mut lanes = self.requests.iter().chain([&self.work]);
        is_late(&self.work)
            || self.requests.iter().all(is_late)
            || lanes.any(|lane| lane.health.was_refused())
    }

    /// In which lane a request waits that names this wallet first.
    #[must_use]
    pub fn lane_of(&self, wallet: &WalletId) -> usize {
        let mut hasher = DefaultHasher::new();
        wallet.as_str().hash(&mut hasher);
        usize::try_from(hasher.finish() % self.requests.len() as u64).unwrap_or(0)
    }

    /// How long the oldest command has been waiting for the database.
    #[must_use]
    pub fn oldest_waiting(&self) -> Duration {
        let waiting = self.requests.iter().map(|lane| lane.health.waiting());
        waiting.fold(self.work.health.waiting(), Duration::max)
    }

    /// Figures for `/metrics`.
    #[must_use]
    pub fn metrics(&self) -> &WriterMetrics {
        &self.metrics
    }
}

/// This host does not carry the command out any more; whether it did, nobody can tell.
fn stopped() -> Problem {
    tracing::warn!("the writer has stopped");
    Problem::new(ErrorCode::ServiceUnavailable).retry_after(1)
}

/// What a caller waits on.
struct Waiting<T> {
    outcome: oneshot::Receiver<Outcome>,
    of: PhantomData<T>,
}

/// A command as a thread takes it: its result may be of any type.
fn enqueue<T: Any + Send>(command: Command<T>) -> (Queued, Waiting<T>) {
    let (answer, outcome) = oneshot::channel();
    let Command { needs, decide } = command;
    let decide = Box::new(move |locked: &super::LockedState<'_>| {
        Ok(decide(locked)?.map(|result| -> Computed { Box::new(result) }))
    });
    let queued = Queued { command: AnyCommand { needs, decide }, answer, since: Instant::now() };
    (queued, Waiting { outcome, of: PhantomData })
}

impl<T: Any> Waiting<T> {
    async fn outcome(self) -> Result<Done<T>, Problem> {
        match self.outcome.await.map_err(|_| stopped())?? {
            Done::Now(computed) => match computed.downcast() {
                Ok(result) => Ok(Done::Now(*result)),
                Err(_) => Err(Problem::internal("a command was answered with another's result")),
            },
            Done::Before { resource_id, reply } => Ok(Done::Before { resource_id, reply }),
        }
    }
}

struct Task {
    db: Db,
    /// Where connections that others use as well are at home.
    home: Handle,
    clock: Clock,
    ids: Arc<IdGenerator>,
    /// With where connections led as it was made.
    native: Option<(Native, Moves)>,
    hook: Option<Arc<OutboxHook>>,
    /// Where the chain of batches stands; none where that is not known any more.
    chain: Option<Chain>,
    batch_max: usize,
    metrics: Arc<WriterMetrics>,
    health: Arc<LaneHealth>,
    /// Where its batches take a place, and what they hold.
    place: (Kind, Arc<Places>),
    /// Who is told of each batch. Who has not heard of the last one yet need not be told again.
    committed: Option<mpsc::Sender<()>>,
    broken: CancellationToken,
}

impl Task {
    async fn run(mut self, mut queues: Queues, stopping: &CancellationToken) {
        let moves = self.db.moves();
        self.native = connect(&self.db).await.ok().map(|native| (native, moves));
        let (kind, places) = (self.place.0, Arc::clone(&self.place.1));
        let mut is_stopping = false;
        // A batch is what arrived while the one before was committing; after one of many commands,
        // also what arrived while it was held back ([`Places::pace`]).
        let mut not_before = tokio::time::Instant::now();
        loop {
            let first = tokio::select! {
                biased;
                first = queues.next() => first,
                () = stopping.cancelled(), if !is_stopping => {
                    is_stopping = true;
                    queues.close();
                    continue;
                }
            };
            let Some(first) = first else { break };
            self.health.begin(Some(first.since));
            // What arrives meanwhile goes with it.
            tokio::time::sleep_until(not_before).await;
            let place = places.take(kind).await;
            let place_taken_at = tokio::time::Instant::now();
            let mut weight = first.command.weight();
            let mut batch = vec![first];
            while weight < self.batch_max {
                let Some(queued) = queues.try_next() else { break };
                weight += queued.command.weight();
                batch.push(queued);
            }
            self.health.begin(batch.iter().map(|queued| queued.since).min());
            // Unless it was full: there may be more already.
            let holds_back = batch.len() >= limits::BATCH_OF_MANY && weight < self.batch_max;
            let turn = self.db.turn().await;
            let (commands, answers): (Vec<AnyCommand>, Vec<_>) =
                batch.into_iter().map(|queued| (queued.command, queued.answer)).unzip();
            let begun = Instant::now();
            let outcomes = self.process(&commands.iter().collect::<Vec<_>>()).await;
            drop((turn, place));
            let pace = match holds_back {
                true => places.pace(kind, place_taken_at.elapsed(), self.db.engine()),
                false => Duration::ZERO,
            };
            not_before = place_taken_at + pace;
            if let Some(committed) = &self.committed {
                let _ = committed.try_send(());
            }
            self.metrics.batch(commands.len(), begun.elapsed());
            // What they share with their results is the callers' own from here on.
            drop(commands);
            self.health.end();
            for (answer, outcome) in answers.into_iter().zip(outcomes) {
                // A caller that went away finds its result under its idempotency key.
                let _ = answer.send(outcome);
            }
        }
        if let Some((native, _)) = self.native.take() {
            native.close().await;
        }
    }

    /// Brings a batch to its end, whatever it takes: again after a conflict, in halves after a
    /// poisoned row, by asking after an unanswered COMMIT.
    async fn process(&mut self, commands: &[&AnyCommand]) -> Outcomes {
        let mut earlier: Vec<Try> = Vec::new();
        let (is_shared, mut already_there) = (self.db.engine() == Engine::Postgres, 0);
        let mut overtaken = 0;
        let mut is_refused = true;
        for retry in 0..limits::BATCH_RETRIES_MAX {
            if retry > 0 {
                self.metrics.begun_again.inc();
            }
            // Whoever overtook it has committed by now, and is seen at once.
            if retry > overtaken.min(1) {
                self.pause(retry).await;
            }
            match self.attempt(commands, &mut earlier).await {
                Ok(outcomes) => return outcomes,
                Err(Interrupted::Overtaken) => {
                    overtaken += 1;
                    is_refused = false;
                }
                Err(Interrupted::Again(cause)) => {
                    is_refused = !database::is_held(&cause);
                    tracing::warn!(%cause, commands = commands.len(), "a batch is begun again");
                }
                Err(Interrupted::Unknown(cause, this)) => {
                    tracing::warn!(%cause, commands = commands.len(), "a COMMIT was not answered");
                    self.metrics.unanswered_commits.inc();
                    is_refused = true;
                    earlier.push(this);
                }
                // Whoever was faster is seen by then. On SQLite nobody can be.
                Err(Interrupted::AlreadyThere(cause))
                    if is_shared && already_there < limits::BATCH_ALREADY_THERE_MAX =>
                {
                    tracing::debug!(%cause, commands = commands.len(), "a row is there already");
                    already_there += 1;
                    overtaken += 1;
                }
                Err(Interrupted::AlreadyThere(cause) | Interrupted::Poisoned(cause)) => {
                    return self.split(commands, cause).await;
                }
                Err(Interrupted::Moved) => break,
                Err(Interrupted::Broken(cause)) => {
                    tracing::error!(%cause, "the storage fails; this host stops");
                    self.broken.cancel();
                    break;
                }
            }
        }
        if !earlier.is_empty() {
            // One of them may have been committed after all: the next batch begins a new chain.
            self.chain = None;
        }
        if is_refused {
            self.health.refused();
        }
        commands.iter().map(|_| Err(unavailable())).collect()
    }

    async fn attempt(
        &mut self,
        commands: &[&AnyCommand],
        earlier: &mut Vec<Try>,
    ) -> Result<Outcomes, Interrupted> {
        if self.db.is_replaced() {
            return Err(Interrupted::Broken(sqlx::Error::Io(std::io::Error::other(REPLACED))));
        }
        let before = self.db.moves();
        let mut native = match self.native.take() {
            // Others may have seen connections lead elsewhere, and this one have stayed where it was.
            Some((native, at)) if at == before => native,
            _ => {
                let mut native = connect(&self.db).await?;
                if !self.is_followed(&mut native).await? {
                    self.db.has_lost();
                }
                // As long as they lead elsewhere, each may lead to another place.
                if self.db.has_moved() {
                    self.chain = None;
                }
                native
            }
        };
        // What a database has forgotten nothing must follow on, nor have the number of its writer.
        let moves = self.db.moves();
        let chain = match &mut self.chain {
            Some(chain) if chain.at == moves => chain,
            stale => stale.insert(begin_chain(&self.home, &self.db).await?),
        };
        if earlier.iter().any(|earlier| earlier.at != moves) {
            return Err(Interrupted::Moved);
        }
        let surroundings =
            Surroundings { ids: &self.ids, now: self.clock.now(), hook: self.hook.as_deref() };
        let run = batch::run(&mut native, commands, surroundings, chain, earlier);
        let (ended, IsClean(is_clean)) = run.await;
        // Whatever became of this try, its id is used up.
        chain.next += 1;
        if is_clean {
            // Otherwise the connection may be in any state; the next try takes a new one.
            self.native = Some((native, before));
        }
        let ended = ended?;
        if ended.head != chain.head {
            self.health.accepted();
            chain.head_id = ended.id;
        }
        chain.head = ended.head;
        Ok(ended.outcomes)
    }

    /// Whether a new connection leads to where the last batch is that this writer was told is durable.
    async fn is_followed(&self, native: &mut Native) -> Result<bool, Interrupted> {
        let Some(Chain { head, head_id: Some(id), at, .. }) = &self.chain else { return Ok(true) };
        // What was durable elsewhere nobody looks for here.
        if *at != self.db.moves() {
            return Ok(true);
        }
        in_time(native.has_batch(*id, head)).await
    }

    /// Finds the command whose rows the database refuses, by halves.
    async fn split(&mut self, commands: &[&AnyCommand], cause: sqlx::Error) -> Outcomes {
        if commands.len() == 1 {
            tracing::error!(%cause, "a command cannot be written, whatever it is tried with");
            return vec![Err(Problem::internal(cause))];
        }
        let (first, second) = commands.split_at(commands.len() / 2);
        let mut outcomes = Box::pin(self.process(first)).await;
        outcomes.extend(Box::pin(self.process(second)).await);
        outcomes
    }

    async fn pause(&self, retry: u32) {
        let ceiling = 10u64 << retry.min(6);
        tokio::time::sleep(Duration::from_millis(self.ids.below(ceiling) + 1)).await;
    }
}

fn unavailable() -> Problem {
    Problem::new(ErrorCode::ServiceUnavailable)
        .retry_after(1)
        .caused_by("the database did not accept the batch in time")
}

/// What a thread serves: the first before the others.
struct Queues(Vec<mpsc::Receiver<Queued>>);

impl Queues {
    /// What waits longest; nothing when nobody can hand in any more.
    async fn next(&mut self) -> Option<Queued> {
        let of_first = |cx: &mut Context<'_>| {
            let mut ended = 0;
            for queue in &mut self.0 {
                match queue.poll_recv(cx) {
                    Poll::Ready(Some(queued)) => return Poll::Ready(Some(queued)),
                    Poll::Ready(None) => ended += 1,
                    Poll::Pending => {}
                }
            }
            if ended == self.0.len() { Poll::Ready(None) } else { Poll::Pending }
        };
        std::future::poll_fn(of_first).await
    }

    /// The same, if anything waits.
    fn try_next(&mut self) -> Option<Queued> {
        self.0.iter_mut().find_map(|queue| queue.try_recv().ok())
    }

    fn close(&mut self) {
        self.0.iter_mut().for_each(mpsc::Receiver::close);
    }
}

/// A chain for whoever does not know where the last one stands, in the turn of the batch.
async fn begin_chain(home: &Handle, db: &Db) -> Result<Chain, Interrupted> {
    let db = db.clone();
    let beginning = home.spawn(async move { crate::db::in_time(seal::begin(&db)).await });
    let begun = beginning.await.unwrap_or(Err(sqlx::Error::WorkerCrashed));
    begun.map_err(Interrupted::Again)
}

/// A new connection. One that does not come about in time is no connection.
async fn connect(db: &Db) -> Result<Native, Interrupted> {
    in_time(db.native()).await
}

async fn in_time<T>(step: impl Future<Output = Result<T, sqlx::Error>>) -> Result<T, Interrupted> {
    crate::db::within(limits::BATCH_DEADLINE, step).await.map_err(Interrupted::Again)
}
