//! Uploads: what belljar publishes. belljar makes and signs every document itself, so no key gets to the program that speaks to
//! the network.

use std::path::PathBuf;

use serde::{Deserialize, Serialize};

/// See [`crate::Task::Upload`].
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct UploadRequest {
    /// A repository with a tag: `ghcr.io/acme/tides:1.2.0`, with or without `oci://` in front.
    pub target: String,
    /// The text of the manifest that gets the tag.
    pub manifest: String,
    /// The texts of further manifests, such as that of a signature. Each names another one as its `subject`.
    pub referrers: Vec<String>,
    /// The existing directory with the blobs. Each blob that a manifest names is the file `HEX` of its digest.
    pub directory: PathBuf,
    /// True if the tag may be taken from other content.
    #[serde(default)]
    pub force: bool,
}

/// See [`crate::Event::Uploaded`].
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub struct Uploaded {
    /// The digest of the manifest that has the tag now.
    pub manifest_digest: String,
    /// The bytes of blobs that were sent. Blobs that the registry had were not.
    pub sent: u64,
    /// The digest of what the tag held before, if it held anything.
    pub before: Option<String>,
}
