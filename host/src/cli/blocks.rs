//! Prints the content that tools and prompts give.

use std::io::{IsTerminal, Write};
use std::path::Path;

use base64::Engine as _;
use base64::engine::general_purpose::STANDARD;
use serde_json::{Value, json};

use super::output;
use crate::model::error::show_bytes;
use crate::model::{Block, BlockBody, Body, Link, text};
use crate::server::failure::Failure;

/// The most characters of a title or a type that is shown.
const MAX_SHOWN_CHARS: usize = 200;

/// The stream that blocks are written to.
#[derive(Clone, Copy, PartialEq, Eq)]
pub(super) enum Stream {
    /// Standard output.
    Output,
    /// Standard error.
    Error,
}

/// Writes the blocks: texts as they are, links and other content as one line each. Removes control characters from texts
/// for a terminal.
pub(super) fn print(blocks: &[&Block], stream: Stream) -> Result<(), Failure> {
    let written = match stream {
        Stream::Output => {
            let mut out = std::io::stdout().lock();
            let to_terminal = out.is_terminal();
            write_to(&mut out, blocks, to_terminal).and_then(|()| out.flush())
        }
        Stream::Error => {
            let mut out = std::io::stderr().lock();
            let to_terminal = out.is_terminal();
            write_to(&mut out, blocks, to_terminal)
        }
    };
    output::ignore_closed_pipe(written)
}

fn write_to(out: &mut impl Write, blocks: &[&Block], to_terminal: bool) -> std::io::Result<()> {
    for block in blocks {
        match &block.body {
            BlockBody::Text(text) => write_text(out, text, to_terminal)?,
            BlockBody::Link(Link { reference, name, title, .. }) => {
                let title = text::excerpt(title.as_ref().unwrap_or(name), MAX_SHOWN_CHARS);
                writeln!(out, "{reference}  {title}")?;
            }
            BlockBody::Embedded(contents) => match &contents.body {
                Body::Text(text) => {
                    writeln!(out, "==> {} <==", contents.reference)?;
                    write_text(out, text, to_terminal)?;
                }
                Body::Blob(bytes) => {
                    writeln!(out, "{}  ({})", contents.reference, media(contents.mime_type.as_deref(), bytes))?;
                }
            },
            BlockBody::Image(one) => writeln!(out, "(a picture: {})", media(Some(&one.mime_type), &one.data))?,
            BlockBody::Audio(one) => writeln!(out, "(a sound: {})", media(Some(&one.mime_type), &one.data))?,
        }
    }
    Ok(())
}

/// Writes a text with a line break at its end.
fn write_text(out: &mut impl Write, text: &str, to_terminal: bool) -> std::io::Result<()> {
    if to_terminal {
        return text.lines().try_for_each(|line| writeln!(out, "{}", text::line(line)));
    }
    out.write_all(text.as_bytes())?;
    if text.ends_with('\n') { Ok(()) } else { writeln!(out) }
}

/// `image/png, 3.2KiB; to keep it, write --output FILE before the name`
fn media(mime_type: Option<&str>, bytes: &[u8]) -> String {
    let mime_type = text::excerpt(mime_type.unwrap_or("binary"), MAX_SHOWN_CHARS);
    format!("{mime_type}, {}; to keep it, write --output FILE before the name", show_bytes(bytes.len() as u64))
}

/// The bytes of the block, if it is a picture, a sound or a binary resource.
fn binary(block: &Block) -> Option<&[u8]> {
    match &block.body {
        BlockBody::Image(media) | BlockBody::Audio(media) => Some(&media.data),
        BlockBody::Embedded(contents) => match &contents.body {
            Body::Blob(bytes) => Some(bytes),
            Body::Text(_) => None,
        },
        BlockBody::Text(_) | BlockBody::Link(_) => None,
    }
}

/// Writes the only picture, sound or binary resource to a file, and the other blocks to standard output.
pub(super) fn write_file(blocks: &[&Block], path: &Path) -> Result<(), Failure> {
    let (files, others): (Vec<&Block>, Vec<&Block>) = blocks.iter().partition(|block| binary(block).is_some());
    print(&others, Stream::Output)?;
    let [Some(bytes)] = files.iter().map(|block| binary(block)).collect::<Vec<_>>()[..] else {
        return Err(Failure::Failed(format!(
            "nothing is written to \"{}\": the result has {} pictures, sounds and binary resources, and --output writes one; use --json instead",
            path.display(),
            files.len()
        )));
    };
    output::write_file(path, bytes)
}

/// A block as MCP writes it.
pub(super) fn to_json(block: &Block) -> Value {
    match &block.body {
        BlockBody::Text(text) => json!({ "type": "text", "text": text }),
        BlockBody::Image(one) => {
            json!({ "type": "image", "mimeType": one.mime_type, "data": STANDARD.encode(&one.data) })
        }
        BlockBody::Audio(one) => {
            json!({ "type": "audio", "mimeType": one.mime_type, "data": STANDARD.encode(&one.data) })
        }
        BlockBody::Link(link) => json!({
            "type": "resource_link", "uri": link.reference, "name": link.name, "title": link.title,
            "description": link.description, "mimeType": link.mime_type, "size": link.size,
        }),
        BlockBody::Embedded(contents) => json!({ "type": "resource", "resource": super::read::to_json(contents) }),
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::model::{Contents, Media};

    fn written(bodies: Vec<BlockBody>, to_terminal: bool) -> String {
        let blocks: Vec<Block> = bodies.into_iter().map(|body| Block { body, annotations: None }).collect();
        let mut out = Vec::new();
        write_to(&mut out, &blocks.iter().collect::<Vec<_>>(), to_terminal).unwrap();
        String::from_utf8(out).unwrap()
    }

    fn embedded(body: Body) -> BlockBody {
        let (reference, mime_type) = ("belljar://n/a".to_owned(), Some("x/y".to_owned()));
        BlockBody::Embedded(Contents { reference, mime_type, body, meta: Vec::new() })
    }

    #[test]
    fn each_block_ends_its_line() {
        let link = Link {
            reference: "belljar://n/b".to_owned(),
            name: "b".to_owned(),
            title: Some("B\u{1b}[1m".to_owned()),
            description: None,
            mime_type: None,
            size: None,
        };
        let picture = Media { mime_type: "image/png".to_owned(), data: vec![0; 10] };
        let out = written(
            vec![
                BlockBody::Text("one".to_owned()),
                BlockBody::Text("two\n".to_owned()),
                BlockBody::Link(link),
                embedded(Body::Text("three".to_owned())),
                embedded(Body::Blob(vec![1])),
                BlockBody::Image(picture),
            ],
            false,
        );
        let keep = "; to keep it, write --output FILE before the name)";
        let expected = [
            "one",
            "two",
            "belljar://n/b  B[1m",
            "==> belljar://n/a <==",
            "three",
            &format!("belljar://n/a  (x/y, 1B{keep}"),
            &format!("(a picture: image/png, 10B{keep}"),
        ];
        assert_eq!(out.lines().collect::<Vec<_>>(), expected);
    }

    #[test]
    fn a_terminal_gets_no_control_characters() {
        let text = || vec![BlockBody::Text("a\u{1b}[2Jb\u{7}\nc".to_owned())];
        assert_eq!(written(text(), true), "a[2Jb\nc\n");
        assert_eq!(written(text(), false), "a\u{1b}[2Jb\u{7}\nc\n");
    }
}
