//! Hostile rows about upstreams that never answer, never end a response, send too much, or fail for a while. The
//! upstreams are real servers on loopback.

use std::sync::atomic::Ordering;
use std::time::{Duration, Instant};

use belljar_upstream::{DnsServer, Upstream, request, until_closed};

use belljar_tests::Load;

use crate::expect::{Expect, limit, text};
use crate::http_grants::{answer_text, fetch, grant, holding, switchable_upstream};
use crate::row::{Row, RunMode, Stops, hostile_guest};
use crate::running_site::RowContext;
use crate::tools::{deadline, in_time, is_excused, shown};

/// The longest accepted time between the end of a call and the end of its connection. On an idle machine, the
/// connection ends within 100 ms.
const CLOSE_DELAY: Duration = Duration::from_secs(2);

pub(crate) fn rows() -> Vec<Row> {
    [stalled(), amounts(), timeouts(), outages()].into_iter().flatten().collect()
}

fn origin(upstream: &Upstream) -> String {
    format!("http://127.0.0.1:{}", upstream.port())
}

/// A row that asserts: the time limit ends each request of `orders`, and belljar closes its connection. `{origin}` in
/// an order stands for the origin of `upstream`.
fn ended_by_time_limit(id: &'static str, attack: &'static str, upstream: Upstream, orders: &[&str]) -> Row {
    let origin = origin(&upstream);
    let orders: Vec<String> = orders.iter().map(|order| order.replace("{origin}", &origin)).collect();
    hostile_guest(id, attack)
        .time(700)
        .config(&grant(&origin, "methods = [\"GET\", \"POST\"]"))
        .act(move |context| {
            upstream.forget();
            let mut saw = String::new();
            for order in &orders {
                saw = limit("time")
                    .judge(&context.read(&fetch(order)), &context.name(""))
                    .unwrap_or_else(|why| panic!("{order}: {why}"));
            }
            assert!(upstream.connections() >= orders.len(), "the upstream got fewer connections than requests");
            assert!(upstream.all_closed_within(deadline(CLOSE_DELAY)), "connections are open");
            format!("{saw}, connections closed")
        })
        .stopped_by(&["time"])
}

