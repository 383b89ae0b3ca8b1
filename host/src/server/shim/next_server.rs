//! Finds the belljar that serves, starts it if it crashed, and opens connections to it.

use std::io::{self, BufRead, BufReader, Write as _};
use std::os::unix::net::UnixStream;
use std::time::{Duration, Instant};

use super::conversation::Opening;
use super::head::{Head, answered_id};
use crate::server::log;
use crate::server::shared_socket::SharedSocket;
use crate::server::up::{self, UpError};
use crate::transport::local_socket::{Greeting, JoinRefusal, PROTOCOL};

/// Another process that starts belljar may take this time.
const START_TIMEOUT: Duration = Duration::from_secs(30);

/// systemd may take this time to start belljar again.
const UNIT_TIME: Duration = Duration::from_secs(3);

/// belljar must open a session within this time.
const OPEN_TIME: Duration = Duration::from_secs(10);

/// How often a connection is tried.
const POLL_INTERVAL: Duration = Duration::from_millis(20);

/// Why no belljar can be joined. The messages are for the client; the log has the details.
#[derive(Clone, Copy, Debug, thiserror::Error)]
pub(super) enum NoServer {
    /// Somebody stopped it.
    #[error("belljar was stopped with `belljar down`; to start it again: belljar up")]
    Stopped,
    /// It cannot be started again.
    #[error("belljar ended and does not start again; run `belljar up` to see why")]
    Failed,
}

/// Finds the belljar that serves one configuration, now or next.
pub(super) struct NextServer {
    socket: SharedSocket,
}

impl NextServer {
    pub(super) fn new(socket: SharedSocket) -> Self {
        Self { socket }
    }

    /// Connects to the belljar that serves now. Starts it if it has crashed and nobody else starts it.
    ///
    /// # Errors
    /// If there is none, and none can be started.
    pub(super) fn connect(&mut self) -> Result<UnixStream, NoServer> {
        let begun = Instant::now();
        loop {
            if let Ok(stream) = self.socket.connect()
                && greet(Some(&stream)).is_ok()
            {
                return Ok(stream);
            }
            let fail = |why: UpError| {
                log::say(&format!("belljar has ended, and does not start again: {why}"));
                NoServer::Failed
            };
            let Some(instance) = self.socket.instance().map_err(|why| fail(why.into()))? else {
                return Err(NoServer::Stopped);
            };
            let is_systemds = instance.is_unit && begun.elapsed() < UNIT_TIME;
            if !is_systemds && let Some(lock) = self.socket.try_start_lock().map_err(|why| fail(why.into()))? {
                // It may have been stopped before this process had the lock.
                if self.socket.instance().is_ok_and(|instance| instance.is_some()) {
                    up::launch(&self.socket, &instance, &lock).map_err(fail)?;
                }
            } else if begun.elapsed() > START_TIMEOUT {
                return Err(NoServer::Failed);
            } else {
                std::thread::sleep(POLL_INTERVAL);
            }
        }
    }
}

/// Sends the greeting.
///
/// # Errors
/// If belljar has ended.
pub(super) fn greet(stream: Option<&UnixStream>) -> io::Result<()> {
    let mut line = serde_json::to_vec(&Greeting::Join { protocol: PROTOCOL })?;
    line.push(b'\n');
    stream.map_or(Ok(()), |mut stream| stream.write_all(&line))
}

/// The reason for which belljar refuses the connection, if this line is a refusal.
pub(super) fn refusal(line: &[u8]) -> Option<String> {
    let refusal: JoinRefusal = line.starts_with(b"{\"refused\":").then(|| serde_json::from_slice(line).ok())??;
    Some(refusal.refused)
}

/// Opens the session of a client at a new belljar.
///
/// # Errors
/// If belljar ends or refuses it.
pub(super) fn open(stream: &mut UnixStream, opening: &Opening) -> io::Result<()> {
    let line = |line: &[u8]| [line, b"\n"].concat();
    stream.set_read_timeout(Some(OPEN_TIME))?;
    stream.write_all(&line(&opening.initialize))?;
    // Nothing else comes before this answer, and nothing after it until the session is used.
    let mut answer = Vec::new();
    BufReader::new(&mut *stream).read_until(b'\n', &mut answer)?;
    let is_opened = answered_id(&answer).is_some() || Head::parse(&answer).is_some_and(|head| head.error.is_none());
    stream.set_read_timeout(None)?;
    if !is_opened {
        return Err(io::ErrorKind::InvalidData.into());
    }
    opening.initialized.as_ref().map_or(Ok(()), |initialized| stream.write_all(&line(initialized)))
}
