//! The interfaces of `wit/` that belljar understands, one file each. A file defines the functions with their arguments
//! and replies, calls them, measures a reply in bytes, masks secrets in it, and checks it. `interfaces/list.rs` lists
//! them all.
//!
//! # A new interface
//!
//! 1. Write it into `wit/provider.wit`, with a world of its own. Export it from the world `full-provider`: the host's
//!    bindings are made from that one.
//! 2. Make `interfaces/NAME.rs`. It holds `NAME`, the type of its indices, and one type for each function, which
//!    implements [`Function`]. Make `interfaces/NAME/conformance.rs`: its function `check` checks a provider.
//! 3. Declare the module in this file. Add it to `interfaces/list.rs`: one name in `use`, one line with its functions.
//! 4. Make `gateway/NAME.rs`, and declare it in `gateway.rs`: a method of `Gateway` that calls the function.
//! 5. Answer the client's request in `mcp/methods.rs`. A request that is new to MCP also needs an arm in
//!    `mcp/direct.rs`.
//! 6. If no [`Action`](crate::policy::Action) fits the function, add one.
//! 7. Add it to the Rust SDK: the trait in `sdk-guest/src/provider.rs`, its name in `lib.rs`, the arm and the bindings
//!    in `export.rs`, the conversion in `export/convert.rs`.
//! 8. Add it to the SDK of each other language, below `sdk-guest/`: a component of the world `full-provider` must
//!    export it.
//! 9. Write a guest into `tests/guests/`, a test into `tests/integration/`, and a section into `docs/guide/providers.md`.
//!
//! The sandbox, the limits, the audit record, `belljar inspect` and `belljar check --conformance` read the list. They
//! need no change.

pub mod asking;
mod blocks;
mod calls;
pub mod completion;
pub mod conformance;
mod convert;
pub mod definitions;
mod entry;
pub mod fields;
mod function;
mod generated;
pub mod json_schema;
mod list;
pub mod paging;
pub mod parts;
pub mod progress;
pub mod prompts;
mod provider_check;
mod redaction;
pub mod resources;
pub mod revisions;
pub mod skills;
pub mod tools;

pub use calls::{Exported, Exports, Interfaces, Reply, Request, redact_result};
pub use entry::{EntryError, ListEntry};
pub use function::{AbsoluteNameError, Function, MountContext, ReplyLimits};
pub use redaction::redact_error;