/// Rows about upstreams and name servers that do not answer, or do not end their answer.
fn stalled() -> Vec<Row> {
    let silent = Upstream::raw(|stream| {
        until_closed(stream, Duration::from_secs(30));
    });
    let blk_03 = ended_by_time_limit(
        "BLK-03",
        "an upstream accepts the request and never answers",
        silent,
        &[
            "GET {origin}/",
            "GET {origin}/|connect 86400000|first 86400000|between 86400000",
            "GET {origin}/|parallel 8",
        ],
    );
    let handshake = Upstream::raw(|stream| {
        until_closed(stream, Duration::from_secs(30));
    });
    let secure = origin(&handshake).replace("http:", "https:");
    let order = format!("GET {secure}/|connect 86400000");
    let blk_03_tls = hostile_guest("BLK-03", "an upstream accepts the connection and never answers the TLS handshake")
        .run_mode(RunMode::Stdio)
        .time(700)
        .config(&grant(&secure, ""))
        .act(move |context| {
            limit("time").judge(&context.read(&fetch(&order)), &context.name("")).unwrap_or_else(|why| panic!("{why}"));
            assert_eq!(handshake.connections(), 1);
            assert!(handshake.all_closed_within(deadline(CLOSE_DELAY)), "connections are open");
            "limit time, connection closed".to_owned()
        })
        .stopped_by(&["time"]);
    let slow = Upstream::raw(|stream| {
        let _ = request(stream);
        let mut ok = stream.write_all(b"HTTP/1.1 200 OK\r\ncontent-length: 1000000\r\n\r\n").is_ok();
        while ok {
            std::thread::sleep(Duration::from_millis(30));
            ok = stream.write_all(b"x").is_ok();
        }
    });
    let blk_04 = ended_by_time_limit(
        "BLK-04",
        "an upstream answers byte by byte, for ever",
        slow,
        &["GET {origin}/|between 1000", "GET {origin}/"],
    );
    let endless = Upstream::raw(|stream| {
        let Some(request) = request(stream) else { return };
        let (first, piece) = match request.path() {
            "/continue" => (&b""[..], &b"HTTP/1.1 100 Continue\r\n\r\n"[..]),
            "/line" => (&b"HTTP/1.1 200 OK\r\nx: "[..], &b"xxxxxxxxxxxxxxxx"[..]),
            _ => (&b"HTTP/1.1 200 OK\r\n"[..], &b"x: y\r\n"[..]),
        };
        let mut ok = stream.write_all(first).is_ok();
        let end = Instant::now() + Duration::from_secs(30);
        while ok && Instant::now() < end {
            ok = stream.write_all(&piece.repeat(64)).is_ok();
        }
    });
    let base = origin(&endless);
    let blk_05 = hostile_guest("BLK-05", "an upstream sends headers, or `100 Continue` responses, without end")
        .time(1500)
        .config(&grant(&base, ""))
        .act(move |context| {
            let before = context.memory();
            for path in ["/headers", "/line", "/continue"] {
                let answer = context.read(&fetch(&format!("GET {base}{path}")));
                let fine = matches!(text(&answer), Some(text) if text.starts_with("refused: "));
                assert!(fine || limit("time").judge(&answer, &context.name("")).is_ok(), "{path}: {}", shown(&answer));
            }
            assert!(endless.all_closed_within(deadline(CLOSE_DELAY)), "connections are open");
            let grown = context.memory().saturating_sub(before) >> 20;
            // If rows run together, another row may have used the memory.
            assert!(grown <= 24 || context.running.together, "{grown} MiB more");
            "refused or ended by the time limit, at most 64 KiB of a head in memory".to_owned()
        })
        .stopped(Stops::Structure(
            "hyper accepts at most 64 KiB and 100 fields of a head; the time limit of the call ends the rest",
        ));
    let (socket, address) = DnsServer::silent();
    let blk_08 = hostile_guest("BLK-08", "a name server that never answers")
        .time(700)
        .config(&grant("http://slow.test", ""))
        .settings(&format!("[network]\ndns = [\"{address}\"]"))
        .act(move |context| {
            let _alive = &socket;
            let ids: Vec<u64> = (0..8).map(|_| context.begin(&fetch("GET http://slow.test/"))).collect();
            for id in ids {
                limit("time").judge(&context.wait(id), &context.name("")).unwrap_or_else(|why| panic!("{why}"));
            }
            let threads = context.running.process().threads();
            assert!(threads <= context.running.before.threads + 2, "{threads} threads");
            "limit time, no thread waits".to_owned()
        })
        .stopped_by(&["time"]);
    let unfinished = Upstream::raw(|stream| {
        until_closed(stream, Duration::from_secs(30));
    });
    let blk_09 = ended_by_time_limit(
        "BLK-09",
        "a provider begins a request body and never ends it",
        unfinished,
        &["POST {origin}/|body 10|unfinished", "POST {origin}/|body 10"],
    );
    vec![blk_03, blk_03_tls, blk_04, blk_05, blk_08, blk_09]
}

/// Rows about the number of requests, and the size of a response.
fn amounts() -> Vec<Row> {
    let upstream = Upstream::raw(|stream| {
        let _ = request(stream);
        std::thread::sleep(Duration::from_millis(5));
        let _ = stream.write_all(b"HTTP/1.1 200 OK\r\ncontent-length: 0\r\n\r\n");
        until_closed(stream, Duration::from_secs(5));
    });
    let base = origin(&upstream);
    let mem_14 = hostile_guest("MEM-14", "a provider sends many requests at once")
        .config(&grant(&base, ""))
        .limits("requests = 10000\nconnections = 4")
        .act(move |context| {
            upstream.forget();
            let load = Load::begin();
            let reply = answer_text(&context.read(&fetch(&format!("GET {base}/|parallel 150|quiet|show 0"))));
            assert_eq!(reply.matches("status 200").count(), 150, "{reply}");
            // The upstream notices a closed connection a little late.
            assert!(upstream.most_open() <= 12 || is_excused(&load), "{} at once", upstream.most_open());
            format!("150 answered, {} at once", upstream.most_open())
        })
        .stopped_by(&["traffic"]);

    let many = Upstream::plain(|_| belljar_upstream::answer("200 OK", "", ""));
    let base = origin(&many);
    let more = hostile_guest("MEM-14", "a provider sends one request after the other")
        .run_mode(RunMode::Stdio)
        .config(&grant(&base, ""))
        .limits("requests = 20")
        .read(fetch(&format!("GET {base}/|times 1000|quiet|show 0|fail")), limit("requests"))
        .stopped_by(&["traffic"]);
    let more = holding(more, many);

    let large = Upstream::raw(|stream| {
        let _ = request(stream);
        let mut ok = stream.write_all(b"HTTP/1.1 200 OK\r\ncontent-length: 10000000000\r\n\r\n").is_ok();
        let piece = vec![b'x'; 64 << 10];
        while ok {
            ok = stream.write_all(&piece).is_ok();
        }
    });
    let base = origin(&large);
    let mem_16 = hostile_guest("MEM-16", "an upstream sends 10 GB")
        .config(&grant(&base, ""))
        .act(move |context| {
            let before = context.memory();
            for _ in 0..3 {
                let answer = context.read(&fetch(&format!("GET {base}/|fail")));
                limit("download").judge(&answer, &context.name("")).unwrap_or_else(|why| panic!("{why}"));
            }
            assert!(large.all_closed_within(deadline(CLOSE_DELAY)), "connections are open");
            let grown = context.memory().saturating_sub(before) >> 20;
            // If rows run together, another row may have used the memory.
            assert!(grown <= 24 || context.running.together, "{grown} MiB more");
            format!("limit download three times, {grown} MiB more")
        })
        .stopped_by(&["traffic"]);
    vec![mem_14, more, mem_16]
}

