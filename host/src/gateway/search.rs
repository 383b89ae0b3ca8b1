//! Search over listed entries, and over contents where the operator allows it. The result names everything that was not
//! searched.
//!
//! A search sees what its caller may list and search; contents must be readable too. Nothing else is counted or named.
//!
//! There is no index of words. A search walks the lists page by page, within bounds on entries and time. It reads
//! contents like any other read: within the mount's limits, and recorded.

mod searchable;

use std::time::Duration;

use futures_util::{StreamExt, stream};
use tokio::time::{Instant, timeout_at};

use super::call_group::CallGroup;
use super::listing::ListPage;
use super::pipeline::Gateway;
use super::read_cache;
use crate::limits::cpu_timer::measure;
use crate::model::{Body, MountName, Reading, Resource, text};
use crate::policy::{Caller, Principal};
use searchable::SearchableNames;

/// The most entries that one search examines.
const MAX_ENTRIES: usize = 100_000;

/// The most resources that one search reads.
const MAX_READS: usize = 200;

/// The most bytes of contents that one search examines.
const MAX_TOTAL_BYTES: usize = 16 << 20;

/// The most bytes that are examined of one resource.
const MAX_RESOURCE_BYTES: usize = 1 << 20;

/// The longest time of one search. If contents are wanted, a third of it is reserved for them.
const SEARCH_TIME: Duration = Duration::from_secs(9);

/// Resources that are read at the same time.
const CONCURRENT_READS: usize = 4;

/// The most gaps that a result names.
const MAX_GAPS: usize = 64;

/// The most characters of a snippet.
const SNIPPET_CHARS: usize = 160;

/// Matches that a search keeps in addition to the wanted number. When it has more, it drops the worst.
const EXTRA_MATCHES: usize = 1024;

/// A request for a search.
#[derive(Clone, Debug)]
pub struct SearchRequest {
    /// All words must occur in a resource. Each is folded by [`folded`] and not empty.
    pub words: Vec<String>,
    /// Restricts the search to one mount.
    pub only: Option<MountName>,
    /// True if contents are searched where the operator allows it.
    pub contents: bool,
    /// The number of matches that are wanted.
    pub max_matches: usize,
}

/// The field in which a word was found. The field with the highest weight comes first.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord)]
pub enum MatchField {
    /// The title or the name.
    Title,
    /// The description.
    Description,
    /// The URI.
    Uri,
    /// The contents.
    Contents,
}

impl MatchField {
    /// The field as one lower-case word.
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
pub struct SearchMatch {
    /// The resource.
    pub resource: Resource,
    /// The mount of the resource.
    pub mount: MountName,
    /// Of the fields in which the words were found, the one with the lowest weight. The snippet is from this field.
    pub field: MatchField,
    /// The text around a word: one line, sanitised.
    pub snippet: String,
    score: u32,
}

/// The result of a search.
#[derive(Debug, Default)]
pub struct SearchResults {
    /// The best matches, best first.
    pub matches: Vec<SearchMatch>,
    /// The number of all matches among the examined entries and contents.
    pub total: usize,
    /// The number of entries that were examined.
    pub entries: usize,
    /// The number of resources whose contents were examined.
    pub read: usize,
    /// The parts that were not examined, and the reasons; sanitised.
    pub gaps: Vec<String>,
}

/// A resource whose contents may have the words that its entry lacks.
struct ContentCandidate {
    resource: Resource,
    mount: MountName,
    /// The fields of the entry in which words were found.
    fields: Vec<MatchField>,
    /// The words that the entry lacks.
    missing: Vec<String>,
}

/// The result of examining a candidate's contents.
enum ContentSearch {
    Examined { bytes: usize, hit: Option<(Box<ContentCandidate>, String)> },
    Skipped,
}

/// `text` in the form that is compared: every character in lower case, in any script.
pub fn folded(text: &str) -> String {
    text.chars().flat_map(char::to_lowercase).collect()
}

impl Gateway {
    /// The names of all mounts that `principal` knows, including those in quarantine, being compiled or not served.
    pub async fn all_mount_names(&self, principal: &Principal) -> Vec<MountName> {
        let snapshot = self.loaded_snapshot().await;
        let known = snapshot.all_bases().filter(|(name, base)| self.knows(principal, name, base));
        known.map(|(name, _)| name.clone()).collect()
    }

