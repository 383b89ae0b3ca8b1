//! Switches for the guards, so that tests can show what each of them is good for: with its guard off, a row of
//! `tests/hostile` must go red. They exist in a build with the feature `unguarded` only, which nothing but
//! `cargo xtask test --prove-guards` makes; in every other build [`Guard::is_on`] is the constant `true`.

/// Declares the guards, each with the name that switches it off.
macro_rules! guards {
    ($($(#[doc = $doc:literal])+ $guard:ident = $name:literal,)+) => {
        /// Something that stops a hostile provider, client or upstream.
        #[derive(Clone, Copy, Debug, PartialEq, Eq)]
        pub enum Guard {
            $($(#[doc = $doc])+ $guard,)+
        }

        impl Guard {
            /// Every guard.
            pub const ALL: &[Self] = &[$(Self::$guard),+];

            /// What it is called where it is switched off.
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
    /// The sum over linear memories and tables.
    Memory = "memory",
    /// What the host keeps for a call: charged to the call's memory, texts cut off, requests counted.
    HostMemory = "host-memory",
    /// Bytes of an answer, before and after it is copied out of the guest.
    Result = "result",
    /// Handles of a call.
    Handles = "handles",
    /// Bytes of one request for random numbers.
    Random = "random",
    /// Bytes kept of what a call prints.
    Output = "output",
    /// Calls of a mount that run at once.
    Concurrency = "concurrency",
    /// Calls of a mount that wait.
    Queue = "queue",
    /// Turns for mounts and callers that have none.
    Turns = "turns",
    /// How often a caller may call tools and ask for completions.
    Callers = "callers",
    /// That what one client watches does not stop what others watch.
    Suspects = "suspects",
    /// A mount's share of the processors.
    Cpu = "cpu",
    /// The memory of all calls and answers together.
    Budget = "budget",
    /// The pause after failures in a row.
    Breaker = "breaker",
    /// The lane on which calls go on that compute for long.
    Lane = "lane",
    /// The end of a call whose caller went away.
    Cancel = "cancel",
    /// What a reference may look like.
    Reference = "reference",
    /// That a mount lists and answers below its own base only.
    Namespace = "namespace",
    /// MIME types, sizes, icons and other fields of entries.
    Fields = "fields",
    /// Entries of the same name.
    Duplicates = "duplicates",
    /// How many entries and templates of a mount are served.
    Entries = "entries",
    /// How many searches run at once.
    Searches = "searches",
    /// How many watchers there are, how much each watches, and how often it is told of the list.
    Watchers = "watchers",
    /// What a revision may look like.
    Revision = "revision",
    /// Cursors that providers give.
    Cursor = "cursor",
    /// That what clients give back is what they were given: cursors, and states of questions.
    Seal = "seal",
    /// Mount names.
    Name = "name",
    /// That a name and a base belong to one mount.
    Taken = "taken",
    /// That a component is a regular file.
    Regular = "regular",
    /// Bytes of a component.
    Component = "component",
    /// What a compilation may use.
    Compiler = "compiler",
    /// That compiled code in the cache is what was stored.
    Cache = "cache",
    /// That a path leads nowhere but below the granted directory.
    Beneath = "beneath",
    /// That filesystem grants are for reading.
    ReadOnly = "read-only",
    /// Which directories can be granted.
    Place = "place",
    /// Bytes of a message from a client.
    Message = "message",
    /// Requests of a connection that are pending.
    Pending = "pending",
    /// Connections over HTTP.
    Connections = "connections",
    /// Sessions over HTTP.
    Sessions = "sessions",
    /// How long a client may take for its headers and its body.
    Slow = "slow",
    /// How long a client may take for its answer, and how many answers may wait to be taken.
    Untaken = "untaken",
    /// Which Host and Origin a request may name.
    Origin = "origin",
    /// Which addresses can be listened on.
    Loopback = "loopback",
    /// Contents are for what was asked, or below it.
    ContentsName = "contents-name",
    /// How many contents an answer has: at least one, at most so many.
    ContentsCount = "contents-count",
    /// MIME types of RFC 6838 syntax, and nothing else.
    Mime = "mime",
    /// How long an answer may be kept.
    Fresh = "fresh",
    /// A stranger's words are cut and cleaned before they are shown.
    Words = "words",
    /// A thread of its own for each call that may hang in the kernel.
    Apart = "apart",
    /// Neither FIFOs nor devices are opened.
    Special = "special",
    /// That an answer counts once, for the very read that it was asked for.
    Consent = "consent",
    /// That what was allowed ends with the configuration that allowed it.
    Revoke = "revoke",
    /// How often a person is asked.
    Asking = "asking",
    /// That grants are used by the bytes that they were given to.
    Pin = "pin",
    /// Requests go to granted origins, by granted methods and paths.
    Egress = "egress",
    /// Addresses that are not of the public internet.
    Address = "address",
    /// belljar's own ports.
    OwnPort = "own-port",
    /// Requests and bytes of a call.
    Traffic = "traffic",
    /// Headers that carry credentials.
    Credential = "credential",
    /// Secrets are masked in what comes back and in what goes out.
    Redact = "redact",
    /// Headers and parameters that have an upstream read another request than the one that was judged.
    Override = "override",
    /// Answers to a request with a secret on it are whole, and in no coding that hides it.
    Whole = "whole",
    /// How often what changed on disk is looked at.
    Pace = "pace",
    /// The pause after failures of an upstream.
    Upstream = "upstream",
}

#[cfg(not(feature = "unguarded"))]
impl Guard {
    /// Whether it is in force: always.
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

    static OFF: OnceLock<Vec<Guard>> = OnceLock::new();

    impl Guard {
        /// Whether it is in force.
        pub fn is_on(self) -> bool {
            !OFF.get().is_some_and(|off| off.contains(&self))
        }

        /// Switches guards off for the rest of the process, by their names, separated by commas. Once; later calls change
        /// nothing.
        ///
        /// # Errors
        /// Names the first that is no guard.
        pub fn switch_off(names: &str) -> Result<(), String> {
            let named = |name: &str| {
                let found = Guard::ALL.iter().find(|guard| guard.name() == name);
                found.copied().ok_or_else(|| format!("there is no guard \"{name}\""))
            };
            let off = names.split(',').filter(|name| !name.is_empty()).map(named).collect::<Result<Vec<_>, _>>()?;
            let _ = OFF.set(off);
            Ok(())
        }
    }
}

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
