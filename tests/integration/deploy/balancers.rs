//! The configurations of nginx and HAProxy. Both programs accept them, and really balance three belljars with them: sessions of
//! older clients stay at their server, streams are not buffered, and no request is sent twice.

use std::net::{SocketAddr, TcpListener};
use std::path::PathBuf;
use std::process::{Command, Stdio};

use belljar_tests::http::Http;
use belljar_tests::{Client, DEADLINE, Era, Process, Response, Server, Site, debian, places, wait_until};
use belljar_upstream::{Authority, Upstream, answer, request};
use serde_json::{Value, json};

use super::{fails, replaced, succeeds, text};
use crate::support::{empty, stdout_and_stderr};

/// The number of servers in the configurations.
const SERVERS: usize = 3;

/// The name in the certificate and in the URL of the configurations.
const HOST: &str = "mcp.example";

/// A resource of the mount `clock`.
const CLOCK: &str = "belljar://clock/utc";

/// A program that balances.
#[derive(Clone, Copy, Debug, PartialEq)]
enum Balancer {
    Nginx,
    Haproxy,
}

/// A server behind a balancer.
#[derive(Clone, Copy)]
struct Replica {
    address: SocketAddr,
    /// The address of `/readyz`. `None`: its health is not checked.
    probes: Option<SocketAddr>,
}

/// The way in which a balancer listens.
#[derive(Clone, Copy, PartialEq)]
enum Listener {
    /// As shipped.
    Tls,
    /// The clients of the tests speak no TLS.
    Plain,
}

impl Balancer {
    const ALL: [Balancer; 2] = [Balancer::Nginx, Balancer::Haproxy];

    /// The program. `None` if this machine lacks it.
    fn program(self) -> Option<PathBuf> {
        match self {
            Balancer::Nginx => places::program(&debian::NGINX),
            Balancer::Haproxy => places::program(&debian::HAPROXY),
        }
    }

    /// Writes the shipped configuration with these addresses into a site, with a certificate. Returns its text.
    fn configuration(self, site: &Site, at: SocketAddr, listener: Listener, replicas: [Replica; SERVERS]) -> String {
        let (certificate, key) = Authority::new().pair(&[HOST]);
        site.write("tls/mcp.example.pem", format!("{certificate}{key}"));
        site.write("tls/cert.pem", certificate);
        site.write("tls/key.pem", key);
        let tls = format!("{}/", site.path("tls").display());
        let mut text = match (self, listener) {
            (Balancer::Nginx, Listener::Tls) => {
                replaced(&text("nginx/belljar.conf"), &[("listen 443 ssl;", &format!("listen {at} ssl;"))])
            }
            (Balancer::Nginx, Listener::Plain) => {
                replaced(&text("nginx/belljar.conf"), &[("listen 443 ssl;", &format!("listen {at};"))])
            }
            (Balancer::Haproxy, Listener::Tls) => {
                replaced(&text("haproxy/belljar.cfg"), &[("bind :443 ", &format!("bind {at} "))])
            }
            (Balancer::Haproxy, Listener::Plain) => {
                let bind = "bind :443 ssl crt /etc/haproxy/tls/mcp.example.pem alpn h2,http/1.1";
                replaced(&text("haproxy/belljar.cfg"), &[(bind, &format!("bind {at}"))])
            }
        };
        if (self, listener) != (Balancer::Haproxy, Listener::Plain) {
            let shipped = if self == Balancer::Nginx { "/etc/nginx/tls/" } else { "/etc/haproxy/tls/" };
            text = replaced(&text, &[(shipped, &tls)]);
        }
        for (index, Replica { address, probes }) in replicas.into_iter().enumerate() {
            let name = format!("belljar-{}:8808", index + 1);
            let health = match (self, probes) {
                (Balancer::Nginx, _) | (_, None) => String::new(),
                (Balancer::Haproxy, Some(probes)) => format!(" port {}", probes.port()),
            };
            text = replaced(&text, &[(&name, &format!("{address}{health}"))]);
        }
        if self == Balancer::Haproxy && replicas.iter().all(|replica| replica.probes.is_none()) {
            text = replaced(&text, &[("default-server check port 8810 ", "default-server ")]);
        }
        text
    }

    /// The command that runs the program with this configuration, or only checks it.
    fn command(self, site: &Site, configuration: &str, is_check: bool) -> Option<Command> {
        let mut command = Command::new(self.program()?);
        let own = site.write("belljar.conf", configuration);
        match self {
            Balancer::Nginx => {
                // One process, so that none is left when the test kills it.
                let places = ["client_body", "proxy", "fastcgi", "uwsgi", "scgi"]
                    .map(|name| format!("{name}_temp_path {}; ", site.path(name).display()));
                let main = format!(
                    "daemon off; master_process off; pid {}; error_log stderr warn; events {{}}\nhttp {{ access_log off; {}include {}; }}\n",
                    site.path("nginx.pid").display(),
                    places.concat(),
                    own.display(),
                );
                let main = site.write("nginx.conf", main);
                command.arg("-e").arg("stderr").arg("-c").arg(main).args(is_check.then_some("-t"));
            }
            Balancer::Haproxy => {
                command.arg("-f").arg(own).arg(if is_check { "-c" } else { "-db" });
            }
        }
        command.stdin(Stdio::null()).stdout(Stdio::null());
        Some(command)
    }

