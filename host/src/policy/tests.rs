//! Decisions of rules, as tables of cases. `oracle.rs` compares many more with an evaluator of its own.

mod oracle;
mod policies;

use std::sync::Arc;
use std::time::{Duration, SystemTime};

use super::*;
use crate::model::MountName;

const BASE: &str = "belljar://notes/";

fn notes() -> MountName {
    MountName::new("notes").unwrap()
}

fn at(time: &str) -> SystemTime {
    humantime::parse_rfc3339_weak(time).unwrap()
}

/// A rule that allows everybody everything.
fn allow() -> Rule {
    Rule {
        origin: RuleOrigin::Allow(RuleNumber { number: 1, line: None }),
        who: Who::default(),
        resources: RuleResources::All,
        actions: ActionSet::ALL,
        schedule: None,
        rates: Vec::new(),
    }
}

/// A rule that denies everybody everything.
fn deny() -> Rule {
    Rule { origin: RuleOrigin::Deny(RuleNumber { number: 1, line: None }), ..allow() }
}

fn what(patterns: &[&str]) -> RuleResources {
    RuleResources::Patterns(patterns.iter().map(|pattern| pattern.parse().unwrap()).collect())
}

fn user(name: &str) -> Who {
    Who { users: vec![name.to_owned()], ..Who::default() }
}

fn scope(text: &str) -> Who {
    Who { scopes: vec![ScopeSet::new(text).unwrap()], ..Who::default() }
}

fn key(name: &str, scopes: &[&str]) -> Principal {
    let scopes = scopes.iter().map(|scope| (*scope).to_owned()).collect();
    authenticate(Evidence::Key(KeyIdentity { name: name.to_owned(), groups: Vec::new(), scopes }))
}

fn authorize(
    rules: &RuleSet,
    principal: &Principal,
    action: Action,
    reference: Option<&str>,
) -> Result<Access, Refusal> {
    let target = Target { mount: &notes(), base: BASE, reference };
    rules.authorize(principal, action, target, at("2026-11-23 12:00:00"))
}

fn is_allowed(rules: &RuleSet, principal: &Principal, action: Action, reference: &str) -> bool {
    authorize(rules, principal, action, Some(reference)).is_ok()
}

#[test]
fn without_rules_everybody_may_do_everything() {
    let none = RuleSet::default();
    for principal in [authenticate(Evidence::OwnUser), authenticate(Evidence::Loopback), key("ci", &[])] {
        let access = authorize(&none, &principal, Action::Read, Some("a")).unwrap();
        assert_eq!(access.class(), AccessClass::EVERYONE);
    }
}

#[test]
fn one_rule_makes_all_other_requests_refused() {
    let rules =
        RuleSet::new(vec![Rule { who: user("local"), actions: [Action::Read].into_iter().collect(), ..allow() }]);
    let (local, anonymous) = (authenticate(Evidence::OwnUser), authenticate(Evidence::Loopback));
    assert!(is_allowed(&rules, &local, Action::Read, "a"));
    assert!(!is_allowed(&rules, &local, Action::List, "a"));
    assert!(!is_allowed(&rules, &anonymous, Action::Read, "a"));
    let belljar = authenticate(Evidence::Polling);
    assert!(is_allowed(&rules, &belljar, Action::Watch, "a"), "belljar itself is never refused");
}

#[test]
fn a_rule_that_denies_refuses_everything_else_too() {
    let rules = RuleSet::new(vec![Rule { resources: what(&["belljar://notes/a"]), ..deny() }]);
    assert!(!is_allowed(&rules, &authenticate(Evidence::OwnUser), Action::Read, "b"));
}

#[test]
fn a_rule_that_denies_wins_in_every_spelling() {
    let rules = RuleSet::new(vec![
        allow(),
        Rule { resources: what(&["belljar://notes/secret/**", "**/*.key"]), ..deny() },
        Rule { who: user("anonymous"), resources: what(&["belljar://notes/plan"]), ..deny() },
    ]);
    let (local, anonymous) = (authenticate(Evidence::OwnUser), authenticate(Evidence::Loopback));
    for reference in ["secret/a", "secret%2Fa", "s%65cret/a", "secret//a", "x/y.key", "y.key?raw", "y%2ekey", "y.key/"]
    {
        assert!(!is_allowed(&rules, &local, Action::Read, reference), "{reference}");
    }
    assert!(is_allowed(&rules, &local, Action::Read, "plan") && !is_allowed(&rules, &anonymous, Action::Read, "plan"));
    assert!(is_allowed(&rules, &anonymous, Action::Read, "plans"));
}

