//! The writing part of the distribution specification 1.1: blobs, manifests, and the list of referrers of registries that keep
//! none themselves. Everything goes to the server that was named, and each answer is compared with what was sent.

use belljar_fetch_protocol::{Failure, FailureKind};
use bytes::Bytes;
use http::header::LOCATION;
use http::{HeaderName, Method, StatusCode};
use serde::Deserialize;
use serde_json::{Value, json};

use crate::artifact::{ACCEPTED, INDEX};
use crate::body::{Blob, Payload};
use crate::digest::Sha256;
use crate::failure::{Outcome, failure};
use crate::http::{Answer, Call, Purpose, header};
use crate::registry::{CONTENT_DIGEST, MAX_DOCUMENT, Registry};
use crate::text;
use crate::url::Url;

/// The header in which a registry says that it lists a referrer of this manifest.
const SUBJECT: HeaderName = HeaderName::from_static("oci-subject");

/// How often a list is written until it holds what was added. Somebody else may write it too.
const MAX_WRITES: usize = 3;

/// The most bytes of an answer that says why a registry refuses.
const MAX_ERROR: usize = 64 * 1024;

/// A manifest that is sent.
pub(crate) struct Document {
    pub(crate) digest: Sha256,
    bytes: Bytes,
    parsed: Value,
    media_type: String,
}

impl Document {
    /// A manifest from its text. `None` if it does not say its media type.
    pub(crate) fn new(bytes: Vec<u8>) -> Option<Self> {
        let parsed: Value = serde_json::from_slice(&bytes).ok()?;
        let media_type = parsed.get("mediaType")?.as_str()?.to_owned();
        Some(Self { digest: Sha256::of(&bytes), bytes: bytes.into(), parsed, media_type })
    }

    /// The digest of the manifest that it refers to.
    pub(crate) fn subject(&self) -> Option<&str> {
        self.parsed.get("subject")?.get("digest")?.as_str()
    }

    /// Its entry in a list of referrers.
    pub(crate) fn descriptor(&self) -> Value {
        let mut entry = json!({
            "mediaType": self.media_type, "digest": self.digest.to_string(), "size": self.bytes.len(),
        });
        let kind = self.parsed.get("artifactType").or_else(|| self.parsed.get("config")?.get("mediaType"));
        for (name, value) in [("artifactType", kind), ("annotations", self.parsed.get("annotations"))] {
            if let (Some(value), Some(entry)) = (value, entry.as_object_mut()) {
                entry.insert(name.to_owned(), value.clone());
            }
        }
        entry
    }
}

/// The digest of what a tag holds. `None` if there is no such tag.
pub(crate) async fn tagged(registry: &mut Registry, tag: &str) -> Outcome<Option<Sha256>> {
    Ok(document(registry, tag, "the manifest").await?.map(|bytes| Sha256::of(&bytes)))
}

/// The bytes of a manifest or an index. `None` if there is none.
async fn document(registry: &mut Registry, tag: &str, what: &str) -> Outcome<Option<Vec<u8>>> {
    let mut answer = registry.send(Call::get(registry.url(&format!("manifests/{tag}")), ACCEPTED)).await?;
    match answer.status {
        StatusCode::OK => answer.body(MAX_DOCUMENT, what).await.map(Some),
        StatusCode::NOT_FOUND => {
            drain(&mut answer).await;
            Ok(None)
        }
        _ => Err(refusal(registry, answer, tag).await),
    }
}

/// True if the registry has this blob.
pub(crate) async fn has_blob(registry: &mut Registry, digest: &Sha256, size: u64) -> Outcome<bool> {
    let url = registry.url(&format!("blobs/{digest}"));
    // Without following redirects: a registry that sends to its storage has the blob.
    let call = Call { method: Method::HEAD, purpose: Purpose::Write, ..Call::get(url, "*/*") };
    let answer = registry.send(call).await?;
    match answer.status {
        StatusCode::OK => Ok(answer.length().is_none_or(|length| length == size)),
        status if status.is_redirection() => Ok(true),
        StatusCode::NOT_FOUND => Ok(false),
        _ => Err(refusal(registry, answer, &digest.to_string()).await),
    }
}

/// Sends a blob.
pub(crate) async fn blob(registry: &mut Registry, digest: &Sha256, blob: &Blob) -> Outcome<()> {
    let url = registry.url("blobs/uploads/");
    let call = Call { method: Method::POST, purpose: Purpose::Write, ..Call::get(url, "*/*") };
    let mut answer = registry.send(call).await?;
    if answer.status != StatusCode::ACCEPTED {
        return Err(refusal(registry, answer, "the upload of a blob").await);
    }
    let url = place(registry, &answer, digest)?;
    drain(&mut answer).await;
    let payload = Payload::Blob(blob.clone());
    let call = Call { method: Method::PUT, purpose: Purpose::Write, payload, ..Call::get(url, "*/*") };
    let mut answer = registry.send(call).await?;
    if answer.status != StatusCode::CREATED {
        return Err(refusal(registry, answer, &digest.to_string()).await);
    }
    check_digest(&answer, digest)?;
    drain(&mut answer).await;
    Ok(())
}

