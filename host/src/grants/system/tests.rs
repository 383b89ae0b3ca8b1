//! Tests of the grant on made-up trees of `proc` and `sys`: what is shown, what is never shown, and how often it is
//! collected.

use std::path::Path;
use std::sync::Arc;

use serde_json::Value;

use super::config::SystemConfig;
use super::directory::SystemDirectory;
use super::name::System;
use super::parts::SystemPart;
use super::root::SystemRoot;
use super::snapshots::SystemSnapshots;
use crate::grants::ambient::Ambient;
use crate::grants::edit::{EditDirectories, GrantArgs};
use crate::grants::editor::GrantEditor as _;
use crate::grants::grant::Grant;
use crate::grants::memory_directory::{MemoryDirectory as _, MemoryFileError};
use crate::grants::network_handover::{MemoryHandover, NetworkHandover};

const STAT: &str = "cpu  100 0 50 1000 5 0 1 0 0 0\ncpu0 100 0 50 1000 5 0 1 0 0 0\nintr 0\nctxt 9\nbtime 1700000000\nprocesses 77\nprocs_running 2\nprocs_blocked 1\n";

/// The environment of a made-up process. No file may ever contain it.
const ENVIRONMENT: &str = "TOKEN=never-shown";

fn write(root: &Path, file: &str, contents: impl AsRef<[u8]>) {
    let path = root.join(file);
    std::fs::create_dir_all(path.parent().unwrap()).unwrap();
    std::fs::write(path, contents).unwrap();
}

/// Adds a process with this name and these arguments. `pages`: its memory.
fn process(root: &Path, pid: u32, name: &[u8], arguments: &[u8], pages: u64) {
    let rest = format!(
        ") S 1 {pid} {pid} 0 -1 4194560 10 0 0 0 250 50 0 0 20 0 3 0 1000 5000000 {pages} 18446744073709551615 1 1 0 0 0 0 0 0 0 0 0 0 17 0 0 0 0 0 0 0 0 0 0 0 0 0 0\n"
    );
    let stat = [format!("{pid} (").as_bytes(), name, rest.as_bytes()].concat();
    write(root, &format!("proc/{pid}/stat"), stat);
    write(root, &format!("proc/{pid}/status"), "Name:\tx\nUid:\t1000\t0\t0\t0\n");
    write(root, &format!("proc/{pid}/cmdline"), arguments);
    write(root, &format!("proc/{pid}/environ"), ENVIRONMENT);
}

