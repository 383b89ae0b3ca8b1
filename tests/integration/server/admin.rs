//! The operator's endpoint of a real server: health, metrics as Prometheus reads them, and the data of the console.

use std::io::{BufRead as _, BufReader, Read as _, Write as _};
use std::net::{SocketAddr, TcpListener, TcpStream};
use std::process::{Command, Stdio};
use std::time::Duration;

use belljar_tests::{Era, Process, Server, Site, debian, places, wait_until};
use serde_json::Value;

use crate::support::{empty, stdout_and_stderr};

/// A server with the endpoint, and the address of the endpoint.
pub(super) fn started(more: &str) -> (Site, Server, SocketAddr) {
    let site = empty();
    site.mount_as("guest_fixture", "fixture.wasm");
    site.mount_as("guest_hostile", "hostile.wasm");
    site.config(&format!(
        "audit = \"audit.jsonl\"\n[admin]\nlisten = \"127.0.0.1:0\"\n[limits]\ntime = \"60s\"\n{more}\n"
    ));
    let server = site.http();
    let log = server.process.stderr();
    let address = log.split("the console is at http://").nth(1).and_then(|rest| rest.split('/').next());
    let address = address.unwrap_or_else(|| panic!("no address: {log}")).parse().unwrap();
    (site, server, address)
}

/// The status, the head and the body of the answer to a request for `path`.
fn ask(address: SocketAddr, method: &str, path: &str, headers: &[(&str, &str)]) -> (u16, String, String) {
    let mut stream = TcpStream::connect(address).unwrap();
    stream.set_read_timeout(Some(Duration::from_secs(60))).unwrap();
    let host = if headers.iter().any(|(name, _)| *name == "host") { "" } else { "host: localhost\r\n" };
    let more: String = headers.iter().map(|(name, value)| format!("{name}: {value}\r\n")).collect();
    write!(stream, "{method} {path} HTTP/1.1\r\n{host}{more}connection: close\r\n\r\n").unwrap();
    let mut answer = String::new();
    stream.read_to_string(&mut answer).unwrap();
    let (head, body) = answer.split_once("\r\n\r\n").unwrap_or((&answer, ""));
    let status = head.split(' ').nth(1).and_then(|status| status.parse().ok()).unwrap_or_default();
    (status, head.to_ascii_lowercase(), body.to_owned())
}

pub(crate) fn get(address: SocketAddr, path: &str) -> (u16, String, String) {
    ask(address, "GET", path, &[])
}

pub(super) fn state(address: SocketAddr) -> Value {
    let (status, _, body) = get(address, "/api/state");
    assert_eq!(status, 200, "{body}");
    serde_json::from_str(&body).unwrap()
}

/// The value of a metric without labels, or the sum over all labels.
fn metric(address: SocketAddr, name: &str) -> f64 {
    let (status, _, body) = get(address, "/metrics");
    assert_eq!(status, 200);
    let of_name = |line: &&str| line.strip_prefix(name).is_some_and(|rest| rest.starts_with(['{', ' ']));
    body.lines().filter(of_name).filter_map(|line| line.rsplit(' ').next()?.parse::<f64>().ok()).sum()
}

#[test]
fn a_server_is_ready_until_it_is_told_to_stop_and_serves_through_the_delay() {
    let (_site, server, admin) = started("[serve]\ndrain-delay = \"10m\"");
    wait_until("ready", || {
        let (status, _, body) = get(admin, "/readyz");
        if status == 200 { Ok(()) } else { Err(body) }
    });
    assert_eq!(get(admin, "/livez").0, 200);
    let mut client = server.client(Era::Stateless);
    server.process.terminate();
    let stopping = wait_until("not ready", || {
        let (status, _, body) = get(admin, "/readyz");
        if status == 503 { Ok(body) } else { Err(body) }
    });
    assert!(stopping.contains("\"state\":\"stopping\""), "{stopping}");
    assert_eq!(get(admin, "/livez").0, 200, "alive while it drains");
    // A load balancer that has not noticed yet sends more requests.
    client.text("belljar://fixture/static-text");
    server.client(Era::Session).text("belljar://fixture/static-text");
    // `stop` sends the second signal, which ends the delay.
    assert!(server.stop().status.success());
}

