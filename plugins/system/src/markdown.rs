//! Writes tables in Markdown, and numbers for people. Texts come from other users of the machine: they cannot end a cell,
//! start a link or be HTML.

use serde_json::Value;

/// A table. Rows have as many cells as there are columns.
pub(crate) fn table(columns: &[&str], rows: impl IntoIterator<Item = Vec<String>>) -> String {
    let line = |cells: Vec<String>| format!("| {} |\n", cells.join(" | "));
    let mut text = line(columns.iter().map(|name| (*name).to_owned()).collect());
    text += &line(columns.iter().map(|_| "---".to_owned()).collect());
    let head = text.len();
    rows.into_iter().for_each(|row| text += &line(row));
    if text.len() == head {
        return "none\n".to_owned();
    }
    text
}

/// Text of another user, in a cell.
pub(crate) fn escaped(text: &str) -> String {
    let mut out = String::with_capacity(text.len());
    for c in text.chars() {
        match c {
            '\\' | '|' | '<' | '>' | '[' | ']' | '*' | '_' | '`' | '~' | '&' | '#' | '!' => out.extend(['\\', c]),
            c if c.is_control() => out.push(' '),
            c => out.push(c),
        }
    }
    out
}

/// A value as a cell. Absent values are empty.
pub(crate) fn cell(value: &Value) -> String {
    match value {
        Value::Null => String::new(),
        Value::String(text) => escaped(text),
        Value::Array(all) => all.iter().map(cell).collect::<Vec<_>>().join(" "),
        other => escaped(&other.to_string()),
    }
}

/// A number of bytes: `1.5 GiB`.
pub(crate) fn bytes(value: &Value) -> String {
    const UNITS: [&str; 7] = ["B", "KiB", "MiB", "GiB", "TiB", "PiB", "EiB"];
    let Some(mut size) = value.as_f64() else { return String::new() };
    let mut units = UNITS.iter().peekable();
    let mut unit = UNITS[0];
    while let Some(next) = units.next() {
        unit = next;
        if size < 1024.0 || units.peek().is_none() {
            break;
        }
        size /= 1024.0;
    }
    if unit == UNITS[0] { format!("{size} {unit}") } else { format!("{size:.1} {unit}") }
}

/// A time in seconds: `2d 03:04:05`, or `0.25 s`.
pub(crate) fn seconds(value: &Value) -> String {
    let Some(all) = value.as_f64() else { return String::new() };
    if all < 60.0 {
        return format!("{all:.2} s");
    }
    let whole = all as u64;
    let (days, rest) = (whole / 86_400, whole % 86_400);
    let clock = format!("{:02}:{:02}:{:02}", rest / 3600, rest % 3600 / 60, rest % 60);
    if days == 0 { clock } else { format!("{days}d {clock}") }
}

/// A share of a whole in percent. Empty without a whole.
pub(crate) fn percent(part: Option<f64>, whole: Option<f64>) -> String {
    match (part, whole) {
        (Some(part), Some(whole)) if whole > 0.0 => format!("{:.0} %", part / whole * 100.0),
        _ => String::new(),
    }
}
