//! The shutdown of a server: it answers running calls first, then writes its audit records, and ends. Runs the real
//! `belljar` server, with the component `hostile` and an upstream that the test controls.

use std::io::Write as _;
use std::net::{TcpListener, TcpStream};
use std::thread::JoinHandle;
use std::time::Duration;

use belljar_tests::{Era, Process, RpcError, Server, Site, wait_until};
use serde_json::{Value, json};

/// A site with a mount `hostile`, which may send requests to the upstream. A read of [`reach`] lasts until the upstream
/// answers.
fn site(upstream: &TcpListener) -> Site {
    let site = crate::support::empty();
    site.mount_as("guest_hostile", "hostile.wasm");
    let (audit, origin) = (site.path("audit.jsonl"), origin(upstream));
    site.config(&format!(
        "audit = {audit:?}\n[mounts.hostile]\nhttp = [{{ origin = {origin:?} }}]\nlimits = {{ time = \"600s\" }}\n"
    ));
    site
}

/// A server on loopback to which the provider sends its requests. The test answers them.
fn upstream() -> TcpListener {
    TcpListener::bind("127.0.0.1:0").unwrap()
}

/// The origin of the upstream, for a grant of `http`.
fn origin(upstream: &TcpListener) -> String {
    format!("http://{}", upstream.local_addr().unwrap())
}

/// The URI of a read that sends a request to the upstream, and ends when the upstream answers.
fn reach(upstream: &TcpListener) -> String {
    format!("belljar://hostile/reach/{}", format!("{}/", origin(upstream)).replace(':', "%253A").replace('/', "%252F"))
}

/// Starts a read over HTTP on a new thread. The client waits for the answer, so the read needs its own thread.
fn read_over_http(server: &Server, uri: String) -> JoinHandle<Result<Value, RpcError>> {
    let mut client = server.client(Era::Stateless);
    std::thread::spawn(move || client.read(&uri))
}

/// Waits until the log of the process says that it stops. Then the upstream answers.
fn answer_during_the_stop(process: &Process, mut call: TcpStream) {
    wait_until("the log line \"stopping\"", || {
        let log = process.stderr();
        log.contains("stopping").then_some(()).ok_or(log)
    });
    call.write_all(b"HTTP/1.1 200 OK\r\ncontent-length: 2\r\n\r\nok").unwrap();
}

/// How often to try. A stop waits one second for an answer; on a busy machine, the answer may come too late.
const ATTEMPTS: usize = 5;

#[test]
fn a_stop_lets_an_answer_finish_on_stdio() {
    let upstream = upstream();
    for _ in 0..ATTEMPTS {
        let site = site(&upstream);
        let mut client = site.stdio(Era::Stateless);
        let id = client.send("resources/read", json!({ "uri": reach(&upstream) }));
        let (call, _) = upstream.accept().unwrap();
        client.wire().process.terminate();
        answer_during_the_stop(&client.wire().process, call);
        let answer = client.wait(id);
        assert_eq!(client.close().status.code(), Some(0));
        match answer {
            Ok(_) => return assert_eq!(last_read(&site)["outcome"], "ok"),
            Err(error) => assert!(shuts_down(&error), "{error}"),
        }
    }
    panic!("no answer came in {ATTEMPTS} attempts");
}

#[test]
fn a_stop_lets_an_answer_finish_over_http() {
    let upstream = upstream();
    for _ in 0..ATTEMPTS {
        let site = site(&upstream);
        let server = site.http();
        let reading = read_over_http(&server, reach(&upstream));
        let (call, _) = upstream.accept().unwrap();
        server.process.terminate();
        answer_during_the_stop(&server.process, call);
        let answer = reading.join().expect("a whole answer");
        assert_eq!(server.stop().status.code(), Some(0));
        match answer {
            Ok(_) => return,
            Err(error) => assert!(shuts_down(&error), "{error}"),
        }
    }
    panic!("no answer came in {ATTEMPTS} attempts");
}

