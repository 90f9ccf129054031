//! Bodies that are read before it is known who sends them: only then can their signatures be
//! checked. Whoever sends nonsense, and slowly, keeps few of them, for a short while.

use std::collections::HashMap;
use std::net::IpAddr;
use std::sync::{Mutex, MutexGuard, PoisonError};
use std::time::Duration;

use crate::error::{ErrorCode, Problem};
use crate::http::peer;

/// Bodies at once through one door, of up to a megabyte each, and of one household.
const AT_ONCE: (usize, usize) = (64, 8);
/// A network sends its message in one piece.
const LONGEST: Duration = Duration::from_secs(2);

/// Bodies that are being read, by door and household.
#[derive(Default)]
pub(super) struct Unverified(Mutex<HashMap<From, usize>>);

/// Through which door, and who shares a budget there.
type From = (String, String);

impl Unverified {
    /// Reads a body that comes through this door from this address.
    ///
    /// # Errors
    /// `service_overloaded` where there are too many; `unauthorized` where it does not arrive.
    pub(super) async fn read(
        &self,
        from: (String, IpAddr),
        body: impl Future<Output = Result<Vec<u8>, Problem>>,
    ) -> Result<Vec<u8>, Problem> {
        self.read_within((from, LONGEST), body).await
    }

    async fn read_within(
        &self,
        ((door, from), longest): ((String, IpAddr), Duration),
        body: impl Future<Output = Result<Vec<u8>, Problem>>,
    ) -> Result<Vec<u8>, Problem> {
        let full = || Problem::new(ErrorCode::ServiceOverloaded).retry_after(1);
        let _place = self.enter((door, peer::household(from))).ok_or_else(full)?;
        let stranger = || Problem::new(ErrorCode::Unauthorized);
        let read = tokio::time::timeout(longest, body).await.map_err(|_| stranger())?;
        read.map_err(|problem| match problem.code() {
            ErrorCode::InvalidJson => stranger(),
            _ => problem,
        })
    }

    fn enter(&self, from: From) -> Option<Place<'_>> {
        let mut reading = self.reading();
        let (all, own) = AT_ONCE;
        let through_it = reading.iter().filter(|((door, _), _)| *door == from.0);
        let is_full = through_it.map(|(_, reading)| reading).sum::<usize>() >= all;
        let here = reading.get(&from).copied().unwrap_or_default();
        if is_full || here >= own {
            return None;
        }
        reading.insert(from.clone(), here + 1);
        Some(Place { of: self, from })
    }

    fn reading(&self) -> MutexGuard<'_, HashMap<From, usize>> {
        self.0.lock().unwrap_or_else(PoisonError::into_inner)
    }
}

/// One body that is being read.
struct Place<'a> {
    of: &'a Unverified,
    from: From,
}

impl Drop for Place<'_> {
    fn drop(&mut self) {
        let mut reading = self.of.reading();
        if let Some(here) = reading.get_mut(&self.from) {
            *here -= 1;
            if *here == 0 {
                reading.remove(&self.from);
            }
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[tokio::test]
    async fn whoever_sends_slowly_keeps_few_places_for_a_short_while() {
        let unverified = Unverified::default();
        let at = |door: &str, text: &str| -> (String, IpAddr) {
            (door.to_owned(), text.parse().expect("an address"))
        };
        let from = |text: &str| at("live/fps", text);
        let never = || std::future::pending::<Result<Vec<u8>, Problem>>();
        let code = |read: Result<Vec<u8>, Problem>| read.expect_err("a refusal").code();
        let slowly = || (from("192.0.2.1"), Duration::from_millis(50));
        let slow: Vec<_> = (0..8).map(|_| unverified.read_within(slowly(), never())).collect();
        let beside = async {
            tokio::task::yield_now().await;
            let ninth = unverified.read(from("192.0.2.1"), never()).await;
            let other = unverified.read(from("192.0.2.2"), async { Ok(vec![1]) }).await;
            let door = unverified.read(at("live/fedwire", "192.0.2.1"), async { Ok(vec![2]) });
            (code(ninth), other.expect("a body"), door.await.expect("a body"))
        };
        let (slow, beside) = tokio::join!(futures::future::join_all(slow), beside);
        assert_eq!(beside, (ErrorCode::ServiceOverloaded, vec![1], vec![2]));
        assert!(slow.into_iter().all(|read| code(read) == ErrorCode::Unauthorized));
        assert!(unverified.reading().is_empty());
        let cut = async { Err(Problem::new(ErrorCode::InvalidJson)) };
        let cut = unverified.read(from("192.0.2.1"), cut).await;
        assert_eq!(code(cut), ErrorCode::Unauthorized, "it counts on the budget of its address");
    }
}
