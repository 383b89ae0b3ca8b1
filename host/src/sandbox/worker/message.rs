//! The messages between the front and a worker: plain data.

use std::time::Duration;

use serde::{Deserialize, Serialize};

use crate::grants::{FrontRequest, GrantsHandover, RecordEntry};
use crate::model::{Limits, Usage};
use crate::sandbox::spec::{CallSpec, Outcome};

/// The first message to a worker. Its descriptors are the compiled code and the granted directories, in their order.
#[derive(Debug, Serialize, Deserialize)]
pub(in crate::sandbox) struct WorkerStart {
    /// The mount.
    pub(in crate::sandbox) name: String,
    /// The limits of the mount.
    pub(in crate::sandbox) limits: Limits,
    /// The most memory of all calls together, in bytes.
    pub(in crate::sandbox) total_memory: u64,
    /// What the grants of the mount hand over.
    pub(in crate::sandbox) grants: GrantsHandover,
    /// False if the configuration has `wall = "off"`.
    pub(in crate::sandbox) has_wall: bool,
}

/// A call, as a worker gets it.
#[derive(Debug, Serialize, Deserialize)]
pub(in crate::sandbox) struct WorkerCall {
    /// The number of the call. No other call of this worker has it.
    pub(in crate::sandbox) number: u64,
    /// The call.
    pub(in crate::sandbox) spec: CallSpec,
    /// What the front adds.
    pub(in crate::sandbox) extras: CallExtras,
    /// The time until its deadline.
    pub(in crate::sandbox) time_left: Duration,
}

/// What the front adds to a call, because the worker does not hold it.
#[derive(Clone, Default, Serialize, Deserialize)]
pub(in crate::sandbox) struct CallExtras {
    /// The environment variables, which may contain secrets.
    pub(in crate::sandbox) variables: Vec<(String, String)>,
    /// The longest spelling of a secret of the mount, in bytes; 0 if it has none.
    pub(in crate::sandbox) longest_secret: usize,
}

impl std::fmt::Debug for CallExtras {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        f.debug_struct("CallExtras").field("longest_secret", &self.longest_secret).finish_non_exhaustive()
    }
}

/// A message from the front to a worker, after [`WorkerStart`].
#[derive(Debug, Serialize, Deserialize)]
pub(in crate::sandbox) enum ToWorker {
    /// Run a call.
    Call(Box<WorkerCall>),
    /// Stop a call. Holds its number.
    Cancel(u64),
    /// The stream that a call asked for. Holds the number of the request; the descriptor is the stream. Without a
    /// descriptor, the front refuses it.
    Stream(u64),
}

/// A message from a worker to the front.
#[derive(Debug, Serialize, Deserialize)]
pub(in crate::sandbox) enum ToFront {
    /// The worker takes calls. Holds the state of its wall as one word.
    Ready(String),
    /// The worker cannot run the mount. Holds the reason.
    Refused(String),
    /// An entry for the record of a call.
    Entry(u64, RecordEntry),
    /// A call asks for a stream: its number, the number of the request, and what the stream is for.
    Open(u64, u64, FrontRequest),
    /// A call has ended.
    Outcome(u64, Box<Outcome>),
    /// A call was stopped. Its resource usage.
    Gone(u64, Usage),
}
