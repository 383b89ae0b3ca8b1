//! The resources of one mount that rules are about.

use super::access::Target;
use super::glob::{PatternSet, Piece, literal, rests};
use super::pattern::UriPattern;
use super::rule::RuleResources;
use super::spelling::{Spellings, plain_reference};

/// The pattern of every text.
const ANY: &[Piece] = &[Piece::Any];

/// The base of a mount, in both spellings.
#[derive(Clone, Debug)]
pub(super) struct Base {
    written: Box<str>,
    plain: Vec<u8>,
}

impl Base {
    pub(super) fn new(base: &str) -> Self {
        Self { written: base.into(), plain: plain_reference(base.as_bytes(), false).into_owned() }
    }

    /// The base, as it is written.
    pub(super) fn as_str(&self) -> &str {
        &self.written
    }

    /// True if the base ends in a slash.
    pub(super) fn is_folder(&self) -> bool {
        self.plain.ends_with(b"/")
    }

    /// The spellings of a reference below the base.
    pub(super) fn spellings<'a>(&self, reference: &'a str) -> Spellings<'a> {
        Spellings::new(reference, self.is_folder())
    }
}

/// Resources of one mount: patterns over references, for each spelling of the reference.
#[derive(Debug, Default)]
pub(super) struct Area {
    written: PatternSet,
    /// The patterns for the plain spelling, if they differ.
    plain: Option<PatternSet>,
}

