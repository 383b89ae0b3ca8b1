//! Checks the ranks of the host's modules. A module may use only modules of lower rank, so that all dependencies have
//! one direction.

use crate::{assert_none, files, names};

/// The modules, from the highest rank to the lowest. Modules in the same row may not use each other.
const RANKS: [&[&str]; 14] = [
    &["cli"],
    &["server"],
    &["transport"],
    &["mcp"],
    &["gateway"],
    &["catalog"],
    &["sandbox"],
    &["interfaces", "auth"],
    &["config"],
    &["grants"],
    &["limits", "telemetry"],
    &["store"],
    &["policy"],
    &["model"],
];

/// The host's sources.
const HOST: &str = "host/src/";

/// The module of a file of the host: `catalog/watch.rs` is `catalog::watch`; `main.rs` and `lib.rs` are the root.
pub(crate) fn module(path: &str) -> Option<Vec<&str>> {
    let stem = path.strip_prefix(HOST)?.strip_suffix(".rs")?;
    let mut names: Vec<_> = stem.split('/').collect();
    if matches!(names.as_slice(), ["lib" | "main"]) || names.last() == Some(&"mod") {
        names.pop();
    }
    Some(names)
}

/// Every use of a module that the rank of the file forbids.
fn violations(path: &str, text: &str) -> Vec<String> {
    // The root may use every module.
    let Some(own) = module(path).filter(|names| !names.is_empty()) else {
        return Vec::new();
    };
    let Some(rank) = rank(own[0]) else {
        return vec![format!("{path}: the module \"{}\" has no rank", own[0])];
    };
    let mut found = Vec::new();
    for name in names::uses(path, text, &own) {
        // Ignore `crate` without a path: it is a part of `pub(crate)`.
        let ["crate" | "belljar", head, ..] = name.path.iter().map(String::as_str).collect::<Vec<_>>()[..] else {
            continue;
        };
        let line = name.line;
        match self::rank(head) {
            _ if head == own[0] => {}
            Some(other) if other > rank => {}
            Some(_) => {
                found.push(format!("{path}:{line}: \"{}\" may not use \"{head}\", which has no lower rank", own[0]))
            }
            None => found.push(format!(
                "{path}:{line}: \"{head}\" is not in `RANKS`: add the module, or name the item by its module"
            )),
        }
    }
    found
}

/// The rank of a module. 0 is the highest rank.
fn rank(module: &str) -> Option<usize> {
    RANKS.iter().position(|modules| modules.contains(&module))
}

#[test]
fn every_module_uses_only_lower_modules() {
    let host: Vec<_> = files(".rs").into_iter().filter(|file| file.path.starts_with(HOST)).collect();
    assert_none(host.iter().flat_map(|file| violations(&file.path, &file.text)));
}

#[test]
fn the_use_of_a_higher_module_is_found() {
    for (path, text) in [
        ("host/src/catalog.rs", "use crate::gateway::Gateway;"),
        ("host/src/catalog/watch.rs", "use super::super::gateway;"),
        ("host/src/catalog/watch.rs", "fn a() { let _ = crate::mcp::wire(); }"),
        ("host/src/catalog.rs", "mod tests { use super::super::cli::run; }"),
        ("host/src/sandbox.rs", "use crate::{model::Name, catalog::{Mount}};"),
        ("host/src/telemetry/sink.rs", "use crate::limits::Permit;"),
        ("host/src/limits.rs", "use crate::telemetry::Record;"),
        ("host/src/model.rs", "macro_rules! m { () => { $crate::config::x() } }"),
        ("host/src/grants/fs.rs", "use belljar::sandbox::Call;"),
        ("host/src/gateway.rs", "use crate::*;"),
        ("host/src/helpers.rs", ""),
    ] {
        assert_eq!(violations(path, text).len(), 1, "{path}: {text}");
    }
}

#[test]
fn the_use_of_a_lower_module_is_allowed() {
    for (path, text) in [
        ("host/src/catalog.rs", "pub(crate) mod watch; use crate::sandbox::Call; use self::watch::Watch;"),
        ("host/src/catalog/watch.rs", "use super::Mount; use crate::{config, model::Name}; // crate::cli"),
        ("host/src/cli/serve.rs", "use crate::transport::http; use crate::telemetry::Sink;"),
        ("host/src/main.rs", "fn main() { belljar::cli::run() }"),
        ("host/src/lib.rs", "pub mod cli; pub use crate::model::Name;"),
        ("plugins/files/src/lib.rs", "use crate::anything;"),
    ] {
        assert_eq!(violations(path, text), Vec::<String>::new(), "{path}: {text}");
    }
}
