//! The constants of the simulation: what a request costs the processor of a store, and the time of the network.

use std::time::Duration;

use crate::redis::Work;
use crate::usage::Kind;

/// Processor time of the store's one thread, in nanoseconds.
#[derive(Clone, Copy, Debug)]
pub(crate) struct Costs {
    /// A request with its answer: two system calls, and the smallest command.
    pub(crate) request: f64,
    /// A script without its commands, by [`Kind`].
    pub(crate) script: [f64; 6],
    /// A command in a script, with the work of the script around it, by [`Kind`].
    pub(crate) call: [f64; 6],
    /// A value that such a command gives, beyond the first one, and a value in the answer.
    pub(crate) element: f64,
    /// A message to one connection.
    pub(crate) delivery: f64,
    /// A byte of a request or of its answer.
    pub(crate) byte: f64,
}

/// Fitted to what `cargo xtask simulate --measure` measured at redis-server 7.0.15, one request at a time. It prints the
/// measured costs beside those that follow from this table.
pub(crate) const COSTS: Costs = Costs {
    request: 5_300.0,
    //       quotas    rounds   beats    news     answers  other
    script: [14_000.0, 1_100.0, 1_100.0, 1_100.0, 1_100.0, 1_100.0],
    call: [2_500.0, 2_600.0, 1_750.0, 1_000.0, 4_100.0, 2_500.0],
    element: 150.0,
    delivery: 3_200.0,
    byte: 3.0,
};

/// The time that a message needs from a replica to the store, or back. Not measured: it belongs to the network.
pub(crate) const NETWORK: Duration = Duration::from_micros(250);

impl Costs {
    /// The cost of a request that made the store do `work`, moved `size` bytes, and was delivered to `heard` connections.
    pub(crate) fn of(&self, kind: Kind, work: Work, size: usize, heard: usize) -> Duration {
        let by_kind = |costs: &[f64; 6]| {
            let of_kind = Kind::ALL.iter().zip(costs).find(|(one, _)| **one == kind);
            of_kind.map_or(0.0, |(_, cost)| *cost)
        };
        let further = work.elements.saturating_sub(work.calls) + work.replied;
        let nanoseconds = self.request
            + by_kind(&self.script) * work.scripts as f64
            + by_kind(&self.call) * work.calls as f64
            + self.element * further as f64
            + self.delivery * heard as f64
            + self.byte * size as f64;
        Duration::from_nanos(nanoseconds as u64)
    }
}
