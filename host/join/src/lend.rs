//! Lends standard output to belljar, so that it writes small answers itself. This process then sleeps until the client's
//! next request, and a read costs one wake-up of it instead of two.
//!
//! With the greeting go two descriptors: standard output, and one end of a pair of sockets. On that pair,
//!
//! * belljar sends a *receipt* after each answer that it wrote: the id of the request, as a line. This process takes them
//!   when it is awake anyway. So it knows what was not answered if belljar ends.
//! * this process sends how many bytes of belljar's stream it has passed on: each time a number of 8 bytes, in
//!   little-endian order. belljar writes nothing itself while such bytes are under way, so nothing is overtaken or torn.

use std::io::{self, IoSlice, Read as _, Write as _};
use std::os::fd::{AsFd as _, BorrowedFd};
use std::os::unix::net::UnixStream;

use rustix::net::{SendAncillaryBuffer, SendAncillaryMessage, SendFlags, sendmsg};

/// Bytes of receipts that are read at once.
const CHUNK: usize = 1 << 10;

/// This process's end of the pair of sockets.
pub(crate) struct Receipts {
    side: UnixStream,
    /// The beginning of a receipt whose end was not read yet.
    rest: Vec<u8>,
}

/// Says how many bytes of belljar's stream were passed on.
pub(crate) struct Passed {
    side: UnixStream,
    bytes: u64,
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
    let Ok((own, other)) = UnixStream::pair() else { return stream.write_all(line).map(|()| None) };
    own.set_nonblocking(true)?;
    other.set_nonblocking(true)?;
    let lent = [output, other.as_fd()];
    let mut space = [std::mem::MaybeUninit::uninit(); rustix::cmsg_space!(ScmRights(2))];
    let mut control = SendAncillaryBuffer::new(&mut space);
    control.push(SendAncillaryMessage::ScmRights(&lent));
    // The descriptors go with the first byte.
    let sent = sendmsg(stream, &[IoSlice::new(line)], &mut control, SendFlags::NOSIGNAL)?;
    stream.write_all(line.get(sent..).unwrap_or_default())?;
    let passed = Passed { side: own.try_clone()?, bytes: 0 };
    Ok(Some((Receipts { side: own, rest: Vec::new() }, passed)))
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
        let mut receipts = Receipts { side: own, rest: Vec::new() };
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
