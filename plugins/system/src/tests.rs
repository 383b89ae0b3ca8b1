//! Tests of the provider on made-up files of the host.

use belljar_guest::Body;
use serde_json::{Value, json};

use super::*;

struct Machine {
    directory: tempfile::TempDir,
}

impl Machine {
    fn new(files: &[(&str, Value)]) -> Machine {
        let directory = tempfile::tempdir().unwrap();
        for (name, facts) in files {
            std::fs::write(directory.path().join(format!("{name}.json")), facts.to_string()).unwrap();
        }
        Machine { directory }
    }

    fn system(&self) -> System {
        System { facts: self.directory.path().to_owned() }
    }

    fn text(&self, reference: &str) -> String {
        let reading = self.system().read(reference).unwrap();
        assert_eq!(reading.fresh_for, Some(FRESH_FOR), "{reference}");
        let Body::Text(text) = &reading.contents[0].body else { panic!("not text") };
        text.clone()
    }

    fn json(&self, reference: &str) -> Value {
        serde_json::from_str(&self.text(reference)).unwrap()
    }

    fn error(&self, reference: &str) -> String {
        format!("{:?}", self.system().read(reference).unwrap_err())
    }
}

fn process(pid: u32, name: &str, memory: u64, cpu: f64) -> Value {
    json!({ "pid": pid, "parent": 1, "name": name, "state": "sleeping", "user": 0, "threads": 1, "memory": memory, "cpu_seconds": cpu, "started": "2026-01-01T00:00:00Z" })
}

fn busy() -> Machine {
    let processes = [
        process(1, "init", 1 << 20, 9.0),
        process(2, "Postgres", 5 << 30, 70_000.0),
        process(3, "a|b<i>[x](y)", 3 << 10, 0.5),
        process(4, "postgres", 2 << 20, 3.0),
    ];
    Machine::new(&[
        ("processes", json!({ "at": "T", "count": 9, "states": {}, "left_out": 5, "processes": processes })),
        (
            "load",
            json!({ "at": "T", "uptime_seconds": 93784.5, "processors": 4, "load": [0.5, 0.25, 0.1], "threads_running": 1, "threads": 99, "pressure": { "cpu": { "some": { "avg10": 1.5, "avg60": 0.5 } }, "memory": null, "io": null } }),
        ),
        ("memory", json!({ "at": "T", "total": 8u64 << 30, "available": 4u64 << 30, "swap_total": 0, "swap_free": 0 })),
        (
            "disks",
            json!({ "at": "T", "disks": [{ "mount": "/", "type": "ext4", "total": 100, "used": 60, "available": 20, "read_only": false }], "not_asked": [{ "mount": "/far", "type": "nfs4", "why": "far" }], "left_out": 0 }),
        ),
        ("services", json!({ "at": "T", "available": false, "services": [] })),
        (
            "sensors",
            json!({ "at": "T", "sensors": [{ "chip": "c", "name": "Core 0", "quantity": "temperature", "value": 45.0, "unit": "°C", "critical": 90.0 }] }),
        ),
        (
            "network",
            json!({ "at": "T", "interfaces": [{ "name": "lo", "received_bytes": 2048, "received_errors": 1, "sent_errors": 2 }] }),
        ),
        ("containers", json!({ "at": "T", "available": true, "containers": [] })),
    ])
}

#[test]
fn processes_are_selected_and_sorted() {
    let machine = busy();
    let pids = |reference: &str| -> Vec<u64> {
        let found = machine.json(reference);
        found["processes"].as_array().unwrap().iter().map(|one| one["pid"].as_u64().unwrap()).collect()
    };
    assert_eq!(pids("processes"), [2, 4, 1, 3]);
    assert_eq!(pids("processes?sort=cpu"), [2, 1, 4, 3]);
    assert_eq!(pids("processes?sort=name"), [2, 3, 1, 4]);
    assert_eq!(pids("processes?sort=&limit=2"), [2, 4]);
    assert_eq!(pids("processes?name=POST&sort=name"), [2, 4]);
    let one = machine.json("processes?limit=1&name=postgres");
    assert_eq!((&one["count"], &one["matching"], &one["left_out"]), (&9.into(), &2.into(), &5.into()));
    assert_eq!(pids("processes?name=nothing"), [0u64; 0]);
}

