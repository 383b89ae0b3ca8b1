//! The grant `system`, as an operator and a client see it: the granted parts are files below `/system`, a refusal names the
//! command that grants the part, and the environment of a process is never in any answer.

use std::os::unix::process::CommandExt as _;
use std::process::{Child, Command, Stdio as Pipe};
use std::time::{Duration, Instant};

use belljar_tests::Site;
use serde_json::{Value, json};

use super::http::{attack, mount};
use crate::support::{serve, site, stdout_and_stderr};

/// A text that only the environment of a process has.
pub(crate) const ENVIRONMENT: &str = "belljar-marker-environment-4711";

/// A text that only the arguments of a process have.
pub(crate) const ARGUMENT: &str = "belljar-marker-argument-0815";

/// Every file below `/system`.
const FILES: [&str; 8] = ["containers", "disks", "load", "memory", "network", "processes", "sensors", "services"];

/// A process that waits, with the markers. It ends with this value.
pub(crate) struct Marked(Child);

impl Marked {
    pub(crate) fn start() -> Marked {
        let mut command = Command::new("sh");
        // The shell stays, because another command follows.
        command.args(["-c", "sleep 600; true", ARGUMENT]).env("MARKER", ENVIRONMENT);
        command.stdin(Pipe::null()).stdout(Pipe::null()).stderr(Pipe::null()).process_group(0);
        Marked(command.spawn().unwrap())
    }

    pub(crate) fn pid(&self) -> u32 {
        self.0.id()
    }
}

impl Drop for Marked {
    fn drop(&mut self) {
        let group = rustix::process::Pid::from_child(&self.0);
        rustix::process::kill_process_group(group, rustix::process::Signal::KILL).ok();
        self.0.wait().ok();
    }
}

fn granted(words: &str) -> Site {
    site(&mount(&format!("system = {words}")))
}

/// The URI that makes the hostile guest read the file of a part as a whole.
fn whole(part: &str) -> String {
    attack("need", &format!("/system/{part}.json"))
}

fn configuration(site: &Site) -> String {
    std::fs::read_to_string(site.path("belljar.toml")).unwrap()
}

#[test]
fn all_parts_are_files_and_environments_are_in_none() {
    let marked = Marked::start();
    let site = granted("[\"all\"]");
    let mut client = serve(&site);
    let listed = client.text(&attack("readdir", "/system"));
    for part in FILES {
        assert!(listed.contains(&format!("\"{part}.json\"")), "{listed}");
        let text = client.text(&whole(part));
        let facts: Value = serde_json::from_str(&text).unwrap_or_else(|error| panic!("{part}: {error}: {text}"));
        assert!(facts["at"].is_string(), "{part}: {facts}");
        assert!(!text.contains(ENVIRONMENT) && !text.contains(ARGUMENT), "{part}: {text}");
    }
    let facts: Value = serde_json::from_str(&client.text(&whole("processes"))).unwrap();
    let own = facts["processes"].as_array().unwrap().iter().find(|one| one["pid"] == marked.pid()).unwrap();
    assert_eq!(own["name"], "sh", "{own}");
    assert_eq!(own.get("command"), None, "{own}");
    let load: Value = serde_json::from_str(&client.text(&whole("load"))).unwrap();
    assert!(load["uptime_seconds"].as_f64().unwrap() > 0.0, "{load}");
    let network: Value = serde_json::from_str(&client.text(&whole("network"))).unwrap();
    assert!(network["interfaces"].as_array().unwrap().iter().any(|one| one["name"] == "lo"), "{network}");
    client.close();
    let records = site.audit();
    let used: Vec<_> = records.iter().filter(|record| record["mount"] == "hostile").collect();
    let text = json!(used).to_string();
    assert!(text.contains("\"grant\":\"system\"") && text.contains("/system/load.json"), "{text}");
}

#[test]
fn command_lines_are_shown_only_when_they_are_granted() {
    let marked = Marked::start();
    let site = granted("[\"processes\", \"command-lines\"]");
    let mut client = serve(&site);
    let text = client.text(&whole("processes"));
    assert!(!text.contains(ENVIRONMENT), "{text}");
    let facts: Value = serde_json::from_str(&text).unwrap();
    let own = facts["processes"].as_array().unwrap().iter().find(|one| one["pid"] == marked.pid()).unwrap();
    assert_eq!(own["command"], json!(["sh", "-c", "sleep 600; true", ARGUMENT]));
    client.close();
}

