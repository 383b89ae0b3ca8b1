//! Standard input and output. tokio's own types for them give each read and each write to another thread. These wait for
//! events instead, if the client made the streams of pipes or of sockets: Node makes sockets.
//!
//! The streams can be shared with other processes, which expect that they block. So a pipe is opened again, and calls on a
//! socket say that they do not wait.

use std::io;
use std::os::fd::{AsFd, AsRawFd, BorrowedFd, OwnedFd};
use std::pin::Pin;
use std::task::{Context, Poll, ready};

use rustix::fs::{FileType, fstat};
use rustix::net::{RecvFlags, SendFlags, SocketType, recv, send, sockopt};
use rustix::pipe::fcntl_setpipe_size;
use tokio::io::unix::AsyncFd;
use tokio::io::{AsyncRead, AsyncWrite, Interest, ReadBuf};
use tokio::net::unix::pipe;

/// Bytes that a pipe of Linux takes until its reader takes some (pipe(7)).
const PIPE: usize = 64 << 10;

/// The same for output with long answers. More does not help: the bytes leave the caches. Linux lets each user have 256
/// such pipes.
const LARGE_PIPE: usize = 256 << 10;

/// Standard input.
pub(super) enum StandardInput {
    Pipe(pipe::Receiver),
    Socket(AsyncFd<OwnedFd>),
    Other(tokio::io::Stdin),
}

/// Standard output.
pub(super) enum StandardOutput {
    Pipe(OutputPipe),
    Socket(AsyncFd<OwnedFd>),
    Other(tokio::io::Stdout),
}

/// Both streams of this process. They must belong to a runtime of tokio.
pub(super) fn standard_streams() -> (StandardInput, StandardOutput) {
    (StandardInput::of(io::stdin().as_fd()), StandardOutput::of(io::stdout().as_fd()))
}

impl StandardInput {
    /// What `file` is, which is standard input.
    fn of(file: BorrowedFd<'_>) -> Self {
        let pipe = pipe::OpenOptions::new().open_receiver(path(file)).map(Self::Pipe);
        let stream = pipe.or_else(|_| Ok(Self::Socket(socket(file, Interest::READABLE)?)));
        stream.unwrap_or_else(|_: io::Error| Self::Other(tokio::io::stdin()))
    }
}

impl StandardOutput {
    /// What `file` is, which is standard output.
    fn of(file: BorrowedFd<'_>) -> Self {
        let pipe = pipe::OpenOptions::new().open_sender(path(file));
        let pipe = pipe.map(|pipe| Self::Pipe(OutputPipe { pipe, is_large: false }));
        let stream = pipe.or_else(|_| Ok(Self::Socket(socket(file, Interest::WRITABLE)?)));
        stream.unwrap_or_else(|_: io::Error| Self::Other(tokio::io::stdout()))
    }
}

/// The path under which this process can open `file` again.
fn path(file: BorrowedFd<'_>) -> String {
    format!("/proc/self/fd/{}", file.as_raw_fd())
}

/// A copy of `file`, if it is a socket with a stream of bytes.
fn socket(file: BorrowedFd<'_>, interest: Interest) -> io::Result<AsyncFd<OwnedFd>> {
    let is_socket = FileType::from_raw_mode(fstat(file)?.st_mode) == FileType::Socket;
    if !is_socket || sockopt::socket_type(file)? != SocketType::STREAM {
        return Err(io::ErrorKind::Unsupported.into());
    }
    let file = file.try_clone_to_owned()?;
    #[expect(unsafe_code, reason = "the runtime watches a descriptor by its number")]
    // SAFETY: an `OwnedFd` is open for as long as it lives, and always has the same number.
    let watched = unsafe { AsyncFd::register_with_interest(file, interest) };
    Ok(watched?)
}

/// A pipe to the client.
pub(super) struct OutputPipe {
    pipe: pipe::Sender,
    is_large: bool,
}

