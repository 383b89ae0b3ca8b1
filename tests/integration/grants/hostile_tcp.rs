//! Hostile rows about TCP grants. A provider with one granted server tries to reach another one, to listen, to send
//! datagrams, to exhaust something. The servers are real ones on loopback.

use std::io::Read as _;
use std::time::Duration;

use belljar_upstream::{Authority, DnsServer, Upstream, until_closed};

use crate::expect::{limit, text};
use crate::http_grants::{answer_text, name_server_settings};
use crate::row::{Row, RunMode, Stops, hostile_guest};
use crate::tools::{deadline, path, shown};

/// The longest accepted time between the end of a call and the end of its connection.
const CLOSE_DELAY: Duration = Duration::from_secs(2);

/// Switches the second wall (Landlock) off. It would also refuse connections to ports without a grant, and these rows
/// must test the grants alone.
const WALL_OFF: &str = "wall = \"off\"";

pub(crate) fn rows() -> Vec<Row> {
    [destinations(), addresses(), amounts(), tls()].into_iter().flatten().collect()
}

fn talk(at: &str) -> String {
    format!("talk/{}", path(format!("{at}/hello")))
}

/// A server that answers at once.
fn greeting() -> Upstream {
    Upstream::raw(|stream| {
        let _ = stream.write_all(b"reached");
    })
}

/// Makes the hostile guest connect to each of `targets`. belljar must refuse all of them, and `upstream` must get no
/// connection.
fn all_refused(row: Row, upstream: Upstream, targets: Vec<String>) -> Row {
    row.act(move |context| {
        upstream.forget();
        for target in &targets {
            let said = answer_text(&context.read(target));
            assert!(said.starts_with("refused: "), "{target}: {said}");
        }
        assert_eq!(upstream.connections(), 0, "the server got a connection");
        format!("{} refused, no server reached", targets.len())
    })
}

