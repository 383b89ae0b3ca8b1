//! `prompt-provider`, an optional interface: messages with which a person begins a conversation.

pub(super) mod conformance;

use std::collections::HashSet;

use serde::{Deserialize, Serialize};
use wasmtime::Store;
use wasmtime::component::Instance;

use super::completion::{MAX_SUGGESTIONS, MAX_VALUE};
use super::definitions::{CheckedDefinitions, Definition, DefinitionError, check_definitions, is_name, name_rule};
use super::fields::{
    ENTRY_CHARGE, clean_description, clean_icons, clean_meta, clean_name, icon_bytes, meta_bytes, text_bytes,
    unless_unguarded,
};
use super::function::{Function, MountContext, Returned};
use super::generated::call_types as wit;
use super::generated::prompt_provider as generated;
use super::redaction::{mask_details, mask_optional};
use super::{asking, blocks};
use crate::grants::secrets::Redactor;
use crate::model::{
    AskContext, AskOutcome, Message, Prompt, PromptArgument, PromptCompletion, PromptResult, ReadError, Suggestions,
    text,
};
use crate::policy::Action;

/// The name of the interface in `wit/`.
pub(super) const NAME: &str = "prompt-provider";

/// The indices of the interface's functions in a component.
pub(super) type PromptIndices = generated::GuestIndices;

/// The most arguments of a prompt.
const MAX_ARGUMENTS: usize = 32;

impl Definition for Prompt {
    fn name(&self) -> &str {
        &self.name
    }
}

/// `list-prompts`.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub struct ListPrompts;

impl From<generated::PromptInfo> for Prompt {
    fn from(info: generated::PromptInfo) -> Self {
        let argument = |one: generated::PromptArgument| PromptArgument {
            name: one.name,
            title: one.title,
            description: one.description,
            required: one.required,
        };
        Self {
            name: info.name,
            title: info.title,
            description: info.description,
            arguments: info.arguments.into_iter().map(argument).collect(),
            icons: info.icons.into_iter().map(Into::into).collect(),
            meta: info.meta,
        }
    }
}

fn prompt_bytes(prompt: &Prompt) -> usize {
    let argument = |one: &PromptArgument| {
        ENTRY_CHARGE + one.name.len() + text_bytes(one.title.as_ref()) + text_bytes(one.description.as_ref())
    };
    ENTRY_CHARGE
        + prompt.name.len()
        + text_bytes(prompt.title.as_ref())
        + prompt.description.len()
        + prompt.arguments.iter().map(argument).sum::<usize>()
        + icon_bytes(&prompt.icons)
        + meta_bytes(&prompt.meta)
}

impl Function for ListPrompts {
    type Indices = PromptIndices;
    type Reply = Vec<Prompt>;
    type Checked = CheckedDefinitions<Prompt>;
    const NAME: &'static str = "list-prompts";
    const ACTION: Action = Action::Prompt;

    async fn call<T: Send + 'static>(
        &self,
        indices: &PromptIndices,
        store: &mut Store<T>,
        instance: &Instance,
    ) -> Returned<Vec<Prompt>> {
        let guest = indices.load(&mut *store, instance)?;
        let all = guest.call_list_prompts(store).await?;
        Ok(all.map(|all| all.into_iter().map(Into::into).collect()).map_err(Into::into))
    }

    fn bytes(all: &Vec<Prompt>) -> usize {
        all.iter().map(prompt_bytes).sum()
    }

    fn redact(all: &mut Vec<Prompt>, redactor: Option<&Redactor>) {
        let Some(redactor) = redactor else { return };
        for Prompt { name, title, description, arguments, icons, meta } in all {
            [name, description].into_iter().for_each(|text| redactor.mask(text));
            mask_optional(title, redactor);
            for PromptArgument { name, title, description, required: _ } in arguments {
                redactor.mask(name);
                [title, description].into_iter().for_each(|text| mask_optional(text, redactor));
            }
            mask_details(&mut None, icons, meta, redactor);
        }
    }

    /// Cleans the definitions, sorts them by name, and leaves out those that break a rule.
    fn check(&self, all: Vec<Prompt>, _: &dyn MountContext) -> Result<Self::Checked, ReadError> {
        check_definitions(all, "list-prompts", "prompt", prompt_bytes, |prompt| prompt.name.as_str(), define)
    }
}

