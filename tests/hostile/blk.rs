//! Blocking: guests that wait for what never comes, in the host's hands or the kernel's.

use std::sync::Arc;
use std::time::{Duration, Instant};

use rustix::fs::{CWD, FileType, Mode, mknodat};

use crate::expect::{Expect, limit, text};
use crate::hung::{self, Ending, Hung};
use crate::row::{Row, Stops, Way, imp};
use crate::scene::Scene;

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
        imp("BLK-11", "a provider calls exit in the middle of a read")
            .read("exit/0", Expect::Kind(&["trap"]))
            .read("exit/3", Expect::Kind(&["trap"]))
            .read("panic", Expect::Kind(&["trap"]))
            .stopped(Stops::Structure(
                "exit is an error of the call that made it; no code of the host's ends the process for it",
            )),
    ]
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
            mounted.mount(&directory);
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
