//! A handler to test with, and that a plain request is answered as rmcp would have it answered.

use std::pin::Pin;
use std::time::Duration;

use rmcp::model::{
    ClientCapabilities, ClientJsonRpcMessage, Implementation, InitializeRequestParams, ServerJsonRpcMessage,
};
use rmcp::service::Service;
use serde_json::{Value, json};
use tokio_util::sync::CancellationToken;

use super::plain::{Nobody, Plain};
use super::*;
use crate::admission::Admission;
use crate::audit::Sink;
use crate::catalog::Catalog;
use crate::config::Watch;
use crate::gateway::consent::Consents;
use crate::gateway::watching::Watching;
use crate::sandbox::{Compile, NotCompiled, Options, Sandbox};

struct NoCompiler;

impl Compile for NoCompiler {
    fn compile(&self, _: Arc<[u8]>) -> Pin<Box<dyn Future<Output = Result<Vec<u8>, NotCompiled>> + Send + '_>> {
        Box::pin(async { Err(NotCompiled::once("nothing is compiled here".to_owned())) })
    }
}

/// A handler without mounts. To be called in a runtime.
pub(crate) fn handler(transport: &'static str) -> Handler {
    let compiler = Arc::new(NoCompiler);
    let sandbox = Sandbox::new(Options { calls: 1, cache: None, descriptors: 8, compiler }).unwrap();
    let catalog = Arc::new(Catalog::new(Budget::new(1 << 30)));
    catalog.settle();
    let gateway = Gateway::new(
        catalog,
        Arc::new(sandbox),
        Admission::new(1, Budget::new(1 << 30)),
        Sink::off(),
        Consents::new(&[0; 32], None),
        Watching::new(Watch::default(), None),
        Duration::from_secs(1),
    );
    Handler::new(Arc::new(gateway), Arc::new(Cursors::new(&[0; 32])), transport)
}

/// What rmcp makes of a message: the same parsing, and the same method of the same handler.
async fn by_rmcp(handler: &Handler, nobody: &Nobody, message: &Value) -> Value {
    let ClientJsonRpcMessage::Request(mut request) = serde_json::from_value(message.clone()).unwrap() else {
        panic!("no request: {message}");
    };
    let mut context = RequestContext::new(request.id.clone(), nobody.peer());
    std::mem::swap(&mut context.meta, rmcp::model::GetMeta::get_meta_mut(&mut request.request));
    let answer = match handler.handle_request(request.request, context).await {
        Ok(result) => ServerJsonRpcMessage::response(result, request.id),
        Err(error) => ServerJsonRpcMessage::error(error, Some(request.id)),
    };
    serde_json::to_value(answer).unwrap()
}

#[tokio::test]
async fn plain_requests_of_every_era_are_answered_as_rmcp_would() {
    let handler = handler("stdio");
    let revision = |meta: &str| json!({ "io.modelcontextprotocol/protocolVersion": meta, "io.modelcontextprotocol/clientCapabilities": {} });
    let metas = [Value::Null, json!({}), json!({ "progressToken": 1 }), revision("2026-07-28"), revision("2025-11-25")];
    let requests = [
        ("resources/read", json!({ "uri": "belljar://none/x" })),
        ("resources/read", json!({ "uri": "no uri" })),
        ("resources/read", json!({ "uri": "belljar://none/../x" })),
        ("resources/read", json!({ "uri": "x".repeat(5000) })),
        ("resources/list", json!({})),
        ("resources/list", json!({ "cursor": "made up" })),
        ("resources/templates/list", json!({})),
    ];
    let mut short = 0;
    for peer in [None, Some("2024-11-05"), Some("2025-06-18"), Some("2025-11-25")] {
        let about = peer.map(|version| {
            let client = Implementation::new("an older client", "1");
            let version: ProtocolVersion = serde_json::from_value(version.into()).unwrap();
            InitializeRequestParams::new(ClientCapabilities::default(), client).with_protocol_version(version)
        });
        let nobody = Nobody::with(handler.clone(), about);
        for meta in &metas {
            for (method, params) in &requests {
                let mut message = json!({ "jsonrpc": "2.0", "id": "a", "method": method, "params": params });
                if !meta.is_null() {
                    message["params"]["_meta"] = meta.clone();
                }
                let plain = Plain::read(message.to_string().as_bytes()).unwrap();
                if !plain.is_whole() && !plain.is_of_session(&nobody.peer()) {
                    continue;
                }
                short += 1;
                let (withdrawn, turn) = (CancellationToken::new(), Turn::default());
                let own = handler.answer(plain, nobody.peer(), withdrawn, &turn).await.message;
                let own: Value = serde_json::from_slice(&own).unwrap();
                assert_eq!(own, by_rmcp(&handler, &nobody, &message).await, "{peer:?} {message}");
            }
        }
    }
    // The whole ones of every peer, and those that leave it to one of the three that greeted.
    assert_eq!(short, requests.len() * (4 + 3 * 3));
}
