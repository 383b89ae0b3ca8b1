//! `add` and `upgrade` that are killed at any moment: every file stays whole, what was served is served, and the next
//! attempt succeeds.

use std::fs;
use std::os::unix::process::CommandExt as _;
use std::path::Path;
use std::process::Stdio;
use std::time::{Duration, Instant};

use belljar_tests::{Artifact, DEADLINE, Era, Process, Registry, Site, wait_until};
use serde_json::{Value, json};

use super::{NAME, TEXT, padded, release, succeeds, verified};
use crate::support::{isolated_site, stdout_and_stderr};

/// The size of the components: their download is a part of the time in which they are killed.
const BYTES: usize = 2 << 20;

/// The configuration before a command.
const CONFIG: &str = "audit = \"audit.jsonl\"\n";

/// The process that is killed.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum Victim {
    Belljar,
    Fetch,
    Both,
}

/// A command that is killed again and again.
struct Attack<'a> {
    site: &'a Site,
    command: Vec<&'a str>,
    /// The files in the plugin directory and of the lock, before the command and after it.
    before: [Option<Vec<u8>>; 2],
}

/// How often a killed command had written nothing, and how often something.
#[derive(Debug, Default)]
struct Tally {
    kills: usize,
    before_writing: usize,
    while_writing: usize,
    fetch: usize,
}

impl Attack<'_> {
    fn files(site: &Site) -> [Option<Vec<u8>>; 2] {
        ["plugins/tides.wasm", "belljar.lock"].map(|name| fs::read(site.path(name)).ok())
    }

    /// Puts everything back as it was before the command. Every other time, what was downloaded is kept.
    fn reset(&self, keeps_downloads: bool) {
        for (name, bytes) in ["plugins/tides.wasm", "belljar.lock"].iter().zip(&self.before) {
            match bytes {
                Some(bytes) => drop(self.site.write(name, bytes)),
                None => drop(fs::remove_file(self.site.path(name))),
            }
        }
        self.site.config(CONFIG);
        if !keeps_downloads {
            let _ = fs::remove_dir_all(self.site.path("cache/belljar/components"));
        }
    }

    fn start(&self) -> Process {
        let mut command = self.site.command(self.site.arguments(&self.command));
        command.stdin(Stdio::null()).stdout(Stdio::null()).process_group(0);
        Process::start(command)
    }

    /// True once the command has begun to write the lock.
    fn is_writing(&self) -> bool {
        let lock = fs::read(self.site.path("belljar.lock")).ok();
        let names = fs::read_dir(self.site.path("")).unwrap().flatten().map(|entry| entry.file_name());
        lock != self.before[1] || names.into_iter().any(|name| name.to_string_lossy().starts_with(".belljar.lock."))
    }

    fn await_writing(&self, process: &Process) {
        while !self.is_writing() && process.ended().is_none() {
            std::thread::sleep(Duration::from_micros(200));
        }
    }

    /// The time of the whole command, and of the part that writes. The shortest of three: a kill after the end proves nothing.
    fn rehearse(&self) -> (Duration, Duration) {
        let times = (0..3).map(|_| {
            self.reset(false);
            let began = Instant::now();
            let process = self.start();
            self.await_writing(&process);
            let writing = Instant::now();
            let ended = process.wait(DEADLINE);
            assert!(ended.status.success(), "{}", ended.stderr);
            (began.elapsed(), writing.elapsed())
        });
        times.reduce(|one, other| (one.0.min(other.0), one.1.min(other.1))).expect("three times")
    }

    /// Kills the command `least` times at least, until each kind of moment was hit.
    fn run(&self, least: usize, is_whole: impl Fn(&str) -> bool, check: impl Fn()) {
        let (whole, writing) = self.rehearse();
        let mut tally = Tally::default();
        while tally.kills < least || tally.before_writing == 0 || tally.while_writing == 0 || tally.fetch == 0 {
            assert!(tally.kills < 20 * least, "{tally:?}");
            let at = tally.kills;
            let victim = [Victim::Belljar, Victim::Both, Victim::Fetch][at % 3];
            self.reset(at % 2 == 0);
            let process = self.start();
            // A third of the kills comes while files are written: that part is short.
            if at % 9 < 3 {
                self.await_writing(&process);
                std::thread::sleep(writing.mul_f64(fastrand::f64()));
            } else {
                // Spread evenly over the whole time, and at random within each part.
                let part = (at % least) as f64 + fastrand::f64();
                std::thread::sleep(whole.mul_f64(1.1 * part / least as f64));
            }
            self.kill(process, victim, &mut tally);
            let what = format!("kill {at} of {victim:?}");
            let configuration = fs::read_to_string(self.site.path("belljar.toml")).unwrap();
            assert!(is_whole(&configuration), "{what}: {configuration}");
            let checked = self.site.run(&["check", "--json"]);
            let json: Value = serde_json::from_slice(&checked.stdout)
                .unwrap_or_else(|_| panic!("{what}: {}", stdout_and_stderr(&checked)));
            assert_eq!((&json["refused"], &json["quarantined"]), (&json!([]), &json!([])), "{what}");
            check();
            let said = succeeds(self.site, &self.command);
            assert!(!said.contains("panicked"), "{what}: {said}");
            assert_eq!(verified(self.site)["standing"], "same", "{what}");
            assert_eq!(leftovers(self.site), [""; 0], "{what}");
        }
        self.reset(false);
    }

    fn kill(&self, process: Process, victim: Victim, tally: &mut Tally) {
        tally.kills += 1;
        let fetching = fetching(&process);
        match victim {
            Victim::Belljar => process.kill(),
            Victim::Fetch => fetching.iter().for_each(|pid| process.kill_descendant(*pid)),
            Victim::Both => process.kill_group(),
        }
        let ended = process.wait(DEADLINE);
        assert!(!ended.stderr.contains("panicked"), "{}", ended.stderr);
        await_end(&fetching);
        match victim {
            Victim::Fetch if !ended.status.success() => {
                assert!(ended.stderr.contains("or was killed"), "{}", ended.stderr);
                tally.fetch += 1;
            }
            Victim::Fetch => {}
            // It had ended before.
            _ if ended.status.code().is_some() => {}
            _ if self.is_writing() => tally.while_writing += 1,
            _ => tally.before_writing += 1,
        }
    }
}

