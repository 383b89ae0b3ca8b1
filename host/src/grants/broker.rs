//! The front's side of what a call in a worker process asks for.

use tokio::net::UnixStream;

use super::front::FrontRequest;
use super::grant::CallScope;
use super::list::MountGrants;

/// What the front does for one call of a worker.
pub struct Broker;

impl Broker {
    /// Serves one stream of the worker until it ends.
    pub async fn serve(&self, _: FrontRequest, _: UnixStream) {}
}

impl MountGrants {
    /// What the front does for a call of a worker.
    pub fn broker(&self, _: &CallScope<'_>) -> Broker {
        Broker
    }
}
