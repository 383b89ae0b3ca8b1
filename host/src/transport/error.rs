//! The errors that end a transport.

use std::io;

use rmcp::service::ServerInitializeError;
use tokio::task::JoinError;

/// The reason why a transport cannot start or continue.
#[derive(Debug, thiserror::Error)]
pub enum ServeError {
    /// The listener has no local address.
    #[error("the listener has no address: {0}")]
    NoAddress(io::Error),
    /// The first message does not open a connection.
    #[error("the connection could not be opened: {0}")]
    NotOpened(Box<ServerInitializeError>),
    /// The task that serves a connection failed.
    #[error("the connection failed: {0}")]
    Failed(JoinError),
}
