//! The front door of the real server: TLS, names, pages, proxies, open addresses, challenges, and what the record says
//! of them.

use std::net::SocketAddr;
use std::os::unix::fs::PermissionsExt;
use std::time::Duration;

use belljar_tests::{Era, Process, Response, Server, Site, wait_until};
use belljar_upstream::Authority;
use belljar_upstream::client::{self, TlsExchange, VERSIONS};
use serde_json::{Value, json};

use super::oauth::protected::own_address;
use crate::support::{empty, stdout_and_stderr};

/// The time until a server listens. It compiles no component.
const START: Duration = Duration::from_secs(120);

const INITIALIZE: &str = r#"{"jsonrpc":"2.0","id":1,"method":"initialize","params":{"protocolVersion":"2025-11-25","capabilities":{},"clientInfo":{"name":"t","version":"1"}}}"#;

/// The headers of a client that opens a session.
const CLIENT: [(&str, &str); 2] =
    [("Content-Type", "application/json"), ("Accept", "application/json, text/event-stream")];

/// A site with this configuration and no components. The record is in `audit.jsonl`. There are no keys.
fn site(config: &str) -> Site {
    let site = empty();
    site.config(&format!("audit = \"audit.jsonl\"\n{config}"));
    if config.contains("[auth]") {
        site.write("keys.toml", "");
    }
    site
}

/// Starts the server on this address, and returns the URL that it prints.
fn start(site: &Site, address: &str) -> (Server, String) {
    let mut process = Process::start(site.command(site.arguments(&["serve", "--http", address])));
    let url = process.await_stderr(START, |line| {
        line.split_once("listening on ")
            .and_then(|(_, url)| url.split('/').nth(2).map(|at| (at.to_owned(), url.to_owned())))
    });
    let port = url.0.rsplit(':').next().unwrap().parse().unwrap();
    (Server::at(process, SocketAddr::from(([127, 0, 0, 1], port))), url.1)
}

/// Opens a session with these headers.
fn initialize(server: &Server, headers: &[(&str, &str)]) -> Response {
    server.exchange("POST", "/mcp", &[&CLIENT, headers].concat(), INITIALIZE.as_bytes())
}

/// Sends an `initialize` request over TLS.
fn over_tls(server: &Server, ca: &str, host: &str) -> std::io::Result<TlsExchange> {
    over_tls_version(server, ca, host, &VERSIONS)
}

