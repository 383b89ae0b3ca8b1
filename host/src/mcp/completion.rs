//! `completion/complete` on the wire.

use rmcp::model::{CompleteRequestParams, CompleteResult, CompletionInfo, ErrorData, Reference};

use super::context::RequestContext;
use super::{fault, identity};
use crate::gateway::Gateway;
use crate::gateway::complete::{CompletionError, CompletionRequest, CompletionResult};
use crate::model::{PromptCompletion, ReadError, text};

/// Completes a variable of a resource template, or an argument of a prompt.
pub(super) async fn complete(
    gateway: &Gateway,
    context: &RequestContext<'_>,
    request: CompleteRequestParams,
) -> Result<CompleteResult, ErrorData> {
    // The map has a random order; the guest gets the arguments sorted.
    let mut resolved: Vec<_> =
        request.context.and_then(|context| context.arguments).unwrap_or_default().into_iter().collect();
    resolved.sort();
    let name = request.argument.name;
    let template = match request.r#ref {
        Reference::Resource(resource) => resource.uri,
        Reference::Prompt(prompt) => {
            let value = request.argument.value;
            let asked = PromptCompletion { prompt: prompt.name, name, value, resolved };
            return complete_prompt(gateway, context, asked).await;
        }
        _ => return Err(fault::bad_completion("expected a \"ref/resource\" or a \"ref/prompt\"")),
    };
    let (shown, variable) = (text::quoted(&template, 300), text::quoted(&name, 80));
    let completion = CompletionRequest { template, name, value: request.argument.value, resolved };
    match gateway.complete(&context.caller, completion).await {
        Ok(CompletionResult { values, total, has_more }) => {
            let info = CompletionInfo::with_pagination(values, total, has_more).map_err(fault::internal)?;
            let mut result = CompleteResult::new(info);
            identity::add_server_info(&mut result.meta, context.era);
            Ok(result)
        }
        Err(CompletionError::NoTemplate) => Err(fault::bad_completion(&format!(
            "there is no resource template {shown}; expected one that resources/templates/list gives"
        ))),
        Err(CompletionError::NoVariable(known)) => {
            let known = known.iter().take(32).map(|name| format!("\"{name}\"")).collect::<Vec<_>>().join(", ");
            Err(fault::bad_completion(&format!("the template {shown} has no variable {variable}; expected {known}")))
        }
        Err(CompletionError::Failed(fault)) => Err(fault::to_error(fault)),
    }
}

/// Completes an argument of a prompt.
async fn complete_prompt(
    gateway: &Gateway,
    context: &RequestContext<'_>,
    asked: PromptCompletion,
) -> Result<CompleteResult, ErrorData> {
    let (prompt, variable) = (asked.prompt.clone(), text::quoted(&asked.name, 80));
    match gateway.complete_prompt(&context.caller, asked).await {
        Ok(Ok(suggestions)) => {
            let CompletionResult { values, total, has_more } = CompletionResult::from(suggestions);
            let info = CompletionInfo::with_pagination(values, total, has_more).map_err(fault::internal)?;
            let mut result = CompleteResult::new(info);
            identity::add_server_info(&mut result.meta, context.era);
            Ok(result)
        }
        Ok(Err(known)) => {
            let known = known.iter().map(|name| format!("\"{name}\"")).collect::<Vec<_>>().join(", ");
            let known = if known.is_empty() { "none".to_owned() } else { known };
            let shown = text::quoted(&prompt, 80);
            Err(fault::bad_completion(&format!("the prompt {shown} has no argument {variable}; expected {known}")))
        }
        Err(fault) => Err(match fault.error {
            ReadError::NotFound => fault::no_prompt(&prompt),
            _ => fault::to_error(fault),
        }),
    }
}
