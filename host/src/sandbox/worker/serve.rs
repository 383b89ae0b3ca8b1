//! The worker's side: runs the calls that the front sends, each in a fresh store.

use std::collections::HashMap;
use std::io;
use std::os::fd::OwnedFd;
use std::os::unix::net::UnixStream as StdUnixStream;
use std::sync::atomic::{AtomicU64, Ordering};
use std::sync::{Arc, Mutex, PoisonError};
use std::time::{Duration, SystemTime};

use futures_util::future::{AbortHandle, Abortable};
use tokio::net::UnixStream;
use tokio::runtime::Builder;
use tokio::sync::oneshot;
use tokio::task::JoinSet;
use tokio::time::Instant;

use super::answer_memory::AnswerRoom;
use super::frame::{FrameLimit, MessageError, MessageReader, MessageSender};
use super::message::{MountHandover, ToFront, ToWorker, WorkerCall, WorkerStart};
use super::receiving::ReceivingTasks;
use crate::grants::{CallRecord, Front, FrontRequest, MountGrants, Opening, RecordEntry};
use crate::interfaces::{Reply, Request};
use crate::limits::memory_budget::MemoryBudget;
use crate::limits::progress::ProgressRate;
use crate::limits::{Admission, CallOrigin, Gate, Permit};
use crate::model::error::LimitKind;
use crate::model::{Limit, Limits, MountName, ReadError};
use crate::policy::{Decider, Evidence, Target, authenticate};
use crate::sandbox::error::SandboxError;
use crate::sandbox::loaded_mount::LoadedMount;
use crate::sandbox::local::Sandbox;
use crate::sandbox::mount_id::MountId;
use crate::sandbox::spec::Outcome;

/// The longest frame that the front sends, in bytes: the arguments of a call.
const MAX_FRAME: usize = 64 << 20;

/// What a worker may reach. The wall is made of it.
pub struct WorkerFiles<'a> {
    /// The compiled code that it maps, or directories with it.
    pub code: &'a [OwnedFd],
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
}

impl From<MessageError> for WorkerEnd {
    fn from(error: MessageError) -> Self {
        Self::Frame(error.to_string())
    }
}

