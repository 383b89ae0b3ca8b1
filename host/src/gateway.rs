//! The pipeline that every request passes, and its operations: read, list, complete, search, subscribe.
//!
//! Knows no MCP and no WebAssembly. Every call ends in exactly one event.

pub mod asking;
mod authorize;
mod below;
mod call_group;
pub mod complete;
mod conformance;
pub mod consent;
pub mod definitions;
mod describe;
mod explain;
pub mod hints;
pub mod invoke;
mod listing;
mod pipeline;
mod poll;
mod poll_target;
mod poller;
mod quota;
mod read;
mod read_cache;
mod record;
mod replica_link;
mod replicas;
pub mod request_states;
pub mod response_cost;
mod round;
mod route;
pub mod search;
mod shared_answers;
pub mod skills;
mod status;
pub mod subscriptions;
pub mod views;
mod visible_lists;
mod watch;

pub use below::BelowPage;
pub use listing::{ListPage, OutdatedList};
pub use pipeline::Gateway;
pub use read::ReadOutcome;
pub use record::RequestRecord;
pub use status::GatewayStatus;

#[cfg(test)]
pub(crate) mod tests;
