//! The front matter of a `SKILL.md`, as far as the list shows it. Not a YAML parser: the host parses the whole front matter.

/// What the list shows of a front matter.
#[derive(Debug, Clone, Default, PartialEq, Eq)]
pub(crate) struct Front {
    /// The description, if it is written on one line.
    pub(crate) description: Option<String>,
}

/// The longest description, in characters; longer ones are cut. The standard of skills allows 1024.
const MAX_DESCRIPTION: usize = 1024;

impl Front {
    /// Reads the front matter between two lines of `---`.
    pub(crate) fn parse(text: &str) -> Front {
        let mut lines = text.trim_start_matches('\u{feff}').lines();
        if lines.next().map(str::trim_end) != Some("---") {
            return Front::default();
        }
        let mut own = lines.take_while(|line| !matches!(line.trim_end(), "---" | "..."));
        Front { description: own.find_map(|line| line.strip_prefix("description:")).and_then(value) }
    }
}

/// The value of a line. `None` for block scalars, references and empty values, which need a YAML parser.
fn value(text: &str) -> Option<String> {
    let text = text.trim();
    let quoted = |quote: char| text.strip_prefix(quote)?.strip_suffix(quote);
    let plain = match (quoted('\''), quoted('"')) {
        (Some(inner), _) => inner.replace("''", "'"),
        (_, Some(inner)) if !inner.contains('\\') => inner.to_owned(),
        _ if text.starts_with(['|', '>', '&', '*', '!', '#', '"', '\'', '[', '{']) => return None,
        _ => text.split(" #").next().unwrap_or(text).trim_end().to_owned(),
    };
    (!plain.is_empty()).then(|| plain.chars().take(MAX_DESCRIPTION).collect())
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn descriptions_of_one_line_are_found() {
        for (text, expected) in [
            ("---\nname: a\ndescription: How to greet.\n---\nbody", Some("How to greet.")),
            ("\u{feff}---\r\ndescription: \"a: b\"\r\n---\r\n", Some("a: b")),
            ("---\ndescription: 'it''s'\n---\n", Some("it's")),
            ("---\ndescription: plain # a comment\n---\n", Some("plain")),
            ("---\ndescription: >\n  folded\n---\n", None),
            ("---\ndescription:\n---\n", None),
            ("---\nname: a\n---\ndescription: below\n", None),
            ("description: without front matter\n", None),
            ("", None),
        ] {
            assert_eq!(Front::parse(text).description.as_deref(), expected, "{text:?}");
        }
    }
}
