//! The local socket of the belljar that serves all clients of one user and one configuration, and the files beside it:
//!
//! * `ID.sock`: the socket, which only this user can open;
//! * `ID.json`: how to start this belljar again ([`Instance`]). `belljar down` removes it;
//! * `ID.lock`: locked while this belljar serves;
//! * `ID.start`: locked while it is started or stopped.
//!
//! They are in `$XDG_RUNTIME_DIR/belljar`, or in `run` in the state directory if that variable is not set.

use std::fs::{File, OpenOptions, Permissions};
use std::io::{self, BufRead as _, BufReader, Write as _};
use std::os::unix::ffi::OsStrExt as _;
use std::os::unix::fs::{OpenOptionsExt as _, PermissionsExt as _};
use std::os::unix::net::{UnixListener, UnixStream};
use std::path::{Path, PathBuf};
use std::time::{Duration, Instant};

use rustix::fs::{FlockOperation, flock};
use serde::{Deserialize, Serialize};

use super::directories::{PrivateDirError, is_private, private_dir, real};
use super::files::{self, FileError};
use super::invocation::NoState;
use super::location::{self, LocationArgs, NoWorkingDirectory};
use crate::transport::local_socket::{Greeting, ServingStatus};

/// The longest path of a socket, in bytes (unix(7): `sun_path`, without the final zero).
const MAX_PATH: usize = 107;

/// A running belljar must answer within this time.
const ANSWER_TIME: Duration = Duration::from_secs(5);

/// How often a lock is tried.
const POLL_INTERVAL: Duration = Duration::from_millis(20);

/// How to start a belljar again.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub(crate) struct Instance {
    /// The program.
    pub(crate) program: PathBuf,
    /// The configuration, as the value of `--place`.
    pub(crate) place: String,
    /// The path of the configuration, which may not exist, for people.
    pub(crate) config: PathBuf,
    /// True if systemd runs it.
    pub(crate) is_unit: bool,
}

/// The socket of one configuration. It may not exist.
#[derive(Clone, Debug)]
pub(crate) struct SharedSocket {
    directory: PathBuf,
    id: String,
}

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
    #[error("another command has been starting or stopping this belljar for {} s; wait for it, or end it", .0.as_secs())]
    Contended(Duration),
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
        let (config, directory) = location::config_path(at)?;
        // As in a place file: without a configuration, the plugin directory is part of the identity.
        let plugins = at.plugins.as_ref().map(|path| directory.join(path));
        let plugins = plugins.or_else(|| (!config.exists()).then(|| directory.join("plugins")));
        let mut hasher = blake3::Hasher::new();
        for path in [Some(config), plugins].into_iter().flatten() {
            let path = real(&path);
            let bytes = path.as_os_str().as_bytes();
            hasher.update(&(bytes.len() as u64).to_le_bytes()).update(bytes);
        }
        let id = hasher.finalize().to_hex().chars().take(16).collect();
        Ok(Self { directory: directory_of_sockets()?, id })
    }

    /// The sockets of all configurations of this user that were started and not stopped, sorted.
    ///
    /// # Errors
    /// If there is no directory for sockets.
    pub(crate) fn all() -> Result<Vec<Self>, SharedSocketError> {
        let directory = directory_of_sockets()?;
        #[expect(clippy::disallowed_methods, reason = "belljar's own directory")]
        let entries = std::fs::read_dir(&directory).into_iter().flatten().flatten();
        let id = |name: &str| name.strip_suffix(".json").map(str::to_owned);
        let mut ids: Vec<String> = entries.filter_map(|entry| id(&entry.file_name().to_string_lossy())).collect();
        ids.sort();
        Ok(ids.into_iter().map(|id| Self { directory: directory.clone(), id }).collect())
    }

    /// The name of the files, without their endings.
    pub(crate) fn id(&self) -> &str {
        &self.id
    }

    /// The path of the socket.
    pub(crate) fn path(&self) -> PathBuf {
        self.file("sock")
    }

    fn file(&self, ending: &str) -> PathBuf {
        self.directory.join(format!("{}.{ending}", self.id))
    }

    /// Connects to the belljar that serves this configuration.
    ///
    /// # Errors
    /// If there is none, or if other users could have made the socket.
    pub(crate) fn connect(&self) -> io::Result<UnixStream> {
        if !is_private(&self.directory)? {
            return Err(io::ErrorKind::PermissionDenied.into());
        }
        #[expect(clippy::disallowed_methods, reason = "belljar's own socket")]
        UnixStream::connect(self.path())
    }

    /// The status of the belljar that serves this configuration. `None` if there is none.
    pub(crate) fn status(&self) -> Option<ServingStatus> {
        let mut stream = self.connect().ok()?;
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
        let path = self.path();
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

    /// Marks this process as the one that starts or stops the belljar. `None` if another one does.
    ///
    /// # Errors
    /// If the directory or the file cannot be used.
    pub(crate) fn try_start_lock(&self) -> Result<Option<FileLock>, SharedSocketError> {
        self.try_lock("start")
    }

    /// As [`SharedSocket::try_start_lock`]; waits for another process up to `timeout`.
    ///
    /// # Errors
    /// Also if the other process does not end.
    pub(crate) fn start_lock(&self, timeout: Duration) -> Result<FileLock, SharedSocketError> {
        let deadline = Instant::now() + timeout;
        loop {
            match self.try_start_lock()? {
                Some(lock) => return Ok(lock),
                None if Instant::now() >= deadline => return Err(SharedSocketError::Contended(timeout)),
                None => std::thread::sleep(POLL_INTERVAL),
            }
        }
    }

    fn try_lock(&self, ending: &str) -> Result<Option<FileLock>, SharedSocketError> {
        private_dir(&self.directory)?;
        let path = self.file(ending);
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

    /// How to start this belljar again. `None` if it was never started, or was stopped with `belljar down`.
    ///
    /// # Errors
    /// If the file cannot be read.
    pub(crate) fn instance(&self) -> Result<Option<Instance>, SharedSocketError> {
        let text = files::read(&self.file("json"))?;
        Ok(text.and_then(|text| serde_json::from_str(&text).ok()))
    }

    /// Writes how to start this belljar again.
    ///
    /// # Errors
    /// If the directory or the file cannot be used.
    pub(crate) fn write_instance(&self, instance: &Instance) -> Result<(), SharedSocketError> {
        private_dir(&self.directory)?;
        let path = self.file("json");
        let text = serde_json::to_string(instance).unwrap_or_default();
        let lock = files::lock_for_writing(&[&path])?;
        Ok(files::replace(&lock, &path, &text, 0o600)?)
    }

    /// Removes what [`SharedSocket::write_instance`] wrote. Clients then no longer start this belljar.
    pub(crate) fn remove_instance(&self) {
        let _ = std::fs::remove_file(self.file("json"));
    }
}

/// The directory of sockets. It may not exist.
fn directory_of_sockets() -> Result<PathBuf, NoState> {
    let runtime = location::variable("XDG_RUNTIME_DIR").filter(|path| path.is_absolute());
    match runtime {
        Some(runtime) => Ok(runtime.join("belljar")),
        None => Ok(location::state_home().ok_or(NoState)?.join("run")),
    }
}

/// The log of the belljar with this id that runs in the background.
///
/// # Errors
/// If there is no state directory.
pub(crate) fn log_file(id: &str) -> Result<PathBuf, NoState> {
    Ok(location::state_home().ok_or(NoState)?.join("log").join(Path::new(id).with_extension("log")))
}
