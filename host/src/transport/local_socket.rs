//! MCP over the local socket of one user: one belljar serves all clients of that user. Each connection is served as
//! standard input and output are, with a session of its own.
//!
//! The first line of a connection is a [`Greeting`]. The answer to [`Greeting::Status`] is one line, a [`ServingStatus`]. After
//! [`Greeting::Join`], the lines are messages of MCP. If belljar refuses a connection, it answers with a [`JoinRefusal`] and
//! closes it.

mod halves;
mod lent;

use std::collections::BTreeMap;
use std::pin::pin;
use std::sync::{Arc, Mutex, PoisonError};
use std::time::{Duration, SystemTime};

use belljar_join::{Greeting, JoinRefusal, PROTOCOL};
use rustix::process::{Uid, geteuid};
use serde::{Deserialize, Serialize};
use tokio::io::AsyncWriteExt;
use tokio::net::{UnixListener, UnixStream};
use tokio::task::JoinSet;
use tokio_util::sync::CancellationToken;

use lent::FirstLine;

use super::stdio;
use crate::mcp::Handler;
use crate::transport::limits::{DRAIN, LAST_ANSWERS_TIME, LAST_READ_TIME};

/// The most connections at the same time. Further ones are refused.
const MAX_CONNECTIONS: usize = 512;

/// A connection must send its greeting within this time.
const GREETING_TIME: Duration = Duration::from_secs(10);

/// The longest greeting, in bytes.
const MAX_GREETING: usize = 1 << 10;

/// What a running belljar says of itself.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub struct ServingStatus {
    /// The process id.
    pub pid: u32,
    /// The version of the program.
    pub version: String,
    /// When it began to serve, in seconds since 1970.
    pub since: u64,
    /// The connected clients, in the order in which they came.
    pub clients: Vec<ConnectedClient>,
}

/// A connected client.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub struct ConnectedClient {
    /// The process that connected: the one that the client's program started. `None` if the kernel does not say.
    pub pid: Option<i32>,
    /// When it connected, in seconds since 1970.
    pub since: u64,
}

/// The connected clients, by the number of their connection.
#[derive(Default)]
struct Clients(Mutex<BTreeMap<u64, ConnectedClient>>);

impl Clients {
    fn with<T>(&self, work: impl FnOnce(&mut BTreeMap<u64, ConnectedClient>) -> T) -> T {
        work(&mut self.0.lock().unwrap_or_else(PoisonError::into_inner))
    }
}

/// A place in the table of clients, freed when it is dropped.
struct Seat<'a> {
    clients: &'a Clients,
    number: u64,
}

impl Drop for Seat<'_> {
    fn drop(&mut self) {
        self.clients.with(|all| all.remove(&self.number));
    }
}

/// What all connections share.
struct Endpoint {
    handler: Handler,
    clients: Clients,
    /// The id of this process.
    pid: u32,
    since: u64,
    /// Cancelled when belljar stops.
    stopping: CancellationToken,
}

/// Serves on `listener` until `stop` completes. Running requests may continue for the time of the drain; then they are
/// stopped. Each is answered. `pid`: the id of this process.
pub async fn serve(handler: Handler, listener: UnixListener, pid: u32, stop: impl Future<Output = ()>) {
    let endpoint = Arc::new(Endpoint {
        handler,
        clients: Clients::default(),
        pid,
        since: seconds(SystemTime::now()),
        stopping: CancellationToken::new(),
    });
    let mut connections = JoinSet::new();
    let mut stop = pin!(stop);
    let mut number = 0;
    loop {
        let accepted = tokio::select! {
            biased;
            () = &mut stop => break,
            Some(_) = connections.join_next() => continue,
            accepted = listener.accept() => accepted,
        };
        match accepted {
            Ok((stream, _)) => {
                number += 1;
                let is_full = connections.len() >= MAX_CONNECTIONS;
                connections.spawn(Arc::clone(&endpoint).serve(stream, number, is_full));
            }
            Err(error) => {
                // The process probably has no free file descriptor.
                tracing::warn!("cannot accept a connection of the local socket: {error}");
                tokio::time::sleep(Duration::from_millis(100)).await;
            }
        }
    }
    drop(listener);
    endpoint.handler.begin_shutdown();
    endpoint.stopping.cancel();
    let all = async { while connections.join_next().await.is_some() {} };
    let _ = tokio::time::timeout(DRAIN + LAST_ANSWERS_TIME + LAST_READ_TIME, all).await;
}