/// Checks one prompt.
fn define(prompt: Prompt) -> Result<Prompt, DefinitionError> {
    if !is_name(&prompt.name) {
        return Err(name_rule().into());
    }
    if prompt.arguments.len() > MAX_ARGUMENTS {
        return Err(format!("it has {} arguments; the limit is {MAX_ARGUMENTS}", prompt.arguments.len()).into());
    }
    let mut seen = HashSet::new();
    for argument in &prompt.arguments {
        let shown = text::quoted(&argument.name, 80);
        if !is_name(&argument.name) {
            return Err(format!("its argument {shown} has a bad name; {}", name_rule()).into());
        }
        if !seen.insert(argument.name.as_str()) {
            return Err(format!("its argument {shown} is there twice").into());
        }
    }
    let argument = |one: PromptArgument| PromptArgument {
        title: one.title.map(clean_name),
        description: one.description.map(clean_description),
        ..one
    };
    Ok(Prompt {
        title: prompt.title.map(clean_name),
        description: clean_description(prompt.description),
        arguments: prompt.arguments.into_iter().map(argument).collect(),
        icons: unless_unguarded(prompt.icons, clean_icons),
        meta: clean_meta(prompt.meta),
        name: prompt.name,
    })
}

/// `get`.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub struct GetPrompt {
    /// The name of the prompt in its provider.
    pub name: String,
    /// The arguments, sorted by name.
    pub arguments: Vec<(String, String)>,
    /// What the call knows of its client.
    pub context: AskContext,
}

fn argument((name, value): (&str, &str)) -> wit::Argument {
    wit::Argument { name: name.to_owned(), value: value.to_owned() }
}

fn arguments(all: &[(String, String)]) -> Vec<wit::Argument> {
    all.iter().map(|(name, value)| argument((name, value))).collect()
}

impl Function for GetPrompt {
    type Indices = PromptIndices;
    type Reply = AskOutcome<PromptResult>;
    type Checked = AskOutcome<PromptResult>;
    const NAME: &'static str = "get-prompt";
    const ACTION: Action = Action::Prompt;

    fn input(&self) -> Option<Vec<&str>> {
        let arguments = self.arguments.iter().flat_map(|(name, value)| [name.as_str(), value.as_str()]);
        Some([self.name.as_str()].into_iter().chain(arguments).chain(asking::input(&self.context)).collect())
    }

    fn shown(&self) -> Option<&str> {
        Some(&self.name)
    }

    fn reference(&self) -> Option<&str> {
        Some(&self.name)
    }

