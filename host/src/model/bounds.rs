//! Every bound that a [`Guard`] can lift. Fixed bounds are constants in this file. Configured bounds pass through the
//! functions at its end. Code that obeys a bound reads it from here and does not ask for the guard.
//!
//! A bound is a constant, except in a build with the feature `unguarded`. There a bound is lifted while its guard is
//! off: a maximum becomes practically unlimited, and a minimum becomes zero.

use std::time::Duration;

use super::guard::Guard;
use super::limits::{Limits, MAX_RANDOM, ToolLimits, Traffic};

/// A bound that holds while its guard is on.
#[derive(Clone, Copy, Debug)]
pub struct Bound<T> {
    value: T,
    #[cfg(feature = "unguarded")]
    lifted: T,
    #[cfg(feature = "unguarded")]
    guard: Guard,
}

/// Types of bounds, with the values that stand for "no limit".
trait Extent: Copy {
    /// The smallest value: a minimum of this size never applies.
    const LEAST: Self;
    /// The largest value: a maximum of this size never applies.
    const MOST: Self;
}

impl Extent for usize {
    const LEAST: Self = Self::MIN;
    const MOST: Self = Self::MAX;
}

impl Extent for u32 {
    const LEAST: Self = Self::MIN;
    const MOST: Self = Self::MAX;
}

impl Extent for u64 {
    const LEAST: Self = Self::MIN;
    const MOST: Self = Self::MAX;
}

impl Extent for Duration {
    const LEAST: Self = Self::ZERO;
    // A year. Clocks and timers accept it, even when something is added.
    const MOST: Self = Self::from_secs(365 * 24 * 3600);
}

impl Guard {
    /// A maximum.
    const fn maximum<T: Extent>(self, value: T) -> Bound<T> {
        self.bound(value, T::MOST)
    }

    /// A minimum.
    const fn minimum<T: Extent>(self, value: T) -> Bound<T> {
        self.bound(value, T::LEAST)
    }

    /// `value`, or `lifted` while the guard is off.
    #[cfg(not(feature = "unguarded"))]
    const fn bound<T: Extent>(self, value: T, lifted: T) -> Bound<T> {
        let _ = (self, lifted);
        Bound { value }
    }

    /// `value`, or `lifted` while the guard is off.
    #[cfg(feature = "unguarded")]
    const fn bound<T: Extent>(self, value: T, lifted: T) -> Bound<T> {
        Bound { value, lifted, guard: self }
    }
}

impl<T: Copy> Bound<T> {
    /// The value of the bound.
    #[cfg(not(feature = "unguarded"))]
    #[inline]
    pub const fn get(self) -> T {
        self.value
    }

    /// The value of the bound, or the lifted value while the guard is off.
    #[cfg(feature = "unguarded")]
    pub fn get(self) -> T {
        if self.guard.is_on() { self.value } else { self.lifted }
    }
}

// Calls.

/// Calls of one mount that may wait for a turn. One more is refused, or replaces a waiting call of a caller that has
/// more calls in the queue.
pub const MAX_WAITING_CALLS: Bound<usize> = Guard::Queue.maximum(256);

/// One turn of this many is reserved for mounts that hold none, and for quick calls.
pub const TURN_RESERVE: Bound<usize> = Guard::Turns.maximum(4);

/// How long a call keeps its turn before it can be recalled, if its owner holds other turns too.
pub const RECALL_AFTER: Bound<Duration> = Guard::Turns.maximum(Duration::from_millis(250));

/// How long a call keeps its turn before it can be recalled, if it is the only turn of its owner.
pub const RECALL_AFTER_ALONE: Bound<Duration> = Guard::Turns.maximum(Duration::from_secs(1));

/// Consecutive crashes of an operation before the circuit breaker opens.
pub const CRASH_THRESHOLD: Bound<u32> = Guard::Breaker.maximum(3);

