//! Finds the belljar that serves, starts it if it crashed, and opens connections to it.

use std::fmt;
use std::io::{self, BufRead as _, BufReader, Write as _};
use std::os::fd::AsFd as _;
use std::os::unix::net::UnixStream;
use std::process::{Command, Stdio};
use std::time::{Duration, Instant};

use crate::conversation::Opening;
use crate::greeting::{Greeting, JoinRefusal, PROTOCOL};
use crate::head::{Head, answered_id};
use crate::lend::{self, Passed, Receipts};
use crate::socket_files::{Instance, SocketFiles};

/// systemd may take this time to start belljar again.
const UNIT_TIME: Duration = Duration::from_secs(3);

/// How often a connection is tried.
const POLL_INTERVAL: Duration = Duration::from_millis(20);

/// belljar must open a session within this time.
const OPEN_TIME: Duration = Duration::from_secs(10);

/// Why no belljar can be joined. The messages are for the client.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum NoServer {
    /// Somebody stopped it.
    Stopped,
    /// It cannot be started again.
    Failed,
}

impl fmt::Display for NoServer {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(match self {
            Self::Stopped => "belljar was stopped with `belljar down`; to start it again: belljar up",
            Self::Failed => "belljar ended and does not start again; run `belljar up` to see why",
        })
    }
}

/// A connection to a belljar that has got the greeting.
pub(crate) struct Connection {
    pub(crate) stream: UnixStream,
    /// `None` if standard output is not lent.
    pub(crate) lent: Option<(Receipts, Passed)>,
}

/// Connects to the belljar that serves now. Starts it if it has crashed.
///
/// # Errors
/// If there is none, and none can be started.
pub(crate) fn connect(files: &SocketFiles) -> Result<Connection, NoServer> {
    let begun = Instant::now();
    let mut is_started = false;
    loop {
        if let Ok(stream) = files.connect()
            && let Ok(connection) = greet(stream)
        {
            return Ok(connection);
        }
        let instance = files.instance().ok_or(NoServer::Stopped)?;
        if instance.is_unit && begun.elapsed() < UNIT_TIME {
            std::thread::sleep(POLL_INTERVAL);
            continue;
        }
        if is_started || !start(&instance) {
            // It may have been stopped meanwhile.
            return Err(if files.instance().is_some() { NoServer::Failed } else { NoServer::Stopped });
        }
        is_started = true;
    }
}

/// Runs `belljar up`, which waits for others that start the same belljar. Its messages go to the log of the client.
fn start(instance: &Instance) -> bool {
    #[expect(clippy::disallowed_methods, reason = "the program that started this belljar")]
    let mut command = Command::new(&instance.program);
    command.args(["up", "--again", "--place", &instance.place]);
    if !instance.is_unit {
        command.arg("--background");
    }
    // Standard output is the client's.
    command.stdin(Stdio::null()).stdout(Stdio::null());
    command.status().is_ok_and(|status| status.success())
}

/// Sends the greeting, and lends standard output.
///
/// # Errors
/// If belljar has ended.
pub(crate) fn greet(stream: UnixStream) -> io::Result<Connection> {
    let mut line = serde_json::to_vec(&Greeting::Join { protocol: PROTOCOL })?;
    line.push(b'\n');
    let lent = lend::send(&stream, &line, io::stdout().as_fd())?;
    Ok(Connection { stream, lent })
}

/// The reason for which belljar refuses the connection, if this line is a refusal.
pub(crate) fn refused(line: &[u8]) -> Option<String> {
    let refusal: JoinRefusal = line.starts_with(b"{\"refused\":").then(|| serde_json::from_slice(line).ok())??;
    Some(refusal.refused)
}

/// Opens the session of a client at a new belljar. Returns the length of its answer, in bytes.
///
/// # Errors
/// If belljar ends or refuses it.
pub(crate) fn open(stream: &mut UnixStream, opening: &Opening) -> io::Result<usize> {
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
    opening.initialized.as_ref().map_or(Ok(()), |initialized| stream.write_all(&line(initialized)))?;
    Ok(answer.len())
}