impl Endpoint {
    /// Serves one connection. `is_full`: there are too many already.
    async fn serve(self: Arc<Self>, stream: UnixStream, number: u64, is_full: bool) {
        // Only this user can reach the socket. The check also holds if someone opens its directory to others.
        let peer = match stream.peer_cred() {
            Ok(peer) if is_own_user(peer.uid()) => peer,
            Ok(peer) => return tracing::warn!("a connection of user {} to the local socket is refused", peer.uid()),
            Err(error) => return tracing::warn!("a connection to the local socket is refused: {error}"),
        };
        let line = tokio::select! {
            line = tokio::time::timeout(GREETING_TIME, FirstLine::read(&stream, MAX_GREETING)) => line,
            () = self.stopping.cancelled() => return,
        };
        let line = line.ok().and_then(Result::ok).flatten().unwrap_or_default();
        let greeting = serde_json::from_slice(line.bytes()).ok();
        let halves =
            stream.into_std().and_then(|stream| halves::split(stream, line.into_lent(), self.handler.closing()));
        let (input, mut output) = match halves {
            Ok(halves) => halves,
            Err(error) => return tracing::warn!("a connection to the local socket is refused: {error}"),
        };
        let refused = match greeting {
            Some(Greeting::Status) => {
                let clients = self.clients.with(|all| all.values().copied().collect());
                let version = env!("CARGO_PKG_VERSION").to_owned();
                let status = ServingStatus { pid: self.pid, version, since: self.since, clients };
                let _ = write(&mut output, &status).await;
                return;
            }
            Some(Greeting::Join { .. }) if is_full => format!(
                "{MAX_CONNECTIONS} clients are connected already; close some, or start this one with: belljar serve --alone"
            ),
            Some(Greeting::Join { protocol: PROTOCOL }) => {
                let client = ConnectedClient { pid: peer.pid(), since: seconds(SystemTime::now()) };
                self.clients.with(|all| all.insert(number, client));
                let _seat = Seat { clients: &self.clients, number };
                let stop = self.stopping.clone().cancelled_owned();
                if let Err(error) = stdio::serve_on(self.handler.for_connection(), (input, output), stop).await {
                    tracing::debug!("a connection of the local socket: {error}");
                }
                return;
            }
            Some(Greeting::Join { protocol }) => format!(
                "the running belljar speaks version {PROTOCOL} of the local protocol, and this one version {protocol}; run: belljar up --restart"
            ),
            None => "expected a greeting of `belljar serve` as the first line".to_owned(),
        };
        let _ = write(&mut output, &JoinRefusal { refused }).await;
    }
}

/// Writes a line.
async fn write(output: &mut (impl AsyncWriteExt + Unpin), value: &impl Serialize) -> std::io::Result<()> {
    let mut line = serde_json::to_vec(value)?;
    line.push(b'\n');
    output.write_all(&line).await
}

/// True if a process of this user has the id `user`.
fn is_own_user(user: u32) -> bool {
    Uid::from_raw(user) == geteuid()
}

/// The whole seconds since 1970.
fn seconds(time: SystemTime) -> u64 {
    time.duration_since(SystemTime::UNIX_EPOCH).unwrap_or_default().as_secs()
}

#[cfg(test)]
mod tests {
    use serde_json::{Value, json};
    use tokio::io::{AsyncReadExt, BufReader};

    use super::*;
    use crate::mcp::tests::handler;

    /// A belljar without mounts, and the path of its socket.
    fn started() -> (tempfile::TempDir, std::path::PathBuf, CancellationToken, tokio::task::JoinHandle<()>) {
        let temp = tempfile::tempdir().unwrap();
        let path = temp.path().join("sock");
        let (listener, stop) = (UnixListener::bind(&path).unwrap(), CancellationToken::new());
        let served =
            tokio::spawn(serve(handler("stdio"), listener, std::process::id(), stop.clone().cancelled_owned()));
        (temp, path, stop, served)
    }

    /// The answer to these lines, and then the end.
    async fn answers(path: &std::path::Path, lines: &str) -> Vec<Value> {
        let (input, mut output) = UnixStream::connect(path).await.unwrap().into_split();
        output.write_all(lines.as_bytes()).await.unwrap();
        drop(output);
        let mut all = String::new();
        BufReader::new(input).read_to_string(&mut all).await.unwrap();
        all.lines().map(|line| serde_json::from_str(line).unwrap()).collect()
    }

    const JOIN: &str = "{\"belljar\":\"join\",\"protocol\":1}\n";
    const PING: &str = "{\"jsonrpc\":\"2.0\",\"id\":5,\"method\":\"ping\"}\n";

    #[tokio::test]
    async fn a_greeting_decides_what_follows() {
        let (_temp, path, stop, served) = started();
        let open = json!({ "protocolVersion": "2025-11-25", "capabilities": {}, "clientInfo": { "name": "t", "version": "1" } });
        let open = json!({ "jsonrpc": "2.0", "id": 0, "method": "initialize", "params": open });
        let joined = answers(&path, &format!("{JOIN}{open}\n{PING}")).await;
        assert_eq!(joined.iter().map(|one| one["id"].as_i64()).collect::<Vec<_>>(), [Some(0), Some(5)]);
        for other in [PING, "nonsense\n", "{\"belljar\":\"leave\"}\n", "\n"] {
            let refused = answers(&path, other).await;
            assert!(refused[0]["refused"].as_str().unwrap().contains("greeting"), "{refused:?}");
        }
        let newer = answers(&path, &JOIN.replace('1', "2")).await;
        assert!(newer[0]["refused"].as_str().unwrap().contains("belljar up --restart"), "{newer:?}");
        stop.cancel();
        served.await.unwrap();
    }

    #[tokio::test]
    async fn the_status_names_those_who_are_connected() {
        let (_temp, path, _stop, _served) = started();
        let mut client = UnixStream::connect(&path).await.unwrap();
        client.write_all(JOIN.as_bytes()).await.unwrap();
        let status = "{\"belljar\":\"status\"}\n";
        let of = async || serde_json::from_value::<ServingStatus>(answers(&path, status).await.remove(0)).unwrap();
        let own = i32::try_from(std::process::id()).unwrap();
        let count = async |wanted: usize| {
            while of().await.clients.len() != wanted {
                tokio::task::yield_now().await;
            }
        };
        count(1).await;
        assert_eq!(of().await.clients[0].pid, Some(own));
        drop(client);
        count(0).await;
    }

    #[test]
    fn other_users_are_refused() {
        let own = geteuid().as_raw();
        assert!(is_own_user(own));
        assert!(!is_own_user(own + 1) && !is_own_user(u32::MAX));
    }
}
