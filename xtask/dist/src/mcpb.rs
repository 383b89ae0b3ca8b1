//! The MCP bundle (`.mcpb`): a desktop client installs it with one click, and asks the user for the directories to serve.
//! They become grants of the provider `files`.

use anyhow::Result;
use serde_json::json;

use crate::output::Output;
use crate::project::{AUTHORS, Project};
use crate::target::Target;
use crate::tree::Tree;
use crate::zip_archive;

/// The version of the format.
const MANIFEST_VERSION: &str = "0.3";

/// The path of the program in the bundle.
const PROGRAM: &str = "bin/belljar";

/// Writes `belljar-VERSION-TARGET.mcpb`.
pub(crate) fn write(output: &Output, project: &Project, target: &Target, tree: &Tree) -> Result<()> {
    let mut manifest = json!({
        "manifest_version": MANIFEST_VERSION,
        "name": "belljar",
        "display_name": "belljar",
        "version": project.version,
        "description": project.description,
        "author": { "name": AUTHORS },
        "license": project.license,
        "server": {
            "type": "binary",
            "entry_point": PROGRAM,
            "mcp_config": {
                "command": format!("${{__dirname}}/{PROGRAM}"),
                // The client puts one argument for each directory.
                "args": ["serve", "--files", "${user_config.directories}"],
            },
        },
        "user_config": {
            "directories": {
                "type": "directory",
                "title": "Directories",
                "description": "The assistant can read the files in these directories. It cannot change them, and it cannot read others.",
                "required": true,
                "multiple": true,
            },
        },
        "tools_generated": true,
        "prompts_generated": true,
        "compatibility": { "platforms": ["linux"] },
    });
    if let (Some(address), Some(fields)) = (&project.repository, manifest.as_object_mut()) {
        fields.insert("repository".to_owned(), json!({ "type": "git", "url": address }));
    }
    // A bundle is for a client, which uses no manual pages and no completions.
    let mut bundle = tree.filtered(|path| !path.starts_with("share/"));
    bundle.file("manifest.json", format!("{manifest:#}\n").into_bytes());
    bundle.file("LICENSE", project.license_text.clone().into_bytes());
    output.write(&format!("belljar-{}-{}.mcpb", project.version, target.triple()), &zip_archive::pack(&bundle)?)
}