/// The upstream never answers. The limit of the call is longer than the test waits for the end of the server.
#[test]
fn a_stop_cancels_a_call_that_does_not_end() {
    let upstream = upstream();
    let site = site(&upstream);
    let server = site.http();
    let reading = read_over_http(&server, reach(&upstream));
    let _call = upstream.accept().unwrap();
    assert_eq!(server.stop().status.code(), Some(0));
    let error = reading.join().expect("a whole answer").expect_err("the server cancelled the read");
    assert!(shuts_down(&error), "{error}");
    assert_eq!(last_read(&site)["outcome"], "cancelled", "the record contains the cancelled call");
}

#[test]
fn the_server_ends_when_its_client_on_stdio_disconnects() {
    let upstream = upstream();
    let site = site(&upstream);
    let mut client = site.stdio(Era::Stateless);
    let id = client.send("resources/read", json!({ "uri": reach(&upstream) }));
    let _call = upstream.accept().unwrap();
    client.wire().end();
    let error = client.wait(id).expect_err("the server cancelled the read");
    assert!(shuts_down(&error), "{error}");
    assert_eq!(client.close().status.code(), Some(0));
    assert_eq!(last_read(&site)["outcome"], "cancelled");
}

/// True if the error says that the server shuts down.
fn shuts_down(error: &RpcError) -> bool {
    error.message.contains("shutting down") && error.data["kind"] == "unavailable"
}

/// True if a request may fail with this error during a stop: the server shuts down, or the call reached a limit.
fn is_expected(error: &RpcError) -> bool {
    shuts_down(error) || error.data["kind"] == "limit"
}

/// The last read in the audit record. Records of other operations may follow it.
fn last_read(site: &Site) -> Value {
    site.audit().into_iter().rfind(|record| record["operation"] == "read").expect("a record of a read")
}

/// Stops a server during reads, many times, in both protocol eras and on both transports. The server must answer each
/// request, and must not panic.
#[test]
fn every_stop_answers_every_request() {
    const ROUNDS: usize = 12;
    let upstream = upstream();
    let site = site(&upstream);
    // The reads wait, compute, or end quickly.
    let reads = ["sleep/500000", "spin", "ok", "sleep/300", "text/100000"];
    for round in 0..ROUNDS {
        let era = Era::ALL[round % 2];
        if round % 3 == 2 {
            let server = site.http();
            let reading: Vec<_> = (0..reads.len())
                .map(|n| {
                    let (mut client, uri) = (server.client(era), format!("{}{n}", reach(&upstream)));
                    std::thread::spawn(move || client.read(&uri))
                })
                .collect();
            // After the upstream has accepted all connections, all reads run.
            let _calls: Vec<_> = reading.iter().map(|_| upstream.accept().unwrap()).collect();
            let ended = server.stop();
            assert_eq!(ended.status.code(), Some(0), "round {round}: {}", ended.stderr);
            assert!(!ended.stderr.contains("panicked"), "round {round}: {}", ended.stderr);
            for thread in reading {
                let answer = thread.join().unwrap_or_else(|_| panic!("round {round}, {era:?}: no answer"));
                assert!(answer.as_ref().err().is_none_or(is_expected), "round {round}: {answer:?}");
            }
        } else {
            let mut client = site.stdio(era);
            let ids =
                reads.map(|read| client.send("resources/read", json!({ "uri": format!("belljar://hostile/{read}") })));
            // The answer to a later request shows that the server has received all reads.
            client.ping();
            std::thread::sleep(Duration::from_millis(20 * round as u64));
            client.wire().process.terminate();
            for (id, read) in ids.into_iter().zip(reads) {
                let answer = client.wait(id);
                assert!(answer.as_ref().err().is_none_or(is_expected), "round {round}, {read}: {answer:?}");
            }
            let ended = client.close();
            assert_eq!(ended.status.code(), Some(0), "round {round}: {}", ended.stderr);
            assert!(!ended.stderr.contains("panicked"), "round {round}: {}", ended.stderr);
        }
    }
}

