//! An open stream of server-sent events: the notifications of a subscription over HTTP.

use std::io::{BufRead, BufReader, Write};
use std::net::{Shutdown, SocketAddr, TcpStream};
use std::sync::mpsc::{Receiver, RecvTimeoutError, channel};
use std::time::{Duration, Instant};

use serde_json::Value;

use crate::http::{Body, Response, connect, head, read_body, read_head};

/// An open stream. Dropping it closes the connection, as a client that goes away does.
#[derive(Debug)]
pub struct Events {
    stream: TcpStream,
    messages: Receiver<Value>,
    /// One value for each comment of the server, which keeps the stream alive.
    comments: Receiver<()>,
}

impl Events {
    /// Sends a request, and reads the stream of its answer on a new thread. Fails with an answer that is not a stream.
    pub(crate) fn open(
        address: SocketAddr,
        method: &str,
        headers: &[(&str, &str)],
        body: &[u8],
    ) -> Result<Events, Response> {
        let mut connection = connect(address);
        let head = head(address, method, "/mcp", headers, body.len(), "keep-alive");
        connection.get_mut().write_all(&[head.as_bytes(), body].concat()).expect("a server that reads");
        let response = read_head(&mut connection).expect("an answer");
        let is_stream = response.header("content-type").is_some_and(|kind| kind.starts_with("text/event-stream"));
        if !is_stream {
            let body = read_body(&mut connection, &response).expect("a whole body");
            return Err(Response { body, ..response });
        }
        let stream = connection.get_ref().try_clone().expect("one more descriptor");
        stream.set_read_timeout(None).expect("a socket");
        let (message_sender, messages) = channel();
        let (comment_sender, comments) = channel();
        std::thread::spawn(move || {
            let mut lines = BufReader::new(Body::new(connection, &response));
            let (mut data, mut line) = (String::new(), String::new());
            loop {
                line.clear();
                match lines.read_line(&mut line) {
                    Ok(0) | Err(_) => return,
                    Ok(_) => {}
                }
                let text = line.trim_end_matches(['\r', '\n']);
                if let Some(rest) = text.strip_prefix("data:") {
                    data.push_str(rest.strip_prefix(' ').unwrap_or(rest));
                } else if text.starts_with(':') {
                    let _ = comment_sender.send(());
                }
                if text.is_empty() && !data.is_empty() {
                    let message = serde_json::from_str(&data);
                    let message =
                        message.unwrap_or_else(|error| panic!("an event without valid JSON ({error}): {data:?}"));
                    if message_sender.send(message).is_err() {
                        return;
                    }
                    data.clear();
                }
            }
        });
        Ok(Events { stream, messages, comments })
    }

    /// The next message. `None` if none comes within `patience`.
    pub fn next(&self, patience: Duration) -> Option<Value> {
        self.messages.recv_timeout(patience).ok()
    }

    /// True if the server ends the stream within `patience`. Ignores the messages before the end.
    pub fn is_over(&self, patience: Duration) -> bool {
        let deadline = Instant::now() + patience;
        loop {
            match self.messages.recv_timeout(deadline.saturating_duration_since(Instant::now())) {
                Ok(_) => {}
                Err(error) => return error == RecvTimeoutError::Disconnected,
            }
        }
    }

    /// True if a comment of the server arrives within `patience`.
    pub fn is_kept_alive(&self, patience: Duration) -> bool {
        self.comments.recv_timeout(patience).is_ok()
    }
}

impl Drop for Events {
    fn drop(&mut self) {
        let _ = self.stream.shutdown(Shutdown::Both);
    }
}
