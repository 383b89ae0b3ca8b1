//! The launcher process itself: takes requests of the front, one after the other. What may wait for a drive runs on a
//! thread of its own, so that a worker can always be started and killed.

use std::collections::HashMap;
use std::io;
use std::os::fd::{AsFd as _, BorrowedFd, OwnedFd};
use std::process::{Child, ExitCode};
use std::sync::Arc;

use rustix::io::Errno;
use rustix::net::SendFlags;
use rustix::process::{Pid, PidfdFlags, Signal, pidfd_open};

use super::granted::{self, NotOpened};
use super::message::{LauncherReply, LauncherRequest, MAX_MESSAGE_BYTES};
use crate::config::Wall;
use crate::model::text;
use crate::server::landlock::WallStatus;
use crate::server::location::LocationArgs;
use crate::server::worker_process;
use crate::server::worker_wall::WorkerWall;
use crate::server::{configuration, landlock, log, packet};

/// The most directories that are opened at once. More may only wait for drives that do not answer.
const MAX_OPENING: usize = 16;

/// Runs in the child process: serves the front at the other end of standard input, until it closes it.
pub(crate) fn child(at: LocationArgs) -> ExitCode {
    // The kernel does not send this signal if the front has a wall: Landlock forbids the front to signal a process outside
    // of it. Then the end of the socket ends this process.
    let _ = rustix::process::set_parent_process_death_signal(Some(Signal::KILL));
    worker_process::ignore_stop_signals();
    log::start("warn");
    let wall = configuration::file(&at).map_or(Wall::BestEffort, |config| config.wall);
    landlock::drop_privileges();
    let status = if wall == Wall::Off { WallStatus::Off } else { landlock::raise_for_launcher() };
    if wall == Wall::Require && !matches!(status, WallStatus::Full { .. }) {
        return ExitCode::FAILURE;
    }
    // Only files that the front sends could keep a worker from raising what this process has raised.
    let of_workers = if status.is_enforced() { WorkerWall::Required } else { WorkerWall::of(wall) };
    log::start_writer();
    let Ok(socket) = io::stdin().as_fd().try_clone_to_owned() else { return ExitCode::FAILURE };
    Launching { at: Arc::new(at), wall: of_workers, workers: HashMap::new(), opening: Arc::default() }
        .serve(socket.as_fd());
    ExitCode::SUCCESS
}

/// The state of the launcher.
struct Launching {
    at: Arc<LocationArgs>,
    /// Whether workers raise a wall. Decided at the start, and never by the front.
    wall: WorkerWall,
    /// The worker processes whose end was not reported yet.
    workers: HashMap<u32, Child>,
    /// One more reference for each thread that opens something.
    opening: Arc<()>,
}

impl Launching {
    /// Takes requests until the socket ends.
    fn serve(&mut self, socket: BorrowedFd<'_>) {
        let mut buffer = vec![0; MAX_MESSAGE_BYTES];
        loop {
            let (length, files) = match packet::receive(socket, &mut buffer) {
                Ok((0, _)) => return,
                Ok(received) => received,
                Err(error) if error.kind() == io::ErrorKind::Interrupted => continue,
                Err(error) => {
                    tracing::error!("the launcher process ends: its socket fails: {error}");
                    return;
                }
            };
            let request = postcard::from_bytes(buffer.get(..length).unwrap_or_default());
            let (Ok(request), mut files) = (request, files.into_iter()) else {
                tracing::warn!("the launcher process got a request that is none, and ignores it");
                continue;
            };
            self.take(request, files.next());
        }
    }

    /// Takes one request. `reply`: the socket for the reply.
    fn take(&mut self, request: LauncherRequest, reply: Option<OwnedFd>) {
        match (request, reply) {
            (LauncherRequest::Kill(id), _) => {
                // An error means that it has ended.
                let _ = self.workers.get_mut(&id).map(Child::kill);
            }
            (_, None) => tracing::warn!("the launcher process got a request without a socket for the reply"),
            (LauncherRequest::Start, Some(reply)) => self.start(&reply),
            (LauncherRequest::End(id), Some(reply)) => {
                let end = self.workers.get_mut(&id).and_then(|child| child.try_wait().ok().flatten());
                if end.is_some() {
                    self.workers.remove(&id);
                }
                send(&reply, &LauncherReply::Ended(end.map(worker_process::describe)), &[]);
            }
            (LauncherRequest::OpenDirectory(path), Some(reply)) => {
                self.open(reply, move |at| granted::open_directory(at, &path));
            }
            (LauncherRequest::Connect(address), Some(reply)) => {
                self.open(reply, move |at| granted::begin_connection(at, address));
            }
        }
    }

    /// Starts a worker on this thread: the kernel ends a worker when the thread ends that started it.
    fn start(&mut self, reply: &OwnedFd) {
        let started = worker_process::start(self.wall).and_then(|(mut child, socket)| {
            let pid = i32::try_from(child.id()).ok().and_then(Pid::from_raw).ok_or(Errno::SRCH);
            match pid.and_then(|pid| pidfd_open(pid, PidfdFlags::empty())) {
                Ok(handle) => Ok((child, socket, handle)),
                Err(errno) => {
                    end(&mut child);
                    Err(errno.into())
                }
            }
        });
        match started {
            Ok((mut child, socket, handle)) => {
                let id = child.id();
                if send(reply, &LauncherReply::Started(id), &[socket.as_fd(), handle.as_fd()]) {
                    self.workers.insert(id, child);
                } else {
                    end(&mut child);
                }
            }
            Err(error) => {
                let number = error.raw_os_error().unwrap_or_else(|| Errno::IO.raw_os_error());
                send(reply, &LauncherReply::Failed(number), &[]);
            }
        }
    }

    /// Opens something on a thread of its own, and replies with the descriptor.
    fn open(&self, reply: OwnedFd, open: impl FnOnce(&LocationArgs) -> Result<OwnedFd, NotOpened> + Send + 'static) {
        if Arc::strong_count(&self.opening) > MAX_OPENING {
            send(&reply, &LauncherReply::Failed(Errno::AGAIN.raw_os_error()), &[]);
            return;
        }
        let (at, opening) = (Arc::clone(&self.at), Arc::clone(&self.opening));
        let run = move || {
            let _opening = opening;
            match open(&at) {
                Ok(file) => send(&reply, &LauncherReply::Opened, &[file.as_fd()]),
                Err(why) => {
                    if why.is_refusal() {
                        let why = text::excerpt(&why.to_string(), 500);
                        tracing::warn!("the launcher process refuses a request: {why}");
                    }
                    send(&reply, &LauncherReply::Failed(why.errno()), &[])
                }
            }
        };
        // Without a thread, the socket for the reply is closed, and the request fails.
        let _ = std::thread::Builder::new().name("launcher-open".to_owned()).spawn(run);
    }
}

/// Kills a worker that nobody got, and waits for its end.
fn end(child: &mut Child) {
    let _ = child.kill();
    let _ = child.wait();
}

/// Sends a reply. False if the front does not wait for it any more.
fn send(reply: &OwnedFd, message: &LauncherReply, files: &[BorrowedFd<'_>]) -> bool {
    let bytes = postcard::to_stdvec(message).unwrap_or_default();
    packet::send(reply, &bytes, files, SendFlags::DONTWAIT).is_ok()
}

#[cfg(test)]
mod tests;