#[test]
fn a_part_that_is_not_granted_is_denied_with_the_command_that_grants_it() {
    let site = granted("[\"load\"]");
    let mut client = serve(&site);
    assert_eq!(client.text(&attack("readdir", "/system")), "listed [\"load.json\"]");
    let refused = client.read(&whole("processes")).unwrap_err();
    assert_eq!(refused.data["kind"], "denied", "{refused}");
    let command = "belljar grant hostile --system processes";
    assert!(refused.data["hint"].as_str().unwrap().contains(command), "{refused}");
    client.close();
    let granted = site.run(&["grant", "hostile", "--system", "processes", "--yes"]);
    assert!(granted.status.success(), "{granted:?}");
    assert!(configuration(&site).contains("system = [\"load\", \"processes\"]"), "{}", configuration(&site));
    let mut client = serve(&site);
    assert!(client.text(&whole("processes")).contains("\"processes\""));
    client.close();
    for part in ["processes", "load"] {
        let revoked = site.run(&["revoke", "hostile", "--system", part, "--yes"]);
        assert!(revoked.status.success(), "{revoked:?}");
    }
    assert!(!configuration(&site).contains("system"), "{}", configuration(&site));
}

#[test]
fn without_a_grant_there_is_no_directory() {
    let site = site(&mount(""));
    let mut client = serve(&site);
    assert!(client.text(&attack("readdir", "/system")).starts_with("refused"));
    assert!(client.read(&whole("load")).is_err());
    client.close();
}

#[test]
fn wrong_words_are_named() {
    let said = |words: &str| stdout_and_stderr(&granted(words).run(&["check"]));
    let unknown = said("[\"environ\"]");
    assert!(unknown.contains("unknown part \"environ\"; expected \"all\", \"load\""), "{unknown}");
    let only = said("[\"command-lines\"]");
    assert!(only.contains("grant \"processes\" too"), "{only}");
    let fine = said("[\"all\", \"command-lines\"]");
    assert!(fine.contains("command-lines"), "{fine}");
    let site = granted("[\"load\"]");
    let refused = site.run(&["grant", "hostile", "--system", "environ", "--yes"]);
    assert!(!refused.status.success());
    assert!(stdout_and_stderr(&refused).contains("unknown part \"environ\""), "{refused:?}");
}

#[test]
fn facts_are_kept_for_a_second_and_then_collected_again() {
    let site = granted("[\"memory\"]");
    let mut client = serve(&site);
    let mut at = || {
        let facts: Value = serde_json::from_str(&client.text(&whole("memory"))).unwrap();
        facts["at"].as_str().unwrap().to_owned()
    };
    let began = Instant::now();
    let mut times = vec![at()];
    while began.elapsed() < Duration::from_millis(2500) {
        times.push(at());
    }
    let reads = times.len();
    times.dedup();
    assert!((2..=4).contains(&times.len()), "{} collections in {reads} reads: {times:?}", times.len());
    client.close();
}

#[test]
fn functions_of_files_agree_about_the_files_in_memory() {
    let site = granted("[\"load\"]");
    let mut client = serve(&site);
    let call = |function: &str, path: &str| attack("call", &format!("{function}/{path}"));
    for (function, says) in [
        ("stat", "DescriptorType::RegularFile"),
        ("fd-type", "DescriptorType::RegularFile"),
        ("fd-stream", "read \"{\\\"at\\\":"),
        ("fd-read", "read \"{\\\"at\\\":"),
        ("fd-same", "true false"),
        ("fd-sync", "done"),
        ("fd-advise", "done"),
        ("open-dir", "refused: not-directory"),
        ("readlink", "refused: invalid"),
        ("fd-entries", "refused: not-directory"),
        ("fd-set-size", "refused: not-permitted"),
        ("fd-write", "refused: not-permitted"),
        ("fd-write-stream", "refused: not-permitted"),
        ("fd-append", "refused: not-permitted"),
        ("fd-set-times", "refused: not-permitted"),
    ] {
        let text = client.text(&call(function, "load.json"));
        assert!(text.starts_with(&format!("/system: {says}")), "{function}: {text}");
    }
    for (path, says) in [
        (".", "/system: DescriptorType::Directory"),
        ("nothing", "/system: refused: no-entry"),
        ("load.json/x", "/system: refused: not-directory"),
        ("../proc/self/environ", "/system: refused: not-permitted"),
    ] {
        let text = client.text(&call("stat", path));
        assert!(text.starts_with(says), "{path}: {text}");
    }
    client.close();
}
