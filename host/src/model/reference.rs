//! Names on the outside: bases, references, templates. Pure checks; the one place where a URI's syntax is judged.
//!
//! A reference is checked once, when it comes in, and then passed on letter by letter: nothing is decoded, folded
//! or rewritten, so what was checked is what the guest gets.

use std::borrow::Cow;

use iri_string::template::UriTemplateStr;
use iri_string::types::{UriAbsoluteStr, UriRelativeStr};
use percent_encoding::percent_decode_str;

use super::Guard;

/// The longest URI, in bytes.
pub const MAX_URI: usize = 2048;

/// Checks a relative reference as a client asks for it or as a provider lists it: RFC 3986 4.2 without a leading
/// slash, no fragment, no dot segment in any spelling, no control character, valid UTF-8 when decoded once.
/// The empty reference names the mount itself.
///
/// # Errors
/// Says which rule it breaks, and the cure.
pub fn check(reference: &str) -> Result<(), &'static str> {
    if reference.is_empty() || !Guard::Reference.is_on() {
        return Ok(());
    }
    if reference.len() > MAX_URI {
        return Err("is longer than 2048 bytes");
    }
    if reference.contains('#') {
        return Err("has a fragment (\"#...\"); ask for it without");
    }
    if reference.starts_with('/') {
        return Err("begins with \"/\"; a reference is relative to its mount");
    }
    check_characters(reference)?;
    if UriRelativeStr::new(reference).is_err() {
        return Err("has \":\" in its first segment; write it as %3A");
    }
    let (path, query) = reference.split_once('?').unwrap_or((reference, ""));
    for segment in path.split('/') {
        check_segment(segment)?;
    }
    check_decoded(query)
}

/// The same name without escapes of letters that need none (RFC 3986, 6.2.2.2): who compares names compares these.
pub fn unescaped(uri: &str) -> Cow<'_, str> {
    if !uri.contains('%') {
        return Cow::Borrowed(uri);
    }
    let mut out = String::with_capacity(uri.len());
    let mut rest = uri;
    while let Some((before, after)) = rest.split_once('%') {
        out.push_str(before);
        let byte = after.get(..2).and_then(|hex| u8::from_str_radix(hex, 16).ok());
        match byte.map(char::from).filter(|c| c.is_ascii_alphanumeric() || "-._~".contains(*c)) {
            Some(letter) => {
                out.push(letter);
                rest = after.get(2..).unwrap_or_default();
            }
            None => {
                out.push('%');
                rest = after;
            }
        }
    }
    out.push_str(rest);
    Cow::Owned(out)
}

fn check_characters(reference: &str) -> Result<(), &'static str> {
    let mut bytes = reference.bytes();
    while let Some(b) = bytes.next() {
        match b {
            b'%' => {
                let hex = |b: Option<u8>| b.is_some_and(|b| b.is_ascii_hexdigit());
                if !hex(bytes.next()) || !hex(bytes.next()) {
                    return Err(
                        "has a \"%\" that is not followed by two hexadecimal digits; write a percent sign as %25",
                    );
                }
            }
            b'A'..=b'Z' | b'a'..=b'z' | b'0'..=b'9' => {}
            b'-' | b'.' | b'_' | b'~' | b'!' | b'$' | b'&' | b'\'' | b'(' | b')' | b'*' | b'+' | b',' | b';' | b'='
            | b':' | b'@' | b'/' | b'?' => {}
            _ => return Err("has a character that RFC 3986 does not allow; percent-encode it (a space is %20)"),
        }
    }
    Ok(())
}

fn check_segment(segment: &str) -> Result<(), &'static str> {
    check_decoded(segment)?;
    let decoded = percent_decode_str(segment).decode_utf8_lossy();
    // An encoded slash or backslash must not make a dot segment of what stands beside it.
    if decoded.split(['/', '\\']).any(|part| part == "." || part == "..") {
        return Err("has a dot segment (\".\" or \"..\"); name the resource without it");
    }
    Ok(())
}

fn check_decoded(part: &str) -> Result<(), &'static str> {
    let Ok(decoded) = percent_decode_str(part).decode_utf8() else {
        return Err("is not UTF-8 when its percent-encoding is decoded");
    };
    if decoded.chars().any(char::is_control) {
        return Err("has a control character");
    }
    Ok(())
}

