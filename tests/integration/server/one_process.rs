//! One belljar for all clients of a user: `belljar up`, and the processes that join it. Clients must not notice when that
//! belljar ends and another one follows.

use std::fs;
use std::io::{BufRead as _, Write as _};
use std::net::TcpListener;
use std::os::unix::fs::PermissionsExt as _;
use std::path::{Path, PathBuf};
use std::process::Output;
use std::sync::atomic::{AtomicBool, AtomicUsize, Ordering};
use std::time::Duration;

use belljar_tests::{Client, Era, RpcError, Site, Stdio, places, process, wait_until};
use serde_json::{Value, json};

use crate::support::{WITNESS, empty, patient, shared, stdout_and_stderr};

/// A site whose state is its own, and the belljar that serves all its clients. Stopped when this value is dropped.
struct Shared {
    site: Site,
}

impl Shared {
    /// Starts the belljar. The site has the witness, and what `config` and `more` add.
    fn up(config: &str, more: impl FnOnce(&Site)) -> Self {
        let mut site = empty();
        site.own_state(shared());
        site.mount("clock");
        site.config(&format!("audit = \"audit.jsonl\"\n{}", patient(config)));
        more(&site);
        let shared = Self { site };
        let up = shared.run(&["up", "--background"]);
        assert!(up.status.success(), "{}", stdout_and_stderr(&up));
        shared
    }

    fn run(&self, verb: &[&str]) -> Output {
        self.site.run(verb)
    }

    /// Waits until so many clients are connected.
    fn await_clients(&self, count: usize) {
        wait_until(&format!("{count} clients"), || {
            let status = self.site.up_status();
            let clients = status["clients"].as_array().map(Vec::len);
            if clients == Some(count) { Ok(()) } else { Err(status.to_string()) }
        });
    }

    /// The files beside the socket, with their modes.
    fn files(&self) -> Vec<(String, u32)> {
        let entries = fs::read_dir(self.directory()).into_iter().flatten().flatten();
        let mode = |entry: &fs::DirEntry| entry.metadata().unwrap().permissions().mode() & 0o777;
        let mut all: Vec<_> = entries.map(|one| (one.file_name().into_string().unwrap(), mode(&one))).collect();
        all.sort();
        all
    }

    fn directory(&self) -> PathBuf {
        self.site.path("state/belljar/run")
    }
}

impl Drop for Shared {
    fn drop(&mut self) {
        // A client that is still connected must not start it again.
        let output = self.run(&["down"]);
        if !std::thread::panicking() {
            assert!(output.status.success(), "{}", stdout_and_stderr(&output));
        }
    }
}

/// True if the process has no engine: it has two threads, and a third one if it started the belljar again.
fn is_shim(client: &Client<Stdio>) -> bool {
    client.wire_ref().process.threads() <= 3
}

#[test]
fn clients_join_the_belljar_that_serves_and_keep_their_identities() {
    let shared = Shared::up("", |_| ());
    let mut clients: Vec<_> = [Era::Session, Era::Stateless, Era::Session].map(|era| shared.site.stdio(era)).into();
    for client in &mut clients {
        client.text(WITNESS);
        assert!(is_shim(client), "it serves alone");
    }
    shared.await_clients(3);
    let processes: Vec<_> = clients.iter().map(|client| u64::from(client.wire_ref().process.id())).collect();
    let status = shared.site.up_status();
    let mut joined: Vec<_> =
        status["clients"].as_array().unwrap().iter().map(|one| one["pid"].as_u64().unwrap()).collect();
    joined.sort_unstable();
    assert_eq!(joined, processes, "{status}");
    // Each is a caller of its own.
    shared.site.await_record("a read", |record| record["operation"] == "read");
    clients.pop().map(Client::close);
    shared.await_clients(2);
    let text = shared.run(&["up", "--background"]);
    assert!(stdout_and_stderr(&text).contains("already serves"), "{}", stdout_and_stderr(&text));
    let alone = Client::start(shared.site.command(shared.site.arguments(&["serve", "--alone"])), Era::Stateless);
    assert!(!is_shim(&alone));
    shared.await_clients(2);
}

