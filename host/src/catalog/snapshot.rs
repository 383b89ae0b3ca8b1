//! All mounts at one moment, and the mount that a URI belongs to. A snapshot is immutable: every change creates a new
//! one.

use std::collections::HashMap;
use std::sync::Arc;

use super::mount::Mount;
use super::notice::Notice;
use super::quarantine::QuarantinedMount;
use super::unserved::{CompilingMount, RefusedMount, UnservedMount};
use crate::config::Ask;
use crate::interfaces::AbsoluteNameError;
use crate::model::{Guard, MountName, reference, text};

/// All mounts at one moment.
#[derive(Default)]
pub struct Snapshot {
    /// Sorted by name.
    mounts: Vec<Arc<Mount>>,
    bases: HashMap<String, BaseOwner>,
    /// True if a mount may ask for consent.
    may_ask: bool,
    /// Files and mounts that are not served, with the reasons, sorted.
    refused: Vec<RefusedMount>,
    /// Mounts that wait for the operator's trust, sorted by name.
    quarantined: Vec<QuarantinedMount>,
    /// Mounts that are being compiled for the first time, sorted by name.
    compiling: Vec<CompilingMount>,
    /// Mounts that are configured and in none of these lists, sorted by name.
    unserved: Vec<UnservedMount>,
    /// True if every file and mount is in one of these lists.
    is_complete: bool,
}

/// The most characters of a URI that an error shows.
const MAX_SHOWN_CHARS: usize = 80;

/// The owner of a base.
#[derive(Clone, Copy)]
enum BaseOwner {
    /// A served mount, by its index.
    Mount(usize),
    /// A mount in quarantine, by its index. It keeps its names, so that no other mount can answer in its place.
    Quarantined(usize),
    /// A mount that is being compiled, or cannot be served. It keeps its names too.
    Absent,
}

impl Snapshot {
    /// A snapshot of `mounts`, whose names and bases must be distinct.
    pub fn new(mut mounts: Vec<Arc<Mount>>, mut refused: Vec<RefusedMount>) -> Self {
        mounts.sort_by(|a, b| a.name.cmp(&b.name));
        refused.sort();
        let absent = refused.iter().filter_map(|one| Some((one.base.clone()?, BaseOwner::Absent)));
        let mut bases: HashMap<_, _> = absent.collect();
        // A refused mount may still be served in its earlier version. Then that version owns the base.
        bases.extend(mounts.iter().enumerate().map(|(at, mount)| (mount.base.clone(), BaseOwner::Mount(at))));
        let may_ask = mounts.iter().any(|mount| mount.ask != Ask::Never);
        Self { mounts, bases, may_ask, refused, ..Self::default() }
    }

    /// The same with mounts in quarantine. Their names and bases must be distinct too.
    #[must_use]
    pub fn with_quarantined(mut self, mut quarantined: Vec<QuarantinedMount>) -> Self {
        quarantined.sort_by(|a, b| a.name.cmp(&b.name));
        let places = quarantined.iter().enumerate().map(|(at, one)| (one.base.clone(), BaseOwner::Quarantined(at)));
        self.bases.extend(places);
        Self { quarantined, ..self }
    }

    /// The same with mounts that are being compiled.
    #[must_use]
    pub fn with_compiling(mut self, mut compiling: Vec<CompilingMount>) -> Self {
        compiling.sort_by(|a, b| a.name.cmp(&b.name));
        for one in &compiling {
            self.bases.entry(one.base.clone()).or_insert(BaseOwner::Absent);
        }
        Self { compiling, ..self }
    }

    /// The same with mounts that are configured and not served. Ignores those that are already in another list.
    #[must_use]
    pub fn with_unserved(self, mut unserved: Vec<UnservedMount>) -> Self {
        unserved.sort_by(|a, b| a.name.cmp(&b.name));
        unserved.dedup_by(|a, b| a.name == b.name);
        let is_known = |name: &MountName| {
            self.find(name).is_some()
                || self.quarantined.iter().any(|one| one.name == *name)
                || self.compiling.iter().any(|one| one.name == *name)
        };
        unserved.retain(|one| !is_known(&one.name));
        Self { unserved, ..self }
    }

    /// True if a mount may ask a person for a grant that it lacks.
    pub fn may_ask(&self) -> bool {
        self.may_ask
    }

    /// True if both snapshots have the same mounts (by identity) and the same lists.
    pub(super) fn is_same(&self, other: &Self) -> bool {
        let same = |(own, other): (&Arc<Mount>, &Arc<Mount>)| Arc::ptr_eq(own, other);
        self.mounts.len() == other.mounts.len()
            && self.mounts.iter().zip(&other.mounts).all(same)
            && self.refused == other.refused
            && self.quarantined == other.quarantined
            && self.compiling == other.compiling
            && self.unserved == other.unserved
            && self.is_complete == other.is_complete
    }