/// Checks the base of a mount: an absolute URI (RFC 3986 4.3) without query, fragment, braces or dot segments,
/// that ends in `/` (or in `:`, for schemes such as `urn:`), so that no other base can be its prefix by accident.
///
/// # Errors
/// Says which rule it breaks, and the cure.
pub fn check_base(base: &str) -> Result<(), &'static str> {
    if base.len() > MAX_URI / 2 {
        return Err("is longer than 1024 bytes");
    }
    let Some((scheme, rest)) = base.split_once(':') else {
        return Err("has no scheme; write it as \"scheme://...\"");
    };
    if scheme.bytes().any(|b| b.is_ascii_uppercase()) {
        return Err("has a scheme that is not lower case");
    }
    let is_letter = |b: u8| b.is_ascii_lowercase() || b.is_ascii_digit() || b"+-.".contains(&b);
    if !scheme.starts_with(|c: char| c.is_ascii_lowercase()) || !scheme.bytes().all(is_letter) {
        return Err("has no lawful scheme (a letter, then letters, digits, \"+\", \"-\", \".\")");
    }
    if base.contains(['?', '#', '{', '}']) {
        return Err("has a query, a fragment or a brace; a base is a plain prefix");
    }
    // Behind the colon of an authority there is a port, and no reference.
    if !base.ends_with('/') && (!base.ends_with(':') || rest.starts_with("//")) {
        return Err("does not end in \"/\"; add one");
    }
    // `test://` is an empty authority with the reference's first segment in its place: legal as a prefix only.
    if !rest.is_empty() && rest != "//" && UriAbsoluteStr::new(base).is_err() {
        return Err("is not an absolute URI (RFC 3986)");
    }
    for segment in rest.split('/') {
        check_segment(segment)?;
    }
    Ok(())
}

/// Checks a relative RFC 6570 template: what it expands to follows the rules of [`check`] where its values do, and no
/// value, not even an empty one, makes a dot segment of its literal text.
///
/// # Errors
/// Says which rule it breaks.
pub fn check_template(template: &str) -> Result<(), &'static str> {
    if !Guard::Reference.is_on() {
        return Ok(());
    }
    if template.len() > MAX_URI {
        return Err("is longer than 2048 bytes");
    }
    // The parser cannot be trusted with more: iri-string 0.7.14 panics on "%é".
    if !template.is_ascii() {
        return Err("has a character that RFC 3986 does not allow; percent-encode it (a space is %20)");
    }
    if UriTemplateStr::new(template).is_err() {
        return Err("is not an RFC 6570 template");
    }
    let mut expressions = 0;
    // As it expands when every value is a letter, is empty, is not given.
    let mut samples = [Some("x"), Some(""), None].map(|value| (value, String::with_capacity(template.len())));
    let mut rest = template;
    while let Some((before, after)) = rest.split_once('{') {
        let Some((expression, tail)) = after.split_once('}') else {
            return Err("is not an RFC 6570 template");
        };
        // A prefix of no characters, which the parser lets pass and RFC 6570 does not.
        if expression.contains(":0") {
            return Err("is not an RFC 6570 template");
        }
        for (value, sample) in &mut samples {
            sample.push_str(before);
            expand(expression, *value, sample);
        }
        expressions += 1;
        rest = tail;
    }
    samples.iter_mut().for_each(|(_, sample)| sample.push_str(rest));
    if expressions == 0 {
        return Err("has no expression; list it as a resource");
    }
    if expressions > 32 {
        return Err("has more than 32 expressions");
    }
    if template.contains("{#") {
        return Err("expands to a fragment");
    }
    if template.starts_with("{/") {
        return Err("begins with a path expression, which expands to an absolute path");
    }
    let [(_, letters), others @ ..] = &samples;
    check(letters)?;
    others
        .iter()
        .flat_map(|(_, sample)| sample.split('?').next())
        .flat_map(|path| path.split('/'))
        .try_for_each(check_segment)
}

/// Appends what an expression expands to when each of its variables has `value`.
fn expand(expression: &str, value: Option<&str>, into: &mut String) {
    let Some(value) = value else { return };
    let operator = expression.chars().next().filter(|c| matches!(c, '.' | '/' | ';' | '?' | '&'));
    for (at, _) in expression.split(',').enumerate() {
        match operator {
            // These put it before each of the values; the others before names, of which one is enough.
            Some(operator @ ('.' | '/')) => into.push(operator),
            Some(operator) if at == 0 => into.extend([operator, 'x', '=']),
            None if at > 0 => into.push(','),
            _ => {}
        }
        into.push_str(value);
    }
}

