//! The log of commands that may have to compile components first. It shows on standard error which component is being
//! compiled, and for how long. A terminal gets one line that is overwritten; any other output gets a line at the
//! beginning and one every ten seconds.

use std::fmt;
use std::io::IsTerminal;

use tracing::{Event, Subscriber};
use tracing_subscriber::fmt::FmtContext;
use tracing_subscriber::fmt::format::{Format, FormatEvent, FormatFields, Full, Writer};
use tracing_subscriber::registry::LookupSpan;

use crate::sandbox::COMPILING;
use crate::server::log;

/// Escape sequence: moves the cursor to the beginning of the line and clears the line.
pub(super) const CLEAR: &str = "\r\u{1b}[2K";

/// True if standard error is a terminal on which a line can be overwritten.
fn is_in_place() -> bool {
    #[expect(clippy::disallowed_methods, reason = "the type of the terminal, from its variable")]
    let terminal = std::env::var_os("TERM").unwrap_or_default();
    std::io::stderr().is_terminal() && terminal != "dumb" && !terminal.is_empty()
}

/// Starts the log. `default` is the filter of the log without `RUST_LOG`; messages of the compiler are always added to
/// it.
pub(super) fn start(default: &str) {
    let is_in_place = is_in_place();
    let level = if is_in_place { "debug" } else { "info" };
    let log = tracing_subscriber::fmt()
        .with_env_filter(log::filter(&format!("{default},{COMPILING}={level}")))
        .with_writer(log::MakeLogWriter)
        .with_ansi(log::is_coloured())
        .event_format(ProgressFormat { is_in_place, others: Format::default().with_target(false) });
    let _ = log.try_init();
}

/// Clears the progress line, once every component is loaded.
pub(super) fn end() {
    if is_in_place() {
        log::put(CLEAR);
        log::flush();
    }
}

/// Formats events of the log: compiler messages as progress, the others as usual.
struct ProgressFormat {
    is_in_place: bool,
    others: Format<Full>,
}

impl<S, N> FormatEvent<S, N> for ProgressFormat
where
    S: Subscriber + for<'a> LookupSpan<'a>,
    N: for<'a> FormatFields<'a> + 'static,
{
    fn format_event(&self, context: &FmtContext<'_, S, N>, mut out: Writer<'_>, event: &Event<'_>) -> fmt::Result {
        if self.is_in_place {
            write!(out, "{CLEAR}")?;
        }
        if event.metadata().target() != COMPILING {
            return self.others.format_event(context, out, event);
        }
        let mut fields = CompilerEvent::default();
        event.record(&mut fields);
        write!(out, "belljar: \"{}\": {}", fields.mount, fields.message)?;
        if self.is_in_place { Ok(()) } else { writeln!(out) }
    }
}

/// The fields of a compiler message.
#[derive(Default)]
struct CompilerEvent {
    mount: String,
    message: String,
}

impl tracing::field::Visit for CompilerEvent {
    fn record_debug(&mut self, field: &tracing::field::Field, value: &dyn fmt::Debug) {
        match field.name() {
            "mount" => self.mount = format!("{value:?}"),
            "message" => self.message = format!("{value:?}"),
            _ => {}
        }
    }
}
