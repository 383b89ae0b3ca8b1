//! Tells whether something changed by what is known without opening a file: the names, sizes and times of a log's files.

use std::hash::{DefaultHasher, Hash, Hasher};
use std::time::UNIX_EPOCH;

use crate::store::{Log, Logs};

/// The revision of a log: of all its files, since a reading may go back to the oldest.
pub(crate) fn of_log(log: &Log) -> String {
    of([log])
}

/// The revision of several logs: differs when one of them was written to, appeared, or went.
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

/// The revision of the list, which shows which logs there are and nothing of what is in them.
pub(crate) fn of_list(logs: &Logs) -> String {
    let mut hasher = DefaultHasher::new();
    for log in &logs.logs {
        log.path.hash(&mut hasher);
    }
    logs.cut.hash(&mut hasher);
    format!("{:016x}", hasher.finish())
}