#[test]
fn a_joined_client_is_the_own_user_and_the_rules_hold() {
    let rules = "[[allow]]\nwho = { user = \"local\" }\nwhat = \"belljar://clock/utc\"\n[[allow]]\nwho = { user = \"anonymous\" }\nwhat = \"belljar://clock/Europe/Berlin\"\n";
    for auth in ["", "[auth]\n"] {
        let with_key = |site: &Site| assert!(auth.is_empty() || site.run(&["key", "new", "ci"]).status.success());
        let shared = Shared::up(&format!("{rules}{auth}"), with_key);
        let mut client = shared.site.stdio(Era::Stateless);
        assert!(is_shim(&client));
        assert_eq!(client.uris(), [WITNESS]);
        client.text(WITNESS);
        assert_eq!(client.read("belljar://clock/Europe/Berlin").unwrap_err().data["kind"], "not-found");
        let record = shared.site.await_record("a read", |record| record["operation"] == "read");
        assert_eq!(record["caller"]["principal"], "local", "{record}");
    }
}

/// `belljar serve` becomes `belljar-join`, if that is beside it. Both programs join by the same code.
#[test]
fn each_of_both_programs_joins_and_serves_alone_if_none_runs() {
    let shared = Shared::up("", |_| ());
    let lonely = shared.site.path("bin/belljar");
    fs::create_dir(shared.site.path("bin")).unwrap();
    fs::copy(places::host(), &lonely).unwrap();
    let join = places::host().with_file_name("belljar-join");
    let program = |client: &Client<Stdio>| {
        let path = fs::read_link(format!("/proc/{}/exe", client.wire_ref().process.id())).unwrap();
        path.file_name().unwrap().to_str().unwrap().to_owned()
    };
    let start = |path: &Path| {
        let mut command = std::process::Command::new(path);
        command.args(shared.site.arguments(&["serve"])).env_clear().envs(shared.site.environment());
        command.current_dir(shared.site.path("."));
        let mut client = Client::start(command, Era::Session);
        client.text(WITNESS);
        client
    };
    let host = places::host();
    for (path, name) in [(&lonely, "belljar"), (&join, "belljar-join"), (&host, "belljar-join")] {
        let client = start(path);
        assert!(is_shim(&client), "{path:?}");
        assert_eq!(program(&client), name, "{path:?}");
    }
    assert!(shared.run(&["down"]).status.success());
    for path in [&lonely, &join, &host] {
        let client = start(path);
        assert!(!is_shim(&client), "{path:?}");
        assert_eq!(program(&client), "belljar", "{path:?}");
    }
}

#[test]
fn only_this_user_can_open_the_socket() {
    let shared = Shared::up("", |_| ());
    let files = shared.files();
    assert!(files.iter().any(|(name, _)| name.ends_with(".sock")), "{files:?}");
    assert!(files.iter().all(|(_, mode)| *mode == 0o600), "{files:?}");
    assert_eq!(fs::metadata(shared.directory()).unwrap().permissions().mode() & 0o777, 0o700);
    // If others can reach it, it is used no more.
    fs::set_permissions(shared.directory(), fs::Permissions::from_mode(0o755)).unwrap();
    let client = shared.site.stdio(Era::Stateless);
    assert!(!is_shim(&client));
    let up = shared.run(&["up", "--background"]);
    assert_eq!(up.status.code(), Some(1), "{}", stdout_and_stderr(&up));
    assert!(stdout_and_stderr(&up).contains("chmod 700"), "{}", stdout_and_stderr(&up));
    fs::set_permissions(shared.directory(), fs::Permissions::from_mode(0o700)).unwrap();
}

#[test]
fn another_configuration_is_not_joined() {
    let shared = Shared::up("", |_| ());
    let other = shared.site.write("other/belljar.toml", "plugins = \"../plugins\"\n");
    let command = shared.site.command(["serve".as_ref(), "--config".as_ref(), other.as_os_str()]);
    let mut client = Client::start(command, Era::Stateless);
    client.text(WITNESS);
    assert!(!is_shim(&client));
    shared.await_clients(0);
}

#[test]
fn after_down_requests_fail_with_the_cure_until_it_is_started_again() {
    let shared = Shared::up("", |_| ());
    for era in Era::ALL {
        let mut client = shared.site.stdio(era);
        client.text(WITNESS);
        assert!(shared.run(&["down"]).status.success());
        let error = client.read(WITNESS).unwrap_err();
        assert!(error.message.contains("belljar up") && error.data["kind"] == "unavailable", "{error}");
        let mut alone = shared.site.stdio(era);
        alone.text(WITNESS);
        assert!(!is_shim(&alone));
        assert!(shared.run(&["up", "--background"]).status.success());
        client.text(WITNESS);
        assert!(is_shim(&client));
    }
}

