//! Makes the local socket of the belljar that serves all clients of one user, and locks the files beside it. See
//! [`belljar_join::SocketFiles`] for the files.

use std::fs::{File, OpenOptions, Permissions};
use std::io::{self, BufRead as _, BufReader, Write as _};
use std::os::unix::fs::{OpenOptionsExt as _, PermissionsExt as _};
use std::os::unix::net::UnixListener;
use std::path::{Path, PathBuf};
use std::time::{Duration, Instant};

use belljar_join::{Greeting, Instance, SocketFiles};
use rustix::fs::{FlockOperation, flock};

use super::directories::{PrivateDirError, private_dir};
use super::files::{self, FileError};
use super::invocation::NoState;
use super::location::{self, LocationArgs, NoWorkingDirectory};
use crate::transport::local_socket::ServingStatus;

/// The longest path of a socket, in bytes (unix(7): `sun_path`, without the final zero).
const MAX_PATH: usize = 107;

/// A running belljar must answer within this time.
const ANSWER_TIME: Duration = Duration::from_secs(5);

/// Another command that starts or stops the same belljar may take this time.
const LOCK_TIMEOUT: Duration = Duration::from_secs(30);

/// How often a lock is tried.
const POLL_INTERVAL: Duration = Duration::from_millis(20);

/// The socket of one configuration. It may not exist.
#[derive(Clone, Debug)]
pub(crate) struct SharedSocket(SocketFiles);

