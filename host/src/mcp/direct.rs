//! The fast path: requests that are dispatched without rmcp's service loop. These are the requests of revision 2026-07-28,
//! and those of a session. rmcp opens sessions, and serves all other messages.
//!
//! rmcp's loop runs each request in a task of its own, and sends the answer through a channel to another one. That wakes
//! a second thread. For each request of a stateless HTTP connection, rmcp starts a service: three tasks and two channels.
//! It parses the message into each possible type, and serializes it again to compare it with the headers. `cargo xtask
//! bench --only floor` measures that cost. The fast path parses a message once, and calls the same method of the same
//! handler. Most requests are reads, so their parameters and answers have no type of rmcp in between. Any other message
//! goes to rmcp, which serves or refuses it.

use std::sync::Arc;

use rmcp::RoleServer;
use rmcp::model::{
    CallToolRequest, ClientRequest, CompleteRequest, DiscoverRequest, DiscoverRequestParams, ErrorCode, ErrorData,
    GetPromptRequest, GetSkillRequest, InputResponses, ListPromptsRequest, ListResourceTemplatesRequest,
    ListResourcesRequest, ListSkillsRequest, ListToolsRequest, ReadResourceDirectoryRequest, ReadResourceRequest,
    ReadResourceRequestParams, ReadResourceResponse, RequestId, RequestMetaObject, RequestParamsMeta,
    ServerJsonRpcMessage, ServerResult,
};
use rmcp::service::Peer;
use serde::Deserialize;
use serde::de::DeserializeOwned;
use serde_json::value::RawValue;
use tokio_util::sync::CancellationToken;

use super::context::RequestContext;
use super::era::Era;
use super::exchange::Exchange;
use super::handler::Handler;
use super::methods::recorded_method;
use super::request_meta::{MetaCache, RequestMeta};
use super::requests::{ReadAnswer, ServedReading};
use super::{consent, convert, encode, encode_reading, fault, tools};
use crate::policy::Principal;

/// A request whose `_meta` names revision 2026-07-28 and the client's capabilities, or one of a session.
pub struct DirectRequest {
    id: RequestId,
    /// In a box, because it has half a kilobyte and is handed on by each layer.
    request: Box<ClientRequest>,
    meta: Arc<RequestMeta>,
}

/// A JSON-RPC request. Its parameters are parsed when its method is known.
#[derive(Deserialize)]
#[serde(deny_unknown_fields)]
struct Envelope<'a> {
    jsonrpc: &'a str,
    id: RequestId,
    method: &'a str,
    /// `None` if it has none: requests for a list need none.
    #[serde(borrow)]
    params: Option<&'a RawValue>,
}

/// The parameters of `server/discover`.
#[derive(Deserialize)]
#[serde(deny_unknown_fields)]
struct DiscoverParams {
    #[serde(rename = "_meta")]
    meta: RequestMetaObject,
}

/// The parameters of `resources/read`.
#[derive(Deserialize)]
#[serde(rename_all = "camelCase")]
struct ReadParams<'a> {
    #[serde(rename = "_meta", borrow)]
    meta: Option<&'a RawValue>,
    uri: String,
    input_responses: Option<InputResponses>,
    request_state: Option<String>,
}

/// Where a message comes from.
#[derive(Clone, Copy)]
pub struct MessageSource<'a> {
    /// The `_meta` of its earlier messages.
    pub cache: &'a MetaCache,
    /// The client of its session. `None` if it belongs to none.
    pub session: Option<&'a Peer<RoleServer>>,
    /// True if notifications reach the client before the answer.
    pub is_stream: bool,
}

/// The parameters of a request without any.
const NO_PARAMS: &str = "{}";

/// Parses the parameters of `resources/read`, as [`parse_params`] does.
fn parse_read(json: &str, source: MessageSource<'_>) -> Option<(ClientRequest, Arc<RequestMeta>)> {
    let ReadParams { meta, uri, input_responses, request_state } = serde_json::from_str(json).ok()?;
    let mut params = ReadResourceRequestParams::new(uri);
    (params.input_responses, params.request_state) = (input_responses, request_state);
    let meta = source.cache.parse(meta.map(RawValue::get), source.session)?;
    Some((ReadResourceRequest::new(params).into(), meta))
}

/// Parses parameters into a request and their `_meta`. `None` if they do not have the shape of the method.
fn parse_params<P: DeserializeOwned + RequestParamsMeta>(
    json: &str,
    source: MessageSource<'_>,
    request: fn(P) -> ClientRequest,
) -> Option<(ClientRequest, Arc<RequestMeta>)> {
    let mut params: P = serde_json::from_str(json).ok()?;
    let meta = params.meta_mut().take();
    Some((request(params), source.cache.of_object(meta.as_ref(), source.session)?))
}

