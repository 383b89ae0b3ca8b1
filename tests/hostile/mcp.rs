//! Clients that mean harm: what they send, how much of it, how slowly, and what they ask for.

use std::io::Write;
use std::net::TcpStream;
use std::time::{Duration, Instant};

use belljar_tests::{Era, Server};
use serde_json::{Value, json};

use crate::expect::{INVALID_PARAMS, kind};
use crate::row::{Guest, Row, Stops, Way, bare, imp};
use crate::scene::Scene;
use crate::tools::{line, read_text, server, shown, within};

const WITNESS: &str = "belljar://witness/static-text";

/// Four at once, and a while to wait for a turn.
const CROWDED: &str = "concurrency = 4\nqueue = \"3s\"";

const PARSER: Stops = Stops::Structure("a strict parser, and an answer for what it refuses");

/// What a client sends on stdio, and the codes of which one must come back for each.
fn sent(scene: &Scene<'_>, lines: &[(&[u8], &[i64])]) -> String {
    for (bytes, codes) in lines {
        scene.line().raw(&[bytes, b"\n".as_slice()].concat());
        let shown = String::from_utf8_lossy(&bytes[..bytes.len().min(60)]).into_owned();
        let answer = scene.line().other(Duration::from_secs(10)).unwrap_or_else(|| panic!("no answer to {shown}"));
        let code = answer["error"]["code"].as_i64().unwrap_or_default();
        assert!(codes.contains(&code), "{shown}: {answer}");
        assert!(read_text(scene.line(), WITNESS).starts_with("This is"));
    }
    format!("{} refused, each answered once", lines.len())
}

fn nested(depth: usize) -> Vec<u8> {
    let open = "[".repeat(depth) + &"]".repeat(depth);
    format!("{{\"jsonrpc\":\"2.0\",\"id\":1,\"method\":\"resources/read\",\"params\":{open}}}").into_bytes()
}

