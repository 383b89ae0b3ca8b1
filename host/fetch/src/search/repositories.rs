//! The repositories of a registry below a namespace, by the registry's own list (`_catalog`). Public registries seldom give it.

use belljar_fetch_protocol::{ArtifactKind, FailureKind, REVOKED_TAG, SearchResult};
use http::StatusCode;
use serde::Deserialize;

use super::{Findings, MAX_ARTIFACTS, fits, newest, not_an_index};
use crate::artifact::{Document, Manifest};
use crate::credentials::Login;
use crate::failure::{Outcome, failure};
use crate::http::{Call, Client};
use crate::registry::{MAX_DOCUMENT, Registry};
use crate::source::Image;
use crate::text;
use crate::url::{Origin, Url};

/// The most repositories of a list.
const MAX_REPOSITORIES: usize = 1000;

/// A registry, and the first part of the names of its repositories.
pub(super) struct Namespace {
    /// Any repository in it: it knows how the registry is reached.
    image: Image,
    /// Empty, or a path with a `/` at its end.
    prefix: String,
}

impl Namespace {
    pub(super) fn parse(typed: &str) -> Outcome<Self> {
        let rest = typed.strip_prefix("oci://").unwrap_or(typed).trim_end_matches('/');
        let (registry, path) = rest.split_once('/').map_or((rest, ""), |(registry, path)| (registry, path));
        let prefix = if path.is_empty() { String::new() } else { format!("{path}/") };
        let image =
            Image::parse(&format!("{registry}/{prefix}x")).ok().filter(|image| image.tag.as_deref() == Some("latest"));
        let Some(image) = image else {
            let problem = format!("\"{}\" is not a namespace of a registry", text::clean(typed, text::NAME));
            return Err(failure(
                FailureKind::Request,
                problem,
                "write REGISTRY/NAMESPACE, such as registry.acme.example/tools",
            ));
        };
        Ok(Self { image, prefix })
    }

    pub(super) fn origin(&self) -> &Origin {
        &self.image.origin
    }

    pub(super) fn registry(&self) -> &str {
        &self.image.registry
    }

    /// The repository with this name.
    fn repository(&self, name: &str) -> Option<Image> {
        Image::parse(&format!("{}/{name}", self.image.registry)).ok()
    }
}

#[derive(Deserialize)]
struct Catalog {
    repositories: Option<Vec<String>>,
}

/// The repositories with the word in their name that have a component under their newest tag.
pub(super) async fn search(
    mut client: Client,
    namespace: &Namespace,
    login: Option<Login>,
    word: &str,
) -> Outcome<SearchResult> {
    let (names, is_cut) = catalog(&mut client, namespace, login.as_ref()).await?;
    let mut wanted = names.iter().filter(|name| name.starts_with(&namespace.prefix) && fits(word, &[name.as_str()]));
    let (mut findings, mut others) = (Findings::default(), 0);
    for name in wanted.by_ref().take(MAX_ARTIFACTS) {
        let Some(image) = namespace.repository(name) else {
            findings.strange += 1;
            continue;
        };
        let mut registry = Registry::new(client, image.clone(), login.clone());
        let looked = newest_component(&mut registry).await;
        client = registry.into_client();
        let found = match looked {
            Ok(found) => found,
            // The others may still be found.
            Err(error) if matches!(error.kind, FailureKind::NotFound | FailureKind::Denied | FailureKind::Content) => {
                None
            }
            Err(error) => return Err(error),
        };
        match found {
            Some((tag, manifest)) => {
                let title = manifest.annotation("title").unwrap_or(name);
                let version = manifest.annotation("version").unwrap_or(&tag);
                let reference = format!("{}:{tag}", image.name());
                findings.add(title, Some(version), manifest.annotation("description"), &reference);
            }
            None => others += 1,
        }
    }
    let mut notes = Vec::new();
    if wanted.next().is_some() {
        notes.push(format!(
            "only the first {MAX_ARTIFACTS} repositories with this word were looked at; search for a longer word"
        ));
    }
    if is_cut {
        notes.push(format!("only the first {MAX_REPOSITORIES} repositories of the registry were looked at"));
    }
    if others > 0 {
        notes.push(format!("repositories that fit and have no component under their newest tag: {others}"));
    }
    Ok(findings.result(notes))
}

/// The newest tag, and its manifest, if it is that of a component.
async fn newest_component(registry: &mut Registry) -> Outcome<Option<(String, Box<Manifest>)>> {
    let tags = registry.tags().await?.0;
    let Some(tag) = newest(tags.iter().map(String::as_str).filter(|tag| *tag != REVOKED_TAG)) else { return Ok(None) };
    Ok(component(registry, tag).await?.map(|manifest| (tag.to_owned(), manifest)))
}

/// The manifest under a tag, if it is that of a component.
pub(super) async fn component(registry: &mut Registry, tag: &str) -> Outcome<Option<Box<Manifest>>> {
    let Some(fetched) = registry.manifest_if_there(tag).await? else { return Ok(None) };
    let Document::Manifest(manifest) = fetched.document else { return Ok(None) };
    Ok(manifest.only_layer(ArtifactKind::Component, u64::MAX).is_ok().then_some(manifest))
}

/// The names of all repositories, and whether there are more.
async fn catalog(client: &mut Client, namespace: &Namespace, login: Option<&Login>) -> Outcome<(Vec<String>, bool)> {
    let url = Url { origin: namespace.origin().clone(), path: format!("/v2/_catalog?n={MAX_REPOSITORIES}") };
    let mut answer = client.send(Call::get(url.clone(), "application/json")).await?;
    if answer.status == StatusCode::UNAUTHORIZED
        && answer.url.origin == *namespace.origin()
        && let Some(authorization) = login.and_then(Login::basic)
    {
        // Frees the connection for the next request.
        let _ = answer.body(MAX_DOCUMENT, "the error").await;
        let call = Call { authorization: Some(authorization), ..Call::get(url, "application/json") };
        answer = client.send(call).await?;
    }
    if answer.status != StatusCode::OK {
        let registry = namespace.registry();
        let problem = format!(
            "the registry \"{registry}\" does not list its repositories: it answers {}",
            answer.status.as_u16()
        );
        let cure = "log in: docker login REGISTRY; if it lists them to nobody, as public registries do, use an index of another kind";
        return Err(failure(FailureKind::Denied, problem, cure));
    }
    let linked = answer.headers.contains_key(http::header::LINK);
    let body = answer.body(MAX_DOCUMENT, "the list of repositories").await?;
    let list: Catalog =
        serde_json::from_slice(&body).map_err(|error| not_an_index("the list of repositories", &error))?;
    let mut names = list.repositories.unwrap_or_default();
    let is_cut = linked || names.len() > MAX_REPOSITORIES;
    names.truncate(MAX_REPOSITORIES);
    Ok((names, is_cut))
}
