//! Starts and stops the belljar that serves all clients of one user: as a unit of the user's systemd, or as a process
//! in the background.

mod unit;

use std::fs::{File, OpenOptions};
use std::io::{self, Read as _, Seek as _, SeekFrom};
use std::os::unix::fs::OpenOptionsExt as _;
use std::path::{Path, PathBuf};
use std::process::{Child, Command, ExitStatus, Stdio};
use std::time::{Duration, Instant};

use belljar_join::Instance;
use rustix::event::{PollFd, PollFlags, Timespec, poll};
use rustix::process::{Pid, PidfdFlags, Signal, pidfd_open, pidfd_send_signal};

use super::directories::{PrivateDirError, private_dir};
use super::invocation::NoState;
use super::open_files;
use super::shared_socket::{self, FileLock, SharedSocket, SharedSocketError};
use crate::transport::local_socket::ServingStatus;
use unit::{UnitError, UserUnit};

/// A belljar must serve within this time.
const START_TIMEOUT: Duration = Duration::from_secs(20);

/// A belljar must end within this time after it was asked to.
const STOP_TIMEOUT: Duration = Duration::from_secs(10);

/// How often a belljar that starts is asked for its status.
const POLL_INTERVAL: Duration = Duration::from_millis(10);

/// The log begins anew if it has more bytes than this. The old one is kept beside it.
const MAX_LOG: u64 = 4 << 20;

/// The largest part of the log that an error shows, in bytes.
const SHOWN_LOG: usize = 4 << 10;

