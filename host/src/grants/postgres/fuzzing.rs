//! The entry of the fuzz targets: a login and a query at a server that sends any bytes.

use std::io;
use std::pin::Pin;
use std::task::{Context, Poll};

use bytes::BytesMut;
use tokio::io::{AsyncRead, AsyncWrite, ReadBuf};
use zeroize::Zeroizing;

use super::batch::Batch;
use super::login::{DatabaseLogin, log_in};
use super::statement::{Statement, classify};
use super::wire::Framing;
use crate::grants::network::ByteStream;

/// A connection that delivers these bytes, and takes any.
struct Scripted(std::collections::VecDeque<u8>);

impl AsyncRead for Scripted {
    fn poll_read(mut self: Pin<&mut Self>, _: &mut Context<'_>, buffer: &mut ReadBuf<'_>) -> Poll<io::Result<()>> {
        // Small pieces, so that messages are cut anywhere.
        let count = buffer.remaining().min(7).min(self.0.len());
        let piece: Vec<u8> = self.0.drain(..count).collect();
        buffer.put_slice(&piece);
        Poll::Ready(Ok(()))
    }
}

impl AsyncWrite for Scripted {
    fn poll_write(self: Pin<&mut Self>, _: &mut Context<'_>, bytes: &[u8]) -> Poll<io::Result<usize>> {
        Poll::Ready(Ok(bytes.len()))
    }

    fn poll_flush(self: Pin<&mut Self>, _: &mut Context<'_>) -> Poll<io::Result<()>> {
        Poll::Ready(Ok(()))
    }

    fn poll_shutdown(self: Pin<&mut Self>, _: &mut Context<'_>) -> Poll<io::Result<()>> {
        Poll::Ready(Ok(()))
    }
}

/// Logs in at a server that sends `bytes`. Returns true if it got in: without the password, no bytes may reach that.
pub fn logs_in(bytes: &[u8]) -> bool {
    let Ok(runtime) = tokio::runtime::Builder::new_current_thread().build() else { return false };
    let mut server: Box<dyn ByteStream> = Box::new(Scripted(bytes.iter().copied().collect()));
    let credentials = DatabaseLogin {
        user: "reader".to_owned(),
        database: "shop".to_owned(),
        password: Zeroizing::new("a-password".to_owned()),
        is_read_only: true,
    };
    runtime.block_on(log_in(&mut server, &mut Framing::of_server(), &credentials, &[], true)).is_ok()
}

/// Passes `bytes` of a server on to a guest that waits for an answer. Returns what the guest gets.
pub fn answer(bytes: &[u8]) -> Vec<u8> {
    let Ok(runtime) = tokio::runtime::Builder::new_current_thread().build() else { return Vec::new() };
    let mut server = Scripted(bytes.iter().copied().collect());
    let (mut framing, mut out) = (Framing::of_server(), BytesMut::new());
    let mut batch = Batch { is_waiting: true, ..Batch::new(true) };
    runtime.block_on(async {
        while let Ok(piece) = framing.receive(&mut server).await {
            if batch.take(piece, &mut out).is_err() {
                break;
            }
        }
    });
    out.to_vec()
}

/// True if a read-only connection forwards the statement.
pub fn is_forwarded(sql: &str) -> bool {
    !matches!(classify(sql), Statement::Refused(_))
}
