//! Questions about origins: which are asked at all, and that whoever allows one allows this one, once.

use std::net::Ipv4Addr;

use belljar_tests::Era;
use belljar_tests::net::{PUBLIC, isolated};
use belljar_upstream::{Asked, Names, Upstream};

use crate::consent::{answer, ask, chosen, denial, params, question, text, unasked};
use crate::place::{kind, site};

/// The URI at which the imp gets these URLs.
fn reach(urls: &str) -> String {
    let encoded = urls.bytes().fold(String::new(), |all, byte| match byte {
        b'a'..=b'z' | b'A'..=b'Z' | b'0'..=b'9' | b'-' | b'.' => all + &char::from(byte).to_string(),
        _ => all + &format!("%25{byte:02X}"),
    });
    format!("belljar://imp/reach/{encoded}")
}

/// What every upstream here answers.
fn ok(_: &Asked) -> Vec<u8> {
    belljar_upstream::answer("200 OK", "", "ok")
}

/// Names of this machine, addresses in every spelling, other ports, and what is no origin at all: nobody is asked.
#[test]
fn nothing_but_names_of_the_public_internet_is_asked_for() {
    let site = site("[mounts.imp]\ncomponent = \"imp.wasm\"\nask = \"persist\"\n");
    let mut client = site.stdio(Era::Modern);
    for never in [
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
        let answered = ask(&mut client, params(&reach(never)));
        let error = answered.err().unwrap_or_else(|| panic!("{never}: it is asked for, or reached"));
        assert!(["denied", "invalid", "unavailable", "failed"].contains(&kind(&error)), "{never}: {error}");
    }
    let question = question(&ask(&mut client, params(&reach("https://api.example/"))).unwrap());
    assert!(question.message.contains("requests (GET and HEAD) to \"https://api.example\""), "{}", question.message);
    assert!(client.close().status.success());
    let asked: Vec<_> = site.audit().into_iter().filter(|record| record["asked"].is_object()).collect();
    assert_eq!(asked.len(), 1, "{asked:?}");
    assert_eq!(asked[0]["asked"]["what"], "https://api.example");
}

#[test]
fn whoever_allows_an_origin_allows_this_one_once() {
    isolated("origins::whoever_allows_an_origin_allows_this_one_once", || {
        let (upstream, local) = (Upstream::at((PUBLIC, 80), ok), Upstream::at((Ipv4Addr::LOCALHOST, 80), ok));
        let names = Names::start(&[
            ("api.example", &[&PUBLIC.to_string()]),
            ("other.example", &[&PUBLIC.to_string()]),
            ("rebound.example", &["127.0.0.1"]),
            ("refused.example", &[&PUBLIC.to_string()]),
        ]);
        let site = site(&format!(
            "[network]\ndns = [\"{}\"]\n[mounts.imp]\ncomponent = \"imp.wasm\"\nask = true\n",
            names.address()
        ));
        let mut client = site.stdio(Era::Modern);
        let api = reach("http://api.example/a?secret=1");
        let first = question(&ask(&mut client, params(&api)).unwrap());
        assert!(first.message.contains("\"http://api.example\""), "{}", first.message);
        // What a provider asked for is no message to a name server: nothing left this machine yet.
        assert_eq!((names.asked(), upstream.connections()), (0, 0));
        let result = ask(&mut client, answer(&api, &first.state, chosen("once"))).unwrap();
        assert_eq!((text(&result), upstream.connections()), ("200", 1));
        denial(ask(&mut client, params(&api)));
        unasked(client.read(&api));
        assert_eq!(upstream.connections(), 1);

        // Another origin needs a question of its own; the first one is refused meanwhile, within its minute.
        let other = reach("http://other.example/");
        let second = question(&ask(&mut client, params(&other)).unwrap());
        let result = ask(&mut client, answer(&other, &second.state, chosen("once"))).unwrap();
        assert_eq!((text(&result), upstream.connections()), ("200", 2));

        let refused = reach("http://refused.example/");
        let third = question(&ask(&mut client, params(&refused)).unwrap());
        let error = denial(ask(&mut client, answer(&refused, &third.state, chosen("deny"))));
        assert!(
            error.data["hint"].as_str().unwrap().contains("belljar grant imp --http http://refused.example"),
            "{error}"
        );
        assert_eq!(upstream.connections(), 2);

        // A public name that leads to this machine leads nowhere, whoever allows it.
        let rebound = reach("http://rebound.example/");
        let fourth = question(&ask(&mut client, params(&rebound)).unwrap());
        let error = ask(&mut client, answer(&rebound, &fourth.state, chosen("once"))).expect_err("no way there");
        assert!(["denied", "unavailable"].contains(&kind(&error)), "{error}");
        assert_eq!(local.connections(), 0);
        // The listener would have told.
        drop(std::net::TcpStream::connect((Ipv4Addr::LOCALHOST, 80)).unwrap());
        std::thread::sleep(std::time::Duration::from_millis(50));
        assert_eq!(local.connections(), 1);
        assert!(client.close().status.success());
        let records = site.audit();
        let once = records.iter().find(|record| record["answered"]["answer"] == "once").unwrap();
        assert_eq!(once["grants"][0]["what"], "GET http://api.example", "{once}");
    });
}

