//! The file for Docker Compose: the schema of the Compose specification accepts it, and what it says agrees with the files that it
//! mounts.

use belljar_tests::{Site, places};
use serde_json::{Value, json};
use toml::Table;

use super::{command, documents, fails, replaced, source, succeeds, text};

/// The services that run belljar.
const BELLJARS: [&str; 3] = ["belljar-1", "belljar-2", "belljar-3"];

/// The files and directories that the operator makes.
const MADE: [&str; 4] = ["./plugins", "./secrets", "./secrets/store-password", "./tls"];

/// The only document of the file. `None` if the tools are missing.
fn compose() -> Option<Value> {
    let python = places::deploy_tool("python")?;
    let mut all = documents(&python, &source("compose/compose.yaml"));
    assert_eq!(all.len(), 1);
    all.pop()
}

fn configuration() -> Table {
    text("compose/belljar.toml").parse().expect("TOML")
}

fn texts(value: &Value) -> Vec<&str> {
    value.as_array().into_iter().flatten().map(|one| one.as_str().expect("a text")).collect()
}

#[test]
fn the_schema_of_compose_accepts_the_file() {
    let Some(check) = places::deploy_tool("check-jsonschema") else { return };
    let accepts = |file: &str| command(&check, &["--builtin-schema", "vendor.compose-spec", file]);
    succeeds(accepts(source("compose/compose.yaml").to_str().expect("UTF-8")));
    let site = Site::new();
    for (old, new) in [("cap_drop:", "cap_drops:"), ("cpus: 1\n", "cpus: [1]\n")] {
        let planted = site.write("compose.yaml", replaced(&text("compose/compose.yaml"), &[(old, new)]));
        fails(accepts(planted.to_str().expect("UTF-8")));
    }
}

#[test]
fn each_service_is_restricted() {
    let Some(compose) = compose() else { return };
    let services = compose["services"].as_object().unwrap();
    assert_eq!(services.len(), BELLJARS.len() + 2);
    for (name, service) in services {
        assert_eq!((&service["read_only"], &service["cap_drop"]), (&json!(true), &json!(["ALL"])), "{name}");
        assert!(texts(&service["security_opt"]).contains(&"no-new-privileges:true"), "{name}");
        assert_eq!(service["user"], "65532:65532", "{name}");
        assert!(service["privileged"].is_null() && service["cap_add"].is_null(), "{name}");
        assert!(["mem_limit", "cpus", "pids_limit"].iter().all(|limit| !service[*limit].is_null()), "{name}");
        for volume in texts(&service["volumes"]) {
            let (from, to) = volume.split_once(':').unwrap();
            assert!(to.ends_with(":ro"), "{name}: {volume}");
            let exists = source("compose").join(from).exists();
            assert!(exists || MADE.contains(&from), "{name}: there is no {from}");
        }
    }
    // Only nginx can be reached from outside of the containers, and only from this machine.
    let published: Vec<_> = services.iter().filter(|(_, service)| !service["ports"].is_null()).collect();
    assert_eq!(published.len(), 1);
    assert_eq!((published[0].0.as_str(), texts(&published[0].1["ports"])), ("nginx", vec!["127.0.0.1:443:443"]));
    for name in BELLJARS {
        assert!(texts(&services[name]["security_opt"]).contains(&"seccomp=../seccomp.json"), "{name}");
    }
    assert!(source("compose").join("../seccomp.json").is_file());
}

#[test]
fn the_services_and_the_configuration_name_the_same_addresses() {
    let Some(compose) = compose() else { return };
    let config = configuration();
    let seconds = |text: &str| text.strip_suffix('s').and_then(|digits| digits.parse::<u64>().ok()).unwrap();
    let delay = seconds(config["serve"]["drain-delay"].as_str().unwrap());
    for name in BELLJARS {
        assert!(seconds(compose["services"][name]["stop_grace_period"].as_str().unwrap()) >= delay + 10, "{name}");
        assert!(text("nginx/belljar.conf").matches(&format!("server {name}:8808 ")).count() == 2, "{name}");
        assert!(text("haproxy/belljar.cfg").contains(&format!("server {name} {name}:8808\n")), "{name}");
    }
    let nginx = &compose["services"]["nginx"]["networks"]["balancer"]["ipv4_address"];
    assert_eq!(config["serve"]["trusted"], toml::Value::from(vec![nginx.as_str().unwrap()]));
    let store = &compose["networks"]["store"];
    assert_eq!(store["internal"], true);
    let subnet = store["ipam"]["config"][0]["subnet"].as_str().unwrap();
    assert_eq!(config["replicas"]["networks"], toml::Value::from(vec![subnet]));
    assert_eq!(config["replicas"]["store"].as_str(), Some("redis://redis:6379"));
    let url = config["serve"]["url"].as_str().unwrap();
    let host = url.strip_prefix("https://").and_then(|rest| rest.strip_suffix("/mcp")).unwrap();
    assert!(text("nginx/belljar.conf").contains(&format!("server_name {host};")));
}