#[test]
fn the_mount_as_a_whole_is_allowed_if_a_part_of_it_is() {
    let rules = RuleSet::new(vec![
        Rule {
            resources: what(&["belljar://notes/a/**", "belljar://logs/**"]),
            actions: [Action::List].into_iter().collect(),
            ..allow()
        },
        Rule { resources: what(&["belljar://logs/**"]), ..deny() },
    ]);
    let local = authenticate(Evidence::OwnUser);
    assert!(authorize(&rules, &local, Action::List, None).is_ok());
    assert!(authorize(&rules, &local, Action::Describe, None).is_ok());
    assert_eq!(authorize(&rules, &local, Action::Search, None).unwrap_err(), Refusal::Hidden);
    let logs = MountName::new("logs").unwrap();
    let target = Target { mount: &logs, base: "belljar://logs/", reference: None };
    for action in [Action::List, Action::Describe] {
        assert!(rules.authorize(&local, action, target, SystemTime::now()).is_err());
        assert!(rules.visibility(&local, action, target, SystemTime::now()).is_nothing());
    }
}

#[test]
fn a_missing_scope_is_named_only_if_it_helps() {
    let rules = RuleSet::new(vec![
        Rule { who: scope("notes:read notes:more"), resources: what(&["belljar://notes/a/**"]), ..allow() },
        Rule { who: scope("notes:list"), actions: [Action::List].into_iter().collect(), ..allow() },
        Rule { who: user("alice"), resources: what(&["belljar://notes/b"]), ..allow() },
        Rule { resources: what(&["belljar://notes/a/secret"]), ..deny() },
        Rule { who: scope("notes:list"), resources: what(&["belljar://notes/a/list"]), ..deny() },
        Rule {
            origin: RuleOrigin::Scope("notes".to_owned()),
            who: scope("notes"),
            resources: RuleResources::Mounts(vec![notes()]),
            actions: [Action::Search].into_iter().collect(),
            ..allow()
        },
    ]);
    let ci = key("ci", &["notes:more"]);
    let needed = |principal: &Principal, action, reference| match authorize(&rules, principal, action, reference) {
        Err(Refusal::Scope(scopes)) => Some(scopes.join(" ")),
        Err(Refusal::Hidden) => None,
        Ok(access) => panic!("{access:?}"),
    };
    for (action, reference, expected) in [
        (Action::Read, Some("a/x"), Some("notes:read notes:more")),
        (Action::List, Some("a/x"), Some("notes:read notes:more")),
        (Action::List, Some("z"), Some("notes:list")),
        (Action::List, None, Some("notes:read notes:more")),
        (Action::Search, None, Some("notes:read notes:more")),
        (Action::Search, Some("z"), Some("notes")),
        (Action::Read, Some("b"), None),
        (Action::Read, Some("z"), None),
        (Action::Read, Some("a/secret"), None),
        (Action::Read, Some("a/%73ecret"), None),
        (Action::Read, Some("a/list"), Some("notes:read notes:more")),
    ] {
        assert_eq!(needed(&ci, action, reference).as_deref(), expected, "{action:?} {reference:?}");
    }
    let only_denied = RuleSet::new(rules.rules().skip(1).cloned().collect());
    let listed = authorize(&only_denied, &ci, Action::List, Some("a/list"));
    assert_eq!(listed.unwrap_err(), Refusal::Hidden, "the holders of the scope are denied");
    let anonymous = authenticate(Evidence::Loopback);
    assert_eq!(authorize(&rules, &anonymous, Action::Read, Some("a/x")).unwrap_err(), Refusal::Hidden);
}

