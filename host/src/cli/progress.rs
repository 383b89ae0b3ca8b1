//! The log of commands that may have to compile first: a line on standard error says what is compiled, and for how long
//! already. At a terminal that is one line in its place; elsewhere a line at the beginning and one every ten seconds.

use std::fmt;
use std::io::IsTerminal;

use tracing::{Event, Subscriber};
use tracing_subscriber::fmt::FmtContext;
use tracing_subscriber::fmt::format::{Format, FormatEvent, FormatFields, Full, Writer};
use tracing_subscriber::registry::LookupSpan;

use super::log;
use crate::sandbox::COMPILING;

/// Goes to the beginning of the line, and clears it.
const CLEAR: &str = "\r\u{1b}[2K";

/// Whether there is a line that can be written anew.
fn is_in_place() -> bool {
    #[expect(clippy::disallowed_methods, reason = "what the terminal can do")]
    let terminal = std::env::var_os("TERM").unwrap_or_default();
    std::io::stderr().is_terminal() && terminal != "dumb" && !terminal.is_empty()
}

/// Starts the log. `default`: what is in it, beside what is compiled.
pub(super) fn start(default: &str) {
    let is_in_place = is_in_place();
    let level = if is_in_place { "debug" } else { "info" };
    let log = tracing_subscriber::fmt()
        .with_env_filter(log::filter(&format!("{default},{COMPILING}={level}")))
        .with_writer(log::Log)
        .with_ansi(log::is_coloured())
        .event_format(Lines { is_in_place, others: Format::default().with_target(false) });
    let _ = log.try_init();
}

/// Takes the line away, when everything is loaded.
pub(super) fn end() {
    if is_in_place() {
        log::put(CLEAR);
        log::settle();
    }
}

/// How events are written.
struct Lines {
    is_in_place: bool,
    others: Format<Full>,
}

impl<S, N> FormatEvent<S, N> for Lines
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
        let mut said = Said::default();
        event.record(&mut said);
        write!(out, "belljar: \"{}\": {}", said.mount, said.message)?;
        if self.is_in_place { Ok(()) } else { writeln!(out) }
    }
}

/// What an event says.
#[derive(Default)]
struct Said {
    mount: String,
    message: String,
}

impl tracing::field::Visit for Said {
    fn record_debug(&mut self, field: &tracing::field::Field, value: &dyn fmt::Debug) {
        match field.name() {
            "mount" => self.mount = format!("{value:?}"),
            "message" => self.message = format!("{value:?}"),
            _ => {}
        }
    }
}
