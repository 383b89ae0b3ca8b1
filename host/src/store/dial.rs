//! How a store in another process is reached. The server makes the connections: this module may not open any.

use futures_util::future::BoxFuture;
use tokio::io::{AsyncRead, AsyncWrite};
use tokio::time::Instant;

/// A connection to the store.
pub trait StoreStream: AsyncRead + AsyncWrite + Send + Unpin {}

impl<T: AsyncRead + AsyncWrite + Send + Unpin> StoreStream for T {}

/// Why there is no connection. The text continues "the store ...".
#[derive(Clone, Debug, PartialEq, Eq, thiserror::Error)]
#[error("{0}")]
pub struct DialFailure(pub String);

/// Connects to the store, with TLS if the configuration says so.
pub trait StoreDialer: Send + Sync {
    /// Connects until `deadline`.
    fn dial(&self, deadline: Instant) -> BoxFuture<'_, Result<Box<dyn StoreStream>, DialFailure>>;
}
