//! The collected facts of each part, kept for [`SYSTEM_FRESH_FOR`]. Readers of one part wait for one collection.

use std::collections::BTreeMap;
use std::path::Path;
use std::sync::{Arc, Mutex, TryLockError};
use std::time::{Duration, Instant, SystemTime};

use chrono::{DateTime, SecondsFormat, Utc};
use serde::Serialize;

use super::error::CollectError;
use super::parts::SystemPart;
use super::root::SystemRoot;
use super::{containers, disks, load, memory, network, processes, sensors, services};
use crate::grants::drive_timeout::run_within;
use crate::grants::memory_directory::{MemoryFile, MemoryFileError};
use crate::model::bounds::SYSTEM_FRESH_FOR;

/// The longest collection of one part. The kernel answers in milliseconds, but a process that hangs in the kernel can
/// hold the reader of its command line.
const COLLECT_TIME: Duration = Duration::from_secs(2);

/// The last collection of a part.
struct Collected {
    at: Instant,
    /// The file, or why there is none. A failure is kept as long, so that a flood of reads does not repeat it.
    file: Result<Arc<MemoryFile>, String>,
}

/// The last collection of every part. [`SystemPart::CommandLines`] stands for the processes with their arguments.
pub(super) struct SystemSnapshots {
    root: SystemRoot,
    /// The lock is held while a part is collected, at most [`COLLECT_TIME`] long.
    parts: BTreeMap<SystemPart, Mutex<Option<Collected>>>,
}

impl SystemSnapshots {
    pub(super) fn new(root: SystemRoot) -> Self {
        let parts = SystemPart::FILES.iter().chain(&[SystemPart::CommandLines]).map(|part| (*part, Mutex::new(None)));
        Self { root, parts: parts.collect() }
    }

    /// The facts of a part, at most [`SYSTEM_FRESH_FOR`] old. Collects them only if `may_block`.
    pub(super) fn get(&self, part: SystemPart, may_block: bool) -> Result<Arc<MemoryFile>, MemoryFileError> {
        let last = self.parts.get(&part).ok_or(MemoryFileError::Absent)?;
        let mut last = match last.try_lock() {
            Ok(last) => last,
            Err(TryLockError::Poisoned(poisoned)) => poisoned.into_inner(),
            Err(TryLockError::WouldBlock) if !may_block => return Err(MemoryFileError::NeedsThread),
            Err(TryLockError::WouldBlock) => last.lock().unwrap_or_else(std::sync::PoisonError::into_inner),
        };
        let fresh = last.as_ref().filter(|last| last.at.elapsed() < SYSTEM_FRESH_FOR.get());
        let file = match fresh {
            Some(fresh) => fresh.file.clone(),
            None if !may_block => return Err(MemoryFileError::NeedsThread),
            None => {
                let file = self.collect(part).map_err(|error| format!("the part \"{}\": {error}", part.word()));
                // The time after the collection: a slow one does not make the next one due at once.
                *last = Some(Collected { at: Instant::now(), file: file.clone() });
                file
            }
        };
        file.map_err(MemoryFileError::Unavailable)
    }

    fn collect(&self, part: SystemPart) -> Result<Arc<MemoryFile>, CollectError> {
        let root = self.root.clone();
        // A thread that hangs is named by this path, and no second one is started meanwhile.
        let path = self.root.path().join("proc").join(part.word());
        let modified = SystemTime::now();
        let json = run_within(Path::new(&path), COLLECT_TIME, move || report(&root, part, modified))??;
        Ok(Arc::new(MemoryFile { bytes: json.into(), modified }))
    }
}

/// The contents of a file: the time of the collection, and the facts.
#[derive(Serialize)]
struct Report<F> {
    at: String,
    #[serde(flatten)]
    facts: F,
}

/// Collects a part, and writes it as JSON.
fn report(root: &SystemRoot, part: SystemPart, at: SystemTime) -> Result<Vec<u8>, CollectError> {
    fn json(at: SystemTime, facts: impl Serialize) -> Result<Vec<u8>, CollectError> {
        let at = DateTime::<Utc>::from(at).to_rfc3339_opts(SecondsFormat::Micros, true);
        Ok(serde_json::to_vec(&Report { at, facts })?)
    }
    match part {
        SystemPart::Load => json(at, load::collect(root)?),
        SystemPart::Memory => json(at, memory::collect(root)?),
        SystemPart::Disks => json(at, disks::collect(root)?),
        SystemPart::Processes => json(at, processes::collect(root, false)?),
        SystemPart::CommandLines => json(at, processes::collect(root, true)?),
        SystemPart::Services => json(at, services::collect(root)),
        SystemPart::Sensors => json(at, sensors::collect(root)),
        SystemPart::Network => json(at, network::collect(root)?),
        SystemPart::Containers => json(at, containers::collect(root)),
        SystemPart::All => Err(CollectError::Malformed(part.word().to_owned())),
    }
}
