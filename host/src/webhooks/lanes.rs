//! Whose delivery is made next. Every endpoint has a lane, lanes take turns, and receivers that
//! are slow or fail share a quarter of the slots, so that they cost themselves only. Nobody is
//! known to be slow before the first time: an exchange that takes long gives up its fast slot,
//! however many are slow already, up to a limit.

use std::collections::{HashMap, VecDeque};
use std::time::Duration;

use crate::clock::Moment;
use crate::config::limits;
use crate::events::outbox::{HEAD_START, Ready};
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
/// For how long a lane is kept for the failures that were counted in it: longer than any pause.
const FAILURES_KEPT: Duration = Duration::from_secs(3600);
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
    turns: Turns,
    back: Back,
    fast_free: usize,
    /// Slow exchanges under way, how many of them may begin, and how many there may be.
    slow: usize,
    slow_slots: usize,
    slow_max: usize,
    /// Deliveries that wait, over all lanes.
    waiting: usize,
    /// Endpoints for which somebody looks into the queue.
    looking: usize,
}

/// Lanes that have something to begin, in the order of their turns, each in the line of the slots
/// that it takes: those that wait for a slow one are passed by no other turn.
#[derive(Default)]
struct Turns {
    fast: VecDeque<EndpointId>,
    slow: VecDeque<EndpointId>,
}

/// What goes back to the queue, and who looks for it there.
#[derive(Default)]
struct Back {
    /// Claimed, and not to be made here after all.
    dropped: Vec<Ready>,
    /// Deliveries that are remembered to have been turned away, over all lanes.
    remembered: usize,
    /// Lanes for which the queue may hold more and that may have room, in the order of their turns
    /// to look.
    in_line: VecDeque<EndpointId>,
}

struct Lane {
    waiting: VecDeque<Ready>,
    under_way: HashMap<DeliveryId, Slot>,
    allowance: usize,
    is_slow: bool,
    failures: i64,
    failed_at: Option<Moment>,
    paused_until: Option<Moment>,
    /// The line of turns in which it stands.
    turn: Option<Slot>,
    /// Whether the queue may hold more, whether it is in line to look, and whether somebody looks.
    more: bool,
    in_line: bool,
    looking: bool,
    /// What was handed over and not taken, each with when it had to be begun; the queue has it.
    turned_away: VecDeque<(DeliveryId, Moment)>,
}

/// A lane that has room, while there may be more in the queue.
#[derive(Debug, PartialEq, Eq)]
pub(super) struct Hungry {
    pub endpoint: EndpointId,
    /// How many it can take.
    pub room: usize,
    /// What was handed over to this host, and may be made before it is due: no more than `room`.
    pub turned_away: Vec<DeliveryId>,
    /// Which of what is due comes first.
    pub first: First,
}

/// Which of an endpoint's deliveries comes first.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum First {
    /// What has been due for longest.
    Oldest,
    /// What was made last: where some are refused again and again, others may arrive.
    Newest,
}

impl Lanes {
    /// Lanes for so many exchanges at once.
    pub(super) fn new(slots: usize) -> Self {
        let slow_slots = (slots / 4).max(1);
        Self {
            lanes: HashMap::new(),
            turns: Turns::default(),
            back: Back::default(),
            fast_free: slots.saturating_sub(slow_slots).max(1),
            slow: 0,
            slow_slots,
            slow_max: slots.saturating_mul(SLOW_MAX),
            waiting: 0,
            looking: 0,
        }
    }

    /// Takes a delivery in, unless its lane is full or paused, or has it already. What is not
    /// taken is in the queue.
    pub(super) fn offer(&mut self, ready: Ready, now: Moment) {
        let id = ready.endpoint_id.clone();
        let capacity = self.capacity();
        let lane = self.lanes.entry(id.clone()).or_default();
        if ready.fence > 0
            && let Some(other) = lane.waiting.iter_mut().find(|other| other.id == ready.id)
        {
            // It fell due while it waited, and counts by its claim from now on.
            *other = ready;
            return;
        }
        if !lane.has_room(capacity) || lane.is_paused(now) {
            lane.turn_away(ready, &mut self.back);
            return;
        }
        if lane.under_way.contains_key(&ready.id) {
            // It was written down that it is due again before it was heard here that it has ended.
            self.back.dropped.push(ready);
            return;
        }
        lane.waiting.push_back(ready);
        self.waiting += 1;
        self.take_turn(&id);
    }

