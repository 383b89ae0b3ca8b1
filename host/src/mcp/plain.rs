//! The short way of a plain request: one that reads or lists, and says for itself which revision, client and capabilities
//! it is of (2026-07-28). Nearly all are.
//!
//! On its own way rmcp parses a message into everything that it could be, writes it as JSON again to compare it with the
//! headers, and serves it by three tasks and two channels. That costs several times what the read does, and nothing of it
//! is needed for a request that stands for itself. What is not exactly plain goes rmcp's way; so does whatever else a client
//! can say. A plain request is answered by the same methods of the same handler, in the same words.

use rmcp::RoleServer;
use rmcp::model::{
    ClientRequest, ErrorCode, ErrorData, InitializeRequestParams, ListResourceTemplatesRequest, ListResourcesRequest,
    PaginatedRequestParams, ProtocolVersion, ReadResourceRequestParams, RequestId, RequestMetaObject,
    ServerJsonRpcMessage, ServerResult,
};
use rmcp::service::{Peer, RequestContext, RunningService, Service};
use rmcp::transport::Transport;
use serde::Deserialize;
use tokio_util::sync::CancellationToken;

use super::line::{self, Unwritten};
use super::turn::Turn;
use super::{Handler, consent, fault};
use crate::gateway::Read;

/// A request that reads or lists.
pub struct Plain {
    id: RequestId,
    what: What,
    meta: RequestMetaObject,
    peer: Option<u64>,
}

enum What {
    Read(String),
    List(Option<String>),
    ListTemplates(Option<String>),
}

impl Plain {
    /// Reads a message; none when it is another request, or has anything that these have not.
    pub fn read(message: &[u8]) -> Option<Self> {
        #[derive(Deserialize)]
        #[serde(deny_unknown_fields)]
        struct Message<'a> {
            jsonrpc: &'a str,
            id: RequestId,
            method: &'a str,
            params: Params,
        }
        #[derive(Deserialize)]
        #[serde(deny_unknown_fields)]
        struct Params {
            uri: Option<String>,
            cursor: Option<String>,
            #[serde(rename = "_meta", default)]
            meta: RequestMetaObject,
        }
        let Message { jsonrpc, id, method, params: Params { uri, cursor, meta } } =
            serde_json::from_slice(message).ok()?;
        let what = match (method, uri) {
            ("resources/read", Some(uri)) if cursor.is_none() => What::Read(uri),
            ("resources/list", None) => What::List(cursor),
            ("resources/templates/list", None) => What::ListTemplates(cursor),
            _ => return None,
        };
        (jsonrpc == "2.0").then_some(Self { id, what, meta, peer: None })
    }

    /// The same from a connection that is not the handler's own.
    #[must_use]
    pub fn over(self, peer: u64) -> Self {
        Self { peer: Some(peer), ..self }
    }

    /// Whether it says for itself all that a request of this revision has to.
    pub fn is_whole(&self) -> bool {
        self.meta.protocol_version() == Some(REVISION) && self.meta.missing_required_keys(&REVISION).is_empty()
    }

    /// Whether it leaves to its connection what that agreed on, as older clients do.
    pub fn is_of_session(&self, peer: &Peer<RoleServer>) -> bool {
        self.meta.protocol_version().is_none() && peer.peer_info().is_some()
    }

    /// Which request it is.
    pub fn id(&self) -> &RequestId {
        &self.id
    }

    /// Its method, and what it is about, where that has a name: what an HTTP request repeats in its head.
    pub fn title(&self) -> (&'static str, Option<&str>) {
        match &self.what {
            What::Read(uri) => ("resources/read", Some(uri)),
            What::List(_) => ("resources/list", None),
            What::ListTemplates(_) => ("resources/templates/list", None),
        }
    }
}

/// The revision of plain requests.
pub const REVISION: ProtocolVersion = ProtocolVersion::V_2026_07_28;

/// The peer of requests that have no connection to speak of: there is nobody to tell anything.
pub struct Nobody {
    peer: Peer<RoleServer>,
    _running: RunningService<RoleServer, Handler>,
}

impl Nobody {
    /// Only a running service has a peer, so there is one that is never asked anything.
    pub fn new(handler: Handler) -> Self {
        Self::with(handler, None)
    }

    /// One that is said to have greeted like this.
    pub(super) fn with(handler: Handler, greeting: Option<InitializeRequestParams>) -> Self {
        let running = rmcp::service::serve_directly(handler, Silence, greeting);
        Self { peer: running.peer().clone(), _running: running }
    }

