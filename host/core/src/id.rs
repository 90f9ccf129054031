//! Typed ids, and the generator that makes them.
//!
//! An id is a UUIDv7 without its six constant bits, written in base 36: a letter and 24
//! characters that sort by time and cannot be guessed (62 random bits). Those of one generator
//! rise strictly, so that lists of what happened in one instant are still in its order.
//!
//! Of journals that debit a payout first this holds of the payout's id, from which theirs is
//! computed.

use std::fmt;
use std::ops::RangeInclusive;
use std::sync::{Mutex, MutexGuard, PoisonError};

use rand::rngs::{StdRng, SysRng};
use rand::{Rng as _, RngExt as _, SeedableRng as _};

use crate::clock::{Clock, Moment};
use crate::env::Env;

const DIGITS: &[u8; 36] = b"0123456789abcdefghijklmnopqrstuvwxyz";
const LETTERS: &[u8; 62] = b"0123456789ABCDEFGHIJKLMNOPQRSTUVWXYZabcdefghijklmnopqrstuvwxyz";
/// The lowest bits of an id: random ones.
const RANDOM_BITS: u32 = 62;
/// Those above them: the fraction of a millisecond. The others are milliseconds since 1970.
const FRACTION_BITS: u32 = 12;
/// Characters of the part of an id that follows its prefix.
pub const BODY_LENGTH: usize = 24;

/// An id of one kind of object: a prefix and a time-ordered body.
pub trait Id: Sized {
    /// What the id begins with.
    const PREFIX: &'static str;
    /// Wraps an id that was made or read before.
    fn from_text(text: String) -> Self;
}

macro_rules! ids {
    ($($(#[$doc:meta])* $name:ident = $prefix:literal;)*) => {$(
        $(#[$doc])*
        #[derive(
            Clone, Debug, PartialEq, Eq, PartialOrd, Ord, Hash, serde::Serialize, serde::Deserialize,
        )]
        pub struct $name(String);

        impl Id for $name {
            const PREFIX: &'static str = $prefix;
            fn from_text(text: String) -> Self {
                Self(text)
            }
        }

        impl $name {
            /// The id as text.
            #[must_use]
            pub fn as_str(&self) -> &str {
                &self.0
            }

            /// An id before every other of this instant.
            #[must_use]
            pub fn first_at(at: Moment) -> Self {
                Self(format!("{}{}", $prefix, encode(u128::from(at.millis()) << (FRACTION_BITS + RANDOM_BITS))))
            }

            /// When it was made, to the millisecond.
            #[must_use]
            pub fn made_at(&self) -> Moment {
                let millis = self.number() >> FRACTION_BITS;
                Moment::from_micros(millis.saturating_mul(1000))
            }

            /// When it was made, in 4096ths of a millisecond, for indexes: ids of a kind are in the
            /// order of their numbers. Where different hosts have made two at once these are the
            /// same, and the texts decide.
            #[must_use]
            pub fn number(&self) -> i64 {
                Self::number_of(&self.0)
            }

            /// The same of a text that may be such an id; 0 of one that is none.
            #[must_use]
            pub fn number_of(text: &str) -> i64 {
                let number = decode(text.get($prefix.len()..).unwrap_or_default());
                i64::try_from(number >> RANDOM_BITS).unwrap_or(i64::MAX)
            }

            /// The id in a request, if it has the shape of one.
            #[must_use]
            pub fn parse(text: &str) -> Option<Self> {
                well_formed(text, $prefix).then(|| Self(text.to_owned()))
            }
        }

        impl fmt::Display for $name {
            fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
                f.write_str(&self.0)
            }
        }
    )*};
}

