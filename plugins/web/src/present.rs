//! From an answer to contents: what kind it is, and what is made of it.

use std::time::Duration;

use belljar_guest::{Body, Contents, Error, Reading, Result, reference};

use crate::address::Place;
use crate::config::{Entry, Kind};
use crate::feed::{self, Feed};
use crate::fresh::Stated;
use crate::http::Answer;
use crate::{charset, json, page};

/// The contents for `reference`, which asked for `place` of `entry` and got `answer`.
pub(crate) fn reading(entry: &Entry, place: &Place, reference: &str, answer: &Answer) -> Result<Reading> {
    let Content { body, media, keep } = content(entry, place, reference, answer)?;
    let mut contents = Contents::text(reference, "");
    contents.body = body;
    contents.mime_type = Some(media);
    let fresh_for = entry.fresh.or(match answer.fresh {
        Stated::For(time) => Some(time),
        Stated::Never => None,
        Stated::Nothing => keep,
    });
    let reading = Reading::from(contents);
    Ok(match fresh_for.filter(|time| !time.is_zero()) {
        Some(time) => reading.fresh_for(time),
        None => reading,
    })
}

struct Content {
    body: Body,
    media: String,
    /// What the content itself says of how long it can be kept.
    keep: Option<Duration>,
}

impl Content {
    fn new(body: Body, media: impl Into<String>) -> Self {
        Content { body, media: media.into(), keep: None }
    }
}

fn content(entry: &Entry, place: &Place, reference: &str, answer: &Answer) -> Result<Content> {
    let content_type = answer.headers.get("content-type");
    let media = media(content_type);
    let kind = kind(entry, &media, answer);
    if let Some(id) = &place.item {
        // An item of what is no feed is nothing.
        if kind != Kind::Feed {
            return Err(Error::NotFound);
        }
        let feed = feed(answer)?;
        let item = feed.items.iter().find(|item| item.id == *id).ok_or(Error::NotFound)?;
        return Ok(Content { keep: feed.keep, ..Content::new(Body::Text(item.text(&answer.url)?), page::MEDIA) });
    }
    match kind {
        Kind::Json => {
            let (body, media) = json::read(&charset::decode(&answer.body, content_type), entry.select.as_deref())?;
            Ok(Content::new(body, media))
        }
        Kind::Feed => {
            let feed = feed(answer)?;
            let (path, query) = reference::split(reference);
            let last = path.rsplit_once('/').map_or(path, |(_, last)| last);
            let query = if query.is_empty() { String::new() } else { format!("?{query}") };
            let digest = feed.digest(&format!("{last}/"), &query);
            Ok(Content { keep: feed.keep, ..Content::new(Body::Text(digest), page::MEDIA) })
        }
        Kind::Page => {
            let page = page::read(&charset::decode(&answer.body, content_type), &answer.url)?;
            let text = match page.title {
                Some(title) if !page.text.starts_with("# ") => format!("# {}\n\n{}", page::escape(&title), page.text),
                _ => page.text,
            };
            Ok(Content::new(Body::Text(text), page::MEDIA))
        }
        Kind::Raw if is_text(&media, &answer.body) => {
            let media = if media.is_empty() { "text/plain".to_owned() } else { media };
            Ok(Content::new(Body::Text(charset::decode(&answer.body, content_type)), media))
        }
        Kind::Raw => {
            let media = if media.is_empty() { "application/octet-stream".to_owned() } else { media };
            Ok(Content::new(Body::Blob(answer.body.clone()), media))
        }
    }
}

/// The feed that an answer holds.
pub(crate) fn feed(answer: &Answer) -> Result<Feed> {
    let text = charset::decode(&answer.body, answer.headers.get("content-type"));
    feed::parse(&text, &answer.url)
}

/// The type without its parameters, in lower case. Empty when there is none.
fn media(content_type: Option<&str>) -> String {
    let media = content_type.unwrap_or_default().split(';').next().unwrap_or_default();
    media.trim().to_ascii_lowercase()
}

/// What an answer is taken for: what the operator said, or else its type, and where that says little, how it begins.
fn kind(entry: &Entry, media: &str, answer: &Answer) -> Kind {
    if let Some(kind) = entry.kind {
        return kind;
    }
    let is_feed = || {
        let head = answer.body.get(..answer.body.len().min(4096)).unwrap_or_default();
        feed::is_one(&charset::decode(head, answer.headers.get("content-type")))
    };
    match media {
        "application/rss+xml" | "application/atom+xml" | "application/rdf+xml" | "application/feed+json" => Kind::Feed,
        "application/json" | "text/json" if is_feed() => Kind::Feed,
        "application/json" | "text/json" => Kind::Json,
        "application/xml" | "text/xml" if is_feed() => Kind::Feed,
        // Both are what servers say of files that they do not know.
        "" | "text/plain" | "application/octet-stream" if is_feed() => Kind::Feed,
        "text/html" | "application/xhtml+xml" => Kind::Page,
        other if other.ends_with("+json") => Kind::Json,
        _ => Kind::Raw,
    }
}

fn is_text(media: &str, body: &[u8]) -> bool {
    if media.starts_with("text/") {
        return true;
    }
    let is_picture = ["image/", "audio/", "video/", "font/"].iter().any(|start| media.starts_with(start));
    if is_picture || matches!(media, "application/pdf" | "application/zip" | "application/gzip") {
        return media == "image/svg+xml";
    }
    // Half of the text formats have a type of `application/`.
    !body.contains(&0) && std::str::from_utf8(body).is_ok()
}
