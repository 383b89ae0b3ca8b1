//! Starts worker processes: through the launcher, or from this process if there is none.

use std::io;
use std::os::fd::OwnedFd;
use std::os::unix::net::UnixStream;
use std::process::Child;
use std::sync::{Arc, Mutex, OnceLock, PoisonError, mpsc};
use std::time::Duration;

use rustix::event::{PollFd, PollFlags, poll};
use rustix::io::Errno;
use rustix::process::{Pid, PidfdFlags, Signal, pidfd_open, pidfd_send_signal};

use super::launcher::{LaunchedWorker, Launcher, LauncherError};
use super::worker_process::{self, ProcessClock};
use super::worker_wall::WorkerWall;
use crate::sandbox::{WorkerProcess, WorkerStarter};

/// Starts worker processes.
pub(crate) struct WorkerProcesses {
    /// `None` for a short command, which needs no directory that is granted while it runs.
    launcher: Option<Arc<Launcher>>,
    /// The wall of workers that this process starts itself. The launcher decides on its own.
    wall: WorkerWall,
    starts: OnceLock<mpsc::Sender<StartRequest>>,
}

/// Where the starting thread sends the process and its socket.
type StartRequest = mpsc::Sender<io::Result<(Child, UnixStream)>>;

impl WorkerProcesses {
    pub(crate) fn new(launcher: Option<Arc<Launcher>>, wall: WorkerWall) -> Self {
        Self { launcher, wall, starts: OnceLock::new() }
    }

    /// The thread that starts all workers of this process. A worker asks the kernel for a signal when its parent dies. The
    /// kernel means the thread that started it, so this thread lives as long as the process.
    fn thread(&self) -> io::Result<&mpsc::Sender<StartRequest>> {
        if let Some(thread) = self.starts.get() {
            return Ok(thread);
        }
        let ((starts, requests), wall) = (mpsc::channel::<StartRequest>(), self.wall);
        std::thread::Builder::new().name("workers".to_owned()).spawn(move || {
            for request in requests {
                let _ = request.send(worker_process::start(wall));
            }
        })?;
        Ok(self.starts.get_or_init(|| starts))
    }

    /// Starts a process as a child of this one.
    fn start_here(&self) -> io::Result<(Arc<dyn WorkerProcess>, UnixStream)> {
        let gone = || io::Error::other("the thread that starts worker processes has ended");
        let (started, result) = mpsc::channel();
        self.thread()?.send(started).map_err(|_| gone())?;
        let (child, socket) = result.recv().map_err(|_| gone())??;
        let clock = ProcessClock::of(child.id());
        let pid = i32::try_from(child.id()).ok().and_then(Pid::from_raw);
        // Without a handle (a kernel before 5.3), a signal waits for a thread that waits for the end.
        let handle = pid.and_then(|pid| pidfd_open(pid, PidfdFlags::empty()).ok());
        let process = ChildProcess { clock, handle, child: Mutex::new(child), end: OnceLock::new() };
        Ok((Arc::new(process), socket))
    }
}

impl WorkerStarter for WorkerProcesses {
    fn start(&self) -> io::Result<(Arc<dyn WorkerProcess>, UnixStream)> {
        let Some(launcher) = &self.launcher else { return self.start_here() };
        match launcher.start_worker() {
            Ok(LaunchedWorker { id, socket, handle }) => {
                let (launcher, clock) = (Arc::clone(launcher), ProcessClock::of(id));
                Ok((Arc::new(LaunchedProcess { id, clock, handle, launcher, end: OnceLock::new() }), socket))
            }
            // The log says so.
            Err(LauncherError::Gone) => self.start_here(),
            Err(LauncherError::Failed(error)) => Err(error),
        }
    }
}

/// The processor time of a process that ended as `end` says. After its end, the kernel may give its number to another
/// process.
fn time_of(clock: Option<ProcessClock>, end: &OnceLock<String>) -> Duration {
    let clock = clock.filter(|_| end.get().is_none());
    clock.and_then(ProcessClock::time).unwrap_or_default()
}

/// A process that this one started.
struct ChildProcess {
    clock: Option<ProcessClock>,
    /// Names the process, also after its number belongs to another one.
    handle: Option<OwnedFd>,
    child: Mutex<Child>,
    /// How it ended.
    end: OnceLock<String>,
}

impl WorkerProcess for ChildProcess {
    fn cpu_time(&self) -> Duration {
        time_of(self.clock, &self.end)
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
        let said = child.wait().map_or_else(|error| error.to_string(), worker_process::describe);
        self.end.get_or_init(|| said).clone()
    }
}

/// A process that the launcher started.
struct LaunchedProcess {
    id: u32,
    clock: Option<ProcessClock>,
    /// Becomes readable when the process ends.
    handle: OwnedFd,
    launcher: Arc<Launcher>,
    /// How it ended.
    end: OnceLock<String>,
}

impl WorkerProcess for LaunchedProcess {
    fn cpu_time(&self) -> Duration {
        time_of(self.clock, &self.end)
    }

    fn kill(&self) {
        // The wall forbids this process to signal one outside of it.
        self.launcher.kill_worker(self.id);
    }

    fn wait(&self) -> String {
        let wait = || {
            while poll(&mut [PollFd::new(&self.handle, PollFlags::IN)], None) == Err(Errno::INTR) {}
            let end = self.launcher.end_of_worker(self.id).ok().flatten();
            end.unwrap_or_else(|| "its launcher process has ended".to_owned())
        };
        self.end.get_or_init(wait).clone()
    }
}