    /// The next delivery to make, if one may be made now.
    pub(super) fn next(&mut self, now: Moment) -> Option<Ready> {
        for slot in [Slot::Fast, Slot::Slow] {
            while self.is_free(slot) {
                let Some(id) = self.turns.of(slot).pop_front() else { break };
                self.leave(&id, now);
                let lane = self.lane(&id);
                lane.turn = None;
                let next = lane.waiting.pop_front();
                if let Some(ready) = &next {
                    lane.under_way.insert(ready.id.clone(), slot);
                    self.waiting -= 1;
                    match slot {
                        Slot::Fast => self.fast_free -= 1,
                        Slot::Slow => self.slow += 1,
                    }
                }
                self.take_turn(&id);
                self.line_up(&id);
                if next.is_some() {
                    return next;
                }
            }
        }
        None
    }

    fn is_free(&self, slot: Slot) -> bool {
        match slot {
            Slot::Fast => self.fast_free > 0,
            Slot::Slow => self.slow < self.slow_slots,
        }
    }

    /// Leaves to the queue what a lane does not make now: all of it while the endpoint is left
    /// alone, no attempt being used up, and otherwise what it is too late to begin.
    fn leave(&mut self, id: &EndpointId, now: Moment) {
        let Some(lane) = self.lanes.get_mut(id) else { return };
        let is_paused = lane.is_paused(now);
        while let Some(left) = lane.waiting.pop_front_if(|it| is_paused || it.until <= now) {
            self.waiting -= 1;
            lane.turn_away(left, &mut self.back);
        }
    }

    /// Has a lane stand in the line of the slots that it takes while it has something to begin, and
    /// in none while it has not.
    fn take_turn(&mut self, id: &EndpointId) {
        let Some(lane) = self.lanes.get_mut(id) else { return };
        let turn = lane.may_begin().then_some(lane.slot());
        if lane.turn == turn {
            return;
        }
        if let Some(left) = lane.turn {
            self.turns.of(left).retain(|other| other != id);
        }
        if let Some(slot) = turn {
            self.turns.of(slot).push_back(id.clone());
        }
        lane.turn = turn;
    }

    /// Has a lane for which the queue may hold more stand in line to look. Whoever has no room, or
    /// is left alone, loses that place when it comes to it, and lines up again once that may have
    /// changed.
    fn line_up(&mut self, id: &EndpointId) {
        let Some(lane) = self.lanes.get_mut(id) else { return };
        if lane.more && !lane.in_line && !lane.looking {
            lane.in_line = true;
            self.back.in_line.push_back(id.clone());
        }
    }

    /// An exchange takes long: it leaves the fast slots.
    pub(super) fn slow_down(&mut self, ready: &Ready) {
        let has_room = self.slow < self.slow_max;
        let lane = self.lane(&ready.endpoint_id);
        (lane.is_slow, lane.allowance) = (true, 1);
        if let Some(slot @ Slot::Fast) = lane.under_way.get_mut(&ready.id)
            && has_room
        {
            *slot = Slot::Slow;
            self.slow += 1;
            self.fast_free += 1;
        }
        self.take_turn(&ready.endpoint_id);
    }

    /// An exchange ended.
    pub(super) fn ended(&mut self, ready: &Ready, ended: Ended, now: Moment) {
        match self.lane(&ready.endpoint_id).under_way.remove(&ready.id) {
            Some(Slot::Fast) => self.fast_free += 1,
            Some(Slot::Slow) => self.slow -= 1,
            None => {}
        }
        self.lane(&ready.endpoint_id).has_fared(ended, now);
        self.leave(&ready.endpoint_id, now);
        self.take_turn(&ready.endpoint_id);
        self.line_up(&ready.endpoint_id);
    }

    /// Claims to be given back.
    pub(super) fn dropped(&mut self) -> Vec<Ready> {
        std::mem::take(&mut self.back.dropped)
    }

    /// Something is in the queue for an endpoint.
    pub(super) fn found(&mut self, endpoint: &EndpointId) {
        self.lane(endpoint).more = true;
        self.line_up(endpoint);
    }

    /// How an endpoint has fared counts no more, and something may be in the queue for it.
    pub(super) fn renew(&mut self, endpoint: &EndpointId) {
        let lane = self.lane(endpoint);
        (lane.failures, lane.failed_at, lane.paused_until) = (0, None, None);
        (lane.is_slow, lane.allowance) = (false, UNPROVEN);
        self.take_turn(endpoint);
        self.found(endpoint);
    }

    /// Lanes for which somebody should look into the queue.
    pub(super) fn hungry(&mut self, now: Moment) -> Vec<Hungry> {
        let (capacity, mut hungry) = (self.capacity(), Vec::new());
        while self.looking < LOOKING {
            let Some(endpoint) = self.back.in_line.pop_front() else { break };
            let Some(lane) = self.lanes.get_mut(&endpoint) else { continue };
            lane.in_line = false;
            if !lane.may_look(capacity, now) {
                continue;
            }
            let room = lane.appetite(capacity);
            (lane.more, lane.looking) = (false, true);
            self.looking += 1;
            let taken = lane.turned_away.len().min(room);
            self.back.remembered -= taken;
            let turned_away = lane.turned_away.drain(..taken).map(|(id, _)| id).collect();
            hungry.push(Hungry { endpoint, room, turned_away, first: lane.first() });
        }
        hungry
    }

