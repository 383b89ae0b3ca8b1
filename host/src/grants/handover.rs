//! What the front gives a worker process of a mount's grants: plain data, and the descriptors of granted directories.
//! No secret is in it but those of environment variables, which the guest itself gets.

use std::os::fd::OwnedFd;
use std::sync::Arc;

use serde::{Deserialize, Serialize};

use super::ambient::Ambient;
use super::call_record::CallRecord;
use super::fs::{DirectoryLoan, FsMountState, LentDirectories};
use super::grant::Grant as _;
use super::http::HttpMountState;
use super::list::{ConfigureError, GrantConfig, MountGrants};
use super::network_handover::NetworkHandover;
use super::sockets::{SocketsMountState, cure_of_refusal};
use super::system::{System, SystemMountState, cure_of_file};
use super::tcp;
use crate::model::MountName;

/// The grants of a mount as plain data.
#[derive(Clone, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
pub struct GrantsHandover {
    /// The granted directories, in the order of their descriptors.
    pub(super) directories: Vec<DirectoryLoan>,
    /// What the front does for calls.
    pub(super) network: NetworkHandover,
}

/// The grants of a mount for a worker, and the directories that go with them.
#[derive(Default)]
pub struct LentGrants {
    /// The plain data.
    pub handover: GrantsHandover,
    directories: LentDirectories,
}

impl LentGrants {
    /// Copies of the descriptors of the directories.
    ///
    /// # Errors
    /// If this process has no descriptor left.
    pub fn files(&self) -> std::io::Result<Vec<OwnedFd>> {
        self.directories.files()
    }
}

impl MountGrants {
    /// The grants for a worker process, with the directories that are there now.
    pub fn lend(&self) -> LentGrants {
        let (directories, handed) = self.fs.lend();
        LentGrants { handover: GrantsHandover { directories: handed, network: self.network_handover() }, directories }
    }

    /// True if `lent` still has the directories of the mount. False if one of them came, went, or was replaced. Never
    /// blocks: answers as of the last look for directories.
    pub fn are_lent(&self, lent: &LentGrants) -> bool {
        self.fs.are_lent(&lent.directories)
    }

    /// From then on, the record of a call masks the secrets of this mount.
    pub fn mask_in(&self, record: &CallRecord) {
        if let Some(redactor) = &self.redactor {
            record.mask_with(redactor);
        }
    }

    /// The cure of a decision about a grant of this `kind` that a worker process of `mount` made. `None` if belljar has no
    /// such cure: a person may paste a cure into a shell, so a worker does not choose its words.
    pub fn cure_of_worker(&self, mount: &MountName, (kind, target): (&str, &str), said: &str) -> Option<String> {
        let of_system = || {
            let file = target.rsplit_once('/').filter(|_| kind == System::NAME)?.1;
            cure_of_file(mount.as_str(), file)
        };
        match kind {
            tcp::NAME => cure_of_refusal(mount.as_str(), target, said),
            _ => self.fs.cure_of_worker(mount, target, said).or_else(of_system),
        }
    }

    /// Adds the directories that no call can have now to the record of a call.
    pub fn record_absent(&self, record: &CallRecord) {
        self.fs.record_absent(record);
    }

    /// Looks for directories that went or were replaced. May block: a drive may not answer.
    pub fn find_directories(&self) {
        self.fs.find();
    }

    /// The grants of a mount in a worker process. `files` are the descriptors of the directories, in their order.
    ///
    /// # Errors
    /// If the descriptors are not the granted directories.
    pub fn of_worker(handover: &GrantsHandover, files: Vec<OwnedFd>) -> Result<Self, ConfigureError> {
        let mut grants = GrantConfig::default().configure(&Ambient::default())?;
        let fs = FsMountState::of_worker(&handover.directories, files.into_iter().map(Into::into).collect());
        grants.fs = fs.map_err(|source| ConfigureError { kind: "fs", source: source.into() })?;
        let network = &handover.network;
        grants.http = Arc::new(HttpMountState::of_worker(network));
        grants.sockets = Arc::new(SocketsMountState::of_worker(network));
        grants.system = SystemMountState::of_worker(network);
        Ok(grants)
    }

    /// True if a call can hold neither files nor connections, here or in a worker process.
    pub fn is_empty(&self) -> bool {
        self.kinds().is_empty() && self.sockets.is_empty()
    }
}

impl CallRecord {
    /// True if the call runs in a worker process. The front then masks and cleans its texts.
    pub fn is_of_worker(&self) -> bool {
        self.front().is_some()
    }

    /// Sends what the guest printed to the front. `dropped`: how many more bytes there were.
    pub fn send_printed(&self, bytes: Vec<u8>, dropped: u64) {
        if let Some(front) = self.front() {
            front.record(super::front::RecordEntry::Printed(bytes, dropped));
        }
    }
}
