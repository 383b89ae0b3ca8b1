//! The registry of MCP. Its `server.json` knows packages of npm, PyPI, NuGet, Cargo and MCPB, and images of registries; no type
//! names a component. An image is shown if it is one.
//!
//! The operator named the index and not these registries, so they are reached as redirects are: by HTTPS, at public addresses,
//! without a login.

use belljar_fetch_protocol::SearchResult;
use serde::Deserialize;

use super::repositories::component;
use super::{Findings, MAX_ARTIFACTS, MAX_FOUND, below, encoded, get, not_an_index};
use crate::failure::Outcome;
use crate::http::Client;
use crate::registry::Registry;
use crate::source::Image;
use crate::url::Url;

#[derive(Deserialize)]
struct Answer {
    servers: Vec<Listed>,
}

#[derive(Deserialize)]
struct Listed {
    server: Server,
}

#[derive(Deserialize)]
#[serde(rename_all = "camelCase")]
struct Server {
    name: String,
    description: Option<String>,
    version: Option<String>,
    #[serde(default)]
    packages: Vec<Package>,
}

#[derive(Deserialize)]
#[serde(rename_all = "camelCase")]
struct Package {
    registry_type: String,
    identifier: String,
}

/// The servers that the registry finds and whose image is a component.
pub(super) async fn search(mut client: Client, url: Url, word: &str) -> Outcome<SearchResult> {
    let path = format!("/v0/servers?search={}&limit={MAX_FOUND}&version=latest", encoded(word));
    let answer = get(&mut client, below(url, &path)).await?;
    let answer: Answer = serde_json::from_slice(&answer).map_err(|error| not_an_index("the answer", &error))?;
    let (mut findings, mut looked_at, mut others) = (Findings::default(), 0, 0);
    for Listed { server } in &answer.servers {
        let images = server.packages.iter().filter(|package| package.registry_type == "oci");
        let mut is_found = false;
        for image in images.filter_map(|package| Image::parse(&package.identifier).ok()) {
            if looked_at == MAX_ARTIFACTS {
                break;
            }
            looked_at += 1;
            let tag = image.digest.map(|digest| digest.to_string()).or_else(|| image.tag.clone()).unwrap_or_default();
            let mut registry = Registry::new(client, image.clone(), None);
            // An image that cannot be reached is none that could be added.
            let manifest = component(&mut registry, &tag).await.ok().flatten();
            client = registry.into_client();
            if manifest.is_some() {
                findings.add(
                    &server.name,
                    server.version.as_deref(),
                    server.description.as_deref(),
                    &image.reference(),
                );
                is_found = true;
            }
        }
        others += usize::from(!is_found);
    }
    let mut notes = Vec::new();
    if others > 0 {
        notes.push(format!(
            "servers that fit and are no component: {others}; the package types of this registry cannot name one, so only images \
             that are components are shown"
        ));
    }
    if looked_at == MAX_ARTIFACTS {
        notes.push(format!("only the first {MAX_ARTIFACTS} images were looked at; search for a longer word"));
    }
    Ok(findings.result(notes))
}
