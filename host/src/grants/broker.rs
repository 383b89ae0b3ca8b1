//! The broker: what the front does for one call in a worker process. It decides on requests, connections and files in
//! memory, makes them, and counts their traffic, with the code that serves a call in the front's own process.
//!
//! The worker is not trusted: the guest may have taken it over. Every length and every text of a stream is checked, and
//! a stream with a malformed frame ends.

use std::pin::Pin;
use std::sync::Arc;

use tokio::net::UnixStream;
use tokio::time::{Instant, timeout_at};

use super::call_record::CallRecord;
use super::file_exchange;
use super::frames::FrameError;
use super::front::FrontRequest;
use super::grant::CallScope;
use super::http::{HttpBroker, HttpCallState};
use super::memory_directory::MemoryDirectory;
use super::sockets::{self, SocketsCallState};
use crate::model::MountName;

/// Serves one stream. Ends with the stream, or with an error if the worker broke off or violates the protocol.
pub type Serving = Pin<Box<dyn Future<Output = Result<(), FrameError>> + Send>>;

/// What the front has and does for one call in a worker process. Made by [`super::MountGrants::broker`].
pub struct Broker {
    http: HttpBroker,
    sockets: SocketsCallState,
    memory: Vec<Arc<dyn MemoryDirectory>>,
    mount: MountName,
    record: CallRecord,
    deadline: Instant,
}

impl Broker {
    pub(super) fn new(
        http: HttpCallState,
        sockets: SocketsCallState,
        memory: Vec<Arc<dyn MemoryDirectory>>,
        scope: &CallScope<'_>,
    ) -> Self {
        Self {
            http: HttpBroker::new(http),
            sockets,
            memory,
            mount: scope.mount.clone(),
            record: scope.record.clone(),
            deadline: scope.deadline,
        }
    }

    /// Serves one stream, until shortly after the deadline of the call. Dropping the future ends everything that it does.
    ///
    /// Call this function in the order in which the worker opened the streams: the requests of a call are decided on in
    /// this order, whenever the futures are polled.
    pub fn serve(&self, request: FrontRequest, stream: UnixStream) -> Serving {
        let serving: Serving = match request {
            FrontRequest::Exchange => Box::pin(self.http.serve(stream)),
            FrontRequest::Connect(host, port) => {
                Box::pin(sockets::serve_connection(&self.sockets, &host, port, stream))
            }
            FrontRequest::File(kind, name) => {
                let dir = self.memory.iter().find(|dir| dir.kind() == kind).cloned();
                Box::pin(file_exchange::serve(dir, name, self.mount.clone(), self.record.clone(), stream))
            }
        };
        let deadline = self.deadline;
        // After the deadline the call has ended, and with it the stream.
        Box::pin(async move { timeout_at(deadline, serving).await.unwrap_or(Ok(())) })
    }
}

#[cfg(test)]
pub(super) mod tests;
