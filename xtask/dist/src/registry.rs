//! The entry in the MCP registry, by its schema of 2025-12-11.

use serde_json::{Value, json};

use crate::project::Project;

/// The schema of the entry.
const SCHEMA: &str = "https://static.modelcontextprotocol.io/schemas/2025-12-11/server.schema.json";

/// The text of `server.json`. `None` without a namespace, because the registry identifies a server by it.
pub(crate) fn entry(project: &Project) -> Option<String> {
    let mut entry = json!({
        "$schema": SCHEMA,
        "name": project.registry_name()?,
        "description": project.description,
        "version": project.version,
        "packages": [package(project, "npm", "npx"), package(project, "pypi", "uvx")],
    });
    if let (Some(address), Some(fields)) = (&project.repository, entry.as_object_mut()) {
        // The schema has a word for each forge that the registry can look at.
        let forge = if address.starts_with("https://gitlab.com/") { "gitlab" } else { "github" };
        fields.insert("repository".to_owned(), json!({ "url": address, "source": forge }));
    }
    Some(format!("{entry:#}\n"))
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
