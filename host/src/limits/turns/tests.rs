//! Tests of the scheduler of turns, with a clock that the tests set.

use std::pin::pin;
use std::task::{Context, Poll, Waker};

use super::*;
use crate::model::busy::BusyReason;
use crate::model::{Limits, MountName};
use crate::policy::{Evidence, KeyIdentity, authenticate};

fn mount(concurrency: usize) -> Arc<MountState> {
    let limits = Limits { concurrency, ..Limits::default() };
    Arc::new(MountState::new(MountName::new("m").unwrap(), &limits))
}

fn request(mount: &Arc<MountState>, caller: u64) -> TurnRequest<'_> {
    TurnRequest { mount, caller: CallerId::Connection(caller), is_read: true }
}

fn poll<T>(future: std::pin::Pin<&mut impl Future<Output = T>>) -> Poll<T> {
    future.poll(&mut Context::from_waker(Waker::noop()))
}

/// Takes as many turns as a mount can get.
fn take_all(turns: &Arc<TurnScheduler>, mount: &Arc<MountState>, now: Instant) -> Vec<Turn> {
    std::iter::from_fn(|| turns.try_enter(&request(mount, 1), now)).collect()
}

#[tokio::test(start_paused = true)]
async fn quick_mounts_whose_calls_sleep_leave_turns_for_others() {
    let (turns, now) = (TurnScheduler::new(32), Instant::now());
    let sleepers: Vec<_> = (0..4).map(|_| mount(8)).collect();
    let held: Vec<_> = sleepers.iter().flat_map(|mount| take_all(&turns, mount, now)).collect();
    assert_eq!(
        held.len(),
        28,
        "the upper half of the reserve is for quick mounts, the lower half for those without a turn"
    );
    for _ in 0..4 {
        let honest = mount(8);
        assert!(turns.try_enter(&request(&honest, 1), now).is_some());
    }
}

#[tokio::test(start_paused = true)]
async fn a_long_running_call_makes_its_mount_slow_at_once() {
    let (turns, now) = (TurnScheduler::new(8), Instant::now());
    let sleeper = mount(100);
    let mut held: Vec<_> = (0..6).filter_map(|_| turns.try_enter(&request(&sleeper, 1), now)).collect();
    assert_eq!(held.len(), 6);
    let later = now + QUICK * 2;
    assert!(
        turns.try_enter(&request(&sleeper, 1), later).is_none(),
        "its average is quick, but its running call is long"
    );
    assert!(turns.try_enter(&request(&sleeper, 1), now).is_some(), "before that it was quick");
    held.clear();
    assert!(turns.try_enter(&request(&sleeper, 1), later).is_some());
}

#[tokio::test(start_paused = true)]
async fn a_mount_without_a_turn_gets_one_from_the_mount_with_most() {
    let (turns, now) = (TurnScheduler::new(4), Instant::now());
    let (greedy, modest, honest) = (mount(8), mount(8), mount(8));
    let mut all = take_all(&turns, &greedy, now);
    let one = turns.try_enter(&request(&modest, 1), now).unwrap();
    assert_eq!(all.len(), 3);
    let waiting = request(&honest, 1);
    let mut waits = pin!(turns.enter(&waiting));
    assert!(poll(waits.as_mut()).is_pending());
    turns.recall_for(&waiting, now + RECALL_AFTER.get() - Duration::from_millis(1));
    let is_recalled = |turn: &Turn| poll(pin!(turn.recall().recalled())).is_ready();
    assert!(!all.iter().any(is_recalled) && !is_recalled(&one), "not yet");
    turns.recall_for(&waiting, now + RECALL_AFTER.get());
    turns.recall_for(&waiting, now + RECALL_AFTER.get() * 2);
    assert_eq!(all.iter().filter(|turn| is_recalled(turn)).count(), 1, "one turn is missing");
    assert!(!is_recalled(&one), "the only turn of its mount");
    all.retain(|turn| !is_recalled(turn));
    let Poll::Ready(Some(turn)) = poll(waits.as_mut()) else { panic!("no turn") };
    assert!(Arc::ptr_eq(&turns.lock().held[turn.place as usize].as_ref().unwrap().mount, &honest));
}

