//! The standard output of a joined client, which `belljar-join` lends to belljar. belljar writes small answers there
//! itself, so no other process has to wake up for them. The module `lend` of the crate `belljar-join` describes what both
//! sides send, and why no answer is lost or sent twice if belljar is killed.
//!
//! A write here never waits: if the client takes no bytes now, `belljar-join` writes the answer.

use std::io::{self, IoSliceMut, Write as _};
use std::os::fd::OwnedFd;
use std::os::unix::net::UnixStream;

use belljar_join::client_answer_id;
use rustix::event::{PollFd, PollFlags, Timespec, poll};
use rustix::fs::{FileType, OFlags, fcntl_getfl, fstat};
use rustix::net::{
    AddressFamily, RecvAncillaryBuffer, RecvAncillaryMessage, RecvFlags, SocketType, recv, recvmsg, sockopt,
};
use rustix::pipe::{SpliceFlags, splice};
use tokio::io::Interest;

/// The longest answer that is written here, in bytes. The kernel writes as much to a pipe in one piece (pipe(7),
/// `PIPE_BUF`), so no answer is torn if belljar ends meanwhile. A local socket that is writable has room for more.
const MAX_ANSWER: usize = 4096;

/// What became of an answer.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum Written {
    /// The client has it.
    All,
    /// It must go through `belljar-join`.
    Nothing,
    /// It is in the tray, and `belljar-join` must be told so.
    InTray,
}

/// A lent output, and the pair of sockets for receipts.
pub(super) struct LentOutput {
    output: ClientOutput,
    side: UnixStream,
    /// The end of the tray from which bytes are moved to the output, and the other one.
    tray: (OwnedFd, OwnedFd),
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
        let mut space = [std::mem::MaybeUninit::uninit(); rustix::cmsg_space!(ScmRights(4))];
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
        LentOutput::new(lent.next()?, lent.next()?, (lent.next()?, lent.next()?))
    }
}

/// The standard output of a client, to which bytes can be moved without waiting.
enum ClientOutput {
    Pipe(OwnedFd),
    /// A local socket with a stream of bytes. Node gives its child processes such sockets.
    Socket(OwnedFd),
}

impl ClientOutput {
    /// What `file` is. `None` for a file that may make a write wait.
    fn of(file: OwnedFd) -> Option<Self> {
        match file_type(&file)? {
            FileType::Fifo => Some(Self::Pipe(file)),
            FileType::Socket if is_local_stream(&file) => Some(Self::Socket(file)),
            _ => None,
        }
    }

    /// Moves `bytes` bytes from a pipe to the client. True if it took all of them.
    fn take(&self, from: &OwnedFd, bytes: usize) -> bool {
        let to = match self {
            Self::Pipe(pipe) => pipe,
            // splice(2) waits for a socket, whatever its flags say. Only belljar writes to this one now.
            Self::Socket(socket) if is_writable(socket) => socket,
            Self::Socket(_) => return false,
        };
        splice(from, None, to, None, bytes, SpliceFlags::NONBLOCK) == Ok(bytes)
    }
}

fn file_type(file: &OwnedFd) -> Option<FileType> {
    Some(FileType::from_raw_mode(fstat(file).ok()?.st_mode))
}

fn is_local_stream(socket: &OwnedFd) -> bool {
    let (domain, kind) = (sockopt::socket_domain(socket), sockopt::socket_type(socket));
    (domain, kind) == (Ok(AddressFamily::UNIX), Ok(SocketType::STREAM))
}