    /// The mounts of `before` from which a grant was revoked: they had grants or could ask for some, and are gone or
    /// have successors with fewer grants.
    pub(super) fn revoked_since<'b>(&self, before: &'b Self) -> impl Iterator<Item = &'b Arc<Mount>> {
        let holds = |mount: &Mount| !mount.configured_grants.is_empty() || mount.ask != Ask::Never;
        before.mounts.iter().filter(move |old| {
            holds(old) && self.find(&old.name).is_none_or(|new| !Arc::ptr_eq(old, new) && !old.is_subset_of(new))
        })
    }

    /// The absolute name of `reference` in `mount`. All names that clients receive come from here.
    ///
    /// # Errors
    /// When the name, in any spelling, belongs to another mount. The error names it.
    pub fn absolute_name(&self, mount: &Mount, reference: &str) -> Result<String, AbsoluteNameError> {
        let uri = [mount.base.as_str(), reference].concat();
        if uri.len() > reference::MAX_URI {
            return Err(AbsoluteNameError::TooLong { uri: text::excerpt(&uri, MAX_SHOWN_CHARS) });
        }
        let taken = |owner: &MountName| AbsoluteNameError::Taken {
            uri: text::excerpt(&uri, MAX_SHOWN_CHARS),
            owner: owner.clone(),
        };
        match self.owner(&uri) {
            NameOwner::Mount(owner) if owner.name == mount.name && owner.base == mount.base => Ok(uri),
            // A changed component of the same mount, which waits for trust.
            NameOwner::Quarantined(one) if one.name == mount.name && one.base == mount.base => Ok(uri),
            _ if !Guard::Namespace.is_on() => Ok(uri),
            NameOwner::Mount(owner) => Err(taken(&owner.name)),
            NameOwner::Quarantined(one) => Err(taken(&one.name)),
            // The mount was removed meanwhile. No other mount has the name, or the longest base is the one of this mount.
            NameOwner::Unowned if self.longest_base(&uri).is_none_or(|base| base == mount.base) => Ok(uri),
            NameOwner::Unowned => Err(AbsoluteNameError::Reserved { uri: text::excerpt(&uri, MAX_SHOWN_CHARS) }),
        }
    }

    /// The longest base that `uri` begins with, in any spelling.
    fn longest_base(&self, uri: &str) -> Option<&str> {
        let plain = reference::unescaped(uri);
        let nearest = base_ends(&plain).rev().find_map(|at| self.bases.get_key_value(plain.get(..=at)?));
        nearest.map(|(base, _)| base.as_str())
    }

    /// The owner of the name `uri`, in any spelling: unreserved characters may be percent-encoded (RFC 3986, 6.2.2.2).
    fn owner(&self, uri: &str) -> NameOwner<'_> {
        let plain = reference::unescaped(uri);
        let place = self.find_base(plain.as_ref());
        match place.map(|(place, _)| place) {
            Some(BaseOwner::Mount(at)) => self.mounts.get(at).map_or(NameOwner::Unowned, NameOwner::Mount),
            Some(BaseOwner::Quarantined(at)) => {
                self.quarantined.get(at).map_or(NameOwner::Unowned, NameOwner::Quarantined)
            }
            Some(BaseOwner::Absent) | None => NameOwner::Unowned,
        }
    }

    /// True if percent-encoding routes `uri` to another mount than the owner of the decoded name.
    pub fn has_ambiguous_escapes(&self, uri: &str) -> bool {
        let plain = reference::unescaped(uri);
        let base = |uri: &str| self.find_base(uri).map(|(_, reference)| uri.len() - reference.len());
        plain.as_ref() != uri && base(uri) != base(plain.as_ref())
    }

    /// The mount with the longest base that `uri` begins with, and the rest of `uri`.
    pub fn route<'u>(&self, uri: &'u str) -> Option<(&Arc<Mount>, &'u str)> {
        match self.find_base(uri)? {
            (BaseOwner::Mount(at), reference) => Some((self.mounts.get(at)?, reference)),
            (BaseOwner::Quarantined(_) | BaseOwner::Absent, _) => None,
        }
    }

    /// The mount in quarantine that `uri` belongs to.
    pub fn quarantined_at(&self, uri: &str) -> Option<&QuarantinedMount> {
        match self.find_base(uri)? {
            (BaseOwner::Quarantined(at), _) => self.quarantined.get(at),
            (BaseOwner::Mount(_) | BaseOwner::Absent, _) => None,
        }
    }

    /// The mount that `uri` belongs to for somebody who knows only some mounts: the longest base of a known one.
    pub fn known_owner<'u>(
        &self,
        uri: &'u str,
        is_known: impl Fn(&MountName, &str) -> bool,
    ) -> Option<KnownOwner<'_, 'u>> {
        let mut is_owner = true;
        for at in base_ends(uri).rev() {
            let Some((base, reference)) = uri.split_at_checked(at + 1) else { continue };
            let Some(owner) = self.bases.get(base) else { continue };
            let place = match owner {
                BaseOwner::Mount(at) => self.mounts.get(*at).map(KnownPlace::Mount),
                BaseOwner::Quarantined(at) => self.quarantined.get(*at).map(KnownPlace::Quarantined),
                BaseOwner::Absent => Some(KnownPlace::Absent),
            };
            if let Some(place) = place
                && self.name_at(base).is_some_and(|name| is_known(&name, base))
            {
                return Some(KnownOwner { place, reference, is_owner });
            }
            is_owner = false;
        }
        None
    }

    /// The name of the mount with this base.
    fn name_at(&self, base: &str) -> Option<MountName> {
        match self.bases.get(base)? {
            BaseOwner::Mount(at) => self.mounts.get(*at).map(|mount| mount.name.clone()),
            BaseOwner::Quarantined(at) => self.quarantined.get(*at).map(|one| one.name.clone()),
            BaseOwner::Absent => {
                let compiling = self.compiling.iter().find(|one| one.base == base).map(|one| one.name.clone());
                let unserved = || self.unserved.iter().find(|one| one.base == base).map(|one| one.name.clone());
                let refused = || {
                    let refused = self.refused.iter().find(|one| one.base.as_deref() == Some(base))?;
                    MountName::new(&refused.name).ok()
                };
                compiling.or_else(unserved).or_else(refused)
            }
        }
    }

    /// The longest base that `uri` begins with, and the rest of `uri`.
    fn find_base<'u>(&self, uri: &'u str) -> Option<(BaseOwner, &'u str)> {
        base_ends(uri).rev().find_map(|at| {
            let (base, reference) = uri.split_at_checked(at + 1)?;
            Some((*self.bases.get(base)?, reference))
        })
    }

    /// Clears the cached listings of mounts whose base is a prefix of a base that was added or removed since `before`.
    /// Other mounts may own some of their names now, or may own fewer.
    pub(super) fn clear_changed_listings(&self, before: &Self) {
        let one_sided = |a: &Self, b: &Self| -> Vec<String> {
            a.bases.keys().filter(|base| !b.bases.contains_key(*base)).cloned().collect()
        };
        for changed in [one_sided(self, before), one_sided(before, self)].concat() {
            for at in base_ends(&changed).filter(|at| at + 1 < changed.len()) {
                let around = changed.get(..=at).and_then(|base| self.bases.get(base));
                if let Some(BaseOwner::Mount(at)) = around
                    && let Some(mount) = self.mounts.get(*at)
                {
                    mount.cached.clear_listings();
                }
            }
        }
    }

    /// All mounts, sorted by name.
    pub fn mounts(&self) -> &[Arc<Mount>] {
        &self.mounts
    }

    /// The mounts from `name` on, sorted by name. A mount of this name need not exist.
    pub fn mounts_from(&self, name: Option<&MountName>) -> &[Arc<Mount>] {
        let start = name.map_or(0, |name| self.mounts.partition_point(|mount| mount.name < *name));
        self.mounts.get(start..).unwrap_or_default()
    }

    /// The mount of this name.
    pub fn find(&self, name: &MountName) -> Option<&Arc<Mount>> {
        self.mounts_from(Some(name)).first().filter(|mount| mount.name == *name)
    }

    /// The files and mounts that are not served, with the reasons.
    pub fn refused(&self) -> &[RefusedMount] {
        &self.refused
    }

    /// The mounts that wait for the operator's trust.
    pub fn quarantined(&self) -> &[QuarantinedMount] {
        &self.quarantined
    }

    /// The mounts that are being compiled for the first time.
    pub fn compiling(&self) -> &[CompilingMount] {
        &self.compiling
    }

    /// The mounts that are configured and not served.
    pub fn unserved(&self) -> &[UnservedMount] {
        &self.unserved
    }

    /// The mounts that are not served: quarantined, compiling, or for another reason. Each with its base, and the notice
    /// for a list.
    pub fn absent(&self) -> impl Iterator<Item = (&MountName, &str, Notice)> {
        let quarantined = self.quarantined.iter().map(|one| (&one.name, one.base.as_str(), one.notice()));
        let compiling = self.compiling.iter().map(|one| (&one.name, one.base.as_str(), one.notice()));
        let unserved = self.unserved.iter().map(|one| (&one.name, one.base.as_str(), one.notice()));
        quarantined.chain(compiling).chain(unserved)
    }

    /// The same, marked as complete: every file and mount is in one of the lists.
    #[must_use]
    pub fn complete(self) -> Self {
        Self { is_complete: true, ..self }
    }

    /// True if every file and mount is in one of the lists, so no mount is still being loaded.
    pub fn is_complete(&self) -> bool {
        self.is_complete
    }

    /// The served mounts and those in quarantine, each with its base; each group sorted by name.
    pub fn bases(&self) -> impl Iterator<Item = (&MountName, &str)> {
        let quarantined = self.quarantined.iter().map(|one| (&one.name, one.base.as_str()));
        self.mounts.iter().map(|mount| (&mount.name, mount.base.as_str())).chain(quarantined)
    }

    /// The mounts with their bases: served, in quarantine, being compiled, and not served.
    pub fn all_bases(&self) -> impl Iterator<Item = (&MountName, &str)> {
        let compiling = self.compiling.iter().map(|one| (&one.name, one.base.as_str()));
        let unserved = self.unserved.iter().map(|one| (&one.name, one.base.as_str()));
        self.bases().chain(compiling).chain(unserved)
    }

    /// True if `mount` has new grants that take effect only after a restart of belljar.
    pub fn needs_restart(&self, mount: &MountName) -> bool {
        self.refused.iter().any(|one| one.needs_restart && one.name == mount.as_str())
    }
}

