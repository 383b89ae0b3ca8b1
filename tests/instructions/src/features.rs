//! Gateways that differ from the usual one in one feature. The counts of a read through each say what the feature costs.

use std::sync::Arc;

use belljar::mcp::Handler;
use belljar::policy::{ActionSet, Decider, Rule, RuleNumber, RuleOrigin, RuleResources, RuleSet, Who};
use belljar::telemetry::trace::Tracer;
use belljar::telemetry::{Metrics, Sink};

use crate::parts::{Parts, record};

/// The rules of the policy. The last of them allows the read.
const RULES: usize = 20;

/// The usual gateway with one feature more or less. The name completes that of the path without it.
pub(crate) fn all(parts: &Parts) -> Vec<(&'static str, Handler)> {
    let with = |audit: Sink, decider: Option<Decider>| {
        let gateway = Arc::new(parts.gateway_with(audit));
        decider.into_iter().for_each(|decider| assert!(gateway.policy().replace(decider)));
        Parts::handler_of(&gateway)
    };
    vec![
        ("without a record", with(Sink::off(), None)),
        ("with metrics", with(record().with_observer(Arc::new(Metrics::default())), None)),
        ("with traces", with(record().with_tracer(Arc::new(Tracer::new(1000))), None)),
        ("with 20 rules", with(record(), Some(rules().into()))),
    ]
}

/// Rules for one mount each. Only the last one is about the mount that is read.
fn rules() -> RuleSet {
    let rule = |number: usize| {
        let mount = if number == RULES { "sized".to_owned() } else { format!("idle-{number:04}") };
        let pattern = format!("belljar://{mount}/**").parse().expect("a pattern");
        Rule {
            origin: RuleOrigin::Allow(RuleNumber { number, line: None }),
            who: Who { users: vec!["anonymous".to_owned()], ..Who::default() },
            resources: RuleResources::Patterns(vec![pattern]),
            actions: ActionSet::ALL,
            schedule: None,
            rates: Vec::new(),
        }
    };
    RuleSet::new((1..=RULES).map(rule).collect())
}
