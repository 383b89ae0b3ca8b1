//! The context of one request: its caller, and its revision of the protocol.

use std::sync::Arc;

use rmcp::RoleServer;
use rmcp::model::ErrorData;
use rmcp::service::Peer;
use tokio_util::sync::CancellationToken;

use super::era::Era;
use super::exchange::Exchange;
use super::fault;
use super::request_meta::RequestMeta;
use crate::gateway::RequestRecord;
use crate::model::Fault;
use crate::policy::Caller;

/// The context of one request.
pub(super) struct RequestContext<'a> {
    /// Cancelled when the client cancels the request.
    pub(super) cancellation: &'a CancellationToken,
    /// Receives the notifications and questions that the request causes.
    pub(super) peer: &'a Peer<RoleServer>,
    /// The `_meta` of the request.
    pub(super) meta: Arc<RequestMeta>,
    /// The state that the request shares with the transport, if the transport keeps any.
    pub(super) exchange: Option<&'a Exchange>,
    /// The caller.
    pub(super) caller: Caller,
    /// Records the request when it is dropped.
    pub(super) record: RequestRecord,
    /// The era of the request's revision.
    pub(super) era: Era,
    /// True if the client's revision has `resource_link` blocks in tool results (2025-06-18 and later).
    pub(super) supports_links: bool,
}

impl RequestContext<'_> {
    /// Stores the name of the tool or prompt that the request asks for, for its event.
    pub(super) fn set_name(&self, name: &str) {
        self.caller.request.iter().for_each(|request| request.set_name(name));
    }

    /// Ends the request with the result of its method.
    pub(super) fn end<T>(&self, result: Result<T, ErrorData>) -> Result<T, ErrorData> {
        if !self.record.is_done() {
            self.record.set_outcome(result.as_ref().map(|_| ()).map_err(fault::event_error));
        }
        result
    }

    /// The error of a read that needs consent, for a client that cannot ask its user for it.
    pub(super) fn consent_unavailable(&self, fault: Fault) -> ErrorData {
        match self.era {
            Era::Stateless => fault::consent_unavailable(fault),
            Era::Session => fault::to_error(fault),
        }
    }
}
