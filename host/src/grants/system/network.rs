//! The part `network`: the interfaces and their counters. No address and no connection.

use std::io::Cursor;

use procfs_core::FromBufRead as _;
use procfs_core::net::InterfaceDeviceStatus;
use serde::Serialize;

use super::error::CollectError;
use super::root::{SystemRoot, cleaned};

/// The most interfaces that are listed.
const MAX_INTERFACES: usize = 1024;

/// The facts of the part.
#[derive(Serialize)]
pub(super) struct NetworkFacts {
    /// Interfaces that are not listed, because they are too many.
    left_out: usize,
    interfaces: Vec<Interface>,
}

/// One interface, and what it has carried since the start.
#[derive(Serialize)]
struct Interface {
    name: String,
    received_bytes: u64,
    received_packets: u64,
    received_errors: u64,
    received_dropped: u64,
    sent_bytes: u64,
    sent_packets: u64,
    sent_errors: u64,
    sent_dropped: u64,
}

pub(super) fn collect(root: &SystemRoot) -> Result<NetworkFacts, CollectError> {
    let file = "proc/self/net/dev";
    let found = InterfaceDeviceStatus::from_buf_read(Cursor::new(root.read(file)?));
    let found = found.map_err(|_| CollectError::Malformed(file.to_owned()))?.0;
    let mut interfaces: Vec<Interface> = found
        .into_values()
        .map(|one| Interface {
            name: cleaned(one.name.as_bytes(), 40),
            received_bytes: one.recv_bytes,
            received_packets: one.recv_packets,
            received_errors: one.recv_errs,
            received_dropped: one.recv_drop,
            sent_bytes: one.sent_bytes,
            sent_packets: one.sent_packets,
            sent_errors: one.sent_errs,
            sent_dropped: one.sent_drop,
        })
        .collect();
    interfaces.sort_by(|one, other| one.name.cmp(&other.name));
    let left_out = interfaces.len().saturating_sub(MAX_INTERFACES);
    interfaces.truncate(MAX_INTERFACES);
    Ok(NetworkFacts { left_out, interfaces })
}
