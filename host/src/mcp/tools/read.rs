//! `read_resource`: a part of a resource that fits into a context window, and where it goes on.

use base64::Engine as _;
use base64::engine::general_purpose::STANDARD;
use rmcp::model::{ContentBlock, ErrorData, Tool};
use serde_json::json;

use super::super::turn::Turn;
use super::super::{Asked, Handler, fault};
use super::arguments::Arguments;
use super::cut::{Lines, characters, displayed};
use super::pointer::pointed;
use super::{Answered, Entry, tool};
use crate::gateway::Read;
use crate::gateway::consent::{Asking, Question};
use crate::model::error::show_bytes;
use crate::model::{Body, Contents, Fault, MountName, Reading};

/// Its name.
pub(super) const NAME: &str = "read_resource";

/// Characters of a part, and the most that can be asked for.
const LIMITS: (usize, usize) = (20_000, 100_000);

/// Pieces of contents that one call shows.
const PIECES: usize = 50;

/// Bytes of the pictures that one call shows, all together.
const PICTURES: usize = 512 << 10;

/// How lines are asked for.
const LINES: &str =
    "lines counted from 1, such as \"20-40\", \"20-\" for those from there on, \"-20\" for the last ones";

/// What it is, for a client.
pub(super) fn definition() -> Tool {
    let input = json!({
        "type": "object",
        "properties": {
            "uri": { "type": "string", "description": "The resource, as list_resources or search_resources gives it, or made from a URI template." },
            "offset": { "type": "integer", "minimum": 0, "default": 0, "description": "The first character to show: where the part before says that it goes on." },
            "limit": { "type": "integer", "minimum": 1, "maximum": LIMITS.1, "default": LIMITS.0, "description": "Characters to show at the most." },
            "lines": { "type": "string", "description": format!("Only these {LINES}.") },
            "pointer": { "type": "string", "description": "Only this value of a JSON document: an RFC 6901 pointer such as \"/items/0/name\"." }
        },
        "required": ["uri"],
        "additionalProperties": false
    });
    tool(
        NAME,
        "Read a resource",
        "Reads a resource by its URI: its text, or a part of it. Long text comes in parts: call again with the offset that the result names, or choose lines or a JSON pointer. What is not text is described; small pictures are shown.",
        input,
    )
}

/// What a call comes to.
pub(super) enum Outcome {
    /// An answer.
    Answered(Answered),
    /// A question to whoever reads.
    Asks(Question),
    /// A failure for want of something that a person could allow, and whoever reads cannot be asked.
    CannotAsk(Fault),
}

/// Which part is wanted.
struct Wanted {
    offset: usize,
    limit: usize,
    lines: Option<Lines>,
    pointer: Option<String>,
}

impl Wanted {
    /// The argument that chooses, if one does.
    fn chooses_by(&self) -> Option<&'static str> {
        self.lines.map(|_| "lines").or(self.pointer.as_ref().map(|_| "pointer"))
    }
}

