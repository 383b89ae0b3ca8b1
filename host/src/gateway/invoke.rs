//! Calls of tools, and prompts. Neither is cached, shared with another request, or made a second time by belljar.

use std::collections::BTreeMap;
use std::sync::Arc;

use serde_json::{Map, Value};
use sha2::{Digest as _, Sha256};

use super::asking::{AskInput, OpenedInput, ProviderQuestions};
use super::consent::{AskedRequest, ConsentQuestion};
use super::definitions::FoundDefinition;
use super::pipeline::{ConsentContext, Gateway, MountCall, UncheckedReply};
use super::record;
use super::response_cost::ResponseCost;
use crate::catalog::Mount;
use crate::interfaces::prompts::{CompletePrompt, GetPrompt};
use crate::interfaces::tools::{CallTool, ToolDefinition};
use crate::interfaces::{Exported, Request};
use crate::model::bounds::MAX_ARGUMENTS;
use crate::model::{
    AskContext, AskOutcome, AskedQuestions, Block, BlockBody, Consent, Fault, Message, MountName, Prompt,
    PromptCompletion, PromptResult, ReadError, Suggestions, ToolResult,
};
use crate::policy::{Access, Action, Caller};

/// The outcome of a request that may ask a person.
pub enum Invoked<T> {
    /// The result, its mount, and the cost record for further work on it.
    Done(T, Arc<Mount>, ResponseCost),
    /// Questions of the provider.
    Ask(ProviderQuestions),
    /// belljar's own question.
    ConsentRequired(ConsentQuestion),
    /// The call failed for lack of a grant that a person could allow, and the client cannot ask a person.
    ConsentUnavailable(Fault),
}

/// The checked result of a tool.
pub struct ToolReply {
    /// The result.
    pub result: ToolResult,
    /// The structured result, parsed.
    pub structured: Option<Value>,
}

/// The parts of a request that do not depend on what is invoked.
struct Invocation<'a> {
    caller: &'a Caller,
    /// The public name.
    name: &'a str,
    operation: &'static str,
    mount: Arc<Mount>,
    access: Access,
    asked: AskedRequest<'a>,
}

impl Invocation<'_> {
    fn fault(&self, error: ReadError) -> Fault {
        Fault { error, mount: Some(self.mount.name.clone()), uri: None }
    }
}

impl Gateway {
    /// Calls the tool with the public name `name`.
    ///
    /// Waits for `room` for the answer after the call has its turn.
    ///
    /// # Errors
    /// [`ReadError::NotFound`] if there is no such tool, or it is hidden. [`ReadError::BadArguments`] if the arguments do not
    /// fit its schema; then no call was made.
    pub async fn call_tool(
        &self,
        caller: &Caller,
        name: &str,
        arguments: Map<String, Value>,
        input: AskInput<'_>,
        room: impl Future<Output = ()>,
    ) -> Result<Invoked<ToolReply>, Fault> {
        self.audit.wait_for_room().await;
        let found = self.find_definition::<ToolDefinition>(caller, name).await;
        let FoundDefinition { mount, definition, access } =
            found.map_err(|(error, mount)| self.refuse_unfound(caller, CALL_TOOL, name, mount, error))?;
        let arguments = Value::Object(arguments);
        let json = arguments.to_string();
        let asked = AskedRequest::Call { tool: name.into(), arguments: Sha256::digest(json.as_bytes()).into() };
        let invocation = Invocation { caller, name, operation: CALL_TOOL, mount, access, asked };
        let checked = match json.len() > MAX_ARGUMENTS.get() {
            true => Err(format!("they have {} bytes; the limit is {}", json.len(), MAX_ARGUMENTS.get())),
            false => definition.check_arguments(&arguments).map_err(|why| why.to_string()),
        };
        if let Err(why) = checked {
            return Err(self.refuse_call(&invocation, ReadError::BadArguments(why)));
        }
        let own = definition.tool.name.clone();
        let function = move |context| CallTool { name: own.clone(), arguments: json.clone(), context };
        let invoked = self.invoke(invocation, input, function, room).await?;
        Ok(match invoked {
            Invoked::Done(mut result, mount, mut cost) => {
                self.drop_unreadable(caller, &mount, &mut result.content);
                let bytes = result.structured.as_ref().map_or(0, String::len);
                let structured = cost.charge(bytes.saturating_mul(2), || definition.structured(&result));
                match structured {
                    Ok(structured) => Invoked::Done(ToolReply { result, structured }, mount, cost),
                    Err(error) => {
                        cost.fail(&error);
                        return Err(Fault { error, mount: Some(mount.name.clone()), uri: None });
                    }
                }
            }
            Invoked::Ask(questions) => Invoked::Ask(questions),
            Invoked::ConsentRequired(question) => Invoked::ConsentRequired(question),
            Invoked::ConsentUnavailable(fault) => Invoked::ConsentUnavailable(fault),
        })
    }

