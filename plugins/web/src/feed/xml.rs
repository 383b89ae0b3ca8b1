//! Splits the XML of a feed into tags and texts. Knows neither namespaces nor feeds.
//!
//! Never fails, because many feeds are not well-formed: bare `&` and `<`, entities of HTML, missing quotation marks and
//! missing ends are read as browsers read them. Strict readers stop at the first of these.

use std::borrow::Cow;

use markup5ever::data::{C1_REPLACEMENTS, NAMED_ENTITIES};

/// A piece of XML.
#[derive(Debug, PartialEq)]
pub(super) enum Token<'a> {
    /// A start tag, with its attributes in their order. `is_empty`: it ends in `/>`.
    Open { name: &'a str, attributes: Vec<(&'a str, Cow<'a, str>)>, is_empty: bool },
    /// An end tag.
    Close(&'a str),
    /// A text, its references replaced.
    Text(Cow<'a, str>),
}

/// The most entities that a document may declare.
const MAX_ENTITIES: usize = 200;

/// The longest value of a declared entity, in bytes, with all references in it replaced.
const MAX_ENTITY: usize = 80;

/// The longest name of a reference, in bytes.
const MAX_NAME: usize = 40;

/// The pieces of a document.
#[derive(Debug)]
pub(super) struct Tokens<'a> {
    rest: &'a str,
    entities: Vec<(&'a str, Cow<'a, str>)>,
    /// True if the document ends within a tag, a comment or a CDATA section.
    pub(super) is_cut: bool,
}

impl<'a> Tokens<'a> {
    pub(super) fn new(document: &'a str) -> Self {
        Tokens { rest: document, entities: Vec::new(), is_cut: false }
    }

    /// The text before `end`, and skips both. Everything if there is no `end`.
    fn take_until(&mut self, end: &str) -> &'a str {
        match self.rest.split_once(end) {
            Some((before, after)) => {
                self.rest = after;
                before
            }
            None => {
                self.is_cut = true;
                std::mem::take(&mut self.rest)
            }
        }
    }

    /// A tag or declaration. `None` if the `<` is text, or if what it begins is no part of the content.
    fn markup(&mut self) -> Option<Token<'a>> {
        if let Some(after) = self.rest.strip_prefix("<!--") {
            self.rest = after;
            self.take_until("-->");
        } else if let Some(after) = self.rest.strip_prefix("<![CDATA[") {
            self.rest = after;
            return Some(Token::Text(Cow::Borrowed(self.take_until("]]>"))));
        } else if let Some(after) = self.rest.strip_prefix("<?") {
            self.rest = after;
            self.take_until(">");
        } else if let Some(after) = self.rest.strip_prefix("<!") {
            self.rest = after;
            self.declaration();
        } else if let Some(after) = self.rest.strip_prefix("</") {
            self.rest = after;
            let end = self.rest.find(['>', '<']).unwrap_or(self.rest.len());
            let (name, after) = self.rest.split_at_checked(end).unwrap_or((self.rest, ""));
            self.is_cut |= after.is_empty();
            self.rest = after.strip_prefix('>').unwrap_or(after);
            return Some(Token::Close(name.trim()));
        } else {
            return self.open();
        }
        None
    }

    /// A start tag.
    fn open(&mut self) -> Option<Token<'a>> {
        let after = self.rest.strip_prefix('<')?;
        let end = after.find(|c: char| c.is_ascii_whitespace() || matches!(c, '/' | '>' | '<')).unwrap_or(after.len());
        let (name, after) = after.split_at_checked(end)?;
        self.rest = after;
        let mut attributes = Vec::new();
        loop {
            self.rest = self.rest.trim_start_matches(|c: char| c.is_ascii_whitespace());
            let is_empty = self.rest.starts_with("/>");
            if is_empty || self.rest.starts_with('>') {
                self.rest = self.rest.get(1 + usize::from(is_empty)..).unwrap_or_default();
                return Some(Token::Open { name, attributes, is_empty });
            }
            if self.rest.is_empty() {
                self.is_cut = true;
                return None;
            }
            if self.rest.starts_with('<') {
                // The `>` is missing.
                return Some(Token::Open { name, attributes, is_empty });
            }
            if let Some(after) = self.rest.strip_prefix(['/', '=', '"', '\'']) {
                self.rest = after;
                continue;
            }
            let attribute = self.attribute();
            attributes.push(attribute);
        }
    }

    fn attribute(&mut self) -> (&'a str, Cow<'a, str>) {
        let is_end = |c: char| c.is_ascii_whitespace() || matches!(c, '=' | '>' | '/' | '<' | '"' | '\'');
        let end = self.rest.find(is_end).unwrap_or(self.rest.len());
        let (name, after) = self.rest.split_at_checked(end).unwrap_or((self.rest, ""));
        self.rest = after;
        let Some(after) = after.trim_start().strip_prefix('=') else { return (name, Cow::Borrowed("")) };
        let after = after.trim_start();
        let quoted = after.strip_prefix('"').map(|value| (value, '"'));
        let quoted = quoted.or_else(|| after.strip_prefix('\'').map(|value| (value, '\'')));
        let split = match quoted {
            Some((value, mark)) => value.split_once(mark).or_else(|| {
                // Without the second mark, the value ends with the tag.
                value.split_at_checked(value.find('>').unwrap_or(value.len()))
            }),
            None => {
                let end = after.find(|c: char| c.is_ascii_whitespace() || c == '>').unwrap_or(after.len());
                let end = if after.get(..end).is_some_and(|value| value.ends_with('/')) { end - 1 } else { end };
                after.split_at_checked(end)
            }
        };
        let (value, after) = split.unwrap_or((after, ""));
        self.rest = after;
        (name, self.replaced(value))
    }

    /// Skips a declaration such as a DOCTYPE, and remembers the entities that it declares.
    fn declaration(&mut self) {
        let end = self.rest.find(['>', '[']).unwrap_or(self.rest.len());
        if !self.rest.get(end..).is_some_and(|rest| rest.starts_with('[')) {
            self.take_until(">");
            return;
        }
        let subset = self.take_until("]");
        self.take_until(">");
        for declared in subset.split("<!ENTITY").skip(1).take(MAX_ENTITIES) {
            let Some((name, rest)) = declared.trim_start().split_once(|c: char| c.is_ascii_whitespace()) else {
                continue;
            };
            let rest = rest.trim_start();
            let Some(mark) = rest.chars().next().filter(|mark| matches!(mark, '"' | '\'')) else { continue };
            let value = rest.get(1..).and_then(|rest| rest.split_once(mark)).map(|(value, _)| value);
            let Some(value) = value.filter(|value| value.len() <= MAX_ENTITY) else { continue };
            let value = self.replaced(value);
            if value.len() <= MAX_ENTITY {
                self.entities.push((name, value));
            }
        }
    }

    /// A text with its references replaced. Unknown ones stay.
    fn replaced(&self, text: &'a str) -> Cow<'a, str> {
        if !text.contains('&') {
            return Cow::Borrowed(text);
        }
        let mut pieces = text.split('&');
        let mut whole = String::with_capacity(text.len());
        whole.push_str(pieces.next().unwrap_or_default());
        for piece in pieces {
            match self.reference(piece, &mut whole) {
                Some(after) => whole.push_str(after),
                None => {
                    whole.push('&');
                    whole.push_str(piece);
                }
            }
        }
        Cow::Owned(whole)
    }

    /// Adds the character of the reference at the start of `piece`, and returns the rest. `None` if there is none.
    fn reference<'p>(&self, piece: &'p str, into: &mut String) -> Option<&'p str> {
        if let Some(number) = piece.strip_prefix('#') {
            let (digits, radix) = match number.strip_prefix(['x', 'X']) {
                Some(digits) => (digits, 16),
                None => (number, 10),
            };
            let end = digits.find(|c: char| !c.is_digit(radix)).unwrap_or(digits.len());
            let (digits, after) = digits.split_at_checked(end).filter(|(digits, _)| !digits.is_empty())?;
            into.push(character(u32::from_str_radix(digits, radix).unwrap_or(u32::MAX)));
            return Some(after.strip_prefix(';').unwrap_or(after));
        }
        let end = piece.bytes().take(MAX_NAME).position(|byte| byte == b';')?;
        let (name, after) = piece.split_at_checked(end)?;
        let after = after.strip_prefix(';')?;
        match name {
            "lt" => into.push('<'),
            "gt" => into.push('>'),
            "amp" => into.push('&'),
            "quot" => into.push('"'),
            "apos" => into.push('\''),
            _ => match self.entities.iter().find(|(known, _)| *known == name) {
                Some((_, value)) => into.push_str(value),
                None => {
                    let (first, second) = NAMED_ENTITIES.get(piece.get(..=end)?).filter(|(first, _)| *first != 0)?;
                    into.extend([*first, *second].into_iter().filter(|code| *code != 0).filter_map(char::from_u32));
                }
            },
        }
        Some(after)
    }
}

