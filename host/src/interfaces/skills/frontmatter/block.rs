//! Block scalars (`|`, `>`) on whose line breaks parsers differ.
//!
//! Known differences (huggingface/skills#220): blank lines at the beginning or end of a folded block, and lines in it
//! that are indented further. Explicit indentation is rare, and a frequent cause of errors.

use saphyr_parser::ScalarStyle;

/// Checks the block scalar that begins in `line` (from 1) of `yaml` and has this `value`. The error completes "...; parsers differ here".
pub(super) fn check(yaml: &str, line: usize, style: ScalarStyle, value: &str) -> Result<(), &'static str> {
    if value.trim().is_empty() {
        return Err("the block is empty");
    }
    let mut lines = yaml.lines().skip(line - 1);
    let header = lines.next().unwrap_or_default();
    // The header follows the last `|` or `>` that begins a value. Comments may contain others.
    let indicator = if style == ScalarStyle::Folded { '>' } else { '|' };
    let header = header.split_once(" #").map_or(header, |(before, _)| before);
    let after = header.rsplit_once(indicator).map_or("", |(_, after)| after);
    if after.bytes().any(|b| b.is_ascii_digit()) {
        return Err("the block states its indentation");
    }
    let is_blank = |line: &str| line.trim_matches([' ', '\t', '\r']).is_empty();
    let indentation = |line: &str| line.len() - line.trim_start_matches(' ').len();
    let mut content = None;
    let (mut blank_before, mut is_blank_now) = (false, false);
    for line in lines {
        if is_blank(line) {
            blank_before |= content.is_none();
            is_blank_now = true;
            continue;
        }
        let own = indentation(line);
        let first = *content.get_or_insert(own);
        if own < first {
            break;
        }
        is_blank_now = false;
        let is_deeper = own > first || line.get(own..).is_some_and(|rest| rest.starts_with('\t'));
        if is_deeper && style == ScalarStyle::Folded {
            return Err("a line of the folded block is indented further than the first");
        }
    }
    if blank_before {
        return Err("the block begins with a blank line");
    }
    if is_blank_now && style == ScalarStyle::Folded {
        return Err("the folded block ends with a blank line");
    }
    Ok(())
}
