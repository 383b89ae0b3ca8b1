//! The server of a grant: dials, and speaks TLS.

use std::sync::Arc;

use bytes::BytesMut;
use postgres_protocol::message::frontend;
use rustls::ClientConfig;
use tokio::io::{AsyncReadExt, AsyncWriteExt};

use super::login::DatabaseLogin;
use crate::grants::network::ByteStream;
use crate::grants::network::endpoint::{ConnectFailure, ConnectionScope};
use crate::grants::network::route::Route;

/// One database, and how to reach it.
pub(super) struct DatabaseServer {
    pub(super) route: Route,
    /// `None`: without TLS.
    pub(super) tls: Option<Arc<ClientConfig>>,
    pub(super) credentials: DatabaseLogin,
    /// Server and database, as in `at`.
    pub(super) target: String,
}

impl DatabaseServer {
    /// Connects to the server, without a login.
    pub(super) async fn reach(&self, scope: &ConnectionScope) -> Result<Box<dyn ByteStream>, ConnectFailure> {
        let mut tcp = self.route.dial(scope).await?;
        let Some(config) = &self.tls else { return Ok(Box::new(tcp)) };
        let mut request = BytesMut::new();
        frontend::ssl_request(&mut request);
        let lost = |_| ConnectFailure::Unavailable("it ended the connection".to_owned());
        tcp.write_all_buf(&mut request).await.map_err(lost)?;
        // Exactly one byte: what follows belongs to TLS, whoever sent it.
        match tcp.read_u8().await.map_err(lost)? {
            b'S' => Ok(Box::new(self.route.secure(config, tcp, scope.end()).await?)),
            b'N' => Err(ConnectFailure::Failed(
                "the server has no TLS; turn it on there (ssl = on), or set  tls = false  in the grant if it runs on this machine"
                    .to_owned(),
            )),
            _ => Err(ConnectFailure::Failed("it does not speak PostgreSQL's protocol".to_owned())),
        }
    }
}
