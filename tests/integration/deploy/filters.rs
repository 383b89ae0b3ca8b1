//! belljar serves under the filters of system calls that `deploy/` ships: the seccomp profile of containers, and the filter of
//! the unit of systemd. libseccomp makes both filters, as it does for container runtimes and for systemd.

use std::collections::BTreeSet;
use std::fs;
use std::path::Path;

use belljar_tests::{Era, Server, Site, debian, places};
use serde_json::{Value, json};

use super::{command, script, succeeds, text};

/// The action that lets a call through.
const ALLOW: &str = "SCMP_ACT_ALLOW";

/// A site with a mount in the shared worker, and one with a worker of its own. It has no compiled code yet: belljar compiles under
/// the filter, too.
fn site() -> Site {
    let site = Site::new();
    site.mount("clock");
    site.mount("files");
    site.write("notes/plan.md", "# The plan");
    site.config(&format!("[mounts.files]\nfs = {{ \"/notes\" = {:?} }}\n", site.path("notes")));
    site
}

/// Starts belljar over HTTP, under this profile.
fn start_under(python: &Path, site: &Site, profile: &Value) -> Server {
    let profile = site.write("profile.json", profile.to_string());
    let mut command = script(python, "under_profile.py");
    command.arg(profile).arg(places::host()).args(site.arguments(&["serve", "--http", "127.0.0.1:0"]));
    command.env_clear().envs(site.environment()).current_dir(site.path("."));
    Server::start(command)
}

/// The state of the second wall, as the log of a server says it.
fn wall(server: &Server) -> String {
    let log = server.process.stderr();
    let found = log.lines().find_map(|line| line.split_once("second wall: "));
    found.unwrap_or_else(|| panic!("the log does not name the wall:\n{log}")).1.to_owned()
}

/// The number of filters of system calls that a server has.
fn filters(server: &Server) -> u32 {
    let status = fs::read_to_string(format!("/proc/{}/status", server.process.id())).expect("the server runs");
    let count = status.lines().find_map(|line| line.strip_prefix("Seccomp_filters:")).expect("Linux 5.9 or newer");
    count.trim().parse().expect("a number")
}

/// The second wall, and the number of filters, of a belljar without any profile.
fn without_profile() -> (String, u32) {
    let site = site();
    let server = site.http();
    (wall(&server), filters(&server))
}

/// Starts belljar with and without the profile. With it, belljar must have one filter more, the same wall, and serve reads from both
/// workers.
fn serves_under(python: &Path, profile: &Value) {
    let (usual_wall, usual_filters) = without_profile();
    let site = site();
    let server = start_under(python, &site, profile);
    assert_eq!(filters(&server), usual_filters + 1, "the profile is installed");
    assert_eq!(wall(&server), usual_wall, "belljar raises its own wall under the profile");
    for era in Era::ALL {
        let mut client = server.client(era);
        assert!(client.text("belljar://clock/utc").contains("zone: UTC"));
        assert_eq!(client.text("belljar://files/plan.md"), "# The plan");
    }
    let is_full = wall(&server).starts_with("full");
    let ended = server.stop();
    assert!(ended.status.success(), "{}", ended.stderr);
    // A wall that is not full is a warning.
    assert!(!is_full || !ended.stderr.contains(" WARN "), "{}", ended.stderr);
    assert!(!ended.stderr.contains(" ERROR "), "{}", ended.stderr);
}

/// The shipped profile for containers.
fn container_profile() -> Value {
    serde_json::from_str(&text("seccomp.json")).expect("JSON")
}

/// The calls that a profile lets through, with any arguments or with some.
fn allowed_by(profile: &Value) -> BTreeSet<String> {
    let entries = profile["syscalls"].as_array().expect("a list").iter().filter(|entry| entry["action"] == ALLOW);
    let names = entries.flat_map(|entry| entry["names"].as_array().expect("a list"));
    names.map(|name| name.as_str().expect("a name").to_owned()).collect()
}

/// A profile without these calls.
fn without(mut profile: Value, names: &[&str]) -> Value {
    for entry in profile["syscalls"].as_array_mut().expect("a list") {
        entry["names"].as_array_mut().expect("a list").retain(|name| !names.iter().any(|other| name == other));
    }
    profile
}

#[test]
fn belljar_serves_under_the_profile_of_containers() {
    let Some(python) = places::deploy_tool("python") else { return };
    serves_under(&python, &container_profile());
}

#[test]
fn a_call_that_the_profile_lacks_is_noticed() {
    let Some(python) = places::deploy_tool("python") else { return };
    let (usual, _) = without_profile();
    let site = site();
    let server = start_under(&python, &site, &without(container_profile(), &["landlock_restrict_self"]));
    assert!(!usual.contains("Landlock ABI") || wall(&server) != usual, "{}", wall(&server));
}

