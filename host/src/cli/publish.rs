//! `belljar publish`: pushes a component to a registry, with what it says of itself, a list of its parts, and a signature. The key
//! stays in this process; `belljar-fetch` speaks to the registry.

pub(super) mod key_pair;
mod revoke;

use std::fmt::Write as _;
use std::path::{Path, PathBuf};
use std::process::ExitCode;

use belljar_fetch_protocol::{Progress, Required, Root, Signer, Standing, Trust, TrustRule, Uploaded};
use chrono::{DateTime, SecondsFormat, Utc};
use clap::Args;
use serde_json::json;

use super::flags::WriteFlags;
use super::{confirm, fetched, inspect, output, releases};
use crate::config::Config;
use crate::grants::Need;
use crate::model::error::show_bytes;
use crate::model::{Digest, command, text};
use crate::sandbox::Profile;
use crate::server::failure::Failure;
use crate::server::fetcher::Fetcher;
use crate::server::location::LocationArgs;
use crate::server::publishing::artifact::{
    ArtifactDocuments, ComponentConfig, ManifestAnnotations, NEEDS, README, SDK,
};
use crate::server::publishing::component_metadata::ComponentMetadata;
use crate::server::publishing::sbom;
use crate::server::publishing::signing_key::SigningKey;
use crate::server::{configuration, log};
use key_pair::SignFlags;
use revoke::TakeBackFlags;

/// The help of `publish`.
pub(super) const HELP: &str = "Examples:
  belljar publish --key-pair acme.key
  belljar publish tides.wasm ghcr.io/acme/tides:1.2.0 --sign-key acme.key --readme README.md
  belljar add ghcr.io/acme/tides:1.2.0
  belljar publish --revoke \"<1.2.0\" ghcr.io/acme/tides --reason \"shows the key in errors\" --instead 1.2.0

The registry gets the component, its exports, imports and declared needs, and a list of its parts (SBOM).
Other tools, such as wkg and Wassette, can fetch it. Logins are those of docker login and podman login.
For a signature by an identity, publish without a key, and then: cosign sign REFERENCE.
docs/guide/registries.md explains what users see.";

/// The largest file that is attached, in bytes.
const MAX_ATTACHED: usize = 8 << 20;

/// The most characters of an annotation from a flag.
const MAX_TEXT: usize = 600;

/// The options of `publish`.
#[derive(Args)]
pub(super) struct PublishArgs {
    #[command(flatten)]
    pub(super) at: LocationArgs,
    /// The component.
    #[arg(value_name = "FILE", required_unless_present = "key_pair")]
    file: Option<PathBuf>,
    /// Where it goes: REGISTRY/REPOSITORY:TAG.
    #[arg(value_name = "REFERENCE", required_unless_present_any = ["key_pair", "revoke"])]
    reference: Option<String>,
    /// Make a key pair instead: the private key in FILE, the public one beside it.
    #[arg(long, value_name = "FILE", conflicts_with_all = ["file", "reference"])]
    key_pair: Option<PathBuf>,
    #[command(flatten)]
    revoke: TakeBackFlags,
    #[command(flatten)]
    sign: SignFlags,
    /// Attach a description for people.
    #[arg(long, value_name = "FILE")]
    readme: Option<PathBuf>,
    /// Attach this list of parts, in CycloneDX or SPDX (default: one made from what the component says).
    #[arg(long, value_name = "FILE")]
    sbom: Option<PathBuf>,
    /// What the component does, in one sentence (default: what the component says).
    #[arg(long, value_name = "TEXT")]
    description: Option<String>,
    /// Its licence, as an SPDX expression (default: what the component says).
    #[arg(long, value_name = "SPDX")]
    licence: Option<String>,
    /// The URL of its source code (default: what the component says).
    #[arg(long, value_name = "URL")]
    source: Option<String>,
    /// The URL of its home page (default: what the component says).
    #[arg(long, value_name = "URL")]
    url: Option<String>,
    /// The commit of its source code (default: what the component says).
    #[arg(long, value_name = "COMMIT")]
    revision: Option<String>,
    /// When it was built, such as 2026-11-28T12:00:00Z (default: when the file was written).
    #[arg(long, value_name = "TIME")]
    created: Option<DateTime<Utc>>,
    /// Take the tag from other content.
    #[arg(long)]
    force: bool,
    #[command(flatten)]
    write: WriteFlags,
}

