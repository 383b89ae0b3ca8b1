//! The resources that a call used.

use std::time::Duration;

use serde::{Deserialize, Serialize};

/// The resources that one call used. Part of every outcome, successful or not.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
pub struct Usage {
    /// Time until the call had its turn. Not part of `time`.
    pub queue: Duration,
    /// Fuel: about one unit an instruction.
    pub fuel: u64,
    /// Wall time in the sandbox, from instantiation until the store is dropped.
    pub time: Duration,
    /// Processor time, including the host's work for the call.
    pub cpu: Duration,
    /// Peak bytes over all linear memories and tables together.
    pub memory: u64,
    /// Bytes of the answer.
    pub bytes: u64,
}

impl Usage {
    /// Adds the usage of another call. All fields are sums, except `memory`: the larger value counts.
    pub fn add(&mut self, other: &Self) {
        self.queue = self.queue.saturating_add(other.queue);
        self.fuel = self.fuel.saturating_add(other.fuel);
        self.time = self.time.saturating_add(other.time);
        self.cpu = self.cpu.saturating_add(other.cpu);
        self.memory = self.memory.max(other.memory);
        self.bytes = self.bytes.saturating_add(other.bytes);
    }
}