/// The local name of the first element, in lower case. Reads no further.
pub(super) fn root(document: &str) -> Option<String> {
    Tokens::new(document).find_map(|token| match token {
        Token::Open { name, .. } => Some(name.rsplit(':').next().unwrap_or(name).to_ascii_lowercase()),
        _ => None,
    })
}

/// The character of a number. Those of windows-1252 in the C1 area are meant as such.
fn character(code: u32) -> char {
    let meant = usize::try_from(code).ok().and_then(|code| code.checked_sub(0x80));
    let meant = meant.and_then(|at| C1_REPLACEMENTS.get(at)).copied().flatten();
    meant.or_else(|| char::from_u32(code)).filter(|c| *c != '\0').unwrap_or(char::REPLACEMENT_CHARACTER)
}

impl<'a> Iterator for Tokens<'a> {
    type Item = Token<'a>;

    fn next(&mut self) -> Option<Token<'a>> {
        while !self.rest.is_empty() {
            let bytes = self.rest.as_bytes();
            let begins = |byte: &u8| matches!(byte, b'!' | b'?' | b'/' | b'_' | b':') || byte.is_ascii_alphabetic();
            let is_markup = |at: usize| bytes.get(at + 1).is_some_and(|byte| begins(byte) || *byte >= 0x80);
            if bytes.first() == Some(&b'<') && is_markup(0) {
                match self.markup() {
                    Some(token) => return Some(token),
                    None => continue,
                }
            }
            // A `<` that begins no markup is text.
            let end = self.rest.match_indices('<').map(|(at, _)| at).find(|at| is_markup(*at));
            let (text, after) = self.rest.split_at_checked(end.unwrap_or(self.rest.len()))?;
            self.rest = after;
            return Some(Token::Text(self.replaced(text)));
        }
        None
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn shown(document: &str) -> String {
        let mut shown = String::new();
        for token in Tokens::new(document) {
            match token {
                Token::Open { name, attributes, is_empty } => {
                    let attributes: Vec<String> = attributes.iter().map(|(k, v)| format!(" {k}={v}")).collect();
                    shown += &format!("({name}{}{})", attributes.concat(), if is_empty { "/" } else { "" });
                }
                Token::Close(name) => shown += &format!("(/{name})"),
                Token::Text(text) => shown += &text,
            }
        }
        shown
    }

