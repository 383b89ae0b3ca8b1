//! The Streamable HTTP transport of the test clients. It uses a plain socket, so that a test can read and change every
//! byte.

use std::collections::VecDeque;
use std::io::{BufRead, BufReader, ErrorKind, Read, Write};
use std::net::{SocketAddr, TcpStream};
use std::process::{Command, Stdio as Pipe};
use std::time::{Duration, Instant};

use base64::Engine as _;
use serde_json::Value;

use crate::client::{Client, Era, Wire};
use crate::events::Events;
use crate::process::{self, Ended, Process};
use crate::wait::{DEADLINE, wait_until_within};

/// The longest time until a server listens. A server compiles every component first.
const START: Duration = Duration::from_secs(120);

/// The timeout of one read from the socket: longer than every limit of belljar.
const READ_TIMEOUT: Duration = Duration::from_secs(60);

/// The most bytes of a body. A wrong length must not use up the memory of the test.
const LONGEST_BODY: usize = 256 << 20;

/// A running `belljar serve --http`.
#[derive(Debug)]
pub struct Server {
    /// The process that serves.
    pub process: Process,
    address: SocketAddr,
}

/// One client's transport to a [`Server`]: keeps a connection, a session and unread messages.
#[derive(Debug)]
pub struct Http {
    address: SocketAddr,
    connection: Option<BufReader<TcpStream>>,
    era: Era,
    session: Option<String>,
    inbox: VecDeque<Value>,
    /// The HTTP status of the last answer.
    pub status: u16,
    /// The value of the header `Authorization`. `None`: no such header.
    pub authorization: Option<String>,
}

/// A connection that stays open between requests (keep-alive), even after errors. For benches that send the same
/// request many times.
#[derive(Debug)]
pub struct KeepAliveConnection {
    address: SocketAddr,
    connection: Option<BufReader<TcpStream>>,
}

/// An HTTP answer.
#[derive(Clone, Debug)]
pub struct Response {
    /// Its status code.
    pub status: u16,
    /// Its header fields, names in lower case.
    pub headers: Vec<(String, String)>,
    /// Its complete body.
    pub body: Vec<u8>,
}

impl Server {
    /// Starts `command`. Waits until the process writes the address on which it listens to standard error.
    pub fn start(mut command: Command) -> Server {
        command.stdin(Pipe::null()).stdout(Pipe::null());
        Server::of(Process::start(command))
    }

    /// Like [`Server::start`], for a process that already runs.
    pub fn of(mut process: Process) -> Server {
        let address = process.await_stderr(START, |line| {
            let (_, url) = line.split_once("listening on http://")?;
            let (address, _) = url.split_once("/mcp")?;
            address.parse().ok()
        });
        Server { process, address }
    }

    /// Waits until a running process accepts connections at `address`.
    pub fn at(process: Process, address: SocketAddr) -> Server {
        wait_until_within(START, &format!("a listener at {address}"), || {
            if let Some(status) = process.ended() {
                panic!("ended with {status} before it listened:\n{}", process.stderr());
            }
            TcpStream::connect(address).map(drop).map_err(|error| format!("{error}\n{}", process.stderr()))
        });
        Server { process, address }
    }

    /// The address on which the server listens.
    pub fn address(&self) -> SocketAddr {
        self.address
    }

    /// The URL of the server's MCP endpoint.
    pub fn url(&self) -> String {
        format!("http://{}/mcp", self.address)
    }

    /// A new client with an initialized connection.
    pub fn client(&self, era: Era) -> Client<Http> {
        Client::connect(self.wire(era), era)
    }

    /// The transport of a new client, which has sent no message yet.
    pub fn wire(&self, era: Era) -> Http {
        let (session, inbox, authorization) = (None, VecDeque::new(), None);
        Http { address: self.address, connection: None, era, session, inbox, status: 0, authorization }
    }

    /// The bytes of an HTTP request with `message`, as a client with this transport sends them.
    pub fn request(&self, wire: &Http, message: &Value) -> Vec<u8> {
        let body = message.to_string();
        let head = head(self.address(), "POST", "/mcp", &borrowed(&wire.headers(message)), body.len(), "keep-alive");
        format!("{head}{body}").into_bytes()
    }

    /// Sends `message` on a new connection, and returns the connection without reading the answer.
    pub fn begin(&self, wire: &Http, message: &Value) -> TcpStream {
        let mut stream = TcpStream::connect(self.address()).expect("a server that accepts");
        stream.write_all(&self.request(wire, message)).expect("a server that reads");
        stream
    }

