//! The grant `tcp`: connections to the servers that the operator named by host and port, and to no others.
//!
//! The guest opens them by `wasi:sockets`. The module `sockets` decides; this module connects. belljar resolves the host,
//! checks the address as for HTTP requests, connects, and speaks TLS if the grant says so.

mod config;
mod connector;
mod editor;
mod kind;
mod name;

pub use config::TcpGrantConfig;
pub(super) use connector::TcpConnector;
pub use kind::TcpError;
pub(super) use name::NAME;
pub use name::Tcp;
