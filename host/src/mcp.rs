//! MCP methods on top of rmcp. No lower module knows the protocol.
//!
//! This module does the tasks that rmcp leaves to a server:
//!
//! * it answers a request whose handler panicked;
//! * it stops the guest of a cancelled request;
//! * it answers malformed parameters of a known method with `-32602`.

mod asking;
mod blocks;
mod bodies;
mod completion;
mod consent;
mod context;
mod convert;
pub mod cursor;
mod detached_peer;
pub mod direct;
pub mod encode;
mod encode_reading;
mod era;
pub mod exchange;
pub mod fault;
mod handler;
pub mod identity;
mod methods;
pub mod outbox;
mod progress;
mod prompts;
mod provider_tools;
pub mod request_meta;
pub mod request_phase;
mod requests;
mod session;
mod shutdown;
mod skills;
pub mod subscriptions;
pub mod tools;

pub use detached_peer::DetachedPeer;
pub use handler::Handler;
pub use session::{SessionClient, next_peer_id};

#[cfg(test)]
pub(crate) mod tests;
