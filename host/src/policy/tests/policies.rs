//! Decisions of rules and policies together.

use super::*;
use crate::policy::cedar::CedarPolicies;

/// The key `ci` in the group `oncall`.
fn oncall() -> Principal {
    let groups = vec!["oncall".to_owned()];
    authenticate(Evidence::Key(KeyIdentity { name: "ci".to_owned(), groups, scopes: Vec::new() }))
}

fn decider(rules: Vec<Rule>, policies: &str) -> Decider {
    Decider::new(RuleSet::new(rules), Some(Arc::new(CedarPolicies::parse(policies).unwrap())))
}

fn decide(
    decider: &Decider,
    principal: &Principal,
    action: Action,
    reference: Option<&str>,
) -> Result<Access, Refusal> {
    let target = Target { mount: &notes(), base: BASE, reference };
    decider.authorize(principal, action, target, at("2026-11-23 12:00:00"))
}

fn may_read(decider: &Decider, principal: &Principal, reference: &str) -> bool {
    decide(decider, principal, Action::Read, Some(reference)).is_ok()
}

const BOTH: &str =
    "@id(\"logs\") permit(principal in Group::\"oncall\", action, resource in Folder::\"belljar://notes/logs/\");
    @id(\"secret\") forbid(principal, action, resource) when { resource.uri like \"*secret*\" };";

#[test]
fn a_policy_adds_to_the_rules_and_takes_from_them() {
    let public = Rule { resources: what(&["belljar://notes/public/**"]), ..allow() };
    let private = Rule { resources: what(&["belljar://notes/logs/private/**"]), ..deny() };
    let both = decider(vec![public, private], BOTH);
    for (reference, of_oncall, of_others) in [
        ("public/a", true, true),
        ("public/secret", false, false),
        ("public/%73ecret", false, false),
        ("public/%2573ecret", true, true),
        ("logs/a", true, false),
        ("logs%2Fa", false, false),
        ("logs/secret", false, false),
        ("logs/private/a", false, false),
        ("logs//private/a", false, false),
        ("other", false, false),
    ] {
        assert_eq!(may_read(&both, &oncall(), reference), of_oncall, "{reference}");
        assert_eq!(may_read(&both, &key("x", &[]), reference), of_others, "{reference}");
    }
    assert!(!both.is_empty());
}

#[test]
fn policies_without_rules_allow_what_they_permit_and_nothing_else() {
    let logs = decider(Vec::new(), BOTH);
    assert!(may_read(&logs, &oncall(), "logs/a") && !may_read(&logs, &oncall(), "a"));
    let local = authenticate(Evidence::OwnUser);
    assert_eq!(decide(&logs, &local, Action::List, None).unwrap_err(), Refusal::Hidden);
    for action in [Action::List, Action::Describe, Action::Watch] {
        assert!(decide(&logs, &oncall(), action, None).is_ok(), "{action:?} of a part");
    }
    let nothing = decider(Vec::new(), "");
    assert!(!nothing.is_empty() && !may_read(&nothing, &local, "a"), "an empty file permits nothing");
    let belljar = authenticate(Evidence::Polling);
    assert_eq!(decide(&nothing, &belljar, Action::Read, Some("a")).unwrap().class(), AccessClass::EVERYONE);
}

#[test]
fn a_policy_that_forbids_the_base_hides_the_mount() {
    let policies = "forbid(principal, action, resource in Mount::\"notes\") unless { principal in Group::\"oncall\" };";
    let hidden = decider(vec![allow()], policies);
    let target = Target { mount: &notes(), base: BASE, reference: None };
    let seen = |principal: &Principal| hidden.visibility(principal, Action::List, target, SystemTime::UNIX_EPOCH);
    assert!(seen(&key("x", &[])).is_nothing() && !seen(&key("x", &[])).contains("a"));
    assert!(!seen(&oncall()).is_nothing() && seen(&oncall()).contains("a") && seen(&oncall()).contains_below("b/"));
    assert_eq!(decide(&hidden, &key("x", &[]), Action::Read, Some("a")).unwrap_err(), Refusal::Hidden);
}

#[test]
fn principals_share_no_class_if_there_are_policies() {
    let both = decider(vec![allow()], BOTH);
    let class = |principal: &Principal| decide(&both, principal, Action::Read, Some("a")).unwrap().class();
    assert_eq!(class(&oncall()), class(&oncall()));
    assert_ne!(class(&oncall()), class(&key("x", &[])));
    assert_ne!(class(&key("x", &[])), class(&key("x", &["s"])), "a policy may ask for the scopes");
}

#[test]
fn a_missing_scope_is_named_unless_a_policy_forbids_the_resource() {
    let with_scope = Rule { who: scope("notes:read"), ..allow() };
    let both = decider(vec![with_scope], BOTH);
    let refusal = |reference| decide(&both, &key("x", &[]), Action::Read, Some(reference)).unwrap_err();
    assert_eq!(refusal("a"), Refusal::Scope(vec!["notes:read".to_owned()]));
    assert_eq!(refusal("secret"), Refusal::Hidden);
}

#[test]
fn a_list_has_what_may_be_listed() {
    let references =
        ["", "a", "logs/", "logs/a", "logs/secret/x", "public/a", "public/x%2Fy", "private/a?x=/", "l%6Fgs/a"];
    let heads = [
        "principal, action, resource",
        "principal in Group::\"oncall\", action, resource in Folder::\"belljar://notes/logs/\"",
        "principal == Caller::\"key:ci\", action == Action::\"list\", resource == Resource::\"belljar://notes/a\"",
        "principal, action in [Action::\"read\", Action::\"list\"], resource in Mount::\"notes\"",
        "principal, action, resource is Resource in Folder::\"belljar://notes/public/\"",
        "principal, action == Action::\"read\", resource",
        "principal == Caller::\"key:x\", action, resource",
        "principal, action, resource in Mount::\"other\"",
    ];
    let rules = [Vec::new(), vec![Rule { resources: what(&["belljar://notes/public/**"]), ..allow() }], vec![deny()]];
    let (mut allowed, mut refused) = (0, 0);
    for (first, second) in heads.iter().flat_map(|first| heads.iter().map(move |second| (first, second))) {
        for rules in &rules {
            let policies = format!("permit({first}); forbid({second}) when {{ resource.uri like \"*secret*\" }};");
            let both = decider(rules.clone(), &policies);
            for principal in [oncall(), key("x", &[])] {
                let target = Target { mount: &notes(), base: BASE, reference: None };
                let visible = both.visibility(&principal, Action::List, target, at("2026-11-23 12:00:00"));
                for reference in references {
                    let may = decide(&both, &principal, Action::List, Some(reference)).is_ok();
                    assert_eq!(visible.contains(reference), may, "{policies} {principal} {reference}");
                    let starts = (0..=reference.len()).filter(|end| reference.is_char_boundary(*end));
                    for start in starts.filter(|_| may).map(|end| &reference[..end]) {
                        assert!(visible.contains_below(start), "{policies} {principal} {reference} {start}");
                    }
                    assert!(!(may && visible.is_nothing()), "{policies} {principal} {reference}");
                    *(if may { &mut allowed } else { &mut refused }) += 1;
                }
            }
        }
    }
    assert!(allowed > 300 && refused > 300, "{allowed} allowed, {refused} refused");
}

#[test]
fn an_explanation_names_the_policy() {
    let public = Rule { resources: what(&["belljar://notes/public/**"]), ..allow() };
    let both = decider(vec![public], BOTH);
    let explain = |reference| {
        let target = Target { mount: &notes(), base: BASE, reference };
        both.explain(&oncall(), Action::Read, target, SystemTime::UNIX_EPOCH)
    };
    assert_eq!(explain(Some("logs/a")), Explanation::Permitted(vec!["logs".to_owned()]));
    assert_eq!(explain(Some("public/secret")), Explanation::Forbidden(vec!["secret".to_owned()]));
    assert!(matches!(explain(Some("public/a")), Explanation::Allowed(rules) if rules.len() == 1));
    assert!(matches!(explain(Some("other")), Explanation::NoRule(_)));
    let target = Target { mount: &notes(), base: BASE, reference: None };
    let part = decider(Vec::new(), BOTH).explain(&oncall(), Action::Read, target, SystemTime::UNIX_EPOCH);
    assert_eq!(part, Explanation::Permitted(vec!["logs".to_owned()]), "a part of the mount");
}

#[test]
fn whoever_is_denied_a_part_of_a_mount_may_use_none_of_its_tools() {
    let explain = |decider: &Decider, action, reference| {
        let target = Target { mount: &notes(), base: BASE, reference };
        decider.explain(&oncall(), action, target, at("2026-11-23 12:00:00"))
    };
    let secret = Rule { resources: what(&["belljar://notes/secret/**"]), ..deny() };
    let by_rule: Decider = RuleSet::new(vec![allow(), secret.clone()]).into();
    let by_policy = decider(vec![allow()], BOTH);
    for (decider, expected) in [
        (&by_rule, Explanation::DeniedPart { rules: vec![secret.clone()], policies: Vec::new() }),
        (&by_policy, Explanation::DeniedPart { rules: Vec::new(), policies: vec!["secret".to_owned()] }),
    ] {
        for action in [Action::Call, Action::Prompt] {
            assert_eq!(explain(decider, action, Some("search")), expected, "{action:?}");
            assert_eq!(explain(decider, action, None), expected, "{action:?}");
        }
        assert!(explain(decider, Action::Read, Some("search")).is_allowed());
        assert!(!explain(decider, Action::Read, Some("secret/x")).is_allowed());
    }
    // A denied tool, another mount, other people, and other actions are no denied part.
    let calls =
        Rule { actions: [Action::Call].into_iter().collect(), resources: what(&["belljar://notes/send"]), ..deny() };
    let others = Rule { resources: what(&["belljar://other/**"]), ..deny() };
    let alice = Rule { who: user("alice"), ..secret };
    let fine: Decider = RuleSet::new(vec![allow(), calls.clone(), others, alice]).into();
    assert!(explain(&fine, Action::Call, Some("search")).is_allowed());
    assert_eq!(explain(&fine, Action::Call, Some("send")), Explanation::Denied(vec![calls]));
    let elsewhere = decider(vec![allow()], "forbid(principal, action, resource in Mount::\"other\");");
    assert!(explain(&elsewhere, Action::Call, Some("search")).is_allowed());
}

#[test]
fn no_spelling_slips_past_a_policy_that_forbids() {
    let forbid = |what: &str| decider(vec![allow()], &format!("forbid(principal, action, resource {what});"));
    let folder = forbid("in Folder::\"belljar://notes/my%20files/\"");
    for reference in [
        "my%20files/a",
        "%6Dy%20files/a",
        "my%20files%2Fa",
        "my%20files//a",
        "my%20files/",
        "my%20files",
        "my%20files?x",
        "%6dy%20files",
    ] {
        assert!(!may_read(&folder, &key("x", &[]), reference), "{reference}");
    }
    assert!(may_read(&folder, &key("x", &[]), "my%20file/a") && may_read(&folder, &key("x", &[]), "my"));
    let one = forbid("== Resource::\"belljar://notes/my%20file\"");
    for reference in ["my%20file", "my%20file?", "%6Dy%20file", "my%20file/", "my%20file?q=1"] {
        assert!(!may_read(&one, &key("x", &[]), reference), "{reference}");
    }
    assert!(may_read(&one, &key("x", &[]), "my%20file/a") && may_read(&one, &key("x", &[]), "my%20files"));
}

#[test]
fn an_id_in_another_spelling_is_refused_with_the_right_one() {
    for (id, right) in [
        ("belljar://notes/my files/", "belljar://notes/my%20files/"),
        ("belljar://notes/%6dy/", "belljar://notes/my/"),
        ("belljar://notes//a/", "belljar://notes/a/"),
        ("belljar://notes/caf\u{e9}/", "belljar://notes/caf%C3%A9/"),
    ] {
        let policies = format!("forbid(principal, action, resource) when {{ resource in Folder::\"{id}\" }};");
        let error = CedarPolicies::parse(&policies).err().map(|error| error.to_string()).unwrap_or_default();
        assert!(error.contains(&format!("write \"{right}\"")), "{id}: {error}");
    }
    for fine in ["belljar://notes/a%20b/", "file:///srv/", "urn:x:", "belljar://notes/a?b=//%20"] {
        let policies = format!("permit(principal, action, resource == Resource::\"{fine}\");");
        assert!(CedarPolicies::parse(&policies).is_ok(), "{fine}");
    }
}

#[test]
fn a_policy_without_conditions_hides_templates_and_folders_too() {
    let policies = "forbid(principal, action, resource in Folder::\"belljar://notes/private/\");
        forbid(principal, action, resource in Folder::\"belljar://notes/odd/\") when { context.time.toTime() < duration(\"1h\") };";
    let both = decider(vec![allow()], policies);
    let target = Target { mount: &notes(), base: BASE, reference: None };
    let seen = both.visibility(&key("x", &[]), Action::List, target, SystemTime::UNIX_EPOCH);
    for (prefix, expected) in
        [("private/", false), ("private/x", false), ("private", true), ("p", true), ("", true), ("odd/", true)]
    {
        assert_eq!(seen.contains_below(prefix), expected, "{prefix}");
    }
}
