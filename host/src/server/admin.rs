//! The operator's own endpoint: metrics, health and a console, on a loopback address.

mod console;
mod gauges;
mod http;
mod live;
mod process_stats;
mod state;

use std::net::{SocketAddr, TcpListener as StdListener};
use std::sync::Arc;

use tokio::net::TcpListener;

use self::state::AdminState;
use super::listening::{ListenError, listen};
use crate::gateway::Gateway;
use crate::telemetry::Sink;

/// The endpoint before it serves.
pub(crate) struct AdminEndpoint {
    listener: StdListener,
    state: Arc<AdminState>,
}

/// Tells the endpoint that belljar stops.
pub(crate) struct StopNotice(Arc<AdminState>);

impl StopNotice {
    /// From now on, `/readyz` says that belljar is not ready.
    pub(crate) fn begin(&self) {
        self.0.stop();
    }
}

impl AdminEndpoint {
    /// Listens on `address`. Called before the second wall is raised: the wall forbids it, and the files of the process.
    ///
    /// # Errors
    /// The address is in use.
    pub(crate) fn bind(address: SocketAddr) -> Result<Self, ListenError> {
        let listener = listen(address)?;
        Ok(Self { listener, state: Arc::new(AdminState::new()) })
    }

    /// The sink whose events the metrics and the console count.
    pub(crate) fn observe(&self, sink: Sink) -> Sink {
        self.state.observe(sink)
    }

    /// The listener.
    pub(crate) fn listener(&self) -> &StdListener {
        &self.listener
    }

    /// How the endpoint learns that belljar stops.
    pub(crate) fn stop_notice(&self) -> StopNotice {
        StopNotice(Arc::clone(&self.state))
    }

    /// Serves in a task of its own, until the runtime ends.
    ///
    /// # Errors
    /// The runtime refuses the listener.
    pub(crate) fn start(self, gateway: Arc<Gateway>) -> std::io::Result<()> {
        self.state.set_gateway(gateway);
        let listener = TcpListener::from_std(self.listener)?;
        tracing::info!("the console is at http://{}/, metrics at /metrics", listener.local_addr()?);
        let (steps, live) = (Arc::clone(&self.state), Arc::clone(&self.state));
        tokio::spawn(async move { steps.count_steps().await });
        tokio::spawn(async move { live.live.run().await });
        tokio::spawn(http::serve(listener, self.state));
        Ok(())
    }
}
