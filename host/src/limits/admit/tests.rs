//! Tests of admission: which calls are admitted, when, and the texts of refusals.

use super::super::caller_quotas::Rate;
use super::super::operation::tests::TestOperation;
use super::super::{cpu_share, gate_registry};
use super::*;
use crate::model::MountName;
use crate::model::busy::BusyReason;
use crate::policy::{Action, Evidence, KeyIdentity, Policy, QuotaUnit, Target, authenticate};

fn read() -> TestOperation {
    TestOperation { name: "read", input: Some(Vec::new()) }
}

fn access() -> Access {
    let principal = authenticate(Evidence::OwnUser);
    let mount = MountName::new("m").unwrap();
    let target = Target { mount: &mount, base: "belljar://m/", reference: None };
    Policy::default().authorize(&principal, Action::Read, target, std::time::SystemTime::now()).unwrap()
}

/// Admits a read of any caller.
async fn admit(admission: &Admission, gate: &Gate, by: Option<Instant>) -> Result<Permit, ReadError> {
    admission.admit(access(), gate, CallOrigin::default(), &read(), by).await
}

fn admission(calls: usize) -> Admission {
    Admission::new(calls, MemoryBudget::new(1 << 30))
}

fn gate(concurrency: usize) -> Gate {
    let limits = Limits { concurrency, queue: Duration::from_millis(50), ..Limits::default() };
    Gate::new(MountName::new("m").unwrap(), limits)
}

#[tokio::test(start_paused = true)]
async fn a_mount_takes_no_more_than_its_slots() {
    let admission = admission(10);
    let (busy, other) = (gate(2), gate(2));
    let first = admit(&admission, &busy, None).await.unwrap();
    let _second = admit(&admission, &busy, None).await.unwrap();
    assert!(matches!(admit(&admission, &busy, None).await, Err(ReadError::Busy(_))));
    assert!(admit(&admission, &other, None).await.is_ok(), "another mount has its own slots");
    drop(first);
    assert!(admit(&admission, &busy, None).await.is_ok());
}

#[tokio::test(start_paused = true)]
async fn all_mounts_share_the_turns_and_a_refused_call_holds_none() {
    let admission = admission(1);
    let (a, b) = (gate(1), gate(1));
    let held = admit(&admission, &a, None).await.unwrap();
    assert!(matches!(admit(&admission, &b, None).await, Err(ReadError::Busy(_))));
    drop(held);
    assert!(admit(&admission, &b, None).await.is_ok());
}

#[tokio::test(start_paused = true)]
async fn the_queue_is_bounded() {
    let admission = Arc::new(admission(10));
    let gate = Arc::new(gate(1));
    let _held = admit(&admission, &gate, None).await.unwrap();
    let waiters: Vec<_> = (0..MAX_WAITING_CALLS.get())
        .map(|_| {
            let (admission, gate) = (Arc::clone(&admission), Arc::clone(&gate));
            tokio::spawn(async move { admit(&admission, &gate, None).await.is_ok() })
        })
        .collect();
    let waiting = &gate.state.mount.waiting;
    while waiting.load(Ordering::Relaxed) < MAX_WAITING_CALLS.get() {
        tokio::task::yield_now().await;
    }
    assert!(matches!(admit(&admission, &gate, None).await, Err(ReadError::Busy(_))));
    assert_eq!(
        waiting.load(Ordering::Relaxed),
        MAX_WAITING_CALLS.get(),
        "refused at once, while the others still wait"
    );
    for waiter in waiters {
        assert!(!waiter.await.unwrap());
    }
    assert_eq!(waiting.load(Ordering::Relaxed), 0);
}

#[tokio::test(start_paused = true)]
async fn the_earlier_deadline_applies() {
    let admission = admission(1);
    let gate = gate(1);
    let by = Instant::now() + Duration::from_secs(1);
    assert_eq!(admit(&admission, &gate, Some(by)).await.unwrap().deadline(), by);
}

#[tokio::test(start_paused = true)]
async fn a_quarter_of_all_turns_is_reserved() {
    let admission = admission(8);
    let [slow, quick, new] = [gate(100), gate(100), gate(100)];
    slow.state.mount.times(true).held.add(Duration::from_secs(60));
    let mut held = Vec::new();
    for _ in 0..6 {
        held.push(admit(&admission, &slow, None).await.unwrap());
    }
    assert!(admit(&admission, &slow, None).await.is_err());
    held.push(admit(&admission, &quick, None).await.unwrap());
    assert!(admit(&admission, &quick, None).await.is_err(), "the last one is for a mount without a turn");
    held.push(admit(&admission, &new, None).await.unwrap());
}

