//! Worker processes: this program again, with an empty environment and one socket. The front starts one for each mount
//! with `isolation = "mount"`; see [`crate::sandbox::serve_worker`].

use std::io;
use std::os::fd::{AsFd, OwnedFd};
use std::os::unix::net::UnixStream;
use std::process::{Child, Command, ExitCode, ExitStatus, Stdio};
use std::sync::{Arc, Mutex, OnceLock, PoisonError, mpsc};
use std::time::Duration;

use rustix::process::{Pid, PidfdFlags, Signal, pidfd_open, pidfd_send_signal};

use super::{open_files, worker_wall};
#[cfg(feature = "unguarded")]
use crate::model::guard;
use crate::sandbox::{WorkerProcess, WorkerStarter, serve_worker};

/// The internal verb that the child process runs.
pub(crate) const VERB: &str = "serve-mount";

/// The environment variable with which a test takes workers over. Its value is "1".
#[cfg(feature = "unguarded")]
const TAKEN_OVER: &str = "BELLJAR_TAKEN_OVER";

/// Starts worker processes.
#[derive(Default)]
pub(crate) struct WorkerProcesses {
    starts: OnceLock<mpsc::Sender<StartRequest>>,
}

/// Where the starting thread sends the process and its socket.
type StartRequest = mpsc::Sender<io::Result<(Child, UnixStream)>>;

impl WorkerProcesses {
    /// The thread that starts all workers. A worker asks the kernel for a signal when its parent dies. The kernel means
    /// the thread that started it, so this thread lives as long as the process.
    fn thread(&self) -> io::Result<&mpsc::Sender<StartRequest>> {
        if let Some(thread) = self.starts.get() {
            return Ok(thread);
        }
        let (starts, requests) = mpsc::channel::<StartRequest>();
        std::thread::Builder::new().name("workers".to_owned()).spawn(move || {
            for request in requests {
                let _ = request.send(start());
            }
        })?;
        Ok(self.starts.get_or_init(|| starts))
    }
}

impl WorkerStarter for WorkerProcesses {
    fn start(&self) -> io::Result<(Arc<dyn WorkerProcess>, UnixStream)> {
        let gone = || io::Error::other("the thread that starts worker processes has ended");
        let (started, result) = mpsc::channel();
        self.thread()?.send(started).map_err(|_| gone())?;
        let (child, socket) = result.recv().map_err(|_| gone())??;
        let id = child.id();
        let mut process = ChildProcess { id, handle: None, child: Mutex::new(child), end: OnceLock::new() };
        let pid = i32::try_from(id).ok().and_then(Pid::from_raw);
        // Without a handle (a kernel before 5.3), a signal waits for a thread that waits for the end.
        process.handle = pid.and_then(|pid| pidfd_open(pid, PidfdFlags::empty()).ok());
        Ok((Arc::new(process), socket))
    }
}

/// Starts a process, with the socket as its standard input.
fn start() -> io::Result<(Child, UnixStream)> {
    let (own, inherited) = UnixStream::pair()?;
    #[expect(clippy::disallowed_methods, reason = "this program, as a worker process")]
    let mut command = Command::new("/proc/self/exe");
    command
        .arg(VERB)
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

/// A process that this one started.
struct ChildProcess {
    id: u32,
    /// Names the process, also after its number belongs to another one.
    handle: Option<OwnedFd>,
    child: Mutex<Child>,
    /// How it ended.
    end: OnceLock<String>,
}

impl WorkerProcess for ChildProcess {
    fn cpu_time(&self) -> Duration {
        // After its end, the kernel may give the number to another process.
        if self.end.get().is_some() {
            return Duration::ZERO;
        }
        process_time(self.id).unwrap_or_default()
    }

    fn kill(&self) {
        // An error means that it has ended.
        if let Some(handle) = &self.handle {
            let _ = pidfd_send_signal(handle, Signal::KILL);
            return;
        }
        let _ = self.child.lock().unwrap_or_else(PoisonError::into_inner).kill();
    }

    fn wait(&self) -> String {
        let mut child = self.child.lock().unwrap_or_else(PoisonError::into_inner);
        let said = child.wait().map_or_else(|error| error.to_string(), describe);
        self.end.get_or_init(|| said).clone()
    }
}

/// How a process ended, in words.
fn describe(status: ExitStatus) -> String {
    use std::os::unix::process::ExitStatusExt as _;
    match (status.signal(), status.code()) {
        (Some(9), _) => "signal 9: it was killed".to_owned(),
        (Some(signal), _) => format!("signal {signal}"),
        (None, Some(code)) => format!("exit code {code}"),
        (None, None) => "unknown".to_owned(),
    }
}

/// The processor time of a process of this user, as the kernel counts it.
fn process_time(id: u32) -> Option<Duration> {
    let mut clock = 0;
    let mut time = libc::timespec { tv_sec: 0, tv_nsec: 0 };
    #[expect(unsafe_code, reason = "the crate rustix has no function for the clock of another process")]
    // SAFETY: both calls write only into the given variables.
    let is_read = unsafe {
        libc::clock_getcpuclockid(libc::pid_t::try_from(id).ok()?, &raw mut clock) == 0
            && libc::clock_gettime(clock, &raw mut time) == 0
    };
    is_read.then(|| {
        let seconds = u64::try_from(time.tv_sec).unwrap_or_default();
        Duration::new(seconds, u32::try_from(time.tv_nsec).unwrap_or_default())
    })
}

/// Runs in the child process: serves the front at the other end of standard input.
pub(crate) fn child() -> ExitCode {
    // Ends this process if the front is killed.
    let _ = rustix::process::set_parent_process_death_signal(Some(Signal::KILL));
    #[cfg(feature = "unguarded")]
    if taken_over().is_some_and(|value| value == "1") {
        crate::sandbox::take_over_worker();
    }
    let Ok(socket) = io::stdin().as_fd().try_clone_to_owned() else { return ExitCode::FAILURE };
    // A part is for the sockets of the process itself.
    let descriptors = usize::try_from(open_files::limit() / 4 * 3).unwrap_or(usize::MAX);
    match serve_worker(UnixStream::from(socket), descriptors, worker_wall::raise) {
        Ok(()) => ExitCode::SUCCESS,
        Err(_) => ExitCode::FAILURE,
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_kernel_counts_the_time_of_a_process() {
        let own = process_time(std::process::id()).unwrap();
        let mut sum = 0_u64;
        while process_time(std::process::id()).unwrap() < own + Duration::from_millis(2) {
            sum = sum.wrapping_add(1);
        }
        assert!(sum > 0);
        assert_eq!(process_time(u32::MAX), None);
    }
}
