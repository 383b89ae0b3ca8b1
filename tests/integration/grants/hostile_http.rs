//! Rows of the hostile table about HTTP grants. The hostile guest (`tests/guests/hostile`) has one granted origin.
//! It tries to reach another one, to change how belljar sends a request, or to break a connection. The upstreams are real
//! servers on loopback.

use std::sync::Arc;
use std::sync::atomic::{AtomicBool, Ordering};
use std::time::{Duration, Instant};

use belljar_upstream::{Authority, DnsServer, Upstream, answer, echo, until_closed};

use crate::expect::{Answer, Expect, cut, text};
use crate::row::{Guest, Row, RunMode, Stops, hostile_guest};
use crate::tools::{deadline, path, shown};

/// The reference that makes the hostile guest send the requests of `order`. `tests/guests/hostile/src/fetch.rs`
/// describes the form of an order.
pub(crate) fn fetch(order: &str) -> String {
    format!("fetch/{}", path(order))
}

/// The line of a mount's table that grants `origin`. `more` holds further keys of the grant.
pub(crate) fn grant(origin: &str, more: &str) -> String {
    let comma = if more.is_empty() { "" } else { ", " };
    format!("http = [{{ origin = \"{origin}\"{comma}{more} }}]")
}

/// The settings that make belljar use the name server `names`.
pub(crate) fn name_server_settings(names: &DnsServer) -> String {
    format!("[network]\ndns = [\"{}\"]", names.address())
}

/// The text of an answer. Panics if the answer is an error.
pub(crate) fn answer_text(answer: &Answer) -> String {
    text(answer).unwrap_or_else(|| panic!("{}", shown(answer))).to_owned()
}

/// Switches the second wall (Landlock) off. It would also refuse connections to ports without a grant, and these rows
/// must test the grants alone.
const WALL_OFF: &str = "wall = \"off\"";

/// Makes the hostile guest send each request of `orders`. belljar must refuse all of them, and `upstream` must get no
/// connection.
fn all_refused(row: Row, upstream: Upstream, orders: Vec<String>) -> Row {
    row.act(move |context| {
        upstream.forget();
        for order in &orders {
            let reply = answer_text(&context.read(&fetch(order)));
            assert!(reply.starts_with("refused: "), "{order}: {reply}");
        }
        assert_eq!(upstream.connections(), 0, "the upstream got a connection");
        format!("{} refused, no upstream reached", orders.len())
    })
}

pub(crate) fn rows() -> Vec<Row> {
    [request_targets(), addresses(), tls(), message_bytes(), own_port()].into_iter().flatten().collect()
}

