//! Values that several files of `deploy/` share must agree: ports, times, names, files. And belljar itself accepts each
//! configuration.

use std::collections::BTreeSet;
use std::fs::{self, Permissions};
use std::io::{Read as _, Write as _};
use std::net::{SocketAddr, TcpStream};
use std::os::unix::fs::{PermissionsExt as _, symlink};
use std::path::Path;

use belljar_tests::{Site, places, wait_until};
use serde_json::Value;
use toml::Table;

use super::manifests::{KUSTOMIZATIONS, rendered};
use super::{documents, fails, replaced, source, succeeds, text, write_secrets};
use crate::support::{empty, stdout_and_stderr};

/// The longest call of the default limits, in seconds: `time` of `[limits.tools]`.
const LONGEST_CALL: u64 = 30;

/// The time that belljar may take after its drain delay until it ends, in seconds, and some more.
const LAST_STEPS: u64 = 10;

/// The documents of one kustomization.
struct Manifests(Vec<Value>);

impl Manifests {
    /// The only document of this kind with this name. Names of generated documents end with a digest.
    fn get(&self, kind: &str, name: &str) -> &Value {
        let is_named = |found: &str| {
            let suffix = found.strip_prefix(name).unwrap_or("?");
            suffix.is_empty() || (suffix.len() == 11 && suffix.starts_with('-'))
        };
        let mut all = self.0.iter().filter(|one| one["kind"] == kind && is_named(string(&one["metadata"]["name"])));
        let first = all.next().unwrap_or_else(|| panic!("no {kind} \"{name}\""));
        assert!(all.next().is_none(), "two of {kind} \"{name}\"");
        first
    }

    fn has(&self, kind: &str) -> bool {
        self.0.iter().any(|one| one["kind"] == kind)
    }

    /// The specification of the pods of belljar.
    fn pod(&self) -> &Value {
        &self.get("Deployment", "belljar")["spec"]["template"]["spec"]
    }

    fn container(&self) -> &Value {
        let all = list(&self.pod()["containers"]);
        assert_eq!(all.len(), 1);
        &all[0]
    }

    /// The configuration of belljar.
    fn config(&self) -> Table {
        string(&self.get("ConfigMap", "belljar-config")["data"]["belljar.toml"]).parse().expect("TOML")
    }
}

/// The manifests of each kustomization, in the order of [`KUSTOMIZATIONS`]. `None` if the tools are missing.
fn manifests() -> Option<[Manifests; 4]> {
    let (kubectl, python) = (places::deploy_tool("kubectl")?, places::deploy_tool("python")?);
    let site = Site::new();
    let all: Vec<_> = rendered(&kubectl, &site).iter().map(|file| Manifests(documents(&python, file))).collect();
    Some(all.try_into().unwrap_or_else(|_| panic!("{} kustomizations", KUSTOMIZATIONS.len())))
}

fn string(value: &Value) -> &str {
    value.as_str().unwrap_or_else(|| panic!("no text: {value}"))
}

fn list(value: &Value) -> &[Value] {
    value.as_array().unwrap_or_else(|| panic!("no list: {value}"))
}

/// A time such as "40s", in seconds.
fn seconds(text: &str) -> u64 {
    let number = text.strip_suffix('s').and_then(|digits| digits.parse().ok());
    number.unwrap_or_else(|| panic!("no time in seconds: {text}"))
}

/// The port of an address.
fn port(address: &toml::Value) -> u64 {
    let (_, port) = address.as_str().and_then(|text| text.rsplit_once(':')).expect("an address with a port");
    port.parse().expect("a number")
}

/// The delay of a configuration, in seconds.
fn drain_delay(config: &Table) -> u64 {
    seconds(config["serve"]["drain-delay"].as_str().expect("a text"))
}

#[test]
fn a_pod_ends_no_call_early() {
    let Some(all) = manifests() else { return };
    for manifests in &all {
        let delay = drain_delay(&manifests.config());
        let probe = &manifests.container()["readinessProbe"];
        let notice = probe["periodSeconds"].as_u64().unwrap() * probe["failureThreshold"].as_u64().unwrap();
        assert!(delay >= notice + LONGEST_CALL, "a delay of {delay} s, noticed after {notice} s");
        let grace = manifests.pod()["terminationGracePeriodSeconds"].as_u64().unwrap();
        assert!(grace >= delay + LAST_STEPS, "{grace} s for a delay of {delay} s");
    }
}

