//! The attack surface. Checks which parts of the engine are compiled in. Also checks the table of security advisories
//! in `docs/measurements/advisories.md`: for each advisory that cannot affect belljar, the table names a guard. Each
//! guard must be in place.

use std::collections::{BTreeMap, BTreeSet};
use std::process::Command;

use belljar_tests::places;
use serde_json::Value;

use crate::{assert_none, files};

/// The engine's crates, each with its enabled cargo features. Before you add a feature, check the advisories.
const FEATURES: [(&str, &[&str]); 3] = [
    (
        "wasmtime",
        &[
            "async",
            "component-model",
            "cranelift",
            "once_cell",
            "parallel-compilation",
            "pooling-allocator",
            "reexport-wasmparser",
            "runtime",
            "std",
            "wasmtime-jit-icache-coherence",
        ],
    ),
    ("wasmtime-wasi", &["p2"]),
    ("wasmtime-wasi-http", &["p2"]),
];

/// The crates of the engine that must not be compiled in.
const ABSENT: [&str; 6] = [
    "wasi-common",
    "wasmtime-internal-cache",
    "wasmtime-internal-winch",
    "wasmtime-wasi-threads",
    "wiggle",
    "winch-codegen",
];

/// The list of advisories.
const PAGE: &str = "docs/measurements/advisories.md";

/// Facts about the build and the sources.
struct Build {
    /// The features of each package.
    features: BTreeMap<String, BTreeSet<String>>,
    /// The versions of each package.
    versions: BTreeMap<String, Vec<String>>,
    /// The enabled WebAssembly proposals, from the test in `host/src/sandbox/engine.rs`.
    proposals: BTreeSet<String>,
    /// The host's sources without tests, by path.
    sources: BTreeMap<String, String>,
}

impl Build {
    fn read() -> Build {
        let mut cargo = Command::new(env!("CARGO"));
        cargo.current_dir(places::repository()).args(["metadata", "--format-version", "1", "--locked", "--offline"]);
        let output = cargo.output().unwrap();
        assert!(output.status.success(), "{}", String::from_utf8_lossy(&output.stderr));
        let metadata: Value = serde_json::from_slice(&output.stdout).unwrap();
        let text = |value: &Value| value.as_str().unwrap().to_owned();
        let mut names = BTreeMap::new();
        let mut versions: BTreeMap<String, Vec<String>> = BTreeMap::new();
        for package in metadata["packages"].as_array().unwrap() {
            names.insert(text(&package["id"]), text(&package["name"]));
            versions.entry(text(&package["name"])).or_default().push(text(&package["version"]));
        }
        let mut features: BTreeMap<String, BTreeSet<String>> = BTreeMap::new();
        for node in metadata["resolve"]["nodes"].as_array().unwrap() {
            let on = node["features"].as_array().unwrap().iter().map(text);
            features.entry(names[&text(&node["id"])].clone()).or_default().extend(on);
        }
        let sources: BTreeMap<_, _> = files(".rs")
            .into_iter()
            .filter(|file| file.path.starts_with("host/src/") && !file.path.ends_with("tests.rs"))
            .map(|file| (file.path, file.text))
            .collect();
        let proposals = proposals(&sources["host/src/sandbox/engine.rs"]);
        let sources = sources.into_iter().map(|(path, text)| (path, before_tests(&text).to_owned())).collect();
        Build { features, versions, proposals, sources }
    }

    fn has(&self, package: &str, feature: &str) -> bool {
        self.features[package].contains(feature)
    }

    /// The number of occurrences of `words` in the host's sources.
    fn occurrences(&self, words: &str) -> usize {
        self.sources.values().map(|text| text.matches(words).count()).sum()
    }

    /// True if one of these proposals is enabled.
    fn proposed(&self, all: &[&str]) -> bool {
        all.iter().any(|name| self.proposals.contains(*name))
    }

