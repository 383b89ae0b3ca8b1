//! The log on standard error. Whoever reads that, or does not, holds up no thread that serves: lines go through a bounded
//! queue (`audit::lines`), and a thread of its own writes them.

use std::fmt::Write as _;
use std::io::{IsTerminal, Write};
use std::os::fd::AsFd;
use std::time::Duration;

use tracing::Metadata;
use tracing_subscriber::EnvFilter;
use tracing_subscriber::fmt::MakeWriter;

use crate::audit::lines::{Lines, Speaker};

/// All that this process says on standard error.
static LINES: Lines = Lines::new();

/// How long the reader of standard error has at the end to take what was said.
const END: Duration = Duration::from_millis(300);

/// What a provider prints.
const GUEST: &str = "belljar::guest";

/// One line of the log, or of whatever else is said.
pub(super) struct Line(Speaker);

impl Write for Line {
    fn write(&mut self, line: &[u8]) -> std::io::Result<usize> {
        LINES.offer(self.0, line);
        Ok(line.len())
    }

    fn flush(&mut self) -> std::io::Result<()> {
        Ok(())
    }
}

/// Makes the writer of each line.
pub(super) struct Log;

impl MakeWriter<'_> for Log {
    type Writer = Line;

    fn make_writer(&self) -> Line {
        Line(Speaker::Host)
    }

    fn make_writer_for(&self, meta: &Metadata<'_>) -> Line {
        Line(if meta.target() == GUEST { Speaker::Guest } else { Speaker::Host })
    }
}

/// Lines on standard error of a thread that may wait until they find room.
pub(super) struct Patient;

impl Write for Patient {
    fn write(&mut self, lines: &[u8]) -> std::io::Result<usize> {
        LINES.put(lines);
        Ok(lines.len())
    }

    fn flush(&mut self) -> std::io::Result<()> {
        Ok(())
    }
}

/// Says a line on standard error, in the order of the log.
pub(super) fn say(line: &str) {
    LINES.offer(Speaker::Host, format!("belljar: {line}\n").as_bytes());
}

/// Writes to standard error, in the order of the log.
pub(super) fn put(text: &str) {
    LINES.offer(Speaker::Host, text.as_bytes());
}

/// What is in the log: what `RUST_LOG` says, or else `default`.
pub(super) fn filter(default: &str) -> EnvFilter {
    #[expect(clippy::disallowed_methods, reason = "the operator's choice of what is logged")]
    let wanted = std::env::var("RUST_LOG").unwrap_or_default();
    let filter = if wanted.is_empty() { default } else { &wanted };
    EnvFilter::try_new(filter).unwrap_or_else(|_| EnvFilter::new(default))
}

/// Whether the log has colours: on a terminal, unless `NO_COLOR` is set (<https://no-color.org>).
pub(super) fn is_coloured() -> bool {
    #[expect(clippy::disallowed_methods, reason = "the operator's choice of colours")]
    let refused = std::env::var_os("NO_COLOR").is_some_and(|value| !value.is_empty());
    !refused && std::io::stderr().is_terminal()
}

/// Starts the log. Lines wait until [`flow`], because a thread that is started before the second wall stays outside of it.
pub(super) fn start(default: &str) {
    let log = tracing_subscriber::fmt()
        .with_env_filter(filter(default))
        .with_writer(Log)
        .with_ansi(is_coloured())
        .with_target(false);
    let _ = log.try_init();
}

/// Starts the thread that writes what is said.
pub(super) fn flow() {
    // The stream's own lock stays free, whatever becomes of the thread that writes.
    let Ok(error) = std::io::stderr().as_fd().try_clone_to_owned() else { return };
    let _ = LINES.start(std::fs::File::from(error));
}

/// Waits until what was said is written, before somebody is asked something in the same place.
pub(super) fn settle() {
    flow();
    LINES.settle(END);
}

/// Has panics said like everything else: the usual hook waits for the reader of standard error.
pub(super) fn hook_panics() {
    std::panic::set_hook(Box::new(|panic| {
        let thread = std::thread::current();
        let mut line = format!("thread '{}' {panic}", thread.name().unwrap_or("<unnamed>"));
        let trace = std::backtrace::Backtrace::capture();
        if trace.status() == std::backtrace::BacktraceStatus::Captured {
            let _ = write!(line, "\n{trace}");
        }
        line.push('\n');
        LINES.offer(Speaker::Host, line.as_bytes());
    }));
}

/// Writes what was said, when it goes out of scope at the end of the process: if the reader takes it within a short time.
pub(super) struct Finish;

impl Drop for Finish {
    fn drop(&mut self) {
        flow();
        LINES.finish(END);
    }
}
