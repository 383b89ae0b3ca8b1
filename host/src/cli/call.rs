//! `belljar call`: calls one tool. It uses the same gateway as MCP clients do.

use std::path::Path;
use std::process::ExitCode;

use serde_json::{Value, json};

use super::blocks::{self, Stream};
use super::fields::Field;
use super::host::HostArgs;
use super::{arguments, definitions, output, rounds, tools};
use crate::catalog::Mount;
use crate::gateway::asking::AskInput;
use crate::gateway::definitions::PublicDefinition;
use crate::gateway::invoke::ToolReply;
use crate::interfaces::tools::ToolDefinition;
use crate::model::Block;
use crate::server::failure::Failure;
use crate::server::startup;

/// The end of the help.
pub(super) const HELP: &str = "Everything after NAME is for the tool: flags made from its schema, or one JSON object in quotes.\nThe flags of belljar itself stand before NAME.\n\nExamples:\n  belljar call notes_search --help\n  belljar call notes_search --query plan --limit 5\n  belljar call --json notes_search '{\"query\": \"plan\"}'\n\nA tool that failed, and a tool whose provider asks when nobody can be asked, give exit code 1;\narguments that do not fit give 2.";

pub(super) fn run(
    host: HostArgs<'_>,
    words: &[String],
    output: Option<&Path>,
    as_json: bool,
) -> Result<ExitCode, Failure> {
    let fields = |tool: &ToolDefinition| Field::all_of(tool.input.object());
    definitions::with_arguments(host, words, fields, help, async |host, name, arguments| {
        let call = async |input: AskInput<'_>| {
            host.gateway.call_tool(&startup::caller(), name, arguments.clone(), input, std::future::ready(())).await
        };
        let (reply, mount) = rounds::invoke(&host.config, call).await?;
        print(name, &reply, &mount, output, as_json)?;
        Ok(if reply.result.is_error { ExitCode::FAILURE } else { ExitCode::SUCCESS })
    })
}

fn print(name: &str, reply: &ToolReply, mount: &Mount, output: Option<&Path>, as_json: bool) -> Result<(), Failure> {
    let blocks: Vec<&Block> = reply.result.content.iter().collect();
    match (as_json, output, &reply.structured) {
        (true, ..) => output::print_json(&to_json(name, reply, mount)),
        _ if reply.result.is_error => blocks::print(&blocks, Stream::Error),
        (_, Some(path), _) => blocks::write_file(&blocks, path),
        (_, None, Some(structured)) if blocks.is_empty() => output::print_json(structured),
        (_, None, _) => blocks::print(&blocks, Stream::Output),
    }
}

fn to_json(name: &str, reply: &ToolReply, mount: &Mount) -> Value {
    json!({
        "tool": name,
        "mount": mount.name.as_str(),
        "digest": mount.digest.to_string(),
        "isError": reply.result.is_error,
        "content": reply.result.content.iter().map(blocks::to_json).collect::<Vec<_>>(),
        "structuredContent": reply.structured,
    })
}

/// What the tool does, and its arguments.
fn help(found: &PublicDefinition<ToolDefinition>, fields: &[Field]) -> String {
    let about = tools::about(found);
    let arguments = match fields.is_empty() {
        true => "It takes no arguments as flags.\n".to_owned(),
        false => format!("Arguments, as flags or as one JSON object:\n{}", arguments::help(fields, 2)),
    };
    format!("{} ({})\n{about}\n{arguments}", found.name, tools::hints_text(found))
}