    /// True if the guard is in place. `None` for an unknown guard.
    fn is_in_place(&self, guard: &str) -> Option<bool> {
        let feature = |name| self.has("wasmtime", name);
        Some(match guard {
            "gc" => {
                let any = self.features["wasmtime"].iter().any(|name| name.starts_with("gc"));
                !any && !self.proposed(&["GC", "GC_TYPES", "FUNCTION_REFERENCES", "EXCEPTIONS", "LEGACY_EXCEPTIONS"])
            }
            "threads" => !feature("threads") && !self.proposed(&["THREADS", "SHARED_EVERYTHING_THREADS"]),
            "component-model-async" => {
                !feature("component-model-async") && !self.proposed(&["CM_ASYNC", "CM_THREADING"])
            }
            "tail-call" => !self.proposed(&["TAIL_CALL"]),
            "memory64" => !self.proposed(&["MEMORY64"]),
            "winch" => !self.versions.contains_key("winch-codegen") && !feature("winch"),
            "p1" => {
                !["p0", "p1"].iter().any(|name| self.has("wasmtime-wasi", name))
                    && !self.versions.contains_key("wiggle")
            }
            "p3" => !self.has("wasmtime-wasi", "p3") && !self.has("wasmtime-wasi-http", "p3"),
            // wasmtime-wasi gets no directory, because belljar replaces all of its filesystem functions.
            "read-only" => self.occurrences("FsPerms::") == 0 && self.occurrences(".preopened_dir(") == 0,
            "own-streams" => {
                self.occurrences("streams::add_to_linker::<_, IoKey>") == 1
                    && self.occurrences("host_memory::http::link(") == 1
                    && self.occurrences("host_memory::io::link(") == 1
                    && self.occurrences("Bytes::from_owner(Charged") > 0
            }
            "no-sockets" => {
                self.occurrences("\"create-tcp-socket\"") == 1 && self.occurrences("\"create-udp-socket\"") == 1
            }
            "own-output" => {
                self.occurrences("fn p2_stream") == 1
                    && ["AsyncWriteStream", "inherit_std"].iter().all(|name| self.occurrences(name) == 0)
            }
            // One engine in the host, and one in the compiler process.
            "one-engine" => self.occurrences("Engine::new(") == 2 && self.occurrences("engine::host(") == 1,
            "fresh-store" => self.occurrences("Store::new(") == 1,
            "typed" => ["component::Val", "Val::", "Caller<", "get_module_export"]
                .iter()
                .all(|name| self.occurrences(name) == 0),
            "linux" => self.occurrences("openat2(") > 0,
            _ => return None,
        })
    }
}

/// The proposals that the test `enabled_wasm_features` of the engine lists.
fn proposals(engine: &str) -> BTreeSet<String> {
    let (_, rest) = engine.split_once("fn enabled_wasm_features").expect("the engine's list of features");
    let (list, _) = rest.split_once("\n    }").expect("the end of the test");
    list.split('"').skip(1).step_by(2).map(str::to_owned).collect()
}

/// The part of a file before its tests.
fn before_tests(text: &str) -> &str {
    text.split_once("\n#[cfg(test)]\nmod tests {").map_or(text, |(before, _)| before)
}

fn number(version: &str) -> Vec<u64> {
    version.split('.').map(|part| part.parse().expect("a version of three numbers")).collect()
}

