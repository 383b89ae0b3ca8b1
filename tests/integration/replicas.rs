//! Several belljars behind one address. Runs three real `belljar` binaries with a real Redis on loopback.

mod answers;
mod cursors;
mod generations;
mod questions;
mod rates;
mod stopping;
mod store_failures;
mod watching;

use std::path::PathBuf;

use belljar_tests::http::Http;
use belljar_tests::{Client, Era, Redis, Server, Site, wait_until};

use crate::support::{empty, patient};

/// Several replicas with one key. Each has a site of its own, as on a machine of its own.
struct Group {
    redis: Redis,
    replicas: Vec<Replica>,
    /// What all replicas reach: the key, and directories that are granted.
    shared: Site,
}

/// One replica.
struct Replica {
    site: Site,
    server: Server,
}

impl Group {
    /// Starts `count` replicas with this configuration. `{shared}` in it stands for the shared directory. Each mounts
    /// these components, given as the stem and the file. `None` if there is no Redis, and `BELLJAR_SKIP` says so.
    fn start(count: usize, components: &[(&str, &str)], config: &str, prepare: impl Fn(&Site)) -> Option<Group> {
        let redis = Redis::start(&[])?;
        let shared = empty();
        prepare(&shared);
        let mut group = Group { redis, replicas: Vec::new(), shared };
        let key = group.shared.write("replicas.key", "5e".repeat(32));
        restrict(key);
        for _ in 0..count {
            let replica = group.replica(components, config);
            group.replicas.push(replica);
        }
        group.await_store();
        Some(group)
    }

    /// Starts one more replica, with its own configuration.
    fn replica(&self, components: &[(&str, &str)], config: &str) -> Replica {
        let site = empty();
        for (stem, file) in components {
            site.mount_as(stem, file);
        }
        site.config(&self.config(&site, config));
        let server = site.http();
        Replica { site, server }
    }

    /// The whole configuration of a replica with `config`, which may begin with a part of `[replicas]`.
    fn config(&self, site: &Site, config: &str) -> String {
        let config = config.replace("{shared}", &self.shared.path("").display().to_string());
        let (more, config) = config.split_once("---\n").unwrap_or(("", &config));
        let head = format!(
            "audit = {:?}\n[admin]\nlisten = \"127.0.0.1:0\"\n[replicas]\nkey = {:?}\nstore = {:?}\n{more}",
            site.path("audit.jsonl"),
            self.shared.path("replicas.key"),
            self.redis.url()
        );
        patient(&format!("{head}\n{config}"))
    }

    /// Waits until each replica reaches the store.
    fn await_store(&self) {
        for replica in &self.replicas {
            replica.await_ready("\"store\":\"up\"");
        }
    }

    /// Runs `attempt` until the store answered each question of each replica in time meanwhile, and no replica lost a lease.
    /// On a busy machine, a replica works alone for a moment, or renews a lease too late.
    fn undisturbed<T>(&self, mut attempt: impl FnMut() -> T) -> T {
        let state = || {
            self.await_store();
            let of = |name: &str| self.replicas.iter().map(|replica| replica.metric(name)).collect::<Vec<_>>();
            (of("belljar_store_failures_total"), of("belljar_watch_leases"))
        };
        for _ in 0..20 {
            let before = state();
            let result = attempt();
            if state() == before {
                return result;
            }
        }
        panic!("the store never answers in time, or leases never stay");
    }

    fn client(&self, at: usize) -> Client<Http> {
        self.replicas[at].server.client(Era::Stateless)
    }
}

impl Replica {
    /// The answer of the operator's endpoint for `path`.
    fn admin(&self, path: &str) -> String {
        let log = self.server.process.stderr();
        let address = log.split("the console is at http://").nth(1).and_then(|rest| rest.split('/').next());
        let address = address.unwrap_or_else(|| panic!("no address: {log}")).parse().unwrap();
        let (_, _, body) = crate::server::admin::get(address, path);
        body
    }

    /// Waits until `/readyz` contains `text`.
    fn await_ready(&self, text: &str) -> String {
        wait_until(&format!("/readyz with {text}"), || {
            let body = self.admin("/readyz");
            if body.contains(text) { Ok(body) } else { Err(format!("{body}\n{}", self.server.process.stderr())) }
        })
    }

    /// The value of a metric, whose name may include labels.
    fn metric(&self, name: &str) -> f64 {
        let text = self.admin("/metrics");
        let line = text.lines().find_map(|line| line.strip_prefix(name)?.strip_prefix(' '));
        line.unwrap_or_else(|| panic!("no {name}: {text}")).parse().unwrap()
    }
}

/// Lets nobody else read a file.
fn restrict(path: PathBuf) {
    use std::os::unix::fs::PermissionsExt as _;
    std::fs::set_permissions(path, std::fs::Permissions::from_mode(0o600)).unwrap();
}
