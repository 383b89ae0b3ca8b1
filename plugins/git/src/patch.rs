//! The unified diff of one file, as `git diff` writes it, and the numbers of its lines.

use std::fmt::{self, Write as _};

use belljar_guest::Result;
use gix_hash::ObjectId;
use gix_imara_diff::sources::byte_lines;
use gix_imara_diff::{Algorithm, Diff, InternedInput, Interner, Token, UnifiedDiffConfig, UnifiedDiffPrinter};
use gix_object::tree::{EntryKind, EntryMode};

use crate::changes::{Changed, Side};
use crate::names::prefixed;
use crate::objects::Objects;

/// The largest file that is compared line by line, in bytes.
const MAX_COMPARED: u64 = 4 * 1024 * 1024;

/// About the fuel to compare one byte of two files.
const DIFF_WORK: u64 = 40;

/// The contents of one side of a change.
enum Content {
    Bytes(Vec<u8>),
    /// Why they are not compared.
    Not(String),
}

/// The lines that a change adds and deletes. `None` for files that are not text, or not compared.
pub(crate) fn count(objects: &Objects, change: &Changed) -> Result<Option<(u32, u32)>> {
    if id(objects, &change.before) == id(objects, &change.after) {
        return Ok(Some((0, 0)));
    }
    let (Content::Bytes(before), Content::Bytes(after)) =
        (content(objects, &change.before)?, content(objects, &change.after)?)
    else {
        return Ok(None);
    };
    if is_binary(&before) || is_binary(&after) {
        return Ok(None);
    }
    let (diff, _) = compare(objects, &before, &after);
    Ok(Some((diff.count_additions(), diff.count_removals())))
}

/// The unified diff of one file.
pub(crate) fn text(objects: &Objects, change: &Changed) -> Result<String> {
    if change.has_other_type() {
        let path = &change.path;
        let side = |before, after| Changed { path: path.clone(), before, after, renamed: None };
        return Ok(text(objects, &side(change.before, None))? + &text(objects, &side(None, change.after))?);
    }
    let old_path = change.renamed.as_ref().map_or(&change.path, |(path, _)| path);
    let (old, new) = (prefixed("a/", old_path), prefixed("b/", &change.path));
    let mut text = format!("diff --git {old} {new}\n");
    let octal = |mode: &EntryMode| format!("{:06o}", mode.value());
    match (&change.before, &change.after) {
        (None, Some((mode, _))) => text.push_str(&format!("new file mode {}\n", octal(mode))),
        (Some((mode, _)), None) => text.push_str(&format!("deleted file mode {}\n", octal(mode))),
        (Some((old, _)), Some((new, _))) if old != new => {
            text.push_str(&format!("old mode {}\nnew mode {}\n", octal(old), octal(new)));
        }
        _ => {}
    }
    if let Some((from, similarity)) = &change.renamed {
        let (from, to) = (prefixed("", from), prefixed("", &change.path));
        let _ = write!(text, "similarity index {similarity}%\nrename from {from}\nrename to {to}\n");
    }
    let (old_id, new_id) = (id(objects, &change.before), id(objects, &change.after));
    if old_id == new_id {
        return Ok(text);
    }
    let _ = writeln!(text, "index {}..{}", old_id.to_hex_with_len(12), new_id.to_hex_with_len(12));
    let (before, after) = match (content(objects, &change.before)?, content(objects, &change.after)?) {
        (Content::Bytes(before), Content::Bytes(after)) => (before, after),
        (Content::Not(why), _) | (_, Content::Not(why)) => {
            let _ = writeln!(text, "[git: not compared: {why}]");
            return Ok(text);
        }
    };
    let name = |side: &Side, name: String| if side.is_some() { name } else { "/dev/null".to_owned() };
    let (old, new) = (name(&change.before, old), name(&change.after, new));
    if is_binary(&before) || is_binary(&after) {
        let _ = writeln!(text, "Binary files {old} and {new} differ");
        return Ok(text);
    }
    if before.is_empty() && after.is_empty() {
        return Ok(text);
    }
    if std::str::from_utf8(&before).is_err() || std::str::from_utf8(&after).is_err() {
        text.push_str("[git: this file is not all UTF-8; its other bytes are shown as \u{fffd}]\n");
    }
    let (diff, input) = compare(objects, &before, &after);
    let printer = LinePrinter(&input.interner);
    // A tab ends a name with a space, for programs that apply the diff.
    let ended = |name: String| if name.contains(' ') { name + "\t" } else { name };
    let unified = diff.unified_diff(&printer, UnifiedDiffConfig::default(), &input);
    let _ = write!(text, "--- {}\n+++ {}\n{unified}", ended(old), ended(new));
    Ok(text)
}

