//! A handler for tests, and tests that the fast path answers a request as rmcp does.

use std::pin::Pin;
use std::sync::Arc;
use std::time::Duration;

use rmcp::model::{
    ClientCapabilities, ClientJsonRpcMessage, Implementation, InitializeRequestParams, ProtocolVersion,
    ServerJsonRpcMessage,
};
use rmcp::service::{RequestContext as RmcpContext, Service};
use serde_json::{Value, json};
use tokio_util::sync::CancellationToken;

use super::cursor::Cursors;
use super::direct::{DirectRequest, MessageSource};
use super::exchange::Exchange;
use super::request_meta::MetaCache;
use super::{DetachedPeer, Handler};
use crate::catalog::Catalog;
use crate::config::Watch;
use crate::gateway::Gateway;
use crate::gateway::consent::ConsentManager;
use crate::gateway::request_states::RequestStates;
use crate::gateway::subscriptions::Subscriptions;
use crate::limits::Admission;
use crate::limits::memory_budget::MemoryBudget;
use crate::policy::{Evidence, authenticate};
use crate::sandbox::{Compiler, Executor, NotCompiled, Sandbox, SandboxOptions};
use crate::telemetry::Sink;

struct NoCompiler;

impl Compiler for NoCompiler {
    fn compile(&self, _: Arc<[u8]>) -> Pin<Box<dyn Future<Output = Result<Vec<u8>, NotCompiled>> + Send + '_>> {
        Box::pin(async { Err(NotCompiled::transient("nothing is compiled here".to_owned())) })
    }
}

/// A handler without mounts. Needs a tokio runtime.
pub(crate) fn handler(transport: &'static str) -> Handler {
    let compiler = Arc::new(NoCompiler);
    let sandbox =
        Sandbox::new(SandboxOptions { calls: 1, cache: None, descriptors: 8, compiler, workers: None }).unwrap();
    let catalog = Arc::new(Catalog::new(MemoryBudget::new(1 << 30)));
    catalog.mark_loaded();
    let gateway = Gateway::new(
        catalog,
        Executor::Local(Arc::new(sandbox)),
        Admission::new(1, MemoryBudget::new(1 << 30)),
        Sink::off(),
        ConsentManager::new(RequestStates::new(&[0; 32], None), None),
        Subscriptions::new(Watch::default(), None),
        Duration::from_secs(1),
    );
    Handler::new(Arc::new(gateway), Arc::new(Cursors::new(&[0; 32])), transport, authenticate(Evidence::OwnUser))
}

/// The answer to a message that rmcp parses and dispatches.
async fn by_rmcp(handler: &Handler, detached: &DetachedPeer, message: &Value) -> Value {
    let ClientJsonRpcMessage::Request(mut request) = serde_json::from_value(message.clone()).unwrap() else {
        panic!("no request: {message}");
    };
    let mut context = RmcpContext::new(request.id.clone(), detached.peer().clone());
    std::mem::swap(&mut context.meta, rmcp::model::GetMeta::get_meta_mut(&mut request.request));
    let answer = match handler.handle_request(request.request, context).await {
        Ok(result) => ServerJsonRpcMessage::response(result, request.id),
        Err(error) => ServerJsonRpcMessage::error(error, Some(request.id)),
    };
    serde_json::to_value(answer).unwrap()
}

