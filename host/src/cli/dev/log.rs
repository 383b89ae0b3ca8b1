//! The log as an author reads it, beside the calls: what the provider printed, and what belljar has to say, without the time.

use std::fmt;

use tracing::{Event, Level, Subscriber};
use tracing_subscriber::fmt::FmtContext;
use tracing_subscriber::fmt::format::{FormatEvent, FormatFields, Writer};
use tracing_subscriber::registry::LookupSpan;

use crate::cli::log::{self as shared, Log};

/// What is in it by default.
const DEFAULT: &str = "warn,belljar::guest=info,belljar::compiling=info,rmcp=error";

/// Starts the log, on standard error.
pub(super) fn start() {
    let log = tracing_subscriber::fmt()
        .with_env_filter(shared::filter(DEFAULT))
        .with_writer(Log)
        .with_ansi(false)
        .event_format(Plain);
    let _ = log.try_init();
    shared::flow();
}

/// One line: who speaks, and what is said.
struct Plain;

impl<S, N> FormatEvent<S, N> for Plain
where
    S: Subscriber + for<'a> LookupSpan<'a>,
    N: for<'a> FormatFields<'a> + 'static,
{
    fn format_event(&self, context: &FmtContext<'_, S, N>, mut out: Writer<'_>, event: &Event<'_>) -> fmt::Result {
        let meta = event.metadata();
        let who = match *meta.level() {
            // A provider's own lines say that they are.
            _ if meta.target() == "belljar::guest" => "the provider",
            Level::ERROR => "belljar: error",
            Level::WARN => "belljar: warning",
            _ => "belljar",
        };
        write!(out, "{who}: ")?;
        context.format_fields(out.by_ref(), event)?;
        writeln!(out)
    }
}