/// Serves the front at the other end of `socket` until it closes it. `descriptors`: how many files all calls together may
/// hold open. `raise` raises the wall, before the first thread starts and before anything of the component is mapped, and
/// names its state.
///
/// # Errors
/// Why it ended before that.
pub fn serve_worker(
    socket: StdUnixStream,
    descriptors: usize,
    raise: impl FnOnce(&WorkerFiles<'_>) -> io::Result<String>,
) -> Result<(), WorkerEnd> {
    socket.set_nonblocking(true)?;
    let socket = OwnedFd::from(socket);
    let own_thread = Builder::new_current_thread().enable_all().build()?;
    let started = own_thread.block_on(async {
        let mut frames = MessageReader::new(socket.try_clone()?, FrameLimit::new(MAX_FRAME))?.with_files();
        Ok::<_, WorkerEnd>(frames.next::<WorkerStart>().await?.map(|(start, files)| (start, files, frames)))
    })?;
    let Some((start, files, frames)) = started else { return Ok(()) };
    let (memory, lent) =
        files.split_first().ok_or_else(|| io::Error::other("the memory for large bodies is missing"))?;
    let (code, directories) = lent.split_at(start.code.min(lent.len()));
    let room = AnswerRoom::map(memory)?;
    let wall = raise(&WorkerFiles { code, directories })?;
    drop(files);
    if start.threads <= 1 {
        return own_thread.block_on(serve_calls(socket, frames, (start, room), descriptors, wall));
    }
    let runtime = Builder::new_multi_thread().worker_threads(start.threads).enable_all().build()?;
    runtime.block_on(async {
        // On a thread of the runtime, because calls start on the thread that receives them.
        let serving =
            tokio::spawn(async move { serve_calls(socket, frames.moved()?, (start, room), descriptors, wall).await });
        serving.await.map_err(io::Error::other)?
    })
}

/// Tells the front the state of the wall, and runs its calls until it closes the socket.
async fn serve_calls(
    socket: OwnedFd,
    frames: MessageReader,
    (start, room): (WorkerStart, AnswerRoom),
    descriptors: usize,
    wall: String,
) -> Result<(), WorkerEnd> {
    let (sender, room, next) = (MessageSender::new(socket), Arc::new(room), AtomicU64::new(1));
    let link = Arc::new(FrontLink { sender, room, next, opening: Mutex::default() });
    let host = match WorkerHost::new(&start, descriptors) {
        Ok(host) => host,
        Err(why) => {
            // The reason is small, so the socket takes it.
            return Ok(link.sender.send(&ToFront::Refused(why.to_string()), Vec::new())?);
        }
    };
    link.sender.send(&ToFront::Ready(wall), Vec::new())?;
    let received = Arc::new(Received::new(host, Arc::clone(&link), frames, start.threads));
    let mut running = JoinSet::new();
    for task in 0..received.tasks.count() {
        running.spawn(Arc::clone(&received).run(task));
    }
    let tasks = Arc::clone(&received.tasks);
    received.host.sandbox.ticker.watch(move || tasks.watch());
    tokio::select! {
        error = link.sender.run() => Err(error.into()),
        ended = running.join_next() => ended.map_or(Ok(()), |ended| ended.map_err(io::Error::other)?),
    }
}

/// Why a worker cannot run a mount.
#[derive(Debug, thiserror::Error)]
enum MountError {
    #[error("{0}")]
    Name(#[from] crate::model::NameError),
    #[error("its compiled code is missing")]
    NoCode,
    #[error(transparent)]
    Grants(#[from] crate::grants::ConfigureError),
    #[error(transparent)]
    Load(#[from] crate::sandbox::error::LoadError),
}

/// A mount in a worker.
struct ServedMount {
    name: MountName,
    gate: Gate,
    loaded: LoadedMount,
}

/// The mounts of a worker by their identifiers in calls, each with the reason if it cannot be run.
type ServedMounts = Mutex<HashMap<MountId, Result<Arc<ServedMount>, Arc<MountError>>>>;

/// What the calls of a worker share.
struct WorkerHost {
    sandbox: Sandbox,
    admission: Admission,
    mounts: ServedMounts,
}

impl WorkerHost {
    fn new(start: &WorkerStart, descriptors: usize) -> Result<Self, SandboxError> {
        let sandbox = Sandbox::for_worker(start.calls, descriptors)?;
        let admission =
            Admission::new(usize::try_from(start.calls).unwrap_or(usize::MAX), MemoryBudget::new(start.total_memory));
        Ok(Self { sandbox, admission, mounts: Mutex::default() })
    }

    /// Loads a mount. A mount that cannot be loaded fails each of its calls.
    fn load(&self, mount: MountHandover, files: Vec<OwnedFd>) {
        let id = mount.id;
        let loaded = self.try_load(mount, files).map(Arc::new).map_err(Arc::new);
        lock(&self.mounts).insert(id, loaded);
    }

    fn try_load(&self, mount: MountHandover, files: Vec<OwnedFd>) -> Result<ServedMount, MountError> {
        let name = MountName::new(&mount.name)?;
        let mut files = files.into_iter();
        let code = files.next().ok_or(MountError::NoCode)?;
        let grants = MountGrants::of_worker(&mount.grants, files.collect())?;
        let loaded = self.sandbox.load_file(&name, code, grants)?;
        // The front admits calls. A stopped call may hold its turn for a moment longer than there.
        let limits = Limits { concurrency: mount.limits.concurrency.saturating_mul(2), ..mount.limits };
        Ok(ServedMount { gate: Gate::new(name.clone(), limits), name, loaded })
    }

    async fn call(&self, call: WorkerCall, link: &Arc<FrontLink>) {
        #[cfg(feature = "unguarded")]
        if let Some(attempt) = super::attempts::NamedAttempt::of(&call.spec.request) {
            let outcome = attempt.run(call.number).await;
            let _ = link.sender.send(&ToFront::Outcome(call.number, Box::new(outcome), None), Vec::new());
            return;
        }
        let WorkerCall { number, mut spec, extras, time_left, freed: _ } = call;
        let mount = lock(&self.mounts).get(&spec.mount).cloned();
        let front = CallFront { number, link: Arc::clone(link), progress: Mutex::default() };
        let record = CallRecord::of_worker(Arc::new(front));
        let mut gone = Gone { number, link: Arc::clone(link), record: record.clone(), is_over: false };
        let by = Instant::now() + time_left;
        let permit = match mount {
            Some(Ok(mount)) => {
                spec.mount = mount.loaded.id();
                // The front has given it a turn. If calls that were answered still hold all turns here, its time passes.
                self.admit(&mount, &spec.request, by)
                    .await
                    .map_err(|error| if Instant::now() < by { error } else { out_of_time(time_left) })
            }
            Some(Err(why)) => Err(ReadError::Unavailable(format!("the worker process cannot run the mount: {why}"))),
            None => Err(ReadError::Internal("the worker process does not have the mount".to_owned())),
        };
        let mut outcome = match permit {
            Ok(permit) => self.sandbox.call_with(spec, extras, permit, &record).await,
            Err(error) => Outcome::failed(error),
        };
        gone.is_over = true;
        let bodies = outcome.result.as_mut().ok().and_then(|reply| link.room.put(reply));
        let size = outcome.result.as_ref().map_or(0, Reply::bytes);
        // If the socket is closed, the worker ends.
        let _ = link.sender.send_sized(&ToFront::Outcome(number, Box::new(outcome), bodies), size, Vec::new());
    }

    /// Admits a call that the front has authorized and admitted.
    async fn admit(&self, mount: &ServedMount, request: &Request, by: Instant) -> Result<Permit, ReadError> {
        let target = Target { mount: &mount.name, base: "", reference: None };
        let principal = authenticate(Evidence::OwnUser);
        let access = Decider::default().authorize(&principal, request.action(), target, SystemTime::now());
        let access =
            access.map_err(|_| ReadError::Internal("a worker process has no access to its mount".to_owned()))?;
        self.admission.admit(access, &mount.gate, CallOrigin::default(), request, Some(by)).await
    }
}

/// What the front sends, and the calls that run.
struct Received {
    host: WorkerHost,
    link: Arc<FrontLink>,
    frames: tokio::sync::Mutex<MessageReader>,
    tasks: Arc<ReceivingTasks>,
    running: Mutex<HashMap<u64, AbortHandle>>,
}

impl Received {
    fn new(host: WorkerHost, link: Arc<FrontLink>, frames: MessageReader, tasks: usize) -> Self {
        let (frames, tasks) = (tokio::sync::Mutex::new(frames), Arc::new(ReceivingTasks::new(tasks)));
        Self { host, link, frames, tasks, running: Mutex::default() }
    }

    /// Runs calls until the front closes the socket.
    async fn run(self: Arc<Self>, task: usize) -> Result<(), WorkerEnd> {
        loop {
            self.tasks.turn(task).await;
            let mut frames = self.frames.lock().await;
            let Some((message, files)) = frames.next::<ToWorker>().await? else { return Ok(()) };
            let has_next = frames.has_next();
            drop(frames);
            match message {
                ToWorker::Load(mount) => self.host.load(*mount, files),
                ToWorker::Unload(id) => drop(lock(&self.host.mounts).remove(&id)),
                ToWorker::Call(call) => self.start(task, *call, has_next).await,
                ToWorker::Cancel(number) => {
                    if let Some(handle) = lock(&self.running).remove(&number) {
                        handle.abort();
                    }
                }
                ToWorker::Stream(id) => self.link.opened(id, files),
            }
        }
    }

    /// Starts a call on this task. A call that waits goes on in a task of its own. `has_next`: another message waits.
    async fn start(self: &Arc<Self>, task: usize, call: WorkerCall, has_next: bool) {
        let number = call.number;
        self.link.room.free(&call.freed);
        let own = Arc::clone(self);
        let (handle, registration) = AbortHandle::new_pair();
        lock(&self.running).insert(number, handle);
        // Boxed, because tokio copies the future of a task several times.
        let mut call = Box::pin(Abortable::new(
            async move {
                own.host.call(call, &own.link).await;
                lock(&own.running).remove(&number);
            },
            registration,
        ));
        // The next call waits for this one, so the sandbox must know of it.
        let _next = has_next.then(|| self.host.sandbox.ticker.start_call());
        if !self.tasks.start(task, call.as_mut()).await {
            tokio::spawn(call);
        }
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
    /// Where large bodies go.
    room: Arc<AnswerRoom>,
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
    progress: Mutex<ProgressRate>,
}

impl Front for CallFront {
    fn record(&self, entry: RecordEntry) {
        // The front passes on no more than this, and ends a worker that sends too many entries.
        if let RecordEntry::Progress(done, total, _) = &entry
            && !lock(&self.progress).admits(*done, *total)
        {
            return;
        }
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

/// The error of a call whose time has passed. The front knows its whole time, and says that.
fn out_of_time(time: Duration) -> ReadError {
    let ms = u64::try_from(time.as_millis()).unwrap_or(u64::MAX);
    ReadError::Exhausted(Limit { kind: LimitKind::Time, used: ms, cap: ms })
}

fn lock<T>(mutex: &Mutex<T>) -> std::sync::MutexGuard<'_, T> {
    mutex.lock().unwrap_or_else(PoisonError::into_inner)
}
