//! What the `_meta` of a request says: the revision, the client, and what the client supports.

use std::sync::{Arc, Mutex, PoisonError};

use rmcp::RoleServer;
use rmcp::model::{
    ElicitationCapability, Implementation, InitializeRequestParams, MetaObject, ProgressToken, ProtocolVersion,
    RequestMetaObject,
};
use rmcp::service::{Peer, RequestContext as RmcpContext};

use super::era::{Era, STATELESS};
use crate::model::text;

/// Characters of the name and version of a client.
const MAX_CLIENT: usize = 120;

/// How the keys of the protocol begin. With them, a request says what a session says otherwise.
const PROTOCOL_PREFIX: &str = "io.modelcontextprotocol/";

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

    /// The `_meta` of the requests of a session, which repeat nothing of this. `None` if `client` opened no session with it.
    fn of_session(client: &InitializeRequestParams) -> Option<Self> {
        let version = Some(client.protocol_version.clone());
        let is_session = Era::of(version.as_ref()) == Era::Session;
        let client = Some(client.client_info.clone());
        is_session.then(|| Self::new(version, client, &RequestMetaObject::default()))
    }

    /// The same for a request of the session that has this `_meta`. `None` if the request says itself what the session says.
    fn with_own(self: Arc<Self>, meta: &RequestMetaObject) -> Option<Arc<Self>> {
        if meta.0.keys().any(|key| key.starts_with(PROTOCOL_PREFIX)) {
            return None;
        }
        let own = Self::new(None, None, meta);
        let (progress_token, traceparent) = (own.progress_token, own.traceparent);
        Some(match (&progress_token, &traceparent) {
            (None, None) => self,
            _ => Arc::new(Self { progress_token, traceparent, ..(*self).clone() }),
        })
    }

    /// True if other requests of the client have the same `_meta`.
    fn is_lasting(&self) -> bool {
        self.progress_token.is_none() && self.traceparent.is_none()
    }
}

fn name_and_version(client: &Implementation) -> Arc<str> {
    text::cleaned([client.name.as_str(), " ", &client.version].concat(), MAX_CLIENT).into()
}

/// The `_meta` of the requests of a connection. A client repeats it with each request, or its session says it once, so most
/// need not be parsed.
#[derive(Debug, Default)]
pub struct MetaCache {
    /// The last one, with its JSON.
    last: Mutex<Option<(Box<str>, Arc<RequestMeta>)>>,
    /// That of the session, with what opened it.
    session: Mutex<Option<(Arc<InitializeRequestParams>, Arc<RequestMeta>)>>,
}

impl MetaCache {
    /// The `_meta` that `json` says. Without `json`, or for what it lacks, that of the session of `peer`. `None` if it is not
    /// that of a stateless request, and there is no session.
    pub(super) fn parse(&self, json: Option<&str>, peer: Option<&Peer<RoleServer>>) -> Option<Arc<RequestMeta>> {
        let Some(json) = json else { return self.of_object(None, peer) };
        let mut last = self.last.lock().unwrap_or_else(PoisonError::into_inner);
        if let Some((_, meta)) = last.as_ref().filter(|(known, _)| **known == *json) {
            return Some(Arc::clone(meta));
        }
        let object: MetaObject = serde_json::from_str(json).ok()?;
        let meta = self.of_object(Some(&RequestMetaObject(object)), peer)?;
        // What a session says can change, so it is not kept by the JSON of a request.
        if Era::of(meta.version.as_ref()).is_stateless() && meta.is_lasting() && json.len() <= MAX_KEPT {
            *last = Some((json.into(), Arc::clone(&meta)));
        }
        Some(meta)
    }

    /// As [`MetaCache::parse`].
    pub(super) fn of_object(
        &self,
        meta: Option<&RequestMetaObject>,
        peer: Option<&Peer<RoleServer>>,
    ) -> Option<Arc<RequestMeta>> {
        let Some(meta) = meta else { return self.of_session(peer?) };
        match RequestMeta::of_stateless(meta) {
            Some(stateless) => Some(Arc::new(stateless)),
            None => self.of_session(peer?)?.with_own(meta),
        }
    }

    /// The `_meta` of the session of `peer`. `None` if it has none.
    fn of_session(&self, peer: &Peer<RoleServer>) -> Option<Arc<RequestMeta>> {
        let client = peer.peer_info()?;
        let mut session = self.session.lock().unwrap_or_else(PoisonError::into_inner);
        // A client can send `initialize` again.
        if let Some((_, meta)) = session.as_ref().filter(|(known, _)| Arc::ptr_eq(known, &client)) {
            return Some(Arc::clone(meta));
        }
        let meta = Arc::new(RequestMeta::of_session(&client)?);
        *session = Some((client, Arc::clone(&meta)));
        Some(meta)
    }
}

#[cfg(test)]
mod tests {
    use rmcp::model::{ClientCapabilities, NumberOrString};

