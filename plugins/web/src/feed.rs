//! Feeds: RSS, Atom and JSON Feed as an overview, and each item as a separate text.

use std::collections::HashSet;
use std::fmt::Write as _;
use std::hash::Hasher;
use std::time::{Duration, UNIX_EPOCH};

use belljar_guest::{Error, Result};
use feed_rs::model::{Entry, FeedType, Text};
use feed_rs::parser::Builder;
use siphasher::sip::SipHasher;
use url::Url;

use crate::address::ITEMS;
use crate::{date, page};

/// The number of items in an overview and in the list: the newest ones.
pub(crate) const SHOWN: usize = 100;

/// The longest summary of an item in the overview, in characters.
const SUMMARY: usize = 300;

/// The bytes of an item's text that are converted for a summary; the summary cuts the rest anyway.
const SUMMARY_SOURCE: usize = 8 * 1024;

/// A feed.
#[derive(Debug, Clone, PartialEq)]
pub(crate) struct Feed {
    pub(crate) title: Option<String>,
    description: Option<String>,
    link: Option<String>,
    /// The lifetime that the feed states for itself.
    pub(crate) lifetime: Option<Duration>,
    /// Newest first.
    pub(crate) items: Vec<Item>,
}

/// One item.
#[derive(Debug, Clone, PartialEq)]
pub(crate) struct Item {
    /// A stable ID: a hash of the item's own ID, or else of its link and title.
    pub(crate) id: String,
    pub(crate) title: String,
    /// In RFC 3339.
    pub(crate) date: Option<String>,
    link: Option<Url>,
    authors: Vec<String>,
    categories: Vec<String>,
    enclosures: Vec<String>,
    summary: Option<FeedText>,
    content: Option<FeedText>,
}

/// A text with its format.
#[derive(Debug, Clone, PartialEq)]
enum FeedText {
    Html(String),
    Plain(String),
}

/// True if a text looks like a feed. Used when the MIME type is only XML or JSON.
pub(crate) fn is_feed(text: &str) -> bool {
    let head: String = text.trim_start().chars().take(2048).collect();
    if head.starts_with('{') {
        return head.contains("https://jsonfeed.org/version/")
            || head.contains("https:\\/\\/jsonfeed.org\\/version\\/");
    }
    head.starts_with('<') && ["<rss", "<feed", "<rdf:RDF"].iter().any(|root| head.contains(root))
}

/// Parses a feed that came from `url`.
pub(crate) fn parse(text: &str, url: &Url) -> Result<Feed> {
    let parser = Builder::new()
        .base_uri(Some(url.as_str()))
        .id_generator(|_, _, _| String::new())
        .timestamp_parser(date::parse)
        .build();
    let parsed = parser.parse(undeclared(text).as_bytes()).map_err(|why| {
        Error::failed(format_args!("the answer is not a feed ({why}): expected RSS, Atom or JSON Feed"))
    })?;
    let kind = parsed.feed_type;
    let mut known = HashSet::new();
    let mut items: Vec<(Option<i64>, Item)> =
        parsed.entries.into_iter().filter_map(|entry| item(entry, &kind, url, &mut known)).collect();
    // A stable sort: most feeds are sorted already. Items without a date keep their order among themselves.
    if items.iter().all(|(time, _)| time.is_some()) {
        items.sort_by_key(|(time, _)| std::cmp::Reverse(*time));
    }
    let link = parsed.links.iter().find(|link| !matches!(link.rel.as_deref(), Some("self" | "hub" | "next" | "via")));
    Ok(Feed {
        title: parsed.title.map(title_of).filter(|title| !title.is_empty()),
        description: parsed.description.and_then(|text| words(text, &kind).plain(usize::MAX)),
        link: link.and_then(|link| url.join(&link.href).ok()).map(|url| url.to_string()),
        lifetime: parsed.ttl.map(|minutes| Duration::from_secs(u64::from(minutes) * 60)).filter(|time| !time.is_zero()),
        items: items.into_iter().map(|(_, item)| item).collect(),
    })
}

