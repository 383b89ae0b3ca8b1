//! A client on stdio that several threads share: one thread runs an attack, and another one reads the witness. Each
//! thread waits for its own answers. The client checks every line of the server. It collects violations of the protocol
//! instead of panicking.

use std::collections::{HashMap, HashSet};
use std::io::{BufRead, BufReader, Write};
use std::process::{ChildStdin, ChildStdout, Command, Stdio as Pipe};
use std::sync::atomic::{AtomicU64, Ordering};
use std::sync::mpsc::{self, Receiver, Sender};
use std::sync::{Arc, Condvar, Mutex, MutexGuard, PoisonError};
use std::thread;
use std::time::{Duration, Instant};

use serde_json::{Value, json};

use crate::client::{Era, RpcError, outcome};
use crate::process::Process;
use crate::stdio::check_line;

/// How long after a cancellation an answer may still arrive. A later answer is a violation only if it arrives after the
/// answer to a request that was sent after the cancellation. Otherwise a busy machine could cause violations.
const CROSSING: Duration = Duration::from_millis(500);

/// A server process, and a client for several threads on its standard input and output.
#[derive(Debug)]
pub struct SharedStdio {
    /// The process that serves.
    pub process: Process,
    stdin: Mutex<Option<ChildStdin>>,
    last_id: AtomicU64,
    era: Era,
    shared: Arc<Shared>,
}

#[derive(Debug, Default)]
struct Shared {
    inbox: Mutex<Inbox>,
    arrived: Condvar,
}

#[derive(Debug, Default)]
struct Inbox {
    sent: HashMap<u64, Instant>,
    cancelled: HashMap<u64, Instant>,
    answered: HashSet<u64>,
    answers: HashMap<u64, (Value, Duration)>,
    /// The time at which the latest of the answered requests was sent.
    latest: Option<Instant>,
    /// Messages that answer no request of [`SharedStdio::send`].
    others: Vec<Value>,
    violations: Vec<String>,
    /// The texts that the output must not contain.
    secrets: Vec<Vec<u8>>,
    ended: bool,
}

/// An answer, and the time from its request to its arrival.
pub type Answered = (Result<Value, RpcError>, Duration);

impl SharedStdio {
    /// Starts `command`. An output that contains one of `secrets` is a violation.
    pub fn start(mut command: Command, era: Era, secrets: &[&str]) -> SharedStdio {
        command.stdin(Pipe::piped()).stdout(Pipe::piped());
        let mut process = Process::start(command);
        let (stdin, stdout) = process.pipes();
        let shared = Arc::new(Shared::default());
        shared.lock().secrets = secrets.iter().map(|secret| secret.as_bytes().to_vec()).collect();
        let checker = Arc::clone(&shared);
        let (arrived, lines) = mpsc::channel();
        // The check of a long line takes time. So another thread reads the lines and takes the times of their arrival.
        thread::spawn(move || receive(stdout, &arrived));
        thread::spawn(move || checker.check_all(&lines));
        SharedStdio { process, stdin: Mutex::new(Some(stdin)), last_id: AtomicU64::new(0), era, shared }
    }

    /// Initializes the connection, as the era demands.
    pub fn greet(&self, patience: Duration) -> Result<Value, String> {
        let (method, params) = self.era.greeting();
        let (greeting, _) =
            self.wait(self.send(method, params), patience).ok_or_else(|| "no answer to the greeting".to_owned())?;
        if self.era == Era::Session {
            self.notify("notifications/initialized", json!({}));
        }
        greeting.map_err(|error| error.to_string())
    }

    /// Sends a request, and returns its id for [`SharedStdio::wait`].
    pub fn send(&self, method: &str, params: Value) -> u64 {
        let id = self.last_id.fetch_add(1, Ordering::Relaxed) + 1;
        let message = self.era.message(id, method, params);
        self.shared.lock().sent.insert(id, Instant::now());
        self.raw(format!("{message}\n").as_bytes());
        id
    }

    /// Sends a notification.
    pub fn notify(&self, method: &str, mut params: Value) {
        self.era.add_meta(&mut params);
        self.raw(format!("{}\n", json!({ "jsonrpc": "2.0", "method": method, "params": params })).as_bytes());
    }

    /// Cancels a request. An answer that arrives long after is a violation.
    pub fn cancel(&self, id: u64) {
        self.notify("notifications/cancelled", json!({ "requestId": id, "reason": "test" }));
        self.shared.lock().cancelled.insert(id, Instant::now());
    }

    /// Sends any bytes, and ignores errors. If the server does not read, the test misses an answer later.
    pub fn raw(&self, bytes: &[u8]) {
        let mut stdin = self.stdin.lock().unwrap_or_else(PoisonError::into_inner);
        if let Some(stdin) = stdin.as_mut() {
            stdin.write_all(bytes).and_then(|()| stdin.flush()).ok();
        }
    }

    /// Ends the stream to the server.
    pub fn end(&self) {
        *self.stdin.lock().unwrap_or_else(PoisonError::into_inner) = None;
    }

    /// The answer to a request. `None` if no answer comes within `patience`, or before the stream ends.
    pub fn wait(&self, id: u64, patience: Duration) -> Option<Answered> {
        let (answer, took) = self.shared.until(patience, |inbox| inbox.answers.remove(&id))?;
        Some((outcome(answer), took))
    }

