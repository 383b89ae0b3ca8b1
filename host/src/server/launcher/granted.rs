//! Decides what the launcher opens: only what the configuration on disk grants at this moment. It believes nothing of the
//! request.

use std::net::SocketAddr;
use std::os::fd::OwnedFd;
use std::path::{Path, PathBuf};

use rustix::io::Errno;
use rustix::net::{AddressFamily, SocketFlags, SocketType, connect, ipproto, socket_with};

use crate::config::{Config, MountConfig};
use crate::grants::drive_timeout::{Stalled, run_with_timeout};
use crate::grants::fs;
use crate::server::configuration;
use crate::server::location::LocationArgs;

/// Why the launcher does not open something.
#[derive(Debug, thiserror::Error)]
pub(super) enum NotOpened {
    /// The configuration on disk cannot be used.
    #[error("the configuration on disk cannot be used: {0}")]
    Configuration(#[from] configuration::ConfigurationError),
    /// No mount in a worker process has the directory.
    #[error(
        "the configuration on disk grants the directory \"{}\" to no mount in a worker process; grant it with  belljar grant MOUNT --fs",
        .0.display()
    )]
    Directory(PathBuf),
    /// No mount in a worker process has the port.
    #[error(
        "the configuration on disk grants TCP port {0} to no mount in a worker process; grant it with  belljar grant MOUNT"
    )]
    Port(u16),
    /// The drive of the directory does not answer.
    #[error(transparent)]
    Stalled(#[from] Stalled),
    /// The operating system refuses it.
    #[error(transparent)]
    System(#[from] Errno),
}

impl NotOpened {
    /// The number of the error that the front gets.
    pub(super) fn errno(&self) -> i32 {
        match self {
            Self::Configuration(_) | Self::Directory(_) | Self::Port(_) => Errno::ACCESS.raw_os_error(),
            Self::Stalled(_) => Errno::TIMEDOUT.raw_os_error(),
            Self::System(errno) => errno.raw_os_error(),
        }
    }

    /// True if the request asks for what is not granted.
    pub(super) fn is_refusal(&self) -> bool {
        matches!(self, Self::Configuration(_) | Self::Directory(_) | Self::Port(_))
    }
}

/// The mounts that run in worker processes.
fn in_workers(config: &Config) -> impl Iterator<Item = &MountConfig> {
    config.mounts.values().filter(|mount| mount.isolation.has_worker())
}

/// Opens a directory for reading. `path` must be without symbolic links.
///
/// # Errors
/// If it is not a granted directory of a mount in a worker process, or cannot be opened.
pub(super) fn open_directory(at: &LocationArgs, path: &Path) -> Result<OwnedFd, NotOpened> {
    let config = configuration::file(at)?;
    let granted = in_workers(&config).any(|mount| {
        // A path below a granted directory is no grant. Both sides are without symbolic links.
        mount.grants.directories(&config.ambient).iter().any(|granted| granted == path)
    });
    if !granted {
        return Err(NotOpened::Directory(path.to_owned()));
    }
    let own = path.to_owned();
    Ok(run_with_timeout(path, move || fs::open_for_reading(&own))??)
}

/// Begins a TCP connection. The socket is non-blocking.
///
/// # Errors
/// If no mount in a worker process may connect to the port, or the system refuses it.
pub(super) fn begin_connection(at: &LocationArgs, address: SocketAddr) -> Result<OwnedFd, NotOpened> {
    let config = configuration::file(at)?;
    if !in_workers(&config).any(|mount| mount.ports().contains(&address.port())) {
        return Err(NotOpened::Port(address.port()));
    }
    let family = if address.is_ipv4() { AddressFamily::INET } else { AddressFamily::INET6 };
    let flags = SocketFlags::CLOEXEC | SocketFlags::NONBLOCK;
    let socket = socket_with(family, SocketType::STREAM, flags, Some(ipproto::TCP))?;
    match connect(&socket, &address) {
        Ok(()) | Err(Errno::INPROGRESS) => Ok(socket),
        Err(errno) => Err(errno.into()),
    }
}

#[cfg(test)]
mod tests;
