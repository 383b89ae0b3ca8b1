//! What the `_meta` of a request says: the revision, the client, and what the client supports.

use std::sync::{Arc, Mutex, PoisonError};

use rmcp::RoleServer;
use rmcp::model::{
    ElicitationCapability, Implementation, MetaObject, ProgressToken, ProtocolVersion, RequestMetaObject,
};
use rmcp::service::{Peer, RequestContext as RmcpContext};

use super::era::{Era, STATELESS};
use crate::model::text;

/// Characters of the name and version of a client.
const MAX_CLIENT: usize = 120;

/// The largest `_meta` that is kept, in bytes. That of an ordinary client has some 200.
const MAX_KEPT: usize = 2 << 10;

/// The `_meta` of a request.
#[derive(Clone, Debug)]
pub(super) struct RequestMeta {
    /// The revision of the request.
    pub(super) version: Option<ProtocolVersion>,
    /// The client's name and version.
    pub(super) client: Option<Arc<str>>,
    /// How the client can ask a person. `None`: not at all, or its session says it.
    pub(super) elicitation: Option<ElicitationCapability>,
    /// Where reports of progress belong. `None`: the client wants none.
    pub(super) progress_token: Option<ProgressToken>,
    /// The span that the request belongs to, as W3C Trace Context writes it.
    pub(super) traceparent: Option<Arc<str>>,
}

impl RequestMeta {
    fn new(version: Option<ProtocolVersion>, client: Option<Implementation>, meta: &RequestMetaObject) -> Self {
        Self {
            version,
            client: client.as_ref().map(name_and_version),
            elicitation: None,
            progress_token: meta.get_progress_token(),
            traceparent: meta.get_traceparent().map(Into::into),
        }
    }

    /// The `_meta` of a stateless request. `None` if it lacks a required key: the revision 2026-07-28, and the client's
    /// capabilities.
    pub(super) fn of_stateless(meta: &RequestMetaObject) -> Option<Self> {
        let capabilities = meta.client_capabilities()?;
        let version = meta.protocol_version().filter(|version| *version == STATELESS)?;
        Some(Self { elicitation: capabilities.elicitation, ..Self::new(Some(version), meta.client_info(), meta) })
    }

    /// The `_meta` of a request that rmcp dispatched. What it lacks, the session says.
    pub(super) fn of_rmcp(context: &RmcpContext<RoleServer>) -> Self {
        let version = context.protocol_version();
        let elicitation = match Era::of(version.as_ref()) {
            Era::Stateless => context.client_capabilities().and_then(|capabilities| capabilities.elicitation),
            Era::Session => None,
        };
        Self { elicitation, ..Self::new(version, context.client_info(), &context.meta) }
    }

    /// The same, with the client that opened the session of `peer` if the request names none.
    pub(super) fn or_of_session(self: Arc<Self>, peer: &Peer<RoleServer>) -> Arc<Self> {
        match self.client.is_none().then(|| peer.peer_info()).flatten() {
            None => self,
            Some(session) => Arc::new(Self { client: Some(name_and_version(&session.client_info)), ..(*self).clone() }),
        }
    }

    /// True if other requests of the client have the same `_meta`.
    fn is_lasting(&self) -> bool {
        self.progress_token.is_none() && self.traceparent.is_none()
    }
}

fn name_and_version(client: &Implementation) -> Arc<str> {
    text::cleaned([client.name.as_str(), " ", &client.version].concat(), MAX_CLIENT).into()
}

/// The last `_meta` of a connection. A client repeats it with each request, so most need not be parsed.
#[derive(Debug, Default)]
pub struct MetaCache(Mutex<Option<(Box<str>, Arc<RequestMeta>)>>);

impl MetaCache {
    /// The `_meta` that `json` says. `None` if it is not that of a stateless request.
    pub(super) fn parse(&self, json: &str) -> Option<Arc<RequestMeta>> {
        let mut last = self.0.lock().unwrap_or_else(PoisonError::into_inner);
        if let Some((_, meta)) = last.as_ref().filter(|(known, _)| **known == *json) {
            return Some(Arc::clone(meta));
        }
        let object: MetaObject = serde_json::from_str(json).ok()?;
        let meta = Arc::new(RequestMeta::of_stateless(&RequestMetaObject(object))?);
        if meta.is_lasting() && json.len() <= MAX_KEPT {
            *last = Some((json.into(), Arc::clone(&meta)));
        }
        Some(meta)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn json(client: &str, more: &str) -> String {
        format!(
            r#"{{"io.modelcontextprotocol/protocolVersion":"2026-07-28","io.modelcontextprotocol/clientInfo":{{"name":"{client}","version":"1"}},"io.modelcontextprotocol/clientCapabilities":{{"elicitation":{{}}}}{more}}}"#
        )
    }

    #[test]
    fn a_repeated_meta_is_parsed_once_and_another_one_is_never_taken_for_it() {
        let cache = MetaCache::default();
        let first = cache.parse(&json("a", "")).unwrap();
        assert_eq!(first.client.as_deref(), Some("a 1"));
        assert!(first.elicitation.is_some());
        assert!(Arc::ptr_eq(&first, &cache.parse(&json("a", "")).unwrap()));
        assert_eq!(cache.parse(&json("b", "")).unwrap().client.as_deref(), Some("b 1"));
        assert_eq!(cache.parse(&json("a", "")).unwrap().client.as_deref(), Some("a 1"));
    }

    #[test]
    fn the_meta_of_one_request_only_is_not_kept() {
        let cache = MetaCache::default();
        let kept = cache.parse(&json("a", "")).unwrap();
        let long = format!(r#","x":"{}""#, "y".repeat(MAX_KEPT));
        let once = [r#","progressToken":7"#, r#","traceparent":"00-1-2-01""#, &long];
        for more in once {
            let first = cache.parse(&json("b", more)).unwrap();
            assert!(!Arc::ptr_eq(&first, &cache.parse(&json("b", more)).unwrap()), "{more}");
        }
        assert!(Arc::ptr_eq(&kept, &cache.parse(&json("a", "")).unwrap()));
    }

    #[test]
    fn an_incomplete_meta_is_not_that_of_a_stateless_request() {
        let cache = MetaCache::default();
        for bad in [
            "{}",
            "7",
            r#"{"io.modelcontextprotocol/protocolVersion":"2026-07-28"}"#,
            r#"{"io.modelcontextprotocol/clientCapabilities":{}}"#,
            r#"{"io.modelcontextprotocol/protocolVersion":"2025-11-25","io.modelcontextprotocol/clientCapabilities":{}}"#,
        ] {
            assert!(cache.parse(bad).is_none(), "{bad}");
        }
    }
}