#[tokio::test(start_paused = true)]
async fn one_long_call_makes_a_mount_slow_and_a_few_short_ones_quick_again() {
    let admission = admission(1);
    let gate = gate(1);
    let permit = admit(&admission, &gate, None).await.unwrap();
    assert!(permit.is_quick());
    permit.charge_cpu(Instant::now(), Duration::from_millis(250));
    drop(permit);
    let mut calls = 0;
    while !admit(&admission, &gate, None).await.unwrap().is_quick() {
        calls += 1;
    }
    assert!((3..20).contains(&calls), "{calls}");
}

#[tokio::test(start_paused = true)]
async fn an_overdrawn_mount_waits_or_is_refused_with_the_cure() {
    let admission = admission(1);
    let gate = gate(1);
    let permit = admit(&admission, &gate, None).await.unwrap();
    permit.charge_cpu(Instant::now(), cpu_share::WINDOW + Duration::from_millis(20));
    drop(permit);
    let began = Instant::now();
    assert!(admit(&admission, &gate, None).await.is_ok());
    let waited = began.elapsed().as_millis();
    assert!((20..25).contains(&waited), "{waited} ms");
    // Work on a result after its call is charged as well.
    gate.charge_cpu(cpu_share::WINDOW);
    let Err(ReadError::Busy(BusyReason { why, .. })) = admit(&admission, &gate, None).await else { panic!("admitted") };
    assert!(
        why.contains("share of 100% of a processor over 10s") && why.contains("cpu = \"200%\" under [mounts.m.limits]"),
        "{why}"
    );
}

#[tokio::test(start_paused = true)]
async fn one_call_of_an_overdrawn_mount_continues() {
    let admission = admission(4);
    let gate = gate(4);
    let first = admit(&admission, &gate, None).await.unwrap();
    let second = admit(&admission, &gate, None).await.unwrap();
    let now = Instant::now();
    first.charge_cpu(now, cpu_share::WINDOW * 2);
    assert_eq!(first.cpu_pause(now), Ok(Duration::ZERO));
    let Err(ReadError::Busy(BusyReason { why, .. })) = second.cpu_pause(now) else { panic!("not paused") };
    assert!(why.contains("more than its share"), "{why}");
    drop(first);
    assert_eq!(second.cpu_pause(now), Ok(Duration::ZERO), "another call may continue");
}

#[tokio::test(start_paused = true)]
async fn a_late_call_of_a_mount_without_debts_is_not_refused_for_its_share() {
    let (admission, gate) = (admission(4), gate(4));
    let late = admit(&admission, &gate, None).await.unwrap();
    let after = late.deadline() + Duration::from_millis(1);
    late.charge_cpu(after, Duration::from_millis(2));
    assert_eq!(late.cpu_pause(after), Ok(Duration::ZERO));
}

#[tokio::test(start_paused = true)]
async fn no_call_is_admitted_when_the_budget_is_exhausted() {
    let budget = MemoryBudget::new(1 << 20);
    let admission = Admission::new(8, Arc::clone(&budget));
    let held = budget.reserve(1 << 20);
    let Err(ReadError::Busy(BusyReason { why, .. })) = admit(&admission, &gate(8), None).await else {
        panic!("admitted")
    };
    assert_eq!(why, "all memory for calls is in use (1MiB of 1MiB)");
    drop(held);
    assert!(admit(&admission, &gate(8), None).await.is_ok());
}

