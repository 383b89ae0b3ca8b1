//! Granted directories in a worker process: the front opens them, and lends their descriptors.

use std::fs::File;
use std::os::fd::OwnedFd;
use std::path::PathBuf;
use std::sync::Arc;

use rustix::io::Errno;
use serde::{Deserialize, Serialize};

use super::error::DirectoryGrantError;
use super::granted_directory::GrantedDirectory;
use super::kind::FsMountState;
use super::root::OpenRoot;
use crate::grants::call_record::CallRecord;

/// One granted directory as plain data. Its descriptor goes with it.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub struct DirectoryLoan {
    guest: String,
    host: PathBuf,
    ask: bool,
}

/// The directories that a worker process has.
#[derive(Default)]
pub struct LentDirectories(Vec<Option<Arc<OpenRoot>>>);

impl LentDirectories {
    /// Copies of the descriptors of the directories that are there.
    ///
    /// # Errors
    /// If this process has no descriptor left.
    pub(in crate::grants) fn files(&self) -> std::io::Result<Vec<OwnedFd>> {
        self.0.iter().flatten().map(|root| root.dir().try_clone().map(OwnedFd::from)).collect()
    }
}

impl FsMountState {
    /// The directories that are there now, for a worker process.
    pub(in crate::grants) fn lend(&self) -> (LentDirectories, Vec<DirectoryLoan>) {
        let roots: Vec<_> = self.directories().iter().map(|directory| directory.root(false).ok()).collect();
        let there = self.directories().iter().zip(&roots);
        let handed = there.filter_map(|(directory, root)| {
            let host = root.as_ref()?.host().to_owned();
            Some(DirectoryLoan { guest: directory.guest().to_string(), host, ask: directory.needs_consent() })
        });
        let handed = handed.collect();
        (LentDirectories(roots), handed)
    }

    /// Looks for directories that went or were replaced. May block.
    pub(in crate::grants) fn find(&self) {
        for directory in self.directories() {
            // The result is kept, and asked for later.
            let _ = directory.root(true);
        }
    }

    /// True if the directories are those that were lent, as of the last check of their paths.
    pub(in crate::grants) fn are_lent(&self, lent: &LentDirectories) -> bool {
        let is_same =
            |(directory, lent): (&GrantedDirectory, &Option<Arc<OpenRoot>>)| match (directory.root(false), lent) {
                (Ok(now), Some(lent)) => now.identity() == lent.identity(),
                (Err(_), None) => true,
                _ => false,
            };
        self.directories().iter().zip(&lent.0).all(is_same)
    }

    /// Adds the directories that are not there to the record of a call.
    pub(in crate::grants) fn record_absent(&self, record: &CallRecord) {
        for directory in self.directories() {
            if let Err(absent) = directory.root(false) {
                directory.record_absent(absent, record);
            }
        }
    }

    /// The directories of a worker process.
    ///
    /// # Errors
    /// If a descriptor is not a directory.
    pub(in crate::grants) fn of_worker(
        handed: &[DirectoryLoan],
        files: Vec<File>,
    ) -> Result<Self, DirectoryGrantError> {
        let refused = |one: &DirectoryLoan, errno: Errno| DirectoryGrantError::Unopened {
            path: one.guest.clone(),
            reason: std::io::Error::from(errno).into(),
        };
        if handed.len() != files.len() {
            let path = format!("{} directories", handed.len());
            return Err(DirectoryGrantError::Unopened { path, reason: std::io::Error::from(Errno::BADF).into() });
        }
        let open = |(one, file): (&DirectoryLoan, File)| {
            GrantedDirectory::lent(&one.guest, &one.host, file, one.ask).map_err(|errno| refused(one, errno))
        };
        Ok(Self::new(handed.iter().zip(files).map(open).collect::<Result<_, _>>()?))
    }
}
