//! `[search]`: the indexes in which `belljar search` looks.

use std::path::PathBuf;

use schemars::JsonSchema;
use serde::Deserialize;

use crate::model::text;

/// `[search]`.
#[derive(Default, Deserialize, JsonSchema)]
#[serde(deny_unknown_fields, rename_all = "kebab-case", expecting = "a table")]
pub(super) struct SearchTable {
    /// Where to look. Without any, nothing is searched: there is no central index of components for belljar.
    #[serde(default)]
    indexes: Vec<IndexTable>,
}

/// An entry of `[[search.indexes]]`. It has one of its keys.
#[derive(Deserialize, JsonSchema)]
#[serde(deny_unknown_fields, rename_all = "kebab-case", expecting = "a table")]
struct IndexTable {
    /// A list of components in belljar's own format: a URL, or a file.
    #[schemars(example = "https://acme.example/components.json")]
    json: Option<String>,
    /// A registry that lists its repositories, perhaps with a namespace.
    #[schemars(example = "registry.acme.example/tools")]
    oci: Option<String>,
    /// The URL of a server with the interface of wasm.directory.
    #[schemars(example = "https://api.wasm.directory")]
    wasm_directory: Option<String>,
    /// The URL of a server with the interface of the MCP registry. It knows no components but those that are images.
    #[schemars(example = "https://registry.modelcontextprotocol.io")]
    mcp_registry: Option<String>,
}

/// An entry of `[[search.indexes]]`.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum IndexConfig {
    /// A list in belljar's own format, behind a URL.
    Json(String),
    /// Such a list in a file.
    File(PathBuf),
    /// A registry, perhaps with a namespace.
    Oci(String),
    /// The URL of a server as wasm.directory.
    WasmDirectory(String),
    /// The URL of a server as the MCP registry.
    McpRegistry(String),
}

/// Why an entry of `[[search.indexes]]` cannot be used.
#[derive(Clone, Debug, PartialEq, Eq, thiserror::Error)]
#[error("search.indexes, entry {number}: {problem}")]
pub struct IndexProblem {
    /// The number of the entry. The first is 1.
    number: usize,
    problem: &'static str,
}

/// The entry has no key, or two.
const ONE: &str = "expected one of json, oci, wasm-directory and mcp-registry";

/// The text is no URL.
const URL: &str = "expected a URL that begins with \"https://\", without a user name";

/// The text is no namespace.
const NAMESPACE: &str =
    "oci = \"...\": expected a registry, or a registry with a namespace, such as \"registry.acme.example/tools\"";

impl SearchTable {
    /// The checked table. `place` makes a path absolute.
    ///
    /// # Errors
    /// The first entry that cannot be used.
    pub(super) fn checked(self, place: impl Fn(PathBuf) -> PathBuf) -> Result<Vec<IndexConfig>, IndexProblem> {
        let checked = |(at, table): (usize, IndexTable)| {
            let problem = |problem| IndexProblem { number: at + 1, problem };
            let url = |url: String| if is_url(&url) { Ok(url) } else { Err(problem(URL)) };
            let IndexTable { json, oci, wasm_directory, mcp_registry } = table;
            match (json, oci, wasm_directory, mcp_registry) {
                (Some(json), None, None, None) if json.contains("://") => url(json).map(IndexConfig::Json),
                (Some(json), None, None, None) => Ok(IndexConfig::File(place(PathBuf::from(json)))),
                (None, Some(oci), None, None) => {
                    let is_plain = !oci.is_empty() && !oci.contains("://") && text::is_clean(&oci, 300);
                    if is_plain { Ok(IndexConfig::Oci(oci)) } else { Err(problem(NAMESPACE)) }
                }
                (None, None, Some(server), None) => url(server).map(IndexConfig::WasmDirectory),
                (None, None, None, Some(server)) => url(server).map(IndexConfig::McpRegistry),
                _ => Err(problem(ONE)),
            }
        };
        self.indexes.into_iter().enumerate().map(checked).collect()
    }
}

/// True for HTTPS, and for a server on this machine. The program that fetches judges the rest.
fn is_url(url: &str) -> bool {
    let is_here = ["http://127.0.0.1", "http://localhost", "http://[::1]"].iter().any(|here| url.starts_with(here));
    (url.starts_with("https://") || is_here) && !url.contains('@') && text::is_clean(url, 1000)
}

#[cfg(test)]
mod tests {
    use super::*;

    fn checked(entry: &str) -> Result<Vec<IndexConfig>, IndexProblem> {
        let table: SearchTable = toml::from_str(&format!("[[indexes]]\n{entry}")).unwrap();
        table.checked(|path| PathBuf::from("/base").join(path))
    }

    #[test]
    fn an_entry_has_one_key() {
        for (entry, index) in [
            ("json = 'https://acme.example/x.json'", IndexConfig::Json("https://acme.example/x.json".into())),
            ("json = 'x.json'", IndexConfig::File("/base/x.json".into())),
            ("oci = 'ghcr.io/acme'", IndexConfig::Oci("ghcr.io/acme".into())),
            ("wasm-directory = 'https://a'", IndexConfig::WasmDirectory("https://a".into())),
            ("mcp-registry = 'http://127.0.0.1:1'", IndexConfig::McpRegistry("http://127.0.0.1:1".into())),
        ] {
            assert_eq!(checked(entry), Ok(vec![index]), "{entry}");
        }
        for (entry, why) in [
            ("", ONE),
            ("oci = 'a'\njson = 'b'", ONE),
            ("json = 'http://acme.example/x.json'", URL),
            ("json = 'file:///etc/passwd'", URL),
            ("wasm-directory = 'https://ana:secret@a'", URL),
            ("mcp-registry = 'a'", URL),
            ("oci = 'https://ghcr.io/acme'", NAMESPACE),
            ("oci = ''", NAMESPACE),
        ] {
            assert_eq!(checked(entry).unwrap_err().to_string(), format!("search.indexes, entry 1: {why}"), "{entry}");
        }
    }
}
