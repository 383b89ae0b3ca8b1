//! wasm.directory: an index of the packages for WebAssembly in public registries. `/v1/search?q=WORD` gives an array of packages.

use belljar_fetch_protocol::SearchResult;
use serde::Deserialize;

use super::{Findings, MAX_FOUND, below, encoded, get, newest, not_an_index};
use crate::failure::Outcome;
use crate::http::Client;
use crate::url::Url;

/// A package. What belljar does not need is ignored.
#[derive(Deserialize)]
struct Package {
    registry: String,
    repository: String,
    kind: Option<String>,
    description: Option<String>,
    #[serde(default)]
    tags: Vec<String>,
    wit_namespace: Option<String>,
    wit_name: Option<String>,
}

/// The packages that the server finds, without those that are only interfaces.
pub(super) async fn search(client: &mut Client, url: Url, word: &str) -> Outcome<SearchResult> {
    let path = format!("/v1/search?q={}&offset=0&limit={MAX_FOUND}", encoded(word));
    let answer = get(client, below(url, &path)).await?;
    let packages: Vec<Package> = serde_json::from_slice(&answer).map_err(|error| not_an_index("the answer", &error))?;
    let mut findings = Findings::default();
    let is_full = packages.len() >= MAX_FOUND;
    for package in packages.iter().filter(|package| package.kind.as_deref() != Some("interface")) {
        let tag = newest(package.tags.iter().map(String::as_str));
        let name = match (&package.wit_namespace, &package.wit_name) {
            (Some(namespace), Some(name)) => format!("{namespace}:{name}"),
            _ => package.repository.clone(),
        };
        let tagged = tag.map(|tag| format!(":{tag}")).unwrap_or_default();
        let reference = format!("{}/{}{tagged}", package.registry, package.repository);
        findings.add(&name, tag, package.description.as_deref(), &reference);
    }
    findings.is_cut |= is_full;
    let every = "this index has components of every kind; belljar add refuses those that serve no resources";
    let notes = if findings.found.is_empty() { Vec::new() } else { vec![every.to_owned()] };
    Ok(findings.result(notes))
}