impl DirectRequest {
    /// Parses a message. `None` if it is not a request of one of these methods, or if its `_meta` lacks a required key and
    /// it belongs to no session.
    pub fn parse(message: &[u8], source: MessageSource<'_>) -> Option<Self> {
        let Envelope { jsonrpc, id, method, params } = serde_json::from_slice(message).ok()?;
        let json = params.map_or(NO_PARAMS, RawValue::get);
        let (request, meta) = match method {
            "resources/read" => parse_read(json, source)?,
            "resources/list" => parse_params(json, source, |params| ListResourcesRequest::with_param(params).into())?,
            "resources/templates/list" => {
                parse_params(json, source, |params| ListResourceTemplatesRequest::with_param(params).into())?
            }
            "completion/complete" => parse_params(json, source, |params| CompleteRequest::new(params).into())?,
            "skills/list" => parse_params(json, source, |params| ListSkillsRequest::with_param(params).into())?,
            "skills/get" => parse_params(json, source, |params| GetSkillRequest::new(params).into())?,
            "resources/directory/read" => {
                parse_params(json, source, |params| ReadResourceDirectoryRequest::new(params).into())?
            }
            "tools/list" => parse_params(json, source, |params| ListToolsRequest::with_param(params).into())?,
            "prompts/list" => parse_params(json, source, |params| ListPromptsRequest::with_param(params).into())?,
            "prompts/get" => parse_params(json, source, |params| GetPromptRequest::new(params).into())?,
            "tools/call" => parse_params(json, source, |params| CallToolRequest::new(params).into())?,
            "server/discover" => {
                // No request of a session.
                let DiscoverParams { meta } = serde_json::from_str(json).ok()?;
                let meta = source.cache.of_object(Some(&meta), None)?;
                (DiscoverRequest::new(DiscoverRequestParams {}).into(), meta)
            }
            _ => return None,
        };
        // rmcp opens a stream for reports of progress.
        if !source.is_stream && matches!(method, "tools/call" | "prompts/get") && meta.progress_token.is_some() {
            return None;
        }
        (jsonrpc == "2.0").then(|| Self { id, request: Box::new(request), meta })
    }

    /// True if its session says the revision, and not the request itself.
    pub fn is_of_session(&self) -> bool {
        Era::of(self.meta.version.as_ref()) == Era::Session
    }

    /// The JSON-RPC id.
    pub fn id(&self) -> &RequestId {
        &self.id
    }

    /// The method and its parameters.
    pub fn request(&self) -> &ClientRequest {
        &self.request
    }

    /// True if this calls a tool some of whose arguments must be repeated in HTTP headers, and that `principal` may call.
    pub fn has_parameter_headers(&self, handler: &Handler, principal: &Principal) -> bool {
        let ClientRequest::CallToolRequest(call) = &*self.request else { return false };
        handler.gateway.known_tool(principal, &call.params.name).is_some_and(|known| known.input.has_headers())
    }

    /// True if the client of a session can be asked while this is answered, and there may be a question.
    pub fn may_ask(&self, handler: &Handler, client: &Peer<RoleServer>) -> bool {
        let may_need_consent = || handler.gateway.snapshot().may_ask();
        let may_have_question = || match &*self.request {
            ClientRequest::ReadResourceRequest(_) => may_need_consent(),
            ClientRequest::CallToolRequest(call) if tools::is_own(&call.params.name) => may_need_consent(),
            // A provider can have a question of its own.
            ClientRequest::CallToolRequest(_) | ClientRequest::GetPromptRequest(_) => true,
            _ => false,
        };
        consent::can_be_asked(client) && may_have_question()
    }

    /// The URI of the resource or the name of the tool, which the HTTP header `Mcp-Name` repeats.
    pub fn name(&self) -> Option<&str> {
        match &*self.request {
            ClientRequest::ReadResourceRequest(read) => Some(&read.params.uri),
            ClientRequest::CallToolRequest(call) => Some(&call.params.name),
            ClientRequest::GetPromptRequest(get) => Some(&get.params.name),
            _ => None,
        }
    }
}

/// The encoded answer to a request.
pub struct EncodedAnswer {
    /// The JSON-RPC message, without a line break.
    pub message: Vec<u8>,
    /// The code of the error, if the answer is one.
    pub error: Option<ErrorCode>,
}

/// The result of a request.
enum Answer {
    Reading(ServedReading),
    Result(Box<ServerResult>),
}

