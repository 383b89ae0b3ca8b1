//! What a resolve request reports.

use belljar_fetch_protocol::FailureKind;
use serde_json::json;

use crate::support::program::{resolve, source, tags};
use crate::support::registry::{Contents, INDEX, MANIFEST, manifest};
use crate::support::samples::{digest, sample, unsigned};

#[test]
fn a_component_is_described_before_its_download() {
    let server = Contents::tides().start();
    let resolved = resolve(&source(server.port), unsigned()).unwrap();
    let (manifest, component) = (digest(&sample("manifest.json")), digest(&sample("component.wasm")));
    assert_eq!(resolved.reference, source(server.port));
    assert_eq!(resolved.pinned, format!("127.0.0.1:{}/acme/tides@{manifest}", server.port));
    assert_eq!(
        (resolved.manifest_digest.as_deref(), resolved.component_digest.as_str()),
        (Some(manifest.as_str()), component.as_str())
    );
    assert_eq!(
        (resolved.size, resolved.title.as_deref(), resolved.version.as_deref()),
        (Some(8), Some("tides"), Some("1.2.0"))
    );
    assert_eq!(
        (resolved.licence.as_deref(), resolved.homepage.as_deref()),
        (Some("Apache-2.0"), Some("https://github.com/acme/tides"))
    );
    assert_eq!(resolved.exports, ["belljar:resources/provider@0.1.0"]);
    assert_eq!(resolved.imports, ["wasi:http/outgoing-handler@0.2.0"]);
    assert_eq!(resolved.target.as_deref(), Some("belljar:resources/plugin@0.1.0"));
    assert_eq!((resolved.signatures.len(), resolved.refused.len()), (0, 0));
    assert!(server.asked().iter().all(|asked| !asked.path.contains(&component)), "the component is not fetched");
    // By digest, the same.
    assert_eq!(resolve(&resolved.pinned, unsigned()).unwrap().component_digest, component);
}

#[test]
fn texts_of_the_publisher_are_cleaned_and_bounded() {
    let bytes = manifest(|manifest| {
        manifest["annotations"]["org.opencontainers.image.title"] = "\u{1b}[31mti\u{202e}des\r\n".into();
        manifest["annotations"]["org.opencontainers.image.description"] = "x".repeat(100_000).into();
    });
    let mut contents = Contents::tides();
    contents.manifest("1.2", MANIFEST, &bytes);
    let server = contents.start();
    let resolved = resolve(&source(server.port), unsigned()).unwrap();
    assert_eq!(resolved.title.as_deref(), Some("[31mtides"));
    assert!(resolved.description.unwrap().len() < 1000);
}

#[test]
fn the_component_of_an_index_is_chosen() {
    let mut contents = Contents::tides();
    let wasm = digest(&sample("manifest.json"));
    let index = json!({ "schemaVersion": 2, "mediaType": INDEX, "manifests": [
        { "mediaType": MANIFEST, "digest": digest(b"other"), "size": 5, "platform": { "architecture": "amd64", "os": "linux" } },
        { "mediaType": MANIFEST, "digest": wasm, "size": 5, "platform": { "architecture": "wasm", "os": "wasip2" } },
    ]});
    let digest = contents.manifest("1.2", INDEX, &serde_json::to_vec(&index).unwrap());
    let server = contents.start();
    let resolved = resolve(&source(server.port), unsigned()).unwrap();
    assert_eq!(resolved.manifest_digest, Some(digest));
    assert_eq!(resolved.title.as_deref(), Some("tides"));
}

#[test]
fn a_component_without_a_configuration_is_accepted() {
    let mut contents = Contents::tides();
    let empty = contents.blob(b"{}");
    let bytes = manifest(|manifest| {
        manifest["config"] = json!({ "mediaType": "application/vnd.oci.empty.v1+json", "digest": empty, "size": 2 });
        manifest["layers"][0]["mediaType"] = "application/vnd.wasm.content.layer.v1+wasm".into();
    });
    contents.manifest("1.2", MANIFEST, &bytes);
    let server = contents.start();
    let resolved = resolve(&source(server.port), unsigned()).unwrap();
    assert_eq!((resolved.exports.len(), resolved.imports.len(), resolved.size), (0, 0, Some(8)));
}

#[test]
fn tags_are_listed_without_those_of_signatures() {
    let server = Contents::tides().start();
    let tags = tags(&format!("127.0.0.1:{}/acme/tides", server.port)).unwrap();
    assert_eq!((tags.tags, tags.more), (vec!["1.1".to_owned(), "1.2".to_owned()], false));
}

#[test]
fn missing_things_are_named() {
    let server = Contents::tides().start();
    let failure = resolve(&format!("127.0.0.1:{}/acme/tides:9", server.port), unsigned()).unwrap_err();
    assert_eq!(failure.kind, FailureKind::NotFound);
    assert!(failure.problem.contains("has no \"9\""), "{failure:?}");
    let failure = resolve("tides", unsigned()).unwrap_err();
    assert_eq!(failure.kind, FailureKind::Request);
    // Nobody listens on the port of a server that is gone.
    let failure = resolve("127.0.0.1:1/acme/tides:1", unsigned()).unwrap_err();
    assert_eq!(failure.kind, FailureKind::Network);
    assert!(failure.problem.contains("cannot connect to \"http://127.0.0.1:1\""), "{failure:?}");
}
