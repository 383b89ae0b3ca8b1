//! The documents of an artifact in a registry: its manifest, its blobs, and the manifests that refer to it (OCI image
//! specification 1.1, and the CNCF's layout for WebAssembly). A component has one layer, because other tools accept no second one.
//! Everything else refers to it.

use std::borrow::Cow;
use std::collections::BTreeMap;

use belljar_fetch_protocol::REVOKED_TYPE;
use serde_json::{Value, json};

use super::signing_key::{BUNDLE, SIGNED, SigningKey, SigningKeyError};
use crate::model::Digest;

/// The annotation with the declared needs of a component.
pub(crate) const NEEDS: &str = "vnd.belljar.needs";

/// The annotation with the name and version of the SDK.
pub(crate) const SDK: &str = "vnd.belljar.sdk";

/// The type of an artifact that is a bundle of `belljar export`.
pub(crate) const BUNDLE_OF_EXPORT: &str = "application/vnd.belljar.bundle.v1+json";

/// The type of an artifact that is a description for people.
pub(crate) const README: &str = "text/markdown";

const MANIFEST: &str = "application/vnd.oci.image.manifest.v1+json";
const WASM: &str = "application/wasm";
const WASM_CONFIG: &str = "application/vnd.wasm.config.v0+json";
const EMPTY: &str = "application/vnd.oci.empty.v1+json";
const TITLE: &str = "org.opencontainers.image.title";

/// What the configuration of a component says.
#[derive(Clone, Debug, Default)]
pub(crate) struct ComponentConfig<'a> {
    /// When it was made, as RFC 3339 writes it.
    pub(crate) created: String,
    pub(crate) author: Option<&'a str>,
    pub(crate) exports: &'a [String],
    pub(crate) imports: &'a [String],
}

/// The annotations of a manifest.
pub(crate) type ManifestAnnotations = BTreeMap<String, String>;

/// See the module.
pub(crate) struct ArtifactDocuments<'a> {
    manifest: String,
    referrers: Vec<String>,
    blobs: BTreeMap<Digest, Cow<'a, [u8]>>,
}

impl<'a> ArtifactDocuments<'a> {
    /// The documents of a component.
    pub(crate) fn component(wasm: &'a [u8], config: &ComponentConfig<'_>, annotations: &ManifestAnnotations) -> Self {
        let ComponentConfig { created, author, exports, imports } = config;
        let mut text = json!({
            "created": created, "architecture": "wasm", "os": "wasip2", "layerDigests": [Digest::of(wasm).to_string()],
            "component": { "exports": exports, "imports": imports, "target": null },
        });
        if let (Some(author), Some(text)) = (author, text.as_object_mut()) {
            text.insert("author".to_owned(), (*author).into());
        }
        let mut documents = Self::without_manifest();
        let config = documents.blob(WASM_CONFIG, text.to_string().into_bytes());
        let layer = documents.blob(WASM, wasm);
        documents.manifest = manifest(None, &config, &layer, annotations, None);
        documents
    }

    /// The documents of a bundle.
    pub(crate) fn bundle(bytes: &'a [u8]) -> Self {
        Self::alone(BUNDLE_OF_EXPORT, bytes)
    }

    /// The documents of a list of revoked versions.
    pub(crate) fn revoked(list: &'a [u8]) -> Self {
        Self::alone(REVOKED_TYPE, list)
    }

    fn alone(kind: &str, bytes: &'a [u8]) -> Self {
        let mut documents = Self::without_manifest();
        let config = documents.blob(EMPTY, b"{}".as_slice());
        let layer = documents.blob(kind, bytes);
        documents.manifest = manifest(Some(kind), &config, &layer, &ManifestAnnotations::new(), None);
        documents
    }

    fn without_manifest() -> Self {
        Self { manifest: String::new(), referrers: Vec::new(), blobs: BTreeMap::new() }
    }

    /// Adds a document that refers to the manifest. `name`: that of the file.
    pub(crate) fn attach(&mut self, kind: &str, name: &str, bytes: impl Into<Cow<'a, [u8]>>) {
        let annotations = ManifestAnnotations::from([(TITLE.to_owned(), name.to_owned())]);
        self.refer(kind, bytes.into(), &annotations);
    }

