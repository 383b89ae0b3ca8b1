//! The front, as a call in a worker process reaches it. A worker has no network, no secrets of requests and no file but
//! the granted directories. What a call needs beyond that, it asks of the front, which decides as for a call in its own
//! process.

use std::io;
use std::pin::Pin;

use serde::{Deserialize, Serialize};
use tokio::net::UnixStream;

use crate::model::{Consent, DecisionKind};

/// A stream between a call and the front, or why there is none.
pub type Opening = Pin<Box<dyn Future<Output = io::Result<UnixStream>> + Send>>;

/// What a stream between a call and the front is for. Each has a protocol of its own.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub enum FrontRequest {
    /// A TCP connection to a host that the guest named, and its port.
    Connect(String, u16),
    /// One HTTP request and its response.
    Exchange,
    /// A file that the front makes in memory: the kind of grant, and the name of the file.
    File(String, String),
}

/// An entry of a call for the record in the front. The front believes none of it: texts are masked, cleaned, shortened
/// and counted there.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
pub enum RecordEntry {
    /// A decision: the kind of grant, the target, the result, and the cure.
    Decision(String, String, DecisionKind, Option<String>),
    /// A consent that a person could give.
    Consent(Consent),
    /// A report of the guest's progress.
    Progress(f64, Option<f64>, Option<String>),
    /// What the guest printed, and how many more bytes there were.
    Printed(Vec<u8>, u64),
}

/// The front, for one call.
pub trait Front: Send + Sync {
    /// Adds an entry to the record in the front. Never waits.
    fn record(&self, entry: RecordEntry);

    /// Opens a stream to the front. Dropping the stream ends what the front does for it.
    fn open(&self, request: FrontRequest) -> Opening;
}