/// Consecutive failures of an upstream before the circuit breaker opens.
pub const UPSTREAM_FAILURE_THRESHOLD: Bound<u32> = Guard::Upstream.maximum(3);

/// Log lines that all calls of one mount may write in ten seconds. A chatty provider must not hide the lines of others.
pub const LOG_LINES: Bound<usize> = Guard::Output.maximum(256);

/// Bytes of the method and of the scheme of an HTTP request that a guest builds.
pub const REQUEST_METHOD: Bound<usize> = Guard::HostMemory.maximum(64);

/// Bytes of the authority of an HTTP request that a guest builds. A host name has at most 253.
pub const REQUEST_AUTHORITY: Bound<usize> = Guard::HostMemory.maximum(1 << 10);

/// Bytes of the path and query of an HTTP request that a guest builds.
pub const REQUEST_PATH: Bound<usize> = Guard::HostMemory.maximum(32 << 10);

// Listings and results of providers.

/// Templates of one mount.
pub const MAX_TEMPLATES: Bound<usize> = Guard::Entries.maximum(1000);

/// The least number of parts in the result of a read. A provider must report a missing resource as `not-found`, not as
/// an empty result.
pub const MIN_CONTENTS: Bound<usize> = Guard::ContentsCount.minimum(1);

/// The greatest number of parts in the result of a read.
pub const MAX_CONTENTS: Bound<usize> = Guard::ContentsCount.maximum(10_000);

/// Tools of one mount; prompts likewise.
pub const MAX_DEFINITIONS: Bound<usize> = Guard::Entries.maximum(128);

/// Bytes of the definitions of all tools of one mount, or of all prompts.
pub const MAX_DEFINITION_BYTES: Bound<usize> = Guard::Entries.maximum(512 << 10);

/// Bytes of one JSON Schema of a tool.
pub const MAX_SCHEMA: Bound<usize> = Guard::Schema.maximum(32 << 10);

/// Levels of a JSON Schema.
pub const MAX_SCHEMA_DEPTH: Bound<usize> = Guard::Schema.maximum(48);

/// Parts of a JSON Schema, with every reference replaced by its target.
pub const MAX_SCHEMA_PARTS: Bound<usize> = Guard::Schema.maximum(10_000);

/// Patterns of a JSON Schema. Each may take a megabyte while it is used.
pub const MAX_SCHEMA_PATTERNS: Bound<usize> = Guard::Schema.maximum(32);

/// Values of a document times parts of the schema that it is checked against: about a tenth of a second.
pub const MAX_SCHEMA_WORK: Bound<usize> = Guard::Schema.maximum(10_000_000);

/// Bytes of the arguments of a tool or a prompt.
pub const MAX_ARGUMENTS: Bound<usize> = Guard::Message.maximum(1 << 20);

/// Blocks in one result of a tool, or messages of a prompt.
pub const MAX_BLOCKS: Bound<usize> = Guard::ContentsCount.maximum(1000);

/// Questions that a provider may ask at once.
pub const MAX_QUESTIONS_AT_ONCE: Bound<usize> = Guard::Question.maximum(8);

/// Bytes of the state that a provider gives with its questions.
pub const MAX_ASK_STATE: Bound<usize> = Guard::Question.maximum(4 << 10);

/// How long the result of a read may be served from the cache, if the configuration sets nothing.
pub const MAX_FRESHNESS: Bound<Duration> = Guard::Fresh.maximum(Duration::from_secs(3600));

/// The longest revision that the interface allows, in bytes.
pub const MAX_REVISION: Bound<usize> = Guard::Revision.maximum(256);

/// Searches that run at once, over all callers. One search makes hundreds of reads. Further searches wait; the wait
/// counts against their time limit.
pub const MAX_SEARCHES: Bound<usize> = Guard::Searches.maximum(4);
/// The same for one caller.
pub const MAX_SEARCHES_OF_CALLER: Bound<usize> = Guard::Searches.maximum(2);

// Skills.

