//! `prompts/list` and `prompts/get`.

use std::collections::BTreeMap;

use rmcp::model::{
    CacheScope, ErrorData, GetPromptRequestParams, GetPromptResponse, GetPromptResult, InputResponses, JsonObject,
    ListPromptsResult, Prompt, PromptArgument, PromptMessage,
};
use serde_json::Value;

use super::context::RequestContext;
use super::era::Era;
use super::handler::Handler;
use super::progress::with_progress;
use super::{asking, blocks, consent, convert, fault, identity};
use crate::catalog::Mount;
use crate::gateway::asking::AskInput;
use crate::gateway::definitions::{DefinitionPage, PublicDefinition};
use crate::gateway::invoke::Invoked;
use crate::model::{self, Message, PromptResult, ReadError, text};

/// `ttlMs` of the list. A provider can change its list at any time, so clients must not cache it.
const LIST_TTL: u64 = 0;

/// The definition that clients see.
fn definition(given: &PublicDefinition<model::Prompt>) -> Prompt {
    let PublicDefinition { name, definition, mount } = given;
    let argument = |one: &model::PromptArgument| {
        let mut out = PromptArgument::new(one.name.clone()).with_required(one.required);
        (out.title, out.description) = (one.title.clone(), one.description.clone());
        out
    };
    let arguments: Vec<_> = definition.arguments.iter().map(argument).collect();
    let mut out = Prompt::new(name.clone(), Some(definition.description.clone()), Some(arguments));
    out.title.clone_from(&definition.title);
    out.icons = convert::icons(definition.icons.clone());
    out.meta = Some(convert::meta(definition.meta.clone(), &mount.name));
    out
}

/// A page of the list.
pub(super) fn page(page: DefinitionPage<model::Prompt>, next: Option<String>, era: Era) -> ListPromptsResult {
    let mut out = ListPromptsResult::with_all_items(page.entries.iter().map(definition).collect());
    out.next_cursor = next;
    out.meta = convert::notices(page.notices);
    identity::add_server_info(&mut out.meta, era);
    if era.is_stateless() {
        (out.ttl_ms, out.cache_scope) = (Some(LIST_TTL), Some(CacheScope::Private));
    }
    out
}

/// The arguments of `prompts/get`: texts.
fn arguments(given: Option<JsonObject>) -> Result<BTreeMap<String, String>, ErrorData> {
    let one = |(name, value): (String, Value)| match value {
        Value::String(value) => Ok((name, value)),
        _ => Err(fault::bad_argument(&format!(
            "the argument {} is not a string; the arguments of a prompt are strings",
            text::quoted(&name, 80)
        ))),
    };
    given.unwrap_or_default().into_iter().map(one).collect()
}

/// Gets a prompt.
///
/// # Errors
/// All failures are errors: a prompt has no failed result.
pub(super) async fn get(
    handler: &Handler,
    context: &RequestContext<'_>,
    request: &GetPromptRequestParams,
    (state, answers): (Option<&str>, Option<&InputResponses>),
) -> Result<GetPromptResponse, ErrorData> {
    let input = asking::ask_input(context, state, answers)?;
    let arguments = arguments(request.arguments.clone())?;
    let given = with_progress(context, async |progress| {
        let (input, room) = (AskInput { progress, ..input }, handler.start_call(context.exchange));
        handler.gateway.get_prompt(&context.caller, &request.name, arguments, input, room).await
    });
    match given.await {
        Ok(Invoked::Done(reply, mount, mut cost)) => {
            let bytes = reply.messages.iter().map(|one| blocks::encoded_len(&one.block)).sum();
            let result = cost.charge(bytes, || result(reply, &mount, context));
            if let Some(exchange) = context.exchange {
                exchange.set_cost(cost, bytes);
            }
            Ok(result.into())
        }
        Ok(Invoked::Ask(questions)) => Ok(asking::questions(questions)?.into()),
        Ok(Invoked::ConsentRequired(question)) => Ok(consent::question(question).into()),
        Ok(Invoked::ConsentUnavailable(fault)) => Err(context.consent_unavailable(fault)),
        Err(fault) => Err(match fault.error {
            ReadError::NotFound => fault::no_prompt(&request.name),
            _ => fault::to_error(fault),
        }),
    }
}

fn result(reply: PromptResult, mount: &Mount, context: &RequestContext<'_>) -> GetPromptResult {
    let message = |Message { role, block }| PromptMessage::new(blocks::role(role), blocks::block(block, &mount.name));
    let messages = reply.messages.into_iter().map(message);
    let messages = messages.filter(|one| context.supports_links || one.content.as_resource_link().is_none());
    let mut out = GetPromptResult::new(messages.collect());
    out.description = reply.description;
    out.meta = Some(convert::meta(Vec::new(), &mount.name));
    identity::add_server_info(&mut out.meta, context.era);
    out
}
