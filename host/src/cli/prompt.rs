//! `belljar prompt`: gets one prompt and prints its messages. It uses the same gateway as MCP clients do.

use std::collections::BTreeMap;
use std::path::Path;
use std::process::ExitCode;

use serde_json::{Value, json};

use super::blocks::{self, Stream};
use super::fields::Field;
use super::host::HostArgs;
use super::{arguments, definitions, output, prompts, rounds};
use crate::catalog::Mount;
use crate::gateway::asking::AskInput;
use crate::gateway::definitions::PublicDefinition;
use crate::model::{Block, Message, Prompt, PromptResult, Role, text};
use crate::server::failure::Failure;
use crate::server::startup;

/// The end of the help.
pub(super) const HELP: &str = "Everything after NAME is for the prompt: its arguments as flags, or one JSON object of texts in quotes.\nThe flags of belljar itself stand before NAME.\n\nExamples:\n  belljar prompt notes_review --help\n  belljar prompt notes_review --folder 2026";

pub(super) fn run(
    host: HostArgs<'_>,
    words: &[String],
    output: Option<&Path>,
    as_json: bool,
) -> Result<ExitCode, Failure> {
    definitions::with_arguments(host, words, Field::of_prompt, help, async |host, name, arguments| {
        let arguments = texts(arguments).map_err(Failure::Misused)?;
        let get = async |input: AskInput<'_>| {
            host.gateway.get_prompt(&startup::caller(), name, arguments.clone(), input, std::future::ready(())).await
        };
        let (result, mount) = rounds::invoke(&host.config, get).await?;
        match (as_json, output) {
            (true, _) => output::print_json(&to_json(name, &result, &mount))?,
            (false, Some(path)) => {
                let blocks: Vec<&Block> = result.messages.iter().map(|message| &message.block).collect();
                blocks::write_file(&blocks, path)?;
            }
            (false, None) => print(&result.messages)?,
        }
        Ok(ExitCode::SUCCESS)
    })
}

/// The arguments of a prompt: texts.
fn texts(arguments: serde_json::Map<String, Value>) -> Result<BTreeMap<String, String>, String> {
    let one = |(name, value): (String, Value)| match value {
        Value::String(value) => Ok((name, value)),
        _ => Err(format!("the argument {} is not a text; expected one in quotes", text::quoted(&name, 80))),
    };
    arguments.into_iter().map(one).collect()
}

fn role(role: Role) -> &'static str {
    match role {
        Role::User => "user",
        Role::Assistant => "assistant",
    }
}

/// Prints the messages. A line before each one says whose it is, unless there is only one.
fn print(messages: &[Message]) -> Result<(), Failure> {
    for message in messages {
        if messages.len() > 1 {
            output::print(&format!("==> {} <==\n", role(message.role)))?;
        }
        blocks::print(&[&message.block], Stream::Output)?;
    }
    Ok(())
}

fn to_json(name: &str, result: &PromptResult, mount: &Mount) -> Value {
    let message =
        |Message { role: whose, block }: &Message| json!({ "role": role(*whose), "content": blocks::to_json(block) });
    json!({
        "prompt": name,
        "mount": mount.name.as_str(),
        "digest": mount.digest.to_string(),
        "description": result.description,
        "messages": result.messages.iter().map(message).collect::<Vec<_>>(),
    })
}

/// What the prompt is for, and its arguments.
fn help(found: &PublicDefinition<Prompt>, fields: &[Field]) -> String {
    let arguments = match fields.is_empty() {
        true => "It takes no arguments.\n".to_owned(),
        false => format!("Arguments:\n{}", arguments::help(fields, 2)),
    };
    format!("{}\n{}\n{arguments}", found.name, prompts::about(&found.definition))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn arguments_of_a_prompt_are_texts() {
        let texts = |value: Value| texts(value.as_object().unwrap().clone());
        assert_eq!(texts(json!({ "a": "b" })), Ok(BTreeMap::from([("a".to_owned(), "b".to_owned())])));
        assert_eq!(texts(json!({ "a": 1 })).unwrap_err(), "the argument \"a\" is not a text; expected one in quotes");
    }
}
