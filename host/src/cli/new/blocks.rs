//! The conditional blocks of templates: lines that only some projects have.
//!
//! A block begins after a line with `belljar:if CONDITION` and ends before a line with `belljar:end`, each in a comment of
//! the file's language. A project never contains these two lines. Blocks do not nest.

use std::collections::BTreeSet;

use clap::ValueEnum;

/// The word that begins a block. A condition follows.
const BEGIN: &str = "belljar:if";

/// The word that ends a block.
const END: &str = "belljar:end";

/// A part of a project that `belljar new --with` adds.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord, ValueEnum)]
pub(crate) enum ProjectPart {
    /// A tool: a function that a model calls.
    Tools,
    /// A prompt: messages that a person chooses.
    Prompts,
}

impl ProjectPart {
    /// The value of `--with` that adds this part.
    pub(super) fn name(self) -> &'static str {
        match self {
            Self::Tools => "tools",
            Self::Prompts => "prompts",
        }
    }
}

/// The parts of one project.
pub(super) type Parts = BTreeSet<ProjectPart>;

/// True if a block with this condition belongs to a project with these parts. `None` if the condition is not known.
fn holds(condition: &str, parts: &Parts) -> Option<bool> {
    Some(match condition {
        "tools" => parts.contains(&ProjectPart::Tools),
        "prompts" => parts.contains(&ProjectPart::Prompts),
        "any" => !parts.is_empty(),
        "none" => parts.is_empty(),
        _ => return None,
    })
}

/// `text` with the blocks that belong to a project with these parts. `None` if blocks were left out and only white space
/// remains: the project does not have this file.
///
/// # Errors
/// The number of the malformed line, and what is wrong with it.
pub(super) fn select(text: &str, parts: &Parts) -> Result<Option<String>, String> {
    let mut selected = String::with_capacity(text.len());
    // The line where the current block began, and if the project has the block.
    let mut block: Option<(usize, bool)> = None;
    let mut has_left_out = false;
    for (number, line) in (1..).zip(text.split_inclusive('\n')) {
        if let Some(condition) = after(line, BEGIN) {
            let condition = condition.split_whitespace().next().unwrap_or_default();
            let is_wanted = holds(condition, parts).ok_or_else(|| {
                format!("line {number}: unknown condition \"{condition}\"; expected tools, prompts, any or none")
            })?;
            if let Some((begin, _)) = block {
                return Err(format!("line {number}: a block in the block of line {begin}; end that one first"));
            }
            block = Some((number, is_wanted));
        } else if after(line, END).is_some() {
            if block.take().is_none() {
                return Err(format!("line {number}: \"{END}\" without \"{BEGIN}\"; remove the line"));
            }
        } else if block.is_none_or(|(_, is_wanted)| is_wanted) {
            selected.push_str(line);
        } else {
            has_left_out = true;
        }
    }
    if let Some((begin, _)) = block {
        return Err(format!("line {begin}: the block has no end; add a line with \"{END}\""));
    }
    Ok(if has_left_out && selected.trim().is_empty() { None } else { Some(selected) })
}

/// The rest of the line after `word`. `None` if the line does not contain it as a whole word.
fn after<'a>(line: &'a str, word: &str) -> Option<&'a str> {
    let (_, rest) = line.split_once(word)?;
    rest.chars().next().is_none_or(char::is_whitespace).then_some(rest)
}

#[cfg(test)]
mod tests {
    use super::super::{embedded, project};
    use super::*;

    /// Every choice of parts.
    fn choices() -> [Parts; 4] {
        [vec![], vec![ProjectPart::Tools], vec![ProjectPart::Prompts], vec![ProjectPart::Tools, ProjectPart::Prompts]]
            .map(Parts::from_iter)
    }

    #[test]
    fn a_project_has_the_blocks_of_its_parts() {
        let text = "a\n# belljar:if tools\nt\n# belljar:end\n<!-- belljar:if prompts -->\np\n<!-- belljar:end -->\n\
                    /* belljar:if any */\nany\n/* belljar:end */\n  // belljar:if none\n  none\n  // belljar:end\nz";
        let selected = choices().map(|parts| select(text, &parts).unwrap().unwrap());
        assert_eq!(selected, ["a\n  none\nz", "a\nt\nany\nz", "a\np\nany\nz", "a\nt\np\nany\nz"]);
    }

    #[test]
    fn a_file_of_a_missing_part_is_left_out() {
        let text = "# belljar:if tools\nt\n# belljar:end\n\n";
        let exists = choices().map(|parts| select(text, &parts).unwrap().is_some());
        assert_eq!(exists, [false, true, false, true]);
        // Files that are empty in the template stay.
        assert_eq!(select("", &Parts::new()), Ok(Some(String::new())));
    }

    #[test]
    fn malformed_blocks_are_named_by_their_line() {
        for (text, why) in [
            (
                "\n# belljar:if tool\n# belljar:end\n",
                "line 2: unknown condition \"tool\"; expected tools, prompts, any or none",
            ),
            ("# belljar:if\n# belljar:end\n", "line 1: unknown condition \"\"; expected tools, prompts, any or none"),
            ("# belljar:if any\n# belljar:if tools\n", "line 2: a block in the block of line 1; end that one first"),
            ("a\n# belljar:end\n", "line 2: \"belljar:end\" without \"belljar:if\"; remove the line"),
            ("a\n# belljar:if none\n", "line 2: the block has no end; add a line with \"belljar:end\""),
        ] {
            assert_eq!(select(text, &Parts::new()), Err(why.to_owned()), "{text:?}");
        }
        // Only whole words count.
        assert_eq!(
            select("belljar:iffy belljar:ended", &Parts::new()),
            Ok(Some("belljar:iffy belljar:ended".to_owned()))
        );
    }

    #[test]
    fn no_project_shows_a_marker() {
        for language in embedded::languages().unwrap() {
            let names = project::ProjectNames::new("sea-level", &language).unwrap();
            for parts in choices() {
                let files =
                    project::files(&language, &names, &project::ProjectContent::of(parts.iter().copied())).unwrap();
                for (path, bytes) in files.iter().filter(|(path, _)| !path.ends_with(".wit")) {
                    let Ok(text) = std::str::from_utf8(bytes) else { continue };
                    assert!(!text.contains(BEGIN) && !text.contains(END), "{} with {parts:?}: {path}", language.id);
                }
            }
        }
    }
}
