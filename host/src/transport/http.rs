//! MCP over Streamable HTTP at `/mcp`, on loopback. Checks Host and Origin, and caps and times each step.
//!
//! belljar answers stateless requests itself; rmcp serves sessions. This module adds what rmcp leaves to a server:
//!
//! * caps on connections and sessions, and time-outs of headers, bodies and writes;
//! * answers in JSON to bodies that are not JSON;
//! * requests that are cancelled when their connection ends;
//! * a shutdown that lets running answers finish.

mod body;
mod bounds;
mod charge_encoding;
mod connections;
mod endpoint;
mod head;
mod listener;
mod names;
mod poll_again;
mod reply;
mod response;
mod session;
mod socket;
mod stateless;

pub use bounds::Bounds;
pub use listener::serve;
pub use names::PATH;

#[cfg(test)]
mod tests;