impl From<ServerResult> for Answer {
    fn from(result: ServerResult) -> Self {
        Self::Result(Box::new(result))
    }
}

impl From<ReadAnswer> for Answer {
    fn from(answer: ReadAnswer) -> Self {
        match answer {
            ReadAnswer::Contents(reading) => Self::Reading(reading),
            ReadAnswer::Question(question) => {
                ServerResult::from(ReadResourceResponse::from(consent::question(question))).into()
            }
        }
    }
}

impl Handler {
    /// Answers a request. `peer` receives the notifications that the request causes. Dropping the future
    /// stops the call of the request; cancelling `cancellation` does too.
    pub async fn answer(
        &self,
        request: DirectRequest,
        peer: &Peer<RoleServer>,
        exchange: &Exchange,
        cancellation: &CancellationToken,
    ) -> EncodedAnswer {
        let DirectRequest { id, request, meta } = request;
        let method = recorded_method(request.method());
        let meta = meta.or_of_session(peer);
        let context = self.request_context(&id, (peer, cancellation), meta, Some(exchange), method);
        let answer = match *request {
            ClientRequest::ReadResourceRequest(read) => self.read(read.params, &context).await.map(Answer::from),
            request => Box::pin(self.dispatch(request, &context)).await.map(Answer::from),
        };
        // From 2026-07-28 on, a resource that does not exist has the code of invalid parameters.
        let answer = answer.map_err(|error| match error.code {
            ErrorCode::RESOURCE_NOT_FOUND if context.era.is_stateless() => {
                ErrorData { code: ErrorCode::INVALID_PARAMS, ..error }
            }
            _ => error,
        });
        match context.end(answer) {
            Ok(Answer::Reading(ServedReading { reading, mount, scope, mut cost })) => {
                let bytes = convert::encoded_len(&reading);
                let hints = context.era.is_stateless().then_some(scope);
                let encode = || encode_reading::answer(reading, (&mount, hints), &id, bytes, self.budget());
                EncodedAnswer { message: cost.charge(bytes, encode), error: None }
            }
            Ok(Answer::Result(mut result)) => {
                if context.era == Era::Session {
                    result.strip_result_type_for_legacy_peer();
                    result.strip_non_object_output_for_legacy_peer();
                }
                let answer = ServerJsonRpcMessage::response(*result, id.clone());
                let encode = || encode::answer(&answer, &id);
                let message = match exchange.take_cost_and_size() {
                    Some((mut cost, bytes)) => cost.charge(bytes, encode),
                    None => encode(),
                };
                EncodedAnswer { message, error: None }
            }
            Err(error) => EncodedAnswer { error: Some(error.code), message: encode::refusal(Some(id), error) },
        }
    }

    /// Calls the handler's method for another request than a read. Methods with much state are boxed.
    async fn dispatch(&self, request: ClientRequest, context: &RequestContext<'_>) -> Result<ServerResult, ErrorData> {
        match request {
            ClientRequest::ListResourcesRequest(list) => {
                self.resources(list.params, context).await.map(ServerResult::ListResourcesResult)
            }
            ClientRequest::ListResourceTemplatesRequest(list) => {
                self.templates(list.params, context).await.map(ServerResult::ListResourceTemplatesResult)
            }
            ClientRequest::CompleteRequest(complete) => {
                Box::pin(self.completion(complete.params, context)).await.map(ServerResult::CompleteResult)
            }
            ClientRequest::ListSkillsRequest(list) => {
                Box::pin(self.skills(list.params, context)).await.map(ServerResult::ListSkillsResult)
            }
            ClientRequest::GetSkillRequest(get) => {
                Box::pin(self.skill(get.params, context)).await.map(ServerResult::GetSkillResult)
            }
            ClientRequest::ReadResourceDirectoryRequest(read) => {
                Box::pin(self.directory(read.params, context)).await.map(ServerResult::ListResourcesResult)
            }
            ClientRequest::ListToolsRequest(list) => {
                self.tools(list.params, context).await.map(ServerResult::ListToolsResult)
            }
            ClientRequest::ListPromptsRequest(list) => {
                self.prompts(list.params, context).await.map(ServerResult::ListPromptsResult)
            }
            ClientRequest::GetPromptRequest(get) => Box::pin(self.prompt(get.params, context)).await.map(Into::into),
            ClientRequest::CallToolRequest(call) => {
                Box::pin(self.tool_result(call.params, context)).await.map(Into::into)
            }
            ClientRequest::DiscoverRequest(_) => {
                self.discovery(&context.caller.principal).await.map(ServerResult::DiscoverResult)
            }
            other => Err(fault::method_not_found(other.method())),
        }
    }
}
