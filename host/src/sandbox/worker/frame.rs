//! Frames over the socket between the front and a worker: the length of the body (u32, little-endian), the number of
//! descriptors that come with it (u8), and the body in the format of `postcard`.
//!
//! Only the front sends descriptors. It reads without room for any, so the kernel drops what a worker sends.

use std::collections::VecDeque;
use std::convert::Infallible;
use std::io::{self, IoSlice, IoSliceMut};
use std::mem::MaybeUninit;
use std::os::fd::{AsFd, BorrowedFd, OwnedFd};
use std::sync::atomic::{AtomicUsize, Ordering};
use std::sync::{Arc, Mutex, MutexGuard, PoisonError};

use postcard::ser_flavors::Flavor;
use rustix::io::Errno;
use rustix::net::{
    RecvAncillaryBuffer, RecvAncillaryMessage, RecvFlags, SendAncillaryBuffer, SendAncillaryMessage, SendFlags, recv,
    recvmsg, send, sendmsg,
};
use serde::Serialize;
use serde::de::DeserializeOwned;
use tokio::io::Interest;
use tokio::io::unix::AsyncFd;
use tokio::sync::Notify;

/// Bytes before the body.
const HEADER: usize = 5;

/// The most descriptors of one frame. Linux takes at most 253 at once.
pub(in crate::sandbox) const MAX_FILES: usize = 250;

/// Bytes that are read at once, and that a reader keeps for its frames.
const CHUNK: usize = 64 << 10;

/// A buffer for frames that are longer than [`CHUNK`], for all readers of this process. To clear new memory for each of
/// them costs more than to receive them.
static LARGE_BUFFER: Mutex<Vec<u8>> = Mutex::new(Vec::new());

/// The most bytes that this buffer keeps.
const MAX_KEPT: usize = 4 << 20;

