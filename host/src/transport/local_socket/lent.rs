//! The standard output of a joined client, which `belljar-join` lends to belljar. belljar writes small answers there
//! itself, so no other process has to wake up for them. The crate `belljar-join` describes what both sides send.
//!
//! A write here never waits: if the client takes no bytes now, the answer goes through `belljar-join`.

use std::io::{self, IoSlice, IoSliceMut, Write as _};
use std::os::fd::OwnedFd;
use std::os::unix::net::UnixStream;

use belljar_join::client_answer_id;
use rustix::fs::{FileType, fstat};
use rustix::io::{ReadWriteFlags, pwritev2};
use rustix::net::{
    AddressFamily, RecvAncillaryBuffer, RecvAncillaryMessage, RecvFlags, SendFlags, SocketType, recv, recvmsg, send,
    sockopt,
};
use tokio::io::Interest;

/// The longest answer that is written here, in bytes. The kernel writes as much to a pipe in one piece (pipe(7),
/// `PIPE_BUF`), so no answer is torn if belljar ends meanwhile.
const MAX_ANSWER: usize = 4096;

/// The kind of the lent output.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum OutputKind {
    Pipe,
    Socket,
}

/// A lent output, and the pair of sockets for receipts.
pub(super) struct LentOutput {
    output: OwnedFd,
    kind: OutputKind,
    side: UnixStream,
    /// Receipts that the pair of sockets has not taken yet.
    receipts: Vec<u8>,
    /// Bytes that were sent through `belljar-join`.
    relayed: u64,
    /// How many of them it has passed on.
    passed: u64,
}

/// The first line of a connection.
#[derive(Default)]
pub(super) struct FirstLine {
    /// The bytes so far, with the line break at the end.
    bytes: Vec<u8>,
    /// What was lent with the first byte.
    lent: Vec<OwnedFd>,
}

impl FirstLine {
    /// Waits for the line. Leaves the bytes after it in the stream. `None` if it is longer than `longest` bytes.
    ///
    /// # Errors
    /// If the stream fails, or ends before the line.
    pub(super) async fn read(stream: &tokio::net::UnixStream, longest: usize) -> io::Result<Option<Self>> {
        let mut line = Self::default();
        while line.bytes.len() < longest {
            let room = longest - line.bytes.len();
            stream.readable().await?;
            match stream.try_io(Interest::READABLE, || line.receive(stream, room)) {
                Ok(true) => return Ok(Some(line)),
                Ok(false) => {}
                Err(error) if error.kind() == io::ErrorKind::WouldBlock => {}
                Err(error) => return Err(error),
            }
        }
        Ok(None)
    }

    /// Receives the rest of the line, or all bytes that are there, at most `room`. True if the line is complete.
    fn receive(&mut self, stream: &tokio::net::UnixStream, room: usize) -> io::Result<bool> {
        let mut bytes = vec![0; room];
        let (there, _) = recv(stream, bytes.as_mut_slice(), RecvFlags::PEEK | RecvFlags::DONTWAIT)?;
        let end = bytes.iter().take(there).position(|byte| *byte == b'\n');
        bytes.truncate(end.map_or(there, |end| end + 1));
        let mut space = [std::mem::MaybeUninit::uninit(); rustix::cmsg_space!(ScmRights(2))];
        let mut control = RecvAncillaryBuffer::new(&mut space);
        let flags = RecvFlags::DONTWAIT | RecvFlags::CMSG_CLOEXEC;
        let received = recvmsg(stream, &mut [IoSliceMut::new(&mut bytes)], &mut control, flags)?;
        if received.bytes == 0 {
            return Err(io::ErrorKind::UnexpectedEof.into());
        }
        for message in control.drain() {
            if let RecvAncillaryMessage::ScmRights(descriptors) = message {
                self.lent.extend(descriptors);
            }
        }
        self.bytes.extend_from_slice(bytes.get(..received.bytes).unwrap_or_default());
        Ok(self.bytes.ends_with(b"\n"))
    }

    /// The line.
    pub(super) fn bytes(&self) -> &[u8] {
        &self.bytes
    }

    /// The output that was lent with the line.
    pub(super) fn into_lent(self) -> Option<LentOutput> {
        let mut lent = self.lent.into_iter();
        LentOutput::new(lent.next()?, lent.next()?)
    }
}

