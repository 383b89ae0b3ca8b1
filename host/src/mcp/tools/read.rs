//! `read_resource`: a part of a resource that fits into a model's context, and the offset of the next part.

use base64::Engine as _;
use base64::engine::general_purpose::STANDARD;
use rmcp::model::{ContentBlock, ErrorData, Tool};
use serde_json::json;

use super::super::context::RequestContext;
use super::super::handler::Handler;
use super::super::{convert, fault};
use super::arguments::Arguments;
use super::definition::tool;
use super::entry::{ToolContent, ToolEntry};
use super::pointer::resolve;
use super::ranges::{LineRange, characters, without_hidden};
use crate::gateway::ReadOutcome;
use crate::gateway::consent::{ConsentInput, ConsentQuestion};
use crate::model::error::show_bytes;
use crate::model::part::Part;
use crate::model::{Body, Contents, Fault, MountName, Reading};

/// The name of the tool.
pub(super) const NAME: &str = "read_resource";

/// Characters of a part: the default and the maximum.
const LIMITS: (usize, usize) = (20_000, 100_000);

/// The most contents that one call shows.
const MAX_CONTENTS: usize = 50;

/// The most bytes of all pictures that one call shows.
const PICTURE_BYTES: usize = 512 << 10;

/// The expected value of the argument `lines`, as its description and errors name it.
const LINES: &str =
    "lines counted from 1, such as \"20-40\", \"20-\" for those from there on, \"-20\" for the last ones";

/// The definition that clients see.
pub(super) fn definition() -> Tool {
    let input = json!({
        "type": "object",
        "properties": {
            "uri": { "type": "string", "description": "The resource, as list_resources or search_resources gives it, or made from a URI template." },
            "offset": { "type": "integer", "minimum": 0, "default": 0, "description": "The first character to show: the offset that the previous part names." },
            "limit": { "type": "integer", "minimum": 1, "maximum": LIMITS.1, "default": LIMITS.0, "description": "The most characters to show." },
            "lines": { "type": "string", "description": format!("Only these {LINES}.") },
            "pointer": { "type": "string", "description": "Only this value of a JSON document: an RFC 6901 pointer such as \"/items/0/name\"." }
        },
        "required": ["uri"],
        "additionalProperties": false
    });
    tool(
        NAME,
        "Read a resource",
        "Reads a resource by its URI: its text, or a part of it. Long text comes in parts: call again with the offset or the URI that the result names, or choose lines or a JSON pointer. Binary contents are described; small pictures are shown.",
        input,
    )
}

/// The outcome of a call.
pub(super) enum ReadToolOutcome {
    /// The content of the result.
    Content(ToolContent),
    /// A consent question for the client's user.
    ConsentRequired(ConsentQuestion),
    /// The read needs consent, and the client cannot ask its user.
    ConsentUnavailable(Fault),
}

/// The arguments that select a part of the resource.
struct PartSelection {
    offset: usize,
    limit: usize,
    lines: Option<LineRange>,
    pointer: Option<String>,
}

impl PartSelection {
    /// The name of the argument that selects within one text, if there is one.
    fn selecting_argument(&self) -> Option<&'static str> {
        self.lines.map(|_| "lines").or(self.pointer.as_ref().map(|_| "pointer"))
    }
}

/// Runs the tool.
pub(super) async fn run(
    handler: &Handler,
    context: &RequestContext<'_>,
    mut given: Arguments,
    consent_input: ConsentInput<'_>,
) -> Result<ReadToolOutcome, ErrorData> {
    let uri = given.required("uri", "the URI of a resource, as list_resources and search_resources give it")?;
    let wanted = PartSelection {
        offset: given.number("offset", 0..=usize::MAX, 0)?,
        limit: given.number("limit", 1..=LIMITS.1, LIMITS.0)?,
        lines: given.text("lines", LINES, LineRange::parse)?,
        pointer: given.text("pointer", "a string", |pointer| Some(pointer.to_owned()))?,
    };
    given.refuse_unknown()?;
    let read = handler
        .gateway
        .read_with_consent(&context.caller, &uri, consent_input, handler.start_call(context.exchange))
        .await;
    match read.map_err(fault::to_error)? {
        ReadOutcome::ConsentRequired(question) => Ok(ReadToolOutcome::ConsentRequired(question)),
        ReadOutcome::ConsentUnavailable(fault) => Ok(ReadToolOutcome::ConsentUnavailable(fault)),
        ReadOutcome::Contents(reading, mount, mut cost) => {
            // The provider gave only the first part, and the lines may be in another one.
            let lines = wanted.lines.filter(|_| reading.part.is_some_and(|part| part.requested.is_none()));
            if let Some(lines) = lines {
                drop((reading, cost));
                return read_lines(handler, context, &uri, lines, wanted).await;
            }
            let bytes = convert::encoded_len(&reading);
            cost.charge(bytes, || content(&uri, &mount.name, reading, &wanted)).map(ReadToolOutcome::Content)
        }
    }
}

