//! What state a database file is in, by its header, its size and time, and the files that writers keep beside it. Two equal
//! states say that nobody wrote in between; that is all the locking there is, since a sandbox that only reads can hold no
//! lock.
//!
//! How writers go about it (<https://sqlite.org/fileformat2.html>, <https://sqlite.org/walformat.html>):
//! - with a rollback journal, a journal with a header is there from before the first page is changed until after the last,
//!   and each transaction counts up the change counter, unless its writer holds the file for itself all the time;
//! - with a write-ahead log, pages are appended to the log. The file itself is changed by checkpoints alone, and a log
//!   that is begun anew gets another header before its first page.

use std::fs::File;
use std::io::{ErrorKind, Read as _};
use std::path::{Path, PathBuf};
use std::time::{Duration, SystemTime, UNIX_EPOCH};

use belljar_guest::{Error, Result};

/// The size of a database's header.
const HEADER: usize = 100;

/// How far a file's time may lie behind the change that it tells of: a tick of the kernel's clock, which is 10 ms at most.
const TICK: Duration = Duration::from_millis(12);

/// The largest log that is read. Each reading has to go through all of it, since the index that writers share is not to be
/// had here; a log this long is one that nobody checkpoints.
pub(crate) const LONGEST_LOG: u64 = 64 * 1024 * 1024;

/// How a database is, at one moment.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(crate) struct State {
    size: u64,
    modified: Option<SystemTime>,
    /// All of the header: the change counter is in it, and whether there is a write-ahead log.
    header: Vec<u8>,
    /// A journal that is not over: of a transaction that goes on, or of a writer that died.
    journal: bool,
    log: Option<Log>,
}

/// A write-ahead log that is not empty.
#[derive(Debug, Clone, PartialEq, Eq)]
struct Log {
    size: u64,
    modified: Option<SystemTime>,
    /// Its own header, with the salts that are new each time that it is begun anew.
    header: Vec<u8>,
}

/// How to open it.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum Mode {
    /// The file alone holds everything.
    Alone,
    /// What the log holds goes before the file.
    WithLog,
}

impl State {
    /// Looks at the database at `path`.
    pub(crate) fn of(path: &Path) -> Result<State> {
        let mut file = match File::open(path) {
            Err(error) if error.kind() == ErrorKind::NotFound => return Err(Error::NotFound),
            file => file?,
        };
        let meta = file.metadata()?;
        let header = start(&mut file, HEADER)?;
        let journal = match File::open(beside(path, "-journal")) {
            Err(error) if error.kind() == ErrorKind::NotFound => false,
            // A journal is over when it is gone, empty, or its header is zeros.
            file => start(&mut file?, 1)?.first().is_some_and(|byte| *byte != 0),
        };
        let log = match File::open(beside(path, "-wal")) {
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

    /// Why it cannot be read as it is, if it cannot.
    pub(crate) fn obstacle(&self) -> Option<String> {
        if self.journal {
            return Some(
                "a transaction is being written, or its writer died and left a -journal file; if nobody writes now, open \
                 the database once with sqlite3, which undoes what is half done"
                    .to_owned(),
            );
        }
        let log = self.log.as_ref().filter(|log| log.size > LONGEST_LOG)?;
        Some(format!(
            "its -wal file has {} MiB, and {} are read at most; run  PRAGMA wal_checkpoint(TRUNCATE)",
            log.size >> 20,
            LONGEST_LOG >> 20
        ))
    }

    pub(crate) fn mode(&self) -> Mode {
        // By the version that one has to know to read it.
        let logged = self.header.get(19) == Some(&2) && self.log.is_some();
        if logged { Mode::WithLog } else { Mode::Alone }
    }

    /// How long to wait until a change from now on is sure to give the file another time than it has.
    pub(crate) fn unsettled(&self, now: SystemTime) -> Option<Duration> {
        let modified = self.modified?;
        match now.duration_since(modified) {
            Ok(age) => TICK.checked_sub(age).filter(|rest| !rest.is_zero()),
            // A little ahead: clocks differ. Far ahead: somebody has set it, and a change will give it one of today.
            Err(ahead) => Some(ahead.duration() + TICK).filter(|rest| *rest < TICK * 20),
        }
    }

    /// Whether everything that was read since `self` was one snapshot, given the state afterwards.
    pub(crate) fn held(&self, after: &State) -> bool {
        let file = self.size == after.size && self.modified == after.modified && self.header == after.header;
        let log = match (self.mode(), &self.log, &after.log) {
            // What was appended meanwhile was not read: it came after the last frame that was known.
            (Mode::WithLog, Some(log), Some(after)) => log.header == after.header && log.size <= after.size,
            (Mode::WithLog, ..) => false,
            (Mode::Alone, ..) => after.mode() == Mode::Alone,
        };
        file && log && !after.journal
    }

    /// A text that differs when what is in the database does.
    pub(crate) fn revision(&self) -> String {
        let counter = self.header.get(24..28).unwrap_or_default();
        let mut revision = format!("{}-{}-{}", hex(counter), self.size, nanos(self.modified));
        if let Some(log) = &self.log {
            // The salts, and how far the log has come.
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

fn beside(path: &Path, end: &str) -> PathBuf {
    let mut whole = path.as_os_str().to_owned();
    whole.push(end);
    PathBuf::from(whole)
}

/// The first bytes of a file: `most` of them, or all that there are.
fn start(file: &mut File, most: usize) -> Result<Vec<u8>> {
    let mut bytes = Vec::with_capacity(most);
    file.take(most as u64).read_to_end(&mut bytes)?;
    Ok(bytes)
}
