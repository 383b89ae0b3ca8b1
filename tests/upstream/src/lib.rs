//! Servers for tests. A test grants their addresses to a provider. The HTTP server on loopback, plain or with TLS,
//! counts connections and records requests. The DNS server gives the answers that the test sets.
#![expect(clippy::expect_used, clippy::panic, reason = "a test reports a failure by a panic")]

pub mod client;
pub mod issuer;
pub mod postgres;
mod token_key;

use std::collections::HashMap;
use std::io::{ErrorKind, Read, Write};
use std::net::{IpAddr, Ipv4Addr, SocketAddr, TcpListener, TcpStream, ToSocketAddrs, UdpSocket};
use std::sync::atomic::{AtomicBool, AtomicUsize, Ordering};
use std::sync::{Arc, Mutex, MutexGuard, PoisonError};
use std::thread::{self, JoinHandle};
use std::time::{Duration, Instant};

use rcgen::{BasicConstraints, CertificateParams, CertifiedIssuer, IsCa, KeyPair};
use rustls::pki_types::{PrivateKeyDer, PrivatePkcs8KeyDer};
use rustls::{ServerConfig, ServerConnection};

pub use token_key::TokenKey;

/// The longest wait of a connection for its client. A test waits for less time until the client closes the connection.
/// Otherwise, the end of this wait would look as if the client had closed.
const PATIENCE: Duration = Duration::from_secs(120);

/// A received request: the head, and the body by `content-length` or by chunks.
#[derive(Clone, Debug)]
pub struct ReceivedRequest {
    /// The request line.
    pub line: String,
    /// The headers: names in lower case, and values.
    pub headers: Vec<(String, String)>,
    /// The number of received bytes of the body, with the marks of chunks.
    pub body: usize,
    /// The beginning of the body, at most 4 KiB.
    pub start: Vec<u8>,
}

/// Bytes of a body that are kept.
const START: usize = 4 << 10;

impl ReceivedRequest {
    /// The value of a header.
    pub fn header(&self, name: &str) -> Option<&str> {
        self.headers.iter().find(|(own, _)| own == name).map(|(_, value)| value.as_str())
    }

    /// The path with the query.
    pub fn path(&self) -> &str {
        self.line.split(' ').nth(1).unwrap_or_default()
    }
}

/// A connection, plain or with TLS.
pub trait Stream: Read + Write + Send {
    /// Sets the longest wait for the client.
    fn wait_at_most(&self, time: Duration);
}

impl Stream for TcpStream {
    fn wait_at_most(&self, time: Duration) {
        self.set_read_timeout(Some(time)).expect("a time");
    }
}

impl Stream for rustls::Stream<'_, ServerConnection, TcpStream> {
    fn wait_at_most(&self, time: Duration) {
        self.sock.set_read_timeout(Some(time)).expect("a time");
    }
}

/// The counts and requests of a server, shared by its threads.
#[derive(Default)]
struct Shared {
    connections: AtomicUsize,
    open: AtomicUsize,
    /// The most open connections at the same time.
    most: AtomicUsize,
    asked: Mutex<Vec<ReceivedRequest>>,
    is_over: AtomicBool,
    /// The connections whose handlers run.
    handled: Mutex<HashMap<usize, TcpStream>>,
}

impl Shared {
    fn handled(&self) -> MutexGuard<'_, HashMap<usize, TcpStream>> {
        self.handled.lock().unwrap_or_else(PoisonError::into_inner)
    }

    /// Adds a connection. Returns how many are open. On a busy machine, the handlers of closed ones may not have run yet.
    fn add(&self, number: usize, stream: &TcpStream) -> usize {
        let mut handled = self.handled();
        handled.extend(stream.try_clone().map(|stream| (number, stream)));
        handled.values().filter(|stream| is_open(stream)).count()
    }
}

/// False if the client has closed the connection, also if its handler does not know that yet. Takes no byte.
fn is_open(stream: &TcpStream) -> bool {
    let flags = rustix::net::RecvFlags::PEEK | rustix::net::RecvFlags::DONTWAIT;
    !matches!(rustix::net::recv(stream, &mut [0_u8; 1][..], flags), Ok((_, 0)))
}

