//! The generated trait of tools, and the types of its interface.

use super::super::Exported;
use super::super::prompts::belljar::provider::call_types;
use super::super::tools::exports::belljar::provider::tool_provider as wit;
use super::{into_all, wit as types};
use crate::provider::call;
use crate::{Effect, Outcome, Tool, ToolResult, Tools, View};

impl<P: Tools> wit::Guest for Exported<P> {
    fn list_tools() -> Result<Vec<wit::ToolInfo>, types::ProviderError> {
        Ok(into_all(P::tools().list()))
    }

    fn call(
        name: String,
        arguments: String,
        context: call_types::Context,
    ) -> Result<wit::Outcome, types::ProviderError> {
        let context = context.into();
        let outcome = call(|provider: &P| P::tools().call(provider, &name, &arguments, &context))?;
        Ok(match outcome {
            Outcome::Done(result) => wit::Outcome::Done(result.into()),
            Outcome::Ask(ask) => wit::Outcome::Ask(ask.into()),
        })
    }
}

impl From<Tool> for wit::ToolInfo {
    fn from(tool: Tool) -> Self {
        let Tool { name, title, description, input, output, effect, idempotent, open_world, view, icons, meta } = tool;
        wit::ToolInfo {
            name,
            title,
            description,
            input: input.unwrap_or_default(),
            output,
            effect: effect.into(),
            idempotent,
            open_world,
            view: view.map(Into::into),
            icons: into_all(icons),
            meta,
        }
    }
}

impl From<Effect> for wit::Effect {
    fn from(effect: Effect) -> Self {
        match effect {
            Effect::Reads => wit::Effect::Reads,
            Effect::Adds => wit::Effect::Adds,
            Effect::Destroys => wit::Effect::Destroys,
        }
    }
}

impl From<View> for wit::View {
    fn from(view: View) -> Self {
        let View { page, app_only } = view;
        wit::View { page, app_only }
    }
}

impl From<ToolResult> for wit::ToolResult {
    fn from(result: ToolResult) -> Self {
        let ToolResult { content, structured, is_error, meta } = result;
        wit::ToolResult { content: into_all(content), structured, is_error, meta }
    }
}
