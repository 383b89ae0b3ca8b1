//! Standard output and error of guests: kept up to a cap, counted beyond it, never written to the host's own streams.

use std::pin::Pin;
use std::sync::{Arc, Mutex, PoisonError};
use std::task::{Context, Poll};
use std::time::{Duration, Instant};

use bytes::Bytes;
use tokio::io::AsyncWrite;
use wasmtime_wasi::cli::{IsTerminal, StdoutStream};
use wasmtime_wasi::p2::{OutputStream, Pollable, StreamResult};

use crate::grants::secrets::Redactor;
use crate::model::bounds::LOG_LINES;
use crate::model::{MountName, text};

/// Bytes of one write. The guest's library splits larger ones.
const MAX_WRITE: usize = 4096;

/// Log lines of one call.
const MAX_LINES: usize = 64;

/// Characters of one log line.
const MAX_LINE: usize = 512;

/// The window in which a mount may write [`LOG_LINES`] to the log.
const WINDOW: Duration = Duration::from_secs(10);

/// The rate limit of one mount's log lines.
#[derive(Default)]
pub(super) struct LogRate(Mutex<LogWindow>);

#[derive(Default)]
struct LogWindow {
    since: Option<Instant>,
    lines: usize,
    dropped: usize,
}

impl LogRate {
    /// Returns the lines that may still be window. At the beginning of a window, a first line reports how many were
    /// dropped in the last one.
    pub(super) fn limit(&self, lines: Vec<String>) -> Vec<String> {
        if lines.is_empty() { lines } else { self.limit_at(lines, Instant::now()) }
    }

    /// Logs what a guest of `mount` printed, as often as the mount may. Masks the secrets.
    pub(super) fn log(&self, mount: &MountName, output: &GuestOutput, redactor: Option<&Redactor>) {
        for line in self.limit(output.lines(redactor)) {
            tracing::info!(target: "belljar::guest", %mount, "printed {line}");
        }
    }

    fn limit_at(&self, mut lines: Vec<String>, now: Instant) -> Vec<String> {
        let mut window = self.0.lock().unwrap_or_else(PoisonError::into_inner);
        if window.since.is_none_or(|since| now.saturating_duration_since(since) >= WINDOW) {
            if window.dropped > 0 {
                lines.insert(0, format!("({} lines of earlier calls were dropped)", window.dropped));
            }
            *window = LogWindow { since: Some(now), ..LogWindow::default() };
        }
        let room = LOG_LINES.get().saturating_sub(window.lines);
        window.dropped += lines.len().saturating_sub(room);
        lines.truncate(room);
        window.lines += lines.len();
        lines
    }
}

#[derive(Default)]
struct Captured {
    bytes: Vec<u8>,
    dropped: u64,
}

/// The standard output and error of one call, combined.
#[derive(Clone)]
pub(super) struct GuestOutput {
    captured: Arc<Mutex<Captured>>,
    cap: usize,
    /// Bytes kept beyond the cap: a secret that begins before the cap may be this much longer.
    more: usize,
}

impl GuestOutput {
    /// Keeps `cap` bytes, and as many more as the longest secret has, for the time before secrets are masked.
    pub(super) fn new(cap: usize, longest_secret: usize) -> Self {
        Self { captured: Arc::default(), cap, more: longest_secret }
    }

    /// What a guest printed in a worker process. The worker may send more than it was told to keep.
    pub(super) fn of_worker(cap: usize, longest_secret: usize, bytes: &[u8], dropped: u64) -> Self {
        let output = Self::new(cap, longest_secret);
        output.push(bytes);
        let mut captured = output.captured.lock().unwrap_or_else(PoisonError::into_inner);
        captured.dropped = captured.dropped.saturating_add(dropped);
        drop(captured);
        output
    }

    /// Takes the kept bytes, and the number of those that were dropped. `None`: the guest printed nothing.
    pub(super) fn take(&self) -> Option<(Vec<u8>, u64)> {
        let mut captured = self.captured.lock().unwrap_or_else(PoisonError::into_inner);
        let taken = (std::mem::take(&mut captured.bytes), std::mem::take(&mut captured.dropped));
        (!taken.0.is_empty()).then_some(taken)
    }

