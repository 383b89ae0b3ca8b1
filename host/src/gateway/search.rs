//! A search over what is listed, and where the operator allows it over contents. What was not looked at is told.
//!
//! There is no index of words: what is listed is walked page by page, within bounds on entries and time, and contents are
//! read as any other read, with the mount's own limits and on record.

use std::time::Duration;

use futures_util::{StreamExt, stream};
use tokio::sync::Semaphore;
use tokio::time::{Instant, timeout_at};

use super::walk::Walk;
use super::{Gateway, Listing, answers};
use crate::admission::effort::measured;
use crate::model::{Body, Caller, Guard, MountName, Reading, Resource, text};

/// Entries that one search looks at.
const MOST_ENTRIES: usize = 100_000;

/// Contents that one search reads.
const MOST_READS: usize = 200;

/// Bytes of contents that one search looks at.
const MOST_BYTES: usize = 16 << 20;

/// Bytes of one resource that are looked at.
const MOST_OF_ONE: usize = 1 << 20;

/// How long a search may take; a third of it is kept for contents, where they are wanted.
const TIME: Duration = Duration::from_secs(9);

/// Contents that are read at once.
const READING: usize = 4;

/// Searches that run at once, whoever they are for: one of them asks for hundreds of reads. Others wait for their turn, and
/// that is of their time.
static SEARCHES: Semaphore = Semaphore::const_new(4);

/// Reasons that a search gives for what it did not look at.
const GAPS: usize = 64;

/// Characters of a snippet.
const SNIPPET: usize = 160;

/// Matches that are kept of more than are wanted, before the worst of them are let go.
const KEPT: usize = 1024;

/// What is searched for.
#[derive(Clone, Debug)]
pub struct Search {
    /// All of them must occur; as [`folded`] gives them, and none of them empty.
    pub words: Vec<String>,
    /// One mount, instead of all.
    pub only: Option<MountName>,
    /// Whether contents are looked at where the operator allows it.
    pub contents: bool,
    /// Matches that are wanted.
    pub most: usize,
}

/// Where a word was found; what counts more comes first.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord)]
pub enum Place {
    /// In the title or the name.
    Title,
    /// In the description.
    Description,
    /// In the URI.
    Uri,
    /// In the contents.
    Contents,
}

impl Place {
    /// One lower-case word.
    pub fn as_str(self) -> &'static str {
        match self {
            Self::Title => "title",
            Self::Description => "description",
            Self::Uri => "uri",
            Self::Contents => "contents",
        }
    }

    fn weight(self) -> u32 {
        match self {
            Self::Title => 8,
            Self::Description => 4,
            Self::Uri => 2,
            Self::Contents => 1,
        }
    }
}

/// A resource in which all words occur.
#[derive(Clone, Debug)]
pub struct Match {
    /// The resource.
    pub resource: Resource,
    /// Whose it is.
    pub mount: MountName,
    /// The worst of the places in which the words were found: there the snippet is from.
    pub place: Place,
    /// The text around a word; on one line, sanitised.
    pub snippet: String,
    score: u32,
}

/// What a search comes to.
#[derive(Debug, Default)]
pub struct Found {
    /// The best matches, best first.
    pub matches: Vec<Match>,
    /// How many there were in all, in what was looked at.
    pub total: usize,
    /// Entries that were looked at.
    pub entries: usize,
    /// Resources whose contents were looked at.
    pub read: usize,
    /// What was not looked at, and why; sanitised.
    pub gaps: Vec<String>,
}

/// A resource whose contents may hold what its entry does not.
struct Candidate {
    resource: Resource,
    mount: MountName,
    /// What its entry holds.
    held: Vec<Place>,
    /// What its entry does not hold.
    missing: Vec<String>,
}

/// What became of a candidate.
enum Looked {
    At { bytes: usize, hit: Option<(Box<Candidate>, String)> },
    NotAt,
}

/// `text` as it is compared: in lower case, letter by letter, whatever the script.
pub fn folded(text: &str) -> String {
    text.chars().flat_map(char::to_lowercase).collect()
}

impl Gateway {
    /// The names of all mounts, those in quarantine and those that are not served too.
    pub async fn names(&self) -> Vec<MountName> {
        let snapshot = self.settled().await;
        let quarantined = snapshot.quarantined().iter().map(|one| one.name.clone());
        let unserved = snapshot.unserved().iter().map(|one| one.name.clone());
        snapshot.mounts().iter().map(|mount| mount.name.clone()).chain(quarantined).chain(unserved).collect()
    }