    /// Gets the prompt with the public name `name`.
    ///
    /// # Errors
    /// As [`Gateway::call_tool`].
    pub async fn get_prompt(
        &self,
        caller: &Caller,
        name: &str,
        arguments: BTreeMap<String, String>,
        input: AskInput<'_>,
        room: impl Future<Output = ()>,
    ) -> Result<Invoked<PromptResult>, Fault> {
        self.audit.wait_for_room().await;
        let found = self.find_definition::<Prompt>(caller, name).await;
        let FoundDefinition { mount, definition, access } =
            found.map_err(|(error, mount)| self.refuse_unfound(caller, GET_PROMPT, name, mount, error))?;
        let arguments: Vec<_> = arguments.into_iter().collect();
        let mut digest = Sha256::new();
        for part in arguments.iter().flat_map(|(name, value)| [name, value]) {
            digest.update((part.len() as u64).to_le_bytes());
            digest.update(part);
        }
        let asked = AskedRequest::Prompt { prompt: name.into(), arguments: digest.finalize().into() };
        let invocation = Invocation { caller, name, operation: GET_PROMPT, mount, access, asked };
        if let Err(why) = check_arguments(&definition, &arguments) {
            return Err(self.refuse_call(&invocation, ReadError::BadArguments(why)));
        }
        let own = definition.name.clone();
        let function = move |context| GetPrompt { name: own.clone(), arguments: arguments.clone(), context };
        let mut invoked = self.invoke(invocation, input, function, room).await?;
        if let Invoked::Done(result, mount, _) = &mut invoked {
            result.messages.retain(|Message { block, .. }| self.is_readable(caller, mount, block));
        }
        Ok(invoked)
    }

    /// Suggests values for an argument of a prompt. `input.prompt` is its public name.
    ///
    /// # Errors
    /// The fault, or the names of the arguments that the prompt has.
    pub async fn complete_prompt(
        &self,
        caller: &Caller,
        input: PromptCompletion,
    ) -> Result<Result<Suggestions, Vec<String>>, Fault> {
        let found = self.find_definition::<Prompt>(caller, &input.prompt).await;
        let FoundDefinition { mount, definition, access: _ } = found
            .map_err(|(error, mount)| self.refuse_unfound(caller, "complete-prompt", &input.prompt, mount, error))?;
        if !definition.arguments.iter().any(|argument| argument.name == input.name) {
            return Ok(Err(definition.arguments.iter().map(|argument| argument.name.clone()).collect()));
        }
        let known = |name: &String| definition.arguments.iter().any(|argument| argument.name == *name);
        let resolved = input.resolved.into_iter().filter(|(name, _)| known(name)).collect();
        let function = CompletePrompt(PromptCompletion { prompt: definition.name.clone(), resolved, ..input });
        let (suggestions, _) = self.call(MountCall::new(caller, &mount), function).await;
        suggestions.map(Ok).map_err(|error| Fault { error, mount: Some(mount.name.clone()), uri: None })
    }

    /// Makes the call of a tool or a prompt, from one question to a person until the next.
    async fn invoke<F, T>(
        &self,
        invocation: Invocation<'_>,
        mut input: AskInput<'_>,
        function: impl Fn(AskContext) -> F,
        room: impl Future<Output = ()>,
    ) -> Result<Invoked<T>, Fault>
    where
        F: Exported<Checked = AskOutcome<T>>,
    {
        let Invocation { caller, ref mount, ref access, ref asked, .. } = invocation;
        let refuse = |error| self.refuse_call(&invocation, error);
        let progress = input.progress.take();
        let quota = self.count_access(access).await.map_err(refuse)?;
        let opened = self.provider_asks.open(input, asked, &caller.principal, mount).await.map_err(refuse)?;
        let OpenedInput { consent_input, context, given, unanswered } = opened;
        if let Some(questions) = unanswered {
            return Ok(Invoked::Ask(questions));
        }
        let (can_ask, version) = (consent_input.can_answer, self.catalog.config_version());
        let begun = self.consents.begin(consent_input, caller, asked, mount, version).await.map_err(refuse)?;
        let mut consent = if given.is_empty() { begun } else { begun.with_given(given) };
        if let Some(question) = consent.question {
            return Ok(Invoked::ConsentRequired(question));
        }
        // The answer to belljar's own question follows an earlier question of the provider.
        let context = consent.carried.clone().unwrap_or(context);
        if !context.answers.is_empty() {
            consent.carried = Some(context.clone());
        }
        let request: Request = function(context).into();
        let call = MountCall::new(caller, mount);
        let consent_context = ConsentContext { consent: &mut consent, request: asked, progress };
        let reply = self.run(call, Ok(access.clone()), &request, room, consent_context).await;
        let UncheckedReply { has_acted, usage, .. } = &reply;
        let (has_acted, bytes) = (*has_acted, usize::try_from(usage.bytes).unwrap_or(usize::MAX));
        let (outcome, mut cost) = self.check_reply::<F>(mount, &request, reply);
        if let Some(question) = consent.question {
            return Ok(Invoked::ConsentRequired(question));
        }
        match outcome {
            Ok(AskOutcome::Done(result)) => {
                quota.charge(bytes).await;
                Ok(Invoked::Done(result, Arc::clone(mount), cost))
            }
            Ok(AskOutcome::Ask(ask)) => {
                match self.forward(ask, asked, &invocation, can_ask, has_acted, consent.given()) {
                    Ok(questions) => Ok(Invoked::Ask(questions)),
                    Err(error) => {
                        cost.fail(&error);
                        Err(invocation.fault(error))
                    }
                }
            }
            Err(error) if consent.needs_answer => Ok(Invoked::ConsentUnavailable(invocation.fault(error))),
            Err(error) => Err(invocation.fault(error)),
        }
    }