#[test]
fn only_requests_for_this_machine_are_answered() {
    let (_site, server, admin) = started("");
    for (headers, status) in [
        (&[("host", "localhost")][..], 200),
        (&[("host", "127.0.0.1:8809")], 200),
        (&[("host", "evil.example")], 403),
        (&[("sec-fetch-site", "same-origin")], 200),
        (&[("sec-fetch-site", "none")], 200),
        (&[("sec-fetch-site", "cross-site")], 403),
        (&[("sec-fetch-site", "same-site")], 403),
    ] {
        for path in ["/", "/metrics", "/api/state", "/livez"] {
            assert_eq!(ask(admin, "GET", path, headers).0, status, "{path} {headers:?}");
        }
    }
    for method in ["POST", "PUT", "DELETE", "OPTIONS"] {
        assert_eq!(ask(admin, method, "/api/state", &[]).0, 405, "{method}");
    }
    assert_eq!(get(admin, "/elsewhere").0, 404);
    let (_, head, _) = get(admin, "/");
    assert!(head.contains("content-security-policy: default-src 'none'; script-src 'self'"), "{head}");
    assert!(!head.contains("unsafe") && !head.contains("access-control"), "{head}");
    // The endpoint of MCP has none of these pages.
    assert_eq!(server.exchange("GET", "/metrics", &[], b"").status, 404);
}

#[test]
fn other_machines_cannot_be_given_access() {
    let site = empty();
    site.config("[admin]\nlisten = \"0.0.0.0:8809\"\n");
    let output = site.run(&["check"]);
    let text = stdout_and_stderr(&output);
    assert!(!output.status.success() && text.contains("admin.listen = \"0.0.0.0:8809\""), "{text}");
    assert!(text.contains("expected a loopback address, such as \"127.0.0.1:8809\""), "{text}");
}

#[test]
fn metrics_count_what_the_record_counts() {
    let (site, server, admin) = started("");
    let mut client = server.client(Era::Stateless);
    for _ in 0..20 {
        client.text("belljar://fixture/static-text");
        client.read("belljar://fixture/nothing-here").unwrap_err();
        client.text("belljar://hostile/http/canary.invalid");
    }
    client.uris();
    server.exchange("GET", "/elsewhere", &[], b"");
    let series = get(admin, "/metrics").2.lines().count();
    for n in 0..100 {
        client.read(&format!("belljar://fixture/nothing-{n}")).unwrap_err();
    }
    assert_eq!(get(admin, "/metrics").2.lines().count(), series, "no series for a URI");
    let own = [
        metric(admin, "belljar_requests_total"),
        metric(admin, "belljar_refused_requests_total"),
        metric(admin, "belljar_denials_total"),
        metric(admin, "belljar_answer_bytes_total"),
    ];
    drop(client);
    assert!(server.stop().status.success());
    let sums = site.run_json(&["audit"]);
    let denials: u64 = sums["denials"].as_array().unwrap().iter().map(|one| one["times"].as_u64().unwrap()).sum();
    assert!(denials == 20 && own[1] > 0.0, "{sums}");
    assert_eq!([own[0] + own[1], own[2]], [sums["total"]["requests"].as_f64().unwrap(), 20.0], "{sums}");
    // belljar itself may have listed again since then.
    let bytes = sums["total"]["bytes"].as_f64().unwrap();
    assert!(own[3] > 0.0 && own[3] <= bytes, "{} of {bytes}", own[3]);
}

