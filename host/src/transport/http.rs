//! MCP over Streamable HTTP at `/mcp`, with or without TLS. Checks Host, Origin and credentials (`head.rs`), and caps and
//! times each step.
//!
//! belljar answers most requests itself (`fast_path.rs`). rmcp opens sessions, and serves the others. This module adds what
//! rmcp leaves to a server:
//!
//! * caps on connections and sessions, and time-outs of headers, bodies and writes;
//! * answers in JSON to bodies that are not JSON;
//! * requests that are cancelled when their connection ends;
//! * a shutdown that lets running answers finish.

mod accepted_credential;
mod bearer;
mod body;
mod bounds;
mod charge_encoding;
mod client_address;
mod connections;
mod cors;
mod endpoint;
mod failure_limit;
mod fast_path;
mod front_door;
mod head;
mod host_names;
mod listener;
mod metadata;
mod names;
mod poll_again;
mod refusal_log;
mod reply;
mod response;
mod session;
mod socket;
mod stream;
mod tls;

pub use bounds::Bounds;
pub use front_door::{Advertised, Authentication, FrontDoor};
pub use listener::serve;
pub use names::PATH;
pub use tls::{TlsIdentity, TlsIdentityError, TlsPem};

#[cfg(test)]
mod tests;