    /// The next message that answers no request of [`SharedStdio::send`].
    pub fn other(&self, patience: Duration) -> Option<Value> {
        self.shared.until(patience, |inbox| (!inbox.others.is_empty()).then(|| inbox.others.remove(0)))
    }

    /// The violations so far.
    pub fn violations(&self) -> Vec<String> {
        self.shared.lock().violations.clone()
    }

    /// True if the server has closed its standard output.
    pub fn has_ended(&self) -> bool {
        self.shared.lock().ended
    }
}

impl Shared {
    fn lock(&self) -> MutexGuard<'_, Inbox> {
        self.inbox.lock().unwrap_or_else(PoisonError::into_inner)
    }

    /// Waits until `pick` returns a value. `None` after `patience`, or at the end of the stream.
    fn until<T>(&self, patience: Duration, mut pick: impl FnMut(&mut Inbox) -> Option<T>) -> Option<T> {
        let deadline = Instant::now() + patience;
        let mut inbox = self.lock();
        loop {
            if let Some(found) = pick(&mut inbox) {
                return Some(found);
            }
            let left = deadline.saturating_duration_since(Instant::now());
            if inbox.ended || left.is_zero() {
                return None;
            }
            inbox = self.arrived.wait_timeout(inbox, left).unwrap_or_else(PoisonError::into_inner).0;
        }
    }

    /// Checks each line that arrives, until the stream ends.
    fn check_all(&self, lines: &Receiver<(Vec<u8>, Instant)>) {
        for (mut line, arrived) in lines {
            if line.pop() == Some(b'\n') {
                let checked = check_line(&line);
                self.lock().take(&line, checked, arrived);
            } else {
                self.lock().violations.push("the stream ends within a line".to_owned());
            }
            self.arrived.notify_all();
        }
        self.lock().ended = true;
        self.arrived.notify_all();
    }
}

/// Passes on each line with the time of its arrival. Returns at the end of the stream.
fn receive(stdout: ChildStdout, lines: &Sender<(Vec<u8>, Instant)>) {
    let mut stream = BufReader::with_capacity(64 << 10, stdout);
    loop {
        let mut line = Vec::new();
        let is_read = stream.read_until(b'\n', &mut line).is_ok_and(|bytes| bytes > 0);
        if !is_read || lines.send((line, Instant::now())).is_err() {
            return;
        }
    }
}

impl Inbox {
    /// Checks a line, and stores it as an answer, another message or a violation. `checked` is the result of
    /// [`check_line`].
    fn take(&mut self, line: &[u8], checked: Result<Value, String>, arrived: Instant) {
        if let Some(secret) = self.secrets.iter().find(|secret| line.windows(secret.len()).any(|part| part == **secret))
        {
            self.violations.push(format!("a secret on stdout: {:?}", String::from_utf8_lossy(secret)));
        }
        let message = match checked {
            Ok(message) => message,
            Err(why) => return self.violations.push(format!("stdout has a line that is not a message: {why}")),
        };
        let id = message.get("id").and_then(Value::as_u64).filter(|_| message.get("method").is_none());
        let Some((id, sent)) = id.and_then(|id| Some((id, *self.sent.get(&id)?))) else {
            return self.others.push(message);
        };
        if !self.answered.insert(id) {
            return self.violations.push(format!("a second answer to id {id}"));
        }
        let is_late = |at: &Instant| {
            arrived.saturating_duration_since(*at) > CROSSING && self.latest.is_some_and(|latest| latest > *at)
        };
        if self.cancelled.get(&id).is_some_and(is_late) {
            self.violations.push(format!("an answer to id {id}, which was cancelled before"));
        }
        self.latest = self.latest.max(Some(sent));
        self.answers.insert(id, (message, arrived.saturating_duration_since(sent)));
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn each_violation_is_collected() {
        let mut inbox = Inbox { secrets: vec![b"canary".to_vec()], ..Inbox::default() };
        inbox.sent.insert(1, Instant::now());
        let mut take = |line: &str| {
            let before = inbox.violations.len();
            inbox.take(line.as_bytes(), check_line(line.as_bytes()), Instant::now());
            inbox.violations.len() - before
        };
        assert_eq!(take(r#"{"jsonrpc":"2.0","id":1,"result":{}}"#), 0);
        assert_eq!(take(r#"{"jsonrpc":"2.0","id":1,"result":{}}"#), 1, "a second answer");
        assert_eq!(take("guest says hello"), 1);
        assert_eq!(take(r#"{"jsonrpc":"2.0","method":"notifications/x","params":"a canary"}"#), 1);
        assert_eq!(take(r#"{"jsonrpc":"2.0","id":7,"result":{}}"#), 0, "kept as another message");
        assert_eq!(inbox.others.len(), 2);
    }

    #[test]
    fn an_answer_long_after_its_cancellation_is_found() {
        let mut inbox = Inbox::default();
        let line = br#"{"jsonrpc":"2.0","id":1,"result":{}}"#;
        let long_ago = Instant::now().checked_sub(CROSSING * 2).expect("the machine runs for longer");
        inbox.sent.insert(1, long_ago);
        inbox.cancelled.insert(1, long_ago);
        inbox.latest = Some(Instant::now());
        inbox.take(line, check_line(line), Instant::now());
        assert_eq!(inbox.violations.len(), 1);
    }
}
