//! Paths of requests: one spelling of each, and globs over it. What is matched is what is sent.

use std::fmt::Write as _;

use globset::{GlobBuilder, GlobMatcher};
use percent_encoding::percent_decode_str;

/// Bytes of a path with its query.
pub const MAX: usize = 8 << 10;

/// What is no letter in a glob.
const GLOB: [char; 4] = ['*', '?', '{', '}'];

/// How often a path is decoded to see what a careless server might make of it.
const DECODINGS: usize = 4;

/// Brings a path into its one spelling (RFC 3986, 6.2.2): unreserved characters bare, escapes in capitals, what is no path
/// character escaped. Dot segments, backslashes and control characters are refused in every spelling.
///
/// # Errors
/// Says what is wrong with it.
pub fn normalise(path: &str) -> Result<String, &'static str> {
    if path.len() > MAX {
        return Err("the path has more than 8192 bytes");
    }
    let path = if path.is_empty() { "/" } else { path };
    if !path.starts_with('/') {
        return Err("the path does not begin with \"/\"");
    }
    let normal = respell(path, |b| is_unreserved(b) || b"!$&'()*+,;=:@/".contains(&b))?;
    if normal.bytes().any(|b| b == b'\\') || ["%5C", "%00", "%0A", "%0D"].iter().any(|bad| normal.contains(bad)) {
        return Err("the path has a backslash or a control character");
    }
    if has_dots(&normal) {
        return Err("the path has a dot segment");
    }
    Ok(normal)
}

/// Brings a query into one spelling in the same way.
///
/// # Errors
/// Says what is wrong with it.
pub fn normalise_query(query: &str) -> Result<String, &'static str> {
    if query.len() > MAX {
        return Err("the query has more than 8192 bytes");
    }
    respell(query, |b| is_unreserved(b) || b"!$&'()*+,;=:@/?%".contains(&b))
}

fn is_unreserved(b: u8) -> bool {
    b.is_ascii_alphanumeric() || b"-._~".contains(&b)
}

fn respell(text: &str, bare: impl Fn(u8) -> bool) -> Result<String, &'static str> {
    let mut out = String::with_capacity(text.len());
    let mut bytes = text.bytes();
    while let Some(b) = bytes.next() {
        let (value, escaped) = if b == b'%' {
            let mut digit = || bytes.next().and_then(|d| char::from(d).to_digit(16)).and_then(|d| u8::try_from(d).ok());
            let (Some(high), Some(low)) = (digit(), digit()) else {
                return Err("a \"%\" is not followed by two hexadecimal digits");
            };
            (high * 16 + low, true)
        } else {
            (b, false)
        };
        if value.is_ascii_control() && !escaped {
            return Err("it has a control character");
        }
        // An escaped delimiter means something else than a bare one, so it stays escaped.
        match if escaped { is_unreserved(value) } else { bare(value) } {
            true => out.push(char::from(value)),
            false => {
                let _ = write!(out, "%{value:02X}");
            }
        }
    }
    Ok(out)
}

/// Whether a segment is `.` or `..`, or one with parameters, as some servers read them (`..;x`), or one before what would
/// be a query or a fragment if it were decoded too early.
fn has_dots(path: &str) -> bool {
    path.split('/').any(|segment| matches!(segment.split([';', '?', '#']).next(), Some("." | "..")))
}

/// Whether there are escapes of bytes that spell a character longer than UTF-8 does: `%C0%AE` was a dot once.
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

/// Whether a server that decodes once more than it should, or merges slashes, would see another path than the one that
/// was matched.
fn is_ambiguous(normal: &str) -> bool {
    if has_overlong(normal) {
        return true;
    }
    let mut seen = normal.to_owned();
    for _ in 0..DECODINGS {
        // Anything of a path that decodes into structure, or that was decoded into dots.
        if seen.contains("//") || seen.contains('\\') || has_dots(&seen) {
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
    // Encoded deeper than anyone means it.
    true
}

/// The paths of a grant.
#[derive(Clone, Debug, Default)]
pub struct Globs(Vec<(String, GlobMatcher)>);

impl Globs {
    /// Compiles globs: `*` is anything within a segment, `**` as a segment any number of segments, `?` one character,
    /// `{a,b}` either.
    ///
    /// # Errors
    /// Names the first that is none.
    pub fn new(patterns: &[String]) -> Result<Self, String> {
        let compile = |pattern: &String| {
            let shown = pattern.escape_debug();
            if !pattern.starts_with('/') {
                return Err(format!("paths: \"{shown}\" does not begin with \"/\""));
            }
            // Brackets as well: a class of characters could be the slash.
            let is_known = |b: u8| is_unreserved(b) || b"!$&'()*+,;=:@/?%{}".contains(&b);
            if !pattern.bytes().all(is_known) {
                return Err(format!("paths: \"{shown}\" has a character that no path has as such; percent-encode it"));
            }
            // As paths are spelt when they are matched.
            let pattern = respell(pattern, is_known).map_err(|why| format!("paths: \"{shown}\": {why}"))?;
            let glob = GlobBuilder::new(&pattern)
                .literal_separator(true)
                .backslash_escape(false)
                .build()
                .map_err(|error| format!("paths: \"{shown}\" is not a glob ({})", error.kind()))?;
            Ok((pattern, glob.compile_matcher()))
        };
        Ok(Self(patterns.iter().map(compile).collect::<Result<_, _>>()?))
    }

    /// Whether every path is meant.
    pub fn is_any(&self) -> bool {
        self.0.is_empty()
    }

    /// Whether a normalised path is meant. Where paths are restricted, one that servers read in more than one way is meant
    /// only where it was written letter by letter.
    pub fn allow(&self, normal: &str) -> bool {
        let is_exact = |(pattern, _): &(String, GlobMatcher)| pattern == normal && !pattern.contains(GLOB);
        self.is_any()
            || self.0.iter().any(is_exact)
            || (!is_ambiguous(normal) && self.0.iter().any(|(_, glob)| glob.is_match(normal)))
    }

    /// As they were written.
    pub fn written(&self) -> impl Iterator<Item = &str> {
        self.0.iter().map(|(pattern, _)| pattern.as_str())
    }
}

/// The narrowest glob for `normal` that has at most `max` characters. None where no glob is for it.
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
    fn one_spelling_of_each_path() {
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
        assert!(normalise(&format!("/{}", "a".repeat(MAX))).is_err());
        assert_eq!(normalise_query("a=%c3%a9&b= \u{e9}"), Ok("a=%C3%A9&b=%20%C3%A9".to_owned()));
    }

    #[test]
    fn globs_see_segments() {
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
    fn a_glob_is_for_the_path_that_it_was_made_for() {
        let long = format!("/a/{}/{}", "b".repeat(600), "c".repeat(600));
        for path in ["/", "/a", "/b'c", "/a*b", "/caf%C3%A9", "/a%2Fb", "//a", &long] {
            let normal = normalise(path).unwrap();
            let glob = glob_for(&normal, 1000).unwrap_or_else(|| panic!("{path}"));
            assert!(
                glob.len() <= 1000 && Globs::new(std::slice::from_ref(&glob)).unwrap().allow(&normal),
                "{path}: {glob}"
            );
        }
        // Read in more than one way, and not to be written letter by letter.
        assert_eq!(glob_for("/a*b//c", 1000), None);
    }
}