    /// Starts the program in front of these servers.
    fn start(self, site: &Site, at: SocketAddr, replicas: [Replica; SERVERS]) -> Option<Server> {
        let configuration = self.configuration(site, at, Listener::Plain, replicas);
        Some(Server::at(Process::start(self.command(site, &configuration, false)?), at))
    }
}

/// An address that is free now.
fn free_address() -> SocketAddr {
    TcpListener::bind("127.0.0.1:0").and_then(|listener| listener.local_addr()).expect("a free port")
}

/// Three belljars with one file of keys, whose URL is that of a balancer.
struct Belljars {
    site: Site,
    servers: Vec<Server>,
    replicas: [Replica; SERVERS],
    authorization: String,
}

impl Belljars {
    fn start(balancer: SocketAddr) -> Belljars {
        let site = empty();
        site.mount("clock");
        let made = site.run(&["key", "new", "ana", "--keys", "keys.toml"]);
        let authorization = format!("Bearer {}", String::from_utf8_lossy(&made.stdout).trim_end());
        assert!(made.status.success(), "{}", stdout_and_stderr(&made));
        let probes: [SocketAddr; SERVERS] = std::array::from_fn(|_| free_address());
        let servers: Vec<Server> = probes
            .iter()
            .enumerate()
            .map(|(index, probes)| {
                let config = site.write(
                    format!("belljar-{index}.toml"),
                    format!(
                        "audit = \"audit-{index}.jsonl\"\n[limits]\ntime = \"60s\"\n[serve]\nurl = \"http://{balancer}/mcp\"\n\
                         behind = \"proxy\"\ntrusted = [\"127.0.0.1\"]\n[auth]\n[admin]\nprobes = \"{probes}\"\n"
                    ),
                );
                let mut command = site.command(["serve", "--http", "127.0.0.1:0", "--config"]);
                command.arg(config).arg("--plugins").arg(site.path("plugins"));
                Server::start(command)
            })
            .collect();
        let replica = |index: usize| Replica { address: servers[index].address(), probes: Some(probes[index]) };
        let replicas = std::array::from_fn(replica);
        Belljars { site, servers, replicas, authorization }
    }

    /// A client with the key, which has sent nothing.
    fn wire(&self, balancer: &Server, era: Era) -> Http {
        let mut wire = balancer.wire(era);
        wire.authorization = Some(self.authorization.clone());
        wire
    }

    fn client(&self, balancer: &Server, era: Era) -> Client<Http> {
        Client::connect(self.wire(balancer, era), era)
    }

    /// Waits until a server has recorded a request of this method and revision.
    fn await_record(&self, index: usize, method: &str, revision: &str) {
        wait_until(&format!("{method} at server {index}"), || {
            let records = self.site.records(&format!("audit-{index}.jsonl"));
            let is_it = |one: &Value| one["request"]["method"] == method && one["request"]["revision"] == revision;
            if records.iter().any(is_it) { Ok(()) } else { Err(format!("{} records", records.len())) }
        });
    }
}

#[test]
fn each_program_accepts_its_configuration() {
    let replica = Replica { address: "127.0.0.1:8808".parse().unwrap(), probes: None };
    for (balancer, old, new) in [
        (Balancer::Nginx, "keepalive 32;", "keepalive many;"),
        (Balancer::Nginx, "$belljar_client consistent", "$belljar_clients consistent"),
        (Balancer::Haproxy, "balance roundrobin", "balance robin"),
        (Balancer::Haproxy, "stick match req.hdr", "stick match req.header"),
    ] {
        let site = Site::new();
        let configuration = balancer.configuration(&site, free_address(), Listener::Tls, [replica; SERVERS]);
        let Some(check) = balancer.command(&site, &configuration, true) else { continue };
        let shown = succeeds(check).to_lowercase();
        assert!(!shown.contains("warn"), "{balancer:?}: {shown}");
        let planted = replaced(&configuration, &[(old, new)]);
        fails(balancer.command(&site, &planted, true).unwrap());
    }
}

