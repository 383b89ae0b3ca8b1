//! The contents of a small registry. A test can replace the answer to any path.

use std::collections::BTreeMap;

use belljar_fetch_protocol::REVOKED_TYPE;
use serde_json::{Value, json};

use super::samples::{digest, sample};
use super::server::{Asked, Reply, Server};

/// The media types of manifests and of indexes.
pub(crate) const MANIFEST: &str = "application/vnd.oci.image.manifest.v1+json";
pub(crate) const INDEX: &str = "application/vnd.oci.image.index.v1+json";

/// The repository of the samples.
pub(crate) const REPOSITORY: &str = "acme/tides";

/// The contents.
#[derive(Clone, Default)]
pub(crate) struct Contents {
    /// By path below `/v2/acme/tides/`: the media type and the bytes.
    pub(crate) files: BTreeMap<String, (String, Vec<u8>)>,
    /// What refers to a manifest, by its digest.
    pub(crate) referrers: BTreeMap<String, Vec<Value>>,
    /// True if the registry knows no referrers, and keeps them under tags.
    pub(crate) is_old: bool,
}

impl Contents {
    /// The sample component under the tag `1.2`.
    pub(crate) fn tides() -> Self {
        let mut contents = Self::default();
        contents.blob(&sample("component.wasm"));
        contents.blob(&sample("config.json"));
        contents.manifest("1.2", MANIFEST, &sample("manifest.json"));
        contents
    }

    /// The sample component with these signatures.
    pub(crate) fn signed(bundles: &[&str]) -> Self {
        let mut contents = Self::tides();
        let manifest = digest(&sample("manifest.json"));
        for bundle in bundles {
            contents.sign(&manifest, &sample(&format!("{bundle}.bundle.json")));
        }
        contents
    }

    /// Adds a blob.
    pub(crate) fn blob(&mut self, bytes: &[u8]) -> String {
        let digest = digest(bytes);
        self.files.insert(format!("blobs/{digest}"), ("application/octet-stream".into(), bytes.to_vec()));
        digest
    }

    /// Adds a manifest under a tag and its digest.
    pub(crate) fn manifest(&mut self, tag: &str, media_type: &str, bytes: &[u8]) -> String {
        let digest = digest(bytes);
        for name in [tag, &digest] {
            self.files.insert(format!("manifests/{name}"), (media_type.into(), bytes.to_vec()));
        }
        digest
    }

    /// Adds a signature of the manifest with this digest.
    pub(crate) fn sign(&mut self, subject: &str, bundle: &[u8]) {
        const BUNDLE: &str = "application/vnd.dev.sigstore.bundle.v0.3+json";
        let (empty, layer) = (self.blob(b"{}"), self.blob(bundle));
        let manifest = json!({
            "schemaVersion": 2, "mediaType": MANIFEST, "artifactType": BUNDLE,
            "config": { "mediaType": "application/vnd.oci.empty.v1+json", "digest": empty, "size": 2 },
            "layers": [{ "mediaType": BUNDLE, "digest": layer, "size": bundle.len() }],
            "subject": { "mediaType": MANIFEST, "digest": subject, "size": 1 },
        });
        let bytes = serde_json::to_vec(&manifest).unwrap();
        let own = self.manifest(&layer.replace(':', "-"), MANIFEST, &bytes);
        let descriptor = json!({ "mediaType": MANIFEST, "digest": own, "size": bytes.len(), "artifactType": BUNDLE });
        self.referrers.entry(subject.to_owned()).or_default().push(descriptor);
    }

    /// Changes the manifests of all signatures.
    pub(crate) fn change_bundles(&mut self, change: impl Fn(&mut Value)) {
        for (subject, descriptors) in std::mem::take(&mut self.referrers) {
            for mut descriptor in descriptors {
                let name = format!("manifests/{}", descriptor["digest"].as_str().unwrap());
                let mut manifest = serde_json::from_slice(&self.files[&name].1).unwrap();
                change(&mut manifest);
                let bytes = serde_json::to_vec(&manifest).unwrap();
                descriptor["digest"] = self.manifest("changed", MANIFEST, &bytes).into();
                descriptor["size"] = bytes.len().into();
                self.referrers.entry(subject.clone()).or_default().push(descriptor);
            }
        }
    }

