//! Revoked versions: finds a version in the list of its publisher, and writes what was found into the lock.

use std::cmp::Ordering;

use belljar_fetch_protocol::{Resolved, RevokedList, RevokedVersions};
use semver::Version;
use serde_json::{Value, json};

use super::releases;
use crate::config::Config;
use crate::config::lock::{LockedRevocation, LockedSource, Pin};
use crate::model::{Digest, MountName, text};
use crate::server::failure::Failure;
use crate::server::{files, pins};

/// How a range begins.
const RANGE: [char; 3] = ['<', '>', '='];

/// What is compared with the entries of a list.
pub(super) struct ReleaseName<'a> {
    /// The digest of the manifest. `None` for a file.
    pub(super) manifest: Option<String>,
    /// The digest of the component.
    pub(super) component: String,
    /// The version, by the word of the publisher.
    pub(super) said: Option<&'a str>,
    /// The tag.
    pub(super) tag: Option<&'a str>,
}

impl<'a> ReleaseName<'a> {
    /// The names of a component in the lock.
    pub(super) fn locked(source: &'a LockedSource, digest: &Digest) -> Self {
        Self {
            manifest: source.manifest.map(|manifest| manifest.to_string()),
            component: digest.to_string(),
            said: source.version.as_deref(),
            tag: releases::split(&source.reference).and_then(|(_, tag)| tag),
        }
    }
}

/// A range that is none. It could be the one that names a release, so the whole list cannot be used.
#[derive(Debug, thiserror::Error)]
#[error(
    "the list of revoked versions has the range \"{0}\", expected one such as \">=1.2.0, <1.4.2\"; ask the publisher to correct it"
)]
pub(super) struct BadRangeError(String);

impl From<BadRangeError> for Failure {
    fn from(error: BadRangeError) -> Self {
        Self::Failed(error.to_string())
    }
}

/// Finds what was resolved in the list beside it.
///
/// # Errors
/// If the list has a range that cannot be read.
pub(super) fn of(resolved: &Resolved) -> Result<Option<LockedRevocation>, BadRangeError> {
    let name = ReleaseName {
        manifest: resolved.manifest_digest.clone(),
        component: resolved.component_digest.clone(),
        said: resolved.version.as_deref(),
        tag: releases::split(&resolved.reference).and_then(|(_, tag)| tag),
    };
    find(&resolved.revoked, &name)
}

/// Finds a release in a list. The first entry that names it counts.
///
/// # Errors
/// If the list has a range that cannot be read. It could be the one that names this release.
pub(super) fn find(list: &RevokedList, name: &ReleaseName<'_>) -> Result<Option<LockedRevocation>, BadRangeError> {
    let mut found = None;
    for entry in &list.entries {
        let is_named = match &entry.what {
            RevokedVersions::Manifest(digest) => name.manifest.as_ref() == Some(digest),
            RevokedVersions::Component(digest) => name.component == *digest,
            RevokedVersions::Version(versions) => {
                let of = |text: Option<&str>| text.map_or(Ok(false), |text| has_version(versions, text));
                of(name.said)? || of(name.tag)?
            }
        };
        if is_named && found.is_none() {
            found = Some(LockedRevocation { reason: entry.reason.clone(), instead: entry.instead.clone() });
        }
    }
    Ok(found)
}

/// The tags that no entry names. Entries with digests are compared when a tag is resolved.
///
/// # Errors
/// As [`find`].
pub(super) fn without_revoked(tags: Vec<String>, list: &RevokedList) -> Result<Vec<String>, BadRangeError> {
    let mut kept = Vec::new();
    for tag in tags {
        let name = ReleaseName { manifest: None, component: String::new(), said: None, tag: Some(&tag) };
        if find(list, &name)?.is_none() {
            kept.push(tag);
        }
    }
    Ok(kept)
}

/// True for a range of versions, such as ">=1.2.0, <1.4.2".
pub(super) fn is_range(versions: &str) -> bool {
    versions.starts_with(RANGE) && has_version(versions, "0.0.0").is_ok()
}

/// True if `version` is among `versions`: the same version, or in a range such as ">=1.2.0, <1.4.2". A preview has its place
/// in a range by its order: "1.4.2-rc.1" is below "1.4.2".
fn has_version(versions: &str, version: &str) -> Result<bool, BadRangeError> {
    let parsed = releases::version_of(version);
    if !versions.starts_with(RANGE) {
        let is_same = releases::version_of(versions).zip(parsed).is_some_and(|(one, other)| is_same(&one, &other));
        return Ok(is_same || versions == version);
    }
    let mut is_inside = true;
    for part in versions.split(',').map(str::trim) {
        let operators: [(&str, &[Ordering]); 5] = [
            ("<=", &[Ordering::Less, Ordering::Equal]),
            (">=", &[Ordering::Greater, Ordering::Equal]),
            ("<", &[Ordering::Less]),
            (">", &[Ordering::Greater]),
            ("=", &[Ordering::Equal]),
        ];
        let found = operators.iter().find_map(|(sign, orders)| Some((part.strip_prefix(sign)?, *orders)));
        let Some((Some(bound), orders)) = found.map(|(bound, orders)| (releases::version_of(bound.trim()), orders))
        else {
            return Err(BadRangeError(text::excerpt(versions, 100)));
        };
        is_inside &= parsed.as_ref().is_some_and(|version| orders.contains(&version.cmp_precedence(&bound)));
    }
    Ok(is_inside)
}

/// True if the versions differ at most in their build.
fn is_same(one: &Version, other: &Version) -> bool {
    one.cmp_precedence(other) == Ordering::Equal
}

