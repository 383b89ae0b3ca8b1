//! The calls of belljar's own tools, and failed results.

use rmcp::model::{
    CallToolRequestParams, CallToolResponse, CallToolResult, ContentBlock, ErrorCode, ErrorData, InputResponses, Tool,
};
use serde_json::{Map, Value};

use super::super::context::RequestContext;
use super::super::handler::Handler;
use super::super::{consent, fault, identity};
use super::arguments::Arguments;
use super::{list, read, search};
use crate::gateway::definitions::OWN_TOOLS;
use crate::model::error::{MAX_PROVIDER_TEXT, PROVIDER_SAYS};
use crate::model::{meta, text};

/// The hint for a resource that does not exist.
const NOT_FOUND_HINT: &str = "list_resources and search_resources show the resources that exist";

/// The definitions of belljar's own tools.
pub(in crate::mcp) fn definitions() -> Vec<Tool> {
    vec![list::definition(), read::definition(), search::definition()]
}

/// True if this is the name of one of belljar's own tools.
pub(in crate::mcp) fn is_own(name: &str) -> bool {
    OWN_TOOLS.contains(&name)
}

/// Calls one of belljar's own tools.
///
/// # Errors
/// The tool is unknown, the answer to a consent question is malformed, the client cannot be asked for consent, or the
/// credential lacks a scope. Other failures are results.
pub(in crate::mcp) async fn call(
    handler: &Handler,
    context: &RequestContext<'_>,
    request: &CallToolRequestParams,
    (state, answers): (Option<&str>, Option<&InputResponses>),
) -> Result<CallToolResponse, ErrorData> {
    let given = request.arguments.clone();
    let answered = match &*request.name {
        list::NAME => list::run(handler, context, Arguments::new(list::NAME, given)).await,
        search::NAME => search::run(handler, context, Arguments::new(search::NAME, given)).await,
        read::NAME => {
            let consent_input = consent::consent_input(context, state, answers)?;
            match read::run(handler, context, Arguments::new(read::NAME, given), consent_input).await {
                Ok(read::ReadToolOutcome::ConsentRequired(question)) => return Ok(consent::question(question).into()),
                Ok(read::ReadToolOutcome::ConsentUnavailable(fault)) if context.era.is_stateless() => {
                    return Err(fault::consent_unavailable(fault));
                }
                Ok(read::ReadToolOutcome::ConsentUnavailable(fault)) => Err(fault::to_error(fault)),
                Ok(read::ReadToolOutcome::Content(answered)) => Ok(answered),
                Err(error) => Err(error),
            }
        }
        other => return Err(fault::no_tool(other)),
    };
    // A missing scope is an error of the request, so that HTTP clients get status 403 and ask for the scope.
    let answered = match answered {
        Err(error) if fault::missing_scopes(&error).is_some() => return Err(error),
        answered => answered,
    };
    let mut result = answered.map_or_else(
        |error| failed(error, context),
        |mut content| {
            // A client whose revision has no `resource_link` cannot parse a result that contains one.
            content.retain(|block| context.supports_links || block.as_resource_link().is_none());
            CallToolResult::success(content)
        },
    );
    identity::add_server_info(&mut result.meta, context.era);
    Ok(result.into())
}

/// A failure as a tool result, so that the model reads the error and its cure.
pub(in crate::mcp) fn failed(error: ErrorData, context: &RequestContext<'_>) -> CallToolResult {
    context.exchange.into_iter().for_each(|exchange| exchange.set_error(&error));
    if !context.record.is_done() {
        context.record.set_outcome(Err(fault::event_error(&error)));
    }
    let is_absent = error.code == ErrorCode::RESOURCE_NOT_FOUND;
    let mut details = match error.data {
        Some(Value::Object(details)) => details,
        _ => Map::new(),
    };
    if is_absent {
        details.entry("hint").or_insert_with(|| NOT_FOUND_HINT.into());
    }
    let part = |name: &str| details.get(name).and_then(Value::as_str);
    // The provider's text comes last, after belljar's message and hint.
    let words = part("said").map(|words| text::quoted(words, MAX_PROVIDER_TEXT));
    let last = |words: &String| format!("; {PROVIDER_SAYS}{words}");
    let ours = words.as_ref().and_then(|words| error.message.strip_suffix(&last(words)));
    let hint = part("hint").map(|hint| format!("\nhint: {hint}")).unwrap_or_default();
    let message = match (ours, &words) {
        (Some(ours), Some(words)) => format!("{ours}{hint}\n{PROVIDER_SAYS}{words}"),
        _ => format!("{}{hint}", error.message),
    };
    let mut result = CallToolResult::error(vec![ContentBlock::text(message)]);
    result.meta.get_or_insert_default().insert(meta::ERROR.to_owned(), details.into());
    result
}
