//! SLSA provenance: who built a component, and from which source code. Read from a statement whose signature is checked.

use belljar_fetch_protocol::{Provenance, Signature};
use serde_json::Value;
use sigstore_verify::types::Statement;

use crate::text;

/// The predicate types that are read: SLSA 1 and 0.2.
const TYPES: [&str; 2] = ["https://slsa.dev/provenance/v1", "https://slsa.dev/provenance/v0.2"];

/// True if statements with this predicate type are provenance.
pub(super) fn is_provenance(predicate_type: &str) -> bool {
    TYPES.contains(&predicate_type)
}

/// The provenance in a statement. `None` for other statements.
pub(super) fn read(statement: &Statement, signed_by: &Signature) -> Option<Provenance> {
    if !is_provenance(&statement.predicate_type) {
        return None;
    }
    let predicate = &statement.predicate;
    let at = |paths: &[&str]| paths.iter().find_map(|path| predicate.pointer(path).and_then(Value::as_str));
    let shown = |text: Option<&str>| text.and_then(|text| text::clean_some(text, text::NAME));
    let source = at(&[
        "/buildDefinition/externalParameters/workflow/repository",
        "/buildDefinition/resolvedDependencies/0/uri",
        "/invocation/configSource/uri",
        "/materials/0/uri",
    ]);
    let commit = at(&[
        "/buildDefinition/resolvedDependencies/0/digest/gitCommit",
        "/buildDefinition/resolvedDependencies/0/digest/sha1",
        "/invocation/configSource/digest/sha1",
        "/materials/0/digest/sha1",
    ]);
    Some(Provenance {
        builder: shown(at(&["/runDetails/builder/id", "/builder/id"])),
        source: shown(source),
        commit: shown(commit),
        signed_by: signed_by.clone(),
    })
}
