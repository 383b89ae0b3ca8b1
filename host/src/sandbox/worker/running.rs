//! A running worker, on the front's side: its process, its socket, and its calls.

use std::collections::HashSet;
use std::io;
use std::os::fd::OwnedFd;
use std::sync::atomic::{AtomicU64, Ordering};
use std::sync::{Arc, Mutex, OnceLock, PoisonError};
use std::time::Duration;

use tokio::net::UnixStream;
use tokio::sync::oneshot;
use tokio::task::JoinHandle;
use tokio::time::Instant;

use super::answer_memory::AnswerMemory;
use super::frame::{FrameLimit, MessageError, MessageReader, MessageSender};
use super::message::{MountHandover, ToFront, ToWorker, WorkerCall, WorkerStart};
use super::pending::{PendingCall, PendingCalls, WorkerAnswer, WorkerFault};
use super::starter::{WorkerProcess, WorkerSettings};
use crate::grants::LentGrants;
use crate::model::text;
use crate::sandbox::mount_id::MountId;
use crate::sandbox::spec::Outcome;

/// Bytes of a frame beside the largest result: names, usage, errors.
const FRAME_SLACK: usize = 1 << 20;

/// The time in which a worker must be ready. It may wait for a processor.
const READY_TIME: Duration = Duration::from_secs(60);

/// How often the kernel is asked for the processor time of a worker that runs calls.
const ASK_EVERY: Duration = Duration::from_millis(5);

/// The time after its end in which a worker must have ended a cancelled call.
const CANCEL_GRACE: Duration = Duration::from_secs(1);

/// The most frames that may wait for a worker that asks for a stream. Each holds a descriptor of this process.
const MAX_WAITING: usize = 512;

/// The most characters of a reason that a worker gives.
const MAX_REASON: usize = 400;

/// How a worker names its complete wall.
const FULL_WALL: &str = "full";

/// A worker does not start.
#[derive(Debug, thiserror::Error)]
pub(in crate::sandbox) enum WorkerError {
    /// The operating system refuses the process or the socket.
    #[error("cannot start a worker process: {0}")]
    NotStarted(#[from] io::Error),
    /// The socket fails, or the process ends.
    #[error("the worker process ended while it started: {0}")]
    Frame(#[from] MessageError),
    /// The process ends.
    #[error("the worker process ended while it started ({0})")]
    Ended(String),
    /// The worker says why.
    #[error("the worker process cannot run calls: {0}")]
    Refused(String),
    /// Its wall is not complete.
    #[error(
        "the configuration has wall = \"require\", but the wall of the worker process is incomplete: {0}; run a kernel with Landlock enabled (Linux 6.12 or newer), or set wall = \"best-effort\""
    )]
    NoWall(String),
    /// The worker does not become ready.
    #[error("the worker process was not ready within {}", humantime::format_duration(READY_TIME))]
    Late,
}

/// A running worker. Its process ends when this is dropped.
pub(in crate::sandbox) struct RunningWorker {
    shared: Arc<SharedWorker>,
    reader: JoinHandle<()>,
    writer: JoinHandle<()>,
    /// The directories that it has.
    lent: LentGrants,
    /// The mounts that it was given.
    mounts: Mutex<HashSet<MountId>>,
    /// The longest frame that it may send.
    most: FrameLimit,
    /// The state of its wall, as one word of its own.
    pub(in crate::sandbox) wall: String,
}

struct SharedWorker {
    process: Arc<dyn WorkerProcess>,
    sender: MessageSender,
    calls: PendingCalls,
    next: AtomicU64,
    charged: Mutex<ChargedTime>,
    /// Why it ended. Empty while it runs.
    end: OnceLock<String>,
}

/// The processor time that was charged to the mount.
#[derive(Default)]
struct ChargedTime {
    total: Duration,
    /// When the kernel was asked last.
    asked: Option<Instant>,
}