    fn push(&self, bytes: &[u8]) {
        let mut captured = self.captured.lock().unwrap_or_else(PoisonError::into_inner);
        let room = self.cap.saturating_add(self.more).saturating_sub(captured.bytes.len());
        let (keep, drop) = bytes.split_at(room.min(bytes.len()));
        captured.bytes.extend_from_slice(keep);
        captured.dropped = captured.dropped.saturating_add(drop.len() as u64);
    }

    /// The output as sanitised lines in quotation marks. A last line reports how much was dropped. Secrets are masked
    /// in the whole text, across writes, before it is cut.
    pub(super) fn lines(&self, redactor: Option<&Redactor>) -> Vec<String> {
        let mut captured = self.captured.lock().unwrap_or_else(PoisonError::into_inner);
        if captured.bytes.is_empty() {
            return Vec::new();
        }
        let mut bytes = std::mem::take(&mut captured.bytes);
        if let Some(redactor) = redactor {
            let mut all = String::from_utf8_lossy(&bytes).into_owned();
            redactor.mask(&mut all);
            bytes = all.into_bytes();
        }
        let beyond = bytes.len().saturating_sub(self.cap);
        bytes.truncate(self.cap);
        captured.dropped = captured.dropped.saturating_add(beyond as u64);
        let all = String::from_utf8_lossy(&bytes);
        let mut lines: Vec<String> = all.lines().take(MAX_LINES).map(|line| text::quoted(line, MAX_LINE)).collect();
        let more = all.lines().count().saturating_sub(MAX_LINES);
        if more > 0 || captured.dropped > 0 {
            lines.push(format!("({more} more lines and {} more bytes were dropped)", captured.dropped));
        }
        lines
    }
}

impl IsTerminal for GuestOutput {
    fn is_terminal(&self) -> bool {
        false
    }
}

impl StdoutStream for GuestOutput {
    fn async_stream(&self) -> Box<dyn AsyncWrite + Send + Sync> {
        Box::new(self.clone())
    }

    fn p2_stream(&self) -> Box<dyn OutputStream> {
        Box::new(self.clone())
    }
}

impl OutputStream for GuestOutput {
    fn write(&mut self, bytes: Bytes) -> StreamResult<()> {
        self.push(&bytes);
        Ok(())
    }

    fn flush(&mut self) -> StreamResult<()> {
        Ok(())
    }

    fn check_write(&mut self) -> StreamResult<usize> {
        Ok(MAX_WRITE)
    }
}

#[wasmtime_wasi::async_trait]
impl Pollable for GuestOutput {
    async fn ready(&mut self) {}
}

impl AsyncWrite for GuestOutput {
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
    fn a_mount_that_prints_without_end_is_logged_at_a_limited_rate() {
        let (rate, now) = (LogRate::default(), Instant::now());
        let lines = |n: usize| vec!["line".to_owned(); n];
        assert_eq!(rate.limit_at(lines(LOG_LINES.get() - 1), now).len(), LOG_LINES.get() - 1);
        assert_eq!(rate.limit_at(lines(10), now).len(), 1);
        assert_eq!(rate.limit_at(lines(10), now).len(), 0);
        let later = rate.limit_at(lines(1), now + WINDOW);
        assert_eq!(later, ["(19 lines of earlier calls were dropped)", "line"]);
    }

    #[test]
    fn output_is_cut_at_the_cap_and_reports_dropped_bytes() {
        let output = GuestOutput::new(8, 0);
        for _ in 0..1000 {
            output.push(b"ab\x1b[1m\n");
        }
        assert_eq!(output.lines(None), ["\"ab[1m\"", "\"a\"", "(0 more lines and 6992 more bytes were dropped)"]);
        assert!(GuestOutput::new(8, 0).lines(None).is_empty());
    }
}
