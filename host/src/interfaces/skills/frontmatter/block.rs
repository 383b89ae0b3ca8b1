//! Block scalars (`|`, `>`) on whose line breaks parsers differ.
//!
//! Known differences (huggingface/skills#220): blank lines at the beginning or end of a folded block, and lines in it
//! that are indented further. Explicit indentation is rare, and a frequent cause of errors.

use saphyr_parser::ScalarStyle;

/// Checks the block scalar whose contents begin in `line` (from 1) of `yaml` and have this `value`. The error has the
/// line of the block's header, and a reason that completes "...; parsers differ here".
pub(super) fn check(yaml: &str, line: usize, style: ScalarStyle, value: &str) -> Result<(), (usize, &'static str)> {
    let is_blank = |line: &str| line.trim_matches([' ', '\t', '\r']).is_empty();
    let above = yaml.lines().take(line.saturating_sub(1)).enumerate();
    let (header_line, header) = above.filter(|(_, line)| !is_blank(line)).last().unwrap_or_default();
    let fail = |why| Err((header_line + 1, why));
    if value.trim().is_empty() {
        return fail("the block is empty");
    }
    // The header follows the last `|` or `>` before a comment.
    let indicator = if style == ScalarStyle::Folded { '>' } else { '|' };
    let header = header.split_once(" #").map_or(header, |(before, _)| before);
    let after = header.rsplit_once(indicator).map_or("", |(_, after)| after);
    if after.bytes().any(|b| b.is_ascii_digit()) {
        return fail("the block states its indentation");
    }
    if header_line + 2 < line {
        return fail("the block begins with a blank line");
    }
    if style != ScalarStyle::Folded {
        return Ok(());
    }
    let indentation = |line: &str| line.len() - line.trim_start_matches(' ').len();
    let mut lines = yaml.lines().skip(line.saturating_sub(1));
    let content = lines.next().map(indentation).unwrap_or_default();
    let mut is_blank_now = false;
    for line in lines {
        if is_blank(line) {
            is_blank_now = true;
            continue;
        }
        let own = indentation(line);
        if own < content {
            break;
        }
        is_blank_now = false;
        if own > content || line.get(own..).is_some_and(|rest| rest.starts_with('\t')) {
            return fail("a line of the folded block is indented further than the first");
        }
    }
    if is_blank_now {
        return fail("the folded block ends with a blank line");
    }
    Ok(())
}
