//! Requests that are withdrawn: by a message, by closing the connection, in every state that a call can be in. The guest
//! stops, nothing is answered, everything else goes on.

use std::net::TcpStream;
use std::time::{Duration, Instant};

use belljar_tests::process::cpu_time;
use belljar_tests::{Era, Process};
use serde_json::json;

use crate::expect::kind;
use crate::oracle::percentile;
use crate::row::{Row, Way, imp};
use crate::scene::Scene;
use crate::tools::{read_text, within};

/// Far longer than the row: what ends before was stopped.
const ENDLESS: &str = "fuel = 1_000_000_000_000_000\nqueue = \"600s\"\nconcurrency = 2\ncpu = \"200%\"";

pub(crate) fn rows() -> Vec<Row> {
    vec![
        imp(
            "MCP-14",
            "a client goes away, or withdraws its read, while the provider computes, sleeps, or waits for a turn",
        )
        .way(Way::Http)
        .time(600_000)
        .limits(ENDLESS)
        .measures()
        .act(withdrawn)
        .stopped_by(&["cancel"]),
        imp(
            "MCP-15",
            "withdrawals that cross with answers, name others' requests, or come twice; two requests with one id",
        )
        .way(Way::Stdio)
        .act(crossing)
        .stopped_by(&["pending"]),
    ]
}

/// How long what comes at once is waited for on a busy machine: a tenth of what a guest would compute for.
const PATIENCE: Duration = Duration::from_secs(60);

/// How often each way is tried. `BELLJAR_CANCELS` says otherwise.
fn rounds() -> usize {
    std::env::var("BELLJAR_CANCELS").ok().and_then(|rounds| rounds.parse().ok()).unwrap_or(8)
}

/// How long a process goes on to compute: until it has used next to nothing of some milliseconds.
fn stops(process: &Process) -> Duration {
    const LOOK: Duration = Duration::from_millis(15);
    let began = Instant::now();
    let mut before = cpu_time(process.id()).as_secs_f64();
    while began.elapsed() < PATIENCE {
        let at = began.elapsed();
        std::thread::sleep(LOOK);
        let now = cpu_time(process.id()).as_secs_f64();
        // A guest that computes takes all of it; the host takes a little to end it.
        if now - before < LOOK.as_secs_f64() / 3.0 {
            return at;
        }
        before = now;
    }
    panic!("it computes on for {PATIENCE:?}")
}

fn starts(process: &Process) {
    let before = cpu_time(process.id()).as_secs_f64();
    assert!(
        within(Duration::from_secs(20), || cpu_time(process.id()).as_secs_f64() - before > 0.03),
        "the guest does not run"
    );
}

/// The slowest of a hundred stops of each way to be withdrawn.
fn withdrawn(scene: &Scene<'_>) -> String {
    let server = scene.server();
    let process = &server.process;
    let mut told = Vec::new();
    let mut all = Vec::new();
    let modern_wire = server.wire(Era::Modern);
    let mut older = server.client(Era::Older);
    let read = |id: usize, verb: &str| json!({ "jsonrpc": "2.0", "id": id, "method": "resources/read", "params": { "uri": scene.uri(verb) } });
    // Both turns, taken or free again, as a read that comes after sees them.
    let free = || {
        // What holds them would do so for minutes: that there is an answer says that they are free.
        let mut client = server.client(Era::Modern);
        client.patience = PATIENCE;
        let answer = client.read(&scene.uri("ok"));
        assert!(answer.is_ok(), "its turns are not free again: {answer:?}");
    };
    let mut id = 100;
    for way in ["modern, closed", "older, closed", "older, withdrawn"] {
        let mut times = Vec::new();
        for round in 0..rounds() {
            id += 1;
            let verb = ["spin", "busy", "fill"][round % 3];
            let stream: TcpStream = match way {
                "modern, closed" => server.begin(
                    &modern_wire,
                    &Era::Modern.message(id as u64, "resources/read", json!({ "uri": scene.uri(verb) })),
                ),
                _ => server.begin(older.wire(), &read(id, verb)),
            };
            starts(process);
            if way == "older, withdrawn" {
                older.notify("notifications/cancelled", json!({ "requestId": id }));
            } else {
                stream.shutdown(std::net::Shutdown::Both).ok();
            }
            times.push(stops(process));
            drop(stream);
        }
        free();
        all.extend(times.iter().copied());
        told.push(format!("{way}: {} ms", percentile(&times, 99).as_millis()));
    }
    // Those that sleep, and those that wait for a turn: when all are gone, there are turns again at once.
    for verb in ["sleep/500000", "forever"] {
        let streams: Vec<TcpStream> = (0..6)
            .map(|n| match n % 2 {
                0 => server.begin(
                    &modern_wire,
                    &Era::Modern.message(900 + n, "resources/read", json!({ "uri": scene.uri(verb) })),
                ),
                _ => server.begin(older.wire(), &read(900 + n as usize, verb)),
            })
            .collect();
        std::thread::sleep(Duration::from_millis(200));
        drop(streams);
        free();
    }
    let p99 = percentile(&all, 99);
    format!("stopped within {} ms (99 % of {}); {}", p99.as_millis(), all.len(), told.join(", "))
}

/// On stdio: at every moment of a short life, twice, of others; and one id twice.
fn crossing(scene: &Scene<'_>) -> String {
    let line = scene.line();
    let (mut answered, mut silent) = (0, 0);
    for round in 0..200u64 {
        let id = scene.begin("text/50000");
        std::thread::sleep(Duration::from_micros(round * 20));
        line.cancel(id);
        line.cancel(id);
        line.cancel(1_000_000 + round);
        line.notify("notifications/cancelled", json!({ "requestId": "not-one" }));
        match line.wait(id, Duration::from_millis(if round % 20 == 0 { 300 } else { 3 })) {
            Some(_) => answered += 1,
            None => silent += 1,
        }
    }
    let kept = scene.begin("sleep/700");
    let withdrawn = scene.begin("sleep/701");
    line.cancel(withdrawn);
    assert!(scene.wait(kept).is_ok(), "another's answer is gone");
    assert!(line.wait(withdrawn, Duration::from_millis(400)).is_none(), "an answer after a withdrawal");
    // The same id again, while the first is in flight: one answer with it, and a refusal without.
    let first = scene.begin("sleep/500");
    let mut again = Era::Modern.message(first, "resources/read", json!({ "uri": scene.uri("ok") }));
    again["id"] = json!(first);
    line.raw(format!("{again}\n").as_bytes());
    let refusal = line.other(Duration::from_secs(5)).expect("a refusal of the second");
    assert_eq!((&refusal["error"]["code"], refusal["id"].is_null()), (&json!(-32600), true), "{refusal}");
    let (answer, _) = line.wait(first, Duration::from_secs(10)).expect("an answer to the first");
    let slept = answer.unwrap_or_else(|error| panic!("{}: {error}", kind(&error)));
    assert_eq!(slept["contents"][0]["text"], "slept 500 ms");
    assert!(read_text(line, &scene.uri("ok")) == "fine");
    format!("{answered} answered in time, {silent} withdrawn, one answer an id")
}