/// An HTTP server. It runs until this value is dropped.
pub struct Upstream {
    address: SocketAddr,
    shared: Arc<Shared>,
    /// The thread that accepts connections.
    accepting: Option<JoinHandle<()>>,
}

/// A function that makes the bytes of an answer.
type Answer = Arc<dyn Fn(&ReceivedRequest) -> Vec<u8> + Send + Sync>;

impl Upstream {
    /// Starts a server on loopback. It sends the bytes of `answer` to each request, and closes the connection.
    pub fn plain(answer: impl Fn(&ReceivedRequest) -> Vec<u8> + Send + Sync + 'static) -> Upstream {
        Self::at((Ipv4Addr::LOCALHOST, 0), answer)
    }

    /// Like [`Upstream::plain`], at this address.
    pub fn at(
        address: impl ToSocketAddrs,
        answer: impl Fn(&ReceivedRequest) -> Vec<u8> + Send + Sync + 'static,
    ) -> Upstream {
        let answer: Answer = Arc::new(answer);
        Self::listen(address, None, move |stream, shared| serve(stream, shared, &answer))
    }

    /// Like [`Upstream::plain`], over TLS.
    pub fn tls(
        config: Arc<ServerConfig>,
        answer: impl Fn(&ReceivedRequest) -> Vec<u8> + Send + Sync + 'static,
    ) -> Upstream {
        let answer: Answer = Arc::new(answer);
        Self::start(Some(config), move |stream, shared| serve(stream, shared, &answer))
    }

    /// Starts a server on loopback. It calls `handle` for each connection, which counts as open until `handle` returns.
    pub fn raw(handle: impl Fn(&mut dyn Stream) + Send + Sync + 'static) -> Upstream {
        Self::start(None, move |stream, _| handle(stream))
    }

    /// Like [`Upstream::raw`], over TLS.
    pub fn raw_tls(config: Arc<ServerConfig>, handle: impl Fn(&mut dyn Stream) + Send + Sync + 'static) -> Upstream {
        Self::start(Some(config), move |stream, _| handle(stream))
    }

    fn start(
        tls: Option<Arc<ServerConfig>>,
        handle: impl Fn(&mut dyn Stream, &Shared) + Send + Sync + 'static,
    ) -> Upstream {
        Self::listen((Ipv4Addr::LOCALHOST, 0), tls, handle)
    }

    fn listen(
        address: impl ToSocketAddrs,
        tls: Option<Arc<ServerConfig>>,
        handle: impl Fn(&mut dyn Stream, &Shared) + Send + Sync + 'static,
    ) -> Upstream {
        let listener = TcpListener::bind(address).expect("a free port");
        let address = listener.local_addr().expect("an address");
        let shared = Arc::new(Shared::default());
        let (own, handle) = (Arc::clone(&shared), Arc::new(handle));
        let accepting = thread::spawn(move || {
            for (number, stream) in listener.incoming().flatten().enumerate() {
                if own.is_over.load(Ordering::SeqCst) {
                    break;
                }
                own.connections.fetch_add(1, Ordering::SeqCst);
                own.open.fetch_add(1, Ordering::SeqCst);
                own.most.fetch_max(own.add(number, &stream), Ordering::SeqCst);
                let (shared, handle, tls) = (Arc::clone(&own), Arc::clone(&handle), tls.clone());
                thread::spawn(move || {
                    let mut stream = stream;
                    let mut session = tls.map(|config| ServerConnection::new(config).expect("a TLS configuration"));
                    match &mut session {
                        None => handle(&mut stream, &shared),
                        Some(session) => handle(&mut rustls::Stream::new(session, &mut stream), &shared),
                    }
                    shared.handled().remove(&number);
                    drop(stream);
                    shared.open.fetch_sub(1, Ordering::SeqCst);
                });
            }
        });
        Upstream { address, shared, accepting: Some(accepting) }
    }

    /// The address on which the server listens.
    pub fn address(&self) -> SocketAddr {
        self.address
    }

