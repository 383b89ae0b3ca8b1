//! Converts HTML to Markdown: the main text of a page, with absolute links, without navigation, scripts and styles.

use std::rc::Rc;

use belljar_guest::{Error, Result};
use htmd::options::{BulletListMarker, HrStyle, Options};
use htmd::{HtmlToMarkdown, Node};
use markup5ever_rcdom::NodeData;
use url::Url;

/// The MIME type of Markdown.
pub(crate) const MEDIA: &str = "text/markdown";

/// The deepest nesting of elements. The conversion is recursive and the stack is small. Real pages stay below 50.
const MAX_DEPTH: usize = 150;

/// Elements without readable text.
const NEVER: [&str; 27] = [
    "applet", "audio", "base", "button", "canvas", "datalist", "dialog", "embed", "frame", "frameset", "head",
    "iframe", "input", "link", "map", "math", "meta", "noscript", "object", "script", "select", "style", "svg",
    "template", "textarea", "title", "video",
];

/// Elements around the main text of a page.
const AROUND: [&str; 5] = ["nav", "footer", "aside", "menu", "search"];

/// ARIA roles of elements around the main text.
const ROLES: [&str; 6] = ["navigation", "banner", "contentinfo", "complementary", "search", "dialog"];

/// A page.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(crate) struct Page {
    pub(crate) title: Option<String>,
    /// The main text, in Markdown.
    pub(crate) text: String,
}

/// Converts a whole page from `url`.
pub(crate) fn read(html: &str, url: &Url) -> Result<Page> {
    let (converter, tree) = parse(html)?;
    let title = find(&tree, |name, _| name == "title").map(|node| one_line(&text_of(&node)));
    let base = find(&tree, |name, _| name == "base").and_then(|node| attribute(&node, "href"));
    let base = base.and_then(|href| url.join(&href).ok()).unwrap_or_else(|| url.clone());
    let main = main_of(&tree).unwrap_or_else(|| tree.clone());
    tidy(&main, &base, true);
    let text = finish(&converter, &main);
    let title = title.filter(|title| !title.is_empty());
    Ok(Page { title, text })
}

/// Converts all of a piece of HTML. Links are relative to `base`.
pub(crate) fn convert(html: &str, base: &Url) -> Result<String> {
    let (converter, tree) = parse(html)?;
    tidy(&tree, base, false);
    Ok(finish(&converter, &tree))
}

/// The URL of the feed that a page from `url` names.
pub(crate) fn feed_of(html: &str, url: &Url) -> Option<Url> {
    let (_, tree) = parse(html).ok()?;
    let is_feed = |name: &str, node: &Rc<Node>| {
        let has = |key: &str, parts: &[&str]| {
            attribute(node, key).is_some_and(|value| parts.iter().any(|part| value.to_ascii_lowercase().contains(part)))
        };
        name == "link" && has("rel", &["alternate"]) && has("type", &["rss", "atom", "feed+json", "rdf+xml"])
    };
    let href = attribute(&find(&tree, is_feed)?, "href")?;
    url.join(href.trim()).ok()
}

/// The text of a piece of HTML, on one line.
pub(crate) fn plain(html: &str) -> Result<String> {
    let (_, tree) = parse(html)?;
    Ok(one_line(&text_of(&tree)))
}

/// A text on one line.
pub(crate) fn one_line(text: &str) -> String {
    text.split_whitespace().collect::<Vec<_>>().join(" ")
}

/// Text escaped for Markdown.
pub(crate) fn escape(text: &str) -> String {
    let mut escaped = String::with_capacity(text.len());
    for c in text.chars() {
        if matches!(c, '\\' | '`' | '*' | '_' | '[' | ']' | '<' | '>') {
            escaped.push('\\');
        }
        escaped.push(c);
    }
    escaped
}

fn parse(html: &str) -> Result<(HtmlToMarkdown, Rc<Node>)> {
    let options = Options {
        bullet_list_marker: BulletListMarker::Dash,
        hr_style: HrStyle::Dashes,
        ul_bullet_spacing: 1,
        ol_number_spacing: 1,
        ..Options::default()
    };
    let converter = HtmlToMarkdown::builder().options(options).build();
    let tree = converter.html_to_tree(html).map_err(Error::failed)?;
    Ok((converter, tree))
}

fn finish(converter: &HtmlToMarkdown, tree: &Rc<Node>) -> String {
    let text = converter.tree_to_markdown(tree);
    let mut lines = String::with_capacity(text.len() + 1);
    for line in text.trim().lines() {
        lines.push_str(line);
        lines.push('\n');
    }
    lines
}

