//! Rules as operators write them, right and wrong.

use std::path::PathBuf;

use crate::config::{Config, ConfigInput, FILE};
use crate::policy::{RuleNumber, RuleOrigin, RuleResources, Who};

fn read(text: &str) -> Result<Config, String> {
    let directory = PathBuf::from("/srv/belljar");
    let input =
        ConfigInput { file: Some((directory.join(FILE), text.to_owned())), directory, ..ConfigInput::default() };
    Config::read(input).map_err(|error| error.to_string())
}

#[test]
fn no_rules_are_no_rules() {
    assert!(read("").unwrap().rules.is_empty());
    assert!(read("[auth]\n[auth.scopes]").unwrap().rules.is_empty());
}

#[test]
fn the_rules_of_a_file() {
    let text = r#"
[[allow]]
who = { group = "oncall" }
what = "belljar://logs/**"
do = ["read"]
when = "Mon-Fri 08:00-18:00 Europe/Berlin"
rate = "60/min per caller"

[[deny]]
who = "anyone"
what = ["belljar://logs/secret/**", "**/*.key"]

[[allow]]
who = { user = ["alice", "bob"], issuer = "https://login.example", scope = "logs:read logs:more" }
do = "list"
rate = ["1/s per caller", "50MiB/day per caller"]

[[allow]]
who = { key = "ci" }

[auth.scopes]
"notes:read" = { mounts = ["notes"], do = ["list", "read", "search", "subscribe"] }
all = {}
"#;
    let config = read(text).unwrap();
    let shown: Vec<String> = config.rules.iter().map(|rule| format!("{}: {rule}", rule.origin)).collect();
    assert_eq!(
        shown,
        [
            "[[allow]] 1 (line 2): who = { group = \"oncall\" }, what = \"belljar://logs/**\", do = [\"read\"], when = \"Mon-Fri 08:00-18:00 Europe/Berlin\", rate = \"60/min per caller\"",
            "[[allow]] 2 (line 13): who = { user = [\"alice\", \"bob\"], issuer = \"https://login.example\", scope = \"logs:read logs:more\" }, do = [\"list\"], rate = [\"1/s per caller\", \"50MiB/day per caller\"]",
            "[[allow]] 3 (line 18): who = { key = \"ci\" }",
            "[[deny]] 1 (line 9): who = \"anyone\", what = [\"belljar://logs/secret/**\", \"**/*.key\"]",
            "[auth.scopes] \"all\": ",
            "[auth.scopes] \"notes:read\": mounts = [\"notes\"], do = [\"list\", \"read\", \"search\", \"subscribe\"]",
        ]
    );
    assert!(config.rules[3].is_denying());
    assert_eq!(config.rules[3].who, Who::default());
    assert_eq!(config.rules[4].resources, RuleResources::All);
    // Rules may stand in one line too.
    let config = read("allow = [\n  { who = \"anyone\" },\n  { who = \"anyone\" },\n]").unwrap();
    assert_eq!(config.rules[1].origin, RuleOrigin::Allow(RuleNumber { number: 2, line: Some(3) }));
}

#[test]
fn wrong_rules_are_refused_with_place_value_and_cure() {
    for (text, words) in [
        ("[[allow]]\nwhat = \"**\"", &["the key \"who\" is missing", "allow"][..]),
        ("[[allow]]\nwho = \"everyone\"", &["line 2", "allow.who = \"everyone\"", "\"anyone\" or a table"]),
        ("[allow]\nwho = \"anyone\"", &["allow: expected an array of tables; write [[allow]] in place of [allow]"]),
        ("[deny]\nwho = \"anyone\"", &["deny: expected an array of tables; write [[deny]] in place of [deny]"]),
        ("[[allow]]\nwho = {}", &["allow.who", "the table is empty"]),
        ("[[allow]]\nwho = { groups = \"a\" }", &["line 2", "unknown key \"allow.who.groups\"", "\"group\""]),
        ("[[allow]]\nwho = { group = [] }", &["allow.who.group", "the array is empty"]),
        ("[[allow]]\nwho = { group = \"\" }", &["allow.who.group", "empty"]),
        ("[[allow]]\nwho = { key = \"ci\", user = \"alice\" }", &["allow.who", "nobody has both a key and a user"]),
        ("[[allow]]\nwho = { scope = \"a  b\" }", &["allow.who.scope = \"a  b\"", "separated by one space"]),
        ("[[allow]]\nwho = 1", &["allow.who = 1", "\"anyone\" or a table"]),
        (
            "[[allow]]\nwho = \"anyone\"\nwhat = \"logs/**\"",
            &["line 3", "allow.what = \"logs/**\"", "belljar://logs/**"],
        ),
        ("[[allow]]\nwho = \"anyone\"\nwhat = [\"**\", \"a:***\"]", &["line 3", "allow.what = \"a:***\"", "two stars"]),
        (
            "[[allow]]\nwho = \"anyone\"\nwhat = \"belljar://notes/[a-z]*\"",
            &["allow.what = \"belljar://notes/[a-z]*\"", "only \"*\" and \"**\" stand for other text"],
        ),
        ("[[allow]]\nwho = \"anyone\"\nwhat = []", &["allow.what", "the array is empty"]),
        ("[[allow]]\nwho = \"anyone\"\ndo = [\"write\"]", &["allow.do = \"write\"", "the actions are \"list\""]),
        ("[[allow]]\nwho = \"anyone\"\ndo = []", &["allow.do", "the array is empty"]),
        ("[[allow]]\nwho = \"anyone\"\nwhen = \"Mon-Fry\"", &["allow.when = \"Mon-Fry\"", "neither days"]),
        ("[[allow]]\nwho = \"anyone\"\nwhen = \"Mon Europe/Berlni\"", &["did you mean \"Europe/Berlin\"?"]),
        ("[[allow]]\nwho = \"anyone\"\nrate = \"60/min\"", &["allow.rate = \"60/min\"", "60/min per caller"]),
        ("[[allow]]\nwho = \"anyone\"\nrate = 60", &["allow.rate = 60", "60/min per caller"]),
        ("[[deny]]\nwho = \"anyone\"\nrate = \"60/min per caller\"", &["line 3", "unknown key \"deny.rate\""]),
        ("[[deny]]\nwhat = \"**\"", &["the key \"who\" is missing"]),
        (
            "[auth.scopes]\n\"notes:read\" = { mounts = [\"Notes\"] }",
            &["auth.scopes.notes:read.mounts = \"Notes\"", "not a mount name"],
        ),
        ("[auth.scopes]\n\"notes read\" = {}", &["auth.scopes", "\"notes read\" is not a scope"]),
        ("[auth.scopes]\na = { mount = \"a\" }", &["unknown key \"auth.scopes.a.mount\"", "\"mounts\""]),
        ("[auth.scopes]\na = [\"read\"]", &["auth.scopes.a", "expected a table"]),
        ("[auth]\nscope = {}", &["unknown key \"auth.scope\"", "\"scopes\""]),
    ] {
        let error = read(text).err().unwrap_or_else(|| panic!("accepted: {text}"));
        for word in words {
            assert!(error.contains(word), "{text}\n{error}\nlacks {word}");
        }
    }
}
