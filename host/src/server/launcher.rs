//! The launcher: a small process outside of the second wall, which `serve` starts if any mount runs in a worker process.
//! It does three things for the front, belljar's own process:
//!
//! - it starts worker processes, kills them, and says how they ended;
//! - it opens a directory that the configuration on disk grants to a mount in a worker process;
//! - it begins a TCP connection to a port that the configuration on disk grants to such a mount.
//!
//! So the front can use what was granted after its wall was raised. The launcher believes nothing that the front says: it
//! reads the configuration itself ([`granted`]), and it decides alone if a worker raises a wall. It runs no guest, holds
//! no secret, and can write no file.
//!
//! This file is the front's side. [`process`] is the launcher's.

mod granted;
mod message;
pub(crate) mod process;

use std::io;
use std::net::SocketAddr;
use std::os::fd::{AsFd as _, OwnedFd};
use std::os::unix::net::UnixStream;
use std::os::unix::process::CommandExt as _;
use std::path::Path;
use std::process::{Child, Command, Stdio};
use std::sync::atomic::{AtomicBool, Ordering};
use std::sync::{Mutex, PoisonError};
use std::time::Duration;

use rustix::event::{PollFd, PollFlags, Timespec, poll};
use rustix::net::sockopt::{Timeout, set_socket_timeout};
use rustix::net::{AddressFamily, SendFlags, SocketFlags, SocketType, socketpair};
use rustix::process::{PidfdFlags, getpid, pidfd_open};

use super::location::LocationArgs;
use super::packet;
use super::worker_process::TEST_VARIABLES;
use crate::config::Config;
use crate::grants::OutsideOpener;
use message::{LauncherReply, LauncherRequest, MAX_MESSAGE_BYTES};

/// The internal verb that the child process runs.
pub(crate) const VERB: &str = "launch";

/// How long a reply may take. A drive has five seconds to answer.
const REPLY_TIMEOUT: Duration = Duration::from_secs(15);

/// The environment variables that the configuration and the log are read with.
const VARIABLES: &[&str] = &["HOME", "XDG_CACHE_HOME", "XDG_STATE_HOME", "RUST_LOG", "NO_COLOR"];

/// The launcher process. It ends when this is dropped, because that closes its socket.
pub(crate) struct Launcher {
    socket: OwnedFd,
    child: Mutex<Child>,
    /// True if the log says that it has ended.
    is_reported: AtomicBool,
}

/// A worker process that the launcher started.
pub(crate) struct LaunchedWorker {
    /// Its process id.
    pub(crate) id: u32,
    pub(crate) socket: UnixStream,
    /// A descriptor of the process, which becomes readable when it ends.
    pub(crate) handle: OwnedFd,
}

/// The launcher did not do what it was asked.
#[derive(Debug, thiserror::Error)]
pub(crate) enum LauncherError {
    /// It has ended.
    #[error("the launcher process has ended; restart belljar")]
    Gone,
    /// It refuses, or the operating system does.
    #[error(transparent)]
    Failed(#[from] io::Error),
}

impl Launcher {
    /// Starts the process if `config` has mounts in worker processes. Must be called before the second wall is raised.
    /// `None` if it is not needed or cannot be started; then the front starts workers itself.
    pub(crate) fn start(at: &LocationArgs, config: &Config) -> Option<Self> {
        // Without descriptors of processes (a kernel before 5.3), nobody could wait for a worker.
        if !config.has_workers() || pidfd_open(getpid(), PidfdFlags::empty()).is_err() {
            return None;
        }
        let warn = |error: &io::Error| {
            tracing::warn!("cannot start the launcher process: {error}; {}", Self::CONSEQUENCE);
        };
        Self::spawn(at).inspect_err(warn).ok()
    }

    /// What does not work without a launcher.
    const CONSEQUENCE: &str = "belljar starts worker processes itself, so each read in them costs more, and a new directory or port needs a restart";

    fn spawn(at: &LocationArgs) -> io::Result<Self> {
        let (socket, inherited) = pair()?;
        set_socket_timeout(&socket, Timeout::Send, Some(REPLY_TIMEOUT))?;
        #[expect(clippy::disallowed_methods, reason = "this program, as the launcher process")]
        let mut command = Command::new("/proc/self/exe");
        // A process group of its own, so that Ctrl-C does not end workers before this process ends their calls.
        command.arg(VERB).env_clear().stdin(inherited).stdout(Stdio::null()).process_group(0);
        for name in VARIABLES.iter().chain(TEST_VARIABLES) {
            #[expect(clippy::disallowed_methods, reason = "the launcher reads the same configuration")]
            command.envs(std::env::var_os(name).map(|value| (name, value)));
        }
        for (flag, path) in [("--plugins", &at.plugins), ("--config", &at.config)] {
            if let Some(path) = path {
                command.arg(flag).arg(path);
            }
        }
        Ok(Self { socket, child: Mutex::new(command.spawn()?), is_reported: AtomicBool::new(false) })
    }

    /// Starts a worker process. Blocks.
    ///
    /// # Errors
    /// If the launcher has ended, or the operating system refuses the process.
    pub(crate) fn start_worker(&self) -> Result<LaunchedWorker, LauncherError> {
        let (reply, files) = self.request(&LauncherRequest::Start)?;
        let mut files = files.into_iter();
        match (reply, files.next(), files.next()) {
            (LauncherReply::Started(id), Some(socket), Some(handle)) => {
                Ok(LaunchedWorker { id, socket: UnixStream::from(socket), handle })
            }
            (reply, ..) => Err(unexpected(&reply)),
        }
    }

