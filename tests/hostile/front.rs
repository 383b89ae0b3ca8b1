//! Clients that take every place and keep it: a newcomer is served all the same, on both transports and in both eras.

use std::io::{Read, Write};
use std::net::TcpStream;
use std::time::Duration;

use belljar_tests::{Era, Server};
use serde_json::json;

use crate::expect::kind;
use crate::row::{Guest, Row, Way, imp};
use crate::scene::Scene;
use crate::tools::{read_text, within};

const WITNESS: &str = "belljar://witness/static-text";

/// More than there are places.
const CROWD: usize = 700;

/// More than are kept open, with those that are being told that they gave way.
const KEPT: usize = 660;

/// For how long a newcomer may wait. Without the guard it waits as long as the crowd likes: a minute here.
const SOON: Duration = Duration::from_secs(20);

/// One mount has 256 reads wait at the most, so that it takes more than one.
const WAITING: &str = "concurrency = 2\nqueue = \"60s\"";

/// A read that waits, of one mount or another; no two are the same.
fn sleep(scene: &Scene<'_>, at: usize) -> String {
    scene.uri_of(["", "two", "three"][at % 3], &format!("sleep/{}", 50_000 + at))
}

pub(crate) fn rows() -> Vec<Row> {
    vec![
        imp("MCP-31", "700 connections hold every place with reads that only wait, in both eras")
            .way(Way::Http)
            .time(60_000)
            .limits(WAITING)
            .mount("two", Guest::Built("guest_imp"))
            .limits(WAITING)
            .mount("three", Guest::Built("guest_imp"))
            .limits(WAITING)
            .keeps(192)
            .act(waiting_reads)
            .stopped_by(&["connections"]),
        imp("MCP-31", "700 connections hold every place with streams and with bodies that do not end")
            .way(Way::Http)
            .keeps(192)
            .act(streams_and_bodies)
            .stopped_by(&["connections"]),
        imp("MCP-31", "a client on stdio has as many reads wait as may be pending, and asks for something else")
            .way(Way::Stdio)
            .time(60_000)
            .limits(WAITING)
            .mount("two", Guest::Built("guest_imp"))
            .limits(WAITING)
            .mount("three", Guest::Built("guest_imp"))
            .limits(WAITING)
            .keeps(64)
            .act(pending_reads)
            .stopped_by(&["pending"]),
    ]
}

/// Opens so many connections, each with one of these requests.
fn crowd(server: &Server, mut request: impl FnMut(usize) -> Vec<u8>) -> Vec<TcpStream> {
    let one = |at| {
        let mut stream = TcpStream::connect(server.address()).expect("a server that accepts");
        stream.write_all(&request(at)).ok();
        stream
    };
    (0..CROWD).map(one).collect()
}

/// Somebody comes who was not there, in either era, and reads.
fn newcomer(server: &Server, what: &str) {
    for era in Era::ALL {
        let served = within(SOON, || {
            let read = || server.client(era).text(WITNESS).starts_with("This is");
            std::panic::catch_unwind(std::panic::AssertUnwindSafe(read)).unwrap_or(false)
        });
        assert!(served, "{what}: nobody else is served ({era:?})");
    }
}

/// How many of these the server still holds, and what it told the others.
fn fates(crowd: Vec<TcpStream>) -> (usize, Vec<String>) {
    let (mut open, mut told) = (0, Vec::new());
    for mut stream in crowd {
        stream.set_read_timeout(Some(Duration::from_millis(5))).expect("a positive time");
        let mut said = Vec::new();
        match stream.read_to_end(&mut said) {
            Err(error) if error.kind() == std::io::ErrorKind::WouldBlock => open += 1,
            _ => told.push(String::from_utf8_lossy(&said).into_owned()),
        }
    }
    (open, told)
}

