//! Whose delivery is made next. Every endpoint has a lane, lanes take turns, and receivers that
//! are slow or fail share a quarter of the slots, so that they cost themselves only. Nobody is
//! known to be slow before the first time: an exchange that takes long gives up its fast slot,
//! however many are slow already, up to a limit.

use std::collections::{HashMap, VecDeque};
use std::time::Duration;

use crate::clock::Moment;
use crate::config::limits;
use crate::events::outbox::Ready;
use crate::id::{DeliveryId, EndpointId};

/// From this few waiting deliveries on, more are taken out of the queue.
const LOW: usize = 16;
/// Deliveries under way to an endpoint that has not proven itself yet.
const UNPROVEN: usize = 2;
/// Endpoints for which the queue is looked into at once: connections of the database.
const LOOKING: usize = 4;
/// Deliveries that wait for an endpoint when very many do.
const WAITING_IF_CROWDED: usize = 4;
/// Deliveries that a lane remembers to have turned away; beyond it they fall due by themselves.
const TURNED_AWAY_MAX: usize = 4 * limits::WAITING_PER_ENDPOINT_MAX;
/// The same of a receiver that is struggling, which takes them one by one.
const TURNED_AWAY_IF_SLOW: usize = 16;
/// The same, over all lanes: ids, without what is sent.
const REMEMBERED_MAX: usize = 4 * limits::WAITING_MAX;
/// How many times all slots slow exchanges may be.
const SLOW_MAX: usize = 4;

/// Which slots an exchange occupies.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum Slot {
    Fast,
    Slow,
}

/// How an exchange ended, as far as turns are concerned.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum Ended {
    /// It arrived.
    Quickly,
    /// It arrived, after long.
    Slowly,
    /// It did not arrive.
    Badly,
    /// It was not tried: the endpoint is gone or switched off.
    Untried,
}

/// All lanes.
pub(super) struct Lanes {
    lanes: HashMap<EndpointId, Lane>,
    /// Lanes with something waiting, in the order of their turns.
    turns: VecDeque<EndpointId>,
    /// Claimed, and not to be made here after all.
    dropped: Vec<Ready>,
    fast_free: usize,
    /// Slow exchanges under way, how many of them may begin, and how many there may be.
    slow: usize,
    slow_slots: usize,
    slow_max: usize,
    /// Deliveries that wait, over all lanes.
    waiting: usize,
    /// Deliveries that are remembered to have been turned away, over all lanes.
    remembered: usize,
    /// Endpoints for which somebody looks into the queue.
    looking: usize,
}

struct Lane {
    waiting: VecDeque<Ready>,
    under_way: HashMap<DeliveryId, Slot>,
    allowance: usize,
    is_slow: bool,
    failures: i64,
    paused_until: Option<Moment>,
    has_turn: bool,
    /// Whether the queue may hold more, and whether somebody is looking.
    more: bool,
    looking: bool,
    /// What was handed over and not taken; the queue has it.
    turned_away: Vec<DeliveryId>,
}

/// A lane that has room, while there may be more in the queue.
#[derive(Debug, PartialEq, Eq)]
pub(super) struct Hungry {
    pub endpoint: EndpointId,
    /// How many it can take.
    pub room: usize,
    /// What was handed over to this host, and may be made before it is due: no more than `room`.
    pub turned_away: Vec<DeliveryId>,
}

impl Lanes {
    /// Lanes for so many exchanges at once.
    pub(super) fn new(slots: usize) -> Self {
        let slow_slots = (slots / 4).max(1);
        Self {
            lanes: HashMap::new(),
            turns: VecDeque::new(),
            dropped: Vec::new(),
            fast_free: slots.saturating_sub(slow_slots).max(1),
            slow: 0,
            slow_slots,
            slow_max: slots.saturating_mul(SLOW_MAX),
            waiting: 0,
            remembered: 0,
            looking: 0,
        }
    }

