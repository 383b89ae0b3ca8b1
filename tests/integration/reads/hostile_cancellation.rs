//! Rows of the hostile table (`tests/integration/hostile`) about cancelled requests. A client cancels by a message, or
//! by closing the connection, in every state of a call. The guest stops, no answer is sent, and other requests
//! continue.

use std::net::TcpStream;
use std::time::{Duration, Instant};

use belljar_tests::process::cpu_time;
use belljar_tests::{Era, Process};
use serde_json::json;

use crate::expect::kind;
use crate::oracle::percentile;
use crate::row::{Row, RunMode, hostile_guest};
use crate::running_site::RowContext;
use crate::tools::{deadline, read_text, within};

/// Limits of calls that run far longer than the row, so that only a cancellation ends them.
const ENDLESS: &str = "fuel = 1_000_000_000_000_000\nqueue = \"600s\"\nconcurrency = 2\ncpu = \"200%\"";

pub(crate) fn rows() -> Vec<Row> {
    vec![
        hostile_guest(
            "MCP-14",
            "a client disconnects, or cancels its read, while the call computes, sleeps, or waits for a turn",
        )
        .run_mode(RunMode::Http)
        .time(600_000)
        .limits(ENDLESS)
        .measures()
        .act(cancel_in_each_way)
        .stopped_by(&["cancel"]),
        hostile_guest(
            "MCP-15",
            "cancellations that arrive after the answer, have unknown ids, or come twice; two requests with one id",
        )
        .run_mode(RunMode::Stdio)
        .act(cancel_at_each_moment)
        .stopped_by(&["pending"]),
    ]
}

/// How long to wait for an event that comes at once on an idle machine. A guest that is not stopped computes ten times
/// as long.
const PATIENCE: Duration = Duration::from_secs(60);

/// How often to try each way to cancel a read. The variable `BELLJAR_CANCELS` sets another number.
fn rounds() -> usize {
    std::env::var("BELLJAR_CANCELS").ok().and_then(|rounds| rounds.parse().ok()).unwrap_or(8)
}

/// Waits until the process uses less than a third of the time of one interval. Returns how long it still computed.
fn time_to_stop(process: &Process) -> Duration {
    const INTERVAL: Duration = Duration::from_millis(15);
    let began = Instant::now();
    let mut before = cpu_time(process.id()).as_secs_f64();
    while began.elapsed() < PATIENCE {
        let at = began.elapsed();
        std::thread::sleep(INTERVAL);
        let now = cpu_time(process.id()).as_secs_f64();
        // A computing guest uses the whole interval. The host needs little time to stop the guest.
        if now - before < INTERVAL.as_secs_f64() / 3.0 {
            return at;
        }
        before = now;
    }
    panic!("the process still computes after {PATIENCE:?}")
}

/// Waits until the process computes.
fn await_start(process: &Process) {
    let before = cpu_time(process.id()).as_secs_f64();
    assert!(
        within(Duration::from_secs(20), || cpu_time(process.id()).as_secs_f64() - before > 0.03),
        "the guest does not run"
    );
}

