//! `belljar prompts`: lists the prompts of all mounts. It uses the same gateway as MCP clients do.

use std::fmt::Write as _;
use std::process::ExitCode;

use serde_json::{Value, json};

use super::fields::Field;
use super::rounds::{self, HostArgs};
use super::tools::{notices_json, notices_text};
use super::{arguments, output, table};
use crate::gateway::definitions::PublicDefinition;
use crate::model::{MountName, Prompt, command, text};
use crate::server::failure::Failure;

/// The most characters of a description.
const MAX_DESCRIPTION_CHARS: usize = 2000;

pub(super) fn run(host: HostArgs<'_>, only: Option<&str>, as_json: bool) -> Result<ExitCode, Failure> {
    let only = only.map(MountName::new).transpose().map_err(Failure::misused)?;
    rounds::with_host(host, async |host| {
        let (prompts, notices) = rounds::definitions::<Prompt>(&host.gateway, only.as_ref()).await?;
        match as_json {
            true => output::print_json(&to_json(&prompts, &notices))?,
            false => table::print(&to_text(&prompts, &notices))?,
        }
        Ok(ExitCode::SUCCESS)
    })
}

/// The title and the description, each line with two spaces before it. Both are the provider's words.
pub(super) fn about(prompt: &Prompt) -> String {
    let title = prompt.title.iter().map(String::as_str);
    let lines = title.chain(prompt.description.lines()).filter(|line| !line.trim().is_empty());
    lines.map(|line| format!("  {}\n", text::excerpt(line, MAX_DESCRIPTION_CHARS))).collect()
}

fn to_text(prompts: &[PublicDefinition<Prompt>], notices: &[(MountName, String)]) -> String {
    let mut out = String::new();
    for prompt in prompts {
        let mount = table::styled(table::FAINT, format!("(mount \"{}\")", prompt.mount.name));
        let _ = writeln!(out, "{}  {mount}", table::styled(table::NAME, &prompt.name));
        out += &about(&prompt.definition);
        out += &arguments::help(&Field::of_prompt(&prompt.definition), 4);
    }
    out += &notices_text(notices);
    match out.is_empty() {
        true => format!("no mount has prompts; what the mounts have, says: {}\n", command::line(["check"])),
        false => out,
    }
}

fn to_json(prompts: &[PublicDefinition<Prompt>], notices: &[(MountName, String)]) -> Value {
    let one = |prompt: &PublicDefinition<Prompt>| {
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
    };
    json!({ "prompts": prompts.iter().map(one).collect::<Vec<_>>(), "notices": notices_json(notices) })
}
