//! Uploads an artifact: blobs that the registry lacks, then manifests, and the tag last. So nobody sees a tag without its content
//! and its signature, and a broken upload goes on with what is there.

use std::collections::BTreeMap;
use std::fs::File;
use std::path::Path;
use std::time::Duration;

use belljar_fetch_protocol::{Event, FailureKind, Limits, Progress, UploadRequest, Uploaded};
use rustix::fs::{FileType, Mode, OFlags};
use tokio::time::{interval, timeout};

use crate::artifact::{Descriptor, Document};
use crate::body::Blob;
use crate::digest::{Hasher, Sha256};
use crate::failure::{Outcome, failure};
use crate::output::Output;
use crate::push;
use crate::registry::{MAX_DOCUMENT, Registry};
use crate::text;

/// The most manifests of one upload, that of the tag included.
const MAX_MANIFESTS: usize = 16;

/// The most blobs of one upload. Each is an open file.
const MAX_BLOBS: usize = 64;

/// The time between two reports of progress.
const REPORT_EVERY: Duration = Duration::from_millis(200);

/// An upload whose files are open.
pub(crate) struct Upload {
    tag: String,
    force: bool,
    manifest: push::Document,
    referrers: Vec<push::Document>,
    blobs: Vec<(Sha256, Blob)>,
}

impl Upload {
    /// Reads the request, and opens its files. `tag`: that of the target.
    pub(crate) fn open(request: &UploadRequest, tag: &str, limits: &Limits) -> Outcome<Self> {
        if request.referrers.len() >= MAX_MANIFESTS {
            return Err(unusable(&format!("it has more than {MAX_MANIFESTS} manifests")));
        }
        let mut wanted: BTreeMap<String, (Sha256, u64)> = BTreeMap::new();
        let mut read = |text: &String| {
            for Descriptor { digest, size, .. } in named(text)? {
                let sha256 = digest.parse().map_err(|_| unusable("a manifest names a digest that is not of sha256"))?;
                if size > limits.component_bytes {
                    let problem = format!("a blob has {size} bytes, at most {} are allowed", limits.component_bytes);
                    return Err(failure(FailureKind::Size, problem, "allow more bytes: set limits.component"));
                }
                wanted.insert(digest, (sha256, size));
            }
            push::Document::new(text.clone().into_bytes()).ok_or_else(|| unusable("a manifest has no media type"))
        };
        let manifest = read(&request.manifest)?;
        let referrers = request.referrers.iter().map(&mut read).collect::<Outcome<Vec<_>>>()?;
        let subject = manifest.digest.to_string();
        if referrers.iter().any(|referrer| referrer.subject() != Some(subject.as_str())) {
            return Err(unusable("a manifest does not refer to the one with the tag"));
        }
        if wanted.len() > MAX_BLOBS {
            return Err(unusable(&format!("it has more than {MAX_BLOBS} blobs")));
        }
        let open = |(digest, size): (Sha256, u64)| Ok((digest, open(&request.directory, &digest, size)?));
        let blobs = wanted.into_values().map(open).collect::<Outcome<_>>()?;
        Ok(Self { tag: tag.to_owned(), force: request.force, manifest, referrers, blobs })
    }

    /// Uploads.
    pub(crate) async fn run(&self, registry: &mut Registry, limits: &Limits, output: &mut Output) -> Outcome<Uploaded> {
        let answers = Duration::from_secs(limits.seconds);
        let before = within(answers, push::tagged(registry, &self.tag)).await?;
        self.check_tag(registry, before.as_ref())?;
        let longest = Duration::from_secs(limits.download_seconds);
        let sent = within(longest, self.send_blobs(registry, output)).await?;
        within(answers, self.send_manifests(registry, before.as_ref())).await?;
        let manifest_digest = self.manifest.digest.to_string();
        Ok(Uploaded { manifest_digest, sent, before: before.map(|digest| digest.to_string()) })
    }

    /// Refuses to take a tag from other content.
    fn check_tag(&self, registry: &Registry, holds: Option<&Sha256>) -> Outcome<()> {
        match holds.filter(|digest| **digest != self.manifest.digest && !self.force) {
            None => Ok(()),
            Some(other) => {
                let name = registry.image().name();
                let problem = format!("\"{name}:{}\" holds other content already, \"{other}\"", self.tag);
                Err(failure(FailureKind::Exists, problem, "choose another tag, or pass --force to replace it"))
            }
        }
    }

