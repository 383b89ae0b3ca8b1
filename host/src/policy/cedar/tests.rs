//! Tests of the policies alone: what they say, and which are refused.

use std::time::Duration;

use super::*;
use crate::model::MountName;
use crate::policy::{Evidence, KeyIdentity, authenticate};

/// Tuesday, 24 November 2026, 10:00 UTC.
const AT: u64 = 1_795_514_400;

fn opinion(policies: &str, action: Action, base: &str, reference: Option<&str>) -> CedarOpinion {
    let policies = CedarPolicies::parse(policies).unwrap();
    let (groups, scopes) = (vec!["oncall".to_owned()], vec!["logs:read".to_owned()]);
    let caller = authenticate(Evidence::Key(KeyIdentity { name: "ci".to_owned(), groups, scopes }));
    let mount = MountName::new("logs").unwrap();
    let target = Target { mount: &mount, base, reference };
    policies.decide(&caller, action, target, UNIX_EPOCH + Duration::from_secs(AT))
}

#[test]
fn callers_folders_and_times_are_judged() {
    let base = "belljar://logs/";
    for (condition, permits) in [
        ("principal == Caller::\"key:ci\", action, resource", true),
        ("principal == Caller::\"key:other\", action, resource", false),
        ("principal in Group::\"oncall\", action, resource", true),
        ("principal in Group::\"others\", action, resource", false),
        ("principal, action == Action::\"read\", resource", true),
        ("principal, action == Action::\"list\", resource", false),
        ("principal, action in [Action::\"read\", Action::\"list\"], resource", true),
        ("principal, action, resource in Mount::\"logs\"", true),
        ("principal, action, resource in Mount::\"notes\"", false),
        ("principal, action, resource in Folder::\"belljar://logs/\"", true),
        ("principal, action, resource in Folder::\"belljar://logs/2026/\"", true),
        ("principal, action, resource in Folder::\"belljar://logs/2026/11/\"", true),
        ("principal, action, resource in Folder::\"belljar://logs/2026/11/x?a=/\"", false),
        ("principal, action, resource in Folder::\"belljar://logs/20\"", false),
        ("principal, action, resource == Resource::\"belljar://logs/2026/11/x?a=/b\"", true),
    ] {
        let policy = format!("permit({condition});");
        let found = opinion(&policy, Action::Read, base, Some("2026/11/x?a=/b"));
        assert_eq!(found != CedarOpinion::Silent, permits, "{condition}: {found:?}");
    }
    for (condition, permits) in [
        ("principal.kind == \"key\" && principal.subject == \"ci\"", true),
        ("principal.scopes.contains(\"logs:read\")", true),
        ("principal.scopes.contains(\"logs:write\")", false),
        ("principal has issuer && principal.issuer == \"x\"", false),
        ("resource.uri like \"*/11/*\"", true),
        ("context.time.toTime() >= duration(\"10h\") && context.time.toTime() < duration(\"11h\")", true),
        ("context.time < datetime(\"2026-11-24T10:00:00Z\")", false),
        ("context.time == datetime(\"2026-11-24T10:00:00Z\")", true),
    ] {
        let policy = format!("permit(principal, action, resource) when {{ {condition} }};");
        let found = opinion(&policy, Action::Read, base, Some("2026/11/x"));
        assert_eq!(found != CedarOpinion::Silent, permits, "{condition}: {found:?}");
    }
    let whole = "@id(\"whole\") permit(principal, action, resource == Resource::\"belljar://logs/\");";
    assert_eq!(opinion(whole, Action::List, base, None), CedarOpinion::Permitted(vec!["whole".to_owned()]));
}

#[test]
fn a_policy_that_forbids_wins_also_if_it_fails() {
    let read = |policies: &str| opinion(policies, Action::Read, "belljar://logs/", Some("a"));
    let all = "@id(\"all\") permit(principal, action, resource);";
    assert_eq!(read(all), CedarOpinion::Permitted(vec!["all".to_owned()]));
    let forbid =
        format!("{all} @id(\"not-a\") forbid(principal, action, resource) when {{ resource.uri like \"*a\" }};");
    assert_eq!(read(&forbid), CedarOpinion::Forbidden(vec!["not-a".to_owned()]));
    let overflow = "forbid(principal, action, resource) when { context.time.toDate().offset(duration(\"106751991167d\")) \
        == context.time };";
    let found = read(&format!("{all} {overflow}"));
    assert!(matches!(found, CedarOpinion::Forbidden(_)), "{found:?}");
    assert_eq!(opinion(all, Action::Describe, "belljar://logs/", None), CedarOpinion::Silent);
}

#[test]
fn the_reference_shows_valid_policies_and_the_schema() {
    let page = include_str!("../../../../docs/reference/policy.md");
    let blocks: Vec<&str> = page.split("```cedar\n").skip(1).filter_map(|rest| rest.split("```").next()).collect();
    let words = |text: &str| {
        let code = text.lines().filter_map(|line| line.split("//").next());
        code.flat_map(str::split_whitespace).collect::<String>().replace(",}", "}")
    };
    assert_eq!(blocks.len(), 2);
    assert_eq!(CedarPolicies::parse(blocks[0]).unwrap().policies.policies().count(), 2);
    assert_eq!(words(blocks[1]), words(SCHEMA));
}

#[test]
fn invalid_policies_are_refused_with_the_reason() {
    for (text, reason) in [
        ("permit(principal, action, resource)", "line 1"),
        ("\n\npermit(principal, action, ressource);", "line 3"),
        ("permit(principal, action == Action::\"write\", resource);", "write"),
        ("permit(principal == User::\"x\", action, resource);", "User"),
        ("permit(principal, action, resource) when { principal.name == \"x\" };", "name"),
        ("permit(principal, action, resource) when { resource.uri == 1 };", "type"),
        ("permit(principal, action, resource) when { context.ip == 1 };", "ip"),
        ("permit(principal == ?principal, action, resource);", "template"),
        ("@id(\"a\") permit(principal, action, resource); @id(\"a\") permit(principal, action, resource);", "a"),
    ] {
        let error = CedarPolicies::parse(text).err().map(|error| error.to_string()).unwrap_or_default();
        assert!(error.contains(reason), "{text}: {error}");
    }
    assert!(matches!(CedarPolicies::parse(&" ".repeat(MAX_BYTES + 1)), Err(CedarError::Length(_))));
}