    /// The port on which the server listens.
    pub fn port(&self) -> u16 {
        self.address.port()
    }

    /// The number of connections so far.
    pub fn connections(&self) -> usize {
        self.shared.connections.load(Ordering::SeqCst)
    }

    /// The most open connections at the same time.
    pub fn most_open(&self) -> usize {
        self.shared.most.load(Ordering::SeqCst)
    }

    /// True if all connections end within `patience`.
    pub fn all_closed_within(&self, patience: Duration) -> bool {
        let end = Instant::now() + patience;
        while self.shared.open.load(Ordering::SeqCst) > 0 {
            if Instant::now() > end {
                return false;
            }
            thread::sleep(Duration::from_millis(5));
        }
        true
    }

    /// Forgets the connections and requests so far.
    pub fn forget(&self) {
        self.shared.connections.store(0, Ordering::SeqCst);
        self.shared.most.store(self.shared.open.load(Ordering::SeqCst), Ordering::SeqCst);
        self.shared.asked.lock().unwrap_or_else(PoisonError::into_inner).clear();
    }

    /// The requests so far, in the order of their arrival.
    pub fn requests(&self) -> Vec<ReceivedRequest> {
        self.shared.asked.lock().unwrap_or_else(PoisonError::into_inner).clone()
    }
}

impl Drop for Upstream {
    fn drop(&mut self) {
        self.shared.is_over.store(true, Ordering::SeqCst);
        // Connect once, to wake the thread that accepts connections. When it has ended, the port is closed.
        if TcpStream::connect(self.address).is_ok()
            && let Some(accepting) = self.accepting.take()
        {
            let _ = accepting.join();
        }
    }
}

impl std::fmt::Debug for Upstream {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        write!(f, "Upstream({})", self.address)
    }
}

fn serve(stream: &mut dyn Stream, shared: &Shared, answer: &Answer) {
    let Some(asked) = request(stream) else { return };
    shared.asked.lock().unwrap_or_else(PoisonError::into_inner).push(asked.clone());
    let bytes = answer(&asked);
    if stream.write_all(&bytes).and_then(|()| stream.flush()).is_ok() {
        // Wait until the client has read the answer.
        until_closed(stream, PATIENCE);
    }
}

/// Reads and drops bytes until the client closes the connection. Returns false if the client does not close within
/// `patience`.
pub fn until_closed(stream: &mut dyn Stream, patience: Duration) -> bool {
    stream.wait_at_most(Duration::from_millis(50));
    let end = Instant::now() + patience;
    let mut bytes = [0; 16 << 10];
    while Instant::now() < end {
        match stream.read(&mut bytes) {
            Ok(0) => return true,
            Ok(_) => {}
            Err(error) if matches!(error.kind(), ErrorKind::WouldBlock | ErrorKind::TimedOut) => {}
            Err(_) => return true,
        }
    }
    false
}

/// Reads one request. `None` if the client closes the connection before the end of the request.
pub fn request(stream: &mut dyn Stream) -> Option<ReceivedRequest> {
    stream.wait_at_most(PATIENCE);
    let mut head = Vec::new();
    let mut byte = [0];
    while !head.ends_with(b"\r\n\r\n") {
        if head.len() > 1 << 20 || stream.read(&mut byte).ok()? == 0 {
            return None;
        }
        head.push(byte[0]);
    }
    let head = String::from_utf8_lossy(&head).into_owned();
    let mut lines = head.lines();
    let line = lines.next()?.to_owned();
    let header = |line: &str| line.split_once(": ").map(|(name, value)| (name.to_ascii_lowercase(), value.to_owned()));
    let headers: Vec<(String, String)> = lines.filter_map(header).collect();
    let mut asked = ReceivedRequest { line, headers, body: 0, start: Vec::new() };
    let length: Option<usize> = asked.header("content-length").and_then(|length| length.parse().ok());
    let is_chunked = asked.header("transfer-encoding").is_some();
    let mut bytes = [0; 16 << 10];
    let mut end = Vec::new();
    while length.is_some_and(|length| asked.body < length) || (is_chunked && !end.ends_with(b"0\r\n\r\n")) {
        let read = stream.read(&mut bytes).ok()?;
        if read == 0 {
            return None;
        }
        asked.body += read;
        let room = START.saturating_sub(asked.start.len()).min(read);
        asked.start.extend_from_slice(bytes.get(..room)?);
        end.extend_from_slice(bytes.get(..read)?);
        end.drain(..end.len().saturating_sub(8));
    }
    Some(asked)
}