    /// Adds a list of revoked versions.
    pub(crate) fn revoke(&mut self, list: &[u8]) {
        let manifest = self.revoking(list);
        self.manifest("revoked", MANIFEST, &serde_json::to_vec(&manifest).unwrap());
    }

    /// The manifest of a list of revoked versions.
    pub(crate) fn revoking(&mut self, list: &[u8]) -> Value {
        let (empty, layer) = (self.blob(b"{}"), self.blob(list));
        json!({
            "schemaVersion": 2, "mediaType": MANIFEST, "artifactType": REVOKED_TYPE,
            "config": { "mediaType": "application/vnd.oci.empty.v1+json", "digest": empty, "size": 2 },
            "layers": [{ "mediaType": REVOKED_TYPE, "digest": layer, "size": list.len() }],
        })
    }

    /// The index of what refers to a manifest.
    fn index(&self, digest: &str) -> Option<Vec<u8>> {
        let manifests = self.referrers.get(digest)?;
        Some(serde_json::to_vec(&json!({ "schemaVersion": 2, "mediaType": INDEX, "manifests": manifests })).unwrap())
    }

    /// The usual answer.
    pub(crate) fn answer(&self, asked: &Asked) -> Reply {
        let missing = || Reply::new(404, r#"{"errors":[{"code":"NOT_FOUND"}]}"#);
        let Some(path) = asked.path.strip_prefix(&format!("/v2/{REPOSITORY}/")) else { return missing() };
        if path.starts_with("tags/list") {
            return Reply::new(200, r#"{"name":"acme/tides","tags":["1.1","1.2","sha256-00.sig","bad tag"]}"#);
        }
        if let Some(subject) = path.strip_prefix("referrers/").filter(|_| !self.is_old) {
            let empty = || br#"{"schemaVersion":2,"manifests":[]}"#.to_vec();
            return Reply::new(200, self.index(subject).unwrap_or_else(empty)).with("Content-Type", INDEX);
        }
        if let Some(hex) = path.strip_prefix("manifests/sha256-").filter(|_| self.is_old)
            && let Some(index) = self.index(&format!("sha256:{hex}"))
        {
            return Reply::new(200, index).with("Content-Type", INDEX);
        }
        let Some((media_type, bytes)) = self.files.get(path) else { return missing() };
        let from = asked
            .header("range")
            .and_then(|range| range.strip_prefix("bytes=")?.strip_suffix('-')?.parse::<usize>().ok());
        let reply = match from.filter(|from| *from < bytes.len()) {
            Some(from) => Reply::new(206, &bytes[from..])
                .with("Content-Range", format!("bytes {from}-{}/{}", bytes.len() - 1, bytes.len())),
            None => Reply::new(200, bytes.clone()),
        };
        reply.with("Content-Type", media_type.clone())
    }

    /// Starts a registry with these contents.
    pub(crate) fn start(self) -> Server {
        self.start_with(|_, _| None)
    }

    /// Starts a registry whose answers `change` may replace.
    pub(crate) fn start_with(self, change: impl Fn(&Asked, &Reply) -> Option<Reply> + Send + Sync + 'static) -> Server {
        Server::start(move |asked| {
            let usual = self.answer(asked);
            change(asked, &usual).unwrap_or(usual)
        })
    }
}

/// The manifest of the samples, changed.
pub(crate) fn manifest(change: impl FnOnce(&mut Value)) -> Vec<u8> {
    let mut manifest: Value = serde_json::from_slice(&sample("manifest.json")).unwrap();
    change(&mut manifest);
    serde_json::to_vec(&manifest).unwrap()
}