/// Each request over HTTP gets an answer while belljar is told to stop: with clients that keep their connection, and with
/// those that open one for each request. A refused request has the status 503, so that a client tries again elsewhere.
#[test]
fn no_request_over_http_is_left_without_an_answer() {
    for delay in ["0s", "300ms"] {
        let site = crate::support::empty();
        site.mount_as("guest_fixture", "fixture.wasm");
        site.config(&format!("[serve]\ndrain-delay = \"{delay}\"\n[limits]\ntime = \"60s\"\n"));
        let server = site.http();
        let wire = server.wire(Era::Stateless);
        let message = Era::Stateless.message(1, "resources/read", json!({ "uri": "belljar://fixture/static-text" }));
        let request = server.request(&wire, &message);
        let lost = std::thread::scope(|scope| {
            let clients: Vec<_> = (0..8)
                .map(|at| {
                    let (server, request) = (&server, &request);
                    scope.spawn(move || ask_until_refused(server.address(), request, at % 2 == 0))
                })
                .collect();
            std::thread::sleep(Duration::from_millis(300));
            server.process.terminate();
            clients.into_iter().map(|client| client.join().unwrap()).collect::<Vec<_>>()
        });
        let answered: usize = lost.iter().map(|(answers, _)| answers.len()).sum();
        let (answers, lost): (Vec<_>, Vec<_>) = lost.into_iter().unzip();
        let lost: Vec<_> = lost.into_iter().flatten().collect();
        assert!(answered > 100, "{answered}");
        for answer in answers.iter().flatten() {
            let expected = if answer.contains("shutting down") { "http/1.1 503" } else { "http/1.1 200" };
            assert!(answer.starts_with(expected), "{answer}");
            assert_eq!(answer.contains("retry-after: 1"), expected.ends_with("503"), "{answer}");
        }
        assert_eq!(lost, Vec::<String>::new(), "{answered} answered");
        assert!(server.stop().status.success());
    }
}

/// Sends the same request again and again, until no connection is accepted. Returns the answers, and why others are
/// missing. `keeps`: the connection is kept, unless the answer closes it.
fn ask_until_refused(address: std::net::SocketAddr, request: &[u8], keeps: bool) -> (Vec<String>, Vec<String>) {
    let (mut answered, mut lost, mut connection) = (Vec::new(), Vec::new(), None::<TcpStream>);
    loop {
        let mut stream = match connection.take().map_or_else(|| TcpStream::connect(address), Ok) {
            Ok(stream) => stream,
            Err(_) => return (answered, lost),
        };
        stream.set_read_timeout(Some(Duration::from_secs(60))).unwrap();
        match exchange(&mut stream, request) {
            Ok(answer) => {
                connection = (keeps && !answer.contains("connection: close")).then_some(stream);
                answered.push(answer);
            }
            Err(why) => lost.push(why.to_string()),
        }
    }
}

/// Sends a request, and reads the whole answer. Returns it in small letters.
fn exchange(stream: &mut TcpStream, request: &[u8]) -> std::io::Result<String> {
    use std::io::Read as _;

    stream.write_all(request)?;
    let (mut answer, mut piece) = (Vec::new(), [0; 4096]);
    loop {
        let text = String::from_utf8_lossy(&answer).to_ascii_lowercase();
        if let Some((head, body)) = text.split_once("\r\n\r\n") {
            let length = head.split("content-length: ").nth(1).and_then(|rest| rest.lines().next()?.parse().ok());
            if body.len() >= length.unwrap_or(0) {
                return Ok(text);
            }
        }
        match stream.read(&mut piece)? {
            0 => return Err(std::io::ErrorKind::UnexpectedEof.into()),
            read => answer.extend_from_slice(&piece[..read]),
        }
    }
}
