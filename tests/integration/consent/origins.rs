//! Consent to an HTTP origin: for which origins belljar asks a person, and that an answer allows one origin for one
//! read. The upstreams are real servers in a network namespace of their own.

use std::net::Ipv4Addr;

use belljar_tests::net::{PUBLIC, isolated};
use belljar_tests::{Era, wait_until};
use belljar_upstream::{DnsServer, ReceivedRequest, Upstream};

use crate::consent::questions::{answer, ask, chosen, denial, denial_without_elicitation, params, question, text};
use crate::support::{kind, shared, site};

/// The URI that makes the hostile guest send a GET request to each of these URLs. Spaces separate the URLs.
fn reach(urls: &str) -> String {
    let encoded = urls.bytes().fold(String::new(), |all, byte| match byte {
        b'a'..=b'z' | b'A'..=b'Z' | b'0'..=b'9' | b'-' | b'.' => all + &char::from(byte).to_string(),
        _ => all + &format!("%25{byte:02X}"),
    });
    format!("belljar://hostile/reach/{encoded}")
}

/// The answer of every upstream.
fn ok(_: &ReceivedRequest) -> Vec<u8> {
    belljar_upstream::answer("200 OK", "", "ok")
}

/// belljar asks no question for names of this machine, for addresses in any spelling, for other ports, or for URLs
/// without a valid origin.
#[test]
fn only_public_host_names_can_be_allowed() {
    let site = site("[mounts.hostile]\ncomponent = \"hostile.wasm\"\nask = \"persist\"\n");
    let mut client = site.stdio(Era::Stateless);
    for url in [
        "http://localhost/",
        "https://localhost/",
        "http://LOCALHOST./",
        "http://a.localhost/",
        "http://127.0.0.1/",
        "http://127.1/",
        "http://2130706433/",
        "http://0x7f000001/",
        "http://0177.0.0.1/",
        "http://[::1]/",
        "http://[::ffff:127.0.0.1]/",
        "http://[::ffff:7f00:1]/",
        "http://0.0.0.0/",
        "http://10.0.0.1/",
        "http://172.16.0.1/",
        "http://192.168.1.1/",
        "http://100.64.0.1/",
        "http://169.254.169.254/",
        "http://[fe80::1]/",
        "http://[fd00::1]/",
        "http://[64:ff9b::a00:1]/",
        "http://93.184.215.14/",
        "https://[2606:2800:21f::1]/",
        "http://router/",
        "http://printer.local/",
        "http://metadata.google.internal/",
        "http://nas.lan/",
        "http://fritz.home.arpa/",
        "http://api.example:8080/",
        "https://api.example:80/",
        "http://user@api.example/",
        "ftp://api.example/",
    ] {
        let answered = ask(&mut client, params(&reach(url)));
        let error = answered.err().unwrap_or_else(|| panic!("{url}: belljar asked a question, or sent a request"));
        assert!(["denied", "invalid", "unavailable", "failed"].contains(&kind(&error)), "{url}: {error}");
    }
    let question = question(&ask(&mut client, params(&reach("https://api.example/"))).unwrap());
    assert!(question.message.contains("requests (GET and HEAD) to \"https://api.example\""), "{}", question.message);
    assert!(client.close().status.success());
    let questions: Vec<_> = site.audit().into_iter().filter(|record| record["asked"].is_object()).collect();
    assert_eq!(questions.len(), 1, "{questions:?}");
    assert_eq!(questions[0]["asked"]["what"], "https://api.example");
}

/// Runs a test in its own network namespace, with the shared compiled code.
fn in_a_network(name: &str, body: impl FnOnce()) {
    shared();
    isolated(name, body);
}

