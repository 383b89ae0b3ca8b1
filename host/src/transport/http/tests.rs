//! Tests of the endpoint over real sockets: timeouts, refusals, eviction and shutdown.

use std::io::{ErrorKind, Read, Write};
use std::net::{SocketAddr, TcpStream};
use std::sync::Arc;
use std::time::{Duration, Instant};

use tokio::net::TcpListener;
use tokio::sync::oneshot;
use tokio_util::sync::CancellationToken;

use super::{Bounds, FrontDoor, serve};
use crate::mcp::tests::handler;
use crate::model::bounds::MAX_MESSAGE;
use crate::model::waiting::EVENT_TIME;

/// Longer than any test runs: a bound that a test must not reach.
const HOUR: Duration = Duration::from_secs(3600);

/// A bound that a test waits for.
const SHORT: Duration = Duration::from_millis(300);

/// A server without mounts, in this process.
pub(super) struct Served {
    pub(super) address: SocketAddr,
    stop: Option<oneshot::Sender<()>>,
    thread: Option<std::thread::JoinHandle<()>>,
}

impl Served {
    pub(super) fn start(bounds: Bounds) -> Self {
        Self::with(FrontDoor { bounds, ..FrontDoor::default() })
    }

    /// A server with these settings.
    pub(super) fn with(front: FrontDoor) -> Self {
        let (tell, address) = std::sync::mpsc::channel();
        let (stop, stopped) = oneshot::channel::<()>();
        let thread = std::thread::spawn(move || {
            let runtime = tokio::runtime::Builder::new_multi_thread().worker_threads(2).enable_all().build().unwrap();
            runtime.block_on(async move {
                let handler = handler("http");
                let listener = TcpListener::bind("127.0.0.1:0").await.unwrap();
                tell.send(listener.local_addr().unwrap()).unwrap();
                let stop = async {
                    let _ = stopped.await;
                };
                serve(handler, listener, front, CancellationToken::new(), stop).await.unwrap();
            });
        });
        Self { address: address.recv().unwrap(), stop: Some(stop), thread: Some(thread) }
    }

    fn connect(&self) -> TcpStream {
        let stream = TcpStream::connect(self.address).unwrap();
        stream.set_read_timeout(Some(EVENT_TIME)).unwrap();
        stream
    }

    fn request(&self, headers: &str, body: &str) -> String {
        let length = body.len();
        format!(
            "POST /mcp HTTP/1.1\r\nHost: {}\r\nContent-Type: application/json\r\nAccept: application/json, text/event-stream\r\nContent-Length: {length}\r\n{headers}\r\n{body}",
            self.address
        )
    }

    /// The whole response to a request with `Connection: close`.
    pub(super) fn exchange(&self, request: &[u8]) -> String {
        let mut stream = self.connect();
        stream.write_all(request).unwrap();
        rest(&mut stream)
    }

    /// The status and the whole response to a request on a new connection.
    fn ask(&self, headers: &str, body: &str) -> (u16, String) {
        let answer = self.exchange(self.request(&format!("Connection: close\r\n{headers}"), body).as_bytes());
        (status(&answer), answer)
    }

    /// True if a request on a new connection is answered. The connection may be evicted instead, if this thread does not
    /// run for a while between connecting and sending.
    fn answers(&self) -> bool {
        let mut stream = self.connect();
        let request = self.request("Connection: close\r\n", INITIALIZE);
        stream.write_all(request.as_bytes()).is_ok() && status(&rest(&mut stream)) == 200
    }
}

impl Drop for Served {
    fn drop(&mut self) {
        let _ = self.stop.take().unwrap().send(());
        let ended = self.thread.take().unwrap().join();
        assert!(std::thread::panicking() || ended.is_ok());
    }
}

/// The bytes until the server closes the connection.
fn rest(stream: &mut TcpStream) -> String {
    let mut answer = Vec::new();
    // A reset is an end, too.
    let is_late = stream.read_to_end(&mut answer).is_err_and(|error| error.kind() == ErrorKind::WouldBlock);
    assert!(!is_late, "the server did not close the connection");
    String::from_utf8_lossy(&answer).into_owned()
}

/// Waits until `condition` is true.
fn wait_until(what: &str, mut condition: impl FnMut() -> bool) {
    let deadline = Instant::now() + EVENT_TIME;
    while !condition() {
        assert!(Instant::now() < deadline, "{what}: it did not happen");
        std::thread::sleep(Duration::from_millis(5));
    }
}

/// True if the connection has neither bytes nor its end to read.
fn is_silent(stream: &TcpStream) -> bool {
    stream.set_nonblocking(true).unwrap();
    let peeked = stream.peek(&mut [0]);
    stream.set_nonblocking(false).unwrap();
    peeked.is_err_and(|error| error.kind() == ErrorKind::WouldBlock)
}

