//! TCP grants, as an operator and a client see them. The servers are real ones on loopback, with and without TLS. A refusal
//! names the command that would allow the connection.

use std::net::TcpStream;
use std::sync::atomic::{AtomicUsize, Ordering};

use belljar_tests::Era;
use belljar_upstream::{Authority, DnsServer, Upstream};

use super::http::{attack, mount};
use crate::support::{serve, site};

/// A server that answers with what it got, in capitals.
fn shouting() -> Upstream {
    Upstream::raw(shout)
}

fn shout(stream: &mut dyn belljar_upstream::Stream) {
    let mut all = Vec::new();
    let _ = stream.read_to_end(&mut all);
    let _ = stream.write_all(String::from_utf8_lossy(&all).to_uppercase().as_bytes());
}

#[test]
fn granted_servers_are_reached_by_name_and_by_address_and_recorded() {
    let upstream = shouting();
    let names = DnsServer::start(&[("db.test", &["127.0.0.1"]), ("open.test", &["127.0.0.1"])]);
    let port = upstream.port();
    let grants = format!(
        "tcp = [\"127.0.0.1:{port}\", {{ at = \"db.test:{port}\", networks = [\"127.0.0.1\"] }}, \"localhost:{port}\", \"open.test:{port}\"]"
    );
    let site = site(&format!("[network]\ndns = [\"{}\"]\n{}", names.address(), mount(&grants)));
    for era in [Era::Stateless, Era::Session] {
        let mut client = site.stdio(era);
        for host in ["127.0.0.1", "db.test", "DB.test.", "localhost"] {
            assert_eq!(client.text(&attack("talk", &format!("{host}:{port}/hello"))), "reached: HELLO", "{host}");
        }
        // Nobody named the private address of this name.
        let refused = client.read(&attack("dial", &format!("open.test:{port}/hello"))).unwrap_err();
        assert_eq!(refused.data["kind"], "denied", "{refused}");
        let command = format!("belljar grant hostile --tcp open.test:{port} --network 127.0.0.1");
        assert!(refused.data["hint"].as_str().unwrap().contains(&command), "{refused}");
        client.close();
    }
    let records: Vec<_> = site.audit().into_iter().filter(|record| record["mount"] == "hostile").collect();
    assert_eq!(records[1]["grants"][0]["what"], format!("connect db.test:{port}"), "{}", records[1]);
    assert_eq!(records[1]["grants"][0]["grant"], "tcp");
}

#[test]
fn a_refused_connection_names_the_command_that_allows_it() {
    let upstream = shouting();
    let port = upstream.port();
    let site = site(&mount(""));
    let mut client = serve(&site);
    let command = format!("grant hostile --tcp 127.0.0.1:{port}");
    for (host, cure) in [("127.0.0.1", &command), ("db.internal", &"grant hostile --tcp db.internal:PORT".to_owned())] {
        let refused = client.read(&attack("dial", &format!("{host}:{port}/hello"))).unwrap_err();
        assert_eq!(refused.data["kind"], "denied", "{refused}");
        assert!(refused.data["hint"].as_str().unwrap().contains(&format!("run: belljar {cure}")), "{refused}");
    }
    client.close();
    assert_eq!(upstream.connections(), 0);
    // The command does what the denial says.
    let words: Vec<&str> = command.split(' ').chain(["--yes"]).collect();
    let granted = site.run(&words);
    assert!(granted.status.success(), "{granted:?}");
    let written = configuration(&site);
    assert!(written.contains(&format!("tcp = [\"127.0.0.1:{port}\"]")), "{written}");
    let mut client = serve(&site);
    assert_eq!(client.text(&attack("talk", &format!("127.0.0.1:{port}/hello"))), "reached: HELLO");
    client.close();
    let network =
        site.run(&["grant", "hostile", "--tcp", &format!("127.0.0.1:{port}"), "--network", "10.0.0.0/8", "--yes"]);
    assert!(network.status.success(), "{network:?}");
    let written = configuration(&site);
    assert!(
        written.contains(&format!("tcp = [{{ at = \"127.0.0.1:{port}\", networks = [\"10.0.0.0/8\"] }}]")),
        "{written}"
    );
    let revoked = site.run(&["revoke", "hostile", "--tcp", &format!("127.0.0.1:{port}"), "--yes"]);
    assert!(revoked.status.success(), "{revoked:?}");
    assert!(!configuration(&site).contains("tcp"), "{}", configuration(&site));
}

fn configuration(site: &belljar_tests::Site) -> String {
    std::fs::read_to_string(site.path("belljar.toml")).unwrap()
}

