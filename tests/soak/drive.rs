//! Asks: over a pipe with several requests in flight, over HTTP with several clients; withdraws, and goes away.

use std::collections::BTreeMap;
use std::io::Write;
use std::net::TcpStream;
use std::thread;
use std::time::{Duration, Instant};

use belljar_tests::{Client, Ended, Era, Http, Process, RpcError, Server, Stdio, Wire};
use serde_json::{Value, json};

use crate::cases::{self, Case, Dice};

/// Requests in flight over the pipe.
const WINDOW: usize = 8;

/// How long an answer may take before it counts as missing.
const PATIENCE: Duration = Duration::from_secs(60);

/// What came of a part of the load.
#[derive(Default)]
pub(crate) struct Counts {
    /// Answers that were checked.
    pub(crate) reads: usize,
    /// Those of them that had to be errors.
    pub(crate) hostile: usize,
    /// What was wrong.
    pub(crate) wrong: Vec<String>,
    /// How long honest reads took over the pipe.
    pub(crate) latencies: Vec<Duration>,
}

impl Counts {
    pub(crate) fn add(&mut self, mut other: Counts) {
        self.reads += other.reads;
        self.hostile += other.hostile;
        self.wrong.append(&mut other.wrong);
        self.latencies.append(&mut other.latencies);
    }

    fn judge(&mut self, case: &Case, answer: &Result<Value, RpcError>) {
        self.reads += 1;
        self.hostile += usize::from(!case.is_honest());
        self.wrong.extend(case.check(answer).err());
    }
}

/// The server at the other end of a pipe.
pub(crate) struct Pipe {
    wire: Stdio,
    last_id: u64,
    waiting: BTreeMap<u64, (Case, Instant)>,
}

impl Pipe {
    pub(crate) fn new(wire: Stdio) -> Self {
        Self { wire, last_id: 0, waiting: BTreeMap::new() }
    }

    pub(crate) fn process(&self) -> &Process {
        &self.wire.process
    }

    pub(crate) fn close(self) -> Ended {
        self.wire.close()
    }

    /// Reads so much, and withdraws so many calls that would go on for long.
    pub(crate) fn run(&mut self, reads: usize, cancels: usize, dice: &mut Dice, counts: &mut Counts) {
        let every = (reads / cancels.max(1)).max(1);
        let mut withdrawn = 0;
        for number in 0..reads {
            while self.waiting.len() >= WINDOW {
                self.take(counts);
            }
            self.ask(dice.case());
            if number % every == 0 && withdrawn < cancels {
                withdrawn += 1;
                self.withdraw();
            }
        }
        while !self.waiting.is_empty() {
            self.take(counts);
        }
    }

    /// As many reads as the mount has places, all at once: nothing that was withdrawn sits in one.
    pub(crate) fn places_are_free(&mut self, counts: &mut Counts) {
        (0..4).for_each(|_| self.ask(cases::free()));
        while !self.waiting.is_empty() {
            self.take(counts);
        }
    }

    fn send(&mut self, uri: &str) -> u64 {
        self.last_id += 1;
        self.wire.send(&request(self.last_id, uri));
        self.last_id
    }

    fn ask(&mut self, case: Case) {
        let id = self.send(&case.uri);
        self.waiting.insert(id, (case, Instant::now()));
    }

    fn withdraw(&mut self) {
        let id = self.send(cases::ENDLESS);
        let mut params = json!({ "requestId": id });
        params["_meta"] = meta();
        self.wire.send(&json!({ "jsonrpc": "2.0", "method": "notifications/cancelled", "params": params }));
    }

    /// One answer; what was withdrawn must have none.
    fn take(&mut self, counts: &mut Counts) {
        let Some(mut message) = self.wire.next(Instant::now() + PATIENCE) else {
            let ids: Vec<_> = self.waiting.values().map(|(case, _)| case.uri.as_str()).collect();
            panic!("no answer within {PATIENCE:?}; waiting for {ids:?}; {}", self.wire.diagnosis());
        };
        let Some((case, sent)) = message["id"].as_u64().and_then(|id| self.waiting.remove(&id)) else {
            return counts.wrong.push(format!("an answer to nothing that waits: {message}"));
        };
        if case.is_honest() {
            counts.latencies.push(sent.elapsed());
        }
        let answer = if message["error"].is_null() {
            Ok(message["result"].take())
        } else {
            let error = &mut message["error"];
            let code = error["code"].as_i64().unwrap_or_default();
            Err(RpcError {
                code,
                message: error["message"].as_str().unwrap_or_default().to_owned(),
                data: error["data"].take(),
            })
        };
        counts.judge(&case, &answer);
    }
}

/// Clients of an HTTP server.
pub(crate) struct Load(Vec<Client<Http>>);

impl Load {
    pub(crate) fn new(server: &Server, clients: usize) -> Self {
        let era = |at| if at == 0 { Era::Older } else { Era::Modern };
        Self((0..clients).map(|at| server.client(era(at))).collect())
    }

    /// Reads so much, over all clients.
    pub(crate) fn run(&mut self, reads: usize, seed: u64) -> Counts {
        let each = reads / self.0.len().max(1);
        let mut counts = Counts::default();
        thread::scope(|scope| {
            let clients: Vec<_> = self
                .0
                .iter_mut()
                .enumerate()
                .map(|(at, client)| {
                    scope.spawn(move || {
                        let (mut dice, mut counts) = (Dice::new(seed * 100 + at as u64 + 1), Counts::default());
                        for _ in 0..each {
                            let case = dice.case();
                            let answer = client.read(&case.uri);
                            counts.judge(&case, &answer);
                        }
                        counts
                    })
                })
                .collect();
            for client in clients {
                counts.add(client.join().expect("a client failed"));
            }
        });
        counts
    }
}

/// Asks for what takes long, and goes away, so many times: at once, or a moment later.
pub(crate) fn disconnect(server: &Server, times: usize) {
    let wire = server.wire(Era::Modern);
    for number in 0..times {
        let message = request(1, cases::ENDLESS);
        let body = message.to_string();
        let mut head =
            format!("POST /mcp HTTP/1.1\r\nHost: {}\r\nContent-Length: {}\r\n", server.address(), body.len());
        for (name, value) in wire.headers(&message) {
            head += &format!("{name}: {value}\r\n");
        }
        let mut stream = TcpStream::connect(server.address()).expect("the server listens");
        stream.write_all(format!("{head}\r\n{body}").as_bytes()).expect("the server reads");
        thread::sleep(Duration::from_millis(number as u64 % 8));
    }
}

fn request(id: u64, uri: &str) -> Value {
    json!({ "jsonrpc": "2.0", "id": id, "method": "resources/read", "params": { "uri": uri, "_meta": meta() } })
}

fn meta() -> Value {
    json!({
        "io.modelcontextprotocol/protocolVersion": Era::Modern.version(),
        "io.modelcontextprotocol/clientInfo": { "name": "soak", "version": "0" },
        "io.modelcontextprotocol/clientCapabilities": {},
    })
}
