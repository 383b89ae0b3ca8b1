//! Hostile rows about the network without a grant. A provider reaches no address, however the address is written. Rows
//! of mounts with HTTP grants are in `hostile_http.rs` and `hostile_upstreams.rs`.

use crate::row::{Row, RunMode, Stops, hostile_guest};
use crate::tools::{lines_begin, path, shown};

/// Why no attempt of these rows reaches the network.
const NO_GRANT: Stops = Stops::Structure(
    "no grant of the mount allows the request, and belljar checks that before a name lookup; sockets and name lookups are always refused",
);

/// A row whose hostile guest makes each of these attempts. belljar must refuse all of them.
fn refused(id: &'static str, attack: &'static str, attempts: &[(&str, &str)]) -> Row {
    let row = attempts.iter().fold(hostile_guest(id, attack), |row, (verb, target)| {
        // The row replaces `{listener}` by an encoded address later, so `path` must not encode the braces.
        let target = target.split("{listener}").map(path).collect::<Vec<_>>().join("{listener}");
        row.read(format!("{verb}/{target}"), lines_begin(&["refused: "]))
    });
    row.stopped(NO_GRANT)
}

/// A row whose hostile guest sends HTTP requests to each of these hosts. belljar must refuse all of them.
fn by_http(id: &'static str, attack: &'static str, hosts: &[&str]) -> Row {
    let attempts: Vec<_> = hosts.iter().map(|host| ("http", *host)).collect();
    refused(id, attack, &attempts)
}

pub(crate) fn rows() -> Vec<Row> {
    vec![
        by_http(
            "NET-01",
            "a provider sends HTTP requests without a grant",
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
            "a provider looks up names, and so sends data to a name server",
            &[("dns", "secret.canary.invalid"), ("dns", "localhost"), ("tcp", "canary.invalid:80")],
        ),
        by_http(
            "NET-04",
            "the address of this machine, in many spellings",
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
            "addresses of cloud metadata, private networks, multicast and broadcast",
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
            "ports, in many spellings",
            &["127.0.0.1:0", "127.0.0.1:65535", "localhost:443", "localhost:080", "{listener}"],
        ),
        by_http(
            "NET-10",
            "equal host names in other spellings",
            &["canary.invalid.", "CANARY.invalid", "canary..invalid", "xn--cnary-dqa.invalid", &"a".repeat(254)],
        ),
        by_http("NET-15", "belljar's environment names HTTP proxies", &["canary.invalid", "{listener}"]).shell(
            "export http_proxy=http://127.0.0.1:9 HTTPS_PROXY=http://127.0.0.1:9 ALL_PROXY=socks5://127.0.0.1:9",
        ),
        hostile_guest("NET-22", "a provider connects to belljar's own port")
            .run_mode(RunMode::Http)
            .act(|context| {
                let address = path(context.server().address().to_string());
                for verb in ["http", "tcp"] {
                    let said = shown(&context.read(&format!("{verb}/{address}")));
                    assert!(said.contains("refused: "), "{verb}: {said}");
                }
                "refused".to_owned()
            })
            .stopped(NO_GRANT),
    ]
}
