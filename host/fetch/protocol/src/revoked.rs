//! Lists of revoked versions: what a publisher takes back.

use serde::{Deserialize, Serialize};

/// The tag of the list in a repository. Beside a file, the list is the URL with `.revoked.json` behind its path.
pub const REVOKED_TAG: &str = "revoked";

/// The type of the list: of its artifact and of its layer.
pub const REVOKED_TYPE: &str = "application/vnd.belljar.revoked.v1+json";

/// See [`crate::Task::Revoked`].
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct RevokedRequest {
    /// A source, as in [`crate::ResolveRequest::source`]. Its tag is ignored.
    pub source: String,
}

/// See [`crate::Event::Revoked`].
#[derive(Clone, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
pub struct RevokedList {
    /// True if there is a list. A missing list says nothing: neither that a version is revoked, nor that it is not.
    pub is_there: bool,
    /// Its entries. At most 256.
    pub entries: Vec<RevokedEntry>,
}

/// One entry of a list.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub struct RevokedEntry {
    /// Which versions.
    pub what: RevokedVersions,
    /// Why.
    pub reason: Option<String>,
    /// The version to take in its place.
    pub instead: Option<String>,
}

/// Which versions an entry revokes.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "kebab-case")]
pub enum RevokedVersions {
    /// The artifact with this manifest: `sha256:HEX`.
    Manifest(String),
    /// Each artifact with this component: `sha256:HEX`.
    Component(String),
    /// A version, or a range such as `>=1.2.0, <1.4.2`. belljar compares it with the version of the publisher and the tag.
    Version(String),
}
