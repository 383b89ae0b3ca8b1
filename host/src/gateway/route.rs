//! Routes a URI to its mount, and suggests a correction for a URI that leads nowhere.

use std::sync::Arc;
use std::time::Duration;

use tokio::time::Instant;

use super::pipeline::{FIRST_LOAD_WAIT, Gateway};
use crate::catalog::{Mount, Snapshot, UnservedMount};
use crate::model::{MountName, ReadError, reference, text};

/// Time that the instructions of a session wait until the mounts are known. Reading the directory takes a fraction of
/// it; compiling is not waited for.
const SCAN_WAIT: Duration = Duration::from_secs(1);

/// The least similarity of two names (Jaro-Winkler, 0 to 1) for which one is suggested in place of the other.
const MIN_SIMILARITY: f64 = 0.8;

/// The most mounts that an error names.
const MAX_NAMED_MOUNTS: usize = 20;

/// The most characters of a name that an error shows.
const MAX_SHOWN_CHARS: usize = 64;

impl Gateway {
    /// Waits until the plugin directory was scanned once, for at most one second.
    pub async fn wait_for_scan(&self) {
        self.catalog.wait_loaded_or(Instant::now() + SCAN_WAIT, Snapshot::is_complete).await;
    }

    /// The mount that `uri` belongs to, and the checked reference. Waits for components that are still being loaded.
    pub(super) async fn route(&self, uri: &str) -> Result<(Arc<Mount>, String), ReadError> {
        if uri.len() > reference::MAX_URI {
            return Err(ReadError::BadUri(format!(
                "has {} bytes; at most {} are accepted",
                uri.len(),
                reference::MAX_URI
            )));
        }
        let mut snapshot = self.catalog.snapshot();
        if snapshot.route(uri).is_none() {
            let by = Instant::now() + FIRST_LOAD_WAIT;
            let is_known =
                |snapshot: &Snapshot| snapshot.route(uri).is_some() || snapshot.quarantined_at(uri).is_some();
            // A component that came later, or that is retried, may be compiling too.
            let is_decided = |snapshot: &Snapshot| is_known(snapshot) || !snapshot.is_compiling(uri);
            let is_loaded =
                self.catalog.wait_loaded_or(by, is_known).await && self.catalog.wait_until(by, is_decided).await;
            snapshot = self.catalog.snapshot();
            if let Some(one) = snapshot.quarantined_at(uri) {
                return Err(one.error());
            }
            if !is_loaded {
                let why = match snapshot.is_compiling(uri) {
                    true => "its component is being compiled, which is done once; read again in a moment",
                    false => {
                        "components are still being compiled, and one of them may serve this URI; read again in a moment"
                    }
                };
                return Err(ReadError::Unavailable(why.to_owned()));
            }
        }
        let Some((mount, reference)) = snapshot.route(uri) else {
            return Err(match uri.split_once(':') {
                Some((scheme, _)) if !scheme.is_empty() && uri.bytes().all(|b| b.is_ascii_graphic()) => {
                    snapshot.unserved_at(uri).map_or_else(|| no_mount(&snapshot, uri), UnservedMount::error)
                }
                Some(_) => ReadError::BadUri("is not a URI (RFC 3986); percent-encode other characters".to_owned()),
                None => ReadError::BadUri("has no scheme; expected one such as \"belljar://MOUNT/...\"".to_owned()),
            });
        };
        reference::check(reference).map_err(|why| ReadError::BadUri(why.to_string()))?;
        if snapshot.has_ambiguous_escapes(uri) {
            let why = "percent-encodes letters that need no encoding, and belongs to another mount when decoded; write these letters plainly";
            return Err(ReadError::BadUri(why.to_owned()));
        }
        Ok((Arc::clone(mount), reference.to_owned()))
    }

    /// The mounts that are served or being compiled, sorted by name. Each comes with the name of its component, if that
    /// differs.
    pub fn served_mount_names(&self) -> Vec<(MountName, Option<MountName>)> {
        let snapshot = self.catalog.snapshot();
        let component = |mount: &Mount| {
            let stem = MountName::from_stem(mount.file.strip_suffix(".wasm")?).ok()?;
            (stem != mount.name).then_some(stem)
        };
        let served = snapshot.mounts().iter().map(|mount| (mount.name.clone(), component(mount)));
        let compiling = snapshot.compiling().iter().map(|one| (one.name.clone(), None));
        let mut names: Vec<_> = served.chain(compiling).collect();
        names.sort();
        names
    }
}