fn tree() -> tempfile::TempDir {
    let temp = tempfile::tempdir().unwrap();
    let root = temp.path();
    write(root, "proc/stat", STAT);
    write(root, "proc/loadavg", "0.50 0.25 0.10 2/345 9999\n");
    write(root, "proc/uptime", "3600.50 7000.00\n");
    write(
        root,
        "proc/pressure/cpu",
        "some avg10=1.50 avg60=0.75 avg300=0.10 total=5\nfull avg10=0.00 avg60=0.00 avg300=0.00 total=0\n",
    );
    let fields = [
        "MemTotal",
        "MemFree",
        "MemAvailable",
        "Buffers",
        "Cached",
        "SwapCached",
        "Active",
        "Inactive",
        "SwapTotal",
        "SwapFree",
        "Dirty",
        "Writeback",
        "AnonPages",
        "Mapped",
        "Shmem",
        "Slab",
        "SReclaimable",
        "SUnreclaim",
        "KernelStack",
        "PageTables",
        "NFS_Unstable",
        "Bounce",
        "WritebackTmp",
        "CommitLimit",
        "Committed_AS",
        "VmallocTotal",
        "VmallocUsed",
        "VmallocChunk",
    ];
    write(root, "proc/meminfo", fields.map(|field| format!("{field}:  1000 kB\n")).concat());
    write(
        root,
        "proc/self/mountinfo",
        format!(
            "20 1 0:4 / /proc rw - proc proc rw\n21 1 8:1 / {0} rw,relatime - ext4 /dev/sda1 rw\n22 1 8:1 /sub {0}/bound rw - ext4 /dev/sda1 rw\n23 1 0:50 / /far rw - nfs4 host:/share rw\n24 1 0:51 / /gone rw - xfs /dev/sdb rw\n25 1 0:52 / /gone rw - tmpfs none rw\n",
            root.display()
        ),
    );
    write(
        root,
        "proc/self/net/dev",
        "Inter-|   Receive\n face |bytes\n  eth0: 1000 10 1 2 0 0 0 0 500 5 3 4 0 0 0 0\n    lo: 7 1 0 0 0 0 0 0 7 1 0 0 0 0 0 0\n",
    );
    process(root, 7, b"small", b"/bin/small\0--one\0", 1);
    process(root, 8, b"b\x1b[31m\xff)\n(x", b"/bin/odd\0\xff\xfe\x07\0", 90);
    process(root, 9, b"kthread", b"", 0);
    process(root, 10, b"talkative", &[b'a'; 100_000], 40);
    write(root, "sys/fs/cgroup/cgroup.controllers", "cpu memory pids\n");
    let id = "0123456789abcdef".repeat(4);
    for (group, memory) in [
        ("system.slice", "1"),
        ("system.slice/web.service", "4096"),
        ("user.slice/user-1.slice/user@1.service", "5000"),
        ("user.slice/user-1.slice/user@1.service/app.slice/agent.service", "100"),
        (&format!("system.slice/docker-{id}.scope"), "777"),
    ] {
        write(root, &format!("sys/fs/cgroup/{group}/cgroup.procs"), "7\n8\n");
        write(root, &format!("sys/fs/cgroup/{group}/memory.current"), format!("{memory}\n"));
        write(root, &format!("sys/fs/cgroup/{group}/cpu.stat"), "usage_usec 2500000\nuser_usec 1\n");
    }
    for group in ["user.slice", "user.slice/user-1.slice", "user.slice/user-1.slice/user@1.service/app.slice"] {
        write(root, &format!("sys/fs/cgroup/{group}/cgroup.procs"), "");
    }
    write(root, "sys/class/hwmon/hwmon0/name", "coretemp\n");
    write(root, "sys/class/hwmon/hwmon0/temp1_input", "45000\n");
    write(root, "sys/class/hwmon/hwmon0/temp1_label", "Core 0\n");
    write(root, "sys/class/hwmon/hwmon0/temp1_crit", "100000\n");
    write(root, "sys/class/hwmon/hwmon0/fan2_input", "1200\n");
    write(root, "sys/class/hwmon/hwmon0/intrusion0_alarm", "1\n");
    write(root, "sys/class/thermal/thermal_zone0/type", "acpitz\n");
    write(root, "sys/class/thermal/thermal_zone0/temp", "27800\n");
    temp
}

fn config(words: &[&str]) -> SystemConfig {
    serde_json::from_value(serde_json::json!(words)).unwrap()
}

fn directory(root: &Path, words: &[&str]) -> SystemDirectory {
    SystemDirectory { granted: config(words), snapshots: Arc::new(SystemSnapshots::new(SystemRoot::at(root))) }
}

fn text(directory: &SystemDirectory, name: &str) -> String {
    String::from_utf8(directory.open(name, true).unwrap().bytes.to_vec()).unwrap()
}

fn json(directory: &SystemDirectory, name: &str) -> Value {
    serde_json::from_str(&text(directory, name)).unwrap()
}

