//! Feeds: RSS, Atom and JSON Feed as an overview, and each item as a separate text.

mod fields;
mod json_feed;
mod names;
mod reader;
mod text;
mod xml;

use std::collections::HashMap;
use std::fmt::Write as _;
use std::hash::Hasher;
use std::time::Duration;

use belljar_guest::{Error, Result};
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
    /// Why items may be missing.
    notice: Option<&'static str>,
}

/// One item.
#[derive(Debug, Clone, PartialEq)]
pub(crate) struct Item {
    /// A stable ID: a hash of the item's own ID, or else of its link and title.
    pub(crate) id: String,
    pub(crate) title: String,
    /// The time of the last change, in RFC 3339.
    pub(crate) date: Option<String>,
    /// The time of the publication, if it is another one.
    published: Option<String>,
    link: Option<String>,
    authors: Vec<String>,
    categories: Vec<String>,
    enclosures: Vec<String>,
    summary: Option<FeedText>,
    content: Option<FeedText>,
}

/// A text with its format.
#[derive(Debug, Clone, PartialEq)]
struct FeedText {
    text: String,
    is_html: bool,
    /// The base of its links, if the feed declares one.
    base: Option<Box<Url>>,
}

/// True if a text looks like a feed. Used when the MIME type is only XML or JSON.
pub(crate) fn is_feed(text: &str) -> bool {
    let text = text.trim_start();
    if text.starts_with('{') {
        let head = text.get(..text.floor_char_boundary(2048)).unwrap_or(text);
        return head.contains("jsonfeed.org/version/") || head.contains("jsonfeed.org\\/version\\/");
    }
    text.starts_with('<') && xml::root(text).is_some_and(|root| is_root(&root))
}

/// True for the local name of the first element of a feed.
fn is_root(name: &str) -> bool {
    matches!(name, "rss" | "feed" | "rdf")
}

/// Parses a feed that came from `url`.
pub(crate) fn parse(text: &str, url: &Url) -> Result<Feed> {
    let text = text.trim_start();
    let (feed, items, notice) = if text.starts_with('{') {
        let (feed, items) = json_feed::read(text, url).ok_or_else(|| unexpected("JSON of another kind"))?;
        (feed, items, None)
    } else {
        let document = reader::read(text, url);
        let mut items = document.items;
        if document.is_cut && document.feed.is_empty() && items.last().is_some_and(fields::Fields::is_empty) {
            items.pop();
        }
        let is_known = is_root(&document.root) || document.root == "channel" || !items.is_empty();
        if !is_known || document.root == "html" || (document.is_cut && items.is_empty() && document.feed.is_empty()) {
            return Err(other(&document.root, document.is_cut, text, url));
        }
        let notice = if document.is_full {
            Some("The feed has more items than are read.")
        } else {
            document.is_cut.then_some("The answer ends in the middle of the feed: later items are missing.")
        };
        (document.feed, items, notice)
    };
    let mut known = HashMap::new();
    let mut items: Vec<(Option<i64>, Item)> = items.into_iter().map(|fields| item(fields, url, &mut known)).collect();
    // A stable sort: most feeds are sorted already. Items without a date keep their order among themselves.
    if items.iter().all(|(time, _)| time.is_some()) {
        items.sort_by_key(|(time, _)| std::cmp::Reverse(*time));
    }
    let link = feed.link.or(feed.permalink).or(feed.other_link).filter(|link| Url::parse(link).is_ok());
    Ok(Feed {
        title: feed.title.map(title_of).filter(|title| !title.is_empty()),
        description: feed.summary.and_then(|text| text.plain(usize::MAX)),
        link,
        lifetime: feed.lifetime.map(|minutes| Duration::from_secs(u64::from(minutes) * 60)).filter(|t| !t.is_zero()),
        items: items.into_iter().map(|(_, item)| item).collect(),
        notice,
    })
}

fn unexpected(found: &str) -> Error {
    Error::failed(format_args!("the answer is not a feed, but {found}: expected RSS, Atom or JSON Feed"))
}

