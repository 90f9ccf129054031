//! Look-ups that are made together: what is asked for while a round is under way goes with the
//! next one. No round waits for more to come: whoever comes alone is looked up at once.

use std::io::ErrorKind;
use std::sync::Arc;

use tokio::sync::{Semaphore, mpsc, oneshot};

use crate::config::limits;
use crate::error::database::{Failure, failure};

use super::in_time;

/// What several wait for; a failure is everybody's who went with that round.
pub type Shared<T> = Result<T, Arc<sqlx::Error>>;

/// Look-ups of one kind. A round that is slow is overtaken by the next.
pub struct Rounds<K, V> {
    asked: mpsc::Sender<Question<K, V>>,
}

type Question<K, V> = (K, oneshot::Sender<Shared<V>>);

impl<K, V> Clone for Rounds<K, V> {
    fn clone(&self) -> Self {
        Self { asked: self.asked.clone() }
    }
}

impl<K: Send + Sync + 'static, V: Send + 'static> Rounds<K, V> {
    /// Rounds that `read` answers: a value for each key, in their order. It is asked again where
    /// its connection broke.
    ///
    /// # Panics
    /// Outside a runtime.
    #[must_use]
    pub fn new<R>(read: impl Fn(Arc<[K]>) -> R + Send + Sync + 'static) -> Self
    where
        R: Future<Output = Result<Vec<V>, sqlx::Error>> + Send + 'static,
    {
        let (asked, waiting) = mpsc::channel(limits::ROUND_MAX);
        tokio::spawn(make(waiting, Arc::new(read)));
        Self { asked }
    }

    /// What is found under a key.
    ///
    /// # Errors
    /// The round failed.
    pub async fn ask(&self, key: K) -> Shared<V> {
        let gone = || Arc::new(sqlx::Error::WorkerCrashed);
        let (asker, found) = oneshot::channel();
        self.asked.send((key, asker)).await.map_err(|_| gone())?;
        found.await.unwrap_or_else(|_| Err(gone()))
    }
}

/// Makes one round after the other, until nobody is left who could ask.
async fn make<K, V, F, R>(mut waiting: mpsc::Receiver<Question<K, V>>, read: Arc<F>)
where
    K: Send + Sync + 'static,
    V: Send + 'static,
    F: Fn(Arc<[K]>) -> R + Send + Sync + 'static,
    R: Future<Output = Result<Vec<V>, sqlx::Error>> + Send + 'static,
{
    let places = Arc::new(Semaphore::new(limits::ROUNDS_AT_ONCE));
    // Whoever comes while all places are taken goes with the round that gets the next one.
    while let Ok(place) = Arc::clone(&places).acquire_owned().await {
        let mut round = Vec::new();
        if waiting.recv_many(&mut round, limits::ROUND_MAX).await == 0 {
            break;
        }
        round.retain(|(_, asker)| !asker.is_closed());
        if round.is_empty() {
            continue;
        }
        let read = Arc::clone(&read);
        // Its own task: what is wrong with one round must not end all that come.
        let answering = tokio::spawn(async move {
            answer(round, &*read).await;
            drop(place);
        });
        drop(tokio::time::timeout(limits::ROUND_OVERTAKEN, answering).await);
    }
}

/// Answers everybody of a round.
async fn answer<K, V, R>(round: Vec<Question<K, V>>, read: &impl Fn(Arc<[K]>) -> R)
where
    R: Future<Output = Result<Vec<V>, sqlx::Error>>,
{
    let (keys, askers): (Vec<K>, Vec<_>) = round.into_iter().unzip();
    let keys: Arc<[K]> = keys.into();
    let once = async || {
        let values = in_time(read(Arc::clone(&keys))).await?;
        match values.len() == askers.len() {
            true => Ok(values),
            false => Err(sqlx::Error::Decode("as many answers as questions are needed".into())),
        }
    };
    let answered = match once().await {
        Err(cause) if is_worth_another_try(&cause) => once().await,
        answered => answered,
    };
    match answered {
        Ok(values) => {
            for (asker, value) in askers.into_iter().zip(values) {
                drop(asker.send(Ok(value)));
            }
        }
        Err(cause) => {
            let cause = Arc::new(cause);
            for asker in askers {
                drop(asker.send(Err(Arc::clone(&cause))));
            }
        }
    }
}

/// Whether a connection broke. Who has waited in vain has waited long enough.
fn is_worth_another_try(cause: &sqlx::Error) -> bool {
    let was_in_vain = match cause {
        sqlx::Error::PoolTimedOut => true,
        sqlx::Error::Io(cause) => cause.kind() == ErrorKind::TimedOut,
        _ => false,
    };
    failure(cause) == Failure::Passing && !was_in_vain
}

#[cfg(test)]
mod tests {
    use std::sync::Mutex;
    use std::sync::atomic::{AtomicUsize, Ordering};

    use super::*;

    type Doubling = Arc<Rounds<u32, u32>>;