    /// Takes a delivery in, unless its lane is full or paused, or has it already. What is not
    /// taken is in the queue.
    pub(super) fn offer(&mut self, ready: Ready, now: Moment) {
        let id = ready.endpoint_id.clone();
        let capacity = self.capacity();
        let lane = self.lanes.entry(id.clone()).or_default();
        if !lane.has_room(capacity) || lane.is_paused(now) {
            let claim = lane.turn_away(ready, &mut self.remembered);
            self.dropped.extend(claim);
            return;
        }
        if lane.under_way.contains_key(&ready.id) {
            // It was written down that it is due again before it was heard here that it has ended.
            self.dropped.push(ready);
            return;
        }
        if lane.waiting.iter().any(|other| other.id == ready.id) {
            return;
        }
        lane.waiting.push_back(ready);
        if !lane.has_turn {
            lane.has_turn = true;
            self.turns.push_back(id);
        }
        self.waiting += 1;
    }

    /// The next delivery to make, if one may be made now.
    pub(super) fn next(&mut self, now: Moment) -> Option<Ready> {
        if self.fast_free == 0 && self.slow >= self.slow_slots {
            return None;
        }
        for _ in 0..self.turns.len() {
            let id = self.turns.pop_front()?;
            let Some(lane) = self.lanes.get_mut(&id) else { continue };
            if lane.is_paused(now) {
                // They were not tried: no attempt is used up.
                self.waiting -= lane.waiting.len();
                for ready in std::mem::take(&mut lane.waiting) {
                    self.dropped.extend(lane.turn_away(ready, &mut self.remembered));
                }
            }
            while let Some(late) = lane.waiting.pop_front_if(|ready| ready.until <= now) {
                self.waiting -= 1;
                self.dropped.extend(lane.turn_away(late, &mut self.remembered));
            }
            if lane.waiting.is_empty() {
                lane.has_turn = false;
                continue;
            }
            let slot = if lane.is_slow { Slot::Slow } else { Slot::Fast };
            let is_free = match slot {
                Slot::Fast => self.fast_free > 0,
                Slot::Slow => self.slow < self.slow_slots,
            };
            let ready = match lane.under_way.len() < lane.allowance && is_free {
                true => lane.waiting.pop_front(),
                false => None,
            };
            self.turns.push_back(id);
            if let Some(ready) = ready {
                self.waiting -= 1;
                match slot {
                    Slot::Fast => self.fast_free -= 1,
                    Slot::Slow => self.slow += 1,
                }
                lane.under_way.insert(ready.id.clone(), slot);
                return Some(ready);
            }
        }
        None
    }

    /// An exchange takes long: it leaves the fast slots.
    pub(super) fn slow_down(&mut self, ready: &Ready) {
        let has_room = self.slow < self.slow_max;
        let lane = self.lane(&ready.endpoint_id);
        (lane.is_slow, lane.allowance) = (true, 1);
        match lane.under_way.get_mut(&ready.id) {
            Some(slot @ Slot::Fast) if has_room => *slot = Slot::Slow,
            _ => return,
        }
        self.slow += 1;
        self.fast_free += 1;
    }

    /// An exchange ended.
    pub(super) fn ended(&mut self, ready: &Ready, ended: Ended, now: Moment) {
        match self.lane(&ready.endpoint_id).under_way.remove(&ready.id) {
            Some(Slot::Fast) => self.fast_free += 1,
            Some(Slot::Slow) => self.slow -= 1,
            None => {}
        }
        let lane = self.lane(&ready.endpoint_id);
        match ended {
            Ended::Quickly => {
                lane.allowance = (lane.allowance + 1).min(limits::UNDER_WAY_PER_ENDPOINT_MAX);
                lane.is_slow = false;
            }
            Ended::Slowly | Ended::Badly => (lane.is_slow, lane.allowance) = (true, 1),
            Ended::Untried => return,
        }
        lane.failures = if ended == Ended::Badly { lane.failures + 1 } else { 0 };
        lane.paused_until = match pause(lane.failures) {
            // Of several at once one that failed earlier may be heard of later.
            Some(pause) => lane.paused_until.max(Some(now.after(pause))),
            None => None,
        };
    }