#[test]
fn a_pod_has_the_ports_and_files_that_its_configuration_names() {
    let Some(all) = manifests() else { return };
    for manifests in &all {
        let (config, container) = (manifests.config(), manifests.container());
        let ports: BTreeSet<_> = list(&container["ports"]).iter().map(|one| one["containerPort"].as_u64()).collect();
        let served = [&config["serve"]["http"], &config["admin"]["probes"]].map(|address| Some(port(address)));
        assert_eq!(ports, BTreeSet::from(served));
        let names: BTreeSet<_> = list(&container["ports"]).iter().map(|one| string(&one["name"])).collect();
        for probe in ["startupProbe", "readinessProbe", "livenessProbe"] {
            assert!(names.contains(string(&container[probe]["httpGet"]["port"])), "{probe}");
        }
        for service in ["belljar", "belljar-metrics"] {
            for port in list(&manifests.get("Service", service)["spec"]["ports"]) {
                assert!(names.contains(string(&port["targetPort"])), "{service}");
            }
        }
        let policy = &manifests.get("NetworkPolicy", "belljar")["spec"];
        let opened = list(&policy["ingress"]).iter().flat_map(|rule| list(&rule["ports"]));
        assert_eq!(opened.map(|one| one["port"].as_u64()).collect::<BTreeSet<_>>(), BTreeSet::from(served));

        // The configuration and its secrets are in one directory.
        let volumes = list(&manifests.pod()["volumes"]);
        let projected = list(&volumes.iter().find(|one| one["name"] == "config").unwrap()["projected"]["sources"]);
        let files: BTreeSet<String> = projected
            .iter()
            .flat_map(|one| match (&one["configMap"]["name"], &one["secret"]["name"], &one["secret"]["items"]) {
                (Value::String(name), ..) => keys(&manifests.get("ConfigMap", name)["data"]),
                (_, name, Value::Array(items)) => {
                    let has = keys(&manifests.get("Secret", string(name))["data"]);
                    assert!(items.iter().all(|item| has.iter().any(|key| item["key"] == key.as_str())), "{items:?}");
                    items.iter().map(|item| string(&item["path"]).to_owned()).collect()
                }
                (_, name, _) => keys(&manifests.get("Secret", string(name))["data"]),
            })
            .collect();
        let named = [config["replicas"].get("key"), config["admin"].get("metrics-token")];
        let mut named: BTreeSet<_> = named.iter().flatten().map(|file| file.as_str().unwrap().to_owned()).collect();
        named.extend(["belljar.toml", "keys.toml"].map(str::to_owned));
        let secrets = config.get("secrets").and_then(toml::Value::as_table).into_iter().flatten();
        named.extend(secrets.map(|(_, secret)| secret["file"].as_str().unwrap().to_owned()));
        assert_eq!(files, named);
        assert!(container.get("env").is_none(), "each process of the pod could read a secret in a variable");

        let mounted: Vec<_> = list(&container["volumeMounts"]).iter().collect();
        let mount_of = |path: &toml::Value| {
            let path = Path::new(path.as_str().unwrap());
            // belljar wants directories that nobody else can use. The root of an emptyDir is open to its group.
            mounted.iter().find(|one| path.parent() == Some(Path::new(string(&one["mountPath"])))).expect("a volume")
        };
        assert_eq!(mount_of(&config["plugins"])["readOnly"], true);
        assert!(["cache", "state"].iter().all(|key| mount_of(&config[*key])["readOnly"] != true));
        assert_eq!(string(&list(&container["args"])[2]), "/etc/belljar/belljar.toml");
    }
}

/// The keys of an object.
fn keys(object: &Value) -> Vec<String> {
    object.as_object().expect("an object").keys().cloned().collect()
}

