//! What a worker is made of: a process, and a socket to it. The module that may start processes implements it.

use std::io;
use std::os::unix::net::UnixStream;
use std::sync::Arc;
use std::time::Duration;

/// Starts worker processes.
pub trait WorkerStarter: Send + Sync {
    /// Starts a process that runs [`serve_worker`](super::serve::serve_worker) with the other end of the socket. May
    /// block.
    ///
    /// # Errors
    /// If the operating system refuses it.
    fn start(&self) -> io::Result<(Arc<dyn WorkerProcess>, UnixStream)>;
}

/// A worker process.
pub trait WorkerProcess: Send + Sync {
    /// The processor time that it has used, as the kernel counts it.
    fn cpu_time(&self) -> Duration;

    /// Ends it at once.
    fn kill(&self);

    /// Waits for its end, and says how it ended, such as "signal 9". May block.
    fn wait(&self) -> String;
}

/// How mounts get worker processes.
#[derive(Clone)]
pub struct WorkerSettings {
    /// Starts them.
    pub starter: Arc<dyn WorkerStarter>,
    /// The most memory of all calls of one worker, in bytes.
    pub total_memory: u64,
    /// True if the configuration has `wall = "require"`: a worker without its whole wall runs no call.
    pub needs_wall: bool,
}
