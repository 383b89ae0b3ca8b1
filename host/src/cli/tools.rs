//! `belljar tools`: lists the tools of all mounts. It uses the same gateway as MCP clients do.

use std::fmt::Write as _;
use std::process::ExitCode;

use serde_json::{Value, json};

use super::fields::Field;
use super::rounds::{self, HostArgs};
use super::{arguments, output, table};
use crate::gateway::definitions::PublicDefinition;
use crate::gateway::hints::ToolHints;
use crate::interfaces::tools::ToolDefinition;
use crate::model::{MountName, command, text};
use crate::server::failure::Failure;

/// The most characters of a description.
const MAX_DESCRIPTION_CHARS: usize = 2000;

pub(super) fn run(host: HostArgs<'_>, only: Option<&str>, as_json: bool) -> Result<ExitCode, Failure> {
    let only = only.map(MountName::new).transpose().map_err(Failure::misused)?;
    rounds::with_host(host, async |host| {
        let (tools, notices) = rounds::definitions::<ToolDefinition>(&host.gateway, only.as_ref()).await?;
        match as_json {
            true => output::print_json(&to_json(&tools, &notices))?,
            false => table::print(&to_text(&tools, &notices))?,
        }
        Ok(ExitCode::SUCCESS)
    })
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

/// The title and the description, each line with two spaces before it. Both are the provider's words.
pub(super) fn about(tool: &PublicDefinition<ToolDefinition>) -> String {
    let tool = &tool.definition.tool;
    let title = tool.title.iter().map(String::as_str);
    let lines = title.chain(tool.description.lines()).filter(|line| !line.trim().is_empty());
    lines.map(|line| format!("  {}\n", text::excerpt(line, MAX_DESCRIPTION_CHARS))).collect()
}

fn to_text(tools: &[PublicDefinition<ToolDefinition>], notices: &[(MountName, String)]) -> String {
    let mut out = String::new();
    for tool in tools {
        let hints = hints_text(tool);
        let style = if hints.starts_with("read-only") { table::GOOD } else { table::WARN };
        let mount = table::styled(table::FAINT, format!("(mount \"{}\")", tool.mount.name));
        let (name, hints) = (table::styled(table::NAME, &tool.name), table::styled(style, hints));
        let _ = writeln!(out, "{name}  {hints}  {mount}");
        out += &about(tool);
        out += &arguments::help(&Field::all_of(tool.definition.input.object()), 4);
    }
    out += &notices_text(notices);
    match out.is_empty() {
        true => format!("no mount has tools; what the mounts have, says: {}\n", command::line(["check"])),
        false => out,
    }
}

/// One line for each notice.
pub(super) fn notices_text(notices: &[(MountName, String)]) -> String {
    let line =
        |(mount, why): &(MountName, String)| format!("{} mount \"{mount}\": {why}\n", table::styled(table::WARN, "!"));
    notices.iter().map(line).collect()
}

/// The notices as JSON.
pub(super) fn notices_json(notices: &[(MountName, String)]) -> Value {
    notices.iter().map(|(mount, why)| json!({ "mount": mount.as_str(), "reason": why })).collect()
}

fn to_json(tools: &[PublicDefinition<ToolDefinition>], notices: &[(MountName, String)]) -> Value {
    let one = |tool: &PublicDefinition<ToolDefinition>| {
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
    };
    json!({ "tools": tools.iter().map(one).collect::<Vec<_>>(), "notices": notices_json(notices) })
}
