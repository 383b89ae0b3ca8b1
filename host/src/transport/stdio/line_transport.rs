//! Reads and writes lines of JSON. Caps and checks each line, and counts requests. Answers a line that it refuses.

use std::sync::Arc;

use rmcp::RoleServer;
use rmcp::model::{
    ClientNotification, ClientRequest, ErrorCode, ErrorData, GetExtensions, JsonRpcNotification, RequestId,
};
use rmcp::service::{Peer, RxJsonRpcMessage, TxJsonRpcMessage};
use rmcp::transport::Transport;
use tokio::io::{AsyncBufReadExt, AsyncRead, AsyncWrite, BufReader};
use tokio::sync::Notify;
use tokio::task::JoinHandle;

use super::line_output::LineOutput;
use super::pending::{AddError, Pending, RequestClass, RequestHandle};
use crate::limits::cpu_timer::CpuTimer;
use crate::mcp::direct::{DirectRequest, MessageSource};
use crate::mcp::outbox::Outbox;
use crate::mcp::request_meta::MetaCache;
use crate::mcp::{encode, fault};
use crate::model::bounds::{MAX_MESSAGE, MAX_PENDING};
use crate::transport::message;

/// Called with the error that answers a refused message.
pub(super) type OnRefused = Arc<dyn Fn(&ErrorData) + Send + Sync>;

/// A line transport for rmcp over a pair of streams.
pub struct LineTransport<R, W> {
    input: BufReader<R>,
    line: Vec<u8>,
    /// True if the line is too long and its rest is discarded.
    discarding: bool,
    /// The task that writes an error of this transport. A task of its own, because [`LineTransport::next`] can be
    /// dropped.
    reply: Option<JoinHandle<std::io::Result<()>>>,
    pub(super) output: Arc<LineOutput<W>>,
    pub(super) outbox: Arc<Outbox>,
    pub(super) pending: Arc<Pending>,
    /// Notified when the input has ended.
    pub(super) ended: Arc<Notify>,
    meta_cache: MetaCache,
    on_refused: OnRefused,
}

/// The outcome of reading a line.
enum LineRead {
    Whole,
    TooLong,
    End,
}

/// The answer to a refused message: the id of its request, if it may be named, and the error.
type RefusedMessage = (Option<RequestId>, ErrorData);

/// The next input of a connection.
pub(super) enum NextInput {
    /// A message for rmcp.
    Message(Box<RxJsonRpcMessage<RoleServer>>),
    /// A request for the fast path.
    Direct(DirectRequest, RequestHandle),
    /// The end of the input.
    End,
}

impl<R: AsyncRead + Unpin, W: AsyncWrite + Unpin> LineTransport<R, W> {
    /// Reads messages from `input` and writes answers to `output`. Counts each answer in `outbox`
    /// while it is written. Calls `on_refused` for each message that it refuses.
    pub fn new(input: R, output: W, outbox: Arc<Outbox>, on_refused: OnRefused) -> Self {
        Self {
            input: BufReader::with_capacity(16 << 10, input),
            line: Vec::new(),
            discarding: false,
            reply: None,
            output: Arc::new(LineOutput::new(output)),
            outbox,
            pending: Arc::default(),
            ended: Arc::default(),
            meta_cache: MetaCache::default(),
            on_refused,
        }
    }

