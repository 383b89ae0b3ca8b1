//! Right-to-left text: turns a line from the order on the page, left to right, into reading order.

use unicode_bidi::{BidiClass, bidi_class};

/// True for the letters of Arabic, Hebrew and other right-to-left scripts.
pub(crate) fn is_right_to_left(c: char) -> bool {
    // Most text ends here.
    c >= '\u{590}' && matches!(bidi_class(c), BidiClass::R | BidiClass::AL)
}

/// True if a text has only marks that are drawn over a letter.
pub(crate) fn is_mark(text: &str) -> bool {
    !text.is_ascii() && text.chars().all(|c| direction(c) == Direction::Mark)
}

/// True if a text has a right-to-left letter.
pub(crate) fn has_right_to_left(text: &str) -> bool {
    !text.is_ascii() && text.chars().any(is_right_to_left)
}

/// Text in reading order as it stands on the page, so that [`reading_order`] gives it back.
pub(crate) fn visual_order(text: &str) -> String {
    let is_mixed = text.chars().any(|c| matches!(direction(c), Direction::Left | Direction::Number));
    // The change to the order on the page is the same as the change back.
    if is_mixed { reading_order(text) } else { text.chars().rev().collect() }
}

/// The direction of a character, as far as lines need it.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
enum Direction {
    Left,
    Right,
    Number,
    /// Takes the direction of its neighbours.
    Neutral,
    /// Belongs to the letter before it in reading order.
    Mark,
}

fn direction(c: char) -> Direction {
    match bidi_class(c) {
        BidiClass::L => Direction::Left,
        BidiClass::R | BidiClass::AL => Direction::Right,
        BidiClass::EN | BidiClass::AN => Direction::Number,
        BidiClass::NSM => Direction::Mark,
        _ => Direction::Neutral,
    }
}

/// A line in reading order. `line` is in the order on the page.
pub(crate) fn reading_order(line: &str) -> String {
    let line: Vec<(char, Direction)> = line.chars().map(|c| (c, direction(c))).collect();
    let count = |wanted: Direction| line.iter().filter(|(_, direction)| *direction == wanted).count();
    let is_right = count(Direction::Right) > count(Direction::Left);
    let mut out = String::with_capacity(line.len());
    if is_right {
        // The line begins at its right end; runs of left-to-right letters and numbers keep their order.
        let mut end = line.len();
        while end > 0 {
            let start = if is_left(&line, end - 1) { left_run(&line, end) } else { end - 1 };
            let run = line.get(start..end).unwrap_or_default();
            push(&mut out, run);
            end = start;
        }
    } else {
        let mut start = 0;
        while let Some((c, direction)) = line.get(start) {
            if *direction != Direction::Right {
                out.push(*c);
                start += 1;
                continue;
            }
            let end = right_run(&line, start);
            out.push_str(&reversed(line.get(start..end).unwrap_or_default()));
            start = end;
        }
    }
    marks_after_letters(&out)
}

fn push(out: &mut String, run: &[(char, Direction)]) {
    out.extend(run.iter().map(|(c, _)| *c));
}

fn is_left(line: &[(char, Direction)], at: usize) -> bool {
    line.get(at).is_some_and(|(_, direction)| matches!(direction, Direction::Left | Direction::Number))
}

/// The start of the run of left-to-right characters that ends before `end`. Neutral characters inside belong to it.
fn left_run(line: &[(char, Direction)], end: usize) -> usize {
    let mut start = end;
    for at in (0..end).rev() {
        match line.get(at) {
            Some((_, Direction::Left | Direction::Number)) => start = at,
            // A space ends a run of numbers, except after a left-to-right word: each number has its own place in
            // right-to-left text.
            Some((' ', _)) if is_number(line, start, end) && !follows_left(line, at) => break,
            Some((_, Direction::Neutral | Direction::Mark)) => {}
            _ => break,
        }
    }
    start
}

/// True if a run has no left-to-right letter.
fn is_number(line: &[(char, Direction)], start: usize, end: usize) -> bool {
    !line.get(start..end).unwrap_or_default().iter().any(|(_, direction)| *direction == Direction::Left)
}

/// True if the last letter before `at` is a left-to-right one.
fn follows_left(line: &[(char, Direction)], at: usize) -> bool {
    let before = line.get(..at).unwrap_or_default().iter().rev();
    before.map(|(_, direction)| *direction).find(|d| matches!(d, Direction::Left | Direction::Right))
        == Some(Direction::Left)
}

/// The end of the run of right-to-left characters that starts at `start`. Neutral characters and numbers inside belong to it.
fn right_run(line: &[(char, Direction)], start: usize) -> usize {
    let mut end = start + 1;
    for (at, (_, direction)) in line.iter().enumerate().skip(start) {
        match direction {
            Direction::Right => end = at + 1,
            Direction::Left => break,
            _ => {}
        }
    }
    end
}

/// A right-to-left run in reading order.
fn reversed(run: &[(char, Direction)]) -> String {
    let mut out = String::with_capacity(run.len());
    let mut end = run.len();
    while end > 0 {
        let start = if is_left(run, end - 1) { left_run(run, end) } else { end - 1 };
        push(&mut out, run.get(start..end).unwrap_or_default());
        end = start;
    }
    out
}

/// Moves each mark behind its letter. On the page, a mark is drawn over its letter, so its place is not sure.
fn marks_after_letters(text: &str) -> String {
    let mut out = String::with_capacity(text.len());
    let mut waiting = String::new();
    for c in text.chars() {
        let is_alone = out.chars().next_back().is_none_or(char::is_whitespace);
        if is_alone && direction(c) == Direction::Mark {
            waiting.push(c);
            continue;
        }
        out.push(c);
        out.push_str(&std::mem::take(&mut waiting));
    }
    out + &waiting
}

#[cfg(test)]
mod tests {
    use super::*;

    fn visual(text: &str) -> String {
        text.chars().rev().collect()
    }

    #[test]
    fn right_to_left_lines_become_reading_order() {
        assert_eq!(reading_order(&visual("שלום עולם")), "שלום עולם");
        assert_eq!(reading_order("plain text 12"), "plain text 12");
        // A number and a Latin word inside keep their order.
        assert_eq!(reading_order("םלוע PDF 2026 םולש"), "שלום PDF 2026 עולם");
        assert_eq!(reading_order("12 םולש 345"), "345 שלום 12");
        // A right-to-left word in left-to-right text.
        assert_eq!(reading_order("the word םולש means peace"), "the word שלום means peace");
        assert!(has_right_to_left("a ש") && !has_right_to_left("größe") && is_right_to_left('م'));
    }
}