#[test]
fn a_decision_changes_with_the_minute() {
    let schedule = Some("Mon 12:00-13:00".parse().unwrap());
    let rules = RuleSet::new(vec![Rule { schedule, ..allow() }]);
    let (mount, local) = (notes(), authenticate(Evidence::OwnUser));
    let target = Target { mount: &mount, base: BASE, reference: Some("a") };
    for (time, expected) in [
        ("2026-11-23 12:59:59", true),
        ("2026-11-23 13:00:00", false),
        ("2026-11-23 12:59:00", true),
        ("2026-11-24 12:00:00", false),
    ] {
        assert_eq!(rules.authorize(&local, Action::Read, target, at(time)).is_ok(), expected, "{time}");
        assert_eq!(rules.visibility(&local, Action::Read, target, at(time)).is_all(), expected, "{time}");
    }
}

#[test]
fn rates_are_those_of_the_rules_that_allow() {
    let rate = |text: &str| vec![text.parse::<RateRule>().unwrap()];
    let rules = RuleSet::new(vec![
        Rule { resources: what(&["belljar://notes/a/**"]), rates: rate("60/min per caller"), ..allow() },
        Rule { resources: what(&["belljar://notes/a/b/**"]), rates: rate("1MiB/day per caller"), ..allow() },
        Rule { resources: what(&["belljar://notes/free"]), ..allow() },
        Rule { resources: what(&["belljar://notes/**"]), who: user("anonymous"), ..allow() },
    ]);
    let rates = |rules: &RuleSet, principal: &Principal, reference| {
        let access = authorize(rules, principal, Action::Read, reference).unwrap();
        access.rates().iter().map(|rate| (rate.amount, rate.unit)).collect::<Vec<_>>()
    };
    let (local, anonymous) = (authenticate(Evidence::OwnUser), authenticate(Evidence::Loopback));
    let (requests, bytes) = ((60, QuotaUnit::Requests), (1 << 20, QuotaUnit::Bytes));
    assert_eq!(rates(&rules, &local, Some("a/x")), [requests]);
    assert_eq!(rates(&rules, &local, Some("a/b/x")), [requests, bytes]);
    assert_eq!(rates(&rules, &local, Some("free")), []);
    assert_eq!(rates(&rules, &local, None), [], "a rule without a rate allows a part");
    assert_eq!(rates(&rules, &anonymous, Some("a/b/x")), [], "a rule without a rate allows it too");
    let ids = |rules: &RuleSet, reference| {
        let access = authorize(rules, &local, Action::Read, Some(reference)).unwrap();
        access.rates().iter().map(|rate| rate.id).collect::<Vec<_>>()
    };
    let mut other: Vec<Rule> = rules.rules().cloned().collect();
    other.insert(0, Rule { resources: what(&["belljar://notes/z"]), rates: rate("60/min per caller"), ..allow() });
    let other = RuleSet::new(other);
    assert_eq!(ids(&rules, "a/b/x"), ids(&other, "a/b/x"), "the count goes on after a change of another rule");
    assert_ne!(ids(&other, "a/x"), ids(&other, "z"));
    let twice = RuleSet::new(vec![
        Rule { rates: rate("1/s per caller"), ..allow() },
        Rule { rates: rate("1/s per caller"), ..allow() },
    ]);
    let twice = ids(&twice, "a");
    assert_ne!(twice[0], twice[1]);
}

#[test]
fn principals_with_the_same_rules_are_of_one_class() {
    let rules = RuleSet::new(vec![
        Rule { who: scope("a"), ..allow() },
        Rule { who: scope("b"), resources: what(&["belljar://notes/b/**"]), ..allow() },
        Rule { who: user("local"), actions: [Action::List].into_iter().collect(), ..allow() },
        Rule { who: user("local"), resources: what(&["belljar://notes/**"]), ..allow() },
        Rule { who: scope("c"), resources: what(&["belljar://logs/**"]), ..allow() },
    ]);
    let class = |principal: &Principal| authorize(&rules, principal, Action::Read, Some("b/x")).unwrap().class();
    assert_eq!(class(&key("one", &["a"])), class(&key("two", &["a", "z"])));
    assert_eq!(class(&key("one", &["a"])), class(&key("two", &["a", "c"])), "the rule for c is about another mount");
    assert_ne!(class(&key("one", &["a"])), class(&key("two", &["a", "b"])));
    assert_ne!(class(&key("one", &["a"])), class(&authenticate(Evidence::OwnUser)));
    let same = RuleSet::new(rules.rules().cloned().collect());
    let other = authorize(&same, &key("one", &["a"]), Action::Read, Some("b/x")).unwrap();
    assert_ne!(other.class(), class(&key("one", &["a"])), "rules that replace others have new classes");
}