    /// Claims to be given back.
    pub(super) fn dropped(&mut self) -> Vec<Ready> {
        std::mem::take(&mut self.dropped)
    }

    /// Something is in the queue for an endpoint.
    pub(super) fn found(&mut self, endpoint: &EndpointId) {
        self.lane(endpoint).more = true;
    }

    /// Lanes for which somebody should look into the queue.
    pub(super) fn hungry(&mut self, now: Moment) -> Vec<Hungry> {
        let room = LOOKING.saturating_sub(self.looking);
        if room == 0 {
            return Vec::new();
        }
        let capacity = self.capacity();
        let lanes = self.lanes.iter_mut().filter_map(|(id, lane)| {
            let appetite = lane.appetite(capacity);
            if !lane.more || lane.looking || appetite == 0 || lane.is_paused(now) {
                return None;
            }
            (lane.more, lane.looking) = (false, true);
            let taken = lane.turned_away.len().min(appetite);
            self.remembered -= taken;
            let turned_away = lane.turned_away.drain(..taken).collect();
            Some(Hungry { endpoint: id.clone(), room: appetite, turned_away })
        });
        let hungry: Vec<_> = lanes.take(room).collect();
        self.looking += hungry.len();
        hungry
    }

    /// Somebody has looked.
    pub(super) fn looked(&mut self, endpoint: &EndpointId) {
        let lane = self.lane(endpoint);
        lane.looking = false;
        lane.more |= !lane.turned_away.is_empty();
        self.looking -= 1;
    }

    /// Forgets lanes in which nothing happens.
    pub(super) fn tidy(&mut self, now: Moment) {
        self.lanes.retain(|_, lane| {
            lane.has_turn
                || lane.looking
                || !lane.under_way.is_empty()
                || lane.is_paused(now)
                || lane.failures > 0
                || !lane.turned_away.is_empty()
        });
    }

    /// How many deliveries may wait for one endpoint; the others wait in the queue.
    fn capacity(&self) -> usize {
        match self.waiting >= limits::WAITING_MAX {
            true => WAITING_IF_CROWDED,
            false => limits::WAITING_PER_ENDPOINT_MAX,
        }
    }

    fn lane(&mut self, id: &EndpointId) -> &mut Lane {
        self.lanes.entry(id.clone()).or_default()
    }
}

impl Default for Lane {
    fn default() -> Self {
        Self {
            waiting: VecDeque::new(),
            under_way: HashMap::new(),
            allowance: UNPROVEN,
            is_slow: false,
            failures: 0,
            paused_until: None,
            has_turn: false,
            more: false,
            looking: false,
            turned_away: Vec::new(),
        }
    }
}

impl Lane {
    fn is_paused(&self, now: Moment) -> bool {
        self.paused_until.is_some_and(|until| until > now)
    }

    /// Notes that the queue has what is not made now; answers a claim, which is to be given back.
    fn turn_away(&mut self, ready: Ready, remembered: &mut usize) -> Option<Ready> {
        self.more = true;
        if ready.fence > 0 {
            return Some(ready);
        }
        let most = if self.is_slow { TURNED_AWAY_IF_SLOW } else { TURNED_AWAY_MAX };
        if self.turned_away.len() < most && *remembered < REMEMBERED_MAX {
            self.turned_away.push(ready.id);
            *remembered += 1;
        }
        None
    }

    fn is_idle(&self) -> bool {
        self.waiting.is_empty() && self.under_way.is_empty()
    }

