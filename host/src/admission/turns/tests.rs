//! The rules by which turns go round, on a clock that the tests set.

use std::pin::pin;
use std::task::{Context, Poll, Waker};

use super::*;
use crate::model::{Limits, MountName};

fn mount(concurrency: usize) -> Arc<MountState> {
    let limits = Limits { concurrency, ..Limits::default() };
    Arc::new(MountState::new(MountName::new("m").unwrap(), &limits))
}

fn asks(mount: &Arc<MountState>, caller: u64) -> Asks<'_> {
    Asks { mount, caller, is_read: true }
}

fn poll<T>(future: std::pin::Pin<&mut impl Future<Output = T>>) -> Poll<T> {
    future.poll(&mut Context::from_waker(Waker::noop()))
}

/// Takes as many turns as there are for a mount.
fn take_all(turns: &Arc<Turns>, mount: &Arc<MountState>, now: Instant) -> Vec<Turn> {
    std::iter::from_fn(|| turns.try_enter(&asks(mount, 1), now)).collect()
}

#[tokio::test]
async fn quick_mounts_that_go_to_sleep_leave_a_turn_for_every_other() {
    let (turns, now) = (Turns::new(32), Instant::now());
    let sleepers: Vec<_> = (0..4).map(|_| mount(8)).collect();
    let held: Vec<_> = sleepers.iter().flat_map(|mount| take_all(&turns, mount, now)).collect();
    assert_eq!(
        held.len(),
        28,
        "the upper half of the reserve is for quick mounts, the lower half for those without a turn"
    );
    for _ in 0..4 {
        let honest = mount(8);
        assert!(turns.try_enter(&asks(&honest, 1), now).is_some());
    }
}

#[tokio::test]
async fn what_is_held_for_long_counts_while_it_is_held() {
    let (turns, now) = (Turns::new(8), Instant::now());
    let sleeper = mount(100);
    let mut held: Vec<_> = (0..6).filter_map(|_| turns.try_enter(&asks(&sleeper, 1), now)).collect();
    assert_eq!(held.len(), 6);
    let later = now + QUICK * 2;
    assert!(turns.try_enter(&asks(&sleeper, 1), later).is_none(), "its average says quick, what it holds does not");
    assert!(turns.try_enter(&asks(&sleeper, 1), now).is_some(), "before that, it was quick");
    held.clear();
    assert!(turns.try_enter(&asks(&sleeper, 1), later).is_some());
}

#[tokio::test]
async fn a_mount_without_a_turn_gets_one_from_whoever_has_most() {
    let (turns, now) = (Turns::new(4), Instant::now());
    let (greedy, modest, honest) = (mount(8), mount(8), mount(8));
    let mut all = take_all(&turns, &greedy, now);
    let one = turns.try_enter(&asks(&modest, 1), now).unwrap();
    assert_eq!(all.len(), 3);
    let waiting = asks(&honest, 1);
    let mut waits = pin!(turns.enter(&waiting));
    assert!(poll(waits.as_mut()).is_pending());
    turns.press(&waiting, now + RIPE - Duration::from_millis(1));
    let is_recalled = |turn: &Turn| poll(pin!(turn.recall().wanted())).is_ready();
    assert!(!all.iter().any(is_recalled) && !is_recalled(&one), "not yet");
    turns.press(&waiting, now + RIPE);
    turns.press(&waiting, now + RIPE * 2);
    assert_eq!(all.iter().filter(|turn| is_recalled(turn)).count(), 1, "as many as are missing");
    assert!(!is_recalled(&one), "the only one of its mount");
    all.retain(|turn| !is_recalled(turn));
    let Poll::Ready(Some(turn)) = poll(waits.as_mut()) else { panic!("no turn") };
    assert!(Arc::ptr_eq(&turns.lock().held[turn.place as usize].as_ref().unwrap().mount, &honest));
}