/// The bytes of a complete answer. Each line of `headers` must end with a line break. Adds `content-length`.
pub fn answer(status: &str, headers: &str, body: impl AsRef<[u8]>) -> Vec<u8> {
    let body = body.as_ref();
    let head = format!("HTTP/1.1 {status}\r\ncontent-length: {}\r\n{headers}\r\n", body.len());
    [head.as_bytes(), body].concat()
}

/// An answer whose body contains the request line and the headers of the request.
pub fn echo(asked: &ReceivedRequest) -> Vec<u8> {
    let headers: String = asked.headers.iter().map(|(name, value)| format!("{name}: {value}\n")).collect();
    let authorization = asked.header("authorization").unwrap_or("none");
    answer("200 OK", &format!("x-echo: {authorization}\r\n"), format!("{}\n{headers}", asked.line))
}

/// A certificate authority for tests.
pub struct Authority {
    issuer: CertifiedIssuer<'static, KeyPair>,
}

impl Authority {
    /// Creates an authority with a new key.
    pub fn new() -> Authority {
        let mut params = CertificateParams::new(Vec::new()).expect("parameters");
        params.is_ca = IsCa::Ca(BasicConstraints::Unconstrained);
        let key = KeyPair::generate().expect("a key");
        Authority { issuer: CertifiedIssuer::self_signed(params, key).expect("a certificate") }
    }

    /// The certificate of the authority, in PEM.
    pub fn pem(&self) -> String {
        self.issuer.as_ref().pem()
    }

    /// A TLS configuration of a server with a certificate for these names or addresses.
    pub fn server(&self, names: &[&str]) -> Arc<ServerConfig> {
        self.signed(parameters(names))
    }

    /// A TLS configuration of a server with an expired certificate.
    pub fn expired(&self, names: &[&str]) -> Arc<ServerConfig> {
        let mut params = parameters(names);
        params.not_after = rcgen::date_time_ymd(2001, 1, 1);
        self.signed(params)
    }

    /// A certificate for these names and its key, in PEM.
    pub fn pair(&self, names: &[&str]) -> (String, String) {
        let key = KeyPair::generate().expect("a key");
        (parameters(names).signed_by(&key, &self.issuer).expect("a certificate").pem(), key.serialize_pem())
    }

    fn signed(&self, params: CertificateParams) -> Arc<ServerConfig> {
        let key = KeyPair::generate().expect("a key");
        let certificate = params.signed_by(&key, &self.issuer).expect("a certificate");
        configured(certificate.der().to_vec(), &key)
    }

    /// A TLS configuration of a server with a self-signed certificate.
    pub fn stranger(names: &[&str]) -> Arc<ServerConfig> {
        let names: Vec<String> = names.iter().map(|name| (*name).to_owned()).collect();
        let key = KeyPair::generate().expect("a key");
        let certificate =
            CertificateParams::new(names).and_then(|params| params.self_signed(&key)).expect("a certificate");
        configured(certificate.der().to_vec(), &key)
    }
}

impl Default for Authority {
    fn default() -> Self {
        Self::new()
    }
}

fn parameters(names: &[&str]) -> CertificateParams {
    let names: Vec<String> = names.iter().map(|name| (*name).to_owned()).collect();
    CertificateParams::new(names).expect("names")
}

fn configured(certificate: Vec<u8>, key: &KeyPair) -> Arc<ServerConfig> {
    let key = PrivateKeyDer::Pkcs8(PrivatePkcs8KeyDer::from(key.serialize_der()));
    let provider = Arc::new(rustls::crypto::ring::default_provider());
    let config = ServerConfig::builder_with_provider(provider).with_safe_default_protocol_versions().expect("versions");
    Arc::new(
        config
            .with_no_client_auth()
            .with_single_cert(vec![certificate.into()], key)
            .expect("a certificate that matches the key"),
    )
}

