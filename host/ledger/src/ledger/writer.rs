//! The task that owns a connection and turns what waits into one transaction.

use std::any::Any;
use std::marker::PhantomData;
use std::panic::AssertUnwindSafe;
use std::sync::Arc;
use std::sync::atomic::{AtomicU64, Ordering};
use std::time::{Duration, Instant};

use futures::FutureExt as _;
use tokio::sync::mpsc::error::TrySendError;
use tokio::sync::{mpsc, oneshot};
use tokio_util::sync::CancellationToken;

use crate::clock::Clock;
use crate::config::limits;
use crate::db::{Db, Native};
use crate::error::{ErrorCode, Problem};
use crate::id::IdGenerator;

use super::batch::{self, Interrupted, IsClean, Outcomes, Surroundings, Try};
use super::command::{Command, Done};
use super::hook::OutboxHook;
use super::metrics::WriterMetrics;
use super::seal::{self, Chain};
use super::state::{AnyCommand, Computed, Outcome};

struct Queued {
    command: AnyCommand,
    answer: oneshot::Sender<Outcome>,
    since: Instant,
}

/// Where commands are handed in. Cheap to clone; the task ends when it is told to, or when the last
/// one is dropped.
///
/// There are two lanes. Work (what a bank answered, what was delivered, what an operator does)
/// waits for its place and is served first: what is under way comes to an end whatever else
/// arrives. Requests are turned away when too many wait.
#[derive(Clone)]
pub struct Writer {
    requests: mpsc::Sender<Queued>,
    work: mpsc::Sender<Queued>,
    status: Arc<Status>,
    stopping: CancellationToken,
    has_stopped: CancellationToken,
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
    pub hook: Option<OutboxHook>,
    /// Commands per transaction at most.
    pub batch_max: usize,
    /// Cancelled should the storage break, or the writer's task end by itself.
    pub broken: CancellationToken,
}

struct Status {
    begun: Instant,
    /// Since when the oldest command of the present batch waits, in milliseconds after
    /// `begun`; zero while there is none.
    oldest_ms: AtomicU64,
    metrics: WriterMetrics,
}

impl Writer {
    /// Starts the writer's task.
    ///
    /// # Errors
    /// The database cannot be reached.
    pub async fn start(parts: WriterParts) -> Result<Self, sqlx::Error> {
        let WriterParts { db, clock, ids, hook, batch_max, broken } = parts;
        let (requests, waiting_requests) = mpsc::channel(limits::QUEUE_MAX);
        let (work, waiting_work) = mpsc::channel(limits::QUEUE_MAX);
        let status = Arc::new(Status {
            begun: Instant::now(),
            oldest_ms: AtomicU64::new(0),
            metrics: WriterMetrics::default(),
        });
        let chain = Some(seal::begin(&db).await?);
        let task = Task {
            native: Some(db.native().await?),
            db,
            clock,
            ids,
            hook,
            chain,
            batch_max: batch_max.max(1),
            status: Arc::clone(&status),
            broken: broken.clone(),
        };
        let (stopping, has_stopped) = (CancellationToken::new(), CancellationToken::new());
        let ending = (stopping.clone(), has_stopped.clone());
        tokio::spawn(async move {
            let run = AssertUnwindSafe(task.run(waiting_work, waiting_requests, &ending.0));
            if run.catch_unwind().await.is_err() {
                tracing::error!("the writer's task panicked; this host stops");
                broken.cancel();
            }
            ending.1.cancel();
        });
        Ok(Self { requests, work, status, stopping, has_stopped })
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
        let (queued, waiting) = enqueue(command);
        self.requests.try_send(queued).map_err(|refused| match refused {
            TrySendError::Full(_) => overloaded(),
            TrySendError::Closed(_) => stopped(),
        })?;
        waiting.outcome().await
    }

    /// Hands in what this host has to write down, or an operator's act: waits for a place, and
    /// goes before requests.
    ///
    /// # Errors
    /// As for [`Self::request`], but never `service_overloaded`.
    pub async fn work<T>(&self, command: Command<T>) -> Result<Done<T>, Problem>
    where
        T: Any + Send,
    {
        let (queued, waiting) = enqueue(command);
        let sent = self.work.send(queued).await;
        sent.map_err(|_| stopped())?;
        waiting.outcome().await
    }

    /// Takes nothing more, brings what waits to its end, and closes the connection.
    pub async fn stop(&self) {
        self.stopping.cancel();
        self.has_stopped.cancelled().await;
    }

    /// Refuses a request that would be refused anyhow, before anything is done for it.
    ///
    /// # Errors
    /// `service_overloaded`.
    pub fn admit(&self) -> Result<(), Problem> {
        let is_full = self.requests.capacity() == 0;
        // Whoever came now would wait for longer than it is worth.
        match is_full || self.oldest_waiting() > limits::READY_WAIT_MAX {
            true => {
                self.status.metrics.shed.inc();
                Err(overloaded())
            }
            false => Ok(()),
        }
    }

    /// How long the oldest command has been waiting for the database.
    #[must_use]
    pub fn oldest_waiting(&self) -> Duration {
        let since = self.status.oldest_ms.load(Ordering::Relaxed);
        match since {
            0 => Duration::ZERO,
            _ => self.status.begun.elapsed().saturating_sub(Duration::from_millis(since)),
        }
    }

    /// Figures for `/metrics`.
    #[must_use]
    pub fn metrics(&self) -> &WriterMetrics {
        &self.status.metrics
    }
}