ids! {
    /// A merchant.
    MerchantId = "c";
    /// An API key.
    KeyId = "c";
    /// A wallet.
    WalletId = "c";
    /// A payout.
    PayoutId = "c";
    /// A batch of payouts.
    BatchId = "c";
    /// A conversion.
    ConversionId = "c";
    /// A saved beneficiary.
    BeneficiaryId = "c";
    /// One attempt to send a payout over a rail.
    AttemptId = "c";
    /// A journal of the ledger; its entries' ids differ in the last two characters.
    JournalId = "c";
    /// A route.
    RouteId = "c";
    /// An entry of a blacklist.
    BlockId = "c";
    /// A member of a merchant's team.
    MemberId = "mem_";
    /// A session of a member.
    SessionId = "ses_";
    /// Something that is told to people.
    NotificationId = "ntf_";
    /// What an operator has to look at.
    AlertId = "alert_";
    /// A line of the audit log.
    AuditId = "c";
    /// What somebody asked for, and others have to.
    ApprovalId = "c";
    /// A decision that a pack in shadow would have made otherwise.
    DifferenceId = "c";
    /// An event.
    EventId = "evt_";
    /// A webhook endpoint.
    EndpointId = "ckwhe_";
    /// A webhook delivery.
    DeliveryId = "ckwhd_";
    /// What needs a person.
    CaseId = "case_";
    /// A message of a network, as it arrived.
    MessageId = "msg_";
    /// A file of payments.
    PaymentFileId = "pf_";
    /// An adjusting entry of a settlement account.
    AdjustmentId = "adj_";
    /// A request.
    RequestId = "req_";
}

impl MerchantId {
    /// A number for a merchant in one environment, for indexes: its random bits, and 1 for live. Two
    /// may have the same, so that a query compares the ids as well.
    #[must_use]
    pub fn owner_number(&self, env: Env) -> i64 {
        let body = self.0.get(Self::PREFIX.len()..).unwrap_or_default();
        let random = decode(body) & ((1 << RANDOM_BITS) - 1);
        i64::try_from(random << 1).unwrap_or_default() | i64::from(env == Env::Live)
    }
}

fn well_formed(text: &str, prefix: &str) -> bool {
    text.strip_prefix(prefix).is_some_and(|body| {
        body.len() == BODY_LENGTH
            && body.bytes().all(|byte| byte.is_ascii_digit() || byte.is_ascii_lowercase())
    })
}

macro_rules! references {
    ($($name:ident = $prefix:literal;)*) => {$(
        impl $name {
            #[doc = concat!("The merchant-facing reference: `", $prefix, "` and the same body.")]
            #[must_use]
            pub fn reference(&self) -> String {
                format!("{}{}", $prefix, &self.0[1..])
            }

            #[doc = concat!("Reads an id or a `", $prefix, "` reference.")]
            #[must_use]
            pub fn parse_either(text: &str) -> Option<Self> {
                match text.strip_prefix($prefix) {
                    Some(body) => Self::parse(&format!("c{body}")),
                    None => Self::parse(text),
                }
            }
        }
    )*};
}

references! {
    PayoutId = "po_";
    BatchId = "bat_";
}

impl JournalId {
    /// Lines that a journal may have: two digits name one.
    pub const LINES_MAX: usize = 36 * 36;

    /// The id of a payout's first debit, computed from the payout's. Its last digit before the line
    /// is the next one, so that no entry has the id of the payout itself.
    #[must_use]
    pub fn of_debit(payout: &PayoutId) -> Self {
        let head = payout.as_str().get(..LINE_AT).unwrap_or_default();
        Self(format!("{}00", rotated(head, 1)))
    }

    /// The payouts whose first debit has this id.
    #[must_use]
    pub fn payouts_debited(&self) -> RangeInclusive<PayoutId> {
        let head = rotated(self.0.get(..LINE_AT).unwrap_or_default(), DIGITS.len() - 1);
        PayoutId(format!("{head}00"))..=PayoutId(format!("{head}zz"))
    }

    /// The id of the entry at `line`, from 0, of this journal.
    #[must_use]
    pub fn entry(&self, line: usize) -> String {
        let digit = |place: usize| char::from(DIGITS[place % 36]);
        format!("{}{}{}", &self.0[..LINE_AT], digit(line / 36), digit(line))
    }