/// Rows about the target of a request: names, ports, schemes, methods, redirects.
fn request_targets() -> Vec<Row> {
    let upstream = Upstream::plain(|_| answer("200 OK", "", "reached"));
    let port = upstream.port();
    let requests = [
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
        "user@granted.test",
        "granted.test@127.0.0.1",
        "granted.test.evil.test",
        "１２７.0.0.1",
        "[::1%25lo]",
        "127.0.0.1.",
        "granted%2etest",
        "granted..test",
        "evil-granted.test",
        "sub.granted.test",
    ];
    let requests = requests.iter().map(|host| format!("GET http://{host}:{port}/")).collect();
    let names = DnsServer::start(&[("granted.test", &["127.0.0.1"]), ("sub.granted.test", &["127.0.0.1"])]);
    let net_04 = hostile_guest(
        "NET-04",
        "a provider with a grant for one host name sends requests to this machine, in many spellings",
    )
    .config(&grant(&format!("http://granted.test:{port}"), "networks = [\"127.0.0.0/8\"]"))
    .settings(&name_server_settings(&names));
    let net_04 = all_refused(net_04, upstream, requests).stopped_by(&["egress"]);

    let to = Arc::new(Upstream::plain(|_| answer("200 OK", "", "the target")));
    let target = to.port();
    let from =
        Upstream::plain(move |_| answer("302 Found", &format!("location: http://127.0.0.1:{target}/secret\r\n"), ""));
    let (from_port, to_port) = (from.port(), to.port());
    let net_07 = hostile_guest("NET-07", "a granted upstream redirects the provider to an origin without a grant")
        .config(&grant(&format!("http://127.0.0.1:{from_port}"), ""))
        .settings(WALL_OFF)
        .act(move |context| {
            from.forget();
            to.forget();
            let reply = answer_text(&context.read(&fetch(&format!("GET http://127.0.0.1:{from_port}/"))));
            assert!(reply.starts_with("status 302") && reply.contains("got location"), "{reply}");
            let reply = answer_text(&context.read(&fetch(&format!("GET http://127.0.0.1:{to_port}/secret"))));
            assert!(reply.starts_with("refused: "), "{reply}");
            assert_eq!((from.connections(), to.connections()), (1, 0));
            "the provider gets the redirect; a request to its target is refused".to_owned()
        })
        .stopped_by(&["egress"]);

    let upstream = Upstream::plain(|_| answer("200 OK", "", "reached"));
    let granted_port = upstream.port();
    let ports = ["", ":0", ":1", ":65536", ":080", ":+80", ":-1", ":99999999999", ":", ":80x"];
    let mut ports: Vec<_> = ports.iter().map(|port| format!("GET http://127.0.0.1{port}/")).collect();
    let other = Upstream::plain(|_| answer("200 OK", "", "reached"));
    ports.push(format!("GET http://127.0.0.1:{}/", other.port()));
    let net_08 = hostile_guest("NET-08", "a provider sends requests to other ports of a granted host")
        .config(&grant(&format!("http://127.0.0.1:{granted_port}"), ""))
        .settings(WALL_OFF);
    let net_08 = holding(all_refused(net_08, other, ports), upstream).stopped_by(&["egress"]);

    let upstream = Upstream::plain(|_| answer("200 OK", "", "reached"));
    let port = upstream.port();
    let schemes = ["http", "HTTP", "ws", "wss", "ftp", "file", "Https"];
    let mut schemes: Vec<_> = schemes.iter().map(|scheme| format!("GET {scheme}://127.0.0.1:{port}/")).collect();
    schemes.push("GET /".to_owned());
    let net_09 =
        hostile_guest("NET-09", "a provider with an HTTPS grant sends requests without TLS, and with other schemes")
            .config(&grant(&format!("https://127.0.0.1:{port}"), ""));
    let net_09 = all_refused(net_09, upstream, schemes).stopped_by(&["egress"]);

    let upstream = Upstream::plain(|_| answer("200 OK", "", "reached"));
    let port = upstream.port();
    let names = DnsServer::start(&[("granted.test", &["127.0.0.1"]), ("xn--grnted-9ta.test", &["127.0.0.1"])]);
    let net_10 = hostile_guest("NET-10", "equal host names in other spellings, and other host names that look equal")
        .config(&grant(&format!("http://granted.test:{port}"), "networks = [\"127.0.0.0/8\"]"))
        .settings(&name_server_settings(&names))
        .act(move |context| {
            let ask = |host: &str| answer_text(&context.read(&fetch(&format!("GET http://{host}:{port}/"))));
            for same in ["granted.test", "GRANTED.test", "granted.test."] {
                assert!(ask(same).starts_with("status 200"), "{same}");
            }
            let long = ["a"; 127].join(".");
            for other in [
                "granted..test",
                ".granted.test",
                "granted.test..",
                "grаnted.test",
                "xn--grnted-9ta.test",
                "granted.tes",
                &long,
            ] {
                assert!(ask(other).starts_with("refused: "), "{other}");
            }
            assert_eq!(upstream.connections(), 3);
            "equal names are accepted, others are refused".to_owned()
        })
        .stopped_by(&["egress", "address"]);

    let upstream = Upstream::plain(|_| answer("200 OK", "", "reached"));
    let port = upstream.port();
    let all = ["a.ex.test", "ex.test", "evilex.test", "a.b.ex.test", "ex.test.evil.test"];
    let names = DnsServer::start(&all.map(|name| (name, &["127.0.0.1"] as &[&str])));
    let net_11 = hostile_guest(
        "NET-11",
        "a provider with a grant for subdomains uses host names that only look like subdomains",
    )
    .config(&grant(&format!("http://*.ex.test:{port}"), "networks = [\"127.0.0.1\"]"))
    .settings(&name_server_settings(&names))
    .act(move |context| {
        let ask = |host: &str| answer_text(&context.read(&fetch(&format!("GET http://{host}:{port}/"))));
        assert!(ask("a.ex.test").starts_with("status 200"));
        for other in
            ["ex.test", "evilex.test", "a.b.ex.test", "ex.test.evil.test", "*.ex.test", "xn--.ex.test.evil.test"]
        {
            assert!(ask(other).starts_with("refused: "), "{other}");
        }
        assert_eq!(upstream.connections(), 1);
        "only a name with exactly one more label is accepted".to_owned()
    })
    .stopped_by(&["egress", "address"]);

    let upstream = Upstream::plain(|_| answer("200 OK", "", "reached"));
    let port = upstream.port();
    let orders = ["CONNECT", "TRACE", "POST", "DELETE", "PROPFIND", "get", "FOO"];
    let mut orders: Vec<_> = orders.iter().map(|method| format!("{method} http://127.0.0.1:{port}/a/b")).collect();
    let paths = [
        "/",
        "/a",
        "/b/c",
        "/a/../b",
        "/a/%2e%2e/b",
        "/a/..;/b",
        "/a/b%2F..%2F..",
        "/a/%252e%252e/b",
        "/a//b",
        "/a/b/c",
        "/a\\b",
        "/A/b",
    ];
    orders.extend(paths.iter().map(|path| format!("GET http://127.0.0.1:{port}{path}")));
    let net_14 =
        hostile_guest("NET-14", "a provider uses methods and paths that its grant for an origin does not include")
            .config(&grant(&format!("http://127.0.0.1:{port}"), "paths = [\"/a/*\"]"));
    let net_14 = all_refused(net_14, upstream, orders).stopped_by(&["egress"]);
    vec![net_04, net_07, net_08, net_09, net_10, net_11, net_14]
}

