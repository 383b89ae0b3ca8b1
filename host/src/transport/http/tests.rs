//! The front door over real sockets: what is cut, what is refused, what goes on.

use std::io::{Read, Write};
use std::net::{SocketAddr, TcpStream};
use std::time::Instant;

use tokio::sync::oneshot;

use super::*;
use crate::mcp::tests::handler;

/// A server without mounts, in this process.
pub(super) struct Served {
    pub(super) address: SocketAddr,
    stop: Option<oneshot::Sender<()>>,
    thread: Option<std::thread::JoinHandle<()>>,
}

impl Served {
    pub(super) fn start(bounds: Bounds) -> Self {
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
                serve(handler, listener, bounds, stop).await.unwrap();
            });
        });
        Self { address: address.recv().unwrap(), stop: Some(stop), thread: Some(thread) }
    }

    fn connect(&self) -> TcpStream {
        let stream = TcpStream::connect(self.address).unwrap();
        stream.set_read_timeout(Some(Duration::from_secs(20))).unwrap();
        stream
    }

    fn request(&self, headers: &str, body: &str) -> String {
        let length = body.len();
        format!(
            "POST /mcp HTTP/1.1\r\nHost: {}\r\nContent-Type: application/json\r\nAccept: application/json, text/event-stream\r\nContent-Length: {length}\r\n{headers}\r\n{body}",
            self.address
        )
    }

    /// The whole answer to a request that asks for its connection to be closed.
    pub(super) fn exchange(&self, request: &[u8]) -> String {
        let mut stream = self.connect();
        stream.write_all(request).unwrap();
        rest(&mut stream)
    }

    /// The status and the whole answer to a request whose connection is closed afterwards.
    fn ask(&self, headers: &str, body: &str) -> (u16, String) {
        let mut stream = self.connect();
        stream.write_all(self.request(&format!("Connection: close\r\n{headers}"), body).as_bytes()).unwrap();
        let answer = rest(&mut stream);
        (status(&answer), answer)
    }
}

impl Drop for Served {
    fn drop(&mut self) {
        let _ = self.stop.take().unwrap().send(());
        let ended = self.thread.take().unwrap().join();
        assert!(std::thread::panicking() || ended.is_ok());
    }
}

/// Everything until the server closes.
fn rest(stream: &mut TcpStream) -> String {
    let mut answer = Vec::new();
    let _ = stream.read_to_end(&mut answer);
    String::from_utf8_lossy(&answer).into_owned()
}

fn status(answer: &str) -> u16 {
    answer.split(' ').nth(1).and_then(|code| code.parse().ok()).unwrap_or(0)
}

const INITIALIZE: &str = r#"{"jsonrpc":"2.0","id":1,"method":"initialize","params":{"protocolVersion":"2025-11-25","capabilities":{},"clientInfo":{"name":"t","version":"1"}}}"#;

/// Short bounds, so that what waits for one is cut soon.
fn short() -> Bounds {
    let bit = Duration::from_millis(300);
    Bounds { headers: bit, body: bit, write: bit, drain: bit, ..Bounds::default() }
}

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
    let (status, answer) = served.ask("", &"x".repeat(MAX_MESSAGE + 1));
    assert!(status == 413 && answer.contains("-32600"), "{answer}");
}

#[test]
fn foreign_hosts_and_origins_are_turned_away() {
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
fn slow_headers_and_bodies_are_cut() {
    let served = Served::start(short());
    for sent in ["", "POST /mcp HTTP/1.1\r\nHost:"] {
        let mut stream = served.connect();
        stream.write_all(sent.as_bytes()).unwrap();
        let began = Instant::now();
        rest(&mut stream);
        assert!(began.elapsed() < Duration::from_secs(15), "{sent:?} was waited for");
    }
    let mut stream = served.connect();
    let request = served.request("", INITIALIZE);
    stream.write_all(&request.as_bytes()[..request.len() - 10]).unwrap();
    assert_eq!(status(&rest(&mut stream)), 408);
    assert_eq!(served.ask("", INITIALIZE).0, 200, "others are served");
}

#[test]
fn a_client_that_does_not_read_is_cut() {
    let served = Served::start(short());
    let mut stream = served.connect();
    stream.set_write_timeout(Some(Duration::from_secs(20))).unwrap();
    // Answers pile up in the kernel's buffers until the server cannot write; requests pile up behind them.
    let requests = served.request("", "nonsense").repeat(100);
    let ended = (0..10_000).find_map(|_| stream.write_all(requests.as_bytes()).err()).expect("it reads for ever");
    assert!(matches!(ended.kind(), std::io::ErrorKind::BrokenPipe | std::io::ErrorKind::ConnectionReset), "{ended}");
}

/// The session that an answer opened.
fn session(answer: &str) -> String {
    let named = |line: &str| line.to_ascii_lowercase().strip_prefix("mcp-session-id: ").map(str::to_owned);
    answer.lines().find_map(named).unwrap_or_else(|| panic!("no session: {answer}"))
}

#[test]
fn sessions_are_capped_and_the_one_that_does_least_gives_way() {
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
    // However many come, the one that somebody uses stays.
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

/// Requests that wait for what does not come, in either era, streams, slow bodies, and requests without a pause.
#[test]
fn whoever_waits_gives_way_to_a_newcomer() {
    let served = Served::start(Bounds { connections: 8, ..Bounds::default() });
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
    // A body that was cut short is told why.
    let mut first = served.connect();
    first.write_all(&part.as_bytes()[..part.len() - 5]).unwrap();
    let others: Vec<_> = (0..16).map(|_| served.connect()).collect();
    std::thread::sleep(Duration::from_millis(150));
    let busy: Vec<_> = (0..8)
        .map(|_| {
            let mut one = served.connect();
            one.write_all(&part.as_bytes()[..part.len() - 5]).unwrap();
            one
        })
        .collect();
    assert_eq!(served.ask("", INITIALIZE).0, 200);
    let told = rest(&mut first);
    assert!(told.starts_with("HTTP/1.1 503") && told.contains("\"busy\"") && told.contains("retry-after: 1"), "{told}");
    drop((others, busy));
    // Those that are never still end after an answer, and not in the middle of one.
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
        assert_eq!(served.ask("", INITIALIZE).0, 200);
    }
    stop.store(true, std::sync::atomic::Ordering::Relaxed);
    pumps.into_iter().for_each(|pump| pump.join().unwrap());
}

#[test]
fn connections_are_capped_and_the_silent_ones_give_way() {
    let served = Served::start(Bounds { connections: 4, ..Bounds::default() });
    let mut silent: Vec<_> = (0..20).map(|_| served.connect()).collect();
    std::thread::sleep(Duration::from_millis(300));
    assert_eq!(served.ask("", INITIALIZE).0, 200);
    let is_open = |stream: &mut TcpStream| {
        stream.set_read_timeout(Some(Duration::from_millis(10))).unwrap();
        stream.read(&mut [0]).is_err_and(|error| error.kind() == std::io::ErrorKind::WouldBlock)
    };
    let open = silent.iter_mut().map(is_open).filter(|is_open| *is_open).count();
    assert!((1..=4).contains(&open), "{open} are open");
}

#[test]
fn a_stop_ends_the_server_though_a_connection_idles() {
    let served = Served::start(short());
    let mut idle = served.connect();
    idle.write_all(served.request("", INITIALIZE).as_bytes()).unwrap();
    let mut first = [0; 64];
    assert!(idle.read(&mut first).unwrap() > 0);
    let address = served.address;
    drop(served);
    assert!(TcpStream::connect(address).is_err(), "it still listens");
}