/// True if `socket` takes the bytes of an answer now: the kernel calls a local socket writable while three quarters of its
/// room are free.
fn is_writable(socket: &OwnedFd) -> bool {
    let now = Timespec { tv_sec: 0, tv_nsec: 0 };
    poll(&mut [PollFd::new(socket, PollFlags::OUT)], Some(&now)) == Ok(1)
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
    /// `tray`: its end to read from, and its end to write to. `None` if a write to one of these could wait.
    pub(super) fn new(output: OwnedFd, side: OwnedFd, tray: (OwnedFd, OwnedFd)) -> Option<Self> {
        // The other process made them so. If it did not, a write could wait.
        let side = UnixStream::from(side);
        side.set_nonblocking(true).ok()?;
        let is_nonblocking = |end| fcntl_getfl(end).is_ok_and(|flags| flags.contains(OFlags::NONBLOCK));
        let is_pipe = |end| file_type(end) == Some(FileType::Fifo);
        let is_tray = [&tray.0, &tray.1].into_iter().all(|end| is_pipe(end) && is_nonblocking(end));
        let output = ClientOutput::of(output).filter(|_| is_tray)?;
        Some(Self { output, side, tray, receipts: Vec::new(), relayed: 0, passed: 0 })
    }

    /// Counts bytes that were sent through `belljar-join`.
    pub(super) fn relayed(&mut self, bytes: usize) {
        self.relayed += bytes as u64;
    }

    /// Writes `bytes` to the client, if they are whole answers, and if nothing else is on its way there.
    pub(super) fn write(&mut self, bytes: &[u8]) -> Written {
        if bytes.is_empty() || bytes.len() > MAX_ANSWER || !self.is_passed() || !self.send_receipts() {
            return Written::Nothing;
        }
        let Some(mut receipts) = receipts(bytes) else { return Written::Nothing };
        // The tray is empty, so it takes so few bytes whole.
        if rustix::io::write(&self.tray.1, bytes) != Ok(bytes.len()) {
            return Written::Nothing;
        }
        self.receipts.append(&mut receipts);
        self.send_receipts();
        match self.output.take(&self.tray.0, bytes.len()) {
            true => Written::All,
            false => Written::InTray,
        }
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
    use std::os::unix::net::UnixDatagram;

    use super::*;

    const ANSWER: &[u8] = b"{\"jsonrpc\":\"2.0\",\"id\":7,\"result\":{}}\n";

    /// A lent output, and the other process's end of the pair of sockets.
    fn lent(output: impl Into<OwnedFd>) -> (LentOutput, UnixStream) {
        let (own, side) = UnixStream::pair().unwrap();
        side.set_nonblocking(true).unwrap();
        (LentOutput::new(output.into(), own.into(), tray()).unwrap(), side)
    }

    fn tray() -> (OwnedFd, OwnedFd) {
        rustix::pipe::pipe_with(rustix::pipe::PipeFlags::NONBLOCK).unwrap()
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
        assert_eq!(lent.write(ANSWER), Written::All);
        assert_eq!(lent.write(&ANSWER.repeat(2)), Written::All);
        assert_eq!(taken(&side), "7\n7\n7\n");
        for other in [
            "{\"jsonrpc\":\"2.0\",\"id\":\"belljar-shim-open\",\"result\":{}}\n",
            "{\"jsonrpc\":\"2.0\",\"id\":7,\"error\":{}}\n",
            "{\"jsonrpc\":\"2.0\",\"method\":\"notifications/message\"}\n",
            "{\"jsonrpc\":\"2.0\",\"id\":7,\"result\":{}}",
            "",
        ] {
            assert_eq!(lent.write(other.as_bytes()), Written::Nothing, "{other}");
        }
        let long = format!("{{\"jsonrpc\":\"2.0\",\"id\":7,\"result\":\"{}\"}}\n", "x".repeat(MAX_ANSWER));
        assert_eq!(lent.write(long.as_bytes()), Written::Nothing);
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
        assert_eq!(lent.write(ANSWER), Written::Nothing);
        side.write_all(&60_u64.to_le_bytes()).unwrap();
        assert_eq!(lent.write(ANSWER), Written::Nothing);
        for passed in [80_u64, 100] {
            side.write_all(&passed.to_le_bytes()).unwrap();
        }
        assert_eq!(lent.write(ANSWER), Written::All);
        drop(side);
        lent.relayed(1);
        assert_eq!(lent.write(ANSWER), Written::Nothing);
    }

    #[test]
    fn what_the_client_does_not_take_is_in_the_tray() {
        let (reader, writer) = pipe().unwrap();
        fills_the_output(reader, writer);
        // A write that waited for the client would never end.
        let (done, is_done) = std::sync::mpsc::channel();
        std::thread::spawn(move || {
            let (reader, writer) = UnixStream::pair().unwrap();
            fills_the_output(reader, writer);
            done.send(()).unwrap();
        });
        is_done.recv_timeout(std::time::Duration::from_secs(60)).unwrap();
    }

    /// Writes answers to `writer`, the standard output of a client, until it takes no more.
    fn fills_the_output(mut reader: impl std::io::Read, writer: impl Into<OwnedFd>) {
        let (mut lent, mut side) = lent(writer);
        let mut count = 0;
        while lent.write(ANSWER) == Written::All {
            count += 1;
            // Otherwise the receipts fill their sockets first.
            side.read_exact(&mut [0; 2]).unwrap();
        }
        let mut left = vec![0; 2 * ANSWER.len()];
        let in_tray = rustix::io::read(&lent.tray.0, left.as_mut_slice()).unwrap();
        assert_eq!(left[..in_tray], *ANSWER);
        let mut all = vec![0; count * ANSWER.len()];
        reader.read_exact(&mut all).unwrap();
        assert!(all == ANSWER.repeat(count));
    }

    #[test]
    fn receipts_that_do_not_fit_come_later() {
        let (mut reader, writer) = pipe().unwrap();
        let (mut lent, mut side) = lent(writer);
        let mut count = 0;
        while lent.receipts.is_empty() {
            assert_eq!(lent.write(ANSWER), Written::All);
            reader.read_exact(&mut vec![0; ANSWER.len()]).unwrap();
            count += 1;
        }
        assert_eq!(lent.write(ANSWER), Written::Nothing, "the answer would have no receipt");
        side.set_nonblocking(false).unwrap();
        let mut all = vec![0; 2 * (count - 1)];
        side.read_exact(&mut all).unwrap();
        assert_eq!(lent.write(ANSWER), Written::All);
        side.read_exact(&mut [0; 4]).unwrap();
        side.set_nonblocking(true).unwrap();
        assert_eq!(taken(&side), "");
    }

    #[test]
    fn only_pipes_and_local_sockets_are_written() {
        let (own, _) = UnixStream::pair().unwrap();
        let is_refused = |file: OwnedFd| LentOutput::new(file, own.try_clone().unwrap().into(), tray()).is_none();
        assert!(is_refused(tempfile::tempfile().unwrap().into()));
        assert!(is_refused(File::open("/dev/null").unwrap().into()));
        assert!(is_refused(UnixDatagram::unbound().unwrap().into()));
        let listener = std::net::TcpListener::bind("127.0.0.1:0").unwrap();
        assert!(is_refused(std::net::TcpStream::connect(listener.local_addr().unwrap()).unwrap().into()));
        // A tray that could wait.
        let (blocking, writer) = pipe().unwrap();
        let (_reader, output) = pipe().unwrap();
        assert!(LentOutput::new(output.into(), own.into(), (blocking.into(), writer.into())).is_none());
    }
}