/// Rows about the addresses to which host names resolve.
fn addresses() -> Vec<Row> {
    let upstream = Upstream::plain(|_| answer("200 OK", "", "reached"));
    let port = upstream.port();
    let inside = [
        ("loop.test", "127.0.0.1"),
        ("loop6.test", "::1"),
        ("mapped.test", "::ffff:127.0.0.1"),
        ("nat64.test", "64:ff9b::7f00:1"),
        ("cloud.test", "169.254.169.254"),
        ("cloud6.test", "fd00:ec2::254"),
        ("shared.test", "100.64.0.1"),
        ("private.test", "10.0.0.1"),
        ("bench.test", "198.18.0.1"),
        ("group.test", "224.0.0.1"),
        ("any.test", "0.0.0.0"),
        ("all.test", "255.255.255.255"),
        ("home.test", "192.168.1.1"),
        ("sixtofour.test", "2002:7f00:1::"),
        ("azure.test", "168.63.129.16"),
    ];
    let known: Vec<(&str, Vec<&str>)> = inside.iter().map(|(name, address)| (*name, vec![*address])).collect();
    let known: Vec<(&str, &[&str])> = known.iter().map(|(name, all)| (*name, all.as_slice())).collect();
    let names = DnsServer::start(&known);
    let grants: Vec<_> = inside.iter().map(|(name, _)| format!("{{ origin = \"http://{name}:{port}\" }}")).collect();
    let net_05 = hostile_guest("NET-05", "granted host names resolve to this machine, its network and its cloud")
        .config(&format!("http = [{}]", grants.join(", ")))
        .settings(&name_server_settings(&names))
        .act(move |context| {
            for (name, address) in inside {
                let reply = answer_text(&context.read(&fetch(&format!("GET http://{name}:{port}/"))));
                assert!(reply.contains("DestinationIpProhibited"), "{name} ({address}): {reply}");
            }
            assert_eq!(upstream.connections(), 0);
            assert!(names.queries() > 0, "belljar sent no query to the name server");
            format!("{} refused after the name lookup, no upstream reached", inside.len())
        })
        .stopped_by(&["address"]);

    let upstream = Upstream::plain(|_| answer("200 OK", "", "reached"));
    let port = upstream.port();
    let names = DnsServer::start(&[("mixed.test", &["127.0.0.1", "93.184.216.34", "10.0.0.1"])]);
    let net_06 = hostile_guest("NET-06", "a granted host name resolves to public and private addresses at once")
        .time(1500)
        .config(&grant(&format!("http://mixed.test:{port}"), ""))
        .settings(&name_server_settings(&names))
        .act(move |context| {
            for _ in 0..3 {
                // No server has the public address here, so the connection is refused or times out.
                let answer = context.read(&fetch(&format!("GET http://mixed.test:{port}/|connect 300")));
                assert!(!matches!(text(&answer), Some(text) if text.starts_with("status")), "{}", shown(&answer));
            }
            assert_eq!(upstream.connections(), 0);
            "only the public address is tried".to_owned()
        })
        .stopped_by(&["address"]);
    vec![net_05, net_06]
}

