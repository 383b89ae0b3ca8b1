//! Hostile rows about changes at run time: thousands of changes a second, a mount that is removed during reads, and
//! hundreds of reloads. The files and the process are real.

use std::fs::{self, File, FileTimes};
use std::sync::atomic::{AtomicBool, AtomicUsize, Ordering};
use std::time::{Duration, Instant, SystemTime};

use belljar_tests::Load;
use serde_json::json;

use crate::expect::{kind, text};
use crate::lifecycle::{answering, numbered};
use crate::row::{Row, RunMode, Stops, bare, hostile_guest};
use crate::running_site::RowContext;
use crate::tools::{deadline, is_excused, line, read, read_text, shown, within};

/// The resource of the witness: another mount that must answer all the time.
const WITNESS: &str = "belljar://witness/static-text";

/// The duration of the storm of changes.
const STORM: Duration = Duration::from_secs(8);

/// The number of files that the storm touches.
const TOUCHED: usize = 8;

/// The size of each of these files, in bytes.
const LARGE: usize = 6 << 20;

/// The number of touches a second.
const TOUCHES: usize = 10_000;

/// The longest time until belljar serves a changed file.
const SOON: Duration = Duration::from_secs(5);

pub(crate) fn rows() -> Vec<Row> {
    vec![
        bare(
            "LIF-13",
            "ten thousand file changes a second in the plugin directory, and a component that changes every 50 ms",
        )
        .prepare(|site| {
            for n in 0..TOUCHED {
                site.drop_in(&format!("large-{n}.wasm"), large(n));
            }
            site.drop_in("swapped.wasm", answering("0000"));
        })
        .run_mode(RunMode::Unstarted)
        .measures()
        .act(storm)
        .stopped_by(&["pace"]),
        hostile_guest("LIF-14", "a component is removed while a hundred reads of its mount run or wait")
            .settings("calls = 64")
            .limits("concurrency = 32\nqueue = \"120s\"")
            .run_mode(RunMode::Unstarted)
            .time(120_000)
            .act(removed)
            .stopped(Stops::Structure("each read holds its mount, and the mount holds its loaded component")),
        bare("INF-08", "belljar reloads hundreds of times, with another configuration each time")
            .prepare(|site| site.drop_in("own.wasm", numbered(7)))
            .run_mode(RunMode::Unstarted)
            .measures()
            .act(reread)
            .stopped(Stops::Structure(
                "belljar frees a component that it no longer serves when the last call has ended",
            )),
    ]
}

/// A provider with a custom section that makes it large.
fn large(n: usize) -> Vec<u8> {
    let mut bytes = numbered(n);
    // A custom section: id 0, the length in LEB128, and the content. The first byte of the content is 0: an empty name.
    bytes.push(0);
    let mut length = LARGE;
    while length >= 0x80 {
        bytes.push((length & 0x7f) as u8 | 0x80);
        length >>= 7;
    }
    bytes.push(length as u8);
    bytes.resize(bytes.len() + LARGE, 0);
    bytes
}

/// Touches the files until `is_over`, at most [`TOUCHES`] times a second. Returns the number of touches.
fn touch(context: &RowContext<'_>, is_over: &AtomicBool) -> usize {
    let open = |n| {
        File::options().write(true).open(context.site().path(format!("plugins/large-{n}.wasm"))).expect("open a file")
    };
    let files: Vec<File> = (0..TOUCHED).map(open).collect();
    let began = Instant::now();
    let mut touched = 0;
    while !is_over.load(Ordering::Relaxed) {
        let due = began.elapsed().as_millis() as usize * TOUCHES / 1000;
        while touched < due {
            let times = FileTimes::new().set_modified(SystemTime::now());
            files[touched % TOUCHED].set_times(times).expect("set the time of a file");
            touched += 1;
        }
        std::thread::sleep(Duration::from_millis(1));
    }
    touched
}

