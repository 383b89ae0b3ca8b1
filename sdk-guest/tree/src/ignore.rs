//! The operator's ignore patterns, in the syntax of `.gitignore`.
//!
//! `*.tmp` matches at any depth, `/drafts` and `a/b` only from the granted directory, `build/` only directories, and `**`
//! any number of directories. `!` includes files that an earlier pattern ignored. The last matching pattern decides, but
//! nothing below an ignored directory can be included again. Names that begin with a dot, such as `.git` and `.env`, are
//! ignored by default; `!.*` includes them. `\` makes the next character literal.

use fast_glob::glob_match;

use crate::tree::join;

/// Patterns in order.
#[derive(Debug)]
pub(crate) struct Rules(Vec<Rule>);

#[derive(Debug)]
struct Rule {
    glob: Glob,
    /// True to ignore, false to include again.
    ignores: bool,
    /// Matches directories only.
    directories: bool,
    /// Matches whole paths, not names.
    anchored: bool,
}

/// A pattern. The first three kinds are the most common and have a fast path, because every name is compared with each
/// pattern.
#[derive(Debug, PartialEq, Eq)]
enum Glob {
    Exactly(String),
    /// `name*`
    Begins(String),
    /// `*name`
    Ends(String),
    Other(String),
}

impl Rules {
    /// Parses patterns that are separated by commas or line ends. A line that begins with `#` is a comment.
    pub(crate) fn parse(patterns: &str) -> Self {
        let lines = patterns.lines().map(str::trim).filter(|line| !line.starts_with('#'));
        let patterns = [".*"].into_iter().chain(lines.flat_map(|line| line.split(',')).map(str::trim));
        Rules(patterns.filter_map(Rule::parse).collect())
    }

    /// True if a name in a directory is ignored. The directory's path is relative to the granted one. Does not check if the
    /// directory itself is ignored; the caller does.
    pub(crate) fn ignore(&self, directory: &str, name: &str, is_directory: bool) -> bool {
        self.0.iter().rev().find(|rule| rule.matches(directory, name, is_directory)).is_some_and(|rule| rule.ignores)
    }
}

impl Rule {
    fn parse(pattern: &str) -> Option<Self> {
        let (ignores, pattern) = pattern.strip_prefix('!').map_or((true, pattern), |rest| (false, rest));
        let (directories, pattern) = pattern.strip_suffix('/').map_or((false, pattern), |rest| (true, rest));
        let anchored = pattern.contains('/');
        let pattern = pattern.strip_prefix('/').unwrap_or(pattern);
        (!pattern.is_empty()).then(|| Rule { glob: Glob::parse(pattern), ignores, directories, anchored })
    }

    fn matches(&self, directory: &str, name: &str, is_directory: bool) -> bool {
        if self.directories && !is_directory {
            false
        } else if self.anchored {
            self.glob.matches(&join(directory, name))
        } else {
            self.glob.matches(name)
        }
    }
}

impl Glob {
    fn parse(pattern: &str) -> Self {
        let special = |text: &str| text.contains(['*', '?', '[', '\\', '/']);
        match (pattern.strip_suffix('*'), pattern.strip_prefix('*')) {
            _ if !special(pattern) => Glob::Exactly(pattern.to_owned()),
            (Some(beginning), _) if !special(beginning) => Glob::Begins(beginning.to_owned()),
            (_, Some(end)) if !special(end) => Glob::Ends(end.to_owned()),
            _ => Glob::Other(literal_braces(pattern)),
        }
    }

    fn matches(&self, subject: &str) -> bool {
        match self {
            Glob::Exactly(text) => subject == text,
            // A star does not match a slash; only the subjects of anchored rules contain one.
            Glob::Begins(text) => subject.strip_prefix(text.as_str()).is_some_and(|rest| !rest.contains('/')),
            Glob::Ends(text) => subject.strip_suffix(text.as_str()).is_some_and(|rest| !rest.contains('/')),
            Glob::Other(glob) => glob_match(glob, subject),
        }
    }
}

/// Escapes braces and a second `!`: they are special in `fast_glob`, but not in `.gitignore`.
fn literal_braces(pattern: &str) -> String {
    let mut glob = String::with_capacity(pattern.len());
    let mut escaped = false;
    for (at, c) in pattern.char_indices() {
        if !escaped && (matches!(c, '{' | '}') || (at == 0 && c == '!')) {
            glob.push('\\');
        }
        escaped = c == '\\' && !escaped;
        glob.push(c);
    }
    glob
}

#[cfg(test)]
mod tests {
    use ::ignore::gitignore::GitignoreBuilder;

    use super::*;

    const PATTERNS: [&str; 17] = [
        "*.tmp",
        "/drafts",
        "a/b",
        "build/",
        "**/cache",
        "logs/**",
        "x/**/y",
        "[a-c]?.txt",
        "!keep.tmp",
        "\\!odd",
        "{p,q}.md",
        "src/*.o",
        "\\#hash",
        "d*/e",
        "log*",
        "/x*",
        "src/a*",
    ];

    #[test]
    fn agrees_with_gitignore() {
        let mut builder = GitignoreBuilder::new("/");
        builder.add_line(None, ".*").unwrap();
        for line in PATTERNS {
            // Braces are special in that crate, too, but not in git.
            builder.add_line(None, &line.replace('{', "\\{").replace('}', "\\}")).unwrap();
        }
        let expected = builder.build().unwrap();
        // No commas: they separate patterns here.
        let rules = Rules::parse(&PATTERNS.join("\n").replace("{p,q}", "{p;q}"));
        let names = [
            "a", "b", "x", "y", "drafts", "build", "cache", "logs", "src", "n.o", "keep.tmp", "z.tmp", "a1.txt",
            "d1.txt", ".git", "!odd", "#hash", "e", "dd", "p.md",
        ];
        for first in names {
            for second in [&[""][..], &names].concat() {
                for third in ["", "b", "y", "cache", "keep.tmp", ".env", "e"] {
                    if second.is_empty() && !third.is_empty() {
                        continue;
                    }
                    let path =
                        [first, second, third].into_iter().filter(|s| !s.is_empty()).collect::<Vec<_>>().join("/");
                    for is_directory in [false, true] {
                        let (directory, name) = path.rsplit_once('/').unwrap_or(("", &path));
                        assert_eq!(
                            rules.ignore(directory, name, is_directory),
                            expected.matched(&path, is_directory).is_ignore(),
                            "{path} directory: {is_directory}"
                        );
                    }
                }
            }
        }
    }

    #[test]
    fn commas_and_lines_separate() {
        let rules = Rules::parse("*.a, *.b\n# *.c\n*.d,!x.d");
        let ignored: Vec<&str> =
            ["x.a", "x.b", "x.c", "y.d", "x.d"].into_iter().filter(|name| rules.ignore("", name, false)).collect();
        assert_eq!(ignored, ["x.a", "x.b", "y.d"]);
    }

    #[test]
    fn hidden_files_are_ignored_unless_included() {
        assert!(Rules::parse("").ignore("a", ".env", false));
        assert!(!Rules::parse("!.*").ignore("a", ".env", false));
        assert!(!Rules::parse("!.github/").ignore("", ".github", true));
        assert!(Rules::parse("!.github/").ignore("", ".git", true));
    }

    #[test]
    fn braces_are_literal() {
        let rules = Rules::parse("{a}.md");
        assert!(rules.ignore("", "{a}.md", false));
        assert!(!rules.ignore("", "a.md", false));
    }
}
