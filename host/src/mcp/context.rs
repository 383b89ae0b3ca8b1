//! The context of one request: its caller, and its revision of the protocol.

use std::sync::Arc;

use rmcp::RoleServer;
use rmcp::model::{ErrorData, ProtocolVersion};
use rmcp::service::{Peer, RequestContext as RmcpContext};
use tokio_util::sync::CancellationToken;

use super::exchange::Exchange;
use super::fault;
use super::request_meta::RequestMeta;
use crate::gateway::RequestRecord;
use crate::model::Fault;
use crate::policy::Caller;

/// The first revision without sessions: each request names its revision, client and capabilities.
pub(super) const STATELESS: ProtocolVersion = ProtocolVersion::V_2026_07_28;

/// The two kinds of revisions of the protocol.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum Era {
    /// Up to 2025-11-25: `initialize` opens a session and names the client and its capabilities once.
    Session,
    /// From 2026-07-28 on: each request names its revision, client and capabilities.
    Stateless,
}

impl Era {
    /// The era of a revision. A request without a known revision is of [`Era::Session`].
    pub(super) fn of(version: Option<&ProtocolVersion>) -> Self {
        if is_since(version, &STATELESS) { Self::Stateless } else { Self::Session }
    }

    /// The era of a request.
    pub(super) fn of_request(context: &RmcpContext<RoleServer>) -> Self {
        Self::of(context.protocol_version().as_ref())
    }

    /// True for revisions without sessions.
    pub(super) fn is_stateless(self) -> bool {
        self == Self::Stateless
    }
}

/// True if `version` is `first` or later.
pub(super) fn is_since(version: Option<&ProtocolVersion>, first: &ProtocolVersion) -> bool {
    version.is_some_and(|version| version.as_str() >= first.as_str())
}

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
