//! Adds a provider's pages to a cached listing, and reads entries from it. Makes no calls: the gateway fetches the
//! pages.

use std::collections::HashSet;
use std::hash::BuildHasher;
use std::time::Duration;

use super::cached_listing::{CachedListing, FetchState, ListEnd};
use super::listing::Listed;
use super::mount::Mount;
use super::notice::Notice;
use super::snapshot::Snapshot;
use crate::interfaces::paging::{Paging, PagingError};
use crate::interfaces::{AbsoluteNameError, EntryError, MountContext};
use crate::model::error::show_bytes;
use crate::model::{Guard, Resource, text};

/// A mount, and the snapshot against which its names are checked.
#[derive(Clone, Copy)]
pub struct ServedMount<'a> {
    /// The mount.
    pub mount: &'a Mount,
    /// All mounts at that moment.
    pub snapshot: &'a Snapshot,
}

/// The verdict on one cached entry.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum EntryVerdict {
    /// It is passed on.
    Take,
    /// It is hidden.
    Skip,
    /// The visit ends before it.
    Stop,
}

/// A page as the provider gave it.
pub struct ProviderPage<T> {
    /// The unchecked entries.
    pub entries: Vec<T>,
    /// The provider's cursor of the next page. `None` on the last page.
    pub next: Option<String>,
}

impl MountContext for ServedMount<'_> {
    fn absolute(&self, reference: &str) -> Result<String, AbsoluteNameError> {
        self.snapshot.absolute_name(self.mount, reference)
    }

    fn base(&self) -> &str {
        &self.mount.base
    }

    fn max_fresh(&self) -> Duration {
        self.mount.cache.max_age
    }
}

impl<T: Listed> CachedListing<T> {
    /// Adds the valid entries of a page without duplicates, until a limit of the mount or the memory for listings is
    /// reached.
    ///
    /// Returns the error if the provider violates the rules of paging; then the list ends here.
    pub fn add(&self, served: ServedMount<'_>, fetched: &mut FetchState, page: ProviderPage<T>) -> Option<PagingError> {
        let mount = served.mount;
        let (mut bad, mut reason) = (0u32, None::<String>);
        let limits = mount.gate.limits();
        let cap = self.memory.max_listing_bytes();
        let mut entries = self.write();
        let (weight_before, count_before) = (entries.weight(), entries.ends.len());
        // Reserves about what the packed page needs. By itself, `Vec` would double its capacity, to twice the counted
        // bytes.
        let more = page.entries.iter().map(T::weight).sum::<usize>() / 2;
        if entries.bytes.capacity() - entries.bytes.len() < more {
            let whole = entries.bytes.len();
            entries.bytes.reserve_exact(more.max(whole / 8));
        }
        let mut cut = None;
        for entry in page.entries {
            if entries.ends.len() as u64 >= limits.resources {
                cut = Some(format!(
                    "it lists more than {} resources; to serve more, set resources under [mounts.{}.limits]",
                    limits.resources, mount.name
                ));
                break;
            }
            match entry.clean().and_then(|entry| entry.check_mount(&served).map(|()| entry)) {
                Ok(entry) if !fetched.seen.insert(self.hasher.hash_one(entry.key())) && Guard::Duplicates.is_on() => {
                    bad += 1;
                    reason.get_or_insert_with(|| {
                        format!("{} is listed twice", text::quoted(&format!("{}{}", mount.base, entry.key()), 200))
                    });
                }
                Ok(entry) => {
                    // Strings and numbers always serialise, and writing to memory cannot fail.
                    let _ = postcard::to_io(&entry, &mut entries.bytes);
                    let end = u32::try_from(entries.bytes.len()).unwrap_or(u32::MAX);
                    entries.ends.push(end);
                }
                Err(why) => {
                    bad += 1;
                    reason.get_or_insert_with(|| why.to_string());
                }
            }
            if entries.weight() > cap.min(u32::MAX.into()) {
                cut = Some(format!(
                    "its listing takes more than {} of memory; to serve more, set a larger total-memory",
                    show_bytes(cap)
                ));
                break;
            }
        }
        if let Some(reason) = reason {
            entries.add_notice(Notice::Entries { count: bad, first: reason });
        }
        let new = entries.ends.len() - count_before;
        let has_more = fetched.paging.count_page(new, page.next.filter(|_| cut.is_none()));
        if !matches!(has_more, Ok(true)) {
            // A provider that violates paging would do so again, so its list ends here too.
            entries.end = Some(ListEnd::Complete);
        }
        let fault = has_more.err();
        cut = cut.or_else(|| {
            let cure = format!("to see what its author has to fix, run: belljar check --conformance {}", mount.file);
            Some(format!("{}; {cure}", fault?))
        });
        cut.into_iter().for_each(|why| entries.end_with(ListEnd::Complete, Notice::Cut(why)));
        if entries.end.is_some() {
            (fetched.seen, fetched.paging) = (HashSet::new(), Paging::default());
            entries.bytes.shrink_to_fit();
            entries.ends.shrink_to_fit();
        }
        let grown = entries.weight() - weight_before;
        self.memory.grow(grown);
        entries.reservation.iter_mut().for_each(|reservation| reservation.add(grown));
        fault
    }

