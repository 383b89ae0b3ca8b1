//! Reads RSS 0.9 to 2.0, Atom 0.3 and 1.0, and CDF: which element of any version gives which field.
//!
//! All versions share one vocabulary, because real feeds mix them. Where two elements give the same field, the choice is that
//! of the Python library feedparser, which many programs follow.

use std::borrow::Cow;

use url::Url;

use super::FeedText;
use super::fields::{Fields, Person};
use super::names::known_prefix;
use super::text::{Declared, is_html_type, repaired};
use super::xml::{Token, Tokens};

/// The deepest nesting that is read. Deeper elements are left out; their text is not.
const MAX_DEPTH: usize = 200;

/// The most items of a feed.
const MAX_ITEMS: usize = 20_000;

/// The contents of a document.
#[derive(Debug, Default)]
pub(super) struct Document {
    pub(super) feed: Fields,
    pub(super) items: Vec<Fields>,
    /// The local name of the first element, in lower case.
    pub(super) root: String,
    /// True if the document ends too early.
    pub(super) is_cut: bool,
    /// True if the document has more items than are read.
    pub(super) is_full: bool,
}

/// What an element gives.
#[derive(Debug, Clone, Copy, PartialEq)]
enum Role {
    /// Nothing.
    Ignored,
    /// Nothing, and nothing of what is in it: an image, a source, a person who is no author.
    Apart,
    Item,
    Title {
        is_media: bool,
    },
    Link,
    Enclosure,
    Id {
        is_permalink: bool,
    },
    Published,
    Updated,
    Created,
    Summary,
    Content {
        is_promoted: bool,
    },
    Author,
    Name,
    Email,
    Category,
    Keywords,
    Lifetime,
    /// An element of HTML within a text.
    Markup,
}

impl Role {
    /// True if elements below are part of the text.
    fn has_markup(self) -> bool {
        matches!(self, Role::Title { .. } | Role::Summary | Role::Content { .. } | Role::Markup)
    }
}

/// An element whose end has not been read.
#[derive(Debug)]
struct Open<'a> {
    name: &'a str,
    role: Role,
    declared: Declared,
    text: String,
    has_markup: bool,
    /// The base of links, if this element sets it.
    base: Option<Url>,
}

/// Reads a document that came from `url`.
pub(super) fn read(text: &str, url: &Url) -> Document {
    let mut reader = Reader::new(url);
    let mut tokens = Tokens::new(text);
    for token in tokens.by_ref() {
        match token {
            Token::Open { name, attributes, is_empty } => {
                reader.open(name, &attributes);
                if is_empty {
                    reader.close(name);
                }
            }
            Token::Close(name) => reader.close(name),
            Token::Text(text) => reader.text(&text),
        }
    }
    let is_cut = tokens.is_cut || !reader.stack.is_empty();
    while !reader.stack.is_empty() {
        reader.pop();
    }
    Document { is_cut, ..reader.document }
}

struct Reader<'a, 'u> {
    url: &'u Url,
    document: Document,
    stack: Vec<Open<'a>>,
    /// How many open elements are nested too deeply to be on the stack.
    deeper: usize,
    /// How many of the open elements are apart.
    apart: usize,
    in_item: bool,
    is_atom: bool,
    /// Declared prefixes: the depth of the declaration, the prefix, and the prefix under which it is known.
    prefixes: Vec<(usize, &'a str, &'static str)>,
    person: Person,
}

type Attributes<'a> = [(&'a str, Cow<'a, str>)];

/// The attribute of that local name, in any case.
fn attribute<'t>(attributes: &'t Attributes<'_>, name: &str) -> Option<&'t str> {
    attributes.iter().find(|(key, _)| key.eq_ignore_ascii_case(name)).map(|(_, value)| value.as_ref())
}

impl<'a, 'u> Reader<'a, 'u> {
    fn new(url: &'u Url) -> Self {
        Reader {
            url,
            document: Document::default(),
            stack: Vec::new(),
            deeper: 0,
            apart: 0,
            in_item: false,
            is_atom: false,
            prefixes: Vec::new(),
            person: Person::default(),
        }
    }

    /// The fields that elements belong to here.
    fn fields(&mut self) -> &mut Fields {
        match self.document.items.last_mut() {
            Some(item) if self.in_item => item,
            _ => &mut self.document.feed,
        }
    }