    /// Runs a search.
    pub async fn search(&self, caller: &Caller, search: &SearchRequest) -> SearchResults {
        let end = Instant::now() + SEARCH_TIME;
        let mut results = SearchResults::default();
        // The wait for other searches counts against the time of this one. First for those of the same caller, so that one
        // caller with many searches does not keep the others waiting.
        let own_turn = self.searches_of_callers.enter(caller.id(), SEARCH_TIME).await;
        let turn = if own_turn.is_some() { timeout_at(end, self.searches.acquire()).await.ok() } else { None };
        if turn.is_none() {
            results.gaps.push("everything: other searches are running; try again soon".to_owned());
            return results;
        }
        let candidates = self.search_entries(caller, search, end, &mut results).await;
        if search.contents {
            self.search_contents(caller, candidates, end, &mut results).await;
        }
        drop(turn);
        rank(&mut results.matches, search.max_matches);
        results.gaps.truncate(MAX_GAPS);
        results
    }

    /// Searches the listed entries. Returns the resources whose contents remain to be searched.
    async fn search_entries(
        &self,
        caller: &Caller,
        search: &SearchRequest,
        end: Instant,
        results: &mut SearchResults,
    ) -> Vec<ContentCandidate> {
        let by = if search.contents { end - SEARCH_TIME / 3 } else { end };
        let snapshot = self.loaded_snapshot().await;
        let visible = SearchableNames::new(self, caller, &snapshot);
        let (mut candidates, mut unread) = (Vec::new(), 0usize);
        let mut start = None;
        let group = CallGroup::new(&self.audit, caller);
        loop {
            let listed = timeout_at(by, self.list_in_group::<Resource>(&group, start, search.only.as_ref())).await;
            let Ok(ListPage { entries, next, notices, .. }) = listed else {
                results.gaps.push(format!("resources beyond the first {}: there was no time", results.entries));
                break;
            };
            // Leave room for the gaps that are added at the end.
            let room = (MAX_GAPS / 2).saturating_sub(results.gaps.len());
            let notices = notices.into_iter().filter(|(mount, _)| visible.may_name(mount));
            let gaps = notices.map(|(mount, reason)| format!("mount \"{mount}\": {reason}"));
            results.gaps.extend(gaps.take(room));
            // The list has only entries that the caller may list.
            let is_visible = |(resource, mount): &(Resource, MountName)| visible.contains(mount, &resource.reference);
            for (resource, mount) in entries.into_iter().filter(is_visible) {
                results.entries += 1;
                let (fields, missing) = match_fields(&resource, &search.words);
                if missing.is_empty() {
                    results.total += 1;
                    results.matches.push(entry_match(resource, mount, &fields, &search.words));
                } else if search.contents && visible.is_open(&mount, &resource.reference) && is_readable(&resource) {
                    match candidates.len() < MAX_READS {
                        true => candidates.push(ContentCandidate { resource, mount, fields, missing }),
                        false => unread += 1,
                    }
                }
            }
            if results.matches.len() > search.max_matches + EXTRA_MATCHES {
                rank(&mut results.matches, search.max_matches);
            }
            start = next;
            if start.is_none() {
                break;
            }
            if results.entries >= MAX_ENTRIES {
                results.gaps.push(format!("resources beyond the first {}", results.entries));
                break;
            }
            // A long catalog must not block other tasks.
            tokio::task::yield_now().await;
        }
        if unread > 0 {
            results.gaps.push(format!(
                "contents of {unread} resources: one search reads {MAX_READS}; to narrow it, name a mount, or add words of titles"
            ));
        }
        if search.contents {
            let closed: Vec<_> = snapshot
                .mounts()
                .iter()
                .filter(|mount| !mount.search && search.only.as_ref().is_none_or(|only| *only == mount.name))
                .filter(|mount| visible.has_any(&mount.name))
                .map(|mount| format!("\"{}\"", mount.name))
                .collect();
            if let Some(first) = closed.first() {
                let more = match closed.len() - 1 {
                    0 => String::new(),
                    more => format!(" and of {more} other mounts"),
                };
                results.gaps.push(format!(
                    "contents of mount {first}{more}: the operator has not set search = true under [mounts.NAME]"
                ));
            }
        }
        candidates
    }

    async fn search_contents(
        &self,
        caller: &Caller,
        candidates: Vec<ContentCandidate>,
        end: Instant,
        results: &mut SearchResults,
    ) {
        let mut left = candidates.len();
        let mut bytes = 0;
        let mut unread = 0usize;
        let reads = candidates.into_iter().map(|candidate| self.search_content(caller, candidate));
        let mut reads = stream::iter(reads).buffered(CONCURRENT_READS);
        while let Ok(Some(searched)) = timeout_at(end, reads.next()).await {
            left -= 1;
            match searched {
                ContentSearch::Examined { bytes: more, hit } => {
                    results.read += 1;
                    bytes += more;
                    if let Some((candidate, snippet)) = hit {
                        results.total += 1;
                        results.matches.push(content_match(*candidate, snippet));
                    }
                }
                ContentSearch::Skipped => unread += 1,
            }
            if bytes >= MAX_TOTAL_BYTES {
                break;
            }
        }
        if left > 0 {
            let why = if bytes >= MAX_TOTAL_BYTES {
                "one search examines at most 16MiB of text"
            } else {
                "there was no time"
            };
            results.gaps.push(format!("contents of {left} resources: {why}"));
        }
        if unread > 0 {
            results.gaps.push(format!("contents of {unread} resources: they could not be read, or are not text"));
        }
    }