/// Why the socket or a file beside it cannot be used.
#[derive(Debug, thiserror::Error)]
pub(crate) enum SharedSocketError {
    /// The path of the configuration is unknown.
    #[error(transparent)]
    Location(#[from] NoWorkingDirectory),
    /// There is no directory for the socket.
    #[error(transparent)]
    NoState(#[from] NoState),
    /// The directory cannot be used.
    #[error(transparent)]
    Directory(#[from] PrivateDirError),
    /// A file beside the socket cannot be read or written.
    #[error(transparent)]
    File(#[from] FileError),
    /// The path is too long for a socket.
    #[error(
        "the path of the local socket is too long: \"{}\" has more than {MAX_PATH} bytes; set XDG_RUNTIME_DIR to a shorter directory",
        .0.display()
    )]
    TooLong(PathBuf),
    /// The operating system refuses the socket or a lock.
    #[error("\"{}\": {error}", path.display())]
    Refused {
        /// The file.
        path: PathBuf,
        /// The error of the operating system.
        error: io::Error,
    },
    /// Another command starts or stops this belljar, and does not end.
    #[error("another command has been starting or stopping this belljar for {} s; wait for it, or end it", LOCK_TIMEOUT.as_secs())]
    Contended,
}

/// A lock that lasts until this value is dropped, or the process ends.
pub(crate) struct FileLock {
    _file: File,
}

impl SharedSocket {
    /// The socket of the configuration that the command line names.
    ///
    /// # Errors
    /// If the path of the configuration is unknown, or there is no directory for the socket.
    pub(crate) fn of(at: &LocationArgs) -> Result<Self, SharedSocketError> {
        Ok(Self(SocketFiles::of(&location::place(at)?).ok_or(NoState)?))
    }

    /// The sockets of all configurations of this user that were started and not stopped, sorted.
    ///
    /// # Errors
    /// If there is no directory for sockets.
    pub(crate) fn all() -> Result<Vec<Self>, SharedSocketError> {
        Ok(SocketFiles::all().ok_or(NoState)?.into_iter().map(Self).collect())
    }

    /// The files beside the socket.
    pub(crate) fn files(&self) -> &SocketFiles {
        &self.0
    }

    /// The name of the files, without their endings.
    pub(crate) fn id(&self) -> &str {
        self.0.id()
    }

    /// The status of the belljar that serves this configuration. `None` if there is none.
    pub(crate) fn status(&self) -> Option<ServingStatus> {
        let mut stream = self.0.connect().ok()?;
        stream.set_read_timeout(Some(ANSWER_TIME)).ok()?;
        let line = serde_json::to_string(&Greeting::Status).ok()?;
        writeln!(stream, "{line}").ok()?;
        let mut answer = String::new();
        BufReader::new(stream).read_line(&mut answer).ok()?;
        serde_json::from_str(&answer).ok()
    }

    /// Listens on the socket. Replaces one that an ended belljar left. The caller holds [`SharedSocket::serving_lock`].
    ///
    /// # Errors
    /// If the path is too long, or the operating system refuses.
    pub(crate) fn listen(&self) -> Result<UnixListener, SharedSocketError> {
        let path = self.0.file("sock");
        if path.as_os_str().len() > MAX_PATH {
            return Err(SharedSocketError::TooLong(path));
        }
        let _ = std::fs::remove_file(&path);
        #[expect(clippy::disallowed_methods, reason = "belljar's own socket")]
        let bound = UnixListener::bind(&path);
        let bound = bound.and_then(|listener| {
            std::fs::set_permissions(&path, Permissions::from_mode(0o600))?;
            listener.set_nonblocking(true)?;
            Ok(listener)
        });
        bound.map_err(|error| SharedSocketError::Refused { path, error })
    }

    /// Marks this process as the one that serves the configuration. `None` if another one does.
    ///
    /// # Errors
    /// If the directory or the file cannot be used.
    pub(crate) fn serving_lock(&self) -> Result<Option<FileLock>, SharedSocketError> {
        self.try_lock("lock")
    }

    /// Marks this process as the one that starts or stops the belljar. Waits for another one that does.
    ///
    /// # Errors
    /// If the directory or the file cannot be used, or the other process does not end.
    pub(crate) fn start_lock(&self) -> Result<FileLock, SharedSocketError> {
        let deadline = Instant::now() + LOCK_TIMEOUT;
        loop {
            match self.try_lock("start")? {
                Some(lock) => return Ok(lock),
                None if Instant::now() >= deadline => return Err(SharedSocketError::Contended),
                None => std::thread::sleep(POLL_INTERVAL),
            }
        }
    }

    fn try_lock(&self, ending: &str) -> Result<Option<FileLock>, SharedSocketError> {
        private_dir(self.0.directory())?;
        let path = self.0.file(ending);
        let mut options = OpenOptions::new();
        options.read(true).write(true).create(true).truncate(false).mode(0o600);
        #[expect(clippy::disallowed_methods, reason = "belljar's own lock file")]
        let opened = options.open(&path);
        let locked = opened.and_then(|file| match flock(&file, FlockOperation::NonBlockingLockExclusive) {
            Ok(()) => Ok(Some(FileLock { _file: file })),
            Err(rustix::io::Errno::WOULDBLOCK) => Ok(None),
            Err(error) => Err(error.into()),
        });
        locked.map_err(|error| SharedSocketError::Refused { path, error })
    }

    /// Writes how to start this belljar again.
    ///
    /// # Errors
    /// If the directory or the file cannot be used.
    pub(crate) fn write_instance(&self, instance: &Instance) -> Result<(), SharedSocketError> {
        private_dir(self.0.directory())?;
        let path = self.0.file("json");
        let text = serde_json::to_string(instance).unwrap_or_default();
        let lock = files::lock_for_writing(&[&path])?;
        Ok(files::replace(&lock, &path, &text, 0o600)?)
    }

    /// Removes what [`SharedSocket::write_instance`] wrote. Clients then no longer start this belljar.
    pub(crate) fn remove_instance(&self) {
        let _ = std::fs::remove_file(self.0.file("json"));
    }
}

/// The log of the belljar with this id that runs in the background.
///
/// # Errors
/// If there is no state directory.
pub(crate) fn log_file(id: &str) -> Result<PathBuf, NoState> {
    Ok(location::state_home().ok_or(NoState)?.join("log").join(Path::new(id).with_extension("log")))
}