impl Area {
    /// The resources of `target`'s mount that rules with `resources` are about.
    pub(super) fn new<'a>(
        resources: impl IntoIterator<Item = &'a RuleResources>,
        target: Target<'_>,
        base: &Base,
    ) -> Self {
        let (mut written, mut plain) = (Vec::new(), Vec::new());
        for resources in resources {
            match resources {
                RuleResources::All => written.push(ANY),
                RuleResources::Mounts(mounts) if mounts.contains(target.mount) => written.push(ANY),
                RuleResources::Mounts(_) => continue,
                RuleResources::Patterns(patterns) => {
                    written.extend(
                        patterns.iter().map(UriPattern::written).flat_map(|one| rests(one, base.written.as_bytes())),
                    );
                    plain.extend(patterns.iter().map(UriPattern::plain).flat_map(|one| rests(one, &base.plain)));
                    continue;
                }
            }
            plain.push(ANY);
        }
        let is_different = written != plain;
        Self { written: PatternSet::new(written), plain: is_different.then(|| PatternSet::new(plain)) }
    }

    fn plain(&self) -> &PatternSet {
        self.plain.as_ref().unwrap_or(&self.written)
    }

    /// True if no resource is in the area, whatever its spelling.
    pub(super) fn is_empty(&self) -> bool {
        self.written.is_empty() && self.plain().is_empty()
    }

    /// True if every resource of the mount is in the area.
    pub(super) fn is_all(&self) -> bool {
        self.written.is_all() && self.plain().is_all()
    }

    /// True if both spellings are in the area. For rules that allow.
    pub(super) fn has_both(&self, spellings: &Spellings<'_>) -> bool {
        self.written.matches(spellings.written) && (self.is_once(spellings) || self.plain().matches(&spellings.plain))
    }

    /// True if one of the spellings is in the area. For rules that deny.
    pub(super) fn has_any(&self, spellings: &Spellings<'_>) -> bool {
        self.has_either(spellings)
            || spellings.bare.as_ref().is_some_and(|bare| self.plain().matches(bare))
            || spellings.folder().is_some_and(|folder| self.plain().matches_folder(folder))
    }

    /// True if one of the two spellings is in the area.
    pub(super) fn has_either(&self, spellings: &Spellings<'_>) -> bool {
        self.written.matches(spellings.written) || (!self.is_once(spellings) && self.plain().matches(&spellings.plain))
    }

    /// True if both spellings are the same text and are compared with the same patterns.
    fn is_once(&self, spellings: &Spellings<'_>) -> bool {
        self.plain.is_none() && *spellings.plain == *spellings.written
    }

    /// True if some resource whose reference begins with `prefix` may be in this area of allowed resources and not in
    /// `denied`. It may be true although there is none: a rule that denies could take the last one away.
    pub(super) fn may_have_below(&self, prefix: &str, denied: &Self, base: &Base) -> bool {
        // The end of a prefix may be the middle of an escape.
        let whole = match prefix.as_bytes() {
            [.., b'%'] => prefix.get(..prefix.len() - 1),
            [.., b'%', _] => prefix.get(..prefix.len() - 2),
            _ => Some(prefix),
        };
        let whole = whole.unwrap_or_default();
        let is_after_slash = base.plain.ends_with(b"/");
        let is_free = |rest: &[Piece], before: &str| {
            // The shortest text that the rest leads to.
            let shortest = [before.as_bytes(), &literal(rest)].concat();
            let is_text = !rest.iter().any(|piece| !matches!(piece, Piece::Byte(_)));
            let plain = plain_reference(&shortest, is_after_slash);
            match std::str::from_utf8(&shortest) {
                Ok(text) if is_text => !denied.has_any(&base.spellings(text)),
                _ => !denied.written.covers(&shortest) && !denied.plain().covers(&plain),
            }
        };
        self.written
            .patterns()
            .any(|pattern| rests(pattern, whole.as_bytes()).into_iter().any(|rest| is_free(rest, whole)))
            && (self.plain.is_none()
                || self
                    .plain()
                    .patterns()
                    .any(|pattern| !rests(pattern, &plain_reference(whole.as_bytes(), is_after_slash)).is_empty()))
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::model::MountName;

    fn area(patterns: &[&str]) -> Area {
        let mount = MountName::new("m").unwrap();
        let patterns = patterns.iter().map(|pattern| pattern.parse().unwrap()).collect();
        let target = Target { mount: &mount, base: "belljar://m/", reference: None };
        Area::new([&RuleResources::Patterns(patterns)], target, &Base::new("belljar://m/"))
    }

    #[test]
    fn a_spelling_does_not_slip_past_a_rule_that_denies() {
        let base = Base::new("belljar://m/");
        let denied = area(&["belljar://m/secret/**", "belljar://m/file", "belljar://m/a%20b"]);
        for reference in [
            "secret/x",
            "secret%2Fx",
            "%73ecret/x",
            "secret//x",
            "%2Fsecret/x",
            "secret/?q",
            "secret",
            "secret?q",
            "%73ecret",
            "file",
            "file?q=1",
            "file/",
            "%66ile",
            "file%2F?q",
            "a%20b",
            "a%2520b%",
            "%61%20b",
            "%61 b",
        ] {
            let is_other = reference == "a%2520b%";
            assert_eq!(denied.has_any(&base.spellings(reference)), !is_other, "{reference}");
        }
        for reference in ["secrets", "secrets/x", "x/secret/x", "file/x", "File", ""] {
            assert!(!denied.has_any(&base.spellings(reference)), "{reference}");
        }
    }

    #[test]
    fn a_spelling_does_not_slip_into_a_rule_that_allows() {
        let base = Base::new("belljar://m/");
        let allowed = area(&["belljar://m/*", "belljar://m/a/*/b"]);
        for (reference, expected) in [
            ("x", true),
            ("x%20y", true),
            ("x%2Fy", false),
            ("a/x/b", true),
            ("a//b", false),
            ("a/%2F/b", false),
            ("x/", false),
            ("x?q", true),
            ("x?q=/", false),
        ] {
            assert_eq!(allowed.has_both(&base.spellings(reference)), expected, "{reference}");
        }
    }

    #[test]
    fn parts_below_a_prefix() {
        let base = Base::new("belljar://m/");
        let (all, none) = (area(&["**"]), area(&["x://**"]));
        assert!(all.is_all() && none.is_empty());
        let denied = area(&["belljar://m/secret/**", "belljar://m/file"]);
        for (allowed, prefix, expected) in [
            (&all, "", true),
            (&all, "secret", true),
            (&all, "secret/", false),
            (&all, "secret//x", false),
            (&all, "%73ecret/x", false),
            (&all, "secret/%4", false),
            (&all, "file", true),
            (&none, "", false),
            (&area(&["belljar://m/secret/a"]), "", false),
            (&area(&["belljar://m/file"]), "", false),
            (&area(&["belljar://m/file", "belljar://m/b"]), "", true),
            (&area(&["belljar://m/secret/**"]), "", false),
            (&area(&["belljar://m/se*"]), "", true),
            (&area(&["belljar://m/a/*.md"]), "a/", true),
            (&area(&["belljar://m/a/*.md"]), "b/", false),
            (&area(&["belljar://m/a/*.md"]), "a/b/", false),
            (&area(&["**/x"]), "a/b/", true),
        ] {
            assert_eq!(allowed.may_have_below(prefix, &denied, &base), expected, "{allowed:?} {prefix}");
        }
    }
}
