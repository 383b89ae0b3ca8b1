//! MCP over standard input and output: one JSON message a line.
//!
//! rmcp's own line transport ignores a line that is too long or is not JSON, and the client waits for ever; this one
//! answers. Nothing but messages is ever written to standard output.

mod pending;
mod short;

use std::sync::{Arc, OnceLock};

use rmcp::RoleServer;
use rmcp::model::{
    ClientNotification, ClientRequest, ErrorCode, ErrorData, JsonRpcError, JsonRpcNotification, RequestId,
};
use rmcp::service::{Peer, RxJsonRpcMessage, TxJsonRpcMessage};
use rmcp::transport::Transport;
use tokio::io::{AsyncBufReadExt, AsyncRead, AsyncWrite, AsyncWriteExt, BufReader};
use tokio::sync::{Mutex, Notify};
use tokio::task::JoinHandle;

use self::pending::{Begun, Kind, MAX_PENDING, Pending, Turned};
use self::short::Short;
use super::message::Refused;
use super::{DRAIN, LAST_ANSWERS, MAX_MESSAGE, message};
use crate::admission::effort::Effort;
use crate::mcp::exchange::Exchange;
use crate::mcp::outbox::Outbox;
use crate::mcp::plain::Plain;
use crate::mcp::subscriptions::Door;
use crate::mcp::{Handler, fault};
use crate::model::Guard;

/// Serves until standard input ends or `stop` does. Requests under way may finish for [`DRAIN`]; then they are stopped. Each is
/// answered.
///
/// # Errors
/// When the first message is not one that opens a connection, or the streams fail.
pub async fn serve(handler: Handler, stop: impl Future<Output = ()>) -> Result<(), String> {
    let (input, output) = rmcp::transport::io::stdio_pipes();
    let lines = Lines::new(input, output, Arc::clone(handler.outbox()));
    let (pending, ended) = (Arc::clone(&lines.pending), Arc::clone(&lines.ended));
    let peer = Arc::new(OnceLock::new());
    let lines = Short::new(lines, handler.clone(), Arc::clone(&peer));
    let served = async {
        let service = match rmcp::serve_server(Door::new(handler.clone()), lines).await {
            Ok(service) => service,
            // The client went away before it said anything.
            Err(rmcp::service::ServerInitializeError::ConnectionClosed(_)) => return Ok(()),
            Err(error) => return Err(format!("the connection could not be opened: {error}")),
        };
        let _ = peer.set(service.peer().clone());
        service.waiting().await.map(|_| ()).map_err(|error| format!("the connection failed: {error}"))
    };
    let farewell = async {
        let drain = tokio::select! {
            () = stop => {
                handler.close();
                DRAIN
            }
            // What was read before is begun: a script may still take the answers.
            () = ended.notified() => {
                handler.end_subscriptions();
                FAREWELL
            }
        };
        if tokio::time::timeout(drain, pending.answered()).await.is_err() {
            handler.stop();
            let _ = tokio::time::timeout(LAST_ANSWERS, pending.answered()).await;
        }
    };
    tokio::select! {
        served = served => served,
        () = farewell => Ok(()),
    }
}

/// Lines of JSON over a pair of streams.
pub struct Lines<R, W> {
    input: BufReader<R>,
    line: Vec<u8>,
    /// The rest of the line that is being read is thrown away: it was too long.
    discarding: bool,
    /// A reply of our own that is being written, by a task that an interrupted read does not interrupt.
    reply: Option<JoinHandle<std::io::Result<()>>>,
    output: Arc<Mutex<W>>,
    outbox: Arc<Outbox>,
    pending: Arc<Pending>,
    /// Told when the input has ended.
    ended: Arc<Notify>,
}

/// How long requests under way may go on after the client closed its end: a script may still take the answers, most clients
/// are gone.
const FAREWELL: std::time::Duration = std::time::Duration::from_millis(1200);

/// What came in.
enum Line {
    Whole,
    TooLong,
    End,
}

/// What is to be done next.
enum Came {
    /// Something for rmcp.
    Message(Box<RxJsonRpcMessage<RoleServer>>),
    /// A request that goes the short way.
    Plain(Plain, Begun),
    /// Nothing any more.
    End,
}

impl<R: AsyncRead + Unpin, W: AsyncWrite + Unpin> Lines<R, W> {
    /// Messages are read from `input`; answers, our own among them, are written to `output`, and
    /// counted in `outbox` until they are taken.
    pub fn new(input: R, output: W, outbox: Arc<Outbox>) -> Self {
        Self {
            input: BufReader::with_capacity(16 << 10, input),
            line: Vec::new(),
            discarding: false,
            reply: None,
            output: Arc::new(Mutex::new(output)),
            outbox,
            pending: Arc::default(),
            ended: Arc::default(),
        }
    }