#[tokio::test]
async fn of_many_mounts_with_one_turn_each_the_slowest_gives_way_to_a_quick_one() {
    let (turns, now) = (Turns::new(4), Instant::now());
    let sleepers: Vec<_> = (0..4).map(|_| mount(8)).collect();
    sleepers[2].pace(true).held.add(Duration::from_secs(60));
    let held: Vec<_> = sleepers.iter().map(|mount| turns.try_enter(&asks(mount, 1), now).unwrap()).collect();
    let (slow, quick) = (mount(8), mount(8));
    slow.pace(true).held.add(Duration::from_secs(60));
    let (slow, quick) = (asks(&slow, 1), asks(&quick, 2));
    let (mut first, mut second) = (pin!(turns.enter(&slow)), pin!(turns.enter(&quick)));
    assert!(poll(first.as_mut()).is_pending() && poll(second.as_mut()).is_pending());
    let recalled = || held.iter().map(|turn| poll(pin!(turn.recall().wanted())).is_ready()).collect::<Vec<_>>();
    turns.press(&quick, now + RIPE_ALONE - Duration::from_millis(1));
    turns.press(&slow, now + RIPE_ALONE * 10);
    assert_eq!(recalled(), [false; 4], "one call each is not taken at once, nor for another that is as slow");
    turns.press(&quick, now + RIPE_ALONE);
    assert_eq!(recalled(), [false, false, true, false]);
}

#[tokio::test]
async fn whoever_gave_a_turn_back_does_not_come_before_whoever_came_later() {
    let (turns, now) = (Turns::new(1), Instant::now());
    let (sleeper, honest) = (mount(8), mount(8));
    let held = turns.try_enter(&asks(&sleeper, 1), now).unwrap();
    let (old, new) = (asks(&sleeper, 1), asks(&honest, 1));
    let (mut first, mut second) = (pin!(turns.enter(&old)), pin!(turns.enter(&new)));
    assert!(poll(first.as_mut()).is_pending() && poll(second.as_mut()).is_pending());
    drop(held);
    assert!(poll(first.as_mut()).is_pending(), "its call waits for longest, but the mount had its turn");
    assert!(poll(second.as_mut()).is_ready());
}

#[tokio::test]
async fn every_other_turn_is_for_the_shortest_calls_and_the_rest_for_who_waits_for_longest() {
    let (turns, now) = (Turns::new(1), Instant::now());
    let mounts: Vec<_> = (0..6).map(|_| mount(8)).collect();
    let (last, slow) = mounts.split_last().unwrap();
    slow.iter().for_each(|mount| mount.pace(true).held.add(Duration::from_secs(60)));
    let first = mount(8);
    let mut held = turns.try_enter(&asks(&first, 1), now);
    let all: Vec<_> = mounts.iter().map(|mount| asks(mount, 1)).collect();
    let mut waits: Vec<_> = all.iter().map(|asks| Box::pin(turns.enter(asks))).collect();
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
    assert!(Arc::ptr_eq(&order[0], &slow[0]), "who waits for longest");
    assert!(Arc::ptr_eq(&order[1], last), "who is quick, although it came last");
    assert!(Arc::ptr_eq(&order[2], &slow[1]));
}

#[tokio::test]
async fn a_recall_is_told_to_the_call_that_holds_the_turn_and_to_none_after_it() {
    let (turns, now) = (Turns::new(1), Instant::now());
    let (sleeper, honest) = (mount(8), mount(8));
    let held = turns.try_enter(&asks(&sleeper, 1), now).unwrap();
    let waiting = asks(&honest, 1);
    let mut waits = pin!(turns.enter(&waiting));
    assert!(poll(waits.as_mut()).is_pending());
    let recall = held.recall();
    let mut wanted = pin!(recall.wanted());
    assert!(poll(wanted.as_mut()).is_pending());
    turns.press(&waiting, now + RIPE_ALONE);
    let Poll::Ready(ReadError::Busy(why)) = poll(wanted.as_mut()) else { panic!("not recalled") };
    assert!(why.contains("others had none"), "{why}");
    drop(held);
    let Poll::Ready(Some(turn)) = poll(waits.as_mut()) else { panic!("no turn") };
    assert!(poll(pin!(turn.recall().wanted())).is_pending());
}

