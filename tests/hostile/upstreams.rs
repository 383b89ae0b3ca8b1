//! Upstreams that are worth nothing: they never answer, never end, send too much, or come and go.

use std::sync::atomic::Ordering;
use std::time::{Duration, Instant};

use belljar_upstream::{Names, Upstream, request, until_closed};

use crate::egress::{fetch, flapping, grant, holding, said};
use crate::expect::{Expect, limit, text};
use crate::row::{Row, Stops, Way, imp};
use crate::scene::Scene;
use crate::tools::shown;

/// How soon after its call has ended a connection must be closed (R7 says 100 ms on an idle machine).
const CLOSED: Duration = Duration::from_secs(2);

pub(crate) fn rows() -> Vec<Row> {
    [waiting(), sizes(), times(), faults()].into_iter().flatten().collect()
}

fn origin(upstream: &Upstream) -> String {
    format!("http://127.0.0.1:{}", upstream.port())
}

/// Waits for each of these in vain, and is let go.
fn waits(id: &'static str, attack: &'static str, upstream: Upstream, orders: &[&str]) -> Row {
    let origin = origin(&upstream);
    let orders: Vec<String> = orders.iter().map(|order| order.replace("{origin}", &origin)).collect();
    imp(id, attack)
        .time(700)
        .config(&grant(&origin, "methods = [\"GET\", \"POST\"]"))
        .act(move |scene| {
            upstream.forget();
            let mut saw = String::new();
            for order in &orders {
                saw = limit("time")
                    .judge(&scene.read(&fetch(order)), &scene.name(""))
                    .unwrap_or_else(|why| panic!("{order}: {why}"));
            }
            assert!(upstream.connections() >= orders.len(), "it was asked");
            assert!(upstream.is_left(CLOSED), "connections are open");
            format!("{saw}, connections closed")
        })
        .stopped_by(&["time"])
}