    /// Reads up to a line break. May be dropped at any await and called again: what was read is kept.
    async fn read_line(&mut self) -> std::io::Result<Line> {
        loop {
            let available = self.input.fill_buf().await?;
            if available.is_empty() {
                return Ok(Line::End);
            }
            let end = available.iter().position(|byte| *byte == b'\n');
            let part = available.get(..end.unwrap_or(available.len())).unwrap_or_default();
            let fits = !self.discarding && (self.line.len() + part.len() <= MAX_MESSAGE || !Guard::Message.is_on());
            if fits {
                self.line.extend_from_slice(part);
            }
            let consumed = end.map_or(available.len(), |end| end + 1);
            self.input.consume(consumed);
            if !fits && !self.discarding {
                self.discarding = true;
                self.line = Vec::new();
            }
            if end.is_some() {
                return Ok(if std::mem::take(&mut self.discarding) { Line::TooLong } else { Line::Whole });
            }
        }
    }

    /// Counts a request, and stops counting one that is withdrawn.
    ///
    /// # Errors
    /// What a request is answered that is not begun, and with which id.
    fn begin(&self, message: &RxJsonRpcMessage<RoleServer>) -> Result<(), (Option<RequestId>, ErrorData)> {
        match message {
            RxJsonRpcMessage::<RoleServer>::Request(request) => {
                self.begin_request(&request.id, Kind::of(&request.request)).map(|_| ())
            }
            RxJsonRpcMessage::<RoleServer>::Notification(JsonRpcNotification {
                notification: ClientNotification::CancelledNotification(withdrawn),
                ..
            }) => {
                // What is rmcp's is withdrawn by rmcp.
                withdrawn.params.request_id.iter().for_each(|id| self.pending.withdraw(id));
                Ok(())
            }
            _ => Ok(()),
        }
    }

    /// Puts what the answer is charged to beside a request that is rmcp's.
    fn mark(&self, message: &mut RxJsonRpcMessage<RoleServer>) {
        if let RxJsonRpcMessage::<RoleServer>::Request(request) = message
            && let ClientRequest::ReadResourceRequest(read) = &mut request.request
        {
            let exchange = Exchange::default();
            read.extensions.insert(exchange.clone());
            self.pending.exchanges().insert(request.id.clone(), exchange);
        }
    }

    /// Counts a request.
    ///
    /// # Errors
    /// As [`Lines::begin`].
    fn begin_request(&self, id: &RequestId, kind: Kind) -> Result<Begun, (Option<RequestId>, ErrorData)> {
        self.pending.add(id, kind).map_err(|turned| match turned {
            Turned::TooMany => {
                let why = format!("{MAX_PENDING} requests are pending already");
                (Some(id.clone()), fault::busy(&why))
            }
            // Not with that id: it would be taken for the answer to the first one.
            Turned::Taken => (None, ErrorData::new(ErrorCode::INVALID_REQUEST, message::is_taken(id), None)),
        })
    }

    /// Answers in rmcp's place.
    fn answer(&mut self, id: Option<RequestId>, error: ErrorData)
    where
        W: Send + 'static,
    {
        let mut line = serde_json::to_vec(&JsonRpcError::new(id, error)).unwrap_or_default();
        line.push(b'\n');
        self.reply(line);
    }

    /// Starts to write a line of our own. The next message is read when it is written, so that they cannot pile up.
    fn reply(&mut self, line: Vec<u8>)
    where
        W: Send + 'static,
    {
        let output = Arc::clone(&self.output);
        self.reply = Some(tokio::spawn(async move { write_line(&output, &line).await }));
    }

    /// Waits for the reply that is being written.
    async fn replied(&mut self) -> std::io::Result<()> {
        if let Some(reply) = &mut self.reply {
            let written = reply.await.map_err(std::io::Error::other)?;
            self.reply = None;
            written?;
        }
        Ok(())
    }
    /// What is to be done next. With a `peer`, plain requests go the short way. May be dropped at any await and called again.
    async fn next(&mut self, peer: Option<&Peer<RoleServer>>) -> Came
    where
        W: Send + 'static,
    {
        loop {
            self.outbox.room().await;
            if let Err(error) = self.replied().await {
                tracing::debug!("standard output: {error}");
                return Came::End;
            }
            let refused = match self.read_line().await {
                Ok(Line::Whole) => {
                    let plain = peer.and_then(|peer| {
                        Plain::read(&self.line).filter(|plain| plain.is_whole() || plain.is_of_session(peer))
                    });
                    let begun = match plain {
                        Some(plain) => {
                            self.line.clear();
                            self.begin_request(plain.id(), Kind::Plain).map(|begun| Came::Plain(plain, begun))
                        }
                        None => {
                            let parsed = parse(&self.line);
                            self.line.clear();
                            match parsed {
                                Ok(Some(mut message)) => self.begin(&message).map(|()| {
                                    self.mark(&mut message);
                                    Came::Message(Box::new(message))
                                }),
                                Ok(None) => continue,
                                Err((code, why, id)) => Err((id, ErrorData::new(code, why, None))),
                            }
                        }
                    };
                    match begun {
                        Ok(came) => return came,
                        Err(refused) => refused,
                    }
                }
                Ok(Line::TooLong) => {
                    let why = format!("a message has at most {MAX_MESSAGE} bytes");
                    (None, ErrorData::new(ErrorCode::INVALID_REQUEST, why, None))
                }
                Ok(Line::End) => {
                    self.ended.notify_one();
                    return Came::End;
                }
                Err(error) => {
                    tracing::debug!("standard input: {error}");
                    self.ended.notify_one();
                    return Came::End;
                }
            };
            let (id, error) = refused;
            self.answer(id, error);
        }
    }
}