    /// The questions of a call, ready for the client.
    fn forward(
        &self,
        ask: AskedQuestions,
        asked: &AskedRequest<'_>,
        invocation: &Invocation<'_>,
        can_ask: bool,
        has_acted: bool,
        given: &[Consent],
    ) -> Result<ProviderQuestions, ReadError> {
        let refuse = |why: &str| Err(ReadError::BadOutput(format!("{} asks {why}", invocation.operation)));
        match () {
            () if has_acted => {
                refuse("after it sent a request that may have changed something; a provider must ask first")
            }
            () if !can_ask => refuse("a person, but the client cannot ask one"),
            () => Ok(self.provider_asks.ask(ask, asked, &invocation.caller.principal, &invocation.mount, given)),
        }
    }

    /// Removes links to resources, and resources, that `caller` may not read.
    fn drop_unreadable(&self, caller: &Caller, mount: &Mount, blocks: &mut Vec<Block>) {
        blocks.retain(|block| self.is_readable(caller, mount, block));
    }

    fn is_readable(&self, caller: &Caller, mount: &Mount, block: &Block) -> bool {
        let uri = match &block.body {
            BlockBody::Link(link) => &link.reference,
            BlockBody::Embedded(contents) => &contents.reference,
            BlockBody::Text(_) | BlockBody::Image(_) | BlockBody::Audio(_) => return true,
        };
        let reference = uri.strip_prefix(mount.base.as_str());
        reference.is_some_and(|reference| self.decide(&caller.principal, Action::Read, mount, Some(reference)).is_ok())
    }

    fn refuse_call(&self, invocation: &Invocation<'_>, error: ReadError) -> Fault {
        let Invocation { caller, name, operation, mount, .. } = invocation;
        record::record_refusal(&self.audit, caller, operation, name, Some(mount), &error);
        invocation.fault(error)
    }

    fn refuse_unfound(
        &self,
        caller: &Caller,
        operation: &'static str,
        name: &str,
        mount: Option<MountName>,
        error: ReadError,
    ) -> Fault {
        record::record_refusal(&self.audit, caller, operation, name, None, &error);
        Fault { error, mount, uri: None }
    }
}

/// The operations, as the record names them.
const CALL_TOOL: &str = "call-tool";
const GET_PROMPT: &str = "get-prompt";

/// Checks the arguments of a prompt. The error names the argument.
fn check_arguments(prompt: &Prompt, given: &[(String, String)]) -> Result<(), String> {
    let shown = |name: &str| crate::model::text::quoted(name, 80);
    let bytes: usize = given.iter().map(|(name, value)| name.len() + value.len()).sum();
    if bytes > MAX_ARGUMENTS.get() {
        return Err(format!("they have {bytes} bytes; the limit is {}", MAX_ARGUMENTS.get()));
    }
    if let Some((name, _)) = given.iter().find(|(name, _)| !prompt.arguments.iter().any(|one| one.name == *name)) {
        let known: Vec<_> = prompt.arguments.iter().map(|one| shown(&one.name)).collect();
        let known = if known.is_empty() { "none".to_owned() } else { known.join(", ") };
        return Err(format!("there is no argument {}; the arguments are {known}", shown(name)));
    }
    let has = |name: &str| given.iter().any(|(given, _)| given == name);
    match prompt.arguments.iter().find(|one| one.required && !has(&one.name)) {
        Some(missing) => Err(format!("the argument {} is missing", shown(&missing.name))),
        None => Ok(()),
    }
}