/// Reads lines of a resource that one read does not give whole.
async fn read_lines(
    handler: &Handler,
    context: &RequestContext<'_>,
    uri: &str,
    lines: LineRange,
    wanted: PartSelection,
) -> Result<ReadToolOutcome, ErrorData> {
    if wanted.pointer.is_some() {
        let why = "the arguments \"lines\" and \"pointer\" cannot be used together on a resource of this size; call again with one of them";
        return Err(fault::bad_argument(why));
    }
    let uri = lines.range().of(uri);
    let (reading, mount) = handler.gateway.read(&context.caller, &uri).await.map_err(fault::to_error)?;
    content(&uri, &mount.name, reading, &PartSelection { lines: None, ..wanted }).map(ReadToolOutcome::Content)
}

/// Contents. Their text is only the part that `lines` and `pointer` select.
struct SelectedContents {
    contents: Contents,
    /// Bytes of the whole body.
    size: usize,
}

/// Applies `lines` and `pointer`.
fn select(reading: Reading, wanted: &PartSelection) -> Result<Vec<SelectedContents>, ErrorData> {
    let whole = |contents: Contents| SelectedContents { size: contents.body.len(), contents };
    let Some(by) = wanted.selecting_argument() else { return Ok(reading.contents.into_iter().map(whole).collect()) };
    let refuse = |what: &str| {
        let why = format!(
            "the argument \"{by}\" selects a part of one text, but this resource {what}; call again without it"
        );
        Err(fault::bad_argument(&why))
    };
    let mut one = match <[Contents; 1]>::try_from(reading.contents) {
        Ok([one]) => whole(one),
        Err(several) => return refuse(&format!("has {} contents", several.len())),
    };
    let Body::Text(text) = &one.contents.body else { return refuse("is binary") };
    let value = wanted.pointer.as_ref().map(|pointer| resolve(text, pointer)).transpose();
    let value = value.map_err(|why| fault::bad_argument(&format!("the argument \"pointer\" {why}")))?;
    let text = value.as_ref().unwrap_or(text);
    one.contents.body = Body::Text(wanted.lines.map_or(text.as_str(), |lines| lines.of(text)).to_owned());
    Ok(vec![one])
}

/// Builds the content of the result.
struct ContentBuilder {
    content: Vec<ContentBlock>,
    /// Number of contents that are shown.
    shown: usize,
    /// Characters of the part, including the hidden ones that are removed.
    length: usize,
    /// Removed characters that hide or reorder text.
    hidden: usize,
    /// Contents that are not shown, because there are more than [`MAX_CONTENTS`].
    omitted: usize,
    /// Offset of the next part. `None`: this part is the last one.
    next: Option<usize>,
    /// Bytes that are left for pictures.
    pictures: usize,
}

/// The result: the selected range of the contents' texts. Offsets count through all texts in their order.
fn content(uri: &str, mount: &MountName, reading: Reading, wanted: &PartSelection) -> Result<ToolContent, ErrorData> {
    let part = reading.part;
    let selected = select(reading, wanted)?;
    let length = |one: &SelectedContents| match &one.contents.body {
        Body::Text(text) => text.chars().count(),
        Body::Blob(_) => 0,
    };
    let lengths: Vec<_> = selected.iter().map(length).collect();
    let total: usize = lengths.iter().sum();
    let end = wanted.offset.saturating_add(wanted.limit);
    let mut builder = ContentBuilder {
        content: Vec::new(),
        shown: 0,
        length: 0,
        hidden: 0,
        omitted: 0,
        next: Some(end).filter(|end| *end < total),
        pictures: PICTURE_BYTES,
    };
    let is_sole = selected.len() == 1;
    let mut at = 0;
    for (one, length) in selected.into_iter().zip(lengths) {
        let (start, stop) = (at, at + length);
        at = stop;
        let is_within = match start == stop {
            true => start >= wanted.offset && (start < end || end >= total),
            false => start < end && stop > wanted.offset,
        };
        if !is_within {
            continue;
        }
        if builder.shown == MAX_CONTENTS {
            builder.omitted += 1;
            if start > wanted.offset {
                builder.next = Some(builder.next.map_or(start, |next| next.min(start)));
            }
            continue;
        }
        let part = (wanted.offset.saturating_sub(start), end.saturating_sub(start.max(wanted.offset)));
        builder.add(one, mount, part, is_sole);
    }
    Ok(builder.finish(uri, mount, (wanted.offset, total), part))
}

