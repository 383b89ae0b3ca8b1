//! `belljar prompts`: lists the prompts of all mounts. It uses the same gateway as MCP clients do.

use std::process::ExitCode;

use serde_json::{Value, json};

use super::fields::Field;
use super::host::HostArgs;
use super::{arguments, definitions, table};
use crate::gateway::definitions::PublicDefinition;
use crate::model::Prompt;
use crate::server::failure::Failure;

pub(super) fn run(host: HostArgs<'_>, only: Option<&str>, as_json: bool) -> Result<ExitCode, Failure> {
    definitions::list(host, only, as_json, to_text, to_json)
}

/// The title and the description.
pub(super) fn about(prompt: &Prompt) -> String {
    definitions::about(prompt.title.as_deref(), &prompt.description)
}

fn to_text(prompt: &PublicDefinition<Prompt>) -> String {
    let mount = table::styled(table::FAINT, format!("(mount \"{}\")", prompt.mount.name));
    let name = table::styled(table::NAME, &prompt.name);
    let arguments = arguments::help(&Field::of_prompt(&prompt.definition), 4);
    format!("{name}  {mount}\n{}{arguments}", about(&prompt.definition))
}

fn to_json(prompt: &PublicDefinition<Prompt>) -> Value {
    let arguments = prompt.definition.arguments.iter().map(|argument| {
        json!({
            "name": argument.name, "title": argument.title, "description": argument.description,
            "required": argument.required,
        })
    });
    json!({
        "name": prompt.name,
        "mount": prompt.mount.name.as_str(),
        "title": prompt.definition.title,
        "description": prompt.definition.description,
        "arguments": arguments.collect::<Vec<_>>(),
    })
}