/// Whether a read of `asked` may answer with contents for `given`: the same reference, or one below it.
pub fn is_same_or_below(asked: &str, given: &str) -> bool {
    let asked_path = asked.split('?').next().unwrap_or_default();
    asked == given
        || asked_path.is_empty()
        || given.strip_prefix(asked_path.trim_end_matches('/')).is_some_and(|rest| rest.starts_with('/'))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn accepts_relative_references() {
        for good in [
            "",
            "a",
            "2026/plan.md",
            "a%20b",
            "a/",
            "a//b",
            "%C3%A9.md",
            "a?q=1&r=%2F",
            "...",
            "..a",
            "a..",
            ".hidden",
            "%252e%252e",
            "a:b/c".replace("a:b", "a%3Ab").as_str(),
            "x/a:b",
            "a;b=c",
            "@x",
            "%2e%2e%2e",
        ] {
            assert_eq!(check(good), Ok(()), "{good}");
        }
    }

    #[test]
    fn refuses_what_could_climb_or_confuse() {
        for bad in [
            "..",
            ".",
            "../a",
            "a/..",
            "a/../b",
            "./a",
            "a/.",
            "%2e",
            "%2E%2e",
            ".%2e",
            "%2e./x",
            "a/%2E%2E/b",
            "..%2f..%2fetc",
            "a%2f..",
            "..%5cx",
            "a%5C..%5Cb",
            "/etc/passwd",
            "//evil/x",
            "#f",
            "a#b",
            "a b",
            "é",
            "a%",
            "a%2",
            "a%zz",
            "%00",
            "a%0Ab",
            "%1b",
            "%C2%85",
            "%c0%ae%c0%ae",
            "%ff",
            "a:b",
            "http://x",
            "javascript:1",
            "a\\b",
            "a<b",
            "a\"b",
            "a{b}",
            "a|b",
            "a^b",
            "a`b",
            "a[b]",
            "a\nb",
            "a\0",
            "x?%0d",
            "?\u{202e}",
        ] {
            assert!(check(bad).is_err(), "{bad:?}");
        }
        assert!(check(&"a".repeat(2049)).is_err());
    }

    #[test]
    fn bases() {
        for good in
            ["belljar://notes/", "test://", "notes:///", "file:///srv/notes/", "urn:x:", "https://example.com/a/"]
        {
            assert_eq!(check_base(good), Ok(()), "{good}");
        }
        for bad in [
            "",
            "notes",
            "Notes://x/",
            "notes://x",
            "a://x/?q/",
            "a://x/#/",
            "a://{x}/",
            "a://x/../y/",
            "a://x/%2e%2e/",
            "://x/",
            "a:// /",
            "1:/",
            "1:",
            "x://h:",
            "':",
            "no scheme:",
            "é://",
        ] {
            assert!(check_base(bad).is_err(), "{bad:?}");
        }
    }

    #[test]
    fn templates() {
        for good in ["{+path}", "t/{id}/data", "{id}", "s{?q,n}", "a{/x}", "{a}{b:3}{c*}", "x{.a,b}", "...{a}"] {
            assert_eq!(check_template(good), Ok(()), "{good}");
        }
        for bad in [
            "",
            "plain",
            "{",
            "}",
            "{a",
            "{}",
            "{a b}",
            "x://{y}",
            "/{a}",
            "../{a}",
            "{#a}",
            "{/a}",
            "a b{c}",
            "%zz{a}",
            "..{/a}",
            "x/.{/a}",
            "x/..{a}/y",
            "x/.{.a}",
            "x/{.a,b}",
            "{a:0}",
            "%é",
            "%\u{fffd}{a}",
            "é{a}",
            "..{?a}",
        ] {
            assert!(check_template(bad).is_err(), "{bad:?}");
        }
        assert!(check_template(&"{a}".repeat(33)).is_err());
    }

    #[test]
    fn same_or_below() {
        assert!(is_same_or_below("a", "a"));
        assert!(is_same_or_below("a", "a/b"));
        assert!(is_same_or_below("a/", "a/b"));
        assert!(is_same_or_below("", "anything"));
        assert!(is_same_or_below("a?x=1", "a/b"));
        assert!(!is_same_or_below("a", "ab"));
        assert!(!is_same_or_below("a", "b"));
        assert!(!is_same_or_below("a/b", "a"));
    }
}