#[test]
fn prometheus_reads_the_metrics() {
    let Some(prometheus) = places::program(&debian::PROMETHEUS) else { return };
    let promtool = prometheus.with_file_name("promtool");
    let (site, server, admin) = started("");
    let mut client = server.client(Era::Stateless);
    for _ in 0..30 {
        client.text("belljar://fixture/static-text");
    }
    client.text("belljar://hostile/http/canary.invalid");
    client.read("belljar://fixture/nothing-here").unwrap_err();
    let mut check = Command::new(promtool);
    check.args(["check", "metrics"]).stdin(Stdio::piped()).stdout(Stdio::piped()).stderr(Stdio::piped());
    let mut check = check.spawn().unwrap();
    check.stdin.take().unwrap().write_all(get(admin, "/metrics").2.as_bytes()).unwrap();
    let checked = check.wait_with_output().unwrap();
    let text = stdout_and_stderr(&checked);
    assert!(checked.status.success() && text.trim().is_empty(), "{text}");
    let port = TcpListener::bind("127.0.0.1:0").unwrap().local_addr().unwrap();
    site.write(
        "prometheus.yml",
        format!(
            "scrape_configs:\n- job_name: belljar\n  scrape_interval: 1s\n  static_configs:\n  - targets: [\"{admin}\"]\n"
        ),
    );
    let mut command = Command::new(prometheus);
    command.arg(format!("--config.file={}", site.path("prometheus.yml").display()));
    command.arg(format!("--storage.tsdb.path={}", site.path("series").display()));
    command.arg(format!("--web.listen-address={port}")).stdin(Stdio::null()).stdout(Stdio::null());
    let database = Process::start(command);
    let requests = metric(admin, "belljar_requests_total");
    let query = "/api/v1/query?query=sum(belljar_requests_total)";
    wait_until("the sum of a PromQL query", || {
        let Ok(_) = TcpStream::connect(port) else { return Err(database.stderr()) };
        let (_, _, body) = get(port, query);
        let answer: Value = serde_json::from_str(body.split_once('{').map_or("", |(_, rest)| rest).trim())
            .or_else(|_| serde_json::from_str(&body))
            .unwrap_or_default();
        let value = answer["data"]["result"][0]["value"][1].as_str().and_then(|value| value.parse::<f64>().ok());
        if value == Some(requests) { Ok(()) } else { Err(body) }
    });
    database.kill();
    drop(client);
    assert!(server.stop().status.success());
    assert_eq!(site.run_json(&["audit"])["total"]["requests"].as_f64(), Some(requests));
}

#[test]
fn the_console_shows_what_happened_and_the_cure() {
    let (site, server, admin) = started("[mounts.hostile]\n[mounts.hostile.limits]\nfuel = 1000000");
    let mut stream = BufReader::new(TcpStream::connect(admin).unwrap());
    stream.get_ref().set_read_timeout(Some(Duration::from_secs(60))).unwrap();
    stream.get_mut().write_all(b"GET /api/events HTTP/1.1\r\nhost: localhost\r\n\r\n").unwrap();
    let mut line = String::new();
    while line.trim() != "retry: 500" {
        line.clear();
        stream.read_line(&mut line).unwrap();
    }
    let mut client = server.client(Era::Stateless);
    client.text("belljar://fixture/static-text");
    client.text("belljar://hostile/http/canary.invalid");
    client.read("belljar://hostile/spin").unwrap_err();
    // Each finished request comes as it ends.
    let mut live = Vec::new();
    while !live.iter().any(|one: &Value| one["outcome"] == "limit") {
        line.clear();
        stream.read_line(&mut line).unwrap();
        let data = line.strip_prefix("data: ").map(|data| serde_json::from_str::<Value>(data).unwrap());
        live.extend(data.iter().filter_map(Value::as_array).flatten().cloned());
    }
    let reads: Vec<_> = live.iter().filter(|one| one["method"] == "resources/read").collect();
    assert_eq!(reads.len(), 3, "{live:?}");
    assert_eq!((&reads[0]["mount"], &reads[0]["reference"]), (&"fixture".into(), &"static-text".into()));
    assert!(reads[0]["micros"].as_u64().unwrap() > 0 && reads[0]["bytes"].as_u64().unwrap() > 0, "{live:?}");
    assert_eq!(reads[1]["denied"], 1, "{live:?}");
    let state = state(admin);
    assert_eq!(state["state"], "ready");
    let denial = &state["denials"][0];
    assert_eq!((&denial["mount"], &denial["grant"], &denial["times"]), (&"hostile".into(), &"http".into(), &1.into()));
    let command = denial["command"].as_str().unwrap();
    assert!(command.contains("grant hostile --http http://canary.invalid"), "{command}");
    let limit = &state["limits"][0];
    assert_eq!(
        (&limit["mount"], &limit["limit"], &limit["cap"]),
        (&"hostile".into(), &"fuel".into(), &1_000_000.into())
    );
    assert!(limit["command"].as_str().unwrap().contains("set 'mounts.hostile.limits.fuel = "), "{limit}");
    let mounts: Vec<_> = state["mounts"].as_array().unwrap().iter().map(|mount| &mount["name"]).collect();
    assert_eq!(mounts, ["fixture", "hostile"]);
    let caller = &state["callers"][0];
    assert_eq!((&caller["principal"], &caller["requests"]), (&"anonymous".into(), &4.into()), "{state}");
    assert!(caller["client"].as_str().unwrap().starts_with("belljar-tests"));
    assert_eq!(state["slowest"].as_array().map(Vec::len), Some(4), "{state}");
    // The shown command allows what was refused.
    let program = places::host();
    let script = format!("{} --yes", command.replacen("belljar", &program.display().to_string(), 1));
    let mut run = Command::new("sh");
    run.args(["-c", &script]).env_clear().envs(site.environment()).current_dir(site.path(""));
    let output = run.output().unwrap();
    assert!(output.status.success(), "{script}: {}", stdout_and_stderr(&output));
    drop(client);
    assert!(server.stop().status.success());
}