#[test]
fn each_overlay_is_what_it_says() {
    let Some([base, ingress, minimal, redis]) = manifests() else { return };
    for (manifests, has_monitoring) in [(&base, true), (&ingress, true), (&minimal, false), (&redis, true)] {
        assert_eq!(manifests.has("HorizontalPodAutoscaler"), has_monitoring);
        assert_eq!(manifests.has("ServiceMonitor"), has_monitoring);
        // The autoscaler sets the number.
        assert_eq!(manifests.get("Deployment", "belljar")["spec"]["replicas"].is_null(), has_monitoring);
        let image = string(&manifests.container()["image"]);
        assert!(image.ends_with(&format!(":{}", env!("CARGO_PKG_VERSION"))), "{image}");
    }
    assert!(minimal.config()["replicas"].get("store").is_none());

    // The store of the overlay is the one that the base names, and its policy lets belljar in.
    let service = redis.get("Service", "belljar-redis");
    let host = format!(
        "{}.{}.svc.cluster.local",
        string(&service["metadata"]["name"]),
        string(&service["metadata"]["namespace"])
    );
    let url = format!("redis://{host}:{}", service["spec"]["ports"][0]["port"]);
    assert_eq!(redis.config()["replicas"]["store"].as_str(), Some(url.as_str()));
    let selector = &service["spec"]["selector"];
    let egress = &redis.get("NetworkPolicy", "belljar")["spec"]["egress"][1];
    assert_eq!(&egress["to"][0]["podSelector"]["matchLabels"], selector);
    let policy = &redis.get("NetworkPolicy", "belljar-redis")["spec"];
    assert_eq!(&policy["podSelector"]["matchLabels"], selector);
    let belljar = &redis.get("Service", "belljar")["spec"]["selector"];
    assert_eq!(&policy["ingress"][0]["from"][0]["podSelector"]["matchLabels"], belljar);
    let user = redis.config()["replicas"]["user"].as_str().map(str::to_owned).unwrap();
    assert!(text("kubernetes/overlays/redis/start.sh").contains(&format!("\"user {user} on ")));

    let spec = &ingress.get("Ingress", "belljar")["spec"];
    let url = ingress.config()["serve"]["url"].as_str().map(str::to_owned).unwrap();
    assert_eq!(url, format!("https://{}/mcp", string(&spec["rules"][0]["host"])));
    assert_eq!(spec["rules"][0]["host"], spec["tls"][0]["hosts"][0]);
}

#[test]
fn the_autoscaler_and_prometheus_find_what_they_name() {
    let Some([base, ..]) = manifests() else { return };
    let python = places::deploy_tool("python").unwrap();
    let rule = &documents(&python, &source("kubernetes/prometheus-adapter.yaml"))[0]["rules"]["custom"][0];
    let autoscaler = &base.get("HorizontalPodAutoscaler", "belljar")["spec"];
    assert_eq!(autoscaler["metrics"][0]["pods"]["metric"]["name"], rule["name"]["as"]);
    assert_eq!(autoscaler["scaleTargetRef"]["name"], base.get("Deployment", "belljar")["metadata"]["name"]);
    assert!(autoscaler["minReplicas"].as_u64() >= Some(2));
    // The series that the rule names are in the metrics of a real belljar.
    let site = empty();
    site.config("[admin]\nlisten = \"127.0.0.1:0\"\n");
    let server = site.http();
    let admin = wait_until("the address of the console", || {
        let log = server.process.stderr();
        let (_, rest) = log.split_once("the console is at http://").ok_or_else(|| log.clone())?;
        rest.split('/').next().and_then(|address| address.parse().ok()).ok_or(log)
    });
    let metrics = get(admin, "/metrics");
    let words = string(&rule["seriesQuery"]).split('{').chain(string(&rule["metricsQuery"]).split(['(', '{']));
    let series: BTreeSet<_> = words.filter(|word| word.starts_with("belljar_")).collect();
    assert_eq!(series, BTreeSet::from(["belljar_turns_limit", "belljar_turns_used"]));
    for name in series {
        assert!(metrics.lines().any(|line| line.starts_with(&format!("{name} "))), "no {name} in:\n{metrics}");
    }
    let endpoint = &base.get("ServiceMonitor", "belljar")["spec"]["endpoints"][0];
    let service = base.get("Service", "belljar-metrics");
    assert_eq!(endpoint["port"], service["spec"]["ports"][0]["name"]);
    let selected = &base.get("ServiceMonitor", "belljar")["spec"]["selector"]["matchLabels"];
    assert!(selected.as_object().unwrap().iter().all(|(label, value)| &service["metadata"]["labels"][label] == value));
    let credentials = &endpoint["authorization"]["credentials"];
    let secret = base.get("Secret", "belljar-metrics");
    assert_eq!(credentials["name"], secret["metadata"]["name"], "the name with the digest");
    assert!(secret["data"].get(string(&credentials["key"])).is_some());
}

