//! The worker's side: runs the calls that the front sends, each in a fresh store.

use std::collections::HashMap;
use std::io;
use std::os::fd::{AsFd as _, BorrowedFd, OwnedFd};
use std::os::unix::net::UnixStream as StdUnixStream;
use std::sync::atomic::{AtomicU64, Ordering};
use std::sync::{Arc, Mutex, PoisonError};
use std::time::SystemTime;

use tokio::net::UnixStream;
use tokio::sync::oneshot;
use tokio::task::AbortHandle;
use tokio::time::Instant;

use super::frame::{MessageError, MessageReader, MessageSender};
use super::message::{ToFront, ToWorker, WorkerCall, WorkerStart};
use crate::grants::{CallRecord, Front, FrontRequest, MountGrants, Opening, RecordEntry};
use crate::limits::memory_budget::MemoryBudget;
use crate::limits::{self, Admission, CallOrigin, Gate};
use crate::model::{MountName, ReadError};
use crate::policy::{Access, Decider, Evidence, Target, authenticate};
use crate::sandbox::error::SandboxError;
use crate::sandbox::loaded_mount::LoadedMount;
use crate::sandbox::local::Sandbox;
use crate::sandbox::spec::Outcome;

/// The longest frame that the front sends, in bytes: the arguments of a call.
const MAX_FRAME: usize = 64 << 20;

/// What a worker may reach. The wall is made of it.
pub struct WorkerFiles<'a> {
    /// The compiled code, which the worker maps.
    pub code: BorrowedFd<'a>,
    /// The granted directories, which it reads.
    pub directories: &'a [OwnedFd],
}