#[tokio::test(start_paused = true)]
async fn of_mounts_with_one_turn_each_the_slowest_is_recalled_for_a_quick_one() {
    let (turns, now) = (TurnScheduler::new(4), Instant::now());
    let sleepers: Vec<_> = (0..4).map(|_| mount(8)).collect();
    sleepers[2].times(true).held.add(Duration::from_secs(60));
    let held: Vec<_> = sleepers.iter().map(|mount| turns.try_enter(&request(mount, 1), now).unwrap()).collect();
    let (slow, quick) = (mount(8), mount(8));
    slow.times(true).held.add(Duration::from_secs(60));
    let (slow, quick) = (request(&slow, 1), request(&quick, 2));
    let (mut first, mut second) = (pin!(turns.enter(&slow)), pin!(turns.enter(&quick)));
    assert!(poll(first.as_mut()).is_pending() && poll(second.as_mut()).is_pending());
    let recalled = || held.iter().map(|turn| poll(pin!(turn.recall().recalled())).is_ready()).collect::<Vec<_>>();
    turns.recall_for(&quick, now + RECALL_AFTER_ALONE.get() - Duration::from_millis(1));
    turns.recall_for(&slow, now + RECALL_AFTER_ALONE.get() * 10);
    assert_eq!(recalled(), [false; 4], "a single call is not recalled at once, nor for an equally slow mount");
    turns.recall_for(&quick, now + RECALL_AFTER_ALONE.get());
    assert_eq!(recalled(), [false, false, true, false]);
}

#[tokio::test(start_paused = true)]
async fn a_mount_that_returned_its_turn_comes_after_later_mounts() {
    let (turns, now) = (TurnScheduler::new(1), Instant::now());
    let (sleeper, honest) = (mount(8), mount(8));
    let held = turns.try_enter(&request(&sleeper, 1), now).unwrap();
    let (old, new) = (request(&sleeper, 1), request(&honest, 1));
    let (mut first, mut second) = (pin!(turns.enter(&old)), pin!(turns.enter(&new)));
    assert!(poll(first.as_mut()).is_pending() && poll(second.as_mut()).is_pending());
    drop(held);
    assert!(poll(first.as_mut()).is_pending(), "its call has waited longest, but the mount returned a turn after that");
    assert!(poll(second.as_mut()).is_ready());
}

#[tokio::test(start_paused = true)]
async fn turns_alternate_between_longest_wait_and_shortest_calls() {
    let (turns, now) = (TurnScheduler::new(1), Instant::now());
    let mounts: Vec<_> = (0..6).map(|_| mount(8)).collect();
    let (last, slow) = mounts.split_last().unwrap();
    slow.iter().for_each(|mount| mount.times(true).held.add(Duration::from_secs(60)));
    let first = mount(8);
    let mut held = turns.try_enter(&request(&first, 1), now);
    let all: Vec<_> = mounts.iter().map(|mount| request(mount, 1)).collect();
    let mut waits: Vec<_> = all.iter().map(|request| Box::pin(turns.enter(request))).collect();
    assert!(waits.iter_mut().all(|wait| poll(wait.as_mut()).is_pending()));
    let mut order = Vec::new();
    while !waits.is_empty() {
        drop(held.take());
        let (at, turn) = (0..waits.len())
            .find_map(|at| match poll(waits[at].as_mut()) {
                Poll::Ready(turn) => Some((at, turn)),
                Poll::Pending => None,
            })
            .unwrap();
        drop(waits.remove(at));
        let turn = turn.unwrap();
        order.push(Arc::clone(&turns.lock().held[turn.place as usize].as_ref().unwrap().mount));
        held = Some(turn);
    }
    assert!(Arc::ptr_eq(&order[0], &slow[0]), "the mount that has waited longest");
    assert!(Arc::ptr_eq(&order[1], last), "the quick mount, although it came last");
    assert!(Arc::ptr_eq(&order[2], &slow[1]));
}

