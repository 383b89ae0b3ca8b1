//! Paths of requests: their canonical form, and globs that match it. belljar sends the same form that it has matched.

use std::fmt::Write as _;

use globset::{GlobBuilder, GlobMatcher};
use percent_encoding::percent_decode_str;

/// The most bytes of a path, and of a query.
pub const MAX_BYTES: usize = 8 << 10;

/// The special characters of a glob.
const GLOB_CHARACTERS: [char; 4] = ['*', '?', '{', '}'];

/// The most times that a path is decoded, to find what a careless server might read.
const MAX_DECODINGS: usize = 4;

/// Why a path or a query is malformed.
#[derive(Clone, Copy, Debug, PartialEq, Eq, thiserror::Error)]
pub enum PathError {
    /// The path is too long.
    #[error("the path has more than 8192 bytes")]
    LongPath,
    /// The path does not begin with `/`.
    #[error("the path does not begin with \"/\"")]
    Relative,
    /// The path has a character that some servers read as a slash or as a line end.
    #[error("the path has a backslash or a control character")]
    Backslash,
    /// A segment of the path is `.` or `..`, in any spelling.
    #[error("the path has a dot segment")]
    Dots,
    /// The query is too long.
    #[error("the query has more than 8192 bytes")]
    LongQuery,
    /// A percent sign is not followed by two hexadecimal digits.
    #[error("a \"%\" is not followed by two hexadecimal digits")]
    Percent,
    /// The text has a control character.
    #[error("it has a control character")]
    Control,
}

/// Converts a path into its canonical form (RFC 3986, 6.2.2): unreserved characters bare, escapes in capitals, all
/// characters outside of the path set escaped. Refuses dot segments, backslashes and control characters in every
/// spelling.
///
/// # Errors
/// The first problem of the path.
pub fn normalise(path: &str) -> Result<String, PathError> {
    if path.len() > MAX_BYTES {
        return Err(PathError::LongPath);
    }
    let path = if path.is_empty() { "/" } else { path };
    if !path.starts_with('/') {
        return Err(PathError::Relative);
    }
    let normal = respell(path, |b| is_unreserved(b) || b"!$&'()*+,;=:@/".contains(&b))?;
    if normal.bytes().any(|b| b == b'\\') || ["%5C", "%00", "%0A", "%0D"].iter().any(|bad| normal.contains(bad)) {
        return Err(PathError::Backslash);
    }
    if has_dot_segment(&normal) {
        return Err(PathError::Dots);
    }
    Ok(normal)
}

/// Converts a query into its canonical form in the same way.
///
/// # Errors
/// The first problem of the query.
pub fn normalise_query(query: &str) -> Result<String, PathError> {
    if query.len() > MAX_BYTES {
        return Err(PathError::LongQuery);
    }
    respell(query, |b| is_unreserved(b) || b"!$&'()*+,;=:@/?%".contains(&b))
}

fn is_unreserved(b: u8) -> bool {
    b.is_ascii_alphanumeric() || b"-._~".contains(&b)
}

fn respell(text: &str, bare: impl Fn(u8) -> bool) -> Result<String, PathError> {
    let mut out = String::with_capacity(text.len());
    let mut bytes = text.bytes();
    while let Some(b) = bytes.next() {
        let (value, escaped) = if b == b'%' {
            let mut digit = || bytes.next().and_then(|d| char::from(d).to_digit(16)).and_then(|d| u8::try_from(d).ok());
            let (Some(high), Some(low)) = (digit(), digit()) else {
                return Err(PathError::Percent);
            };
            (high * 16 + low, true)
        } else {
            (b, false)
        };
        if value.is_ascii_control() && !escaped {
            return Err(PathError::Control);
        }
        // An escaped delimiter differs in meaning from a bare one, so keep its escape.
        match if escaped { is_unreserved(value) } else { bare(value) } {
            true => out.push(char::from(value)),
            false => {
                let _ = write!(out, "%{value:02X}");
            }
        }
    }
    Ok(out)
}

/// True if a segment is `.` or `..`. Ignores parameters of a segment (`..;x`), and text that would be a query or a
/// fragment after decoding: some servers ignore them too.
fn has_dot_segment(path: &str) -> bool {
    path.split('/').any(|segment| matches!(segment.split([';', '?', '#']).next(), Some("." | "..")))
}