/// A DNS server (RFC 1035) over UDP, on a free port of loopback.
pub struct DnsServer {
    address: SocketAddr,
    asked: Arc<AtomicUsize>,
}

impl DnsServer {
    /// Starts a server. It returns the given addresses for each of `names`, and "no such name" for all other names.
    pub fn start(names: &[(&str, &[&str])]) -> DnsServer {
        let socket = UdpSocket::bind("127.0.0.1:0").expect("a free port");
        let address = socket.local_addr().expect("an address");
        let asked = Arc::new(AtomicUsize::new(0));
        let known: Vec<(String, Vec<IpAddr>)> = names
            .iter()
            .map(|(name, addresses)| {
                ((*name).to_owned(), addresses.iter().map(|address| address.parse().expect("an address")).collect())
            })
            .collect();
        let count = Arc::clone(&asked);
        thread::spawn(move || {
            let mut query = [0; 1500];
            while let Ok((length, from)) = socket.recv_from(&mut query) {
                count.fetch_add(1, Ordering::SeqCst);
                if let Some(reply) = query.get(..length).and_then(|query| reply(query, &known)) {
                    let _ = socket.send_to(&reply, from);
                }
            }
        });
        DnsServer { address, asked }
    }

    /// A socket that never answers, and its address.
    pub fn silent() -> (UdpSocket, SocketAddr) {
        let socket = UdpSocket::bind("127.0.0.1:0").expect("a free port");
        let address = socket.local_addr().expect("an address");
        (socket, address)
    }

    /// The address on which the server listens.
    pub fn address(&self) -> SocketAddr {
        self.address
    }

    /// The number of queries.
    pub fn queries(&self) -> usize {
        self.asked.load(Ordering::SeqCst)
    }
}

impl std::fmt::Debug for DnsServer {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        write!(f, "DnsServer({})", self.address)
    }
}

/// The DNS answer to `query`. `None` if the query is malformed. `known` are the names with their addresses.
fn reply(query: &[u8], known: &[(String, Vec<IpAddr>)]) -> Option<Vec<u8>> {
    const HEADER: usize = 12;
    let mut at = HEADER;
    let mut labels = Vec::new();
    loop {
        let length = usize::from(*query.get(at)?);
        at += 1;
        if length == 0 {
            break;
        }
        labels.push(String::from_utf8_lossy(query.get(at..at + length)?).to_ascii_lowercase());
        at += length;
    }
    let kind = u16::from_be_bytes(query.get(at..at + 2)?.try_into().ok()?);
    let question = query.get(HEADER..at + 4)?;
    let name = labels.join(".");
    let addresses = known.iter().find(|(own, _)| *own == name).map(|(_, addresses)| addresses);
    let records: Vec<Vec<u8>> = addresses
        .into_iter()
        .flatten()
        .filter_map(|address| match (kind, address) {
            (1, IpAddr::V4(v4)) => Some(v4.octets().to_vec()),
            (28, IpAddr::V6(v6)) => Some(v6.octets().to_vec()),
            _ => None,
        })
        .collect();
    let mut out = query.get(..2)?.to_vec();
    // The flags: an answer, with recursion. RCODE 3 means that the name does not exist.
    out.extend([0x81, if addresses.is_some() { 0x80 } else { 0x83 }]);
    out.extend([0, 1, 0, u8::try_from(records.len()).ok()?, 0, 0, 0, 0]);
    out.extend_from_slice(question);
    for data in records {
        // One record. Its name is a pointer to the name in the question; the class is IN, and the TTL is 0.
        out.extend([0xc0, 0x0c]);
        out.extend(kind.to_be_bytes());
        out.extend([0, 1, 0, 0, 0, 0]);
        out.extend(u16::try_from(data.len()).ok()?.to_be_bytes());
        out.extend(data);
    }
    Some(out)
}