/// What is published.
struct Publication {
    reference: String,
    repository: String,
    tag: String,
    bytes: Vec<u8>,
    profile: Profile,
    metadata: ComponentMetadata,
    version: Option<String>,
    created: String,
    readme: Option<Vec<u8>>,
    /// The list of parts, with its media type.
    parts: (&'static str, Vec<u8>),
    key: Option<SigningKey>,
}

/// Publishes one component, or makes a key pair.
pub(super) fn run(args: &PublishArgs) -> Result<ExitCode, Failure> {
    log::start("warn");
    if let Some(path) = &args.key_pair {
        return key_pair::make(path);
    }
    if let (Some(versions), Some(repository)) = (&args.revoke.revoke, &args.file) {
        let config = configuration::file(&args.at)?;
        let repository = repository.to_string_lossy();
        return args.revoke.push(&config, (&repository, versions), args.write, report_progress());
    }
    let (Some(file), Some(reference)) = (&args.file, &args.reference) else {
        return Err(Failure::Misused("name the component and where it goes: FILE REFERENCE".to_owned()));
    };
    let config = configuration::file(&args.at)?;
    let publication = args.read(&config, file, reference)?;
    let WriteFlags { yes, json } = args.write;
    let mut documents = publication.documents();
    output::message(json, &publication.describe(&documents))?;
    let fetcher = Fetcher::new(&config)?;
    if !confirm::ask("Publish this?", yes)? {
        return Ok(ExitCode::FAILURE);
    }
    let target = (publication.repository.as_str(), publication.tag.as_str());
    let uploaded = push(&fetcher, target, &mut documents, publication.key.as_ref(), args.force)?;
    publication.report(&documents, &uploaded, json)?;
    Ok(ExitCode::SUCCESS)
}

/// Signs what the registry does not have with this signature yet, pushes it, and asks the registry for it as a user who trusts the
/// key will. `force`: also if the tag holds other content.
pub(super) fn push(
    fetcher: &Fetcher,
    (repository, tag): (&str, &str),
    documents: &mut ArtifactDocuments<'_>,
    key: Option<&SigningKey>,
    force: bool,
) -> Result<Uploaded, Failure> {
    let signer = key.map(|key| OwnSigner { key, repository });
    if let (Some(key), Some(signer)) = (key, &signer)
        && !signer.has_signed(fetcher, &documents.digest())
    {
        documents.sign(key).map_err(|why| Failure::Failed(why.to_string()))?;
    }
    let uploaded = fetcher.upload(&format!("{repository}:{tag}"), documents, force, report_progress())?;
    if let Some(signer) = &signer {
        signer.check(fetcher, &documents.digest())?;
    }
    Ok(uploaded)
}

/// Writes how far an upload is, at most once for each 8 MiB.
fn report_progress() -> impl FnMut(Progress) {
    let mut last = 0;
    move |Progress { bytes, total }| {
        let step = 8 << 20;
        if bytes / step > last {
            last = bytes / step;
            let of = total.map(|total| format!(" of {}", show_bytes(total))).unwrap_or_default();
            let _ = output::message(true, &format!("  {}{of}\n", show_bytes(bytes)));
        }
    }
}

/// The repository and the tag of a reference to which something is pushed, without a scheme.
pub(super) fn target(reference: &str) -> Result<(String, String), Failure> {
    let plain = reference.strip_prefix("oci://").unwrap_or(reference);
    let named = releases::split(plain).filter(|(repository, _)| repository.contains('/'));
    match named {
        Some((repository, Some(tag))) if !plain.contains('@') => Ok((repository.to_owned(), tag.to_owned())),
        _ => Err(Failure::Misused(format!(
            "\"{}\" is not where something can be pushed; expected REGISTRY/REPOSITORY:TAG, such as ghcr.io/acme/tides:1.2.0",
            text::excerpt(reference, 200)
        ))),
    }
}

impl PublishArgs {
    /// Reads and checks everything. Runs no code of the component.
    fn read(&self, config: &Config, file: &Path, reference: &str) -> Result<Publication, Failure> {
        let (repository, tag) = target(reference)?;
        let (shown, bytes) = inspect::read(file)?;
        let refuse = |why: String| Failure::Failed(format!("\"{shown}\" cannot be published: {why}"));
        let profile = Profile::read(&bytes).map_err(|why| refuse(format!("it is {why}")))?;
        profile.check().map_err(|why| refuse(format!("it is {why}")))?;
        if let Some(why) = &profile.bad_needs {
            return Err(refuse(format!(
                "what it needs cannot be read: {why}; correct it: {}",
                command::line(["declare", "FILE.wasm", "NEEDS.toml"])
            )));
        }
        let mut metadata = ComponentMetadata::read(&bytes);
        for (flag, field) in [
            (&self.description, &mut metadata.description),
            (&self.licence, &mut metadata.licence),
            (&self.source, &mut metadata.source),
            (&self.url, &mut metadata.homepage),
            (&self.revision, &mut metadata.revision),
        ] {
            if let Some(flag) = flag {
                *field = Some(text::excerpt(flag, MAX_TEXT));
            }
        }
        let tagged = releases::version_of(&tag).map(|version| version.to_string());
        let version = tagged.or_else(|| metadata.version.clone());
        let created = match self.created {
            Some(created) => created,
            None => written_at(file)?,
        };
        let created = created.to_rfc3339_opts(SecondsFormat::Secs, true);
        let name = fetched::default_name(&repository);
        let parts = match &self.sbom {
            Some(path) => {
                let bytes = attached(path)?;
                let kind = sbom::media_type(&bytes).ok_or_else(|| {
                    let shown = text::excerpt(&path.display().to_string(), 200);
                    Failure::Failed(format!("\"{shown}\" is no list of parts; expected JSON of CycloneDX or SPDX"))
                })?;
                (kind, bytes)
            }
            None => {
                let digest = Digest::of(&bytes);
                let list = sbom::from_component(name, version.as_deref(), &digest, &created, &metadata);
                (sbom::CYCLONEDX, list.to_string().into_bytes())
            }
        };
        Ok(Publication {
            reference: format!("{repository}:{tag}"),
            repository,
            tag,
            profile,
            metadata,
            version,
            created,
            readme: self.readme.as_deref().map(attached).transpose()?,
            parts,
            key: self.sign.read(config)?,
            bytes,
        })
    }
}

/// A file that is attached.
fn attached(path: &Path) -> Result<Vec<u8>, Failure> {
    let (shown, bytes) = inspect::read(path)?;
    if bytes.len() > MAX_ATTACHED {
        let most = show_bytes(MAX_ATTACHED as u64);
        return Err(Failure::Failed(format!("\"{shown}\" has more than {most}; attach a shorter one")));
    }
    Ok(bytes)
}

/// When the file was written. A second time, the same file gives the same manifest.
fn written_at(file: &Path) -> Result<DateTime<Utc>, Failure> {
    #[expect(clippy::disallowed_methods, reason = "the file that the operator named")]
    let meta = std::fs::metadata(file)?;
    Ok(meta.modified()?.into())
}

impl Publication {
    fn documents(&self) -> ArtifactDocuments<'_> {
        let Self { metadata, profile, .. } = self;
        let needs = profile.needs.to_toml();
        let annotations: ManifestAnnotations = [
            ("org.opencontainers.image.version", self.version.clone()),
            ("org.opencontainers.image.created", Some(self.created.clone())),
            ("org.opencontainers.image.description", metadata.description.clone()),
            ("org.opencontainers.image.licenses", metadata.licence.clone()),
            ("org.opencontainers.image.source", metadata.source.clone()),
            ("org.opencontainers.image.url", metadata.homepage.clone()),
            ("org.opencontainers.image.revision", metadata.revision.clone()),
            ("org.opencontainers.image.authors", metadata.authors.clone()),
            (NEEDS, Some(needs)),
            (SDK, metadata.sdk()),
        ]
        .into_iter()
        .filter_map(|(name, value)| Some((name.to_owned(), value?)))
        .collect();
        let config = ComponentConfig {
            created: self.created.clone(),
            author: metadata.authors.as_deref(),
            exports: &profile.exports,
            imports: &profile.imports,
        };
        let mut documents = ArtifactDocuments::component(&self.bytes, &config, &annotations);
        let (kind, list) = &self.parts;
        documents.attach(kind, "sbom.json", list.as_slice());
        if let Some(readme) = &self.readme {
            documents.attach(README, "README.md", readme.as_slice());
        }
        documents
    }

