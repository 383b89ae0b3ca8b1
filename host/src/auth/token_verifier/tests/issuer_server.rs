//! An authorization server on loopback, as good or as hostile as a test wants it.

use std::collections::BTreeMap;
use std::net::SocketAddr;
use std::sync::{Arc, Mutex};
use std::time::Duration;

use serde_json::json;
use tokio::io::{AsyncReadExt, AsyncWriteExt};
use tokio::net::{TcpListener, TcpStream};
use tokio::sync::Notify;

/// What the server answers at one path.
#[derive(Clone)]
pub(super) enum IssuerReply {
    /// 200 with this body.
    Json(String),
    /// 200 with this body and this `Cache-Control`.
    Cached(String, &'static str),
    /// 200 with this body, later.
    Slow(String, Duration),
    /// 200 with this body, when this number of requests have arrived.
    Together(String, usize),
    /// Another status.
    Status(u16),
    /// A redirect.
    Redirect(String),
    /// 200 with so many bytes.
    Huge(usize),
    /// Nothing.
    Silence,
}

/// One request that the server received.
#[derive(Clone, Debug)]
pub(super) struct Received {
    /// `GET /jwks`
    pub(super) line: String,
    pub(super) head: String,
    pub(super) body: String,
}

#[derive(Default)]
struct State {
    replies: BTreeMap<String, IssuerReply>,
    received: Vec<Received>,
    running: usize,
    most_running: usize,
}

/// The server. It runs until the runtime of the test ends.
pub(super) struct IssuerServer {
    address: SocketAddr,
    state: Arc<Mutex<State>>,
    /// Notified when a request was received.
    pub(super) arrived: Arc<Notify>,
}

impl IssuerServer {
    pub(super) async fn start() -> Self {
        let listener = TcpListener::bind("127.0.0.1:0").await.unwrap();
        let address = listener.local_addr().unwrap();
        let (state, arrived) = (Arc::new(Mutex::new(State::default())), Arc::new(Notify::new()));
        let (shared, notify) = (Arc::clone(&state), Arc::clone(&arrived));
        tokio::spawn(async move {
            while let Ok((stream, _)) = listener.accept().await {
                tokio::spawn(serve(stream, Arc::clone(&shared), Arc::clone(&notify)));
            }
        });
        Self { address, state, arrived }
    }

    /// Starts a server with metadata at the first place, and this key set.
    pub(super) async fn with_keys(set: String) -> Self {
        let server = Self::start().await;
        server.reply("/jwks", IssuerReply::Json(set));
        let metadata = server.metadata(&server.url("/jwks"));
        server.reply("/.well-known/oauth-authorization-server", IssuerReply::Json(metadata));
        server
    }

    /// Metadata of this issuer.
    pub(super) fn metadata(&self, jwks: &str) -> String {
        json!({ "issuer": self.url(""), "jwks_uri": jwks, "token_endpoint": self.url("/token") }).to_string()
    }

    pub(super) fn port(&self) -> u16 {
        self.address.port()
    }

    pub(super) fn url(&self, path: &str) -> String {
        format!("http://{}{path}", self.address)
    }

    /// Sets the reply at a path.
    pub(super) fn reply(&self, path: &str, reply: IssuerReply) {
        self.state.lock().unwrap().replies.insert(path.to_owned(), reply);
    }

    /// The requests so far.
    pub(super) fn received(&self) -> Vec<Received> {
        self.state.lock().unwrap().received.clone()
    }

    /// The number of requests for a path.
    pub(super) fn count(&self, path: &str) -> usize {
        self.received().iter().filter(|request| request.line.ends_with(&format!(" {path}"))).count()
    }

    /// The most requests at once.
    pub(super) fn most_running(&self) -> usize {
        self.state.lock().unwrap().most_running
    }
}

async fn serve(mut stream: TcpStream, state: Arc<Mutex<State>>, arrived: Arc<Notify>) {
    let mut bytes = Vec::new();
    let head = loop {
        if let Some(end) = bytes.windows(4).position(|four| four == b"\r\n\r\n") {
            break end + 4;
        }
        if stream.read_buf(&mut bytes).await.unwrap_or(0) == 0 {
            return;
        }
    };
    let text = String::from_utf8_lossy(&bytes[..head]).into_owned();
    let length =
        text.to_ascii_lowercase().split("content-length: ").nth(1).and_then(|rest| rest.lines().next()?.parse().ok());
    while bytes.len() < head + length.unwrap_or(0) {
        if stream.read_buf(&mut bytes).await.unwrap_or(0) == 0 {
            return;
        }
    }
    let line = text.lines().next().unwrap().trim_end_matches(" HTTP/1.1").to_owned();
    let path = line.split(' ').nth(1).unwrap().to_owned();
    let body = String::from_utf8_lossy(&bytes[head..]).into_owned();
    let reply = {
        let mut state = state.lock().unwrap();
        state.received.push(Received { line, head: text, body });
        state.running += 1;
        state.most_running = state.most_running.max(state.running);
        state.replies.get(&path).cloned().unwrap_or(IssuerReply::Status(404))
    };
    arrived.notify_waiters();
    let (status, headers, body) = match reply {
        IssuerReply::Json(body) => (200, String::new(), body),
        IssuerReply::Cached(body, age) => (200, format!("Cache-Control: {age}\r\n"), body),
        IssuerReply::Slow(body, time) => {
            tokio::time::sleep(time).await;
            (200, String::new(), body)
        }
        IssuerReply::Together(body, number) => {
            // Waits for the others, and a moment longer for one too many.
            while state.lock().unwrap().most_running < number {
                tokio::time::sleep(Duration::from_millis(5)).await;
            }
            tokio::time::sleep(Duration::from_millis(50)).await;
            (200, String::new(), body)
        }
        IssuerReply::Status(status) => (status, String::new(), "{}".to_owned()),
        IssuerReply::Redirect(to) => (302, format!("Location: {to}\r\n"), String::new()),
        IssuerReply::Huge(bytes) => (200, String::new(), " ".repeat(bytes)),
        IssuerReply::Silence => std::future::pending().await,
    };
    state.lock().unwrap().running -= 1;
    let length = body.len();
    let head = format!("HTTP/1.1 {status} X\r\nContent-Length: {length}\r\n{headers}Connection: close\r\n\r\n");
    let _ = stream.write_all((head + &body).as_bytes()).await;
    let _ = stream.shutdown().await;
}