/// The body of an answer of the operator's endpoint.
fn get(address: SocketAddr, path: &str) -> String {
    let mut stream = TcpStream::connect(address).expect("a listener");
    let request = format!("GET {path} HTTP/1.1\r\nhost: {address}\r\nconnection: close\r\n\r\n");
    stream.write_all(request.as_bytes()).expect("a server that reads");
    let mut answer = String::new();
    stream.read_to_string(&mut answer).expect("text");
    assert!(answer.starts_with("HTTP/1.1 200"), "{answer}");
    answer
}

/// A configuration of `deploy/`.
struct Configuration {
    file: &'static str,
    /// The directory of the secrets, from the directory of the configuration.
    secrets: &'static str,
    /// The paths of its container, and where these are in a site.
    paths: &'static [(&'static str, &'static str)],
}

const CONFIGURATIONS: [Configuration; 3] = [
    Configuration { file: "kubernetes/base/belljar.toml", secrets: ".", paths: PATHS_OF_PODS },
    Configuration { file: "kubernetes/overlays/minimal/belljar.toml", secrets: ".", paths: PATHS_OF_PODS },
    Configuration {
        file: "compose/belljar.toml",
        secrets: "secrets",
        paths: &[
            ("/plugins", "plugins"),
            ("/var/cache/belljar", "cache"),
            ("/var/lib/belljar", "state"),
            ("/etc/belljar/secrets/store-password", "secrets/store-password"),
        ],
    },
];

const PATHS_OF_PODS: &[(&str, &str)] =
    &[("/plugins/served", "plugins"), ("/var/cache/belljar/code", "cache"), ("/var/lib/belljar/state", "state")];

impl Configuration {
    /// The text, with paths in a site.
    fn text_in(&self, site: &Site) -> String {
        self.paths.iter().fold(text(self.file), |text, (path, name)| {
            replaced(&text, &[(&format!("{path:?}"), &format!("{:?}", site.path(name)))])
        })
    }
}

#[test]
fn belljar_accepts_each_configuration() {
    for configuration in CONFIGURATIONS {
        let file = configuration.file;
        let site = Site::new();
        site.mount("clock");
        write_secrets(&site, configuration.secrets);
        let config = configuration.text_in(&site);
        site.config(&config);
        let checked = site.run(&["check"]);
        let shown = stdout_and_stderr(&checked);
        assert!(checked.status.success() && shown.contains("1 would be served, 0 refused"), "{file}: {shown}");
        site.config(&replaced(&config, &[("probes =", "probe =")]));
        let refused = site.run(&["check"]);
        assert!(!refused.status.success(), "{file}: an unknown key is accepted");
    }
}

/// In a pod, the files of a Secret have the mode 0440, and links lead to them.
#[test]
fn belljar_reads_its_files_as_a_pod_has_them() {
    const FILES: [&str; 5] = ["belljar.toml", "keys.toml", "replicas.key", "metrics.token", "store-password"];
    let [base, _, _] = CONFIGURATIONS;
    let site = Site::new();
    site.mount("clock");
    write_secrets(&site, "etc/..data");
    site.write("etc/..data/belljar.toml", base.text_in(&site));
    for name in FILES {
        // In a pod, root owns the password, and the group of the pod may read it. Here this user owns it.
        let mode = if name == "store-password" { 0o400 } else { 0o440 };
        fs::set_permissions(site.path("etc/..data").join(name), Permissions::from_mode(mode)).unwrap();
        symlink(Path::new("..data").join(name), site.path("etc").join(name)).unwrap();
    }
    let mut check = site.command(["check", "--config"]);
    check.arg(site.path("etc/belljar.toml")).arg("--plugins").arg(site.path("plugins"));
    assert!(succeeds(check).contains("1 would be served, 0 refused"));
    // Others can read the key of the replicas.
    fs::set_permissions(site.path("etc/..data/replicas.key"), Permissions::from_mode(0o444)).unwrap();
    let mut check = site.command(["check", "--config"]);
    check.arg(site.path("etc/belljar.toml")).arg("--plugins").arg(site.path("plugins"));
    assert!(fails(check).contains("replicas.key"));
}