    /// The journal and line that an entry's id names.
    #[must_use]
    pub fn of_entry(entry: &str) -> Option<(Self, i64)> {
        let id = Self::parse(entry)?;
        let (head, tail) = id.0.split_at(LINE_AT);
        let line = i64::from_str_radix(tail, 36).ok()?;
        Some((Self(format!("{head}00")), line))
    }
}

/// Where the line stands in the id of an entry.
const LINE_AT: usize = BODY_LENGTH - 1;

/// The same with its last digit so many places further on; after z comes 0.
fn rotated(head: &str, places: usize) -> String {
    let mut head = head.to_owned();
    let last =
        head.pop().and_then(|last| DIGITS.iter().position(|digit| char::from(*digit) == last));
    head.extend(last.map(|last| char::from(DIGITS[(last + places) % DIGITS.len()])));
    head
}

/// Makes ids, secrets and numbers, from the injected clock and a cryptographic generator.
pub struct IdGenerator {
    clock: Clock,
    state: Mutex<State>,
}

struct State {
    random: StdRng,
    /// Time of the last id, in 4096ths of a millisecond.
    last: u64,
}

impl IdGenerator {
    /// An id generator seeded by the operating system.
    ///
    /// # Errors
    /// The operating system has no randomness to give.
    pub fn new(clock: Clock) -> Result<Self, rand::rngs::SysError> {
        Ok(Self::with_random(clock, StdRng::try_from_rng(&mut SysRng)?))
    }

    /// An id generator whose output repeats, for tests.
    #[must_use]
    pub fn seeded(clock: Clock, seed: u64) -> Self {
        Self::with_random(clock, StdRng::seed_from_u64(seed))
    }

    fn with_random(clock: Clock, random: StdRng) -> Self {
        Self { clock, state: Mutex::new(State { random, last: 0 }) }
    }

    /// A fresh id.
    pub fn id<T: Id>(&self) -> T {
        T::from_text(format!("{}{}", T::PREFIX, encode(self.number_v7())))
    }

    /// A fresh journal id, whose last two digits are left free for the line.
    pub fn journal(&self) -> JournalId {
        let body = encode(self.number_v7());
        JournalId(format!("c{}00", &body[..BODY_LENGTH - 2]))
    }

    /// A number below `limit`.
    pub fn below(&self, limit: u64) -> u64 {
        self.with(|random| random.random_range(0..limit))
    }

    /// Letters and digits holding more than 256 random bits.
    pub fn secret(&self) -> String {
        self.with(|random| {
            (0..43).map(|_| char::from(LETTERS[random.random_range(0..LETTERS.len())])).collect()
        })
    }

    /// Random bytes.
    pub fn bytes<const N: usize>(&self) -> [u8; N] {
        let mut bytes = [0; N];
        self.with(|random| random.fill_bytes(&mut bytes));
        bytes
    }

    /// The 122 free bits of a UUIDv7: 48 of milliseconds, 12 of the fraction (RFC 9562 §6.2,
    /// method 3), 62 random. Where the clock stands still or steps back, the fraction goes on
    /// from the last id.
    fn number_v7(&self) -> u128 {
        let micros = self.clock.now().micros().unsigned_abs();
        let now = ((micros / 1000) << FRACTION_BITS) | ((micros % 1000) * 4096 / 1000);
        let mut state = self.lock();
        state.last = now.max(state.last + 1);
        (u128::from(state.last) << RANDOM_BITS) | u128::from(state.random.next_u64() >> 2)
    }

    fn with<T>(&self, act: impl FnOnce(&mut StdRng) -> T) -> T {
        act(&mut self.lock().random)
    }

    fn lock(&self) -> MutexGuard<'_, State> {
        self.state.lock().unwrap_or_else(PoisonError::into_inner)
    }
}

/// 0 for what is no id's body.
fn decode(body: &str) -> u128 {
    u128::from_str_radix(body, 36).unwrap_or(0)
}

