//! The worker process of a path. It is this program again, and valgrind does not follow it: the path has the counts of the
//! front alone. `counted_worker.rs` counts the worker.

use std::io;
use std::os::fd::{AsFd, OwnedFd};
use std::os::unix::net::UnixStream;
use std::process::{Child, Command, Stdio};
use std::sync::{Arc, Mutex};
use std::time::Duration;

use belljar::sandbox::{WorkerProcess, WorkerStarter, serve_worker};

/// The argument with which this program is a worker.
pub(crate) const ARGUMENT: &str = "worker";

/// The files that the calls of a worker may hold open.
const DESCRIPTORS: usize = 1024;

/// Starts this program as a worker.
pub(crate) struct OwnProgram;

impl WorkerStarter for OwnProgram {
    fn start(&self) -> io::Result<(Arc<dyn WorkerProcess>, UnixStream)> {
        let (own, inherited) = UnixStream::pair()?;
        let mut command = Command::new(std::env::current_exe()?);
        command.arg(ARGUMENT).stdin(OwnedFd::from(inherited)).stdout(Stdio::null());
        Ok((Arc::new(Started(Mutex::new(command.spawn()?))), own))
    }
}

/// A worker. It ends when this program does, because that closes its socket.
struct Started(Mutex<Child>);

impl WorkerProcess for Started {
    fn cpu_time(&self) -> Duration {
        Duration::ZERO
    }

    fn kill(&self) {
        self.0.lock().expect("no panic").kill().expect("a process");
    }

    fn wait(&self) -> String {
        self.0.lock().expect("no panic").wait().expect("a process").to_string()
    }
}

/// Serves the front at the other end of standard input.
pub(crate) fn serve() {
    serve_front(socket(io::stdin()).expect("a socket"));
}

/// The socket that this program got as a standard stream.
pub(crate) fn socket(stream: impl AsFd) -> io::Result<UnixStream> {
    Ok(UnixStream::from(stream.as_fd().try_clone_to_owned()?))
}

/// Serves a front until it closes the socket, without a wall.
pub(crate) fn serve_front(socket: UnixStream) {
    serve_worker(socket, DESCRIPTORS, |_| Ok("full".to_owned())).expect("a front that ends first");
}
