//! JSON APIs, feeds and pages over HTTP as resources, as the operator configured them.
//!
//! This module implements the provider. It is the only module that knows resources, references and the list. `config` and
//! `address` define the allowed requests, and `http` sends them. `present` converts answers to contents with `json`, `feed`
//! and `page`. `revision` detects changes. `tools` gives models the same answers.

mod address;
mod charset;
mod config;
mod date;
mod feed;
mod fresh;
mod http;
mod json;
mod page;
mod present;
mod revision;
mod tools;

use std::time::Duration;

use belljar_guest::{
    Annotations, Argument, Completion, Error, Info, Page, Provider, Reading, Resource, Result, Revisions, Suggestions,
    Template, reference,
};
use url::Url;

use address::{ITEMS, Place};
use config::{Entries, Entry, Kind};
use http::{Method, Request, Upstream};
use revision::RevisionRequest;

/// The provider.
#[derive(Debug)]
pub struct Web {
    entries: Entries,
    upstream: Box<dyn Upstream>,
}

/// Entries per page of the list. A page may have more, because the items of a feed are never split.
const PAGE: usize = 1000;

/// The time for all feeds whose items are listed, together. The host's default limit for the lists of all mounts is three
/// seconds. A feed that takes longer than this is listed without its items.
/// An hour in unit tests, which must not depend on the speed of the machine.
const LISTING: Duration = Duration::from_millis(if cfg!(test) { 3_600_000 } else { 1000 });

/// The default `User-Agent` header. Some APIs refuse requests without one.
const USER_AGENT: &str = concat!("belljar-web/", env!("CARGO_PKG_VERSION"));

/// The most characters of an error that is shown in a description.
const REASON: usize = 400;

impl Provider for Web {
    fn open() -> Result<Self> {
        let settings = std::env::var("WEB").ok();
        Ok(Web { entries: config::parse(settings.as_deref())?, upstream: http::upstream() })
    }

    fn describe() -> Info {
        let title = std::env::var("TITLE").unwrap_or_else(|_| "Web".to_owned());
        Info::new(title).version(env!("CARGO_PKG_VERSION")).description("JSON APIs, feeds and pages over HTTP")
    }

    fn list_resources(&self, cursor: Option<&str>) -> Result<Page> {
        let mut rest = self.entries.range(cursor.unwrap_or_default().to_owned()..);
        let (mut entries, mut feeds, mut size) = (Vec::new(), Vec::new(), 0);
        let next = loop {
            let Some((name, entry)) = rest.next() else { break None };
            let has_items = entry.as_ref().is_ok_and(|entry| entry.items);
            if size >= PAGE || (has_items && feeds.len() == http::AT_ONCE) {
                break Some(name);
            }
            size += 1;
            if let (true, Ok(entry)) = (has_items, entry) {
                feeds.extend(entry.address.fixed().map(|url| request(entry, Method::Get, url.clone())));
                size += feed::SHOWN;
            }
            entries.push((name, entry));
        };
        let mut answers = http::fetch(self.upstream.as_ref(), feeds, Some(LISTING)).into_iter();
        let mut resources = Vec::new();
        for (name, entry) in entries {
            match entry {
                Err(why) => resources.push(unusable(name, why)),
                Ok(entry) if entry.address.is_template() => {}
                Ok(entry) if entry.items => {
                    let feed = answers.next().ok_or(Error::NotFound).and_then(|answer| answer);
                    listed_feed(name, entry, feed.and_then(|answer| present::feed(&answer)), &mut resources);
                }
                Ok(entry) => resources.push(listed(name, entry)),
            }
        }
        let page = Page::new(resources);
        Ok(match next {
            Some(name) => page.next_cursor(name),
            None => page,
        })
    }

    fn list_templates(&self) -> Result<Vec<Template>> {
        Ok(self
            .usable()
            .filter(|(_, entry)| entry.address.is_template())
            .map(|(name, entry)| template(name, entry))
            .collect())
    }

    fn read(&self, reference: &str) -> Result<Reading> {
        let (entry, place) = self.find(reference)?;
        let request = request(entry, Method::Get, place.url.clone());
        let answer = http::fetch(self.upstream.as_ref(), vec![request], None).pop().ok_or(Error::NotFound)??;
        present::reading(entry, &place, reference, answer)
    }
}

impl Completion for Web {
    fn complete(&self, template: &str, argument: &Argument, _resolved: &[Argument]) -> Result<Suggestions> {
        let mut same = self.usable().filter(|(name, entry)| entry.address.shown_as(name) == template);
        let entry = same.next().map(|(_, entry)| entry);
        match entry.filter(|entry| entry.address.variables().any(|name| name == argument.name)) {
            Some(entry) => {
                let known = entry.values.get(&argument.name).into_iter().flatten();
                Ok(Suggestions::starting_with(&argument.value, known))
            }
            None => Err(Error::invalid(format_args!("no variable \"{}\" in \"{template}\"", argument.name))),
        }
    }
}

impl Revisions for Web {
    fn catalog_revision(&self) -> Result<String> {
        // The configuration, and the feeds whose items are listed.
        let mut parts = vec![format!("{:?}", self.entries)];
        let feeds = self.entries.values().flatten().filter(|entry| entry.items);
        let wanted: Vec<RevisionRequest<'_>> = feeds
            .filter_map(|entry| {
                let url = entry.address.fixed()?.clone();
                Some(RevisionRequest { entry, place: Place { url, item: None } })
            })
            .collect();
        for revision in revision::fetch_revisions(self.upstream.as_ref(), &wanted, Some(LISTING)) {
            parts.push(revision.unwrap_or_else(|why| why.to_string()));
        }
        let parts: Vec<&str> = parts.iter().map(String::as_str).collect();
        Ok(format!("{:016x}", feed::hash(&parts)))
    }