/// Runs it.
pub(super) async fn run(
    handler: &Handler,
    asked: &Asked,
    mut given: Arguments,
    (asking, turn): (Asking<'_>, Option<&Turn>),
) -> Result<Outcome, ErrorData> {
    let uri = given.required("uri", "the URI of a resource, as list_resources and search_resources give it")?;
    let wanted = Wanted {
        offset: given.number("offset", 0..=usize::MAX, 0)?,
        limit: given.number("limit", 1..=LIMITS.1, LIMITS.0)?,
        lines: given.text("lines", LINES, Lines::read)?,
        pointer: given.text("pointer", "a text", |pointer| Some(pointer.to_owned()))?,
    };
    given.finish()?;
    let read = handler.gateway.read_asking(&asked.caller, &uri, asking, handler.room(turn)).await;
    match read.map_err(fault::to_error)? {
        Read::Asks(question) => Ok(Outcome::Asks(question)),
        Read::CannotAsk(fault) => Ok(Outcome::CannotAsk(fault)),
        Read::Given(reading, mount, mut bill) => {
            let bytes = super::super::line::bytes(&reading);
            bill.charge(bytes, || answer(&uri, &mount.name, reading, &wanted)).map(Outcome::Answered)
        }
    }
}

/// A piece of contents, of whose text only what lines and pointer choose is left.
struct Chosen {
    contents: Contents,
    /// Bytes of the whole.
    size: usize,
}

/// Chooses by lines and pointer.
fn choose(reading: Reading, wanted: &Wanted) -> Result<Vec<Chosen>, ErrorData> {
    let whole = |contents: Contents| Chosen { size: contents.body.len(), contents };
    let Some(by) = wanted.chooses_by() else { return Ok(reading.contents.into_iter().map(whole).collect()) };
    let refused = |what: &str| {
        let why = format!("the argument \"{by}\" chooses within one text, and this resource {what}; read it without");
        Err(fault::bad_argument(&why))
    };
    let mut one = match <[Contents; 1]>::try_from(reading.contents) {
        Ok([one]) => whole(one),
        Err(several) => return refused(&format!("has {} contents", several.len())),
    };
    let Body::Text(text) = &one.contents.body else { return refused("is binary") };
    let pointed = wanted.pointer.as_ref().map(|pointer| pointed(text, pointer)).transpose();
    let pointed = pointed.map_err(|why| fault::bad_argument(&format!("the argument \"pointer\" {why}")))?;
    let text = pointed.as_ref().unwrap_or(text);
    one.contents.body = Body::Text(wanted.lines.map_or(text.as_str(), |lines| lines.of(text)).to_owned());
    Ok(vec![one])
}

/// The answer that is being put together.
struct Shown {
    content: Vec<ContentBlock>,
    /// Contents of which something is shown.
    pieces: usize,
    /// Characters of what is shown, those that are left out because they hide included; and how many those are.
    length: usize,
    hidden: usize,
    omitted: usize,
    next: Option<usize>,
    /// Bytes of pictures that there is room for.
    pictures: usize,
}

/// Shows the part of all contents' texts, one behind the other, that is wanted.
fn answer(uri: &str, mount: &MountName, reading: Reading, wanted: &Wanted) -> Result<Answered, ErrorData> {
    let chosen = choose(reading, wanted)?;
    let length = |one: &Chosen| match &one.contents.body {
        Body::Text(text) => text.chars().count(),
        Body::Blob(_) => 0,
    };
    let lengths: Vec<_> = chosen.iter().map(length).collect();
    let total: usize = lengths.iter().sum();
    let end = wanted.offset.saturating_add(wanted.limit);
    let mut shown = Shown {
        content: Vec::new(),
        pieces: 0,
        length: 0,
        hidden: 0,
        omitted: 0,
        next: Some(end).filter(|end| *end < total),
        pictures: PICTURES,
    };
    let is_sole = chosen.len() == 1;
    let mut at = 0;
    for (one, length) in chosen.into_iter().zip(lengths) {
        let (start, stop) = (at, at + length);
        at = stop;
        let is_within = match start == stop {
            true => start >= wanted.offset && (start < end || end >= total),
            false => start < end && stop > wanted.offset,
        };
        if !is_within {
            continue;
        }
        if shown.pieces == PIECES {
            shown.omitted += 1;
            if start > wanted.offset {
                shown.next = Some(shown.next.map_or(start, |next| next.min(start)));
            }
            continue;
        }
        let part = (wanted.offset.saturating_sub(start), end.saturating_sub(start.max(wanted.offset)));
        shown.piece(one, mount, part, is_sole);
    }
    Ok(shown.finish(uri, mount, (wanted.offset, total)))
}

impl Shown {
    /// Adds one piece of contents: of its text the characters from `offset` on.
    fn piece(&mut self, one: Chosen, mount: &MountName, (offset, limit): (usize, usize), is_sole: bool) {
        let Chosen { contents: Contents { reference, mime_type, body, .. }, size } = one;
        self.pieces += 1;
        match body {
            Body::Text(text) => {
                let piece = characters(&text, offset, limit);
                if !is_sole {
                    let entry = Entry {
                        uri: reference.clone(),
                        name: reference.rsplit('/').find(|part| !part.is_empty()).unwrap_or(&reference).to_owned(),
                        mime_type,
                        size: u64::try_from(size).ok(),
                        ..Entry::empty(mount)
                    };
                    let to = offset + piece.length;
                    let head = format!("{}: characters {offset} to {to} of {}", entry.line(), piece.total);
                    self.content.push(ContentBlock::text(head));
                }
                let (shown, hidden) = displayed(piece.text);
                self.length += piece.length;
                self.hidden += hidden;
                self.content.push(ContentBlock::text(shown));
            }
            Body::Blob(bytes) => {
                let what = mime_type.as_deref().unwrap_or("unknown type");
                let bytes_of = show_bytes(u64::try_from(size).unwrap_or(u64::MAX));
                let said = format!("{reference}: binary, {what}, {bytes_of}; not shown as text");
                self.content.push(ContentBlock::text(said));
                if let Some(mime) = picture(&bytes).filter(|mime| *mime == what && size <= self.pictures) {
                    self.pictures -= size;
                    self.content.push(ContentBlock::image(STANDARD.encode(bytes), mime));
                }
            }
        }
    }

    /// Puts what is to be said about the whole first.
    fn finish(mut self, uri: &str, mount: &MountName, (offset, total): (usize, usize)) -> Answered {
        let mut head = format!("{uri}, from the mount \"{mount}\".");
        if total > 0 {
            head += &match self.length {
                0 => format!(" It has {total} characters, and none from {offset} on."),
                length if length == total => format!(" All of {total} characters."),
                length => format!(" Characters {offset} to {} of {total}.", offset + length),
            };
        }
        if let Some(next) = self.next {
            head += &format!(" To read on, call again with offset = {next}.");
        }
        if self.omitted > 0 {
            head += &format!(" {} more contents are not shown.", self.omitted);
        }
        if self.hidden > 0 {
            head += &format!(" {} characters that hide or reorder text were left out.", self.hidden);
        }
        // A block of its own, so that nothing in the contents can pass for what is said about them.
        self.content.insert(0, ContentBlock::text(head));
        self.content
    }
}

/// The type of a picture that models are shown, by its first bytes: one that is something else than it is called makes
/// whole conversations fail.
fn picture(bytes: &[u8]) -> Option<&'static str> {
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