    use super::super::DetachedPeer;
    use super::super::tests::handler;
    use super::*;

    fn json(client: &str, more: &str) -> String {
        format!(
            r#"{{"io.modelcontextprotocol/protocolVersion":"2026-07-28","io.modelcontextprotocol/clientInfo":{{"name":"{client}","version":"1"}},"io.modelcontextprotocol/clientCapabilities":{{"elicitation":{{}}}}{more}}}"#
        )
    }

    fn parse(cache: &MetaCache, json: &str) -> Option<Arc<RequestMeta>> {
        cache.parse(Some(json), None)
    }

    #[test]
    fn a_repeated_meta_is_parsed_once_and_another_one_is_never_taken_for_it() {
        let cache = MetaCache::default();
        let first = parse(&cache, &json("a", "")).unwrap();
        assert_eq!(first.client.as_deref(), Some("a 1"));
        assert!(first.elicitation.is_some());
        assert!(Arc::ptr_eq(&first, &parse(&cache, &json("a", "")).unwrap()));
        assert_eq!(parse(&cache, &json("b", "")).unwrap().client.as_deref(), Some("b 1"));
        assert_eq!(parse(&cache, &json("a", "")).unwrap().client.as_deref(), Some("a 1"));
    }

    #[test]
    fn the_meta_of_one_request_only_is_not_kept() {
        let cache = MetaCache::default();
        let kept = parse(&cache, &json("a", "")).unwrap();
        let long = format!(r#","x":"{}""#, "y".repeat(MAX_KEPT));
        let once = [r#","progressToken":7"#, r#","traceparent":"00-1-2-01""#, &long];
        for more in once {
            let first = parse(&cache, &json("b", more)).unwrap();
            assert!(!Arc::ptr_eq(&first, &parse(&cache, &json("b", more)).unwrap()), "{more}");
        }
        assert!(Arc::ptr_eq(&kept, &parse(&cache, &json("a", "")).unwrap()));
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
            assert!(parse(&cache, bad).is_none(), "{bad}");
        }
    }

    fn greeting(name: &str, version: ProtocolVersion) -> InitializeRequestParams {
        let client = Implementation::new(name, "1");
        InitializeRequestParams::new(ClientCapabilities::default(), client).with_protocol_version(version)
    }

    #[tokio::test]
    async fn a_request_of_a_session_has_what_its_session_says() {
        let older = greeting("a", ProtocolVersion::V_2025_11_25);
        let detached = DetachedPeer::with(handler("stdio"), Some(older));
        let (cache, peer) = (MetaCache::default(), Some(detached.peer()));
        let first = cache.parse(None, peer).unwrap();
        assert_eq!(first.version, Some(ProtocolVersion::V_2025_11_25));
        assert_eq!(first.client.as_deref(), Some("a 1"));
        for same in [None, Some("{}"), Some(r#"{"example.com/x":1}"#)] {
            assert!(Arc::ptr_eq(&first, &cache.parse(same, peer).unwrap()), "{same:?}");
        }
        let own = cache.parse(Some(r#"{"progressToken":7,"traceparent":"00-1-2-01"}"#), peer).unwrap();
        assert_eq!(own.progress_token, Some(ProgressToken(NumberOrString::Number(7))));
        assert_eq!((own.traceparent.as_deref(), own.client.as_deref()), (Some("00-1-2-01"), Some("a 1")));
        assert!(Arc::ptr_eq(&first, &cache.parse(None, peer).unwrap()), "the next request has no token");
        // rmcp decides about requests that say it themselves.
        for own in ["protocolVersion\":\"2025-06-18\"", "clientInfo\":{\"name\":\"b\",\"version\":\"1\"}"] {
            let own = format!("{{\"{PROTOCOL_PREFIX}{own}}}");
            assert!(cache.parse(Some(&own), peer).is_none(), "{own}");
        }
        assert_eq!(cache.parse(Some(&json("b", "")), peer).unwrap().client.as_deref(), Some("b 1"));
        detached.peer().set_peer_info(greeting("c", ProtocolVersion::V_2025_06_18));
        for meta in [None, Some("{}")] {
            let again = cache.parse(meta, peer).unwrap();
            assert_eq!(again.client.as_deref(), Some("c 1"), "a client can send `initialize` again");
            assert_eq!(again.version, Some(ProtocolVersion::V_2025_06_18));
        }
    }

    #[tokio::test]
    async fn without_a_session_a_request_needs_a_meta_of_its_own() {
        let cache = MetaCache::default();
        for greeting in [None, Some(greeting("a", STATELESS))] {
            let detached = DetachedPeer::with(handler("stdio"), greeting);
            for lacking in [None, Some("{}"), Some(r#"{"progressToken":7}"#)] {
                assert!(cache.parse(lacking, Some(detached.peer())).is_none(), "{lacking:?}");
                assert!(cache.parse(lacking, None).is_none(), "{lacking:?}");
            }
        }
    }
}
