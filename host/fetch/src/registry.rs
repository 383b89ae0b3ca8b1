//! A registry that speaks the OCI distribution specification 1.1. Every document is checked against its digest.

use belljar_fetch_protocol::{Failure, FailureKind};
use http::header::CONTENT_TYPE;
use http::{HeaderName, StatusCode};
use serde::Deserialize;

use crate::artifact::{ACCEPTED, Descriptor, Document, Index};
use crate::auth::{self, Access, Challenge};
use crate::credentials::Login;
use crate::digest::Sha256;
use crate::failure::{Outcome, failure, wrong_content};
use crate::http::{Answer, Call, Client, header};
use crate::source::{Image, is_tag};
use crate::url::Url;

/// The most bytes of a manifest, an index, a configuration, and a list.
pub(crate) const MAX_DOCUMENT: usize = 1024 * 1024;

/// The most tags of a list.
const MAX_TAGS: usize = 1000;

/// The header in which a registry names the digest of its answer.
pub(crate) const CONTENT_DIGEST: HeaderName = HeaderName::from_static("docker-content-digest");

/// One repository of a registry.
pub(crate) struct Registry {
    client: Client,
    image: Image,
    login: Option<Login>,
    access: Access,
    /// The header `Authorization` that the registry accepted.
    authorization: Option<String>,
}

/// A manifest or an index, with its bytes.
pub(crate) struct Fetched {
    pub(crate) bytes: Vec<u8>,
    pub(crate) digest: Sha256,
    pub(crate) document: Document,
}

impl Registry {
    /// The repository of `image`, for reading.
    pub(crate) fn new(client: Client, image: Image, login: Option<Login>) -> Self {
        Self { client, image, login, access: Access::Read, authorization: None }
    }

    /// The same, for writing too.
    pub(crate) fn writable(self) -> Self {
        Self { access: Access::Write, ..self }
    }

    /// The repository.
    pub(crate) fn image(&self) -> &Image {
        &self.image
    }

    /// The URL of a path of the repository.
    pub(crate) fn url(&self, path: &str) -> Url {
        Url { origin: self.image.origin.clone(), path: format!("/v2/{}/{path}", self.image.repository) }
    }

    /// The client, for another repository.
    pub(crate) fn into_client(self) -> Client {
        self.client
    }

    /// The manifest with this tag or digest.
    pub(crate) async fn manifest(&mut self, tag: &str, digest: Option<&Sha256>) -> Outcome<Fetched> {
        let named = digest.map_or_else(|| tag.to_owned(), Sha256::to_string);
        let mut answer = self.get(&format!("manifests/{named}"), ACCEPTED, None).await?;
        if answer.status != StatusCode::OK {
            return Err(self.refusal(&answer, &named));
        }
        Self::checked(&mut answer, digest).await
    }

    /// The manifest with this tag. `None` if the repository has no such tag.
    pub(crate) async fn manifest_if_there(&mut self, tag: &str) -> Outcome<Option<Fetched>> {
        let mut answer = self.get(&format!("manifests/{tag}"), ACCEPTED, None).await?;
        match answer.status {
            StatusCode::OK => Self::checked(&mut answer, None).await.map(Some),
            StatusCode::NOT_FOUND => {
                // Frees the connection for the next request.
                let _ = answer.body(MAX_DOCUMENT, "the error").await;
                Ok(None)
            }
            _ => Err(self.refusal(&answer, tag)),
        }
    }

    /// The document in an answer, checked against its digests.
    async fn checked(answer: &mut Answer, digest: Option<&Sha256>) -> Outcome<Fetched> {
        let media_type = header(&answer.headers, CONTENT_TYPE).map(str::to_owned);
        let claimed = header(&answer.headers, CONTENT_DIGEST).map(str::to_owned);
        let bytes = answer.body(MAX_DOCUMENT, "the manifest").await?;
        let found = Sha256::of(&bytes);
        if let Some(wanted) = digest.filter(|wanted| **wanted != found) {
            return Err(wrong_content(format!(
                "the registry sends a manifest with the digest \"{found}\" for \"{wanted}\""
            )));
        }
        if let Some(claimed) = claimed.filter(|claimed| claimed.starts_with("sha256:") && *claimed != found.to_string())
        {
            return Err(wrong_content(format!(
                "the registry sends a manifest with the digest \"{found}\", and says \"{claimed}\""
            )));
        }
        let document = Document::parse(&bytes, media_type.as_deref())?;
        Ok(Fetched { bytes, digest: found, document })
    }

    /// A small blob: a configuration, or a signature.
    pub(crate) async fn document(&mut self, of: &Descriptor, what: &str) -> Outcome<Vec<u8>> {
        let digest = of.sha256()?;
        if of.size > MAX_DOCUMENT as u64 {
            let problem = format!("{what} has {} bytes, at most {MAX_DOCUMENT} are allowed", of.size);
            return Err(failure(FailureKind::Size, problem, "ask its publisher, since no such thing is that large"));
        }
        let mut answer = self.get(&format!("blobs/{digest}"), "*/*", None).await?;
        if answer.status != StatusCode::OK {
            return Err(self.refusal(&answer, what));
        }
        let bytes = answer.body(MAX_DOCUMENT, what).await?;
        if Sha256::of(&bytes) != digest {
            return Err(wrong_content(format!("{what} is not the one with the digest \"{digest}\"")));
        }
        Ok(bytes)
    }

    /// A blob from its byte `from`, for a download.
    pub(crate) async fn blob(&mut self, digest: &Sha256, from: u64) -> Outcome<Answer> {
        self.get(&format!("blobs/{digest}"), "*/*", (from > 0).then_some(from)).await
    }