impl Feed {
    /// The overview as Markdown. `base` is the prefix of the items' references, relative to the feed.
    pub(crate) fn overview(&self, base: &str, query: &str) -> String {
        let mut text = String::new();
        let _ = writeln!(text, "# {}", page::escape(self.title.as_deref().unwrap_or("Feed")));
        let description = self.description.as_deref().map(page::escape);
        for line in description.into_iter().chain(self.link.as_ref().map(|link| format!("<{link}>"))) {
            let _ = write!(text, "\n{line}\n");
        }
        for item in self.items.iter().take(SHOWN) {
            let _ = write!(text, "\n## {}\n\n", page::escape(&item.title));
            let mut facts: Vec<String> = item.date.iter().map(|date| date.replace('T', " ")).collect();
            facts.extend(item.authors.iter().map(|author| page::escape(author)));
            facts.extend(item.link.as_ref().map(|link| format!("[source]({link})")));
            facts.push(format!("[text]({base}{ITEMS}/{}{query})", item.id));
            let _ = writeln!(text, "{}", facts.join(" · "));
            let words = item.summary.as_ref().or(item.content.as_ref());
            if let Some(summary) = words.and_then(|words| words.plain(SUMMARY)) {
                let _ = write!(text, "\n{}\n", page::escape(&summary));
            }
        }
        match self.items.len() {
            0 => text.push_str("\nThe feed has no items.\n"),
            all if all > SHOWN => {
                let _ = write!(text, "\n{} older items are not shown.\n", all - SHOWN);
            }
            _ => {}
        }
        text
    }
}

impl Item {
    /// The item as Markdown.
    pub(crate) fn text(&self, url: &Url) -> Result<String> {
        let mut text = format!("# {}\n", page::escape(&self.title));
        let facts: [(&str, Vec<String>); 5] = [
            ("date", self.date.iter().cloned().collect()),
            ("by", self.authors.iter().map(|author| page::escape(author)).collect()),
            ("source", self.link.iter().map(|link| format!("<{link}>")).collect()),
            ("about", self.categories.iter().map(|category| page::escape(category)).collect()),
            ("attached", self.enclosures.iter().map(|link| format!("<{link}>")).collect()),
        ];
        let mut separator = "\n";
        for (name, values) in facts {
            if !values.is_empty() {
                let _ = writeln!(text, "{separator}- {name}: {}", values.join(", "));
                separator = "";
            }
        }
        let base = self.link.as_ref().unwrap_or(url);
        if let Some(words) = self.content.as_ref().or(self.summary.as_ref()) {
            let _ = write!(text, "\n{}", words.markdown(base)?);
        }
        Ok(text)
    }

    /// The beginning of the text, on one line.
    pub(crate) fn summary(&self) -> Option<String> {
        self.summary.as_ref().or(self.content.as_ref()).and_then(|words| words.plain(SUMMARY))
    }
}

impl FeedText {
    fn markdown(&self, base: &Url) -> Result<String> {
        match self {
            FeedText::Html(html) => page::convert(html, base),
            FeedText::Plain(text) => Ok(format!("{}\n", text.trim())),
        }
    }

    /// At most `length` characters, on one line.
    fn plain(&self, length: usize) -> Option<String> {
        let line = match self {
            FeedText::Html(html) => {
                page::plain(html.get(..html.floor_char_boundary(SUMMARY_SOURCE)).unwrap_or(html)).ok()?
            }
            FeedText::Plain(text) => page::one_line(text),
        };
        if line.is_empty() {
            return None;
        }
        match line.char_indices().nth(length) {
            Some((end, _)) => {
                let cut = line.get(..end).unwrap_or(&line);
                let cut = cut.rsplit_once(' ').map_or(cut, |(before, _)| before);
                Some(format!("{cut}\u{2026}"))
            }
            None => Some(line),
        }
    }
}

/// The text without its XML declaration: the declared encoding is wrong after decoding to UTF-8.
fn undeclared(text: &str) -> &str {
    let text = text.trim_start();
    match text.strip_prefix("<?xml").and_then(|rest| rest.split_once("?>")) {
        Some((_, rest)) => rest,
        None => text,
    }
}

