//! Frames over the socket between the front and a worker: the length of the body (u32, little-endian), the number of
//! descriptors that come with it (u8), and the body in the format of `postcard`.
//!
//! Only the front sends descriptors. It reads without room for any, so the kernel drops what a worker sends.

use std::collections::VecDeque;
use std::convert::Infallible;
use std::io::{self, IoSlice, IoSliceMut};
use std::mem::MaybeUninit;
use std::os::fd::{AsFd, BorrowedFd, OwnedFd};
use std::sync::{Mutex, MutexGuard, PoisonError};

use rustix::buffer::spare_capacity;
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

/// Bytes that are read at once.
const CHUNK: usize = 64 << 10;

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
        let mut bytes = postcard::to_extend(message, vec![0; HEADER])?;
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
    /// Received bytes, of which those before `used` belong to earlier frames.
    buffer: Vec<u8>,
    used: usize,
    /// Received descriptors. `None` if this side takes none.
    files: Option<VecDeque<OwnedFd>>,
    /// The most bytes of a body.
    most: usize,
}

impl MessageReader {
    /// The receiving half of a non-blocking socket, for frames of at most `most` bytes, without descriptors.
    ///
    /// # Errors
    /// If the runtime cannot watch the socket.
    pub(in crate::sandbox) fn new(socket: OwnedFd, most: usize) -> io::Result<Self> {
        let socket = watch(socket, Interest::READABLE)?;
        Ok(Self { socket, buffer: Vec::new(), used: 0, files: None, most })
    }

    /// The same, and takes descriptors.
    pub(in crate::sandbox) fn with_files(self) -> Self {
        Self { files: Some(VecDeque::new()), ..self }
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
        if length > self.most {
            return Err(MessageError::TooLong { length, most: self.most });
        }
        if !self.fill(HEADER + length).await? {
            return Err(MessageError::Truncated);
        }
        let start = self.used + HEADER;
        let message = postcard::from_bytes(self.buffer.get(start..start + length).unwrap_or_default())?;
        self.used = start + length;
        if self.used == self.buffer.len() {
            self.used = 0;
            self.buffer.clear();
            // A large answer must not keep its memory.
            self.buffer.shrink_to(CHUNK);
        }
        let files = match &mut self.files {
            Some(files) if files.len() >= count => files.drain(..count).collect(),
            None if count == 0 => Vec::new(),
            _ => return Err(MessageError::NoFiles),
        };
        Ok(Some((message, files)))
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
        while self.buffer.len() - self.used < wanted {
            if self.used > 0 {
                self.buffer.drain(..self.used);
                self.used = 0;
            }
            let before = self.buffer.len();
            // The length is bounded, and memory that no byte has reached costs nothing.
            self.buffer.reserve(wanted.saturating_sub(before).max(CHUNK));
            match self.receive().await? {
                0 if before == 0 => return Ok(false),
                0 => return Err(MessageError::Truncated),
                _ => {}
            }
        }
        Ok(true)
    }

