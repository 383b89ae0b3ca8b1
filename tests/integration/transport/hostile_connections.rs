//! Hostile rows about clients that occupy all connections or all pending requests. The real `belljar` binary must still
//! serve a new client, on both transports and in both protocol eras.

use std::io::{Read, Write};
use std::net::TcpStream;
use std::time::Duration;

use belljar_tests::{Era, Server};
use serde_json::json;

use crate::expect::kind;
use crate::row::{Guest, Row, RunMode, hostile_guest};
use crate::running_site::RowContext;
use crate::tools::{deadline, read_text, within};

const WITNESS: &str = "belljar://witness/static-text";

/// The number of hostile connections. The connection table of belljar has fewer entries.
const CROWD: usize = 700;

/// The most connections that may be open: the entries of the table, and connections that receive a busy error.
const KEPT: usize = 660;

/// How long a new client may wait. Without the guard, it waits ten minutes for the hostile clients.
const SOON: Duration = Duration::from_secs(20);

/// The limits of each mount. At most 256 reads of one mount may wait, so the rows use three mounts.
const WAITING: &str = "concurrency = 2\nqueue = \"600s\"";

/// The URI of a read that sleeps for more than eight minutes. Each `at` gives another URI, of one of three mounts in
/// turn.
fn sleep(context: &RowContext<'_>, at: usize) -> String {
    context.uri_of(["", "two", "three"][at % 3], &format!("sleep/{}", 500_000 + at))
}

pub(crate) fn rows() -> Vec<Row> {
    vec![
        waiting_row("700 connections fill the connection table with reads that only wait, in both eras")
            .run_mode(RunMode::Http)
            .keeps(192)
            .act(waiting_reads)
            .stopped_by(&["connections"]),
        hostile_guest(
            "MCP-31",
            "700 connections fill the connection table with open streams, and with incomplete bodies",
        )
        .run_mode(RunMode::Http)
        .keeps(192)
        .act(streams_and_bodies)
        .stopped_by(&["connections"]),
        waiting_row("a client on stdio fills the table of pending requests with waiting reads, and sends another read")
            .run_mode(RunMode::Stdio)
            .keeps(64)
            .act(pending_reads)
            .stopped_by(&["pending"]),
    ]
}

/// A row with three mounts of the hostile guest. Many reads of each may wait.
fn waiting_row(attack: &'static str) -> Row {
    hostile_guest("MCP-31", attack)
        .time(600_000)
        .limits(WAITING)
        .mount("two", Guest::Built("guest_hostile"))
        .limits(WAITING)
        .mount("three", Guest::Built("guest_hostile"))
        .limits(WAITING)
}

/// Opens [`CROWD`] connections, and sends a request on each.
fn crowd(server: &Server, mut request: impl FnMut(usize) -> Vec<u8>) -> Vec<TcpStream> {
    let open_one = |at| {
        let mut stream = TcpStream::connect(server.address()).expect("a server that accepts");
        stream.write_all(&request(at)).ok();
        stream
    };
    (0..CROWD).map(open_one).collect()
}

/// Asserts that a new client can read the witness, in both eras. `attack` names the running attack.
fn assert_new_client_is_served(server: &Server, attack: &str) {
    for era in Era::ALL {
        let served = within(SOON, || {
            let read = || server.client(era).text(WITNESS).starts_with("This is");
            std::panic::catch_unwind(std::panic::AssertUnwindSafe(read)).unwrap_or(false)
        });
        assert!(served, "{attack}: a new client is not served ({era:?})");
    }
}

/// Returns the number of connections that are still open, and the answers on the closed ones.
fn open_and_answers(crowd: Vec<TcpStream>) -> (usize, Vec<String>) {
    let (mut open, mut answers) = (0, Vec::new());
    for mut stream in crowd {
        stream.set_read_timeout(Some(Duration::from_millis(1))).expect("a positive time");
        let mut answer = Vec::new();
        match stream.read_to_end(&mut answer) {
            Err(error) if error.kind() == std::io::ErrorKind::WouldBlock => open += 1,
            _ => answers.push(String::from_utf8_lossy(&answer).into_owned()),
        }
    }
    (open, answers)
}