fn overloaded() -> Problem {
    Problem::new(ErrorCode::ServiceOverloaded).retry_after(1)
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

/// A command as the task takes it: its result may be of any type.
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
    clock: Clock,
    ids: Arc<IdGenerator>,
    native: Option<Native>,
    hook: Option<OutboxHook>,
    /// Where the chain of batches stands; none where that is not known any more.
    chain: Option<Chain>,
    batch_max: usize,
    status: Arc<Status>,
    broken: CancellationToken,
}

impl Task {
    async fn run(
        mut self,
        mut work: mpsc::Receiver<Queued>,
        mut requests: mpsc::Receiver<Queued>,
        stopping: &CancellationToken,
    ) {
        // No timer: a batch is what arrived while the one before was committing.
        loop {
            let first = tokio::select! {
                biased;
                first = next(&mut work, &mut requests) => first,
                () = stopping.cancelled(), if !work.is_closed() => {
                    work.close();
                    requests.close();
                    continue;
                }
            };
            let Some(first) = first else { break };
            let mut weight = first.command.weight();
            let mut batch = vec![first];
            while weight < self.batch_max {
                match work.try_recv().or_else(|_| requests.try_recv()) {
                    Ok(queued) => {
                        weight += queued.command.weight();
                        batch.push(queued);
                    }
                    Err(_) => break,
                }
            }
            self.begin_waiting(&batch);
            let turn = self.db.turn().await;
            let (commands, answers): (Vec<AnyCommand>, Vec<_>) =
                batch.into_iter().map(|queued| (queued.command, queued.answer)).unzip();
            let begun = Instant::now();
            let outcomes = self.process(&commands.iter().collect::<Vec<_>>()).await;
            drop(turn);
            self.status.metrics.batch(commands.len(), begun.elapsed());
            // What they share with their results is the callers' own from here on.
            drop(commands);
            self.status.oldest_ms.store(0, Ordering::Relaxed);
            for (answer, outcome) in answers.into_iter().zip(outcomes) {
                // A caller that went away finds its result under its idempotency key.
                let _ = answer.send(outcome);
            }
        }
        if let Some(native) = self.native.take() {
            native.close().await;
        }
    }

    fn begin_waiting(&self, batch: &[Queued]) {
        let oldest = batch.iter().map(|queued| queued.since).min();
        let since = oldest.map(|at| at.saturating_duration_since(self.status.begun));
        let since = since.map_or(0, |since| u64::try_from(since.as_millis()).unwrap_or(u64::MAX));
        self.status.oldest_ms.store(since.max(1), Ordering::Relaxed);
    }

    /// Brings a batch to its end, whatever it takes: again after a conflict, in halves after a
    /// poisoned row, by asking after an unanswered COMMIT.
    async fn process(&mut self, commands: &[&AnyCommand]) -> Outcomes {
        let mut earlier: Vec<Try> = Vec::new();
        for retry in 0..limits::BATCH_RETRIES_MAX {
            if retry > 0 {
                self.status.metrics.begun_again.inc();
                self.pause(retry).await;
            }
            match self.attempt(commands, &mut earlier).await {
                Ok(outcomes) => return outcomes,
                Err(Interrupted::Overtaken) => {}
                Err(Interrupted::Again(cause)) => {
                    tracing::warn!(%cause, commands = commands.len(), "a batch is begun again");
                }
                Err(Interrupted::Unknown(cause, this)) => {
                    tracing::warn!(%cause, commands = commands.len(), "a COMMIT was not answered");
                    self.status.metrics.unanswered_commits.inc();
                    earlier.push(this);
                }
                Err(Interrupted::Poisoned(cause)) => return self.split(commands, cause).await,
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
        commands.iter().map(|_| Err(unavailable())).collect()
    }

    async fn attempt(
        &mut self,
        commands: &[&AnyCommand],
        earlier: &mut Vec<Try>,
    ) -> Result<Outcomes, Interrupted> {
        let mut native = match self.native.take() {
            Some(native) => native,
            None => connect(&self.db).await?,
        };
        let chain = match &mut self.chain {
            Some(chain) => chain,
            None => self.chain.insert(begin_chain(&self.db).await?),
        };
        let surroundings =
            Surroundings { ids: &self.ids, now: self.clock.now(), hook: self.hook.as_ref() };
        let run = batch::run(&mut native, commands, surroundings, chain, earlier);
        let (ended, IsClean(is_clean)) = run.await;
        // Whatever became of this try, its id is used up.
        chain.next += 1;
        if is_clean {
            // Otherwise the connection may be in any state; the next try takes a new one.
            self.native = Some(native);
        }
        let ended = ended?;
        chain.head = ended.head;
        Ok(ended.outcomes)
    }

    /// Finds the command whose rows the database refuses, by halves.
    async fn split(&mut self, commands: &[&AnyCommand], cause: sqlx::Error) -> Outcomes {
        if commands.len() == 1 {
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

/// What waits longest, work before requests; nothing when nobody can hand in any more.
async fn next(
    work: &mut mpsc::Receiver<Queued>,
    requests: &mut mpsc::Receiver<Queued>,
) -> Option<Queued> {
    tokio::select! {
        biased;
        Some(queued) = work.recv() => Some(queued),
        Some(queued) = requests.recv() => Some(queued),
        else => None,
    }
}

/// A chain for whoever does not know where the last one stands.
async fn begin_chain(db: &Db) -> Result<Chain, Interrupted> {
    crate::db::in_time(seal::begin(db)).await.map_err(Interrupted::Again)
}

/// A new connection. One that does not come about in time is no connection.
async fn connect(db: &Db) -> Result<Native, Interrupted> {
    let silent = || std::io::Error::new(std::io::ErrorKind::TimedOut, "connecting took too long");
    let connecting = tokio::time::timeout(limits::BATCH_DEADLINE, db.native()).await;
    connecting.unwrap_or_else(|_| Err(silent().into())).map_err(Interrupted::Again)
}
