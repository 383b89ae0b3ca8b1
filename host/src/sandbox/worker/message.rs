//! The messages between the front and a worker: plain data.

use std::time::Duration;

use serde::{Deserialize, Serialize};

use super::answer_memory::BodyRange;
use crate::grants::{FrontRequest, GrantsHandover, RecordEntry};
use crate::model::{Limits, Usage};
use crate::sandbox::mount_id::MountId;
use crate::sandbox::spec::{CallSpec, Outcome};

/// The first message to a worker. Its first descriptor is the memory for large bodies. The others are what the wall lets
/// through: compiled code, or directories of it, and then the granted directories.
#[derive(Debug, Serialize, Deserialize)]
pub(in crate::sandbox) struct WorkerStart {
    /// The most calls at once.
    pub(in crate::sandbox) calls: u32,
    /// The most memory of all calls together, in bytes.
    pub(in crate::sandbox) total_memory: u64,
    /// The number of threads on which calls start.
    pub(in crate::sandbox) threads: usize,
    /// The number of descriptors that belong to code.
    pub(in crate::sandbox) code: usize,
}

/// A mount, as a worker gets it. Its descriptors are the compiled code, and then the granted directories in their order.
#[derive(Debug, Serialize, Deserialize)]
pub(in crate::sandbox) struct MountHandover {
    /// The mount in the calls.
    pub(in crate::sandbox) id: MountId,
    /// Its name.
    pub(in crate::sandbox) name: String,
    /// Its limits.
    pub(in crate::sandbox) limits: Limits,
    /// What its grants hand over.
    pub(in crate::sandbox) grants: GrantsHandover,
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
    /// The starts of ranges of the memory for large bodies that the front has copied.
    pub(in crate::sandbox) freed: Vec<u64>,
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
    /// Take calls of a mount.
    Load(Box<MountHandover>),
    /// Forget a mount after its calls.
    Unload(MountId),
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
    /// The worker cannot run any call. Holds the reason.
    Refused(String),
    /// An entry for the record of a call.
    Entry(u64, RecordEntry),
    /// A call asks for a stream: its number, the number of the request, and what the stream is for.
    Open(u64, u64, FrontRequest),
    /// A call has ended. Its large bodies lie in the memory, and are empty here.
    Outcome(u64, Box<Outcome>, Option<BodyRange>),
    /// A call was stopped. Its resource usage.
    Gone(u64, Usage),
}