    /// Searches.
    pub async fn search(&self, caller: &Caller, search: &Search) -> Found {
        let end = Instant::now() + TIME;
        let mut found = Found::default();
        let mut turn = Err(());
        if Guard::Searches.is_on() {
            turn = timeout_at(end, SEARCHES.acquire()).await.map_err(drop);
            if turn.is_err() {
                found.gaps.push("anything: other searches are running; try again shortly".to_owned());
                return found;
            }
        }
        let candidates = self.search_entries(caller, search, end, &mut found).await;
        if search.contents {
            self.search_contents(caller, candidates, end, &mut found).await;
        }
        drop(turn);
        rank(&mut found.matches, search.most);
        found.gaps.truncate(GAPS);
        found
    }

    /// Looks at what is listed; gives back those whose contents are still to be looked at.
    async fn search_entries(
        &self,
        caller: &Caller,
        search: &Search,
        end: Instant,
        found: &mut Found,
    ) -> Vec<Candidate> {
        let by = if search.contents { end - TIME / 3 } else { end };
        let snapshot = self.settled().await;
        let searchable = |name: &MountName| snapshot.find(name).is_some_and(|mount| mount.search);
        let (mut candidates, mut unread) = (Vec::new(), 0usize);
        let mut start = None;
        let walk = Walk::new(&self.audit, caller);
        loop {
            let listed = timeout_at(by, self.list_in::<Resource>(&walk, start, search.only.as_ref())).await;
            let Ok(Listing { entries, next, notices }) = listed else {
                found.gaps.push(format!("resources beyond the first {}: there was no time", found.entries));
                break;
            };
            // Room is left for what is told at the end.
            let room = (GAPS / 2).saturating_sub(found.gaps.len());
            let told = notices.into_iter().map(|(mount, reason)| format!("mount \"{mount}\": {reason}"));
            found.gaps.extend(told.take(room));
            for (resource, mount) in entries {
                found.entries += 1;
                let (held, missing) = held(&resource, &search.words);
                if missing.is_empty() {
                    found.total += 1;
                    found.matches.push(entry_match(resource, mount, &held, &search.words));
                } else if search.contents && searchable(&mount) && is_readable(&resource) {
                    match candidates.len() < MOST_READS {
                        true => candidates.push(Candidate { resource, mount, held, missing }),
                        false => unread += 1,
                    }
                }
            }
            if found.matches.len() > search.most + KEPT {
                rank(&mut found.matches, search.most);
            }
            start = next;
            if start.is_none() {
                break;
            }
            if found.entries >= MOST_ENTRIES {
                found.gaps.push(format!("resources beyond the first {}", found.entries));
                break;
            }
            // Whoever else is served is not kept waiting by a long catalog.
            tokio::task::yield_now().await;
        }
        if unread > 0 {
            found.gaps.push(format!(
                "contents of {unread} resources: one search reads {MOST_READS}; name a mount, or more words of titles"
            ));
        }
        if search.contents {
            let closed: Vec<_> = snapshot
                .mounts()
                .iter()
                .filter(|mount| !mount.search && search.only.as_ref().is_none_or(|only| *only == mount.name))
                .map(|mount| format!("\"{}\"", mount.name))
                .collect();
            if let Some(first) = closed.first() {
                let more = match closed.len() - 1 {
                    0 => String::new(),
                    more => format!(" and of {more} other mounts"),
                };
                found.gaps.push(format!(
                    "contents of mount {first}{more}: the operator has not set search = true under [mounts.NAME]"
                ));
            }
        }
        candidates
    }

    async fn search_contents(&self, caller: &Caller, candidates: Vec<Candidate>, end: Instant, found: &mut Found) {
        let mut left = candidates.len();
        let mut bytes = 0;
        let mut unseen = 0usize;
        let reads = candidates.into_iter().map(|candidate| self.look_into(caller, candidate));
        let mut reads = stream::iter(reads).buffered(READING);
        while let Ok(Some(looked)) = timeout_at(end, reads.next()).await {
            left -= 1;
            match looked {
                Looked::At { bytes: more, hit } => {
                    found.read += 1;
                    bytes += more;
                    if let Some((candidate, snippet)) = hit {
                        found.total += 1;
                        found.matches.push(content_match(*candidate, snippet));
                    }
                }
                Looked::NotAt => unseen += 1,
            }
            if bytes >= MOST_BYTES {
                break;
            }
        }
        if left > 0 {
            let why = if bytes >= MOST_BYTES { "their texts are too long together" } else { "there was no time" };
            found.gaps.push(format!("contents of {left} resources: {why}"));
        }
        if unseen > 0 {
            found.gaps.push(format!("contents of {unseen} resources: they could not be read, or are no text"));
        }
    }