    /// Sends the blobs that the registry lacks. Returns how many bytes that were.
    async fn send_blobs(&self, registry: &mut Registry, output: &mut Output) -> Outcome<u64> {
        let total = self.blobs.iter().map(|(_, blob)| blob.size()).sum();
        let (mut done, mut sent) = (0, 0);
        for (digest, blob) in &self.blobs {
            if !push::has_blob(registry, digest, blob.size()).await? {
                check(digest, blob)?;
                let mut sending = Box::pin(push::blob(registry, digest, blob));
                let mut ticks = interval(REPORT_EVERY);
                loop {
                    tokio::select! {
                        result = &mut sending => break result?,
                        _ = ticks.tick() => {
                            output.event(&Event::Progress(Progress { bytes: done + blob.sent(), total: Some(total) }));
                        }
                    }
                }
                sent += blob.size();
            }
            done += blob.size();
        }
        output.event(&Event::Progress(Progress { bytes: done, total: Some(total) }));
        Ok(sent)
    }

    /// Puts the manifests, and gives the first one the tag.
    async fn send_manifests(&self, registry: &mut Registry, before: Option<&Sha256>) -> Outcome<()> {
        let is_there = before == Some(&self.manifest.digest);
        if !is_there {
            push::manifest(registry, &self.manifest, &self.manifest.digest.to_string()).await?;
        }
        let mut unlisted = Vec::new();
        for referrer in &self.referrers {
            let named = referrer.digest.to_string();
            let listed = push::manifest(registry, referrer, &named).await?;
            if listed != Some(self.manifest.digest) {
                unlisted.push(referrer.descriptor());
            }
        }
        if !unlisted.is_empty() {
            push::list(registry, &self.manifest.digest, &unlisted).await?;
        }
        if !is_there {
            let now = push::tagged(registry, &self.tag).await?;
            self.check_tag(registry, now.as_ref())?;
            push::manifest(registry, &self.manifest, &self.tag).await?;
        }
        match push::tagged(registry, &self.tag).await? {
            Some(found) if found == self.manifest.digest => Ok(()),
            _ => {
                let problem = format!("the registry took the manifest, and the tag \"{}\" holds another one", self.tag);
                Err(failure(FailureKind::Content, problem, "run the same command again; ask the registry's operator"))
            }
        }
    }
}

/// The blobs that the text of a manifest names.
fn named(manifest: &str) -> Outcome<Vec<Descriptor>> {
    if manifest.len() > MAX_DOCUMENT {
        return Err(unusable(&format!("a manifest has more than {MAX_DOCUMENT} bytes")));
    }
    match Document::parse(manifest.as_bytes(), None)? {
        Document::Manifest(manifest) => {
            let mut all = manifest.layers;
            all.push(manifest.config);
            Ok(all)
        }
        Document::Index(_) => Err(unusable("it is an index")),
    }
}

/// Opens one blob. It must be a plain file of the size that the manifest names.
fn open(directory: &Path, digest: &Sha256, size: u64) -> Outcome<Blob> {
    let path = directory.join(digest.hex());
    let broken = |error: String| {
        let problem = format!("cannot read \"{}\": {}", path.display(), text::clean(&error, text::NAME));
        failure(FailureKind::Directory, problem, "run the same command again")
    };
    // Without `NONBLOCK`, opening a pipe would wait.
    let flags = OFlags::RDONLY | OFlags::NOFOLLOW | OFlags::CLOEXEC | OFlags::NONBLOCK;
    let file = rustix::fs::open(&path, flags, Mode::empty()).map_err(|error| broken(error.to_string()))?;
    let meta = rustix::fs::fstat(&file).map_err(|error| broken(error.to_string()))?;
    let is_plain = FileType::from_raw_mode(meta.st_mode) == FileType::RegularFile;
    if !is_plain || u64::try_from(meta.st_size) != Ok(size) {
        return Err(broken(format!("it is no file of {size} bytes")));
    }
    Ok(Blob::new(File::from(file), size))
}

/// Checks that a file has its digest, before a registry wonders.
fn check(digest: &Sha256, blob: &Blob) -> Outcome<()> {
    let (mut hasher, mut at) = (Hasher::default(), 0);
    let changed = || {
        let problem = format!("the file with the blob \"{digest}\" was changed");
        failure(FailureKind::Directory, problem, "run the same command again")
    };
    while at < blob.size() {
        let piece = blob.piece(at).map_err(|_| changed())?;
        hasher.update(&piece);
        at += piece.len() as u64;
    }
    if hasher.finish() == *digest { Ok(()) } else { Err(changed()) }
}

fn unusable(problem: &str) -> Box<belljar_fetch_protocol::Failure> {
    let problem = format!("the upload cannot be used: {problem}");
    failure(FailureKind::Request, problem, "install belljar and belljar-fetch of the same version")
}

/// The result of `step`, or a failure after `limit`.
async fn within<T>(limit: Duration, step: impl Future<Output = Outcome<T>>) -> Outcome<T> {
    timeout(limit, step).await.unwrap_or_else(|_| {
        let problem = format!("the upload takes more than {} s", limit.as_secs());
        Err(failure(FailureKind::Time, problem, "run the same command again: what is there is not sent again"))
    })
}