/// A frame cannot be sent or received.
#[derive(Debug, thiserror::Error)]
pub(in crate::sandbox) enum MessageError {
    /// The socket fails.
    #[error(transparent)]
    Socket(#[from] io::Error),
    /// The other side is gone in the middle of a frame.
    #[error("the socket ended within a frame")]
    Truncated,
    /// The frame is longer than allowed.
    #[error("a frame has {length} bytes; at most {most} are allowed")]
    TooLong {
        /// The length that it states, in bytes.
        length: usize,
        /// The most bytes.
        most: usize,
    },
    /// The body is no message.
    #[error("a frame is not a message: {0}")]
    Malformed(#[from] postcard::Error),
    /// The frame states another number of descriptors than it has.
    #[error("a frame lacks its descriptors")]
    NoFiles,
}

/// Lets the runtime watch a socket.
fn watch(socket: OwnedFd, interest: Interest) -> io::Result<AsyncFd<OwnedFd>> {
    #[expect(unsafe_code, reason = "the runtime watches a descriptor by its number")]
    // SAFETY: an `OwnedFd` is open for as long as it lives, and always has the same number.
    let watched = unsafe { AsyncFd::register_with_interest(socket, interest) };
    Ok(watched?)
}

/// Room for the parts of a message that are not an answer, in bytes.
const SMALL: usize = 512;

/// Collects the body of a frame.
struct FrameBody(Vec<u8>);

impl Flavor for FrameBody {
    type Output = Vec<u8>;

    fn try_push(&mut self, byte: u8) -> postcard::Result<()> {
        self.0.push(byte);
        Ok(())
    }

    fn try_extend(&mut self, bytes: &[u8]) -> postcard::Result<()> {
        self.0.extend_from_slice(bytes);
        Ok(())
    }

    fn finalize(self) -> postcard::Result<Vec<u8>> {
        Ok(self.0)
    }
}

/// A frame that waits for the socket.
struct WaitingFrame {
    bytes: Vec<u8>,
    sent: usize,
    files: Vec<OwnedFd>,
}

/// The sending half of a socket. Frames go out in the order in which they were sent.
pub(in crate::sandbox) struct MessageSender {
    socket: OwnedFd,
    waiting: Mutex<VecDeque<WaitingFrame>>,
    /// Signals that a frame waits.
    has_waiting: Notify,
}

impl MessageSender {
    /// The sending half of a non-blocking socket.
    pub(in crate::sandbox) fn new(socket: OwnedFd) -> Self {
        Self { socket, waiting: Mutex::default(), has_waiting: Notify::new() }
    }

    /// Sends a message with descriptors. Never waits: what the socket does not take is sent by [`MessageSender::run`].
    ///
    /// # Errors
    /// If the message cannot be written as a frame, or the other side is gone.
    pub(in crate::sandbox) fn send<T: Serialize>(&self, message: &T, files: Vec<OwnedFd>) -> Result<(), MessageError> {
        self.send_sized(message, SMALL, files)
    }

    /// [`MessageSender::send`] for a message of about `size` bytes.
    ///
    /// # Errors
    /// As [`MessageSender::send`].
    pub(in crate::sandbox) fn send_sized<T: Serialize>(
        &self,
        message: &T,
        size: usize,
        files: Vec<OwnedFd>,
    ) -> Result<(), MessageError> {
        let mut bytes = Vec::with_capacity(size.saturating_add(SMALL));
        bytes.extend([0; HEADER]);
        let mut bytes = postcard::serialize_with_flavor(message, FrameBody(bytes))?;
        let body = bytes.len().saturating_sub(HEADER);
        let too_long = || MessageError::TooLong { length: body, most: u32::MAX as usize };
        let length = u32::try_from(body).map_err(|_| too_long())?.to_le_bytes();
        let count = u8::try_from(files.len()).map_err(|_| MessageError::NoFiles)?;
        for (to, from) in bytes.iter_mut().zip(length.into_iter().chain([count])) {
            *to = from;
        }
        let mut frame = WaitingFrame { bytes, sent: 0, files };
        let mut waiting = self.lock();
        if waiting.is_empty() && frame.send(self.socket.as_fd())? {
            return Ok(());
        }
        waiting.push_back(frame);
        drop(waiting);
        self.has_waiting.notify_one();
        Ok(())
    }

    /// The number of frames that wait.
    pub(in crate::sandbox) fn waiting(&self) -> usize {
        self.lock().len()
    }

    /// Sends the frames that wait, until the socket fails.
    pub(in crate::sandbox) async fn run(&self) -> MessageError {
        let Err(error) = self.send_waiting().await;
        error
    }

    async fn send_waiting(&self) -> Result<Infallible, MessageError> {
        loop {
            if self.lock().is_empty() {
                self.has_waiting.notified().await;
                continue;
            }
            // The runtime watches the socket only while a frame waits: otherwise each frame that the other side takes
            // would wake this side.
            let socket = watch(self.socket.try_clone()?, Interest::WRITABLE)?;
            while !self.lock().is_empty() {
                let mut guard = socket.writable().await?;
                let mut waiting = self.lock();
                while let Some(frame) = waiting.front_mut() {
                    match frame.send(self.socket.as_fd())? {
                        true => drop(waiting.pop_front()),
                        false => break,
                    }
                }
                if !waiting.is_empty() {
                    guard.clear_ready();
                }
            }
        }
    }

    fn lock(&self) -> MutexGuard<'_, VecDeque<WaitingFrame>> {
        self.waiting.lock().unwrap_or_else(PoisonError::into_inner)
    }
}

impl WaitingFrame {
    /// Sends the rest of the frame. False if the socket takes no more now.
    fn send(&mut self, socket: BorrowedFd<'_>) -> io::Result<bool> {
        while let Some(rest) = self.bytes.get(self.sent..).filter(|rest| !rest.is_empty()) {
            let flags = SendFlags::NOSIGNAL | SendFlags::DONTWAIT;
            let sent = match self.files.as_slice() {
                [] => send(socket, rest, flags),
                files => {
                    let lent: Vec<BorrowedFd<'_>> = files.iter().map(AsFd::as_fd).collect();
                    let mut space = vec![MaybeUninit::uninit(); rustix::cmsg_space!(ScmRights(MAX_FILES))];
                    let mut control = SendAncillaryBuffer::new(&mut space);
                    if !control.push(SendAncillaryMessage::ScmRights(&lent)) {
                        return Err(io::ErrorKind::InvalidInput.into());
                    }
                    sendmsg(socket, &[IoSlice::new(rest)], &mut control, flags)
                }
            };
            match sent {
                Ok(sent) => self.sent += sent,
                Err(Errno::INTR) => {}
                Err(Errno::AGAIN) => return Ok(false),
                Err(error) => return Err(error.into()),
            }
            // The descriptors went with the first byte.
            self.files.clear();
        }
        Ok(true)
    }
}

/// The receiving half of a socket.
pub(in crate::sandbox) struct MessageReader {
    socket: AsyncFd<OwnedFd>,
    /// Received bytes from `used` to `filled`. Those before belong to earlier frames, and those behind are room.
    buffer: Vec<u8>,
    used: usize,
    filled: usize,
    /// Received descriptors. `None` if this side takes none.
    files: Option<VecDeque<OwnedFd>>,
    most: FrameLimit,
}

/// The most bytes of a body that a reader takes.
#[derive(Clone)]
pub(in crate::sandbox) struct FrameLimit(Arc<AtomicUsize>);

impl FrameLimit {
    /// At most `most` bytes.
    pub(in crate::sandbox) fn new(most: usize) -> Self {
        Self(Arc::new(AtomicUsize::new(most)))
    }

