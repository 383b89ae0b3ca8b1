//! Tests of the quotas in memory, with times that the tests set.

use std::time::Duration;

use super::*;
use crate::policy::{Evidence, KeyIdentity, authenticate};

const SECOND: u128 = 1_000_000_000;

/// 10 a second, and 20 at once.
const RATE: QuotaRate = QuotaRate { amount: 10, period: Duration::from_secs(1), burst: 20 };

fn per(amount: u64, seconds: u64) -> QuotaRate {
    QuotaRate { amount, period: Duration::from_secs(seconds), burst: amount }
}

fn connection(number: u64) -> CallerId {
    CallerId::Connection(number)
}

fn principal(number: usize) -> CallerId {
    let key = KeyIdentity { name: number.to_string(), ..KeyIdentity::default() };
    CallerId::Principal(authenticate(Evidence::Key(key)).id())
}

fn draw(caller: CallerId, rate: QuotaRate) -> QuotaDraw {
    QuotaDraw { quota: QuotaId::Rule(1), caller, rate, cost: 1 }
}

fn is_granted(quotas: &MemoryQuotas, draw: QuotaDraw, now: u128) -> bool {
    quotas.take_at(&[draw], now) == QuotaDecision::Granted
}

/// The number of requests that are granted at the same moment.
fn granted(quotas: &MemoryQuotas, draw: QuotaDraw, now: u128) -> usize {
    (0..100_000).take_while(|_| is_granted(quotas, draw, now)).count()
}

fn wait(quotas: &MemoryQuotas, draw: QuotaDraw, now: u128) -> Option<Duration> {
    match quotas.take_at(&[draw], now) {
        QuotaDecision::Granted => None,
        QuotaDecision::Wait { time, .. } => Some(time),
        QuotaDecision::Uncounted => panic!("the memory always counts"),
    }
}

#[tokio::test(start_paused = true)]
async fn a_burst_is_admitted_and_then_the_rate_applies() {
    for caller in [connection(1), principal(1)] {
        let quotas = MemoryQuotas::default();
        let own = draw(caller, RATE);
        assert_eq!(granted(&quotas, own, SECOND), 20);
        assert_eq!(wait(&quotas, own, SECOND), Some(Duration::from_millis(100)), "the wait is reported");
        assert_eq!(granted(&quotas, own, SECOND + SECOND / 10), 1);
        assert_eq!(granted(&quotas, draw(connection(2), RATE), SECOND), 20, "another caller has its own bucket");
        let other = QuotaDraw { quota: QuotaId::Rule(2), ..own };
        assert_eq!(granted(&quotas, other, SECOND), 20, "another rule has its own bucket");
        assert_eq!(granted(&quotas, own, 1000 * SECOND), 20, "the burst is the maximum");
        let begin = 2000 * SECOND;
        granted(&quotas, own, begin);
        let late = (1..=3000).filter(|ms| is_granted(&quotas, own, begin + ms * SECOND / 1000));
        assert_eq!(late.count(), 30, "refused requests cost nothing");
    }
}

#[tokio::test(start_paused = true)]
async fn a_request_is_granted_exactly_after_the_wait() {
    // None of these rates has a whole number of nanoseconds for each unit.
    for rate in [per(7, 60), per(60, 3600), per(1_000_003, 86_400), per(3, 1)] {
        let (quotas, mut now) = (MemoryQuotas::default(), 12_345);
        let own = draw(principal(1), rate);
        quotas.charge_at(&[QuotaDraw { cost: rate.burst, ..own }], now);
        for _ in 0..100 {
            let pause = wait(&quotas, own, now).unwrap().as_nanos();
            assert!(!is_granted(&quotas, own, now + pause - 1), "{rate:?}: a nanosecond too early");
            now += pause;
            assert!(is_granted(&quotas, own, now), "{rate:?}: at the time that was reported");
        }
    }
}

#[tokio::test(start_paused = true)]
async fn a_day_of_requests_is_counted_exactly() {
    let (quotas, rate) = (MemoryQuotas::default(), per(1000, 86_400));
    let own = draw(principal(1), rate);
    // A request every 7 s for two days: the burst, and what came back meanwhile.
    let times = (0u128..).map(|step| step * 7 * SECOND).take_while(|now| *now <= 2 * 86_400 * SECOND);
    let granted = times.filter(|now| is_granted(&quotas, own, *now)).count();
    let last = 2 * 86_400 / 7 * 7;
    assert_eq!(granted, 1000 + 1000 * last / 86_400);
}

#[tokio::test(start_paused = true)]
async fn the_clock_of_the_store_counts() {
    let quotas = MemoryQuotas::default();
    let own = draw(principal(1), per(1, 86_400));
    assert_eq!(quotas.take(&[own]).await, QuotaDecision::Granted);
    tokio::time::advance(Duration::from_secs(86_400) - Duration::from_millis(1)).await;
    assert_eq!(quotas.take(&[own]).await, QuotaDecision::Wait { time: Duration::from_millis(1), draw: 0 });
    tokio::time::advance(Duration::from_millis(1)).await;
    assert_eq!(quotas.take(&[own]).await, QuotaDecision::Granted);
}