/// Writes a line whole: the lock is held until its end.
async fn write_line<W: AsyncWrite + Unpin>(output: &Mutex<W>, line: &[u8]) -> std::io::Result<()> {
    let mut output = output.lock().await;
    output.write_all(line).await?;
    output.flush().await
}

/// Writes an answer, which is counted until it is taken.
async fn say<W: AsyncWrite + Unpin>(output: &Mutex<W>, outbox: &Outbox, mut line: Vec<u8>) -> std::io::Result<()> {
    line.push(b'\n');
    outbox.put(line.len());
    let written = write_line(output, &line).await;
    outbox.take(line.len());
    written
}

/// Reads one line as a message, or says how to answer it; `None`: nothing to do.
fn parse(line: &[u8]) -> Result<Option<RxJsonRpcMessage<RoleServer>>, Refused> {
    // RFC 8259 8.1: a byte order mark may be ignored.
    let line = line.strip_prefix(b"\xEF\xBB\xBF").unwrap_or(line);
    if line.iter().all(u8::is_ascii_whitespace) {
        return Ok(None);
    }
    let error = match serde_json::from_slice(line) {
        Ok(message) => return message::check_cursor(line).map(|()| Some(message)),
        Err(error) => error,
    };
    message::explain(line, &error).map_or(Ok(None), Err)
}