/// Touches files and exchanges a component for [`STORM`]. belljar must use little processor time, and serve the last
/// component.
fn storm(context: &RowContext<'_>) -> String {
    let line = line(context, "");
    assert!(read_text(&line, WITNESS).starts_with("This is"));
    assert_eq!(read_text(&line, "belljar://swapped/x"), "0000");
    let words: Vec<String> = (1..=STORM.as_millis() / 50).map(|n| format!("{n:04}")).collect();
    let bytes: Vec<Vec<u8>> = words.iter().take(7).map(|word| answering(word)).collect();
    let exchanged = |line: &belljar_tests::SharedStdio| line.process.stderr().matches("exchanged: ").count();
    let (is_over, before) = (AtomicBool::new(false), exchanged(&line));
    // Compile each component first. Then the storm measures the scans of the directory, and not the compiler.
    for bytes in &bytes {
        context.site().drop_in("swapped.wasm", bytes);
        let last = exchanged(&line);
        assert!(within(Duration::from_secs(20), || exchanged(&line) > last), "{}", line.process.stderr());
    }
    let before = exchanged(&line).max(before);
    // Threads of belljar start and end, so count the processor time of the whole process, in hundredths of a second.
    let spent = line.process.cpu_ticks();
    let (began, load) = (Instant::now(), Load::begin());
    let touched = std::thread::scope(|scope| {
        let toucher = scope.spawn(|| touch(context, &is_over));
        for bytes in bytes.iter().cycle() {
            context.site().drop_in("swapped.wasm", bytes);
            if began.elapsed() > STORM {
                break;
            }
            std::thread::sleep(Duration::from_millis(50));
        }
        is_over.store(true, Ordering::Relaxed);
        toucher.join().expect("the toucher does not panic")
    });
    let took = began.elapsed();
    let share = (line.process.cpu_ticks() - spent) as f64 / 100.0 / took.as_secs_f64();
    let swaps = exchanged(&line) - before;
    let is_shared = is_excused(&load);
    let is_storm = touched as f64 > 0.8 * TOUCHES as f64 * took.as_secs_f64();
    assert!(is_storm || is_shared, "only {touched} touches in {took:?}");
    assert!(share < 0.10 || is_shared, "{:.0} % of a processor", share * 100.0);
    assert!(swaps as f64 <= 4.0 * took.as_secs_f64(), "{swaps} swaps in {took:?}");
    assert!(swaps > 0 || is_shared, "belljar noticed no change during the storm: {share} {}", line.process.stderr());
    context.site().drop_in("swapped.wasm", &bytes[0]);
    let is_right = || read_text(&line, "belljar://swapped/x") == words[0];
    assert!(within(SOON, is_right), "the last component is not served: {}", line.process.stderr());
    format!("{touched} touches: {:.1} % of a processor, {swaps} swaps, and the last component is served", share * 100.0)
}

/// Removes a component during reads. Each read must be answered, and the mount must then be gone.
fn removed(context: &RowContext<'_>) -> String {
    let line = line(context, "");
    assert_eq!(text(&read(&line, &context.uri("ok"))), Some("fine"));
    let begin = |n: u64| line.send("resources/read", json!({ "uri": context.uri(&format!("sleep/{}", 700 + n)) }));
    let ids: Vec<u64> = (0..100).map(begin).collect();
    // belljar takes requests in order. An answer to a later request shows that it has all reads.
    line.wait(line.send("server/discover", json!({})), deadline(SOON)).expect("an answer").0.expect("the server");
    std::thread::sleep(Duration::from_millis(100));
    let file = context.site().path("plugins/guest_hostile.wasm");
    fs::remove_file(file).expect("remove the component");
    let gone = || matches!(read(&line, &context.uri("ok")), Err(error) if kind(&error) == "unavailable");
    assert!(within(SOON, gone), "the removed component is still served: {}", line.process.stderr());
    let mut fine = 0;
    for id in ids {
        let (answer, _) = line.wait(id, deadline(Duration::from_secs(40))).expect("an answer to each");
        assert!(answer.is_ok(), "{}", shown(&answer));
        fine += 1;
    }
    assert_eq!(line.violations(), Vec::<String>::new());
    assert!(read_text(&line, WITNESS).starts_with("This is"));
    format!("all {fine} reads were answered, and the next read found no mount")
}

/// Reloads the configuration many times, each time with another base URI. The process must not grow.
fn reread(context: &RowContext<'_>) -> String {
    let rounds: usize = std::env::var("BELLJAR_RELOADS").ok().and_then(|count| count.parse().ok()).unwrap_or(200);
    let config = context.site().path("belljar.toml");
    let plain = fs::read_to_string(&config).expect("read the configuration");
    let line = line(context, "");
    let bases = ["x://", "y://"];
    let texts = bases.map(|base| format!("{plain}\n[mounts.own]\nuri = \"{base}\"\nenv = {{ A = \"{base}\" }}\n"));
    let reads = AtomicUsize::new(0);
    let round = |n: usize| {
        // Replace the file by a rename, so that belljar never reads a half-written file.
        let text = context.site().write("belljar.toml.new", &texts[n % 2]);
        fs::rename(text, &config).expect("rename the configuration");
        line.process.hang_up();
        let uri = format!("{}x", bases[n % 2]);
        let is_served = || {
            reads.fetch_add(1, Ordering::Relaxed);
            read(&line, &uri).is_ok()
        };
        assert!(within(SOON, is_served), "round {n}: {}", line.process.stderr());
        assert!(read_text(&line, WITNESS).starts_with("This is"));
    };
    let process = &line.process;
    let measure = || (process.files(), process.mappings(), process.threads(), process.memory() >> 20);
    // The signal SIGHUP ends a process that does not handle it yet, so wait until belljar serves.
    assert!(within(SOON, || read(&line, WITNESS).is_ok()), "{}", line.process.stderr());
    (0..40).for_each(round);
    let before = measure();
    (40..40 + rounds).for_each(round);
    // belljar may still hold the component of the last round for a while.
    let mut after = before;
    let is_as_before = within(SOON, || {
        after = measure();
        let same = after.0 <= before.0 + 4 && after.1 <= before.1 + 60 && after.2 <= before.2 + 8;
        same && after.3 <= before.3 + 24
    });
    fs::write(&config, plain).expect("write the configuration");
    let report = format!("(files, mappings, threads, MiB) {before:?} before, {after:?} after {rounds} rounds");
    assert!(is_as_before, "{report}");
    report
}
