//! Computes revisions from the names, sizes and modification times of files, without opening them.

use std::hash::{DefaultHasher, Hash, Hasher};
use std::time::UNIX_EPOCH;

use crate::store::{Log, Logs};

/// The revision of a log. Includes all its files, because a read may go back to the oldest.
pub(crate) fn of_log(log: &Log) -> String {
    of([log])
}

/// The revision of several logs. Changes when one of them is written to, appears or disappears.
pub(crate) fn of<'a>(logs: impl IntoIterator<Item = &'a Log>) -> String {
    let mut hasher = DefaultHasher::new();
    for log in logs {
        log.path.hash(&mut hasher);
        for file in &log.files {
            let time = file.modified.map(|time| match time.duration_since(UNIX_EPOCH) {
                Ok(after) => (true, after),
                Err(before) => (false, before.duration()),
            });
            (&file.name, file.size, time).hash(&mut hasher);
        }
    }
    format!("{:016x}", hasher.finish())
}

/// The revision of the list. Depends on the paths of the logs, not on their contents.
pub(crate) fn of_list(logs: &Logs) -> String {
    let mut hasher = DefaultHasher::new();
    for log in &logs.logs {
        log.path.hash(&mut hasher);
    }
    logs.cut.hash(&mut hasher);
    format!("{:016x}", hasher.finish())
}