#[test]
fn the_terminal_shows_the_same() {
    let site = empty();
    site.mount_as("guest_fixture", "fixture.wasm");
    let refused = stdout_and_stderr(&site.run(&["top"]));
    assert!(refused.contains("listen = \"127.0.0.1:8809\""), "{refused}");
    let port = TcpListener::bind("127.0.0.1:0").unwrap().local_addr().unwrap().port();
    site.config(&format!("[admin]\nlisten = \"127.0.0.1:{port}\"\n"));
    let gone = stdout_and_stderr(&site.run(&["top"]));
    assert!(gone.contains(&format!("no belljar serves [admin] at 127.0.0.1:{port}")), "{gone}");
    let server = site.http();
    let mut client = server.client(Era::Stateless);
    for _ in 0..7 {
        client.text("belljar://fixture/static-text");
    }
    let output = site.run(&["top"]);
    let text = stdout_and_stderr(&output);
    assert!(output.status.success() && text.contains("  ready  up "), "{text}");
    let row = text.lines().find(|line| line.starts_with("fixture ")).unwrap_or_else(|| panic!("{text}"));
    assert_eq!(row.split_whitespace().take(3).collect::<Vec<_>>(), ["fixture", "served", "7"], "{text}");
    assert!(text.contains("anonymous (belljar-tests"), "{text}");
    assert_eq!(site.run_json(&["top"])["mounts"][0]["calls"], 7);
    drop(client);
    assert!(server.stop().status.success());
}

/// Each client that starts `belljar serve` itself has a process of its own. The first one has the endpoint.
#[test]
fn a_second_client_is_served_without_the_endpoint() {
    let site = empty();
    site.mount_as("guest_fixture", "fixture.wasm");
    let port = TcpListener::bind("127.0.0.1:0").unwrap().local_addr().unwrap().port();
    site.config(&format!("[admin]\nlisten = \"127.0.0.1:{port}\"\n"));
    let mut clients = [(); 2].map(|()| site.stdio(Era::Stateless));
    clients.iter_mut().for_each(|client| drop(client.text("belljar://fixture/static-text")));
    let logs = clients.map(|client| client.close().stderr);
    let without = logs.iter().filter(|log| log.contains("goes on without the endpoint of [admin]")).count();
    let with = logs.iter().filter(|log| log.contains("the console is at http://")).count();
    assert_eq!((with, without), (1, 1), "{logs:?}");
    // A server over HTTP is the only one of its address, so this is an error.
    let taken = TcpListener::bind(("127.0.0.1", port)).unwrap();
    let output = belljar_tests::process::run(
        site.command(site.arguments(&["serve", "--http", "127.0.0.1:0"])),
        Duration::from_secs(60),
    );
    let said = stdout_and_stderr(&output);
    assert!(!output.status.success() && said.contains(&format!("cannot listen on \"127.0.0.1:{port}\"")), "{said}");
    drop(taken);
}