/// True if the process with this id is a running `belljar-fetch`. It hides which file it runs; its name and state are for
/// everybody.
fn is_fetch(pid: &u32) -> bool {
    let stat = fs::read_to_string(format!("/proc/{pid}/stat")).unwrap_or_default();
    stat.split_once("(belljar-fetch) ").is_some_and(|(_, state)| !state.starts_with(['Z', 'X']))
}

/// The ids of the `belljar-fetch` that a belljar runs.
fn fetching(belljar: &Process) -> Vec<u32> {
    belljar.descendants().into_iter().filter(is_fetch).collect()
}

/// Nobody downloads for a belljar that is no more.
fn await_end(fetching: &[u32]) {
    wait_until("the end of belljar-fetch", || {
        let left: Vec<_> = fetching.iter().filter(|pid| is_fetch(pid)).collect();
        if left.is_empty() { Ok(()) } else { Err(format!("{left:?}")) }
    });
}

/// The files that no command takes up again: temporary files, and downloads that are not complete.
fn leftovers(site: &Site) -> Vec<String> {
    fn visit(directory: &Path, found: &mut Vec<String>) {
        for entry in fs::read_dir(directory).into_iter().flatten().flatten() {
            let name = entry.file_name().to_string_lossy().into_owned();
            if entry.path().is_dir() {
                visit(&entry.path(), found);
            } else if name.ends_with(".tmp") || name.ends_with(".part") {
                found.push(name);
            }
        }
    }
    let mut found = Vec::new();
    visit(&site.path(""), &mut found);
    found
}

fn start(registry: Option<Registry>) -> Option<(Site, Registry)> {
    let (site, registry) = (isolated_site(), registry?);
    site.config(CONFIG);
    Some((site, registry))
}

fn large(version: &str) -> Artifact {
    padded(release("guest_fixture", version), BYTES)
}

/// How many kills: few in each run of the tests, and as many as `BELLJAR_KILLS` says.
fn kills() -> usize {
    std::env::var("BELLJAR_KILLS").ok().and_then(|kills| kills.parse().ok()).unwrap_or(15)
}

