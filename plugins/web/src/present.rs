//! Converts an answer to contents, according to its kind.

use std::time::Duration;

use belljar_guest::{Body, Contents, Error, Reading, Result, reference};

use crate::address::Place;
use crate::config::{Entry, Kind};
use crate::feed::{self, Feed};
use crate::fresh::StatedLifetime;
use crate::http::{self, Answer};
use crate::{charset, json, page};

/// Converts `answer` to the reading of `reference`, which names `place` of `entry`.
pub(crate) fn reading(entry: &Entry, place: &Place, reference: &str, answer: Answer) -> Result<Reading> {
    let fresh = answer.fresh;
    let Content { body, media, lifetime } = content(entry, place, reference, answer)?;
    let mut contents = Contents::text(reference, "");
    contents.body = body;
    contents.mime_type = Some(media);
    let fresh_for = entry.fresh.or(match fresh {
        StatedLifetime::For(time) => Some(time),
        StatedLifetime::Never => None,
        StatedLifetime::Nothing => lifetime,
    });
    let reading = Reading::from(contents);
    Ok(match fresh_for.filter(|time| !time.is_zero()) {
        Some(time) => reading.fresh_for(time),
        None => reading,
    })
}

/// The contents of a reading, before they get their reference.
struct Content {
    body: Body,
    media: String,
    /// The lifetime that the content itself states.
    lifetime: Option<Duration>,
}

impl Content {
    fn new(body: Body, media: impl Into<String>) -> Self {
        Content { body, media: media.into(), lifetime: None }
    }
}

fn content(entry: &Entry, place: &Place, reference: &str, answer: Answer) -> Result<Content> {
    let answer = &unpacked(entry, answer);
    let content_type = answer.headers.get("content-type");
    let media = media(content_type);
    let kind = kind(entry, &media, answer);
    if let Some(id) = &place.item {
        // Only feeds have items.
        if kind != Kind::Feed {
            return Err(Error::NotFound);
        }
        let feed = feed(answer)?;
        let item = feed.items.iter().find(|item| item.id == *id).ok_or(Error::NotFound)?;
        return Ok(Content {
            lifetime: feed.lifetime,
            ..Content::new(Body::Text(item.text(&answer.url)?), page::MEDIA)
        });
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
            let overview = feed.overview(&format!("{last}/"), &query);
            Ok(Content { lifetime: feed.lifetime, ..Content::new(Body::Text(overview), page::MEDIA) })
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
            Ok(Content::new(Body::Text(charset::decode(&answer.body, content_type).into_owned()), media))
        }
        Kind::Raw => {
            let media = if media.is_empty() { "application/octet-stream".to_owned() } else { media };
            Ok(Content::new(Body::Blob(answer.body.clone()), media))
        }
    }
}

/// The answer, without the compression of a file that is to be a text: a server may send `feed.xml.gz` as it is.
fn unpacked(entry: &Entry, mut answer: Answer) -> Answer {
    if matches!(entry.kind, Some(Kind::Json | Kind::Feed | Kind::Page))
        && http::is_gzip(&answer.body)
        && let Some(body) = http::gunzip(&answer.body)
    {
        answer.body = body;
    }
    answer
}

/// Parses an answer as a feed.
pub(crate) fn feed(answer: &Answer) -> Result<Feed> {
    let text = charset::decode(&answer.body, answer.headers.get("content-type"));
    feed::parse(&text, &answer.url)
}

/// The MIME type without parameters, in lower case. Empty if there is none.
fn media(content_type: Option<&str>) -> String {
    let media = content_type.unwrap_or_default().split(';').next().unwrap_or_default();
    media.trim().to_ascii_lowercase()
}

/// The kind of an answer: as configured, or else by its MIME type, or by its first bytes if the type is too general.
fn kind(entry: &Entry, media: &str, answer: &Answer) -> Kind {
    if let Some(kind) = entry.kind {
        return kind;
    }
    let is_feed = || {
        let head = answer.body.get(..answer.body.len().min(4096)).unwrap_or_default();
        feed::is_feed(&charset::decode(head, answer.headers.get("content-type")))
    };
    match media {
        "application/rss+xml" | "application/atom+xml" | "application/feed+json" => Kind::Feed,
        "application/json" | "text/json" if is_feed() => Kind::Feed,
        "application/json" | "text/json" => Kind::Json,
        // Servers send these types for files of unknown type, and some send pages of this type for everything.
        "" | "text/plain" | "application/octet-stream" | "text/html" if is_feed() => Kind::Feed,
        "application/xhtml+xml" | "text/html" => Kind::Page,
        // Such as `application/xml`, `text/rss+xml` and `application/rdf+xml`.
        other if other.contains("xml") && is_feed() => Kind::Feed,
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
    // Many text formats have a type below `application/`.
    !body.contains(&0) && std::str::from_utf8(body).is_ok()
}