/// The error for an answer that is no feed. Names the feed of a page.
fn other(root: &str, is_cut: bool, text: &str, url: &Url) -> Error {
    match root {
        "" => unexpected("text without elements"),
        "html" => match page::feed_of(text, url) {
            Some(feed) => unexpected(&format!("a page, whose feed is \"{feed}\" (set the entry to this URL)")),
            None => unexpected("a page that names no feed"),
        },
        _ if is_cut => unexpected(&format!("a \"{root}\" that ends before its first item")),
        _ => {
            let root: String = root.chars().take(40).collect();
            unexpected(&format!("XML whose first element is \"{root}\""))
        }
    }
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
        if let Some(notice) = self.notice {
            let _ = write!(text, "\n{notice}\n");
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
        let facts: [(&str, Vec<String>); 6] = [
            ("date", self.date.iter().cloned().collect()),
            ("published", self.published.iter().cloned().collect()),
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
        let own = self.link.as_deref().and_then(|link| url.join(link).ok());
        let base = own.as_ref().unwrap_or(url);
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
        if self.is_html {
            page::convert(&self.text, self.base.as_deref().unwrap_or(base))
        } else {
            Ok(format!("{}\n", self.text.trim()))
        }
    }

    /// At most `length` characters, on one line.
    fn plain(&self, length: usize) -> Option<String> {
        let html = self.text.get(..self.text.floor_char_boundary(SUMMARY_SOURCE)).unwrap_or(&self.text);
        let line = if self.is_html { page::plain(html).ok()? } else { page::one_line(&self.text) };
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

/// The item of these fields, and the time by which it is sorted. `known` has the IDs of earlier items, and for each item that is
/// equal to another in all fields the last number that such an item got.
fn item(fields: fields::Fields, url: &Url, known: &mut HashMap<u64, u64>) -> (Option<i64>, Item) {
    let time = |text: &Option<String>| text.as_deref().and_then(date::parse);
    let (published, updated) = (time(&fields.published), time(&fields.updated));
    let created = time(&fields.created);
    let when = published.or(updated).or(created);
    let shown = updated.or(published).or(created);
    let is_web = |link: &String| url.join(link).is_ok_and(|url| matches!(url.scheme(), "http" | "https"));
    let link = [fields.link, fields.permalink, fields.other_link].into_iter().flatten().find(is_web);
    let mut enclosures: Vec<String> = Vec::new();
    for enclosure in fields.enclosures {
        if !enclosures.contains(&enclosure) && !enclosure.starts_with("javascript:") {
            enclosures.push(enclosure);
        }
    }
    let title = fields.title.map(title_of).filter(|title| !title.is_empty());
    let mut item = Item {
        id: String::new(),
        title: String::new(),
        date: shown.and_then(date::rfc3339),
        published: published.filter(|published| Some(*published) != shown).and_then(date::rfc3339),
        authors: fields.authors,
        categories: fields.categories,
        link,
        enclosures,
        summary: fields.summary.filter(|summary| !summary.text.is_empty()),
        content: fields.content,
    };
    // The item's own ID, or else its title and link. For a duplicate ID, the other fields are added, and
    // a number to those that are equal in all fields.
    let (own, name) = (fields.id.as_deref().unwrap_or_default(), title.as_deref().unwrap_or_default());
    let place = item.link.as_deref().unwrap_or_default();
    let date = item.date.as_deref().unwrap_or_default();
    let [content, summary] = [&item.content, &item.summary].map(|text| text.as_ref().map_or("", |text| &text.text));
    let enclosure = item.enclosures.first().map_or("", String::as_str);
    let first = if own.is_empty() { hash(&["", name, place]) } else { hash(&[own]) };
    let mut id = first;
    if known.contains_key(&id) {
        id = hash(&[own, name, place, date]);
        if known.contains_key(&id) {
            let equal = hash(&[own, name, place, date, content, summary, enclosure]);
            let mut count = known.get(&equal).copied().unwrap_or_default();
            while known.contains_key(&id) {
                count += 1;
                id = hash(&[own, name, place, date, content, summary, enclosure, &count.to_string()]);
            }
            known.insert(equal, count);
        }
    }
    known.entry(id).or_default();
    item.id = format!("{id:016x}");
    item.title = title.or_else(|| item.summary()).unwrap_or_else(|| "Untitled".to_owned());
    (when, item)
}

/// A title as text on one line.
fn title_of(title: FeedText) -> String {
    match title.is_html.then(|| page::plain(&title.text)) {
        Some(Ok(plain)) => plain,
        _ => page::one_line(&title.text),
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