    /// The peer.
    pub fn peer(&self) -> Peer<RoleServer> {
        self.peer.clone()
    }
}

/// A transport on which nothing comes, and nothing goes.
struct Silence;

impl Transport<RoleServer> for Silence {
    type Error = std::convert::Infallible;

    fn send(&mut self, _: ServerJsonRpcMessage) -> impl Future<Output = Result<(), Self::Error>> + Send + 'static {
        std::future::ready(Ok(()))
    }

    async fn receive(&mut self) -> Option<rmcp::model::ClientJsonRpcMessage> {
        std::future::pending().await
    }

    async fn close(&mut self) -> Result<(), Self::Error> {
        Ok(())
    }
}

/// The answer to a plain request.
pub struct Answer {
    /// A whole message, without a line break.
    pub message: Vec<u8>,
    /// Whether it is the error of a client that cannot do what the request takes: over HTTP that has a status of its own.
    pub lacks_capability: bool,
}

impl Handler {
    /// Answers a plain request, which is whole or of the session of `peer`, by a whole message without a line break. Dropping
    /// the future ends what runs for it; so does `withdrawn`. `turn` begins with the call.
    pub async fn answer(
        &self,
        plain: Plain,
        peer: Peer<RoleServer>,
        withdrawn: CancellationToken,
        turn: &Turn,
    ) -> Answer {
        let Plain { id, what, meta, peer: own } = plain;
        let mut context = RequestContext::new(id.clone(), peer);
        (context.ct, context.meta) = (withdrawn, meta);
        let is_modern = super::is_modern(&context);
        let page = |cursor| PaginatedRequestParams::default().with_cursor(cursor);
        let answer = match what {
            What::Read(uri) => match self.read(&ReadResourceRequestParams::new(uri), &context, own, Some(turn)).await {
                Ok(Read::Given(reading, mount, mut bill)) => {
                    let (bytes, budget) = (line::bytes(&reading), self.budget());
                    match bill.charge(bytes, || line::reading(id.clone(), reading, &mount, is_modern, budget)) {
                        Ok(message) => return Answer { message, lacks_capability: false },
                        Err(Unwritten::NoMemory(why)) => Err(fault::busy(&why)),
                        Err(Unwritten::Internal(why)) => Err(fault::internal(why)),
                    }
                }
                Ok(Read::CannotAsk(fault)) => Err(fault::to_error(fault)),
                Ok(Read::Asks(question)) => Ok(ServerResult::InputRequiredResult(consent::question(question))),
                Err(error) => Err(if is_modern { modern(error) } else { error }),
            },
            What::List(cursor) => {
                let request = ListResourcesRequest::with_param(page(cursor));
                Box::pin(self.handle_request(ClientRequest::ListResourcesRequest(request), context)).await
            }
            What::ListTemplates(cursor) => {
                let request = ListResourceTemplatesRequest::with_param(page(cursor));
                Box::pin(self.handle_request(ClientRequest::ListResourceTemplatesRequest(request), context)).await
            }
        };
        let id_again = id.clone();
        let lacks = |error: &ErrorData| error.code == ErrorCode::MISSING_REQUIRED_CLIENT_CAPABILITY;
        let lacks_capability = answer.as_ref().is_err_and(lacks);
        let message = match answer {
            Ok(result) => ServerJsonRpcMessage::response(result, id),
            Err(error) => ServerJsonRpcMessage::error(error, Some(id)),
        };
        Answer { message: written(&message, id_again), lacks_capability }
    }
}

/// A message as it is sent. One that cannot be written is answered by what can: whoever asked waits for an answer.
fn written(message: &ServerJsonRpcMessage, id: RequestId) -> Vec<u8> {
    serde_json::to_vec(message)
        .or_else(|why| {
            let error = fault::internal(format!("an answer cannot be written: {why}"));
            serde_json::to_vec(&ServerJsonRpcMessage::error(error, Some(id)))
        })
        .unwrap_or_else(|_| UNWRITTEN.as_bytes().to_vec())
}

/// What is answered when not even an error can be written.
const UNWRITTEN: &str = r#"{"jsonrpc":"2.0","id":null,"error":{"code":-32603,"message":"internal error"}}"#;

/// What rmcp does with an error on its way to a peer of this revision.
fn modern(mut error: ErrorData) -> ErrorData {
    if error.code == ErrorCode::RESOURCE_NOT_FOUND {
        error.code = ErrorCode::INVALID_PARAMS;
    }
    error
}
