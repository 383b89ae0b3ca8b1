//! Blocking: guests that wait for what never comes, in the host's hands or the kernel's.

use std::sync::Arc;
use std::time::{Duration, Instant};

use rustix::fs::{CWD, FileType, Mode, mknodat};

use crate::expect::{Expect, is_busy, limit, text};
use crate::hung::{self, Ending, Hung, Stalls};
use crate::row::{Row, Stops, Way, imp};
use crate::scene::Scene;
use crate::tools::{path, shown, within};

pub(crate) fn rows() -> Vec<Row> {
    vec![
        imp("BLK-01", "a provider sleeps for ever")
            .time(400)
            .read("forever", limit("time"))
            .read("sleep/3600000", limit("time"))
            .stopped_by(&["time"]),
        imp("BLK-02", "a provider waits for the first of several things that never come")
            .time(400)
            .read("never", limit("time"))
            .stopped_by(&["time"]),
        imp("BLK-06", "a granted directory holds a pipe that nobody writes to, and the provider opens it")
            .time(1500)
            .config("fs = { \"/d\" = \"blk-06\" }")
            .prepare(|site| {
                site.write("blk-06/file", "x");
                let path = site.path("blk-06/pipe");
                mknodat(CWD, path, FileType::Fifo, Mode::RUSR | Mode::WUSR, 0).expect("a place for a pipe");
            })
            .read("raw/pipe", Expect::Contains(&["refused: "]))
            .read("open/%252Fd%252Fpipe", Expect::Contains(&["refused: "]))
            .read("raw/file", Expect::Text("/d: read \"x\""))
            .stopped_by(&["special"]),
        imp("BLK-07", "a provider reads standard input, where the client's messages come")
            .read("stdin", Expect::Text("0 bytes"))
            .stopped(Stops::Structure("a call has an empty standard input of its own; the host's is never handed on")),
        hung_reads("BLK-10", "a granted directory lies on a drive that no longer answers", 1),
        stalls_later(
            "a drive is mounted below a granted directory after the start, and never answers",
            "blk-12/drive",
            below,
        ),
        stalls_later("a drive is mounted over a granted directory after the start, and never answers", "blk-12", over)
            // The second wall keeps a new directory shut, and so would not even ask it.
            .settings("wall = \"off\""),
        imp("BLK-11", "a provider calls exit in the middle of a read")
            .read("exit/0", Expect::Kind(&["trap"]))
            .read("exit/3", Expect::Kind(&["trap"]))
            .read("panic", Expect::Kind(&["trap"]))
            .stopped(Stops::Structure(
                "exit is an error of the call that made it; no code of the host's ends the process for it",
            )),
    ]
}