/// Compares two files line by line, with the algorithm that Git uses by default.
pub(crate) fn compare<'a>(objects: &Objects, before: &'a [u8], after: &'a [u8]) -> (Diff, InternedInput<&'a [u8]>) {
    objects.add_work((before.len() + after.len()) as u64 * DIFF_WORK);
    let input = InternedInput::new(byte_lines(before), byte_lines(after));
    let mut diff = Diff::compute(Algorithm::Myers, &input);
    diff.postprocess_lines(&input);
    (diff, input)
}

/// True for contents that Git takes as binary.
pub(crate) fn is_binary(bytes: &[u8]) -> bool {
    memchr::memchr(0, bytes.get(..8000).unwrap_or(bytes)).is_some()
}

fn id(objects: &Objects, side: &Side) -> ObjectId {
    side.map_or_else(|| ObjectId::null(objects.hash), |(_, id)| id)
}

fn content(objects: &Objects, side: &Side) -> Result<Content> {
    let Some((mode, id)) = side else { return Ok(Content::Bytes(Vec::new())) };
    if mode.kind() == EntryKind::Commit {
        return Ok(Content::Bytes(format!("Subproject commit {id}\n").into_bytes()));
    }
    Ok(match objects.header(id)? {
        None => Content::Not(format!("the object {id} is absent: {}", objects.gaps().reason())),
        Some((_, size)) if size > MAX_COMPARED => {
            Content::Not(format!("the file has {size} bytes, the limit is {MAX_COMPARED}"))
        }
        Some(_) => Content::Bytes(objects.get(id)?.data.to_vec()),
    })
}

/// Prints lines in the format of `git diff`.
struct LinePrinter<'a>(&'a Interner<&'a [u8]>);

impl LinePrinter<'_> {
    fn line(&self, f: &mut impl fmt::Write, sign: char, token: Token) -> fmt::Result {
        let line = self.0[token];
        write!(f, "{sign}{}", String::from_utf8_lossy(line))?;
        if line.ends_with(b"\n") { Ok(()) } else { f.write_str("\n\\ No newline at end of file\n") }
    }
}

impl UnifiedDiffPrinter for LinePrinter<'_> {
    fn display_header(
        &self,
        mut f: impl fmt::Write,
        start_before: u32,
        start_after: u32,
        len_before: u32,
        len_after: u32,
    ) -> fmt::Result {
        // The range of an empty side is the line before it, with length 0.
        let side = |start: u32, len: u32| match len {
            0 => format!("{start},0"),
            1 => format!("{}", start + 1),
            _ => format!("{},{len}", start + 1),
        };
        writeln!(f, "@@ -{} +{} @@", side(start_before, len_before), side(start_after, len_after))
    }

    fn display_context_token(&self, mut f: impl fmt::Write, token: Token) -> fmt::Result {
        self.line(&mut f, ' ', token)
    }

    fn display_hunk(&self, mut f: impl fmt::Write, before: &[Token], after: &[Token]) -> fmt::Result {
        before.iter().try_for_each(|token| self.line(&mut f, '-', *token))?;
        after.iter().try_for_each(|token| self.line(&mut f, '+', *token))
    }
}
