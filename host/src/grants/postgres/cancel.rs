//! Cancels the statement of a session whose call is over. The server does not notice by itself that nobody waits for it.

use std::sync::Arc;
use std::time::Duration;

use bytes::BytesMut;
use postgres_protocol::message::frontend;
use tokio::io::AsyncWriteExt;
use tokio::time::{Instant, timeout_at};

use super::server::DatabaseServer;
use crate::grants::network::endpoint::ConnectionScope;

/// The time for a request to cancel. Its call is over already.
const TIME: Duration = Duration::from_secs(3);

/// Cancels the running statement when it is dropped.
pub(super) struct RunningStatement {
    database: Arc<DatabaseServer>,
    scope: ConnectionScope,
    key: (i32, i32),
    /// True while a statement runs.
    pub(super) is_running: bool,
}

impl RunningStatement {
    pub(super) fn new(database: Arc<DatabaseServer>, scope: ConnectionScope, key: (i32, i32)) -> Self {
        Self { database, scope, key, is_running: false }
    }
}

impl Drop for RunningStatement {
    fn drop(&mut self) {
        let Ok(runtime) = tokio::runtime::Handle::try_current() else { return };
        if !self.is_running {
            return;
        }
        let (database, key) = (Arc::clone(&self.database), self.key);
        let deadline = Instant::now() + TIME;
        let scope = ConnectionScope { deadline, ..self.scope.clone() };
        runtime.spawn(async move {
            let cancel = async {
                let mut server = database.reach(&scope).await.ok()?;
                let mut request = BytesMut::new();
                frontend::cancel_request(key.0, key.1, &mut request);
                server.write_all_buf(&mut request).await.ok()?;
                server.shutdown().await.ok()
            };
            // Without an answer, the server ends the statement at its own time-out.
            let _ = timeout_at(deadline, cancel).await;
        });
    }
}
