//! The outcome of a run as a row of a table, and the checks.

use std::time::Duration;

use crate::usage::Kind;
use crate::world::Outcome;

/// The head of the table.
pub(crate) const HEAD: &str = "\
| load | replicas | requests/s | store busy | quotas | rounds | beats | news | answers | wait p50 | p99 | asked | failed | excess | looks | news p99 | holds |
|---|---|---|---|---|---|---|---|---|---|---|---|---|---|---|---|---|";

/// The most that a principal may take beyond its rate, as a share of what it may take at once.
const MAX_EXCESS: f64 = 0.01;

/// A store that is busier has no reserve.
const MAX_BUSY: f64 = 0.7;

/// A store that answers later counts as down.
const ANSWER_TIME: Duration = Duration::from_millis(100);

fn percent(share: f64) -> String {
    format!("{:.1} %", share * 100.0)
}

fn milliseconds(time: Duration) -> String {
    format!("{:.1} ms", time.as_secs_f64() * 1000.0)
}

fn total(outcome: &Outcome) -> f64 {
    outcome.busy.iter().sum()
}

/// True if the store has a reserve, and answered everything in time.
pub(crate) fn holds(outcome: &Outcome) -> bool {
    total(outcome) <= MAX_BUSY && outcome.failed == 0 && outcome.waits.iter().all(|wait| *wait < ANSWER_TIME)
}

/// A row of the table.
pub(crate) fn row(outcome: &Outcome) -> String {
    let [quotas, rounds, beats, news, answers, _] = outcome.busy.map(percent);
    let [half, most] = outcome.waits.map(milliseconds);
    let scenario = &outcome.scenario;
    let columns = [
        scenario.name.clone(),
        scenario.replicas.to_string(),
        format!("{:.0}", scenario.requests * scenario.replicas as f64),
        percent(total(outcome)),
        quotas,
        rounds,
        beats,
        news,
        answers,
        half,
        most,
        percent(outcome.asked),
        outcome.failed.to_string(),
        percent(outcome.excess.max(0.0)),
        format!("{:.2}", outcome.looks),
        outcome.news[1].map(milliseconds).unwrap_or_default(),
        if outcome.scenario.fails() {
            "-"
        } else if holds(outcome) {
            "yes"
        } else {
            "no"
        }
        .to_owned(),
    ];
    format!("| {} |", columns.join(" | "))
}

/// What has no column.
pub(crate) fn details(outcome: &Outcome) -> String {
    let largest = Kind::ALL.iter().zip(outcome.busy).max_by(|one, other| one.1.total_cmp(&other.1));
    let mut text = format!(
        "  {} replicas: most of the store goes to {}; granted {}, refused {}, with up to {} left; news p50 {}, lost {}; double looks {}, \
         double calls {}",
        outcome.scenario.replicas,
        largest.map_or("", |(kind, _)| kind.name()),
        outcome.granted,
        outcome.refused,
        percent(outcome.shortfall),
        outcome.news[0].map(milliseconds).unwrap_or_default(),
        outcome.lost_news,
        outcome.double_looks,
        outcome.double_calls,
    );
    if outcome.scenario.fails() {
        let back = outcome.back.map_or("never".to_owned(), milliseconds);
        text += &format!("; excess while it failed {}, all back after {back}", percent(outcome.excess_down));
    }
    text
}

/// The checks that failed.
pub(crate) fn broken(outcome: &Outcome) -> Vec<String> {
    let mut broken = Vec::new();
    let mut check = |holds: bool, what: String| {
        if !holds {
            broken.push(format!("{}, {} replicas: {what}", outcome.scenario.name, outcome.scenario.replicas));
        }
    };
    // Without an answer, each replica works alone, as it is meant to.
    let is_up = outcome.failed == 0 && !outcome.scenario.fails();
    check(!is_up || outcome.excess <= MAX_EXCESS, format!("{} more than a rule allows", percent(outcome.excess)));
    check(!is_up || outcome.double_looks == 0, format!("{} looks of two replicas for one round", outcome.double_looks));
    check(!is_up || outcome.double_calls == 0, format!("{} calls for all at two replicas", outcome.double_calls));
    check(!is_up || outcome.lost_news == 0, format!("{} news did not reach all", outcome.lost_news));
    if outcome.scenario.fails() {
        check(outcome.back.is_some(), "the replicas did not come back".to_owned());
        check(outcome.excess <= MAX_EXCESS, format!("{} more than a rule allows, afterwards", percent(outcome.excess)));
    }
    broken
}
