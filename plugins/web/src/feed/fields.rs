//! The fields of a feed or an item, as its elements give them. Decides which of several elements counts.

use url::Url;

use super::FeedText;
use super::reader::{is_page, resolved};

/// The fields.
#[derive(Debug, Default)]
pub(super) struct Fields {
    pub(super) title: Option<FeedText>,
    /// The depth of the title: a title that is nested less deeply takes its place.
    pub(super) title_depth: Option<usize>,
    /// The depth after which no title counts.
    pub(super) final_depth: Option<usize>,
    pub(super) link: Option<String>,
    /// The link in an ID, which counts if there is no other.
    pub(super) permalink: Option<String>,
    /// Links to something else, which count if there is no other.
    pub(super) other_link: Option<String>,
    pub(super) id: Option<String>,
    pub(super) published: Option<String>,
    pub(super) updated: Option<String>,
    pub(super) created: Option<String>,
    pub(super) summary: Option<FeedText>,
    pub(super) summary_depth: Option<usize>,
    pub(super) content: Option<FeedText>,
    /// True if the content was declared as such, and is not a second summary.
    pub(super) is_declared: bool,
    /// True after the start of a content.
    pub(super) has_content: bool,
    pub(super) authors: Vec<String>,
    pub(super) categories: Vec<String>,
    pub(super) enclosures: Vec<String>,
    /// In minutes.
    pub(super) lifetime: Option<u32>,
}

/// A person.
#[derive(Debug, Default)]
pub(super) struct Person {
    pub(super) name: String,
    pub(super) email: String,
}

impl Person {
    /// The person as text. `own` is the text of the element itself.
    pub(super) fn shown(self, own: &str) -> String {
        match (self.name.as_str(), self.email.as_str()) {
            ("", "") => own.split_whitespace().collect::<Vec<_>>().join(" "),
            (name, "") => name.to_owned(),
            ("", email) => email.to_owned(),
            (name, email) => format!("{name} ({email})"),
        }
    }
}

impl Fields {
    /// True if no element gave anything.
    pub(super) fn is_empty(&self) -> bool {
        self.title.is_none()
            && self.link.is_none()
            && self.permalink.is_none()
            && self.id.is_none()
            && self.summary.is_none()
            && self.content.is_none()
            && self.enclosures.is_empty()
    }

    /// Of several titles, the one nested least counts, and of these the first. Titles of media count if there is no other.
    pub(super) fn add_title(&mut self, title: FeedText, depth: usize, is_media: bool) {
        if self.final_depth.is_some_and(|final_depth| final_depth <= depth) {
            return;
        }
        let is_empty = title.text.is_empty();
        if !is_empty && self.title_depth.is_none_or(|known| depth <= known) {
            self.title = Some(title);
            self.title_depth = Some(depth);
        }
        if !is_empty && !is_media {
            self.final_depth = Some(depth);
        }
    }

    /// A link of an element with `rel` and `type`. The last one to a page counts.
    pub(super) fn add_link(&mut self, href: String, rel: &str, kind: Option<&str>) {
        match rel.to_ascii_lowercase().as_str() {
            "alternate" if is_page(kind) => self.link = Some(href),
            "enclosure" => self.enclosures.push(href),
            "self" | "hub" | "next" | "prev" | "previous" | "first" | "last" | "edit" | "replies" | "license" => {}
            "alternate" => self.other_link = Some(href),
            _ => self.other_link = self.other_link.take().or(Some(href)),
        }
    }

    pub(super) fn add_id(&mut self, text: &str, is_permalink: bool, base: &Url) {
        if text.is_empty() {
            return;
        }
        // Many IDs are declared as links by default, and are none.
        let begins = |start: &str| text.get(..start.len()).is_some_and(|begin| begin.eq_ignore_ascii_case(start));
        if is_permalink && (begins("http://") || begins("https://") || begins("/")) {
            self.permalink = Some(resolved(base, text));
        }
        self.id = Some(text.to_owned());
    }

    /// Of several summaries, the last of those nested least counts.
    pub(super) fn add_summary(&mut self, summary: FeedText, depth: usize) {
        if self.summary_depth.is_none_or(|known| depth <= known) {
            self.summary = Some(summary);
            self.summary_depth = Some(depth);
        }
    }

    /// The first declared content counts, or else the second summary.
    pub(super) fn add_content(&mut self, content: FeedText, is_promoted: bool) {
        if content.text.is_empty() || (self.is_declared && !is_promoted) {
            return;
        }
        if self.content.is_none() || !is_promoted {
            self.content = Some(content);
            self.is_declared = !is_promoted;
        }
    }

    pub(super) fn add_author(&mut self, author: String) {
        if !author.is_empty() && !self.authors.contains(&author) {
            self.authors.push(author);
        }
    }

    pub(super) fn add_category(&mut self, term: Option<&str>, label: Option<&str>) {
        let term = term.map(str::trim).filter(|term| !term.is_empty());
        let category = match (term, label) {
            (Some(term), Some(label)) if term != label && !term.contains("://") => format!("{label} ({term})"),
            (_, Some(label)) => label.to_owned(),
            (Some(term), None) => term.to_owned(),
            (None, None) => return,
        };
        if !self.categories.contains(&category) {
            self.categories.push(category);
        }
    }
}
