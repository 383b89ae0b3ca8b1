//! A server in front of a registry, for what the registry of Debian lacks: it gives tokens to users with a password, lists what
//! refers to a manifest, and is slow.

use std::collections::BTreeMap;
use std::io::{BufRead as _, BufReader, Read as _, Write as _};
use std::net::{Shutdown, SocketAddr, TcpListener, TcpStream};
use std::sync::atomic::{AtomicBool, Ordering};
use std::sync::{Arc, Mutex, PoisonError};
use std::time::Duration;

use base64::Engine as _;
use base64::engine::general_purpose::STANDARD;
use serde_json::{Value, json};

use super::token::TokenKey;

/// The descriptors of what refers to a manifest, by its digest.
pub(super) type Referrers = Arc<Mutex<BTreeMap<String, Vec<Value>>>>;

/// What the front answers itself.
#[derive(Clone, Debug)]
pub(super) enum Service {
    /// The list of referrers.
    Referrers(Referrers),
    /// Tokens, for the user with this name and password.
    Tokens { key: Arc<TokenKey>, login: String },
    /// A blob comes byte by byte after its first part.
    Slow(Arc<Slowness>),
}

/// The state of a slow front.
#[derive(Debug, Default)]
pub(super) struct Slowness {
    /// True if blobs come at their usual speed.
    pub(super) is_over: AtomicBool,
    /// The ranges of blobs that were asked for.
    pub(super) ranges: Mutex<Vec<String>>,
}

/// The bytes of a blob that come at their usual speed.
const FIRST: u64 = 256 * 1024;

/// Starts a front of the registry at `behind`. Returns its port. Its threads end with the test process.
pub(super) fn start(behind: SocketAddr, service: Service) -> u16 {
    let listener = TcpListener::bind(("127.0.0.1", 0)).expect("a free port");
    let port = listener.local_addr().expect("a bound socket").port();
    std::thread::spawn(move || {
        for stream in listener.incoming().flatten() {
            let service = service.clone();
            // A client may close its connection at any time.
            std::thread::spawn(move || serve(stream, behind, &service));
        }
    });
    port
}

/// Answers one request, and closes the connection.
fn serve(client: TcpStream, behind: SocketAddr, service: &Service) -> Option<()> {
    let mut reader = BufReader::new(client);
    let mut head = String::new();
    while !head.ends_with("\r\n\r\n") {
        (reader.read_line(&mut head).ok()? > 0).then_some(())?;
    }
    let path = head.split(' ').nth(1)?.to_owned();
    let header = |name: &str| {
        let fields = head.lines().filter_map(|line| line.split_once(':'));
        let mut values = fields.filter(|(known, _)| known.eq_ignore_ascii_case(name)).map(|(_, value)| value.trim());
        values.next()
    };
    match service {
        Service::Referrers(referrers) if path.contains("/referrers/") => {
            let all = referrers.lock().unwrap_or_else(PoisonError::into_inner);
            let manifests = path.rsplit('/').next().and_then(|subject| all.get(subject)).cloned().unwrap_or_default();
            let kind = "application/vnd.oci.image.index.v1+json";
            return answer(
                reader,
                "200 OK",
                kind,
                &json!({ "schemaVersion": 2, "mediaType": kind, "manifests": manifests }),
            );
        }
        Service::Tokens { key, login } if path.starts_with("/token?") => {
            let basic = format!("Basic {}", STANDARD.encode(login));
            let kind = "application/json";
            return match header("authorization") {
                Some(given) if given == basic => {
                    answer(reader, "200 OK", kind, &json!({ "token": key.sign(&scope(&path)) }))
                }
                // As Docker Hub: a token of nobody, which opens nothing that is private.
                None => answer(reader, "200 OK", kind, &json!({ "token": key.sign("") })),
                Some(_) => answer(reader, "401 Unauthorized", kind, &json!({ "details": "incorrect login" })),
            };
        }
        _ => {}
    }
    let length: u64 = header("content-length").map_or(0, |length| length.parse().unwrap_or(0));
    let mut registry = TcpStream::connect(behind).ok()?;
    let kept = head.trim_end().lines().filter(|line| !line.to_ascii_lowercase().starts_with("connection:"));
    let sent = kept.collect::<Vec<_>>().join("\r\n") + "\r\nConnection: close\r\n\r\n";
    registry.write_all(sent.as_bytes()).ok()?;
    std::io::copy(&mut reader.by_ref().take(length), &mut registry).ok()?;
    let mut client = reader.into_inner();
    if let Service::Slow(slowness) = service
        && path.contains("/blobs/")
    {
        let range = header("range").map(str::to_owned);
        slowness.ranges.lock().unwrap_or_else(PoisonError::into_inner).extend(range);
        std::io::copy(&mut (&mut registry).take(FIRST), &mut client).ok()?;
        let mut byte = [0];
        while !slowness.is_over.load(Ordering::Relaxed) && registry.read(&mut byte).ok()? > 0 {
            client.write_all(&byte).ok()?;
            std::thread::sleep(Duration::from_millis(20));
        }
    }
    std::io::copy(&mut registry, &mut client).ok()?;
    client.shutdown(Shutdown::Both).ok()
}

/// The scope in the query: what the token shall allow.
fn scope(path: &str) -> String {
    let value = path.split(['?', '&']).find_map(|field| field.strip_prefix("scope=")).unwrap_or_default();
    ["%3A", "%2F", "%2D", "%2E"]
        .iter()
        .zip([":", "/", "-", "."])
        .fold(value.to_owned(), |text, (code, plain)| text.replace(code, plain))
}

fn answer(reader: BufReader<TcpStream>, status: &str, kind: &str, body: &Value) -> Option<()> {
    let body = body.to_string();
    let length = body.len();
    let text = format!(
        "HTTP/1.1 {status}\r\nContent-Type: {kind}\r\nContent-Length: {length}\r\nConnection: close\r\n\r\n{body}"
    );
    reader.into_inner().write_all(text.as_bytes()).ok()
}