    /// Reads a candidate, and looks for the words that its entry does not hold.
    async fn look_into(&self, caller: &Caller, candidate: Candidate) -> Looked {
        let Ok((reading, mount)) = self.read(caller, &candidate.resource.reference).await else { return Looked::NotAt };
        // Its text is its mount's, and so is what it costs to look through it.
        let (looked, cost) = measured(answers::size(&reading), || candidate.look_into(&reading));
        mount.gate.charge(cost);
        looked
    }
}

impl Candidate {
    fn look_into(self, reading: &Reading) -> Looked {
        let candidate = self;
        let mut bytes = 0;
        let mut texts = Vec::new();
        for contents in &reading.contents {
            if let Body::Text(whole) = &contents.body {
                let part = whole.get(..whole.floor_char_boundary(MOST_OF_ONE - bytes)).unwrap_or_default();
                bytes += part.len();
                texts.push((part, folded(part)));
            }
        }
        if texts.is_empty() {
            return Looked::NotAt;
        }
        let is_held = |word: &String| texts.iter().any(|(_, text)| text.contains(word.as_str()));
        let first = candidate.missing.first().map(String::as_str).unwrap_or_default();
        let snippet = texts.iter().find_map(|(text, folded)| snippet(text, folded, first));
        let hit = snippet.filter(|_| candidate.missing.iter().all(is_held));
        Looked::At { bytes, hit: hit.map(|snippet| (Box::new(candidate), snippet)) }
    }
}

/// The text of an entry at a place.
fn texts(resource: &Resource, place: Place) -> [&str; 2] {
    match place {
        Place::Title => [resource.title.as_deref().unwrap_or_default(), &resource.name],
        Place::Description => [resource.description.as_deref().unwrap_or_default(), ""],
        Place::Uri => [&resource.reference, ""],
        Place::Contents => ["", ""],
    }
}

/// Where an entry holds each of these words, and which of them it does not.
fn held(resource: &Resource, words: &[String]) -> (Vec<Place>, Vec<String>) {
    let places = [Place::Title, Place::Description, Place::Uri];
    let mut own = places.map(|place| (place, texts(resource, place).map(folded)));
    // As people write it, and not only as it is encoded.
    if let Ok(plain) = percent_encoding::percent_decode_str(&resource.reference).decode_utf8()
        && plain != resource.reference
        && let [_, _, (_, [_, decoded])] = &mut own
    {
        *decoded = folded(&plain);
    }
    let (mut held, mut missing) = (Vec::new(), Vec::new());
    for word in words {
        match own.iter().find(|(_, texts)| texts.iter().any(|text| text.contains(word.as_str()))) {
            Some((place, _)) => held.push(*place),
            None => missing.push(word.clone()),
        }
    }
    (held, missing)
}

/// Whether its contents may be text, and not too much of it.
fn is_readable(resource: &Resource) -> bool {
    let is_other = |mime: &str| {
        ["image/", "audio/", "video/", "font/"].iter().any(|kind| mime.starts_with(kind))
            || ["application/octet-stream", "application/pdf", "application/zip", "application/gzip"].contains(&mime)
    };
    let is_long = |size: u64| size > u64::try_from(MOST_OF_ONE).unwrap_or(u64::MAX);
    !resource.mime_type.as_deref().is_some_and(|mime| is_other(&mime.to_ascii_lowercase()))
        && !resource.size.is_some_and(is_long)
}

fn score(held: &[Place]) -> u32 {
    held.iter().map(|place| place.weight()).sum()
}

fn entry_match(resource: Resource, mount: MountName, held: &[Place], words: &[String]) -> Match {
    let place = held.iter().copied().max().unwrap_or(Place::Title);
    let word = held.iter().position(|other| *other == place).and_then(|at| words.get(at));
    let around = |text: &str| snippet(text, &folded(text), word.map_or("", String::as_str));
    let given = texts(&resource, place);
    let snippet = given.into_iter().find_map(around).unwrap_or_else(|| text::excerpt(given[0], SNIPPET));
    Match { score: score(held), resource, mount, place, snippet }
}

fn content_match(candidate: Candidate, snippet: String) -> Match {
    let Candidate { resource, mount, held, missing } = candidate;
    let in_contents = u32::try_from(missing.len()).unwrap_or(u32::MAX).saturating_mul(Place::Contents.weight());
    Match { score: score(&held).saturating_add(in_contents), resource, mount, place: Place::Contents, snippet }
}

