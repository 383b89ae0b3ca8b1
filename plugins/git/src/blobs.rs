//! Files and directories at a revision, as a whole or in parts.

use std::io::Read as _;

use belljar_guest::{Contents, Error, Extent, PartialReading, Positions, Range, Result, Unit, reference};
use gix_object::tree::EntryKind;
use serde_json::json;

use crate::address::MAX_ENTRIES;
use crate::names::{referable, referred, shown};
use crate::objects::{MAX_OBJECT, Objects};
use crate::repository::Repository;
use crate::tree::{self, Entry};
use crate::{Git, MAX_REFERENCE_BYTES, lines_of, listing, range, submodules};

/// The number of entries of a directory whose sizes are shown. Each size needs a look-up of the object.
const MAX_SIZES: usize = 500;

impl Git {
    /// A file or a directory at a revision. `page` is the name after which a page of a directory begins, and the number of
    /// its entries. `parts` is the range of a file, from the host or in the reference.
    pub(crate) fn tree(
        &self,
        asked: &str,
        (revision, path): (&str, &str),
        page: (Option<&str>, Option<usize>),
        parts: (Option<Range>, Option<(u64, Option<u64>)>),
        most: u64,
    ) -> Result<PartialReading> {
        let root = self.root(revision)?;
        let (inner, entry) = submodules::locate(&self.repository, root, &referred(path))?;
        let repository = inner.as_ref().unwrap_or(&self.repository);
        let about = json!({ "mode": format!("{:06o}", entry.mode.value()), "id": entry.id.to_string() });
        match entry.mode.kind() {
            EntryKind::Tree => {
                let contents = directory(repository, asked, revision, &entry, page, &[])?;
                PartialReading::cut(contents, parts.0, most)
            }
            EntryKind::Commit => {
                let contents = self.submodule(asked, (revision, root), &entry, page)?;
                PartialReading::cut(contents.meta("git/entry", about.to_string()), parts.0, most)
            }
            _ => match parts {
                (None, Some((offset, length))) => {
                    let end = length.map(|length| offset.saturating_add(length));
                    blob(&repository.objects, asked, &entry, Some(Range::bytes(offset, end)), most)
                }
                (range, _) => blob(&repository.objects, asked, &entry, range, most),
            },
        }
    }

    /// A submodule: its commit and origin, and its root directory if its repository is below the grants.
    fn submodule(
        &self,
        asked: &str,
        (revision, root): (&str, gix_hash::ObjectId),
        entry: &Entry,
        page: (Option<&str>, Option<usize>),
    ) -> Result<Contents> {
        let module = submodules::described(&self.repository, root, &entry.path).unwrap_or_default();
        let mut head =
            vec![("type", json!("submodule")), ("commit", json!(entry.id.to_string())), ("url", json!(module.url))];
        match submodules::open(&self.repository, root, entry, 1) {
            Ok((inner, tree)) => {
                let inside = Entry { id: tree, mode: EntryKind::Tree.into(), path: entry.path.clone() };
                directory(&inner, asked, revision, &inside, page, &head)
            }
            Err(error) => {
                head.push(("notice", json!(error.to_string())));
                Ok(lines_of(asked, &head, "entries", std::iter::empty()))
            }
        }
    }
}

/// A page of the entries of a directory, after the fields `head`.
fn directory(
    repository: &Repository,
    asked: &str,
    revision: &str,
    directory: &Entry,
    (after, limit): (Option<&str>, Option<usize>),
    head: &[(&str, serde_json::Value)],
) -> Result<Contents> {
    let limit = limit.unwrap_or(MAX_ENTRIES);
    let begin = after.map(referred);
    let (entries, has_more) = tree::page(&repository.objects, &directory.id, begin.as_deref(), limit)?;
    let revision = reference::encode_segment(revision);
    let refer = |path: &[u8]| {
        let read = format!("tree/{revision}/{}", reference::encode(&referable(path)));
        (read.len() <= MAX_REFERENCE_BYTES).then_some(read)
    };
    let next = entries.last().filter(|_| has_more).map(|last| {
        let after = reference::encode(&referable(&last.path)).replace('&', "%26").replace('+', "%2B");
        format!("{}?after={after}&limit={limit}", refer(&directory.path).unwrap_or_default())
    });
    let lines = entries.iter().enumerate().map(|(index, entry)| {
        let path = tree::join(&directory.path, &entry.path);
        let size = match entry.mode.kind() {
            EntryKind::Tree | EntryKind::Commit => None,
            _ if index >= MAX_SIZES => None,
            _ => repository.objects.header(&entry.id).ok().flatten().map(|(_, size)| size),
        };
        json!({ "name": shown(&entry.path), "type": entry.kind(), "size": size, "read": refer(&path) })
    });
    let mut head = head.to_vec();
    head.extend([
        ("path", json!(shown(&directory.path))),
        ("tree", json!(directory.id.to_string())),
        ("cut", json!(has_more)),
        ("next", json!(next)),
    ]);
    Ok(lines_of(asked, &head, "entries", lines))
}