    async fn call<T: Send + 'static>(
        &self,
        indices: &PromptIndices,
        store: &mut Store<T>,
        instance: &Instance,
    ) -> Returned<Self::Reply> {
        let guest = indices.load(&mut *store, instance)?;
        let (given, context) = (arguments(&self.arguments), asking::context(&self.context));
        Ok(guest.call_get(store, &self.name, &given, &context).await?.map(outcome).map_err(Into::into))
    }

    fn bytes(given: &Self::Reply) -> usize {
        match given {
            AskOutcome::Done(PromptResult { description, messages }) => {
                text_bytes(description.as_ref()) + messages.iter().map(|one| blocks::bytes(&one.block)).sum::<usize>()
            }
            AskOutcome::Ask(ask) => asking::bytes(ask),
        }
    }

    fn redact(given: &mut Self::Reply, redactor: Option<&Redactor>) {
        let Some(redactor) = redactor else { return };
        match given {
            AskOutcome::Done(PromptResult { description, messages }) => {
                mask_optional(description, redactor);
                messages.iter_mut().for_each(|Message { role: _, block }| blocks::mask(block, redactor));
            }
            AskOutcome::Ask(ask) => asking::mask(ask, redactor),
        }
    }

    fn effort(given: &Self::Reply) -> usize {
        match given {
            AskOutcome::Done(_) => Self::bytes(given),
            AskOutcome::Ask(_) => usize::MAX,
        }
    }

    fn check(&self, given: Self::Reply, names: &dyn MountContext) -> Result<Self::Checked, ReadError> {
        let result = match given {
            AskOutcome::Ask(ask) => return asking::check(ask, Self::NAME).map(AskOutcome::Ask),
            AskOutcome::Done(result) => result,
        };
        if result.messages.is_empty() {
            return Err(ReadError::BadOutput("get gave no messages; expected at least one".to_owned()));
        }
        blocks::check_number(result.messages.len(), Self::NAME)?;
        let message =
            |Message { role, block }| blocks::check(block, Self::NAME, names).map(|block| Message { role, block });
        let messages: Vec<_> = result.messages.into_iter().map(message).collect::<Result<_, _>>()?;
        Ok(AskOutcome::Done(PromptResult { description: result.description.map(clean_description), messages }))
    }
}

fn outcome(given: generated::Outcome) -> AskOutcome<PromptResult> {
    match given {
        generated::Outcome::Ask(ask) => AskOutcome::Ask(ask.into()),
        generated::Outcome::Done(result) => AskOutcome::Done(PromptResult {
            description: result.description,
            messages: result.messages.into_iter().map(Into::into).collect(),
        }),
    }
}

/// `complete`, for an argument of a prompt.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub struct CompletePrompt(pub PromptCompletion);

impl Function for CompletePrompt {
    type Indices = PromptIndices;
    type Reply = Suggestions;
    type Checked = Suggestions;
    const NAME: &'static str = "complete-prompt";
    const ACTION: Action = Action::Prompt;

    fn input(&self) -> Option<Vec<&str>> {
        let PromptCompletion { prompt, name, value, resolved } = &self.0;
        let resolved = resolved.iter().flat_map(|(name, value)| [name.as_str(), value.as_str()]);
        Some([prompt.as_str(), name, value].into_iter().chain(resolved).collect())
    }

    fn shown(&self) -> Option<&str> {
        Some(&self.0.prompt)
    }

    fn reference(&self) -> Option<&str> {
        Some(&self.0.prompt)
    }

    async fn call<T: Send + 'static>(
        &self,
        indices: &PromptIndices,
        store: &mut Store<T>,
        instance: &Instance,
    ) -> Returned<Suggestions> {
        let guest = indices.load(&mut *store, instance)?;
        let PromptCompletion { prompt, name, value, resolved } = &self.0;
        let given = guest.call_complete(store, prompt, &argument((name, value)), &arguments(resolved)).await?;
        Ok(given.map(|given| Suggestions { values: given.values, total: given.total }).map_err(Into::into))
    }

    fn bytes(given: &Suggestions) -> usize {
        given.values.iter().map(|value| value.len() + ENTRY_CHARGE).sum()
    }

    fn redact(Suggestions { values, total: _ }: &mut Suggestions, redactor: Option<&Redactor>) {
        if let Some(redactor) = redactor {
            values.iter_mut().for_each(|text| redactor.mask(text));
        }
    }

    /// Cleans the suggestions. Leaves out duplicates and long values.
    fn check(&self, mut given: Suggestions, _: &dyn MountContext) -> Result<Suggestions, ReadError> {
        let mut seen = HashSet::new();
        let values = given.values.into_iter().filter(|value| value.len() <= MAX_VALUE);
        given.values = values
            .map(|value| text::cleaned(value, MAX_VALUE))
            .filter(|value| seen.insert(value.clone()))
            .take(MAX_SUGGESTIONS + 1)
            .collect();
        Ok(given)
    }
}