    /// Reads up to a line break. Cancel-safe: bytes that were read stay in `self.line`.
    async fn read_line(&mut self) -> std::io::Result<LineRead> {
        loop {
            let available = self.input.fill_buf().await?;
            if available.is_empty() {
                return Ok(LineRead::End);
            }
            let end = available.iter().position(|byte| *byte == b'\n');
            let part = available.get(..end.unwrap_or(available.len())).unwrap_or_default();
            let fits = !self.discarding && (self.line.len() + part.len() <= MAX_MESSAGE.get());
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
                return Ok(if std::mem::take(&mut self.discarding) { LineRead::TooLong } else { LineRead::Whole });
            }
        }
    }

    /// Adds a request for rmcp to the pending ones, or removes the one that a notification cancels.
    ///
    /// # Errors
    /// The answer to a refused request, and its id.
    fn track(&self, message: &mut RxJsonRpcMessage<RoleServer>, bytes: usize) -> Result<(), Box<RefusedMessage>> {
        match message {
            RxJsonRpcMessage::<RoleServer>::Request(request) => {
                let handle = self.track_request((&request.id, &request.request), bytes)?;
                request.request.extensions_mut().insert(handle.exchange);
            }
            RxJsonRpcMessage::<RoleServer>::Notification(JsonRpcNotification {
                notification: ClientNotification::CancelledNotification(cancelled),
                ..
            }) => {
                // rmcp also sees the notification, and cancels its own requests.
                cancelled.params.request_id.iter().for_each(|id| self.pending.cancel(id));
            }
            _ => {}
        }
        Ok(())
    }

    /// Adds a request to the pending ones. `bytes`: the size of its message.
    ///
    /// # Errors
    /// As [`LineTransport::track`].
    fn track_request(
        &self,
        (id, request): (&RequestId, &ClientRequest),
        bytes: usize,
    ) -> Result<RequestHandle, Box<RefusedMessage>> {
        let refused = self.pending.add(id, RequestClass::of(request), bytes).map_err(|error| match error {
            AddError::TooMany => {
                let why = format!("{} requests are pending already", MAX_PENDING.get());
                (Some(id.clone()), fault::busy(&why))
            }
            // Without the id: the client would take it for the answer to the first request.
            AddError::IdInFlight(error) => (None, ErrorData::new(ErrorCode::INVALID_REQUEST, error.to_string(), None)),
        });
        refused.map_err(Box::new)
    }

    /// Answers a message with an error of this transport.
    fn answer(&mut self, id: Option<RequestId>, error: ErrorData)
    where
        W: Send + 'static,
    {
        (self.on_refused)(&error);
        let mut line = encode::refusal(id, error);
        line.push(b'\n');
        self.reply(line);
    }

    /// Starts a task that writes `line`. The next message is read when the task is done, so that errors cannot pile up.
    fn reply(&mut self, line: Vec<u8>)
    where
        W: Send + 'static,
    {
        let output = Arc::clone(&self.output);
        self.reply = Some(tokio::spawn(async move { output.write(line).await }));
    }

    /// Waits for the task that writes an error.
    async fn wait_for_reply(&mut self) -> std::io::Result<()> {
        if let Some(reply) = &mut self.reply {
            let written = reply.await.map_err(std::io::Error::other)?;
            self.reply = None;
            written?;
        }
        Ok(())
    }

    /// True if no byte was read beyond the last line.
    pub(super) fn is_buffer_empty(&self) -> bool {
        self.input.buffer().is_empty()
    }

    /// The next input. With `peer`, which is the client, a request of the fast path is given as [`NextInput::Direct`].
    /// Cancel-safe.
    pub(super) async fn next(&mut self, peer: Option<&Peer<RoleServer>>) -> NextInput
    where
        W: Send + 'static,
    {
        loop {
            self.outbox.wait_for_room().await;
            if let Err(error) = self.wait_for_reply().await {
                tracing::debug!("standard output: {error}");
                return NextInput::End;
            }
            let refused = match self.read_line().await {
                Ok(LineRead::Whole) => {
                    let source = |peer| MessageSource { cache: &self.meta_cache, session: Some(peer), is_stream: true };
                    let request = peer.and_then(|peer| DirectRequest::parse(&self.line, source(peer)));
                    let line = std::mem::take(&mut self.line);
                    let next = match request {
                        Some(request) => self
                            .track_request((request.id(), request.request()), line.len())
                            .map(|handle| NextInput::Direct(request, handle)),
                        None => match parse(&line) {
                            Ok(Some(mut message)) => {
                                self.track(&mut message, line.len()).map(|()| NextInput::Message(Box::new(message)))
                            }
                            Ok(None) => continue,
                            Err((code, why, id)) => Err(Box::new((id, ErrorData::new(code, why, None)))),
                        },
                    };
                    match next {
                        Ok(next) => return next,
                        Err(refused) => refused,
                    }
                }
                Ok(LineRead::TooLong) => {
                    let why = format!("the message is too long; at most {} bytes are allowed", MAX_MESSAGE.get());
                    Box::new((None, ErrorData::new(ErrorCode::INVALID_REQUEST, why, None)))
                }
                Ok(LineRead::End) => {
                    self.ended.notify_one();
                    return NextInput::End;
                }
                Err(error) => {
                    tracing::debug!("standard input: {error}");
                    self.ended.notify_one();
                    return NextInput::End;
                }
            };
            let (id, error) = *refused;
            self.answer(id, error);
        }
    }
}

/// Writes an answer, and counts it in `outbox` meanwhile. `is_alone`: no other answer is made at the same time.
pub(super) async fn write_answer<W: AsyncWrite + Unpin>(
    output: &LineOutput<W>,
    outbox: &Outbox,
    mut line: Vec<u8>,
    is_alone: bool,
) -> std::io::Result<()> {
    line.push(b'\n');
    let bytes = line.len();
    outbox.put(bytes);
    let written = if is_alone { output.write(line).await } else { output.write_with_others(line).await };
    outbox.take(bytes);
    written
}