/// An origin that is always allowed is a grant like any other.
#[test]
fn an_origin_that_is_always_allowed_is_a_grant() {
    isolated("origins::an_origin_that_is_always_allowed_is_a_grant", || {
        let upstream = Upstream::at((PUBLIC, 80), ok);
        let names = Names::start(&[("api.example", &[&PUBLIC.to_string()])]);
        let site = site(&format!(
            "[network]\ndns = [\"{}\"]\n[mounts.imp]\ncomponent = \"imp.wasm\"\nask = \"persist\"\n",
            names.address()
        ));
        let api = reach("http://api.example/");
        let mut client = site.stdio(Era::Modern);
        let first = question(&ask(&mut client, params(&api)).unwrap());
        let result = ask(&mut client, answer(&api, &first.state, chosen("always"))).unwrap();
        assert_eq!(text(&result), "200");
        assert_eq!(text(&client.read(&api).unwrap()), "200", "without a question");
        assert!(client.close().status.success());
        let written = std::fs::read_to_string(site.path("belljar.toml")).unwrap();
        assert!(written.contains("[[mounts.imp.http]]\norigin = \"http://api.example\"\n"), "{written}");
        assert_eq!(text(&site.stdio(Era::Older).read(&api).unwrap()), "200", "after a restart");
        assert_eq!(upstream.connections(), 3);
    });
}

#[test]
fn two_origins_of_one_read_are_two_questions() {
    isolated("origins::two_origins_of_one_read_are_two_questions", || {
        let upstream = Upstream::at((PUBLIC, 80), ok);
        let names = Names::start(&[("one.example", &[&PUBLIC.to_string()]), ("two.example", &[&PUBLIC.to_string()])]);
        let site = site(&format!(
            "[network]\ndns = [\"{}\"]\n[mounts.imp]\ncomponent = \"imp.wasm\"\nask = true\n",
            names.address()
        ));
        let server = site.http();
        let mut client = server.client(Era::Modern);
        let both = reach("http://one.example/ http://two.example/");
        let first = question(&ask(&mut client, params(&both)).unwrap());
        assert!(first.message.contains("\"http://one.example\""), "{}", first.message);
        let second = question(&ask(&mut client, answer(&both, &first.state, chosen("once"))).unwrap());
        assert!(second.message.contains("\"http://two.example\""), "{}", second.message);
        assert_eq!(upstream.connections(), 1, "the first one was reached on the way");
        let result = ask(&mut client, answer(&both, &second.state, chosen("once"))).unwrap();
        assert_eq!((text(&result), upstream.connections()), ("200 200", 3));
    });
}