    /// Whether one more may wait here. For a receiver that is struggling nothing waits: the
    /// others stay where every host finds them.
    fn has_room(&self, capacity: usize) -> bool {
        match self.is_slow {
            true => self.is_idle(),
            false => self.waiting.len() < capacity,
        }
    }

    /// How many more it can take out of the queue.
    fn appetite(&self, capacity: usize) -> usize {
        let (most, waiting) = (capacity / 2, self.waiting.len());
        match self.is_slow {
            true => usize::from(self.is_idle()),
            false if waiting < most.min(LOW) => most - waiting,
            false => 0,
        }
    }
}

/// For how long an endpoint is left alone after so many failures in a row.
fn pause(failures: i64) -> Option<Duration> {
    let over = u32::try_from(failures - limits::WEBHOOK_BREAKER_FAILURES).ok()?;
    let (first, most) = limits::WEBHOOK_BREAKER_PAUSE;
    Some(first.saturating_mul(2_u32.saturating_pow(over)).min(most))
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::id::{DeliveryId, Id as _};

    fn ready(endpoint: &str, number: usize) -> Ready {
        Ready {
            id: DeliveryId::from_text(format!("{endpoint}-{number}")),
            endpoint_id: EndpointId::from_text(endpoint.into()),
            event: "payout.paid".into(),
            body: "{}".into(),
            attempts: 0,
            is_test: false,
            fence: 0,
            version: 0,
            until: Moment::from_micros(i64::MAX),
        }
    }

    fn id(endpoint: &str) -> EndpointId {
        EndpointId::from_text(endpoint.into())
    }

    #[test]
    fn lanes_take_turns() {
        let now = Moment::default();
        let mut lanes = Lanes::new(8);
        for number in 0..4 {
            lanes.offer(ready("a", number), now);
        }
        lanes.offer(ready("b", 0), now);
        let order: Vec<_> =
            std::iter::from_fn(|| lanes.next(now)).map(|ready| ready.id.to_string()).collect();
        // Two each at first: neither has proven itself.
        assert_eq!(order, ["a-0", "b-0", "a-1"]);
    }

    #[test]
    fn what_is_claimed_again_while_it_is_under_way_is_given_back() {
        let now = Moment::default();
        let mut lanes = Lanes::new(8);
        lanes.offer(ready("a", 0), now);
        let under_way = lanes.next(now).expect("a turn");
        let again = Ready { fence: 2, ..ready("a", 0) };
        lanes.offer(again.clone(), now);
        assert!(lanes.next(now).is_none());
        let dropped: Vec<_> = lanes.dropped().iter().map(|ready| ready.fence).collect();
        assert_eq!(dropped, [2]);
        lanes.ended(&under_way, Ended::Badly, now);
        lanes.offer(again, now);
        assert_eq!(lanes.next(now).map(|ready| ready.fence), Some(2));
    }

    #[test]
    fn receivers_that_hang_hold_a_quarter_of_the_slots() {
        let now = Moment::default();
        let mut lanes = Lanes::new(8);
        for round in 0..2 {
            for number in 0..6 {
                lanes.offer(ready(&format!("slow{number}"), round), now);
            }
            let under_way: Vec<_> = std::iter::from_fn(|| lanes.next(now)).collect();
            // Nobody knows them the first time.
            assert_eq!(under_way.len(), if round == 0 { 6 } else { 2 });
            for ready in &under_way {
                lanes.slow_down(ready);
            }
            if round == 0 {
                // None of them keeps a fast slot for long.
                assert_eq!((lanes.fast_free, lanes.slow), (6, 6));
                under_way.iter().for_each(|ready| lanes.ended(ready, Ended::Slowly, now));
            }
        }
        lanes.offer(ready("good", 0), now);
        assert_eq!(lanes.next(now).map(|ready| ready.endpoint_id), Some(id("good")));
    }

    #[test]
    fn an_endpoint_that_keeps_failing_is_left_alone_and_then_tried_once() {
        let now = Moment::default();
        let mut lanes = Lanes::new(8);
        for number in 0..5 {
            lanes.offer(ready("a", number), now);
            let ready = lanes.next(now).expect("a turn");
            lanes.ended(&ready, Ended::Badly, now);
        }
        lanes.offer(ready("a", 5), now);
        assert!(lanes.next(now).is_none());
        assert!(lanes.hungry(now).is_empty());
        let later = now.after(limits::WEBHOOK_BREAKER_PAUSE.0);
        let look = |room, turned_away: &[usize]| Hungry {
            endpoint: id("a"),
            room,
            turned_away: turned_away.iter().map(|number| ready("a", *number).id).collect(),
        };
        assert_eq!(lanes.hungry(later), [look(1, &[5])]);
        lanes.offer(ready("a", 5), later);
        // What is fresh has to wait in the queue like everything else, but not for long.
        lanes.offer(ready("a", 6), later);
        lanes.offer(ready("a", 7), later);
        assert!(lanes.hungry(later).is_empty());
        let probe = lanes.next(later).expect("a probe");
        assert!(lanes.next(later).is_none());
        lanes.ended(&probe, Ended::Quickly, later);
        lanes.looked(&id("a"));
        assert_eq!(lanes.hungry(later), [look(limits::WAITING_PER_ENDPOINT_MAX / 2, &[6, 7])]);
    }

    #[test]
    fn what_a_slow_lane_turned_away_comes_one_by_one() {
        let now = Moment::default();
        let mut lanes = Lanes::new(8);
        lanes.offer(ready("a", 0), now);
        let mut busy = lanes.next(now).expect("a turn");
        lanes.slow_down(&busy);
        for number in 1..40 {
            lanes.offer(ready("a", number), now);
        }
        let mut looked_for = Vec::new();
        loop {
            lanes.ended(&busy, Ended::Slowly, now);
            let Some(Hungry { room: 1, turned_away, .. }) = lanes.hungry(now).pop() else { break };
            assert!(lanes.hungry(now).is_empty(), "somebody is looking");
            let [id] = <[DeliveryId; 1]>::try_from(turned_away).expect("as many as there is room");
            looked_for.push(id.clone());
            lanes.offer(Ready { id, fence: 1, ..busy }, now);
            lanes.looked(&EndpointId::from_text("a".into()));
            busy = lanes.next(now).expect("a turn");
        }
        // The others fall due by themselves.
        let first = (1..=TURNED_AWAY_IF_SLOW).map(|number| ready("a", number).id);
        let first: Vec<_> = first.collect();
        assert_eq!(looked_for, first);
        assert!(lanes.dropped().is_empty(), "nobody claimed what was handed over");
    }

    #[test]
    fn what_a_busy_lane_turned_away_is_remembered_up_to_a_limit() {
        let now = Moment::default();
        let mut lanes = Lanes::new(8);
        let endpoints = 2 + REMEMBERED_MAX / TURNED_AWAY_MAX;
        let each = limits::WAITING_PER_ENDPOINT_MAX + TURNED_AWAY_MAX + 1;
        for endpoint in 0..endpoints {
            for number in 0..each {
                lanes.offer(ready(&endpoint.to_string(), number), now);
            }
            let noted = lanes.lanes[&id(&endpoint.to_string())].turned_away.len();
            assert!(noted <= TURNED_AWAY_MAX);
            assert_eq!(lanes.remembered, REMEMBERED_MAX.min((endpoint + 1) * TURNED_AWAY_MAX));
        }
        // Whoever has room again asks for them first.
        let mut made = 0;
        while let Some(ready) = lanes.next(now) {
            made += 1;
            lanes.ended(&ready, Ended::Quickly, now);
        }
        assert!(made >= limits::WAITING_PER_ENDPOINT_MAX, "{made}");
        let hungry = lanes.hungry(now);
        assert!(!hungry.is_empty());
        for hungry in hungry {
            assert_eq!(hungry.turned_away.len(), hungry.room.min(TURNED_AWAY_MAX));
        }
    }

    #[test]
    fn a_failure_that_is_heard_of_late_does_not_shorten_a_pause() {
        let (now, second) = (Moment::default(), Duration::from_secs(1));
        let mut lanes = Lanes::new(8);
        for number in 0..4 {
            lanes.ended(&ready("a", number), Ended::Badly, now);
        }
        let (first, most) = limits::WEBHOOK_BREAKER_PAUSE;
        let late = now.after(most);
        lanes.ended(&ready("a", 4), Ended::Badly, late);
        lanes.ended(&ready("a", 5), Ended::Badly, now);
        lanes.found(&id("a"));
        let end = late.after(first);
        assert!(lanes.hungry(end.before(second)).is_empty());
        assert_eq!(lanes.hungry(end).len(), 1);
    }

    #[test]
    fn claims_that_come_to_nothing_are_given_back() {
        let (now, claimed) = (Moment::default(), |number| Ready { fence: 1, ..ready("a", number) });
        let mut lanes = Lanes::new(8);
        lanes.offer(Ready { until: now, ..claimed(0) }, now);
        lanes.offer(claimed(1), now);
        assert_eq!(lanes.next(now).map(|ready| ready.id), Some(claimed(1).id));
        assert_eq!(lanes.dropped().len(), 1, "too late to be begun");
        for number in 2..7 {
            lanes.offer(claimed(number), now);
            lanes.ended(&claimed(number), Ended::Badly, now);
        }
        assert!(lanes.next(now).is_none());
        assert_eq!(lanes.dropped().len(), 5, "left alone");
        lanes.offer(claimed(7), now);
        lanes.offer(ready("a", 8), now);
        let dropped: Vec<_> = lanes.dropped().into_iter().map(|ready| ready.id).collect();
        assert_eq!(dropped, [claimed(7).id], "nobody claimed what was handed over");
    }

    #[test]
    fn pauses_grow_to_a_limit() {
        let seconds: Vec<_> = (4..12).map(|f| pause(f).map(|span| span.as_secs())).collect();
        assert_eq!(
            seconds,
            [None, Some(5), Some(10), Some(20), Some(40), Some(80), Some(160), Some(300)]
        );
    }

    proptest::proptest! {
        #[test]
        fn slots_are_neither_lost_nor_made(steps in proptest::collection::vec((0..4_usize, 0..4_usize), 0..200)) {
            let mut lanes = Lanes::new(8);
            let mut under_way = Vec::new();
            let mut now = Moment::default();
            for (number, (kind, which)) in steps.into_iter().enumerate() {
                now = now.after(Duration::from_secs(1));
                match kind {
                    0 => lanes.offer(ready(&which.to_string(), number), now),
                    1 => under_way.extend(lanes.next(now)),
                    2 => under_way.last().into_iter().for_each(|ready| lanes.slow_down(ready)),
                    _ => if let Some(ready) = under_way.pop() {
                        let all = [Ended::Quickly, Ended::Slowly, Ended::Badly, Ended::Untried];
                        lanes.ended(&ready, all[which], now);
                    },
                }
                let held = lanes.lanes.values().flat_map(|lane| lane.under_way.values());
                let slow = held.filter(|slot| **slot == Slot::Slow).count();
                proptest::prop_assert_eq!(lanes.slow, slow);
                proptest::prop_assert_eq!(lanes.fast_free + under_way.len() - slow, 6);
                let waiting = lanes.lanes.values().map(|lane| lane.waiting.len()).sum::<usize>();
                proptest::prop_assert_eq!(lanes.waiting, waiting);
                let noted = lanes.lanes.values().map(|lane| lane.turned_away.len());
                proptest::prop_assert_eq!(lanes.remembered, noted.sum::<usize>());
            }
        }
    }
}