/// The element that is declared as the main text, if any.
fn main_of(tree: &Rc<Node>) -> Option<Rc<Node>> {
    let is_main = |name: &str, node: &Rc<Node>| name == "main" || attribute(node, "role").is_some_and(|r| r == "main");
    let main = find(tree, is_main).or_else(|| {
        let mut articles = all(tree, |name, _| name == "article");
        // Several articles make the page a list, so none of them is the main text.
        (articles.len() == 1).then(|| articles.pop()).flatten()
    })?;
    (!one_line(&text_of(&main)).is_empty()).then_some(main)
}

/// Removes unreadable elements, makes links absolute, and flattens elements nested too deeply. Not recursive, because the
/// depth is not bounded yet.
fn tidy(root: &Rc<Node>, base: &Url, is_page: bool) {
    let mut waiting = vec![(root.clone(), 0)];
    while let Some((node, depth)) = waiting.pop() {
        if depth >= MAX_DEPTH {
            let text = text_of(&node);
            let flat = Node::new(NodeData::Text { contents: std::cell::RefCell::new(text.into()) });
            *node.children.borrow_mut() = vec![flat];
            continue;
        }
        node.children.borrow_mut().retain(|child| is_for_reading(child, is_page));
        for child in node.children.borrow().iter() {
            absolute(child, base);
            waiting.push((child.clone(), depth + 1));
        }
    }
}

fn is_for_reading(node: &Rc<Node>, is_page: bool) -> bool {
    let Some(name) = name(node) else {
        return !matches!(node.data, NodeData::Comment { .. } | NodeData::ProcessingInstruction { .. });
    };
    if NEVER.contains(&name) || attribute(node, "hidden").is_some() {
        return false;
    }
    if name == "img" {
        // A `data:` image is long and carries no text.
        return attribute(node, "src").is_some_and(|src| !src.trim_start().starts_with("data:"));
    }
    let is_hidden = attribute(node, "aria-hidden").is_some_and(|value| value == "true");
    let surrounds =
        AROUND.contains(&name) || attribute(node, "role").is_some_and(|role| ROLES.contains(&role.as_str()));
    !(is_page && (is_hidden || surrounds))
}

/// Makes the link of an element absolute. Removes links with other schemes than those of the web.
fn absolute(node: &Rc<Node>, base: &Url) {
    let NodeData::Element { attrs, .. } = &node.data else { return };
    let key = match name(node) {
        Some("a") => "href",
        Some("img") => "src",
        _ => return,
    };
    attrs.borrow_mut().retain_mut(|attribute| {
        if &*attribute.name.local != key {
            return true;
        }
        match base.join(attribute.value.trim()) {
            Ok(url) if matches!(url.scheme(), "http" | "https" | "mailto" | "ftp") => {
                attribute.value = url.as_str().into();
                true
            }
            _ => false,
        }
    });
}

fn name(node: &Rc<Node>) -> Option<&str> {
    match &node.data {
        NodeData::Element { name, .. } => Some(&name.local),
        _ => None,
    }
}

fn attribute(node: &Rc<Node>, name: &str) -> Option<String> {
    let NodeData::Element { attrs, .. } = &node.data else { return None };
    attrs.borrow().iter().find(|attribute| &*attribute.name.local == name).map(|attribute| attribute.value.to_string())
}

fn find(root: &Rc<Node>, wanted: impl Fn(&str, &Rc<Node>) -> bool) -> Option<Rc<Node>> {
    walk(root).find(|node| name(node).is_some_and(|name| wanted(name, node)))
}

fn all(root: &Rc<Node>, wanted: impl Fn(&str, &Rc<Node>) -> bool) -> Vec<Rc<Node>> {
    walk(root).filter(|node| name(node).is_some_and(|name| wanted(name, node))).collect()
}

/// All text below a node, except scripts and styles.
fn text_of(root: &Rc<Node>) -> String {
    let mut text = String::new();
    for node in walk(root) {
        if let NodeData::Text { contents } = &node.data {
            text.push_str(&contents.borrow());
        } else if name(&node).is_some_and(|name| matches!(name, "br" | "p" | "div" | "li" | "tr" | "td" | "th")) {
            text.push(' ');
        }
    }
    text
}

/// All nodes in document order, except those within scripts and styles.
fn walk(root: &Rc<Node>) -> impl Iterator<Item = Rc<Node>> {
    let mut waiting = vec![root.clone()];
    std::iter::from_fn(move || {
        let node = waiting.pop()?;
        if !matches!(name(&node), Some("script" | "style" | "template" | "noscript")) {
            waiting.extend(node.children.borrow().iter().rev().cloned());
        }
        Some(node)
    })
}
