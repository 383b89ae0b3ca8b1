//! The mount itself as a resource: a Markdown list of the logs with sizes and times. The list of resources leaves these
//! out, because they change all the time.

use std::fmt::Write as _;

use belljar_guest::{Contents, reference};
use jiff::Timestamp;

use crate::store::{Log, Logs};
use crate::unpack::FORMATS;

/// The most logs in the overview.
const MAX_LISTED: usize = 1000;

/// Lists the logs.
pub(crate) fn contents(logs: &Logs) -> Contents {
    let mut text = "# Logs\n\n".to_owned();
    for log in logs.logs.iter().take(MAX_LISTED) {
        let label = log.path.replace('\\', "\\\\").replace('[', "\\[").replace(']', "\\]");
        let link = reference::encode(&log.path).replace('(', "%28").replace(')', "%29");
        // Writing to a String cannot fail.
        let _ = writeln!(text, "- [{label}]({link}): {}", describe(log));
    }
    if logs.logs.is_empty() {
        text.push_str("(none)\n");
    }
    if !logs.unread.is_empty() {
        let _ = writeln!(text, "\nNot read, because the compression is not {FORMATS}:\n");
        for path in logs.unread.iter().take(MAX_LISTED) {
            let _ = writeln!(text, "- {path}");
        }
    }
    if logs.unnamed > 0 {
        let names = if logs.unnamed == 1 { "1 name" } else { &*format!("{} names", logs.unnamed) };
        let _ = writeln!(
            text,
            "\nLeft out: {names} not in UTF-8, or with control characters. Rename the files to read them."
        );
    }
    if logs.cut || logs.logs.len() > MAX_LISTED {
        text.push_str("\nThere are more logs.\n");
    }
    Contents::text("", text).mime_type("text/markdown")
}

fn describe(log: &Log) -> String {
    let files = match log.files.len() {
        1 => String::new(),
        count => format!(" in {count} files"),
    };
    // Some file times are out of the range of `Timestamp`.
    let time = log.modified().and_then(|time| Timestamp::try_from(time).ok());
    let time = time.and_then(|time| Timestamp::from_second(time.as_second()).ok());
    let time = time.map(|time| format!(", last written to {time}")).unwrap_or_default();
    format!("{} bytes{files}{time}", log.size())
}
