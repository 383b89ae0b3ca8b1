//! What the packages contain: the same bytes in each run, digests that match, and each crate once.

use std::collections::{BTreeMap, BTreeSet};
use std::fs;
use std::os::unix::fs::PermissionsExt as _;
use std::path::Path;
use std::process::Command;

use belljar_tests::places;
use serde_json::Value;

use crate::common::{REPOSITORY, VERSION, output, run};
use crate::support::{NAMESPACE, directory, package, packed, request, unpack};

fn json(path: &Path) -> Value {
    let text = fs::read(path).unwrap_or_else(|error| panic!("{}: {error}", path.display()));
    serde_json::from_slice(&text).unwrap()
}

fn texts(value: &Value) -> Vec<&str> {
    value.as_array().unwrap().iter().map(|one| one.as_str().unwrap()).collect()
}

#[test]
fn a_second_run_makes_the_same_bytes() {
    // Another path, another time and another mode of the same program.
    let place = tempfile::tempdir().unwrap();
    let copy = place.path().join("copy");
    fs::copy(places::host(), &copy).unwrap();
    for name in belljar_dist::COMPANIONS {
        fs::copy(places::host().with_file_name(name), place.path().join(name)).unwrap();
    }
    fs::set_permissions(&copy, fs::Permissions::from_mode(0o700)).unwrap();
    let mut again = request(&directory("two"));
    again.programs = vec![copy];
    let two = belljar_dist::pack(&again).unwrap();
    assert_eq!(packed().files, two.files);
    let sums = |name: &str| fs::read_to_string(directory(name).join("SHA256SUMS")).unwrap();
    assert_eq!(sums("one"), sums("two"));
    // Each file is there once, and has the digest in the list.
    assert_eq!(sums("one").lines().count() + 1, two.files.len());
    run(Command::new("sha256sum").args(["--check", "--strict", "SHA256SUMS"]).current_dir(directory("two")));
}

/// The bytes of a blob of an image layout. Checks its size and its digest.
fn blob(layout: &Path, descriptor: &Value) -> Vec<u8> {
    let digest = descriptor["digest"].as_str().unwrap().strip_prefix("sha256:").unwrap();
    let path = layout.join("blobs/sha256").join(digest);
    let bytes = fs::read(&path).unwrap();
    assert_eq!(descriptor["size"], bytes.len(), "{descriptor}");
    let sum = run(Command::new("sha256sum").arg(&path));
    assert!(sum.starts_with(digest), "{descriptor}: {sum}");
    bytes
}

#[test]
fn every_digest_of_the_image_is_right() {
    let path = package("belljar-", "-oci.tar");
    let layout = unpack(fs::File::open(&path).unwrap());
    let layout = layout.path();
    assert_eq!(json(&layout.join("oci-layout"))["imageLayoutVersion"], "1.0.0");
    let top = json(&layout.join("index.json"));
    assert_eq!(top["manifests"].as_array().unwrap().len(), 1);
    let index: Value = serde_json::from_slice(&blob(layout, &top["manifests"][0])).unwrap();
    let mut named = 1;
    for descriptor in index["manifests"].as_array().unwrap() {
        let manifest: Value = serde_json::from_slice(&blob(layout, descriptor)).unwrap();
        let config: Value = serde_json::from_slice(&blob(layout, &manifest["config"])).unwrap();
        assert_eq!(descriptor["platform"]["os"], "linux");
        assert_eq!(descriptor["platform"]["architecture"], config["architecture"]);
        assert_eq!(config["config"]["User"], "65532:65532");
        assert_eq!(texts(&config["config"]["Entrypoint"]), ["/usr/bin/belljar"]);
        assert_eq!(texts(&config["config"]["Cmd"]), ["serve"]);
        let layers = manifest["layers"].as_array().unwrap();
        assert_eq!(config["rootfs"]["diff_ids"].as_array().unwrap().len(), layers.len());
        for (layer, difference) in layers.iter().zip(texts(&config["rootfs"]["diff_ids"])) {
            assert_layer(&blob(layout, layer), difference);
        }
        named += 2 + layers.len();
    }
    assert_eq!(fs::read_dir(layout.join("blobs/sha256")).unwrap().count(), named, "a blob that nothing names");
    if Command::new("skopeo").arg("--version").output().is_ok() {
        let shown = run(Command::new("skopeo").arg("inspect").arg(format!("oci-archive:{}", path.display())));
        assert!(shown.contains("org.opencontainers.image.version"), "{shown}");
    }
}