/// The URL to which the registry wants a blob: at the server that was named, and nowhere else.
fn place(registry: &Registry, answer: &Answer, digest: &Sha256) -> Outcome<Url> {
    let location = header(&answer.headers, LOCATION).unwrap_or_default();
    let Some(mut url) = answer.url.join(location) else {
        let shown = text::clean(location.split('?').next().unwrap_or_default(), text::NAME);
        return Err(wrong_answer(format!("the registry wants the upload at \"{shown}\", which is no plain URL")));
    };
    if url.origin != registry.image().origin {
        let problem = format!(
            "the registry wants the upload at \"{}\", which is another server than \"{}\"",
            url.shown(),
            registry.image().origin
        );
        return Err(failure(FailureKind::Address, problem, "name that server as the registry if you trust it"));
    }
    let separator = if url.path.contains('?') { '&' } else { '?' };
    url.path.push(separator);
    url.path.push_str(&format!("digest=sha256%3A{}", digest.hex()));
    Ok(url)
}

/// Puts a manifest under a tag or its digest. Returns the manifest whose list of referrers has it now, if the registry says so.
pub(crate) async fn manifest(registry: &mut Registry, document: &Document, name: &str) -> Outcome<Option<Sha256>> {
    let url = registry.url(&format!("manifests/{name}"));
    let payload = Payload::Document(document.media_type.clone(), document.bytes.clone());
    let call = Call { method: Method::PUT, purpose: Purpose::Write, payload, ..Call::get(url, "*/*") };
    let mut answer = registry.send(call).await?;
    // The specification says 201. Some registries answer 200 or 202.
    if !answer.status.is_success() {
        return Err(refusal(registry, answer, name).await);
    }
    check_digest(&answer, &document.digest)?;
    let listed = header(&answer.headers, SUBJECT).and_then(|subject| subject.parse().ok());
    drain(&mut answer).await;
    Ok(listed)
}

/// Adds entries to the list of referrers under the tag `sha256-HEX`. Keeps the entries that are there.
pub(crate) async fn list(registry: &mut Registry, subject: &Sha256, entries: &[Value]) -> Outcome<()> {
    let tag = format!("sha256-{}", subject.hex());
    for _ in 0..MAX_WRITES {
        let present = document(registry, &tag, "the list of referrers").await?;
        let Some(index) = with_entries(present.as_deref(), &tag, entries)? else { return Ok(()) };
        let bytes = index.to_string().into_bytes();
        let Some(document) = Document::new(bytes).filter(|document| document.bytes.len() <= MAX_DOCUMENT) else {
            let problem = format!("the list of referrers \"{tag}\" has more than {MAX_DOCUMENT} bytes");
            return Err(failure(FailureKind::Size, problem, "delete old signatures from the registry"));
        };
        manifest(registry, &document, &tag).await?;
    }
    match document(registry, &tag, "the list of referrers").await? {
        present if with_entries(present.as_deref(), &tag, entries)?.is_none() => Ok(()),
        _ => {
            let problem = format!("the list of referrers \"{tag}\" does not keep what is added to it");
            Err(failure(FailureKind::Content, problem, "run the same command again: somebody else may write it too"))
        }
    }
}

/// The list with these entries. `None` if it has all of them.
fn with_entries(present: Option<&[u8]>, tag: &str, entries: &[Value]) -> Outcome<Option<Value>> {
    let no_list = || wrong_answer(format!("the tag \"{tag}\" of the registry holds no list of referrers"));
    let mut index = match present {
        None => json!({ "schemaVersion": 2, "mediaType": INDEX[0], "manifests": [] }),
        Some(bytes) => serde_json::from_slice(bytes).map_err(|_| no_list())?,
    };
    let kind = index.get("mediaType").and_then(Value::as_str).unwrap_or(INDEX[0]).to_owned();
    let manifests = index.get_mut("manifests").and_then(Value::as_array_mut).filter(|_| INDEX.contains(&kind.as_str()));
    let manifests = manifests.ok_or_else(no_list)?;
    let before = manifests.len();
    for entry in entries {
        if !manifests.iter().any(|one| one.get("digest") == entry.get("digest")) {
            manifests.push(entry.clone());
        }
    }
    let is_new = manifests.len() > before;
    if let Some(index) = index.as_object_mut() {
        index.insert("mediaType".to_owned(), kind.into());
    }
    Ok(is_new.then_some(index))
}

