//! Lanes, without a network and without a queue.

use std::collections::HashSet;

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

/// However many there are, a turn passes none of them.
#[test]
fn receivers_that_wait_for_a_slow_slot_are_not_in_the_way() {
    let now = Moment::default();
    let mut lanes = Lanes::new(8);
    for number in 0..100 {
        let name = format!("slow{number}");
        lanes.lane(&id(&name)).is_slow = true;
        lanes.offer(ready(&name, 0), now);
        lanes.found(&id(&name));
    }
    assert_eq!(std::iter::from_fn(|| lanes.next(now)).count(), 2);
    assert!(lanes.hungry(now).is_empty());
    assert_eq!((lanes.turns.fast.len(), lanes.turns.slow.len()), (0, 98));
    assert!(lanes.back.in_line.is_empty(), "who has no room does not look");
    lanes.offer(ready("good", 0), now);
    assert_eq!(lanes.next(now).map(|ready| ready.endpoint_id), Some(id("good")));
    assert_eq!(lanes.turns.slow.len(), 98);
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
    let look = |room, turned_away: &[usize], first| Hungry {
        endpoint: id("a"),
        room,
        turned_away: turned_away.iter().map(|number| ready("a", *number).id).collect(),
        first,
    };
    lanes.tidy(later);
    assert_eq!(lanes.hungry(later), [look(1, &[5], First::Newest)]);
    lanes.offer(ready("a", 5), later);
    // What is fresh has to wait in the queue like everything else, but not for long.
    lanes.offer(ready("a", 6), later);
    lanes.offer(ready("a", 7), later);
    assert!(lanes.hungry(later).is_empty());
    let probe = lanes.next(later).expect("a probe");
    assert!(lanes.next(later).is_none());
    lanes.ended(&probe, Ended::Quickly, later);
    lanes.looked(&id("a"));
    assert_eq!(
        lanes.hungry(later),
        [look(limits::WAITING_PER_ENDPOINT_MAX / 2, &[6, 7], First::Oldest)]
    );
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
        let remembered = REMEMBERED_MAX.min((endpoint + 1) * TURNED_AWAY_MAX);
        assert_eq!(lanes.back.remembered, remembered);
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
    // By then all of it is due.
    lanes.tidy(now.after(limits::WEBHOOK_EXCHANGE_MAX));
    assert!(lanes.back.remembered > 0);
    lanes.tidy(Moment::from_micros(i64::MAX));
    assert_eq!(lanes.back.remembered, 0);
}

/// Of an endpoint that was deleted, no exchange goes well again.
#[test]
fn failures_are_forgotten_when_nothing_is_tried_any_more() {
    let now = Moment::default();
    let mut lanes = Lanes::new(8);
    for number in 0..7 {
        lanes.ended(&ready("a", number), Ended::Badly, now);
    }
    lanes.tidy(now.after(limits::WEBHOOK_BREAKER_PAUSE.1));
    assert_eq!(lanes.lanes[&id("a")].failures, 7);
    lanes.tidy(now.after(FAILURES_KEPT));
    assert!(lanes.lanes.is_empty());
}

#[test]
fn what_falls_due_while_it_waits_counts_by_its_claim() {
    let now = Moment::default();
    let mut lanes = Lanes::new(8);
    for number in 0..3 {
        lanes.offer(ready("a", number), now);
    }
    lanes.offer(Ready { fence: 1, ..ready("a", 1) }, now);
    assert!(lanes.dropped().is_empty());
    assert_eq!(lanes.waiting, 3);
    let made = [lanes.next(now), lanes.next(now)].map(|made| made.expect("a turn").fence);
    assert_eq!(made, [0, 1]);
}

#[test]
fn everybody_in_line_has_a_look_before_anybody_has_a_second_one() {
    let now = Moment::default();
    let mut lanes = Lanes::new(8);
    let all: Vec<_> = (0..3 * LOOKING).map(|number| id(&number.to_string())).collect();
    all.iter().for_each(|endpoint| lanes.found(endpoint));
    let mut looked = Vec::new();
    for _ in 0..3 {
        let round = lanes.hungry(now);
        assert!(lanes.hungry(now).is_empty(), "enough are looking");
        for Hungry { endpoint, .. } in round {
            lanes.looked(&endpoint);
            // There was more than it had room for.
            lanes.found(&endpoint);
            looked.push(endpoint);
        }
        lanes.tidy(now);
    }
    assert_eq!(looked, all);
    assert_eq!(lanes.hungry(now).len(), LOOKING);
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
    for (at, looking) in [(end.before(second), 0), (end, 1)] {
        lanes.tidy(at);
        assert_eq!(lanes.hungry(at).len(), looking);
    }
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
    fn slots_are_neither_lost_nor_made(steps in proptest::collection::vec((0..6_usize, 0..4_usize), 0..200)) {
        let mut lanes = Lanes::new(8);
        let (mut under_way, mut looking) = (Vec::new(), Vec::new());
        let mut now = Moment::default();
        for (number, (kind, which)) in steps.into_iter().enumerate() {
            now = now.after(Duration::from_secs(1));
            match kind {
                0 => lanes.offer(ready(&which.to_string(), number), now),
                1 => under_way.extend(lanes.next(now)),
                2 => under_way.last().into_iter().for_each(|ready| lanes.slow_down(ready)),
                4 => looking.extend(lanes.hungry(now)),
                5 => {
                    looking.pop().into_iter().for_each(|it: Hungry| lanes.looked(&it.endpoint));
                    lanes.tidy(now);
                }
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
            proptest::prop_assert_eq!(lanes.back.remembered, noted.sum::<usize>());
            proptest::prop_assert_eq!(lanes.looking, looking.len());
            let stand = |line: &VecDeque<EndpointId>, is_in: &dyn Fn(&Lane) -> bool| {
                let all: HashSet<_> = line.iter().cloned().collect();
                let lanes = lanes.lanes.iter().filter(|(_, lane)| is_in(lane));
                all.len() == line.len() && all == lanes.map(|(id, _)| id.clone()).collect()
            };
            proptest::prop_assert!(stand(&lanes.back.in_line, &|lane| lane.in_line));
            for (line, slot) in [(&lanes.turns.fast, Slot::Fast), (&lanes.turns.slow, Slot::Slow)] {
                proptest::prop_assert!(stand(line, &|lane| lane.turn == Some(slot)));
                // Nobody who may begin is without a turn.
                let has_turn = |lane: &Lane| {
                    lane.slot() != slot || !lane.may_begin() || lane.turn == Some(slot)
                };
                proptest::prop_assert!(lanes.lanes.values().all(has_turn));
            }
            // Nor is anybody who may look out of line, once that was tidied up.
            let is_out = |lane: &Lane| {
                lane.more && !lane.in_line && lane.may_look(lanes.capacity(), now)
            };
            proptest::prop_assert!(kind != 5 || !lanes.lanes.values().any(is_out));
        }
    }
}