fn item(entry: Entry, kind: &FeedType, url: &Url, known: &mut HashSet<u64>) -> Option<(Option<i64>, Item)> {
    let when = entry.published.or(entry.updated).map(|time| time.timestamp());
    let shown = entry.updated.or(entry.published).and_then(|time| rfc3339(time.timestamp()));
    let is_enclosure = |rel: Option<&str>| rel == Some("enclosure");
    let link = entry.links.iter().find(|link| matches!(link.rel.as_deref(), None | Some("alternate")));
    let link = link.or(entry.links.iter().find(|link| !is_enclosure(link.rel.as_deref())));
    let link = link.and_then(|link| url.join(&link.href).ok()).filter(|url| matches!(url.scheme(), "http" | "https"));
    let mut enclosures: Vec<String> = entry
        .links
        .iter()
        .filter(|link| is_enclosure(link.rel.as_deref()))
        .filter_map(|link| url.join(&link.href).ok())
        .chain(entry.media.iter().flat_map(|media| &media.content).filter_map(|content| content.url.clone()))
        .map(|url| url.to_string())
        .collect();
    enclosures.dedup();
    let title = entry.title.map(title_of).filter(|title| !title.is_empty());
    let content = entry.content.and_then(|content| {
        let subtype = content.content_type.subty().as_str();
        let body = content.body.filter(|body| !body.trim().is_empty())?;
        Some(if matches!(subtype, "html" | "xhtml") { FeedText::Html(body) } else { FeedText::Plain(body) })
    });
    let summary = entry.summary.filter(|text| !text.content.is_empty()).map(|text| words(text, kind));
    let mut item = Item {
        id: String::new(),
        title: String::new(),
        date: shown,
        authors: entry.authors.into_iter().filter_map(|person| person.name).filter(|name| !name.is_empty()).collect(),
        categories: entry.categories.into_iter().map(|category| category.label.unwrap_or(category.term)).collect(),
        link,
        enclosures,
        summary,
        content,
    };
    // The item's own ID, or else its title and link. For a duplicate ID, title, link and date are added.
    let (own, name) = (entry.id.as_str(), title.as_deref().unwrap_or_default());
    let place = item.link.as_ref().map(Url::as_str).unwrap_or_default();
    let id = if own.is_empty() { hash(&["", name, place]) } else { hash(&[own]) };
    let id = if known.insert(id) {
        id
    } else {
        let id = hash(&[own, name, place, item.date.as_deref().unwrap_or_default()]);
        if !known.insert(id) {
            return None;
        }
        id
    };
    item.id = format!("{id:016x}");
    item.title = title.or_else(|| item.summary()).unwrap_or_else(|| "Untitled".to_owned());
    Some((when, item))
}

/// A title as text on one line. RSS titles are plain text by specification; Atom titles declare their type.
fn title_of(title: Text) -> String {
    let is_html = matches!(title.content_type.subty().as_str(), "html" | "xhtml");
    match is_html.then(|| page::plain(&title.content)) {
        Some(Ok(plain)) => plain,
        _ => page::one_line(&title.content),
    }
}

/// A text of a feed. An RSS description is HTML, unless it has neither `<` nor `&`.
fn words(text: Text, kind: &FeedType) -> FeedText {
    let is_rss = matches!(kind, FeedType::RSS0 | FeedType::RSS1 | FeedType::RSS2);
    let is_html = matches!(text.content_type.subty().as_str(), "html" | "xhtml");
    if (is_html || is_rss) && text.content.contains(['<', '&']) {
        FeedText::Html(text.content)
    } else {
        FeedText::Plain(text.content)
    }
}

/// A hash of texts that stays the same across versions of this provider.
pub(crate) fn hash(parts: &[&str]) -> u64 {
    let mut hasher = SipHasher::new();
    for part in parts {
        hasher.write(part.as_bytes());
        // A separator: the byte 0xff does not occur in UTF-8.
        hasher.write(&[0xff]);
    }
    hasher.finish()
}

fn rfc3339(seconds: i64) -> Option<String> {
    /// The first second of the year 10000.
    const END: u64 = 253_402_300_800;
    let seconds = u64::try_from(seconds).ok().filter(|seconds| *seconds < END)?;
    Some(humantime::format_rfc3339_seconds(UNIX_EPOCH + Duration::from_secs(seconds)).to_string())
}
