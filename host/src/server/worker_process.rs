//! A worker process: this program again, with an empty environment and one socket; see [`crate::sandbox::serve_worker`].
//! The launcher starts them; the front does if there is no launcher.

use std::io;
use std::os::fd::{AsFd, OwnedFd};
use std::os::unix::net::UnixStream;
use std::process::{Child, Command, ExitCode, ExitStatus, Stdio};
use std::time::Duration;

use rustix::process::Signal;

use super::worker_wall::{self, WorkerWall};
use super::{huge_pages, open_files};
#[cfg(feature = "unguarded")]
use crate::model::guard;
use crate::sandbox::serve_worker;

/// The internal verb that the child process runs.
pub(crate) const VERB: &str = "serve-mount";

/// The option that tells a worker process its wall.
const WALL: &str = "--wall";

/// The environment variable with which a test takes workers over. Its value is "1".
#[cfg(feature = "unguarded")]
const TAKEN_OVER: &str = "BELLJAR_TAKEN_OVER";

/// The environment variables of a build for tests, which the launcher hands on.
#[cfg(feature = "unguarded")]
pub(super) const TEST_VARIABLES: &[&str] = &["BELLJAR_UNGUARDED", "BELLJAR_ISOLATION", TAKEN_OVER];

/// The environment variables of a build for tests: this one has none.
#[cfg(not(feature = "unguarded"))]
pub(super) const TEST_VARIABLES: &[&str] = &[];

/// Starts a process, with the socket as its standard input. It ends with the thread that calls this.
///
/// # Errors
/// If the operating system refuses it.
pub(super) fn start(wall: WorkerWall) -> io::Result<(Child, UnixStream)> {
    let (own, inherited) = UnixStream::pair()?;
    #[expect(clippy::disallowed_methods, reason = "this program, as a worker process")]
    let mut command = Command::new("/proc/self/exe");
    command
        .arg(VERB)
        .args([WALL, wall.word()])
        .env_clear()
        .current_dir("/")
        .stdin(OwnedFd::from(inherited))
        // The wall hides "/dev/null". Nobody reads these: a worker says nothing to people.
        .stdout(Stdio::piped())
        .stderr(Stdio::piped());
    #[cfg(feature = "unguarded")]
    command.env("BELLJAR_UNGUARDED", guard::names_off()).envs(taken_over().map(|value| (TAKEN_OVER, value)));
    let mut child = command.spawn()?;
    drop((child.stdout.take(), child.stderr.take()));
    Ok((child, own))
}

/// The value of [`TAKEN_OVER`]. `None` if it is not set.
#[cfg(feature = "unguarded")]
fn taken_over() -> Option<std::ffi::OsString> {
    #[expect(clippy::disallowed_methods, reason = "the test that started this process takes workers over")]
    std::env::var_os(TAKEN_OVER)
}

/// How a process ended, in words.
pub(super) fn describe(status: ExitStatus) -> String {
    use std::os::unix::process::ExitStatusExt as _;
    match (status.signal(), status.code()) {
        (Some(9), _) => "signal 9: it was killed".to_owned(),
        (Some(signal), _) => format!("signal {signal}"),
        (None, Some(code)) => format!("exit code {code}"),
        (None, None) => "unknown".to_owned(),
    }
}

/// The clock of a process: the processor time that it has used, as the kernel counts it.
#[derive(Clone, Copy)]
pub(super) struct ProcessClock(libc::clockid_t);

impl ProcessClock {
    /// The clock of the process with this id. `None` if there is no such process.
    pub(super) fn of(id: u32) -> Option<Self> {
        let id = libc::pid_t::try_from(id).ok()?;
        let mut clock = 0;
        #[expect(unsafe_code, reason = "the crate rustix has no function for the clock of another process")]
        // SAFETY: the call writes only into the given variable.
        let is_found = unsafe { libc::clock_getcpuclockid(id, &raw mut clock) == 0 };
        is_found.then_some(Self(clock))
    }

    /// The time until now. `None` if the process has ended.
    pub(super) fn time(self) -> Option<Duration> {
        let mut time = libc::timespec { tv_sec: 0, tv_nsec: 0 };
        #[expect(unsafe_code, reason = "the crate rustix has no clock of another process")]
        // SAFETY: the call writes only into the given variable.
        let is_read = unsafe { libc::clock_gettime(self.0, &raw mut time) == 0 };
        is_read.then(|| {
            let seconds = u64::try_from(time.tv_sec).unwrap_or_default();
            Duration::new(seconds, u32::try_from(time.tv_nsec).unwrap_or_default())
        })
    }
}

/// Ignores the signals that ask a process to stop. A service manager sends them to all processes of belljar at once, and
/// the front then finishes calls in the processes that it started. They end when the front does. Children inherit this.
pub(super) fn ignore_stop_signals() {
    for signal in [libc::SIGTERM, libc::SIGINT, libc::SIGHUP] {
        #[expect(unsafe_code, reason = "the crate rustix has no function for it")]
        // SAFETY: no code of this program runs at the signal.
        let _ = unsafe { libc::signal(signal, libc::SIG_IGN) };
    }
}

/// Runs in the child process: serves the front at the other end of standard input.
pub(crate) fn child(wall: WorkerWall) -> ExitCode {
    // Ends this process if the process that started it is killed.
    let _ = rustix::process::set_parent_process_death_signal(Some(Signal::KILL));
    ignore_stop_signals();
    huge_pages::allow();
    #[cfg(feature = "unguarded")]
    if taken_over().is_some_and(|value| value == "1") {
        crate::sandbox::take_over_worker();
    }
    #[cfg(profiled)]
    super::worker_profile::write_each_second();
    let Ok(socket) = io::stdin().as_fd().try_clone_to_owned() else { return ExitCode::FAILURE };
    // A part is for the sockets of the process itself.
    let descriptors = usize::try_from(open_files::limit() / 4 * 3).unwrap_or(usize::MAX);
    match serve_worker(UnixStream::from(socket), descriptors, |files| worker_wall::raise(files, wall)) {
        Ok(()) => ExitCode::SUCCESS,
        Err(_) => ExitCode::FAILURE,
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_kernel_counts_the_time_of_a_process() {
        let clock = ProcessClock::of(std::process::id()).unwrap();
        let own = clock.time().unwrap();
        let mut sum = 0_u64;
        while clock.time().unwrap() < own + Duration::from_millis(2) {
            sum = sum.wrapping_add(1);
        }
        assert!(sum > 0);
        assert!(ProcessClock::of(u32::MAX).is_none());
    }
}