#[test]
fn every_part_is_collected() {
    let temp = tree();
    let all = directory(temp.path(), &["all"]);
    assert_eq!(all.names().len(), 8);
    let load = json(&all, "load.json");
    assert_eq!((&load["load"], &load["processors"]), (&serde_json::json!([0.5, 0.25, 0.1]), &1.into()), "{load}");
    assert_eq!(load["pressure"]["cpu"]["some"]["avg10"], 1.5, "{load}");
    assert_eq!(load["pressure"]["io"], Value::Null, "{load}");
    assert_eq!(load["uptime_seconds"], 3600.5, "{load}");
    assert_eq!(json(&all, "memory.json")["total"], 1000 * 1024);
    let disks = json(&all, "disks.json");
    assert_eq!(disks["disks"].as_array().unwrap().len(), 1, "one device has one entry: {disks}");
    assert_eq!(disks["disks"][0]["mount"], temp.path().display().to_string(), "{disks}");
    assert!(disks["disks"][0]["total"].as_u64().unwrap() > 0, "{disks}");
    let not_asked: Vec<_> = disks["not_asked"].as_array().unwrap().iter().map(|one| one["mount"].clone()).collect();
    assert_eq!(not_asked, ["/far", "/gone"], "{disks}");
    let network = json(&all, "network.json");
    assert_eq!(network["interfaces"][0]["sent_errors"], 3, "{network}");
    assert_eq!(network["interfaces"][1]["name"], "lo", "{network}");
    let services = json(&all, "services.json");
    let names: Vec<_> = services["services"].as_array().unwrap().iter().map(|one| one["name"].clone()).collect();
    assert_eq!(names, ["agent.service", "user@1.service", "web.service"], "{services}");
    assert_eq!(services["services"][2]["memory"], 4096, "{services}");
    assert_eq!(services["services"][2]["cpu_seconds"], 2.5, "{services}");
    assert_eq!(services["services"][2]["processes"], 2, "{services}");
    let containers = json(&all, "containers.json");
    assert_eq!(containers["containers"][0]["runtime"], "docker", "{containers}");
    assert_eq!(containers["containers"][0]["memory"], 777, "{containers}");
    let sensors = json(&all, "sensors.json");
    let of = |at: usize, key: &str| sensors["sensors"][at][key].clone();
    assert_eq!((of(0, "name"), of(0, "value"), of(0, "unit")), ("fan2".into(), 1200.0.into(), "rpm".into()));
    assert_eq!((of(1, "name"), of(1, "value"), of(1, "critical")), ("Core 0".into(), 45.0.into(), 100.0.into()));
    assert_eq!((of(2, "name"), of(2, "value")), ("acpitz".into(), 27.8.into()));
}

#[test]
fn processes_are_sorted_by_memory_and_their_names_are_harmless() {
    let temp = tree();
    let all = directory(temp.path(), &["all"]);
    let processes = json(&all, "processes.json");
    assert_eq!((&processes["count"], &processes["left_out"]), (&4.into(), &0.into()), "{processes}");
    let list = processes["processes"].as_array().unwrap();
    let pids: Vec<_> = list.iter().map(|one| one["pid"].as_i64().unwrap()).collect();
    assert_eq!(pids, [8, 10, 7, 9]);
    assert_eq!(list[0]["name"], "b\u{fffd}[31m\u{fffd})\u{fffd}(x");
    assert_eq!(
        (&list[2]["user"], &list[2]["threads"], &list[2]["state"]),
        (&1000.into(), &3.into(), &"sleeping".into())
    );
    assert!(list[2]["started"].as_str().unwrap().starts_with("2023-11-14T22:13:"), "{processes}");
    assert!(list.iter().all(|one| one.get("command").is_none()), "{processes}");
}

#[test]
fn arguments_are_shown_only_when_granted_and_environments_never() {
    let temp = tree();
    let (plain, with) = (directory(temp.path(), &["all"]), directory(temp.path(), &["processes", "command-lines"]));
    assert!(!text(&plain, "processes.json").contains("--one"));
    let processes = json(&with, "processes.json");
    let list = processes["processes"].as_array().unwrap();
    assert_eq!(list[2]["command"], serde_json::json!(["/bin/small", "--one"]));
    assert_eq!(list[0]["command"], serde_json::json!(["/bin/odd", "\u{fffd}\u{fffd}\u{fffd}"]));
    assert_eq!((&list[1]["command_cut"], list[1]["command"][0].as_str().unwrap().len()), (&true.into(), 512));
    assert_eq!((&list[3]["command"], &list[3]["command_cut"]), (&serde_json::json!([]), &false.into()));
    for (directory, names) in [(&plain, plain.names()), (&with, with.names())] {
        for name in names {
            assert!(!text(directory, name).contains("never-shown"), "{name}");
        }
    }
}

