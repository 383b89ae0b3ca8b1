//! MCP over standard input and output: one JSON message per line.
//!
//! rmcp's own line transport ignores a line that is too long or is not JSON, and the client waits forever. This one
//! answers such a line with an error. It answers most requests itself; rmcp opens sessions and serves the rest.
//! Standard output carries messages only.

mod dispatch;
mod line_output;
mod line_transport;
mod pending;
mod serve;
mod standard_streams;

pub use line_transport::LineTransport;
pub use serve::{serve, serve_on};

#[cfg(test)]
mod tests;
