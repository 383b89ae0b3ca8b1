//! The entry of the fuzz targets: a worker, and a front, that send any bytes.

use std::io::{Read as _, Write as _};
use std::os::unix::net::UnixStream;
use std::sync::Arc;
use std::time::Duration;

use serde::Serialize;
use serde::de::DeserializeOwned;

use super::answer_memory::{AnswerMemory, BodyRange};
use super::frame::{FrameLimit, MessageError, MessageReader, MessageSender};
use super::message::{CallExtras, MountHandover, ToFront, ToWorker, WorkerCall, WorkerStart};
use super::pending::PendingCalls;
use crate::grants::{FrontRequest, GrantsHandover, RecordEntry};
use crate::interfaces::resources::Read;
use crate::model::{DecisionKind, Limits, ReadError, Usage};
use crate::sandbox::mount_id::MountId;
use crate::sandbox::spec::{CallSpec, Outcome};

/// The most bytes of a frame.
const MOST: usize = 1 << 20;

/// Messages of both sides as frames, one after the other.
pub fn seeds() -> Vec<Vec<u8>> {
    let read = Read { reference: "a".to_owned() };
    let principal = "local".to_owned();
    let spec = CallSpec {
        mount: MountId::none(),
        principal,
        request: read.into(),
        limits: Limits::default(),
        consent: Vec::new(),
    };
    let extras = CallExtras { variables: vec![("A".to_owned(), "b".to_owned())], longest_secret: 3 };
    let call = WorkerCall { number: 1, spec, extras, time_left: Duration::from_secs(1), freed: vec![4096] };
    let start = WorkerStart { calls: 2, total_memory: 1, threads: 1, code: 0 };
    let mount = MountHandover {
        id: MountId::none(),
        name: "m".to_owned(),
        limits: Limits::default(),
        grants: GrantsHandover::default(),
    };
    let denied = RecordEntry::Decision("fs".to_owned(), "x".to_owned(), DecisionKind::Denied, None);
    let bodies = BodyRange { start: 4096, bodies: vec![(0, 70_000)] };
    let said = [
        ToFront::Ready("full".to_owned()),
        ToFront::Entry(1, denied),
        ToFront::Open(1, 1, FrontRequest::Connect("a".to_owned(), 1)),
        ToFront::Outcome(1, Box::new(Outcome::failed(ReadError::NotFound)), None),
        ToFront::Outcome(1, Box::new(Outcome::failed(ReadError::NotFound)), Some(bodies)),
        ToFront::Gone(1, Usage::default()),
    ];
    let told = [
        ToWorker::Load(Box::new(mount)),
        ToWorker::Call(Box::new(call)),
        ToWorker::Cancel(1),
        ToWorker::Stream(1),
        ToWorker::Unload(MountId::none()),
    ];
    let mut all: Vec<Vec<u8>> = said.iter().map(frame).chain(told.iter().map(frame)).chain([frame(&start)]).collect();
    all.push(said.iter().flat_map(frame).collect());
    all
}

/// The bytes of one message.
fn frame<T: Serialize>(message: &T) -> Vec<u8> {
    within(|| async {
        let (one, mut other) = UnixStream::pair().ok()?;
        one.set_nonblocking(true).ok()?;
        MessageSender::new(one.into()).send(message, Vec::new()).ok()?;
        let mut bytes = Vec::new();
        other.read_to_end(&mut bytes).ok()?;
        Some(bytes)
    })
    .unwrap_or_default()
}

/// What the front makes of a worker that sends `bytes`: the number of messages that it takes before it ends the worker.
pub fn front_hears(bytes: &[u8]) -> usize {
    let Ok(memory) = AnswerMemory::new() else { return 0 };
    let calls = PendingCalls::new(Arc::new(memory));
    hear(bytes, |message: ToFront| calls.take(message).is_ok())
}

/// What a worker makes of a front that sends `bytes`: the number of messages that it takes.
pub fn worker_hears(bytes: &[u8]) -> usize {
    hear(bytes, |_: ToWorker| true) + hear(bytes, |_: WorkerStart| true)
}

fn hear<T: DeserializeOwned>(bytes: &[u8], take: impl Fn(T) -> bool) -> usize {
    within(|| async {
        let (one, mut other) = UnixStream::pair().ok()?;
        // What the socket does not hold is not sent.
        other.set_nonblocking(true).ok()?;
        let _ = other.write_all(bytes);
        drop(other);
        one.set_nonblocking(true).ok()?;
        let mut frames = MessageReader::new(one.into(), FrameLimit::new(MOST)).ok()?;
        let mut count = 0;
        loop {
            let next: Result<Option<(T, _)>, MessageError> = frames.next().await;
            let Ok(Some((message, _))) = next else { break Some(count) };
            if !take(message) {
                break Some(count);
            }
            count += 1;
        }
    })
    .unwrap_or_default()
}

fn within<F: Future<Output = Option<T>>, T>(work: impl FnOnce() -> F) -> Option<T> {
    let runtime = tokio::runtime::Builder::new_current_thread().enable_io().build().ok()?;
    runtime.block_on(work())
}