/// The upstream answers the first request never, and later ones at once.
#[test]
fn a_restart_repeats_the_reads_that_it_interrupts() {
    let upstream = TcpListener::bind("127.0.0.1:0").unwrap();
    let origin = format!("http://{}", upstream.local_addr().unwrap());
    let config = format!("[mounts.hostile]\nhttp = [{{ origin = {origin:?} }}]\nlimits = {{ time = \"600s\" }}\n");
    let shared = Shared::up(&config, |site| site.mount_as("guest_hostile", "hostile.wasm"));
    let uri = format!("belljar://hostile/reach/{}", format!("{origin}/").replace(':', "%253A").replace('/', "%252F"));
    for (era, verb) in [(Era::Session, "restart"), (Era::Stateless, "restart"), (Era::Stateless, "kill")] {
        let mut client = shared.site.stdio(era);
        let before = shared.site.up_pid();
        let id = client.send("resources/read", json!({ "uri": uri }));
        let (first, _) = upstream.accept().unwrap();
        match verb {
            "kill" => shared.site.kill_up(),
            _ => {
                let up = shared.run(&["up", "--background", "--restart"]);
                assert!(up.status.success(), "{}", stdout_and_stderr(&up));
            }
        }
        let (mut second, _) = upstream.accept().unwrap();
        // An answer to a request that was not sent yet would be an error of the upstream.
        let mut request = std::io::BufReader::new(second.try_clone().unwrap()).lines();
        while request.next().is_some_and(|line| !line.unwrap().is_empty()) {}
        second.write_all(b"HTTP/1.1 200 OK\r\ncontent-length: 2\r\nconnection: close\r\n\r\nok").unwrap();
        client.wait(id).unwrap_or_else(|error| panic!("{verb}: {error}"));
        client.text(WITNESS);
        assert_ne!(shared.site.up_pid(), before);
        drop(first);
    }
}

#[test]
fn subscriptions_of_either_era_outlive_their_belljar() {
    let notes = |site: &Site| {
        site.mount("files");
        site.write("notes/a.md", "one");
    };
    let shared = Shared::up("[mounts.files]\nfs = { \"/notes\" = \"notes\" }\n", notes);
    let uri = shared.site.stdio(Era::Stateless).uris().into_iter().find(|uri| uri.ends_with("a.md")).unwrap();
    let mut session = shared.site.stdio(Era::Session);
    session.request("resources/subscribe", json!({ "uri": uri })).unwrap();
    let mut stateless = shared.site.stdio(Era::Stateless);
    let listen = stateless.send("subscriptions/listen", json!({ "notifications": { "resourceSubscriptions": [uri] } }));
    let patience = Duration::from_secs(60);
    assert_eq!(stateless.next_notification(patience).unwrap()["method"], "notifications/subscriptions/acknowledged");
    let updated = |client: &mut Client<Stdio>, when: &str| {
        let mut others = Vec::new();
        while let Some(message) = client.next_notification(patience) {
            if message["method"] == "notifications/resources/updated" {
                return message["params"].clone();
            }
            others.push(message);
        }
        panic!("{:?}: no notification {when}, after {others:?}", client.era());
    };
    for round in 0..2 {
        if round == 0 {
            shared.site.kill_up();
        } else {
            assert!(shared.run(&["up", "--background", "--restart"]).status.success());
        }
        // What changed meanwhile is not known, so both are told to look. From then on, the new belljar watches.
        let of_stateless = updated(&mut stateless, &format!("of the end {round}"));
        assert_eq!(
            (&of_stateless["uri"], &of_stateless["_meta"]["io.modelcontextprotocol/subscriptionId"]),
            (&json!(uri), &json!(listen))
        );
        assert_eq!(updated(&mut session, &format!("of the end {round}"))["uri"], json!(uri));
        shared.site.write("notes/b.tmp", format!("changed {round}"));
        fs::rename(shared.site.path("notes/b.tmp"), shared.site.path("notes/a.md")).unwrap();
        assert_eq!(updated(&mut stateless, &format!("of the change {round}"))["uri"], json!(uri));
        assert_eq!(updated(&mut session, &format!("of the change {round}"))["uri"], json!(uri));
    }
}

