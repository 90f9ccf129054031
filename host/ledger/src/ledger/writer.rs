//! The task that owns a connection and turns what waits into one transaction.

use std::sync::Arc;
use std::time::Duration;

use tokio::sync::{mpsc, oneshot};
use tokio_util::sync::CancellationToken;

use crate::clock::Clock;
use crate::config::limits;
use crate::db::{Db, Native};
use crate::error::{ErrorCode, Problem};
use crate::id::{EventId, IdGenerator};

use super::batch::{self, Earlier, Interrupted, Outcomes, Surroundings};
use super::command::{Command, Done};
use super::hook::OutboxHook;

type Answer = Result<Done, Problem>;

struct Queued {
    command: Command,
    answer: oneshot::Sender<Answer>,
}

/// Where commands are handed in. Cheap to clone; the task ends when the last one is dropped.
#[derive(Clone)]
pub struct Writer {
    queue: mpsc::Sender<Queued>,
}

impl Writer {
    /// Starts the writer's task. Should the storage break, it cancels `broken` and stops.
    ///
    /// # Errors
    /// The database cannot be reached.
    pub async fn start(
        db: Db,
        (clock, ids): (Clock, Arc<IdGenerator>),
        hook: Option<OutboxHook>,
        (batch_max, broken): (usize, CancellationToken),
    ) -> Result<Self, sqlx::Error> {
        let (queue, waiting) = mpsc::channel(limits::QUEUE_MAX);
        let native = Some(db.native().await?);
        let batch_max = batch_max.max(1);
        tokio::spawn(Task { db, clock, ids, native, hook, batch_max, broken }.run(waiting));
        Ok(Self { queue })
    }

    /// Hands in a command and waits until it is durable or refused.
    ///
    /// # Errors
    /// The decision's refusal; `state_conflict` when a guarded row changed;
    /// `service_overloaded` when too much waits; `api_error` when the database is away.
    pub async fn submit(&self, command: Command) -> Answer {
        let (answer, answered) = oneshot::channel();
        self.queue
            .try_send(Queued { command, answer })
            .map_err(|_| Problem::new(ErrorCode::ServiceOverloaded).retry_after(1))?;
        answered.await.unwrap_or_else(|_| Err(Problem::internal("the writer has stopped")))
    }
}

struct Task {
    db: Db,
    clock: Clock,
    ids: Arc<IdGenerator>,
    native: Option<Native>,
    hook: Option<OutboxHook>,
    batch_max: usize,
    broken: CancellationToken,
}

impl Task {
    async fn run(mut self, mut waiting: mpsc::Receiver<Queued>) {
        let mut batch = Vec::with_capacity(self.batch_max);
        // No timer: a batch is what arrived while the one before was committing.
        while waiting.recv_many(&mut batch, self.batch_max).await > 0 {
            let turn = self.db.turn().await;
            let (commands, answers): (Vec<Command>, Vec<_>) =
                batch.drain(..).map(|queued| (queued.command, queued.answer)).unzip();
            let commands: Vec<&Command> = commands.iter().collect();
            let outcomes = self.run_batch(&commands).await;
            drop(turn);
            for (answer, outcome) in answers.into_iter().zip(outcomes) {
                // A caller that went away finds its result under its idempotency key.
                let _ = answer.send(outcome);
            }
        }
        if let Some(native) = self.native.take() {
            native.close().await;
        }
    }

    /// Brings a batch to its end, whatever it takes: again after a conflict, in halves after a
    /// poisoned row, by asking after an unanswered COMMIT.
    async fn run_batch(&mut self, commands: &[&Command]) -> Outcomes {
        let mut earlier: Vec<Earlier> = Vec::new();
        for retry in 0..limits::BATCH_RETRIES_MAX {
            if retry > 0 {
                self.pause(retry).await;
            }
            match self.attempt(commands, &mut earlier).await {
                Ok(outcomes) => return outcomes,
                Err(Interrupted::Overtaken) => {}
                Err(Interrupted::Again(cause) | Interrupted::Unknown(cause, _)) => {
                    tracing::warn!(%cause, commands = commands.len(), "a batch is begun again");
                }
                Err(Interrupted::Poisoned(cause)) => return self.split(commands, cause).await,
                Err(Interrupted::Broken(cause)) => {
                    tracing::error!(%cause, "the storage fails; this host stops");
                    self.broken.cancel();
                    break;
                }
            }
        }
        let failure = || Err(Problem::internal("the database did not accept the batch in time"));
        commands.iter().map(|_| failure()).collect()
    }

    async fn attempt(
        &mut self,
        commands: &[&Command],
        earlier: &mut Vec<Earlier>,
    ) -> Result<Outcomes, Interrupted> {
        let mut native = match self.native.take() {
            Some(native) => native,
            None => self.db.native().await.map_err(Interrupted::Again)?,
        };
        let marker = self.ids.id::<EventId>().to_string();
        let surroundings =
            Surroundings { ids: &self.ids, now: self.clock.now(), hook: self.hook.as_ref() };
        let run = batch::run(&mut native, commands, surroundings, &marker, earlier).await;
        match run {
            Ok(_) | Err(Interrupted::Overtaken | Interrupted::Poisoned(_)) => {
                self.native = Some(native);
                run
            }
            // The connection may be in any state; the next try takes a new one.
            Err(Interrupted::Again(_) | Interrupted::Broken(_)) => run,
            Err(Interrupted::Unknown(cause, outcomes)) => {
                earlier.push(Earlier { marker, outcomes });
                Err(Interrupted::Unknown(cause, Vec::new()))
            }
        }
    }

    /// Finds the command whose rows the database refuses, by halves.
    async fn split(&mut self, commands: &[&Command], cause: sqlx::Error) -> Outcomes {
        if commands.len() == 1 {
            return vec![Err(Problem::internal(cause))];
        }
        let (first, second) = commands.split_at(commands.len() / 2);
        let mut outcomes = Box::pin(self.run_batch(first)).await;
        outcomes.extend(Box::pin(self.run_batch(second)).await);
        outcomes
    }

    async fn pause(&self, retry: u32) {
        let ceiling = 10u64 << retry.min(6);
        tokio::time::sleep(Duration::from_millis(self.ids.below(ceiling) + 1)).await;
    }
}