/// Checks the uncompressed digest of a layer, and that it unpacks to the program.
fn assert_layer(compressed: &[u8], difference: &str) {
    let mut bytes = Vec::new();
    std::io::Read::read_to_end(&mut flate2::read::GzDecoder::new(compressed), &mut bytes).unwrap();
    let files = tempfile::tempdir().unwrap();
    let layer = files.path().join("layer");
    fs::write(&layer, &bytes).unwrap();
    assert!(run(Command::new("sha256sum").arg(&layer)).starts_with(difference.strip_prefix("sha256:").unwrap()));
    let owners: BTreeMap<String, u64> = tar::Archive::new(bytes.as_slice())
        .entries()
        .unwrap()
        .map(|entry| entry.unwrap())
        .map(|entry| (entry.path().unwrap().display().to_string(), entry.header().uid().unwrap()))
        .collect();
    assert_eq!((owners["var/lib/belljar/"], owners["usr/bin/belljar"]), (65532, 0));
    let root = unpack(bytes.as_slice());
    assert!(root.path().join("usr/lib/belljar/providers/files.wasm").is_file());
    let printed = run(Command::new(root.path().join("usr/bin/belljar")).arg("--version"));
    assert_eq!(printed.trim(), format!("belljar {VERSION}"));
}

/// The names and versions of crates.
type Crates = BTreeSet<(String, String)>;

/// The name and version of a crate.
fn identity(package: &Value) -> (String, String) {
    (package["name"].as_str().unwrap().to_owned(), package["version"].as_str().unwrap().to_owned())
}

/// Follows the resolved dependencies of belljar. Returns all crates that are reached, and those that are reached without optional
/// dependencies and without conditions on the platform: the program certainly has these.
fn reached() -> (Crates, Crates) {
    let mut cargo = Command::new(env!("CARGO"));
    cargo.current_dir(places::repository()).args(["metadata", "--locked", "--format-version", "1"]);
    let metadata: Value = serde_json::from_str(&run(&mut cargo)).unwrap();
    let by_id = |list: &Value| -> BTreeMap<String, Value> {
        let list = list.as_array().unwrap().iter();
        list.map(|one| (one["id"].as_str().unwrap().to_owned(), one.clone())).collect()
    };
    let (packages, nodes) = (by_id(&metadata["packages"]), by_id(&metadata["resolve"]["nodes"]));
    let start = packages.iter().find(|(_, package)| package["name"] == "belljar").unwrap().0;
    let follow = |certainly: bool| {
        let (mut seen, mut open) = (BTreeSet::new(), vec![start.clone()]);
        while let Some(id) = open.pop() {
            if !seen.insert(id.clone()) {
                continue;
            }
            for edge in nodes[&id]["deps"].as_array().unwrap() {
                let kinds = edge["dep_kinds"].as_array().unwrap();
                let to = edge["pkg"].as_str().unwrap();
                let optional = packages[&id]["dependencies"]
                    .as_array()
                    .unwrap()
                    .iter()
                    .any(|declared| declared["name"] == packages[to]["name"] && declared["optional"] == true);
                let follows = |kind: &&Value| kind["kind"] != "dev" && !(certainly && kind["target"].is_string());
                if kinds.iter().any(|kind| follows(&kind)) && !(certainly && optional) {
                    open.push(to.to_owned());
                }
            }
        }
        seen.iter().map(|id| identity(&packages[id])).collect()
    };
    (follow(false), follow(true))
}

