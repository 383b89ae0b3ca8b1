//! Rows of the hostile table (`tests/integration/hostile`) about blocking: guests that wait for an event that never
//! comes, in the host or in the kernel.

use std::sync::Arc;
use std::time::Duration;

use rustix::fs::{CWD, FileType, Mode, mknodat};

use crate::expect::{Expect, is_busy, limit, text};
use crate::hung_file_system::{self, Hung, Stalls, UnmountOnDrop};
use crate::row::{Row, RunMode, Stops, hostile_guest};
use crate::running_site::RowContext;
use crate::tools::{path, shown, within};

pub(crate) fn rows() -> Vec<Row> {
    vec![
        hostile_guest("BLK-01", "a provider sleeps for ever")
            .time(400)
            .read("forever", limit("time"))
            .read("sleep/3600000", limit("time"))
            .stopped_by(&["time"]),
        hostile_guest("BLK-02", "a provider waits for the first of several events that never come")
            .time(400)
            .read("never", limit("time"))
            .stopped_by(&["time"]),
        hostile_guest("BLK-06", "a provider opens a pipe without a writer in a granted directory")
            .time(1500)
            .config("fs = { \"/d\" = \"blk-06\" }")
            .prepare(|site| {
                site.write("blk-06/file", "x");
                let path = site.path("blk-06/pipe");
                mknodat(CWD, path, FileType::Fifo, Mode::RUSR | Mode::WUSR, 0).expect("a new pipe");
            })
            .read("raw/pipe", Expect::Contains(&["refused: "]))
            .read("open/%252Fd%252Fpipe", Expect::Contains(&["refused: "]))
            .read("raw/file", Expect::Text("/d: read \"x\""))
            .stopped_by(&["special"]),
        hostile_guest("BLK-07", "a provider reads standard input, which carries the client's messages")
            .read("stdin", Expect::Text("0 bytes"))
            .stopped(Stops::Structure("a call has an empty standard input of its own, never that of the host")),
        hung_reads("BLK-10", "a granted directory lies on a drive that no longer answers", 1),
        stalls_later(
            "a drive is mounted below a granted directory after the start, and never answers",
            "blk-12/drive",
            mounted_below,
        ),
        stalls_later(
            "a drive is mounted over a granted directory after the start, and never answers",
            "blk-12",
            mounted_over,
        )
        // Switch off the second wall (Landlock). It would refuse access to the new file system before any request.
        .settings("wall = \"off\""),
        hostile_guest("BLK-11", "a provider calls exit in the middle of a read")
            .read("exit/0", Expect::Kind(&["trap"]))
            .read("exit/3", Expect::Kind(&["trap"]))
            .read("panic", Expect::Kind(&["trap"]))
            .stopped(Stops::Structure(
                "exit ends only its call, as an error; the host does not end its process for it",
            )),
    ]
}

/// Functions of the hostile guest with paths that lead to the hanging file system: to its root, to a file on it, and
/// indirectly.
const CALLS_TO_DRIVE: &[(&str, &str)] = &[
    ("stat", "drive"),
    ("stat", "drive/"),
    ("stat", "drive/x"),
    ("stat-link", "drive/x"),
    ("stat", "drive/../drive/x"),
    ("hash", "drive/x"),
    ("hash-link", "drive"),
    ("readlink", "drive/x"),
    ("open", "drive/x"),
    ("open-dir", "drive"),
    ("stat", "to-drive/x"),
    ("readlink", "to-drive/x"),
    ("fd-stat", "drive"),
    ("fd-hash", "drive/."),
    ("fd-entries", "drive"),
    ("fd-sync", "drive"),
];