impl OutputPipe {
    /// Lets the pipe take more, the first time that `bytes` do not fit. Both sides wait for each other for each filling.
    fn enlarge_for(&mut self, bytes: &[u8]) {
        if bytes.len() > PIPE && !self.is_large {
            self.is_large = true;
            // Without it, the answer takes longer: the user has too many large pipes, or the system allows none.
            let _ = fcntl_setpipe_size(&self.pipe, LARGE_PIPE);
        }
    }
}

impl AsyncRead for StandardInput {
    fn poll_read(self: Pin<&mut Self>, cx: &mut Context<'_>, into: &mut ReadBuf<'_>) -> Poll<io::Result<()>> {
        let socket = match self.get_mut() {
            Self::Pipe(pipe) => return Pin::new(pipe).poll_read(cx, into),
            Self::Other(stdin) => return Pin::new(stdin).poll_read(cx, into),
            Self::Socket(socket) => socket,
        };
        loop {
            let mut ready = ready!(socket.poll_read_ready(cx))?;
            let read = |file: &AsyncFd<OwnedFd>| {
                Ok(recv(file, into.initialize_unfilled(), RecvFlags::DONTWAIT).map(|(read, _)| read)?)
            };
            match ready.try_io(read) {
                Ok(Ok(read)) => {
                    into.advance(read);
                    return Poll::Ready(Ok(()));
                }
                Ok(Err(error)) if error.kind() == io::ErrorKind::Interrupted => {}
                Ok(Err(error)) => return Poll::Ready(Err(error)),
                Err(_would_block) => {}
            }
        }
    }
}

impl AsyncWrite for StandardOutput {
    fn poll_write(self: Pin<&mut Self>, cx: &mut Context<'_>, bytes: &[u8]) -> Poll<io::Result<usize>> {
        let socket = match self.get_mut() {
            Self::Pipe(output) => {
                output.enlarge_for(bytes);
                return Pin::new(&mut output.pipe).poll_write(cx, bytes);
            }
            Self::Other(stdout) => return Pin::new(stdout).poll_write(cx, bytes),
            Self::Socket(socket) => socket,
        };
        loop {
            let mut ready = ready!(socket.poll_write_ready(cx))?;
            let write = |file: &AsyncFd<OwnedFd>| Ok(send(file, bytes, SendFlags::DONTWAIT | SendFlags::NOSIGNAL)?);
            match ready.try_io(write) {
                Ok(Err(error)) if error.kind() == io::ErrorKind::Interrupted => {}
                Ok(written) => return Poll::Ready(written),
                Err(_would_block) => {}
            }
        }
    }

    fn poll_flush(self: Pin<&mut Self>, cx: &mut Context<'_>) -> Poll<io::Result<()>> {
        match self.get_mut() {
            Self::Other(stdout) => Pin::new(stdout).poll_flush(cx),
            Self::Pipe(_) | Self::Socket(_) => Poll::Ready(Ok(())),
        }
    }

    /// The streams end with this process.
    fn poll_shutdown(self: Pin<&mut Self>, cx: &mut Context<'_>) -> Poll<io::Result<()>> {
        self.poll_flush(cx)
    }
}

#[cfg(test)]
mod tests {
    use std::io::{Read as _, Write as _};
    use std::os::unix::net::UnixStream;
    use std::task::Waker;

    use rustix::fs::{OFlags, fcntl_getfl};
    use rustix::pipe::fcntl_getpipe_size;
    use tokio::io::{AsyncReadExt as _, AsyncWriteExt as _};

    use super::*;

    fn blocks(file: &impl AsFd) -> bool {
        !fcntl_getfl(file).unwrap().contains(OFlags::NONBLOCK)
    }

    /// Bytes of a line that needs several writes.
    const LONG: usize = 8 << 20;