/// Functions that reach a drive by a path, each with the path: the drive itself, what lies on it, and ways around.
const INTO: &[(&str, &str)] = &[
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

/// A drive is mounted while belljar serves, at this place in the site, and never answers anything.
fn stalls_later(attack: &'static str, at: &'static str, act: fn(&Scene<'_>, &Hung) -> String) -> Row {
    let hung = Hung::default();
    imp("BLK-12", attack)
        .needs(Hung::is_impossible())
        .time(2_000)
        .config("fs = { \"/d\" = \"blk-12\" }")
        .limits("concurrency = 4\nqueue = \"300ms\"")
        .way(Way::Stdio)
        .prepare(|site| {
            site.write("blk-12/file.txt", "inside");
            std::fs::create_dir(site.path("blk-12/drive")).expect("a directory");
            std::os::unix::fs::symlink("drive", site.path("blk-12/to-drive")).expect("a link");
        })
        .act(move |scene| {
            let file = scene.read("raw/file%252Etxt");
            assert_eq!(text(&file), Some("/d: read \"inside\""), "{}", shown(&file));
            let _ending = Ending(&hung);
            hung.mount(&scene.site().path(at), Stalls::Everything);
            let saw = act(scene, &hung);
            hung.give_up();
            saw
        })
        .stopped_by(&["apart"])
}

/// What the drive holds up ends by the deadline, and nothing else is held up: another mount's files go on being read. Gives
/// how many calls ended so, and how many requests hung at the drive.
fn held_up(scene: &Scene<'_>, hung: &Hung, calls: &[(&str, &str)]) -> (usize, usize) {
    let (mut ended, mut stuck) = (0, 0);
    for calls in calls.chunks(2) {
        let reference = |(function, at): &(&str, &str)| format!("call/{function}%2F{}", path(at));
        let ids: Vec<u64> = calls.iter().map(|call| scene.begin(&reference(call))).collect();
        let known = scene.read_uri("belljar://witness-files/known.txt");
        assert_eq!(text(&known), Some("known to the byte"), "{}", shown(&known));
        for (id, (function, at)) in ids.into_iter().zip(calls) {
            let mut late = scene.wait(id);
            // On a busy machine, turns of the calls before it come back late.
            within(Duration::from_secs(30), || {
                if is_busy(&late) {
                    hung.release();
                    late = scene.read(&reference(&(function, at)));
                }
                !is_busy(&late)
            });
            if let Some(said) = text(&late) {
                assert!(said.contains("refused: "), "{function} {at}: {said}");
                continue;
            }
            ended += 1;
            let judged = Expect::Limit(&["time"]).judge(&late, &scene.name(""));
            judged.unwrap_or_else(|why| panic!("{function} {at}: {why}"));
        }
        stuck += hung.waiting();
        // A turn comes back with what hung.
        let mut local = scene.read("call/stat%2Ffile%252Etxt");
        let is_free = within(Duration::from_secs(30), || {
            hung.release();
            local = scene.read("call/stat%2Ffile%252Etxt");
            !is_busy(&local)
        });
        assert!(is_free, "no turn came back: {}", shown(&local));
    }
    (ended, stuck)
}

/// Each function that takes a path, into a drive below the granted directory.
fn below(scene: &Scene<'_>, hung: &Hung) -> String {
    let (ended, stuck) = held_up(scene, hung, INTO);
    assert!(ended > 0 && stuck > 0, "nothing came to the drive");
    // Its own turns come back when the drive does.
    hung.give_up();
    let mut file = scene.read("raw/file%252Etxt");
    within(Duration::from_secs(10), || {
        file = scene.read("raw/file%252Etxt");
        file.is_ok()
    });
    assert_eq!(text(&file), Some("/d: read \"inside\""), "{}", shown(&file));
    format!("{ended} of {} ended by the limit on time, {stuck} hung", INTO.len())
}

/// The granted directory itself, which is looked at outside of calls as well: by `check`, and when the configuration is read
/// again.
fn over(scene: &Scene<'_>, hung: &Hung) -> String {
    // Handles are believed for a second; from then on the drive is what lies there.
    let reached = within(Duration::from_secs(10), || {
        let _ = scene.read("call/stat%2Ffile%252Etxt");
        hung.waiting() > 0
    });
    assert!(reached, "nothing came to the drive");
    // What it has to say it says; the kernel lets no process end while the drive owes it an answer.
    let said = scene.site().path("checked");
    let mut command = scene.stage.command(&["check"], "");
    command.stdout(std::fs::File::create(&said).expect("a file")).stderr(std::process::Stdio::null());
    let mut check = command.spawn().expect("a process");
    let told = || std::fs::read_to_string(&said).is_ok_and(|said| said.contains("does not answer"));
    let is_told = within(Duration::from_secs(60), told);
    let config = std::fs::read_to_string(scene.site().path("belljar.toml")).expect("the configuration");
    scene.site().config(&format!("{config}\n[mounts.witness-files.limits]\ntime = \"9s\"\n"));
    let stuck = hung.waiting();
    held_up(scene, hung, &[("stat-link", "file.txt"), ("hash", "file.txt")]);
    hung.give_up();
    check.wait().expect("its end");
    assert!(is_told, "check said {:?}", std::fs::read_to_string(&said));
    format!("{stuck} hung; check says that it does not answer")
}

/// A mount on a file system that never answers, read so often at once.
pub(crate) fn hung_reads(id: &'static str, attack: &'static str, at_once: usize) -> Row {
    let hung = Arc::new(Hung::default());
    let mounted = Arc::clone(&hung);
    imp(id, attack)
        .needs(Hung::is_impossible())
        // Long enough for all of them to get there on a busy machine.
        .time(2_000)
        .config(&format!("fs = {{ \"/d\" = \"{}\" }}", id.to_lowercase()))
        .limits("concurrency = 8\nqueue = \"300ms\"")
        .way(Way::Stdio)
        .prepare(move |site| {
            let directory = site.path(id.to_lowercase());
            std::fs::create_dir(&directory).expect("a new directory");
            mounted.mount(&directory, Stalls::Reads);
        })
        .act(move |scene| {
            let _ending = Ending(&hung);
            stall(scene, &hung, at_once)
        })
        .stopped_by(&["apart"])
}

/// Each of them is answered by its deadline though none returns; what they held is given back when they do.
fn stall(scene: &Scene<'_>, hung: &Hung, at_once: usize) -> String {
    let began = Instant::now();
    let ids: Vec<u64> = (0..at_once).map(|n| scene.begin(&format!("raw/{}{n}", hung::FILE))).collect();
    let answers: Vec<_> = ids.into_iter().map(|id| scene.wait(id)).collect();
    let took = began.elapsed();
    let mut saw = String::new();
    for answer in &answers {
        saw = Expect::Limit(&["time"]).judge(answer, &scene.name("")).unwrap_or_else(|why| panic!("{why}"));
    }
    assert!(took < scene.patience(), "answered after {took:?}");
    assert_eq!(hung.waiting(), at_once, "so many hang");
    for _ in 0..20 {
        let known = scene.read_uri("belljar://witness-files/known.txt");
        assert_eq!(text(&known), Some("known to the byte"), "{known:?}");
    }
    let stuck = hung.waiting();
    hung.release();
    // What hung in the kernel comes back, and with it the thread and the turn.
    std::thread::sleep(Duration::from_millis(100));
    format!("{saw}, while {stuck} hung in the kernel")
}
