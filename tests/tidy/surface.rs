//! The attack surface: which parts of the engine are built in, and that `docs/advisories.md` says the truth about it. Each
//! reason why an advisory cannot be reached is a guard, and each guard is checked here.

use std::collections::{BTreeMap, BTreeSet};
use std::process::Command;

use belljar_tests::places;
use serde_json::Value;

use crate::{files, none};

/// The engine's crates, each with all cargo features that are on. A new one needs a reason, and a look at the advisories.
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

/// Parts of the engine that are not built in.
const ABSENT: [&str; 6] = [
    "wasi-common",
    "wasmtime-internal-cache",
    "wasmtime-internal-winch",
    "wasmtime-wasi-threads",
    "wiggle",
    "winch-codegen",
];

/// The list of advisories.
const PAGE: &str = "docs/advisories.md";

/// What is built.
struct Build {
    /// The features of each package.
    features: BTreeMap<String, BTreeSet<String>>,
    /// The versions of each package.
    versions: BTreeMap<String, Vec<String>>,
    /// The proposals that the engine's own test names as on.
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

    /// How often the host's sources say `words`.
    fn said(&self, words: &str) -> usize {
        self.sources.values().map(|text| text.matches(words).count()).sum()
    }

    fn proposed(&self, all: &[&str]) -> bool {
        all.iter().any(|name| self.proposals.contains(*name))
    }

    /// Whether a guard stands; `None` for one that is not known.
    fn stands(&self, guard: &str) -> Option<bool> {
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
            // No directory is given to the library, whose functions are all replaced.
            "read-only" => self.said("FsPerms::") == 0 && self.said(".preopened_dir(") == 0,
            "own-streams" => {
                self.said("streams::add_to_linker::<_, Io>") == 1
                    && self.said("host_memory::link(") == 1
                    && self.said("Bytes::from_owner(Charged") > 0
            }
            "no-sockets" => self.said("\"create-tcp-socket\"") == 1 && self.said("\"create-udp-socket\"") == 1,
            "own-output" => {
                self.said("fn p2_stream") == 1
                    && ["AsyncWriteStream", "inherit_std"].iter().all(|name| self.said(name) == 0)
            }
            // The host's and the compiler process's.
            "one-engine" => self.said("Engine::new(") == 2 && self.said("engine::host(") == 1,
            "fresh-store" => self.said("Store::new(") == 1,
            "typed" => {
                ["component::Val", "Val::", "Caller<", "get_module_export"].iter().all(|name| self.said(name) == 0)
            }
            "linux" => self.said("openat2(") > 0,
            _ => return None,
        })
    }
}

/// The proposals that the engine's test names.
fn proposals(engine: &str) -> BTreeSet<String> {
    let (_, rest) = engine.split_once("fn the_features_that_are_on_are_these").expect("the engine's list of features");
    let (list, _) = rest.split_once("\n    }").expect("the end of the test");
    list.split('"').skip(1).step_by(2).map(str::to_owned).collect()
}

/// The part of a file that is no test.
fn before_tests(text: &str) -> &str {
    text.split_once("\n#[cfg(test)]\nmod tests {").map_or(text, |(before, _)| before)
}

fn number(version: &str) -> Vec<u64> {
    version.split('.').map(|part| part.parse().expect("a version of three numbers")).collect()
}