    #[tokio::test]
    async fn a_slow_client_gets_everything_through_a_socket() {
        let (own, mut client) = UnixStream::pair().unwrap();
        let mut output = StandardOutput::of(own.as_fd());
        assert!(matches!(output, StandardOutput::Socket(_)));
        let sent: Vec<u8> = (0..LONG).map(|n| n.to_le_bytes()[1]).collect();
        let expected = sent.clone();
        let reader = tokio::task::spawn_blocking(move || {
            let mut all = vec![0; expected.len()];
            client.read_exact(&mut all).unwrap();
            assert!(all == expected);
        });
        output.write_all(&sent).await.unwrap();
        output.flush().await.unwrap();
        reader.await.unwrap();
        assert!(blocks(&own), "others expect that the stream blocks");
        assert!(output.write_all(b"more").await.is_err(), "the client has gone");
    }

    #[tokio::test]
    async fn a_socket_is_read_up_to_its_end() {
        let (own, mut client) = UnixStream::pair().unwrap();
        let mut input = StandardInput::of(own.as_fd());
        assert!(matches!(input, StandardInput::Socket(_)));
        let writer = tokio::task::spawn_blocking(move || {
            client.write_all(&vec![b'x'; LONG]).unwrap();
            client.write_all(b"end").unwrap();
        });
        let mut all = Vec::new();
        input.read_to_end(&mut all).await.unwrap();
        writer.await.unwrap();
        assert!(all.len() == LONG + 3 && all.ends_with(b"xend"));
        assert!(blocks(&own), "others expect that the stream blocks");
    }

    #[tokio::test]
    async fn a_read_of_an_empty_socket_does_not_hold_the_thread() {
        let (own, mut client) = UnixStream::pair().unwrap();
        let mut input = StandardInput::of(own.as_fd());
        client.write_all(b"x").unwrap();
        let mut byte = [0];
        input.read_exact(&mut byte).await.unwrap();
        // A read that held the thread would end with the client.
        let (done, is_done) = std::sync::mpsc::channel::<()>();
        let closing = std::thread::spawn(move || {
            let _ = is_done.recv_timeout(std::time::Duration::from_secs(10));
            drop(client);
        });
        let polled =
            Pin::new(&mut input).poll_read(&mut Context::from_waker(Waker::noop()), &mut ReadBuf::new(&mut byte));
        assert!(polled.is_pending());
        drop(done);
        closing.join().unwrap();
    }

    #[tokio::test]
    async fn a_pipe_gets_larger_for_a_long_line_and_not_for_a_short_one() {
        let (mut client, own) = io::pipe().unwrap();
        let mut output = StandardOutput::of(own.as_fd());
        output.write_all(&[b'x'; PIPE]).await.unwrap();
        assert_eq!(fcntl_getpipe_size(&own).unwrap(), PIPE);
        let reader = tokio::task::spawn_blocking(move || {
            let mut all = vec![0; PIPE + LONG];
            client.read_exact(&mut all).unwrap();
        });
        output.write_all(&vec![b'x'; LONG]).await.unwrap();
        reader.await.unwrap();
        assert_eq!(fcntl_getpipe_size(&own).unwrap(), LARGE_PIPE);
        assert!(blocks(&own), "others expect that the stream blocks");
    }

    #[tokio::test]
    async fn a_pipe_is_read_up_to_its_end() {
        let (own, mut client) = io::pipe().unwrap();
        let mut input = StandardInput::of(own.as_fd());
        assert!(matches!(input, StandardInput::Pipe(_)));
        client.write_all(b"end").unwrap();
        drop(client);
        let mut all = Vec::new();
        input.read_to_end(&mut all).await.unwrap();
        assert_eq!(all, b"end");
        assert!(blocks(&own), "others expect that the stream blocks");
    }

    #[tokio::test]
    async fn a_file_is_left_to_a_thread() {
        let file = tempfile::tempfile().unwrap();
        assert!(matches!(StandardInput::of(file.as_fd()), StandardInput::Other(_)));
        assert!(matches!(StandardOutput::of(file.as_fd()), StandardOutput::Other(_)));
    }
}