/// The kind of an output. `None` if it is neither a pipe nor a Unix socket: a write to other files may wait.
fn kind(output: &OwnedFd) -> Option<OutputKind> {
    let is_stream = |socket: &OwnedFd| {
        sockopt::socket_domain(socket).is_ok_and(|family| family == AddressFamily::UNIX)
            && sockopt::socket_type(socket).is_ok_and(|kind| kind == SocketType::STREAM)
    };
    match FileType::from_raw_mode(fstat(output).ok()?.st_mode) {
        FileType::Fifo => Some(OutputKind::Pipe),
        FileType::Socket if is_stream(output) => Some(OutputKind::Socket),
        _ => None,
    }
}

/// The ids of the answers in `bytes`, each as a line. `None` if something else is in them.
fn receipts(bytes: &[u8]) -> Option<Vec<u8>> {
    let mut all = Vec::new();
    for line in bytes.split_inclusive(|byte| *byte == b'\n') {
        all.extend_from_slice(client_answer_id(line.strip_suffix(b"\n")?)?.as_bytes());
        all.push(b'\n');
    }
    Some(all)
}

impl LentOutput {
    pub(super) fn new(output: OwnedFd, side: OwnedFd) -> Option<Self> {
        let kind = kind(&output)?;
        // The other process made it so. If it did not, a write could wait.
        let side = UnixStream::from(side);
        side.set_nonblocking(true).ok()?;
        Some(Self { output, kind, side, receipts: Vec::new(), relayed: 0, passed: 0 })
    }

    /// Counts bytes that were sent through `belljar-join`.
    pub(super) fn relayed(&mut self, bytes: usize) {
        self.relayed += bytes as u64;
    }

    /// Writes `bytes` to the client, if they are whole answers, and if nothing else is on its way there. Returns the number
    /// of bytes that were written. The rest must go through `belljar-join`.
    pub(super) fn write(&mut self, bytes: &[u8]) -> usize {
        if bytes.is_empty() || bytes.len() > MAX_ANSWER || !self.is_passed() || !self.send_receipts() {
            return 0;
        }
        let Some(mut receipts) = receipts(bytes) else { return 0 };
        let written = match self.kind {
            // The offset -1 means the current place. A pipe has no other.
            OutputKind::Pipe => pwritev2(&self.output, &[IoSlice::new(bytes)], u64::MAX, ReadWriteFlags::NOWAIT),
            OutputKind::Socket => send(&self.output, bytes, SendFlags::DONTWAIT | SendFlags::NOSIGNAL),
        };
        let written = written.unwrap_or(0);
        if written > 0 {
            self.receipts.append(&mut receipts);
            self.send_receipts();
        }
        written
    }

    /// True if `belljar-join` has passed on all that was sent through it.
    fn is_passed(&mut self) -> bool {
        let mut chunk = [0; 512];
        while self.passed != self.relayed {
            // Each number is sent at once, and so many fit in that the pair never has a part of one.
            let Ok((read, _)) = recv(&self.side, chunk.as_mut_slice(), RecvFlags::DONTWAIT) else { return false };
            let (numbers, _) = chunk.get(..read).unwrap_or_default().as_chunks();
            let Some(last) = numbers.last() else { return false };
            self.passed = u64::from_le_bytes(*last);
        }
        true
    }

    /// Sends the receipts that are left. True if none is left.
    fn send_receipts(&mut self) -> bool {
        while !self.receipts.is_empty() {
            match self.side.write(&self.receipts) {
                Ok(sent) => drop(self.receipts.drain(..sent)),
                Err(error) if error.kind() == io::ErrorKind::Interrupted => {}
                Err(_) => return false,
            }
        }
        true
    }
}

#[cfg(test)]
mod tests {
    use std::fs::File;
    use std::io::{Read as _, pipe};

    use super::*;

    const ANSWER: &[u8] = b"{\"jsonrpc\":\"2.0\",\"id\":7,\"result\":{}}\n";

    /// A lent output, and the other process's end of the pair of sockets.
    fn lent(output: impl Into<OwnedFd>) -> (LentOutput, UnixStream) {
        let (own, side) = UnixStream::pair().unwrap();
        side.set_nonblocking(true).unwrap();
        (LentOutput::new(output.into(), own.into()).unwrap(), side)
    }