    /// Allows at least `most` bytes from now on.
    pub(in crate::sandbox) fn raise(&self, most: usize) {
        self.0.fetch_max(most, Ordering::Relaxed);
    }
}

impl MessageReader {
    /// The receiving half of a non-blocking socket, for frames within a limit, without descriptors.
    ///
    /// # Errors
    /// If the runtime cannot watch the socket.
    pub(in crate::sandbox) fn new(socket: OwnedFd, most: FrameLimit) -> io::Result<Self> {
        let socket = watch(socket, Interest::READABLE)?;
        Ok(Self { socket, buffer: Vec::new(), used: 0, filled: 0, files: None, most })
    }

    /// The same, and takes descriptors.
    pub(in crate::sandbox) fn with_files(self) -> Self {
        Self { files: Some(VecDeque::new()), ..self }
    }

    /// The same reader, watched by the runtime of this thread.
    ///
    /// # Errors
    /// If the runtime cannot watch the socket.
    pub(in crate::sandbox) fn moved(self) -> io::Result<Self> {
        Ok(Self { socket: watch(self.socket.into_inner(), Interest::READABLE)?, ..self })
    }

    /// The next message and its descriptors. `None` at the end of the socket.
    ///
    /// # Errors
    /// If the socket fails, or the frame is not a message.
    pub(in crate::sandbox) async fn next<T: DeserializeOwned>(
        &mut self,
    ) -> Result<Option<(T, Vec<OwnedFd>)>, MessageError> {
        if !self.fill(HEADER).await? {
            return Ok(None);
        }
        let (length, count) = self.header();
        let most = self.most.0.load(Ordering::Relaxed);
        if length > most {
            return Err(MessageError::TooLong { length, most });
        }
        if !self.fill(HEADER + length).await? {
            return Err(MessageError::Truncated);
        }
        let start = self.used + HEADER;
        let message = postcard::from_bytes(self.buffer.get(start..start + length).unwrap_or_default())?;
        self.used = start + length;
        if self.used == self.filled {
            (self.used, self.filled) = (0, 0);
            if self.buffer.len() > CHUNK {
                keep(std::mem::take(&mut self.buffer));
            }
        }
        let files = match &mut self.files {
            Some(files) if files.len() >= count => files.drain(..count).collect(),
            None if count == 0 => Vec::new(),
            _ => return Err(MessageError::NoFiles),
        };
        Ok(Some((message, files)))
    }