    fn resource_revision(&self, reference: &str) -> Result<String> {
        self.resource_revisions(&[reference.to_owned()]).pop().unwrap_or(Err(Error::NotFound))
    }

    fn resource_revisions(&self, references: &[String]) -> Vec<Result<String>> {
        let found: Vec<Result<(&Entry, Place)>> = references.iter().map(|reference| self.find(reference)).collect();
        let usable = found.iter().flatten().map(|(entry, place)| RevisionRequest { entry, place: place.clone() });
        let wanted: Vec<RevisionRequest<'_>> = usable.collect();
        let mut revisions = revision::fetch_revisions(self.upstream.as_ref(), &wanted, None).into_iter();
        let mut next = || revisions.next().unwrap_or(Err(Error::NotFound));
        found.into_iter().map(|found| found.and_then(|_| next())).collect()
    }
}

impl Web {
    /// The entries that can be used, with their names.
    fn usable(&self) -> impl Iterator<Item = (&String, &Entry)> {
        self.entries.iter().filter_map(|(name, entry)| Some((name, entry.as_ref().ok()?)))
    }

    /// The entry and the place that a reference names.
    fn find(&self, reference: &str) -> Result<(&Entry, Place)> {
        let (path, query) = reference::split(reference);
        let (name, below) = path.split_once('/').map_or((path, None), |(name, below)| (name, Some(below)));
        let entry = self.entries.get(&reference::decode(name)?).ok_or(Error::NotFound)?;
        let entry = entry.as_ref().map_err(|why| Error::failed(unusable_words(name, why)))?;
        let may_have_items = entry.kind == Some(Kind::Feed);
        Ok((entry, entry.address.place(below, query, may_have_items)?))
    }
}

/// The request for a URL of an entry.
fn request(entry: &Entry, method: Method, url: Url) -> Request {
    let accept = match entry.kind {
        Some(Kind::Json) => "application/json, */*;q=0.5",
        Some(Kind::Feed) => "application/atom+xml, application/rss+xml, application/feed+json, */*;q=0.5",
        Some(Kind::Page) => "text/html, application/xhtml+xml, */*;q=0.5",
        Some(Kind::Raw) | None => "*/*",
    };
    let own = [("accept", accept), ("accept-encoding", "identity"), ("user-agent", USER_AGENT)];
    let given = |name: &str| entry.headers.iter().any(|(known, _)| known == name);
    let own = own.into_iter().filter(|(name, _)| !given(name)).map(|(name, value)| (name.to_owned(), value.to_owned()));
    Request { method, url, headers: own.chain(entry.headers.iter().cloned()).collect() }
}

/// The MIME type of an entry, if it is known without a request.
fn media(entry: &Entry) -> Option<&'static str> {
    match entry.kind {
        // `select` may give a string, which reads as plain text.
        Some(Kind::Json) if entry.select.is_none() => Some(json::MEDIA),
        Some(Kind::Feed | Kind::Page) => Some(page::MEDIA),
        Some(Kind::Json | Kind::Raw) | None => None,
    }
}

fn listed(name: &str, entry: &Entry) -> Resource {
    let mut resource = Resource::new(name);
    resource.title = entry.title.clone();
    resource.description = entry.description.clone();
    resource.mime_type = media(entry).map(str::to_owned);
    resource
}

fn template(name: &str, entry: &Entry) -> Template {
    let mut template = Template::new(entry.address.shown_as(name)).name(name);
    template.title = entry.title.clone();
    template.description = entry.description.clone();
    template.mime_type = media(entry).map(str::to_owned);
    template
}

/// Adds a feed and its items to the list, or the feed with the reason why its items are missing.
fn listed_feed(name: &str, entry: &Entry, feed: Result<feed::Feed>, into: &mut Vec<Resource>) {
    let mut resource = listed(name, entry);
    let feed = match feed {
        Ok(feed) => feed,
        Err(why) => {
            let why: String = why.to_string().chars().take(REASON).collect();
            let own = entry.description.iter().map(|own| format!("{own} ")).collect::<String>();
            into.push(resource.description(format!("{own}(Its items are not listed: {why})")));
            return;
        }
    };
    resource.title = resource.title.or_else(|| feed.title.clone());
    if let Some(newest) = feed.items.iter().filter_map(|item| item.date.as_ref()).max() {
        resource = resource.annotations(Annotations::new().last_modified(newest));
    }
    into.push(resource);
    for item in feed.items.iter().take(feed::SHOWN) {
        let mut resource = Resource::new(format!("{name}/{ITEMS}/{}", item.id))
            .name(&item.id)
            .title(&item.title)
            .mime_type(page::MEDIA);
        resource.annotations = item.date.as_ref().map(|date| Annotations::new().last_modified(date));
        into.push(resource);
    }
}

/// The list's entry for a broken entry of the configuration. It is listed because its description gives the reason.
fn unusable(name: &str, why: &str) -> Resource {
    Resource::new(reference::encode_segment(name)).name(name).description(unusable_words(name, why))
}

fn unusable_words(name: &str, why: &str) -> String {
    let why: String = why.chars().take(REASON).collect();
    format!("The entry \"{name}\" of WEB cannot be used: {why}")
}

belljar_guest::export!(Web: Completion, Revisions, Tools);
belljar_guest::needs!("../needs.toml");

#[doc(hidden)]
pub mod fuzzing;

#[cfg(test)]
mod tests;