fn waiting() -> Vec<Row> {
    let silent = Upstream::raw(|stream| {
        until_closed(stream, Duration::from_secs(30));
    });
    let blk_03 = waits(
        "BLK-03",
        "an upstream takes the request and never answers",
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
    let blk_03_tls = imp("BLK-03", "an upstream takes the connection and never says which key it has")
        .way(Way::Stdio)
        .time(700)
        .config(&grant(&secure, ""))
        .act(move |scene| {
            limit("time").judge(&scene.read(&fetch(&order)), &scene.name("")).unwrap_or_else(|why| panic!("{why}"));
            assert_eq!(handshake.connections(), 1);
            assert!(handshake.is_left(CLOSED), "connections are open");
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
    let blk_04 = waits(
        "BLK-04",
        "an upstream answers byte by byte, for ever",
        slow,
        &["GET {origin}/|between 1000", "GET {origin}/"],
    );
    let endless = Upstream::raw(|stream| {
        let Some(asked) = request(stream) else { return };
        let (first, piece) = match asked.path() {
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
    let blk_05 = imp("BLK-05", "an upstream answers with headers, and with promises of an answer, without end")
        .time(1500)
        .config(&grant(&base, ""))
        .act(move |scene| {
            let before = scene.memory();
            for path in ["/headers", "/line", "/continue"] {
                let answer = scene.read(&fetch(&format!("GET {base}{path}")));
                let fine = matches!(text(&answer), Some(text) if text.starts_with("refused: "));
                assert!(fine || limit("time").judge(&answer, &scene.name("")).is_ok(), "{path}: {}", shown(&answer));
            }
            assert!(endless.is_left(CLOSED), "connections are open");
            let grown = scene.memory().saturating_sub(before) >> 20;
            // Beside others, it is not this row's.
            assert!(grown <= 24 || scene.stage.together, "{grown} MiB more");
            "refused or out of time, 64 KiB of a head at most".to_owned()
        })
        .stopped(Stops::Structure("hyper keeps 64 KiB and 100 fields of a head; the time of a call ends the rest"));
    let (socket, address) = Names::silent();
    let blk_08 = imp("BLK-08", "a name server that never answers")
        .time(700)
        .config(&grant("http://slow.test", ""))
        .settings(&format!("[network]\ndns = [\"{address}\"]"))
        .act(move |scene| {
            let _alive = &socket;
            let ids: Vec<u64> = (0..8).map(|_| scene.begin(&fetch("GET http://slow.test/"))).collect();
            for id in ids {
                limit("time").judge(&scene.wait(id), &scene.name("")).unwrap_or_else(|why| panic!("{why}"));
            }
            let threads = scene.stage.process().threads();
            assert!(threads <= scene.stage.before.threads + 2, "{threads} threads");
            "limit time, no thread waits".to_owned()
        })
        .stopped_by(&["time"]);
    let unfinished = Upstream::raw(|stream| {
        until_closed(stream, Duration::from_secs(30));
    });
    let blk_09 = waits(
        "BLK-09",
        "a provider begins a body and never ends it",
        unfinished,
        &["POST {origin}/|body 10|unfinished", "POST {origin}/|body 10"],
    );
    vec![blk_03, blk_03_tls, blk_04, blk_05, blk_08, blk_09]
}

fn sizes() -> Vec<Row> {
    let crowd = Upstream::raw(|stream| {
        let _ = request(stream);
        std::thread::sleep(Duration::from_millis(5));
        let _ = stream.write_all(b"HTTP/1.1 200 OK\r\ncontent-length: 0\r\n\r\n");
        until_closed(stream, Duration::from_secs(5));
    });
    let base = origin(&crowd);
    let mem_14 = imp("MEM-14", "a provider sends many requests at once")
        .config(&grant(&base, ""))
        .limits("requests = 10000\nconnections = 4")
        .act(move |scene| {
            crowd.forget();
            let told = said(&scene.read(&fetch(&format!("GET {base}/|parallel 150|quiet|show 0"))));
            assert_eq!(told.matches("status 200").count(), 150, "{told}");
            // The upstream notices a little late that somebody left.
            assert!(crowd.most() <= 12, "{} at once", crowd.most());
            format!("150 answered, {} at once", crowd.most())
        })
        .stopped_by(&["traffic"]);

    let many = Upstream::plain(|_| belljar_upstream::answer("200 OK", "", ""));
    let base = origin(&many);
    let more = imp("MEM-14", "a provider sends one request after the other")
        .way(Way::Stdio)
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
    let mem_16 = imp("MEM-16", "an upstream sends 10 GB")
        .config(&grant(&base, ""))
        .act(move |scene| {
            let before = scene.memory();
            for _ in 0..3 {
                let answer = scene.read(&fetch(&format!("GET {base}/|fail")));
                limit("download").judge(&answer, &scene.name("")).unwrap_or_else(|why| panic!("{why}"));
            }
            assert!(large.is_left(CLOSED), "connections are open");
            let grown = scene.memory().saturating_sub(before) >> 20;
            // Beside others, it is not this row's.
            assert!(grown <= 24 || scene.stage.together, "{grown} MiB more");
            format!("limit download three times, {grown} MiB more")
        })
        .stopped_by(&["traffic"]);
    vec![mem_14, more, mem_16]
}

fn times() -> Vec<Row> {
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
    let adv_04 = imp("ADV-04", "a provider gives each wait no time at all (RUSTSEC-2026-0320), or more than there is")
        .config(&grant(&base, ""))
        .act(move |scene| {
            for wait in ["connect 0", "first 0", "between 0", "connect 0|first 0|between 0"] {
                let told = said(&scene.read(&fetch(&format!("GET {base}/|{wait}"))));
                assert!(told.starts_with("refused: ") || told.contains("3 bytes"), "{wait}: {told}");
            }
            for wait in ["connect 18446744073709", "first 18446744073709", "between 18446744073709"] {
                let told = said(&scene.read(&fetch(&format!("GET {base}/|{wait}"))));
                assert!(told.contains("3 bytes"), "{wait}: {told}");
            }
            assert!(slow.is_left(Duration::from_secs(6)), "connections are open");
            "an error, or the answer".to_owned()
        })
        .stopped(Stops::Structure("no timer here takes a time of zero, or one beyond the call's"));
    vec![adv_04]
}

fn faults() -> Vec<Row> {
    let (upstream, is_up) = flapping();
    let base = origin(&upstream);
    let inf_04 = imp("INF-04", "an upstream is down, and comes back")
        .config(&grant(&base, ""))
        .act(move |scene| {
            is_up.store(false, Ordering::SeqCst);
            upstream.forget();
            let ask = || said(&scene.read(&fetch(&format!("GET {base}/|quiet"))));
            let down = Instant::now();
            for _ in 0..20 {
                let told = ask();
                assert!(told.starts_with("refused: "), "{told}");
            }
            let storm = upstream.connections();
            // Three to see that it is down, and one a second at the most to see whether it still is.
            let most = 4 + usize::try_from(down.elapsed().as_secs()).unwrap_or(usize::MAX);
            assert!(storm <= most, "{storm} connections for 20 requests");
            is_up.store(true, Ordering::SeqCst);
            let back = Instant::now();
            while !ask().starts_with("status 200") {
                assert!(back.elapsed() < Duration::from_secs(5), "not noticed in {:?}", back.elapsed());
                std::thread::sleep(Duration::from_millis(50));
            }
            let told = unavailable(scene, &base);
            format!("{storm} connections for 20 requests, back after {} ms; {told}", back.elapsed().as_millis())
        })
        .stopped_by(&["upstream"]);
    vec![inf_04]
}

/// Once it is back, each request is sent again.
fn unavailable(scene: &Scene<'_>, base: &str) -> &'static str {
    for _ in 0..5 {
        let answer = scene.read(&fetch(&format!("GET {base}/|quiet")));
        Expect::Contains(&["status 200", "up"]).judge(&answer, "").unwrap_or_else(|why| panic!("{why}"));
    }
    "all answered since"
}
