//! The releases of a repository: its tags that are versions.

use semver::Version;

use crate::config::lock::LockedSource;

/// The version that a tag names: three numbers, perhaps after a "v". `None` for other tags, such as "latest" and "1.2", which
/// move.
pub(super) fn version_of(tag: &str) -> Option<Version> {
    Version::parse(tag.strip_prefix('v').unwrap_or(tag)).ok()
}

/// The version of what was fetched: by the word of its publisher, otherwise by its tag.
pub(super) fn version(reference: &str, said: Option<&str>) -> Option<Version> {
    said.and_then(version_of).or_else(|| split(reference)?.1.and_then(version_of))
}

/// The tag of the newest release that is newer than `present`. A preview counts only if `present` is one. Any release is
/// newer than something without a version.
pub(super) fn newer<'t>(tags: &'t [String], present: &LockedSource) -> Option<&'t str> {
    let current = version(&present.reference, present.version.as_deref());
    let takes_previews = current.as_ref().is_some_and(|version| !version.pre.is_empty());
    let releases = tags.iter().filter_map(|tag| Some((tag.as_str(), version_of(tag)?)));
    let wanted = releases.filter(|(_, version)| takes_previews || version.pre.is_empty());
    let (tag, newest) = wanted.max_by(|one, other| one.1.cmp(&other.1))?;
    current.is_none_or(|current| newest > current).then_some(tag)
}

/// A reference in its parts: the repository, and the tag. `None` for the URL of a file.
pub(super) fn split(reference: &str) -> Option<(&str, Option<&str>)> {
    if reference.starts_with("https://") {
        return None;
    }
    let reference = reference.split('@').next().unwrap_or(reference);
    // A colon before the last "/" belongs to the port of the registry.
    let name = reference.rfind('/').map_or(0, |at| at + 1);
    match reference.get(name..).and_then(|last| last.find(':')) {
        Some(colon) => Some((reference.get(..name + colon)?, reference.get(name + colon + 1..))),
        None => Some((reference, None)),
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_newest_release_is_no_preview_and_no_moving_tag() {
        let tags = ["latest", "1.2", "1.10.0", "v1.9.3", "2.0.0-rc.1", "sha256-00"].map(str::to_owned);
        let newest = |current: &str| {
            let reference = format!("ghcr.io/acme/tides:{current}");
            newer(&tags, &LockedSource { reference, manifest: None, version: None, signer: None, revoked: None })
        };
        assert_eq!(newest("1.2.0"), Some("1.10.0"));
        assert_eq!(newest("1.10.0"), None);
        assert_eq!(newest("2.0.0-beta"), Some("2.0.0-rc.1"));
        assert_eq!(newest("latest"), Some("1.10.0"));
    }

    #[test]
    fn references_have_a_repository_and_a_tag() {
        for (reference, parts) in [
            ("ghcr.io/acme/tides:1.2.0", Some(("ghcr.io/acme/tides", Some("1.2.0")))),
            ("localhost:5000/tides", Some(("localhost:5000/tides", None))),
            ("localhost:5000/tides:1@sha256:00", Some(("localhost:5000/tides", Some("1")))),
            ("https://acme.example/tides.wasm", None),
        ] {
            assert_eq!(split(reference), parts, "{reference}");
        }
    }
}