pub(crate) fn rows() -> Vec<Row> {
    vec![
        bare("MCP-01", "a client sends what is no JSON, no UTF-8, or a line of controls")
            .way(Way::Stdio)
            .act(|scene| {
                sent(
                    scene,
                    &[
                        (b"nonsense", &[-32700]),
                        (b"{\"a\":", &[-32700]),
                        (b"\xff\xfe{\0}\0", &[-32700]),
                        (b"\0\0\0", &[-32700]),
                        (b"\r\r\r{", &[-32700]),
                        (b"{\"jsonrpc\":\"2.0\",\"id\":1,\"method\":\"\xc3\x28\"}", &[-32700]),
                        (b"\xef\xbb\xbf{\"jsonrpc\":\"1.0\",\"id\":\"q\",\"method\":\"ping\"}", &[-32600]),
                    ],
                )
            })
            .stopped(PARSER),
        bare("MCP-02", "a client sends a line, or a body, that has no end")
            .way(Way::Unstarted)
            .act(endless)
            .stopped_by(&["message"]),
        bare("MCP-03", "JSON that is deep, repeats itself, or has numbers and ids that cannot be")
            .way(Way::Stdio)
            .act(|scene| {
                let keys: String = (0..40_000).map(|n| format!("\"k{n}\":1,")).collect();
                let keys = format!("{{\"jsonrpc\":\"2.0\",\"id\":null,\"method\":\"x\",\"params\":{{{keys}\"z\":1}}}}");
                sent(
                    scene,
                    &[
                        (&nested(100_000), &[-32700]),
                        (&nested(200), &[-32700]),
                        (keys.as_bytes(), &[-32600]),
                        (br#"{"jsonrpc":"2.0","id":1e999,"method":"ping"}"#, &[-32700, -32600]),
                        (br#"{"jsonrpc":"2.0","id":1.5,"method":"ping"}"#, &[-32600]),
                        (br#"{"jsonrpc":"2.0","id":{"a":1},"method":"ping"}"#, &[-32600]),
                        (br#"{"jsonrpc":"2.0","id":99999999999999999999999,"method":"ping"}"#, &[-32600]),
                        (br#"{"jsonrpc":"2.0","id":"q","Method":"resources/list"}"#, &[-32600]),
                        (br#"{"JSONRPC":"2.0","id":"q","method":"resources/list"}"#, &[-32600]),
                    ],
                )
            })
            .stopped(PARSER),
        bare("MCP-04", "a client sends many requests in one message")
            .way(Way::Stdio)
            .act(|scene| {
                let one = br#"[{"jsonrpc":"2.0","id":1,"method":"ping"},{"jsonrpc":"2.0","id":2,"method":"ping"}]"#;
                sent(scene, &[(one, &[-32600]), (b"[]", &[-32600]), (b"[1,2,3]", &[-32600])])
            })
            .stopped(PARSER),
        bare("MCP-05", "unknown methods, parameters of another shape, no metadata")
            .act(|scene| {
                for (method, params, code) in [
                    ("no/such", json!({}), -32601),
                    ("tools/call", json!({ "name": "x" }), INVALID_PARAMS),
                    ("tools/call", json!({ "name": "list_resources", "arguments": "x" }), INVALID_PARAMS),
                    ("completion/complete", json!({ "ref": { "type": "ref/resource" } }), INVALID_PARAMS),
                    ("prompts/get", json!({ "name": "x" }), -32601),
                    ("resources/read", json!({}), INVALID_PARAMS),
                    ("resources/read", json!({ "uri": 5 }), INVALID_PARAMS),
                    ("resources/read", json!({ "uri": ["a"] }), INVALID_PARAMS),
                    ("resources/list", json!({ "cursor": 5 }), INVALID_PARAMS),
                ] {
                    let error = scene.request(method, params.clone()).expect_err("a refusal");
                    assert_eq!(error.code, code, "{method} {params}: {error}");
                }
                "refused by code".to_owned()
            })
            .stopped(PARSER),
        imp("MCP-06", "10,000 reads at once")
            .way(Way::Unstarted)
            .time(5_000)
            .limits(CROWDED)
            .mount("two", Guest::Built("guest_imp"))
            .limits(CROWDED)
            .mount("three", Guest::Built("guest_imp"))
            .limits(CROWDED)
            .keeps(96)
            .act(crowd)
            .stopped_by(&["pending"]),
        imp("MCP-07", "many connections take answers of 8 MiB byte by byte")
            .settings("total-memory = \"128MiB\"")
            .way(Way::Http)
            .limits("concurrency = 8\nqueue = \"30s\"")
            .time(30_000)
            .keeps(128)
            .peak(448)
            .measures()
            .act(slow_readers)
            .stopped_by(&["untaken"]),
        bare("MCP-08", "thousands of connections say nothing, or a letter of a header now and then")
            .way(Way::Http)
            .keeps(64)
            .measures()
            .act(silent)
            .stopped_by(&["connections"]),
        bare("MCP-09", "a page in a browser reaches belljar by a name that it made to point here")
            .way(Way::Http)
            .act(rebound)
            .stopped_by(&["origin"]),
        bare("MCP-10", "headers that say something else than the body")
            .way(Way::Http)
            .act(mismatched)
            .stopped(Stops::Structure("rmcp compares the headers of a request with its body")),
        bare("MCP-11", "sessions are opened without end, guessed, and ended for others")
            .way(Way::Http)
            .keeps(64)
            .act(sessions)
            .stopped_by(&["sessions"]),
        imp("MCP-16", "URIs that climb, lie about their encoding, or pretend to be another's")
            .act(injected)
            .stopped_by(&["reference"]),
        imp("MCP-17", "URIs that nobody listed, of nobody, without content, of a megabyte")
            .act(|scene| {
                let long = format!("{}{}", scene.uri(""), "x".repeat(900_000));
                let not_found = Era::Modern.not_found();
                for (uri, code, kinds) in [
                    (long.as_str(), INVALID_PARAMS, "bad-uri"),
                    ("", INVALID_PARAMS, "bad-uri"),
                    ("belljar://nobody/x", not_found, "not-found"),
                    ("belljar://", not_found, "not-found"),
                    (&scene.uri("never-listed"), not_found, "not-found"),
                ] {
                    let error = scene.read_uri(uri).expect_err("a refusal");
                    assert_eq!((error.code, kind(&error)), (code, kinds), "{error}");
                }
                "refused by kind".to_owned()
            })
            .stopped(Stops::Structure("a URI has at most 2 KiB, and leads to a mount or nowhere")),
        imp("MCP-18", "a client that asks and does not read, and one that leaves in the middle")
            .way(Way::Unstarted)
            .limits("concurrency = 8\nqueue = \"30s\"")
            .time(30_000)
            .act(deaf)
            .stopped_by(&["untaken"]),
        imp("MCP-30", "one client has the contents of a mount searched in many requests at once")
            .way(Way::Stdio)
            .config("search = true\nenv = { IMP_LIST = \"/list/list\" }\nfs = { \"/list\" = \"list\" }")
            .limits("concurrency = 4\nqueue = \"700ms\"")
            .prepare(|site| {
                let list: String = (300..500).map(|ms| format!("sleep/{ms}\n")).collect();
                site.write("list/list", list);
            })
            .act(searches)
            .stopped_by(&["searches"]),
        bare("MCP-19", "belljar is told to listen where others can reach it")
            .way(Way::Unstarted)
            .act(|scene| {
                for address in ["0.0.0.0:0", "[::]:0", "192.0.2.1:80", "[::ffff:127.0.0.1]:0"] {
                    let mut command = scene.stage.command(&["serve", "--http", address], "");
                    command.stdin(std::process::Stdio::null());
                    let ended = belljar_tests::Process::start(command).wait(Duration::from_secs(10));
                    assert!(!ended.status.success() && ended.stderr.contains("no authentication"), "{address}: {}", ended.stderr);
                }
                "refused at the start".to_owned()
            })
            .stopped_by(&["loopback"]),
        bare("MCP-21", "versions that do not exist, or change in the middle")
            .way(Way::Http)
            .act(|scene| {
                let server = scene.server();
                let wire = server.wire(Era::Modern);
                let mut message = Era::Modern.message(1, "resources/list", json!({}));
                message["params"]["_meta"]["io.modelcontextprotocol/protocolVersion"] = json!("1999-01-01");
                let answer = posted(server, &wire.headers(&message), &message, &[("MCP-Protocol-Version", "1999-01-01")]);
                assert!(answer.contains("400") && answer.contains("2026-07-28"), "{answer}");
                let message = Era::Modern.message(2, "initialize", json!({ "protocolVersion": "1999-01-01", "capabilities": {}, "clientInfo": { "name": "x", "version": "0" } }));
                let answer = posted(server, &wire.headers(&message), &message, &[]);
                assert!(!answer.contains("1999-01-01\",\"serverInfo"), "{answer}");
                "refused, with what there is".to_owned()
            })
            .stopped(Stops::Structure("rmcp negotiates versions")),
        bare("MCP-22", "requests in requests: two lengths, chunks and lengths, pipelines, other protocols")
            .way(Way::Http)
            .act(smuggled)
            .stopped(Stops::Structure("hyper, HTTP/1.1 only")),
    ]
}

/// A line of 64 MiB, then a body of as many: neither is held.
fn endless(scene: &Scene<'_>) -> String {
    let line = line(scene, "");
    read_text(&line, WITNESS);
    let before = line.process.memory();
    let piece = vec![b'a'; 1 << 20];
    line.raw(b"{\"jsonrpc\":\"2.0\",\"id\":\"q\",\"method\":\"");
    (0..64).for_each(|_| line.raw(&piece));
    line.raw(b"\"}\n");
    let answer = line.other(Duration::from_secs(20)).expect("an answer to the long line");
    assert_eq!(answer["error"]["code"], -32600, "{answer}");
    assert!(read_text(&line, WITNESS).starts_with("This is"));
    let grown = line.process.peak_memory().saturating_sub(before) >> 20;
    assert!(grown < 24, "{grown} MiB of a line of 64 MiB were held");
    let server = server(scene, "");
    let before = server.process.memory();
    let own = server.address();
    let mut body = format!("POST /mcp HTTP/1.1\r\nHost: {own}\r\nContent-Type: application/json\r\n").into_bytes();
    body.extend_from_slice(b"Accept: application/json, text/event-stream\r\nTransfer-Encoding: chunked\r\n\r\n");
    let chunk = [format!("{:x}\r\n", piece.len()).as_bytes(), &piece, b"\r\n"].concat();
    (0..64).for_each(|_| body.extend_from_slice(&chunk));
    let answer = String::from_utf8_lossy(&server.raw(&body)).into_owned();
    assert!(answer.starts_with("HTTP/1.1 413"), "{:?}", answer.get(..100));
    let held = server.process.peak_memory().saturating_sub(before) >> 20;
    assert!(held < 24, "{held} MiB of a body of 64 MiB were held");
    format!("refused, {grown} MiB and {held} MiB held")
}

/// Searches that each ask for hundreds of reads of one mount: whoever reads from that mount still has a turn in time.
fn searches(scene: &Scene<'_>) -> String {
    const SEARCHES: usize = 24;
    let arguments = json!({ "query": "absent", "mount": scene.name(""), "content": true });
    let mut ids = Vec::new();
    for _ in 0..SEARCHES {
        ids.push(scene.send("tools/call", json!({ "name": "search_resources", "arguments": arguments })));
        // One after the other, so that none reads what another is reading.
        std::thread::sleep(Duration::from_millis(70));
    }
    let mut worst = Duration::ZERO;
    for _ in 0..5 {
        let asked = Instant::now();
        let answer = scene.request("resources/read", json!({ "uri": scene.uri("ok") }));
        assert!(answer.is_ok(), "a read of the mount that is searched: {}", shown(&answer));
        worst = worst.max(asked.elapsed());
        assert!(read_text(scene.line(), WITNESS).starts_with("This is"));
    }
    let mut told = 0;
    for id in ids {
        let result = scene.wait(id).unwrap_or_else(|error| panic!("a search: {error}"));
        let gaps = result["content"][0]["text"].as_str().unwrap_or_default();
        told += usize::from(gaps.contains("no time") || gaps.contains("other searches are running"));
    }
    format!(
        "{SEARCHES} searches, {told} told what they did not see; a read of that mount within {} ms",
        worst.as_millis()
    )
}

/// Ten thousand reads on one connection: most are told to come again, and the witness is served.
fn crowd(scene: &Scene<'_>) -> String {
    let line = line(scene, "");
    assert!(read_text(&line, WITNESS).starts_with("This is"));
    // More mounts than one: each has a queue of its own, and the connection has one number for all of them.
    let uris = ["", "two", "three"].map(|suffix| scene.uri_of(suffix, "sleep/20"));
    let ids: Vec<u64> =
        (0..10_000).map(|n| line.send("resources/read", json!({ "uri": uris[n % uris.len()] }))).collect();
    let (mut fine, mut busy, mut full) = (0, 0, 0);
    let mut admitted = Vec::new();
    for id in ids {
        let (answer, took) = line.wait(id, Duration::from_secs(60)).expect("an answer to each");
        match &answer {
            Ok(_) => {
                fine += 1;
                admitted.push(took);
            }
            Err(error) if kind(error) == "busy" => {
                busy += 1;
                full += usize::from(error.message.contains("are pending already"));
            }
            Err(error) => panic!("{error}"),
        }
    }
    assert_eq!(line.violations(), Vec::<String>::new());
    assert!(read_text(&line, WITNESS).starts_with("This is"), "it is not served afterwards");
    assert!(full > 0 && fine >= 4, "{fine} served, {busy} busy, {full} of them for the connection's own number");
    let worst = crate::oracle::percentile(&admitted, 99);
    assert!(worst < Duration::from_secs(20), "{worst:?}");
    format!("{fine} served within {} ms (99 %), {busy} told to come again", worst.as_millis())
}

/// Answers of 8 MiB that nobody takes: a bound on what is held, the witness goes on, and the connections are cut.
fn slow_readers(scene: &Scene<'_>) -> String {
    const CONNECTIONS: usize = 60;
    let server = scene.server();
    let wire = server.wire(Era::Modern);
    let before = scene.memory();
    let uri = scene.uri("blob/8000000");
    // Whoever is told that the server is busy is done; the others take their time.
    let close = |id: usize| {
        let asked = server.request(&wire, &Era::Modern.message(id as u64, "resources/read", json!({ "uri": uri })));
        String::from_utf8_lossy(&asked).replacen("\r\n\r\n", "\r\nConnection: close\r\n\r\n", 1)
    };
    let mut streams: Vec<TcpStream> = (0..CONNECTIONS)
        .map(|id| {
            let mut stream = TcpStream::connect(server.address()).expect("a server that accepts");
            stream.write_all(close(id).as_bytes()).expect("a server that reads");
            stream
        })
        .collect();
    let began = Instant::now();
    let mut cut = 0;
    let mut byte = [0u8; 1];
    // Each takes a byte in a while; those that were told that the server is busy have all of that in the kernel's buffers.
    while cut < CONNECTIONS && began.elapsed() < Duration::from_secs(60) {
        let asked = Instant::now();
        let answer = scene.read_uri(WITNESS);
        assert!(answer.is_ok(), "the witness: {}", shown(&answer));
        assert!(asked.elapsed() < Duration::from_secs(10), "the witness took {:?}", asked.elapsed());
        let held = scene.memory().saturating_sub(before) >> 20;
        assert!(held < 320, "{held} MiB are held for those who do not read");
        if began.elapsed() > Duration::from_secs(12) {
            cut = streams.iter().filter(|stream| is_reset(stream)).count();
        } else {
            for stream in &mut streams {
                stream.set_read_timeout(Some(Duration::from_millis(1))).expect("a positive time");
                std::io::Read::read(stream, &mut byte).ok();
            }
        }
        std::thread::sleep(Duration::from_millis(200));
    }
    assert!(cut == CONNECTIONS, "{} connections are still open after {:?}", CONNECTIONS - cut, began.elapsed());
    let peak = scene.peak().saturating_sub(before) >> 20;
    drop(streams);
    format!("all cut or answered after {} s, {peak} MiB at most", began.elapsed().as_secs())
}

/// Whether the peer has ended a connection, whatever of it is still to be read here.
fn is_reset(stream: &TcpStream) -> bool {
    let mut polled = [rustix::event::PollFd::new(&stream, rustix::event::PollFlags::RDHUP)];
    let now = rustix::event::Timespec { tv_sec: 0, tv_nsec: 0 };
    rustix::event::poll(&mut polled, Some(&now)).is_ok_and(|_| {
        let end = rustix::event::PollFlags::RDHUP | rustix::event::PollFlags::HUP | rustix::event::PollFlags::ERR;
        polled[0].revents().intersects(end)
    })
}

/// Connections that say nothing, or nearly nothing: whoever comes is served at once.
fn silent(scene: &Scene<'_>) -> String {
    let server = scene.server();
    // `BELLJAR_CONNECTIONS=20000` takes two minutes; what this program cannot hold open is opened one after the other.
    let all: usize = std::env::var("BELLJAR_CONNECTIONS").ok().and_then(|all| all.parse().ok()).unwrap_or(3000);
    let hold = all.min(9_000);
    let mut held: Vec<TcpStream> = Vec::with_capacity(hold);
    let mut worst = Duration::ZERO;
    for n in 0..all {
        let Ok(mut stream) = TcpStream::connect(server.address()) else { panic!("connection {n} is refused") };
        match n % 3 {
            0 => {}
            1 => drop(stream.write_all(b"POST /mcp HTTP/1.1\r\nHost: loc")),
            _ => drop(stream.write_all(b"POST /mcp HTTP/1.1\r\nHost: localhost\r\nContent-Length: 100\r\n\r\n{")),
        }
        if held.len() < hold {
            held.push(stream)
        } else {
            held[n % hold] = stream
        }
        if n % 300 == 0 {
            let asked = Instant::now();
            assert!(scene.read_uri(WITNESS).is_ok());
            worst = worst.max(asked.elapsed());
        }
    }
    // Some still wait in the kernel's queue; whoever comes next closes as many.
    let count = || held.iter().filter(|stream| !is_reset(stream)).count();
    within(Duration::from_secs(5), || count() <= 520);
    let open = count();
    assert!(open <= 520, "{open} silent connections are kept");
    assert!(worst < Duration::from_secs(5), "the witness waited {worst:?} for a connection");
    format!("{all} came, {open} are kept, a newcomer waits {} ms at worst", worst.as_millis())
}

const INITIALIZE: &[u8] = br#"{"jsonrpc":"2.0","id":1,"method":"initialize","params":{"protocolVersion":"2025-11-25","capabilities":{},"clientInfo":{"name":"test","version":"0"}}}"#;

/// The status of a first message with these headers instead of or beside the usual ones.
fn status(server: &Server, headers: &[(&str, &str)]) -> u16 {
    let usual = [("Content-Type", "application/json"), ("Accept", "application/json, text/event-stream")];
    let all: Vec<_> = usual.iter().chain(headers).copied().collect();
    server.exchange("POST", "/mcp", &all, INITIALIZE).status
}

fn rebound(scene: &Scene<'_>) -> String {
    let server = scene.server();
    let (own, port) = (server.address().to_string(), server.address().port());
    let at = |host: &str| format!("{host}:{port}");
    let foreign = [
        ("Host", "evil.example".to_owned()),
        ("Host", at("evil.example")),
        ("Host", at("127.0.0.1.evil.example")),
        ("Host", at("localhost.evil.example")),
        ("Host", at("10.0.0.1")),
        ("Host", at("user@evil.example")),
        ("Host", at("127.0.0.1@evil.example")),
        ("Host", String::new()),
        ("Host", "localhost".to_owned()),
        ("Host", "localhost:1".to_owned()),
        ("Host", "127.0.0.1:9999".to_owned()),
        ("Host", format!("{own}.evil.com")),
        ("Host", format!("evil@{own}")),
        ("Host", at("localhost.")),
        ("Origin", "http://evil.example".to_owned()),
        ("Origin", format!("http://{own}.evil.com")),
        ("Origin", format!("http://evil@{own}")),
        ("Origin", format!("http://{own}, http://evil.example")),
        ("Origin", "null".to_owned()),
        ("Origin", "http://127.0.0.1:1".to_owned()),
        ("Origin", "https://localhost.evil.example".to_owned()),
        ("Origin", format!("https://{own}")),
        ("Origin", "file://".to_owned()),
    ];
    for (name, value) in &foreign {
        let status = status(server, &[(name, value)]);
        assert!([400, 403].contains(&status), "{name}: {value} gives {status}");
    }
    let raw = |head: &str| String::from_utf8_lossy(&server.raw(head.as_bytes())).into_owned();
    let rest = format!(
        "Content-Type: application/json\r\nAccept: application/json, text/event-stream\r\nContent-Length: {}\r\nConnection: close\r\n\r\n{}",
        INITIALIZE.len(),
        String::from_utf8_lossy(INITIALIZE)
    );
    let two = raw(&format!("POST /mcp HTTP/1.1\r\nHost: {own}\r\nHost: evil.example\r\n{rest}"));
    assert!(two.starts_with("HTTP/1.1 400"), "{two}");
    for origins in [[&*format!("http://{own}"), "http://evil.example"], ["null", &*format!("http://{own}")]] {
        let lines = origins.map(|origin| format!("Origin: {origin}\r\n")).concat();
        let answer = raw(&format!("POST /mcp HTTP/1.1\r\nHost: {own}\r\n{lines}{rest}"));
        assert!(answer.starts_with("HTTP/1.1 403"), "{origins:?}: {answer}");
    }
    let forwarded = format!("Host: evil.example\r\nX-Forwarded-Host: {own}\r\nForwarded: host=\"{own}\"\r\n");
    let answer = raw(&format!("POST /mcp HTTP/1.1\r\n{forwarded}{rest}"));
    assert!(answer.starts_with("HTTP/1.1 403"), "{answer}");
    for target in ["http://evil.example/mcp", "https://localhost/mcp", &*format!("http://evil@{own}/mcp")] {
        let answer = raw(&format!("POST {target} HTTP/1.1\r\nHost: {own}\r\n{rest}"));
        assert!(answer.starts_with("HTTP/1.1 400"), "{target}: {answer}");
    }
    let absolute = raw(&format!("POST http://evil.example/mcp HTTP/1.1\r\nHost: evil.example\r\n{rest}"));
    assert!(absolute.starts_with("HTTP/1.1 403") || absolute.starts_with("HTTP/1.1 400"), "{absolute}");
    for fine in [&[("Host", own.as_str())][..], &[], &[("Origin", &*format!("http://{own}"))]] {
        assert_eq!(status(server, fine), 200, "{fine:?}");
    }
    format!("{} names refused", foreign.len() + 8)
}

/// An exchange with a message and its usual headers, some of them replaced.
fn posted(server: &Server, usual: &[(&'static str, String)], message: &Value, other: &[(&str, &str)]) -> String {
    let replaced = |name: &str| other.iter().any(|(other, _)| other.eq_ignore_ascii_case(name));
    let mut all: Vec<(&str, &str)> =
        usual.iter().filter(|(name, _)| !replaced(name)).map(|(name, value)| (*name, value.as_str())).collect();
    all.extend(other.iter().filter(|(_, value)| !value.is_empty()));
    let answer = server.exchange("POST", "/mcp", &all, message.to_string().as_bytes());
    format!("{} {}", answer.status, answer.text())
}

fn mismatched(scene: &Scene<'_>) -> String {
    let server = scene.server();
    let wire = server.wire(Era::Modern);
    let message = Era::Modern.message(1, "resources/read", json!({ "uri": WITNESS }));
    let usual = wire.headers(&message);
    assert!(posted(server, &usual, &message, &[]).starts_with("200"));
    for other in [
        ("Mcp-Method", "resources/list"),
        ("Mcp-Name", "belljar://other/x"),
        ("Mcp-Name", "=?base64?!!!?="),
        ("MCP-Protocol-Version", "2025-11-25"),
        ("MCP-Protocol-Version", "1999-01-01"),
        ("Content-Type", "text/plain"),
        ("Accept", "text/html"),
    ] {
        let answer = posted(server, &usual, &message, &[other]);
        assert!(answer.starts_with('4'), "{other:?}: {answer}");
    }
    "refused with 400, 406 or 415".to_owned()
}

fn sessions(scene: &Scene<'_>) -> String {
    let server = scene.server();
    let mut first = server.client(Era::Older);
    // Nobody is refused: the sessions that do least give way to those that come.
    let usual = [("Content-Type", "application/json"), ("Accept", "application/json, text/event-stream")];
    let opened: Vec<String> = (0..1500)
        .map(|_| {
            let answer = server.exchange("POST", "/mcp", &usual, INITIALIZE);
            assert_eq!(answer.status, 200, "{}", answer.text());
            answer.header("mcp-session-id").expect("a session").to_owned()
        })
        .collect();
    let ping = br#"{"jsonrpc":"2.0","id":5,"method":"ping"}"#;
    let is_alive = |session: &&String| {
        let headers = [usual[0], usual[1], ("Mcp-Session-Id", session.as_str())];
        server.exchange("POST", "/mcp", &headers, ping).status == 200
    };
    let alive = opened.iter().filter(is_alive).count();
    assert!(alive < 256, "{alive} sessions are open");
    let session = first.wire().session().expect("a session").to_owned();
    for guess in ["x", "00000000-0000-4000-8000-000000000000", &session[1..], &session.to_uppercase(), "../.."] {
        let mut headers = usual.to_vec();
        headers.push(("Mcp-Session-Id", guess));
        let status = server.exchange("POST", "/mcp", &headers, ping).status;
        assert_eq!(status, 404, "a session {guess:?}");
        assert!(server.exchange("DELETE", "/mcp", &[("Mcp-Session-Id", guess)], b"").status != 500);
    }
    first.ping();
    assert!(session.len() >= 32, "a session that can be guessed: {session}");
    format!("{} opened, {alive} of them kept, and the one that is used; none guessed", opened.len())
}

fn injected(scene: &Scene<'_>) -> String {
    let bad = [
        "%2e%2e%2f",
        "%2e%2e%2fok",
        "..%5cok",
        "..%2Fwitness",
        "%00",
        "ok%00",
        "/./ok",
        "./ok",
        "../witness/static-text",
        "ok/../../witness/static-text",
        "%2E%2E/%2e%2e/ok",
        "%c0%ae%c0%ae/ok",
        "%e0%80%af",
        "ok#fragment",
        "//witness/static-text",
        "/ok",
        "ok\\..\\x",
        "\u{ff0e}\u{ff0e}/ok",
        "\u{2024}\u{2024}/ok",
        "ok%",
        "ok%zz",
        "belljar://witness/static-text",
        "o k",
        "ok\n",
    ];
    for reference in bad {
        let uri = format!("{}{reference}", scene.uri(""));
        let error = scene.read_uri(&uri).expect_err("a refusal");
        assert_eq!((error.code, kind(&error)), (INVALID_PARAMS, "bad-uri"), "{reference:?}: {error}");
    }
    for (uri, code) in
        [("Belljar://witness/static-text", 0), ("belljar://WITNESS/static-text", 0), ("belljar:witness/static-text", 0)]
    {
        let error = scene.read_uri(uri).expect_err("nobody's");
        assert!(code == 0 && kind(&error) == "not-found", "{uri}: {error}");
    }
    // What is not refused goes to the provider letter by letter: it is not decoded twice.
    for odd in ["%252e%252e%252fok", "a;b=1", "...", "caf%C3%A9"] {
        let error = scene.read_uri(&format!("{}{odd}", scene.uri(""))).expect_err("no such verb");
        assert_eq!(error.data["mount"], scene.name(""), "{odd}: {error}");
    }
    format!("{} refused before the provider", bad.len())
}

/// Answers pile up for a client that does not read; then it goes away in the middle of everything.
fn deaf(scene: &Scene<'_>) -> String {
    let mut command = scene.stage.command(&["serve"], "");
    command
        .stdin(std::process::Stdio::piped())
        .stdout(std::process::Stdio::piped())
        .stderr(std::process::Stdio::null());
    let mut child = command.spawn().expect("a process");
    let mut stdin = child.stdin.take().expect("piped above");
    let uri = scene.uri("blob/8000000");
    for id in 0..400 {
        let message = Era::Modern.message(id, "resources/read", json!({ "uri": uri }));
        stdin.write_all(format!("{message}\n").as_bytes()).expect("a server that reads");
    }
    let memory = || {
        let status = std::fs::read_to_string(format!("/proc/{}/status", child.id())).expect("a process");
        let field = status.lines().find_map(|line| line.strip_prefix("VmRSS:")).expect("a size");
        field.split_whitespace().next().and_then(|kib| kib.parse::<u64>().ok()).expect("a size") >> 10
    };
    // It fills up and then stands still, far below what all answers are together.
    let (mut last, mut still) = (0, 0);
    let began = Instant::now();
    while still < 8 && began.elapsed() < Duration::from_secs(30) {
        std::thread::sleep(Duration::from_millis(250));
        let now = memory();
        still = if now <= last + 2 && now > 100 { still + 1 } else { 0 };
        last = last.max(now);
        // What may wait, what eight calls hold, and what is being written; the memory of all calls would be more.
        assert!(now < 400, "{now} MiB are held for a client that does not read");
    }
    drop(stdin);
    let left = Instant::now();
    drop(child.stdout.take());
    let ended = within(Duration::from_secs(10), || child.try_wait().expect("a child").is_some());
    child.kill().ok();
    assert!(ended, "it does not end after its client left");
    format!("{last} MiB held at most; ended {} ms after its client", left.elapsed().as_millis())
}

fn smuggled(scene: &Scene<'_>) -> String {
    let server = scene.server();
    let own = server.address();
    let raw = |text: String| {
        String::from_utf8_lossy(&server.raw_within(text.as_bytes(), Duration::from_millis(700))).into_owned()
    };
    let inner = format!("POST /mcp HTTP/1.1\r\nHost: {own}\r\nContent-Length: 0\r\n\r\n");
    let both = raw(format!(
        "POST /mcp HTTP/1.1\r\nHost: {own}\r\nContent-Length: 4\r\nTransfer-Encoding: chunked\r\n\r\n0\r\n\r\n{inner}"
    ));
    let two = raw(format!(
        "POST /mcp HTTP/1.1\r\nHost: {own}\r\nContent-Length: 0\r\nContent-Length: {}\r\n\r\n{inner}",
        inner.len()
    ));
    assert!(two.starts_with("HTTP/1.1 400") && two.matches("HTTP/1.1 ").count() == 1, "{two}");
    assert!(both.matches("HTTP/1.1 2").count() == 0, "{both}");
    let upgraded = raw(format!(
        "GET /mcp HTTP/1.1\r\nHost: {own}\r\nUpgrade: h2c\r\nConnection: Upgrade, HTTP2-Settings\r\nHTTP2-Settings: AAMAAABkAAQAAP__\r\n\r\n"
    ));
    assert!(!upgraded.contains("101"), "{upgraded}");
    let prior = raw("PRI * HTTP/2.0\r\n\r\nSM\r\n\r\n".to_owned());
    assert!(!prior.contains(" 200"), "{prior}");
    let old = raw("POST /mcp HTTP/1.0\r\nContent-Length: 0\r\n\r\n".to_owned());
    assert!(!old.contains(" 200"), "{old}");
    let wire = server.wire(Era::Modern);
    let one = server.request(&wire, &Era::Modern.message(1, "resources/read", json!({ "uri": WITNESS })));
    let answers = server.raw_within(&one.repeat(1000), Duration::from_secs(10));
    let count = String::from_utf8_lossy(&answers).matches("This is the content").count();
    assert_eq!(count, 1000, "answers to 1,000 requests in a pipeline");
    "refused; a pipeline of 1,000 is answered in order".to_owned()
}
