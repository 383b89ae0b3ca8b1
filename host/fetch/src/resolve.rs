//! Finds out what a source is, and who signed it, without downloading the component.

use belljar_fetch_protocol::{ArtifactKind, Limits, Resolved};
use http::{Method, StatusCode};

use crate::artifact::{CONFIG, Config, Descriptor, Document, Manifest};
use crate::download::file_refusal;
use crate::failure::{Outcome, wrong_content};
use crate::http::{Call, Client};
use crate::registry::{Fetched, Registry};
use crate::revoked;
use crate::signatures::{Findings, Judge, unproven};
use crate::source::{File, Image};

/// The media type of a Sigstore bundle, before its version.
const BUNDLE: &str = "application/vnd.dev.sigstore.bundle";

/// The most signatures of one manifest that are checked.
const MAX_SIGNATURES: usize = 16;

/// The most bytes of a minisign signature.
const MAX_MINISIG: usize = 16 * 1024;

/// Resolves an artifact in a registry.
pub(crate) async fn image(
    registry: &mut Registry,
    (image, kind): (&Image, ArtifactKind),
    judge: &Judge,
    limits: &Limits,
) -> Outcome<Resolved> {
    let tag = image.tag.as_deref().unwrap_or_default();
    let top = registry.manifest(tag, image.digest.as_ref()).await?;
    // An index is signed as a whole, or each of its manifests is.
    let mut documents = vec![top];
    if let Some(Fetched { document: Document::Index(index), .. }) = documents.first() {
        let digest = index.component()?.sha256()?;
        documents.push(registry.manifest("", Some(&digest)).await?);
    }
    let (first, last) = (documents.first(), documents.last());
    let (Some(first), Some(Fetched { document: Document::Manifest(manifest), .. })) = (first, last) else {
        return Err(wrong_content("the index names another index"));
    };
    let layer = manifest.only_layer(kind, limits.component_bytes)?;
    let mut resolved = Resolved {
        reference: image.reference(),
        pinned: image.pinned(&first.digest),
        manifest_digest: Some(first.digest.to_string()),
        component_digest: layer.sha256()?.to_string(),
        size: Some(layer.size),
        ..Resolved::default()
    };
    manifest.describe(&mut resolved);
    if manifest.config.media_type == CONFIG {
        let config = registry.document(&manifest.config, "the configuration").await?;
        Config::parse(&config)?.describe(&layer.digest, &mut resolved)?;
    }
    let mut findings = Findings::default();
    let mut old = false;
    for document in &documents {
        signatures(registry, document, judge, &mut findings).await?;
    }
    if findings.signatures.is_empty() && findings.refused.is_empty() {
        old = registry.has_old_signature(&first.digest).await;
    }
    judge.decide(findings, old, &mut resolved)?;
    resolved.revoked = revoked::of_repository(registry).await?;
    Ok(resolved)
}

/// Fetches and judges the signatures of one document. A signature that cannot be fetched is refused, and the others count.
async fn signatures(registry: &mut Registry, of: &Fetched, judge: &Judge, findings: &mut Findings) -> Outcome<()> {
    let referrers = registry.referrers(&of.digest).await?;
    let mut bundles = referrers.iter().filter(|referrer| {
        // Old lists do not say what their entries are.
        referrer.artifact_type.as_deref().is_none_or(|kind| kind.starts_with(BUNDLE))
    });
    for referrer in bundles.by_ref().take(MAX_SIGNATURES) {
        match bundle(registry, referrer, of).await {
            Ok(Some(bundle)) => judge.judge(&bundle, &of.bytes, findings),
            Ok(None) => {}
            Err(error) => findings.refuse(*unproven(&error.problem)),
        }
    }
    if bundles.next().is_some() {
        findings.refuse(*unproven(&format!("there are more than {MAX_SIGNATURES}, and the others were not looked at")));
    }
    Ok(())
}

/// The bundle of a referrer. `None` if the referrer is something else.
async fn bundle(registry: &mut Registry, referrer: &Descriptor, of: &Fetched) -> Outcome<Option<Vec<u8>>> {
    let fetched = registry.manifest("", Some(&referrer.sha256()?)).await?;
    let Document::Manifest(manifest) = fetched.document else { return Ok(None) };
    let Some(layer) = bundle_layer(&manifest) else { return Ok(None) };
    let subject = manifest.subject.as_ref().map(|subject| subject.digest.as_str());
    if subject != Some(of.digest.to_string().as_str()) {
        return Err(wrong_content("it belongs to another manifest"));
    }
    registry.document(layer, "the signature").await.map(Some)
}

fn bundle_layer(manifest: &Manifest) -> Option<&Descriptor> {
    manifest.layers.iter().find(|layer| layer.media_type.starts_with(BUNDLE))
}

/// Resolves a file behind a URL.
pub(crate) async fn file(client: &mut Client, file: &File, judge: &Judge, limits: &Limits) -> Outcome<Resolved> {
    let call = Call { method: Method::HEAD, ..Call::get(file.url.clone(), "application/wasm, */*") };
    let answer = client.send(call).await?;
    let size = match answer.status {
        StatusCode::OK => answer.length(),
        // Some servers answer GET alone.
        StatusCode::METHOD_NOT_ALLOWED | StatusCode::NOT_IMPLEMENTED | StatusCode::FORBIDDEN => None,
        _ => return Err(file_refusal(&answer)),
    };
    drop(answer);
    if let Some(size) = size.filter(|size| *size > limits.component_bytes) {
        let problem =
            format!("\"{}\" has {size} bytes, at most {} are allowed", file.url.shown(), limits.component_bytes);
        let cure = "allow more bytes if you trust its publisher";
        return Err(crate::failure::failure(belljar_fetch_protocol::FailureKind::Size, problem, cure));
    }
    let minisig = minisig(client, file).await?;
    let announced = judge.announce(minisig.as_deref(), &file.url.shown())?;
    let revoked = revoked::of_file(client, file).await?;
    Ok(Resolved {
        revoked,
        reference: file.url.shown(),
        pinned: file.pinned(),
        component_digest: file.digest.to_string(),
        size,
        minisign: announced.as_ref().map(crate::signatures::Announced::shown),
        ..Resolved::default()
    })
}

/// The minisign signature beside a file, if there is one.
pub(crate) async fn minisig(client: &mut Client, file: &File) -> Outcome<Option<String>> {
    let mut answer = client.send(Call::get(file.url.beside(".minisig"), "*/*")).await?;
    if answer.status != StatusCode::OK {
        return Ok(None);
    }
    let bytes = answer.body(MAX_MINISIG, "the minisign signature").await?;
    Ok(String::from_utf8(bytes).ok())
}
