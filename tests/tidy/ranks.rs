//! The ranks of the host's modules: a module names only lower ones, so that every dependency points down.

use crate::{files, names, none};

/// The modules from the top down. Two that stand together may not name each other.
const RANKS: [&[&str]; 10] = [
    &["cli"],
    &["transport"],
    &["mcp"],
    &["gateway"],
    &["catalog"],
    &["sandbox"],
    &["config"],
    &["grants"],
    &["admission", "audit"],
    &["model"],
];

/// The host's sources.
const HOST: &str = "host/src/";

/// The module that a file of the host is: `catalog/watch.rs` is `catalog::watch`, `main.rs` and `lib.rs` are the root.
pub(crate) fn module(path: &str) -> Option<Vec<&str>> {
    let stem = path.strip_prefix(HOST)?.strip_suffix(".rs")?;
    let mut names: Vec<_> = stem.split('/').collect();
    if matches!(names.as_slice(), ["lib" | "main"]) || names.last() == Some(&"mod") {
        names.pop();
    }
    Some(names)
}

/// Every place where a file names what its rank forbids.
fn violations(path: &str, text: &str) -> Vec<String> {
    // The root is where everything meets.
    let Some(own) = module(path).filter(|names| !names.is_empty()) else {
        return Vec::new();
    };
    let Some(rank) = rank(own[0]) else {
        return vec![format!("{path}: the module \"{}\" has no rank", own[0])];
    };
    let mut found = Vec::new();
    for name in names::uses(path, text, &own) {
        // Only a path: a bare `crate` is part of a visibility.
        let ["crate" | "belljar", head, ..] = name.path.iter().map(String::as_str).collect::<Vec<_>>()[..] else {
            continue;
        };
        let line = name.line;
        match self::rank(head) {
            _ if head == own[0] => {}
            Some(other) if other > rank => {}
            Some(_) => {
                found.push(format!("{path}:{line}: \"{}\" may not name \"{head}\", which is not below it", own[0]))
            }
            None => found.push(format!("{path}:{line}: \"{head}\" at the crate's root is no ranked module")),
        }
    }
    found
}

/// How far from the top a module stands.
fn rank(module: &str) -> Option<usize> {
    RANKS.iter().position(|modules| modules.contains(&module))
}

#[test]
fn every_module_names_only_lower_ones() {
    let host: Vec<_> = files(".rs").into_iter().filter(|file| file.path.starts_with(HOST)).collect();
    none(host.iter().flat_map(|file| violations(&file.path, &file.text)));
}

#[test]
fn a_name_above_its_rank_is_found() {
    for (path, text) in [
        ("host/src/catalog.rs", "use crate::gateway::Gateway;"),
        ("host/src/catalog/watch.rs", "use super::super::gateway;"),
        ("host/src/catalog/watch.rs", "fn a() { let _ = crate::mcp::wire(); }"),
        ("host/src/catalog.rs", "mod tests { use super::super::cli::run; }"),
        ("host/src/sandbox.rs", "use crate::{model::Name, catalog::{Mount}};"),
        ("host/src/audit/sink.rs", "use crate::admission::Permit;"),
        ("host/src/admission.rs", "use crate::audit::Record;"),
        ("host/src/model.rs", "macro_rules! m { () => { $crate::config::x() } }"),
        ("host/src/grants/fs.rs", "use belljar::sandbox::Call;"),
        ("host/src/gateway.rs", "use crate::*;"),
        ("host/src/helpers.rs", ""),
    ] {
        assert_eq!(violations(path, text).len(), 1, "{path}: {text}");
    }
}

#[test]
fn a_name_below_its_rank_is_fine() {
    for (path, text) in [
        ("host/src/catalog.rs", "pub(crate) mod watch; use crate::sandbox::Call; use self::watch::Watch;"),
        ("host/src/catalog/watch.rs", "use super::Mount; use crate::{config, model::Name}; // crate::cli"),
        ("host/src/cli/serve.rs", "use crate::transport::http; use crate::audit::Sink;"),
        ("host/src/main.rs", "fn main() { belljar::cli::run() }"),
        ("host/src/lib.rs", "pub mod cli; pub use crate::model::Name;"),
        ("plugins/files/src/lib.rs", "use crate::anything;"),
    ] {
        assert_eq!(violations(path, text), Vec::<String>::new(), "{path}: {text}");
    }
}
