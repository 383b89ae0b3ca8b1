//! No provider reaches anybody: not by HTTP, not by a socket, not by asking for a name. Each attempt is refused at once,
//! is on record with what it was for, and nobody is called.

use std::io::ErrorKind;
use std::net::{TcpListener, UdpSocket};
use std::time::Duration;

use serde_json::Value;

use crate::place::{SLACK, attack_by_read, serve, site};

/// Somebody who could be reached, and was not.
struct Canary {
    tcp: TcpListener,
    udp: UdpSocket,
}

impl Canary {
    fn new() -> Canary {
        let tcp = TcpListener::bind("127.0.0.1:0").unwrap();
        let udp = UdpSocket::bind(tcp.local_addr().unwrap()).unwrap();
        tcp.set_nonblocking(true).unwrap();
        udp.set_nonblocking(true).unwrap();
        Canary { tcp, udp }
    }

    fn port(&self) -> u16 {
        self.tcp.local_addr().unwrap().port()
    }

    /// How many called since the last look.
    fn calls(&self) -> usize {
        let ended = |error: &std::io::Error| assert_eq!(error.kind(), ErrorKind::WouldBlock, "{error}");
        let connections = std::iter::from_fn(|| self.tcp.accept().map_err(|error| ended(&error)).ok()).count();
        let datagrams = std::iter::from_fn(|| self.udp.recv_from(&mut [0; 64]).map_err(|error| ended(&error)).ok());
        connections + datagrams.count()
    }
}

#[test]
fn nobody_is_reached_and_each_attempt_is_on_record() {
    let canary = Canary::new();
    let port = canary.port();
    let at = |host: &str| format!("{host}:{port}");
    // The verb, what it is for, and how that is told.
    let mut attempts = vec![
        ("http", "canary.invalid".to_owned(), "GET http://canary.invalid"),
        ("http", "169.254.169.254".to_owned(), "GET http://169.254.169.254"),
        ("udp", at("127.0.0.1"), "UDP socket"),
        ("listen", "127.0.0.1:0".to_owned(), "TCP socket"),
        ("dns", "canary.invalid".to_owned(), "name lookup of canary.invalid"),
        ("dns", "localhost".to_owned(), "name lookup of localhost"),
        ("tcp", at("localhost"), "name lookup of localhost"),
    ];
    for host in ["127.0.0.1", "localhost", "127.1", "2130706433", "0x7f000001", "[::1]", "[::ffff:127.0.0.1]", "0"] {
        attempts.push(("http", at(host), ""));
    }
    for address in ["127.0.0.1", "[::1]", "[::ffff:127.0.0.1]", "0.0.0.0"] {
        attempts.push(("tcp", at(address), "TCP socket"));
    }
    let site = site("[mounts.imp]\ncomponent = \"imp.wasm\"\n");
    let mut client = serve(&site);
    for (verb, target, _) in &attempts {
        let encoded = target.replace('[', "%255B").replace(']', "%255D").replace(':', "%253A");
        let attack = attack_by_read(&mut client, &format!("belljar://imp/{verb}/{encoded}"));
        let result = attack.answer.unwrap_or_else(|error| panic!("{verb} {target}: {error}"));
        let said = result["contents"][0]["text"].as_str().unwrap();
        assert!(said.starts_with("refused: "), "{verb} {target}: {said}");
        assert!(attack.took < SLACK, "{verb} {target} took {:?}", attack.took);
    }
    assert_eq!(canary.calls(), 0);
    assert!(client.close().status.success());

    let records: Vec<Value> = site.audit().into_iter().filter(|record| record["mount"] == "imp").collect();
    assert_eq!(records.len(), attempts.len());
    for ((verb, target, what), record) in attempts.iter().zip(records) {
        let denials = record["denials"].as_array().unwrap();
        let denial = denials
            .iter()
            .find(|denial| denial["grant"] == "http")
            .unwrap_or_else(|| panic!("{verb} {target}: {record}"));
        let told = denial["what"].as_str().unwrap();
        assert!(told.starts_with(what), "{verb} {target}: {denial}");
        assert!(*verb != "http" || told.starts_with("GET http://"), "{verb} {target}: {denial}");
        // A path or a query may carry what the guest read.
        assert!(!told.contains("secret"), "{denial}");
        assert_eq!(record["grants"], Value::Array(Vec::new()), "{record}");
    }

    // The canary would have told.
    drop(std::net::TcpStream::connect(("127.0.0.1", port)).unwrap());
    UdpSocket::bind("127.0.0.1:0").unwrap().send_to(b"x", ("127.0.0.1", port)).unwrap();
    std::thread::sleep(Duration::from_millis(50));
    assert_eq!(canary.calls(), 2);
}

/// The proxy settings of whoever started the host are the host's.
#[test]
fn a_proxy_of_the_hosts_is_not_used() {
    let canary = Canary::new();
    let mut site = site("[mounts.imp]\ncomponent = \"imp.wasm\"\n");
    for name in ["http_proxy", "HTTP_PROXY", "ALL_PROXY", "https_proxy"] {
        site.env(name, format!("http://127.0.0.1:{}", canary.port()));
    }
    let mut client = serve(&site);
    assert!(client.text("belljar://imp/http/canary.invalid").starts_with("refused: "));
    assert_eq!(canary.calls(), 0);
}
