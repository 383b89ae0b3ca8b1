//! What a guest prints: kept up to a cap, counted beyond it, never on the host's own streams.

use std::pin::Pin;
use std::sync::{Arc, Mutex, PoisonError};
use std::task::{Context, Poll};
use std::time::{Duration, Instant};

use bytes::Bytes;
use tokio::io::AsyncWrite;
use wasmtime_wasi::cli::{IsTerminal, StdoutStream};
use wasmtime_wasi::p2::{OutputStream, Pollable, StreamResult};

use crate::grants::secrets::Redactor;
use crate::model::{Guard, text};

/// Bytes that one write may have; larger ones are split by the guest's library.
const WRITE: usize = 4096;

/// Lines that a call may put into the log.
const LINES: usize = 64;

/// Characters of a line in the log.
const LINE: usize = 512;

/// Lines that all calls of a mount may put into the log in a [`WINDOW`], so that none drowns what others and belljar say.
const RATE: usize = 256;

/// See [`RATE`].
const WINDOW: Duration = Duration::from_secs(10);

/// What one mount put into the log lately.
#[derive(Default)]
pub(super) struct Rate(Mutex<Written>);

#[derive(Default)]
struct Written {
    since: Option<Instant>,
    lines: usize,
    dropped: usize,
}

impl Rate {
    /// Those of `lines` that may still be written; where a new window begins, what the last one had no room for is told.
    pub(super) fn pass(&self, lines: Vec<String>) -> Vec<String> {
        if lines.is_empty() || !Guard::Output.is_on() { lines } else { self.pass_at(lines, Instant::now()) }
    }

    fn pass_at(&self, mut lines: Vec<String>, now: Instant) -> Vec<String> {
        let mut written = self.0.lock().unwrap_or_else(PoisonError::into_inner);
        if written.since.is_none_or(|since| now.saturating_duration_since(since) >= WINDOW) {
            if written.dropped > 0 {
                lines.insert(0, format!("({} lines of earlier calls were dropped)", written.dropped));
            }
            *written = Written { since: Some(now), ..Written::default() };
        }
        let room = RATE.saturating_sub(written.lines);
        written.dropped += lines.len().saturating_sub(room);
        lines.truncate(room);
        written.lines += lines.len();
        lines
    }
}

#[derive(Default)]
struct Kept {
    bytes: Vec<u8>,
    dropped: u64,
}

/// The standard output and error of one call, together.
#[derive(Clone)]
pub(super) struct Output {
    kept: Arc<Mutex<Kept>>,
    cap: usize,
    /// Bytes kept beyond the cap: so many may belong to a secret that begins before it.
    more: usize,
}

impl Output {
    pub(super) fn new(cap: usize, redactor: Option<&Redactor>) -> Self {
        Self { kept: Arc::default(), cap, more: redactor.map_or(0, Redactor::longest) }
    }

    fn push(&self, bytes: &[u8]) {
        let mut kept = self.kept.lock().unwrap_or_else(PoisonError::into_inner);
        let room = self.cap.saturating_add(self.more).saturating_sub(kept.bytes.len());
        let room = if Guard::Output.is_on() { room } else { bytes.len() };
        let (keep, drop) = bytes.split_at(room.min(bytes.len()));
        kept.bytes.extend_from_slice(keep);
        kept.dropped = kept.dropped.saturating_add(drop.len() as u64);
    }

    /// What was printed, as clean lines in quotation marks; a last line says how much was left out. Secrets are masked in all
    /// of it together, whatever writes it came in, before it is cut.
    pub(super) fn lines(&self, redactor: Option<&Redactor>) -> Vec<String> {
        let mut kept = self.kept.lock().unwrap_or_else(PoisonError::into_inner);
        if kept.bytes.is_empty() {
            return Vec::new();
        }
        let mut bytes = std::mem::take(&mut kept.bytes);
        if let Some(redactor) = redactor {
            let mut all = String::from_utf8_lossy(&bytes).into_owned();
            redactor.mask(&mut all);
            bytes = all.into_bytes();
        }
        if Guard::Output.is_on() {
            let beyond = bytes.len().saturating_sub(self.cap);
            bytes.truncate(self.cap);
            kept.dropped = kept.dropped.saturating_add(beyond as u64);
        }
        let all = String::from_utf8_lossy(&bytes);
        let mut lines: Vec<String> = all.lines().take(LINES).map(|line| text::quoted(line, LINE)).collect();
        let more = all.lines().count().saturating_sub(LINES);
        if more > 0 || kept.dropped > 0 {
            lines.push(format!("({more} more lines and {} more bytes were dropped)", kept.dropped));
        }
        lines
    }
}

impl IsTerminal for Output {
    fn is_terminal(&self) -> bool {
        false
    }
}

impl StdoutStream for Output {
    fn async_stream(&self) -> Box<dyn AsyncWrite + Send + Sync> {
        Box::new(self.clone())
    }

    fn p2_stream(&self) -> Box<dyn OutputStream> {
        Box::new(self.clone())
    }
}

impl OutputStream for Output {
    fn write(&mut self, bytes: Bytes) -> StreamResult<()> {
        self.push(&bytes);
        Ok(())
    }

    fn flush(&mut self) -> StreamResult<()> {
        Ok(())
    }

    fn check_write(&mut self) -> StreamResult<usize> {
        Ok(WRITE)
    }
}

#[wasmtime_wasi::async_trait]
impl Pollable for Output {
    async fn ready(&mut self) {}
}

impl AsyncWrite for Output {
    fn poll_write(self: Pin<&mut Self>, _: &mut Context<'_>, bytes: &[u8]) -> Poll<std::io::Result<usize>> {
        self.push(bytes);
        Poll::Ready(Ok(bytes.len()))
    }

    fn poll_flush(self: Pin<&mut Self>, _: &mut Context<'_>) -> Poll<std::io::Result<()>> {
        Poll::Ready(Ok(()))
    }

    fn poll_shutdown(self: Pin<&mut Self>, _: &mut Context<'_>) -> Poll<std::io::Result<()>> {
        Poll::Ready(Ok(()))
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_mount_that_talks_all_the_time_is_heard_now_and_then() {
        let (rate, now) = (Rate::default(), Instant::now());
        let lines = |n: usize| vec!["line".to_owned(); n];
        assert_eq!(rate.pass_at(lines(RATE - 1), now).len(), RATE - 1);
        assert_eq!(rate.pass_at(lines(10), now).len(), 1);
        assert_eq!(rate.pass_at(lines(10), now).len(), 0);
        let later = rate.pass_at(lines(1), now + WINDOW);
        assert_eq!(later, ["(19 lines of earlier calls were dropped)", "line"]);
    }

    #[test]
    fn keeps_a_cap_and_says_what_it_dropped() {
        let output = Output::new(8, None);
        for _ in 0..1000 {
            output.push(b"ab\x1b[1m\n");
        }
        assert_eq!(output.lines(None), ["\"ab[1m\"", "\"a\"", "(0 more lines and 6992 more bytes were dropped)"]);
        assert!(Output::new(8, None).lines(None).is_empty());
    }
}
