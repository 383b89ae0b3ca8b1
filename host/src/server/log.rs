//! The log on standard error. A slow reader of standard error does not block the threads that serve: lines go through a
//! bounded queue (`telemetry::log_queue`), and a separate thread writes them.

use std::fmt::Write as _;
use std::io::{IsTerminal, Write};
use std::os::fd::AsFd;
use std::time::Duration;

use tracing::Metadata;
use tracing_subscriber::EnvFilter;
use tracing_subscriber::fmt::MakeWriter;

use crate::telemetry::log_queue::{LineSource, LogQueue};

/// The queue of everything that this process writes to standard error.
static LINES: LogQueue = LogQueue::new();

/// How long to wait at the end until the reader of standard error has taken the queue.
const FLUSH_TIMEOUT: Duration = Duration::from_millis(300);

/// The log target of the output of providers.
const GUEST: &str = "belljar::guest";

/// Puts lines into the queue without waiting. Drops them if the queue is full.
pub(crate) struct LogWriter(LineSource);

impl Write for LogWriter {
    fn write(&mut self, line: &[u8]) -> std::io::Result<usize> {
        LINES.try_put(self.0, line);
        Ok(line.len())
    }

    fn flush(&mut self) -> std::io::Result<()> {
        Ok(())
    }
}

/// Makes a [`LogWriter`] for each event of the log.
pub(crate) struct MakeLogWriter;

impl MakeWriter<'_> for MakeLogWriter {
    type Writer = LogWriter;

    fn make_writer(&self) -> LogWriter {
        LogWriter(LineSource::Host)
    }

    fn make_writer_for(&self, meta: &Metadata<'_>) -> LogWriter {
        LogWriter(if meta.target() == GUEST { LineSource::Guest } else { LineSource::Host })
    }
}

/// Puts lines into the queue and waits while it is full. For threads that serve no requests.
pub(crate) struct BlockingLogWriter;

impl Write for BlockingLogWriter {
    fn write(&mut self, lines: &[u8]) -> std::io::Result<usize> {
        LINES.put(lines);
        Ok(lines.len())
    }

    fn flush(&mut self) -> std::io::Result<()> {
        Ok(())
    }
}

/// Writes the line "belljar: ..." to standard error, in the order of the log.
pub(crate) fn say(line: &str) {
    LINES.try_put(LineSource::Host, format!("belljar: {line}\n").as_bytes());
}

/// Writes to standard error, in the order of the log.
pub(crate) fn put(text: &str) {
    LINES.try_put(LineSource::Host, text.as_bytes());
}

/// The filter of the log: `RUST_LOG`, or else `default`.
pub(crate) fn filter(default: &str) -> EnvFilter {
    #[expect(clippy::disallowed_methods, reason = "the operator selects the log level")]
    let wanted = std::env::var("RUST_LOG").unwrap_or_default();
    let filter = if wanted.is_empty() { default } else { &wanted };
    EnvFilter::try_new(filter).unwrap_or_else(|_| EnvFilter::new(default))
}

/// True if the log has colours: on a terminal, unless `NO_COLOR` is set (<https://no-color.org>).
pub(crate) fn is_coloured() -> bool {
    #[expect(clippy::disallowed_methods, reason = "the operator selects colours")]
    let refused = std::env::var_os("NO_COLOR").is_some_and(|value| !value.is_empty());
    !refused && std::io::stderr().is_terminal()
}

/// Starts the log. Starts no thread, because threads started before the second wall stay outside it. So lines stay in
/// the queue until [`start_writer`] is called.
pub(crate) fn start(default: &str) {
    let log = tracing_subscriber::fmt()
        .with_env_filter(filter(default))
        .with_writer(MakeLogWriter)
        .with_ansi(is_coloured())
        .with_target(false);
    let _ = log.try_init();
}

/// Starts the thread that writes the queue to standard error. Further calls have no effect.
pub(crate) fn start_writer() {
    // The thread writes to a duplicated descriptor, so it never holds the lock of `std::io::stderr`.
    let Ok(stderr) = std::io::stderr().as_fd().try_clone_to_owned() else { return };
    let _ = LINES.start(std::fs::File::from(stderr));
}

/// Waits until the queue is written, before a question appears on the same terminal.
pub(crate) fn flush() {
    start_writer();
    LINES.wait_until_written(FLUSH_TIMEOUT);
}

/// Sends panic messages through the queue. The default hook would block if standard error is not read.
pub(crate) fn hook_panics() {
    std::panic::set_hook(Box::new(|panic| {
        let thread = std::thread::current();
        let mut line = format!("thread '{}' {panic}", thread.name().unwrap_or("<unnamed>"));
        let trace = std::backtrace::Backtrace::capture();
        if trace.status() == std::backtrace::BacktraceStatus::Captured {
            let _ = write!(line, "\n{trace}");
        }
        line.push('\n');
        LINES.try_put(LineSource::Host, line.as_bytes());
    }));
}

/// Writes the queue when it is dropped, at the end of the process. Waits up to [`FLUSH_TIMEOUT`] for the reader.
pub(crate) struct FinishOnDrop;

impl Drop for FinishOnDrop {
    fn drop(&mut self) {
        start_writer();
        LINES.finish(FLUSH_TIMEOUT);
    }
}