/// A row about the timeouts that a provider may set for a request.
fn timeouts() -> Vec<Row> {
    let slow = Upstream::raw(|stream| {
        let _ = request(stream);
        std::thread::sleep(Duration::from_millis(100));
        let mut ok = stream.write_all(b"HTTP/1.1 200 OK\r\ncontent-length: 3\r\n\r\n").is_ok();
        for _ in 0..3 {
            std::thread::sleep(Duration::from_millis(100));
            ok = ok && stream.write_all(b"x").is_ok();
        }
        until_closed(stream, Duration::from_secs(5));
    });
    let base = origin(&slow);
    let adv_04 = hostile_guest(
        "ADV-04",
        "a provider sets each timeout to zero (RUSTSEC-2026-0320), or to more than the time limit",
    )
    .config(&grant(&base, ""))
    .act(move |context| {
        for wait in ["connect 0", "first 0", "between 0", "connect 0|first 0|between 0"] {
            let reply = answer_text(&context.read(&fetch(&format!("GET {base}/|{wait}"))));
            assert!(reply.starts_with("refused: ") || reply.contains("3 bytes"), "{wait}: {reply}");
        }
        for wait in ["connect 18446744073709", "first 18446744073709", "between 18446744073709"] {
            let reply = answer_text(&context.read(&fetch(&format!("GET {base}/|{wait}"))));
            assert!(reply.contains("3 bytes"), "{wait}: {reply}");
        }
        assert!(slow.all_closed_within(deadline(Duration::from_secs(6))), "connections are open");
        "an error, or the response".to_owned()
    })
    .stopped(Stops::Structure("no timer gets a timeout of zero, or one longer than the call's time limit"));
    vec![adv_04]
}

/// A row about an upstream that is down for a while.
fn outages() -> Vec<Row> {
    let (upstream, is_up) = switchable_upstream();
    let base = origin(&upstream);
    let inf_04 = hostile_guest("INF-04", "an upstream is down for a while")
        .config(&grant(&base, ""))
        .act(move |context| {
            is_up.store(false, Ordering::SeqCst);
            upstream.forget();
            let ask = || answer_text(&context.read(&fetch(&format!("GET {base}/|quiet"))));
            let down = Instant::now();
            for _ in 0..20 {
                let reply = ask();
                assert!(reply.starts_with("refused: "), "{reply}");
            }
            let attempts = upstream.connections();
            // belljar connects three times before it regards the upstream as down, and then at most once a second.
            let most = 4 + usize::try_from(down.elapsed().as_secs()).unwrap_or(usize::MAX);
            assert!(attempts <= most, "{attempts} connections for 20 requests");
            is_up.store(true, Ordering::SeqCst);
            let back = Instant::now();
            while !ask().starts_with("status 200") {
                assert!(
                    in_time(back.elapsed(), Duration::from_secs(5)),
                    "belljar did not notice within {:?} that the upstream is up",
                    back.elapsed()
                );
                std::thread::sleep(Duration::from_millis(50));
            }
            let recovered = all_answered(context, &base);
            format!("{attempts} connections for 20 requests, back after {} ms; {recovered}", back.elapsed().as_millis())
        })
        .stopped_by(&["upstream"]);
    vec![inf_04]
}

/// Asserts that the upstream answers each request, after belljar has noticed that the upstream is up.
fn all_answered(context: &RowContext<'_>, base: &str) -> &'static str {
    for _ in 0..5 {
        let answer = context.read(&fetch(&format!("GET {base}/|quiet")));
        Expect::Contains(&["status 200", "up"]).judge(&answer, "").unwrap_or_else(|why| panic!("{why}"));
    }
    "after that, each request was answered"
}