/// Parses a line. `None` for a line that has no answer: a blank one, or a malformed notification.
fn parse(line: &[u8]) -> Result<Option<RxJsonRpcMessage<RoleServer>>, message::RefusedMessage> {
    // RFC 8259, section 8.1: a parser may ignore a byte order mark.
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

impl<R, W> Transport<RoleServer> for LineTransport<R, W>
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
            let exchange = answered.as_ref().and_then(|id| pending.exchange(id));
            let effort = CpuTimer::start(usize::MAX);
            let line = serde_json::to_vec(&message)?;
            if let Some(mut cost) = exchange.and_then(|exchange| exchange.take_cost()) {
                cost.add(effort.elapsed());
            }
            drop(message);
            let _writing = answered.map(|id| pending.begin_writing(&id));
            write_answer(&output, &outbox, line, true).await
        }
    }

    async fn receive(&mut self) -> Option<RxJsonRpcMessage<RoleServer>> {
        match self.next(None).await {
            NextInput::Message(message) => Some(*message),
            // Without a peer, there is no fast path.
            NextInput::Direct(..) | NextInput::End => None,
        }
    }

    async fn close(&mut self) -> Result<(), Self::Error> {
        self.output.shutdown().await
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn lines<R: AsyncRead + Unpin>(input: R) -> LineTransport<R, Vec<u8>> {
        LineTransport::new(input, Vec::new(), Arc::default(), Arc::new(|_| ()))
    }

    async fn answers(input: &[u8]) -> Vec<serde_json::Value> {
        let mut lines = self::lines(std::io::Cursor::new(input.to_vec()));
        while lines.receive().await.is_some() {}
        lines.wait_for_reply().await.unwrap();
        let output = lines.output.stream().await;
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
            let mut lines = self::lines(std::io::Cursor::new(input));
            let shown = String::from_utf8_lossy(&bad[..bad.len().min(60)]).into_owned();
            assert!(lines.receive().await.is_some(), "{shown}");
            assert!(lines.receive().await.is_none(), "{shown}");
            let output = lines.output.stream().await;
            let answer: serde_json::Value =
                serde_json::from_slice(output.split(|b| *b == b'\n').next().unwrap()).unwrap();
            assert_eq!(answer["error"]["code"], code, "{shown}: {answer}");
        }
    }

    #[tokio::test]
    async fn blank_lines_byte_order_marks_and_notifications_have_no_answer() {
        let answers = answers(b"\n  \r\n\xEF\xBB\xBF{\"jsonrpc\":\"2.0\",\"id\":1,\"method\":\"ping\"}\n{\"jsonrpc\":\"2.0\",\"method\":\"notifications/x\",\"params\":3}\n").await;
        assert_eq!(answers, Vec::<serde_json::Value>::new());
    }

    #[tokio::test]
    async fn an_error_has_the_id_of_its_request() {
        let answers = answers(b"{\"jsonrpc\":\"1.0\",\"id\":\"q\",\"method\":\"ping\"}\n").await;
        assert_eq!(answers[0]["id"], "q");
    }

    #[tokio::test]
    async fn a_full_table_refuses_requests_and_reads_notifications() {
        let request = |id: usize| format!("{{\"jsonrpc\":\"2.0\",\"id\":{id},\"method\":\"resources/list\"}}\n");
        let cancel = |id: usize| {
            format!(
                "{{\"jsonrpc\":\"2.0\",\"method\":\"notifications/cancelled\",\"params\":{{\"requestId\":{id}}}}}\n"
            )
        };
        let input: String = (0..MAX_PENDING.get() + 2).map(request).collect();
        let input = format!("{input}{}{}{}", cancel(7), request(1000), request(1001));
        let mut lines = self::lines(std::io::Cursor::new(input));
        // As many requests as can be pending, the cancellation, and the one request that takes the free place.
        for _ in 0..MAX_PENDING.get() + 2 {
            assert!(lines.receive().await.is_some());
        }
        assert!(lines.receive().await.is_none());
        let output = lines.output.stream().await;
        let refused: Vec<serde_json::Value> = output
            .split(|b| *b == b'\n')
            .filter(|l| !l.is_empty())
            .map(|l| serde_json::from_slice(l).unwrap())
            .collect();
        let ids: Vec<_> = refused.iter().map(|answer| answer["id"].as_u64().unwrap()).collect();
        assert_eq!(ids, [MAX_PENDING.get() as u64, MAX_PENDING.get() as u64 + 1, 1001]);
        assert!(refused.iter().all(|answer| answer["error"]["data"]["kind"] == "busy"));
    }

    #[tokio::test]
    async fn an_id_that_is_in_flight_is_refused() {
        let request = "{\"jsonrpc\":\"2.0\",\"id\":5,\"method\":\"ping\"}\n";
        let answers = answers(request.repeat(2).as_bytes()).await;
        assert_eq!(answers.len(), 1);
        assert!(answers[0]["id"].is_null() && answers[0]["error"]["code"] == -32600, "{answers:?}");
    }

    #[tokio::test(start_paused = true)]
    async fn no_line_is_read_while_the_outbox_is_full() {
        let input = "{\"jsonrpc\":\"2.0\",\"id\":1,\"method\":\"ping\"}\n";
        let mut lines = self::lines(std::io::Cursor::new(input));
        lines.outbox.put(1 << 30);
        let wait = std::time::Duration::from_millis(50);
        assert!(tokio::time::timeout(wait, lines.receive()).await.is_err(), "it read on");
        lines.outbox.take(1 << 30);
        assert!(lines.receive().await.is_some());
    }
}