/// Rows about TLS certificates.
fn tls() -> Vec<Row> {
    let authority = Authority::new();
    let served = |config| Arc::new(Upstream::tls(config, echo));
    let fine = served(authority.server(&["fine.test"]));
    let bad = [
        ("expired.test", served(authority.expired(&["expired.test"]))),
        ("wrong.test", served(authority.server(&["other.test"]))),
        ("self.test", served(Authority::stranger(&["self.test"]))),
        ("127.0.0.1", served(authority.server(&["fine.test"]))),
    ];
    let names = DnsServer::start(&[
        ("fine.test", &["127.0.0.1"]),
        ("expired.test", &["127.0.0.1"]),
        ("wrong.test", &["127.0.0.1"]),
        ("self.test", &["127.0.0.1"]),
    ]);
    let mut all: Vec<(&str, Arc<Upstream>)> = bad.to_vec();
    all.push(("fine.test", Arc::clone(&fine)));
    let grants: Vec<_> = all
        .iter()
        .map(|(name, upstream)| {
            format!(
                "{{ origin = \"https://{name}:{}\", networks = [\"127.0.0.0/8\"], headers = {{ authorization = \"Bearer ${{secret:token}}\" }} }}",
                upstream.port()
            )
        })
        .collect();
    let pem = authority.pem();
    let net_16 = hostile_guest(
        "NET-16",
        "the server of a granted name has a certificate that is expired, self-signed, or for another name",
    )
    .config(&format!("http = [{}]", grants.join(", ")))
    .settings(&format!("{}\nca = \"ca.pem\"\n[secrets]\ntoken = {{ env = \"TOKEN\" }}", name_server_settings(&names)))
    .shell("export TOKEN=net-16-token-7d1c")
    .prepare(move |site| {
        site.write("ca.pem", &pem);
    })
    .act(move |context| {
        let ask = |name: &str, upstream: &Upstream| {
            answer_text(&context.read(&fetch(&format!("GET https://{name}:{}/", upstream.port()))))
        };
        assert!(ask("fine.test", &fine).starts_with("status 200"));
        assert_eq!(fine.requests()[0].header("authorization"), Some("Bearer net-16-token-7d1c"));
        for (name, upstream) in &bad {
            let reply = ask(name, upstream);
            assert!(reply.contains("TlsCertificateError"), "{name}: {reply}");
            assert_eq!(upstream.requests().len(), 0, "{name}: a request was sent");
        }
        "refused before a request is sent".to_owned()
    })
    .stopped(Stops::Structure("rustls verifies name, time and issuer; there is no way to switch it off"));

    // Encodes one HTTP/2 frame: length (3 bytes), type (1), flags (1), stream id (4), payload.
    let frame = |kind: u8, flags: u8, stream: u32, payload: &[u8]| {
        let length = u32::try_from(payload.len()).expect("a small frame").to_be_bytes();
        [&length[1..], &[kind, flags], &stream.to_be_bytes(), payload].concat()
    };
    let headers = frame(1, 0, 1, &[0x88]);
    let more = frame(9, 0, 1, &[0x40, 1, b'x', 1, b'y'].repeat(1000));
    let empty = frame(0, 0, 1, &[]);
    let full_headers = frame(1, 4, 1, &[0x88]);
    let reset = frame(3, 0, 1, &[0, 0, 0, 8]);
    let ping = frame(6, 0, 0, &[0; 8]);
    let settings = frame(4, 0, 0, &[]);
    let floods: [(&str, Vec<Vec<u8>>); 5] = [
        ("continuation", vec![headers, more]),
        ("empty-data", vec![full_headers, empty]),
        ("reset", vec![reset.clone(), reset]),
        ("ping", vec![ping.clone(), ping]),
        ("settings", vec![settings.clone(), settings.clone()]),
    ];
    let authority = Authority::new();
    let pem = authority.pem();
    let flooding = |flood: Vec<Vec<u8>>| {
        let mut config = (*authority.server(&["127.0.0.1"])).clone();
        config.alpn_protocols = vec![b"h2".to_vec()];
        let settings = settings.clone();
        Upstream::raw_tls(Arc::new(config), move |stream| {
            stream.wait_at_most(Duration::from_millis(200));
            let _ = stream.read(&mut [0; 4096]);
            let mut ok = stream.write_all(&settings).is_ok() && stream.write_all(&flood[0]).is_ok();
            let many = flood[1].repeat(16);
            let end = Instant::now() + Duration::from_secs(20);
            while ok && Instant::now() < end {
                ok = stream.write_all(&many).is_ok();
            }
        })
    };
    let floods: Vec<(&str, Upstream)> = floods.into_iter().map(|(name, flood)| (name, flooding(flood))).collect();
    let grants: Vec<_> =
        floods.iter().map(|(_, up)| format!("{{ origin = \"https://127.0.0.1:{}\" }}", up.port())).collect();
    let net_17 =
        hostile_guest("NET-17", "an upstream floods its HTTP/2 connection with frames that cost the upstream nothing")
            .time(1000)
            .config(&format!("http = [{}]", grants.join(", ")))
            .settings("[network]\nca = \"ca.pem\"")
            .prepare(move |site| {
                site.write("ca.pem", &pem);
            })
            .act(move |context| {
                let mut seen = Vec::new();
                for (name, upstream) in &floods {
                    let answer = context.read(&fetch(&format!("GET https://127.0.0.1:{}/", upstream.port())));
                    assert!(
                        !matches!(text(&answer), Some(text) if text.starts_with("status") && !text.contains("refused")),
                        "{name}"
                    );
                    assert!(
                        upstream.connections() > 0 && upstream.all_closed_within(deadline(Duration::from_secs(2))),
                        "{name}: still connected"
                    );
                    seen.push(format!(
                        "{name}: {}",
                        cut(text(&answer).unwrap_or("limit")).lines().next().unwrap_or_default()
                    ));
                }
                seen.join(", ")
            })
            .stopped(Stops::Structure("h2 counts frames without content, and closes the connection"));
    vec![net_16, net_17]
}

