//! belljar runs untrusted WebAssembly components as MCP resource providers. This page is the map.
//!
//! # The way of a read
//!
//! ```text
//!  {"method":"resources/read","params":{"uri":"belljar://notes/2026/plan.md"}}
//!  transport   a line or a body: capped, timed; Host and Origin checked          transport/{stdio,http}.rs
//!  mcp         rmcp's handler, five lines a method                               mcp.rs
//!  gateway     the one conductor: route, admit, call, check, record              gateway.rs  Gateway::read
//!  catalog     a snapshot that never changes; longest base wins                  catalog.rs  Snapshot::route
//!  admission   turns, shares, a deadline, as a value: the permit                 admission.rs  Admission::admit
//!  sandbox     short calls here, long ones in the slow lane                      sandbox/lane.rs  Lanes::run
//!              a fresh store, limits first, then the guest's first instruction   sandbox/call.rs  run
//!    grants    what the store was given; each decision goes onto the trail       grants/{fs,env,http}.rs
//!  sandbox     -> Outcome { result, usage, trail }
//!  gateway     checks what the guest gave, makes names absolute, records          gateway/check.rs
//!  mcp         -> the bytes of the answer, or wire types; failures through one   mcp/{line,wire,fault}.rs
//!                 table
//! ```
//!
//! Plain requests, which nearly all are, go from the transport to the handler without rmcp's tasks and channels between
//! (`mcp/plain.rs`, `transport/http/short.rs`, `transport/stdio/short.rs`); what is not plain goes through rmcp. Both meet in
//! `mcp.rs`.
//!
//! What is fresh, or being read for somebody else, is served from `gateway/answers.rs`. Who is told of changes stands in
//! `gateway/watching.rs`, and what is watched is looked at by `gateway/rounds.rs`, by calls like any other, so that nobody's
//! resources silence another's (`gateway/look.rs`). Who gets the next turn is decided in `admission/turns.rs`: whoever has least.
//!
//! Everything else that a client can ask for goes the same way: lists (`gateway/listing.rs`, kept in `catalog/kept.rs`), completion
//! (`mcp/completion.rs`, `gateway/completing.rs`), and the tools that show models what there is (`mcp/tools.rs`,
//! `gateway/search.rs`), which read and list through the gateway as any client does, and have no other way in.
//!
//! Down in one direction, up as one value. Dropping a request's future drops the store and the permit: that is
//! cancellation, and there is no other.
//!
//! # Ranks
//!
//! `cli > transport > mcp > gateway > catalog > sandbox > config > grants > admission, audit > model`: a module names
//! only lower ranks. A test in `tests/tidy` reads every `use` and checks it.
//!
//! # Invariants
//!
//! - **No call without a permit.** [`sandbox::Sandbox::call`] takes a [`admission::Permit`] by value, which only
//!   [`admission::Admission::admit`] makes, and which carries the limits. An unlimited call cannot be written.
//! - **Plain data into and out of the sandbox.** Bytes, names, a permit, an operation, an outcome. No handle, closure or
//!   type of wasmtime crosses that line, so that the sandbox can become a process of its own.
//! - **Every limit is set before the guest's first instruction**, instantiation included.
//! - **A guest never sees a global name.** It lists and is asked for relative references; bases are put on and taken off
//!   in [`catalog`], and whatever a guest names is routed once more to see that it is its own.
//! - **A reference is judged once**, in [`model::reference`], and then passed on letter by letter.
//! - **A request that a guest sends is read once**, in [`grants::http`], and sent in that reading, to an address that was
//!   judged after the name was looked up; secrets are added behind the guest, and masked in all that leaves the sandbox.
//! - **Grants belong to bytes**: a mount that holds any is loaded only if its component is the one that `belljar.lock` names.
//! - **What is served changes in one swap**, and only to what can be served: [`catalog::reload`] makes a mount beside those that
//!   are served, and what cannot be made takes nothing down that the configuration still allows. A call holds its mount, and
//!   the mount what is loaded for it, so that no call loses it to a swap.
//! - **What lies beyond the second wall is read by the process outside of it** (`cli::outside`), which knows two orders: keep
//!   what a person allowed for good, and read the configuration again.
//! - **Ambient power enters in `cli`, `config`, `grants` and `catalog::watch` only**: paths become handles there. `host/clippy.toml` refuses
//!   the functions of the standard library that open things, everywhere else.
//! - **rmcp is named in `mcp` and `transport` only, wasmtime in `sandbox` and `grants` only.**
//! - **One place turns a failure into JSON-RPC**: `mcp::fault`. No host path, secret or raw word of a guest gets past it.
//! - **Each call is on record once**, however it ends: the recorder writes when it goes out of scope, and where there is an
//!   answer, its bill (`gateway/bill.rs`), which also charges the mount with the work that its answer still makes.
//! - **What a mount used, owes and failed at is kept by its name** ([`admission::gates`]): a reload starts no second account.
//!
//! - **Every guard can be shown to work.** [`model::guard`] lists them; a build for tests switches them off, and a row of
//!   `tests/hostile` must then go red. In every other build a switch is the constant `true`.
//! - **Nothing is opened by name after the second wall stands**, but what `cli::wall` lists: it is raised before the first
//!   thread.
//!
//! What is deliberately absent: state of a provider between calls, a way for a provider to name the host, a writable
//! filesystem, unauthenticated listening on anything but loopback.

// The future of a connection holds those of its reads, down to the guest: the compiler counts the layers.
#![recursion_limit = "256"]
#![cfg_attr(test, allow(clippy::disallowed_methods, reason = "tests make the files and sockets that they need"))]

pub mod admission;
pub mod audit;
pub mod catalog;
pub mod cli;
pub mod config;
pub mod gateway;
pub mod grants;
pub mod mcp;
pub mod model;
pub mod sandbox;
pub mod transport;