/// Rows about destinations that no grant names.
fn destinations() -> Vec<Row> {
    let row = |attack| hostile_guest("TCP-01", attack).settings(WALL_OFF);
    let (other, granted) = (greeting(), greeting());
    let (port, other_port) = (granted.port(), other.port());
    let grants = format!("tcp = [\"127.0.0.1:{port}\"]");
    let ports = all_refused(
        row("another port of a granted address").config(&grants),
        other,
        vec![talk(&format!("127.0.0.1:{other_port}")), talk(&format!("[::ffff:127.0.0.1]:{other_port}"))],
    )
    .stopped_by(&["egress"]);
    let spelled = greeting();
    let p = spelled.port();
    let hosts = [
        "127.0.0.2",
        "127.1",
        "2130706433",
        "0x7f000001",
        "017700000001",
        "0.0.0.0",
        "[::1]",
        "localhost",
        "localhost.",
        "granted.test@127.0.0.1",
    ];
    let targets = hosts.iter().map(|host| talk(&format!("{host}:{p}"))).collect();
    let spellings = all_refused(
        row("this machine in other spellings").config(&format!("tcp = [\"db.test:{p}\"]")),
        spelled,
        targets,
    )
    .stopped_by(&["egress"]);
    let by_address = greeting();
    let (names, p) = (DnsServer::start(&[("db.test", &["127.0.0.1"])]), by_address.port());
    let address = all_refused(
        row("the address of a server that is granted by name")
            .settings(&name_server_settings(&names))
            .config(&format!("tcp = [{{ at = \"db.test:{p}\", networks = [\"127.0.0.1\"] }}]")),
        by_address,
        vec![talk(&format!("127.0.0.1:{p}")), talk(&format!("198.18.0.2:{p}")), talk("198.18.0.1:1")],
    )
    .stopped_by(&["egress"]);
    let lookups = {
        let names = DnsServer::start(&[("secret.evil.test", &["127.0.0.1"]), ("db.test", &["127.0.0.1"])]);
        row("names of other servers, which would send data to a name server")
            .settings(&name_server_settings(&names))
            .config("tcp = [\"db.test:5432\"]")
            .act(move |context| {
                for name in [
                    "secret.evil.test",
                    "db.test.evil.test",
                    "xdb.test",
                    "",
                    "a b",
                    "db.test\u{0}.evil.test",
                    "127.0.0.1.evil.test",
                ] {
                    let said = answer_text(&context.read(&format!("dns/{}", path(name))));
                    assert!(said.starts_with("refused: "), "{name}: {said}");
                }
                // A granted name has an invented address: nobody asks the name server.
                let said = answer_text(&context.read(&format!("dns/{}", path("db.test"))));
                assert!(said.contains("198.18.0.1"), "{said}");
                assert_eq!(names.queries(), 0, "the name server was asked");
                "refused, no name server asked".to_owned()
            })
            .stopped(Stops::Structure(
                "a name that a grant names has an address that belljar invents, and others have none",
            ))
    };
    let sockets = hostile_guest("TCP-02", "UDP, binding and listening, with a grant")
        .config("tcp = [\"127.0.0.1:1\"]")
        .act(|context| {
            for (verb, at) in [
                ("udp", "127.0.0.1:1"),
                ("udp", "127.0.0.1:53"),
                ("listen", "127.0.0.1:0"),
                ("listen", "0.0.0.0:1"),
                ("listen", "[::]:0"),
            ] {
                let said = answer_text(&context.read(&format!("{verb}/{}", path(at))));
                assert!(said.starts_with("refused: "), "{verb} {at}: {said}");
            }
            "refused".to_owned()
        })
        .stopped(Stops::Structure("belljar has no host function that opens such a socket"));
    let own = hostile_guest("TCP-03", "a provider with a grant for this machine connects to belljar itself")
        .run_mode(RunMode::Unstarted)
        .act(|context| {
            let free = std::net::TcpListener::bind("127.0.0.1:0").and_then(|free| free.local_addr());
            let port = free.expect("find a free port").port();
            let config = std::fs::read_to_string(context.site().path("belljar.toml")).expect("read the configuration");
            let table = format!("[mounts.{}]", context.name(""));
            let hosts = ["127.0.0.1", "localhost", "[::1]", "0.0.0.0", "127.0.0.5"];
            let places = hosts.map(|host| format!("\"{host}:{port}\""));
            context.site().config(&config.replace(&table, &format!("{table}\ntcp = [{}]", places.join(", "))));
            let command = context.running.command(&["serve", "--http", &format!("127.0.0.1:{port}")], "");
            let server = belljar_tests::Server::start(command);
            let mut client = server.client(belljar_tests::Era::Stateless);
            for host in hosts {
                let request = format!("{host}:{port}/GET /mcp HTTP/1.0\r\n\r\n");
                let said = answer_text(&client.read(&context.uri(&format!("talk/{}", path(request)))));
                assert!(said.starts_with("refused: "), "{host}: {said}");
            }
            "refused, by each name of this machine".to_owned()
        })
        .stopped_by(&["own-port"]);
    vec![ports, spellings, address, lookups, sockets, own]
}