    fn base(&self) -> &Url {
        self.stack.iter().rev().find_map(|open| open.base.as_ref()).unwrap_or(self.url)
    }

    fn resolved(&self, link: &str) -> Option<String> {
        let link = link.trim();
        (!link.is_empty()).then(|| resolved(self.base(), link))
    }

    /// The known prefix and the local name of an element.
    fn known_name(&self, name: &'a str) -> (&'a str, String) {
        let (prefix, local) = name.split_once(':').unwrap_or(("", name));
        let declared = self.prefixes.iter().rev().find(|(_, declared, _)| *declared == prefix);
        (declared.map_or(prefix, |(_, _, known)| known), local.to_ascii_lowercase())
    }

    fn open(&mut self, name: &'a str, attributes: &Attributes<'a>) {
        if self.stack.len() >= MAX_DEPTH {
            self.deeper += 1;
            return;
        }
        let depth = self.stack.len();
        for (key, value) in attributes {
            let prefix = if *key == "xmlns" { Some("") } else { key.strip_prefix("xmlns:") };
            if let (Some(prefix), Some(known)) = (prefix, known_prefix(value)) {
                self.prefixes.push((depth, prefix, known));
            }
        }
        let base = attribute(attributes, "xml:base").or_else(|| attribute(attributes, "base"));
        let base = base.and_then(|base| self.base().join(base.trim()).ok());
        let base = base.filter(|base| matches!(base.scheme(), "http" | "https" | "ftp"));
        let (mut role, mut declared) = (Role::Ignored, Declared::default());
        if self.stack.last().is_some_and(|parent| parent.role.has_markup()) {
            role = Role::Markup;
            self.begin_markup(name, attributes);
        } else {
            let (prefix, local) = self.known_name(name);
            if self.document.root.is_empty() {
                self.document.root.clone_from(&local);
                self.is_atom = local == "feed";
            }
            let known = self.role(prefix, &local, attributes);
            if known == Role::Apart || self.apart == 0 {
                role = known;
            }
            if role.has_markup() {
                declared = self.declared(prefix, &local, attributes);
            }
            self.apart += usize::from(role == Role::Apart);
        }
        self.stack.push(Open { name, role, declared, text: String::new(), has_markup: false, base });
        if self.apart == 0 && role != Role::Markup {
            self.begin(role, name, attributes);
        }
    }

    /// The role of an element.
    fn role(&self, prefix: &str, local: &str, attributes: &Attributes<'_>) -> Role {
        match (prefix, local) {
            ("", "item" | "entry") => Role::Item,
            ("", "title") | ("dc", "title") => Role::Title { is_media: false },
            ("media", "title") => Role::Title { is_media: true },
            ("", "link") => Role::Link,
            ("", "guid" | "id") => {
                let is_permalink = attribute(attributes, "ispermalink").unwrap_or("true");
                Role::Id { is_permalink: is_permalink.trim().eq_ignore_ascii_case("true") }
            }
            ("", "published" | "issued" | "pubdate") | ("dcterms", "issued") => Role::Published,
            ("", "updated" | "modified" | "lastbuilddate") | ("dc", "date") | ("dcterms", "modified") => Role::Updated,
            ("", "created") | ("dcterms", "created") => Role::Created,
            ("", "description" | "summary" | "abstract") | ("dc" | "media", "description") | ("itunes", "summary") => {
                self.summary_role()
            }
            ("", "subtitle" | "tagline") if !self.in_item => Role::Summary,
            ("", "content" | "body" | "fullitem") | ("xhtml", "body") | ("content", "encoded") => {
                Role::Content { is_promoted: false }
            }
            ("", "author" | "managingeditor") | ("dc", "creator" | "author") | ("itunes", "author") => Role::Author,
            ("" | "itunes", "name") => Role::Name,
            ("" | "itunes", "email") => Role::Email,
            ("", "category" | "keywords") | ("dc", "subject") | ("media" | "itunes", "category") => Role::Category,
            ("itunes" | "media", "keywords") | ("", "tags") => Role::Keywords,
            ("", "ttl") => Role::Lifetime,
            ("", "image" | "textinput" | "source" | "contributor") | ("itunes", "owner") => Role::Apart,
            _ => Role::Ignored,
        }
    }

