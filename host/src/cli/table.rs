//! Tables on standard output: aligned columns, and colours if the terminal supports them and the environment does not
//! disable them (`NO_COLOR`, `CLICOLOR`, `CLICOLOR_FORCE`).

use crate::server::failure::Failure;
use std::fmt::Display;
use std::io::Write as _;

use anstyle::{AnsiColor, Style};

/// Names of mounts.
pub(super) const NAME: Style = Style::new().bold();

/// A good state.
pub(super) const GOOD: Style = AnsiColor::Green.on_default();

/// A warning.
pub(super) const WARN: Style = AnsiColor::Yellow.on_default();

/// A mount that is not served.
pub(super) const BAD: Style = AnsiColor::Red.on_default();

/// Additional details.
pub(super) const FAINT: Style = Style::new().dimmed();

/// `text` in a style, padded with spaces to `width` characters.
pub(super) fn padded(style: Style, text: impl Display, width: usize) -> String {
    let text = text.to_string();
    let spaces = " ".repeat(width.saturating_sub(text.chars().count()));
    format!("{style}{text}{style:#}{spaces}")
}

/// `text` in a style.
pub(super) fn styled(style: Style, text: impl Display) -> String {
    padded(style, text, 0)
}

/// The width of a column in characters: that of the widest text, without the texts wider than `max`.
pub(super) fn width<T: AsRef<str>>(all: impl IntoIterator<Item = T>, max: usize) -> usize {
    all.into_iter().map(|text| text.as_ref().chars().count()).filter(|width| *width <= max).max().unwrap_or(0)
}

/// Writes a text with styles to standard output. Removes the styles if standard output does not support them.
pub(super) fn print(text: &str) -> Result<(), Failure> {
    let mut out = anstream::AutoStream::auto(std::io::stdout()).lock();
    super::output::ignore_closed_pipe(out.write_all(text.as_bytes()).and_then(|()| out.flush()))
}
