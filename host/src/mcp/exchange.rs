//! The state of one request that the transport and the handler share: its connection, its phase and the cost of its
//! answer. The cost outlives the handler, because the answer is encoded after the handler is done.

use std::sync::{Arc, Mutex, MutexGuard, PoisonError};

use http::request::Parts;
use rmcp::RoleServer;
use rmcp::service::RequestContext as RmcpContext;

use super::request_phase::RequestPhase;
use crate::gateway::response_cost::ResponseCost;
use crate::policy::Principal;

/// The connection and the principal of a request, as the transport knows them.
#[derive(Clone, Copy, Debug)]
pub struct RequestSource {
    /// The number of the connection.
    pub peer: u64,
    /// The principal that this request was authenticated as.
    pub principal: Principal,
}

/// The state of one request that the transport and the handler share. For a request that rmcp dispatches, the transport
/// puts it into the request's extensions and keeps a clone of the `Arc`.
#[derive(Default)]
pub struct Exchange {
    source: Option<RequestSource>,
    phase: RequestPhase,
    /// The cost of the answer and the bytes of its contents. `None` until the handler is done.
    cost: Mutex<Option<(ResponseCost, usize)>>,
}

impl Exchange {
    /// The state of a request that comes from `source` and has the phase `phase`.
    pub fn new(source: RequestSource, phase: RequestPhase) -> Self {
        Self { source: Some(source), phase, ..Self::default() }
    }

    /// The shared state of a request that rmcp dispatched, if its transport keeps any.
    pub(super) fn of(context: &RmcpContext<RoleServer>) -> Option<&Self> {
        let parts = context.extensions.get::<Parts>().and_then(|parts| parts.extensions.get::<Arc<Self>>());
        parts.or_else(|| context.extensions.get()).map(Arc::as_ref)
    }

    /// The connection and principal of the request. `None` if the handler's own ones apply.
    pub(super) fn source(&self) -> Option<RequestSource> {
        self.source
    }

    /// The phase of the request.
    pub fn phase(&self) -> &RequestPhase {
        &self.phase
    }

    fn lock(&self) -> MutexGuard<'_, Option<(ResponseCost, usize)>> {
        self.cost.lock().unwrap_or_else(PoisonError::into_inner)
    }

    /// Stores the cost of an answer with `bytes` bytes of contents for the code that encodes it.
    pub(super) fn set_cost(&self, cost: ResponseCost, bytes: usize) {
        *self.lock() = Some((cost, bytes));
    }

    /// Takes the cost, and the bytes of the contents.
    pub(super) fn take_cost_and_size(&self) -> Option<(ResponseCost, usize)> {
        self.lock().take()
    }

    /// Takes the cost of the answer. `None` until the handler is done.
    pub fn take_cost(&self) -> Option<ResponseCost> {
        self.take_cost_and_size().map(|(cost, _)| cost)
    }
}