    /// Somebody has looked.
    pub(super) fn looked(&mut self, endpoint: &EndpointId) {
        let lane = self.lane(endpoint);
        lane.looking = false;
        lane.more |= !lane.turned_away.is_empty();
        self.looking -= 1;
        self.line_up(endpoint);
    }

    /// Forgets what has fallen due since it was turned away, and lanes in which nothing happens;
    /// whoever may look by now is in line.
    pub(super) fn tidy(&mut self, now: Moment) {
        let busy = self.lanes.iter().filter(|(_, lane)| !lane.waiting.is_empty());
        let busy: Vec<_> = busy.map(|(id, _)| id.clone()).collect();
        busy.iter().for_each(|id| self.leave(id, now));
        let capacity = self.capacity();
        let Self { lanes, back, .. } = self;
        lanes.retain(|_, lane| {
            let remembered = lane.turned_away.len();
            lane.turned_away.retain(|(_, until)| until.after(HEAD_START) > now);
            back.remembered -= remembered - lane.turned_away.len();
            lane.turn.is_some()
                || lane.more
                || lane.in_line
                || lane.looking
                || !lane.under_way.is_empty()
                || lane.is_paused(now)
                || lane.failed_at.is_some_and(|at| at.after(FAILURES_KEPT) > now)
        });
        let able = lanes.iter().filter(|(_, lane)| lane.more && lane.may_look(capacity, now));
        let able: Vec<_> = able.map(|(id, _)| id.clone()).collect();
        able.iter().for_each(|id| self.line_up(id));
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

impl Turns {
    fn of(&mut self, slot: Slot) -> &mut VecDeque<EndpointId> {
        match slot {
            Slot::Fast => &mut self.fast,
            Slot::Slow => &mut self.slow,
        }
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
            failed_at: None,
            paused_until: None,
            turn: None,
            more: false,
            in_line: false,
            looking: false,
            turned_away: VecDeque::new(),
        }
    }
}

impl Lane {
    fn is_paused(&self, now: Moment) -> bool {
        self.paused_until.is_some_and(|until| until > now)
    }

    /// Leaves to the queue what is not made now.
    fn turn_away(&mut self, ready: Ready, back: &mut Back) {
        self.more = true;
        if ready.fence > 0 {
            back.dropped.push(ready);
            return;
        }
        let most = if self.is_slow { TURNED_AWAY_IF_SLOW } else { TURNED_AWAY_MAX };
        if self.turned_away.len() < most && back.remembered < REMEMBERED_MAX {
            self.turned_away.push_back((ready.id, ready.until));
            back.remembered += 1;
        }
    }

    /// Takes note of how an exchange ended, and for how long the endpoint is left alone.
    fn has_fared(&mut self, ended: Ended, now: Moment) {
        match ended {
            Ended::Quickly => {
                self.allowance = (self.allowance + 1).min(limits::UNDER_WAY_PER_ENDPOINT_MAX);
                self.is_slow = false;
            }
            Ended::Slowly | Ended::Badly => (self.is_slow, self.allowance) = (true, 1),
            Ended::Untried => return,
        }
        (self.failures, self.failed_at) = match ended {
            Ended::Badly => (self.failures + 1, Some(now)),
            Ended::Quickly | Ended::Slowly | Ended::Untried => (0, None),
        };
        self.paused_until = match pause(self.failures) {
            // Of several at once one that failed earlier may be heard of later.
            Some(pause) => self.paused_until.max(Some(now.after(pause))),
            None => None,
        };
    }

    /// Which slots it takes.
    fn slot(&self) -> Slot {
        if self.is_slow { Slot::Slow } else { Slot::Fast }
    }

    /// Whether it has something to begin, and may.
    fn may_begin(&self) -> bool {
        !self.waiting.is_empty() && self.under_way.len() < self.allowance
    }

    /// Whether somebody may look into the queue for it.
    fn may_look(&self, capacity: usize, now: Moment) -> bool {
        !self.looking && self.appetite(capacity) > 0 && !self.is_paused(now)
    }

    /// What tries an endpoint that is left alone is by turns what is new and what is old.
    const fn first(&self) -> First {
        match self.failures >= limits::WEBHOOK_BREAKER_FAILURES && self.failures % 2 == 1 {
            true => First::Newest,
            false => First::Oldest,
        }
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
mod tests;
