//! Errors of the configuration of `fs` grants.

use std::io;

use crate::grants::drive_timeout::Stalled;
use crate::grants::home::NoHome;

/// Why a directory cannot be granted. The paths are shortened for display.
#[derive(Debug, thiserror::Error)]
pub enum DirectoryGrantError {
    /// The guest path is relative.
    #[error("the guest path \"{0}\" does not begin with \"/\"")]
    GuestRelative(String),
    /// The guest path is too long, or has control characters.
    #[error("the guest path \"{0}\" is too long or has control characters")]
    GuestUnclean(String),
    /// The guest path has an empty segment or a dot segment.
    #[error("the guest path \"{0}\" has an empty or dot segment; write it plainly, as in \"/notes\"")]
    GuestSegment(String),
    /// The host path needs a home directory.
    #[error(transparent)]
    Home(#[from] NoHome),
    /// The directory cannot be opened.
    #[error("cannot open the directory \"{path}\": {reason}")]
    Unopened {
        /// The host path, as the operator wrote it.
        path: String,
        /// The reason.
        reason: OpenError,
    },
    /// The host path does not name a directory.
    #[error("\"{0}\" is not a directory; grant the directory that holds it")]
    NotADirectory(String),
    /// The kernel has no `openat2`.
    #[error(
        "filesystem grants need the system call openat2, which this system does not offer; use Linux 5.6 or newer, and a container runtime that knows the call"
    )]
    NoOpenat2,
    /// A seccomp filter forbids `openat2`.
    #[error(
        "filesystem grants need the system call openat2, but a seccomp filter forbids it (EPERM), as old container runtimes do; use a newer one (Docker 20.10 or later), or allow openat2 in its seccomp profile"
    )]
    ForbiddenOpenat2,
    /// The directory is the root of the host.
    #[error("\"{0}\" is the whole file system; grant the directory that is needed")]
    Whole(String),
    /// The directory lies in a directory that exposes the kernel or devices.
    #[error("\"{path}\" lies in {below}, which holds no data and is never granted")]
    Forbidden {
        /// The host path.
        path: String,
        /// The forbidden directory, such as `/proc`.
        below: &'static str,
    },
    /// The directory lies on a file system that exposes the kernel's state.
    #[error("\"{0}\" lies on a file system of the kernel, which holds no data and is never granted")]
    OfKernel(String),
    /// The directory contains a file of belljar, or lies in a directory of belljar.
    #[error(
        "\"{path}\" covers belljar's own \"{own}\", which no provider may read; grant a directory beside it, or move belljar's files (plugins, configuration, cache, state) elsewhere"
    )]
    Own {
        /// The host path.
        path: String,
        /// belljar's own path.
        own: String,
    },
}

/// Why a directory cannot be opened. The messages contain no path.
#[derive(Debug, thiserror::Error)]
pub enum OpenError {
    /// The drive does not answer.
    #[error(transparent)]
    Stalled(#[from] Stalled),
    /// The path does not exist.
    #[error("it does not exist")]
    DirectoryUnavailable,
    /// The user that runs belljar lacks the permission.
    #[error("permission denied")]
    Denied,
    /// Another error of the system.
    #[error("{0}")]
    Other(io::Error),
}

impl From<io::Error> for OpenError {
    fn from(error: io::Error) -> Self {
        match error.kind() {
            io::ErrorKind::NotFound => Self::DirectoryUnavailable,
            io::ErrorKind::PermissionDenied => Self::Denied,
            _ => Self::Other(error),
        }
    }
}
