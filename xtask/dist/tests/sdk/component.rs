//! Checks that a file is a component that exports the interface of providers.

use std::fs;
use std::path::Path;

use wasmparser::{Parser, Payload, Validator, WasmFeatures};

/// The interface of providers, without its version.
const INTERFACE: &str = "belljar:provider/resource-provider@";

/// Panics unless the file is a valid component that exports the interface.
pub(crate) fn assert_provider(path: &Path) {
    let bytes = fs::read(path).unwrap_or_else(|error| panic!("{}: {error}", path.display()));
    let exports = exports(&bytes).unwrap_or_else(|error| panic!("{}: {error}", path.display()));
    assert!(exports.iter().any(|name| name.starts_with(INTERFACE)), "{}: exports {exports:?}", path.display());
}

/// The names that a component exports. An error if the bytes are no valid component.
fn exports(bytes: &[u8]) -> Result<Vec<String>, String> {
    Validator::new_with_features(WasmFeatures::all()).validate_all(bytes).map_err(|error| error.to_string())?;
    if !Parser::is_component(bytes) {
        return Err("a core module, and no component".to_owned());
    }
    let (mut names, mut depth) = (Vec::new(), 0);
    for payload in Parser::new(0).parse_all(bytes) {
        match payload.map_err(|error| error.to_string())? {
            Payload::ModuleSection { .. } | Payload::ComponentSection { .. } => depth += 1,
            Payload::End(_) => depth -= 1,
            Payload::ComponentExportSection(section) if depth == 0 => {
                for export in section {
                    names.push(export.map_err(|error| error.to_string())?.name.name.to_owned());
                }
            }
            _ => {}
        }
    }
    Ok(names)
}

#[test]
fn files_without_exports_are_found() {
    let module = b"\0asm\x01\0\0\0";
    assert_eq!(exports(module), Err("a core module, and no component".to_owned()));
    assert!(exports(b"#!/bin/sh\n").is_err());
    // The shortest component.
    assert_eq!(exports(b"\0asm\x0d\0\x01\0"), Ok(Vec::new()));
}