fn waiting_reads(scene: &Scene<'_>) -> String {
    let server = scene.server();
    let wire = server.wire(Era::Modern);
    let message = |at: usize| Era::Modern.message(at as u64, "resources/read", json!({ "uri": sleep(scene, at) }));
    let held = crowd(server, |at| server.request(&wire, &message(at)));
    newcomer(server, "reads");
    let (open, told) = fates(held);
    assert!(open <= KEPT, "{open} connections are kept");
    let busy =
        told.iter().filter(|said| said.starts_with("HTTP/1.1 503") && said.contains("\"kind\":\"busy\"")).count();
    assert!(busy > 0, "nobody is told: {:?}", told.first());

    let mut older = server.client(Era::Older);
    let held = crowd(server, |at| {
        let params = json!({ "uri": sleep(scene, at) });
        server.request(older.wire(), &Era::Older.message(10_000 + at as u64, "resources/read", params))
    });
    newcomer(server, "reads of a session");
    let (older_open, told) = fates(held);
    assert!(older_open <= KEPT, "{older_open} connections are kept");
    let older_busy = told.iter().filter(|said| said.contains("\"kind\":\"busy\"")).count();
    assert!(older_busy > 0, "nobody is told: {:?}", told.first());
    format!("newcomers are served; of {CROWD}, {busy} and {older_busy} were told that they gave way")
}

fn streams_and_bodies(scene: &Scene<'_>) -> String {
    let server = scene.server();
    let own = server.address();
    let wire = server.wire(Era::Modern);
    let listen = |at: usize| {
        let wanted = json!({ "notifications": { "resourcesListChanged": true } });
        Era::Modern.message(at as u64, "subscriptions/listen", wanted)
    };
    let mut open = Vec::new();
    let mut fate = |what: &str, held: Vec<TcpStream>| {
        newcomer(server, what);
        let (kept, _) = fates(held);
        assert!(kept <= KEPT, "{what}: {kept} connections are kept");
        open.push(kept);
    };
    fate("streams", crowd(server, |at| server.request(&wire, &listen(at))));
    let mut older = server.client(Era::Older);
    let session = older.wire().session().expect("a session").to_owned();
    let get = format!(
        "GET /mcp HTTP/1.1\r\nHost: {own}\r\nAccept: text/event-stream\r\nMCP-Protocol-Version: 2025-11-25\r\nMcp-Session-Id: {session}\r\n\r\n"
    );
    fate("streams of a session", crowd(server, |_| get.clone().into_bytes()));
    let whole = server.request(&wire, &Era::Modern.message(1, "resources/read", json!({ "uri": WITNESS })));
    let part = whole[..whole.len() - 3].to_vec();
    fate("bodies", crowd(server, |_| part.clone()));
    // One after the other, without a pause between them.
    let stop = std::sync::atomic::AtomicBool::new(false);
    std::thread::scope(|scope| {
        for _ in 0..4 {
            scope.spawn(|| {
                while !stop.load(std::sync::atomic::Ordering::Relaxed) {
                    let Ok(mut stream) = TcpStream::connect(own) else { continue };
                    stream.set_read_timeout(Some(Duration::from_secs(1))).ok();
                    stream.write_all(&whole.repeat(200)).ok();
                    stream.read_to_end(&mut Vec::new()).ok();
                }
            });
        }
        newcomer(server, "requests without a pause");
        stop.store(true, std::sync::atomic::Ordering::Relaxed);
    });
    format!("newcomers are served; {open:?} of {CROWD} were kept")
}

fn pending_reads(scene: &Scene<'_>) -> String {
    let line = scene.line();
    let send = |at| line.send("resources/read", json!({ "uri": sleep(scene, at) }));
    let mut ids: Vec<u64> = (0..480).map(send).collect();
    // Those that have waited for a while are those that give way.
    std::thread::sleep(Duration::from_millis(500));
    ids.extend((480..600).map(send));
    // Whoever waits for long gives way to a short read; nothing is waited for to ask what runs no guest.
    let discovered = line.wait(line.send("server/discover", json!({})), SOON).expect("an answer").0;
    assert!(discovered.is_ok(), "{discovered:?}");
    let served = within(SOON, || {
        let read = || read_text(line, WITNESS).starts_with("This is");
        std::panic::catch_unwind(std::panic::AssertUnwindSafe(read)).unwrap_or(false)
    });
    assert!(served, "a read of another mount is refused");
    let gave_way = |id: &u64| match line.wait(*id, Duration::from_millis(1)) {
        Some((Err(error), _)) => kind(&error) == "busy" && error.message.contains("waited for longest"),
        _ => false,
    };
    let count = ids.iter().filter(|id| gave_way(id)).count();
    assert!(count > 0, "nobody is told that it gave way");
    format!("served; {count} reads gave way")
}