#[test]
fn a_tool_call_that_was_interrupted_is_not_repeated() {
    let upstream = TcpListener::bind("127.0.0.1:0").unwrap();
    let origin = format!("http://{}", upstream.local_addr().unwrap());
    let gives = json!({ "do": [{ "get": format!("{origin}/") }] }).to_string();
    let config = format!(
        "[mounts.guest-tools]\nhttp = [{{ origin = {origin:?} }}]\nlimits = {{ time = \"600s\" }}\nenv = {{ TOOLS = '[{{\"name\":\"t\"}}]', GIVE = '{gives}' }}\n"
    );
    let shared = Shared::up(&config, |site| site.mount("guest_tools"));
    let mut client = shared.site.stdio(Era::Stateless);
    let tools = client.pages("tools/list", "tools").concat();
    let is_providers = |tool: &&Value| tool["name"].as_str().is_some_and(|name| name.starts_with("guest-tools"));
    let tool = tools.iter().find(is_providers).unwrap_or_else(|| panic!("{tools:?}"));
    let id = client.send("tools/call", json!({ "name": tool["name"], "arguments": {} }));
    let _call = upstream.accept().unwrap();
    shared.site.kill_up();
    let error = client.wait(id).unwrap_err();
    assert!(error.message.contains("may have had its effect"), "{error}");
    client.text(WITNESS);
    upstream.set_nonblocking(true).unwrap();
    assert!(upstream.accept().is_err(), "the call was repeated");
}

/// Tells the clients to stop, also if the test fails.
struct StopOnDrop<'a>(&'a AtomicBool);

impl Drop for StopOnDrop<'_> {
    fn drop(&mut self) {
        self.0.store(true, Ordering::SeqCst);
    }
}

/// Clients read as fast as they can. Each may see errors only for what was in flight, and there is at most one.
#[test]
fn twenty_clients_go_on_after_a_crash() {
    let shared = Shared::up("", |_| ());
    let (stop, reads) = (AtomicBool::new(false), AtomicUsize::new(0));
    let errors: Vec<RpcError> = std::thread::scope(|scope| {
        let client = |number: usize| {
            let (shared, stop, reads) = (&shared, &stop, &reads);
            scope.spawn(move || {
                let era = if number.is_multiple_of(2) { Era::Session } else { Era::Stateless };
                let mut client = if number < 10 { shared.site.stdio(era) } else { shared.site.stdio_on_sockets(era) };
                let mut errors = Vec::new();
                while !stop.load(Ordering::SeqCst) {
                    match client.read(WITNESS) {
                        Ok(_) => drop(reads.fetch_add(1, Ordering::SeqCst)),
                        Err(error) => errors.push(error),
                    }
                }
                assert!(is_shim(&client));
                assert!(errors.len() <= 1, "{errors:?}");
                errors
            })
        };
        let stops = StopOnDrop(&stop);
        let clients: Vec<_> = (0..20).map(client).collect();
        shared.await_clients(20);
        shared.site.kill_up();
        shared.await_clients(20);
        let served = reads.load(Ordering::SeqCst);
        wait_until("further reads", || {
            let more = reads.load(Ordering::SeqCst) - served;
            if more > 100 { Ok(()) } else { Err(more.to_string()) }
        });
        drop(stops);
        clients.into_iter().flat_map(|client| client.join().unwrap()).collect()
    });
    assert!(errors.is_empty(), "a read can be repeated: {errors:?}");
}

#[test]
fn a_belljar_that_cannot_start_says_why_and_leaves_nothing() {
    let mut site = empty();
    site.own_state(shared());
    site.config("limits = 7\n");
    let up = site.run(&["up", "--background"]);
    let said = stdout_and_stderr(&up);
    assert_eq!(up.status.code(), Some(1), "{said}");
    assert!(said.contains("ended before it served") && said.contains("limits"), "{said}");
    let status = process::run(site.command(["status"]), Duration::from_secs(60));
    assert_eq!((status.status.code(), stdout_and_stderr(&status).contains("No belljar was started")), (Some(1), true));
    let down = site.run(&["down"]);
    assert!(down.status.success(), "{}", stdout_and_stderr(&down));
}