    /// Sends a request on a new connection, and reads the answer. Adds `Host`, `Content-Length` and `Connection` if
    /// missing.
    pub fn exchange(&self, method: &str, path: &str, headers: &[(&str, &str)], body: &[u8]) -> Response {
        let mut connection = connect(self.address);
        let head = head(self.address, method, path, headers, body.len(), "close");
        // Ignore errors: a server may answer and close before it has read everything.
        connection.get_mut().write_all(&[head.as_bytes(), body].concat()).ok();
        let mut response = read_head(&mut connection).expect("an HTTP answer");
        response.body = read_body(&mut connection, &response).expect("a whole body");
        response
    }

    /// Posts `message` with `headers` on a new connection, and reads the answer. [`Http::headers`] has the usual ones.
    pub fn post(&self, headers: &[(&str, String)], message: &Value) -> Response {
        self.exchange("POST", "/mcp", &borrowed(headers), message.to_string().as_bytes())
    }

    /// Sends any bytes on a new connection. Returns all bytes until the server closes, or sends nothing for [`DEADLINE`].
    pub fn raw(&self, bytes: &[u8]) -> Vec<u8> {
        self.raw_within(bytes, DEADLINE)
    }

    /// Like [`Server::raw`], but waits `silence` for the next byte in place of [`DEADLINE`].
    pub fn raw_within(&self, bytes: &[u8], silence: Duration) -> Vec<u8> {
        let mut stream = connect(self.address).into_inner();
        stream.set_read_timeout(Some(silence)).expect("a positive time");
        // If the server refuses the request early, the write fails. The answer can still be read.
        stream.write_all(bytes).ok();
        let mut answer = Vec::new();
        stream.read_to_end(&mut answer).ok();
        answer
    }

    /// Asks the server to end with SIGTERM, and waits for the end.
    pub fn stop(self) -> Ended {
        self.process.terminate();
        self.process.wait(process::END)
    }
}

impl KeepAliveConnection {
    /// A connection to `server`, opened by the first exchange.
    pub fn to(server: &Server) -> KeepAliveConnection {
        KeepAliveConnection { address: server.address, connection: None }
    }

    /// Sends `request`, the bytes of [`Server::request`], and reads the complete answer, even if it is a stream of
    /// events. If the server closed the connection meanwhile, opens a new one, once.
    pub fn exchange(&mut self, request: &[u8]) -> Response {
        loop {
            let was_kept = self.connection.is_some();
            let address = self.address;
            let connection = self.connection.get_or_insert_with(|| connect(address));
            let written = connection.get_mut().write_all(request);
            match written.and_then(|()| read_head(connection)) {
                Ok(response) => {
                    let body = read_body(connection, &response).expect("a whole body");
                    if response.header("connection").is_some_and(|value| value.eq_ignore_ascii_case("close")) {
                        self.connection = None;
                    }
                    return Response { body, ..response };
                }
                Err(error) => {
                    self.connection = None;
                    assert!(was_kept, "no HTTP answer: {error}");
                }
            }
        }
    }
}

impl Response {
    /// A header field's value.
    pub fn header(&self, name: &str) -> Option<&str> {
        let wanted = name.to_ascii_lowercase();
        self.headers.iter().find_map(|(name, value)| (*name == wanted).then_some(value.as_str()))
    }

    /// The body as text.
    pub fn text(&self) -> String {
        String::from_utf8_lossy(&self.body).into_owned()
    }

    /// The body as JSON. Panics if it is not JSON.
    pub fn json(&self) -> Value {
        serde_json::from_slice(&self.body)
            .unwrap_or_else(|error| panic!("HTTP {} without JSON ({error}): {:?}", self.status, self.text()))
    }
}

impl Http {
    /// The session that the server opened for [`Era::Session`].
    pub fn session(&self) -> Option<&str> {
        self.session.as_deref()
    }

    /// Opens the event stream of a session, on which the server sends notifications.
    pub fn events(&self) -> Events {
        let version = self.era.version();
        let mut headers = vec![("Accept", "text/event-stream"), ("MCP-Protocol-Version", version)];
        headers.extend(self.session.as_deref().map(|session| ("Mcp-Session-Id", session)));
        headers.extend(self.authorization.as_deref().map(|value| ("Authorization", value)));
        let events = Events::open(self.address, "GET", &headers, b"");
        events.unwrap_or_else(|answer| panic!("HTTP {} in place of a stream: {}", answer.status, answer.text()))
    }

    /// Posts a request whose answer is a stream that stays open.
    ///
    /// # Errors
    /// An answer that is not a stream.
    pub fn open(&self, message: &Value) -> Result<Events, Response> {
        Events::open(self.address, "POST", &borrowed(&self.headers(message)), message.to_string().as_bytes())
    }

