//! The front's side of the connections of a call in a worker process. Decides and connects as for a call in its own
//! process, and relays the bytes. Believes nothing that the worker sends.

use std::time::Duration;

use bytes::{Bytes, BytesMut};
use tokio::io::{AsyncRead, AsyncReadExt as _, AsyncWrite, AsyncWriteExt as _};
use tokio::net::UnixStream;
use wasmtime_wasi::p2::bindings::sockets::network::ErrorCode;

use super::call_state::SocketsCallState;
use super::connection_frames::{ConnectAnswer, ConnectionFrame};
use crate::grants::call_record::CallRecord;
use crate::grants::frames::{BytePiece, FrameError, FrameReader, FrameWriter, MAX_PIECE_BYTES, SharedStream};
use crate::grants::network::ByteStream;
use crate::model::limits::Traffic;

/// How long bytes that a guest wrote are still sent after it dropped the connection. The kernel does the same for a
/// connection of its own.
const LINGER: Duration = Duration::from_secs(1);

/// Why the relay of a connection ends in one direction.
enum RelayEnd {
    /// This direction ended in order.
    InOrder,
    /// The guest, or a limit on traffic, ended the connection.
    Over,
    /// The upstream takes no more bytes. It may still send some.
    Refused,
}

/// Serves a connection to `host`. Decides when the function is called.
pub(in crate::grants) fn serve_connection(
    call: &SocketsCallState,
    host: &str,
    port: u16,
    stream: UnixStream,
) -> impl Future<Output = Result<(), FrameError>> + Send + use<> {
    let opening = call.connect_named(host, port);
    let (record, traffic) = (call.scope().record.clone(), call.traffic);
    async move {
        let stream = SharedStream::new(stream);
        let mut writer = FrameWriter::new(&stream);
        let opened = match opening {
            Err(code) => Err(code),
            Ok((opening, _)) => tokio::select! {
                opened = opening => opened,
                () = stream.closed() => return Ok(()),
            },
        };
        let (upstream, _slot) = match opened {
            Ok(opened) => opened,
            Err(code) => return refuse(code, &record, &mut writer).await,
        };
        writer.send(&ConnectAnswer::Connected).await?;
        relay(&stream, writer, upstream, &record, traffic).await
    }
}

async fn refuse(code: ErrorCode, record: &CallRecord, writer: &mut FrameWriter) -> Result<(), FrameError> {
    writer.send(&ConnectAnswer::Refused(code.into(), record.traffic().reached_limit())).await
}

/// Relays the bytes of both directions, until both ended or the worker has dropped the stream.
async fn relay(
    stream: &SharedStream,
    writer: FrameWriter,
    upstream: Box<dyn ByteStream>,
    record: &CallRecord,
    traffic: Traffic,
) -> Result<(), FrameError> {
    let (from_upstream, to_upstream) = tokio::io::split(upstream);
    let upload = async {
        tokio::select! {
            end = upload(FrameReader::new(stream), to_upstream, record, traffic.upload) => end,
            () = async { (stream.closed().await, tokio::time::sleep(LINGER).await).1 } => Ok(RelayEnd::Over),
        }
    };
    let download = async {
        tokio::select! {
            end = download(from_upstream, writer, record, traffic.download) => end,
            // The guest reads no more. What it wrote is still sent.
            () = stream.closed() => Ok(RelayEnd::InOrder),
        }
    };
    let (mut upload, mut download) = (Box::pin(upload), Box::pin(download));
    tokio::select! {
        end = &mut upload => match end? {
            RelayEnd::InOrder | RelayEnd::Refused => download.await.map(|_| ()),
            RelayEnd::Over => Ok(()),
        },
        end = &mut download => match end? {
            RelayEnd::InOrder => upload.await.map(|_| ()),
            RelayEnd::Refused | RelayEnd::Over => Ok(()),
        },
    }
}

/// Sends the bytes of the guest on.
async fn upload(
    mut reader: FrameReader,
    mut upstream: impl AsyncWrite + Unpin,
    record: &CallRecord,
    cap: u64,
) -> Result<RelayEnd, FrameError> {
    loop {
        match reader.next().await? {
            Some(ConnectionFrame::Data(BytePiece(bytes))) => {
                if record.traffic().count_upload(bytes.len() as u64, cap).is_err() {
                    return Ok(RelayEnd::Over);
                }
                if upstream.write_all(&bytes).await.is_err() || upstream.flush().await.is_err() {
                    return Ok(RelayEnd::Refused);
                }
            }
            Some(ConnectionFrame::End) => {
                return Ok(match upstream.shutdown().await {
                    Ok(()) => RelayEnd::InOrder,
                    Err(_) => RelayEnd::Refused,
                });
            }
            Some(ConnectionFrame::Failed) | None => return Ok(RelayEnd::Over),
        }
    }
}

/// Sends the bytes of the upstream to the guest.
async fn download(
    mut upstream: impl AsyncRead + Unpin,
    mut writer: FrameWriter,
    record: &CallRecord,
    cap: u64,
) -> Result<RelayEnd, FrameError> {
    let mut room = BytesMut::zeroed(MAX_PIECE_BYTES);
    loop {
        let frame = match upstream.read(&mut room).await {
            Ok(0) => ConnectionFrame::End,
            Ok(read) => ConnectionFrame::Data(BytePiece(Bytes::copy_from_slice(room.get(..read).unwrap_or_default()))),
            Err(_) => ConnectionFrame::Failed,
        };
        let (bytes, end) = match &frame {
            ConnectionFrame::Data(piece) => (piece.0.len() as u64, None),
            ConnectionFrame::End => (0, Some(RelayEnd::InOrder)),
            ConnectionFrame::Failed => (0, Some(RelayEnd::Over)),
        };
        let counted = record.traffic().count_download(bytes, cap);
        // Send too many bytes too: the worker counts them, and the guest gets the same error as without a front.
        writer.send(&frame).await?;
        match end {
            Some(end) => return Ok(end),
            None if counted.is_err() => return Ok(RelayEnd::Over),
            None => {}
        }
    }
}

#[cfg(test)]
mod tests;
