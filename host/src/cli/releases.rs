//! The releases of a repository: its tags that are versions.

use semver::Version;

/// The version that a tag names: three numbers, perhaps after a "v". `None` for other tags, such as "latest" and "1.2", which
/// move.
pub(super) fn version_of(tag: &str) -> Option<Version> {
    Version::parse(tag.strip_prefix('v').unwrap_or(tag)).ok()
}

/// The newest release among `tags`. A preview counts only if `current` is one.
pub(super) fn newest<'t>(tags: &'t [String], current: Option<&Version>) -> Option<(&'t str, Version)> {
    let takes_previews = current.is_some_and(|version| !version.pre.is_empty());
    let releases = tags.iter().filter_map(|tag| Some((tag.as_str(), version_of(tag)?)));
    releases.filter(|(_, version)| takes_previews || version.pre.is_empty()).max_by(|one, other| one.1.cmp(&other.1))
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
        let newest = |current: &str| newest(&tags, version_of(current).as_ref()).map(|(tag, _)| tag);
        assert_eq!(newest("1.2.0"), Some("1.10.0"));
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