/// Compares the digest that the registry names with the one of what was sent.
fn check_digest(answer: &Answer, sent: &Sha256) -> Outcome<()> {
    match header(&answer.headers, CONTENT_DIGEST) {
        Some(said) if said.starts_with("sha256:") && *said != sent.to_string() => {
            let said = text::clean(said, text::NAME);
            Err(wrong_answer(format!("the registry says that it stored \"{said}\", expected \"{sent}\"")))
        }
        _ => Ok(()),
    }
}

/// Frees the connection for the next request.
async fn drain(answer: &mut Answer) {
    let _ = answer.body(MAX_ERROR, "the answer").await;
}

fn wrong_answer(problem: String) -> Box<Failure> {
    failure(FailureKind::Content, problem, "run the same command again; if that does not help, use another registry")
}

/// Why a registry does not take what was sent.
async fn refusal(registry: &Registry, mut answer: Answer, what: &str) -> Box<Failure> {
    let (name, status) = (registry.image().name(), answer.status);
    match status {
        StatusCode::UNAUTHORIZED | StatusCode::FORBIDDEN => {
            let problem = format!("the registry does not let you write to \"{name}\"");
            let cure = "check the spelling, and log in with the right to push: docker login REGISTRY";
            return failure(FailureKind::Denied, problem, cure);
        }
        StatusCode::NOT_FOUND => {
            let problem = format!("the registry has no repository \"{name}\" to write to, or forgot the upload");
            return failure(
                FailureKind::NotFound,
                problem,
                "create the repository if the registry wants that; try again",
            );
        }
        StatusCode::PAYLOAD_TOO_LARGE => {
            let problem = format!("\"{what}\" is larger than the registry allows");
            return failure(FailureKind::Size, problem, "make it smaller, or ask the registry's operator");
        }
        StatusCode::TOO_MANY_REQUESTS => return registry.refusal(&answer, what),
        _ => {}
    }
    let host = &registry.image().registry;
    if status.is_redirection() {
        let problem = format!("the registry \"{host}\" redirects the upload of \"{what}\", which is not followed");
        return failure(FailureKind::Address, problem, "name the server that it redirects to, if you trust it");
    }
    let code = answer.body(MAX_ERROR, "the error").await.ok().and_then(|body| error_code(&body));
    let code = code.map(|code| format!(" ({code})")).unwrap_or_default();
    let problem = format!("the registry \"{host}\" answers {}{code} for \"{what}\"", status.as_u16());
    failure(FailureKind::Network, problem, "run the same command again: what is there is not sent again")
}

/// The code of the first error in an answer, such as `DIGEST_INVALID`.
fn error_code(body: &[u8]) -> Option<String> {
    #[derive(Deserialize)]
    struct Errors {
        errors: Vec<Code>,
    }
    #[derive(Deserialize)]
    struct Code {
        code: String,
    }
    let Errors { errors } = serde_json::from_slice(body).ok()?;
    text::clean_some(&errors.into_iter().next()?.code, 60)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_list_of_referrers_keeps_what_it_has() {
        let entry = |name: &str| json!({ "digest": name });
        let list = |present: Option<&str>, entries: &[Value]| with_entries(present.map(str::as_bytes), "t", entries);
        let first = list(None, &[entry("a")]).unwrap().unwrap();
        assert_eq!(first["mediaType"], INDEX[0]);
        let second = list(Some(&first.to_string()), &[entry("a"), entry("b")]).unwrap().unwrap();
        assert_eq!(second["manifests"], json!([entry("a"), entry("b")]));
        assert_eq!(list(Some(&second.to_string()), &[entry("b")]).unwrap(), None);
        let other = r#"{"schemaVersion":2,"manifests":[{"digest":"c","x":1}],"annotations":{"k":"v"}}"#;
        let third = list(Some(other), &[entry("d")]).unwrap().unwrap();
        assert_eq!((&third["manifests"][0]["x"], &third["annotations"]["k"]), (&1.into(), &"v".into()));
        for none in ["[]", "{}", "x", r#"{"manifests":{}}"#, r#"{"mediaType":"a/b","manifests":[]}"#] {
            assert_eq!(list(Some(none), &[entry("a")]).unwrap_err().kind, FailureKind::Content, "{none}");
        }
    }

    #[test]
    fn the_code_of_an_error_is_shown_and_nothing_else() {
        let body = br#"{"errors":[{"code":"DENIED\n","message":"secret"}]}"#;
        assert_eq!(error_code(body).as_deref(), Some("DENIED"));
        for other in ["", "{}", "[]", r#"{"errors":[]}"#] {
            assert_eq!(error_code(other.as_bytes()), None, "{other}");
        }
    }
}
