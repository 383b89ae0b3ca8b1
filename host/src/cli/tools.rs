//! `belljar tools`: lists the tools of all mounts. It uses the same gateway as MCP clients do.

use std::process::ExitCode;

use serde_json::{Value, json};

use super::fields::Field;
use super::host::HostArgs;
use super::{arguments, definitions, table};
use crate::gateway::definitions::PublicDefinition;
use crate::gateway::hints::ToolHints;
use crate::interfaces::tools::ToolDefinition;
use crate::server::failure::Failure;

pub(super) fn run(host: HostArgs<'_>, only: Option<&str>, as_json: bool) -> Result<ExitCode, Failure> {
    definitions::list(host, only, as_json, to_text, to_json)
}

/// What clients are told about the effects of a tool, in words.
pub(super) fn hints_text(tool: &PublicDefinition<ToolDefinition>) -> String {
    let hints = ToolHints::of(&tool.definition, &tool.mount);
    let changes = match (hints.read_only, hints.destructive) {
        (true, _) => "read-only",
        (false, true) => "can change and delete",
        (false, false) => "can add",
    };
    let reach = if hints.open_world { ", open world" } else { "" };
    format!("{changes}{reach}")
}

/// The title and the description.
pub(super) fn about(tool: &PublicDefinition<ToolDefinition>) -> String {
    let tool = &tool.definition.tool;
    definitions::about(tool.title.as_deref(), &tool.description)
}

fn to_text(tool: &PublicDefinition<ToolDefinition>) -> String {
    let hints = hints_text(tool);
    let style = if hints.starts_with("read-only") { table::GOOD } else { table::WARN };
    let mount = table::styled(table::FAINT, format!("(mount \"{}\")", tool.mount.name));
    let (name, hints) = (table::styled(table::NAME, &tool.name), table::styled(style, hints));
    let arguments = arguments::help(&Field::all_of(tool.definition.input.object()), 4);
    format!("{name}  {hints}  {mount}\n{}{arguments}", about(tool))
}

fn to_json(tool: &PublicDefinition<ToolDefinition>) -> Value {
    let hints = ToolHints::of(&tool.definition, &tool.mount);
    json!({
        "name": tool.name,
        "mount": tool.mount.name.as_str(),
        "title": tool.definition.tool.title,
        "description": tool.definition.tool.description,
        "readOnly": hints.read_only,
        "destructive": hints.destructive,
        "idempotent": hints.idempotent,
        "openWorld": hints.open_world,
        "inputSchema": tool.definition.input.object(),
        "outputSchema": tool.definition.output.as_ref().map(|schema| schema.object()),
    })
}