#[tokio::test(start_paused = true)]
async fn debts_slots_and_failures_of_a_mount_outlive_its_configuration() {
    let admission = admission(8);
    let (gates, name) = (gate_registry::GateRegistry::default(), MountName::new("m").unwrap());
    let limits = Limits { concurrency: 1, queue: Duration::from_millis(5), ..Limits::default() };
    let (bytes, others) = (crate::model::Digest::of(b"1"), crate::model::Digest::of(b"2"));
    let old = gates.gate(&name, &bytes, &limits);
    let held = admit(&admission, &old, None).await.unwrap();
    let longer = Limits { time: Duration::from_secs(50), ..limits.clone() };
    let new = gates.gate(&name, &bytes, &longer);
    assert!(admit(&admission, &new, None).await.is_err(), "the slot was taken through the old gate");
    let wider = Limits { concurrency: 2, ..longer };
    let new = gates.gate(&name, &bytes, &wider);
    let second = admit(&admission, &new, None).await.unwrap();
    assert!(admit(&admission, &old, None).await.is_err(), "two slots in all, through both gates");
    drop((held, second));
    let trap = ReadError::Trapped(String::new());
    (0..3).for_each(|_| old.record_result(CallOrigin::default(), &read(), Some(&trap)));
    let new = gates.gate(&name, &bytes, &limits);
    assert!(
        matches!(admit(&admission, &new, None).await, Err(ReadError::CircuitOpen { .. })),
        "failures count through both gates"
    );
    let changed = gates.gate(&name, &others, &limits);
    assert!(admit(&admission, &changed, None).await.is_ok(), "another digest starts without failures");
    changed.charge_cpu(cpu_share::WINDOW * 3);
    let again = gates.gate(&name, &bytes, &wider);
    assert!(
        matches!(admit(&admission, &again, None).await, Err(ReadError::Busy(_))),
        "debts belong to the mount, not to the digest"
    );
}

#[tokio::test(start_paused = true)]
async fn after_a_cancelled_trial_the_next_call_tries() {
    let admission = admission(8);
    let gate = gate(8);
    let trap = ReadError::Trapped(String::new());
    let long_ago = Instant::now().checked_sub(Duration::from_secs(10)).unwrap();
    for _ in 0..3 {
        gate.operations.record_result(&read(), 0, Some(&trap), || long_ago);
    }
    let trial = admit(&admission, &gate, None).await.unwrap();
    assert!(admit(&admission, &gate, None).await.is_err(), "one trial at a time");
    drop(trial);
    assert!(admit(&admission, &gate, None).await.is_ok());
}

fn key(name: &str) -> Principal {
    authenticate(Evidence::Key(KeyIdentity { name: name.to_owned(), ..KeyIdentity::default() }))
}

fn rule(id: u64, amount: u64, unit: QuotaUnit) -> Arc<QuotaRule> {
    Arc::new(QuotaRule { id, amount, unit, period: Duration::from_secs(60) })
}

/// The reason and the pause of a refusal. Panics if the request was counted.
fn refusal<T>(counted: Result<T, ReadError>) -> (String, Duration) {
    match counted {
        Err(ReadError::Busy(BusyReason { why, retry_after: Some(pause) })) => (why, pause),
        Err(other) => panic!("{other}"),
        Ok(_) => panic!("admitted"),
    }
}

#[tokio::test(start_paused = true)]
async fn a_caller_above_its_rate_learns_when_to_retry() {
    let limits = CallerLimits { rate: Rate { rate: 1, burst: 2 }, concurrency: None };
    let admission = admission(1).with_callers(limits, Arc::new(MemoryQuotas::default()));
    for (own, other) in [
        (CallerId::Connection(1), CallerId::Connection(2)),
        (CallerId::Principal(key("a").id()), CallerId::Principal(key("b").id())),
    ] {
        assert!(admission.count_request(own).await.is_ok() && admission.count_request(own).await.is_ok());
        let (why, pause) = refusal(admission.count_request(own).await);
        assert!(why.contains("retry in 1s") && why.contains("bursts of 2"), "{why}");
        assert_eq!(pause, Duration::from_secs(1));
        assert!(admission.count_request(other).await.is_ok(), "another caller has its own rate");
    }
}