#[tokio::test(start_paused = true)]
async fn a_recall_reaches_only_the_call_that_holds_the_turn() {
    let (turns, now) = (TurnScheduler::new(1), Instant::now());
    let (sleeper, honest) = (mount(8), mount(8));
    let held = turns.try_enter(&request(&sleeper, 1), now).unwrap();
    let waiting = request(&honest, 1);
    let mut waits = pin!(turns.enter(&waiting));
    assert!(poll(waits.as_mut()).is_pending());
    let recall = held.recall();
    let mut wanted = pin!(recall.recalled());
    assert!(poll(wanted.as_mut()).is_pending());
    turns.recall_for(&waiting, now + RECALL_AFTER_ALONE.get());
    let Poll::Ready(ReadError::Busy(BusyReason { why, .. })) = poll(wanted.as_mut()) else { panic!("not recalled") };
    assert!(why.contains("while another mount or caller had none"), "{why}");
    drop(held);
    let Poll::Ready(Some(turn)) = poll(waits.as_mut()) else { panic!("no turn") };
    assert!(poll(pin!(turn.recall().recalled())).is_pending());
}

#[tokio::test(start_paused = true)]
async fn a_caller_without_a_call_gets_a_slot_from_the_caller_with_most() {
    let (turns, now) = (TurnScheduler::new(32), Instant::now());
    let busy = mount(4);
    let mut held: Vec<_> =
        [1, 1, 1, 2].iter().map(|caller| turns.try_enter(&request(&busy, *caller), now).unwrap()).collect();
    let (greedy, modest, new) = (request(&busy, 1), request(&busy, 2), request(&busy, 3));
    let mut waits = pin!(turns.enter(&greedy));
    let mut others = pin!(turns.enter(&new));
    assert!(poll(waits.as_mut()).is_pending() && poll(others.as_mut()).is_pending());
    let recalled =
        |held: &[Turn]| held.iter().map(|turn| poll(pin!(turn.recall().recalled())).is_ready()).collect::<Vec<_>>();
    turns.recall_for(&greedy, now + RECALL_AFTER.get() * 4);
    turns.recall_for(&modest, now + RECALL_AFTER.get() * 4);
    assert_eq!(recalled(&held), [false; 4], "both callers have running calls");
    turns.recall_for(&new, now + RECALL_AFTER.get());
    assert_eq!(recalled(&held), [true, false, false, false]);
    held.remove(0);
    assert!(poll(waits.as_mut()).is_pending(), "the caller came first, but has most calls");
    assert!(poll(others.as_mut()).is_ready());
}

#[tokio::test(start_paused = true)]
async fn a_full_queue_accepts_a_caller_with_few_calls() {
    let turns = TurnScheduler::new(1);
    let (busy, now) = (mount(1), Instant::now());
    let _held = turns.try_enter(&request(&busy, 9), now).unwrap();
    let (first, second, other) = (request(&busy, 1), request(&busy, 1), request(&busy, 2));
    let (mut one, mut two) = (Box::pin(turns.enter(&first)), Box::pin(turns.enter(&second)));
    assert!(poll(one.as_mut()).is_pending() && poll(two.as_mut()).is_pending());
    assert!(!turns.evict_waiter(&busy, CallerId::Connection(1)), "a caller does not evict its own calls");
    assert!(turns.evict_waiter(&busy, CallerId::Connection(2)));
    assert!(matches!(poll(two.as_mut()), Poll::Ready(None)), "the newest call of the caller with most");
    let mut three = Box::pin(turns.enter(&other));
    assert!(poll(three.as_mut()).is_pending() && poll(one.as_mut()).is_pending());
    assert!(!turns.evict_waiter(&busy, CallerId::Connection(3)), "one call each: no caller has more than the newcomer");
    drop((one, two, three));
    assert!(turns.lock().queues.is_empty(), "a dropped call leaves no queue");
}

