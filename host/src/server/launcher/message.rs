//! The messages between the front and the launcher, in the format of `postcard`.

use std::net::SocketAddr;
use std::path::PathBuf;

use serde::{Deserialize, Serialize};

/// Bytes of the longest message: a path, and little more.
pub(super) const MAX_MESSAGE_BYTES: usize = 8 << 10;

/// A request to the launcher. A socket for the reply goes with each but [`LauncherRequest::Kill`].
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub(super) enum LauncherRequest {
    /// Start a worker process.
    Start,
    /// Kill the worker process with this id.
    Kill(u32),
    /// Say how the worker process with this id ended.
    End(u32),
    /// Open a granted directory.
    OpenDirectory(PathBuf),
    /// Begin a TCP connection to a granted port.
    Connect(SocketAddr),
}

/// A reply of the launcher.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub(super) enum LauncherReply {
    /// The worker process with this id runs. Its socket goes with the reply, and a descriptor of the process (`pidfd`).
    Started(u32),
    /// How the worker process ended. `None` if it still runs, or never did.
    Ended(Option<String>),
    /// The directory or the connection goes with the reply.
    Opened,
    /// Refused. Holds the number of the error of the operating system.
    Failed(i32),
}