/// Fills the connection table with waiting reads, in both protocol eras. belljar must evict some of them with a busy
/// error.
fn waiting_reads(context: &RowContext<'_>) -> String {
    let server = context.server();
    let wire = server.wire(Era::Stateless);
    let message = |at: usize| Era::Stateless.message(at as u64, "resources/read", json!({ "uri": sleep(context, at) }));
    let held = crowd(server, |at| server.request(&wire, &message(at)));
    assert_new_client_is_served(server, "reads");
    let (open, answers) = open_and_answers(held);
    assert!(open <= KEPT, "belljar keeps {open} connections");
    let is_busy = |answer: &&String| answer.starts_with("HTTP/1.1 503") && answer.contains("\"kind\":\"busy\"");
    let busy = answers.iter().filter(is_busy).count();
    assert!(busy > 0, "no client got a busy error: {:?}", answers.first());

    let mut older = server.client(Era::Session);
    let held = crowd(server, |at| {
        let params = json!({ "uri": sleep(context, at) });
        server.request(older.wire(), &Era::Session.message(10_000 + at as u64, "resources/read", params))
    });
    assert_new_client_is_served(server, "reads of a session");
    let (older_open, answers) = open_and_answers(held);
    assert!(older_open <= KEPT, "belljar keeps {older_open} connections");
    let older_busy = answers.iter().filter(|answer| answer.contains("\"kind\":\"busy\"")).count();
    assert!(older_busy > 0, "no client got a busy error: {:?}", answers.first());
    format!("new clients are served; of {CROWD} connections, {busy} and {older_busy} were evicted with a busy error")
}

/// Fills the connection table with streams, with incomplete bodies, and with requests without a pause.
fn streams_and_bodies(context: &RowContext<'_>) -> String {
    let server = context.server();
    let own = server.address();
    let wire = server.wire(Era::Stateless);
    let listen = |at: usize| {
        let wanted = json!({ "notifications": { "resourcesListChanged": true } });
        Era::Stateless.message(at as u64, "subscriptions/listen", wanted)
    };
    let mut open = Vec::new();
    let mut check = |attack: &str, held: Vec<TcpStream>| {
        assert_new_client_is_served(server, attack);
        let (kept, _) = open_and_answers(held);
        assert!(kept <= KEPT, "{attack}: belljar keeps {kept} connections");
        open.push(kept);
    };
    check("streams", crowd(server, |at| server.request(&wire, &listen(at))));
    let mut older = server.client(Era::Session);
    let session = older.wire().session().expect("a session").to_owned();
    let get = format!(
        "GET /mcp HTTP/1.1\r\nHost: {own}\r\nAccept: text/event-stream\r\nMCP-Protocol-Version: 2025-11-25\r\nMcp-Session-Id: {session}\r\n\r\n"
    );
    check("streams of a session", crowd(server, |_| get.clone().into_bytes()));
    let whole = server.request(&wire, &Era::Stateless.message(1, "resources/read", json!({ "uri": WITNESS })));
    let part = whole[..whole.len() - 3].to_vec();
    check("incomplete bodies", crowd(server, |_| part.clone()));
    // Four clients send requests without a pause.
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
        assert_new_client_is_served(server, "requests without a pause");
        stop.store(true, std::sync::atomic::Ordering::Relaxed);
    });
    format!("new clients are served; {open:?} of {CROWD} connections were kept")
}

/// Sends 600 waiting reads on one connection. belljar must evict some of them, and serve another read.
fn pending_reads(context: &RowContext<'_>) -> String {
    let line = context.stdio();
    let send = |at| line.send("resources/read", json!({ "uri": sleep(context, at) }));
    let mut ids: Vec<u64> = (0..480).map(send).collect();
    // belljar evicts a request only after some waiting time.
    std::thread::sleep(Duration::from_millis(500));
    ids.extend((480..600).map(send));
    // A short read evicts a request that has waited for long. `server/discover` runs no guest, and need not wait.
    let discovered = line.wait(line.send("server/discover", json!({})), deadline(SOON)).expect("an answer").0;
    assert!(discovered.is_ok(), "{discovered:?}");
    let served = within(SOON, || {
        let read = || read_text(line, WITNESS).starts_with("This is");
        std::panic::catch_unwind(std::panic::AssertUnwindSafe(read)).unwrap_or(false)
    });
    assert!(served, "a read of another mount is refused");
    let is_evicted = |id: &u64| match line.wait(*id, Duration::from_millis(1)) {
        Some((Err(error), _)) => kind(&error) == "busy" && error.message.contains("waited for longest"),
        _ => false,
    };
    let mut count = 0;
    within(SOON, || {
        count = ids.iter().filter(|id| is_evicted(id)).count();
        count > 0
    });
    assert!(count > 0, "no request got a busy error");
    format!("served; belljar evicted {count} waiting reads")
}
