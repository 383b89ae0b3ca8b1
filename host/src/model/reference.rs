//! Syntax checks for URIs: bases, references and templates. No other module judges the syntax of a URI.
//!
//! A reference is checked once, on arrival, and then passed on unchanged. Nothing is decoded, folded or rewritten: the
//! guest gets exactly the text that was checked.

mod syntax_error;

use std::borrow::Cow;

use iri_string::template::UriTemplateStr;
use iri_string::types::{UriAbsoluteStr, UriRelativeStr};
use percent_encoding::{AsciiSet, NON_ALPHANUMERIC, percent_decode_str};

use super::guard::Guard;
pub use syntax_error::SyntaxError;

/// The longest URI, in bytes.
pub const MAX_URI: usize = 2048;

/// All characters but the unreserved ones (RFC 3986, 2.3). Escapes a value of any kind.
pub const NOT_UNRESERVED: &AsciiSet = &NON_ALPHANUMERIC.remove(b'-').remove(b'.').remove(b'_').remove(b'~');

/// All characters but those that stand for themselves in a path, and the slash (RFC 3986, 3.3).
pub const NOT_IN_PATH: &AsciiSet = &NOT_UNRESERVED
    .remove(b'!')
    .remove(b'$')
    .remove(b'&')
    .remove(b'\'')
    .remove(b'(')
    .remove(b')')
    .remove(b'*')
    .remove(b'+')
    .remove(b',')
    .remove(b';')
    .remove(b'=')
    .remove(b':')
    .remove(b'@')
    .remove(b'/');

/// All characters but the unreserved and reserved ones (RFC 3986, 2.2), and the `%` of an escape.
pub const NOT_IN_URI: &AsciiSet = &NOT_IN_PATH.remove(b'?').remove(b'#').remove(b'[').remove(b']').remove(b'%');

/// Checks a relative reference, as a client requests it or a provider lists it (RFC 3986 4.2). Refused: a leading
/// slash, a fragment, a dot segment in any spelling, a control character, and text that is not UTF-8 after one
/// decoding. The empty reference names the mount itself.
///
/// # Errors
/// The rule that the reference breaks, with the cure.
pub fn check(reference: &str) -> Result<(), SyntaxError> {
    if_guarded(check_whole(reference))
}

/// `decided` while [`Guard::Reference`] is on, `Ok` otherwise.
fn if_guarded(decided: Result<(), SyntaxError>) -> Result<(), SyntaxError> {
    if Guard::Reference.is_on() { decided } else { Ok(()) }
}

fn check_whole(reference: &str) -> Result<(), SyntaxError> {
    if reference.is_empty() {
        return Ok(());
    }
    if reference.len() > MAX_URI {
        return Err(SyntaxError::TooLong);
    }
    if reference.contains('#') {
        return Err(SyntaxError::Fragment);
    }
    if reference.starts_with('/') {
        return Err(SyntaxError::Absolute);
    }
    check_characters(reference)?;
    if UriRelativeStr::new(reference).is_err() {
        return Err(SyntaxError::Colon);
    }
    let (path, query) = reference.split_once('?').unwrap_or((reference, ""));
    for segment in path.split('/') {
        check_segment(segment)?;
    }
    check_decoded(query)
}

/// Decodes the escapes of unreserved characters (RFC 3986 6.2.2.2). Names must be compared in this form.
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

fn check_characters(reference: &str) -> Result<(), SyntaxError> {
    let mut bytes = reference.bytes();
    while let Some(b) = bytes.next() {
        match b {
            b'%' => {
                let hex = |b: Option<u8>| b.is_some_and(|b| b.is_ascii_hexdigit());
                if !hex(bytes.next()) || !hex(bytes.next()) {
                    return Err(SyntaxError::Percent);
                }
            }
            b'A'..=b'Z' | b'a'..=b'z' | b'0'..=b'9' => {}
            b'-' | b'.' | b'_' | b'~' | b'!' | b'$' | b'&' | b'\'' | b'(' | b')' | b'*' | b'+' | b',' | b';' | b'='
            | b':' | b'@' | b'/' | b'?' => {}
            _ => return Err(SyntaxError::Character),
        }
    }
    Ok(())
}

fn check_segment(segment: &str) -> Result<(), SyntaxError> {
    check_decoded(segment)?;
    let decoded = percent_decode_str(segment).decode_utf8_lossy();
    // An encoded slash or backslash could separate a dot segment from its neighbours.
    if decoded.split(['/', '\\']).any(|part| part == "." || part == "..") {
        return Err(SyntaxError::DotSegment);
    }
    Ok(())
}

