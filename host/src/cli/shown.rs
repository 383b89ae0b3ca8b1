//! How tables look at a terminal: columns in line, and colours where the terminal has them and nobody asked for none
//! (`NO_COLOR`, `CLICOLOR`, `CLICOLOR_FORCE`).

use std::fmt::Display;
use std::io::Write as _;

use anstyle::{AnsiColor, Style};

use super::Failure;

/// Names.
pub(super) const NAME: Style = Style::new().bold();

/// What is well.
pub(super) const GOOD: Style = AnsiColor::Green.on_default();

/// What somebody should look at.
pub(super) const WARN: Style = AnsiColor::Yellow.on_default();

/// What is not served.
pub(super) const BAD: Style = AnsiColor::Red.on_default();

/// What is said beside.
pub(super) const FAINT: Style = Style::new().dimmed();

/// `text` in a style, and spaces behind it up to `width`.
pub(super) fn padded(style: Style, text: impl Display, width: usize) -> String {
    let text = text.to_string();
    let spaces = " ".repeat(width.saturating_sub(text.chars().count()));
    format!("{style}{text}{style:#}{spaces}")
}

/// `text` in a style.
pub(super) fn styled(style: Style, text: impl Display) -> String {
    padded(style, text, 0)
}

/// The widest of these, up to `most`.
pub(super) fn width<T: AsRef<str>>(all: impl IntoIterator<Item = T>, most: usize) -> usize {
    all.into_iter().map(|text| text.as_ref().chars().count()).filter(|width| *width <= most).max().unwrap_or(0)
}

/// Writes a text with styles to standard output, as far as they are wanted there.
pub(super) fn print(text: &str) -> Result<(), Failure> {
    let mut out = anstream::AutoStream::auto(std::io::stdout()).lock();
    match out.write_all(text.as_bytes()).and_then(|()| out.flush()) {
        Err(error) if error.kind() != std::io::ErrorKind::BrokenPipe => Err(error.into()),
        _ => Ok(()),
    }
}
