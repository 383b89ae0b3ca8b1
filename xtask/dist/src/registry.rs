//! The entry in the MCP registry, by its schema of 2025-12-11.

use anyhow::Result;
use serde_json::{Value, json};

use crate::output::Output;
use crate::project::Project;

/// The schema of the entry.
const SCHEMA: &str = "https://static.modelcontextprotocol.io/schemas/2025-12-11/server.schema.json";

/// Writes `server.json`. Without a namespace it writes nothing, because the registry identifies a server by it.
pub(crate) fn write(output: &Output, project: &Project) -> Result<()> {
    let Some(name) = project.registry_name() else { return Ok(()) };
    let mut entry = json!({
        "$schema": SCHEMA,
        "name": name,
        "description": project.description,
        "version": project.version,
        "packages": [package(project, "npm", "npx"), package(project, "pypi", "uvx")],
    });
    if let (Some(address), Some(fields)) = (&project.repository, entry.as_object_mut()) {
        // The schema has a word for each forge that the registry can look at.
        let forge = if address.starts_with("https://gitlab.com/") { "gitlab" } else { "github" };
        fields.insert("repository".to_owned(), json!({ "url": address, "source": forge }));
    }
    output.write("server.json", format!("{entry:#}\n").as_bytes())
}

/// A package that starts `belljar serve`: its registry, and the command that runs packages of that registry.
fn package(project: &Project, registry: &str, command: &str) -> Value {
    json!({
        "registryType": registry,
        "identifier": "belljar",
        "version": project.version,
        "runtimeHint": command,
        "transport": { "type": "stdio" },
        "packageArguments": [{ "type": "positional", "value": "serve" }],
    })
}
