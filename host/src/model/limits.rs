//! The limits of calls and of mounts, with their defaults and the reason for each.

use std::time::Duration;

use serde::{Deserialize, Serialize};

/// Limits of each call of a mount, and of the mount as a whole.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub struct Limits {
    /// Wall time of one call, including the wait for a turn. 5 s: a person waits that long, and the timeouts of clients
    /// are longer.
    pub time: Duration,
    /// Fuel of one call: about one unit an instruction, and one a byte of bulk copies. 5,000,000,000 is at most a few
    /// seconds of one core. An interpreter needs 1/10,000 of it for a small read.
    pub fuel: u64,
    /// Bytes over all linear memories and tables of one call. 64 MiB fits a Python or JavaScript provider.
    pub memory: u64,
    /// Bytes of one result. 8 MiB is more than any context window holds.
    pub result: u64,
    /// Open handles in one call: files, directories, streams, timers, requests.
    pub handles: usize,
    /// Bytes of one request for random numbers.
    pub random: u64,
    /// Bytes of printed output kept for one call. The rest is counted and dropped.
    pub output: usize,
    /// Processor time of all calls of the mount together, in percent of one processor, over ten seconds.
    pub cpu: u64,
    /// Calls of the mount that run at once.
    pub concurrency: usize,
    /// How long a call waits for a turn before it is refused as busy.
    pub queue: Duration,
    /// Entries of the mount's listing that are served. A longer listing is cut, with a notice.
    pub resources: u64,
    /// Bytes of the component file.
    pub component: u64,
    /// Limits on network use.
    pub traffic: Traffic,
    /// The values that calls of tools have instead.
    pub tools: ToolLimits,
}

/// Limits of calls of tools. A missing value is that of other calls.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub struct ToolLimits {
    /// See [`Limits::time`]. 30 s: a tool may do more than a read, and clients wait a minute for it.
    pub time: Duration,
    /// See [`Limits::fuel`].
    pub fuel: Option<u64>,
    /// See [`Limits::memory`].
    pub memory: Option<u64>,
    /// See [`Limits::result`].
    pub result: Option<u64>,
    /// See [`Traffic::requests`].
    pub requests: Option<u64>,
    /// See [`Traffic::upload`].
    pub upload: Option<u64>,
    /// See [`Traffic::download`].
    pub download: Option<u64>,
}

impl Limits {
    /// The limits of the calls of tools.
    pub fn of_tools(&self) -> Self {
        let ToolLimits { time, fuel, memory, result, requests, upload, download } = self.tools;
        Self {
            time,
            fuel: fuel.unwrap_or(self.fuel),
            memory: memory.unwrap_or(self.memory),
            result: result.unwrap_or(self.result),
            traffic: Traffic {
                requests: requests.unwrap_or(self.traffic.requests),
                upload: upload.unwrap_or(self.traffic.upload),
                download: download.unwrap_or(self.traffic.download),
                connections: self.traffic.connections,
            },
            ..self.clone()
        }
    }
}

/// Limits on network use.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub struct Traffic {
    /// HTTP requests and TCP connections of one call.
    pub requests: u64,
    /// HTTP requests in flight at once, over all calls of the mount. Further requests wait. TCP connections are counted apart.
    pub connections: usize,
    /// Bytes of request bodies of one call. 1 MiB: a resource provider reads, and a query fits.
    pub upload: u64,
    /// Bytes of response bodies of one call. The default is twice that of `result`.
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
            tools: ToolLimits {
                time: Duration::from_secs(30),
                fuel: None,
                memory: None,
                result: None,
                requests: None,
                upload: None,
                download: None,
            },
        }
    }
}

/// The longest time that can be configured.
pub const MAX_TIME: Duration = Duration::from_secs(3600);

/// The most fuel that can be configured.
pub const MAX_FUEL: u64 = i64::MAX as u64;

/// The most memory that can be configured: linear memories have 32-bit addresses.
pub const MAX_MEMORY: u64 = 4 << 30;

/// The largest result that can be configured. Several copies of it exist while it is encoded.
pub const MAX_RESULT: u64 = 256 << 20;

/// The largest share of the processors that can be configured, in percent of one processor.
pub const MAX_CPU: u64 = 100_000;

/// The most handles that can be configured.
pub const MAX_HANDLES: u64 = 100_000;

/// The largest request for random bytes that can be configured.
pub const MAX_RANDOM: u64 = 64 << 20;

/// The most requests of one call that can be configured.
pub const MAX_REQUESTS: u64 = 10_000;

/// The most requests at once that can be configured.
pub const MAX_CONNECTIONS: u64 = 256;

/// The most upload and the most download of one call that can be configured, in bytes.
pub const MAX_TRAFFIC: u64 = 1 << 30;

/// Bytes of native stack for WebAssembly frames. This is wasmtime's default: deep enough for real programs. A call runs
/// on a stack of 2 MiB, so three quarters remain for the host.
pub const WASM_STACK: usize = 512 << 10;

/// Core instances of one component. Rust makes 3, Python fewer than 32.
pub const CORE_INSTANCES: u32 = 64;

/// Linear memories of one component.
pub const MEMORIES: u32 = 8;

/// Tables of one component.
pub const TABLES: u32 = 16;
