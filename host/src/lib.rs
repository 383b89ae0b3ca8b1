//! belljar runs untrusted WebAssembly components as MCP resource providers. This page is the map.
//!
//! # How a read is processed
//!
//! ```text
//!  {"method":"resources/read","params":{"uri":"belljar://notes/2026/plan.md"}}
//!  transport     a line or a body: capped, timed; Host and Origin checked        transport/{stdio,http}/
//!  authenticate  the transport's evidence -> Principal                           policy/principal.rs
//!                HTTP with [auth]: a key or a token -> Principal                 transport/http/head.rs, auth/
//!  mcp           belljar's dispatcher, or rmcp's for what it does not take       mcp/{direct,methods}.rs
//!  route         an immutable catalog snapshot; the longest base wins            gateway/route.rs
//!  authorize     may this principal do this with that mount? -> Access           policy/access.rs
//!  admit         turns, shares, a deadline -> Permit, only from an Access        limits/admit.rs
//!  execute       plain data in (CallSpec), plain data out (Outcome)              sandbox/executor.rs
//!                starts on the asking thread; a long call moves to slow threads  sandbox/call_runner.rs
//!                a fresh instance, limits and grants first, then the call        sandbox/call.rs
//!                the function that is called                                     interfaces/resources.rs
//!    grants      used by the guest during the call; every decision is logged     grants/*/
//!  check         the guest's result; names made absolute and routed again        interfaces/resources.rs
//!  record        one Event for every call, whether it succeeded or failed        gateway/record.rs
//!  mcp           -> the bytes of the response; failures through one table        mcp/{convert,encode,fault}.rs
//! ```
//!
//! `run` in `gateway/pipeline.rs` does everything from `authorize` to `record`. Reads, lists, templates, completion,
//! revisions, descriptions and the conformance checks all go through it.
//!
//! belljar's own dispatcher answers most requests (`mcp/direct.rs`). rmcp opens sessions and serves what is left: pings,
//! subscriptions, malformed requests, and over HTTP those that need a stream. It calls the same methods of the same handler.
//!
//! `gateway/read_cache.rs` caches reads that are still fresh, and shares one running read among several callers.
//! `gateway/subscriptions.rs` holds the subscriptions. `gateway/poller.rs` polls the watched resources with ordinary
//! calls. A resource that crashes its provider does not stop the polls of the others (`gateway/poll.rs`).
//! `limits/turns.rs` schedules calls: the mount and the caller that hold the fewest turns come first.
//!
//! All other client requests take the same path: lists (`gateway/listing.rs`, cached in `catalog/cached_listing.rs`),
//! completion (`mcp/completion.rs`, `gateway/complete.rs`), and the tools with which models search and read
//! (`mcp/tools.rs`, `gateway/search.rs`). The tools use the gateway exactly as a client does.
//!
//! Several processes with one key are replicas. What they share is in `store/redis/`: counts of quotas, marks of answered
//! questions, leases of polls, answers, and the generation of each one's configuration. `gateway/replicas.rs` applies what
//! the others tell; `gateway/round.rs` is one poll for all. Without the store, each replica works alone.
//!
//! Arguments travel down in one direction; one value travels back up. Dropping a request's future drops the store and
//! the permit. This is the only form of cancellation.
//!
//! # Ranks
//!
//! `cli > server > transport > mcp > gateway > catalog > sandbox > interfaces, auth > config > grants > limits, telemetry >
//! store > policy > model`: a module names only lower ranks. A test in `tests/tidy` reads every `use` and checks it.
//!
//! # Invariants
//!
//! - **No call without a permit.** [`sandbox::Executor::execute`] takes a [`limits::Permit`] by value, which only
//!   [`limits::Admission::admit`] makes, from a [`policy::Access`], which only [`policy::Policy::authorize`] makes, for
//!   a [`policy::Principal`]. An unlimited call does not compile; the docs of these modules show the failing code.
//! - **Plain data into and out of the sandbox.** [`sandbox::CallSpec`], [`sandbox::Outcome`], and the permit. No
//!   handle, closure or type of wasmtime crosses this border, so the sandbox can move into another process.
//! - **Every limit is set before the guest's first instruction**, instantiation included.
//! - **A guest never sees a global name.** It lists relative references and reads relative references. [`catalog`] adds
//!   and removes the base. The host routes every name that a guest returns once more, to check that it leads to the
//!   same mount.
//! - **A reference is checked once**, in [`model::reference`], and then passed on unchanged.
//! - **An HTTP request of a guest is parsed once**, in [`grants::http`], and sent as it was parsed. The host checks the
//!   address after the DNS lookup. It adds secrets after the guest, and masks them in everything that leaves the
//!   sandbox.
//! - **Grants belong to a digest**: a mount with grants is loaded only if `belljar.lock` has the digest of its
//!   component.
//! - **The catalog changes in one swap**, and only to mounts that can be served. [`catalog::loader`] builds a new mount
//!   beside the served ones. If that fails, the old mount stays, provided that the configuration still allows it. A
//!   call keeps its mount, and the mount its compiled component, alive across a swap.
//! - **A helper process reads the files that the second wall hides** (`server::privileged_helper`). The second wall is
//!   Landlock and a filter of system calls. The helper takes three requests: save a lasting consent, read the
//!   configuration again, and read the file of API keys again.
//! - **No credential of a client is stored or shown.** `auth` compares hashes of API keys; `keys.toml` has nothing else. Only
//!   `belljar key new` ever has a key.
//! - **An access token goes to the upstreams of its grant only.** `grants::http::oauth` gets it and adds it behind the
//!   decision. Every redactor of the mount knows the present token and the ones before it.
//! - **Ambient power enters in `cli`, `server`, `config`, `grants` and `catalog::watch` only**: they turn paths into
//!   handles. `host/clippy.toml` refuses the functions of the standard library that open files and sockets everywhere
//!   else.
//! - **rmcp is named in `mcp` and `transport` only, wasmtime in `sandbox`, `interfaces` and `grants` only.**
//! - **Below `cli`, an error is an enum, and its `Display` writes the sentence.** No code branches on an error's text.
//!   Each kind of grant has its own error enum, which the list of kinds only displays.
//! - **One place turns a failure into JSON-RPC**: `mcp::fault`. It lets no host path, secret or raw guest text through.
//! - **Each call is recorded exactly once**, whether it succeeds, fails or is cancelled: the recorder writes when it is
//!   dropped. `gateway/response_cost.rs` adds the work on the answer that the host does after the call, and charges it
//!   to the mount.
//! - **The counters and debts of a mount are kept by its name** ([`limits::gate_registry`]): a reload does not reset
//!   them.
//! - **Every guard is shown to work.** [`model::guard`] lists them. A build for tests can switch each one off, and then
//!   a row of the hostile table must fail. In every other build the switch is the constant `true`.
//! - **Once the second wall is raised, only the paths that `server::landlock` lists can be opened by name.** It is
//!   raised before the first thread starts.
//!
//! Deliberately absent: provider state between calls, a way for a provider to name the host, a writable filesystem, and
//! unauthenticated listening on any address but loopback.

// Futures nest from the connection through its reads down to the guest, deeper than the default limit of 128 layers.
#![recursion_limit = "256"]
#![cfg_attr(test, allow(clippy::disallowed_methods, reason = "tests make the files and sockets that they need"))]

pub mod auth;
pub mod catalog;
pub mod cli;
pub mod config;
pub mod gateway;
pub mod grants;
pub mod interfaces;
pub mod limits;
pub mod mcp;
pub mod model;
pub mod policy;
pub mod sandbox;
mod server;
pub mod store;
pub mod telemetry;
pub mod transport;