    /// A second summary of an item is its content, unless it has one.
    fn summary_role(&self) -> Role {
        let item = self.document.items.last().filter(|_| self.in_item);
        match item {
            Some(item) if item.summary.is_some() && !item.has_content => Role::Content { is_promoted: true },
            _ => Role::Summary,
        }
    }

    /// The declared type of a text.
    fn declared(&self, prefix: &str, local: &str, attributes: &Attributes<'_>) -> Declared {
        let default = match (prefix, local) {
            (_, "description" | "encoded" | "fullitem") => "text/html",
            (_, "body") => "application/xhtml+xml",
            _ => "text/plain",
        };
        Declared::new(attribute(attributes, "type").unwrap_or(default), attribute(attributes, "mode"), self.is_atom)
    }

    /// Takes what the start tag of an element says.
    fn begin(&mut self, role: Role, name: &'a str, attributes: &Attributes<'_>) {
        let get = |name: &str| attribute(attributes, name).map(str::trim).filter(|value| !value.is_empty());
        let (prefix, local) = self.known_name(name);
        match role {
            Role::Item if self.document.items.len() >= MAX_ITEMS => {
                self.document.is_full = true;
                self.apart += 1;
                self.change(Role::Apart);
            }
            Role::Item => {
                self.in_item = true;
                self.document.items.push(Fields::default());
                self.fields().id = attribute(attributes, "rdf:about").map(str::to_owned);
                self.begin_cdf(get("href"), get("lastmod"));
            }
            Role::Link => {
                let href = get("url").or_else(|| get("uri")).or_else(|| get("href"));
                if let Some(href) = href.and_then(|href| self.resolved(href)) {
                    self.fields().add_link(href, get("rel").unwrap_or("alternate"), get("type"));
                    self.change(Role::Ignored);
                } else if get("rel").is_some_and(|rel| !rel.eq_ignore_ascii_case("alternate")) {
                    let is_enclosure = get("rel").is_some_and(|rel| rel.eq_ignore_ascii_case("enclosure"));
                    self.change(if is_enclosure { Role::Enclosure } else { Role::Ignored });
                }
            }
            Role::Content { .. } => {
                self.fields().has_content = true;
                if let Some(source) = get("src").and_then(|source| self.resolved(source)) {
                    self.fields().enclosures.push(source);
                }
            }
            Role::Author => self.person = Person::default(),
            Role::Category => {
                let term = get("term").or_else(|| get("text").filter(|_| prefix == "itunes"));
                self.fields().add_category(term, get("label"));
            }
            Role::Ignored if matches!((prefix, local.as_str()), ("", "enclosure") | ("media", "content")) => {
                let source = get("url").or_else(|| get("uri")).or_else(|| get("href"));
                if let Some(source) = source.and_then(|source| self.resolved(source)) {
                    self.fields().enclosures.push(source);
                }
            }
            Role::Ignored if prefix.is_empty() && local == "channel" => self.begin_cdf(get("href"), get("lastmod")),
            _ => {}
        }
    }

    /// CDF has link and date as attributes.
    fn begin_cdf(&mut self, href: Option<&str>, changed: Option<&str>) {
        let href = href.and_then(|href| self.resolved(href));
        let fields = self.fields();
        fields.link = href.or(fields.link.take());
        fields.updated = changed.map(str::to_owned).or(fields.updated.take());
    }

    /// Changes the role of the innermost element.
    fn change(&mut self, role: Role) {
        if let Some(open) = self.stack.last_mut() {
            open.role = role;
        }
    }

