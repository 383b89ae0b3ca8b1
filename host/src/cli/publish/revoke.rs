//! Takes versions back: adds an entry to the list of revoked versions of a repository.

use std::fmt::Write as _;
use std::process::ExitCode;

use belljar_fetch_protocol::{Progress, REVOKED_TAG, RevokedEntry, RevokedVersions};
use clap::Args;
use serde_json::{Value, json};

use crate::cli::flags::WriteFlags;
use crate::cli::{confirm, output, releases, revoked};
use crate::config::Config;
use crate::model::{Digest, text};
use crate::server::failure::Failure;
use crate::server::fetcher::Fetcher;
use crate::server::publishing::artifact::ArtifactDocuments;

/// The most characters of a reason.
const MAX_REASON: usize = 200;

/// The flags of an entry.
#[derive(Args)]
pub(in crate::cli) struct TakeBackFlags {
    /// Take this back instead: a version, a range such as ">=1.2.0, <1.4.2", or the digest of a manifest. REGISTRY/REPOSITORY
    /// stands in the place of FILE.
    #[arg(long, value_name = "VERSIONS", conflicts_with_all = ["reference", "key_pair"])]
    pub(in crate::cli) revoke: Option<String>,
    /// Why they are taken back.
    #[arg(long, value_name = "TEXT", requires = "revoke")]
    reason: Option<String>,
    /// The version to take in their place.
    #[arg(long, value_name = "VERSION", requires = "revoke")]
    instead: Option<String>,
}

impl TakeBackFlags {
    /// The entry for `versions`.
    fn entry(&self, versions: &str) -> Result<RevokedEntry, Failure> {
        let shown = text::excerpt(versions, 100);
        let what = match versions.parse::<Digest>() {
            Ok(digest) => RevokedVersions::Manifest(digest.to_string()),
            Err(_) if releases::version_of(versions).is_some() || revoked::is_range(versions) => {
                RevokedVersions::Version(versions.to_owned())
            }
            Err(_) => {
                return Err(Failure::Misused(format!(
                    "\"{shown}\" names no versions; expected 1.2.0, a range such as \">=1.2.0, <1.4.2\", or sha256:HEX"
                )));
            }
        };
        if let Some(instead) = self.instead.as_deref().filter(|instead| releases::version_of(instead).is_none()) {
            let shown = text::excerpt(instead, 100);
            return Err(Failure::Misused(format!("\"{shown}\" is no version; expected one such as 1.4.2")));
        }
        let reason = self.reason.as_deref().map(|reason| text::excerpt(reason, MAX_REASON));
        Ok(RevokedEntry { what, reason, instead: self.instead.clone() })
    }

    /// Adds the entry to the list of `repository`. `report` is called while the list is pushed.
    ///
    /// # Errors
    /// If the list there cannot be read, or the registry does not take the new one.
    pub(in crate::cli) fn push(
        &self,
        config: &Config,
        (repository, versions): (&str, &str),
        WriteFlags { yes, json }: WriteFlags,
        report: impl FnMut(Progress),
    ) -> Result<ExitCode, Failure> {
        let repository = repository.strip_prefix("oci://").unwrap_or(repository);
        match releases::split(repository) {
            Some((name, None)) if name.contains('/') && !repository.contains('@') => {}
            _ => {
                let shown = text::excerpt(repository, 200);
                return Err(Failure::Misused(format!(
                    "\"{shown}\" is no repository; expected REGISTRY/REPOSITORY without a tag, such as ghcr.io/acme/tides"
                )));
            }
        }
        let entry = self.entry(versions)?;
        let fetcher = Fetcher::new(config)?;
        let mut entries = fetcher.revoked(repository)?.entries;
        entries.retain(|present| present.what != entry.what);
        // The first entry that names a version counts.
        entries.insert(0, entry);
        let list = json!({ "revoked": entries.iter().map(to_json).collect::<Vec<_>>() }).to_string();
        let documents = ArtifactDocuments::revoked(list.as_bytes());
        let mut shown = format!("{repository}:{REVOKED_TAG}  the list will take back:\n");
        for entry in &entries {
            let _ = writeln!(shown, "  {}", text::line(&describe(entry)));
        }
        output::message(json, &shown)?;
        if !confirm::ask("Publish this list?", yes)? {
            return Ok(ExitCode::FAILURE);
        }
        let target = format!("{repository}:{REVOKED_TAG}");
        let uploaded = fetcher.upload(&target, &documents, true, report)?;
        output::message(json, &format!("Published the list \"{target}\". Users see it with: belljar outdated\n"))?;
        if json {
            output::print_json(
                &json!({ "reference": target, "manifest": uploaded.manifest_digest, "entries": entries.len() }),
            )?;
        }
        Ok(ExitCode::SUCCESS)
    }
}

fn to_json(entry: &RevokedEntry) -> Value {
    let (key, value) = match &entry.what {
        RevokedVersions::Manifest(digest) => ("manifest", digest),
        RevokedVersions::Component(digest) => ("component", digest),
        RevokedVersions::Version(versions) => ("version", versions),
    };
    let mut written = serde_json::Map::from_iter([(key.to_owned(), value.as_str().into())]);
    let texts = [("reason", &entry.reason), ("instead", &entry.instead)];
    written.extend(texts.into_iter().filter_map(|(key, text)| Some((key.to_owned(), text.as_deref()?.into()))));
    written.into()
}

fn describe(entry: &RevokedEntry) -> String {
    let (RevokedVersions::Manifest(what) | RevokedVersions::Component(what) | RevokedVersions::Version(what)) =
        &entry.what;
    let reason = entry.reason.as_deref().map(|reason| format!(": {reason}")).unwrap_or_default();
    let instead = entry.instead.as_deref().map(|instead| format!("; take {instead}")).unwrap_or_default();
    format!("{what}{reason}{instead}")
}
