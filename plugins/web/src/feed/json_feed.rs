//! Reads JSON Feed 1.0 and 1.1. Only the items must have their form; a field of another type is left out.

use serde_json::Value;
use url::Url;

use super::FeedText;
use super::fields::{Fields, Person};

/// The fields of the feed and its items. `None` if the text is no JSON Feed.
pub(super) fn read(text: &str, url: &Url) -> Option<(Fields, Vec<Fields>)> {
    let value: Value = serde_json::from_str(text).ok()?;
    let is_feed = string(&value, "version").is_some_and(|version| version.contains("jsonfeed.org/version/"));
    let items = value.get("items").and_then(Value::as_array).filter(|_| is_feed)?;
    let mut feed = Fields { link: link(&value, "home_page_url", url), ..Fields::default() };
    feed.title = plain(&value, "title");
    feed.summary = plain(&value, "description");
    Some((feed, items.iter().map(|value| item(value, url)).collect()))
}

fn item(value: &Value, url: &Url) -> Fields {
    let mut item = Fields {
        title: plain(value, "title"),
        link: link(value, "url", url).or_else(|| link(value, "external_url", url)),
        id: string(value, "id").or_else(|| value.get("id").filter(|id| id.is_number()).map(Value::to_string)),
        published: string(value, "date_published"),
        updated: string(value, "date_modified"),
        summary: plain(value, "summary"),
        content: string(value, "content_html")
            .map(|text| FeedText { is_html: text.contains(['<', '&']), text, base: None })
            .filter(|content| !content.text.trim().is_empty())
            .or_else(|| plain(value, "content_text")),
        ..Fields::default()
    };
    item.permalink = item.id.clone().filter(|id| id.starts_with("http"));
    for person in list(value, "authors").chain(value.get("author")) {
        let name = string(person, "name").or_else(|| string(person, "url")).unwrap_or_default();
        item.add_author(Person { name, email: String::new() }.shown(""));
    }
    for tag in list(value, "tags") {
        item.add_category(tag.as_str(), None);
    }
    item.enclosures = list(value, "attachments").filter_map(|attached| link(attached, "url", url)).collect();
    item
}

fn string(value: &Value, key: &str) -> Option<String> {
    value.get(key)?.as_str().map(str::to_owned)
}

fn plain(value: &Value, key: &str) -> Option<FeedText> {
    let text = string(value, key).filter(|text| !text.trim().is_empty())?;
    Some(FeedText { text, is_html: false, base: None })
}

fn link(value: &Value, key: &str, url: &Url) -> Option<String> {
    url.join(string(value, key)?.trim()).ok().map(|url| url.to_string())
}

fn list<'v>(value: &'v Value, key: &str) -> impl Iterator<Item = &'v Value> {
    value.get(key).and_then(Value::as_array).into_iter().flatten()
}
