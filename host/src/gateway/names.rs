//! What mounts there are, for those who ask before they know, and what somebody may have meant by a name that leads nowhere.

use std::time::Duration;

use tokio::time::Instant;

use super::Gateway;
use crate::catalog::{Mount, Snapshot};
use crate::model::{MountName, ReadError, reference, text};

/// How long a greeting waits until it is known which mounts there are. Reading the directory takes a fraction of that;
/// compiling is not waited for.
const KNOWN: Duration = Duration::from_secs(1);

/// How alike two names must be for one to be proposed in place of the other.
const ALIKE: f64 = 0.8;

/// Mounts that are named to someone who named none.
const NAMED: usize = 20;

/// Characters of a name that is shown.
const SHOWN: usize = 64;

impl Gateway {
    /// Waits until the plugin directory was looked at once, for a second at the most.
    pub async fn known(&self) {
        self.catalog.settled_or(Instant::now() + KNOWN, Snapshot::is_whole).await;
    }

    /// The mounts that are served or about to be, sorted; each with the name of its component where that is another one.
    pub fn mount_names(&self) -> Vec<(MountName, Option<MountName>)> {
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

/// What is said of a URI that is in no mount's base.
pub(super) fn nowhere(snapshot: &Snapshot, uri: &str) -> ReadError {
    let bases: Vec<(&MountName, &str)> = snapshot.bases().collect();
    let found = |why: String, instead: String| {
        let instead = Some(instead).filter(|instead| instead.len() <= reference::MAX_URI);
        ReadError::Nowhere { why, instead }
    };
    if let Some((name, base)) = bases.iter().find(|(_, base)| base.strip_suffix('/') == Some(uri)) {
        return found(format!("the mount \"{name}\" begins at \"{base}\""), (*base).to_owned());
    }
    // A base in other letters, or with a slash too few or too many at its end.
    let beginning = |base: &str| uri.get(..base.len()).filter(|start| start.eq_ignore_ascii_case(base));
    if let Some((name, base)) = bases.iter().find(|(_, base)| beginning(base).is_some()) {
        let rest = uri.get(base.len()..).unwrap_or_default();
        return found(format!("the mount \"{name}\" begins at \"{base}\""), format!("{base}{rest}"));
    }
    let Some(rest) =
        uri.get(..OWN.len()).filter(|own| own.eq_ignore_ascii_case(OWN)).and_then(|_| uri.get(OWN.len()..))
    else {
        return ReadError::NotFound;
    };
    let (name, path) = rest.split_once('/').unwrap_or((rest, ""));
    let shown = text::excerpt(name, SHOWN);
    let lower = name.to_ascii_lowercase();
    let near = |known: &MountName| strsim::jaro_winkler(&lower, known.as_str());
    let nearest = bases.iter().max_by(|(a, _), (b, _)| near(a).total_cmp(&near(b)));
    match nearest.filter(|(known, _)| near(known) >= ALIKE) {
        Some((known, base)) => {
            found(format!("no mount \"{shown}\"; did you mean \"{known}\"?"), format!("{base}{path}"))
        }
        None if bases.is_empty() || name.is_empty() => ReadError::NotFound,
        None => {
            let all = bases.iter().take(NAMED).map(|(name, _)| format!("\"{name}\"")).collect::<Vec<_>>().join(", ");
            let more = if bases.len() > NAMED { ", and more" } else { "" };
            ReadError::Nowhere { why: format!("no mount \"{shown}\"; there are {all}{more}"), instead: None }
        }
    }
}

/// What the bases of mounts begin with that have no other.
const OWN: &str = "belljar://";

/// What is said of a reference that the provider of `mount` does not know: the one that was listed and differs from it in
/// the case of letters only. Nobody is asked; only a list that is kept is looked at.
pub(super) fn absent(mount: &Mount, reference: &str) -> ReadError {
    let listed = mount.lists.0.current().and_then(|kept| kept.find_ignoring_case(reference));
    match listed {
        Some(listed) if listed != reference => {
            let uri = format!("{}{listed}", mount.base);
            ReadError::Nowhere { why: format!("did you mean \"{uri}\"?"), instead: Some(uri) }
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
    fn what_was_meant_is_said() {
        let all = snapshot(&[("notes", "belljar://notes/"), ("clock", "belljar://clock/"), ("web", "web:///")]);
        let said = |uri: &str| match nowhere(&all, uri) {
            ReadError::Nowhere { why, instead } => (why, instead.unwrap_or_default()),
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
        let none = nowhere(&snapshot(&[]), "belljar://x/y");
        assert_eq!(none, ReadError::NotFound);
    }
}
