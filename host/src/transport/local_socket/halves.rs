//! The two directions of a connection of the local socket, each waiting for its own events only.
//!
//! tokio's stream waits for both. The kernel reports a Unix socket as writable each time the peer has read from it, also
//! if nobody waits to write: a thread would be woken for every answer. A read then takes 1.3 times the processor time of the
//! server (`cargo xtask bench --only joined`).

use std::io::{self, Write as _};
use std::os::unix::net::UnixStream;
use std::pin::Pin;
use std::task::{Context, Poll, ready};

use tokio::io::AsyncWrite;
use tokio::net::unix::pipe;

/// The direction to the client.
pub(super) struct ToClient {
    stream: UnixStream,
    /// Waits until the socket takes more bytes. `None` while it does.
    full: Option<pipe::Sender>,
}

/// Splits a stream that does not block into the direction from the client and the one to the client.
///
/// # Errors
/// If the operating system refuses.
pub(super) fn split(stream: UnixStream) -> io::Result<(pipe::Receiver, ToClient)> {
    let to_client = ToClient { stream: stream.try_clone()?, full: None };
    // tokio's type for pipes waits for one direction only, and uses read(2), which sockets have too.
    Ok((pipe::Receiver::from_owned_fd_unchecked(stream.into())?, to_client))
}

impl AsyncWrite for ToClient {
    fn poll_write(self: Pin<&mut Self>, cx: &mut Context<'_>, bytes: &[u8]) -> Poll<io::Result<usize>> {
        let Self { stream, full } = self.get_mut();
        loop {
            if let Some(waiting) = full {
                let written = ready!(Pin::new(waiting).poll_write(cx, bytes));
                *full = None;
                return Poll::Ready(written);
            }
            match stream.write(bytes) {
                Err(error) if error.kind() == io::ErrorKind::WouldBlock => {
                    *full = Some(pipe::Sender::from_owned_fd_unchecked(stream.try_clone()?.into())?);
                }
                written => return Poll::Ready(written),
            }
        }
    }

    fn poll_flush(self: Pin<&mut Self>, _: &mut Context<'_>) -> Poll<io::Result<()>> {
        Poll::Ready(Ok(()))
    }

    /// The connection ends when both directions are dropped.
    fn poll_shutdown(self: Pin<&mut Self>, _: &mut Context<'_>) -> Poll<io::Result<()>> {
        Poll::Ready(Ok(()))
    }
}

#[cfg(test)]
mod tests {
    use std::io::Read as _;

    use tokio::io::{AsyncReadExt as _, AsyncWriteExt as _};

    use super::*;

    /// More than the socket's buffer takes.
    #[tokio::test]
    async fn a_slow_reader_gets_everything() {
        let (own, other) = UnixStream::pair().unwrap();
        own.set_nonblocking(true).unwrap();
        let (mut from_client, mut to_client) = split(own).unwrap();
        let sent: Vec<u8> = (0..8 << 20).map(|n: u32| n.to_le_bytes()[1]).collect();
        let expected = sent.clone();
        let reader = tokio::task::spawn_blocking(move || {
            let mut other = other;
            let mut all = vec![0; expected.len()];
            other.read_exact(&mut all).unwrap();
            assert!(all == expected);
            other.write_all(b"done").unwrap();
        });
        to_client.write_all(&sent).await.unwrap();
        let mut answer = String::new();
        reader.await.unwrap();
        from_client.read_to_string(&mut answer).await.unwrap();
        assert_eq!(answer, "done");
    }
}
