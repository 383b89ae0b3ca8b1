//! Checks that the files of the host have no cycles: no file may name another file that names it again, directly or
//! through other files. The file `a.rs` and the files in its folder `a/` count as different files.

use std::collections::{BTreeMap, BTreeSet, VecDeque};

use crate::{assert_none, files, names, ranks};

/// Modules in which cycles still exist. The test does not report them.
const EXCEPTIONS: [&str; 0] = [];

/// Each module, and the modules that it names.
type Edges = BTreeMap<Vec<String>, BTreeSet<Vec<String>>>;

/// Finds the modules that each source names. `sources` are pairs of path and text.
fn edges(sources: &[(&str, &str)]) -> Edges {
    let module = |path: &str| ranks::module(path).map(|names| names.into_iter().map(str::to_owned).collect::<Vec<_>>());
    let modules: BTreeSet<Vec<String>> = sources.iter().filter_map(|(path, _)| module(path)).collect();
    let mut edges = Edges::new();
    for (path, text) in sources {
        let Some(own) = module(path).filter(|own| !own.is_empty()) else { continue };
        let borrowed: Vec<&str> = own.iter().map(String::as_str).collect();
        let named = edges.entry(own.clone()).or_default();
        for name in names::uses(path, text, &borrowed).into_iter().filter(|name| !name.in_tests) {
            let whole = match name.path.split_first() {
                Some((head, rest)) if head == "crate" || head == "belljar" => rest.to_vec(),
                // A module name alone declares the module, or names it as a whole. It names nothing in the module.
                Some((_, [])) => continue,
                Some((head, _)) if modules.contains(&[own.as_slice(), std::slice::from_ref(head)].concat()) => {
                    [own.as_slice(), &name.path].concat()
                }
                _ => continue,
            };
            let target = (1..=whole.len()).rev().map(|length| &whole[..length]).find(|start| modules.contains(*start));
            let Some(target) = target else { continue };
            // `pub(in crate::a)` names a module, and nothing in it.
            let is_visibility = target.len() == whole.len() && own.starts_with(target);
            if target != own && !is_visibility {
                named.insert(target.to_vec());
            }
        }
    }
    edges
}

/// For each module in a cycle, its shortest cycle. Cycles with the same modules are reported once.
fn cycles(edges: &Edges) -> Vec<String> {
    let mut reported = BTreeSet::new();
    let mut found = Vec::new();
    for start in edges.keys() {
        let Some(cycle) = shortest_cycle(edges, start) else { continue };
        let set: BTreeSet<&Vec<String>> = cycle.iter().copied().collect();
        if reported.insert(set) {
            let names: Vec<String> = cycle.iter().map(|module| module.join("/")).collect();
            found.push(format!("{} -> {}", names.join(" -> "), start.join("/")));
        }
    }
    found
}

/// The shortest cycle through `start`, beginning with `start`. `None` if there is none.
fn shortest_cycle<'e>(edges: &'e Edges, start: &'e Vec<String>) -> Option<Vec<&'e Vec<String>>> {
    let mut before: BTreeMap<&Vec<String>, &Vec<String>> = BTreeMap::new();
    let mut queue = VecDeque::from([start]);
    while let Some(module) = queue.pop_front() {
        for next in edges.get(module).into_iter().flatten() {
            if next == start {
                let mut cycle = vec![module];
                while let Some(earlier) = before.get(cycle[cycle.len() - 1]) {
                    cycle.push(earlier);
                }
                cycle.reverse();
                return Some(cycle);
            }
            if !before.contains_key(next) {
                before.insert(next, module);
                queue.push_back(next);
            }
        }
    }
    None
}

#[test]
fn the_files_of_the_host_have_no_cycles() {
    let host: Vec<_> = files(".rs").into_iter().filter(|file| file.path.starts_with("host/src/")).collect();
    let sources: Vec<_> = host.iter().map(|file| (file.path.as_str(), file.text.as_str())).collect();
    let found = cycles(&edges(&sources));
    assert_none(found.into_iter().filter(|cycle| !EXCEPTIONS.iter().any(|module| cycle.starts_with(module))));
}

#[test]
fn each_listed_cycle_still_exists() {
    let host: Vec<_> = files(".rs").into_iter().filter(|file| file.path.starts_with("host/src/")).collect();
    let sources: Vec<_> = host.iter().map(|file| (file.path.as_str(), file.text.as_str())).collect();
    let found = cycles(&edges(&sources));
    let unneeded = EXCEPTIONS.iter().filter(|module| !found.iter().any(|cycle| cycle.starts_with(**module)));
    assert_none(unneeded.map(|module| format!("\"{module}\" has no cycle any more: remove it from `EXCEPTIONS`")));
}

#[test]
fn cycles_are_found() {
    for (sources, expected) in [
        (vec![("host/src/a.rs", "use crate::b::B;"), ("host/src/b.rs", "use crate::a::A;")], 1),
        (vec![("host/src/a.rs", "mod b; use b::B;"), ("host/src/a/b.rs", "use super::A;")], 1),
        (vec![("host/src/a.rs", "mod b; pub use b::B;"), ("host/src/a/b.rs", "use crate::a::A;")], 1),
        (
            vec![
                ("host/src/a.rs", "mod b; mod c; mod d;"),
                ("host/src/a/b.rs", "use super::c::C;"),
                ("host/src/a/c.rs", "fn f() { crate::a::d::g() }"),
                ("host/src/a/d.rs", "use super::b::{B, self};"),
            ],
            1,
        ),
        (vec![("host/src/a.rs", "mod b; pub use b::B;"), ("host/src/a/b.rs", "pub(in crate::a) struct B;")], 0),
        (vec![("host/src/a.rs", "mod b;"), ("host/src/a/b.rs", "use super::A;")], 0),
        (vec![("host/src/a.rs", "mod b; use b::B;"), ("host/src/a/b.rs", "mod tests { use crate::a::A; }")], 0),
    ] {
        let found = cycles(&edges(&sources));
        assert_eq!(found.len(), expected, "{sources:?}: {found:?}");
    }
}
