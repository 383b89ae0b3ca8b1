//! The network without a grant: a provider reaches nobody, whatever it asks for and however it spells it. What granted
//! mounts may do is in `egress` and `upstreams`.

use crate::row::{Row, Stops, Way, imp};
use crate::tools::{lines_begin, path, shown};

const NONE: Stops = Stops::Structure(
    "no rule of the mount fits; a request is judged before a name is looked up, and sockets and look-ups are refused always",
);

/// A row about the imp that asks for each of these, and is refused.
fn refused(id: &'static str, attack: &'static str, asked: &[(&str, &str)]) -> Row {
    let row = asked.iter().fold(imp(id, attack), |row, (verb, target)| {
        // `{listener}` is filled in, encoded, later.
        let target = target.split("{listener}").map(path).collect::<Vec<_>>().join("{listener}");
        row.read(format!("{verb}/{target}"), lines_begin(&["refused: "]))
    });
    row.stopped(NONE)
}

/// The same for requests by HTTP.
fn by_http(id: &'static str, attack: &'static str, hosts: &[&str]) -> Row {
    let asked: Vec<_> = hosts.iter().map(|host| ("http", *host)).collect();
    refused(id, attack, &asked)
}

pub(crate) fn rows() -> Vec<Row> {
    vec![
        by_http(
            "NET-01",
            "a provider sends a request by HTTP without a grant",
            &["{listener}", "canary.invalid", "example.com"],
        ),
        refused(
            "NET-02",
            "a provider opens sockets: to connect, to send, to listen",
            &[
                ("tcp", "{listener}"),
                ("udp", "{listener}"),
                ("listen", "127.0.0.1:0"),
                ("listen", "0.0.0.0:0"),
                ("tcp", "[::1]:22"),
            ],
        ),
        refused(
            "NET-03",
            "a provider asks for names, to tell what it read to whoever answers",
            &[("dns", "secret.canary.invalid"), ("dns", "localhost"), ("tcp", "canary.invalid:80")],
        ),
        by_http(
            "NET-04",
            "this machine's address in every spelling",
            &[
                "127.0.0.1",
                "127.1",
                "2130706433",
                "0x7f000001",
                "017700000001",
                "0",
                "[::1]",
                "[::ffff:127.0.0.1]",
                "[::127.0.0.1]",
                "[64:ff9b::7f00:1]",
                "[2002:7f00:1::]",
                "localhost",
                "localhost.",
                "LOCALHOST",
                "0.0.0.0",
            ],
        ),
        by_http(
            "NET-05",
            "addresses of clouds, private networks and everybody",
            &[
                "169.254.169.254",
                "[fd00:ec2::254]",
                "100.64.0.1",
                "10.0.0.1",
                "198.18.0.1",
                "224.0.0.1",
                "255.255.255.255",
                "192.168.1.1",
            ],
        ),
        by_http(
            "NET-08",
            "ports in every spelling",
            &["127.0.0.1:0", "127.0.0.1:65535", "localhost:443", "localhost:080", "{listener}"],
        ),
        by_http(
            "NET-10",
            "names that are the same and look otherwise",
            &["canary.invalid.", "CANARY.invalid", "canary..invalid", "xn--cnary-dqa.invalid", &"a".repeat(254)],
        ),
        by_http("NET-15", "whoever starts belljar has proxies in the environment", &["canary.invalid", "{listener}"])
            .shell(
                "export http_proxy=http://127.0.0.1:9 HTTPS_PROXY=http://127.0.0.1:9 ALL_PROXY=socks5://127.0.0.1:9",
            ),
        imp("NET-22", "a provider asks belljar's own port")
            .way(Way::Http)
            .act(|scene| {
                let own = path(scene.server().address().to_string());
                for verb in ["http", "tcp"] {
                    let said = shown(&scene.read(&format!("{verb}/{own}")));
                    assert!(said.contains("refused: "), "{verb}: {said}");
                }
                "refused".to_owned()
            })
            .stopped(NONE),
    ]
}