    /// What will be public.
    fn describe(&self, documents: &ArtifactDocuments<'_>) -> String {
        let Self { reference, bytes, metadata, profile, .. } = self;
        let name = fetched::default_name(reference);
        let version = self.version.as_deref().unwrap_or("(no version)");
        let mut out = format!("{name} {version}  {reference}  {}\n", show_bytes(bytes.len() as u64));
        let mut line = |title: &str, words: &str| {
            let _ = writeln!(out, "  {title:9} {}", text::line(words));
        };
        line("component", &Digest::of(bytes).to_string());
        line("manifest", &documents.digest().to_string());
        for (title, words) in [
            ("about", &metadata.description),
            ("licence", &metadata.licence),
            ("source", &metadata.source),
            ("home page", &metadata.homepage),
            ("revision", &metadata.revision),
        ] {
            words.iter().for_each(|words| line(title, words));
        }
        line("created", &self.created);
        match &self.key {
            Some(key) => line("signed", &format!("by {}", key.name())),
            None => line("signed", "by nobody: users need --unsigned, unless you sign it afterwards"),
        }
        for (title, names) in [("exports", &profile.exports), ("imports", &profile.imports)] {
            for (at, name) in names.iter().enumerate() {
                line(if at == 0 { title } else { "" }, name);
            }
        }
        let needs = profile.needs.all();
        for (at, need) in needs.iter().enumerate() {
            line(if at == 0 { "asks for" } else { "" }, &need.describe());
        }
        if needs.is_empty() {
            line("asks for", "nothing");
        }
        line("parts", &format!("{} crates, {} tools", metadata.crates.len(), metadata.tools.len()));
        if let Some(readme) = &self.readme {
            line("readme", &show_bytes(readme.len() as u64));
        }
        out
    }