fn check_decoded(part: &str) -> Result<(), SyntaxError> {
    let Ok(decoded) = percent_decode_str(part).decode_utf8() else {
        return Err(SyntaxError::NotUtf8);
    };
    if decoded.chars().any(char::is_control) {
        return Err(SyntaxError::Control);
    }
    Ok(())
}

/// Checks the base of a mount: an absolute URI (RFC 3986 4.3) without query, fragment, braces or dot segments. It must
/// end in `/` (or in `:`, for schemes such as `urn:`). Otherwise a base could be a prefix of another one by accident.
///
/// # Errors
/// Says which rule it breaks, and the cure.
pub fn check_base(base: &str) -> Result<(), SyntaxError> {
    if base.len() > MAX_URI / 2 {
        return Err(SyntaxError::BaseTooLong);
    }
    let Some((scheme, rest)) = base.split_once(':') else {
        return Err(SyntaxError::NoScheme);
    };
    if scheme.bytes().any(|b| b.is_ascii_uppercase()) {
        return Err(SyntaxError::UpperCaseScheme);
    }
    let is_letter = |b: u8| b.is_ascii_lowercase() || b.is_ascii_digit() || b"+-.".contains(&b);
    if !scheme.starts_with(|c: char| c.is_ascii_lowercase()) || !scheme.bytes().all(is_letter) {
        return Err(SyntaxError::Scheme);
    }
    if base.contains(['?', '#', '{', '}']) {
        return Err(SyntaxError::NotAPrefix);
    }
    // After `scheme://host:` comes a port, so the colon cannot end the base.
    if !base.ends_with('/') && (!base.ends_with(':') || rest.starts_with("//")) {
        return Err(SyntaxError::NoSlash);
    }
    // `test://` has an empty authority: the first segment of the reference takes its place. It is legal only as a
    // prefix.
    if !rest.is_empty() && rest != "//" && UriAbsoluteStr::new(base).is_err() {
        return Err(SyntaxError::NotAbsolute);
    }
    for segment in rest.split('/') {
        check_segment(segment)?;
    }
    Ok(())
}

/// Checks a relative RFC 6570 template. If all values obey the rules of [`check`], the expansion obeys them too. No
/// value, not even an empty one, turns literal text into a dot segment.
///
/// # Errors
/// Says which rule it breaks.
pub fn check_template(template: &str) -> Result<(), SyntaxError> {
    if_guarded(check_expansion(template))
}

fn check_expansion(template: &str) -> Result<(), SyntaxError> {
    if template.len() > MAX_URI {
        return Err(SyntaxError::TooLong);
    }
    // Must come before the parser: iri-string 0.7.14 panics on "%é".
    if !template.is_ascii() {
        return Err(SyntaxError::Character);
    }
    if UriTemplateStr::new(template).is_err() {
        return Err(SyntaxError::NotATemplate);
    }
    let mut expressions = 0;
    // The expansions with three values for every variable: a letter, empty, undefined.
    let mut samples = [Some("x"), Some(""), None].map(|value| (value, String::with_capacity(template.len())));
    let mut rest = template;
    while let Some((before, after)) = rest.split_once('{') {
        let Some((expression, tail)) = after.split_once('}') else {
            return Err(SyntaxError::NotATemplate);
        };
        // The parser accepts a prefix length of zero, which RFC 6570 forbids.
        if expression.contains(":0") {
            return Err(SyntaxError::NotATemplate);
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
        return Err(SyntaxError::NoExpression);
    }
    if expressions > 32 {
        return Err(SyntaxError::TooManyExpressions);
    }
    if template.contains("{#") {
        return Err(SyntaxError::ExpandsToFragment);
    }
    if template.starts_with("{/") {
        return Err(SyntaxError::PathExpression);
    }
    let [(_, letters), others @ ..] = &samples;
    check(letters)?;
    others
        .iter()
        .flat_map(|(_, sample)| sample.split('?').next())
        .flat_map(|path| path.split('/'))
        .try_for_each(check_segment)
}

/// Appends the expansion of `expression` in which every variable has `value`.
fn expand(expression: &str, value: Option<&str>, into: &mut String) {
    let Some(value) = value else { return };
    let operator = expression.chars().next().filter(|c| matches!(c, '.' | '/' | ';' | '?' | '&'));
    for (at, _) in expression.split(',').enumerate() {
        match operator {
            // `.` and `/` precede every value. The other operators precede `name=`; one such pair is enough for the
            // checks.
            Some(operator @ ('.' | '/')) => into.push(operator),
            Some(operator) if at == 0 => into.extend([operator, 'x', '=']),
            None if at > 0 => into.push(','),
            _ => {}
        }
        into.push_str(value);
    }
}

/// True if a read of `asked` may answer with contents for `given`: the same reference, or one below it.
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
    fn refuses_dangerous_references() {
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