    /// True if bytes of a further frame were received.
    pub(in crate::sandbox) fn has_next(&self) -> bool {
        self.used < self.filled
    }

    /// The length and the number of descriptors of the next frame, whose header has arrived.
    fn header(&self) -> (usize, usize) {
        let mut header = self.buffer.iter().skip(self.used).copied();
        let mut next = || header.next().unwrap_or_default();
        let length = u32::from_le_bytes([next(), next(), next(), next()]);
        (usize::try_from(length).unwrap_or(usize::MAX), usize::from(next()))
    }

    /// Receives until `wanted` bytes wait. False if the socket ended before the first of them.
    async fn fill(&mut self, wanted: usize) -> Result<bool, MessageError> {
        while self.filled - self.used < wanted {
            self.make_room(wanted);
            match self.receive().await? {
                0 if self.filled == 0 => return Ok(false),
                0 => return Err(MessageError::Truncated),
                count => self.filled += count,
            }
        }
        Ok(true)
    }

    /// Moves the bytes that wait to the front of a buffer with room for `wanted` bytes.
    fn make_room(&mut self, wanted: usize) {
        if self.used > 0 {
            self.buffer.copy_within(self.used..self.filled, 0);
            (self.used, self.filled) = (0, self.filled - self.used);
        }
        let size = wanted.max(CHUNK);
        if self.buffer.len() >= size {
            return;
        }
        let mut larger = Vec::new();
        if size > CHUNK {
            larger = std::mem::take(&mut *LARGE_BUFFER.lock().unwrap_or_else(PoisonError::into_inner));
        }
        if larger.len() < size {
            // The length is bounded, and new memory that no byte has reached costs nothing.
            larger = vec![0; size];
        }
        larger.iter_mut().zip(self.buffer.iter().take(self.filled)).for_each(|(to, from)| *to = *from);
        self.buffer = larger;
    }

    /// Receives bytes into the room of the buffer.
    async fn receive(&mut self) -> io::Result<usize> {
        let Self { socket, buffer, files, filled, .. } = self;
        loop {
            let mut guard = socket.readable().await?;
            let room = buffer.get_mut(*filled..).unwrap_or_default();
            let size = room.len();
            let received = match files.as_mut() {
                Some(files) => receive_with_files(guard.get_inner().as_fd(), room, files),
                None => recv(guard.get_inner().as_fd(), room, RecvFlags::DONTWAIT).map(|(count, _)| count),
            };
            match received {
                Ok(count) => {
                    // The socket is empty. Without this, the next read would find that out. A read also stops before bytes
                    // that come with descriptors, and then the socket is not empty.
                    if files.is_none() && count < size {
                        guard.clear_ready();
                    }
                    return Ok(count);
                }
                Err(Errno::AGAIN) => guard.clear_ready(),
                Err(Errno::INTR) => {}
                Err(error) => return Err(error.into()),
            }
        }
    }
}

/// Keeps a large buffer for the next large frame.
fn keep(buffer: Vec<u8>) {
    let mut kept = LARGE_BUFFER.lock().unwrap_or_else(PoisonError::into_inner);
    if buffer.len() <= MAX_KEPT && buffer.len() > kept.len() {
        *kept = buffer;
    }
}

fn receive_with_files(socket: BorrowedFd<'_>, into: &mut [u8], files: &mut VecDeque<OwnedFd>) -> Result<usize, Errno> {
    let mut space = [MaybeUninit::uninit(); rustix::cmsg_space!(ScmRights(MAX_FILES))];
    let mut control = RecvAncillaryBuffer::new(&mut space);
    let flags = RecvFlags::CMSG_CLOEXEC | RecvFlags::DONTWAIT;
    let received = recvmsg(socket, &mut [IoSliceMut::new(into)], &mut control, flags)?;
    for message in control.drain() {
        if let RecvAncillaryMessage::ScmRights(come) = message {
            files.extend(come);
        }
    }
    Ok(received.bytes)
}

#[cfg(test)]
mod tests;
