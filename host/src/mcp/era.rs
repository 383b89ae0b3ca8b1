//! The two kinds of revisions of the protocol: with sessions, and without.

use rmcp::RoleServer;
use rmcp::model::ProtocolVersion;
use rmcp::service::RequestContext as RmcpContext;

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
