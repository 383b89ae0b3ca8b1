//! The log of `belljar dev`: the output of the provider and the messages of belljar, without times.

use std::fmt;

use tracing::{Event, Level, Subscriber};
use tracing_subscriber::fmt::FmtContext;
use tracing_subscriber::fmt::format::{FormatEvent, FormatFields, Writer};
use tracing_subscriber::registry::LookupSpan;

use crate::server::log::{self as shared, MakeLogWriter};

/// The filter of the log without `RUST_LOG`.
const DEFAULT: &str = "warn,belljar::guest=info,belljar::compiling=info,rmcp=error";

/// Starts the log, on standard error.
pub(super) fn start() {
    let log = tracing_subscriber::fmt()
        .with_env_filter(shared::filter(DEFAULT))
        .with_writer(MakeLogWriter)
        .with_ansi(false)
        .event_format(DevLogFormat);
    let _ = log.try_init();
    shared::start_writer();
}

/// Formats an event as one line: its origin and its message.
struct DevLogFormat;

impl<S, N> FormatEvent<S, N> for DevLogFormat
where
    S: Subscriber + for<'a> LookupSpan<'a>,
    N: for<'a> FormatFields<'a> + 'static,
{
    fn format_event(&self, context: &FmtContext<'_, S, N>, mut out: Writer<'_>, event: &Event<'_>) -> fmt::Result {
        let meta = event.metadata();
        let origin = match *meta.level() {
            _ if meta.target() == "belljar::guest" => "the provider",
            Level::ERROR => "belljar: error",
            Level::WARN => "belljar: warning",
            _ => "belljar",
        };
        write!(out, "{origin}: ")?;
        context.format_fields(out.by_ref(), event)?;
        writeln!(out)
    }
}
