//! The tools of providers on the wire: their definitions and their results.

use std::borrow::Cow;
use std::sync::Arc;

use rmcp::model::{
    CallToolRequestParams, CallToolResponse, CallToolResult, ErrorData, InputResponses, Tool, ToolAnnotations,
};

use serde_json::json;

use super::context::RequestContext;
use super::handler::Handler;
use super::progress::with_progress;
use super::tools::failed;
use super::{asking, blocks, consent, convert, fault, identity};
use crate::catalog::Mount;
use crate::gateway::asking::AskInput;
use crate::gateway::definitions::{PublicDefinition, tool_prefix};
use crate::gateway::hints::ToolHints;
use crate::gateway::invoke::{Invoked, ToolReply};
use crate::gateway::views::view_uri;
use crate::interfaces::tools::ToolDefinition;
use crate::model::ReadError;
use crate::model::meta::{TOOL_PREFIX, UI, UI_FLAT};

/// The hints of a tool on the wire.
fn hints(definition: &ToolDefinition, mount: &Mount) -> ToolAnnotations {
    let ToolHints { read_only, destructive, idempotent, open_world } = ToolHints::of(definition, mount);
    ToolAnnotations::new().read_only(read_only).destructive(destructive).idempotent(idempotent).open_world(open_world)
}

/// The definition that clients see.
pub(super) fn definition(given: &PublicDefinition<ToolDefinition>) -> Tool {
    let PublicDefinition { name, definition, mount } = given;
    let tool = &definition.tool;
    let input = Arc::new(definition.input.object().clone());
    let mut out = Tool::new(Cow::Owned(name.clone()), tool.description.clone(), input);
    out.title.clone_from(&tool.title);
    out.output_schema = definition.output.as_ref().map(|schema| Arc::new(schema.object().clone()));
    out.annotations = Some(hints(definition, mount));
    out.icons = convert::icons(tool.icons.clone());
    let mut meta = convert::meta(tool.meta.clone(), &mount.name);
    if let Some(view) = &tool.view {
        let uri = view_uri(&mount.name, &view.page);
        let visibility: &[&str] = if view.app_only { &["app"] } else { &["model", "app"] };
        meta.0.insert(UI.to_owned(), json!({ "resourceUri": uri, "visibility": visibility }));
        // Older hosts of views read only this one.
        meta.0.insert(UI_FLAT.to_owned(), uri.into());
    }
    out.meta = Some(meta);
    out
}

/// Calls a tool of a provider.
///
/// # Errors
/// The tool is unknown, a state or an answer is not valid, the client cannot be asked for consent, or the credential lacks
/// a scope. Other failures are results.
pub(super) async fn call(
    handler: &Handler,
    context: &RequestContext<'_>,
    request: &CallToolRequestParams,
    (state, answers): (Option<&str>, Option<&InputResponses>),
) -> Result<CallToolResponse, ErrorData> {
    let input = asking::ask_input(context, state, answers)?;
    let arguments = request.arguments.clone().unwrap_or_default();
    let called = with_progress(context, async |progress| {
        let (input, room) = (AskInput { progress, ..input }, handler.start_call(context.exchange));
        handler.gateway.call_tool(&context.caller, &request.name, arguments, input, room).await
    });
    match called.await {
        Ok(Invoked::Done(reply, mount, mut cost)) => {
            let bytes = reply.result.content.iter().map(blocks::encoded_len).sum();
            let result = cost.charge(bytes, || result(reply, &mount, context));
            if let Some(exchange) = context.exchange {
                exchange.set_cost(cost, bytes);
            }
            Ok(result.into())
        }
        Ok(Invoked::Ask(questions)) => Ok(asking::questions(questions)?.into()),
        Ok(Invoked::ConsentRequired(question)) => Ok(consent::question(question).into()),
        Ok(Invoked::ConsentUnavailable(fault)) if context.era.is_stateless() => Err(fault::consent_unavailable(fault)),
        Ok(Invoked::ConsentUnavailable(fault)) => Ok(failed(fault::to_error(fault), context).into()),
        Err(fault) => match fault.error {
            ReadError::NotFound => Err(fault::no_tool(&request.name)),
            ReadError::InsufficientScope { .. } | ReadError::BadRequestState(_) | ReadError::BadAnswer(_) => {
                Err(fault::to_error(fault))
            }
            _ => Ok(failed(fault::to_error(fault), context).into()),
        },
    }
}

fn result(reply: ToolReply, mount: &Mount, context: &RequestContext<'_>) -> CallToolResult {
    let ToolReply { result, structured } = reply;
    let content = result.content.into_iter().map(|one| blocks::block(one, &mount.name));
    // A client whose revision has no `resource_link` cannot parse a result that contains one.
    let content = content.filter(|block| context.supports_links || block.as_resource_link().is_none());
    let mut content: Vec<_> = content.collect();
    if content.is_empty()
        && let Some(structured) = &structured
    {
        // The specification asks for it, and some clients show a model nothing else.
        content.push(rmcp::model::ContentBlock::text(structured.to_string()));
    }
    let mut out = match result.is_error {
        true => CallToolResult::error(content),
        false => CallToolResult::success(content),
    };
    out.structured_content = structured;
    let mut meta = convert::meta(result.meta, &mount.name);
    // A view calls the tools of its provider by their public names.
    meta.0.insert(TOOL_PREFIX.to_owned(), tool_prefix(mount).into());
    out.meta = Some(meta);
    identity::add_server_info(&mut out.meta, context.era);
    out
}
