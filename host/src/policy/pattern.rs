//! Patterns of URIs, as rules name resources.

use std::fmt;
use std::str::FromStr;

use super::glob::Piece;
use super::spelling::plain_reference;
use crate::model::reference::MAX_URI;

/// A pattern over absolute URIs. `*` stands for any text without `/`, `**` for any text.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct UriPattern {
    text: String,
    /// For the written spelling of a URI.
    written: Vec<Piece>,
    /// For its plain spelling.
    plain: Vec<Piece>,
}

/// Why a text is not a pattern of URIs.
#[derive(Clone, Copy, Debug, PartialEq, Eq, thiserror::Error)]
pub enum PatternError {
    /// It does not begin with a scheme or a wildcard.
    #[error(
        "a pattern is an absolute URI, with \"*\" for any text without \"/\" and \"**\" for any text; for example \"belljar://logs/**\""
    )]
    Relative,
    /// The scheme has a letter that schemes of mounts do not have.
    #[error("a scheme is made of a-z, 0-9, \"+\", \"-\" and \".\"; for example \"belljar://logs/**\"")]
    Scheme,
    /// Three stars in a row.
    #[error("at most two stars follow each other: \"*\" is any text without \"/\", \"**\" is any text")]
    Stars,
    /// A character that URIs do not have.
    #[error("a pattern has the characters of a URI; percent-encode every other one, such as %20 for a space")]
    Character,
    /// A bracket behind the authority, as in patterns of shells.
    #[error("no resource has \"[\" or \"]\" in its URI; only \"*\" and \"**\" stand for other text")]
    Bracket,
    /// A percent sign without two hexadecimal digits.
    #[error("\"%\" is followed by two hexadecimal digits; write %25 for a percent sign")]
    Percent,
    /// A fragment.
    #[error("a pattern has no \"#\": no resource of a mount has a fragment")]
    Fragment,
    /// A dot segment.
    #[error("a pattern has no \".\" or \"..\" between slashes: no resource of a mount has such a name")]
    DotSegment,
    /// The name of a mount without a slash.
    #[error("the pattern matches no resource; for the whole mount, end it in \"/**\"")]
    NoSlash,
    /// It is longer than any URI.
    #[error("a pattern has at most {MAX_URI} characters")]
    TooLong,
}

impl UriPattern {
    /// The pieces for the written spelling of a URI.
    pub(super) fn written(&self) -> &[Piece] {
        &self.written
    }

    /// The pieces for the plain spelling of a URI.
    pub(super) fn plain(&self) -> &[Piece] {
        &self.plain
    }
}

impl FromStr for UriPattern {
    type Err = PatternError;

    fn from_str(text: &str) -> Result<Self, PatternError> {
        check(text)?;
        let (mut written, mut plain) = (Vec::new(), Vec::new());
        let mut last = 0;
        for (at, run) in text.split('*').enumerate() {
            if at > 0 {
                // The second of two stars turns the wildcard of the first one into the other kind.
                for pieces in [&mut written, &mut plain] {
                    match pieces.last_mut() {
                        Some(wildcard @ Piece::Segment) => *wildcard = Piece::Any,
                        _ => pieces.push(Piece::Segment),
                    }
                }
                last = 0;
            }
            written.extend(run.bytes().map(Piece::Byte));
            let run = plain_reference(run.as_bytes(), last == b'/');
            last = run.last().copied().unwrap_or(last);
            plain.extend(run.iter().copied().map(Piece::Byte));
        }
        Ok(Self { text: text.to_owned(), written, plain })
    }
}

impl fmt::Display for UriPattern {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(&self.text)
    }
}