impl ContentBuilder {
    /// Adds one of the contents: at most `limit` characters of its text from `offset` on, or a description if it is
    /// binary.
    fn add(&mut self, one: SelectedContents, mount: &MountName, (offset, limit): (usize, usize), is_sole: bool) {
        let SelectedContents { contents: Contents { reference, mime_type, body, .. }, size } = one;
        self.shown += 1;
        match body {
            Body::Text(text) => {
                let range = characters(&text, offset, limit);
                if !is_sole {
                    let entry = ToolEntry {
                        uri: reference.clone(),
                        name: reference.rsplit('/').find(|part| !part.is_empty()).unwrap_or(&reference).to_owned(),
                        mime_type,
                        size: u64::try_from(size).ok(),
                        ..ToolEntry::empty(mount)
                    };
                    let to = offset + range.length;
                    let head = format!("{}: characters {offset} to {to} of {}", entry.line(), range.total);
                    self.content.push(ContentBlock::text(head));
                }
                let (shown, hidden) = without_hidden(range.text);
                self.length += range.length;
                self.hidden += hidden;
                self.content.push(ContentBlock::text(shown));
            }
            Body::Blob(bytes) => {
                let what = mime_type.as_deref().unwrap_or("unknown type");
                let bytes_of = show_bytes(u64::try_from(size).unwrap_or(u64::MAX));
                let description = format!("{reference}: binary, {what}, {bytes_of}; not shown as text");
                self.content.push(ContentBlock::text(description));
                if let Some(mime) = picture_type(&bytes).filter(|mime| *mime == what && size <= self.pictures) {
                    self.pictures -= size;
                    self.content.push(ContentBlock::image(STANDARD.encode(bytes), mime));
                }
            }
        }
    }

    /// Inserts the summary as the first block.
    fn finish(
        mut self,
        uri: &str,
        mount: &MountName,
        (offset, total): (usize, usize),
        part: Option<Part>,
    ) -> ToolContent {
        let mut head = format!("{uri}, from the mount \"{mount}\".");
        if let Some(part) = part {
            head += &format!(" These are {part}.");
        }
        if total > 0 {
            head += &match self.length {
                0 => format!(" It has {total} characters, and none from {offset} on."),
                length if length == total => format!(" All {total} characters."),
                length => format!(" Characters {offset} to {} of {total}.", offset + length),
            };
        }
        if let Some(next) = self.next {
            head += &format!(" To read on, call again with offset = {next}.");
        }
        if let Some(next) = part.and_then(|part| part.next_of(uri)) {
            head += &format!(" The next part of the resource is {next}.");
        }
        if self.omitted > 0 {
            head += &format!(" {} more contents are not shown.", self.omitted);
        }
        if self.hidden > 0 {
            head += &format!(" {} characters that hide or reorder text were left out.", self.hidden);
        }
        // A separate block: the contents cannot forge the summary.
        self.content.insert(0, ContentBlock::text(head));
        self.content
    }
}

/// The media type of a picture, by its first bytes. `None` for types that models are not shown. Model APIs refuse a
/// whole conversation if one picture in it has a wrong media type.
fn picture_type(bytes: &[u8]) -> Option<&'static str> {
    let is_webp = bytes.starts_with(b"RIFF") && bytes.get(8..12) == Some(b"WEBP");
    match bytes {
        _ if bytes.starts_with(b"\x89PNG\r\n\x1a\n") => Some("image/png"),
        _ if bytes.starts_with(b"\xff\xd8\xff") => Some("image/jpeg"),
        _ if bytes.starts_with(b"GIF87a") || bytes.starts_with(b"GIF89a") => Some("image/gif"),
        _ if is_webp => Some("image/webp"),
        _ => None,
    }
}

#[cfg(test)]
mod tests;