#[test]
fn a_policy_is_replaced_and_tells_so() {
    let (policy, local) = (Policy::default(), authenticate(Evidence::OwnUser));
    let mount = notes();
    let target = Target { mount: &mount, base: BASE, reference: Some("a") };
    let is_allowed = || policy.authorize(&local, Action::Read, target, SystemTime::now()).is_ok();
    assert!(is_allowed() && !policy.has_rules());
    assert!(!policy.replace(RuleSet::default()), "the rules are the same");
    assert!(policy.replace(RuleSet::new(vec![deny()])));
    assert!(!is_allowed() && policy.has_rules());
    assert!(policy.replace(RuleSet::new(vec![allow()])) && is_allowed());
    let policies = || Arc::new(cedar::CedarPolicies::parse("permit(principal, action, resource);").unwrap());
    assert!(policy.replace(Decider::new(RuleSet::default(), Some(policies()))) && is_allowed());
    assert!(!policy.replace(Decider::new(RuleSet::default(), Some(policies()))), "the policies are the same");
}

#[test]
fn many_principals_and_sets_of_rules_are_decided_right() {
    let scopes: Vec<String> = (0..14).map(|at| format!("s{at}")).collect();
    let rules = scopes.iter().map(|one| Rule {
        who: scope(one),
        resources: what(&[&format!("belljar://notes/{one}")]),
        ..allow()
    });
    let rules = RuleSet::new(rules.collect());
    let begin = std::time::Instant::now();
    for set in 0..10_000u32 {
        let held: Vec<&str> =
            scopes.iter().enumerate().filter(|(at, _)| set & (1 << at) != 0).map(|(_, one)| one.as_str()).collect();
        let principal = key(&format!("k{set}"), &held);
        let reference = format!("s{}", set % 14);
        assert_eq!(is_allowed(&rules, &principal, Action::Read, &reference), set & (1 << (set % 14)) != 0, "{set}");
    }
    assert!(begin.elapsed() < Duration::from_secs(60));
    let (principals, decisions) = rules.remembered();
    assert!(principals <= 8192 && decisions <= 4096, "{principals} {decisions}");
}

#[test]
fn decisions_are_explained() {
    let rules = RuleSet::new(vec![
        Rule { who: user("local"), resources: what(&["belljar://notes/a/**"]), ..allow() },
        Rule { who: scope("s"), ..allow() },
        Rule { resources: what(&["belljar://notes/a/secret"]), ..deny() },
    ]);
    let explain = |principal: &Principal, reference| {
        let target = Target { mount: &notes(), base: BASE, reference: Some(reference) };
        rules.explain(principal, Action::Read, target, SystemTime::now())
    };
    let all: Vec<Rule> = rules.rules().cloned().collect();
    let local = authenticate(Evidence::OwnUser);
    assert_eq!(explain(&local, "a/b"), Explanation::Allowed(vec![all[0].clone()]));
    assert_eq!(explain(&local, "a/secret"), Explanation::Denied(vec![all[2].clone()]));
    let near = vec![(all[0].clone(), Obstacle::What), (all[1].clone(), Obstacle::Who)];
    assert_eq!(explain(&local, "b"), Explanation::NoRule(near));
    let scope = Explanation::Scope { scopes: vec!["s".to_owned()], rule: Box::new(all[1].clone()) };
    assert_eq!(explain(&key("ci", &[]), "b"), scope);
    assert!(explain(&key("ci", &["s"]), "b").is_allowed());
    let target = Target { mount: &notes(), base: BASE, reference: None };
    assert_eq!(RuleSet::default().explain(&local, Action::Read, target, SystemTime::now()), Explanation::NoRules);
    assert_eq!(rules.scopes(), ["s"]);
}