#[tokio::test(start_paused = true)]
async fn a_request_counts_once_for_each_rule_that_allows_it() {
    let admission = admission(1);
    let (few, many) = (rule(1, 3, QuotaUnit::Requests), rule(2, 5, QuotaUnit::Requests));
    let count = async |principal: &Principal, rules: &[&Arc<QuotaRule>]| {
        admission.count_rules(principal, rules.iter().copied()).await.map(drop)
    };
    let own = key("own");
    for _ in 0..3 {
        count(&own, &[&few, &many, &few]).await.unwrap();
    }
    let (why, pause) = refusal(count(&own, &[&few, &many]).await);
    assert_eq!(
        (why.as_str(), pause),
        (
            "the rules allow this caller 3 requests in 1m, and it has used them up; retry in 20s",
            Duration::from_secs(20)
        )
    );
    count(&own, &[&many]).await.unwrap();
    count(&own, &[&many]).await.unwrap();
    assert!(count(&own, &[&many]).await.is_err(), "5 in all: the refused request was not counted");
    count(&own, &[]).await.unwrap();
    count(&key("other"), &[&few, &many]).await.unwrap();
    let belljar = authenticate(Evidence::Polling);
    for _ in 0..10 {
        count(&belljar, &[&few]).await.unwrap();
    }
    let anonymous = authenticate(Evidence::Loopback);
    for _ in 0..3 {
        count(&anonymous, &[&few]).await.unwrap();
    }
    assert!(count(&anonymous, &[&few]).await.is_err(), "all anonymous clients together are one principal");
    tokio::time::advance(pause).await;
    count(&own, &[&few]).await.unwrap();
}

#[tokio::test(start_paused = true)]
async fn the_bytes_of_an_answer_delay_the_next_request() {
    let (admission, own) = (admission(1), key("own"));
    let rules = [rule(1, 6000, QuotaUnit::Bytes), rule(2, 100, QuotaUnit::Requests)];
    let count = async || admission.count_rules(&own, rules.iter()).await;
    count().await.unwrap().charge(0).await;
    count().await.unwrap().charge(5999).await;
    // Two requests that run at the same time: both are served, and both are paid for.
    let (one, two) = (count().await.unwrap(), count().await.unwrap());
    one.charge(6001).await;
    two.charge(6000).await;
    let (why, pause) = refusal(count().await);
    assert!(why.starts_with("the rules allow this caller 5.9KiB in 1m"), "{why}");
    assert_eq!(pause, Duration::from_millis(120_010), "18,000 bytes at 100 a second, and one byte for the next");
    tokio::time::advance(pause - Duration::from_millis(1)).await;
    assert!(count().await.is_err());
    tokio::time::advance(Duration::from_millis(1)).await;
    drop(count().await.unwrap());
    drop(count().await.unwrap());
}

/// 50 principals have used up their rates, and go on asking. Counts turns, not time.
#[tokio::test(start_paused = true)]
async fn principals_at_their_quota_do_not_delay_an_honest_one() {
    let (admission, gate) = (admission(4), gate(2));
    let quota = [rule(1, 10, QuotaUnit::Requests)];
    let ask = async |principal: &Principal| -> Result<Permit, ReadError> {
        drop(admission.count_rules(principal, quota.iter()).await?);
        let origin = CallOrigin { caller: CallerId::Principal(principal.id()), breaker_scope: 0 };
        admission.admit(access(), &gate, origin, &read(), None).await
    };
    let greedy: Vec<_> = (0..50).map(|number| key(&number.to_string())).collect();
    for principal in &greedy {
        for _ in 0..10 {
            drop(ask(principal).await.unwrap());
        }
    }
    let (honest, began) = (key("honest"), Instant::now());
    let mut turns = 0;
    for _ in 0..10 {
        for principal in &greedy {
            turns += usize::from(ask(principal).await.is_ok());
        }
        assert!(ask(&honest).await.is_ok());
    }
    assert_eq!(turns, 0, "turns of others between those of the honest one");
    assert_eq!(began.elapsed(), Duration::ZERO, "nobody waited");
}

#[tokio::test(start_paused = true)]
async fn a_principal_above_its_concurrency_is_told_so() {
    let admission = admission(8).with_callers(
        CallerLimits { concurrency: Some(1), ..CallerLimits::default() },
        Arc::new(MemoryQuotas::default()),
    );
    let gate = gate(8);
    let ask = async |principal: &Principal| {
        let origin = CallOrigin { caller: CallerId::Principal(principal.id()), breaker_scope: 0 };
        admission.admit(access(), &gate, origin, &read(), None).await
    };
    let held = ask(&key("own")).await.unwrap();
    let Err(ReadError::Busy(BusyReason { why, .. })) = ask(&key("own")).await else { panic!("admitted") };
    assert!(why.starts_with("this caller has 1 calls running"), "{why}");
    let _other = ask(&key("other")).await.unwrap();
    drop(held);
    assert!(ask(&key("own")).await.is_ok());
}
