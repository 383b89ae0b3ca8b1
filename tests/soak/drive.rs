//! Generates the load: requests over a pipe, several in flight; requests over HTTP, from several clients; cancellations; and
//! disconnects.

use std::collections::BTreeMap;
use std::io::Write;
use std::net::TcpStream;
use std::thread;
use std::time::{Duration, Instant};

use belljar_tests::{Client, Ended, Era, Http, Process, RpcError, Server, Stdio, Wire};
use serde_json::{Value, json};

use crate::cases::{self, Case, Random};

/// Requests in flight over the pipe.
const WINDOW: usize = 8;

/// How long an answer may take before it counts as missing.
const PATIENCE: Duration = Duration::from_secs(60);

/// The outcome of a part of the load.
#[derive(Default)]
pub(crate) struct Counts {
    /// Answers that were checked.
    pub(crate) reads: usize,
    /// The checked answers that had to be errors.
    pub(crate) hostile: usize,
    /// The wrong answers, as messages.
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

    /// Sends `reads` reads and `cancels` endless calls, and cancels the latter.
    pub(crate) fn run(&mut self, reads: usize, cancels: usize, random: &mut Random, counts: &mut Counts) {
        let every = (reads / cancels.max(1)).max(1);
        let mut cancelled = 0;
        for number in 0..reads {
            while self.waiting.len() >= WINDOW {
                self.receive(counts);
            }
            self.ask(random.case());
            if number % every == 0 && cancelled < cancels {
                cancelled += 1;
                self.send_and_cancel();
            }
        }
        while !self.waiting.is_empty() {
            self.receive(counts);
        }
    }

    /// Sends as many reads at once as the mount may run. They succeed only if no cancelled call still runs.
    pub(crate) fn check_no_call_runs(&mut self, counts: &mut Counts) {
        (0..4).for_each(|_| self.ask(cases::free()));
        while !self.waiting.is_empty() {
            self.receive(counts);
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

    fn send_and_cancel(&mut self) {
        let id = self.send(cases::ENDLESS);
        let mut params = json!({ "requestId": id });
        params["_meta"] = meta();
        self.wire.send(&json!({ "jsonrpc": "2.0", "method": "notifications/cancelled", "params": params }));
    }

    /// Receives one answer and checks it. An answer to a cancelled call is wrong.
    fn receive(&mut self, counts: &mut Counts) {
        let Some(mut message) = self.wire.next(Instant::now() + PATIENCE) else {
            let ids: Vec<_> = self.waiting.values().map(|(case, _)| case.uri.as_str()).collect();
            panic!("no answer within {PATIENCE:?}; waiting for {ids:?}; {}", self.wire.diagnosis());
        };
        let Some((case, sent)) = message["id"].as_u64().and_then(|id| self.waiting.remove(&id)) else {
            return counts.wrong.push(format!("an answer without a waiting request: {message}"));
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
        let era = |at| if at == 0 { Era::Session } else { Era::Stateless };
        Self((0..clients).map(|at| server.client(era(at))).collect())
    }

    /// Sends `reads` reads, divided among all clients.
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
                        let (mut random, mut counts) = (Random::new(seed * 100 + at as u64 + 1), Counts::default());
                        for _ in 0..each {
                            let case = random.case();
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

/// Sends an endless read and disconnects, `times` times: each time after 0 to 7 ms.
pub(crate) fn disconnect(server: &Server, times: usize) {
    let wire = server.wire(Era::Stateless);
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
        "io.modelcontextprotocol/protocolVersion": Era::Stateless.version(),
        "io.modelcontextprotocol/clientInfo": { "name": "soak", "version": "0" },
        "io.modelcontextprotocol/clientCapabilities": {},
    })
}