    /// Kills a worker process. Never blocks.
    pub(crate) fn kill_worker(&self, id: u32) {
        let bytes = postcard::to_stdvec(&LauncherRequest::Kill(id)).unwrap_or_default();
        match packet::send(&self.socket, &bytes, &[], SendFlags::DONTWAIT) {
            // The socket is full: this thread may not wait until the launcher has read it.
            Err(error) if error.kind() == io::ErrorKind::WouldBlock => {
                let Ok(socket) = self.socket.try_clone() else { return };
                std::thread::spawn(move || packet::send(socket, &bytes, &[], SendFlags::empty()));
            }
            // The workers of a launcher that has ended have ended, too.
            _ => {}
        }
    }

    /// How a worker process ended. `None` if it still runs. Blocks.
    ///
    /// # Errors
    /// If the launcher has ended.
    pub(crate) fn end_of_worker(&self, id: u32) -> Result<Option<String>, LauncherError> {
        match self.request(&LauncherRequest::End(id))?.0 {
            LauncherReply::Ended(end) => Ok(end),
            reply => Err(unexpected(&reply)),
        }
    }

    /// Asks for something that goes with the reply.
    fn opened(&self, request: &LauncherRequest) -> Result<OwnedFd, LauncherError> {
        let (reply, files) = self.request(request)?;
        match (reply, files.into_iter().next()) {
            (LauncherReply::Opened, Some(file)) => Ok(file),
            (reply, _) => Err(unexpected(&reply)),
        }
    }

    /// Sends a request, and waits for its reply. Each request has a socket of its own for the reply, so that several
    /// threads can wait at once.
    fn request(&self, request: &LauncherRequest) -> Result<(LauncherReply, Vec<OwnedFd>), LauncherError> {
        let (own, lent) = pair()?;
        set_socket_timeout(&own, Timeout::Recv, Some(REPLY_TIMEOUT)).map_err(io::Error::from)?;
        let bytes = postcard::to_stdvec(request).map_err(io::Error::other)?;
        if bytes.len() > MAX_MESSAGE_BYTES {
            return Err(io::Error::from(io::ErrorKind::InvalidInput).into());
        }
        let sent = packet::send(&self.socket, &bytes, &[lent.as_fd()], SendFlags::empty());
        drop(lent);
        let mut buffer = [0; MAX_MESSAGE_BYTES];
        let received = sent.and_then(|()| packet::receive(&own, &mut buffer));
        match received {
            Ok((length, files)) if length > 0 => {
                let reply = postcard::from_bytes(buffer.get(..length).unwrap_or_default());
                Ok((reply.map_err(io::Error::other)?, files))
            }
            _ if !self.is_alive() => {
                self.report_end();
                Err(LauncherError::Gone)
            }
            Ok(_) => Err(io::Error::from(io::ErrorKind::UnexpectedEof).into()),
            Err(error) => Err(error.into()),
        }
    }

    /// False if its end of the socket is closed.
    fn is_alive(&self) -> bool {
        let mut socket = [PollFd::new(&self.socket, PollFlags::empty())];
        let now = Timespec { tv_sec: 0, tv_nsec: 0 };
        let polled = poll(&mut socket, Some(&now));
        polled.is_ok() && !socket.iter().any(|one| one.revents().intersects(PollFlags::HUP | PollFlags::ERR))
    }

    /// Says once that it has ended.
    fn report_end(&self) {
        if self.is_reported.swap(true, Ordering::Relaxed) {
            return;
        }
        // Frees its process id.
        let _ = self.child.lock().unwrap_or_else(PoisonError::into_inner).try_wait();
        tracing::warn!("the launcher process has ended: {}; restart belljar", Self::CONSEQUENCE);
    }
}

impl OutsideOpener for Launcher {
    fn is_running(&self) -> bool {
        self.is_alive()
    }

    fn open_directory(&self, path: &Path) -> io::Result<OwnedFd> {
        self.opened(&LauncherRequest::OpenDirectory(path.to_owned())).map_err(io::Error::from)
    }

    fn connect(&self, address: SocketAddr) -> io::Result<OwnedFd> {
        self.opened(&LauncherRequest::Connect(address)).map_err(io::Error::from)
    }
}

impl From<LauncherError> for io::Error {
    fn from(error: LauncherError) -> Self {
        match error {
            LauncherError::Gone => Self::from(io::ErrorKind::PermissionDenied),
            LauncherError::Failed(error) => error,
        }
    }
}

/// A pair of sockets that keep the bounds of messages.
fn pair() -> io::Result<(OwnedFd, OwnedFd)> {
    Ok(socketpair(AddressFamily::UNIX, SocketType::SEQPACKET, SocketFlags::CLOEXEC, None)?)
}

/// The error of a reply that does not belong to its request.
fn unexpected(reply: &LauncherReply) -> LauncherError {
    LauncherError::Failed(match reply {
        LauncherReply::Failed(number) => io::Error::from_raw_os_error(*number),
        reply => io::Error::other(format!("the launcher process gave another reply: {reply:?}")),
    })
}