#[test]
fn a_killed_add_leaves_nothing_or_the_mount() {
    let Some((site, registry)) = start(Registry::start()) else { return };
    let artifact = large("1.0.0");
    registry.push(NAME, "1.0.0", &artifact);
    let reference = registry.reference(NAME, "1.0.0");
    let command = vec!["add", &reference, "--env", "GREETING=hello", "--unsigned", "--yes"];
    let attack = Attack { before: Attack::files(&site), site: &site, command };
    attack.run(
        kills(),
        |configuration| {
            configuration == CONFIG || configuration.starts_with(CONFIG) && configuration.contains("GREETING")
        },
        || {
            let component = fs::read(site.path("plugins/tides.wasm")).ok();
            assert!(component.as_ref().is_none_or(|bytes| *bytes == artifact.component), "a part of a component");
            let read = site.stdio(Era::Stateless).read("belljar://tides/static-text");
            assert_eq!(read.is_ok(), component.is_some(), "{read:?}");
            if component.is_none() && site.path("belljar.lock").exists() {
                let said = super::fails(&site, &["verify"]);
                assert!(said.contains(&format!("belljar add {reference}")), "{said}");
            }
        },
    );
}

/// The lock has both digests for a moment. A process that ends then leaves a mount that is served.
#[test]
fn a_killed_upgrade_leaves_a_mount_that_is_served() {
    let Some((site, registry)) = start(Registry::start()) else { return };
    let (old, new) = (large("1.0.0"), large("1.1.0"));
    registry.push(NAME, "1.0.0", &old);
    succeeds(&site, &["add", &registry.reference(NAME, "1.0.0"), "--unsigned", "--yes"]);
    registry.push(NAME, "1.1.0", &new);
    let command = vec!["upgrade", "tides", "--unsigned", "--yes", "--no-run"];
    let attack = Attack { before: Attack::files(&site), site: &site, command };
    attack.run(
        kills(),
        |configuration| configuration == CONFIG,
        || {
            let served = fs::read(site.path("plugins/tides.wasm")).unwrap();
            assert!(served == old.component || served == new.component, "a part of a component");
            let standing = verified(&site)["standing"].clone();
            assert!(standing == "same" || standing == "half-upgraded", "{standing}");
            assert_eq!(site.stdio(Era::Stateless).text("belljar://tides/static-text"), TEXT);
        },
    );
    assert_eq!(fs::read(site.path("plugins/tides.wasm")).unwrap(), old.component);
    succeeds(&site, &["upgrade", "tides", "--unsigned", "--yes"]);
    assert_eq!(fs::read(site.path("plugins/tides.wasm")).unwrap(), new.component);
}

/// A registry sends a component for minutes. belljar is killed meanwhile.
#[test]
fn a_download_ends_with_belljar_and_is_continued_later() {
    let Some((site, registry)) = start(Registry::slow()) else { return };
    let artifact = large("1.0.0");
    registry.push(NAME, "1.0.0", &artifact);
    let reference = registry.reference(NAME, "1.0.0");
    let attack =
        Attack { before: Attack::files(&site), site: &site, command: vec!["add", &reference, "--unsigned", "--yes"] };
    let process = attack.start();
    let part = || {
        let names = fs::read_dir(site.path("cache/belljar/components")).into_iter().flatten().flatten();
        names.map(|entry| entry.path()).find(|path| path.extension().is_some_and(|kind| kind == "part"))
    };
    wait_until("the first bytes", || {
        let bytes = part().and_then(|path| path.metadata().ok()).map_or(0, |meta| meta.len());
        if bytes > 0 { Ok(()) } else { Err(process.stderr()) }
    });
    let fetching = fetching(&process);
    assert_eq!(fetching.len(), 1, "{fetching:?}");
    process.kill();
    process.wait(DEADLINE);
    await_end(&fetching);
    assert!(part().is_some() && registry.ranges().is_empty(), "{:?}", registry.ranges());
    registry.hurry();
    succeeds(&site, &attack.command);
    assert_eq!(fs::read(site.path("plugins/tides.wasm")).unwrap(), artifact.component);
    let ranges = registry.ranges();
    assert!(ranges.len() == 1 && !ranges[0].contains("=0-"), "{ranges:?}");
    assert_eq!(leftovers(&site), [""; 0]);
}
