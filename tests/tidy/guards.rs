//! Rules for the switches in the host's code that turn guards off for tests. There are at most [`MOST`] switches, because
//! each one makes the code harder to read. Each guard has one switch.

use std::collections::BTreeMap;

use proc_macro2::{TokenStream, TokenTree};

use crate::{assert_none, files, source};

/// The most switches in the host's code: calls such as `Guard::Pin.is_on()`.
const MOST: usize = 52;

/// The file that declares the guards.
const DECLARED: &str = "host/src/model/guard.rs";

/// The table of bounds. One line there holds a bound and its guard, and does not count as a switch.
const TABLE: &str = "host/src/model/bounds.rs";

/// The files that may use the feature `unguarded`, with which guards can be switched off. These files declare guards,
/// read the names of the guards that are off, pass the names to child processes, choose the isolation of mounts, or run
/// the code of an attacker in workers.
const MAY_USE_FEATURE: [&str; 9] = [
    DECLARED,
    TABLE,
    "host/src/cli.rs",
    "host/src/server/compiler_process.rs",
    "host/src/config/settings.rs",
    "host/src/server/worker_process.rs",
    "host/src/sandbox.rs",
    "host/src/sandbox/worker.rs",
    "host/src/sandbox/worker/serve.rs",
];

/// The guards that a file names, in order, each with its line. An import of `Guard` under another name gives "as".
fn named(tokens: TokenStream) -> Vec<(String, usize)> {
    let trees: Vec<_> = tokens.into_iter().collect();
    let word = |at: usize| match trees.get(at) {
        Some(TokenTree::Ident(name)) => name.to_string(),
        Some(TokenTree::Punct(mark)) => mark.as_char().to_string(),
        Some(TokenTree::Group(_)) => "{".to_owned(),
        _ => String::new(),
    };
    let mut found = Vec::new();
    for (at, tree) in trees.iter().enumerate() {
        match tree {
            TokenTree::Group(group) => found.extend(named(group.stream())),
            TokenTree::Ident(name) if name == "Guard" => match (word(at + 1).as_str(), word(at + 3)) {
                (":", guard) => found.push((guard.to_owned(), tree.span().start().line)),
                ("as", _) => found.push(("as".to_owned(), tree.span().start().line)),
                _ => {}
            },
            _ => {}
        }
    }
    found
}

/// The violations of these rules in `files`: pairs of path and text.
fn violations(files: &[(&str, &str)]) -> Vec<String> {
    let mut found = Vec::new();
    let mut switches: BTreeMap<String, Vec<String>> = BTreeMap::new();
    for (path, text) in files.iter().filter(|(path, _)| path.starts_with("host/src/")) {
        if text.contains("feature = \"unguarded\"") && !MAY_USE_FEATURE.contains(path) {
            found.push(format!(
                "{path}: uses the feature \"unguarded\"; only these files may use it: {}",
                MAY_USE_FEATURE.join(", ")
            ));
        }
        if [DECLARED, TABLE].contains(path) {
            continue;
        }
        for (guard, line) in named(source::tokens(path, text)) {
            match guard.as_str() {
                "as" | "{" | "*" => found.push(format!(
                    "{path}:{line}: write the guard as `Guard::Name` in the place of the check, without `use`"
                )),
                _ => switches.entry(guard).or_default().push(format!("{path}:{line}")),
            }
        }
    }
    let count: usize = switches.values().map(Vec::len).sum();
    if count > MOST {
        found.push(format!("the host has {count} switches, at most {MOST} are allowed: put limits into {TABLE}"));
    }
    for (guard, places) in switches.iter().filter(|(_, places)| places.len() > 1) {
        found.push(format!("`Guard::{guard}` is checked at {}: check it in one function", places.join(" and ")));
    }
    found
}

#[test]
fn switches_are_few_and_each_guard_has_one() {
    let all = files(".rs");
    let all: Vec<_> = all.iter().map(|file| (file.path.as_str(), file.text.as_str())).collect();
    assert_none(violations(&all));
}

#[test]
fn wrong_and_too_many_switches_are_found() {
    let one = "fn a() -> bool { Guard::A.is_on() }";
    let wrong = [
        vec![("host/src/a.rs", one), ("host/src/b.rs", "fn b() { if !(crate::model::Guard::A.is_on()) {} }")],
        vec![("host/src/a.rs", "use crate::model::Guard as G;")],
        vec![("host/src/a.rs", "use crate::model::Guard::{A, B};")],
        vec![("host/src/a.rs", "use crate::model::Guard::*;")],
        vec![("host/src/a.rs", "#[cfg(feature = \"unguarded\")] fn a() {}")],
    ];
    for files in wrong {
        assert_eq!(violations(&files).len(), 1, "{files:?}");
    }
    let many: String = (0..=MOST).map(|n| format!("fn f{n}() -> bool {{ Guard::G{n}.is_on() }}\n")).collect();
    assert_eq!(violations(&[("host/src/a.rs", &many)]).len(), 1);
}

#[test]
fn one_switch_and_the_table_are_fine() {
    let fine = [
        ("host/src/a.rs", "use crate::model::{Guard, text}; /* Guard::A */ fn a() -> bool { Guard::A.is_on() }"),
        (TABLE, "const A: Bound<u32> = Guard::A.most(1); const B: Bound<u32> = Guard::A.most(2);"),
        (DECLARED, "#[cfg(feature = \"unguarded\")] fn a() -> bool { Guard::A.is_on() }"),
        ("tests/integration/limits/hostile_a.rs", "fn a() { Guard::A; Guard::A; }"),
    ];
    assert_eq!(violations(&fine), Vec::<String>::new());
}
