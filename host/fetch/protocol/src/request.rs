//! What belljar asks for.

use std::net::SocketAddr;
use std::path::PathBuf;

use serde::{Deserialize, Serialize};

use crate::{ArtifactKind, RevokedRequest, SearchRequest, Trust, UploadRequest};

/// One request: the only line on standard input.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct Request {
    /// [`crate::PROTOCOL`].
    pub protocol: u32,
    /// The wall around the process.
    #[serde(default)]
    pub wall: Wall,
    /// True if the logins of docker and podman may be sent to the registry that the source names.
    #[serde(default)]
    pub credentials: bool,
    /// The operator's settings of the network.
    #[serde(default)]
    pub network: Network,
    /// The bounds.
    #[serde(default)]
    pub limits: Limits,
    /// The work.
    pub task: Task,
}

/// Whether the process may work without its wall.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "kebab-case")]
pub enum Wall {
    /// The process fails if the kernel cannot raise all of the wall.
    #[default]
    Required,
    /// The process raises what the kernel has. [`crate::Event::Wall`] names what is missing.
    Optional,
}

/// The operator's settings of the network.
#[derive(Clone, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
#[serde(deny_unknown_fields, default)]
pub struct Network {
    /// The DNS servers. Empty: those of the system.
    pub dns: Vec<SocketAddr>,
    /// Root certificates in PEM, in addition to those of the system.
    pub roots: Option<String>,
}

/// The bounds of a request.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[serde(deny_unknown_fields, default)]
pub struct Limits {
    /// The most bytes of a component.
    pub component_bytes: u64,
    /// The most seconds of the whole request, without the download of the component.
    pub seconds: u64,
    /// The most seconds without a byte, for one answer and for the download.
    pub idle_seconds: u64,
    /// The most seconds of the download.
    pub download_seconds: u64,
}

impl Default for Limits {
    fn default() -> Self {
        Self { component_bytes: 256 * 1024 * 1024, seconds: 60, idle_seconds: 20, download_seconds: 1800 }
    }
}

/// The work of a request.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "kebab-case", tag = "do")]
pub enum Task {
    /// Finds out what a source is, and who signed it. Downloads no component. The result is [`crate::Event::Resolved`].
    Resolve(ResolveRequest),
    /// Downloads one component of a known digest. The result is [`crate::Event::Downloaded`].
    Download(DownloadRequest),
    /// Lists the tags of a repository. The result is [`crate::Event::Tags`].
    Tags(TagsRequest),
    /// Pushes an artifact to a registry. The result is [`crate::Event::Uploaded`].
    Upload(UploadRequest),
    /// Fetches the list of revoked versions beside a source. The result is [`crate::Event::Revoked`].
    Revoked(RevokedRequest),
    /// Looks for a word in one index of components. The result is [`crate::Event::Found`].
    Search(SearchRequest),
}

/// See [`Task::Resolve`].
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct ResolveRequest {
    /// One of:
    ///
    /// - `ghcr.io/acme/tides:1.2`, with or without `oci://` in front. Without a tag, the tag is `latest`.
    /// - `ghcr.io/acme/tides@sha256:HEX`, also with a tag before the `@`. The digest is the one of the manifest.
    /// - `https://host/x.wasm#sha256=HEX`. The digest is the one of the file.
    ///
    /// A registry at `localhost`, `127.0.0.1` or `[::1]` is spoken to without TLS.
    pub source: String,
    /// What the source must be.
    #[serde(default)]
    pub kind: ArtifactKind,
    /// Which signers are trusted, and what is required.
    pub trust: Trust,
}

/// See [`Task::Download`].
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct DownloadRequest {
    /// [`crate::Resolved::pinned`]: a repository with the digest of the manifest, or an HTTPS URL with its digest.
    pub source: String,
    /// [`crate::Resolved::component_digest`]: `sha256:HEX`.
    pub component_digest: String,
    /// What it is. The name of the file ends accordingly: `HEX.wasm` or `HEX.bundle`.
    #[serde(default)]
    pub kind: ArtifactKind,
    /// [`crate::Resolved::size`]. `None` if it is not known: [`Limits::component_bytes`] is the only bound then.
    #[serde(default)]
    pub size: Option<u64>,
    /// The existing directory that gets the file `HEX.wasm`. While the download runs, the file is `HEX.part`, and a later
    /// request resumes it.
    pub directory: PathBuf,
    /// Which minisign keys are trusted for a file from an HTTPS URL, and what is required. A signature of a file is checked
    /// with its bytes, so after the download. Not used for registries.
    #[serde(default)]
    pub trust: Trust,
}

/// See [`Task::Tags`].
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct TagsRequest {
    /// A repository, such as `ghcr.io/acme/tides`. A tag or digest after it is ignored.
    pub repository: String,
}
