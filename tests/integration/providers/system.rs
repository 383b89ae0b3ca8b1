//! `plugins/system` over this machine, through the real grant. The figures must be those of `/proc`.

use belljar_tests::{Client, Era, Site, Stdio};
use serde_json::Value;

use crate::grants::system::{ARGUMENT, ENVIRONMENT, Marked};
use crate::providers::support;

const BASE: &str = "belljar://system/";

struct Served {
    site: Site,
    client: Client<Stdio>,
}

fn serve(words: &str) -> Served {
    let site = support::site("system", &format!("system = {words}"));
    let client = site.stdio(Era::Stateless);
    Served { site, client }
}

impl Served {
    fn text(&mut self, reference: &str) -> String {
        self.client.text(&format!("{BASE}{reference}"))
    }

    fn json(&mut self, reference: &str) -> Value {
        support::json(&self.text(reference))
    }

    fn error(&mut self, reference: &str) -> belljar_tests::RpcError {
        self.client.read(&format!("{BASE}{reference}")).unwrap_err()
    }
}

/// A number in kilobytes of `/proc/meminfo`, in bytes.
fn meminfo(field: &str) -> u64 {
    let text = std::fs::read_to_string("/proc/meminfo").unwrap();
    let line = text.lines().find_map(|line| line.strip_prefix(field)).unwrap();
    line.trim_start_matches(':').trim().trim_end_matches("kB").trim().parse::<u64>().unwrap() * 1024
}

#[test]
fn every_part_is_served_as_json_and_as_a_table() {
    let mut served = serve("[\"all\"]");
    for part in ["load", "memory", "disks", "processes", "services", "sensors", "network", "containers"] {
        let facts = served.json(part);
        assert!(facts["at"].is_string(), "{part}: {facts}");
        let table = served.text(&format!("{part}?format=table"));
        assert!(table.starts_with("# ") && table.contains("as of "), "{part}: {table}");
    }
    assert_eq!(served.json("memory")["total"], meminfo("MemTotal"));
    let processors = std::fs::read_to_string("/proc/stat").unwrap();
    let processors = processors.lines().filter(|line| line.starts_with("cpu") && !line.starts_with("cpu ")).count();
    assert_eq!(served.json("load")["processors"], processors);
    let network = std::fs::read_to_string("/proc/net/dev").unwrap();
    let interfaces = served.json("network")["interfaces"].as_array().unwrap().len();
    assert_eq!(interfaces, network.lines().count() - 2);
    let overview = served.text("");
    assert!(overview.contains("[Memory](memory):") && overview.contains("[Processes](processes):"), "{overview}");
    assert_eq!(served.client.uris().len(), 9);
}

#[test]
fn processes_are_selected_and_their_arguments_need_a_grant() {
    let marked = Marked::start();
    let mut served = serve("[\"processes\"]");
    let found = served.json("processes?limit=4096&sort=name&name=SH");
    let own = found["processes"].as_array().unwrap().iter().find(|one| one["pid"] == marked.pid()).cloned();
    assert_eq!(own.unwrap()["name"], "sh");
    let names: Vec<_> = found["processes"].as_array().unwrap().iter().map(|one| one["name"].to_string()).collect();
    assert!(names.is_sorted() && names.iter().all(|name| name.to_lowercase().contains("sh")), "{names:?}");
    let few = served.json("processes?limit=2");
    assert_eq!(few["processes"].as_array().unwrap().len(), 2);
    let memory = |at: usize| few["processes"][at]["memory"].as_u64().unwrap();
    assert!(memory(0) >= memory(1), "{few}");
    let table = served.text("processes?format=table&limit=4096");
    assert!(!table.contains(ARGUMENT) && !table.contains(ENVIRONMENT), "{table}");

    let mut served = serve("[\"processes\", \"command-lines\"]");
    let table = served.text("processes?format=table&limit=4096");
    assert!(table.contains(ARGUMENT) && !table.contains(ENVIRONMENT), "{table}");
}

#[test]
fn what_was_not_granted_is_denied_with_the_cure_and_wrong_parameters_are_named() {
    let mut served = serve("[\"load\"]");
    let refused = served.error("disks");
    assert_eq!(refused.data["kind"], "denied", "{refused}");
    assert!(refused.data["hint"].as_str().unwrap().contains("belljar grant system --system disks"), "{refused}");
    assert!(served.error("load?sort=cpu").to_string().contains("no parameter \\\"sort\\\""));
    assert_eq!(served.error("environ").data["kind"], "not-found");
    let listed = served.client.uris();
    assert_eq!(listed, [BASE.to_owned(), format!("{BASE}load")]);
    let checked = served.site.run(&["check"]);
    assert!(checked.status.success(), "{checked:?}");

    let site = support::site("system", "");
    let mut client = site.stdio(Era::Stateless);
    let refused = client.read(&format!("{BASE}load")).unwrap_err();
    assert_eq!(refused.data["kind"], "denied", "{refused}");
    assert!(refused.data["hint"].as_str().unwrap().contains("belljar grant system --system all"), "{refused}");
}

#[test]
fn an_answer_is_fresh_for_a_second() {
    let mut served = serve("[\"load\"]");
    let first = served.json("load")["at"].clone();
    let began = std::time::Instant::now();
    let again = served.json("load")["at"].clone();
    assert!(again == first || began.elapsed().as_millis() > 900);
    std::thread::sleep(std::time::Duration::from_millis(2200));
    assert_ne!(served.json("load")["at"], first);
}
