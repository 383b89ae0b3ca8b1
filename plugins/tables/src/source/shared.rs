//! The shared texts of an XLSX workbook, looked up in their list when a part of a sheet needs them.

use std::collections::BTreeMap;
use std::io::{BufReader, Read as _};

use belljar_tree::File;
use zip::ZipArchive;

use crate::cell::Value;
use crate::source::tags::Tags;

/// The most shared texts that are kept, in bytes.
const MAX_KEPT: usize = 12 * 1024 * 1024;

/// The list of shared texts.
pub(crate) struct Shared<'b> {
    pub(crate) archive: &'b mut ZipArchive<BufReader<File>>,
    pub(crate) part: Option<&'b str>,
    pub(crate) kept: &'b mut BTreeMap<u32, String>,
}

impl Shared<'_> {
    /// Reads the texts with these numbers.
    pub(crate) fn find(&mut self, wanted: impl Iterator<Item = u32>) -> std::io::Result<()> {
        if self.kept.values().map(String::len).sum::<usize>() > MAX_KEPT {
            self.kept.clear();
        }
        let mut missing: Vec<u32> = wanted.filter(|at| !self.kept.contains_key(at)).collect();
        missing.sort_unstable();
        missing.dedup();
        let (Some(part), Some(last)) = (self.part, missing.last().copied()) else { return Ok(()) };
        let mut tags = Tags::new(self.archive.by_name(part).map_err(std::io::Error::other)?.take(u64::MAX));
        let (mut at, mut missing) = (0, missing.into_iter().peekable());
        while at <= last {
            if let Some(wanted) = missing.peek().filter(|wanted| **wanted > at) {
                at += tags.skip_elements(b"<si>", b"</si>", *wanted - at)?;
            }
            let Some(tag) = tags.next()? else { break };
            if !tag.starts("si") {
                tags.tidy();
                continue;
            }
            let (is_empty, has_prefix) = (tag.is_empty, tag.has_prefix);
            tags.tidy();
            let is_missing = missing.next_if_eq(&at).is_some();
            if is_missing {
                let text = if is_empty { String::new() } else { item(&mut tags)? };
                self.kept.insert(at, text);
            } else if !is_empty && !has_prefix {
                tags.skip_past(b"</si>")?;
            }
            at += 1;
        }
        Ok(())
    }

    /// The text with a number that was read before.
    pub(crate) fn text(&self, at: u32) -> Value {
        match self.kept.get(&at).map(String::as_str) {
            None | Some("") => Value::Empty,
            Some(text) => Value::Text(text.to_owned()),
        }
    }
}

/// The text of a shared item, up to its end.
pub(crate) fn item<R: std::io::Read>(tags: &mut Tags<R>) -> std::io::Result<String> {
    let (mut text, mut in_hint, mut in_text) = (String::new(), false, false);
    while let Some(tag) = tags.next()? {
        match (tag.is_end, tag.name) {
            (true, b"si") => break,
            (is_end, b"rPh") => in_hint = !is_end,
            (false, b"t") => in_text = !tag.is_empty && !in_hint,
            (true, b"t") if in_text => {
                text.push_str(&tag.text());
                in_text = false;
            }
            _ => {}
        }
        tags.tidy();
    }
    Ok(unescaped(&text))
}

/// Replaces the escapes of control characters, such as `_x000D_`.
pub(crate) fn unescaped(text: &str) -> String {
    let mut out = String::with_capacity(text.len());
    let mut rest = text;
    while let Some(at) = rest.find("_x") {
        let (before, escape) = rest.split_at(at);
        out.push_str(before);
        let code = escape.get(2..6).filter(|_| escape.get(6..7) == Some("_"));
        match code.and_then(|code| char::from_u32(u32::from_str_radix(code, 16).ok()?)) {
            Some(found) => {
                out.push(found);
                rest = escape.get(7..).unwrap_or_default();
            }
            None => {
                out.push_str("_x");
                rest = escape.get(2..).unwrap_or_default();
            }
        }
    }
    out.push_str(rest);
    out
}