    /// The header fields that a well-behaved client of this era sends with `message`.
    pub fn headers(&self, message: &Value) -> Vec<(&'static str, String)> {
        let mut headers = vec![
            ("Content-Type", "application/json".to_owned()),
            ("Accept", "application/json, text/event-stream".to_owned()),
        ];
        let method = message["method"].as_str().unwrap_or_default();
        if method != "initialize" || self.era == Era::Stateless {
            headers.push(("MCP-Protocol-Version", self.era.version().to_owned()));
        }
        headers.extend(self.session.clone().map(|session| ("Mcp-Session-Id", session)));
        headers.extend(self.authorization.clone().map(|value| ("Authorization", value)));
        if self.era == Era::Stateless {
            headers.push(("Mcp-Method", method.to_owned()));
            let params = &message["params"];
            let is_named = matches!(method, "tools/call" | "prompts/get");
            if let Some(name) = if is_named { &params["name"] } else { &params["uri"] }.as_str() {
                headers.push(("Mcp-Name", header_value(name)));
            }
        }
        headers
    }

    /// Posts a message, and reads the head of the answer. If the server closed the connection meanwhile, opens a new
    /// one, once.
    fn post(&mut self, message: &Value) -> Response {
        let body = message.to_string();
        let head = head(self.address, "POST", "/mcp", &borrowed(&self.headers(message)), body.len(), "keep-alive");
        loop {
            let kept = self.connection.is_some();
            let address = self.address;
            let connection = self.connection.get_or_insert_with(|| connect(address));
            let written = connection.get_mut().write_all(&[head.as_bytes(), body.as_bytes()].concat());
            match written.and_then(|()| read_head(connection)) {
                Ok(response) => return response,
                Err(error) => {
                    self.connection = None;
                    assert!(kept, "no HTTP answer to {message}: {error}");
                }
            }
        }
    }

    /// Reads events until the answer to `id` has come, and ignores the rest of the stream.
    fn read_events(&mut self, response: &Response, id: &Value) {
        let connection = self.connection.take().expect("the connection of the answer's head");
        let mut events = BufReader::new(Body::new(connection, response));
        let mut data = String::new();
        let mut line = String::new();
        loop {
            line.clear();
            let read = events.read_line(&mut line).expect("a readable event stream");
            let text = line.trim_end_matches(['\r', '\n']);
            if let Some(rest) = text.strip_prefix("data:") {
                data.push_str(rest.strip_prefix(' ').unwrap_or(rest));
            }
            if text.is_empty() && !data.is_empty() {
                let message: Value = serde_json::from_str(&data)
                    .unwrap_or_else(|error| panic!("an event without valid JSON ({error}): {data:?}"));
                let last = message.get("id") == Some(id) && message.get("method").is_none();
                self.inbox.push_back(message);
                if last {
                    return;
                }
                data.clear();
            }
            if read == 0 {
                return;
            }
        }
    }
}

impl Wire for Http {
    fn send(&mut self, message: &Value) {
        let response = self.post(message);
        self.status = response.status;
        if let Some(session) = response.header("mcp-session-id") {
            self.session = Some(session.to_owned());
        }
        let kind = response.header("content-type").unwrap_or_default().to_owned();
        if kind.starts_with("text/event-stream") {
            let id = message.get("id").unwrap_or_else(|| panic!("an event stream for {message}"));
            return self.read_events(&response, id);
        }
        let connection = self.connection.as_mut().expect("the connection of the answer's head");
        let body = read_body(connection, &response).expect("a whole body");
        if response.header("connection").is_some_and(|value| value.eq_ignore_ascii_case("close")) {
            self.connection = None;
        }
        let response = Response { body, ..response };
        if kind.starts_with("application/json") {
            self.inbox.push_back(response.json());
        } else {
            let accepted = message.get("id").is_none() && response.status == 202;
            assert!(accepted, "HTTP {} to {message}: {}", response.status, response.text());
        }
    }

    fn next(&mut self, _deadline: Instant) -> Option<Value> {
        self.inbox.pop_front()
    }

    fn diagnosis(&self) -> String {
        format!("its last HTTP status: {}", self.status)
    }
}

/// A reader of a body that may still arrive. The body ends after its last chunk, after its length, or with the stream.
pub(crate) struct Body {
    connection: BufReader<TcpStream>,
    /// True if another chunk follows.
    chunked: bool,
    /// The number of bytes until the end of the chunk, or of the body.
    left: usize,
}

impl Body {
    pub(crate) fn new(connection: BufReader<TcpStream>, response: &Response) -> Body {
        let chunked = is_chunked(response);
        let length = response.header("content-length").and_then(|value| value.parse().ok());
        Body { connection, chunked, left: if chunked { 0 } else { length.unwrap_or(usize::MAX) } }
    }
}

