//! Finds the title of a Markdown file: the `title` of its front matter, or its first heading. Not a full Markdown parser,
//! because it runs for each file of a page.

/// The longest title, in characters; longer ones are cut.
const MAX_TITLE: usize = 200;

/// Finds the title in the beginning of a file.
pub(crate) fn find(markdown: &str) -> Option<String> {
    let text = markdown.trim_start_matches('\u{feff}');
    let (front, text) = front_matter(text);
    front.and_then(front_title).or_else(|| heading(text)).map(|title| title.chars().take(MAX_TITLE).collect())
}

/// Splits off the YAML front matter between two lines of `---`.
fn front_matter(text: &str) -> (Option<&str>, &str) {
    let Some(rest) = text.strip_prefix("---\n").or_else(|| text.strip_prefix("---\r\n")) else { return (None, text) };
    let mut from = 0;
    for line in rest.split_inclusive('\n') {
        let to = from + line.len();
        if matches!(line.trim_end(), "---" | "...") {
            return (rest.get(..from), rest.get(to..).unwrap_or(""));
        }
        from = to;
    }
    (None, text)
}

fn front_title(front: &str) -> Option<String> {
    let value = front.lines().find_map(|line| line.strip_prefix("title:"))?.trim();
    let bare =
        ['"', '\''].into_iter().find_map(|quote| value.strip_prefix(quote)?.strip_suffix(quote)).unwrap_or(value);
    // A block scalar or a comment would need a YAML parser, so it gives no title.
    (!bare.is_empty() && !bare.starts_with(['|', '>', '#'])).then(|| bare.to_owned())
}

fn heading(text: &str) -> Option<String> {
    let mut fence: Option<&str> = None;
    let mut above = "";
    for line in text.lines() {
        let indent = line.len() - line.trim_start_matches(' ').len();
        let line = line.trim();
        if let Some(open) = fence {
            if line.starts_with(open) {
                fence = None;
            }
            continue;
        }
        if indent > 3 {
            continue;
        }
        fence = ["```", "~~~"].into_iter().find(|mark| line.starts_with(mark));
        let underline = !above.is_empty() && (is_all(line, '=') || is_all(line, '-'));
        let found = if underline { Some(above) } else { marked(line) };
        if let Some(title) = found.map(plain).filter(|title| !title.is_empty()) {
            return Some(title);
        }
        // Only a line of a paragraph can be underlined.
        above = if fence.is_some() || line.starts_with(['#', '>', '|', '<', '-', '*', '+']) { "" } else { line };
    }
    None
}

/// The text of `## Heading ##`.
fn marked(line: &str) -> Option<&str> {
    let rest = line.trim_start_matches('#');
    let level = line.len() - rest.len();
    let text = rest.trim();
    let is_heading = (1..=6).contains(&level) && (text.is_empty() || rest.starts_with([' ', '\t']));
    let unmarked = text.trim_end_matches('#');
    let closed = unmarked.is_empty() || unmarked.ends_with([' ', '\t']);
    is_heading.then_some(if closed { unmarked.trim_end() } else { text })
}

fn is_all(line: &str, mark: char) -> bool {
    !line.is_empty() && line.chars().all(|c| c == mark)
}

/// Text without Markdown for code, bold, links and images.
fn plain(text: &str) -> String {
    let mut out = String::with_capacity(text.len());
    let mut rest = text;
    while let Some(c) = rest.chars().next() {
        rest = match c {
            '`' => rest.get(1..).unwrap_or(""),
            '*' if rest.starts_with("**") => rest.get(2..).unwrap_or(""),
            '!' if rest.starts_with("![") => {
                link(rest.get(1..).unwrap_or("")).map_or(rest.get(2..).unwrap_or(""), |(_, after)| after)
            }
            '[' => match link(rest) {
                Some((label, after)) => {
                    out.push_str(&plain(label));
                    after
                }
                None => {
                    out.push(c);
                    rest.get(1..).unwrap_or("")
                }
            },
            _ => {
                out.push(c);
                rest.get(c.len_utf8()..).unwrap_or("")
            }
        };
    }
    out.trim().to_owned()
}

/// Splits `[label](target) after` into `label` and ` after`.
fn link(text: &str) -> Option<(&str, &str)> {
    let mut depth = 0_usize;
    let close = text.char_indices().find_map(|(at, c)| {
        match c {
            '[' => depth += 1,
            ']' => depth -= 1,
            _ => {}
        }
        (depth == 0).then_some(at)
    })?;
    let label = text.get(1..close)?;
    let (_, after) = text.get(close + 1..)?.strip_prefix('(')?.split_once(')')?;
    Some((label, after))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn finds_titles() {
        for (markdown, title) in [
            ("# Plan\ntext", "Plan"),
            ("\u{feff}# Plan", "Plan"),
            ("intro\n\n## Second level ##\n", "Second level"),
            ("# C#", "C#"),
            ("Underlined\n==========\n", "Underlined"),
            ("Underlined\n---\n", "Underlined"),
            ("```\n# code\n```\n# Real", "Real"),
            ("    # code\n# Real", "Real"),
            ("#tag\n# Real", "Real"),
            ("#\n# Real", "Real"),
            ("---\ndate: 1\n---\n# Plan", "Plan"),
            ("---\ntitle: \"Quoted: yes\"\n---\n# Plan", "Quoted: yes"),
            ("---\r\ntitle: Plain\r\n---\r\n", "Plain"),
            ("---\ntitle:\n---\n# Plan", "Plan"),
            ("# The `code` and **bold** [link](http://x)", "The code and bold link"),
            ("# [![badge](a.svg)](b) Project", "Project"),
            ("# a [b] c ![", "a [b] c"),
            ("# snake_case 5 * 3", "snake_case 5 * 3"),
        ] {
            assert_eq!(find(markdown).as_deref(), Some(title), "{markdown:?}");
        }
    }

    #[test]
    fn finds_no_title_in_other_texts() {
        for markdown in [
            "",
            "text only",
            "---\n\n---\n",
            "- item\n---\n",
            "| a |\n---",
            "```\n# code",
            "####### seven",
            "---\nnever closed",
        ] {
            assert_eq!(find(markdown), None, "{markdown:?}");
        }
    }

    #[test]
    fn cuts_long_titles() {
        assert_eq!(find(&format!("# {}", "ä".repeat(500))).map(|title| title.chars().count()), Some(MAX_TITLE));
    }
}
