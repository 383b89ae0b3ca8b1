//! A provider without a grant reaches no address: not by HTTP, not by a socket, not by a name lookup. belljar refuses
//! each attempt at once, records its purpose, and sends no packet. Real sockets on loopback would count a packet.

use std::io::ErrorKind;
use std::net::{TcpListener, UdpSocket};

use belljar_tests::net::sockets_of_one_port;
use belljar_tests::wait_until;
use serde_json::Value;

use crate::support::{attack_by_read, serve, site};

/// A TCP listener and a UDP socket that count connections and datagrams.
struct Canary {
    tcp: TcpListener,
    udp: UdpSocket,
}

impl Canary {
    fn new() -> Canary {
        let (tcp, udp) = sockets_of_one_port();
        Canary { tcp, udp }
    }

    fn port(&self) -> u16 {
        self.tcp.local_addr().unwrap().port()
    }

    /// The number of connections and datagrams since the last call.
    fn count(&self) -> usize {
        let ended = |error: &std::io::Error| assert_eq!(error.kind(), ErrorKind::WouldBlock, "{error}");
        let connections = std::iter::from_fn(|| self.tcp.accept().map_err(|error| ended(&error)).ok()).count();
        let datagrams = std::iter::from_fn(|| self.udp.recv_from(&mut [0; 64]).map_err(|error| ended(&error)).ok());
        connections + datagrams.count()
    }
}

#[test]
fn no_address_is_reached_and_each_attempt_is_recorded() {
    let canary = Canary::new();
    let port = canary.port();
    let at = |host: &str| format!("{host}:{port}");
    // The operation, its target, and the beginning of the purpose that the record contains.
    let mut attempts = vec![
        ("http", "canary.invalid".to_owned(), "GET http://canary.invalid"),
        ("http", "169.254.169.254".to_owned(), "GET http://169.254.169.254"),
        ("udp", at("127.0.0.1"), "UDP socket"),
        ("listen", "127.0.0.1:0".to_owned(), "bind to 127.0.0.1:0"),
        ("dns", "canary.invalid".to_owned(), "name lookup of canary.invalid"),
        ("dns", "localhost".to_owned(), "name lookup of localhost"),
        ("tcp", at("localhost"), "name lookup of localhost"),
    ];
    for host in ["127.0.0.1", "localhost", "127.1", "2130706433", "0x7f000001", "[::1]", "[::ffff:127.0.0.1]", "0"] {
        attempts.push(("http", at(host), ""));
    }
    for address in ["127.0.0.1", "[::1]", "[::ffff:127.0.0.1]", "0.0.0.0"] {
        attempts.push(("tcp", at(address), "connect "));
    }
    let site = site("[mounts.hostile]\ncomponent = \"hostile.wasm\"\n");
    let mut client = serve(&site);
    for (verb, target, _) in &attempts {
        let encoded = target.replace('[', "%255B").replace(']', "%255D").replace(':', "%253A");
        let attack = attack_by_read(&mut client, &format!("belljar://hostile/{verb}/{encoded}"));
        let result = attack.answer.unwrap_or_else(|error| panic!("{verb} {target}: {error}"));
        let said = result["contents"][0]["text"].as_str().unwrap();
        assert!(said.starts_with("refused: "), "{verb} {target}: {said}");
    }
    assert_eq!(canary.count(), 0);
    assert!(client.close().status.success());

    let records: Vec<Value> = site.audit().into_iter().filter(|record| record["mount"] == "hostile").collect();
    assert_eq!(records.len(), attempts.len());
    for ((verb, target, expected), record) in attempts.iter().zip(records) {
        let denials = record["denials"].as_array().unwrap();
        let denial = denials
            .iter()
            .find(|denial| denial["grant"] == if *verb == "http" { "http" } else { "tcp" })
            .unwrap_or_else(|| panic!("{verb} {target}: {record}"));
        let purpose = denial["what"].as_str().unwrap();
        assert!(purpose.starts_with(expected), "{verb} {target}: {denial}");
        let by_http = purpose.starts_with("GET http://") || purpose == "a request to a malformed URI";
        assert!(*verb != "http" || by_http, "{verb} {target}: {denial}");
        // The hostile guest adds `?secret=1`. The record must not contain paths and queries: they may carry data of the
        // provider.
        assert!(!purpose.contains("secret"), "{denial}");
        assert_eq!(record["grants"], Value::Array(Vec::new()), "{record}");
    }

    // Check that the canary counts: it must see a connection and a datagram of the test itself.
    drop(std::net::TcpStream::connect(("127.0.0.1", port)).unwrap());
    UdpSocket::bind("127.0.0.1:0").unwrap().send_to(b"x", ("127.0.0.1", port)).unwrap();
    wait_until("the connection and the datagram of the test itself", || {
        let count = canary.count();
        (count == 2).then_some(()).ok_or_else(|| format!("{count} of 2"))
    });
}
