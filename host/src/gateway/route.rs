//! Routes a URI to its mount, and suggests a correction for a URI that leads nowhere.

use std::sync::Arc;
use std::time::Duration;

use tokio::time::Instant;

use super::authorize::to_error;
use super::pipeline::{FIRST_LOAD_WAIT, Gateway};
use crate::catalog::{KnownPlace, Mount, Snapshot};
use crate::model::{MountName, ReadError, reference, text};
use crate::policy::{Access, Action, Principal, Refusal};

/// Time that the instructions of a session wait until the mounts are known. Reading the directory takes a fraction of
/// it; compiling is not waited for.
const SCAN_WAIT: Duration = Duration::from_secs(1);

/// The least similarity of two names (Jaro-Winkler, 0 to 1) for which one is suggested in place of the other.
const MIN_SIMILARITY: f64 = 0.8;

/// The most mounts that an error names.
const MAX_NAMED_MOUNTS: usize = 20;

/// The most characters of a name that an error shows.
const MAX_SHOWN_CHARS: usize = 64;

/// A resource that a principal may read.
pub(super) struct Routed {
    pub(super) mount: Arc<Mount>,
    /// The checked reference below the mount's base.
    pub(super) reference: String,
    pub(super) access: Access,
}

/// The reason why a principal cannot read a URI.
pub(super) struct Unrouted {
    pub(super) error: ReadError,
    /// The mount that the answer names.
    pub(super) mount: Option<MountName>,
    /// The mount for which policy refused the read. For the record only: the answer must not name it.
    pub(super) refused: Option<Arc<Mount>>,
}

impl Unrouted {
    fn new(error: ReadError) -> Self {
        Self { error, mount: None, refused: None }
    }
}

impl Gateway {
    /// Waits until the plugin directory was scanned once, for at most one second.
    pub async fn wait_for_scan(&self) {
        self.catalog.wait_loaded_or(Instant::now() + SCAN_WAIT, Snapshot::is_complete).await;
    }

    /// The resource that `uri` names, if `principal` may read it. Waits for components that are still being loaded.
    ///
    /// `gateway::authorize` says why a hidden mount takes the way of a mount that does not exist.
    pub(super) async fn route(&self, principal: &Principal, uri: &str) -> Result<Routed, Unrouted> {
        if uri.len() > reference::MAX_URI {
            let why = format!("has {} bytes; at most {} are accepted", uri.len(), reference::MAX_URI);
            return Err(Unrouted::new(ReadError::BadUri(why)));
        }
        if let Some(decided) = self.route_in(&self.catalog.snapshot(), principal, uri) {
            return decided;
        }
        let by = Instant::now() + FIRST_LOAD_WAIT;
        let knows = |name: &MountName, base: &str| self.knows(principal, name, base);
        let is_known = |snapshot: &Snapshot| {
            let owner = snapshot.known_owner(uri, knows);
            owner.is_some_and(|owner| !matches!(owner.place, KnownPlace::Absent))
        };
        let is_compiling = |snapshot: &Snapshot| {
            snapshot.compiling().iter().any(|one| uri.starts_with(&one.base) && knows(&one.name, &one.base))
        };
        // A component that came later, or that is retried, may be compiling too.
        let is_decided = |snapshot: &Snapshot| is_known(snapshot) || !is_compiling(snapshot);
        let is_loaded =
            self.catalog.wait_loaded_or(by, is_known).await && self.catalog.wait_until(by, is_decided).await;
        let snapshot = self.catalog.snapshot();
        if let Some(decided) = self.route_in(&snapshot, principal, uri) {
            return decided;
        }
        let refused = snapshot.route(uri).map(|(mount, _)| Arc::clone(mount));
        if !is_loaded {
            let why = match is_compiling(&snapshot) {
                true => "its component is being compiled, which is done once; read again in a moment",
                false => {
                    "components are still being compiled, and one of them may serve this URI; read again in a moment"
                }
            };
            return Err(Unrouted { refused, ..Unrouted::new(ReadError::Unavailable(why.to_owned())) });
        }
        let unserved = snapshot.unserved().iter().filter(|one| uri.starts_with(&one.base));
        let unserved = unserved.filter(|one| knows(&one.name, &one.base)).max_by_key(|one| one.base.len());
        let (error, mount) = match uri.split_once(':') {
            Some((scheme, _)) if !scheme.is_empty() && uri.bytes().all(|b| b.is_ascii_graphic()) => match unserved {
                Some(one) => (one.error(), Some(one.name.clone())),
                None => {
                    let known = snapshot.bases().filter(|(name, base)| knows(name, base)).collect();
                    (no_mount(known, uri), None)
                }
            },
            Some(_) => (ReadError::BadUri("is not a URI (RFC 3986); percent-encode other characters".to_owned()), None),
            None => (ReadError::BadUri("has no scheme; expected one such as \"belljar://MOUNT/...\"".to_owned()), None),
        };
        Err(Unrouted { error, mount, refused })
    }

