//! The state of a database file: its header, size and modification time, and the journal files beside it. Two equal states
//! mean that no program wrote in between. This replaces locks, which a read-only sandbox cannot take.
//!
//! How programs write (<https://sqlite.org/fileformat2.html>, <https://sqlite.org/walformat.html>):
//! - With a rollback journal: a journal with a header exists from before the first changed page until after the last one.
//!   Each transaction increments the change counter, except in exclusive locking mode.
//! - With a write-ahead log: pages are appended to the log, and only checkpoints change the database file. A log that
//!   restarts gets a new header before its first page.

use std::fs::File;
use std::io::{ErrorKind, Read as _};
use std::path::{Path, PathBuf};
use std::time::{Duration, SystemTime, UNIX_EPOCH};

use belljar_guest::{Error, Result};

/// The size of a database's header, in bytes.
const HEADER: usize = 100;

/// How far a modification time may lag behind the change: one tick of the kernel's clock (at most 10 ms) and a margin.
const TICK: Duration = Duration::from_millis(12);

/// The largest write-ahead log that is read, in bytes. Each read scans the whole log, because a sandbox cannot map
/// the index that the writers share. If the log is longer, no program runs checkpoints.
pub(crate) const MAX_LOG_BYTES: u64 = 64 * 1024 * 1024;

/// The state of a database at one moment.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(crate) struct State {
    size: u64,
    modified: Option<SystemTime>,
    /// The whole header. It contains the change counter and says whether the database uses a write-ahead log.
    header: Vec<u8>,
    /// True if an active journal exists: of a running transaction, or of a writer that died.
    journal: bool,
    log: Option<Log>,
}

/// A write-ahead log that is not empty.
#[derive(Debug, Clone, PartialEq, Eq)]
struct Log {
    size: u64,
    modified: Option<SystemTime>,
    /// The header of the log. Its salts change each time the log restarts.
    header: Vec<u8>,
}

/// How to open a database.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum Mode {
    /// The database file alone has all data.
    FileOnly,
    /// The pages in the write-ahead log supersede those in the file.
    WithLog,
}

impl State {
    /// Reads the state of the database at `path`.
    pub(crate) fn of(path: &Path) -> Result<State> {
        let mut file = match File::open(path) {
            Err(error) if error.kind() == ErrorKind::NotFound => return Err(Error::NotFound),
            file => file?,
        };
        let meta = file.metadata()?;
        let header = start(&mut file, HEADER)?;
        let journal = match File::open(sibling(path, "-journal")) {
            Err(error) if error.kind() == ErrorKind::NotFound => false,
            // A transaction ends when its journal is deleted, truncated, or its header is zeroed.
            file => start(&mut file?, 1)?.first().is_some_and(|byte| *byte != 0),
        };
        let log = match File::open(sibling(path, "-wal")) {
            Err(error) if error.kind() == ErrorKind::NotFound => None,
            file => {
                let mut file = file?;
                let meta = file.metadata()?;
                let header = start(&mut file, 32)?;
                (meta.len() > 0).then_some(Log { size: meta.len(), modified: meta.modified().ok(), header })
            }
        };
        Ok(State { size: meta.len(), modified: meta.modified().ok(), header, journal, log })
    }

    /// The reason why the database cannot be read in this state, if any.
    pub(crate) fn obstacle(&self) -> Option<String> {
        if self.journal {
            return Some(
                "a transaction is being written, or its writer died and left a -journal file; if no program writes now, \
                 open the database once with sqlite3, which rolls the transaction back"
                    .to_owned(),
            );
        }
        let log = self.log.as_ref().filter(|log| log.size > MAX_LOG_BYTES)?;
        Some(format!(
            "the -wal file of the database has {} MiB, the limit is {} MiB; run  PRAGMA wal_checkpoint(TRUNCATE)",
            log.size >> 20,
            MAX_LOG_BYTES >> 20
        ))
    }

    /// The first bytes of the file.
    pub(crate) fn head(&self) -> &[u8] {
        &self.header
    }

    pub(crate) fn mode(&self) -> Mode {
        // Byte 19 of the header is the read version: 2 means write-ahead log.
        let logged = self.header.get(19) == Some(&2) && self.log.is_some();
        if logged { Mode::WithLog } else { Mode::FileOnly }
    }

    /// How long to wait until any later change is certain to give the file a new modification time.
    pub(crate) fn settle_delay(&self, now: SystemTime) -> Option<Duration> {
        let modified = self.modified?;
        match now.duration_since(modified) {
            Ok(age) => TICK.checked_sub(age).filter(|rest| !rest.is_zero()),
            // A time slightly in the future means that the clocks differ. A time far in the future was set by a program, and
            // the next change resets it.
            Err(ahead) => Some(ahead.duration() + TICK).filter(|rest| *rest < TICK * 20),
        }
    }

    /// True if all reads between `self` and `after` saw one snapshot.
    pub(crate) fn is_same_snapshot(&self, after: &State) -> bool {
        let file = self.size == after.size && self.modified == after.modified && self.header == after.header;
        let log = match (self.mode(), &self.log, &after.log) {
            // Frames appended meanwhile come after the last known frame, and were not read.
            (Mode::WithLog, Some(log), Some(after)) => log.header == after.header && log.size <= after.size,
            (Mode::WithLog, ..) => false,
            (Mode::FileOnly, ..) => after.mode() == Mode::FileOnly,
        };
        file && log && !after.journal
    }

    /// A text that changes whenever the contents of the database change.
    pub(crate) fn revision(&self) -> String {
        let counter = self.header.get(24..28).unwrap_or_default();
        let mut revision = format!("{}-{}-{}", hex(counter), self.size, nanos(self.modified));
        if let Some(log) = &self.log {
            // The salts identify the log; its size changes with each appended frame.
            let salts = log.header.get(16..24).unwrap_or_default();
            revision.push_str(&format!("-{}-{}-{}", hex(salts), log.size, nanos(log.modified)));
        }
        if self.journal {
            revision.push_str("-journal");
        }
        revision
    }
}

fn hex(bytes: &[u8]) -> String {
    bytes.iter().map(|byte| format!("{byte:02x}")).collect()
}

fn nanos(time: Option<SystemTime>) -> u128 {
    time.and_then(|time| time.duration_since(UNIX_EPOCH).ok()).unwrap_or_default().as_nanos()
}

fn sibling(path: &Path, end: &str) -> PathBuf {
    let mut whole = path.as_os_str().to_owned();
    whole.push(end);
    PathBuf::from(whole)
}

/// The first `most` bytes of a file, or all of a shorter file.
fn start(file: &mut File, most: usize) -> Result<Vec<u8>> {
    let mut bytes = Vec::with_capacity(most);
    file.take(most as u64).read_to_end(&mut bytes)?;
    Ok(bytes)
}