    fn report(&self, documents: &ArtifactDocuments<'_>, uploaded: &Uploaded, as_json: bool) -> Result<(), Failure> {
        let signer = self.key.as_ref().map(SigningKey::name);
        let was_there = uploaded.before.as_ref() == Some(&uploaded.manifest_digest);
        if as_json {
            return output::print_json(&json!({
                "reference": self.reference, "manifest": documents.digest().to_string(),
                "component": Digest::of(&self.bytes).to_string(), "version": self.version, "signer": signer,
                "sentBytes": uploaded.sent, "wasThere": was_there,
                "needs": self.profile.needs.all().iter().map(Need::describe).collect::<Vec<_>>(),
            }));
        }
        let done = if was_there { "It was there already" } else { "Published" };
        let add = match signer {
            Some(_) => command::line(["add", &self.reference]),
            None => command::line(["add", &self.reference, "--unsigned"]),
        };
        output::print(&format!("{done}: \"{}\", {}.\nTo add it: {add}\n", self.reference, documents.digest()))
    }
}

/// The own key as the only signer that counts.
struct OwnSigner<'a> {
    key: &'a SigningKey,
    repository: &'a str,
}

impl OwnSigner<'_> {
    fn trust(&self, required: Required) -> Trust {
        // The registry alone: Docker Hub knows some repositories by two names.
        let scope = self.repository.split('/').next().unwrap_or_default().to_ascii_lowercase();
        let signer = Signer::Key { pem: self.key.public_pem(), root: None::<Root> };
        Trust { required, rules: vec![TrustRule { scope, signer }] }
    }

    /// True if the manifest is in the registry with a signature of this key. A second one would say nothing new.
    fn has_signed(&self, fetcher: &Fetcher, manifest: &Digest) -> bool {
        let resolved = fetcher.resolve_by(&format!("{}@{manifest}", self.repository), self.trust(Required::Nothing));
        let is_own = |standing: &Standing| matches!(standing, Standing::Trusted(_));
        resolved.is_ok_and(|resolved| resolved.signatures.iter().any(|signature| is_own(&signature.standing)))
    }

    /// Asks the registry for what was pushed, as a user who trusts this key will.
    ///
    /// # Errors
    /// If the signature does not count.
    fn check(&self, fetcher: &Fetcher, manifest: &Digest) -> Result<(), Failure> {
        fetcher.resolve_by(&format!("{}@{manifest}", self.repository), self.trust(Required::Rule))?;
        Ok(())
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_target_has_a_tag() {
        assert_eq!(target("oci://localhost:5000/tides:1").ok(), Some(("localhost:5000/tides".into(), "1".into())));
        let digest = format!("ghcr.io/acme/tides:1@sha256:{}", "0".repeat(64));
        for other in
            ["tides", "tides:1", "ghcr.io/acme/tides", "localhost:5000/tides", "https://a.example/x:1", &digest]
        {
            assert!(target(other).is_err(), "{other}");
        }
    }
}
