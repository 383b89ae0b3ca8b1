//! The process outside of the second wall: it opens what was granted after the wall was raised.

use std::io;
use std::net::SocketAddr;
use std::os::fd::OwnedFd;
use std::path::Path;

/// Opens granted directories and ports that the second wall hides from this process. The module that may start processes
/// implements it.
pub trait OutsideOpener: Send + Sync {
    /// True while it can be asked.
    fn is_running(&self) -> bool;

    /// Opens the directory at an absolute path without symbolic links, for reading. May block.
    ///
    /// # Errors
    /// If the configuration on disk does not grant it to a mount in a worker process, or the system refuses it.
    fn open_directory(&self, path: &Path) -> io::Result<OwnedFd>;

    /// Begins a TCP connection. The socket is non-blocking, and may not be connected yet. May block.
    ///
    /// # Errors
    /// If the configuration on disk does not grant the port to a mount in a worker process, or the system refuses it.
    fn connect(&self, address: SocketAddr) -> io::Result<OwnedFd>;
}
