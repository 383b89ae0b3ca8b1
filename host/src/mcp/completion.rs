//! `completion/complete` on the wire.

use rmcp::model::{CompleteRequestParams, CompleteResult, CompletionInfo, ErrorData, Reference};

use super::context::RequestContext;
use super::{fault, identity};
use crate::gateway::Gateway;
use crate::gateway::complete::{CompletionError, CompletionRequest, CompletionResult};
use crate::model::text;

/// Completes a variable of a resource template.
pub(super) async fn complete(
    gateway: &Gateway,
    context: &RequestContext<'_>,
    request: CompleteRequestParams,
) -> Result<CompleteResult, ErrorData> {
    let template = match request.r#ref {
        Reference::Resource(resource) => resource.uri,
        _ => return Err(fault::bad_completion("there are no prompts; expected a \"ref/resource\"")),
    };
    let name = request.argument.name;
    let (shown, variable) = (text::quoted(&template, 300), text::quoted(&name, 80));
    // The map has a random order; the guest gets the arguments sorted.
    let mut resolved: Vec<_> =
        request.context.and_then(|context| context.arguments).unwrap_or_default().into_iter().collect();
    resolved.sort();
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