impl<R, W> Transport<RoleServer> for Lines<R, W>
where
    R: AsyncRead + Send + Unpin + 'static,
    W: AsyncWrite + Send + Unpin + 'static,
{
    type Error = std::io::Error;

    fn send(
        &mut self,
        message: TxJsonRpcMessage<RoleServer>,
    ) -> impl Future<Output = Result<(), Self::Error>> + Send + 'static {
        let output = Arc::clone(&self.output);
        let (pending, outbox) = (Arc::clone(&self.pending), Arc::clone(&self.outbox));
        async move {
            let answered = match &message {
                TxJsonRpcMessage::<RoleServer>::Response(response) => Some(response.id.clone()),
                TxJsonRpcMessage::<RoleServer>::Error(error) => error.id.clone(),
                _ => None,
            };
            let exchange = answered.as_ref().and_then(|id| pending.exchanges().remove(id));
            let effort = Effort::begin(usize::MAX);
            let line = serde_json::to_vec(&message)?;
            if let Some(mut bill) = exchange.and_then(|exchange| exchange.bill()) {
                bill.add(effort.cost());
            }
            drop(message);
            let written = say(&output, &outbox, line).await;
            if let Some(id) = answered {
                pending.remove(&id);
            }
            written
        }
    }

    async fn receive(&mut self) -> Option<RxJsonRpcMessage<RoleServer>> {
        match self.next(None).await {
            Came::Message(message) => Some(*message),
            // Without a peer, none does.
            Came::Plain(..) | Came::End => None,
        }
    }

    async fn close(&mut self) -> Result<(), Self::Error> {
        self.output.lock().await.shutdown().await
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    async fn answers(input: &[u8]) -> Vec<serde_json::Value> {
        let mut lines = Lines::new(std::io::Cursor::new(input.to_vec()), Vec::new(), Arc::default());
        while lines.receive().await.is_some() {}
        lines.replied().await.unwrap();
        let output = lines.output.lock().await;
        output.split(|b| *b == b'\n').filter(|l| !l.is_empty()).map(|l| serde_json::from_slice(l).unwrap()).collect()
    }

    #[tokio::test]
    async fn malformed_lines_are_answered_and_the_next_is_read() {
        let ping = br#"{"jsonrpc":"2.0","id":7,"method":"ping"}"#;
        let too_long = [b"{\"x\":\"".as_slice(), &vec![b'a'; 3 << 20], b"\"}"].concat();
        for (bad, code) in [
            (b"nonsense".as_slice(), -32700),
            (b"{\"a\":", -32700),
            (b"\xff\xfe", -32700),
            (&b"[".repeat(100_000), -32700),
            (b"[]", -32600),
            (b"[{\"jsonrpc\":\"2.0\",\"id\":1,\"method\":\"ping\"}]", -32600),
            (b"{\"id\":1,\"method\":\"ping\"}", -32600),
            (b"{\"jsonrpc\":\"2.0\",\"id\":1.5,\"method\":\"ping\"}", -32600),
            (b"42", -32600),
            (b"{\"jsonrpc\":\"2.0\",\"id\":1,\"method\":\"resources/list\",\"params\":{\"cursor\":5}}", -32602),
            (&too_long, -32600),
        ] {
            let input = [bad, b"\n", ping, b"\n"].concat();
            let mut lines = Lines::new(std::io::Cursor::new(input), Vec::new(), Arc::default());
            let shown = String::from_utf8_lossy(&bad[..bad.len().min(60)]).into_owned();
            assert!(lines.receive().await.is_some(), "{shown}");
            assert!(lines.receive().await.is_none(), "{shown}");
            let output = lines.output.lock().await;
            let answer: serde_json::Value =
                serde_json::from_slice(output.split(|b| *b == b'\n').next().unwrap()).unwrap();
            assert_eq!(answer["error"]["code"], code, "{shown}: {answer}");
        }
    }

    #[tokio::test]
    async fn blank_lines_marks_and_notifications_have_no_answer() {
        let answers = answers(b"\n  \r\n\xEF\xBB\xBF{\"jsonrpc\":\"2.0\",\"id\":1,\"method\":\"ping\"}\n{\"jsonrpc\":\"2.0\",\"method\":\"notifications/x\",\"params\":3}\n").await;
        assert_eq!(answers, Vec::<serde_json::Value>::new());
    }

    #[tokio::test]
    async fn the_request_is_named_where_it_can_be() {
        let answers = answers(b"{\"jsonrpc\":\"1.0\",\"id\":\"q\",\"method\":\"ping\"}\n").await;
        assert_eq!(answers[0]["id"], "q");
    }

    #[tokio::test]
    async fn beyond_what_may_be_pending_requests_are_refused_and_notifications_read() {
        let request = |id: usize| format!("{{\"jsonrpc\":\"2.0\",\"id\":{id},\"method\":\"resources/list\"}}\n");
        let withdraw = |id: usize| {
            format!(
                "{{\"jsonrpc\":\"2.0\",\"method\":\"notifications/cancelled\",\"params\":{{\"requestId\":{id}}}}}\n"
            )
        };
        let input: String = (0..MAX_PENDING + 2).map(request).collect();
        let input = format!("{input}{}{}{}", withdraw(7), request(1000), request(1001));
        let mut lines = Lines::new(std::io::Cursor::new(input), Vec::new(), Arc::default());
        // All that may be pending, the withdrawal, and the one request for which it made room.
        for _ in 0..MAX_PENDING + 2 {
            assert!(lines.receive().await.is_some());
        }
        assert!(lines.receive().await.is_none());
        let output = lines.output.lock().await;
        let refused: Vec<serde_json::Value> = output
            .split(|b| *b == b'\n')
            .filter(|l| !l.is_empty())
            .map(|l| serde_json::from_slice(l).unwrap())
            .collect();
        let ids: Vec<_> = refused.iter().map(|answer| answer["id"].as_u64().unwrap()).collect();
        assert_eq!(ids, [MAX_PENDING as u64, MAX_PENDING as u64 + 1, 1001]);
        assert!(refused.iter().all(|answer| answer["error"]["data"]["kind"] == "busy"));
    }

    #[tokio::test]
    async fn an_id_that_is_in_flight_is_not_taken_again() {
        let request = "{\"jsonrpc\":\"2.0\",\"id\":5,\"method\":\"ping\"}\n";
        let answers = answers(request.repeat(2).as_bytes()).await;
        assert_eq!(answers.len(), 1);
        assert!(answers[0]["id"].is_null() && answers[0]["error"]["code"] == -32600, "{answers:?}");
    }

    #[tokio::test]
    async fn a_client_that_does_not_listen_is_not_heard() {
        let input = "{\"jsonrpc\":\"2.0\",\"id\":1,\"method\":\"ping\"}\n";
        let mut lines = Lines::new(std::io::Cursor::new(input), Vec::new(), Arc::default());
        lines.outbox.put(1 << 30);
        let wait = std::time::Duration::from_millis(50);
        assert!(tokio::time::timeout(wait, lines.receive()).await.is_err(), "it read on");
        lines.outbox.take(1 << 30);
        assert!(lines.receive().await.is_some());
    }
}