#[test]
fn the_profile_refuses_what_belljar_never_does() {
    let Some(python) = places::deploy_tool("python") else { return };
    let site = Site::new();
    let profile = site.write("profile.json", container_profile().to_string());
    let under = |program: &str| {
        let mut command = script(&python, "under_profile.py");
        command.arg(&profile).args(["/bin/sh", "-c", program]);
        command
    };
    succeeds(under("true"));
    // A user namespace of its own: the first step of a program that wants more rights.
    let refused = super::fails(under("unshare --user true"));
    assert!(refused.contains("not permitted"), "{refused}");
    let calls = allowed_by(&container_profile());
    for refused in
        ["ptrace", "bpf", "io_uring_setup", "keyctl", "mount", "setns", "unshare", "userfaultfd", "process_vm_readv"]
    {
        assert!(!calls.contains(refused), "{refused}");
    }
}

/// A worker makes other calls with another C library or on another processor. Its own filter lists all of them.
#[test]
fn the_profile_allows_each_call_of_a_worker() {
    let source =
        fs::read_to_string(places::repository().join("host/src/server/worker_wall/calls.rs")).expect("a source");
    let is_end = |character: char| !character.is_ascii_alphanumeric() && character != '_';
    let calls: BTreeSet<_> = source.split("SYS_").skip(1).filter_map(|rest| rest.split(is_end).next()).collect();
    assert!(calls.len() > 60, "{calls:?}");
    let allowed = allowed_by(&container_profile());
    let missing: Vec<_> = calls.iter().filter(|call| !allowed.contains(**call)).collect();
    assert!(missing.is_empty(), "{missing:?}");
}

#[test]
fn belljar_serves_under_the_filter_of_the_unit() {
    let Some(python) = places::deploy_tool("python") else { return };
    let Some(systemd) = places::program(&debian::SYSTEMD) else { return };
    let mut allowed = BTreeSet::new();
    for line in text("systemd/belljar@.service").lines() {
        let Some(value) = line.strip_prefix("SystemCallFilter=") else { continue };
        let (is_denied, words) = value.strip_prefix('~').map_or((false, value), |words| (true, words));
        let named: BTreeSet<String> = words.split(' ').flat_map(|word| calls_of(&systemd, word)).collect();
        if is_denied {
            allowed.retain(|call| !named.contains(call));
        } else {
            allowed.extend(named);
        }
    }
    assert!(allowed.len() > 100, "{allowed:?}");
    let architecture = if cfg!(target_arch = "aarch64") { "SCMP_ARCH_AARCH64" } else { "SCMP_ARCH_X86_64" };
    let profile = json!({
        "defaultAction": "SCMP_ACT_ERRNO",
        "defaultErrnoRet": 1,
        "architectures": [architecture],
        "syscalls": [{ "names": allowed, "action": ALLOW }],
    });
    serves_under(&python, &profile);
}

/// The calls that a word of a filter of systemd stands for: itself, or those of the group of this name.
fn calls_of(systemd: &Path, word: &str) -> Vec<String> {
    if !word.starts_with('@') {
        return vec![word.to_owned()];
    }
    let listed = succeeds(command(systemd, &["--no-pager", "syscall-filter", word]));
    let members =
        listed.lines().map(str::trim).filter(|line| !line.is_empty() && !line.starts_with('#') && *line != word);
    members.flat_map(|member| calls_of(systemd, member)).collect()
}

#[test]
fn systemd_accepts_the_unit() {
    let Some(systemd) = places::program(&debian::SYSTEMD) else { return };
    // The exposure of the unit, times ten, as systemd counts it. The network and writable code count most; belljar needs both.
    const EXPOSURE: &str = "20";
    let site = Site::new();
    // systemd looks for the program.
    let unit = super::replaced(&text("systemd/belljar@.service"), &[("/usr/bin/belljar", "/bin/true")]);
    let verify = |name: &str, unit: &str| {
        let path = site.write(name, unit);
        succeeds(command(&systemd, &["verify", path.to_str().expect("UTF-8")]))
    };
    assert_eq!(verify("belljar@team.service", &unit), "", "systemd has a remark");
    let misspelt = unit.replace("ProtectClock=", "ProtectClok=");
    assert!(verify("belljar@misspelt.service", &misspelt).contains("ProtectClok"));
    let rate = |name: &str| {
        let path = site.path(name);
        let path = path.to_str().expect("UTF-8");
        command(&systemd, &["security", "--no-pager", "--offline=true", "--threshold", EXPOSURE, path])
    };
    succeeds(rate("belljar@team.service"));
    site.write(
        "belljar@open.service",
        unit.replace("CapabilityBoundingSet=\n", "").replace("ProtectSystem=strict\n", ""),
    );
    super::fails(rate("belljar@open.service"));
}