/// Rows about names with addresses that nobody named.
fn addresses() -> Vec<Row> {
    let upstream = greeting();
    let port = upstream.port();
    let private = [
        "127.0.0.1",
        "10.0.0.1",
        "172.16.0.1",
        "192.168.1.1",
        "100.64.0.1",
        "169.254.169.254",
        "168.63.129.16",
        "0.0.0.0",
        "198.18.0.1",
        "224.0.0.1",
        "255.255.255.255",
        "::1",
        "::ffff:127.0.0.1",
        "::127.0.0.1",
        "64:ff9b::7f00:1",
        "2002:7f00:1::",
        "fd00:ec2::254",
        "fe80::1",
        "ff02::1",
    ];
    let names: Vec<(String, [&str; 1])> =
        private.iter().enumerate().map(|(at, address)| (format!("n{at}.test"), [*address])).collect();
    let listed: Vec<(&str, &[&str])> = names.iter().map(|(name, addresses)| (name.as_str(), &addresses[..])).collect();
    let server = DnsServer::start(&listed);
    let grants: Vec<String> = names.iter().map(|(name, _)| format!("\"{name}:{port}\"")).collect();
    let targets = names.iter().map(|(name, _)| talk(&format!("{name}:{port}"))).collect();
    let settings = format!("{WALL_OFF}\n{}", name_server_settings(&server));
    let kept = std::sync::Arc::new(server);
    let alive = std::sync::Arc::clone(&kept);
    let rebinding = all_refused(
        hostile_guest("TCP-04", "granted names with addresses that are not public")
            .settings(&settings)
            .config(&format!("tcp = [{}]", grants.join(", ")))
            .prepare(move |_| {
                let _ = &alive;
            }),
        upstream,
        targets,
    )
    .stopped_by(&["address"]);
    let mixed = greeting();
    let port = mixed.port();
    let names = DnsServer::start(&[("mixed.test", &["192.0.2.1", "127.0.0.1", "10.0.0.1"])]);
    let several = hostile_guest("TCP-04", "a granted name with several addresses, none of which is public")
        .settings(&format!("{WALL_OFF}\n{}", name_server_settings(&names)))
        .config(&format!("tcp = [\"mixed.test:{port}\"]"))
        .act(move |context| {
            mixed.forget();
            let said = answer_text(&context.read(&talk(&format!("mixed.test:{port}"))));
            assert!(said.starts_with("refused: ") && names.queries() > 0, "{said}");
            assert_eq!(mixed.connections(), 0, "the server got a connection");
            said
        })
        .stopped_by(&["address"]);
    vec![rebinding, several]
}