    /// Passes the entries, starting at `from`, to `take` with their absolute names, until `take` returns false.
    ///
    /// `judge` is asked first, with the name of each entry below the base: a skipped entry is not even unpacked. Without
    /// `judge`, all are taken. An entry
    /// that no longer belongs to this mount is skipped too, and the reason is passed to `invalid`. Returns the index at
    /// which it stopped.
    pub fn visit(
        &self,
        served: ServedMount<'_>,
        from: usize,
        mut judge: Option<impl FnMut(&str) -> EntryVerdict>,
        mut take: impl FnMut(T) -> bool,
        mut invalid: impl FnMut(EntryError),
    ) -> usize {
        self.mark_used();
        let entries = self.read();
        let mut start = from.checked_sub(1).map_or(Some(0), |last| entries.ends.get(last).copied()).unwrap_or(u32::MAX);
        let mut at = from;
        for end in entries.ends.get(from..).unwrap_or_default() {
            let packed = entries.bytes.get(start as usize..*end as usize).unwrap_or_default();
            let verdict = match &mut judge {
                None => EntryVerdict::Take,
                // The name is the first field of an entry.
                Some(judge) => {
                    postcard::take_from_bytes::<&str>(packed).map_or(EntryVerdict::Skip, |(name, _)| judge(name))
                }
            };
            match verdict {
                EntryVerdict::Take => {}
                EntryVerdict::Skip => {
                    start = *end;
                    at += 1;
                    continue;
                }
                EntryVerdict::Stop => return at,
            }
            // The bytes were packed by this process, so they unpack.
            if let Ok(entry) = postcard::from_bytes::<T>(packed) {
                match entry.into_absolute(&served) {
                    Ok(entry) => {
                        if !take(entry) {
                            return at;
                        }
                    }
                    Err(why) => invalid(why),
                }
            }
            start = *end;
            at += 1;
        }
        at
    }
}

impl CachedListing<Resource> {
    /// The entry whose reference is `reference`. If there is none, the first one that differs only in the case of
    /// letters. Entries for which `is_shown` is false do not exist.
    pub fn find_ignoring_case(&self, reference: &str, is_shown: impl Fn(&str) -> bool) -> Option<String> {
        let entries = self.read();
        let (mut start, mut alike) = (0, None);
        for end in &entries.ends {
            let packed = entries.bytes.get(start as usize..*end as usize).unwrap_or_default();
            start = *end;
            // The reference is the first field of an entry: nothing else has to be unpacked.
            let Ok((given, _)) = postcard::take_from_bytes::<&str>(packed) else { continue };
            if !given.eq_ignore_ascii_case(reference) || !is_shown(given) {
                continue;
            }
            if given == reference {
                return Some(given.to_owned());
            }
            if alike.is_none() {
                alike = Some(given.to_owned());
            }
        }
        alike
    }
}

#[cfg(test)]
mod tests;
