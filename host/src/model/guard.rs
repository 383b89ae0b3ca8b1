//! Switches for the guards. Tests use them to prove that each guard is needed: with its guard off, a row of the hostile
//! table (`tests/integration/<area>/hostile_*.rs`) must fail. The switches exist only in a build with the feature
//! `unguarded`, which only `cargo xtask test --prove-guards` makes. In every other build [`Guard::is_on`] is the
//! constant `true`.
//!
//! A guard for a limit is lifted in [`super::bounds`], so code that obeys the limit does not ask for the guard. A guard
//! for a check is asked for in one place: the function that decides.

/// Declares the guards, each with the name that the switch uses.
macro_rules! guards {
    ($($(#[doc = $doc:literal])+ $guard:ident = $name:literal,)+) => {
        /// A defence against a hostile provider, client or upstream.
        #[derive(Clone, Copy, Debug, PartialEq, Eq)]
        pub enum Guard {
            $($(#[doc = $doc])+ $guard,)+
        }

        impl Guard {
            /// Every guard.
            pub const ALL: &[Self] = &[$(Self::$guard),+];

            /// The name in `BELLJAR_UNGUARDED` that switches the guard off.
            pub const fn name(self) -> &'static str {
                match self { $(Self::$guard => $name,)+ }
            }
        }
    };
}

guards! {
    /// Fuel of a call.
    Fuel = "fuel",
    /// The deadline of a call: the epoch's for a guest that computes, the timer's for one that waits.
    Time = "time",
    /// The sum of all linear memories and tables of a call.
    Memory = "memory",
    /// Host memory of a call: it is charged to the call's memory, texts are cut, requests are counted.
    HostMemory = "host-memory",
    /// Bytes of a result, before and after it is copied out of the guest.
    Result = "result",
    /// Handles of a call.
    Handles = "handles",
    /// Bytes of one request for random numbers.
    Random = "random",
    /// Bytes of printed output kept for a call.
    Output = "output",
    /// Calls of a mount that run at once.
    Concurrency = "concurrency",
    /// Calls of a mount that wait.
    Queue = "queue",
    /// Turns reserved for mounts and callers that hold none.
    Turns = "turns",
    /// How often a caller may call tools and ask for completions.
    Callers = "callers",
    /// A watched resource that crashes must not stop the poll of other clients' resources.
    Suspects = "suspects",
    /// A mount's share of the processors.
    Cpu = "cpu",
    /// The memory of all calls and answers together.
    Budget = "budget",
    /// The circuit breaker: the pause after consecutive failures.
    Breaker = "breaker",
    /// A call that computes for long moves to a thread of its own.
    LongCalls = "long-calls",
    /// The cancellation of a call when its caller disconnects.
    Cancel = "cancel",
    /// The syntax of references.
    Reference = "reference",
    /// A mount lists and serves only names below its own base.
    Namespace = "namespace",
    /// MIME types, sizes, icons and other fields of entries.
    Fields = "fields",
    /// Removal of listing entries with the same name.
    Duplicates = "duplicates",
    /// Number of entries and templates of a mount.
    Entries = "entries",
    /// Number of searches that run at once.
    Searches = "searches",
    /// Number of watchers, of URIs for each, and the rate of list notifications.
    Watchers = "watchers",
    /// Number and bytes of skills and of their files.
    Skills = "skills",
    /// The strict syntax of the frontmatter of skills.
    Frontmatter = "frontmatter",
    /// The syntax and length of revisions.
    Revision = "revision",
    /// Checks on cursors from providers.
    Cursor = "cursor",
    /// The authentication of tokens that clients send back: cursors and request states.
    Seal = "seal",
    /// The syntax of mount names.
    Name = "name",
    /// A name and a base belong to one mount only.
    Taken = "taken",
    /// A component must be a regular file.
    Regular = "regular",
    /// Bytes of a component file.
    Component = "component",
    /// The resources that a compilation may use.
    Compiler = "compiler",
    /// The authentication of compiled code in the cache.
    Cache = "cache",
    /// A path must stay below the granted directory.
    Beneath = "beneath",
    /// Filesystem grants are read-only.
    ReadOnly = "read-only",
    /// The directories that may be granted.
    Place = "place",
    /// Bytes of a message from a client.
    Message = "message",
    /// Number of pending requests of a connection.
    Pending = "pending",
    /// Number of HTTP connections.
    Connections = "connections",
    /// Number of HTTP sessions.
    Sessions = "sessions",
    /// Time in which a client must send its headers and its body.
    Slow = "slow",
    /// Time in which a client must take its response, and bytes of responses that may wait.
    UnreadResponses = "unread-responses",
    /// The `Host` and `Origin` headers that a request may have.
    Origin = "origin",
    /// The addresses on which belljar may listen.
    Loopback = "loopback",
    /// A request with `[auth]` must have a valid credential, and repeated failures are refused for a while.
    Authentication = "authentication",
    /// The rules that say what each principal may do.
    Policy = "policy",
    /// Contents are for the requested reference, or below it.
    ContentsName = "contents-name",
    /// Number of parts in the result of a read, at least one.
    ContentsCount = "contents-count",
    /// The syntax of MIME types (RFC 6838).
    Mime = "mime",
    /// The bounds of JSON Schemas of tools.
    Schema = "schema",
    /// Arguments and structured results fit the schemas of their tool.
    SchemaCheck = "schema-check",
    /// The names of tools and prompts.
    ToolName = "tool-name",
    /// What clients are told about the effects of a tool follows from the grants of its mount.
    Hints = "hints",
    /// The form and number of questions of a provider, and what they may ask for.
    Question = "question",
    /// Reports of progress grow, and come at a bounded rate.
    Progress = "progress",
    /// The page of a view has the right type, and no network that the operator did not grant.
    View = "view",
    /// Pictures and sounds are what they claim to be.
    Media = "media",
    /// How long a result may be cached.
    Fresh = "fresh",
    /// Text from outside is cut and sanitised before it is shown.
    Sanitising = "sanitising",
    /// A dedicated thread for each call that may hang in the kernel.
    DedicatedThread = "dedicated-thread",
    /// FIFOs and devices are not opened.
    Special = "special",
    /// A consent counts once, and only for the read for which it was requested.
    Consent = "consent",
    /// A consent ends with the configuration under which it was given.
    Revoke = "revoke",
    /// How often a person is asked for consent.
    Asking = "asking",
    /// Grants apply only to the component bytes that they were given to.
    Pin = "pin",
    /// Requests and connections go only to granted origins and servers, with granted methods and paths.
    Egress = "egress",
    /// Requests and connections do not go to addresses outside the public internet.
    Address = "address",
    /// Requests and connections do not go to belljar's own ports.
    OwnPort = "own-port",
    /// Number of HTTP requests and connections of a call, and their bytes.
    Traffic = "traffic",
    /// A connection to a database that is granted for reading does not write.
    ReadOnlyDatabase = "read-only-database",
    /// A guest may not set headers that carry credentials.
    Credential = "credential",
    /// Secrets are masked in text from upstreams and from guests.
    Redact = "redact",
    /// Headers and parameters that make an upstream act on another request than the one that was checked.
    Override = "override",
    /// The response to a request with a secret must be complete, and in no encoding that would hide the secret.
    Whole = "whole",
    /// How often the plugin directory is scanned.
    Pace = "pace",
    /// A mount sees the parts of the system that were granted to it, and no others.
    SystemParts = "system-parts",
    /// How often belljar collects the facts of a part of the system.
    SystemPace = "system-pace",
    /// The circuit breaker of an upstream.
    Upstream = "upstream",
    /// The checks of access tokens: their form, algorithm, signature and claims, and the fetches of keys.
    Token = "token",
    /// The checks of what an authorization server of an HTTP grant says, and how often belljar asks it.
    AccessToken = "access-token",
    /// A worker process reaches only the files of its mount.
    WorkerFiles = "worker-files",
    /// A worker process makes only the system calls that it needs.
    WorkerCalls = "worker-calls",
}

#[cfg(not(feature = "unguarded"))]
impl Guard {
    /// True: this build has no switches.
    #[inline]
    pub const fn is_on(self) -> bool {
        let _ = self;
        true
    }
}

#[cfg(feature = "unguarded")]
mod switches {
    use std::sync::OnceLock;

    use super::Guard;

    /// No guard has this name.
    #[derive(Debug, thiserror::Error)]
    #[error("there is no guard \"{0}\"")]
    pub struct UnknownGuard(String);

    static OFF: OnceLock<Vec<Guard>> = OnceLock::new();

    impl Guard {
        /// True unless the guard is switched off.
        pub fn is_on(self) -> bool {
            !off().contains(&self)
        }
    }

    fn off() -> &'static [Guard] {
        OFF.get().map_or(&[], Vec::as_slice)
    }

    /// The names of the guards that are off, in the form that [`switch_off`] takes.
    pub fn names_off() -> String {
        off().iter().map(|guard| guard.name()).collect::<Vec<_>>().join(",")
    }

    /// Switches guards off for the rest of the process. `names` are separated by commas. Only the first call has an
    /// effect.
    ///
    /// # Errors
    /// The first name that belongs to no guard.
    pub fn switch_off(names: &str) -> Result<(), UnknownGuard> {
        let named = |name: &str| {
            let found = Guard::ALL.iter().find(|guard| guard.name() == name);
            found.copied().ok_or_else(|| UnknownGuard(name.to_owned()))
        };
        let off = names.split(',').filter(|name| !name.is_empty()).map(named).collect::<Result<Vec<_>, _>>()?;
        let _ = OFF.set(off);
        Ok(())
    }
}

#[cfg(feature = "unguarded")]
pub use switches::{UnknownGuard, names_off, switch_off};

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn names_are_distinct() {
        for (at, guard) in Guard::ALL.iter().enumerate() {
            assert!(Guard::ALL.iter().skip(at + 1).all(|other| other.name() != guard.name()), "{guard:?}");
        }
    }

    #[cfg(not(feature = "unguarded"))]
    #[test]
    fn no_guard_of_this_build_can_be_switched_off() {
        const { assert!(Guard::Fuel.is_on()) };
    }
}