#[tokio::test(start_paused = true)]
async fn of_several_quotas_all_are_taken_or_none() {
    let quotas = MemoryQuotas::default();
    let [minute, day] = [per(2, 60), per(3, 86_400)].map(|rate| draw(principal(1), rate));
    let take = |now| quotas.take_at(&[minute, day], now);
    assert_eq!((take(0), take(0)), (QuotaDecision::Granted, QuotaDecision::Granted));
    assert_eq!(take(0), QuotaDecision::Wait { time: Duration::from_secs(30), draw: 0 });
    assert_eq!(take(60 * SECOND), QuotaDecision::Granted, "the day has the one that was not taken");
    let long = Duration::from_secs(86_400 / 3 - 60);
    assert_eq!(take(60 * SECOND), QuotaDecision::Wait { time: long, draw: 1 }, "the longest wait");
    assert_eq!(granted(&quotas, minute, 60 * SECOND), 1, "the refused request took nothing from the minute");
}

#[tokio::test(start_paused = true)]
async fn a_debt_is_paid_before_more_is_granted() {
    let (quotas, rate) = (MemoryQuotas::default(), per(1000, 10));
    let bytes = |cost| QuotaDraw { cost, ..draw(principal(1), rate) };
    assert!(is_granted(&quotas, bytes(0), 0));
    quotas.charge_at(&[bytes(999)], 0);
    assert!(is_granted(&quotas, bytes(0), 0), "one byte is left, and asking takes none");
    quotas.charge_at(&[bytes(5001)], 0);
    let paid = Duration::from_secs(50) + Duration::from_millis(10);
    assert_eq!(wait(&quotas, bytes(0), 0), Some(paid), "until one byte is left");
    assert!(!is_granted(&quotas, bytes(0), paid.as_nanos() - 1));
    assert!(is_granted(&quotas, bytes(0), paid.as_nanos()));
    // However large the answers are, the average holds.
    let (mut now, mut sum) = (paid.as_nanos(), 6000);
    for size in [1, 70_000, 3, 999, 5000].into_iter().cycle().take(50) {
        now += wait(&quotas, bytes(0), now).map_or(0, |time| time.as_nanos());
        assert!(sum as u128 <= 1000 + now / (SECOND / 100), "{sum} bytes after {now} ns");
        quotas.charge_at(&[bytes(size)], now);
        sum += size;
    }
}

#[tokio::test(start_paused = true)]
async fn a_changed_rate_starts_anew() {
    let quotas = MemoryQuotas::default();
    assert_eq!(granted(&quotas, draw(principal(1), per(5, 3600)), 0), 5);
    assert_eq!(granted(&quotas, draw(principal(1), per(9, 3600)), 0), 9);
    assert_eq!(granted(&quotas, draw(principal(1), per(5, 3600)), 0), 0);
}

#[tokio::test(start_paused = true)]
async fn new_connections_share_one_bucket() {
    let quotas = MemoryQuotas::default();
    let is_granted = |caller, now| is_granted(&quotas, draw(connection(caller), RATE), now);
    assert!(is_granted(0, 0));
    let granted = (1..100_000u64).filter(|caller| is_granted(*caller, 0)).count();
    assert!(granted <= 20 * NEW_CONNECTIONS as usize, "{granted}");
    assert!(quotas.tables.lock().unwrap().connections.len() <= MAX_CONNECTIONS);
    assert!(!is_granted(1_000_000, 0));
    assert!(is_granted(1_000_000, SECOND / 10), "nobody waits for long");
}

#[tokio::test(start_paused = true)]
async fn the_table_of_principals_is_bounded_and_forgets_the_least_used() {
    let (quotas, rate) = (MemoryQuotas::default(), per(4, 86_400));
    let greedy = draw(principal(0), rate);
    assert_eq!(granted(&quotas, greedy, 0), 4);
    for number in 1..100_000 {
        assert!(is_granted(&quotas, draw(principal(number), rate), 0), "each has a quota of its own");
        assert!(quotas.tables.lock().unwrap().principals.len() <= MAX_PRINCIPALS);
    }
    assert!(!is_granted(&quotas, greedy, 0), "who has used most is remembered");
    let day = 86_400 * SECOND;
    let again = |number| is_granted(&quotas, draw(principal(number), rate), day);
    assert!((0..MAX_PRINCIPALS / 2).all(again));
    assert!(quotas.tables.lock().unwrap().principals.len() <= MAX_PRINCIPALS, "unused quotas are forgotten");
}

#[test]
fn the_sum_of_all_grants_holds_under_concurrency() {
    let quotas = MemoryQuotas::default();
    let [all, own] = [per(1000, 3600), per(300, 3600)];
    let granted = std::sync::atomic::AtomicUsize::new(0);
    std::thread::scope(|scope| {
        for _ in 0..8 {
            scope.spawn(|| {
                for _ in 0..1000 {
                    for caller in 1..=5 {
                        let draws = [draw(principal(0), all), draw(principal(caller), own)];
                        if quotas.take_at(&draws, 0) == QuotaDecision::Granted {
                            granted.fetch_add(1, std::sync::atomic::Ordering::Relaxed);
                        }
                    }
                }
            });
        }
    });
    assert_eq!(granted.into_inner(), 1000, "the common quota, although 5 callers have 300 each");
}