/// A row in which a file system that never answers is mounted at `at` while belljar serves.
fn stalls_later(attack: &'static str, at: &'static str, act: fn(&RowContext<'_>, &Hung) -> String) -> Row {
    let hung = Hung::default();
    hostile_guest("BLK-12", attack)
        .needs(Hung::unsupported_reason())
        .time(1_000)
        .config("fs = { \"/d\" = \"blk-12\" }")
        .limits("concurrency = 4\nqueue = \"300ms\"")
        .run_mode(RunMode::Stdio)
        .prepare(|site| {
            site.write("blk-12/file.txt", "inside");
            std::fs::create_dir(site.path("blk-12/drive")).expect("a directory");
            std::os::unix::fs::symlink("drive", site.path("blk-12/to-drive")).expect("a link");
        })
        .act(move |context| {
            let file = context.read("raw/file%252Etxt");
            assert_eq!(text(&file), Some("/d: read \"inside\""), "{}", shown(&file));
            let _unmount = UnmountOnDrop(&hung);
            hung.mount(&context.site().path(at), Stalls::Everything);
            let saw = act(context, &hung);
            hung.give_up();
            saw
        })
        .stopped_by(&["dedicated-thread"])
}

/// Checks that calls to the hanging file system end by their deadline, and that another mount can still read files.
/// Returns the number of calls that the time limit stopped, and the number of requests that hung in the kernel.
fn assert_stopped(context: &RowContext<'_>, hung: &Hung, calls: &[(&str, &str)]) -> (usize, usize) {
    let (mut ended, mut stuck) = (0, 0);
    for calls in calls.chunks(2) {
        let reference = |(function, at): &(&str, &str)| format!("call/{function}%2F{}", path(at));
        let ids: Vec<u64> = calls.iter().map(|call| context.begin(&reference(call))).collect();
        let known = context.read_uri("belljar://witness-files/known.txt");
        assert_eq!(text(&known), Some("known to the byte"), "{}", shown(&known));
        for (id, (function, at)) in ids.into_iter().zip(calls) {
            let mut answer = context.wait(id);
            // On a busy machine, the turns of earlier calls become free late.
            within(Duration::from_secs(30), || {
                if is_busy(&answer) {
                    hung.release();
                    answer = context.read(&reference(&(function, at)));
                }
                !is_busy(&answer)
            });
            if let Some(text) = text(&answer) {
                assert!(text.contains("refused: "), "{function} {at}: {text}");
                continue;
            }
            ended += 1;
            let judged = Expect::Limit(&["time"]).judge(&answer, &context.name(""));
            judged.unwrap_or_else(|why| panic!("{function} {at}: {why}"));
        }
        stuck += hung.waiting();
        // A turn becomes free when the hanging request of its call ends.
        let mut free_call = context.read("call/stat%2Ffile%252Etxt");
        let is_free = within(Duration::from_secs(30), || {
            hung.release();
            free_call = context.read("call/stat%2Ffile%252Etxt");
            !is_busy(&free_call)
        });
        assert!(is_free, "no turn became free: {}", shown(&free_call));
    }
    (ended, stuck)
}

/// Calls each function that takes a path, for a hanging file system below the granted directory.
fn mounted_below(context: &RowContext<'_>, hung: &Hung) -> String {
    let (ended, stuck) = assert_stopped(context, hung, CALLS_TO_DRIVE);
    assert!(ended > 0 && stuck > 0, "no request reached the drive");
    // The turns of the mount become free when the file system answers.
    hung.give_up();
    let mut file = context.read("raw/file%252Etxt");
    within(Duration::from_secs(10), || {
        file = context.read("raw/file%252Etxt");
        file.is_ok()
    });
    assert_eq!(text(&file), Some("/d: read \"inside\""), "{}", shown(&file));
    format!("{ended} of {} ended by the limit on time, {stuck} hung", CALLS_TO_DRIVE.len())
}

/// Mounts a hanging file system over the granted directory itself. belljar also opens this directory outside of calls:
/// in
/// `check`, and on a reload.
fn mounted_over(context: &RowContext<'_>, hung: &Hung) -> String {
    // belljar uses its handle of the directory for a second, and then opens the path again.
    let reached = within(Duration::from_secs(10), || {
        let _ = context.read("call/stat%2Ffile%252Etxt");
        hung.waiting() > 0
    });
    assert!(reached, "no request reached the drive");
    // `check` prints its result. But its process cannot end before the file system answers.
    let output = context.site().path("checked");
    let mut command = context.running.command(&["check"], "");
    command.stdout(std::fs::File::create(&output).expect("a file")).stderr(std::process::Stdio::null());
    let mut check = command.spawn().expect("a process");
    let reported = || std::fs::read_to_string(&output).is_ok_and(|text| text.contains("does not answer"));
    let is_reported = within(Duration::from_secs(60), reported);
    let config = std::fs::read_to_string(context.site().path("belljar.toml")).expect("the configuration");
    context.site().config(&format!("{config}\n[mounts.witness-files.limits]\ntime = \"9s\"\n"));
    let stuck = hung.waiting();
    assert_stopped(context, hung, &[("stat-link", "file.txt"), ("hash", "file.txt")]);
    hung.give_up();
    check.wait().expect("the end of `check`");
    assert!(is_reported, "check printed {:?}", std::fs::read_to_string(&output));
    format!("{stuck} hung; `check` reports that the directory does not answer")
}

/// A row with `at_once` concurrent reads of a file system that never answers.
pub(crate) fn hung_reads(id: &'static str, attack: &'static str, at_once: usize) -> Row {
    let hung = Arc::new(Hung::default());
    let mounted = Arc::clone(&hung);
    hostile_guest(id, attack)
        .needs(Hung::unsupported_reason())
        // Long enough for all reads to reach the file system, even on a busy machine.
        .time(2_000)
        .config(&format!("fs = {{ \"/d\" = \"{}\" }}", id.to_lowercase()))
        .limits("concurrency = 8\nqueue = \"300ms\"")
        .run_mode(RunMode::Stdio)
        .prepare(move |site| {
            let directory = site.path(id.to_lowercase());
            std::fs::create_dir(&directory).expect("a new directory");
            mounted.mount(&directory, Stalls::Reads);
        })
        .act(move |context| {
            let _unmount = UnmountOnDrop(&hung);
            assert_hung_reads_stop(context, &hung, at_once)
        })
        .stopped_by(&["dedicated-thread"])
}

/// belljar must answer each read by its deadline, although the kernel does not return. It must release the resources
/// when the kernel returns.
fn assert_hung_reads_stop(context: &RowContext<'_>, hung: &Hung, at_once: usize) -> String {
    let mut saw = String::new();
    // On a busy machine, a call may reach its limit before it reaches the file system. Then repeat all calls.
    for _ in 0..5 {
        let ids: Vec<u64> =
            (0..at_once).map(|n| context.begin(&format!("raw/{}{n}", hung_file_system::FILE))).collect();
        let answers: Vec<_> = ids.into_iter().map(|id| context.wait(id)).collect();
        for answer in &answers {
            saw = Expect::Limit(&["time"]).judge(answer, &context.name("")).unwrap_or_else(|why| panic!("{why}"));
        }
        if hung.waiting() == at_once {
            break;
        }
        hung.release();
        assert!(within(Duration::from_secs(10), || hung.waiting() == 0), "released calls do not return from the drive");
    }
    assert_eq!(hung.waiting(), at_once, "not all calls reached the drive");
    for _ in 0..20 {
        let known = context.read_uri("belljar://witness-files/known.txt");
        assert_eq!(text(&known), Some("known to the byte"), "{known:?}");
    }
    let stuck = hung.waiting();
    hung.release();
    // Give belljar time to get back the threads and turns of the released requests.
    std::thread::sleep(Duration::from_millis(100));
    format!("{saw}, while {stuck} hung in the kernel")
}
