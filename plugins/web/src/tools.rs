//! The tool `get`: the readable text of a URL that the operator configured.

use belljar_guest::{Block, Body, Error, Link, Provider, Result, Tool, ToolResult, ToolSet, Tools, reference};
use serde::Deserialize;
use url::Url;

use crate::Web;

/// The longest text of a result, in bytes. A model has to read it.
const MAX_BYTES: usize = 96 * 1024;

/// The most entries that an error names.
const MAX_NAMED: usize = 20;

/// The schema of [`Get`]. A text, because the code that makes schemas from types has 110 KB.
const INPUT: &str = r#"{"type":"object","properties":{"url":{"type":"string","description":"URL, or name of an entry with its values: issue/boats/7"}},"required":["url"],"additionalProperties":false}"#;

/// The arguments.
#[derive(Debug, Deserialize)]
#[serde(deny_unknown_fields)]
struct Get {
    url: String,
}

impl Tools for Web {
    fn tools() -> ToolSet<Self> {
        let get = "Gets a configured page, feed or API as text. An error names the configured ones.";
        ToolSet::new().tool_with_schemas(Tool::reading("get", get).input(INPUT).open_world(), Web::get)
    }
}

impl Web {
    fn get(&self, Get { url }: Get) -> Result<ToolResult> {
        let asked = url.trim();
        let place = match Url::parse(asked) {
            Ok(url) if url.has_host() => self.reference_of(url),
            _ => self.find(asked).map(|_| asked.to_owned()),
        };
        let place = place.map_err(|error| match error {
            Error::NotFound => Error::invalid(format_args!("\"url\" is \"{asked}\": expected {}", self.expected())),
            other => other,
        })?;
        let reading = self.read(&place).map_err(|error| match error {
            // For a tool, `NotFound` would mean that there is no such tool.
            Error::NotFound => Error::failed(format_args!("the server has nothing at \"{asked}\" (404 or 410)")),
            other => other,
        })?;
        let mut result = ToolResult::default();
        for contents in reading.contents {
            let mut link = Link::new(contents.reference);
            let (text, size) = match contents.body {
                Body::Text(text) => {
                    let size = text.len();
                    (cut(text), size)
                }
                Body::Blob(bytes) => {
                    let media = contents.mime_type.as_deref().unwrap_or("application/octet-stream");
                    (format!("[web: {} bytes of {media}; the link gives them]\n", bytes.len()), bytes.len())
                }
            };
            link.mime_type = contents.mime_type;
            result = result.block(text).block(Block::link(link.size(u64::try_from(size).unwrap_or(u64::MAX))));
        }
        Ok(result)
    }

    /// The reference of a URL: that of the first entry that gives it.
    fn reference_of(&self, mut url: Url) -> Result<String> {
        // Never sent, so it does not matter.
        url.set_fragment(None);
        let mut found = self.usable().filter_map(|(name, entry)| Some((name, entry.address.reference_of(&url)?)));
        let (name, (below, query)) = found.next().ok_or(Error::NotFound)?;
        let below = below.map(|below| format!("/{below}")).unwrap_or_default();
        let query = if query.is_empty() { query } else { format!("?{query}") };
        Ok(format!("{}{below}{query}", reference::encode_segment(name)))
    }

    /// The usable entries, for an error.
    fn expected(&self) -> String {
        let shown: Vec<String> =
            self.usable().map(|(name, entry)| format!("\"{}\"", entry.address.shown_as(name))).collect();
        let more = if shown.len() > MAX_NAMED { ", ..." } else { "" };
        let first: Vec<&str> = shown.iter().take(MAX_NAMED).map(String::as_str).collect();
        match first.as_slice() {
            [] => "an entry of WEB, but none can be used".to_owned(),
            some => format!("the URL or the name of an entry: {}{more}", some.join(", ")),
        }
    }
}

/// The beginning of a text that is too long for a result, with a note.
fn cut(mut text: String) -> String {
    if text.len() > MAX_BYTES {
        let left_out = text.len() - MAX_BYTES;
        text.truncate(text.floor_char_boundary(MAX_BYTES));
        text.push_str(&format!("\n[web: cut, {left_out} more bytes; the link gives all]\n"));
    }
    text
}
