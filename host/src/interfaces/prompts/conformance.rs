//! The conformance checks of `prompt-provider`.

use super::{CompletePrompt, GetPrompt, ListPrompts};
use crate::interfaces::conformance::{Check, ConformanceCaller, ConformanceRun, is_crash, shown};
use crate::model::{AskContext, AskOutcome, Prompt, PromptCompletion, ReadError};

/// A name that no prompt has.
const UNKNOWN: &str = "belljar-conformance-there-is-no-such-prompt";

/// The most prompts that are asked for.
const MAX_PROMPTS: usize = 20;

/// Runs the checks of this interface.
pub(in crate::interfaces) async fn check<A: ConformanceCaller>(run: &mut ConformanceRun<'_, A>) {
    run.check_prompts().await;
}

impl<A: ConformanceCaller> ConformanceRun<'_, A> {
    async fn check_prompts(&mut self) {
        let mut check = Check::new("prompts");
        let prompts: Vec<Prompt> = match self.call(ListPrompts).await {
            Ok(given) => match self.checked(&ListPrompts, given) {
                Ok(list) => {
                    list.left_out.into_iter().for_each(|why| check.bad(why));
                    list.all.iter().map(|one| Prompt::clone(one)).collect()
                }
                Err(error) => {
                    check.bad(error.to_string());
                    Vec::new()
                }
            },
            Err(error) => {
                check.unexpected("list-prompts", &error, "all prompts, also without a grant");
                Vec::new()
            }
        };
        let get = |name: &str, arguments: Vec<(String, String)>| GetPrompt {
            name: name.to_owned(),
            arguments,
            context: AskContext::default(),
        };
        match self.call(get(UNKNOWN, Vec::new())).await {
            Err(ReadError::NotFound) => {}
            Ok(_) => check.bad("an unknown prompt gave messages; expected `not-found`".to_owned()),
            Err(error) => check.unexpected("an unknown prompt", &error, "`not-found`"),
        }
        for prompt in prompts.iter().take(MAX_PROMPTS) {
            self.check_prompt(prompt, get, &mut check).await;
        }
        self.found(check.finding(format!("{} prompts", prompts.len())));
    }

    /// Completes the arguments of a prompt, and gets it with what was suggested.
    async fn check_prompt(
        &mut self,
        prompt: &Prompt,
        get: impl Fn(&str, Vec<(String, String)>) -> GetPrompt,
        check: &mut Check,
    ) {
        let name = shown(&prompt.name);
        if prompt.description.trim().is_empty() {
            check.warn(format!("the prompt {name} has no description"));
        }
        let mut arguments = Vec::new();
        for argument in &prompt.arguments {
            let (argument_name, value) = (argument.name.clone(), String::new());
            let completion =
                PromptCompletion { prompt: prompt.name.clone(), name: argument_name, value, resolved: Vec::new() };
            let suggested = match self.call(CompletePrompt(completion)).await {
                Ok(given) => given.values.into_iter().next(),
                Err(error) => {
                    let what = format!("complete of {} in {name}", shown(&argument.name));
                    check.unexpected(&what, &error, "suggestions, or none");
                    None
                }
            };
            if argument.required {
                arguments.push((argument.name.clone(), suggested.unwrap_or_else(|| "a".to_owned())));
            }
        }
        arguments.sort();
        let function = get(&prompt.name, arguments);
        match self.call(function.clone()).await {
            Ok(given) => match self.checked(&function, given) {
                Ok(AskOutcome::Ask(_)) => {
                    check.warn(format!("{name} asks a client that cannot ask a person; do without the answer"));
                }
                Ok(AskOutcome::Done(_)) => {}
                Err(error) => check.bad(format!("{name}: {error}")),
            },
            Err(ReadError::NotFound) => check.bad(format!("{name} is listed, but it is `not-found`")),
            Err(error) if is_crash(&error) => check.bad(format!("{name}: {error}")),
            Err(_) => {}
        }
    }
}