    /// Reads a candidate and searches its contents for the words that its entry lacks.
    async fn search_content(&self, caller: &Caller, candidate: ContentCandidate) -> ContentSearch {
        let Ok((reading, mount)) = self.read(caller, &candidate.resource.reference).await else {
            return ContentSearch::Skipped;
        };
        // Charge the mount for the processor time of the search through its text.
        let (searched, cost) = measure(read_cache::size(&reading), || candidate.search_content(&reading));
        mount.gate.charge_cpu(cost);
        searched
    }
}

impl ContentCandidate {
    fn search_content(self, reading: &Reading) -> ContentSearch {
        let candidate = self;
        let mut bytes = 0;
        let mut texts = Vec::new();
        for contents in &reading.contents {
            if let Body::Text(whole) = &contents.body {
                let part = whole.get(..whole.floor_char_boundary(MAX_RESOURCE_BYTES - bytes)).unwrap_or_default();
                bytes += part.len();
                texts.push((part, folded(part)));
            }
        }
        if texts.is_empty() {
            return ContentSearch::Skipped;
        }
        let is_found = |word: &String| texts.iter().any(|(_, text)| text.contains(word.as_str()));
        let first = candidate.missing.first().map(String::as_str).unwrap_or_default();
        let snippet = texts.iter().find_map(|(text, folded)| snippet(text, folded, first));
        let hit = snippet.filter(|_| candidate.missing.iter().all(is_found));
        ContentSearch::Examined { bytes, hit: hit.map(|snippet| (Box::new(candidate), snippet)) }
    }
}

/// The texts of an entry in one field.
fn texts(resource: &Resource, field: MatchField) -> [&str; 2] {
    match field {
        MatchField::Title => [resource.title.as_deref().unwrap_or_default(), &resource.name],
        MatchField::Description => [resource.description.as_deref().unwrap_or_default(), ""],
        MatchField::Uri => [&resource.reference, ""],
        MatchField::Contents => ["", ""],
    }
}

/// The field of an entry in which each word was found, and the words that the entry lacks.
fn match_fields(resource: &Resource, words: &[String]) -> (Vec<MatchField>, Vec<String>) {
    let all_fields = [MatchField::Title, MatchField::Description, MatchField::Uri];
    let mut own = all_fields.map(|field| (field, texts(resource, field).map(folded)));
    // Compare the URI in its decoded form too, as people write it.
    if let Ok(plain) = percent_encoding::percent_decode_str(&resource.reference).decode_utf8()
        && plain != resource.reference
        && let [_, _, (_, [_, decoded])] = &mut own
    {
        *decoded = folded(&plain);
    }
    let (mut fields, mut missing) = (Vec::new(), Vec::new());
    for word in words {
        match own.iter().find(|(_, texts)| texts.iter().any(|text| text.contains(word.as_str()))) {
            Some((field, _)) => fields.push(*field),
            None => missing.push(word.clone()),
        }
    }
    (fields, missing)
}

/// True if the contents may be text of at most [`MAX_RESOURCE_BYTES`].
fn is_readable(resource: &Resource) -> bool {
    let is_other = |mime: &str| {
        ["image/", "audio/", "video/", "font/"].iter().any(|kind| mime.starts_with(kind))
            || ["application/octet-stream", "application/pdf", "application/zip", "application/gzip"].contains(&mime)
    };
    let is_long = |size: u64| size > u64::try_from(MAX_RESOURCE_BYTES).unwrap_or(u64::MAX);
    !resource.mime_type.as_deref().is_some_and(|mime| is_other(&mime.to_ascii_lowercase()))
        && !resource.size.is_some_and(is_long)
}

fn score(fields: &[MatchField]) -> u32 {
    fields.iter().map(|field| field.weight()).sum()
}

fn entry_match(resource: Resource, mount: MountName, fields: &[MatchField], words: &[String]) -> SearchMatch {
    let field = fields.iter().copied().max().unwrap_or(MatchField::Title);
    let word = fields.iter().position(|other| *other == field).and_then(|at| words.get(at));
    let around = |text: &str| snippet(text, &folded(text), word.map_or("", String::as_str));
    let given = texts(&resource, field);
    let snippet = given.into_iter().find_map(around).unwrap_or_else(|| text::excerpt(given[0], SNIPPET_CHARS));
    SearchMatch { score: score(fields), resource, mount, field, snippet }
}

fn content_match(candidate: ContentCandidate, snippet: String) -> SearchMatch {
    let ContentCandidate { resource, mount, fields, missing } = candidate;
    let in_contents = u32::try_from(missing.len()).unwrap_or(u32::MAX).saturating_mul(MatchField::Contents.weight());
    SearchMatch {
        score: score(&fields).saturating_add(in_contents),
        resource,
        mount,
        field: MatchField::Contents,
        snippet,
    }
}

/// Sorts the best matches first, and equally good matches by URI. Keeps `most` of them.
fn rank(matches: &mut Vec<SearchMatch>, most: usize) {
    matches.sort_by(|a, b| b.score.cmp(&a.score).then_with(|| a.resource.reference.cmp(&b.resource.reference)));
    matches.truncate(most);
}

/// The part of `text` around `word`. `folded` is the folded form of `text`.
fn snippet(text: &str, folded: &str, word: &str) -> Option<String> {
    let position = folded.find(word)?;
    // Folding may change the length of a character.
    let mut length = 0;
    let start = text.char_indices().find(|(_, c)| {
        let is_there = length >= position;
        length += c.to_lowercase().map(char::len_utf8).sum::<usize>();
        is_there
    });
    let start = start.map_or(text.len(), |(at, _)| at);
    let before = text.get(..start)?.char_indices().rev().nth(SNIPPET_CHARS / 3).map(|(at, _)| at);
    let rest = text.get(before.unwrap_or(0)..)?;
    let around: String = rest.chars().take(SNIPPET_CHARS).collect();
    let around = around.split_whitespace().collect::<Vec<_>>().join(" ");
    let shown = text::excerpt(&around, SNIPPET_CHARS);
    let lead = if before.is_some() { "\u{2026}" } else { "" };
    let trail = if rest.chars().nth(SNIPPET_CHARS).is_some() { "\u{2026}" } else { "" };
    Some(format!("{lead}{shown}{trail}"))
}

#[cfg(test)]
mod tests {
    use super::*;