    #[test]
    fn well_formed_xml_is_split() {
        assert_eq!(
            shown("<?xml version='1.0'?><!DOCTYPE a><!-- <x> --><a b=\"1\" c='&lt;2'>t&amp;&#8364;<d/></a >"),
            "(a b=1 c=<2)t&€(d/)(/a)"
        );
        assert_eq!(shown("<a><![CDATA[<b>&amp;]]></a>"), "(a)<b>&amp;(/a)");
    }

    #[test]
    fn malformed_xml_is_read_as_far_as_possible() {
        assert_eq!(shown("<a>1 < 2 && 3 <= 4 &nbsp;&x; &#146;&#0;</a>"), "(a)1 < 2 && 3 <= 4 \u{a0}&x; ’\u{fffd}(/a)");
        assert_eq!(shown("<a href=x/y checked b='1></a>"), "(a href=x/y checked= b=1)(/a)");
        assert_eq!(shown("<a <b>x</b<c/>"), "(a)(b)x(/b)(c/)");
        assert_eq!(shown("<a/ >&eacute;&rarr;"), "(a)é→");
        for cut in ["<a>x<!-- y", "<a>x<b", "<a>x</b", "<a>x<b c='d", "<a>x<?y"] {
            let mut tokens = Tokens::new(cut);
            let count = tokens.by_ref().count();
            assert!((2..=3).contains(&count) && tokens.is_cut, "{cut}");
        }
    }

    #[test]
    fn declared_entities_are_replaced_once() {
        let document = "<!DOCTYPE r [<!ENTITY who \"Ann &#38; Bob\"><!ENTITY two '&who;&who;'>]><r>&who; &two;</r>";
        assert_eq!(shown(document), "(r)Ann & Bob Ann & BobAnn & Bob(/r)");
        let bomb: String = (1..40).map(|n| format!("<!ENTITY a{n} '&a{0};&a{0};'>", n - 1)).collect();
        let document = format!("<!DOCTYPE r [<!ENTITY a0 '0123456789'>{bomb}]><r>&a39;</r>");
        assert!(shown(&document).len() < 10_000_000);
    }
}