impl Read for Body {
    fn read(&mut self, into: &mut [u8]) -> std::io::Result<usize> {
        if self.left == 0 && self.chunked {
            self.left = read_chunk_size(&mut self.connection)?;
            self.chunked = self.left > 0;
        }
        let most = into.len().min(self.left);
        let read = self.connection.read(&mut into[..most])?;
        self.left -= read;
        if self.left == 0 && self.chunked {
            self.connection.read_line(&mut String::new())?;
        }
        Ok(read)
    }
}

pub(crate) fn connect(address: SocketAddr) -> BufReader<TcpStream> {
    let stream = TcpStream::connect(address).unwrap_or_else(|error| panic!("cannot connect to {address}: {error}"));
    stream.set_read_timeout(Some(READ_TIMEOUT)).expect("a positive time");
    stream.set_nodelay(true).expect("a connected socket");
    BufReader::new(stream)
}

/// The same headers, borrowed.
fn borrowed<'h>(headers: &'h [(&str, String)]) -> Vec<(&'h str, &'h str)> {
    headers.iter().map(|(name, value)| (*name, value.as_str())).collect()
}

/// The head of a request: the request line and the headers. Adds the usual headers except those in `headers`, so that a
/// test can send wrong values.
pub(crate) fn head(
    address: SocketAddr,
    method: &str,
    path: &str,
    headers: &[(&str, &str)],
    length: usize,
    connection: &str,
) -> String {
    let (host, length) = (address.to_string(), length.to_string());
    let usual = [("Host", host.as_str()), ("Content-Length", length.as_str()), ("Connection", connection)];
    let given = |name: &str| headers.iter().any(|(other, _)| other.eq_ignore_ascii_case(name));
    let mut head = format!("{method} {path} HTTP/1.1\r\n");
    for (name, value) in usual.iter().filter(|(name, _)| !given(name)).chain(headers) {
        head.push_str(&format!("{name}: {value}\r\n"));
    }
    head + "\r\n"
}

pub(crate) fn read_head(connection: &mut BufReader<TcpStream>) -> std::io::Result<Response> {
    let mut line = String::new();
    if connection.read_line(&mut line)? == 0 {
        return Err(ErrorKind::UnexpectedEof.into());
    }
    let status = line
        .strip_prefix("HTTP/1.1 ")
        .and_then(|rest| rest.get(..3)?.parse().ok())
        .unwrap_or_else(|| panic!("not an HTTP answer: {line:?}"));
    let mut headers = Vec::new();
    loop {
        line.clear();
        connection.read_line(&mut line)?;
        let Some((name, value)) = line.trim_end().split_once(':') else {
            return Ok(Response { status, headers, body: Vec::new() });
        };
        headers.push((name.to_ascii_lowercase(), value.trim().to_owned()));
    }
}

pub(crate) fn read_body(connection: &mut BufReader<TcpStream>, response: &Response) -> std::io::Result<Vec<u8>> {
    let mut body = Vec::new();
    if is_chunked(response) {
        loop {
            let size = read_chunk_size(connection)?;
            let start = body.len();
            body.resize(start + size, 0);
            connection.read_exact(&mut body[start..])?;
            connection.read_line(&mut String::new())?;
            if size == 0 {
                return Ok(body);
            }
        }
    }
    match response.header("content-length") {
        Some(length) => {
            let length: usize = length.parse().expect("a content length");
            assert!(length <= LONGEST_BODY, "a body of {length} bytes");
            body.resize(length, 0);
            connection.read_exact(&mut body)?;
        }
        None if matches!(response.status, 202 | 204 | 304) => {}
        None => {
            connection.read_to_end(&mut body)?;
        }
    }
    Ok(body)
}

fn read_chunk_size(connection: &mut BufReader<TcpStream>) -> std::io::Result<usize> {
    let mut line = String::new();
    if connection.read_line(&mut line)? == 0 {
        return Err(ErrorKind::UnexpectedEof.into());
    }
    let digits = line.trim_end().split(';').next().unwrap_or_default();
    let size = usize::from_str_radix(digits, 16).unwrap_or_else(|_| panic!("not a chunk size: {line:?}"));
    assert!(size <= LONGEST_BODY, "a chunk of {size} bytes");
    Ok(size)
}

fn is_chunked(response: &Response) -> bool {
    response.header("transfer-encoding").is_some_and(|value| value.eq_ignore_ascii_case("chunked"))
}

/// The value of a header in the encoding of 2026-07-28: base64 if the text is not plain ASCII.
fn header_value(text: &str) -> String {
    let plain = text.bytes().all(|byte| matches!(byte, b' '..=b'~')) && text.trim() == text;
    if plain && !text.starts_with("=?base64?") {
        return text.to_owned();
    }
    format!("=?base64?{}?=", base64::engine::general_purpose::STANDARD.encode(text))
}
