//! Search in an index of components.

use serde::{Deserialize, Serialize};

/// See [`crate::Task::Search`].
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct SearchRequest {
    /// Where to look.
    pub index: SearchIndex,
    /// The word to look for, in small and large letters alike.
    pub word: String,
}

/// An index. A server on loopback is spoken to without TLS.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "kebab-case", tag = "kind", deny_unknown_fields)]
pub enum SearchIndex {
    /// A list in belljar's own format, by its URL.
    Json {
        /// The URL.
        url: String,
    },
    /// The text of such a list.
    Text {
        /// The text.
        text: String,
    },
    /// The repositories of a registry: `REGISTRY`, or `REGISTRY/NAMESPACE`.
    Oci {
        /// The registry, perhaps with a namespace.
        namespace: String,
    },
    /// A server with the interface of wasm.directory.
    WasmDirectory {
        /// The URL, without `/v1`.
        url: String,
    },
    /// A server with the interface of the MCP registry.
    McpRegistry {
        /// The URL, without `/v0`.
        url: String,
    },
}

/// See [`crate::Event::Found`].
#[derive(Clone, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
pub struct SearchResult {
    /// What fits. At most 100.
    pub found: Vec<FoundComponent>,
    /// What the operator should know: what was left out, and why.
    pub notes: Vec<String>,
}

/// A component in an index. The index is not believed in anything: `belljar add` resolves the reference.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub struct FoundComponent {
    /// Its name.
    pub name: String,
    /// Its version.
    pub version: Option<String>,
    /// What it is.
    pub description: Option<String>,
    /// A source, as [`crate::ResolveRequest::source`] takes it.
    pub reference: String,
}