/// Rows about the bytes of requests and responses.
fn message_bytes() -> Vec<Row> {
    let upstream = Arc::new(Upstream::plain(echo));
    let port = upstream.port();
    let forbidden =
        ["host", "transfer-encoding", "connection", "upgrade", "keep-alive", "proxy-authorization", "proxy-connection"];
    let server = Arc::clone(&upstream);
    let net_12 =
        hostile_guest("NET-12", "a provider sets headers that control the framing or the routing of a request")
            .config(&grant(&format!("http://127.0.0.1:{port}"), ""))
            .act(move |context| {
                server.forget();
                for name in forbidden {
                    let reply =
                        answer_text(&context.read(&fetch(&format!("GET http://127.0.0.1:{port}/|header {name}: x"))));
                    assert!(reply.starts_with("refused: header"), "{name}: {reply}");
                }
                let reply =
                    answer_text(&context.read(&fetch(&format!("GET http://127.0.0.1:{port}/|header x-fine: x"))));
                assert!(reply.starts_with("status 200"), "{reply}");
                let requests = server.requests();
                assert_eq!(requests.len(), 1);
                assert_eq!(requests[0].header("host"), Some(format!("127.0.0.1:{port}").as_str()));
                assert_eq!(requests[0].headers.iter().filter(|(name, _)| name == "host").count(), 1);
                "each header is refused when the provider sets it".to_owned()
            })
            .stopped(Stops::Wasmtime("refuses these headers"));

    let upstream = Arc::new(Upstream::plain(echo));
    let port = upstream.port();
    let server = Arc::clone(&upstream);
    let net_13 = hostile_guest("NET-13", "a provider smuggles a second request into the first")
        .config(&grant(&format!("http://127.0.0.1:{port}"), "methods = [\"GET\", \"POST\"]"))
        .act(move |context| {
            server.forget();
            let base = format!("http://127.0.0.1:{port}");
            for order in [
                format!("POST {base}/|header content-length: 1|body 5"),
                format!("GET {base}/|header content-length: 5"),
                format!("GET {base}/ HTTP/1.1\r\nx: y\r\n\r\nGET /two"),
                format!("GET {base}/%0d%0aGET%20/two"),
                format!("GET {base}/|header x: y\r\nz: w"),
                format!("GET {base}/|header x\r\ny: z"),
                format!("GET\r\n {base}/"),
            ] {
                let reply = answer_text(&context.read(&fetch(&order)));
                assert!(reply.starts_with("refused: "), "{order:?}: {reply}");
            }
            // An absolute URI in place of the path is sent as a path.
            let reply = answer_text(&context.read(&fetch(&format!("GET {base}/http://elsewhere.test/"))));
            assert!(reply.starts_with("status 200"), "{reply}");
            let requests = server.requests();
            assert_eq!(requests.len(), 1, "{requests:?}");
            assert_eq!(requests[0].path(), "/http://elsewhere.test/");
            "no part of a second request is sent".to_owned()
        })
        .stopped(Stops::Wasmtime("checks each part of a request"));

    let gzip: Vec<u8> =
        [&[0x1f, 0x8b, 8, 0, 0, 0, 0, 0, 0, 3][..], &[0xed, 0xc1, 1, 1, 0, 0, 0][..], &[0x80; 3000][..]].concat();
    let length = gzip.len();
    let upstream = Upstream::plain(move |_| answer("200 OK", "content-encoding: gzip\r\n", &gzip));
    let port = upstream.port();
    let net_18 = hostile_guest("NET-18", "an upstream sends a small compressed body that expands to a very large one")
        .config(&grant(&format!("http://127.0.0.1:{port}"), ""))
        .act(move |context| {
            let _alive = &upstream;
            let reply = answer_text(&context.read(&fetch(&format!("GET http://127.0.0.1:{port}/|show 0"))));
            assert!(
                reply.contains("got content-encoding: gzip") && reply.contains(&format!("{length} bytes")),
                "{reply}"
            );
            "the provider gets the compressed bytes unchanged".to_owned()
        })
        .stopped(Stops::Structure("belljar never decompresses a body"));

    let broken: [(&str, &[u8]); 12] = [
        ("no status", b"hello there\r\n\r\n"),
        ("bad status", b"HTTP/1.1 99999 x\r\n\r\n"),
        ("http/0.9", b"<html>hello</html>"),
        ("old version", b"HTTP/9.9 200 OK\r\n\r\n"),
        ("folded", b"HTTP/1.1 200 OK\r\nx: a\r\n b\r\ncontent-length: 0\r\n\r\n"),
        ("nul", b"HTTP/1.1 200 OK\r\nx: a\0b\r\ncontent-length: 0\r\n\r\n"),
        ("two lengths", b"HTTP/1.1 200 OK\r\ncontent-length: 1\r\ncontent-length: 2\r\n\r\nab"),
        ("bad length", b"HTTP/1.1 200 OK\r\ncontent-length: -1\r\n\r\nab"),
        ("too short", b"HTTP/1.1 200 OK\r\ncontent-length: 100\r\n\r\nab"),
        ("chunk overflow", b"HTTP/1.1 200 OK\r\ntransfer-encoding: chunked\r\n\r\nfffffffffffffffff\r\nab"),
        ("bad chunk", b"HTTP/1.1 200 OK\r\ntransfer-encoding: chunked\r\n\r\nzz\r\nab"),
        ("switching", b"HTTP/1.1 101 Switching Protocols\r\nupgrade: x\r\nconnection: upgrade\r\n\r\n"),
    ];
    let upstream = Upstream::raw(move |stream| {
        if let Some(request) = belljar_upstream::request(stream) {
            let at: usize = request.path().trim_start_matches('/').parse().unwrap_or(0);
            let _ = stream.write_all(broken[at].1);
        }
    });
    let port = upstream.port();
    let net_19 = hostile_guest("NET-19", "an upstream sends malformed HTTP responses")
        .time(3000)
        .config(&grant(&format!("http://127.0.0.1:{port}"), ""))
        .act(move |context| {
            upstream.forget();
            for (at, (case, _)) in broken.iter().enumerate() {
                let reply = answer_text(&context.read(&fetch(&format!("GET http://127.0.0.1:{port}/{at}"))));
                assert!(reply.starts_with("refused: "), "{case}: {reply}");
            }
            assert_eq!(upstream.connections(), broken.len());
            assert!(upstream.all_closed_within(deadline(Duration::from_secs(2))), "still connected");
            format!("{} refused", broken.len())
        })
        .stopped(Stops::Structure("hyper's parser rejects malformed responses"));

    let upstream = Arc::new(Upstream::raw(|stream| {
        let _ = until_closed(stream, Duration::from_secs(20));
    }));
    let port = upstream.port();
    let net_20 = hostile_guest("NET-20", "a provider sends out as much data as it can")
        .config(&grant(&format!("http://127.0.0.1:{port}"), "methods = [\"POST\"]"))
        .read(fetch(&format!("POST http://127.0.0.1:{port}/|body 1000000000|fail")), Expect::Limit(&["upload"]))
        .stopped_by(&["traffic"]);
    let net_20 = holding(net_20, upstream);

    let upstream = Upstream::plain(echo);
    let port = upstream.port();
    let one = grant(&format!("http://127.0.0.1:{port}"), "headers = { x-key = \"one\" }");
    let two = grant(&format!("http://127.0.0.1:{port}"), "headers = { x-key = \"two\" }");
    let net_21 = hostile_guest("NET-21", "a provider gets a connection on which another provider has authenticated")
        .config(&one)
        .mount("two", Guest::Built("guest_hostile"))
        .config(&two)
        .act(move |context| {
            upstream.forget();
            let order = fetch(&format!("GET http://127.0.0.1:{port}/|times 3|quiet"));
            for suffix in ["", "two", "", "two"] {
                let reply = answer_text(&context.read_uri(&context.uri_of(suffix, &order)));
                let header = if suffix.is_empty() { "x-key: one" } else { "x-key: two" };
                assert_eq!(reply.matches(header).count(), 3, "{reply}");
            }
            assert_eq!((upstream.connections(), upstream.requests().len()), (12, 12), "a connection for each request");
            "a connection for each request".to_owned()
        })
        .stopped(Stops::Structure("there is no pool of connections"));
    vec![net_12, net_13, net_18, net_19, net_20, net_21]
}