    /// The innermost element whose text includes its markup.
    fn text_with_markup(&mut self) -> Option<&mut Open<'a>> {
        self.stack.iter_mut().rev().find(|open| open.role != Role::Markup)
    }

    /// Adds a start tag to the text that it is in.
    fn begin_markup(&mut self, name: &str, attributes: &Attributes<'_>) {
        let local = name.rsplit(':').next().unwrap_or(name);
        let Some(open) = self.text_with_markup() else { return };
        if !std::mem::replace(&mut open.has_markup, true) {
            // The text so far was read as text, and is part of markup now.
            open.text = escaped(&open.text).into_owned();
        }
        open.text.push('<');
        open.text.push_str(local);
        for (key, value) in attributes.iter().filter(|(key, _)| !key.starts_with("xmlns")) {
            open.text.push_str(&format!(" {key}=\"{}\"", escaped(value).replace('"', "&quot;")));
        }
        open.text.push('>');
    }

    fn text(&mut self, text: &str) {
        match self.text_with_markup() {
            Some(open) if open.has_markup => open.text.push_str(&escaped(text)),
            Some(open) if open.role != Role::Ignored => open.text.push_str(text),
            _ => {}
        }
    }

    fn close(&mut self, name: &str) {
        if self.deeper > 0 {
            self.deeper -= 1;
            return;
        }
        // An end tag without its start tag is ignored. One whose start tag is further out ends everything in between.
        let Some(at) = self.stack.iter().rposition(|open| open.name == name) else { return };
        while self.stack.len() > at {
            self.pop();
        }
    }

    /// Ends the innermost element, and takes its text.
    fn pop(&mut self) {
        let depth = self.stack.len();
        let Some(open) = self.stack.last() else { return };
        if open.role == Role::Markup {
            let name = open.name.rsplit(':').next().unwrap_or(open.name);
            // Elements of HTML without an end.
            let is_void = matches!(name, "br" | "img" | "hr" | "input" | "wbr" | "source" | "embed" | "col" | "area");
            if let Some(text) = self.text_with_markup().filter(|_| !is_void) {
                text.text.push_str(&format!("</{name}>"));
            }
        }
        let base = self.base().clone();
        let Some(open) = self.stack.pop() else { return };
        while self.prefixes.last().is_some_and(|(declared, _, _)| *declared >= self.stack.len()) {
            self.prefixes.pop();
        }
        match open.role {
            Role::Apart => self.apart = self.apart.saturating_sub(1),
            Role::Item => self.in_item = false,
            _ if self.apart > 0 => {}
            role => self.take(role, open, depth, &base),
        }
    }

    /// Takes the text of an element that has ended.
    fn take(&mut self, role: Role, open: Open<'_>, depth: usize, base: &Url) {
        if role.has_markup() && role != Role::Markup {
            let is_own_base = *base != *self.url;
            let text = open.declared.text(repaired(open.text), open.has_markup);
            let text = FeedText { base: is_own_base.then(|| Box::new(base.clone())), ..text };
            match role {
                Role::Title { is_media } => self.fields().add_title(text, depth, is_media),
                Role::Content { is_promoted } => self.fields().add_content(text, is_promoted),
                _ => self.fields().add_summary(text, depth),
            }
            return;
        }
        let text = repaired(open.text);
        let text = text.trim();
        match role {
            Role::Link if !text.is_empty() => self.fields().link = Some(resolved(base, text)),
            Role::Enclosure if !text.is_empty() => self.fields().enclosures.push(resolved(base, text)),
            Role::Id { is_permalink } => self.fields().add_id(text, is_permalink, base),
            Role::Published => self.fields().published = Some(text.to_owned()),
            Role::Updated => self.fields().updated = Some(text.to_owned()),
            Role::Created => self.fields().created = Some(text.to_owned()),
            Role::Author => {
                let person = std::mem::take(&mut self.person).shown(text);
                self.fields().add_author(person);
            }
            Role::Name => self.person.name = text.to_owned(),
            Role::Email => self.person.email = text.to_owned(),
            Role::Category => self.fields().add_category(Some(text), None),
            Role::Keywords => text.split(',').for_each(|word| self.fields().add_category(Some(word), None)),
            Role::Lifetime => self.fields().lifetime = text.parse().ok(),
            _ => {}
        }
    }
}

/// A link as an absolute URL. One that is absolute already stays as it is written.
pub(super) fn resolved(base: &Url, link: &str) -> String {
    let is_clean = !link.contains(|c: char| c.is_whitespace() || c.is_control() || matches!(c, '<' | '>' | '(' | ')'));
    let scheme = link.split_once("://").map(|(scheme, _)| scheme);
    match base.join(link) {
        Ok(url) if is_clean && scheme == Some(url.scheme()) => link.to_owned(),
        Ok(url) => url.to_string(),
        Err(_) => link.to_owned(),
    }
}

/// Text as XML.
fn escaped(text: &str) -> Cow<'_, str> {
    if !text.contains(['&', '<', '>']) {
        return Cow::Borrowed(text);
    }
    Cow::Owned(text.replace('&', "&amp;").replace('<', "&lt;").replace('>', "&gt;"))
}

/// True if a type of a link is one of pages.
pub(super) fn is_page(kind: Option<&str>) -> bool {
    kind.is_none_or(is_html_type)
}
