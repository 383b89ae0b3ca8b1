//! The bounds of one call and of one mount, with the defaults and why each is what it is.

use std::time::Duration;

/// Bounds on each call of a mount, and on how many there are at once.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Limits {
    /// Wall time of one call, waiting included. 5 s: a person waits, a client's own timeout is longer.
    pub time: Duration,
    /// Fuel of one call: about one unit an instruction, one a byte of bulk copies. 5,000,000,000 is a few seconds of
    /// one core at most, and 10,000 times what an interpreter needs for a small read.
    pub fuel: u64,
    /// Bytes over all linear memories and tables of one call. 64 MiB fits a Python or JavaScript provider.
    pub memory: u64,
    /// Bytes of one answer. 8 MiB is more than any context window takes.
    pub result: u64,
    /// Open handles in one call: files, directories, streams, timers, requests.
    pub handles: usize,
    /// Bytes of one request for random numbers.
    pub random: u64,
    /// Bytes kept of what one call prints; the rest is counted and dropped.
    pub output: usize,
    /// Processor time of all calls of the mount together, over ten seconds, in percent of one processor.
    pub cpu: u64,
    /// Calls of the mount that run at once.
    pub concurrency: usize,
    /// How long a call waits for its turn before it is refused as busy.
    pub queue: Duration,
    /// Entries of the mount's listing that are served; a longer listing is cut, and says so.
    pub resources: u64,
    /// Bytes of the component file.
    pub component: u64,
    /// What its calls may ask of the network.
    pub traffic: Traffic,
}

/// Bounds on what calls ask of the network.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Traffic {
    /// Requests of one call.
    pub requests: u64,
    /// Requests of all calls of the mount that are on their way at once; more of them wait.
    pub connections: usize,
    /// Bytes that one call sends in bodies. A provider of resources reads: a question fits.
    pub upload: u64,
    /// Bytes of bodies that one call receives. Twice what it can answer.
    pub download: u64,
}

impl Default for Limits {
    fn default() -> Self {
        Self {
            time: Duration::from_secs(5),
            fuel: 5_000_000_000,
            memory: 64 << 20,
            result: 8 << 20,
            handles: 1024,
            random: 1 << 20,
            output: 64 << 10,
            cpu: 100,
            concurrency: 8,
            queue: Duration::from_secs(2),
            resources: 1_000_000,
            component: 64 << 20,
            traffic: Traffic { requests: 32, connections: 8, upload: 1 << 20, download: 16 << 20 },
        }
    }
}

/// The longest time that can be configured.
pub const MAX_TIME: Duration = Duration::from_secs(3600);

/// The most fuel that can be configured.
pub const MAX_FUEL: u64 = i64::MAX as u64;

/// The most memory that can be configured: addresses have 32 bits.
pub const MAX_MEMORY: u64 = 4 << 30;

/// The largest answer that can be configured: it is held several times over while it is encoded.
pub const MAX_RESULT: u64 = 256 << 20;

/// The largest share of the processors that can be configured, in percent of one.
pub const MAX_CPU: u64 = 100_000;

/// The most handles that can be configured.
pub const MAX_HANDLES: u64 = 100_000;

/// The largest request for random bytes that can be configured.
pub const MAX_RANDOM: u64 = 64 << 20;

/// The most requests of one call that can be configured.
pub const MAX_REQUESTS: u64 = 10_000;

/// The most requests at once that can be configured.
pub const MAX_CONNECTIONS: u64 = 256;

/// The most bytes that can be configured for what a call sends and for what it receives.
pub const MAX_TRAFFIC: u64 = 1 << 30;

/// Bytes of native stack for WebAssembly frames. wasmtime's own default: deep enough for real programs, and the
/// 2 MiB stack that a call runs on leaves three quarters to the host.
pub const WASM_STACK: usize = 512 << 10;

/// Core instances of one component. Rust makes 3, Python fewer than 32.
pub const CORE_INSTANCES: u32 = 64;

/// Linear memories of one component.
pub const MEMORIES: u32 = 8;

/// Tables of one component.
pub const TABLES: u32 = 16;
