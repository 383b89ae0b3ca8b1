//! The two directions of a connection of the local socket, each waiting for its own events only.
//!
//! tokio's stream waits for both. The kernel reports a Unix socket as writable each time the peer has read from it, also
//! if nobody waits to write: a thread would be woken for every answer. A read then takes 1.3 times the processor time of the
//! server (`cargo xtask bench --only joined`).

use std::io::{self, Write as _};
use std::os::unix::net::UnixStream;
use std::pin::Pin;
use std::task::{Context, Poll, ready};

use belljar_join::DRAIN;
use tokio::io::AsyncWrite;
use tokio::net::unix::pipe;
use tokio_util::sync::CancellationToken;

use super::lent::{LentOutput, Written};

/// The direction to the client.
pub(super) struct ToClient {
    stream: UnixStream,
    /// Waits until the socket takes more bytes. `None` while it does.
    full: Option<pipe::Sender>,
    lent: Option<LentOutput>,
    /// Cancelled before belljar ends the first subscription. From then on, nothing is written to the lent output:
    /// `belljar-join` keeps answers that only say that belljar ends.
    closing: CancellationToken,
    /// True if the stream ends within a line.
    is_within_line: bool,
    /// The rest of a line of belljar's own that the stream gets next.
    own_line: &'static [u8],
}

impl ToClient {
    /// Writes to the lent output. True if the answer needs no way through the stream.
    fn write_lent(&mut self, bytes: &[u8]) -> bool {
        let written = match &mut self.lent {
            Some(lent) if !self.is_within_line && !self.closing.is_cancelled() => lent.write(bytes),
            _ => Written::Nothing,
        };
        if written == Written::InTray {
            self.own_line = DRAIN;
        }
        written != Written::Nothing
    }

    /// Counts bytes that the stream has taken.
    fn sent(&mut self, bytes: &[u8]) {
        if let (Some(lent), Some(last)) = (&mut self.lent, bytes.last()) {
            lent.relayed(bytes.len());
            self.is_within_line = *last != b'\n';
        }
    }
}

/// Splits a stream that does not block into the direction from the client and the one to the client. `lent`: the output of
/// the client, if it is lent. `closing`: cancelled before belljar ends the first subscription.
///
/// # Errors
/// If the operating system refuses.
pub(super) fn split(
    stream: UnixStream,
    lent: Option<LentOutput>,
    closing: CancellationToken,
) -> io::Result<(pipe::Receiver, ToClient)> {
    let to_client =
        ToClient { stream: stream.try_clone()?, full: None, lent, closing, is_within_line: false, own_line: b"" };
    // tokio's type for pipes waits for one direction only, and uses read(2), which sockets have too.
    Ok((pipe::Receiver::from_owned_fd_unchecked(stream.into())?, to_client))
}

impl ToClient {
    /// Writes the rest of belljar's own line to the stream.
    fn poll_own_line(&mut self, cx: &mut Context<'_>) -> Poll<io::Result<()>> {
        while !self.own_line.is_empty() {
            let written = ready!(self.poll_stream(cx, self.own_line))?;
            self.own_line = self.own_line.get(written..).unwrap_or_default();
        }
        Poll::Ready(Ok(()))
    }

    /// Writes to the stream. Returns the number of bytes that it takes now.
    fn poll_stream(&mut self, cx: &mut Context<'_>, bytes: &[u8]) -> Poll<io::Result<usize>> {
        loop {
            let written = match &mut self.full {
                Some(waiting) => ready!(Pin::new(waiting).poll_write(cx, bytes)),
                None => match self.stream.write(bytes) {
                    Err(error) if error.kind() == io::ErrorKind::WouldBlock => {
                        self.full = Some(pipe::Sender::from_owned_fd_unchecked(self.stream.try_clone()?.into())?);
                        continue;
                    }
                    written => written,
                },
            };
            self.full = None;
            if let Ok(sent) = &written {
                self.sent(bytes.get(..*sent).unwrap_or_default());
            }
            return Poll::Ready(written);
        }
    }
}

impl AsyncWrite for ToClient {
    fn poll_write(self: Pin<&mut Self>, cx: &mut Context<'_>, bytes: &[u8]) -> Poll<io::Result<usize>> {
        let own = self.get_mut();
        ready!(own.poll_own_line(cx))?;
        if own.write_lent(bytes) {
            return Poll::Ready(Ok(bytes.len()));
        }
        own.poll_stream(cx, bytes)
    }

    /// Waits until the stream has taken belljar's own line.
    fn poll_flush(self: Pin<&mut Self>, cx: &mut Context<'_>) -> Poll<io::Result<()>> {
        self.get_mut().poll_own_line(cx)
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
        let (mut from_client, mut to_client) = split(own, None, CancellationToken::new()).unwrap();
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

    #[tokio::test]
    async fn answers_go_to_the_lent_output_until_belljar_ends() {
        const ANSWER: &[u8] = b"{\"jsonrpc\":\"2.0\",\"id\":7,\"result\":{}}\n";
        let (own, mut other) = UnixStream::pair().unwrap();
        own.set_nonblocking(true).unwrap();
        let (mut client, output) = std::io::pipe().unwrap();
        let (side, _other_side) = UnixStream::pair().unwrap();
        let tray = rustix::pipe::pipe_with(rustix::pipe::PipeFlags::NONBLOCK).unwrap();
        let lent = LentOutput::new(output.into(), side.into(), tray);
        let closing = CancellationToken::new();
        let (_input, mut to_client) = split(own, lent, closing.clone()).unwrap();
        to_client.write_all(ANSWER).await.unwrap();
        closing.cancel();
        to_client.write_all(&ANSWER.repeat(2)).await.unwrap();
        drop(to_client);
        let (mut written, mut relayed) = (Vec::new(), vec![0; 2 * ANSWER.len()]);
        client.read_to_end(&mut written).unwrap();
        other.read_exact(&mut relayed).unwrap();
        assert_eq!((written.as_slice(), relayed), (ANSWER, ANSWER.repeat(2)));
    }

    #[tokio::test]
    async fn belljar_join_is_told_of_an_answer_that_the_client_does_not_take() {
        const ANSWER: &[u8] = b"{\"jsonrpc\":\"2.0\",\"id\":7,\"result\":{}}\n";
        let (own, mut other) = UnixStream::pair().unwrap();
        own.set_nonblocking(true).unwrap();
        let (client, output) = std::io::pipe().unwrap();
        let (side, _other_side) = UnixStream::pair().unwrap();
        let tray = rustix::pipe::pipe_with(rustix::pipe::PipeFlags::NONBLOCK).unwrap();
        let in_tray = tray.0.try_clone().unwrap();
        let lent = LentOutput::new(output.into(), side.into(), tray);
        drop(client);
        let (_input, mut to_client) = split(own, lent, CancellationToken::new()).unwrap();
        to_client.write_all(ANSWER).await.unwrap();
        to_client.flush().await.unwrap();
        to_client.write_all(ANSWER).await.unwrap();
        let mut relayed = vec![0; DRAIN.len() + ANSWER.len()];
        other.read_exact(&mut relayed).unwrap();
        assert_eq!(relayed, [DRAIN, ANSWER].concat());
        let mut left = vec![0; 2 * ANSWER.len()];
        let read = rustix::io::read(&in_tray, left.as_mut_slice()).unwrap();
        assert_eq!(left[..read], *ANSWER);
    }
}
