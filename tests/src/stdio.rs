//! The stdio transport of the test clients. Each line of the server must be one JSON-RPC message.

use std::fs::File;
use std::io::{BufRead, BufReader, Write};
use std::os::fd::OwnedFd;
use std::os::unix::net::UnixStream;
use std::process::{Command, Stdio as Pipe};
use std::sync::mpsc::{self, Receiver, RecvTimeoutError, Sender};
use std::thread;
use std::time::{Duration, Instant};

use serde_json::Value;

use crate::client::{Client, Era, Wire};
use crate::process::{self, Ended, Process};

/// A server process, and the pipes or sockets to its standard input and output.
#[derive(Debug)]
pub struct Stdio {
    /// The process that serves.
    pub process: Process,
    /// `None` after [`Stdio::end`].
    stdin: Option<File>,
    lines: Lines,
}

/// The checked lines of the server: messages and violations.
#[derive(Debug)]
struct Lines(Receiver<Result<Value, String>>);

/// Parses one line of a server's standard output, without its line feed. Fails for any text that is not a JSON-RPC
/// message.
pub fn check_line(line: &[u8]) -> Result<Value, String> {
    let shown = || String::from_utf8_lossy(line.get(..200).unwrap_or(line)).into_owned();
    let message: Value = serde_json::from_slice(line).map_err(|error| format!("not JSON ({error}): {:?}", shown()))?;
    let has = |key| message.get(key).is_some();
    if message["jsonrpc"] != "2.0" {
        return Err(format!("not JSON-RPC 2.0: {:?}", shown()));
    }
    match (has("method"), has("id"), has("result"), has("error")) {
        // An error for a message without a readable id has no id.
        (true, _, false, false) | (false, true, true, false) | (false, _, false, true) => Ok(message),
        _ => Err(format!("neither a request nor an answer: {:?}", shown())),
    }
}

impl Stdio {
    /// Starts `command` with pipes to its standard input and output.
    pub fn start(mut command: Command) -> Stdio {
        command.stdin(Pipe::piped()).stdout(Pipe::piped());
        let mut process = Process::start(command);
        let (stdin, stdout) = process.pipes();
        Stdio::of(process, stdin.into(), stdout.into())
    }

    /// The same with sockets instead of pipes, as clients made with Node do.
    pub fn start_on_sockets(mut command: Command) -> Stdio {
        let ends = || UnixStream::pair().map(|(own, other)| (OwnedFd::from(own), OwnedFd::from(other)));
        let ((stdin, input), (stdout, output)) = ends().and_then(|first| Ok((first, ends()?))).expect("sockets");
        command.stdin(input).stdout(output);
        Stdio::of(Process::start(command), stdin, stdout)
    }

    fn of(process: Process, stdin: OwnedFd, stdout: OwnedFd) -> Stdio {
        let (sender, lines) = mpsc::channel();
        thread::spawn(move || check_lines(File::from(stdout), &sender));
        Stdio { process, stdin: Some(File::from(stdin)), lines: Lines(lines) }
    }

    /// Sends any bytes. Use [`Stdio::next_message`] to get the answers.
    pub fn raw(&mut self, bytes: &[u8]) {
        let stdin = self.stdin.as_mut().expect("not closed yet");
        stdin
            .write_all(bytes)
            .and_then(|()| stdin.flush())
            .unwrap_or_else(|error| panic!("the server reads no more: {error}; {}", self.process.stderr()));
    }

    /// The next message. `None` if none comes within `patience`.
    pub fn next_message(&mut self, patience: Duration) -> Option<Value> {
        self.next(Instant::now() + patience)
    }

    /// Ends the stream to the server. [`Stdio::next_message`] still returns the remaining answers.
    pub fn end(&mut self) {
        self.stdin = None;
    }

    /// Ends the stream, and waits for the server to end. The server may still send messages, which are checked.
    pub fn close(mut self) -> Ended {
        self.end();
        let deadline = Instant::now() + process::END;
        while self.next(deadline).is_some() {}
        self.process.wait(process::END)
    }
}

impl Drop for Lines {
    /// Checks the remaining lines, so that a test does not miss a violation after its last read.
    fn drop(&mut self) {
        if !thread::panicking() {
            for line in self.0.try_iter() {
                line.unwrap_or_else(|violation| panic_about(&violation));
            }
        }
    }
}

impl Wire for Stdio {
    fn send(&mut self, message: &Value) {
        self.raw(format!("{message}\n").as_bytes());
    }

    fn next(&mut self, deadline: Instant) -> Option<Value> {
        let left = deadline.saturating_duration_since(Instant::now());
        match self.lines.0.recv_timeout(left) {
            Ok(Ok(message)) => Some(message),
            Ok(Err(violation)) => panic_about(&violation),
            Err(RecvTimeoutError::Timeout | RecvTimeoutError::Disconnected) => None,
        }
    }

    fn diagnosis(&self) -> String {
        format!("its stderr:\n{}", self.process.stderr())
    }
}

impl Client<Stdio> {
    /// Starts `command`, and initializes the connection.
    pub fn start(command: Command, era: Era) -> Client<Stdio> {
        Client::connect(Stdio::start(command), era)
    }

    /// Ends the stream, and waits for the server to end. See [`Stdio::close`].
    pub fn close(self) -> Ended {
        self.into_wire().close()
    }
}

fn panic_about(violation: &str) -> ! {
    panic!("stdout contains a line that is not a message: {violation}")
}

/// Checks each line and sends the result. Returns after the first violation, and at the end of the stream.
fn check_lines(stdout: File, sender: &Sender<Result<Value, String>>) {
    let mut stream = BufReader::new(stdout);
    loop {
        let mut line = Vec::new();
        let checked = match stream.read_until(b'\n', &mut line) {
            Ok(0) => return,
            Ok(_) if line.pop() != Some(b'\n') => Err("the stream ends within a line".to_owned()),
            Ok(_) => check_line(&line),
            Err(error) => Err(format!("unreadable: {error}")),
        };
        let is_violation = checked.is_err();
        if sender.send(checked).is_err() || is_violation {
            return;
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn valid_messages_are_accepted() {
        for line in [
            r#"{"jsonrpc":"2.0","id":1,"result":{}}"#,
            r#"{"jsonrpc":"2.0","id":null,"error":{"code":-32700,"message":"x"}}"#,
            r#"{"jsonrpc":"2.0","error":{"code":-32700,"message":"x"}}"#,
            r#"{"jsonrpc":"2.0","method":"notifications/message","params":{}}"#,
            r#"{"jsonrpc":"2.0","id":"a","method":"ping"}"#,
        ] {
            assert_eq!(check_line(line.as_bytes()).err(), None, "{line}");
        }
    }

    #[test]
    fn other_lines_are_refused() {
        for line in [
            &b""[..],
            b"hello",
            b"\xff",
            b"{}",
            b"[]",
            br#"{"jsonrpc":"1.0","id":1,"result":{}}"#,
            br#"{"jsonrpc":"2.0","result":{}}"#,
            br#"{"jsonrpc":"2.0","id":1}"#,
            br#"{"jsonrpc":"2.0","id":1,"result":{},"error":{}}"#,
            br#"{"jsonrpc":"2.0","id":1,"result":{}} {"#,
        ] {
            assert!(check_line(line).is_err(), "{:?}", String::from_utf8_lossy(line));
        }
    }
}
