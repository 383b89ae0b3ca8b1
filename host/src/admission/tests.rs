//! Who is let in, when, and what is told to those who are not.

use super::*;

const READ: Operation = Operation::Read { reference: String::new() };

fn admission(calls: usize) -> Admission {
    Admission::new(calls, Budget::new(1 << 30))
}

fn gate(concurrency: usize) -> Gate {
    let limits = Limits { concurrency, queue: Duration::from_millis(50), ..Limits::default() };
    Gate::new(MountName::new("m").unwrap(), limits)
}

#[tokio::test]
async fn a_mount_takes_no_more_than_its_slots() {
    let admission = admission(10);
    let (busy, other) = (gate(2), gate(2));
    let first = admission.admit(&busy, &READ, None).await.unwrap();
    let _second = admission.admit(&busy, &READ, None).await.unwrap();
    assert!(matches!(admission.admit(&busy, &READ, None).await, Err(ReadError::Busy(_))));
    assert!(admission.admit(&other, &READ, None).await.is_ok(), "another mount has its own slots");
    drop(first);
    assert!(admission.admit(&busy, &READ, None).await.is_ok());
}

#[tokio::test]
async fn all_mounts_share_the_total_and_a_refused_call_keeps_nothing() {
    let admission = admission(1);
    let (a, b) = (gate(1), gate(1));
    let held = admission.admit(&a, &READ, None).await.unwrap();
    assert!(matches!(admission.admit(&b, &READ, None).await, Err(ReadError::Busy(_))));
    drop(held);
    assert!(admission.admit(&b, &READ, None).await.is_ok());
}

#[tokio::test]
async fn the_queue_is_bounded() {
    let admission = Arc::new(admission(10));
    let gate = Arc::new(gate(1));
    let _held = admission.admit(&gate, &READ, None).await.unwrap();
    let waiters: Vec<_> = (0..WAITING)
        .map(|_| {
            let (admission, gate) = (Arc::clone(&admission), Arc::clone(&gate));
            tokio::spawn(async move { admission.admit(&gate, &READ, None).await.is_ok() })
        })
        .collect();
    let waiting = &gate.own.mount.waiting;
    while waiting.load(Ordering::Relaxed) < WAITING {
        tokio::task::yield_now().await;
    }
    assert!(matches!(admission.admit(&gate, &READ, None).await, Err(ReadError::Busy(_))));
    assert_eq!(waiting.load(Ordering::Relaxed), WAITING, "refused at once, while all others still wait");
    for waiter in waiters {
        assert!(!waiter.await.unwrap());
    }
    assert_eq!(waiting.load(Ordering::Relaxed), 0);
}

#[tokio::test]
async fn the_earlier_deadline_holds() {
    let admission = admission(1);
    let gate = gate(1);
    let by = Instant::now() + Duration::from_secs(1);
    assert_eq!(admission.admit(&gate, &READ, Some(by)).await.unwrap().deadline(), by);
}

#[tokio::test]
async fn a_quarter_of_all_turns_is_kept_from_slow_mounts() {
    let admission = admission(8);
    let [slow, quick, new] = [gate(100), gate(100), gate(100)];
    slow.own.mount.pace(true).held.add(Duration::from_secs(60));
    let mut held = Vec::new();
    for _ in 0..6 {
        held.push(admission.admit(&slow, &READ, None).await.unwrap());
    }
    assert!(admission.admit(&slow, &READ, None).await.is_err());
    held.push(admission.admit(&quick, &READ, None).await.unwrap());
    assert!(admission.admit(&quick, &READ, None).await.is_err(), "the last one is for whoever has none");
    held.push(admission.admit(&new, &READ, None).await.unwrap());
}

#[tokio::test]
async fn one_long_call_makes_a_mount_slow_and_a_few_short_ones_quick_again() {
    let admission = admission(1);
    let gate = gate(1);
    let permit = admission.admit(&gate, &READ, None).await.unwrap();
    assert!(permit.is_quick());
    permit.spent(Instant::now(), Duration::from_millis(250));
    drop(permit);
    let mut calls = 0;
    while !admission.admit(&gate, &READ, None).await.unwrap().is_quick() {
        calls += 1;
    }
    assert!((3..20).contains(&calls), "{calls}");
}

#[tokio::test]
async fn a_share_is_waited_for_or_refused_with_the_cure() {
    let admission = admission(1);
    let gate = gate(1);
    let permit = admission.admit(&gate, &READ, None).await.unwrap();
    permit.spent(Instant::now(), share::WINDOW + Duration::from_millis(20));
    drop(permit);
    let began = Instant::now();
    assert!(admission.admit(&gate, &READ, None).await.is_ok());
    assert!(began.elapsed() >= Duration::from_millis(20));
    // What is done for an answer after its call is charged as well.
    gate.charge(share::WINDOW);
    let Err(ReadError::Busy(why)) = admission.admit(&gate, &READ, None).await else { panic!("let in") };
    assert!(
        why.contains("share of 100% of a processor over 10s") && why.contains("cpu = \"200%\" under [mounts.m.limits]"),
        "{why}"
    );
}

