//! What an artifact in a registry is.

use serde::{Deserialize, Serialize};

/// The kinds of artifacts that are fetched.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "kebab-case")]
pub enum ArtifactKind {
    /// A WebAssembly component.
    #[default]
    Component,
    /// A bundle that `belljar export` wrote: a set-up in one file.
    Bundle,
}

impl ArtifactKind {
    /// How the name of a file of this kind ends, without the dot.
    #[must_use]
    pub fn extension(self) -> &'static str {
        match self {
            Self::Component => "wasm",
            Self::Bundle => "bundle",
        }
    }
}