impl Drop for RunningWorker {
    fn drop(&mut self) {
        end_process(Arc::clone(&self.shared.process));
        self.reader.abort();
        self.writer.abort();
    }
}

impl RunningWorker {
    /// Starts a worker that takes at most `calls` calls at once and starts them on `threads` threads, and waits until it is
    /// ready. It may map the `code` or what lies below it, has the directories of `lent`, and no mount yet.
    pub(in crate::sandbox) async fn start(
        settings: &WorkerSettings,
        calls: u32,
        threads: usize,
        code: &[Arc<OwnedFd>],
        lent: LentGrants,
    ) -> Result<Arc<Self>, WorkerError> {
        let starter = Arc::clone(&settings.starter);
        let started = tokio::task::spawn_blocking(move || starter.start()).await;
        let (process, socket) = started.map_err(io::Error::other)??;
        let ended = EndOnDrop(Some(process));
        socket.set_nonblocking(true)?;
        let socket = OwnedFd::from(socket);
        let most = FrameLimit::new(FRAME_SLACK);
        let mut frames = MessageReader::new(socket.try_clone()?, most.clone())?;
        let sender = MessageSender::new(socket);
        let total_memory = settings.total_memory;
        let memory = Arc::new(AnswerMemory::new()?);
        let mut files = vec![memory.file()?];
        for code in code {
            files.push(code.try_clone()?);
        }
        files.extend(lent.files()?);
        sender.send(&WorkerStart { calls, total_memory, threads, code: code.len() }, files)?;
        let ready = async {
            tokio::select! {
                error = sender.run() => Err(error.into()),
                first = frames.next::<ToFront>() => match first? {
                    Some((ToFront::Ready(wall), _)) => Ok(text::excerpt(&wall, MAX_REASON)),
                    Some((ToFront::Refused(why), _)) => Err(WorkerError::Refused(text::excerpt(&why, MAX_REASON))),
                    Some(_) => Err(WorkerError::Refused("it did not say that it is ready".to_owned())),
                    None => Err(WorkerError::Ended("it closed its socket".to_owned())),
                },
            }
        };
        let wall = match tokio::time::timeout(READY_TIME, ready).await {
            Ok(Ok(wall)) if settings.needs_wall && wall != FULL_WALL => return Err(WorkerError::NoWall(wall)),
            Ok(Ok(wall)) => wall,
            Ok(Err(WorkerError::Frame(_) | WorkerError::Ended(_))) => {
                return Err(WorkerError::Ended(ended.reason().await));
            }
            Ok(Err(error)) => return Err(error),
            Err(_) => return Err(WorkerError::Late),
        };
        let process = ended.keep().ok_or_else(|| WorkerError::Ended("it is gone".to_owned()))?;
        let shared = Arc::new(SharedWorker {
            process,
            sender,
            calls: PendingCalls::new(memory),
            next: AtomicU64::new(1),
            charged: Mutex::default(),
            end: OnceLock::new(),
        });
        let (reads, writes) = (Arc::clone(&shared), Arc::clone(&shared));
        let reader = tokio::spawn(async move { reads.read(frames).await });
        let writer = tokio::spawn(async move { drop(writes.sender.run().await) });
        Ok(Arc::new(Self { shared, reader, writer, lent, mounts: Mutex::default(), most, wall }))
    }

    /// Gives it a mount, unless it has it. `code` is the compiled code, and `largest` the largest result in bytes.
    ///
    /// # Errors
    /// If this process has no descriptor left, or the worker is gone.
    pub(in crate::sandbox) fn load(
        &self,
        id: MountId,
        (code, largest): (&OwnedFd, u64),
        mount: impl FnOnce(&LentGrants) -> MountHandover,
    ) -> Result<(), MessageError> {
        let mut mounts = self.mounts.lock().unwrap_or_else(PoisonError::into_inner);
        if mounts.contains(&id) {
            return Ok(());
        }
        self.most.raise(usize::try_from(largest).unwrap_or(usize::MAX).saturating_add(FRAME_SLACK));
        let mut files = vec![code.try_clone()?];
        files.extend(self.lent.files()?);
        // Sent before any other call of the mount can pass.
        if let Err(error) = self.shared.sender.send(&ToWorker::Load(Box::new(mount(&self.lent))), files) {
            self.kill("it closed its socket");
            return Err(error);
        }
        mounts.insert(id);
        Ok(())
    }

