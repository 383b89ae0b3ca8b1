//! The list of parts of a component (SBOM), in CycloneDX 1.6. It has what the component says of itself, and nothing else.

use serde_json::{Value, json};

use super::component_metadata::{BuiltCrate, ComponentMetadata};
use crate::model::Digest;

/// The media type of CycloneDX.
pub(crate) const CYCLONEDX: &str = "application/vnd.cyclonedx+json";

/// The media type of SPDX.
const SPDX: &str = "application/spdx+json";

/// The list of parts of a component with this name and digest.
pub(crate) fn from_component(
    name: &str,
    version: Option<&str>,
    digest: &Digest,
    created: &str,
    metadata: &ComponentMetadata,
) -> Value {
    let properties = metadata.tools.iter().map(|tool| {
        let value = format!("{} {}", tool.name, tool.version);
        json!({ "name": format!("wasm:producers:{}", tool.field), "value": value.trim() })
    });
    let mut component = json!({
        "type": "application", "bom-ref": "component", "name": name,
        "hashes": [{ "alg": "SHA-256", "content": digest.hex() }],
        "properties": properties.collect::<Vec<_>>(),
    });
    let references = [("vcs", &metadata.source), ("website", &metadata.homepage)];
    let references: Vec<Value> =
        references.into_iter().filter_map(|(kind, url)| Some(json!({ "type": kind, "url": url.as_ref()? }))).collect();
    for (key, value) in [
        ("version", version.map(Value::from)),
        ("description", metadata.description.as_deref().map(Value::from)),
        ("licenses", metadata.licence.as_deref().map(|licence| json!([{ "expression": licence }]))),
        ("externalReferences", (!references.is_empty()).then(|| references.into())),
    ] {
        if let (Some(value), Some(component)) = (value, component.as_object_mut()) {
            component.insert(key.to_owned(), value);
        }
    }
    let names: Vec<String> = metadata.crates.iter().map(reference).collect();
    let parts: Vec<Value> = metadata.crates.iter().map(part).collect();
    json!({
        "bomFormat": "CycloneDX", "specVersion": "1.6", "version": 1,
        "metadata": {
            "timestamp": created, "component": component,
            "tools": { "components": [{ "type": "application", "name": "belljar", "version": env!("CARGO_PKG_VERSION") }] },
        },
        "components": parts,
        "dependencies": [{ "ref": "component", "dependsOn": names }],
    })
}

fn part(of: &BuiltCrate) -> Value {
    let mut part = json!({
        "type": "library", "bom-ref": reference(of), "name": of.name, "version": of.version,
        "scope": if of.kind.as_deref() == Some("build") { "excluded" } else { "required" },
    });
    if let (true, Some(part)) = (of.source == "crates.io", part.as_object_mut()) {
        part.insert("purl".to_owned(), format!("pkg:cargo/{}@{}", of.name, of.version.replace('+', "%2B")).into());
    }
    part
}

fn reference(of: &BuiltCrate) -> String {
    format!("cargo:{}@{}", of.name, of.version)
}

/// The media type of a list of parts in a file. `None` if it is none of a known form.
pub(crate) fn media_type(json: &[u8]) -> Option<&'static str> {
    let list: Value = serde_json::from_slice(json).ok()?;
    match (list.get("bomFormat").and_then(Value::as_str), list.get("spdxVersion").and_then(Value::as_str)) {
        (Some("CycloneDX"), _) => Some(CYCLONEDX),
        (_, Some(version)) if version.starts_with("SPDX-") => Some(SPDX),
        _ => None,
    }
}

#[cfg(test)]
mod tests {
    use super::super::component_metadata::BuildTool;
    use super::*;

    #[test]
    fn the_list_has_what_the_component_says() {
        let of = |name: &str, source: &str, kind: Option<&str>| BuiltCrate {
            name: name.to_owned(),
            version: "1.0.0+x".to_owned(),
            source: source.to_owned(),
            kind: kind.map(str::to_owned),
        };
        let metadata = ComponentMetadata {
            licence: Some("MIT OR Apache-2.0".to_owned()),
            tools: vec![BuildTool { field: "sdk".into(), name: "belljar-guest".into(), version: "0.1.0".into() }],
            crates: vec![of("tides", "local", None), of("cc", "crates.io", Some("build"))],
            ..ComponentMetadata::default()
        };
        let list = from_component("tides", Some("1.2.0"), &Digest([1; 32]), "2026-01-01T00:00:00Z", &metadata);
        assert_eq!(media_type(list.to_string().as_bytes()), Some(CYCLONEDX));
        let component = &list["metadata"]["component"];
        assert_eq!(component["hashes"][0]["content"], "01".repeat(32));
        assert_eq!(component["licenses"][0]["expression"], "MIT OR Apache-2.0");
        assert_eq!(component["properties"][0]["value"], "belljar-guest 0.1.0");
        assert_eq!(
            (&list["components"][0]["purl"], &list["components"][1]["scope"]),
            (&Value::Null, &"excluded".into())
        );
        assert_eq!(list["components"][1]["purl"], "pkg:cargo/cc@1.0.0%2Bx");
        assert_eq!(list["dependencies"][0]["dependsOn"].as_array().unwrap().len(), 2);
        for other in ["", "[]", "{}", r#"{"bomFormat":"x"}"#, r#"{"spdxVersion":2}"#] {
            assert_eq!(media_type(other.as_bytes()), None, "{other}");
        }
    }
}
