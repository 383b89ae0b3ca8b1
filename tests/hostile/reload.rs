//! What changes while belljar serves: storms of changes, mounts that go while they are read, everything loaded again and
//! again.

use std::fs::{self, File, FileTimes};
use std::sync::atomic::{AtomicBool, AtomicUsize, Ordering};
use std::time::{Duration, Instant, SystemTime};

use serde_json::json;

use crate::expect::{kind, text};
use crate::lif::{answering, numbered};
use crate::row::{Row, Stops, Way, bare, imp};
use crate::scene::Scene;
use crate::tools::{line, read, read_text, shown, within};

const WITNESS: &str = "belljar://witness/static-text";

/// How long a storm lasts.
const STORM: Duration = Duration::from_secs(8);

/// Files that are touched, and how large each is.
const TOUCHED: usize = 8;
const LARGE: usize = 6 << 20;

/// Touches of a second.
const TOUCHES: usize = 10_000;

/// How soon what changed is served.
const SOON: Duration = Duration::from_secs(5);

pub(crate) fn rows() -> Vec<Row> {
    vec![
        bare("LIF-13", "ten thousand touches a second in the plugin directory, and components exchanged all the time")
            .prepare(|site| {
                for n in 0..TOUCHED {
                    site.drop_in(&format!("large-{n}.wasm"), large(n));
                }
                site.drop_in("swapped.wasm", answering("0000"));
            })
            .way(Way::Unstarted)
            .measures()
            .act(storm)
            .stopped_by(&["pace"]),
        imp("LIF-14", "a component is removed while a hundred reads of it run or wait")
            .settings("calls = 64")
            .limits("concurrency = 32\nqueue = \"30s\"")
            .way(Way::Unstarted)
            .time(30_000)
            .act(removed)
            .stopped(Stops::Structure("whoever reads holds the mount, and the mount what is loaded for it")),
        bare("INF-08", "everything is read again a thousand times, with another configuration each time")
            .prepare(|site| site.drop_in("own.wasm", numbered(7)))
            .way(Way::Unstarted)
            .measures()
            .act(reread)
            .stopped(Stops::Structure("what is no longer served is let go when its last call has ended")),
    ]
}