#[test]
fn wrong_parameters_are_named() {
    let machine = busy();
    for (reference, says) in [
        ("processes?sort=pid", "\\\"sort\\\" is \\\"pid\\\": expected \\\"memory\\\""),
        ("processes?limit=0", "\\\"limit\\\" is \\\"0\\\": expected a number from 1 to 4096"),
        ("processes?limit=9999", "expected a number"),
        ("processes?user=0", "no parameter \\\"user\\\": expected \\\"sort\\\""),
        ("load?sort=cpu", "no parameter \\\"sort\\\": expected \\\"format\\\""),
        ("load?format=xml", "\\\"format\\\" is \\\"xml\\\""),
        ("load?format=json&format=table", "given twice"),
        ("?format=table", "no parameters"),
    ] {
        let error = machine.error(reference);
        assert!(error.contains(says), "{reference}: {error}");
    }
    for reference in ["environ", "load/", "Load", "..", "../proc/self/environ", "load%2F..%2Fx", "processes.json"] {
        assert_eq!(machine.error(reference), "NotFound", "{reference}");
    }
}

#[test]
fn tables_are_for_people_and_names_cannot_end_a_cell() {
    let machine = busy();
    let table = machine.text("processes?format=table");
    assert!(table.contains("| 2 | Postgres | sleeping | 0 | 1 | 5.0 GiB | 19:26:40 |"), "{table}");
    assert!(table.contains("a\\|b\\<i\\>\\[x\\](y)"), "{table}");
    assert!(table.contains("4 of 4 matching processes, 9 in all") && table.contains("5 more are left out"), "{table}");
    assert!(!table.contains("command"), "{table}");
    let load = machine.text("load?format=table");
    assert!(
        load.contains("| up | 1d 02:03:04 |") && load.contains("for cpu (10, 60 seconds) | 1.5 %, 0.5 % |"),
        "{load}"
    );
    let disks = machine.text("disks?format=table");
    assert!(disks.contains("| 75 % |") && disks.contains("- /far (nfs4): far"), "{disks}");
    assert!(machine.text("network?format=table").contains("| lo | 2.0 KiB |"), "{disks}");
    assert!(machine.text("containers?format=table").contains("none"));
    assert!(machine.text("services?format=table").contains("no cgroup v2"));
    assert!(machine.text("sensors?format=table").contains("45.0 °C"));
    assert!(machine.text("memory?format=table").contains("| available | 4.0 GiB |"));
}

#[test]
fn commands_have_a_column_when_they_are_granted() {
    let mut one = process(7, "sleep", 1, 0.0);
    one["command"] = json!(["sleep", "a|b"]);
    one["command_cut"] = true.into();
    let machine = Machine::new(&[("processes", json!({ "at": "T", "count": 1, "left_out": 0, "processes": [one] }))]);
    let table = machine.text("processes?format=table");
    assert!(table.contains("| sleep a\\|b … |"), "{table}");
}

#[test]
fn only_granted_parts_are_listed_and_the_others_are_denied() {
    let machine = Machine::new(&[("load", json!({ "at": "T", "load": [1, 2, 3] })), ("other", json!({}))]);
    let page = machine.system().list_resources(None).unwrap();
    let listed: Vec<_> = page.resources.iter().map(|one| one.reference.as_str()).collect();
    assert_eq!(listed, ["", "load"]);
    assert!(machine.error("processes").contains("the part \\\"processes\\\" of the system was not granted"));
    let overview = machine.text("");
    assert!(overview.contains("[Load](load): 1 2 3") && !overview.contains("Processes"), "{overview}");
    let nothing = Machine::new(&[]);
    assert!(nothing.error("").contains("no part of the system was granted"));
    assert!(nothing.system().list_resources(None).is_err());
}

#[test]
fn the_overview_has_every_part() {
    let text = busy().text("");
    for says in [
        "up 1d 02:03:04",
        "4.0 GiB of 8.0 GiB available",
        "the fullest: / 75 %",
        "9; the largest: init 1.0 MiB",
        "unknown: this system has no cgroup v2",
        "the hottest: Core 0 45.0 °C, 50 % of critical",
        "[Network](network): 1 interfaces",
        "[Containers](containers): 0 running",
    ] {
        assert!(text.contains(says), "{says}: {text}");
    }
}

#[test]
fn variables_are_completed() {
    let system = busy();
    let complete = |template: &str, name: &str, value: &str| {
        system.system().complete(template, &Argument::new(name, value), &[]).map(|found| found.values)
    };
    assert_eq!(complete(PART, "part", "se").unwrap(), ["services", "sensors"]);
    assert_eq!(complete(PROCESSES, "name", "post").unwrap().len(), 2);
    assert_eq!(complete(PROCESSES, "sort", "c").unwrap(), ["cpu"]);
    assert_eq!(complete(PROCESSES, "format", "").unwrap(), ["json", "table"]);
    assert!(complete(PART, "sort", "").is_err());
}
