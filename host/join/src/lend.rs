//! Lends standard output to belljar, so that it writes small answers itself. This process then sleeps until the client's
//! next request, and a read costs one wake-up of it instead of two.
//!
//! With the greeting go four descriptors: standard output, one end of a pair of sockets, and both ends of a pipe, the
//! *tray*. To write an answer,
//!
//! 1. belljar puts it into the tray,
//! 2. sends a *receipt* over the pair of sockets: the id of the request, as a line,
//! 3. and moves the bytes from the tray to standard output by one system call (splice(2)).
//!
//! So an answer is either in the tray or at the client, also if belljar is killed at any of these steps: then this process
//! writes what is in the tray. If the client takes no bytes, belljar leaves them in the tray and sends [`DRAIN`] as a line.
//! This process reads receipts when it is awake anyway, so it knows what was not answered if belljar ends.
//!
//! Over the pair of sockets, this process says how many bytes of belljar's stream it has passed on: each time a number of
//! 8 bytes, in little-endian order. belljar writes nothing itself while such bytes are under way, so nothing is overtaken or
//! torn.

use std::fs::File;
use std::io::{self, IoSlice, Read as _, Write as _};
use std::os::fd::{AsFd as _, BorrowedFd};
use std::os::unix::net::UnixStream;

use rustix::net::{SendAncillaryBuffer, SendAncillaryMessage, SendFlags, sendmsg};
use rustix::pipe::{PipeFlags, pipe_with};

use crate::head::client_answer_id;

/// The line, with its line break, with which belljar asks this process to empty the tray.
pub const DRAIN: &[u8] = b"{\"belljar\":\"drain\"}\n";

/// Bytes of receipts that are read at once.
const CHUNK: usize = 1 << 10;

/// The most bytes that are in the tray.
const TRAY: usize = 4 << 10;

/// This process's end of the pair of sockets, and the tray.
pub(crate) struct Receipts {
    side: UnixStream,
    tray: Tray,
    /// The beginning of a receipt whose end was not read yet.
    rest: Vec<u8>,
}

/// Answers that belljar could not write to the client.
pub(crate) struct Tray(File);

/// Says how many bytes of belljar's stream were passed on.
pub(crate) struct Passed {
    side: UnixStream,
    pub(crate) tray: Tray,
    bytes: u64,
}

impl Tray {
    /// Takes all bytes out of the tray.
    pub(crate) fn take(&mut self) -> Vec<u8> {
        let (mut all, mut chunk) = (Vec::new(), [0; TRAY]);
        while let Ok(read @ 1..) = self.0.read(&mut chunk) {
            all.extend_from_slice(chunk.get(..read).unwrap_or_default());
        }
        all
    }
}

/// Sends `line` over `stream`, and lends `output`. Returns `None` if the output cannot be lent: then the line is sent alone.
///
/// # Errors
/// If belljar has ended.
pub(crate) fn send(
    mut stream: &UnixStream,
    line: &[u8],
    output: BorrowedFd<'_>,
) -> io::Result<Option<(Receipts, Passed)>> {
    let tray = pipe_with(PipeFlags::NONBLOCK | PipeFlags::CLOEXEC);
    let (Ok((own, other)), Ok((tray, into_tray))) = (UnixStream::pair(), tray) else {
        return stream.write_all(line).map(|()| None);
    };
    own.set_nonblocking(true)?;
    other.set_nonblocking(true)?;
    let lent = [output, other.as_fd(), tray.as_fd(), into_tray.as_fd()];
    let mut space = [std::mem::MaybeUninit::uninit(); rustix::cmsg_space!(ScmRights(4))];
    let mut control = SendAncillaryBuffer::new(&mut space);
    control.push(SendAncillaryMessage::ScmRights(&lent));
    // The descriptors go with the first byte.
    let sent = sendmsg(stream, &[IoSlice::new(line)], &mut control, SendFlags::NOSIGNAL)?;
    stream.write_all(line.get(sent..).unwrap_or_default())?;
    let tray = File::from(tray);
    let passed = Passed { side: own.try_clone()?, tray: Tray(tray.try_clone()?), bytes: 0 };
    Ok(Some((Receipts { side: own, tray: Tray(tray), rest: Vec::new() }, passed)))
}

impl Receipts {
    /// Calls `answered` with the id of each request that belljar has answered itself since the last time.
    pub(crate) fn take(&mut self, mut answered: impl FnMut(&str)) {
        let mut chunk = [0; CHUNK];
        loop {
            // An error means that there are no more, now or ever.
            let read = self.side.read(&mut chunk).unwrap_or(0);
            self.rest.extend_from_slice(chunk.get(..read).unwrap_or_default());
            let whole = memchr::memrchr(b'\n', &self.rest).map_or(0, |at| at + 1);
            for id in self.rest.drain(..whole).collect::<Vec<u8>>().split(|byte| *byte == b'\n') {
                if let Some(id) = std::str::from_utf8(id).ok().filter(|id| !id.is_empty()) {
                    answered(id);
                }
            }
            if read < CHUNK {
                return;
            }
        }
    }
}

impl Receipts {
    /// After the end of belljar: what it left in the tray, for the client. Calls `answered` with the id of each whole
    /// answer in it.
    pub(crate) fn left_in_tray(&mut self, mut answered: impl FnMut(&str)) -> Vec<u8> {
        let left = self.tray.take();
        for line in left.split_inclusive(|byte| *byte == b'\n') {
            line.strip_suffix(b"\n").and_then(client_answer_id).into_iter().for_each(|id| answered(&id));
        }
        left
    }
}

impl Passed {
    /// Says that `bytes` more bytes were passed on.
    pub(crate) fn add(&mut self, bytes: usize) {
        self.bytes += bytes as u64;
        // If belljar reads none for a long time, the pair is full. A later number says the same and more.
        let _ = self.side.write(&self.bytes.to_le_bytes());
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn receipts_are_whole_however_they_come() {
        let (own, mut other) = UnixStream::pair().unwrap();
        own.set_nonblocking(true).unwrap();
        let (tray, _) = std::io::pipe().unwrap();
        let tray = Tray(std::os::fd::OwnedFd::from(tray).into());
        let mut receipts = Receipts { side: own, tray, rest: Vec::new() };
        let mut taken = || {
            let mut ids = Vec::new();
            receipts.take(|id| ids.push(id.to_owned()));
            ids
        };
        assert!(taken().is_empty());
        other.write_all(b"1\n\"a\"\n2").unwrap();
        assert_eq!(taken(), ["1", "\"a\""]);
        let many: Vec<String> = (0..5_000).map(|id| format!("{id}")).collect();
        other.write_all(format!("7\n{}\n", many[..100].join("\n")).as_bytes()).unwrap();
        assert_eq!(taken()[..2], ["27", "0"]);
        drop(other);
        assert!(taken().is_empty());
    }
}