/// Skills of one mount that are listed.
pub const MAX_SKILLS: Bound<usize> = Guard::Skills.maximum(1000);

/// Files of one skill (SEP-2640).
pub const MAX_SKILL_FILES: Bound<usize> = Guard::Skills.maximum(512);

/// Bytes of all files of one skill (SEP-2640).
pub const MAX_SKILL_BYTES: Bound<u64> = Guard::Skills.maximum(16 << 20);

/// Bytes of the files of all listed skills of one mount. Each of them is read and hashed.
pub const MAX_SKILLS_BYTES: Bound<u64> = Guard::Skills.maximum(256 << 20);

/// Memory for the entries of all skills of one mount, in bytes. A file takes about 200.
pub const MAX_SKILLS_MEMORY: Bound<usize> = Guard::Skills.maximum(16 << 20);

/// Bytes of the frontmatter of one skill. Real ones have a few hundred.
pub const MAX_FRONTMATTER: Bound<usize> = Guard::Frontmatter.maximum(64 << 10);

/// Levels of sequences and mappings in a frontmatter.
pub const MAX_FRONTMATTER_DEPTH: Bound<usize> = Guard::Frontmatter.maximum(16);

/// Keys and values of a frontmatter.
pub const MAX_FRONTMATTER_NODES: Bound<usize> = Guard::Frontmatter.maximum(4096);

// Watchers, polling and the plugin directory.

/// Watchers at once, over all clients. Over HTTP each one holds a connection.
pub const MAX_WATCHERS: Bound<usize> = Guard::Watchers.maximum(384);
/// The same for one principal with a credential.
pub const MAX_WATCHERS_OF_PRINCIPAL: Bound<usize> = Guard::Watchers.maximum(96);

/// URIs of one watcher.
pub const MAX_WATCHED_URIS: Bound<usize> = Guard::Watchers.maximum(1024);

/// URIs watched at once, over all watchers. Each takes about 300 bytes beside its name.
pub const MAX_WATCHED_URIS_TOTAL: Bound<usize> = Guard::Watchers.maximum(16_384);
/// The same for one principal with a credential.
pub const MAX_WATCHED_URIS_OF_PRINCIPAL: Bound<usize> = Guard::Watchers.maximum(4096);

/// The least time between two notifications that the list has changed.
pub const LIST_NOTICE_INTERVAL: Bound<Duration> = Guard::Watchers.minimum(Duration::from_millis(250));

/// How long a poll continues with suspects after the first crash.
pub const SUSPECT_POLL_TIME: Bound<Duration> = Guard::Suspects.minimum(Duration::from_secs(1));

/// The debounce time of changes on disk: the directory is scanned when nothing has changed for this long. A program
/// that copies a file has finished by then.
pub const DEBOUNCE: Bound<Duration> = Guard::Pace.minimum(Duration::from_millis(250));

/// The longest time from a change on disk to the scan, even if changes continue.
pub const MAX_DEBOUNCE: Bound<Duration> = Guard::Pace.minimum(Duration::from_secs(2));

/// The longest rest after a slow scan. On a busy machine a scan takes long although it costs little.
pub const MAX_SCAN_REST: Bound<Duration> = Guard::Pace.minimum(Duration::from_secs(2));

/// How long the facts of a part of the system are kept. A flood of reads does not collect them more often.
pub const SYSTEM_FRESH_FOR: Bound<Duration> = Guard::SystemPace.minimum(Duration::from_secs(1));

// Consent.

/// How long the same consent is not requested again, whatever the answer was.
pub const CONSENT_INTERVAL: Bound<Duration> = Guard::Asking.minimum(Duration::from_secs(60));

/// Consent requests of one mount within [`CONSENT_INTERVAL`]. A provider that wants something new each time does not
/// get a new question each time.
pub const CONSENTS_PER_MOUNT: Bound<usize> = Guard::Asking.maximum(16);