/// The wrong statements of the page. `engine` is the version of wasmtime. `is_in_place` is [`Build::is_in_place`].
fn violations(page: &str, engine: &str, is_in_place: &dyn Fn(&str) -> Option<bool>) -> Vec<String> {
    let mut found = Vec::new();
    let rows = |columns: usize| {
        let cells = page.lines().filter_map(|line| Some(line.strip_prefix("| ")?.strip_suffix(" |")?.split(" | ")));
        let rows = cells.map(Iterator::collect::<Vec<_>>).filter(move |row| row.len() == columns);
        // Skip the head of the table.
        rows.skip(1)
    };
    let (mut cut, mut fixed, mut open, mut used, mut seen) = (0, 0, 0, BTreeSet::new(), BTreeSet::new());
    for row in rows(5) {
        let [id, _, since, read, verdict] = row[..] else { unreachable!("five columns") };
        if !(id.starts_with("RUSTSEC-202") || id.starts_with("GHSA-")) || !seen.insert(id) {
            found.push(format!("{id}: not the id of an advisory, or listed twice"));
        }
        if !["text", "title"].contains(&read) {
            found.push(format!("{id}: the column \"read\" must be \"text\" or \"title\", not \"{read}\""));
        }
        let has_fix = number(since) <= number(engine);
        match (verdict, verdict.strip_prefix("cut off: ")) {
            (_, Some(guard)) => {
                cut += 1;
                used.insert(guard);
                match is_in_place(guard) {
                    Some(true) => {}
                    Some(false) => found.push(format!("{id}: the guard \"{guard}\" is not in place")),
                    None => found.push(format!("{id}: no such guard: \"{guard}\"")),
                }
            }
            ("fixed", _) if has_fix => fixed += 1,
            ("open", _) if !has_fix => open += 1,
            _ => found.push(format!(
                "{id}: the verdict \"{verdict}\" is wrong: the fix is in {since}, and {engine} is built"
            )),
        }
    }
    let summary = format!("**{} advisories: {cut} cut off, {fixed} fixed, {open} open.**", seen.len());
    if !page.contains(&summary) {
        found.push(format!("the page does not contain {summary}"));
    }
    if !page.contains(&format!("**wasmtime {engine}**")) {
        found.push(format!("the page is not about wasmtime {engine}"));
    }
    let explained: BTreeSet<_> = rows(2).map(|row| row[0].trim_matches('`')).collect();
    found.extend(used.symmetric_difference(&explained).map(|guard| {
        format!("the guard \"{guard}\" must be both in the table of advisories and in the table of guards")
    }));
    found
}

#[test]
fn only_listed_features_of_the_engine_are_built() {
    let build = Build::read();
    for (package, expected) in FEATURES {
        let on: Vec<_> = build.features[package].iter().map(String::as_str).collect();
        assert_eq!(on, expected, "the cargo features of {package}");
        assert_eq!(build.versions[package].len(), 1, "{package} has several versions");
    }
    assert_none(
        ABSENT.iter().filter(|name| build.versions.contains_key(**name)).map(|name| format!("{name} is built in")),
    );
}

#[test]
fn the_table_of_advisories_is_correct() {
    let build = Build::read();
    let page = std::fs::read_to_string(places::repository().join(PAGE)).unwrap();
    let engine = &build.versions["wasmtime"][0];
    assert_none(violations(&page, engine, &|guard| build.is_in_place(guard)));
    assert!(page.lines().filter(|line| line.starts_with("| ")).count() > 60, "the table was found");
}

#[test]
fn wrong_statements_are_found() {
    let page = |rows: &str, summary: &str| {
        format!(
            "**wasmtime 48.0.8**\n{summary}\n| advisory | what | fixed in | read | verdict |\n|---|---|---|---|---|\n{rows}\n\
             | guard | why |\n|---|---|\n| `gc` | off |\n"
        )
    };
    let is_in_place = |guard: &str| match guard {
        "gc" => Some(true),
        "down" => Some(false),
        _ => None,
    };
    let cut = "| RUSTSEC-2026-0001 | a | 48.0.9 | title | cut off: gc |";
    let fixed = "| GHSA-1 | a | 48.0.8 | text | fixed |";
    let summary = "**2 advisories: 1 cut off, 1 fixed, 0 open.**";
    assert_eq!(violations(&page(&format!("{cut}\n{fixed}"), summary), "48.0.8", &is_in_place), Vec::<String>::new());
    for (rows, summary) in [
        (format!("{cut}\n{}", fixed.replace("48.0.8", "48.0.10")), summary),
        (format!("{cut}\n{}", fixed.replace("fixed", "open")), summary),
        (format!("{cut}\n{}", fixed.replace("text", "rumour")), summary),
        (format!("{}\n{fixed}", cut.replace("gc", "down")), summary),
        (format!("{}\n{fixed}", cut.replace("gc", "unknown")), summary),
        (format!("{cut}\n{cut}"), "**1 advisories: 2 cut off, 0 fixed, 0 open.**"),
        (format!("{cut}\n{fixed}"), "**3 advisories: 2 cut off, 1 fixed, 0 open.**"),
    ] {
        assert_ne!(
            violations(&page(&rows, summary), "48.0.8", &is_in_place),
            Vec::<String>::new(),
            "{rows}\n{summary}"
        );
    }
    let another_version = violations(&page(&format!("{cut}\n{fixed}"), summary), "48.0.9", &is_in_place);
    assert!(!another_version.is_empty(), "the page is about another version of wasmtime");
}