#[tokio::test(start_paused = true)]
async fn a_hanging_thread_keeps_a_slot_but_no_turn() {
    let (turns, now) = (TurnScheduler::new(2), Instant::now());
    let stuck = mount(2);
    let turn = turns.try_enter(&request(&stuck, 1), now).unwrap();
    let slot = turn.detach(&stuck);
    drop(turn);
    assert_eq!((get(&stuck.counts.turns), get(&stuck.counts.slots)), (0, 1));
    let one = turns.try_enter(&request(&stuck, 1), now);
    assert!(one.is_some() && turns.try_enter(&request(&stuck, 1), now).is_none(), "both slots of the mount are used");
    let other = mount(2);
    assert!(turns.try_enter(&request(&other, 1), now).is_some(), "a turn of the host is free");
    drop((slot, one));
    assert_eq!((get(&stuck.counts.turns), get(&stuck.counts.slots)), (0, 0));
}

fn principal(number: usize) -> CallerId {
    let key = KeyIdentity { name: number.to_string(), ..KeyIdentity::default() };
    CallerId::Principal(authenticate(Evidence::Key(key)).id())
}

fn of_principal(mount: &Arc<MountState>, number: usize) -> TurnRequest<'_> {
    TurnRequest { mount, caller: principal(number), is_read: true }
}

#[tokio::test(start_paused = true)]
async fn a_principal_gets_at_most_half_of_all_turns_however_many_mounts_it_calls() {
    let (turns, now) = (TurnScheduler::new(16), Instant::now());
    let mounts: Vec<_> = (0..16).map(|_| mount(8)).collect();
    let held: Vec<_> = mounts.iter().filter_map(|mount| turns.try_enter(&of_principal(mount, 1), now)).collect();
    assert_eq!(held.len(), 8);
    let connection = turns.try_enter(&request(&mounts[0], 1), now);
    assert!(connection.is_some(), "a connection has no cap");
    assert!(turns.try_enter(&of_principal(&mounts[15], 2), now).is_some(), "nor has another principal used any");
    drop(held);
    assert!(turns.lock().by_principal.is_empty(), "returned turns are not counted");
    turns.set_max_per_principal(3);
    let held = mounts.iter().filter_map(|mount| turns.try_enter(&of_principal(mount, 1), now));
    assert_eq!(held.collect::<Vec<_>>().len(), 3);
}

#[tokio::test(start_paused = true)]
async fn a_principal_at_its_cap_waits_for_its_own_turns_only() {
    let (turns, now) = (TurnScheduler::new(4), Instant::now());
    let (busy, other, idle) = (mount(8), mount(8), mount(8));
    let mut held: Vec<_> = (0..2).map(|_| turns.try_enter(&of_principal(&busy, 1), now).unwrap()).collect();
    let (greedy, honest) = (of_principal(&busy, 1), of_principal(&busy, 2));
    let (mut waits, mut passes) = (pin!(turns.enter(&greedy)), pin!(turns.enter(&honest)));
    assert!(poll(waits.as_mut()).is_pending());
    let Poll::Ready(Some(_second)) = poll(passes.as_mut()) else { panic!("a later caller waits behind it") };
    let _third = turns.try_enter(&request(&other, 1), now).unwrap();
    let elsewhere = of_principal(&idle, 1);
    let mut waits_elsewhere = pin!(turns.enter(&elsewhere));
    assert!(poll(waits_elsewhere.as_mut()).is_pending());
    turns.recall_for(&elsewhere, now + RECALL_AFTER_ALONE.get() * 10);
    assert!(!held.iter().any(|turn| poll(pin!(turn.recall().recalled())).is_ready()), "no call is stopped for it");
    held.pop();
    assert!(poll(waits_elsewhere.as_mut()).is_ready());
}