fn encode(mut number: u128) -> String {
    let mut body = [b'0'; BODY_LENGTH];
    for place in body.iter_mut().rev() {
        *place = DIGITS[usize::try_from(number % 36).unwrap_or(0)];
        number /= 36;
    }
    body.iter().copied().map(char::from).collect()
}

#[cfg(test)]
mod tests {
    use std::time::Duration;

    use super::*;

    fn generator() -> (IdGenerator, Clock) {
        let clock = Clock::fixed(Moment::from_micros(1_795_000_000_000_000));
        (IdGenerator::seeded(clock.clone(), 7), clock)
    }

    #[test]
    fn numbers_are_in_the_order_of_ids() {
        let (generator, clock) = generator();
        let first: EventId = generator.id();
        let second: EventId = generator.id();
        assert_eq!(first.number() + 1, second.number());
        clock.advance(Duration::from_millis(1));
        let third: EventId = generator.id();
        assert_eq!(first.number() + 4096, third.number());
        assert_eq!(EventId::first_at(clock.now()).number(), third.number());
        assert_eq!(EventId("evt_é".into()).number(), 0);
    }

    #[test]
    fn an_owner_has_a_number_in_each_environment() {
        let (generator, _) = generator();
        let numbers: std::collections::HashSet<i64> = (0..100)
            .map(|_| generator.id::<MerchantId>())
            .flat_map(|id| [Env::Test, Env::Live].map(|env| id.owner_number(env)))
            .collect();
        assert_eq!(numbers.len(), 200);
    }

    #[test]
    fn ids_have_their_shape_and_sort_by_time() {
        let (generator, clock) = generator();
        let earlier: PayoutId = generator.id();
        clock.advance(Duration::from_micros(300));
        let later: PayoutId = generator.id();
        assert!(earlier < later);
        assert_eq!(earlier.as_str().len(), 25);
        assert_eq!(PayoutId::parse(earlier.as_str()), Some(earlier.clone()));
        assert_eq!(PayoutId::parse_either(&earlier.reference()), Some(earlier));
        assert!(PayoutId::parse("po_x").is_none() && PayoutId::parse_either("po_é").is_none());
    }

    #[test]
    fn ids_of_one_instant_sort_in_the_order_of_their_making() {
        let (generator, _) = generator();
        let ids: Vec<PayoutId> = (0..5_000).map(|_| generator.id()).collect();
        assert!(ids.is_sorted_by(|a, b| a < b));
    }

    #[test]
    fn an_entry_names_its_journal() {
        let (generator, _) = generator();
        let journal = generator.journal();
        for line in [0, 1, 9, 10, 35, 36, 37, 1000, JournalId::LINES_MAX - 1] {
            let entry = journal.entry(line);
            let expected = Some((journal.clone(), i64::try_from(line).expect("small")));
            assert_eq!(JournalId::of_entry(&entry), expected);
        }
    }

    #[test]
    fn a_debit_is_found_by_its_payout_and_has_another_id() {
        let (generator, _) = generator();
        for digit in DIGITS.map(char::from) {
            let id = generator.id::<PayoutId>().0;
            let payout = PayoutId(format!("{}{digit}00", &id[..LINE_AT - 1]));
            let debit = JournalId::of_debit(&payout);
            assert_eq!(JournalId::parse(debit.as_str()), Some(debit.clone()));
            assert_ne!(debit.as_str(), payout.as_str());
            let debited = debit.payouts_debited();
            assert!(debited.contains(&payout), "{payout} of {debit}");
            let mut others = (0..20).map(|_| generator.id::<PayoutId>());
            assert!(others.all(|other| !debited.contains(&other)));
        }
    }

    #[test]
    fn the_largest_number_still_fits() {
        assert_eq!(encode((1 << 122) - 1).len(), BODY_LENGTH);
        assert!(36u128.pow(24) > (1 << 122));
    }
}