#[test]
fn the_list_of_crates_has_each_crate_once() {
    let document = json(&package("belljar-", ".cdx.json"));
    assert_eq!((document["bomFormat"].as_str(), document["specVersion"].as_str()), (Some("CycloneDX"), Some("1.5")));
    assert_eq!(document["metadata"]["component"]["version"], VERSION);
    let components = document["components"].as_array().unwrap();
    let mut listed: BTreeSet<_> = components.iter().map(identity).collect();
    assert_eq!(listed.len(), components.len(), "a crate is listed twice");
    listed.insert(("belljar".to_owned(), VERSION.to_owned()));
    let (possible, certain) = reached();
    assert!(certain.len() > 100, "{certain:?}");
    let without = |one: &Crates, other: &Crates| one.difference(other).cloned().collect::<Vec<_>>();
    assert_eq!(without(&certain, &listed), [], "crates of the program that are not listed");
    assert_eq!(without(&listed, &possible), [], "listed crates that belljar never reaches");

    let lock = fs::read_to_string(places::repository().join("Cargo.lock")).unwrap();
    for component in components {
        let (name, version) = identity(component);
        assert_eq!(component["purl"], format!("pkg:cargo/{name}@{}", version.replace('+', "%2B")));
        assert!(component["licenses"][0]["expression"].as_str().is_some_and(|text| !text.is_empty()), "{component}");
        let start = format!("[[package]]\nname = \"{name}\"\nversion = \"{version}\"\n");
        let entry = lock.split("\n\n").find(|entry| entry.starts_with(&start)).unwrap_or_default();
        match component["hashes"][0]["content"].as_str() {
            Some(sum) => assert!(sum.len() == 64 && entry.contains(sum), "{component}"),
            // A crate of this repository comes from no registry.
            None => assert!(!entry.is_empty() && !entry.contains("checksum"), "{component}"),
        }
    }
    let references: BTreeSet<_> = components.iter().map(|one| one["bom-ref"].as_str().unwrap()).collect();
    for node in document["dependencies"].as_array().unwrap() {
        assert!(texts(&node["dependsOn"]).iter().all(|one| references.contains(one)), "{node}");
    }
    assert_eq!(document["dependencies"].as_array().unwrap().len(), listed.len());
}

#[test]
fn the_entry_for_the_registry_names_packages_that_name_it() {
    let entry = json(&package("server.json", ""));
    assert_eq!(entry["name"], format!("{NAMESPACE}/belljar"));
    assert!(entry["description"].as_str().unwrap().len() <= 100, "the registry allows 100 characters");
    assert_eq!(entry["repository"]["url"], REPOSITORY);
    for (package, registry) in entry["packages"].as_array().unwrap().iter().zip(["npm", "pypi"]) {
        assert_eq!(package["registryType"], registry);
        assert_eq!((package["identifier"].as_str(), package["version"].as_str()), (Some("belljar"), Some(VERSION)));
        assert_eq!(package["packageArguments"][0]["value"], "serve");
    }
    let npm = crate::support::unpack_file(&package(&format!("belljar-{VERSION}"), ".tgz"));
    assert_eq!(json(&npm.path().join("package/package.json"))["mcpName"], entry["name"]);
    let mut unzip = Command::new("python3");
    unzip.args(["-m", "zipfile", "--extract"]).arg(package("belljar-", ".whl")).arg(npm.path());
    if !places::lacks("python") {
        assert!(output(&mut unzip).status.success());
        let metadata = npm.path().join(format!("belljar-{VERSION}.dist-info/METADATA"));
        assert!(fs::read_to_string(metadata).unwrap().contains(&format!("mcp-name: {NAMESPACE}/belljar")));
    }
}