    /// The decision about `uri` in one snapshot. `None` if it belongs to no mount that `principal` knows and that is
    /// served or in quarantine.
    fn route_in(&self, snapshot: &Snapshot, principal: &Principal, uri: &str) -> Option<Result<Routed, Unrouted>> {
        let mut refused = None;
        // Almost every read ends here, after one decision.
        if let Some((mount, reference)) = snapshot.route(uri)
            && reference::check(reference).is_ok()
            && !snapshot.has_ambiguous_escapes(uri)
        {
            match self.decide(principal, Action::Read, mount, Some(reference)) {
                Ok(access) => {
                    let (mount, reference) = (Arc::clone(mount), reference.to_owned());
                    return Some(Ok(Routed { mount, reference, access }));
                }
                Err(Refusal::Hidden) => refused = Some(Arc::clone(mount)),
                Err(scope @ Refusal::Scope(_)) => {
                    return Some(Err(Unrouted { refused: Some(Arc::clone(mount)), ..Unrouted::new(to_error(scope)) }));
                }
            }
        }
        let owner = snapshot.known_owner(uri, |name, base| self.knows(principal, name, base))?;
        let (error, mount) = match owner.place {
            KnownPlace::Absent => return None,
            KnownPlace::Quarantined(one) => (one.error(), Some(one.name.clone())),
            KnownPlace::Mount(mount) => match reference::check(owner.reference) {
                Err(why) => (ReadError::BadUri(why.to_string()), None),
                Ok(()) if snapshot.has_ambiguous_escapes(uri) && !self.has_rules() => {
                    let why = "percent-encodes letters that need no encoding, and belongs to another mount when decoded; write these letters plainly";
                    (ReadError::BadUri(why.to_owned()), None)
                }
                Ok(()) => (self.not_found(principal, mount, owner.reference), Some(mount.name.clone())),
            },
        };
        Some(Err(Unrouted { error, mount, refused }))
    }

    /// The error for a reference that the provider of `mount` does not know, or that `principal` may not see. Suggests a
    /// listed reference that differs only in the case of letters. Makes no call: it looks only at a cached listing.
    pub(super) fn not_found(&self, principal: &Principal, mount: &Mount, reference: &str) -> ReadError {
        let [readable, listed] = [Action::Read, Action::List].map(|action| self.visibility(principal, action, mount));
        let is_shown = |other: &str| readable.contains(other) && listed.contains(other);
        let cached = mount.listings(principal).resources.current();
        let similar = cached.and_then(|listing| listing.find_ignoring_case(reference, is_shown));
        match similar {
            Some(similar) if similar != reference => {
                let uri = format!("{}{similar}", mount.base);
                ReadError::NotFoundWithHint { why: format!("did you mean \"{uri}\"?"), suggestion: Some(uri) }
            }
            _ => ReadError::NotFound,
        }
    }

    /// The mounts that are served or being compiled and that `principal` knows, sorted by name. Each comes with the name
    /// of its component, if that differs.
    pub fn served_mount_names(&self, principal: &Principal) -> Vec<(MountName, Option<MountName>)> {
        let snapshot = self.catalog.snapshot();
        let component = |mount: &Mount| {
            let stem = MountName::from_stem(mount.file.strip_suffix(".wasm")?).ok()?;
            (stem != mount.name).then_some(stem)
        };
        let knows = |name: &MountName, base: &str| self.knows(principal, name, base);
        let served = snapshot.mounts().iter().filter(|mount| knows(&mount.name, &mount.base));
        let served = served.map(|mount| (mount.name.clone(), component(mount)));
        let compiling = snapshot.compiling().iter().filter(|one| knows(&one.name, &one.base));
        let compiling = compiling.map(|one| (one.name.clone(), None));
        let mut names: Vec<_> = served.chain(compiling).collect();
        names.sort();
        names
    }
}

/// The error for a URI outside all `bases`, with a suggestion where one base is similar.
fn no_mount(bases: Vec<(&MountName, &str)>, uri: &str) -> ReadError {
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
        let said = |uri: &str| match no_mount(all.bases().collect(), uri) {
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
        let none = no_mount(Vec::new(), "belljar://x/y");
        assert_eq!(none, ReadError::NotFound);
    }
}