/// Consent requests of all mounts within [`CONSENT_INTERVAL`]. Beyond this number the ordinary denial is sent.
pub const CONSENTS_TOTAL: Bound<usize> = Guard::Asking.maximum(1024);

// Messages and connections of clients.

/// Bytes of one message from a client. The URI of a read has at most 2 KiB and a cursor 36 bytes, so no valid message
/// comes near.
pub const MAX_MESSAGE: Bound<usize> = Guard::Message.maximum(1 << 20);

/// Pending requests. One more replaces another one or is refused as busy. Notifications are always read, so that a
/// client can cancel a pending request.
pub const MAX_PENDING: Bound<usize> = Guard::Pending.maximum(512);

/// Bytes of responses that may wait for one client. Beyond this number no further request of the client starts: it
/// sends requests but does not read.
pub const MAX_QUEUED_RESPONSES: Bound<usize> = Guard::UnreadResponses.maximum(64 << 20);

/// A response of at most this many bytes is always accepted, however many bytes wait.
pub const SMALL_RESPONSE: Bound<usize> = Guard::UnreadResponses.maximum(64 << 10);

/// How long a client may go without taking a byte of its response. Also the base of the time for the whole response; a
/// large response gets more.
pub const WRITE_TIME: Bound<Duration> = Guard::UnreadResponses.maximum(Duration::from_secs(10));

/// How long a client may take to send its headers, and how long a connection may idle between requests.
pub const HEADER_TIME: Bound<Duration> = Guard::Slow.maximum(Duration::from_secs(30));

/// How long a client may take to send its body.
pub const BODY_TIME: Bound<Duration> = Guard::Slow.maximum(Duration::from_secs(30));

/// Sessions of clients before revision 2026-07-28, at once. Each takes about 50 KiB.
pub const MAX_SESSIONS: Bound<usize> = Guard::Sessions.maximum(256);

/// Connections at once.
pub const MAX_HTTP_CONNECTIONS: Bound<usize> = Guard::Connections.maximum(512);

/// How long a new connection may take to send its request before it can be evicted. In that time a full table of
/// connections can arrive.
pub const EVICT_NEW_AFTER: Bound<Duration> = Guard::Connections.maximum(Duration::from_millis(100));

/// How long a request may wait for its turn, and a stream for news, before its connection can be evicted. Longer than a
/// burst of short reads takes, and short for a newcomer.
pub const EVICT_WAITING_AFTER: Bound<Duration> = Guard::Connections.maximum(Duration::from_millis(250));

/// How long a connection with a response or a stream cannot be evicted. A client that reads takes the waiting bytes
/// sooner.
pub const EVICT_WRITING_AFTER: Bound<Duration> = Guard::Connections.maximum(Duration::from_secs(5));

// Credentials of clients.

/// Bytes of an access token. Real ones have 1 to 4 KiB.
pub const MAX_TOKEN: Bound<usize> = Guard::Token.maximum(16 << 10);

/// Bytes of a response to belljar itself: a key set, metadata of an issuer, an introspection.
pub const MAX_SERVICE_RESPONSE: Bound<usize> = Guard::Token.maximum(256 << 10);

/// The least time between two fetches of an issuer's keys. Anyone can send tokens with unknown keys.
pub const KEY_FETCH_INTERVAL: Bound<Duration> = Guard::Token.minimum(Duration::from_secs(60));

/// The least time between two tokens that belljar forgets because the upstream refuses them.
pub const TOKEN_RENEWAL_INTERVAL: Bound<Duration> = Guard::AccessToken.minimum(Duration::from_secs(10));

/// Failed authentications of one address within a minute. Then further ones are refused for a while, without a look at
/// their credentials.
pub const MAX_FAILED_AUTHENTICATIONS: Bound<u32> = Guard::Authentication.maximum(10);
/// Unknown credentials of one address that are checked at once.
pub const MAX_CHECKS_OF_ADDRESS: Bound<usize> = Guard::Authentication.maximum(4);

