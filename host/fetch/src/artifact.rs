//! The documents of a component in a registry: manifest, index, and configuration (OCI image specification 1.1, and the artifact
//! layout of the CNCF for WebAssembly). Untrusted text in, checked values out.

use std::collections::BTreeMap;

use belljar_fetch_protocol::{ArtifactKind, MAX_NEEDS, Resolved};
use serde::Deserialize;

use crate::digest::Sha256;
use crate::failure::{Outcome, failure, wrong_content};
use crate::text;

/// What this program accepts as an answer to a request for a manifest.
pub(crate) const ACCEPTED: &str = "application/vnd.oci.image.manifest.v1+json, application/vnd.oci.image.index.v1+json, application/vnd.docker.distribution.manifest.v2+json, application/vnd.docker.distribution.manifest.list.v2+json";

/// The media type of an index.
pub(crate) const INDEX: [&str; 2] =
    ["application/vnd.oci.image.index.v1+json", "application/vnd.docker.distribution.manifest.list.v2+json"];

/// The media types of a component: the CNCF's, and those of older tools and of Spin.
const COMPONENT: [&str; 3] = [
    "application/wasm",
    "application/vnd.wasm.content.layer.v1+wasm",
    "application/vnd.bytecodealliance.wasm.component.layer.v0+wasm",
];

/// The media type of a bundle that `belljar export` wrote.
const BUNDLE: &str = "application/vnd.belljar.bundle.v1+json";

/// The annotation with the declared needs of a component.
const NEEDS: &str = "vnd.belljar.needs";

/// The media type of the configuration that names exports and imports.
pub(crate) const CONFIG: &str = "application/vnd.wasm.config.v0+json";

/// The most entries of an index that are read.
const MAX_ENTRIES: usize = 256;

/// The most exports, and imports, that are reported.
const MAX_NAMES: usize = 256;

/// A reference to other content.
#[derive(Clone, Debug, Deserialize)]
#[serde(rename_all = "camelCase")]
pub(crate) struct Descriptor {
    #[serde(default)]
    pub(crate) media_type: String,
    pub(crate) digest: String,
    pub(crate) size: u64,
    #[serde(default)]
    pub(crate) artifact_type: Option<String>,
    #[serde(default)]
    pub(crate) platform: Option<Platform>,
}

/// What an entry of an index is for.
#[derive(Clone, Debug, Deserialize)]
pub(crate) struct Platform {
    #[serde(default)]
    architecture: String,
}

/// A manifest.
#[derive(Clone, Debug, Deserialize)]
#[serde(rename_all = "camelCase")]
pub(crate) struct Manifest {
    #[serde(default)]
    media_type: Option<String>,
    #[serde(default)]
    pub(crate) artifact_type: Option<String>,
    pub(crate) config: Descriptor,
    pub(crate) layers: Vec<Descriptor>,
    #[serde(default)]
    pub(crate) subject: Option<Descriptor>,
    #[serde(default)]
    annotations: BTreeMap<String, String>,
}

/// An index: a list of manifests.
#[derive(Clone, Debug, Deserialize)]
#[serde(rename_all = "camelCase")]
pub(crate) struct Index {
    #[serde(default)]
    media_type: Option<String>,
    pub(crate) manifests: Vec<Descriptor>,
}

/// A manifest or an index.
pub(crate) enum Document {
    Manifest(Box<Manifest>),
    Index(Index),
}

/// The configuration of a component.
#[derive(Debug, Default, Deserialize)]
#[serde(rename_all = "camelCase", default)]
pub(crate) struct Config {
    layer_digests: Vec<String>,
    component: Option<Component>,
}

#[derive(Debug, Default, Deserialize)]
#[serde(default)]
struct Component {
    exports: Vec<String>,
    imports: Vec<String>,
    target: Option<String>,
}

impl Descriptor {
    /// The digest.
    pub(crate) fn sha256(&self) -> Outcome<Sha256> {
        self.digest.parse().map_err(|_| {
            let digest = text::clean(&self.digest, text::NAME);
            wrong_content(format!("the manifest names the digest \"{digest}\", and only sha256 is supported"))
        })
    }
}

impl Document {
    /// Parses a manifest or an index. `named`: the media type in the answer's header.
    pub(crate) fn parse(bytes: &[u8], named: Option<&str>) -> Outcome<Self> {
        #[derive(Deserialize)]
        #[serde(rename_all = "camelCase")]
        struct Kind {
            schema_version: u32,
            media_type: Option<String>,
        }
        let not_json = |error: serde_json::Error| wrong_content(format!("the manifest is not one: {error}"));
        let kind: Kind = serde_json::from_slice(bytes).map_err(not_json)?;
        if kind.schema_version != 2 {
            return Err(wrong_content(format!("the manifest has schema version {}, expected 2", kind.schema_version)));
        }
        // The header may have parameters.
        let named = named.and_then(|named| named.split(';').next()).map(str::trim);
        let media_type = kind.media_type.as_deref().or(named).unwrap_or_default();
        if INDEX.contains(&media_type) {
            let index: Index = serde_json::from_slice(bytes).map_err(not_json)?;
            if index.media_type.as_deref().is_some_and(|own| !INDEX.contains(&own))
                || index.manifests.len() > MAX_ENTRIES
            {
                return Err(wrong_content("the index is not one, or has too many entries"));
            }
            return Ok(Self::Index(index));
        }
        let manifest: Manifest = serde_json::from_slice(bytes).map_err(not_json)?;
        if manifest.media_type.as_deref().is_some_and(|own| INDEX.contains(&own)) {
            return Err(wrong_content("the manifest says that it is an index"));
        }
        Ok(Self::Manifest(Box::new(manifest)))
    }
}