/// The best first; those that are as good as each other by their URI.
fn rank(matches: &mut Vec<Match>, most: usize) {
    matches.sort_by(|a, b| b.score.cmp(&a.score).then_with(|| a.resource.reference.cmp(&b.resource.reference)));
    matches.truncate(most);
}

/// What stands around `word` in `text`, whose folded form is `folded`.
fn snippet(text: &str, folded: &str, word: &str) -> Option<String> {
    let found = folded.find(word)?;
    // A letter may become longer when it is folded.
    let mut length = 0;
    let start = text.char_indices().find(|(_, c)| {
        let is_there = length >= found;
        length += c.to_lowercase().map(char::len_utf8).sum::<usize>();
        is_there
    });
    let start = start.map_or(text.len(), |(at, _)| at);
    let before = text.get(..start)?.char_indices().rev().nth(SNIPPET / 3).map(|(at, _)| at);
    let rest = text.get(before.unwrap_or(0)..)?;
    let around: String = rest.chars().take(SNIPPET).collect();
    let around = around.split_whitespace().collect::<Vec<_>>().join(" ");
    let shown = text::excerpt(&around, SNIPPET);
    let lead = if before.is_some() { "\u{2026}" } else { "" };
    let trail = if rest.chars().nth(SNIPPET).is_some() { "\u{2026}" } else { "" };
    Some(format!("{lead}{shown}{trail}"))
}

#[cfg(test)]
mod tests {
    use super::*;

    fn resource(uri: &str, name: &str, title: Option<&str>, description: Option<&str>) -> Resource {
        Resource {
            reference: uri.to_owned(),
            name: name.to_owned(),
            title: title.map(str::to_owned),
            description: description.map(str::to_owned),
            mime_type: None,
            size: None,
            annotations: None,
            icons: Vec::new(),
            meta: Vec::new(),
        }
    }

    fn words(query: &str) -> Vec<String> {
        query.split_whitespace().map(folded).collect()
    }

    #[test]
    fn each_word_counts_where_it_counts_most() {
        let one = resource("belljar://n/caf%C3%A9/plan", "plan.md", Some("The \u{c4}rger plan"), Some("Next YEAR"));
        let (places, missing) = held(&one, &words("PLAN \u{e4}RGER year caf\u{e9} absent"));
        assert_eq!(places, [Place::Title, Place::Title, Place::Description, Place::Uri]);
        assert_eq!(missing, ["absent"]);
    }

    #[test]
    fn ranked_by_place_and_then_by_uri() {
        let mount = MountName::new("n").unwrap();
        let at = |uri: &str, places: &[Place]| {
            entry_match(resource(uri, "x", None, None), mount.clone(), places, &words("x"))
        };
        let mut matches = vec![
            at("b://c", &[Place::Uri]),
            at("b://b", &[Place::Title]),
            at("b://a", &[Place::Title]),
            at("b://d", &[Place::Description]),
        ];
        rank(&mut matches, 3);
        let uris: Vec<_> = matches.iter().map(|one| one.resource.reference.as_str()).collect();
        assert_eq!(uris, ["b://a", "b://b", "b://d"]);
    }

    #[test]
    fn a_snippet_shows_the_word_in_its_own_letters() {
        let text = format!("{} Der \u{130}lk \u{c4}RGER\nwar\x1b[31m da {}", "vor ".repeat(100), "nach ".repeat(100));
        let shown = snippet(&text, &folded(&text), "\u{e4}rger").unwrap();
        assert!(shown.contains("\u{130}lk \u{c4}RGER war[31m da"), "{shown}");
        assert!(shown.starts_with('\u{2026}') && shown.ends_with('\u{2026}'), "{shown}");
        assert!(shown.chars().count() <= SNIPPET + 2, "{shown}");
        assert_eq!(snippet("a b", "a b", "c"), None);
        assert_eq!(snippet("A b", "a b", "b").unwrap(), "A b");
    }

    #[test]
    fn what_is_no_text_is_not_read() {
        let with = |mime: Option<&str>, size| Resource {
            mime_type: mime.map(str::to_owned),
            size,
            ..resource("b://x", "x", None, None)
        };
        assert!(is_readable(&with(None, None)) && is_readable(&with(Some("text/plain"), Some(1 << 20))));
        assert!(!is_readable(&with(Some("Image/PNG"), None)) && !is_readable(&with(None, Some((1 << 20) + 1))));
    }
}