/// Why a worker ends.
#[derive(Debug, thiserror::Error)]
pub enum WorkerEnd {
    /// The socket fails.
    #[error(transparent)]
    Socket(#[from] io::Error),
    /// The front sends what is no message.
    #[error("{0}")]
    Frame(String),
    /// The first message lacks something.
    #[error("the first message has no {0}")]
    Incomplete(&'static str),
}

impl From<MessageError> for WorkerEnd {
    fn from(error: MessageError) -> Self {
        Self::Frame(error.to_string())
    }
}

/// Serves the front at the other end of `socket` until it closes it. `descriptors`: how many files all calls together may
/// hold open. `raise` raises the wall, before the first thread
/// starts and before anything of the component is mapped, and names its state.
///
/// # Errors
/// Why it ended before that.
pub fn serve_worker(
    socket: StdUnixStream,
    descriptors: usize,
    raise: impl FnOnce(&WorkerFiles<'_>) -> String,
) -> Result<(), WorkerEnd> {
    let runtime = tokio::runtime::Builder::new_current_thread().enable_all().build()?;
    runtime.block_on(async {
        socket.set_nonblocking(true)?;
        let socket = OwnedFd::from(socket);
        let mut frames = MessageReader::new(socket.try_clone()?, MAX_FRAME)?.with_files();
        let Some((start, files)) = frames.next::<WorkerStart>().await? else { return Ok(()) };
        let mut files = files.into_iter();
        let code = files.next().ok_or(WorkerEnd::Incomplete("code"))?;
        let directories: Vec<OwnedFd> = files.collect();
        let wall = match start.has_wall {
            true => raise(&WorkerFiles { code: code.as_fd(), directories: &directories }),
            false => "off".to_owned(),
        };
        let link = Arc::new(FrontLink {
            sender: MessageSender::new(socket),
            next: AtomicU64::new(1),
            opening: Mutex::default(),
        });
        let first = match WorkerHost::new(&start, code.as_fd(), (directories, descriptors)) {
            Ok(host) => Ok(Arc::new(host)),
            Err(why) => Err(why.to_string()),
        };
        match &first {
            Ok(_) => link.sender.send(&ToFront::Ready(wall), Vec::new())?,
            Err(why) => link.sender.send(&ToFront::Refused(why.clone()), Vec::new())?,
        }
        let Ok(host) = first else {
            // The reason is small, so the socket has taken it.
            return Ok(());
        };
        tokio::select! {
            error = link.sender.run() => Err(error.into()),
            ended = host.run(&link, frames) => ended,
        }
    })
}

/// Why a worker cannot run its mount.
#[derive(Debug, thiserror::Error)]
enum StartError {
    #[error("{0}")]
    Name(#[from] crate::model::NameError),
    #[error(transparent)]
    Grants(#[from] crate::grants::ConfigureError),
    #[error(transparent)]
    Sandbox(#[from] SandboxError),
    #[error(transparent)]
    Load(#[from] crate::sandbox::error::LoadError),
}

/// What the calls of a worker share.
struct WorkerHost {
    sandbox: Sandbox,
    admission: Admission,
    gate: Gate,
    name: MountName,
    mount: LoadedMount,
}

impl WorkerHost {
    fn new(
        start: &WorkerStart,
        code: BorrowedFd<'_>,
        (directories, descriptors): (Vec<OwnedFd>, usize),
    ) -> Result<Self, StartError> {
        let name = MountName::new(&start.name)?;
        let grants = MountGrants::of_worker(&start.grants, directories)?;
        let concurrency = u32::try_from(start.limits.concurrency).unwrap_or(u32::MAX);
        let sandbox = Sandbox::for_worker(limits::sandbox_capacity(concurrency), descriptors)?;
        let mount = sandbox.load_file(&name, code, grants)?;
        let budget = MemoryBudget::new(start.total_memory);
        // A stopped call may hold its turn for a moment longer than in the front.
        let admission = Admission::new(start.limits.concurrency.saturating_mul(2), budget);
        let limits =
            crate::model::Limits { concurrency: start.limits.concurrency.saturating_mul(2), ..start.limits.clone() };
        Ok(Self { sandbox, admission, gate: Gate::new(name.clone(), limits), name, mount })
    }

    /// Runs calls until the front closes the socket.
    async fn run(self: &Arc<Self>, link: &Arc<FrontLink>, mut frames: MessageReader) -> Result<(), WorkerEnd> {
        let running: Arc<Mutex<HashMap<u64, AbortHandle>>> = Arc::default();
        while let Some((message, files)) = frames.next::<ToWorker>().await? {
            match message {
                ToWorker::Call(call) => {
                    let number = call.number;
                    let (host, link, all) = (Arc::clone(self), Arc::clone(link), Arc::clone(&running));
                    let task = tokio::spawn(async move {
                        host.call(*call, &link).await;
                        lock(&all).remove(&number);
                    });
                    let handle = task.abort_handle();
                    if !handle.is_finished() {
                        lock(&running).insert(number, handle);
                    }
                }
                ToWorker::Cancel(number) => {
                    if let Some(handle) = lock(&running).remove(&number) {
                        handle.abort();
                    }
                }
                ToWorker::Stream(id) => link.opened(id, files),
            }
        }
        Ok(())
    }

    async fn call(&self, call: WorkerCall, link: &Arc<FrontLink>) {
        #[cfg(feature = "unguarded")]
        if let Some(attempt) = super::attempts::NamedAttempt::of(&call.spec.request) {
            let outcome = attempt.run(call.number).await;
            let _ = link.sender.send(&ToFront::Outcome(call.number, Box::new(outcome)), Vec::new());
            return;
        }
        let WorkerCall { number, mut spec, extras, time_left } = call;
        spec.mount = self.mount.id();
        let front = CallFront { number, link: Arc::clone(link) };
        let record = CallRecord::of_worker(Arc::new(front));
        let mut gone = Gone { number, link: Arc::clone(link), record: record.clone(), is_over: false };
        let by = Instant::now() + time_left;
        let permit = match self.access(&spec.request) {
            Some(access) => {
                self.admission.admit(access, &self.gate, CallOrigin::default(), &spec.request, Some(by)).await
            }
            None => Err(ReadError::Internal("a worker process has no access to its mount".to_owned())),
        };
        let outcome = match permit {
            Ok(permit) => self.sandbox.call_with(spec, extras, permit, &record).await,
            Err(error) => Outcome::failed(error),
        };
        gone.is_over = true;
        // If the socket is closed, the worker ends.
        let _ = link.sender.send(&ToFront::Outcome(number, Box::new(outcome)), Vec::new());
    }

    /// The front has authorized the call.
    fn access(&self, request: &crate::interfaces::Request) -> Option<Access> {
        let target = Target { mount: &self.name, base: "", reference: None };
        let principal = authenticate(Evidence::OwnUser);
        Decider::default().authorize(&principal, request.action(), target, SystemTime::now()).ok()
    }
}

/// Tells the front that a call has ended, if it was stopped.
struct Gone {
    number: u64,
    link: Arc<FrontLink>,
    record: CallRecord,
    is_over: bool,
}

impl Drop for Gone {
    fn drop(&mut self) {
        if self.is_over {
            return;
        }
        let (number, link) = (self.number, Arc::clone(&self.link));
        // A call in the slow pool ends a moment later, and its usage is known then.
        self.record.when_ended(move |usage, _| {
            let _ = link.sender.send(&ToFront::Gone(number, usage), Vec::new());
        });
    }
}

/// The way to the front.
struct FrontLink {
    sender: MessageSender,
    next: AtomicU64,
    /// The streams that calls wait for.
    opening: Mutex<HashMap<u64, oneshot::Sender<OwnedFd>>>,
}

impl FrontLink {
    fn opened(&self, id: u64, files: Vec<OwnedFd>) {
        let waiting = lock(&self.opening).remove(&id);
        if let (Some(waiting), Some(file)) = (waiting, files.into_iter().next()) {
            let _ = waiting.send(file);
        }
    }
}

/// The front, for one call.
struct CallFront {
    number: u64,
    link: Arc<FrontLink>,
}

impl Front for CallFront {
    fn record(&self, entry: RecordEntry) {
        // If the socket is closed, the worker ends.
        let _ = self.link.sender.send(&ToFront::Entry(self.number, entry), Vec::new());
    }

    fn open(&self, request: FrontRequest) -> Opening {
        let id = self.link.next.fetch_add(1, Ordering::Relaxed);
        let (opened, stream) = oneshot::channel();
        lock(&self.link.opening).insert(id, opened);
        let sent = self.link.sender.send(&ToFront::Open(self.number, id, request), Vec::new());
        Box::pin(async move {
            sent.map_err(|error| io::Error::other(error.to_string()))?;
            let stream = stream.await.map_err(|_| io::Error::from(io::ErrorKind::ConnectionRefused))?;
            let stream = StdUnixStream::from(stream);
            stream.set_nonblocking(true)?;
            UnixStream::from_std(stream)
        })
    }
}

fn lock<T>(mutex: &Mutex<T>) -> std::sync::MutexGuard<'_, T> {
    mutex.lock().unwrap_or_else(PoisonError::into_inner)
}