/// Host names and addresses of this machine.
const OWN_HOSTS: [&str; 5] = ["127.0.0.1", "0.0.0.0", "localhost", "[::]", "[::ffff:127.0.0.1]"];

/// A row about requests to belljar itself.
fn own_port() -> Vec<Row> {
    let net_22 = hostile_guest("NET-22", "a provider with a grant for this machine sends requests to belljar itself")
        .run_mode(RunMode::Unstarted)
        .act(|context| {
            let port = std::net::TcpListener::bind("127.0.0.1:0")
                .and_then(|free| free.local_addr())
                .expect("find a free port")
                .port();
            let config = std::fs::read_to_string(context.site().path("belljar.toml")).expect("read the configuration");
            let table = format!("[mounts.{}]", context.name(""));
            let places =
                OWN_HOSTS.map(|host| format!("{{ origin = \"http://{host}:{port}\", methods = [\"GET\", \"POST\"] }}"));
            let granted = format!("{table}\nhttp = [{}]", places.join(", "));
            context.site().config(&config.replace(&table, &granted));
            let command = context.running.command(&["serve", "--http", &format!("127.0.0.1:{port}")], "");
            let server = belljar_tests::Server::start(command);
            let mut client = server.client(belljar_tests::Era::Stateless);
            for (order, host) in OWN_HOSTS.iter().flat_map(|host| [("GET", host), ("POST", host)]) {
                let answer = client.read(&context.uri(&fetch(&format!("{order} http://{host}:{port}/mcp"))));
                let reply = answer_text(&answer);
                assert!(reply.contains("DestinationIpProhibited"), "{host}: {reply}");
            }
            "refused, by each name of this machine".to_owned()
        })
        .stopped_by(&["own-port"]);
    vec![net_22, operator_endpoint()]
}