/// True if escapes spell a character with more bytes than UTF-8 needs. Some servers read `%C0%AE` as a dot.
fn has_overlong(normal: &str) -> bool {
    let escapes = normal.match_indices('%').filter_map(|(at, _)| normal.get(at + 1..at + 6));
    normal.contains("%C0")
        || normal.contains("%C1")
        || escapes.into_iter().any(|two| {
            let (first, second) = two.split_once('%').unwrap_or_default();
            (first == "E0" && matches!(second.as_bytes(), [b'8' | b'9', _]))
                || (first == "F0" && matches!(second.as_bytes(), [b'8', _]))
        })
}

/// True if a server that decodes too often or merges slashes would read another path than the matched one.
fn is_ambiguous(normal: &str) -> bool {
    if has_overlong(normal) {
        return true;
    }
    let mut seen = normal.to_owned();
    for _ in 0..MAX_DECODINGS {
        // The path has structure that differs between servers, possibly after decoding.
        if seen.contains("//") || seen.contains('\\') || has_dot_segment(&seen) {
            return true;
        }
        let next = percent_decode_str(&seen).decode_utf8_lossy().into_owned();
        if next.matches('/').count() != seen.matches('/').count() {
            return true;
        }
        if next == seen {
            return false;
        }
        seen = next;
    }
    // No honest client encodes a path this often.
    true
}

/// Why a glob is malformed. Each variant holds the glob, escaped for display.
#[derive(Debug, thiserror::Error)]
pub enum GlobError {
    /// The glob does not begin with `/`.
    #[error("\"{0}\" does not begin with \"/\"")]
    Relative(String),
    /// The glob has a character that canonical paths always escape.
    #[error("\"{0}\" has a character that no path has as such; percent-encode it")]
    Character(String),
    /// The glob is not a path even apart from its special characters.
    #[error("\"{0}\": {1}")]
    Path(String, PathError),
    /// The syntax of the glob is wrong.
    #[error("\"{0}\" is not a glob ({kind})", kind = .1.kind())]
    Glob(String, globset::Error),
}

/// The paths of a grant. Empty: every path.
#[derive(Clone, Debug, Default)]
pub struct Globs(Vec<(String, GlobMatcher)>);

impl Globs {
    /// Compiles globs. `*` matches within a segment, `**` as a whole segment matches any number of segments, `?`
    /// matches one character, `{a,b}` matches either.
    ///
    /// # Errors
    /// The first malformed glob.
    pub fn new(patterns: &[String]) -> Result<Self, GlobError> {
        let compile = |pattern: &String| {
            let shown = || pattern.escape_debug().to_string();
            if !pattern.starts_with('/') {
                return Err(GlobError::Relative(shown()));
            }
            // Refuse brackets too: a character class could match the slash.
            let is_known = |b: u8| is_unreserved(b) || b"!$&'()*+,;=:@/?%{}".contains(&b);
            if !pattern.bytes().all(is_known) {
                return Err(GlobError::Character(shown()));
            }
            // Use the same escapes as canonical paths.
            let pattern = respell(pattern, is_known).map_err(|error| GlobError::Path(shown(), error))?;
            let glob = GlobBuilder::new(&pattern)
                .literal_separator(true)
                .backslash_escape(false)
                .build()
                .map_err(|error| GlobError::Glob(shown(), error))?;
            Ok((pattern, glob.compile_matcher()))
        };
        Ok(Self(patterns.iter().map(compile).collect::<Result<_, _>>()?))
    }

    /// True if every path is allowed.
    pub fn is_any(&self) -> bool {
        self.0.is_empty()
    }

    /// True if the grant allows a canonical path. If paths are restricted, an ambiguous path is allowed only if a glob
    /// spells it literally.
    pub fn allow(&self, normal: &str) -> bool {
        let is_exact = |(pattern, _): &(String, GlobMatcher)| pattern == normal && !pattern.contains(GLOB_CHARACTERS);
        self.is_any()
            || self.0.iter().any(is_exact)
            || (!is_ambiguous(normal) && self.0.iter().any(|(_, glob)| glob.is_match(normal)))
    }

