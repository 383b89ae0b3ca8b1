//! `belljar publish`: what reaches a registry, who signed it, and what `belljar add` then shows.

use std::fs;
use std::os::unix::fs::PermissionsExt as _;

use belljar_tests::{Era, Registry, Site};
use serde_json::{Value, json};

use super::{NAME, TEXT, fails, release, start, succeeds, verified};

/// What the component of the tests asks for.
const NEEDS: &str =
    "[[fs]]\npath = '/tides'\nany = true\nwhy = 'tables of tides'\n[[env]]\nname = 'PORT'\noptional = true\n";

/// A site with a component to publish, a key pair, and a registry. The site trusts the key.
fn with_key() -> Option<(Site, Registry)> {
    let (site, registry) = start()?;
    site.write("tides.wasm", release("guest_fixture", "1.0.0").component);
    site.write("needs.toml", NEEDS);
    let declared =
        belljar_tests::process::run(site.command(["declare", "tides.wasm", "needs.toml"]), belljar_tests::DEADLINE);
    assert!(declared.status.success(), "{}", crate::support::stdout_and_stderr(&declared));
    succeeds(&site, &["publish", "--key-pair", "acme.key"]);
    let from = registry.reference("acme", "");
    site.config(&format!(
        "[secrets]\nsign = {{ file = \"acme.key\" }}\n[[trust.signers]]\nfrom = {from:?}\nkey = \"acme.pub\"\n"
    ));
    Some((site, registry))
}

#[test]
fn a_published_component_is_added_with_its_signer_and_needs() {
    let Some((site, registry)) = with_key() else { return };
    let reference = registry.reference(NAME, "1.0.0");
    site.write("README.md", "# Tides");
    let flags =
        ["--sign-key", "acme.key", "--readme", "README.md", "--licence", "MIT", "--source", "https://acme.example/x"];
    let said = succeeds(&site, &[["publish", "tides.wasm", &reference, "--yes"].as_slice(), &flags].concat());
    for shown in
        ["asks for  fs (such as \"/tides\"): \"tables of tides\"", "signed    by sha256:", "licence   MIT", "Published"]
    {
        assert!(said.contains(shown), "{shown}: {said}");
    }
    let manifest = registry.document(NAME, "1.0.0");
    assert_eq!(manifest["layers"].as_array().unwrap().len(), 1, "other tools accept one layer");
    let annotations = &manifest["annotations"];
    assert_eq!(annotations["org.opencontainers.image.version"], "1.0.0");
    assert_eq!(annotations["org.opencontainers.image.licenses"], "MIT");
    assert_eq!(annotations["org.opencontainers.image.source"], "https://acme.example/x");
    assert!(annotations["org.opencontainers.image.created"].as_str().unwrap().ends_with('Z'));
    // Debian's registry keeps no list of referrers, so it lies under a tag.
    let said = succeeds(&site, &["add", &reference, "--yes"]);
    let digest = said.lines().find_map(|line| line.trim().strip_prefix("manifest")).map(str::trim);
    assert_eq!(digest, None, "add shows the component: {said}");
    for shown in
        ["licence  MIT", "trusted for \"127.0.0.1:", "asks for fs (such as \"/tides\")", "env \"PORT\", optional"]
    {
        assert!(said.contains(shown), "{shown}: {said}");
    }
    let pinned = verified(&site)["manifest"].as_str().unwrap().to_owned();
    let list = registry.document(NAME, &pinned.replace(':', "-"));
    let kinds: Vec<&str> =
        list["manifests"].as_array().unwrap().iter().map(|one| one["artifactType"].as_str().unwrap()).collect();
    assert_eq!(
        kinds,
        ["application/vnd.cyclonedx+json", "text/markdown", "application/vnd.dev.sigstore.bundle.v0.3+json"]
    );
    assert_eq!(site.stdio(Era::Stateless).text("belljar://tides/static-text"), TEXT);
    assert!(verified(&site)["signedBy"].as_str().unwrap().starts_with("sha256:"));
}