#[tokio::test]
async fn while_a_mount_owes_one_of_its_calls_goes_on() {
    let admission = admission(4);
    let gate = gate(4);
    let first = admission.admit(&gate, &READ, None).await.unwrap();
    let second = admission.admit(&gate, &READ, None).await.unwrap();
    let now = Instant::now();
    first.spent(now, share::WINDOW * 2);
    assert_eq!(first.pause(now), Ok(Duration::ZERO));
    let Err(ReadError::Busy(why)) = second.pause(now) else { panic!("it goes on") };
    assert!(why.contains("more than its share"), "{why}");
    drop(first);
    assert_eq!(second.pause(now), Ok(Duration::ZERO), "another one may");
}

#[tokio::test]
async fn a_call_whose_mount_owes_nothing_is_not_told_that_it_does_when_its_time_is_over() {
    let (admission, gate) = (admission(4), gate(4));
    let late = admission.admit(&gate, &READ, None).await.unwrap();
    let after = late.deadline() + Duration::from_millis(1);
    late.spent(after, Duration::from_millis(2));
    assert_eq!(late.pause(after), Ok(Duration::ZERO));
}

#[tokio::test]
async fn nobody_is_let_in_when_memory_is_spent() {
    let budget = Budget::new(1 << 20);
    let admission = Admission::new(8, Arc::clone(&budget));
    let held = budget.hold(1 << 20);
    let Err(ReadError::Busy(why)) = admission.admit(&gate(8), &READ, None).await else { panic!("let in") };
    assert_eq!(why, "all memory for calls is in use (1MiB of 1MiB)");
    drop(held);
    assert!(admission.admit(&gate(8), &READ, None).await.is_ok());
}

#[tokio::test]
async fn what_a_mount_owes_holds_and_failed_at_outlives_its_configuration() {
    let admission = admission(8);
    let (gates, name) = (gates::Gates::default(), MountName::new("m").unwrap());
    let limits = Limits { concurrency: 1, queue: Duration::from_millis(5), ..Limits::default() };
    let (bytes, others) = (crate::model::Digest::of(b"1"), crate::model::Digest::of(b"2"));
    let old = gates.gate(&name, &bytes, &limits);
    let held = admission.admit(&old, &READ, None).await.unwrap();
    let longer = Limits { time: Duration::from_secs(50), ..limits.clone() };
    let new = gates.gate(&name, &bytes, &longer);
    assert!(admission.admit(&new, &READ, None).await.is_err(), "its slot is taken, whoever took it");
    let wider = Limits { concurrency: 2, ..longer };
    let new = gates.gate(&name, &bytes, &wider);
    let second = admission.admit(&new, &READ, None).await.unwrap();
    assert!(admission.admit(&old, &READ, None).await.is_err(), "two in all, through either gate");
    drop((held, second));
    let trap = ReadError::Trapped(String::new());
    (0..3).for_each(|_| old.ended(Who::default(), &READ, Some(&trap)));
    let new = gates.gate(&name, &bytes, &limits);
    assert!(matches!(admission.admit(&new, &READ, None).await, Err(ReadError::Again { .. })), "it failed under either");
    let changed = gates.gate(&name, &others, &limits);
    assert!(admission.admit(&changed, &READ, None).await.is_ok(), "other bytes fail in other ways");
    changed.charge(share::WINDOW * 3);
    let again = gates.gate(&name, &bytes, &wider);
    assert!(
        matches!(admission.admit(&again, &READ, None).await, Err(ReadError::Busy(_))),
        "it owes, whatever its bytes"
    );
}

#[tokio::test]
async fn a_trial_that_is_withdrawn_lets_the_next_one_try() {
    let admission = admission(8);
    let gate = gate(8);
    let trap = ReadError::Trapped(String::new());
    let long_ago = Instant::now().checked_sub(Duration::from_secs(10)).unwrap();
    for _ in 0..3 {
        gate.operations.ended((&READ, 0), Some(&trap), || long_ago);
    }
    let trial = admission.admit(&gate, &READ, None).await.unwrap();
    assert!(admission.admit(&gate, &READ, None).await.is_err(), "one tries");
    drop(trial);
    assert!(admission.admit(&gate, &READ, None).await.is_ok());
}

#[tokio::test]
async fn a_caller_that_asks_too_often_is_told_when_to_come_again() {
    let admission = admission(1).with_rate(Rate { rate: 1, burst: 2 });
    assert!(admission.count(1).is_ok() && admission.count(1).is_ok());
    let Err(ReadError::Busy(why)) = admission.count(1) else { panic!("let in") };
    assert!(why.contains("come again in ") && why.contains("2 times at once"), "{why}");
    assert!(admission.count(2).is_ok(), "another caller has its own");
}