fn over_tls_version(
    server: &Server,
    ca: &str,
    host: &str,
    versions: &[&'static client::TlsVersion],
) -> std::io::Result<TlsExchange> {
    let request = format!(
        "POST /mcp HTTP/1.1\r\nHost: {host}\r\nConnection: close\r\nContent-Type: application/json\r\nAccept: application/json, text/event-stream\r\nContent-Length: {}\r\n\r\n{INITIALIZE}",
        INITIALIZE.len()
    );
    client::exchange(server.address(), (ca, "mcp.example"), versions, request.as_bytes())
}

/// Replaces a file by a rename, as programs that renew certificates do.
fn replace(site: &Site, name: &str, text: &str) {
    let new = site.write(format!("{name}.new"), text);
    std::fs::rename(new, site.path(name)).unwrap();
}

#[test]
fn tls_serves_and_takes_a_new_certificate_without_a_restart() {
    let authority = Authority::new();
    let site =
        site("[serve]\nurl = \"https://mcp.example/mcp\"\ntls = { cert = \"tls/cert.pem\", key = \"tls/key.pem\" }\n");
    let (cert, key) = authority.pair(&["mcp.example"]);
    site.write("tls/cert.pem", cert);
    site.write("tls/key.pem", key);
    let (server, url) = start(&site, "127.0.0.1:0");
    assert!(url.starts_with("https://"), "{url}");
    for version in VERSIONS {
        let exchange = over_tls_version(&server, &authority.pem(), "mcp.example", &[version]).unwrap();
        assert!(exchange.answer.starts_with("HTTP/1.1 200"), "{version:?}: {}", exchange.answer);
        assert_eq!((exchange.version, exchange.protocol), (Some(version.version), Some(b"http/1.1".to_vec())));
    }
    assert!(over_tls(&server, &Authority::new().pem(), "mcp.example").is_err(), "another authority");
    let foreign = over_tls(&server, &authority.pem(), "evil.example").unwrap().answer;
    assert!(foreign.starts_with("HTTP/1.1 403"), "{foreign}");
    let plain = server.raw(b"GET /mcp HTTP/1.1\r\nHost: mcp.example\r\n\r\n");
    assert!(!plain.starts_with(b"HTTP/"), "plain HTTP: {}", String::from_utf8_lossy(&plain));

    let certificate = || over_tls(&server, &authority.pem(), "mcp.example").unwrap().certificate;
    let first = certificate();
    let (cert, key) = authority.pair(&["mcp.example"]);
    replace(&site, "tls/cert.pem", &cert);
    replace(&site, "tls/key.pem", &key);
    wait_until("the new certificate", || if certificate() == first { Err(server.process.stderr()) } else { Ok(()) });
    let second = certificate();

    // A bad pair: the last good one stays.
    replace(&site, "tls/key.pem", "no key\n");
    wait_until("the refusal of the bad key", || {
        let log = server.process.stderr();
        if log.contains("the new certificate is refused, the old one stays in use") { Ok(()) } else { Err(log) }
    });
    assert_eq!(certificate(), second);
    assert!(!server.process.stderr().contains("no key\n"), "no text of the file is logged");

    // A wrong configuration does not keep a certificate from being renewed.
    site.config("calls = \"wrong\"");
    let (cert, key) = authority.pair(&["mcp.example"]);
    replace(&site, "tls/cert.pem", &cert);
    replace(&site, "tls/key.pem", &key);
    wait_until("the third certificate", || if certificate() == second { Err(server.process.stderr()) } else { Ok(()) });
}

#[test]
fn a_private_key_that_others_can_change_is_refused() {
    let site = site("[serve]\ntls = { cert = \"cert.pem\", key = \"key.pem\" }\n");
    let (cert, key) = Authority::new().pair(&["a"]);
    site.write("cert.pem", cert);
    site.write("key.pem", key);
    let mode = |mode| std::fs::set_permissions(site.path("key.pem"), PermissionsExt::from_mode(mode)).unwrap();
    for (bad, cure) in [(0o666, "run: chmod go-w"), (0o620, "run: chmod go-w")] {
        mode(bad);
        for command in [&["serve", "--http", "127.0.0.1:0"][..], &["check"]] {
            let output = site.run(command);
            let printed = stdout_and_stderr(&output);
            assert_eq!(output.status.code(), Some(1), "{command:?}: {printed}");
            assert!(printed.contains("key.pem") && printed.contains(cure), "{command:?}: {printed}");
        }
    }
    mode(0o644);
    let printed = stdout_and_stderr(&site.run(&["check"]));
    assert!(printed.contains("every user of this machine can read the private key"), "{printed}");
    assert!(printed.contains("run: chmod o-r"), "{printed}");
}

#[test]
fn a_proxy_in_front_needs_authentication() {
    let site = site("[serve]\nurl = \"https://mcp.example/mcp\"\nbehind = \"proxy\"\ntrusted = [\"127.0.0.1\"]\n");
    let printed = stdout_and_stderr(&site.run(&["serve", "--http", "127.0.0.1:0"]));
    assert!(printed.contains("anyone who reaches the proxy") && printed.contains("add [auth]"), "{printed}");
}

#[test]
fn a_pair_that_cannot_be_used_stops_the_start() {
    let authority = Authority::new();
    let [(cert, key), (_, other)] = [authority.pair(&["a"]), authority.pair(&["a"])];
    for (cert, key, expected) in [
        (None, Some(key.as_str()), "there is no file"),
        (Some(cert.as_str()), None, "there is no file"),
        (Some(cert.as_str()), Some(other.as_str()), "cannot be used together"),
        (Some("junk"), Some(key.as_str()), "there is no certificate"),
        (Some(cert.as_str()), Some("junk"), "there is no private key"),
    ] {
        let site = site("[serve]\ntls = { cert = \"cert.pem\", key = \"key.pem\" }\n");
        cert.into_iter().for_each(|text| drop(site.write("cert.pem", text)));
        key.into_iter().for_each(|text| drop(site.write("key.pem", text)));
        for command in [&["serve", "--http", "127.0.0.1:0"][..], &["check"]] {
            let output = site.run(command);
            let printed = stdout_and_stderr(&output);
            assert_eq!(output.status.code(), Some(1), "{command:?}: {printed}");
            assert!(printed.contains("serve.tls") && printed.contains(expected), "{command:?}: {printed}");
        }
    }
}

#[test]
fn no_mount_can_be_granted_the_private_key() {
    let site = site(
        "[serve]\ntls = { cert = \"cert.pem\", key = \"keys/key.pem\" }\n[mounts.files]\nfs = { \"/keys\" = \"keys\" }\n",
    );
    let (cert, key) = Authority::new().pair(&["a"]);
    site.write("cert.pem", cert);
    site.write("keys/key.pem", key);
    site.mount("files");
    let printed = stdout_and_stderr(&site.run(&["check"]));
    assert!(printed.contains("refused") && printed.contains("keys"), "{printed}");
}

#[test]
fn an_open_address_is_refused_with_the_cure() {
    for (config, cure) in [
        ("", "add [auth]"),
        ("[serve]\nhosts = [\"a.example\"]\n", "add [auth]"),
        ("[auth]\n", "behind = \"proxy\""),
        ("[auth]\n[serve]\nhosts = [\"a.example\"]\n", "behind = \"proxy\""),
        ("[auth]\n[serve]\nbehind = \"proxy\"\ntrusted = [\"127.0.0.1\"]\n", "hosts = "),
    ] {
        let site = site(config);
        let printed = stdout_and_stderr(&site.run(&["serve", "--http", "0.0.0.0:0"]));
        assert!(printed.contains("is not a loopback address") && printed.contains(cure), "{config}: {printed}");
        // The same in the file, also for `check`.
        let (auth, rest) = config.split_once("[serve]\n").unwrap_or((config, ""));
        site.config(&format!("{auth}[serve]\nhttp = \"0.0.0.0:0\"\n{rest}"));
        for command in ["serve", "check"] {
            let output = site.run(&[command]);
            let printed = stdout_and_stderr(&output);
            assert_eq!(output.status.code(), Some(1), "{command} {config}: {printed}");
            assert!(printed.contains("is not a loopback address") && printed.contains(cure), "{config}: {printed}");
        }
    }
}

#[test]
fn an_open_address_behind_a_proxy_is_served_to_the_proxy_only() {
    let config = |trusted: &str| {
        format!("[auth]\n[serve]\nhosts = [\"a.example\"]\nbehind = \"proxy\"\ntrusted = [\"{trusted}\"]\n")
    };
    let (proxied, _) = start(&site(&config("127.0.0.1")), "0.0.0.0:0");
    assert_eq!(initialize(&proxied, &[("Host", "a.example")]).status, 401);
    let own = proxied.address().to_string();
    assert_eq!(initialize(&proxied, &[("Host", &own)]).status, 403, "an address is no name of an open server");
    let (closed, _) = start(&site(&config("10.0.0.0/8")), "0.0.0.0:0");
    let stranger = initialize(&closed, &[("Host", "a.example"), ("X-Forwarded-For", "10.0.0.1")]);
    assert_eq!(stranger.status, 403);
    assert!(stranger.text().contains("answers its proxy only"), "{}", stranger.text());
}

#[test]
fn the_address_in_the_configuration_is_served_and_the_flag_wins() {
    let address = own_address();
    let site = site(&format!("[serve]\nhttp = \"{address}\"\n"));
    let server = Server::start(site.command(site.arguments(&["serve"])));
    assert_eq!(server.address(), address);
    assert_eq!(initialize(&server, &[]).status, 200);
    assert_ne!(site.http().address(), address, "the first server still has the address");
}

#[test]
fn names_and_pages_of_the_configuration_are_served() {
    let site = site("[serve]\nhosts = [\"mcp.example\"]\norigins = [\"https://app.example\"]\n");
    let server = site.http();
    for (host, status) in
        [("mcp.example", 200), ("MCP.EXAMPLE:443", 200), ("evil.example", 403), ("mcp.example.evil.com", 403)]
    {
        assert_eq!(initialize(&server, &[("Host", host)]).status, status, "{host}");
    }
    let page = ("Origin", "https://app.example");
    let answer = initialize(&server, &[page]);
    assert_eq!((answer.status, answer.header("access-control-allow-origin")), (200, Some("https://app.example")));
    assert!(answer.header("access-control-expose-headers").unwrap().contains("mcp-session-id"));
    assert_eq!(answer.header("vary"), Some("origin"));
    let ask = ("Access-Control-Request-Method", "POST");
    let preflight = server.exchange("OPTIONS", "/mcp", &[page, ask], b"");
    assert_eq!((preflight.status, preflight.header("access-control-allow-origin")), (204, Some("https://app.example")));
    for foreign in ["https://evil.example", "null", "http://app.example", "https://app.example:8443"] {
        let refused = initialize(&server, &[("Origin", foreign)]);
        assert_eq!((refused.status, refused.header("access-control-allow-origin")), (403, None), "{foreign}");
        let refused = server.exchange("OPTIONS", "/mcp", &[("Origin", foreign), ask], b"");
        assert_eq!((refused.status, refused.header("access-control-allow-origin")), (403, None), "{foreign}");
    }
    let plain = initialize(&server, &[]);
    assert_eq!((plain.status, plain.header("access-control-allow-origin")), (200, None));
}

/// The records of refused authentications, once there are `count`.
fn refusals(site: &Site, count: usize) -> Vec<Value> {
    let mut found = Vec::new();
    wait_until("the records of refusals", || {
        found = site.audit().into_iter().filter(|line| line["operation"] == "authenticate").collect();
        if found.len() >= count { Ok(()) } else { Err(format!("{found:?}")) }
    });
    found
}

#[test]
fn every_request_without_a_valid_credential_is_refused_and_recorded() {
    let site = site("[auth]\n[serve]\nurl = \"http://localhost:1/mcp\"\n");
    let server = site.http();
    for method in ["POST", "GET", "DELETE"] {
        let answer = server.exchange(method, "/mcp", &CLIENT, INITIALIZE.as_bytes());
        assert_eq!(answer.status, 401, "{method}");
        assert_eq!(answer.header("www-authenticate"), Some("Bearer realm=\"belljar\""), "no scopes, no issuers");
        assert_eq!(answer.json()["error"]["data"]["kind"], "unauthenticated", "{method}");
    }
    let secret = "bj_secretsecretsecret";
    let bearer = format!("Bearer {secret}");
    let wrong = initialize(&server, &[("Authorization", &bearer)]);
    assert_eq!(wrong.status, 401);
    assert!(wrong.header("www-authenticate").unwrap().starts_with("Bearer error=\"invalid_token\""));
    for headers in [
        vec![("Authorization", bearer.as_str()), ("Authorization", bearer.as_str())],
        vec![("Authorization", "Basic YTpi")],
    ] {
        assert_eq!(initialize(&server, &headers).status, 400, "{headers:?}");
    }
    let in_query = server.exchange("POST", &format!("/mcp?access_token={secret}"), &CLIENT, INITIALIZE.as_bytes());
    assert_eq!(in_query.status, 400);
    let huge = initialize(&server, &[("Authorization", &format!("Bearer {}", "a".repeat(20 << 10)))]);
    assert_eq!(huge.status, 400);
    let mebibyte = format!("GET /mcp HTTP/1.1\r\nHost: x\r\nAuthorization: Bearer {}\r\n\r\n", "a".repeat(1 << 20));
    let answer = String::from_utf8_lossy(&server.raw(mebibyte.as_bytes())).into_owned();
    assert!(answer.is_empty() || answer.starts_with("HTTP/1.1 431"), "{answer}");

    let records = refusals(&site, 8);
    assert_eq!(records.len(), 8, "{records:?}");
    for record in &records {
        assert_eq!(record["caller"]["address"], "127.0.0.1", "{record}");
        assert_eq!((&record["outcome"], &record["blame"]), (&json!("unauthenticated"), &json!("caller")), "{record}");
    }
    let with_digest: Vec<_> = records.iter().filter_map(|record| record["credential"].as_str()).collect();
    assert_eq!(with_digest.len(), 1, "{records:?}");
    assert!(with_digest[0].len() == 8 && with_digest[0].bytes().all(|byte| byte.is_ascii_hexdigit()));
    let (record, log) = (std::fs::read_to_string(site.path("audit.jsonl")).unwrap(), server.process.stderr());
    assert!(!record.contains("secret") && !log.contains("secret"), "{record}\n{log}");
}

#[test]
fn repeated_failures_are_answered_with_a_time_to_wait() {
    let site = site("[auth]\n");
    let server = site.http();
    let fail = |number: u32| initialize(&server, &[("Authorization", &format!("Bearer wrong{number}"))]);
    let statuses: Vec<u16> = (0..10).map(|number| fail(number).status).collect();
    assert_eq!(statuses, [401; 10]);
    // Each pause is longer than the time since the last answer, sooner or later.
    wait_until("a closed address", || {
        let answer = fail(99);
        match (answer.status, answer.header("retry-after")) {
            (429, Some(seconds)) if seconds.parse::<u32>().is_ok_and(|seconds| seconds > 0) => Ok(()),
            (status, _) => Err(format!("{status}")),
        }
    });
    assert_eq!(initialize(&server, &[]).status, 401, "a request without a credential is told what to send");
}

#[test]
fn without_issuers_there_is_no_metadata() {
    let site = site("[auth]\n[serve]\nurl = \"http://localhost:1/mcp\"\n");
    let server = site.http();
    for path in ["/.well-known/oauth-protected-resource", "/.well-known/oauth-protected-resource/mcp"] {
        let answer = server.exchange("GET", path, &[("Origin", "https://any.example")], b"");
        assert_eq!((answer.status, answer.header("access-control-allow-origin")), (404, Some("*")), "{path}");
        assert_eq!(server.exchange("GET", path, &[("Host", "evil.example")], b"").status, 403, "{path}");
    }
}

#[test]
fn each_record_names_the_principal() {
    let config = "[limits]\ntime = \"60s\"\n";
    let http = site(config);
    http.mount("clock");
    let server = http.http();
    let mut client = server.client(Era::Stateless);
    client.text("belljar://clock/utc");
    let stdio = site(config);
    stdio.mount("clock");
    // Lives until the record is written.
    let mut local = stdio.stdio(Era::Stateless);
    local.text("belljar://clock/utc");
    for (site, principal) in [(&http, "anonymous"), (&stdio, "local")] {
        let caller = site.await_record("the read", |line| line["operation"] == "read")["caller"].clone();
        assert_eq!(caller["principal"], principal, "{caller}");
        assert_eq!(caller.get("address"), None, "an endpoint without [auth] records no addresses: {caller}");
    }
}