    /// The descriptors of what refers to a manifest. A registry without that list keeps it under a tag.
    pub(crate) async fn referrers(&mut self, digest: &Sha256) -> Outcome<Vec<Descriptor>> {
        let mut answer = self.get(&format!("referrers/{digest}"), ACCEPTED, None).await?;
        let bytes = match answer.status {
            StatusCode::OK => answer.body(MAX_DOCUMENT, "the list of signatures").await?,
            // Registries from before the specification 1.1.
            StatusCode::NOT_FOUND
            | StatusCode::METHOD_NOT_ALLOWED
            | StatusCode::BAD_REQUEST
            | StatusCode::NOT_IMPLEMENTED => {
                let tag = format!("sha256-{}", digest.hex());
                let mut answer = self.get(&format!("manifests/{tag}"), ACCEPTED, None).await?;
                match answer.status {
                    StatusCode::OK => answer.body(MAX_DOCUMENT, "the list of signatures").await?,
                    StatusCode::NOT_FOUND => return Ok(Vec::new()),
                    _ => return Err(self.refusal(&answer, &tag)),
                }
            }
            _ => return Err(self.refusal(&answer, "the list of signatures")),
        };
        let index: Index = serde_json::from_slice(&bytes)
            .map_err(|error| wrong_content(format!("the list of signatures is not one: {error}")))?;
        Ok(index.manifests)
    }

    /// True if there is a signature in the form that cosign 2 wrote.
    pub(crate) async fn has_old_signature(&mut self, digest: &Sha256) -> bool {
        let path = format!("manifests/sha256-{}.sig", digest.hex());
        self.get(&path, ACCEPTED, None).await.is_ok_and(|answer| answer.status == StatusCode::OK)
    }

    /// The tags, and whether there are more.
    pub(crate) async fn tags(&mut self) -> Outcome<(Vec<String>, bool)> {
        #[derive(Deserialize)]
        struct List {
            tags: Option<Vec<String>>,
        }
        let mut answer = self.get(&format!("tags/list?n={MAX_TAGS}"), "application/json", None).await?;
        if answer.status != StatusCode::OK {
            return Err(self.refusal(&answer, "the list of tags"));
        }
        let linked = answer.headers.contains_key(http::header::LINK);
        let bytes = answer.body(MAX_DOCUMENT, "the list of tags").await?;
        let list: List = serde_json::from_slice(&bytes)
            .map_err(|error| wrong_content(format!("the list of tags is not one: {error}")))?;
        let mut tags = list.tags.unwrap_or_default();
        let more = linked || tags.len() > MAX_TAGS;
        tags.truncate(MAX_TAGS);
        tags.retain(|tag| is_tag(tag) && !tag.starts_with("sha256-"));
        Ok((tags, more))
    }

    /// Asks for a path of the repository.
    async fn get(&mut self, path: &str, accept: &'static str, from: Option<u64>) -> Outcome<Answer> {
        self.send(Call { from, ..Call::get(self.url(path), accept) }).await
    }

    /// Sends a request to the registry. Answers one challenge.
    pub(crate) async fn send(&mut self, call: Call) -> Outcome<Answer> {
        let call = Call { authorization: self.authorization.clone(), ..call };
        let mut answer = self.client.send(call.clone()).await?;
        if answer.status != StatusCode::UNAUTHORIZED || answer.url.origin != self.image.origin {
            return Ok(answer);
        }
        let Some(challenge) = Challenge::read(&answer.headers) else { return Ok(answer) };
        // Frees the connection for the next request.
        let _ = answer.body(MAX_DOCUMENT, "the error").await;
        let answered =
            auth::answer(&mut self.client, challenge, (&self.image.repository, self.access), self.login.as_ref()).await;
        let answered = answered.map_err(|error| self.named(&error))?;
        self.authorization = Some(answered.clone());
        self.client.send(Call { authorization: Some(answered), ..call }).await
    }

    /// Puts the name of the registry into the cure, so that it can be pasted.
    fn named(&self, error: &Failure) -> Box<Failure> {
        failure(error.kind, &error.problem, error.cure.replace("REGISTRY", &self.image.registry))
    }

    /// Why the registry does not answer with what was asked for.
    pub(crate) fn refusal(&self, answer: &Answer, what: &str) -> Box<Failure> {
        self.named(&self.unnamed_refusal(answer, what))
    }

    fn unnamed_refusal(&self, answer: &Answer, what: &str) -> Box<Failure> {
        let name = self.image.name();
        let has_sent_login = self.authorization.as_ref().is_some_and(|sent| sent.starts_with("Basic "));
        match answer.status {
            StatusCode::NOT_FOUND => {
                let problem = format!("\"{name}\" has no \"{what}\"");
                let cure = "check the spelling; if the repository is private, log in: docker login REGISTRY";
                failure(FailureKind::NotFound, problem, cure)
            }
            StatusCode::UNAUTHORIZED if has_sent_login => {
                let problem = format!("the registry \"{}\" refuses the login", self.image.registry);
                let cure = "log in again: docker login REGISTRY, or podman login REGISTRY";
                failure(FailureKind::Denied, problem, cure)
            }
            StatusCode::UNAUTHORIZED | StatusCode::FORBIDDEN => auth::needs_login(&self.image.repository),
            StatusCode::TOO_MANY_REQUESTS => {
                let problem = format!("the registry \"{}\" allows no more requests for now", self.image.registry);
                failure(FailureKind::Network, problem, "wait some minutes, or log in: docker login REGISTRY")
            }
            other => {
                let problem =
                    format!("the registry \"{}\" answers {} for \"{what}\"", self.image.registry, other.as_u16());
                failure(FailureKind::Network, problem, "try again later")
            }
        }
    }
}