#[tokio::test(start_paused = true)]
async fn the_next_free_turn_goes_to_the_principal_with_the_fewest() {
    let (turns, now) = (TurnScheduler::new(8), Instant::now());
    turns.set_max_per_principal(8);
    let mounts: Vec<_> = (0..8).map(|_| mount(8)).collect();
    let mut held: Vec<_> = mounts.iter().map(|mount| turns.try_enter(&of_principal(mount, 1), now).unwrap()).collect();
    let (greedy, honest) = (of_principal(&mounts[0], 1), of_principal(&mounts[1], 2));
    let (mut first, mut second) = (pin!(turns.enter(&greedy)), pin!(turns.enter(&honest)));
    assert!(poll(first.as_mut()).is_pending() && poll(second.as_mut()).is_pending());
    // Two: the lower half of the reserve is for mounts without a turn.
    held.truncate(6);
    let Poll::Ready(Some(_turn)) = poll(second.as_mut()) else { panic!("the principal without a turn waits") };
    assert!(poll(first.as_mut()).is_pending(), "it came first, and holds six");
}

#[tokio::test(start_paused = true)]
async fn a_principal_without_a_turn_gets_one_from_the_principal_with_most() {
    let (turns, now) = (TurnScheduler::new(8), Instant::now());
    turns.set_max_per_principal(8);
    let (busy, other) = (mount(8), mount(8));
    busy.times(true).held.add(Duration::from_secs(60));
    let mut held: Vec<_> = (0..4).map(|_| turns.try_enter(&of_principal(&busy, 1), now).unwrap()).collect();
    held.push(turns.try_enter(&of_principal(&busy, 2), now).unwrap());
    held.push(turns.try_enter(&of_principal(&other, 1), now).unwrap());
    let (honest, modest) = (of_principal(&busy, 3), of_principal(&busy, 2));
    let mut waits = pin!(turns.enter(&honest));
    assert!(poll(waits.as_mut()).is_pending(), "the two free turns are reserved for other mounts");
    let recalled =
        |held: &[Turn]| held.iter().map(|turn| poll(pin!(turn.recall().recalled())).is_ready()).collect::<Vec<_>>();
    turns.recall_for(&modest, now + RECALL_AFTER.get() * 4);
    turns.recall_for(&honest, now + RECALL_AFTER.get() - Duration::from_millis(1));
    assert_eq!(recalled(&held), [false; 6], "this principal has a turn, and it is too early");
    turns.recall_for(&honest, now + RECALL_AFTER.get());
    turns.recall_for(&honest, now + RECALL_AFTER.get() * 2);
    assert_eq!(recalled(&held), [true, false, false, false, false, false], "the oldest call, and one only");
    held.remove(0);
    assert!(poll(waits.as_mut()).is_ready());
}

#[tokio::test(start_paused = true)]
async fn fifty_connections_of_one_principal_are_one_caller() {
    let (turns, now) = (TurnScheduler::new(32), Instant::now());
    let busy = mount(4);
    let mut held: Vec<_> = (0..4).map(|_| turns.try_enter(&of_principal(&busy, 1), now).unwrap()).collect();
    let greedy = of_principal(&busy, 1);
    let mut waiting: Vec<_> = (0..50).map(|_| Box::pin(turns.enter(&greedy))).collect();
    assert!(waiting.iter_mut().all(|wait| poll(wait.as_mut()).is_pending()));
    let honest = of_principal(&busy, 2);
    let mut waits = pin!(turns.enter(&honest));
    assert!(poll(waits.as_mut()).is_pending());
    held.pop();
    // The first turn that came free goes to the other principal, before 50 calls that came earlier.
    let Poll::Ready(Some(_turn)) = poll(waits.as_mut()) else { panic!("it waits behind them") };
    assert!(waiting.iter_mut().all(|wait| poll(wait.as_mut()).is_pending()));
}
