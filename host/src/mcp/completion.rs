//! `completion/complete` on the wire.

use rmcp::model::{CompleteRequestParams, CompleteResult, CompletionInfo, ErrorData, Reference};

use super::{Asked, fault, identity};
use crate::gateway::Gateway;
use crate::gateway::completing::{Offer, Refusal, Wish};
use crate::model::text;

/// Completes a variable of a resource template.
pub(super) async fn complete(
    gateway: &Gateway,
    asked: &Asked,
    request: CompleteRequestParams,
) -> Result<CompleteResult, ErrorData> {
    let template = match request.r#ref {
        Reference::Resource(resource) => resource.uri,
        _ => return Err(fault::bad_completion("there are no prompts; expected a \"ref/resource\"")),
    };
    let name = request.argument.name;
    let (shown, variable) = (text::quoted(&template, 300), text::quoted(&name, 80));
    // In an order, because the calls of providers have one.
    let mut resolved: Vec<_> =
        request.context.and_then(|context| context.arguments).unwrap_or_default().into_iter().collect();
    resolved.sort();
    let wish = Wish { template, name, value: request.argument.value, resolved };
    match gateway.offer(&asked.caller, wish).await {
        Ok(Offer { values, total, has_more }) => {
            let info = CompletionInfo::with_pagination(values, total, has_more).map_err(fault::internal)?;
            let mut result = CompleteResult::new(info);
            identity::sign(&mut result.meta, asked.is_modern);
            Ok(result)
        }
        Err(Refusal::NoTemplate) => Err(fault::bad_completion(&format!(
            "there is no resource template {shown}; expected one that resources/templates/list gives"
        ))),
        Err(Refusal::NoVariable(known)) => {
            let known = known.iter().take(32).map(|name| format!("\"{name}\"")).collect::<Vec<_>>().join(", ");
            Err(fault::bad_completion(&format!("the template {shown} has no variable {variable}; expected {known}")))
        }
        Err(Refusal::Failed(fault)) => Err(fault::to_error(fault)),
    }
}