/// Why the belljar cannot be started or stopped.
#[derive(Debug, thiserror::Error)]
pub(crate) enum UpError {
    /// The socket, or a file beside it, cannot be used.
    #[error(transparent)]
    Socket(#[from] SharedSocketError),
    /// There is no directory for the log.
    #[error(transparent)]
    NoState(#[from] NoState),
    /// The directory of the log cannot be used.
    #[error(transparent)]
    Directory(#[from] PrivateDirError),
    /// The log cannot be opened, or the program cannot be started.
    #[error("\"{}\": {error}", path.display())]
    Refused {
        /// The file.
        path: PathBuf,
        /// The error of the operating system.
        error: io::Error,
    },
    /// The process ended before it served. Holds what it wrote.
    #[error("belljar ended before it served ({status}):\n{log}")]
    Ended {
        /// How it ended.
        status: ExitStatus,
        /// The end of its log.
        log: String,
    },
    /// The process does not serve in time.
    #[error("belljar does not answer after {} s; its log is {log}", START_TIMEOUT.as_secs())]
    Late {
        /// Where its log is.
        log: String,
    },
    /// systemd does not do what it is asked for.
    #[error(transparent)]
    Unit(#[from] UnitError),
    /// The process does not end.
    #[error("belljar (pid {pid}) has not ended within {} s; to end it at once: kill -9 {pid}", STOP_TIMEOUT.as_secs())]
    Stubborn {
        /// The process id.
        pid: u32,
    },
    /// The operating system refuses the signal.
    #[error("belljar (pid {pid}) cannot be stopped: {error}")]
    Signal {
        /// The process id.
        pid: u32,
        /// The error of the operating system.
        error: io::Error,
    },
}

/// True if the user's systemd runs.
pub(crate) fn has_systemd() -> bool {
    unit::is_available()
}

/// Where the log of a belljar is: a command that shows it, or its path.
pub(crate) fn log_of(socket: &SharedSocket, instance: &Instance) -> String {
    match instance.is_unit {
        true => unit::log_of(socket.id()),
        false => shared_socket::log_file(socket.id()).map(|path| path.display().to_string()).unwrap_or_default(),
    }
}

/// Starts the belljar that `instance` describes, if none serves, and waits until it serves. The caller holds the lock
/// of [`SharedSocket::start_lock`].
///
/// # Errors
/// If it does not serve in time.
pub(crate) fn launch(socket: &SharedSocket, instance: &Instance, _lock: &FileLock) -> Result<ServingStatus, UpError> {
    if let Some(status) = socket.status() {
        return Ok(status);
    }
    socket.write_instance(instance)?;
    let launched = if instance.is_unit { launch_unit(socket, instance) } else { launch_process(socket, instance) };
    if launched.is_err() {
        socket.remove_instance();
    }
    launched
}

/// Lets systemd start the belljar.
fn launch_unit(socket: &SharedSocket, instance: &Instance) -> Result<ServingStatus, UpError> {
    UserUnit::of(socket.id())?.start(instance)?;
    let deadline = Instant::now() + START_TIMEOUT;
    loop {
        match socket.status() {
            Some(status) => return Ok(status),
            None if Instant::now() >= deadline => {
                return Err(UpError::Late { log: format!("shown by: {}", log_of(socket, instance)) });
            }
            None => std::thread::sleep(POLL_INTERVAL),
        }
    }
}

/// Starts the belljar as a process in the background.
fn launch_process(socket: &SharedSocket, instance: &Instance) -> Result<ServingStatus, UpError> {
    let (log, path) = open_log(socket)?;
    let begin = log.metadata().map_or(0, |meta| meta.len());
    let mut child = start(instance, log)?;
    let deadline = Instant::now() + START_TIMEOUT;
    loop {
        if let Some(status) = socket.status() {
            // The kernel keeps an ended process until its parent asks how it ended.
            std::thread::spawn(move || child.wait());
            return Ok(status);
        }
        if let Ok(Some(status)) = child.try_wait() {
            return Err(UpError::Ended { status, log: rest(&path, begin) });
        }
        if Instant::now() >= deadline {
            let _ = child.kill();
            let _ = child.wait();
            return Err(UpError::Late { log: format!("in \"{}\"", path.display()) });
        }
        std::thread::sleep(POLL_INTERVAL);
    }
}

/// Starts the program, which leaves this session and writes its log to `log`.
fn start(instance: &Instance, log: File) -> Result<Child, UpError> {
    let fail = |error| UpError::Refused { path: instance.program.clone(), error };
    #[expect(clippy::disallowed_methods, reason = "this program, in the background")]
    let mut command = Command::new(&instance.program);
    command.args(["up", "--foreground", "--detach", "--place", &instance.place]);
    command.stdin(Stdio::null()).stdout(Stdio::null()).stderr(log);
    // Its directory may be removed or unmounted while it serves.
    command.current_dir("/");
    let child = command.spawn().map_err(fail)?;
    open_files::restore_for(Some(child.id()));
    Ok(child)
}

/// Opens the log. Everything is appended to it.
fn open_log(socket: &SharedSocket) -> Result<(File, PathBuf), UpError> {
    let path = shared_socket::log_file(socket.id())?;
    private_dir(path.parent().unwrap_or(Path::new("/")))?;
    let fail = |error| UpError::Refused { path: path.clone(), error };
    #[expect(clippy::disallowed_methods, reason = "belljar's own log")]
    if std::fs::metadata(&path).is_ok_and(|meta| meta.len() > MAX_LOG) {
        std::fs::rename(&path, path.with_extension("log.old")).map_err(fail)?;
    }
    let mut options = OpenOptions::new();
    options.append(true).create(true).mode(0o600);
    #[expect(clippy::disallowed_methods, reason = "belljar's own log")]
    let opened = options.open(&path);
    let log = opened.map_err(fail)?;
    Ok((log, path))
}

/// The end of what the log has from its byte `begin` on.
fn rest(path: &Path, begin: u64) -> String {
    let mut text = Vec::new();
    #[expect(clippy::disallowed_methods, reason = "belljar's own log")]
    let log = File::open(path);
    let _ = log.and_then(|mut log| {
        log.seek(SeekFrom::Start(begin))?;
        log.read_to_end(&mut text)
    });
    let shown = text.get(text.len().saturating_sub(SHOWN_LOG)..).unwrap_or_default();
    String::from_utf8_lossy(shown).trim_end().to_owned()
}

/// Stops the belljar of `socket`, so that clients do not start it again. Returns its process id, or `None` if none
/// served. The caller holds the lock of [`SharedSocket::start_lock`].
///
/// # Errors
/// If it does not end in time.
pub(crate) fn stop(socket: &SharedSocket, _lock: &FileLock) -> Result<Option<u32>, UpError> {
    let instance = socket.files().instance();
    // Before the process ends: clients that lose their connection look for this file.
    socket.remove_instance();
    if instance.is_some_and(|instance| instance.is_unit) {
        let status = socket.status();
        UserUnit::of(socket.id())?.stop()?;
        return Ok(status.map(|status| status.pid));
    }
    end(socket)
}

/// Ends the process that serves `socket`, and waits for its end.
///
/// # Errors
/// If it does not end in time.
pub(crate) fn end(socket: &SharedSocket) -> Result<Option<u32>, UpError> {
    let Some(ServingStatus { pid, .. }) = socket.status() else { return Ok(None) };
    let fail = |error: rustix::io::Errno| UpError::Signal { pid, error: error.into() };
    let Some(process) = i32::try_from(pid).ok().and_then(Pid::from_raw) else { return Ok(None) };
    let handle = pidfd_open(process, PidfdFlags::empty()).map_err(fail)?;
    pidfd_send_signal(&handle, Signal::TERM).map_err(fail)?;
    let seconds = i64::try_from(STOP_TIMEOUT.as_secs()).unwrap_or(i64::MAX);
    // pidfd_open(2): a handle is readable when its process has ended.
    let mut ended = [PollFd::new(&handle, PollFlags::IN)];
    match poll(&mut ended, Some(&Timespec { tv_sec: seconds, tv_nsec: 0 })).map_err(fail)? {
        0 => Err(UpError::Stubborn { pid }),
        _ => Ok(Some(pid)),
    }
}
