//! The generated trait of prompts, and the types of its interface.

use super::super::Exported;
use super::super::prompts::belljar::provider::call_types;
use super::super::prompts::exports::belljar::provider::prompt_provider as wit;
use super::{into_all, wit as types};
use crate::model::Argument;
use crate::provider::call;
use crate::{Arguments, Outcome, Prompt, PromptArgument, PromptResult, Prompts};

impl<P: Prompts> wit::Guest for Exported<P> {
    fn list_prompts() -> Result<Vec<wit::PromptInfo>, types::ProviderError> {
        Ok(into_all(P::prompts().list()))
    }

    fn get(
        name: String,
        arguments: Vec<call_types::Argument>,
        context: call_types::Context,
    ) -> Result<wit::Outcome, types::ProviderError> {
        let arguments: Arguments = arguments.into_iter().map(Argument::from).collect();
        let context = context.into();
        let outcome = call(|provider: &P| P::prompts().get(provider, &name, &arguments, &context))?;
        Ok(match outcome {
            Outcome::Done(result) => wit::Outcome::Done(result.into()),
            Outcome::Ask(ask) => wit::Outcome::Ask(ask.into()),
        })
    }

    fn complete(
        name: String,
        argument: call_types::Argument,
        resolved: Vec<call_types::Argument>,
    ) -> Result<call_types::Suggestions, types::ProviderError> {
        let (argument, resolved): (Argument, Vec<Argument>) = (argument.into(), into_all(resolved));
        Ok(call(|provider: &P| provider.complete_prompt(&name, &argument, &resolved))?.into())
    }
}

impl From<Prompt> for wit::PromptInfo {
    fn from(prompt: Prompt) -> Self {
        let Prompt { name, title, description, arguments, icons, meta } = prompt;
        wit::PromptInfo { name, title, description, arguments: into_all(arguments), icons: into_all(icons), meta }
    }
}

impl From<PromptArgument> for wit::PromptArgument {
    fn from(argument: PromptArgument) -> Self {
        let PromptArgument { name, title, description, required } = argument;
        wit::PromptArgument { name, title, description, required }
    }
}

impl From<PromptResult> for wit::PromptResult {
    fn from(result: PromptResult) -> Self {
        let PromptResult { description, messages } = result;
        wit::PromptResult { description, messages: into_all(messages) }
    }
}