#[test]
fn three_belljars_behind_a_balancer_serve_both_kinds_of_clients() {
    for balancer in Balancer::ALL {
        if balancer.program().is_none() {
            continue;
        }
        let address = free_address();
        let mut belljars = Belljars::start(address);
        let front = balancer.start(&belljars.site, address, belljars.replicas).unwrap();

        // Clients without a session: each server gets some of their requests.
        let mut stateless = belljars.client(&front, Era::Stateless);
        for _ in 0..3 * SERVERS {
            stateless.text(CLOCK);
        }
        for index in 0..SERVERS {
            belljars.await_record(index, "resources/read", Era::Stateless.version());
        }

        // Clients with a session. A server that does not have the session answers with status 404, and the client panics.
        let mut sessions: Vec<_> = (0..2 * SERVERS).map(|_| belljars.client(&front, Era::Session)).collect();
        for _ in 0..SERVERS {
            for client in &mut sessions {
                client.text(CLOCK);
            }
        }
        if balancer == Balancer::Haproxy {
            // nginx sends all clients with one key to one server.
            for index in 0..SERVERS {
                belljars.await_record(index, "initialize", Era::Session.version());
            }
        }

        // Events of a stream arrive while it stays open: the acknowledgement, and the news of a mount that comes later.
        let wanted = json!({ "notifications": { "resourcesListChanged": true } });
        let listen = Era::Stateless.message(77, "subscriptions/listen", wanted);
        let events = belljars.wire(&front, Era::Stateless).open(&listen).unwrap();
        belljars.site.mount_as("guest_fixture", "fixture.wasm");
        for expected in ["notifications/subscriptions/acknowledged", "notifications/resources/list_changed"] {
            let event = events.next(DEADLINE).unwrap_or_else(|| panic!("{balancer:?} holds back {expected}"));
            assert_eq!(event["method"], expected, "{balancer:?}");
        }
        drop(events);

        // A server is gone. All requests are answered by the others.
        drop(belljars.servers.remove(1));
        for _ in 0..3 * SERVERS {
            stateless.text(CLOCK);
        }
    }
}

#[test]
fn belljar_gets_the_host_and_the_address_of_the_client() {
    for balancer in Balancer::ALL {
        let upstream = Upstream::plain(|_| answer("200 OK", "connection: close\r\n", "answered"));
        let site = Site::new();
        let Some(front) = stub(balancer, &site, upstream.address()) else { continue };
        let answered = post(&front, "/mcp");
        assert_eq!((answered.status, answered.text().as_str()), (200, "answered"), "{balancer:?}");
        let discovery = post(&front, "/.well-known/oauth-protected-resource/mcp");
        assert_eq!(discovery.status, 200, "{balancer:?}");
        // No other path reaches belljar.
        for path in ["/metrics", "/", "/mcp/", "/readyz"] {
            assert_eq!(post(&front, path).status, 404, "{balancer:?}: {path}");
        }
        let requests = upstream.requests();
        assert_eq!(requests.len(), 2, "{balancer:?}: {requests:?}");
        for request in requests {
            assert_eq!(request.header("host"), Some(HOST), "{balancer:?}");
            let forwarded = request.headers.iter().filter(|(name, _)| name == "x-forwarded-for");
            let forwarded: Vec<_> = forwarded.map(|(_, value)| value.as_str()).collect();
            assert_eq!(forwarded.join(", "), "203.0.113.7, 127.0.0.1", "{balancer:?}");
        }
    }
}

#[test]
fn a_request_that_a_server_got_is_never_sent_again() {
    for balancer in Balancer::ALL {
        // Reads the request, and closes the connection without an answer.
        let upstream = Upstream::raw(|stream| drop(request(stream)));
        let site = Site::new();
        let Some(front) = stub(balancer, &site, upstream.address()) else { continue };
        assert_eq!(post(&front, "/mcp").status, 502, "{balancer:?}");
        assert_eq!(upstream.connections(), 1, "{balancer:?}");
    }
}

/// Starts a balancer in front of one server, which it takes for three.
fn stub(balancer: Balancer, site: &Site, upstream: SocketAddr) -> Option<Server> {
    balancer.start(site, free_address(), [Replica { address: upstream, probes: None }; SERVERS])
}

/// Posts a request without a session. The client claims another address.
fn post(front: &Server, path: &str) -> Response {
    let version = Era::Stateless.version();
    let headers = [("Host", HOST), ("X-Forwarded-For", "203.0.113.7"), ("MCP-Protocol-Version", version)];
    front.exchange("POST", path, &headers, b"{}")
}

/// The rules that the Ingress gives to its controller are those of the shipped configuration, and HAProxy accepts them.
#[test]
fn haproxy_accepts_the_rules_of_the_ingress() {
    let (Some(python), Some(_)) = (places::deploy_tool("python"), places::program(&debian::HAPROXY)) else { return };
    let ingress = &super::documents(&python, &super::source("kubernetes/overlays/ingress/ingress.yaml"))[0];
    let rules = ingress["metadata"]["annotations"]["haproxy.org/backend-config-snippet"].as_str().unwrap();
    let shipped = text("haproxy/belljar.cfg");
    for rule in rules.lines().filter(|rule| rule.starts_with("stick")) {
        assert!(shipped.contains(rule), "{rule}");
    }
    let site = Site::new();
    let configuration = format!(
        "defaults\n  mode http\n  timeout connect 1s\n  timeout client 1s\n  timeout server 1s\n\
         frontend mcp\n  bind {}\n  default_backend belljar\nbackend belljar\n{rules}  server one 127.0.0.1:8808\n",
        free_address()
    );
    succeeds(Balancer::Haproxy.command(&site, &configuration, true).unwrap());
    let planted = replaced(&configuration, &[("store-response", "store-responses")]);
    fails(Balancer::Haproxy.command(&site, &planted, true).unwrap());
}