    /// Adds a signature of the manifest.
    ///
    /// # Errors
    /// If the system gives no random numbers.
    pub(crate) fn sign(&mut self, key: &SigningKey) -> Result<(), SigningKeyError> {
        let bundle = key.sign(&self.digest())?;
        let annotations = [("content", "dsse-envelope"), ("predicateType", SIGNED)];
        let annotations =
            annotations.map(|(name, value)| (format!("dev.sigstore.bundle.{name}"), value.to_owned())).into();
        self.refer(BUNDLE, bundle.into_bytes().into(), &annotations);
        Ok(())
    }

    fn refer(&mut self, kind: &str, bytes: Cow<'a, [u8]>, annotations: &ManifestAnnotations) {
        let subject = descriptor(MANIFEST, self.manifest.as_bytes());
        let config = self.blob(EMPTY, b"{}".as_slice());
        let layer = self.blob(kind, bytes);
        self.referrers.push(manifest(Some(kind), &config, &layer, annotations, Some(&subject)));
    }

    fn blob(&mut self, media_type: &str, bytes: impl Into<Cow<'a, [u8]>>) -> Value {
        let bytes = bytes.into();
        let descriptor = descriptor(media_type, &bytes);
        self.blobs.insert(Digest::of(&bytes), bytes);
        descriptor
    }

    /// The digest of the manifest.
    pub(crate) fn digest(&self) -> Digest {
        Digest::of(self.manifest.as_bytes())
    }

    pub(crate) fn manifest(&self) -> &str {
        &self.manifest
    }

    pub(crate) fn referrers(&self) -> &[String] {
        &self.referrers
    }

    /// The blobs by their digests.
    pub(crate) fn blobs(&self) -> impl Iterator<Item = (&Digest, &[u8])> {
        self.blobs.iter().map(|(digest, bytes)| (digest, bytes.as_ref()))
    }
}

fn descriptor(media_type: &str, bytes: &[u8]) -> Value {
    json!({ "mediaType": media_type, "digest": Digest::of(bytes).to_string(), "size": bytes.len() })
}

fn manifest(
    kind: Option<&str>,
    config: &Value,
    layer: &Value,
    annotations: &ManifestAnnotations,
    subject: Option<&Value>,
) -> String {
    let mut manifest = json!({ "schemaVersion": 2, "mediaType": MANIFEST, "config": config, "layers": [layer] });
    if let Some(manifest) = manifest.as_object_mut() {
        let annotations = (!annotations.is_empty()).then(|| json!(annotations));
        for (name, value) in
            [("artifactType", kind.map(Value::from)), ("annotations", annotations), ("subject", subject.cloned())]
        {
            manifest.extend(value.map(|value| (name.to_owned(), value)));
        }
    }
    manifest.to_string()
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_component_has_one_layer_and_the_rest_refers_to_it() {
        let imports = ["wasi:clocks/wall-clock@0.2.6".to_owned()];
        let config =
            ComponentConfig { created: "2026-01-01T00:00:00Z".to_owned(), imports: &imports, ..<_>::default() };
        let annotations = ManifestAnnotations::from([(NEEDS.to_owned(), "fs = []".to_owned())]);
        let make = || ArtifactDocuments::component(b"wasm", &config, &annotations);
        let mut documents = make();
        documents.attach(README, "README.md", b"# Tides".as_slice());
        documents.sign(&SigningKey::generate().unwrap().0).unwrap();
        assert_eq!(documents.digest(), make().digest(), "the same content has the same digest");
        let manifest: Value = serde_json::from_str(documents.manifest()).unwrap();
        assert_eq!(manifest["layers"].as_array().unwrap().len(), 1);
        assert_eq!(
            (&manifest["layers"][0]["mediaType"], &manifest["annotations"][NEEDS]),
            (&WASM.into(), &"fs = []".into())
        );
        let blob = |descriptor: &Value| {
            let digest: Digest = descriptor["digest"].as_str().unwrap().parse().unwrap();
            documents.blobs().find(|(found, _)| **found == digest).unwrap().1.to_vec()
        };
        let config: Value = serde_json::from_slice(&blob(&manifest["config"])).unwrap();
        assert_eq!(config["layerDigests"][0], manifest["layers"][0]["digest"]);
        let kinds = documents.referrers().iter().map(|text| {
            let referrer: Value = serde_json::from_str(text).unwrap();
            assert_eq!(referrer["subject"]["digest"], documents.digest().to_string());
            assert_eq!(referrer["subject"]["size"], documents.manifest().len());
            blob(&referrer["layers"][0]);
            referrer["artifactType"].as_str().unwrap().to_owned()
        });
        assert_eq!(kinds.collect::<Vec<_>>(), [README, BUNDLE]);
    }
}