/// The mount that a URI belongs to, for somebody who knows only some mounts.
pub struct KnownOwner<'s, 'u> {
    /// The mount.
    pub place: KnownPlace<'s>,
    /// The rest of the URI.
    pub reference: &'u str,
    /// False if the URI belongs to an unknown mount with a longer base. Then this mount must not be asked for it.
    pub is_owner: bool,
}

/// The state of a mount that a URI belongs to.
pub enum KnownPlace<'s> {
    /// It is served.
    Mount(&'s Arc<Mount>),
    /// It waits for the operator's trust.
    Quarantined(&'s QuarantinedMount),
    /// It is being compiled, or cannot be served.
    Absent,
}

/// The owner of a name.
enum NameOwner<'a> {
    Mount(&'a Arc<Mount>),
    Quarantined(&'a QuarantinedMount),
    Unowned,
}

/// The indices at which a base at the start of `uri` may end: a base ends in `/` or `:`.
fn base_ends(uri: &str) -> impl DoubleEndedIterator<Item = usize> + '_ {
    uri.bytes().enumerate().filter(|(_, b)| matches!(b, b'/' | b':')).map(|(at, _)| at)
}

#[cfg(test)]
mod tests {
    use super::*;

    fn snapshot(bases: &[(&str, &str)]) -> Snapshot {
        Snapshot::new(
            bases.iter().map(|(name, base)| Arc::new(crate::catalog::mount::tests::mount(name, base))).collect(),
            Vec::new(),
        )
    }

    #[test]
    fn the_longest_base_wins() {
        let snapshot = snapshot(&[("a", "x://h/"), ("b", "x://h/b/"), ("c", "test://"), ("d", "urn:d:")]);
        let route = |uri: &str| snapshot.route(uri).map(|(mount, rest)| (mount.name.to_string(), rest.to_owned()));
        let is = |name: &str, rest: &str| Some((name.to_owned(), rest.to_owned()));
        assert_eq!(route("x://h/q"), is("a", "q"));
        assert_eq!(route("x://h/b/q"), is("b", "q"));
        assert_eq!(route("x://h/b"), is("a", "b"));
        assert_eq!(route("x://h/b/"), is("b", ""));
        assert_eq!(route("x://h/bb/q"), is("a", "bb/q"));
        assert_eq!(route("test://static-text"), is("c", "static-text"));
        assert_eq!(route("urn:d:1/2"), is("d", "1/2"));
        for none in ["", "x://h", "X://h/q", "y://h/q", "x:/h/q", "test:/x", "é://h/"] {
            assert_eq!(route(none), None, "{none}");
        }
    }

    #[test]
    fn mounts_from_a_name_on() {
        let snapshot = snapshot(&[("c", "c://c/"), ("a", "a://a/"), ("e", "e://e/")]);
        let from = |name: &str| {
            snapshot
                .mounts_from(Some(&MountName::new(name).unwrap()))
                .iter()
                .map(|m| m.name.to_string())
                .collect::<String>()
        };
        assert_eq!(
            (from("a"), from("b"), from("c"), from("f")),
            ("ace".into(), "ce".into(), "ce".into(), String::new())
        );
        assert_eq!(snapshot.mounts_from(None).len(), 3);
    }
}