#[tokio::test]
async fn requests_of_the_fast_path_are_answered_as_rmcp_would() {
    let handler = handler("stdio");
    let revision = |version: &str| json!({ "io.modelcontextprotocol/protocolVersion": version, "io.modelcontextprotocol/clientCapabilities": {} });
    let metas = [Value::Null, json!({}), json!({ "progressToken": 1 }), revision("2026-07-28"), revision("2025-11-25")];
    let older = [Some("2024-11-05"), Some("2025-06-18"), Some("2025-11-25")];
    let reference = json!({ "type": "ref/resource", "uri": "belljar://none/{x}" });
    let requests = [
        ("resources/read", json!({ "uri": "belljar://none/x" })),
        ("resources/read", json!({ "uri": "no uri" })),
        ("resources/read", json!({ "uri": "belljar://none/../x" })),
        ("resources/read", json!({ "uri": "x".repeat(5000) })),
        ("resources/read", json!({ "uri": "belljar://none/x", "inputResponses": {} })),
        ("resources/read", json!({ "uri": "belljar://none/x", "requestState": "made up", "other": [1] })),
        ("resources/list", json!({})),
        ("resources/list", Value::Null),
        ("resources/list", json!({ "cursor": "made up" })),
        ("resources/templates/list", json!({})),
        ("completion/complete", json!({ "ref": reference, "argument": { "name": "x", "value": "" } })),
        ("tools/list", json!({})),
        ("tools/list", json!({ "cursor": "made up" })),
        ("tools/call", json!({ "name": "none" })),
        ("tools/call", json!({ "name": "list_resources", "arguments": { "limit": 1e300 } })),
        ("tools/call", json!({ "name": "read_resource", "arguments": { "uri": "belljar://none/x" } })),
        ("prompts/list", json!({})),
        ("prompts/list", json!({ "cursor": "made up" })),
        ("prompts/get", json!({ "name": "none" })),
        ("prompts/get", json!({ "name": "none", "arguments": { "a": 1 } })),
        ("server/discover", json!({})),
    ];
    let (mut dispatched, cancellation) = (0, CancellationToken::new());
    for peer in older.into_iter().chain([None, Some("2026-07-28")]) {
        let cache = MetaCache::default();
        let about = peer.map(|version| {
            let client = Implementation::new("an older client", "1");
            let version: ProtocolVersion = serde_json::from_value(version.into()).unwrap();
            InitializeRequestParams::new(ClientCapabilities::default(), client).with_protocol_version(version)
        });
        let detached = DetachedPeer::with(handler.clone(), about);
        for meta in &metas {
            for (method, params) in &requests {
                let mut message = json!({ "jsonrpc": "2.0", "id": "a", "method": method, "params": params });
                if params.is_null() {
                    message.as_object_mut().unwrap().remove("params");
                }
                if !meta.is_null() {
                    message["params"]["_meta"] = meta.clone();
                }
                let source = MessageSource { cache: &cache, session: Some(detached.peer()), is_stream: true };
                let Some(request) = DirectRequest::parse(message.to_string().as_bytes(), source) else {
                    continue;
                };
                dispatched += 1;
                let exchange = Exchange::default();
                let own = handler.answer(request, detached.peer(), &exchange, &cancellation);
                let own: Value = serde_json::from_slice(&own.await.message).unwrap();
                assert_eq!(own, by_rmcp(&handler, &detached, &message).await, "{peer:?} {message}");
            }
        }
    }
    // The fast path takes a request by its own `_meta`, whatever revision the peer named in `initialize`.
    let by_meta = requests.len() * 5;
    // It takes those of a session, but for `server/discover`.
    let of_session = requests.iter().filter(|(method, _)| *method != "server/discover").count();
    assert_eq!(dispatched, by_meta + older.len() * 3 * of_session);
}

#[tokio::test]
async fn an_evicted_request_is_answered_as_busy() {
    let handler = handler("stdio");
    let message = json!({ "jsonrpc": "2.0", "id": 1, "method": "resources/list", "params": { "_meta": {
        "io.modelcontextprotocol/protocolVersion": "2026-07-28", "io.modelcontextprotocol/clientCapabilities": {}
    } } });
    let source = MessageSource { cache: &MetaCache::default(), session: None, is_stream: false };
    let request = DirectRequest::parse(message.to_string().as_bytes(), source).unwrap();
    let (exchange, detached) = (Exchange::default(), DetachedPeer::new(handler.clone()));
    // No request begins while the outbox is full.
    handler.outbox().put(1 << 30);
    let cancellation = CancellationToken::new();
    let work = handler.answer(request, detached.peer(), &exchange, &cancellation);
    let eviction = async {
        tokio::task::yield_now().await;
        assert!(exchange.phase().evict());
    };
    let (answer, ()) = tokio::join!(work, eviction);
    let answer: Value = serde_json::from_slice(&answer.message).unwrap();
    assert_eq!(answer["error"]["data"]["kind"], "busy");
    assert!(answer["error"]["message"].as_str().unwrap().contains("waited for longest"), "{answer}");
}