#[tokio::test]
async fn a_caller_without_a_call_gets_a_slot_from_the_caller_who_has_most() {
    let (turns, now) = (Turns::new(32), Instant::now());
    let busy = mount(4);
    let mut held: Vec<_> = [1, 1, 1, 2].iter().map(|who| turns.try_enter(&asks(&busy, *who), now).unwrap()).collect();
    let (greedy, modest, new) = (asks(&busy, 1), asks(&busy, 2), asks(&busy, 3));
    let mut waits = pin!(turns.enter(&greedy));
    let mut others = pin!(turns.enter(&new));
    assert!(poll(waits.as_mut()).is_pending() && poll(others.as_mut()).is_pending());
    let recalled =
        |held: &[Turn]| held.iter().map(|turn| poll(pin!(turn.recall().wanted())).is_ready()).collect::<Vec<_>>();
    turns.press(&greedy, now + RIPE * 4);
    turns.press(&modest, now + RIPE * 4);
    assert_eq!(recalled(&held), [false; 4], "they have calls");
    turns.press(&new, now + RIPE);
    assert_eq!(recalled(&held), [true, false, false, false]);
    held.remove(0);
    assert!(poll(waits.as_mut()).is_pending(), "it came first, and has most");
    assert!(poll(others.as_mut()).is_ready());
}

#[tokio::test]
async fn a_full_line_takes_one_more_of_whoever_has_few() {
    let turns = Turns::new(1);
    let (busy, now) = (mount(1), Instant::now());
    let _held = turns.try_enter(&asks(&busy, 9), now).unwrap();
    let (first, second, other) = (asks(&busy, 1), asks(&busy, 1), asks(&busy, 2));
    let (mut one, mut two) = (Box::pin(turns.enter(&first)), Box::pin(turns.enter(&second)));
    assert!(poll(one.as_mut()).is_pending() && poll(two.as_mut()).is_pending());
    assert!(!turns.push_out(&busy, 1), "nobody makes place for itself");
    assert!(turns.push_out(&busy, 2));
    assert!(matches!(poll(two.as_mut()), Poll::Ready(None)), "the last of the one who has most");
    let mut three = Box::pin(turns.enter(&other));
    assert!(poll(three.as_mut()).is_pending() && poll(one.as_mut()).is_pending());
    assert!(!turns.push_out(&busy, 3), "one each: nobody has more than a newcomer would have");
    drop((one, two, three));
    assert!(turns.lock().lines.is_empty(), "nothing is left of whoever goes away");
}

#[tokio::test]
async fn a_thread_that_hangs_keeps_a_slot_of_its_mount_and_no_turn() {
    let (turns, now) = (Turns::new(2), Instant::now());
    let stuck = mount(2);
    let turn = turns.try_enter(&asks(&stuck, 1), now).unwrap();
    let slot = turn.detach(&stuck);
    drop(turn);
    assert_eq!((get(&stuck.counts.turns), get(&stuck.counts.slots)), (0, 1));
    let one = turns.try_enter(&asks(&stuck, 1), now);
    assert!(one.is_some() && turns.try_enter(&asks(&stuck, 1), now).is_none(), "its own slots");
    let other = mount(2);
    assert!(turns.try_enter(&asks(&other, 1), now).is_some(), "the host's turns are free");
    drop((slot, one));
    assert_eq!((get(&stuck.counts.turns), get(&stuck.counts.slots)), (0, 0));
}

#[test]
fn threads_that_hang_leave_places_for_mounts_that_have_none() {
    let threads = Threads::new(8);
    let (bad, good) = (mount(8), mount(8));
    let held: Vec<_> = std::iter::from_fn(|| threads.enter(&bad)).collect();
    assert_eq!(held.len(), 6);
    assert!(threads.enter(&good).is_some());
    drop(held);
    assert!(threads.used.lock().unwrap().is_empty());
}
