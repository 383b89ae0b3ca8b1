//! One connection of the simulated Redis: requests in, replies and messages out, each after the time of the network.

use std::sync::Arc;
use std::time::Duration;

use tokio::io::{AsyncReadExt as _, AsyncWriteExt as _, DuplexStream, ReadHalf, WriteHalf};
use tokio::sync::{mpsc, watch};
use tokio::time::Instant;

use super::resp::{self, Malformed};
use super::{Condition, Event};

/// Bytes that arrive at the client at this time.
pub(super) struct Outgoing {
    pub(super) at: Instant,
    pub(super) bytes: Arc<[u8]>,
}

/// Serves one connection until an end goes away or the store goes down.
pub(super) async fn serve(
    id: u64,
    stream: DuplexStream,
    events: mpsc::UnboundedSender<Event>,
    mut condition: watch::Receiver<Condition>,
    network: Duration,
) {
    let (reader, writer) = tokio::io::split(stream);
    let (outgoing, queue) = mpsc::unbounded_channel();
    if events.send(Event::Opened(id, outgoing)).is_err() {
        return;
    }
    tokio::select! {
        _ = read(id, reader, &events, network) => {}
        _ = write(writer, queue) => {}
        _ = condition.wait_for(|condition| *condition == Condition::Down) => {}
    }
    let _ = events.send(Event::Closed(id));
}

async fn read(
    id: u64,
    mut reader: ReadHalf<DuplexStream>,
    events: &mpsc::UnboundedSender<Event>,
    network: Duration,
) -> Result<(), Malformed> {
    let mut buffer = Vec::new();
    loop {
        let mut done = 0;
        while let Some((words, length)) = resp::parse(buffer.get(done..).unwrap_or_default())? {
            done += length;
            let at = Instant::now() + network;
            events.send(Event::Request { connection: id, at, words }).map_err(|_| Malformed)?;
        }
        buffer.drain(..done);
        match reader.read_buf(&mut buffer).await {
            Ok(0) | Err(_) => return Ok(()),
            Ok(_) => {}
        }
    }
}

async fn write(
    mut writer: WriteHalf<DuplexStream>,
    mut queue: mpsc::UnboundedReceiver<Outgoing>,
) -> std::io::Result<()> {
    while let Some(Outgoing { at, bytes }) = queue.recv().await {
        tokio::time::sleep_until(at).await;
        writer.write_all(&bytes).await?;
    }
    Ok(())
}