/// Cancels reads in each of three ways. Returns the 99th percentile of the time until the guest stops, for each way.
fn cancel_in_each_way(context: &RowContext<'_>) -> String {
    let server = context.server();
    let process = &server.process;
    let mut results = Vec::new();
    let mut all = Vec::new();
    let stateless_wire = server.wire(Era::Stateless);
    let mut session = server.client(Era::Session);
    let read = |id: usize, verb: &str| json!({ "jsonrpc": "2.0", "id": id, "method": "resources/read", "params": { "uri": context.uri(verb) } });
    // Checks that a further read gets a turn and an answer. A call that is not stopped would occupy its turn for
    // minutes.
    let assert_free = || {
        let mut client = server.client(Era::Stateless);
        client.patience = PATIENCE;
        let answer = client.read(&context.uri("ok"));
        assert!(answer.is_ok(), "the mount has no free turn: {answer:?}");
    };
    let mut id = 100;
    for way in ["stateless, closed", "session, closed", "session, cancelled"] {
        let mut times = Vec::new();
        for round in 0..rounds() {
            id += 1;
            let verb = ["spin", "busy", "fill"][round % 3];
            let stream: TcpStream = match way {
                "stateless, closed" => server.begin(
                    &stateless_wire,
                    &Era::Stateless.message(id as u64, "resources/read", json!({ "uri": context.uri(verb) })),
                ),
                _ => server.begin(session.wire(), &read(id, verb)),
            };
            await_start(process);
            if way == "session, cancelled" {
                session.notify("notifications/cancelled", json!({ "requestId": id }));
            } else {
                stream.shutdown(std::net::Shutdown::Both).ok();
            }
            times.push(time_to_stop(process));
            drop(stream);
        }
        assert_free();
        all.extend(times.iter().copied());
        results.push(format!("{way}: {} ms", percentile(&times, 99).as_millis()));
    }
    // Some of these reads sleep, and the others wait. After all clients have disconnected, turns are free at once.
    for verb in ["sleep/500000", "forever"] {
        let streams: Vec<TcpStream> = (0..6)
            .map(|n| match n % 2 {
                0 => server.begin(
                    &stateless_wire,
                    &Era::Stateless.message(900 + n, "resources/read", json!({ "uri": context.uri(verb) })),
                ),
                _ => server.begin(session.wire(), &read(900 + n as usize, verb)),
            })
            .collect();
        std::thread::sleep(Duration::from_millis(200));
        drop(streams);
        assert_free();
    }
    let p99 = percentile(&all, 99);
    format!("stopped within {} ms (99 % of {}); {}", p99.as_millis(), all.len(), results.join(", "))
}

/// Cancels calls on stdio: at every moment of a short call, twice, and with unknown ids. Also uses the id of a running
/// request for a second one.
fn cancel_at_each_moment(context: &RowContext<'_>) -> String {
    let line = context.stdio();
    let (mut answered, mut unanswered) = (0, 0);
    for round in 0..200u64 {
        let id = context.begin("text/50000");
        std::thread::sleep(Duration::from_micros(round * 20));
        line.cancel(id);
        line.cancel(id);
        line.cancel(1_000_000 + round);
        line.notify("notifications/cancelled", json!({ "requestId": "not-one" }));
        match line.wait(id, Duration::from_millis(if round % 20 == 0 { 300 } else { 3 })) {
            Some(_) => answered += 1,
            None => unanswered += 1,
        }
    }
    let continued = context.begin("sleep/700");
    let cancelled = context.begin("sleep/50701");
    line.cancel(cancelled);
    assert!(context.wait(continued).is_ok(), "the answer to another request is missing");
    assert!(line.wait(cancelled, Duration::from_millis(400)).is_none(), "an answer to a cancelled request");
    // Use the id of a running request again: that request is answered, and the second one is refused without an id.
    let first = context.begin("sleep/1500");
    let mut again = Era::Stateless.message(first, "resources/read", json!({ "uri": context.uri("ok") }));
    again["id"] = json!(first);
    line.raw(format!("{again}\n").as_bytes());
    let refusal = line.other(deadline(Duration::from_secs(5))).expect("a refusal of the second request");
    assert_eq!((&refusal["error"]["code"], refusal["id"].is_null()), (&json!(-32600), true), "{refusal}");
    let (answer, _) = line.wait(first, deadline(Duration::from_secs(10))).expect("an answer to the first request");
    let slept = answer.unwrap_or_else(|error| panic!("{}: {error}", kind(&error)));
    assert_eq!(slept["contents"][0]["text"], "slept 1500 ms");
    assert!(read_text(line, &context.uri("ok")) == "fine");
    format!("{answered} answered in time, {unanswered} cancelled, one answer for each id")
}
