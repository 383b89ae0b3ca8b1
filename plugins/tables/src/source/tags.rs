//! Reads the tags of an XML stream one by one, in constant memory. For the parts of workbooks, which are large and simple;
//! it does not check that tags match.

use std::io::{self, Read};

use memchr::{memchr, memmem};

use crate::source::feed::Clock;

/// The size of a block, in bytes.
const BLOCK: usize = 64 * 1024;

/// The longest text or tag, in bytes. A longer one is an error.
const LONGEST: usize = 4 * 1024 * 1024;

/// A stream of tags.
pub(crate) struct Tags<R> {
    input: R,
    buffer: Vec<u8>,
    /// The position of the next byte in the buffer.
    at: usize,
    is_over: bool,
}

/// A tag, and the text before it.
#[derive(Debug)]
pub(crate) struct Tag<'b> {
    /// The text between the tag before and this one, as it is written.
    pub(crate) text: &'b [u8],
    /// The name without a prefix.
    pub(crate) name: &'b [u8],
    pub(crate) has_prefix: bool,
    pub(crate) attributes: &'b [u8],
    pub(crate) is_end: bool,
    /// True for a tag such as `<c/>`, which has no end tag.
    pub(crate) is_empty: bool,
}

impl<R: Read> Tags<R> {
    pub(crate) fn new(input: R) -> Self {
        Tags { input, buffer: Vec::with_capacity(2 * BLOCK), at: 0, is_over: false }
    }

    /// The next tag. `None` at the end of the stream.
    pub(crate) fn next(&mut self) -> io::Result<Option<Tag<'_>>> {
        let mut from = self.at;
        loop {
            let Some(open) = self.find(from, |rest| memchr(b'<', rest))? else { return Ok(None) };
            self.need(open + 9)?;
            let start = self.buffer.get(open..).unwrap_or_default();
            // Comments and marked sections may contain `<` and `>`.
            let close: &[u8] = match start.get(1) {
                Some(b'!') if start.starts_with(b"<!--") => b"-->",
                Some(b'!') if start.starts_with(b"<![CDATA[") => b"]]>",
                Some(b'!' | b'?') => b">",
                _ => {
                    let Some(close) = self.find(open, |rest| memchr(b'>', rest))? else { return Ok(None) };
                    let first = std::mem::replace(&mut self.at, close + 1);
                    let text = self.buffer.get(first..open).unwrap_or_default();
                    return Ok(Some(tag(text, self.buffer.get(open + 1..close).unwrap_or_default())));
                }
            };
            let end = self.find(open, |rest| memmem::find(rest, close).map(|at| at + close.len()))?;
            match end {
                Some(end) => from = end,
                None => return Ok(None),
            }
        }
    }

    /// The position of what `search` finds from a position. Reads more of the stream if needed.
    fn find(&mut self, from: usize, search: impl Fn(&[u8]) -> Option<usize>) -> io::Result<Option<usize>> {
        loop {
            if let Some(found) = self.buffer.get(from..).and_then(&search) {
                return Ok(Some(from + found));
            }
            if !self.fill()? {
                return Ok(None);
            }
        }
    }

    /// Reads until the buffer has `length` bytes, if the stream has.
    fn need(&mut self, length: usize) -> io::Result<()> {
        while self.buffer.len() < length && self.fill()? {}
        Ok(())
    }

    /// Reads a block to the end of the buffer. False at the end of the stream.
    fn fill(&mut self) -> io::Result<bool> {
        if self.is_over {
            return Ok(false);
        }
        let before = self.buffer.len();
        if before - self.at > LONGEST {
            return Err(io::Error::other(format!("a text or tag has more than {LONGEST} bytes")));
        }
        self.buffer.resize(before + BLOCK, 0);
        let read = self.input.read(self.buffer.get_mut(before..).unwrap_or_default())?;
        self.buffer.truncate(before + read);
        self.is_over = read == 0;
        Ok(read > 0)
    }

    /// Skips to the byte after the next `end`, without looking at tags. False if the stream ends before.
    pub(crate) fn skip_past(&mut self, end: &[u8]) -> io::Result<bool> {
        let finder = memmem::Finder::new(end);
        loop {
            if let Some(found) = self.buffer.get(self.at..).and_then(|rest| finder.find(rest)) {
                self.at += found + end.len();
                return Ok(true);
            }
            // The end may be divided by the end of the buffer.
            self.at = self.at.max(self.buffer.len().saturating_sub(end.len()));
            self.tidy();
            if !self.fill()? {
                return Ok(false);
            }
        }
    }

    /// Skips whole blocks whose last tag with the name `name` does not satisfy `is_reached`, which gets the bytes after the
    /// name. Stops before the block in which one does.
    pub(crate) fn skip_blocks(
        &mut self,
        name: &[u8],
        is_reached: impl Fn(&[u8]) -> Option<bool>,
        clock: &mut Clock,
    ) -> io::Result<()> {
        /// The bytes after the name that are enough for an answer.
        const ENOUGH: usize = 40;
        let finder = memmem::FinderRev::new(name);
        loop {
            let end = self.buffer.len().saturating_sub(ENOUGH);
            let last = self.buffer.get(self.at..end).and_then(|block| finder.rfind(block)).map(|found| self.at + found);
            if let Some(last) = last {
                let after = self.buffer.get(last + name.len()..).unwrap_or_default();
                if is_reached(after) != Some(false) {
                    return Ok(());
                }
                self.at = last;
            }
            if clock.is_over() {
                return Ok(());
            }
            self.tidy();
            if !self.fill()? {
                return Ok(());
            }
        }
    }

    /// Skips elements that begin with `open` here and end with `end`, at most `most`. Gives their number; it stops before an
    /// element of another form.
    pub(crate) fn skip_elements(&mut self, open: &[u8], end: &[u8], most: u32) -> io::Result<u32> {
        let finder = memmem::Finder::new(end);
        let mut count = 0;
        while count < most {
            let rest = self.buffer.get(self.at..).unwrap_or_default();
            match rest.starts_with(open).then(|| finder.find(rest)).flatten() {
                Some(found) => {
                    self.at += found + end.len();
                    count += 1;
                }
                None if rest.len() > open.len() && !rest.starts_with(open) => break,
                None => {
                    self.tidy();
                    if !self.fill()? {
                        break;
                    }
                }
            }
        }
        Ok(count)
    }

    /// Drops the bytes before the current position. Call it between tags.
    pub(crate) fn tidy(&mut self) {
        if self.at >= BLOCK {
            self.buffer.drain(..self.at);
            self.at = 0;
        }
    }
}