    /// All receipts so far.
    fn taken(mut side: &UnixStream) -> String {
        let mut bytes = [0; 256];
        let read = side.read(&mut bytes).unwrap_or(0);
        String::from_utf8(bytes[..read].to_vec()).unwrap()
    }

    #[test]
    fn only_answers_for_the_client_are_written() {
        let (mut reader, writer) = pipe().unwrap();
        let (mut lent, side) = lent(writer);
        assert_eq!(lent.write(ANSWER), ANSWER.len());
        assert_eq!(lent.write(&ANSWER.repeat(2)), 2 * ANSWER.len());
        assert_eq!(taken(&side), "7\n7\n7\n");
        for other in [
            "{\"jsonrpc\":\"2.0\",\"id\":\"belljar-shim-open\",\"result\":{}}\n",
            "{\"jsonrpc\":\"2.0\",\"id\":7,\"error\":{}}\n",
            "{\"jsonrpc\":\"2.0\",\"method\":\"notifications/message\"}\n",
            "{\"jsonrpc\":\"2.0\",\"id\":7,\"result\":{}}",
            "",
        ] {
            assert_eq!(lent.write(other.as_bytes()), 0, "{other}");
        }
        let long = format!("{{\"jsonrpc\":\"2.0\",\"id\":7,\"result\":\"{}\"}}\n", "x".repeat(MAX_ANSWER));
        assert_eq!(lent.write(long.as_bytes()), 0);
        drop(lent);
        let mut all = Vec::new();
        reader.read_to_end(&mut all).unwrap();
        assert_eq!(all, ANSWER.repeat(3));
        assert_eq!(taken(&side), "");
    }

    #[test]
    fn an_answer_waits_for_what_was_sent_before() {
        let (_reader, writer) = pipe().unwrap();
        let (mut lent, mut side) = lent(writer);
        lent.relayed(100);
        assert_eq!(lent.write(ANSWER), 0);
        side.write_all(&60_u64.to_le_bytes()).unwrap();
        assert_eq!(lent.write(ANSWER), 0);
        for passed in [80_u64, 100] {
            side.write_all(&passed.to_le_bytes()).unwrap();
        }
        assert_eq!(lent.write(ANSWER), ANSWER.len());
        drop(side);
        lent.relayed(1);
        assert_eq!(lent.write(ANSWER), 0);
    }

    #[test]
    fn a_write_never_waits() {
        let (reader, writer) = pipe().unwrap();
        let (mut to_pipe, _side) = lent(writer);
        while to_pipe.write(ANSWER) > 0 {}
        let (client, output) = UnixStream::pair().unwrap();
        let (mut to_socket, _other) = lent(output);
        while to_socket.write(ANSWER) == ANSWER.len() {}
        drop((reader, client));
        assert_eq!((to_pipe.write(ANSWER), to_socket.write(ANSWER)), (0, 0));
    }

    #[test]
    fn receipts_that_do_not_fit_come_later() {
        let (mut reader, writer) = pipe().unwrap();
        let (mut lent, mut side) = lent(writer);
        let mut count = 0;
        while lent.receipts.is_empty() {
            assert_eq!(lent.write(ANSWER), ANSWER.len());
            reader.read_exact(&mut vec![0; ANSWER.len()]).unwrap();
            count += 1;
        }
        assert_eq!(lent.write(ANSWER), 0, "the answer would have no receipt");
        side.set_nonblocking(false).unwrap();
        let mut all = vec![0; 2 * (count - 1)];
        side.read_exact(&mut all).unwrap();
        assert_eq!(lent.write(ANSWER), ANSWER.len());
        side.read_exact(&mut [0; 4]).unwrap();
        side.set_nonblocking(true).unwrap();
        assert_eq!(taken(&side), "");
    }

    #[test]
    fn only_pipes_and_sockets_are_written() {
        let (own, _side) = UnixStream::pair().unwrap();
        let file = |file: File| LentOutput::new(file.into(), own.try_clone().unwrap().into()).is_none();
        assert!(file(tempfile::tempfile().unwrap()));
        assert!(file(File::open("/dev/null").unwrap()));
        let udp = std::net::UdpSocket::bind("127.0.0.1:0").unwrap();
        assert!(LentOutput::new(udp.into(), own.try_clone().unwrap().into()).is_none());
    }
}
