//! Records the versions of the measured servers.

use std::fs;
use std::path::Path;
use std::process::Command;

use belljar_benches::Record;
use belljar_tests::places;
use serde_json::Value;

use crate::servers::{Kind, Place, node, peers, python};

/// Adds the versions of the installed servers to the record.
pub(crate) fn add(record: &mut Record, place: &Place) {
    let lock = fs::read_to_string(places::repository().join("Cargo.lock")).unwrap_or_default();
    for name in ["belljar", "rmcp", "wasmtime"] {
        record.version(name, &locked(&lock, name));
    }
    if place.lacks(Kind::FastMcp).is_none() {
        let pins = fs::read_to_string(peers().join("py/requirements.txt")).unwrap_or_default();
        let pinned = |name: &str| {
            pins.lines()
                .find_map(|line| line.strip_prefix(name)?.strip_prefix("==")?.split(' ').next().map(str::to_owned))
        };
        for (name, package) in [("FastMCP", "fastmcp"), ("MCP SDK for Python", "mcp"), ("uvicorn", "uvicorn")] {
            record.version(name, &pinned(package).unwrap_or_default());
        }
        record.version("Python", version_of(&python()).trim_start_matches("Python "));
    }
    if place.lacks(Kind::Sdk).is_none() {
        for name in ["server", "server-everything", "server-filesystem"] {
            let name = format!("@modelcontextprotocol/{name}");
            let manifest = peers().join(format!("node/node_modules/{name}/package.json"));
            let manifest: Value = serde_json::from_slice(&fs::read(manifest).unwrap_or_default()).unwrap_or_default();
            record.version(&name, manifest["version"].as_str().unwrap_or_default());
        }
        record.version("Node", version_of(&node()).trim_start_matches('v'));
    }
}

/// The version of a package in `Cargo.lock`.
fn locked(lock: &str, name: &str) -> String {
    let (_, rest) = lock.split_once(&format!("name = \"{name}\"\nversion = \"")).unwrap_or_default();
    rest.split('"').next().unwrap_or_default().to_owned()
}

/// The output of `program --version`.
fn version_of(program: &Path) -> String {
    let output = Command::new(program).arg("--version").output().map(|output| output.stdout).unwrap_or_default();
    String::from_utf8_lossy(&output).trim().to_owned()
}