    /// The globs, in canonical form.
    pub fn patterns(&self) -> impl Iterator<Item = &str> {
        self.0.iter().map(|(pattern, _)| pattern.as_str())
    }
}

/// The narrowest glob that allows `normal` and has at most `max` bytes. `None` if there is none.
pub fn glob_for(normal: &str, max: usize) -> Option<String> {
    if normal.len() <= max {
        let glob = normal.to_owned();
        let is_for_it = Globs::new(std::slice::from_ref(&glob)).is_ok_and(|globs| globs.allow(normal));
        return is_for_it.then_some(glob);
    }
    let mut folder = normal.get(..normal.floor_char_boundary(max))?;
    while let Some((above, _)) = folder.rsplit_once('/') {
        let glob = format!("{above}/**");
        if Globs::new(std::slice::from_ref(&glob)).is_ok_and(|globs| globs.allow(normal)) {
            return Some(glob);
        }
        folder = above;
    }
    None
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn each_path_has_one_canonical_form() {
        for (written, normal) in [
            ("", "/"),
            ("/a/b", "/a/b"),
            ("/%61/%7e", "/a/~"),
            ("/a%2fb", "/a%2Fb"),
            ("/caf\u{e9}", "/caf%C3%A9"),
            ("/a b|{}\"", "/a%20b%7C%7B%7D%22"),
            ("/a;b=c,d:@&$!'()*+", "/a;b=c,d:@&$!'()*+"),
            ("/%25", "/%25"),
        ] {
            assert_eq!(normalise(written).as_deref(), Ok(normal), "{written}");
            assert_eq!(normalise(normal).as_deref(), Ok(normal), "twice: {written}");
        }
        for bad in [
            "a",
            "/..",
            "/a/../b",
            "/%2e%2E/b",
            "/.%2e",
            "/a/.",
            "/..;/x",
            "/.;a=b/x",
            "/a\\b",
            "/a%5cb",
            "/%00",
            "/%0d%0aX:",
            "/%",
            "/%2",
            "/%zz",
            "/a\nb",
        ] {
            assert!(normalise(bad).is_err(), "{bad}");
        }
        assert!(normalise(&format!("/{}", "a".repeat(MAX_BYTES))).is_err());
        assert_eq!(normalise_query("a=%c3%a9&b= \u{e9}"), Ok("a=%C3%A9&b=%20%C3%A9".to_owned()));
    }

    #[test]
    fn globs_match_segments() {
        let globs =
            |patterns: &[&str]| Globs::new(&patterns.iter().map(|p| (*p).to_owned()).collect::<Vec<_>>()).unwrap();
        let points = globs(&["/points/*", "/v1/**", "/{a,b}/c"]);
        for fine in ["/points/1,2", "/points/x", "/v1/a/b/c", "/a/c", "/b/c"] {
            assert!(points.allow(fine), "{fine}");
        }
        for other in [
            "/",
            "/points",
            "/points/1/2",
            "/v2/a",
            "/c/c",
            "/points/a%2Fb",
            "/v1/a%2F..%2Fb",
            "/v1/%252e%252e/x",
            "/v1//x",
            "//v1/x",
        ] {
            assert!(!points.allow(other), "{other}");
        }
        assert!(globs(&[]).allow("/a%2Fb"), "anything at all");
        assert!(Globs::new(&["a".to_owned()]).is_err());
        assert!(Globs::new(&["/[".to_owned()]).is_err());
    }

    #[test]
    fn glob_for_allows_its_path() {
        let long = format!("/a/{}/{}", "b".repeat(600), "c".repeat(600));
        for path in ["/", "/a", "/b'c", "/a*b", "/caf%C3%A9", "/a%2Fb", "//a", &long] {
            let normal = normalise(path).unwrap();
            let glob = glob_for(&normal, 1000).unwrap_or_else(|| panic!("{path}"));
            assert!(
                glob.len() <= 1000 && Globs::new(std::slice::from_ref(&glob)).unwrap().allow(&normal),
                "{path}: {glob}"
            );
        }
        // Ambiguous, and its star makes a literal glob impossible.
        assert_eq!(glob_for("/a*b//c", 1000), None);
    }
}
