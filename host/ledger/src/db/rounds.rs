//! Look-ups that are made together: what is asked for while a round is under way goes with the
//! next one. There is no timer, so that whoever comes alone does not wait for others.

use std::sync::Arc;

use tokio::sync::{mpsc, oneshot};

use super::in_time;

/// How many are looked up by one statement at most.
const TOGETHER: usize = 256;

/// What is answered; a failure is everybody's who went with that round.
type Answer<V> = Result<V, Arc<sqlx::Error>>;

/// Look-ups of one kind, one round at a time.
pub struct Rounds<K, V> {
    asked: mpsc::Sender<(K, oneshot::Sender<Answer<V>>)>,
}

impl<K, V> Clone for Rounds<K, V> {
    fn clone(&self) -> Self {
        Self { asked: self.asked.clone() }
    }
}

impl<K: Send + 'static, V: Send + 'static> Rounds<K, V> {
    /// Rounds that `read` answers: a value for each key, in their order.
    #[must_use]
    pub fn new<R>(read: impl Fn(Vec<K>) -> R + Send + 'static) -> Self
    where
        R: Future<Output = Result<Vec<V>, sqlx::Error>> + Send + 'static,
    {
        let (asked, mut waiting) = mpsc::channel::<(K, oneshot::Sender<Answer<V>>)>(TOGETHER);
        tokio::spawn(async move {
            let mut round = Vec::new();
            while waiting.recv_many(&mut round, TOGETHER).await > 0 {
                round.retain(|(_, asker)| !asker.is_closed());
                let (keys, askers): (Vec<K>, Vec<_>) = round.drain(..).unzip();
                // Its own task: what is wrong with one round must not end all that come.
                let found = tokio::spawn(in_time(read(keys))).await;
                match found.unwrap_or(Err(sqlx::Error::WorkerCrashed)) {
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
        });
        Self { asked }
    }

    /// What is found under a key.
    ///
    /// # Errors
    /// The round failed.
    pub async fn ask(&self, key: K) -> Answer<V> {
        let gone = || Arc::new(sqlx::Error::WorkerCrashed);
        let (asker, found) = oneshot::channel();
        self.asked.send((key, asker)).await.map_err(|_| gone())?;
        found.await.unwrap_or_else(|_| Err(gone()))
    }
}

#[cfg(test)]
mod tests {
    use std::sync::Mutex;

    use super::*;

    #[tokio::test]
    async fn what_comes_during_a_round_goes_with_the_next() {
        let (sizes, (open, gate)) = (Arc::new(Mutex::new(Vec::new())), oneshot::channel::<()>());
        let (kept, gate) = (Arc::clone(&sizes), Arc::new(Mutex::new(Some(gate))));
        let rounds = Arc::new(Rounds::new(move |keys: Vec<u32>| {
            kept.lock().expect("sizes").push(keys.len());
            let gate = gate.lock().expect("a gate").take();
            async move {
                if let Some(gate) = gate {
                    gate.await.expect("opened");
                }
                Ok(keys.into_iter().map(|key| key * 2).collect())
            }
        }));
        let ask = |key| {
            let rounds = Arc::clone(&rounds);
            tokio::spawn(async move { rounds.ask(key).await.expect("an answer") })
        };
        let mut answers = vec![ask(0)];
        while sizes.lock().expect("sizes").is_empty() {
            tokio::task::yield_now().await;
        }
        answers.extend((1..=20).map(ask));
        tokio::task::yield_now().await;
        open.send(()).expect("the first round waits");
        for (key, answer) in (0..).zip(answers) {
            assert_eq!(answer.await.expect("a task"), key * 2);
        }
        assert_eq!(*sizes.lock().expect("sizes"), [1, 20]);
    }

    #[tokio::test]
    async fn a_round_that_fails_is_the_failure_of_those_in_it_only() {
        let rounds = Rounds::new(|keys: Vec<u32>| async move {
            assert_ne!(keys, [13], "panics");
            match keys[..] {
                [7] => Err(sqlx::Error::PoolTimedOut),
                _ => Ok(keys),
            }
        });
        assert!(matches!(&*rounds.ask(7).await.expect_err("refused"), sqlx::Error::PoolTimedOut));
        let broken = rounds.ask(13).await.expect_err("broken");
        assert!(matches!(&*broken, sqlx::Error::WorkerCrashed));
        assert_eq!(rounds.ask(1).await.expect("the next one"), 1);
    }
}