#[test]
fn belljar_speaks_tls_and_checks_the_certificate() {
    let authority = Authority::new();
    let (good, stranger) = (
        Upstream::raw_tls(authority.server(&["good.test"]), shout_line),
        Upstream::raw_tls(Authority::stranger(&["bad.test"]), shout_line),
    );
    let names = DnsServer::start(&[("good.test", &["127.0.0.1"]), ("bad.test", &["127.0.0.1"])]);
    let entry = |name: &str, upstream: &Upstream| {
        format!("{{ at = \"{name}:{}\", tls = true, networks = [\"127.0.0.1\"] }}", upstream.port())
    };
    let grants = format!("tcp = [{}, {}]", entry("good.test", &good), entry("bad.test", &stranger));
    let site = site(&format!("[network]\ndns = [\"{}\"]\nca = \"ca.pem\"\n{}", names.address(), mount(&grants)));
    site.write("ca.pem", authority.pem());
    let mut client = serve(&site);
    assert_eq!(client.text(&attack("talk", &format!("good.test:{}/hello\n", good.port()))), "reached: HELLO\n");
    let refused = client.read(&attack("dial", &format!("bad.test:{}/hello\n", stranger.port()))).unwrap_err();
    assert!(refused.message.contains("the certificate of the server is not trusted"), "{refused}");
    assert!(refused.message.contains("set  ca  under [network]"), "{refused}");
    client.close();
}

/// Answers one line in capitals, and ends the connection.
fn shout_line(stream: &mut dyn belljar_upstream::Stream) {
    let mut line = Vec::new();
    let mut byte = [0];
    while !line.ends_with(b"\n") && stream.read(&mut byte).is_ok_and(|read| read == 1) {
        line.extend(byte);
    }
    let _ = stream.write_all(line.to_ascii_uppercase().as_slice());
}

#[test]
fn bytes_and_connections_are_limited_and_the_error_names_the_limit() {
    static RECEIVED: AtomicUsize = AtomicUsize::new(0);
    let upstream = Upstream::raw(|stream| {
        let mut buffer = [0; 4096];
        while let Ok(read @ 1..) = stream.read(&mut buffer) {
            RECEIVED.fetch_add(read, Ordering::Relaxed);
        }
        let _ = stream.write_all(&vec![b'x'; 300_000]);
    });
    let at = format!("127.0.0.1:{}", upstream.port());
    let limits = "[mounts.hostile.limits]\nrequests = 3\nupload = \"10KiB\"\ndownload = \"100KiB\"\nconnections = 8\n";
    let site = site(&format!("{}{limits}", mount(&format!("tcp = [\"{at}\"]"))));
    let mut client = serve(&site);
    let said = client.text(&attack("connections", &format!("{at}/2/1000")));
    assert_eq!(said, "2 connections");
    for (verb, argument, limit) in [
        ("connections", format!("{at}/4/0"), "requests"),
        ("connections", format!("{at}/1/20000"), "upload"),
        ("dial", format!("{at}/x"), "download"),
    ] {
        let answer = client.read(&attack(verb, &argument));
        let error = match answer {
            Err(error) => error,
            Ok(answer) => panic!("{limit}: {answer}"),
        };
        assert_eq!(error.data["limit"], limit, "{error}");
    }
    client.close();
    assert!(RECEIVED.load(Ordering::Relaxed) < 16_000, "{RECEIVED:?}");
}

#[test]
fn impossible_grants_are_refused_with_the_cure() {
    for (grants, expected) in [
        ("tcp = [\"db.internal\"]", "\"db.internal\" has no port"),
        ("tcp = [\"db.internal:0\"]", "the port is not a number from 1 to 65535"),
        ("tcp = [\"*.internal:5432\"]", "other characters than letters"),
        ("tcp = [\"127.1:5432\"]", "four decimal numbers"),
        ("tcp = [\"a.test:1\", \"A.test.:1\"]", "granted twice"),
        ("tcp = [{ at = \"a.test:1\", tsl = true }]", "tls"),
        ("tcp = [{ at = \"a.test:1\", networks = [\"x\"] }]", "neither an address nor a network"),
        ("tcp = [7]", "host and port such as"),
    ] {
        let site = site(&mount(grants));
        let checked = site.run(&["check"]);
        let said = format!("{}{}", String::from_utf8_lossy(&checked.stdout), String::from_utf8_lossy(&checked.stderr));
        assert!(!checked.status.success() && said.contains(expected), "{grants}: {said}");
    }
}

/// Tests of a port on which nobody listens any more need that.
#[test]
fn a_test_server_that_was_dropped_has_closed_its_port() {
    for _ in 0..50 {
        let server = shouting();
        let address = server.address();
        assert!(TcpStream::connect(address).is_ok());
        drop(server);
        assert!(TcpStream::connect(address).is_err(), "{address}");
    }
}