#[test]
fn an_allowed_origin_is_allowed_once() {
    in_a_network("consent::origins::an_allowed_origin_is_allowed_once", || {
        let (upstream, local) = (Upstream::at((PUBLIC, 80), ok), Upstream::at((Ipv4Addr::LOCALHOST, 80), ok));
        let names = DnsServer::start(&[
            ("api.example", &[&PUBLIC.to_string()]),
            ("other.example", &[&PUBLIC.to_string()]),
            ("rebound.example", &["127.0.0.1"]),
            ("refused.example", &[&PUBLIC.to_string()]),
        ]);
        let site = site(&format!(
            "[network]\ndns = [\"{}\"]\n[mounts.hostile]\ncomponent = \"hostile.wasm\"\nask = true\n",
            names.address()
        ));
        let mut client = site.stdio(Era::Stateless);
        let api = reach("http://api.example/a?secret=1");
        let first = question(&ask(&mut client, params(&api)).unwrap());
        assert!(first.message.contains("\"http://api.example\""), "{}", first.message);
        // Before the consent, belljar sends nothing, not even a DNS query: the name could carry data of the provider.
        assert_eq!((names.queries(), upstream.connections()), (0, 0));
        let result = ask(&mut client, answer(&api, &first.state, chosen("once"))).unwrap();
        assert_eq!((text(&result), upstream.connections()), ("200", 1));
        denial(ask(&mut client, params(&api)));
        denial_without_elicitation(client.read(&api));
        assert_eq!(upstream.connections(), 1);

        // Another origin needs a question of its own. Within a minute, belljar asks no second question for the first
        // origin.
        let other = reach("http://other.example/");
        let second = question(&ask(&mut client, params(&other)).unwrap());
        let result = ask(&mut client, answer(&other, &second.state, chosen("once"))).unwrap();
        assert_eq!((text(&result), upstream.connections()), ("200", 2));

        let refused = reach("http://refused.example/");
        let third = question(&ask(&mut client, params(&refused)).unwrap());
        let error = denial(ask(&mut client, answer(&refused, &third.state, chosen("deny"))));
        assert!(
            error.data["hint"].as_str().unwrap().contains("belljar grant hostile --http http://refused.example"),
            "{error}"
        );
        assert_eq!(upstream.connections(), 2);

        // belljar never connects to a public name that resolves to this machine, even with consent.
        let rebound = reach("http://rebound.example/");
        let fourth = question(&ask(&mut client, params(&rebound)).unwrap());
        let error = ask(&mut client, answer(&rebound, &fourth.state, chosen("once"))).expect_err("an error");
        assert!(["denied", "unavailable"].contains(&kind(&error)), "{error}");
        assert_eq!(local.connections(), 0);
        // Check that the listener counts connections: it must see one of the test itself.
        drop(std::net::TcpStream::connect((Ipv4Addr::LOCALHOST, 80)).unwrap());
        wait_until("the connection of the test itself", || {
            let connections = local.connections();
            (connections == 1).then_some(()).ok_or_else(|| format!("{connections} connections"))
        });
        assert!(client.close().status.success());
        let records = site.audit();
        let once = records.iter().find(|record| record["answered"]["answer"] == "once").unwrap();
        assert_eq!(once["grants"][0]["what"], "GET http://api.example", "{once}");
    });
}

/// The answer "always" to a question about an origin writes an HTTP grant.
#[test]
fn an_origin_that_is_always_allowed_is_a_grant() {
    in_a_network("consent::origins::an_origin_that_is_always_allowed_is_a_grant", || {
        let upstream = Upstream::at((PUBLIC, 80), ok);
        let names = DnsServer::start(&[("api.example", &[&PUBLIC.to_string()])]);
        let site = site(&format!(
            "[network]\ndns = [\"{}\"]\n[mounts.hostile]\ncomponent = \"hostile.wasm\"\nask = \"persist\"\n",
            names.address()
        ));
        let api = reach("http://api.example/");
        let mut client = site.stdio(Era::Stateless);
        let first = question(&ask(&mut client, params(&api)).unwrap());
        let result = ask(&mut client, answer(&api, &first.state, chosen("always"))).unwrap();
        assert_eq!(text(&result), "200");
        assert_eq!(text(&client.read(&api).unwrap()), "200", "without a question");
        assert!(client.close().status.success());
        let written = std::fs::read_to_string(site.path("belljar.toml")).unwrap();
        assert!(written.contains("[[mounts.hostile.http]]\norigin = \"http://api.example\"\n"), "{written}");
        assert_eq!(text(&site.stdio(Era::Session).read(&api).unwrap()), "200", "after a restart");
        assert_eq!(upstream.connections(), 3);
    });
}

#[test]
fn two_origins_of_one_read_are_two_questions() {
    in_a_network("consent::origins::two_origins_of_one_read_are_two_questions", || {
        let upstream = Upstream::at((PUBLIC, 80), ok);
        let names =
            DnsServer::start(&[("one.example", &[&PUBLIC.to_string()]), ("two.example", &[&PUBLIC.to_string()])]);
        let site = site(&format!(
            "[network]\ndns = [\"{}\"]\n[mounts.hostile]\ncomponent = \"hostile.wasm\"\nask = true\n",
            names.address()
        ));
        let server = site.http();
        let mut client = server.client(Era::Stateless);
        let both = reach("http://one.example/ http://two.example/");
        let first = question(&ask(&mut client, params(&both)).unwrap());
        assert!(first.message.contains("\"http://one.example\""), "{}", first.message);
        let second = question(&ask(&mut client, answer(&both, &first.state, chosen("once"))).unwrap());
        assert!(second.message.contains("\"http://two.example\""), "{}", second.message);
        assert_eq!(upstream.connections(), 1, "only the request to the first origin was sent");
        let result = ask(&mut client, answer(&both, &second.state, chosen("once"))).unwrap();
        assert_eq!((text(&result), upstream.connections()), ("200 200", 3));
    });
}