#[test]
fn the_same_content_again_is_success_and_other_content_needs_force() {
    let Some((site, registry)) = with_key() else { return };
    let reference = registry.reference(NAME, "1.0.0");
    let publish =
        |more: &[&'static str]| [["publish", "tides.wasm", &reference, "--yes", "--json"].as_slice(), more].concat();
    let run = |more: &[&'static str]| -> Value {
        let output = site.run(&publish(more));
        serde_json::from_slice(&output.stdout)
            .unwrap_or_else(|_| panic!("{}", crate::support::stdout_and_stderr(&output)))
    };
    let first = run(&["--sign-key", "acme.key"]);
    assert_eq!((&first["wasThere"], &first["version"]), (&false.into(), &"1.0.0".into()));
    let second = run(&["--sign-secret", "sign"]);
    assert_eq!((&second["wasThere"], &second["sentBytes"]), (&true.into(), &0.into()));
    assert_eq!(first["manifest"], second["manifest"]);
    let tag = first["manifest"].as_str().unwrap().replace(':', "-");
    assert_eq!(registry.document(NAME, &tag)["manifests"].as_array().unwrap().len(), 2, "it is signed once");
    let said = fails(&site, &publish(&["--description", "other"]));
    assert!(said.contains("holds other content already") && said.contains("--force"), "{said}");
    assert_eq!(run(&["--description", "other", "--force"])["wasThere"], false);
    // Without a terminal and without --yes, nothing is sent.
    let said = fails(&site, &["publish", "tides.wasm", &registry.reference(NAME, "2.0.0")]);
    assert!(said.contains("asks for confirmation"), "{said}");
    assert!(fails(&site, &["add", &registry.reference(NAME, "2.0.0"), "--yes"]).contains("has no \"2.0.0\""));
}

#[test]
fn what_nobody_signed_is_added_by_a_flag_alone() {
    let Some((site, registry)) = with_key() else { return };
    let reference = registry.reference(NAME, "1.0.0");
    let said = succeeds(&site, &["publish", "tides.wasm", &reference, "--yes"]);
    assert!(said.contains("signed    by nobody") && said.contains("--unsigned"), "{said}");
    assert!(fails(&site, &["add", &reference, "--yes"]).contains("is not signed"));
    succeeds(&site, &["publish", "tides.wasm", &reference, "--sign-key", "acme.key", "--yes"]);
    succeeds(&site, &["add", &reference, "--yes"]);
}

#[test]
fn what_cannot_be_published_says_why() {
    let Some((site, registry)) = with_key() else { return };
    let reference = registry.reference(NAME, "1.0.0");
    site.write("module.wasm", wat::parse_str("(module)").unwrap());
    site.write("text.pem", "secret words");
    site.write(
        "cosign.key",
        "-----BEGIN ENCRYPTED SIGSTORE PRIVATE KEY-----\nAAAA\n-----END ENCRYPTED SIGSTORE PRIVATE KEY-----\n",
    );
    for file in ["text.pem", "cosign.key", "acme.key"] {
        let is_open = file == "acme.key";
        let path = site.path(file);
        assert_eq!(fs::metadata(site.path("acme.key")).unwrap().permissions().mode() & 0o777, 0o600);
        fs::copy(&path, site.path(format!("{file}.copy"))).unwrap();
        let mode = if is_open { 0o644 } else { 0o600 };
        fs::set_permissions(site.path(format!("{file}.copy")), fs::Permissions::from_mode(mode)).unwrap();
    }
    fs::set_permissions(site.path("acme.pub"), fs::Permissions::from_mode(0o600)).unwrap();
    let with =
        |more: &[&'static str]| [["publish", "tides.wasm", &reference, "--yes"].as_slice(), more].concat().join("\0");
    for (arguments, said) in [
        (["publish", "module.wasm", &reference, "--yes"].join("\0"), "a core WebAssembly module"),
        (
            ["publish", "tides.wasm", &registry.reference(NAME, ""), "--yes"].join("\0"),
            "expected REGISTRY/REPOSITORY:TAG",
        ),
        (with(&["--sign-key", "none.key"]), "publish --key-pair FILE"),
        (with(&["--sign-key", "text.pem.copy"]), "no private key in PEM"),
        (with(&["--sign-key", "cosign.key.copy"]), "cosign sign --key"),
        (with(&["--sign-key", "acme.key.copy"]), "chmod 600"),
        (with(&["--sign-key", "acme.pub"]), "it is a public key"),
        (with(&["--sign-secret", "none"]), "there is no secret \"none\""),
        (with(&["--sbom", "needs.toml"]), "no list of parts"),
        (["publish", "--key-pair", "acme.key"].join("\0"), "exists already"),
    ] {
        let arguments: Vec<&str> = arguments.split('\0').collect();
        let output = fails(&site, &arguments);
        assert!(output.contains(said) && !output.contains("secret words"), "{arguments:?}: {output}");
    }
    let absent = fails(&site, &["add", &reference, "--unsigned", "--yes"]);
    assert!(absent.contains("has no \"1.0.0\""), "nothing was pushed: {absent}");
}

/// A publisher may say other needs than the component has. The component counts, so the publisher is not believed.
#[test]
fn needs_that_are_not_those_of_the_component_are_refused() {
    let Some((site, registry)) = start() else { return };
    let mut artifact = release("guest_fixture", "1.0.0");
    artifact.annotations.insert("vnd.belljar.needs".to_owned(), "fs = [{ path = \"/all\" }]\n".to_owned());
    registry.push(NAME, "1.0.0", &artifact);
    let said = fails(&site, &["add", &registry.reference(NAME, "1.0.0"), "--unsigned", "--yes"]);
    assert!(said.contains("asks for fs \"/all\"") && said.contains("the component itself asks for nothing"), "{said}");
    assert!(!site.path("plugins/tides.wasm").exists());
}

#[test]
fn a_list_of_parts_comes_from_the_component_or_from_a_file() {
    let Some((site, registry)) = with_key() else { return };
    let own = json!({ "bomFormat": "CycloneDX", "specVersion": "1.5", "serialNumber": "mine" }).to_string();
    site.write("own.json", &own);
    for (tag, flags, is_own) in [("1.0.0", [].as_slice(), false), ("1.0.1", &["--sbom", "own.json"], true)] {
        let reference = registry.reference(NAME, tag);
        succeeds(&site, &[["publish", "tides.wasm", &reference, "--yes"].as_slice(), flags].concat());
        succeeds(&site, &["add", &reference, "--as", &tag.replace('.', "-"), "--unsigned", "--yes"]);
        let output = site.run(&["verify", "--json"]);
        let all: Value = serde_json::from_slice(&output.stdout).unwrap();
        let mounts = all["mounts"].as_array().unwrap();
        let one = mounts.iter().find(|one| one["mount"] == tag.replace('.', "-")).unwrap();
        let list = registry.document(NAME, &one["manifest"].as_str().unwrap().replace(':', "-"));
        let referrer = registry.document(NAME, list["manifests"][0]["digest"].as_str().unwrap());
        let blob = registry.blob_text(NAME, referrer["layers"][0]["digest"].as_str().unwrap());
        assert_eq!(blob == own, is_own, "{blob}");
        if !is_own {
            let list: Value = serde_json::from_str(&blob).unwrap();
            assert_eq!(list["specVersion"], "1.6");
            assert!(list["metadata"]["component"]["properties"].to_string().contains("wit-component"), "{list}");
        }
    }
}