/// What is known of a mount after its list was fetched. A list that is missing does not bring a version back.
///
/// # Errors
/// As [`find`].
pub(super) fn learned(
    list: &RevokedList,
    source: &LockedSource,
    digest: &Digest,
) -> Result<Option<LockedRevocation>, BadRangeError> {
    match list.is_there {
        true => find(list, &ReleaseName::locked(source, digest)),
        false => Ok(source.revoked.clone()),
    }
}

/// Writes into the lock what was learned. A mount that another process changed meanwhile is left alone.
///
/// # Errors
/// If the lock cannot be read or written.
pub(super) fn remember(
    config: &Config,
    learned: &[(MountName, Digest, Option<LockedRevocation>)],
) -> Result<(), Failure> {
    let write_lock = files::lock_for_writing(&[&config.lock])?;
    let mut lock = pins::read(&config.lock)?;
    let mut is_new = false;
    for (mount, digest, revoked) in learned {
        let Some(pin) = lock.pin(mount).filter(|pin| pin.digest == *digest).cloned() else { continue };
        let Some(source) = pin.source.clone().filter(|source| source.revoked != *revoked) else { continue };
        let source = LockedSource { revoked: revoked.clone(), ..source };
        lock.set(mount.clone(), Pin { source: Some(source), ..pin });
        is_new = true;
    }
    if is_new {
        pins::write(&write_lock, config, &lock)?;
    }
    Ok(())
}

/// The source of a mount as `belljar-fetch` wants it: a file has its digest.
pub(super) fn fetchable(source: &LockedSource, digest: &Digest) -> String {
    match releases::split(&source.reference) {
        Some(_) => source.reference.clone(),
        None => format!("{}#sha256={}", source.reference, digest.hex()),
    }
}

/// A revocation as JSON.
pub(super) fn to_json(revoked: &LockedRevocation) -> Value {
    json!({ "reason": revoked.reason, "instead": revoked.instead })
}

#[cfg(test)]
mod tests {
    use super::*;
    use belljar_fetch_protocol::RevokedEntry;

    fn list(what: &[RevokedVersions]) -> RevokedList {
        let entry =
            |what: &RevokedVersions| RevokedEntry { what: what.clone(), reason: Some("leaks".into()), instead: None };
        RevokedList { is_there: true, entries: what.iter().map(entry).collect() }
    }

    #[test]
    fn ranges_are_compared_by_the_order_of_versions() {
        for (versions, version, is_named) in [
            ("1.2.0", "1.2.0", true),
            ("1.2.0", "v1.2.0", true),
            ("1.2.0", "1.2.0+build", true),
            ("1.2.0", "1.2.1", false),
            ("latest", "latest", true),
            ("1.2", "1.2.0", false),
            ("<1.4.2", "1.4.1", true),
            ("<1.4.2", "1.4.2", false),
            ("<1.4.2", "1.4.2-rc.1", true),
            ("<=1.4.2", "1.4.2", true),
            (">=1.2.0, <1.4.2", "1.1.9", false),
            (">=1.2.0,<1.4.2", "1.3.0", true),
            ("=1.2.0", "1.2.0", true),
            (">1.2.0", "latest", false),
        ] {
            assert_eq!(has_version(versions, version).unwrap(), is_named, "{version} in {versions}");
        }
        for versions in ["<1.4", "<", "<1.4.2,", "<1.4.2 1.0.0", "=>1.0.0", "<1.4.2 || 2.0.0"] {
            let why = has_version(versions, "1.0.0").unwrap_err().to_string();
            assert!(why.contains("has the range") && why.contains("expected one such as"), "{versions}: {why}");
        }
    }

    #[test]
    fn a_release_is_found_by_each_of_its_names() {
        let digest = Digest::of(b"component");
        let source = LockedSource {
            reference: "ghcr.io/acme/tides:stable".into(),
            manifest: Some(Digest::of(b"manifest")),
            version: Some("1.2.0".into()),
            signer: None,
            revoked: None,
        };
        let is_found = |what| learned(&list(&[what]), &source, &digest).unwrap().is_some();
        assert!(is_found(RevokedVersions::Manifest(Digest::of(b"manifest").to_string())));
        assert!(is_found(RevokedVersions::Component(digest.to_string())));
        assert!(is_found(RevokedVersions::Version("<1.3.0".into())));
        assert!(is_found(RevokedVersions::Version("stable".into())));
        assert!(!is_found(RevokedVersions::Version(">1.3.0".into())));
        assert!(!is_found(RevokedVersions::Manifest(digest.to_string())), "the digest of the component");
    }

    /// Otherwise whoever hides the list would bring the version back.
    #[test]
    fn a_missing_list_brings_no_version_back() {
        let digest = Digest::of(b"component");
        let revoked = Some(LockedRevocation { reason: Some("leaks".into()), instead: None });
        let source = LockedSource {
            reference: "ghcr.io/acme/tides:1.2.0".into(),
            manifest: None,
            version: None,
            signer: None,
            revoked: revoked.clone(),
        };
        assert_eq!(learned(&RevokedList::default(), &source, &digest).unwrap(), revoked);
        assert_eq!(learned(&list(&[]), &source, &digest).unwrap(), None, "the list is there and does not name it");
    }

    #[test]
    fn revoked_tags_are_no_releases() {
        let tags = ["1.0.0", "1.1.0", "latest"].map(str::to_owned).to_vec();
        let kept = without_revoked(tags, &list(&[RevokedVersions::Version(">=1.1.0".into())])).unwrap();
        assert_eq!(kept, ["1.0.0", "latest"]);
    }
}