/// Everything that the page says and that is not so.
fn violations(page: &str, engine: &str, stands: &dyn Fn(&str) -> Option<bool>) -> Vec<String> {
    let mut found = Vec::new();
    let rows = |columns: usize| {
        let cells = page.lines().filter_map(|line| Some(line.strip_prefix("| ")?.strip_suffix(" |")?.split(" | ")));
        let rows = cells.map(Iterator::collect::<Vec<_>>).filter(move |row| row.len() == columns);
        // The head of each table.
        rows.skip(1)
    };
    let (mut cut, mut fixed, mut open, mut used, mut seen) = (0, 0, 0, BTreeSet::new(), BTreeSet::new());
    for row in rows(5) {
        let [id, _, since, read, verdict] = row[..] else { unreachable!("five columns") };
        if !(id.starts_with("RUSTSEC-202") || id.starts_with("GHSA-")) || !seen.insert(id) {
            found.push(format!("{id}: no advisory, or there twice"));
        }
        if !["text", "title"].contains(&read) {
            found.push(format!("{id}: read \"{read}\""));
        }
        let has_fix = number(since) <= number(engine);
        match (verdict, verdict.strip_prefix("cut off: ")) {
            (_, Some(guard)) => {
                cut += 1;
                used.insert(guard);
                match stands(guard) {
                    Some(true) => {}
                    Some(false) => found.push(format!("{id}: the guard \"{guard}\" does not stand")),
                    None => found.push(format!("{id}: no such guard: \"{guard}\"")),
                }
            }
            ("fixed", _) if has_fix => fixed += 1,
            ("open", _) if !has_fix => open += 1,
            _ => found.push(format!("{id}: \"{verdict}\" with the fix in {since}, and {engine} is built")),
        }
    }
    let told = format!("**{} advisories: {cut} cut off, {fixed} fixed, {open} open.**", seen.len());
    if !page.contains(&told) {
        found.push(format!("the page does not say {told}"));
    }
    if !page.contains(&format!("**wasmtime {engine}**")) {
        found.push(format!("the page is not about wasmtime {engine}"));
    }
    let explained: BTreeSet<_> = rows(2).map(|row| row[0].trim_matches('`')).collect();
    found.extend(used.symmetric_difference(&explained).map(|guard| format!("\"{guard}\" is used or explained alone")));
    found
}

#[test]
fn the_engine_has_these_parts_and_no_others() {
    let build = Build::read();
    for (package, expected) in FEATURES {
        let on: Vec<_> = build.features[package].iter().map(String::as_str).collect();
        assert_eq!(on, expected, "the cargo features of {package}");
        assert_eq!(build.versions[package].len(), 1, "{package} is there in two versions");
    }
    none(ABSENT.iter().filter(|name| build.versions.contains_key(**name)).map(|name| format!("{name} is built in")));
}

#[test]
fn the_list_of_advisories_is_true() {
    let build = Build::read();
    let page = std::fs::read_to_string(places::repository().join(PAGE)).unwrap();
    let engine = &build.versions["wasmtime"][0];
    none(violations(&page, engine, &|guard| build.stands(guard)));
    assert!(page.lines().filter(|line| line.starts_with("| ")).count() > 60, "the table was found");
}

#[test]
fn a_lie_is_found() {
    let page = |rows: &str, told: &str| {
        format!(
            "**wasmtime 48.0.8**\n{told}\n| advisory | what | fixed in | read | verdict |\n|---|---|---|---|---|\n{rows}\n\
             | guard | why |\n|---|---|\n| `gc` | off |\n"
        )
    };
    let stands = |guard: &str| match guard {
        "gc" => Some(true),
        "down" => Some(false),
        _ => None,
    };
    let cut = "| RUSTSEC-2026-0001 | a | 48.0.9 | title | cut off: gc |";
    let fixed = "| GHSA-1 | a | 48.0.8 | text | fixed |";
    let told = "**2 advisories: 1 cut off, 1 fixed, 0 open.**";
    assert_eq!(violations(&page(&format!("{cut}\n{fixed}"), told), "48.0.8", &stands), Vec::<String>::new());
    for (rows, told) in [
        (format!("{cut}\n{}", fixed.replace("48.0.8", "48.0.10")), told),
        (format!("{cut}\n{}", fixed.replace("fixed", "open")), told),
        (format!("{cut}\n{}", fixed.replace("text", "rumour")), told),
        (format!("{}\n{fixed}", cut.replace("gc", "down")), told),
        (format!("{}\n{fixed}", cut.replace("gc", "hope")), told),
        (format!("{cut}\n{cut}"), "**1 advisories: 2 cut off, 0 fixed, 0 open.**"),
        (format!("{cut}\n{fixed}"), "**3 advisories: 2 cut off, 1 fixed, 0 open.**"),
    ] {
        assert_ne!(violations(&page(&rows, told), "48.0.8", &stands), Vec::<String>::new(), "{rows}\n{told}");
    }
    assert!(!violations(&page(&format!("{cut}\n{fixed}"), told), "48.0.9", &stands).is_empty(), "another version");
}