impl Index {
    /// The entry of the component.
    pub(crate) fn component(&self) -> Outcome<&Descriptor> {
        let is_wasm = |entry: &&Descriptor| {
            entry.platform.as_ref().is_some_and(|platform| platform.architecture == "wasm")
                || entry.artifact_type.as_deref().is_some_and(|kind| kind == CONFIG || COMPONENT.contains(&kind))
        };
        let mut found = self.manifests.iter().filter(is_wasm);
        match (found.next(), found.next(), self.manifests.as_slice()) {
            (Some(only), None, _) | (None, _, [only]) => Ok(only),
            (None, ..) => Err(wrong_content("the index has no entry for the architecture \"wasm\"")),
            (Some(first), Some(second), _) => Err(failure(
                belljar_fetch_protocol::FailureKind::Content,
                format!("the index has several components, such as \"{}\" and \"{}\"", first.digest, second.digest),
                "name one of them by its digest: REGISTRY/REPOSITORY@sha256:HEX",
            )),
        }
    }
}

impl Manifest {
    /// The only layer, which is the component or the bundle. `largest`: the most bytes that it may claim.
    pub(crate) fn only_layer(&self, kind: ArtifactKind, largest: u64) -> Outcome<&Descriptor> {
        let (noun, known) = match kind {
            ArtifactKind::Component => ("component", COMPONENT.as_slice()),
            ArtifactKind::Bundle => ("bundle", [BUNDLE].as_slice()),
        };
        let [layer] = self.layers.as_slice() else {
            let container = self.layers.iter().any(|layer| layer.media_type.contains("tar"));
            let what = if container { "it is a container image".into() } else { format!("a {noun} has one layer") };
            return Err(wrong_content(format!("the manifest has {} layers: {what}", self.layers.len())));
        };
        if !known.contains(&layer.media_type.as_str()) {
            let found = text::clean(&layer.media_type, text::NAME);
            let cure = match layer.media_type.as_str() {
                BUNDLE => "it is a set-up: belljar import oci://REFERENCE",
                other if COMPONENT.contains(&other) => "it is a component: belljar add REFERENCE",
                _ => "ask its publisher to push it again, or use another source",
            };
            let expected = known.first().copied().unwrap_or_default();
            let problem = format!("the layer is \"{found}\", expected \"{expected}\"");
            return Err(failure(belljar_fetch_protocol::FailureKind::Content, problem, cure));
        }
        if layer.size > largest {
            return Err(failure(
                belljar_fetch_protocol::FailureKind::Size,
                format!("the {noun} has {} bytes, at most {largest} are allowed", layer.size),
                "allow more bytes if you trust its publisher",
            ));
        }
        Ok(layer)
    }

    /// The annotation `org.opencontainers.image.NAME`.
    pub(crate) fn annotation(&self, name: &str) -> Option<&str> {
        self.annotations.get(&format!("org.opencontainers.image.{name}")).map(String::as_str)
    }

    /// Copies the annotations that describe the component.
    pub(crate) fn describe(&self, into: &mut Resolved) {
        let get = |name: &str, max| text::clean_some(self.annotation(name)?, max);
        into.title = get("title", text::NAME);
        into.version = get("version", text::NAME);
        into.description = get("description", text::SENTENCE);
        into.licence = get("licenses", text::NAME);
        into.needs = self.annotations.get(NEEDS).map(|needs| needs.chars().take(MAX_NEEDS).collect());
        into.homepage = get("source", text::NAME).or_else(|| get("url", text::NAME));
    }
}

impl Config {
    /// Parses a configuration.
    pub(crate) fn parse(bytes: &[u8]) -> Outcome<Self> {
        serde_json::from_slice(bytes).map_err(|error| wrong_content(format!("the configuration is not one: {error}")))
    }

    /// Copies exports and imports. Refuses the configuration of another component.
    pub(crate) fn describe(&self, component: &str, into: &mut Resolved) -> Outcome<()> {
        if !self.layer_digests.is_empty() && !self.layer_digests.iter().any(|digest| digest == component) {
            return Err(wrong_content("the configuration describes another component than the manifest names"));
        }
        let Some(found) = &self.component else { return Ok(()) };
        let names = |all: &[String]| {
            all.iter().take(MAX_NAMES).filter_map(|name| text::clean_some(name, text::NAME)).collect::<Vec<_>>()
        };
        into.exports = names(&found.exports);
        into.imports = names(&found.imports);
        into.target = found.target.as_deref().and_then(|target| text::clean_some(target, text::NAME));
        Ok(())
    }
}