    /// Takes a mount away. Its calls end first.
    pub(in crate::sandbox) fn unload(&self, id: MountId) {
        if self.mounts.lock().unwrap_or_else(PoisonError::into_inner).remove(&id) {
            // If the socket is closed, the worker has ended.
            let _ = self.shared.sender.send(&ToWorker::Unload(id), Vec::new());
        }
    }

    /// The directories that it has.
    pub(in crate::sandbox) fn lent(&self) -> &LentGrants {
        &self.lent
    }

    /// Why it ended. `None` while it runs.
    pub(in crate::sandbox) fn end(&self) -> Option<&str> {
        self.shared.end.get().map(String::as_str)
    }

    /// Ends it. Its calls fail with this reason.
    pub(in crate::sandbox) fn kill(&self, why: &str) {
        let _ = self.shared.end.set(why.to_owned());
        self.shared.process.kill();
        self.shared.calls.end();
    }

    /// Sends a call.
    ///
    /// # Errors
    /// Gives the call back if the worker has ended, and so has not begun it.
    pub(in crate::sandbox) fn send(self: &Arc<Self>, unsent: Box<UnsentCall>) -> Result<SentCall, Box<UnsentCall>> {
        let number = self.shared.next.fetch_add(1, Ordering::Relaxed);
        let (reply, answer) = oneshot::channel();
        let UnsentCall { mut pending, mut message } = *unsent;
        pending.reply = Some(reply);
        message.number = number;
        message.freed.extend(self.shared.calls.take_freed());
        if let Some(pending) = self.shared.calls.add(number, pending) {
            return Err(Box::new(UnsentCall { pending, message }));
        }
        let message = ToWorker::Call(Box::new(message));
        if self.shared.sender.send(&message, Vec::new()).is_err() {
            let pending = self.shared.calls.remove(number);
            self.kill("it closed its socket");
            if let (Ok(pending), ToWorker::Call(message)) = (pending, message) {
                return Err(Box::new(UnsentCall { pending, message: *message }));
            }
        }
        Ok(SentCall { worker: Arc::clone(self), number, answer, is_over: false })
    }

    /// The processor time to charge for a call that says it used `said`. The kernel is asked from time to time, and not
    /// for each call: what a worker did not say is charged to a later call.
    pub(in crate::sandbox) fn charge(&self, said: Duration, now: Instant) -> Duration {
        let mut charged = self.shared.charged.lock().unwrap_or_else(PoisonError::into_inner);
        charged.total += said;
        if charged.asked.is_some_and(|at| now.saturating_duration_since(at) < ASK_EVERY) {
            return said;
        }
        charged.asked = Some(now);
        let more = self.shared.process.cpu_time().saturating_sub(charged.total);
        charged.total += more;
        said + more
    }
}

/// A call that no worker has got yet.
pub(in crate::sandbox) struct UnsentCall {
    pub(in crate::sandbox) pending: PendingCall,
    pub(in crate::sandbox) message: WorkerCall,
}

/// A call that was sent to a worker. Dropping it stops the call.
pub(in crate::sandbox) struct SentCall {
    worker: Arc<RunningWorker>,
    number: u64,
    answer: oneshot::Receiver<WorkerAnswer>,
    is_over: bool,
}