#[test]
fn what_is_not_granted_does_not_exist_and_has_a_cure() {
    let temp = tree();
    let some = directory(temp.path(), &["load", "disks"]);
    assert_eq!(some.names(), ["disks.json", "load.json"]);
    for name in ["processes.json", "memory.json"] {
        assert_eq!(some.open(name, true).unwrap_err(), MemoryFileError::NotGranted, "{name}");
    }
    let cure = some.cure("box", "processes.json").unwrap();
    assert!(cure.ends_with("run: belljar grant box --system processes"), "{cure}");
    assert!(cure.contains("system = [\"processes\"]"), "{cure}");
    for name in ["", "load", "environ", "self", "../proc/stat", "load.json/"] {
        assert_eq!(some.open(name, true).unwrap_err(), MemoryFileError::Absent, "{name}");
        assert_eq!(some.cure("box", name), None);
    }
}

#[test]
fn a_part_is_collected_once_a_second_for_all_readers() {
    let temp = tree();
    let snapshots = Arc::new(SystemSnapshots::new(SystemRoot::at(temp.path())));
    assert_eq!(snapshots.get(SystemPart::Load, false).unwrap_err(), MemoryFileError::NeedsThread);
    let first = snapshots.get(SystemPart::Load, true).unwrap();
    write(temp.path(), "proc/loadavg", "9.00 9.00 9.00 1/1 1\n");
    let began = std::time::Instant::now();
    let readers: Vec<_> = (0..8)
        .map(|_| {
            let own = Arc::clone(&snapshots);
            std::thread::spawn(move || own.get(SystemPart::Load, true).unwrap())
        })
        .collect();
    for reader in readers {
        let read = reader.join().unwrap();
        // On a machine that stalls for a second, a new collection is right.
        assert!(Arc::ptr_eq(&first, &read) || began.elapsed().as_millis() > 900);
    }
    std::thread::sleep(std::time::Duration::from_millis(1100));
    assert_eq!(snapshots.get(SystemPart::Load, false).unwrap_err(), MemoryFileError::NeedsThread);
    let later = snapshots.get(SystemPart::Load, true).unwrap();
    assert!(String::from_utf8_lossy(&later.bytes).contains("9.0"));
    assert!(later.modified > first.modified);
}

#[test]
fn a_system_without_the_files_says_so() {
    let temp = tempfile::tempdir().unwrap();
    let all = directory(temp.path(), &["all"]);
    for name in ["load.json", "memory.json", "disks.json", "processes.json", "network.json"] {
        let MemoryFileError::Unavailable(why) = all.open(name, true).unwrap_err() else { panic!("{name}") };
        assert!(why.contains("cannot be read"), "{why}");
    }
    assert_eq!(json(&all, "services.json")["available"], false);
    assert_eq!(json(&all, "containers.json")["available"], false);
    assert_eq!(json(&all, "sensors.json")["sensors"], serde_json::json!([]));
    write(temp.path(), "proc/meminfo", "nonsense");
    std::thread::sleep(std::time::Duration::from_millis(1100));
    let MemoryFileError::Unavailable(why) = all.open("memory.json", true).unwrap_err() else { panic!() };
    assert!(why.contains("unknown form"), "{why}");
}

#[test]
fn this_machine_is_described() {
    let all = directory(Path::new("/"), &["all", "command-lines"]);
    for name in all.names() {
        let facts = json(&all, name);
        assert!(facts["at"].as_str().unwrap().ends_with('Z'), "{name}: {facts}");
    }
    let processes = json(&all, "processes.json");
    let own = i64::from(std::process::id());
    let own = processes["processes"].as_array().unwrap().iter().find(|one| one["pid"] == own).unwrap().clone();
    assert!(own["memory"].as_u64().unwrap() > 0 && !own["command"].as_array().unwrap().is_empty(), "{own}");
}

