//! The mount itself as a resource: a Markdown list of the logs, with what the list of resources must not tell, because it
//! changes all the time.

use std::fmt::Write as _;

use belljar_guest::{Contents, reference};
use jiff::Timestamp;

use crate::store::{Log, Logs};

/// How many logs it holds.
const MOST: usize = 1000;

/// Lists the logs.
pub(crate) fn contents(logs: &Logs) -> Contents {
    let mut text = "# Logs\n\n".to_owned();
    for log in logs.logs.iter().take(MOST) {
        let label = log.path.replace('\\', "\\\\").replace('[', "\\[").replace(']', "\\]");
        let link = reference::encode(&log.path).replace('(', "%28").replace(')', "%29");
        // A String takes whatever is written to it.
        let _ = writeln!(text, "- [{label}]({link}): {}", told(log));
    }
    if logs.logs.is_empty() {
        text.push_str("(none)\n");
    }
    if logs.cut || logs.logs.len() > MOST {
        text.push_str("\nThere are more.\n");
    }
    Contents::text("", text).mime_type("text/markdown")
}

fn told(log: &Log) -> String {
    let files = match log.files.len() {
        1 => String::new(),
        count => format!(" in {count} files"),
    };
    // Not every time that a file can have is one that can be written.
    let time = log.modified().and_then(|time| Timestamp::try_from(time).ok());
    let time = time.and_then(|time| Timestamp::from_second(time.as_second()).ok());
    let time = time.map(|time| format!(", last written to {time}")).unwrap_or_default();
    format!("{} bytes{files}{time}", log.size())
}