    /// Receives bytes into the free capacity of the buffer.
    async fn receive(&mut self) -> io::Result<usize> {
        let Self { socket, buffer, files, .. } = self;
        loop {
            let mut guard = socket.readable().await?;
            let room = buffer.capacity() - buffer.len();
            match receive_now(guard.get_inner().as_fd(), buffer, files.as_mut()) {
                Ok(count) => {
                    // The socket is empty. Without this, the next read would find that out. A read also stops before bytes
                    // that come with descriptors, and then the socket is not empty.
                    if files.is_none() && count < room {
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

/// Receives the bytes that are there, and descriptors if this side takes any.
fn receive_now(
    socket: BorrowedFd<'_>,
    buffer: &mut Vec<u8>,
    files: Option<&mut VecDeque<OwnedFd>>,
) -> Result<usize, Errno> {
    let Some(files) = files else {
        return recv(socket, spare_capacity(buffer), RecvFlags::DONTWAIT).map(|(count, _)| count);
    };
    let before = buffer.len();
    buffer.resize(buffer.capacity(), 0);
    let received = receive_with_files(socket, buffer.get_mut(before..).unwrap_or_default(), files);
    buffer.truncate(before + *received.as_ref().unwrap_or(&0));
    received
}

fn receive_with_files(socket: BorrowedFd<'_>, into: &mut [u8], files: &mut VecDeque<OwnedFd>) -> Result<usize, Errno> {
    let mut space = vec![MaybeUninit::uninit(); rustix::cmsg_space!(ScmRights(MAX_FILES))];
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
mod tests {
    use std::io::{Read as _, Seek as _, Write as _};

    use std::os::unix::net::UnixStream;
    use std::sync::Arc;

    use super::*;

    const MOST: usize = 8 << 20;

    fn pair() -> (OwnedFd, OwnedFd) {
        let (one, other) = UnixStream::pair().unwrap();
        one.set_nonblocking(true).unwrap();
        other.set_nonblocking(true).unwrap();
        (one.into(), other.into())
    }

    #[tokio::test]
    async fn messages_of_any_size_come_in_order_with_their_descriptors() {
        let (one, other) = pair();
        let sender = Arc::new(MessageSender::new(one));
        let mut reader = MessageReader::new(other, MOST).unwrap().with_files();
        let own = Arc::clone(&sender);
        let running = tokio::spawn(async move { own.run().await });
        let file = |text: &str| {
            let mut file = tempfile::tempfile().unwrap();
            file.write_all(text.as_bytes()).unwrap();
            file.rewind().unwrap();
            OwnedFd::from(file)
        };
        sender.send(&"small".to_owned(), vec![file("a"), file("b")]).unwrap();
        sender.send(&"x".repeat(3 << 20), Vec::new()).unwrap();
        sender.send(&String::new(), vec![file("c")]).unwrap();
        for (size, expected) in [(5, vec!["a", "b"]), (3 << 20, vec![]), (0, vec!["c"])] {
            let (text, files): (String, _) = reader.next().await.unwrap().unwrap();
            let read = |file| {
                let mut text = String::new();
                std::fs::File::from(file).read_to_string(&mut text).unwrap();
                text
            };
            assert_eq!(
                (text.len(), files.into_iter().map(read).collect::<Vec<_>>()),
                (size, expected.iter().map(ToString::to_string).collect())
            );
        }
        running.abort();
        let _ = running.await;
        drop(sender);
        assert!(reader.next::<String>().await.unwrap().is_none());
    }

    #[tokio::test]
    async fn a_frame_behind_one_with_descriptors_is_received_although_nothing_follows() {
        let (one, other) = pair();
        let sender = MessageSender::new(one);
        for _ in 0..3 {
            sender.send(&1_u8, Vec::new()).unwrap();
            sender.send(&2_u8, vec![tempfile::tempfile().unwrap().into()]).unwrap();
        }
        let mut reader = MessageReader::new(other, MOST).unwrap().with_files();
        for expected in [1, 2, 1, 2, 1, 2] {
            let next = tokio::time::timeout(std::time::Duration::from_secs(60), reader.next::<u8>());
            let (number, files) = next.await.expect("the frame has come").unwrap().unwrap();
            assert_eq!((number, files.len()), (expected, usize::from(expected == 2)));
        }
    }

    #[tokio::test]
    async fn long_truncated_and_malformed_frames_are_errors() {
        for (bytes, expected) in [
            (&[0xff, 0xff, 0xff, 0x7f, 0][..], "at most"),
            (&[9, 0, 0, 0, 0, 1][..], "ended within"),
            (&[9, 0][..], "ended within"),
            (&[1, 0, 0, 0, 0, 200][..], "not a message"),
            (&[1, 0, 0, 0, 1, 0][..], "lacks its descriptors"),
        ] {
            let (one, other) = pair();
            UnixStream::from(one).write_all(bytes).unwrap();
            let error = MessageReader::new(other, MOST).unwrap().next::<String>().await.unwrap_err();
            assert!(error.to_string().contains(expected), "{bytes:?}: {error}");
        }
    }

    #[tokio::test]
    async fn a_side_without_room_for_descriptors_gets_none() {
        let (one, other) = pair();
        let (mut held, lent) = UnixStream::pair().unwrap();
        MessageSender::new(one).send(&1_u8, vec![lent.into()]).unwrap();
        assert!(matches!(MessageReader::new(other, MOST).unwrap().next::<u8>().await, Err(MessageError::NoFiles)));
        // The kernel has closed the descriptor.
        assert_eq!(held.read(&mut [0]).unwrap(), 0);
    }
}