    fn resource(uri: &str, name: &str, title: Option<&str>, description: Option<&str>) -> Resource {
        Resource {
            title: title.map(str::to_owned),
            description: description.map(str::to_owned),
            ..Resource::named(uri, name)
        }
    }

    fn words(query: &str) -> Vec<String> {
        query.split_whitespace().map(folded).collect()
    }

    #[test]
    fn each_word_counts_in_its_field_of_highest_weight() {
        let one = resource("belljar://n/caf%C3%A9/plan", "plan.md", Some("The \u{c4}rger plan"), Some("Next YEAR"));
        let (all_fields, missing) = match_fields(&one, &words("PLAN \u{e4}RGER year caf\u{e9} absent"));
        assert_eq!(all_fields, [MatchField::Title, MatchField::Title, MatchField::Description, MatchField::Uri]);
        assert_eq!(missing, ["absent"]);
    }

    #[test]
    fn matches_are_ranked_by_field_and_then_by_uri() {
        let mount = MountName::new("n").unwrap();
        let at = |uri: &str, all_fields: &[MatchField]| {
            entry_match(resource(uri, "x", None, None), mount.clone(), all_fields, &words("x"))
        };
        let mut matches = vec![
            at("b://c", &[MatchField::Uri]),
            at("b://b", &[MatchField::Title]),
            at("b://a", &[MatchField::Title]),
            at("b://d", &[MatchField::Description]),
        ];
        rank(&mut matches, 3);
        let uris: Vec<_> = matches.iter().map(|one| one.resource.reference.as_str()).collect();
        assert_eq!(uris, ["b://a", "b://b", "b://d"]);
    }

    #[test]
    fn a_snippet_shows_the_word_in_its_original_case() {
        let text = format!("{} Der \u{130}lk \u{c4}RGER\nwar\x1b[31m da {}", "vor ".repeat(100), "nach ".repeat(100));
        let shown = snippet(&text, &folded(&text), "\u{e4}rger").unwrap();
        assert!(shown.contains("\u{130}lk \u{c4}RGER war[31m da"), "{shown}");
        assert!(shown.starts_with('\u{2026}') && shown.ends_with('\u{2026}'), "{shown}");
        assert!(shown.chars().count() <= SNIPPET_CHARS + 2, "{shown}");
        assert_eq!(snippet("a b", "a b", "c"), None);
        assert_eq!(snippet("A b", "a b", "b").unwrap(), "A b");
    }

    #[test]
    fn resources_that_are_not_text_are_not_read() {
        let with = |mime: Option<&str>, size| Resource {
            mime_type: mime.map(str::to_owned),
            size,
            ..resource("b://x", "x", None, None)
        };
        assert!(is_readable(&with(None, None)) && is_readable(&with(Some("text/plain"), Some(1 << 20))));
        assert!(!is_readable(&with(Some("Image/PNG"), None)) && !is_readable(&with(None, Some((1 << 20) + 1))));
    }
}