impl SentCall {
    /// Waits for the outcome. `None` if the worker has ended.
    pub(in crate::sandbox) async fn outcome(&mut self) -> Option<Outcome> {
        let answer = (&mut self.answer).await.ok();
        self.is_over = true;
        let WorkerAnswer { mut outcome, bodies } = answer?;
        if let (Ok(reply), Some(bodies)) = (&mut outcome.result, bodies)
            && let Err(error) = bodies.copy_into(reply)
        {
            self.worker.kill(&error.to_string());
            return None;
        }
        Some(outcome)
    }
}

impl Drop for SentCall {
    fn drop(&mut self) {
        let shared = &self.worker.shared;
        if self.is_over {
            return;
        }
        let Some(end) = shared.calls.withdraw(self.number) else { return };
        // If the socket is closed, the call has ended.
        let _ = shared.sender.send(&ToWorker::Cancel(self.number), Vec::new());
        // Nobody waits for the call any more, but its record does.
        let (worker, number) = (Arc::downgrade(&self.worker), self.number);
        let watch = async move {
            tokio::time::sleep_until(end + CANCEL_GRACE).await;
            if let Some(worker) = worker.upgrade().filter(|worker| worker.shared.calls.contains(number)) {
                worker.kill("it did not end a cancelled call in time");
            }
        };
        if let Ok(runtime) = tokio::runtime::Handle::try_current() {
            runtime.spawn(watch);
        }
    }
}

impl SharedWorker {
    /// Receives what the worker says, until it ends or breaks a rule.
    async fn read(&self, mut frames: MessageReader) {
        let why = loop {
            match frames.next::<ToFront>().await {
                Ok(Some((message, _))) => match self.take(message) {
                    Ok(()) => {}
                    Err(fault) => break Some(fault.to_string()),
                },
                Ok(None) => break None,
                Err(MessageError::Socket(_) | MessageError::Truncated) => break None,
                Err(error) => break Some(error.to_string()),
            }
        };
        // Known before the process ends: otherwise the next call would say that the socket is closed.
        let is_known = why.is_some_and(|why| self.end.set(why).is_ok());
        self.process.kill();
        if is_known {
            // A process that hangs in the kernel does not end at once, and nobody has to wait for that.
            self.calls.end();
        }
        let process = Arc::clone(&self.process);
        let ended = tokio::task::spawn_blocking(move || process.wait()).await.unwrap_or_default();
        let _ = self.end.set(ended);
        self.calls.end();
    }

    fn take(&self, message: ToFront) -> Result<(), WorkerFault> {
        let Some((number, id, request)) = self.calls.take(message)? else { return Ok(()) };
        if self.sender.waiting() >= MAX_WAITING {
            return Err(WorkerFault::UntakenStreams);
        }
        let lent = match UnixStream::pair() {
            Ok((own, lent)) => {
                self.calls.open(number, request, own)?;
                lent.into_std().ok().map(OwnedFd::from)
            }
            // The call gets no stream, because this process has no descriptor left.
            Err(_) => None,
        };
        // If the socket is closed, the reader notices it.
        let _ = self.sender.send(&ToWorker::Stream(id), lent.into_iter().collect());
        Ok(())
    }
}

/// A process that ends when it does not become ready.
struct EndOnDrop(Option<Arc<dyn WorkerProcess>>);

impl EndOnDrop {
    fn keep(mut self) -> Option<Arc<dyn WorkerProcess>> {
        self.0.take()
    }

    /// Waits for the end of the process, and says how it ended.
    async fn reason(mut self) -> String {
        let Some(process) = self.0.take() else { return String::new() };
        tokio::task::spawn_blocking(move || {
            process.kill();
            process.wait()
        })
        .await
        .unwrap_or_default()
    }
}

impl Drop for EndOnDrop {
    fn drop(&mut self) {
        if let Some(process) = self.0.take() {
            end_process(process);
        }
    }
}

/// Ends a process. It must be waited for, and this may be a thread that must not block.
fn end_process(process: Arc<dyn WorkerProcess>) {
    process.kill();
    std::thread::spawn(move || process.wait());
}
