//! The list of the crates in the program: a CycloneDX document.
//!
//! `cargo tree` selects the crates, because it applies the features that cargo compiles belljar with. The resolution in
//! `cargo metadata` has the features of the whole workspace, and so some crates that belljar does not contain.

use std::collections::{BTreeMap, BTreeSet};
use std::fs;

use anyhow::{Context as _, Result};
use serde_json::{Value, json};

use crate::output::Output;
use crate::project::{Project, cargo, field};
use crate::target::Target;

/// The name and version of a crate.
type Crate = (String, String);

/// Writes `belljar-VERSION.cdx.json`: the crates that the programs of these targets are built from, with the build scripts and
/// macros.
pub(crate) fn write<'a>(output: &Output, project: &Project, targets: impl Iterator<Item = &'a Target>) -> Result<()> {
    let mut crates = BTreeSet::new();
    for target in targets {
        crates.extend(tree(project, &target.triple())?);
    }
    let metadata: Value =
        serde_json::from_str(&cargo(&project.root, &["metadata", "--format-version", "1", "--locked"])?)?;
    let checksums = checksums(project)?;
    let belljar = ("belljar".to_owned(), project.version.clone());
    let mut components = Vec::new();
    for package in list(&metadata, "packages") {
        let name = identity(package);
        if crates.contains(&name) && name != belljar {
            components.push(component(package, checksums.get(&name)));
        }
    }
    components.sort_by(|one, other| field(one, "bom-ref").cmp(field(other, "bom-ref")));
    let document = json!({
        "bomFormat": "CycloneDX",
        "specVersion": "1.5",
        "version": 1,
        "metadata": {
            "timestamp": project.timestamp(),
            "component": {
                "type": "application",
                "bom-ref": purl(&belljar),
                "name": "belljar",
                "version": project.version,
                "licenses": [{ "expression": project.license }],
                "purl": purl(&belljar),
            },
        },
        "components": components,
        "dependencies": dependencies(&metadata, &crates),
    });
    output.write(&format!("belljar-{}.cdx.json", project.version), format!("{document:#}\n").as_bytes())
}

/// The crates that cargo compiles for belljar on a target: dependencies, build scripts and macros.
fn tree(project: &Project, triple: &str) -> Result<BTreeSet<Crate>> {
    let arguments =
        ["tree", "--locked", "--package", "belljar", "--edges", "normal,build", "--prefix", "none", "--no-dedupe"];
    let lines = cargo(&project.root, &[arguments.as_slice(), &["--target", triple, "--format", "{p}"]].concat())?;
    lines
        .lines()
        .map(|line| {
            let mut words = line.split(' ');
            let named = words.next().zip(words.next().and_then(|version| version.strip_prefix('v')));
            let (name, version) = named.with_context(|| format!("`cargo tree` printed \"{line}\", not a crate"))?;
            Ok((name.to_owned(), version.to_owned()))
        })
        .collect()
}

/// The SHA-256 digests in `Cargo.lock`. Crates of the workspace have none.
fn checksums(project: &Project) -> Result<BTreeMap<Crate, String>> {
    let path = project.root.join("Cargo.lock");
    let text = fs::read_to_string(&path).with_context(|| format!("cannot read \"{}\"", path.display()))?;
    let lock: toml::Table = text.parse().with_context(|| format!("cannot parse \"{}\"", path.display()))?;
    let packages = lock.get("package").and_then(toml::Value::as_array).into_iter().flatten();
    let text = |package: &toml::Value, name| package.get(name).and_then(toml::Value::as_str).map(str::to_owned);
    Ok(packages.filter_map(|one| Some(((text(one, "name")?, text(one, "version")?), text(one, "checksum")?))).collect())
}

/// The entry of one crate.
fn component(package: &Value, checksum: Option<&String>) -> Value {
    let name = identity(package);
    // Before SPDX, `/` meant `OR`.
    let license = field(package, "license").replace('/', " OR ");
    let mut component = json!({
        "type": "library",
        "bom-ref": purl(&name),
        "name": name.0,
        "version": name.1,
        "licenses": [{ "expression": license }],
        "purl": purl(&name),
    });
    if let (Some(checksum), Some(fields)) = (checksum, component.as_object_mut()) {
        fields.insert("hashes".to_owned(), json!([{ "alg": "SHA-256", "content": checksum }]));
    }
    component
}

/// Which of the crates depends on which, sorted.
fn dependencies(metadata: &Value, crates: &BTreeSet<Crate>) -> Vec<Value> {
    let names: BTreeMap<&str, Crate> = list(metadata, "packages")
        .map(|package| (field(package, "id"), identity(package)))
        .filter(|(_, name)| crates.contains(name))
        .collect();
    let mut all = BTreeMap::new();
    for node in metadata.get("resolve").into_iter().flat_map(|resolve| list(resolve, "nodes")) {
        let Some(name) = names.get(field(node, "id")) else { continue };
        let needed = list(node, "deps").filter(|dependency| is_compiled(dependency));
        let needed: BTreeSet<String> =
            needed.filter_map(|dependency| names.get(field(dependency, "pkg")).map(purl)).collect();
        all.insert(purl(name), needed);
    }
    all.into_iter().map(|(name, needed)| json!({ "ref": name, "dependsOn": needed })).collect()
}

/// True if a dependency is not only for tests.
fn is_compiled(dependency: &Value) -> bool {
    list(dependency, "dep_kinds").any(|kind| field(kind, "kind") != "dev")
}

/// The name and version of a package in `cargo metadata`.
fn identity(package: &Value) -> Crate {
    (field(package, "name").to_owned(), field(package, "version").to_owned())
}

/// The address of a crate as a package URL.
fn purl((name, version): &Crate) -> String {
    // A `+` in a version would mean a space.
    format!("pkg:cargo/{name}@{}", version.replace('+', "%2B"))
}

/// The values of an array in the output of cargo. None if it is absent.
fn list<'a>(value: &'a Value, name: &str) -> impl Iterator<Item = &'a Value> {
    value.get(name).and_then(Value::as_array).into_iter().flatten()
}