fn check(text: &str) -> Result<(), PatternError> {
    if text.len() > MAX_URI {
        return Err(PatternError::TooLong);
    }
    if text.contains("***") {
        return Err(PatternError::Stars);
    }
    if text.contains('#') {
        return Err(PatternError::Fragment);
    }
    let mut bytes = text.bytes();
    while let Some(byte) = bytes.next() {
        let is_hex = |byte: Option<u8>| byte.is_some_and(|byte| byte.is_ascii_hexdigit());
        match byte {
            b'%' if is_hex(bytes.next()) && is_hex(bytes.next()) => {}
            b'%' => return Err(PatternError::Percent),
            b'A'..=b'Z' | b'a'..=b'z' | b'0'..=b'9' => {}
            _ if b"-._~:/?@!$&'()*+,;=[]".contains(&byte) => {}
            _ => return Err(PatternError::Character),
        }
    }
    let (path, _) = text.split_once('?').unwrap_or((text, ""));
    if path.split('/').any(|segment| segment == "." || segment == "..") {
        return Err(PatternError::DotSegment);
    }
    // An authority may be an IPv6 address in brackets.
    let behind = text.split_once("://").map_or(text, |(_, rest)| rest.split_once('/').map_or("", |(_, path)| path));
    if behind.contains(['[', ']']) {
        return Err(PatternError::Bracket);
    }
    // The scheme may be a wildcard, or end in one.
    let start = text.split('*').next().unwrap_or_default();
    let (scheme, after) = match start.split_once(':') {
        Some((scheme, after)) => (scheme, Some(after)),
        None => (start, None),
    };
    let is_scheme = |byte: u8| byte.is_ascii_lowercase() || byte.is_ascii_digit() || b"+-.".contains(&byte);
    if scheme.contains('/') || (after.is_none() && start.len() == text.len()) || (after.is_some() && scheme.is_empty())
    {
        return Err(PatternError::Relative);
    }
    if scheme.starts_with(|c: char| !c.is_ascii_lowercase()) || !scheme.bytes().all(is_scheme) {
        return Err(PatternError::Scheme);
    }
    // Without a slash, "belljar://logs" is the name of no resource. A mount may have the URI "test://": then "test://a" is one.
    let names_mount_only = |after: &str| {
        after.strip_prefix("//").is_some_and(|name| !name.contains('/') && (name.is_empty() || scheme == "belljar"))
    };
    if start.len() == text.len() && after.is_some_and(names_mount_only) {
        return Err(PatternError::NoSlash);
    }
    Ok(())
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn patterns_are_checked() {
        for good in [
            "**",
            "*",
            "belljar://logs/**",
            "belljar://*/a",
            "file:///srv/notes/*.md",
            "urn:x:**",
            "bell*",
            "a:b",
            "belljar://a/%20?x=*",
            "test://static-text",
            "test://*",
        ] {
            assert_eq!(UriPattern::from_str(good).unwrap().to_string(), good);
        }
        for (bad, error) in [
            ("", PatternError::Relative),
            ("logs/**", PatternError::Relative),
            ("/**", PatternError::Relative),
            ("logs", PatternError::Relative),
            (":x", PatternError::Relative),
            ("Belljar://logs/**", PatternError::Scheme),
            ("1:x", PatternError::Scheme),
            ("belljar://logs/***", PatternError::Stars),
            ("belljar://logs/a b", PatternError::Character),
            ("belljar://logs/é", PatternError::Character),
            ("belljar://logs/{a}", PatternError::Character),
            ("belljar://logs/\\", PatternError::Character),
            ("belljar://logs/%", PatternError::Percent),
            ("belljar://logs/%4", PatternError::Percent),
            ("belljar://logs/%4g", PatternError::Percent),
            ("belljar://logs/#a", PatternError::Fragment),
            ("belljar://logs/../a", PatternError::DotSegment),
            ("belljar://logs/./a", PatternError::DotSegment),
            ("belljar://logs", PatternError::NoSlash),
            ("x://", PatternError::NoSlash),
        ] {
            assert_eq!(UriPattern::from_str(bad), Err(error), "{bad:?}");
        }
        assert_eq!(UriPattern::from_str(&format!("a:{}", "x".repeat(2048))), Err(PatternError::TooLong));
    }

    #[test]
    fn a_pattern_has_a_plain_spelling() {
        let plain = |text: &str| {
            let pattern = UriPattern::from_str(text).unwrap();
            let show = |piece: &Piece| match piece {
                Piece::Byte(byte) => char::from(*byte).to_string(),
                Piece::Segment => "*".to_owned(),
                Piece::Any => "**".to_owned(),
            };
            pattern.plain().iter().map(show).collect::<String>()
        };
        assert_eq!(plain("belljar://a/%62%2f/c/*//**"), "belljar:/a/b/c/*/**");
        assert_eq!(plain("x:/%2A*"), "x:/**");
    }
}