fn status(answer: &str) -> u16 {
    answer.split(' ').nth(1).and_then(|code| code.parse().ok()).unwrap_or(0)
}

const INITIALIZE: &str = r#"{"jsonrpc":"2.0","id":1,"method":"initialize","params":{"protocolVersion":"2025-11-25","capabilities":{},"clientInfo":{"name":"t","version":"1"}}}"#;

#[test]
fn bodies_that_are_not_mcp_are_answered_in_json() {
    let served = Served::start(Bounds::default());
    assert_eq!(served.ask("", INITIALIZE).0, 200);
    for (bad, code) in [
        ("nonsense", "-32700"),
        ("", "-32700"),
        ("[]", "-32600"),
        ("{\"id\":1,\"method\":\"ping\"}", "-32600"),
        ("42", "-32600"),
    ] {
        let (status, answer) = served.ask("", bad);
        assert_eq!(status, 400, "{bad}: {answer}");
        assert!(answer.contains("application/json") && answer.contains(&format!("\"code\":{code}")), "{bad}: {answer}");
    }
    let (status, answer) = served.ask("", &"x".repeat(MAX_MESSAGE.get() + 1));
    assert!(status == 413 && answer.contains("-32600"), "{answer}");
}

#[test]
fn foreign_hosts_and_origins_are_refused() {
    let served = Served::start(Bounds::default());
    for origin in ["http://evil.example", "null", "http://127.0.0.1:1", "file://"] {
        assert_eq!(served.ask(&format!("Origin: {origin}\r\n"), INITIALIZE).0, 403, "{origin}");
    }
    for own in [served.address.to_string(), format!("localhost:{}", served.address.port())] {
        assert_eq!(served.ask(&format!("Origin: http://{own}\r\n"), INITIALIZE).0, 200, "{own}");
    }
    for host in ["evil.example", "127.0.0.1.evil.example", "localhost.evil.example:80", "10.0.0.1"] {
        let mut stream = served.connect();
        let request =
            served.request("Connection: close\r\n", INITIALIZE).replacen(&served.address.to_string(), host, 1);
        stream.write_all(request.as_bytes()).unwrap();
        assert_eq!(status(&rest(&mut stream)), 403, "{host}");
    }
    assert_eq!(served.ask(&format!("Host: {}\r\n", served.address), INITIALIZE).0, 400, "two Host headers");
}

#[test]
fn slow_headers_and_bodies_time_out() {
    // Each server has one short bound: on a busy machine, a request may reach the server later than that.
    let served = Served::start(Bounds { headers: SHORT, ..Bounds::default() });
    for sent in ["", "POST /mcp HTTP/1.1\r\nHost:"] {
        let mut stream = served.connect();
        // The connection may be closed before this thread runs again.
        let _ = stream.write_all(sent.as_bytes());
        rest(&mut stream);
    }
    let served = Served::start(Bounds { body: SHORT, headers: HOUR, ..Bounds::default() });
    let mut stream = served.connect();
    let request = served.request("", INITIALIZE);
    stream.write_all(&request.as_bytes()[..request.len() - 10]).unwrap();
    assert_eq!(status(&rest(&mut stream)), 408);
    assert_eq!(served.ask("", INITIALIZE).0, 200, "others are served");
}

#[test]
fn a_client_that_does_not_read_is_disconnected() {
    let served = Served::start(Bounds { write: SHORT, ..Bounds::default() });
    let mut stream = served.connect();
    stream.set_write_timeout(Some(EVENT_TIME)).unwrap();
    // Answers fill the kernel's buffers until the server cannot write. Then requests fill the other direction.
    let requests = served.request("", "nonsense").repeat(100);
    let ended = (0..10_000)
        .find_map(|_| stream.write_all(requests.as_bytes()).err())
        .expect("the server closes the connection");
    assert!(matches!(ended.kind(), ErrorKind::BrokenPipe | ErrorKind::ConnectionReset), "{ended}");
}

/// The session id in a response.
pub(super) fn session(answer: &str) -> String {
    let named = |line: &str| line.to_ascii_lowercase().strip_prefix("mcp-session-id: ").map(str::to_owned);
    answer.lines().find_map(named).unwrap_or_else(|| panic!("no session: {answer}"))
}

#[test]
fn sessions_are_capped_and_the_least_active_one_is_evicted() {
    let served = Served::start(Bounds { sessions: 2, ..Bounds::default() });
    let open = || {
        let (status, answer) = served.ask("", INITIALIZE);
        assert_eq!(status, 200, "{answer}");
        session(&answer)
    };
    let ping = |session: &str| {
        let body = r#"{"jsonrpc":"2.0","id":5,"method":"ping"}"#;
        served.ask(&format!("Mcp-Session-Id: {session}\r\n"), body).0
    };
    let (used, unused) = (open(), open());
    assert_eq!(ping(&used), 200);
    // New sessions evict each other, and the used one stays.
    let others: Vec<_> = (0..5).map(|_| open()).collect();
    assert_eq!((ping(&used), ping(&unused)), (200, 404));
    let alive = others.iter().filter(|session| ping(session) == 200).count();
    assert_eq!(alive, 1);
    let mut stream = served.connect();
    let close = format!(
        "DELETE /mcp HTTP/1.1\r\nHost: {}\r\nMcp-Session-Id: {used}\r\nConnection: close\r\n\r\n",
        served.address
    );
    stream.write_all(close.as_bytes()).unwrap();
    rest(&mut stream);
    assert_eq!(ping(&used), 404);
    let next = open();
    assert_eq!((ping(&next), ping(&others[4])), (200, 200), "there was room");
}