/// A provider with a custom section that makes it large.
fn large(n: usize) -> Vec<u8> {
    let mut bytes = numbered(n);
    // Section 0, its length as a number of base 128, an empty name.
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

/// Touches files as often as it can, up to the number of a second, and says how often it did.
fn touch(scene: &Scene<'_>, is_over: &AtomicBool) -> usize {
    let open =
        |n| File::options().write(true).open(scene.site().path(format!("plugins/large-{n}.wasm"))).expect("a file");
    let files: Vec<File> = (0..TOUCHED).map(open).collect();
    let began = Instant::now();
    let mut touched = 0;
    while !is_over.load(Ordering::Relaxed) {
        let due = began.elapsed().as_millis() as usize * TOUCHES / 1000;
        while touched < due {
            let times = FileTimes::new().set_modified(SystemTime::now());
            files[touched % TOUCHED].set_times(times).expect("a touch");
            touched += 1;
        }
        std::thread::sleep(Duration::from_millis(1));
    }
    touched
}

fn storm(scene: &Scene<'_>) -> String {
    let line = line(scene, "");
    assert!(read_text(&line, WITNESS).starts_with("This is"));
    assert_eq!(read_text(&line, "belljar://swapped/x"), "0000");
    let words: Vec<String> = (1..=STORM.as_millis() / 50).map(|n| format!("{n:04}")).collect();
    let bytes: Vec<Vec<u8>> = words.iter().take(7).map(|word| answering(word)).collect();
    let exchanged = |line: &belljar_tests::Line| line.process.stderr().matches("exchanged: ").count();
    let (is_over, before) = (AtomicBool::new(false), exchanged(&line));
    // Each of them is compiled before, so that what is measured is the looking.
    for bytes in &bytes {
        scene.site().drop_in("swapped.wasm", bytes);
        let last = exchanged(&line);
        assert!(within(Duration::from_secs(20), || exchanged(&line) > last), "{}", line.process.stderr());
    }
    let before = exchanged(&line).max(before);
    // Threads come and go, so that what the process used is counted, in hundredths of a second.
    let spent = line.process.cpu_ticks();
    let began = Instant::now();
    let touched = std::thread::scope(|scope| {
        let toucher = scope.spawn(|| touch(scene, &is_over));
        for bytes in bytes.iter().cycle() {
            scene.site().drop_in("swapped.wasm", bytes);
            if began.elapsed() > STORM {
                break;
            }
            std::thread::sleep(Duration::from_millis(50));
        }
        is_over.store(true, Ordering::Relaxed);
        toucher.join().expect("it does not panic")
    });
    let took = began.elapsed();
    let share = (line.process.cpu_ticks() - spent) as f64 / 100.0 / took.as_secs_f64();
    let swaps = exchanged(&line) - before;
    assert!(touched as f64 > 0.8 * TOUCHES as f64 * took.as_secs_f64(), "only {touched} touches in {took:?}");
    assert!(share < 0.10, "{:.0} % of a processor", share * 100.0);
    assert!(swaps as f64 <= 4.0 * took.as_secs_f64(), "{swaps} swaps in {took:?}");
    assert!(swaps > 0, "nothing was looked at for as long as it stormed: {share} {}", line.process.stderr());
    scene.site().drop_in("swapped.wasm", &bytes[0]);
    let is_right = || read_text(&line, "belljar://swapped/x") == words[0];
    assert!(within(SOON, is_right), "the last one is not served: {}", line.process.stderr());
    format!("{touched} touches: {:.1} % of a processor, {swaps} swaps, and the last one is served", share * 100.0)
}

fn removed(scene: &Scene<'_>) -> String {
    let line = line(scene, "");
    assert_eq!(text(&read(&line, &scene.uri("ok"))), Some("fine"));
    let begin = |n: u64| line.send("resources/read", json!({ "uri": scene.uri(&format!("sleep/{}", 700 + n)) }));
    let ids: Vec<u64> = (0..100).map(begin).collect();
    std::thread::sleep(Duration::from_millis(100));
    let file = scene.site().path("plugins/guest_imp.wasm");
    fs::remove_file(file).expect("a file");
    let gone = || matches!(read(&line, &scene.uri("ok")), Err(error) if kind(&error) == "unavailable");
    assert!(within(SOON, gone), "it is still served: {}", line.process.stderr());
    let mut fine = 0;
    for id in ids {
        let (answer, _) = line.wait(id, Duration::from_secs(40)).expect("an answer to each");
        assert!(answer.is_ok(), "{}", shown(&answer));
        fine += 1;
    }
    assert_eq!(line.violations(), Vec::<String>::new());
    assert!(read_text(&line, WITNESS).starts_with("This is"));
    format!("all {fine} reads were answered, and the next one found nothing")
}

fn reread(scene: &Scene<'_>) -> String {
    let rounds: usize = std::env::var("BELLJAR_RELOADS").ok().and_then(|count| count.parse().ok()).unwrap_or(200);
    let config = scene.site().path("belljar.toml");
    let plain = fs::read_to_string(&config).expect("a configuration");
    let line = line(scene, "");
    let bases = ["x://", "y://"];
    let texts = bases.map(|base| format!("{plain}\n[mounts.own]\nuri = \"{base}\"\nenv = {{ A = \"{base}\" }}\n"));
    let reads = AtomicUsize::new(0);
    let round = |n: usize| {
        // Whole, as an editor that is careful writes it.
        let text = scene.site().write("belljar.toml.new", &texts[n % 2]);
        fs::rename(text, &config).expect("a rename");
        line.process.hang_up();
        let uri = format!("{}x", bases[n % 2]);
        let is_served = || {
            reads.fetch_add(1, Ordering::Relaxed);
            read(&line, &uri).is_ok()
        };
        assert!(within(SOON, is_served), "round {n}: {}", line.process.stderr());
        assert!(read_text(&line, WITNESS).starts_with("This is"));
    };
    let measure = || {
        std::thread::sleep(Duration::from_secs(1));
        (line.process.files(), line.process.mappings(), line.process.threads(), line.process.memory() >> 20)
    };
    // A signal before it listens for signals ends a process.
    assert!(within(SOON, || read(&line, WITNESS).is_ok()), "{}", line.process.stderr());
    (0..40).for_each(round);
    let before = measure();
    (40..40 + rounds).for_each(round);
    let after = measure();
    fs::write(&config, plain).expect("a configuration");
    let told = format!("(files, mappings, threads, MiB) {before:?} before, {after:?} after {rounds} rounds");
    assert!(after.0 <= before.0 + 4 && after.1 <= before.1 + 60 && after.2 <= before.2 + 8, "{told}");
    assert!(after.3 <= before.3 + 24, "{told}");
    told
}