fn tag<'b>(text: &'b [u8], inside: &'b [u8]) -> Tag<'b> {
    let (is_end, inside) = match inside.strip_prefix(b"/") {
        Some(rest) => (true, rest),
        None => (false, inside),
    };
    let (is_empty, inside) = match inside.strip_suffix(b"/") {
        Some(rest) => (true, rest),
        None => (false, inside),
    };
    let end = inside.iter().position(u8::is_ascii_whitespace).unwrap_or(inside.len());
    let (name, attributes) = inside.split_at_checked(end).unwrap_or((inside, b""));
    let local = memchr(b':', name).and_then(|at| name.get(at + 1..));
    Tag { text, name: local.unwrap_or(name), has_prefix: local.is_some(), attributes, is_end, is_empty }
}

impl Tag<'_> {
    pub(crate) fn starts(&self, name: &str) -> bool {
        !self.is_end && self.name == name.as_bytes()
    }

    pub(crate) fn ends(&self, name: &str) -> bool {
        self.is_end && self.name == name.as_bytes()
    }

    /// The value of an attribute, as it is written. `name` may have a prefix.
    pub(crate) fn raw(&self, name: &str) -> Option<&[u8]> {
        let mut rest = self.attributes;
        loop {
            rest = rest.trim_ascii_start();
            let equals = memchr(b'=', rest)?;
            let key = rest.get(..equals)?.trim_ascii_end();
            let value = rest.get(equals + 1..)?.trim_ascii_start();
            let (quote, value) = value.split_first().filter(|(quote, _)| matches!(quote, b'"' | b'\''))?;
            let end = memchr(*quote, value)?;
            if key == name.as_bytes() {
                return value.get(..end);
            }
            rest = value.get(end + 1..)?;
        }
    }

    /// The value of an attribute as text.
    pub(crate) fn attribute(&self, name: &str) -> Option<String> {
        self.raw(name).map(unescaped)
    }

    /// The text before the tag.
    pub(crate) fn text(&self) -> String {
        unescaped(self.text)
    }
}