/// How long a client may take for the TLS handshake.
pub const HANDSHAKE_TIME: Bound<Duration> = Guard::Slow.maximum(Duration::from_secs(10));

// Configured bounds.

/// The effective limits of the calls of a mount, from the configured ones.
pub fn of_calls(configured: Limits) -> Limits {
    let Limits {
        time,
        fuel,
        memory,
        result,
        handles,
        random,
        output,
        cpu,
        concurrency,
        queue,
        resources,
        component,
        traffic: Traffic { requests, connections, upload, download },
        tools,
    } = configured;
    Limits {
        time: Guard::Time.maximum(time).get(),
        fuel: Guard::Fuel.maximum(fuel).get(),
        memory: Guard::Memory.maximum(memory).get(),
        result: Guard::Result.maximum(result).get(),
        handles: Guard::Handles.maximum(handles).get(),
        // The host generates all requested bytes in one step.
        random: Guard::Random.bound(random, MAX_RANDOM).get(),
        output: Guard::Output.maximum(output).get(),
        cpu: Guard::Cpu.maximum(cpu).get(),
        concurrency: Guard::Concurrency.maximum(concurrency).get(),
        queue,
        resources: Guard::Entries.maximum(resources).get(),
        component: Guard::Component.maximum(component).get(),
        traffic: Traffic {
            requests: Guard::Traffic.maximum(requests).get(),
            connections: Guard::Traffic.maximum(connections).get(),
            upload: Guard::Traffic.maximum(upload).get(),
            download: Guard::Traffic.maximum(download).get(),
        },
        tools: ToolLimits {
            time: Guard::Time.maximum(tools.time).get(),
            fuel: tools.fuel.map(|fuel| Guard::Fuel.maximum(fuel).get()),
            memory: tools.memory.map(|memory| Guard::Memory.maximum(memory).get()),
            result: tools.result.map(|result| Guard::Result.maximum(result).get()),
            requests: tools.requests.map(|requests| Guard::Traffic.maximum(requests).get()),
            upload: tools.upload.map(|upload| Guard::Traffic.maximum(upload).get()),
            download: tools.download.map(|download| Guard::Traffic.maximum(download).get()),
        },
    }
}

/// The effective time limit of a listing over all mounts, from the configured one.
pub fn of_listing(configured: Duration) -> Duration {
    Guard::Time.maximum(configured).get()
}

/// The effective maximum age of a cached read, from the configured one.
pub fn of_freshness(configured: Duration) -> Duration {
    Guard::Fresh.maximum(configured).get()
}

/// The effective number of requests that a guest may build at once, from the number that it may send.
pub fn of_requests_made(configured: u64) -> u64 {
    Guard::HostMemory.maximum(configured).get()
}

/// The effective number of file descriptors of all calls, from the number that the process may have.
pub fn of_descriptors(found: usize) -> usize {
    Guard::Handles.maximum(found).get()
}

/// The effective memory budget of all calls in bytes, from the configured one.
pub fn of_budget(configured: u64) -> u64 {
    Guard::Budget.maximum(configured).get()
}

/// The effective number of requests of one caller, per second or per burst, from the configured one.
pub fn of_caller(configured: u32) -> u32 {
    Guard::Callers.maximum(configured).get()
}

/// The effective amount of a rule's rate, from the configured one.
pub fn of_rule(configured: u64) -> u64 {
    Guard::Callers.maximum(configured).get()
}

/// The effective number of calls of one principal that run at once, from the configured one.
pub fn of_principal(configured: usize) -> usize {
    Guard::Turns.maximum(configured).get()
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn with_guards_on_the_configured_limits_apply() {
        let limits = Limits::default();
        assert_eq!(of_calls(limits.clone()), limits);
    }

    #[cfg(not(feature = "unguarded"))]
    #[test]
    fn bounds_of_this_build_are_constants() {
        const { assert!(MAX_WAITING_CALLS.get() == 256 && MIN_CONTENTS.get() == 1) };
    }
}
