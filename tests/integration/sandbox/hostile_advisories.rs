//! Rows of the hostile table (`tests/integration/hostile`) about published security advisories of Wasmtime. Each row
//! tries the published attack, so that a later version of Wasmtime cannot bring the defect back unnoticed.

use std::fs;
use std::os::unix::fs::symlink;
use std::time::{Duration, SystemTime};

use belljar_tests::places;

use crate::component::{HandWritten, assemble};
use crate::expect::{Expect, limit, matching, text, trap};
use crate::row::{Row, RunMode, Stops, bare, hostile_guest, made};
use crate::tools::{check, has_lines, lines_begin, path, refusal, shown};

pub(crate) fn rows() -> Vec<Row> {
    vec![
        hostile_guest("ADV-01", "a slash after a symbolic link leads out of the granted directory (RUSTSEC-2026-0269)")
            .config("fs = { \"/d\" = \"granted-adv-01\" }")
            .prepare(|site| {
                site.write("granted-adv-01/file", "inside");
                symlink("../canary", site.path("granted-adv-01/out")).expect("a link");
                symlink("../canary/secret.txt", site.path("granted-adv-01/file-out")).expect("a link");
            })
            .read(format!("raw/{}", path("out/")), lines_begin(REFUSED))
            .read(format!("raw/{}", path("out/secret.txt/")), lines_begin(REFUSED))
            .read(format!("raw/{}", path("file-out/")), lines_begin(REFUSED))
            .read(format!("raw/{}", path("out/./secret.txt")), lines_begin(REFUSED))
            .read(format!("stat/{}", path("out/")), lines_begin(REFUSED))
            // Switch off the second wall (Landlock). It would also stop these reads.
            .settings("wall = \"off\"")
            .stopped_by(&["beneath"]),
        hostile_guest("ADV-02", "a provider truncates and links files through a read-only directory (RUSTSEC-2026-0149, -0188)")
            .config("fs = { \"/d\" = \"granted-adv-02\" }")
            .prepare(|site| drop(site.write("granted-adv-02/file", "inside")))
            .read(
                "alter/file",
                has_lines(&["open to truncate without writing: not-permitted", "open to truncate: not-permitted"]),
            )
            .read("raw/file", lines_begin(&["/d: read \"inside\""]))
            .stopped_by(&["read-only"]),
        hostile_guest("ADV-03", "files with times before 1970 and after 2300 (RUSTSEC-2026-0314, -0324)")
            .config("fs = { \"/d\" = \"granted-adv-03\" }")
            .prepare(|site| {
                let year = Duration::from_secs(365 * 24 * 3600);
                let times = [SystemTime::UNIX_EPOCH - year * 60, SystemTime::UNIX_EPOCH + year * 400, SystemTime::UNIX_EPOCH];
                for (n, time) in times.into_iter().enumerate() {
                    let path = site.write(format!("granted-adv-03/{n}"), "x");
                    let file = fs::File::options().write(true).open(path).expect("a file");
                    file.set_modified(time).expect("a time");
                }
            })
            .read("stat/0", any_text())
            .read("stat/1", any_text())
            .read("stat/2", any_text())
            .read("alter/0", any_text())
            .stopped(Stops::Wasmtime("48.0.4 and later")),
        hostile_guest("ADV-05", "20 MB to standard output and standard error (RUSTSEC-2026-0322)")
            .run_mode(RunMode::Stdio)
            .time(20_000)
            .limits("fuel = 1_000_000_000_000")
            .act(|context| {
                let before = context.memory();
                let answer = context.read("print/10000000");
                assert_eq!(text(&answer), Some("printed"), "{}", shown(&answer));
                let grown = context.peak().saturating_sub(before) >> 20;
                assert!(grown < 10, "the memory grew by {grown} MiB");
                format!("printed, {grown} MiB held")
            })
            .stopped_by(&["output"]),
        made("ADV-06", "a table of 10,000,000 elements from the start (RUSTSEC-2026-0114)", || {
            let fields = "(table $huge 900000 funcref) (func (export \"widen\") (drop (table.grow $huge (ref.null func) (i32.const 10000000))))";
            HandWritten { fields, read: "(drop (memory.grow (i32.const 40000)))", ..HandWritten::default() }.assemble()
        })
        .limits("memory = \"2MiB\"")
        .read("x", limit("memory"))
        .stopped_by(&["memory"]),
        hostile_guest("ADV-07", "calls are cancelled at random moments, thousands of times (RUSTSEC-2026-0022)")
            .run_mode(RunMode::Stdio)
            .keeps(48)
            .act(|context| {
                let line = context.stdio();
                for round in 0..2000 {
                    let id = context.begin(["sleep/3", "text/2000", "busy", "spin"][round % 4]);
                    std::thread::sleep(Duration::from_micros(fastrand::u64(..800)));
                    line.cancel(id);
                }
                assert_eq!(text(&context.read("ok")), Some("fine"));
                "2,000 calls cancelled, the next call is served".to_owned()
            })
            .stopped(Stops::Wasmtime("a dropped call frees its store")),
        made("ADV-08", "strings in other encodings, misaligned, or beyond the end of memory (RUSTSEC-2026-0091 to -0093)", || {
            // The string of the answer is at an odd address, and its encoding (UTF-16) has units of two bytes.
            HandWritten { lift: "string-encoding=utf16", read: "(i32.store (i32.const 184) (i32.const 225))", ..HandWritten::default() }.assemble()
        })
        .read("x", trap())
        .stopped(Stops::Wasmtime("the engine checks addresses and encodings when it lifts a string")),
        bare("ADV-09", "components that need proposals with several past advisories: GC, exceptions, threads, async")
            .prepare(|site| {
                for (n, (_, core)) in PROPOSALS.iter().enumerate() {
                    let fields = format!("(func (export \"extra\") {core})");
                    let (memory, fields) = match *core {
                        "memory64" => ("(memory (export \"memory\") 1) (memory $large i64 1)".to_owned(), String::new()),
                        "shared" => ("(memory (export \"memory\") 1) (memory $shared 1 1 shared)".to_owned(), String::new()),
                        "tag" => ("(memory (export \"memory\") 1)".to_owned(), "(tag $t) (func (export \"extra\") (throw $t))".to_owned()),
                        "struct" => ("(memory (export \"memory\") 1)".to_owned(), "(type $s (struct (field i32)))".to_owned()),
                        _ => ("(memory (export \"memory\") 1)".to_owned(), fields),
                    };
                    let hand = HandWritten { memory: &memory, fields: &fields, ..HandWritten::default() };
                    site.drop_in(&format!("proposal-{n}.wasm"), hand.assemble());
                }
                let inner = "(component (core module $m (func (export \"f\") (result i32) unreachable)
                    (func (export \"c\") (param i32 i32 i32) (result i32) unreachable))
                    (core instance $i (instantiate $m))
                    (func $f async (canon lift (core func $i \"f\") async (callback (func $i \"c\"))))
                    (instance $x (export \"read\" (func $f)))
                    (export \"belljar:provider/resource-provider@0.1.0\" (instance $x)))";
                // Skip this case if the assembler of the tests does not know the syntax of async components.
                if std::panic::catch_unwind(|| assemble(inner)).is_ok() {
                    site.drop_in("proposal-async.wasm", assemble(inner));
                }
            })
            .run_mode(RunMode::Unstarted)
            .act(|context| {
                let checked = check(context);
                for (n, (name, _)) in PROPOSALS.iter().enumerate() {
                    let reason = refusal(&checked, &format!("proposal-{n}"));
                    assert!(reason.contains("not a valid component") || reason.contains("WebAssembly"), "{name}: {reason}");
                }
                if context.site().path("plugins/proposal-async.wasm").exists() {
                    refusal(&checked, "proposal-async");
                }
                format!("{} proposals refused", PROPOSALS.len())
            })
            .stopped(Stops::Wasmtime("the configuration of the engine disables the proposals")),
        bare("ADV-10", "calls without typed bindings (RUSTSEC-2026-0316)")
            .act(|_| {
                let source = places::repository().join("host/src");
                let mut files = vec![source];
                let mut seen = 0;
                while let Some(path) = files.pop() {
                    if path.is_dir() {
                        files.extend(fs::read_dir(&path).expect("a directory").flatten().map(|entry| entry.path()));
                        continue;
                    }
                    let text = fs::read_to_string(&path).unwrap_or_default();
                    for dynamic in ["component::Val", "component::Func", "get_func(", "get_typed_func", "Val::"] {
                        assert!(!text.contains(dynamic), "{} has {dynamic}", path.display());
                    }
                    seen += 1;
                }
                format!("no untyped call in {seen} source files")
            })
            .stopped(Stops::Structure("belljar uses typed bindings only")),
    ]
}

const REFUSED: &[&str] = &["/d: refused: "];

/// The name of a proposal, and the body of a function that needs the proposal. A single word selects a case in
/// [`rows`].
const PROPOSALS: [(&str, &str); 6] = [
    ("tail calls", "(return_call 0)"),
    ("memory64", "memory64"),
    ("threads", "shared"),
    ("exceptions", "tag"),
    ("GC", "struct"),
    ("wide arithmetic", "(result i64 i64) (i64.const 1) (i64.const 1) (i64.const 1) (i64.const 1) i64.add128"),
];

/// Expects any text: the contents, or the refusal as the hostile guest reports it. The process must not end.
fn any_text() -> Expect {
    matching(|answer| text(answer).map(|_| "a text".to_owned()).ok_or_else(|| shown(answer)))
}