/// Fills the table with slow bodies, streams, silent connections, and connections that send requests without a pause.
#[test]
fn a_new_connection_evicts_a_waiting_one() {
    let served = Served::start(Bounds { connections: 8, headers: HOUR, body: HOUR, ..Bounds::default() });
    let opened = session(&served.ask("", INITIALIZE).1);
    let part = served.request("", INITIALIZE);
    let stream = format!(
        "GET /mcp HTTP/1.1\r\nHost: {}\r\nAccept: text/event-stream\r\nMcp-Session-Id: {opened}\r\n\r\n",
        served.address
    );
    for (what, request) in [("a slow body", &part[..part.len() - 5]), ("a stream", stream.as_str())] {
        let held: Vec<_> = (0..24)
            .map(|_| {
                let mut one = served.connect();
                one.write_all(request.as_bytes()).unwrap();
                one
            })
            .collect();
        assert_eq!(served.ask("", INITIALIZE).0, 200, "{what}");
        drop(held);
    }
    // A client whose body was incomplete gets a busy error.
    let mut first = served.connect();
    first.write_all(&part.as_bytes()[..part.len() - 5]).unwrap();
    let others: Vec<_> = (0..16).map(|_| served.connect()).collect();
    let mut busy = Vec::new();
    wait_until("the first connection is evicted", || {
        let mut one = served.connect();
        // The server may have evicted it already, if this thread did not run.
        let _ = one.write_all(&part.as_bytes()[..part.len() - 5]);
        busy.push(one);
        !is_silent(&first)
    });
    assert_eq!(served.ask("", INITIALIZE).0, 200);
    let answer = rest(&mut first);
    let is_busy = answer.contains("\"busy\"") && answer.contains("retry-after: 1");
    assert!(answer.starts_with("HTTP/1.1 503") && is_busy, "{answer}");
    drop((others, busy));
    // A connection that sends requests without a pause is closed between two answers.
    let (address, request) = (served.address, served.request("", "nonsense"));
    let stop = Arc::new(std::sync::atomic::AtomicBool::new(false));
    let pumps: Vec<_> = (0..8)
        .map(|_| {
            let (stop, request) = (Arc::clone(&stop), request.clone());
            std::thread::spawn(move || {
                while !stop.load(std::sync::atomic::Ordering::Relaxed) {
                    let Ok(mut stream) = TcpStream::connect(address) else { continue };
                    stream.set_read_timeout(Some(Duration::from_secs(1))).unwrap();
                    stream.write_all(request.repeat(1000).as_bytes()).ok();
                    let _ = stream.read_to_end(&mut Vec::new());
                }
            })
        })
        .collect();
    for _ in 0..5 {
        wait_until("a new connection is served", || served.answers());
    }
    stop.store(true, std::sync::atomic::Ordering::Relaxed);
    pumps.into_iter().for_each(|pump| pump.join().unwrap());
}

#[test]
fn connections_are_capped_and_silent_ones_are_evicted() {
    let served = Served::start(Bounds { connections: 4, headers: HOUR, ..Bounds::default() });
    let silent: Vec<_> = (0..20).map(|_| served.connect()).collect();
    // The server accepts this connection after all silent ones.
    assert_eq!(served.ask("", INITIALIZE).0, 200);
    let open = || silent.iter().filter(|stream| is_silent(stream)).count();
    wait_until("evicted connections are closed", || open() <= 4);
    assert!(open() > 0, "all silent connections were evicted; only as many as necessary should be");
}

#[test]
fn an_idle_connection_does_not_delay_the_shutdown() {
    let served = Served::start(Bounds { drain: HOUR, ..Bounds::default() });
    let mut idle = served.connect();
    idle.write_all(served.request("", INITIALIZE).as_bytes()).unwrap();
    let mut first = [0; 64];
    assert!(idle.read(&mut first).unwrap() > 0);
    let address = served.address;
    let (ended, has_ended) = std::sync::mpsc::channel();
    std::thread::spawn(move || {
        drop(served);
        ended.send(())
    });
    assert!(has_ended.recv_timeout(EVENT_TIME).is_ok(), "the shutdown waits for the idle connection");
    assert!(TcpStream::connect(address).is_err(), "the server still listens");
}