/// The error for a URI outside all bases, with a suggestion where one base is similar.
fn no_mount(snapshot: &Snapshot, uri: &str) -> ReadError {
    let bases: Vec<(&MountName, &str)> = snapshot.bases().collect();
    let suggest = |why: String, instead: String| {
        let suggestion = Some(instead).filter(|uri| uri.len() <= reference::MAX_URI);
        ReadError::NotFoundWithHint { why, suggestion }
    };
    if let Some((name, base)) = bases.iter().find(|(_, base)| base.strip_suffix('/') == Some(uri)) {
        return suggest(format!("the mount \"{name}\" begins at \"{base}\""), (*base).to_owned());
    }
    // A base with letters of another case, or with a slash too few or too many at its end.
    let beginning = |base: &str| uri.get(..base.len()).filter(|start| start.eq_ignore_ascii_case(base));
    if let Some((name, base)) = bases.iter().find(|(_, base)| beginning(base).is_some()) {
        let rest = uri.get(base.len()..).unwrap_or_default();
        return suggest(format!("the mount \"{name}\" begins at \"{base}\""), format!("{base}{rest}"));
    }
    let Some(rest) = uri
        .get(..DEFAULT_BASE.len())
        .filter(|own| own.eq_ignore_ascii_case(DEFAULT_BASE))
        .and_then(|_| uri.get(DEFAULT_BASE.len()..))
    else {
        return ReadError::NotFound;
    };
    let (name, path) = rest.split_once('/').unwrap_or((rest, ""));
    let shown = text::excerpt(name, MAX_SHOWN_CHARS);
    let lower = name.to_ascii_lowercase();
    let near = |known: &MountName| strsim::jaro_winkler(&lower, known.as_str());
    let nearest = bases.iter().max_by(|(a, _), (b, _)| near(a).total_cmp(&near(b)));
    match nearest.filter(|(known, _)| near(known) >= MIN_SIMILARITY) {
        Some((known, base)) => {
            suggest(format!("no mount \"{shown}\"; did you mean \"{known}\"?"), format!("{base}{path}"))
        }
        None if bases.is_empty() || name.is_empty() => ReadError::NotFound,
        None => {
            let all = bases
                .iter()
                .take(MAX_NAMED_MOUNTS)
                .map(|(name, _)| format!("\"{name}\""))
                .collect::<Vec<_>>()
                .join(", ");
            let more = if bases.len() > MAX_NAMED_MOUNTS { ", and more" } else { "" };
            ReadError::NotFoundWithHint {
                why: format!("no mount \"{shown}\"; there are {all}{more}"),
                suggestion: None,
            }
        }
    }
}

/// The beginning of every base that the operator did not set.
const DEFAULT_BASE: &str = "belljar://";

/// The error for a reference that the provider of `mount` does not know. Suggests a listed reference that differs only
/// in the case of letters. Makes no call: it looks only at a cached listing.
pub(super) fn not_found(mount: &Mount, reference: &str) -> ReadError {
    let listed = mount.cached.resources.current().and_then(|listing| listing.find_ignoring_case(reference));
    match listed {
        Some(listed) if listed != reference => {
            let uri = format!("{}{listed}", mount.base);
            ReadError::NotFoundWithHint { why: format!("did you mean \"{uri}\"?"), suggestion: Some(uri) }
        }
        _ => ReadError::NotFound,
    }
}

#[cfg(test)]
mod tests {
    use std::sync::Arc;

    use super::*;
    use crate::model::Limits;

    fn snapshot(bases: &[(&str, &str)]) -> Snapshot {
        let mount = |(name, base): &(&str, &str)| {
            Arc::new(Mount::plain(MountName::new(name).unwrap(), base, Limits::default()))
        };
        Snapshot::new(bases.iter().map(mount).collect(), Vec::new())
    }

    #[test]
    fn errors_suggest_the_intended_uri() {
        let all = snapshot(&[("notes", "belljar://notes/"), ("clock", "belljar://clock/"), ("web", "web:///")]);
        let said = |uri: &str| match no_mount(&all, uri) {
            ReadError::NotFoundWithHint { why, suggestion } => (why, suggestion.unwrap_or_default()),
            error => (error.to_string(), String::new()),
        };
        let is = |why: &str, instead: &str| (why.to_owned(), instead.to_owned());
        let near = "no mount \"note\"; did you mean \"notes\"?";
        assert_eq!(said("belljar://note/a/b.md"), is(near, "belljar://notes/a/b.md"));
        assert_eq!(said("belljar://note"), is(near, "belljar://notes/"));
        assert_eq!(
            said("belljar://notes"),
            is("the mount \"notes\" begins at \"belljar://notes/\"", "belljar://notes/")
        );
        assert_eq!(
            said("Belljar://NOTES/x"),
            is("the mount \"notes\" begins at \"belljar://notes/\"", "belljar://notes/x")
        );
        assert_eq!(said("WEB:///x"), is("the mount \"web\" begins at \"web:///\"", "web:///x"));
        assert_eq!(said("web://"), is("the mount \"web\" begins at \"web:///\"", "web:///"));
        assert_eq!(said("belljar://xyz/a"), is("no mount \"xyz\"; there are \"clock\", \"notes\", \"web\"", ""));
        assert_eq!(said("belljar://\u{202e}/a").0.matches('\u{202e}').count(), 0);
        for nothing in ["other://x/y", "belljar://", "belljar:notes"] {
            assert_eq!(said(nothing), is("resource not found", ""), "{nothing}");
        }
        let none = no_mount(&snapshot(&[]), "belljar://x/y");
        assert_eq!(none, ReadError::NotFound);
    }
}
