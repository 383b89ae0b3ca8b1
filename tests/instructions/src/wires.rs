//! A minimal client for each transport. It sends the same bytes each time, and reads the bytes of the answer.

use std::net::SocketAddr;

use belljar::mcp::Handler;
use belljar::transport::http::{self, FrontDoor, PATH};
use belljar::transport::stdio;
use serde_json::json;
use tokio::io::{AsyncBufReadExt, AsyncReadExt, AsyncWriteExt, BufReader, DuplexStream, duplex};
use tokio::net::{TcpListener, TcpStream};

/// The capacity of a pipe, in bytes.
const PIPE: usize = 64 << 10;

/// The revision of the stateless requests. Each carries the data of its client.
const REVISION: &str = "2026-07-28";

/// The revision of sessions.
const SESSION_REVISION: &str = "2025-11-25";

fn read(uri: &str) -> String {
    let meta = json!({
        "io.modelcontextprotocol/protocolVersion": REVISION,
        "io.modelcontextprotocol/clientInfo": { "name": "counter", "version": "1" },
        "io.modelcontextprotocol/clientCapabilities": {},
    });
    let params = json!({ "_meta": meta, "uri": uri });
    json!({ "jsonrpc": "2.0", "id": 7, "method": "resources/read", "params": params }).to_string()
}

/// Opens a session.
fn greeting() -> String {
    let client = json!({ "name": "counter", "version": "1" });
    let params = json!({ "protocolVersion": SESSION_REVISION, "capabilities": {}, "clientInfo": client });
    json!({ "jsonrpc": "2.0", "id": 1, "method": "initialize", "params": params }).to_string()
}

fn read_in_session(uri: &str) -> String {
    json!({ "jsonrpc": "2.0", "id": 7, "method": "resources/read", "params": { "uri": uri } }).to_string()
}

/// True if the bytes are an answer with contents, and more than `bytes` long.
fn is_reading(answer: &[u8], bytes: usize) -> bool {
    let text = String::from_utf8_lossy(answer);
    text.contains("\"id\":7") && text.contains("\"contents\"") && answer.len() > bytes
}

/// A connection over a pair of pipes.
pub(crate) struct Stdio {
    requests: DuplexStream,
    answers: BufReader<DuplexStream>,
    request: Vec<u8>,
    answer: Vec<u8>,
}

impl Stdio {
    /// Serves `handler` to a client that reads `uri` many times: in a session, or by stateless requests. The contents have at
    /// least `bytes` bytes.
    pub(crate) async fn reading(handler: &Handler, uri: &str, bytes: usize, in_session: bool) -> Self {
        let (requests, input) = duplex(PIPE);
        let (output, answers) = duplex(PIPE);
        let handler = handler.clone();
        tokio::spawn(async move {
            stdio::serve_on(handler, (input, output), std::future::pending()).await.expect("a first message");
        });
        let answers = BufReader::with_capacity(PIPE, answers);
        let mut stdio = Self { requests, answers, request: Vec::new(), answer: Vec::new() };
        if in_session {
            stdio.request = format!("{}\n", greeting()).into_bytes();
            stdio.read().await;
            let greeted = format!("{}\n", json!({ "jsonrpc": "2.0", "method": "notifications/initialized" }));
            stdio.requests.write_all(greeted.as_bytes()).await.expect("a server that reads");
        }
        let request = if in_session { read_in_session(uri) } else { read(uri) };
        stdio.request = format!("{request}\n").into_bytes();
        stdio.read().await;
        assert!(is_reading(&stdio.answer, bytes), "{}", String::from_utf8_lossy(&stdio.answer));
        stdio
    }

    /// Sends the bytes of a request, and reads the bytes of its answer.
    pub(crate) async fn read(&mut self) {
        self.requests.write_all(&self.request).await.expect("a server that reads");
        self.answer.clear();
        self.answers.read_until(b'\n', &mut self.answer).await.expect("a server that answers");
    }
}

/// A connection over loopback.
pub(crate) struct Http {
    stream: TcpStream,
    request: Vec<u8>,
    answer: Vec<u8>,
}

impl Http {
    /// As [`Stdio::reading`].
    pub(crate) async fn reading(handler: &Handler, uri: &str, bytes: usize, in_session: bool) -> Self {
        let listener = TcpListener::bind("127.0.0.1:0").await.expect("a port");
        let address = listener.local_addr().expect("an address");
        tokio::spawn(http::serve(
            handler.clone(),
            listener,
            FrontDoor::default(),
            Default::default(),
            std::future::pending(),
        ));
        let mut stream = TcpStream::connect(address).await.expect("it listens");
        stream.set_nodelay(true).expect("a socket");
        let request = if in_session {
            let session = open_session(address).await;
            let own = format!("mcp-protocol-version: {SESSION_REVISION}\r\nmcp-session-id: {session}");
            post(address, &own, &read_in_session(uri))
        } else {
            let own = format!("mcp-protocol-version: {REVISION}\r\nmcp-method: resources/read\r\nmcp-name: {uri}");
            post(address, &own, &read(uri))
        };
        stream.write_all(&request).await.expect("a server that reads");
        // The first answer gives the length of all answers.
        let mut answer = Vec::with_capacity(bytes + PIPE);
        while !is_whole(&answer) {
            assert!(stream.read_buf(&mut answer).await.expect("a server that answers") > 0, "it closed");
        }
        assert!(is_reading(&answer, bytes), "{}", String::from_utf8_lossy(&answer));
        Self { stream, request, answer }
    }

    /// Sends the bytes of a request, and reads the bytes of its answer.
    pub(crate) async fn read(&mut self) {
        self.stream.write_all(&self.request).await.expect("a server that reads");
        self.stream.read_exact(&mut self.answer).await.expect("a server that answers");
        assert!(self.answer.starts_with(b"HTTP/1.1 200"));
    }
}

/// The bytes of a request with these headers and this body.
fn post(address: SocketAddr, headers: &str, body: &str) -> Vec<u8> {
    let length = body.len();
    format!(
        "POST {PATH} HTTP/1.1\r\nhost: {address}\r\ncontent-length: {length}\r\ncontent-type: application/json\r\n\
         accept: application/json, text/event-stream\r\n{headers}\r\n\r\n{body}"
    )
    .into_bytes()
}

/// Opens a session on a connection of its own. Returns its id.
async fn open_session(address: SocketAddr) -> String {
    let mut stream = TcpStream::connect(address).await.expect("it listens");
    stream.write_all(&post(address, "connection: close", &greeting())).await.expect("a server that reads");
    let mut answer = String::new();
    stream.read_to_string(&mut answer).await.expect("a server that answers");
    let session = answer.lines().find_map(|line| line.strip_prefix("mcp-session-id: ")).map(str::to_owned);
    assert!(session.is_some(), "no session: {answer}");
    session.unwrap_or_default()
}

fn is_whole(answer: &[u8]) -> bool {
    let text = String::from_utf8_lossy(answer);
    let Some((head, body)) = text.split_once("\r\n\r\n") else { return false };
    let length = head.to_ascii_lowercase().lines().find_map(|line| line.strip_prefix("content-length: ")?.parse().ok());
    body.len() >= length.unwrap_or(usize::MAX)
}