/// The endpoint of `[admin]` asks for no credential, so it must be out of reach of every provider.
fn operator_endpoint() -> Row {
    hostile_guest("NET-22", "a provider with a grant for this machine sends requests to the console of the operator")
        .run_mode(RunMode::Unstarted)
        .act(|context| {
            let free = || std::net::TcpListener::bind("127.0.0.1:0").and_then(|free| free.local_addr());
            let (serve, admin) = (free().expect("a free port"), free().expect("a free port").port());
            let config = std::fs::read_to_string(context.site().path("belljar.toml")).expect("read the configuration");
            let table = format!("[mounts.{}]", context.name(""));
            let places = OWN_HOSTS.map(|host| format!("{{ origin = \"http://{host}:{admin}\" }}"));
            let granted = format!("{table}\nhttp = [{}]", places.join(", "));
            let admin_table = format!("\n[admin]\nlisten = \"127.0.0.1:{admin}\"\n");
            context.site().config(&(config.replace(&table, &granted) + &admin_table));
            let command = context.running.command(&["serve", "--http", &serve.to_string()], "");
            let server = belljar_tests::Server::start(command);
            let mut client = server.client(belljar_tests::Era::Stateless);
            for (path, host) in
                ["/", "/metrics", "/api/state"].iter().flat_map(|path| OWN_HOSTS.map(|host| (path, host)))
            {
                let answer = client.read(&context.uri(&fetch(&format!("GET http://{host}:{admin}{path}"))));
                let reply = answer_text(&answer);
                assert!(reply.contains("DestinationIpProhibited"), "{host}{path}: {reply}");
            }
            "refused, by each name of this machine".to_owned()
        })
        .stopped_by(&["own-port"])
}

/// Keeps `held` alive as long as the row. For upstreams, which stop when they are dropped.
pub(crate) fn holding<T: Send + Sync + 'static>(row: Row, held: T) -> Row {
    row.prepare(move |_| {
        let _ = &held;
    })
}

/// An upstream that answers only while a switch is on, and otherwise closes each connection. Returns the upstream and
/// the switch.
pub(crate) fn switchable_upstream() -> (Upstream, Arc<AtomicBool>) {
    let is_up = Arc::new(AtomicBool::new(false));
    let switch = Arc::clone(&is_up);
    let upstream = Upstream::raw(move |stream| {
        if switch.load(Ordering::SeqCst) && belljar_upstream::request(stream).is_some() {
            let _ = stream.write_all(&answer("200 OK", "", "up"));
        }
    });
    (upstream, is_up)
}