#[test]
fn unknown_and_incomplete_grants_are_refused() {
    let wrong = serde_json::from_value::<SystemConfig>(serde_json::json!(["procs"])).unwrap_err().to_string();
    assert!(wrong.contains("unknown part \"procs\"; expected \"all\", \"load\""), "{wrong}");
    assert!(wrong.contains("or \"command-lines\""), "{wrong}");
    let configure = |words: &[&str]| System::configure(&config(words), &Ambient::default());
    let only = configure(&["command-lines"]).err().unwrap().to_string();
    assert!(only.contains("grant \"processes\" too"), "{only}");
    assert!(System::is_granted(&configure(&["all"]).unwrap()) && !System::is_granted(&configure(&[]).unwrap()));
    assert!(config(&["all"]).has(SystemPart::Load) && !config(&["all"]).has(SystemPart::CommandLines));
    assert!(!config(&[]).has(SystemPart::Load));
}

#[test]
fn grants_are_edited_in_place() {
    let mut file: toml_edit::DocumentMut = "[m]\n# why\nsystem = [\"load\"] # here\n".parse().unwrap();
    let mount = file["m"].as_table_like_mut().unwrap();
    let args = |value: &str| GrantArgs { value: value.to_owned(), ..GrantArgs::default() };
    let directories = EditDirectories::default();
    System::grant(mount, &args("processes"), &directories).unwrap();
    System::grant(mount, &args("load"), &directories).unwrap();
    let error = System::grant(mount, &args("environ"), &directories).unwrap_err().to_string();
    assert!(error.contains("unknown part \"environ\""), "{error}");
    assert_eq!(file.to_string(), "[m]\n# why\nsystem = [\"load\", \"processes\"] # here\n");
    let mount = file["m"].as_table_like_mut().unwrap();
    let absent = System::revoke(mount, "disks").unwrap_err().to_string();
    assert!(absent.contains("disks"), "{absent}");
    System::revoke(mount, "load").unwrap();
    System::revoke(mount, "processes").unwrap();
    assert!(!file.to_string().contains("system"), "{file}");
}

#[test]
fn only_the_files_of_granted_parts_are_opened_in_the_second_wall() {
    let paths = |words: &[&str]| {
        let found = System::kernel_paths(&config(words)).into_iter();
        found.map(|path| path.display().to_string()).collect::<Vec<_>>()
    };
    assert_eq!(paths(&["memory"]), ["/proc/meminfo"]);
    assert_eq!(paths(&["services", "containers"]), ["/sys/fs/cgroup"]);
    assert!(!paths(&["load", "memory", "disks", "network", "sensors"]).contains(&"/proc".to_owned()));
    assert!(paths(&["all"]).contains(&"/proc".to_owned()));
    assert!(paths(&[]).is_empty());
}

#[test]
fn a_worker_process_knows_the_files_and_asks_the_front_for_them() {
    let directories = vec![MemoryHandover { kind: "system".to_owned(), names: vec!["load.json".to_owned()] }];
    let handover = NetworkHandover { directories, ..NetworkHandover::default() };
    let mount = <System as Grant>::MountState::of_worker(&handover);
    assert!(System::is_granted(&mount));
    let directory = System::memory_directories(&mount).remove(0);
    assert_eq!((directory.guest(), directory.names()), ("/system", vec!["load.json"]));
    for (name, error) in [
        ("load.json", MemoryFileError::NeedsThread),
        ("disks.json", MemoryFileError::NotGranted),
        ("x", MemoryFileError::Absent),
    ] {
        assert_eq!(directory.open(name, true).unwrap_err(), error, "{name}");
    }
    let temp = tree();
    let local = self::directory(temp.path(), &["load"]);
    assert_eq!(directory.cure("m", "disks.json"), local.cure("m", "disks.json"));
    assert!(!System::is_granted(&<System as Grant>::MountState::of_worker(&NetworkHandover::default())));
}
