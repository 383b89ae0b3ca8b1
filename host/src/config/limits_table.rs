//! `[limits]` and `[mounts.NAME.limits]`.

use std::time::Duration;

use schemars::JsonSchema;
use serde::Deserialize;

use super::settings::MAX_CALLS;
use super::value::{Count, Percent, Size, Time};
use crate::model::Limits;
use crate::model::limits::{
    MAX_CONNECTIONS, MAX_CPU, MAX_FUEL, MAX_HANDLES, MAX_MEMORY, MAX_RANDOM, MAX_REQUESTS, MAX_RESULT, MAX_TIME,
    MAX_TRAFFIC, ToolLimits,
};

/// A time in milliseconds, for bounds.
#[expect(clippy::cast_possible_truncation, reason = "the bounds are hours at most")]
const fn milliseconds(time: Duration) -> u64 {
    time.as_millis() as u64
}

/// The time of a call, or of its wait for a turn.
type CallTime = Time<1, { milliseconds(MAX_TIME) }>;

/// `[limits]` and `[mounts.NAME.limits]`.
#[derive(Default, Deserialize, JsonSchema)]
#[serde(deny_unknown_fields, expecting = "a table")]
#[schemars(default = "LimitsTable::documented")]
pub(super) struct LimitsTable {
    /// Wall time of one call, its wait for a turn included.
    #[schemars(example = "15s")]
    time: Option<CallTime>,
    /// Fuel of one call: about one unit for each instruction and each byte of a bulk copy.
    #[schemars(example = 20_000_000_000_u64)]
    fuel: Option<Count<1, MAX_FUEL>>,
    /// Memory of one call: all its linear memories and tables together. A page of memory has 64KiB.
    #[schemars(example = "128MiB")]
    memory: Option<Size<{ 64 << 10 }, MAX_MEMORY>>,
    /// Size of one answer.
    #[schemars(example = "16MiB")]
    result: Option<Size<{ 1 << 10 }, MAX_RESULT>>,
    /// Open handles of one call: files, directories, streams, timers and requests.
    #[schemars(example = 4096)]
    handles: Option<Count<8, MAX_HANDLES>>,
    /// Size of one request of a provider for random bytes.
    #[schemars(example = "64KiB")]
    random: Option<Size<8, MAX_RANDOM>>,
    /// Text that belljar keeps of what one call prints. The rest is counted and dropped.
    #[schemars(example = "256KiB")]
    output: Option<Size<0, { 16 << 20 }>>,
    /// Processor time of all calls of the mount together, over ten seconds. "100%" is one processor.
    #[schemars(example = "200%")]
    cpu: Option<Percent<1, MAX_CPU>>,
    /// Calls of the mount that run at once. Never more than half of `calls`.
    #[schemars(example = 4)]
    concurrency: Option<Count<1, MAX_CALLS>>,
    /// How long a call waits for its turn before it is refused as busy.
    #[schemars(example = "5s")]
    queue: Option<CallTime>,
    /// Entries of the mount's listing that are served. A longer listing is cut, and its last page says so.
    #[schemars(example = 10_000)]
    resources: Option<Count<1, 10_000_000>>,
    /// Size of the component's file.
    #[schemars(example = "100MiB")]
    component: Option<Size<{ 1 << 10 }, { 512 << 20 }>>,
    /// HTTP requests and TCP connections of one call.
    #[schemars(example = 100)]
    requests: Option<Count<1, MAX_REQUESTS>>,
    /// HTTP requests of all calls of the mount that run at once, and as many TCP connections. More of them wait.
    #[schemars(example = 16)]
    connections: Option<Count<1, MAX_CONNECTIONS>>,
    /// Bytes that one call sends in the bodies of its requests and by TCP.
    #[schemars(example = "4MiB")]
    upload: Option<Size<0, MAX_TRAFFIC>>,
    /// Bytes that one call receives in the bodies of responses and by TCP.
    #[schemars(example = "64MiB")]
    download: Option<Size<0, MAX_TRAFFIC>>,
    /// Other limits for calls of tools. A missing value is that of other calls.
    tools: Option<ToolLimitsTable>,
}