/// The text of XML: entities replaced, marked sections as they are, comments left out.
pub(crate) fn unescaped(raw: &[u8]) -> String {
    let raw = String::from_utf8_lossy(raw);
    if !raw.contains(['&', '<', '\r']) {
        return raw.into_owned();
    }
    let mut out = String::with_capacity(raw.len());
    let mut rest: &str = &raw.replace("\r\n", "\n");
    while let Some(at) = rest.find(['&', '<']) {
        let (before, special) = rest.split_at(at);
        out.push_str(before);
        let sections = [("<![CDATA[", "]]>", true), ("<!--", "-->", false), ("<", ">", false)];
        if let Some((open, close, keeps)) = sections.into_iter().find(|(open, ..)| special.starts_with(open)) {
            let inner = special.get(open.len()..).unwrap_or_default();
            let (text, after) = inner.split_once(close).unwrap_or((inner, ""));
            out.push_str(if keeps { text } else { "" });
            rest = after;
            continue;
        }
        let entity = special.find(';').and_then(|end| Some((special.get(1..end)?, special.get(end + 1..)?)));
        match entity.and_then(|(name, after)| Some((character(name)?, after))) {
            Some((found, after)) => {
                out.push(found);
                rest = after;
            }
            None => {
                out.push('&');
                rest = special.get(1..).unwrap_or_default();
            }
        }
    }
    out.push_str(rest);
    out
}

fn character(name: &str) -> Option<char> {
    Some(match name {
        "amp" => '&',
        "lt" => '<',
        "gt" => '>',
        "quot" => '"',
        "apos" => '\'',
        _ => {
            let number = name.strip_prefix('#')?;
            let code = match number.strip_prefix(['x', 'X']) {
                Some(digits) => u32::from_str_radix(digits, 16).ok()?,
                None => number.parse().ok()?,
            };
            char::from_u32(code)?
        }
    })
}

#[cfg(test)]
mod tests {
    use super::*;

    fn all(xml: &str) -> Vec<String> {
        let mut tags = Tags::new(xml.as_bytes());
        let mut out = Vec::new();
        while let Some(tag) = tags.next().unwrap() {
            let name = String::from_utf8_lossy(tag.name).into_owned();
            out.push(format!(
                "{}|{}{name}{}",
                tag.text(),
                if tag.is_end { "/" } else { "" },
                if tag.is_empty { "." } else { "" }
            ));
            tags.tidy();
        }
        out
    }

    #[test]
    fn tags_have_the_text_before_them() {
        assert_eq!(all("<?xml?><x:a><b c='1'/>t&amp;u</x:a>"), ["|a", "|b.", "t&u|/a"]);
        assert_eq!(all("<a><!-- <x> -->1<![CDATA[<&>]]>2</a>"), ["|a", "1<&>2|/a"]);
        assert_eq!(all("<a"), Vec::<String>::new());
        let long = format!("<a>{}</a>", "x".repeat(3 * BLOCK));
        assert_eq!(all(&long)[1].len(), 3 * BLOCK + 3);
    }

    #[test]
    fn attributes_and_entities_are_read() {
        let mut tags = Tags::new(&b"<c r=\"A1\" t = 's' x:y=\"&#65;&lt;&bad;&#x20AC;\">"[..]);
        let tag = tags.next().unwrap().unwrap();
        assert_eq!(tag.raw("t"), Some(&b"s"[..]));
        assert_eq!(tag.attribute("x:y").as_deref(), Some("A<&bad;\u{20ac}"));
        assert_eq!(tag.raw("none"), None);
    }
}