/// Rows about bytes, connections and time.
fn amounts() -> Vec<Row> {
    let counting = Upstream::raw(|stream| {
        until_closed(stream, Duration::from_secs(30));
    });
    let at = format!("127.0.0.1:{}", counting.port());
    let flood = hostile_guest("TCP-05", "a provider opens connections without end")
        .config(&format!("tcp = [\"{at}\"]"))
        .limits("requests = 5\nconnections = 20")
        .act(move |context| {
            counting.forget();
            let answer = context.read(&format!("connections/{}", path(format!("{at}/1000/1"))));
            limit("requests").judge(&answer, &context.name("")).unwrap_or_else(|why| panic!("{why}"));
            assert!(counting.connections() <= 5, "{} connections", counting.connections());
            assert!(counting.all_closed_within(deadline(CLOSE_DELAY)), "connections are open");
            shown(&answer)
        })
        .stopped_by(&["traffic"]);
    let open = Upstream::raw(|stream| {
        until_closed(stream, Duration::from_secs(30));
    });
    let at = format!("127.0.0.1:{}", open.port());
    let at_once = hostile_guest("TCP-06", "a provider keeps many connections open at once")
        .config(&format!("tcp = [\"{at}\"]"))
        .limits("connections = 3")
        .time(1000)
        .act(move |context| {
            open.forget();
            let answer = context.read(&format!("connections/{}", path(format!("{at}/30/1"))));
            assert!(answer.is_err(), "{}", shown(&answer));
            assert!(open.most_open() <= 3, "{} at once", open.most_open());
            assert!(open.all_closed_within(deadline(CLOSE_DELAY)), "connections are open");
            shown(&answer)
        })
        .stopped_by(&["time"]);
    let sink = Upstream::raw(|stream| {
        let _ = std::io::copy(&mut stream.take(u64::MAX), &mut std::io::sink());
    });
    let at = format!("127.0.0.1:{}", sink.port());
    let upload = hostile_guest("TCP-07", "a provider sends without end")
        .config(&format!("tcp = [\"{at}\"]"))
        .act(move |context| {
            let _ = &sink;
            let answer = context.read(&format!("connections/{}", path(format!("{at}/1/30000000"))));
            crate::expect::Expect::Limit(&["upload"])
                .judge(&answer, &context.name(""))
                .unwrap_or_else(|why| panic!("{why}"))
        })
        .stopped_by(&["traffic"]);
    let flooding = Upstream::raw(|stream| {
        let piece = vec![b'x'; 1 << 16];
        while stream.write_all(&piece).is_ok() {}
    });
    let at = format!("127.0.0.1:{}", flooding.port());
    let download = hostile_guest("TCP-08", "a server sends without end")
        .config(&format!("tcp = [\"{at}\"]"))
        .act(move |context| {
            let answer = context.read(&format!("dial/{}", path(format!("{at}/x"))));
            limit("download").judge(&answer, &context.name("")).unwrap_or_else(|why| panic!("{why}"));
            assert!(flooding.all_closed_within(deadline(CLOSE_DELAY)), "connections are open");
            shown(&answer)
        })
        .stopped_by(&["traffic"]);
    let slow = Upstream::raw(|stream| {
        let mut ok = true;
        while ok {
            std::thread::sleep(Duration::from_millis(30));
            ok = stream.write_all(b"x").is_ok();
        }
    });
    let at = format!("127.0.0.1:{}", slow.port());
    let slow = hostile_guest("TCP-09", "a server sends byte by byte, for ever")
        .config(&format!("tcp = [\"{at}\"]"))
        .time(700)
        .act(move |context| {
            let answer = context.read(&talk(&at));
            limit("time").judge(&answer, &context.name("")).unwrap_or_else(|why| panic!("{why}"));
            assert!(slow.all_closed_within(deadline(CLOSE_DELAY)), "connections are open");
            shown(&answer)
        })
        .stopped_by(&["time"]);
    let deaf = Upstream::raw(|stream| {
        std::thread::sleep(Duration::from_secs(5));
        until_closed(stream, Duration::from_secs(30));
    });
    let at = format!("127.0.0.1:{}", deaf.port());
    let unread = hostile_guest("TCP-10", "a server reads nothing")
        .config(&format!("tcp = [\"{at}\"]"))
        .limits("upload = \"60MiB\"")
        .time(1000)
        .act(move |context| {
            let _ = &deaf;
            let answer = context.read(&format!("connections/{}", path(format!("{at}/1/20000000"))));
            limit("time").judge(&answer, &context.name("")).unwrap_or_else(|why| panic!("{why}"))
        })
        .stopped_by(&["time"]);
    vec![flood, at_once, upload, download, slow, unread]
}

/// Rows about TLS that belljar speaks.
fn tls() -> Vec<Row> {
    let authority = Authority::new();
    let servers = [
        ("a certificate of a stranger", Upstream::raw_tls(Authority::stranger(&["db.test"]), |_| {})),
        ("a certificate for another name", Upstream::raw_tls(authority.server(&["other.test"]), |_| {})),
        ("an expired certificate", Upstream::raw_tls(authority.expired(&["db.test"]), |_| {})),
        ("a server without TLS", greeting()),
    ];
    let pem = authority.pem();
    let names = std::sync::Arc::new(DnsServer::start(&[("db.test", &["127.0.0.1"])]));
    let rows = servers.into_iter().map(|(attack, upstream)| {
        let (pem, names) = (pem.clone(), std::sync::Arc::clone(&names));
        let port = upstream.port();
        let settings = name_server_settings(&names);
        hostile_guest("TCP-11", attack)
            .settings(&format!("{settings}\nca = \"ca.pem\""))
            .prepare(move |site| {
                site.write("ca.pem", &pem);
            })
            .config(&format!("tcp = [{{ at = \"db.test:{port}\", tls = true, networks = [\"127.0.0.1\"] }}]"))
            .act(move |context| {
                let _ = (&names, &upstream);
                let answer = context.read(&talk(&format!("db.test:{port}")));
                assert!(text(&answer).is_some_and(|said| said.starts_with("refused: ")), "{}", shown(&answer));
                shown(&answer)
            })
            .stopped(Stops::Structure("rustls checks the certificate against the trusted ones and the granted name"))
    });
    rows.collect()
}