/// A file, or a range of it. Without a range, the first part of a file that is longer than `most`.
fn blob(objects: &Objects, asked: &str, entry: &Entry, wanted: Option<Range>, most: u64) -> Result<PartialReading> {
    let (_, size) = objects.header(&entry.id)?.ok_or_else(|| objects.missing(&entry.id))?;
    let path = entry.path.as_slice();
    let name = shown(path.rsplit(|byte| *byte == b'/').next().unwrap_or(path)).into_owned();
    let about = json!({
        "mode": format!("{:06o}", entry.mode.value()), "id": entry.id.to_string(), "type": entry.kind(), "size": size,
    });
    let dressed = |contents: Contents| {
        let kind = listing::media(&name, &contents);
        contents.mime_type(kind).meta("git/entry", about.to_string())
    };
    // A small object is checked against its ID.
    if size <= MAX_OBJECT.min(most.max(1024 * 1024)) {
        let bytes = objects.get(&entry.id)?.data.to_vec();
        let contents =
            if bytes.contains(&0) { Contents::blob(asked, bytes) } else { Contents::from_bytes(asked, bytes) };
        return PartialReading::cut(dressed(contents), wanted, most);
    }
    let (positions, at_line) = match wanted {
        Some(Range { unit: Unit::Lines, positions, .. }) => {
            let (text, extent) = lines(objects, entry, size, positions, most)?;
            return Ok(PartialReading::part(dressed(Contents::text(asked, text)), extent));
        }
        Some(Range { positions, .. }) => (positions, false),
        None => (Positions::Span { start: 0, end: None }, true),
    };
    let (start, end) = positions.within(size);
    let end = end.min(start.saturating_add(most));
    let (bytes, start, end) = cut(objects, entry, (start, end), at_line && end < size)?;
    let contents = if bytes.contains(&0) { Contents::blob(asked, bytes) } else { Contents::from_bytes(asked, bytes) };
    Ok(PartialReading::part(dressed(contents), Extent::new(Unit::Bytes, start, end, size)))
}

/// Bytes of a file, and their positions. Text is cut between characters, and at `at_line` after the last whole line.
fn cut(objects: &Objects, entry: &Entry, (start, end): (u64, u64), at_line: bool) -> Result<(Vec<u8>, u64, u64)> {
    // A character has at most three more bytes.
    let before = start.min(3);
    let bytes = range::read(objects, &entry.id, start - before, end)?;
    let skipped = usize::try_from(before).unwrap_or_default();
    let is_inner = |byte: &u8| byte & 0xc0 == 0x80;
    let back = bytes.get(skipped..).and_then(|rest| rest.first()).filter(|byte| is_inner(byte)).map_or(0, |_| {
        1 + bytes.get(..skipped).unwrap_or_default().iter().rev().take_while(|byte| is_inner(byte)).count()
    });
    let text = bytes.get(skipped.saturating_sub(back)..).unwrap_or_default();
    let whole = match std::str::from_utf8(text) {
        Ok(_) => text.len(),
        Err(error) if error.error_len().is_none() && error.valid_up_to() > 0 => error.valid_up_to(),
        // Not text: exactly the bytes that were asked for.
        Err(_) => return Ok((bytes.get(skipped..).unwrap_or_default().to_vec(), start, end)),
    };
    let mut text = text.get(..whole).unwrap_or_default();
    if at_line && let Some(line) = memchr::memrchr(b'\n', text) {
        text = text.get(..=line).unwrap_or(text);
    }
    let start = start - back.min(skipped) as u64;
    Ok((text.to_vec(), start, start + text.len() as u64))
}

/// Lines of a large file, which is read as a stream.
fn lines(objects: &Objects, entry: &Entry, size: u64, positions: Positions, most: u64) -> Result<(String, Extent)> {
    let (first, last) = match positions {
        Positions::Span { start, end } => (start, end),
        Positions::Last(count) => {
            let mut total = 0;
            let mut ends = false;
            each_piece(objects, entry, size.saturating_mul(2), |piece| {
                total += memchr::memchr_iter(b'\n', piece).count() as u64;
                ends = piece.last() == Some(&b'\n');
                true
            })?;
            total += u64::from(!ends);
            (total.saturating_sub(count), None)
        }
    };
    let (mut line, mut bytes, mut is_full) = (0u64, Vec::new(), false);
    each_piece(objects, entry, size, |piece| {
        for part in piece.split_inclusive(|byte| *byte == b'\n') {
            if last.is_some_and(|last| line >= last) {
                return false;
            }
            if line >= first {
                if (bytes.len() + part.len()) as u64 > most {
                    is_full = true;
                    return false;
                }
                bytes.extend_from_slice(part);
            }
            line += u64::from(part.ends_with(b"\n"));
        }
        true
    })?;
    let is_end = !is_full && last.is_none_or(|last| line < last);
    if !is_end && let Some(end) = memchr::memrchr(b'\n', &bytes) {
        bytes.truncate(end + 1);
    } else if is_full {
        return Err(Error::invalid(format_args!(
            "line {} is longer than {most} bytes, the limit of a read; read it with \"?bytes=0-65535\"",
            first + 1
        )));
    }
    let text = String::from_utf8(bytes)
        .map_err(|_| Error::invalid("the file is not UTF-8 and has no lines; read it with \"?bytes=0-65535\""))?;
    let end = first + text.split_inclusive('\n').count() as u64;
    Ok((text, Extent::open(Unit::Lines, first, end, !is_end)))
}

/// Calls `take` for each piece of a file, until it returns false. `passed` is the number of bytes that all passes need.
fn each_piece(objects: &Objects, entry: &Entry, passed: u64, mut take: impl FnMut(&[u8]) -> bool) -> Result<()> {
    let Some(mut stream) = range::stream(objects, &entry.id, passed)? else {
        return Err(Error::invalid(
            "the file is large and stored as a delta, which has no lines before it is unpacked; read it with \
             \"?bytes=0-65535\"",
        ));
    };
    let mut buffer = vec![0; 64 * 1024];
    loop {
        let got = stream.read(&mut buffer)?;
        let piece = buffer.get(..got).unwrap_or_default();
        if piece.is_empty() || !take(piece) {
            return Ok(());
        }
    }
}