/// `[limits.tools]` and `[mounts.NAME.limits.tools]`.
#[derive(Default, Deserialize, JsonSchema)]
#[serde(deny_unknown_fields, expecting = "a table")]
#[schemars(default = "ToolLimitsTable::documented")]
pub(super) struct ToolLimitsTable {
    /// Wall time of one call, its wait for a turn included.
    #[schemars(example = "2m")]
    time: Option<CallTime>,
    /// Fuel of one call.
    #[schemars(example = 20_000_000_000_u64)]
    fuel: Option<Count<1, MAX_FUEL>>,
    /// Memory of one call.
    #[schemars(example = "128MiB")]
    memory: Option<Size<{ 64 << 10 }, MAX_MEMORY>>,
    /// Size of one result.
    #[schemars(example = "1MiB")]
    result: Option<Size<{ 1 << 10 }, MAX_RESULT>>,
    /// HTTP requests and TCP connections of one call.
    #[schemars(example = 100)]
    requests: Option<Count<1, MAX_REQUESTS>>,
    /// Bytes that one call sends in the bodies of its requests and by TCP.
    #[schemars(example = "4MiB")]
    upload: Option<Size<0, MAX_TRAFFIC>>,
    /// Bytes that one call receives in the bodies of responses and by TCP.
    #[schemars(example = "64MiB")]
    download: Option<Size<0, MAX_TRAFFIC>>,
}

impl ToolLimitsTable {
    /// The defaults that the schema shows.
    fn documented() -> Self {
        Self { time: Some(Time(Limits::default().tools.time)), ..Self::default() }
    }

    /// The limits with the values of this table. A missing value is that of `defaults`.
    fn over(self, defaults: ToolLimits) -> ToolLimits {
        ToolLimits {
            time: self.time.map_or(defaults.time, |time| time.0),
            fuel: self.fuel.map(|count| count.0).or(defaults.fuel),
            memory: self.memory.map(|size| size.0).or(defaults.memory),
            result: self.result.map(|size| size.0).or(defaults.result),
            requests: self.requests.map(|count| count.0).or(defaults.requests),
            upload: self.upload.map(|size| size.0).or(defaults.upload),
            download: self.download.map(|size| size.0).or(defaults.download),
        }
    }
}

impl LimitsTable {
    /// The defaults that the schema shows.
    fn documented() -> Self {
        let limits = Limits::default();
        Self {
            time: Some(Time(limits.time)),
            fuel: Some(Count(limits.fuel)),
            memory: Some(Size(limits.memory)),
            result: Some(Size(limits.result)),
            handles: Some(Count(limits.handles as u64)),
            random: Some(Size(limits.random)),
            output: Some(Size(limits.output as u64)),
            cpu: Some(Percent(limits.cpu)),
            concurrency: Some(Count(limits.concurrency as u64)),
            queue: Some(Time(limits.queue)),
            resources: Some(Count(limits.resources)),
            component: Some(Size(limits.component)),
            requests: Some(Count(limits.traffic.requests)),
            connections: Some(Count(limits.traffic.connections as u64)),
            upload: Some(Size(limits.traffic.upload)),
            download: Some(Size(limits.traffic.download)),
            tools: None,
        }
    }

    /// The limits with the values of this table. A missing value is that of `defaults`.
    pub(super) fn over(self, defaults: &Limits) -> Limits {
        let mut limits = defaults.clone();
        let set = |value: Option<u64>, into: &mut u64| *into = value.unwrap_or(*into);
        let set_count = |value: Option<u64>, into: &mut usize| {
            *into = value.map_or(*into, |value| usize::try_from(value).unwrap_or(usize::MAX));
        };
        limits.time = self.time.map_or(limits.time, |time| time.0);
        limits.queue = self.queue.map_or(limits.queue, |time| time.0);
        set(self.fuel.map(|count| count.0), &mut limits.fuel);
        set(self.memory.map(|size| size.0), &mut limits.memory);
        set(self.result.map(|size| size.0), &mut limits.result);
        set_count(self.handles.map(|count| count.0), &mut limits.handles);
        set(self.random.map(|size| size.0), &mut limits.random);
        set_count(self.output.map(|size| size.0), &mut limits.output);
        set(self.cpu.map(|part| part.0), &mut limits.cpu);
        set_count(self.concurrency.map(|count| count.0), &mut limits.concurrency);
        set(self.resources.map(|count| count.0), &mut limits.resources);
        set(self.component.map(|size| size.0), &mut limits.component);
        set(self.requests.map(|count| count.0), &mut limits.traffic.requests);
        set_count(self.connections.map(|count| count.0), &mut limits.traffic.connections);
        set(self.upload.map(|size| size.0), &mut limits.traffic.upload);
        set(self.download.map(|size| size.0), &mut limits.traffic.download);
        limits.tools = self.tools.map_or(limits.tools, |own| own.over(limits.tools));
        limits
    }
}