    /// Rounds of which the first waits for the gate; how large each was.
    fn gated() -> (Doubling, oneshot::Sender<()>, Arc<Mutex<Vec<usize>>>) {
        let (open, gate) = oneshot::channel::<()>();
        let (sizes, gate) = (Arc::new(Mutex::new(Vec::new())), Mutex::new(Some(gate)));
        let kept = Arc::clone(&sizes);
        let rounds = Rounds::new(move |keys: Arc<[u32]>| {
            kept.lock().expect("sizes").push(keys.len());
            let gate = gate.lock().expect("a gate").take();
            async move {
                if let Some(gate) = gate {
                    gate.await.expect("opened");
                }
                Ok(keys.iter().map(|key| key * 2).collect())
            }
        });
        (Arc::new(rounds), open, sizes)
    }

    fn ask(rounds: &Doubling, key: u32) -> tokio::task::JoinHandle<u32> {
        let rounds = Arc::clone(rounds);
        tokio::spawn(async move { rounds.ask(key).await.expect("an answer") })
    }

    #[tokio::test]
    async fn what_comes_during_a_round_goes_with_the_next() {
        let (rounds, open, sizes) = gated();
        let mut answers = vec![ask(&rounds, 0)];
        while sizes.lock().expect("sizes").is_empty() {
            tokio::task::yield_now().await;
        }
        answers.extend((1..=20).map(|key| ask(&rounds, key)));
        tokio::task::yield_now().await;
        open.send(()).expect("the first round waits");
        for (key, answer) in (0..).zip(answers) {
            assert_eq!(answer.await.expect("a task"), key * 2);
        }
        assert_eq!(*sizes.lock().expect("sizes"), [1, 20]);
    }

    #[tokio::test]
    async fn nobody_waits_for_a_round_that_is_slow() {
        let (rounds, open, sizes) = gated();
        let slow = ask(&rounds, 1);
        while sizes.lock().expect("sizes").is_empty() {
            tokio::task::yield_now().await;
        }
        assert_eq!(rounds.ask(2).await.expect("overtaken"), 4);
        open.send(()).expect("the first round still waits");
        assert_eq!(slow.await.expect("a task"), 2);
    }

    #[tokio::test(start_paused = true)]
    async fn as_many_rounds_are_under_way_as_there_are_places() {
        let open = Arc::new(Semaphore::new(0));
        let (gate, begun) = (Arc::clone(&open), Arc::new(AtomicUsize::new(0)));
        let counted = Arc::clone(&begun);
        let rounds = Arc::new(Rounds::new(move |keys: Arc<[u32]>| {
            counted.fetch_add(1, Ordering::Relaxed);
            let gate = Arc::clone(&gate);
            async move {
                gate.acquire().await.expect("opened").forget();
                Ok(keys.iter().map(|key| key * 2).collect())
            }
        }));
        let mut answers = Vec::new();
        for key in 0..limits::ROUNDS_AT_ONCE {
            answers.push(ask(&rounds, u32::try_from(key).expect("small")));
            while begun.load(Ordering::Relaxed) <= key {
                tokio::time::sleep(limits::ROUND_OVERTAKEN).await;
            }
        }
        let last = ask(&rounds, 99);
        let waits = tokio::time::timeout(4 * limits::ROUND_OVERTAKEN, last);
        assert!(waits.await.is_err(), "it has no place");
        assert_eq!(begun.load(Ordering::Relaxed), limits::ROUNDS_AT_ONCE);
        let next = ask(&rounds, 100);
        open.add_permits(limits::ROUNDS_AT_ONCE + 1);
        assert_eq!(next.await.expect("a task"), 200);
        for answer in answers {
            answer.await.expect("a task");
        }
    }

    #[tokio::test]
    async fn a_round_that_fails_is_the_failure_of_those_in_it_only() {
        let tries = Arc::new(AtomicUsize::new(0));
        let counted = Arc::clone(&tries);
        let rounds = Rounds::new(move |keys: Arc<[u32]>| {
            let nth = counted.fetch_add(1, Ordering::Relaxed);
            async move {
                assert_ne!(keys[0], 13, "panics");
                match keys[0] {
                    6 => Err(sqlx::Error::PoolTimedOut),
                    7 => Err(sqlx::Error::Io(ErrorKind::ConnectionReset.into())),
                    8 if nth == 0 => Err(sqlx::Error::Io(ErrorKind::ConnectionReset.into())),
                    9 => Err(sqlx::Error::RowNotFound),
                    10 => Ok(Vec::new()),
                    _ => Ok(keys.to_vec()),
                }
            }
        });
        let asked = async |key| {
            tries.store(0, Ordering::Relaxed);
            let answer = rounds.ask(key).await;
            (answer, tries.load(Ordering::Relaxed))
        };
        assert!(matches!(asked(8).await, (Ok(8), 2)), "it has passed");
        let (refused, tried) = asked(7).await;
        assert!(matches!(*refused.expect_err("refused"), sqlx::Error::Io(_)) && tried == 2);
        let (refused, tried) = asked(6).await;
        assert!(matches!(*refused.expect_err("refused"), sqlx::Error::PoolTimedOut) && tried == 1);
        let (broken, tried) = asked(9).await;
        assert!(matches!(*broken.expect_err("broken"), sqlx::Error::RowNotFound) && tried == 1);
        let (too_few, _) = asked(10).await;
        assert!(matches!(*too_few.expect_err("too few"), sqlx::Error::Decode(_)));
        let (panicked, _) = asked(13).await;
        assert!(matches!(*panicked.expect_err("gone"), sqlx::Error::WorkerCrashed));
        assert!(matches!(asked(1).await, (Ok(1), 1)), "the next one");
    }
}
