//! Puts the lines of a page in order, and joins them into text.

use crate::text::lines::Line;

/// The most blocks that are put into reading order. More are sorted from the top of the page to the bottom.
const MAX_BLOCKS: usize = 160;

/// Lines that follow each other in a column.
#[derive(Debug)]
struct Block {
    lines: Vec<Line>,
    start: f64,
    end: f64,
    top: f64,
    bottom: f64,
    /// The column of the block: from the block to the left of it to the block to the right.
    column: (f64, f64),
    /// True if the block is a cell of a table: one line with other single lines beside it.
    is_cell: bool,
}

impl Block {
    fn new(line: Line) -> Block {
        let (start, end, top, bottom) = (line.start, line.end, line.base - 0.8 * line.em, line.base);
        Block { lines: vec![line], start, end, top, bottom, column: (start, end), is_cell: false }
    }

    fn push(&mut self, line: Line) {
        self.start = self.start.min(line.start);
        self.end = self.end.max(line.end);
        self.top = self.top.min(line.base - 0.8 * line.em);
        self.bottom = self.bottom.max(line.base);
        self.lines.push(line);
    }

    /// True if `line` is the next line of this block.
    fn continues(&self, line: &Line) -> bool {
        let Some(last) = self.lines.last() else { return false };
        let (small, large) = (last.em.min(line.em), last.em.max(line.em));
        let down = line.base - last.base;
        let is_below = down > 0.3 * large && down < 1.7 * large && small > 0.75 * large;
        is_below && line.start < self.end && line.end > self.start
    }

    fn is_beside(&self, other: &Block) -> bool {
        self.top < other.bottom && other.top < self.bottom
    }

    /// True if this block is above `other` in the same column.
    fn is_above(&self, other: &Block) -> bool {
        let shared = self.column.1.min(other.column.1) - self.column.0.max(other.column.0);
        let narrow = (self.column.1 - self.column.0).min(other.column.1 - other.column.0);
        self.top < other.top && shared > 0.05 * narrow
    }
}

/// Joins lines in document order.
pub(crate) fn written(lines: &[Line]) -> String {
    let mut text = String::new();
    let mut last: Option<&Line> = None;
    for line in lines {
        if let Some(last) = last {
            separate(&mut text, last, line);
        }
        text.push_str(&line.text());
        last = Some(line);
    }
    end_line(&mut text, 1);
    text
}

/// Joins lines from the top of the page to the bottom.
pub(crate) fn by_position(mut lines: Vec<Line>) -> String {
    lines.sort_by(|one, other| one.turn.cmp(&other.turn).then(one.base.total_cmp(&other.base)));
    // Lines at about the same height form a row.
    let mut rows: Vec<Vec<Line>> = Vec::new();
    for line in lines {
        match rows.last_mut() {
            Some(row)
                if row.last().is_some_and(|last| {
                    last.turn == line.turn && line.base - last.base < 0.4 * last.em.max(line.em)
                }) =>
            {
                row.push(line);
            }
            _ => rows.push(vec![line]),
        }
    }
    for row in &mut rows {
        row.sort_by(|one, other| one.start.total_cmp(&other.start));
        let base = row.first().map_or(0.0, |first| first.base);
        row.iter_mut().for_each(|line| line.base = base);
    }
    written(&rows.into_iter().flatten().collect::<Vec<_>>())
}

/// Joins lines in reading order: column by column, each from top to bottom.
pub(crate) fn reading(lines: Vec<Line>) -> String {
    // The main writing direction comes first.
    let mut turns: Vec<(i16, usize)> = Vec::new();
    for line in &lines {
        match turns.iter_mut().find(|(turn, _)| *turn == line.turn) {
            Some((_, count)) => *count += line.words.len(),
            None => turns.push((line.turn, line.words.len())),
        }
    }
    turns.sort_by(|(_, one), (_, other)| other.cmp(one));
    let mut text = String::new();
    let mut waiting = lines;
    for (turn, _) in turns {
        let (these, others) = waiting.into_iter().partition(|line| line.turn == turn);
        waiting = others;
        end_line(&mut text, 2);
        push_blocks(&mut text, blocks(these));
    }
    end_line(&mut text, 1);
    text
}

/// Joins lines of one writing direction into blocks.
fn blocks(mut lines: Vec<Line>) -> Vec<Block> {
    lines.sort_by(|one, other| one.base.total_cmp(&other.base).then(one.start.total_cmp(&other.start)));
    let mut blocks: Vec<Block> = Vec::new();
    for line in lines {
        // Blocks far above cannot continue.
        let mut above = blocks.iter_mut().rev().take(48).filter(|block| block.continues(&line));
        match (above.next(), above.next()) {
            (Some(block), None) => block.push(line),
            _ => blocks.push(Block::new(line)),
        }
    }
    blocks
}

/// Appends blocks in reading order. A block comes before another one if it is above it in the same column, or in a column to
/// the left of it (after T. M. Breuel, "High performance document layout analysis").
fn push_blocks(text: &mut String, mut blocks: Vec<Block>) {
    blocks.sort_by(|one, other| one.top.total_cmp(&other.top).then(one.start.total_cmp(&other.start)));
    place(&mut blocks);
    let order = if blocks.len() <= MAX_BLOCKS { reading_order(&blocks) } else { (0..blocks.len()).collect() };
    let mut last: Option<&Line> = None;
    for block in order.iter().filter_map(|at| blocks.get(*at)) {
        let mut is_first = true;
        for line in &block.lines {
            let words = line.text();
            match last {
                Some(_) if join_divided(text, &words) => {}
                Some(last) if is_first => separate(text, last, line),
                Some(_) => end_line(text, 1),
                None => {}
            }
            text.push_str(&words);
            last = Some(line);
            is_first = false;
        }
    }
}

/// Finds the columns and the table cells among blocks.
fn place(blocks: &mut [Block]) {
    if blocks.len() > MAX_BLOCKS {
        return;
    }
    let left = blocks.iter().map(|block| block.start).fold(f64::INFINITY, f64::min);
    let right = blocks.iter().map(|block| block.end).fold(f64::NEG_INFINITY, f64::max);
    let places: Vec<((f64, f64), bool)> = blocks
        .iter()
        .map(|block| {
            let mut column = (left, right);
            let mut is_cell = false;
            for other in blocks.iter().filter(|other| other.is_beside(block)) {
                if other.end <= block.start {
                    column.0 = column.0.max(other.end);
                } else if other.start >= block.end {
                    column.1 = column.1.min(other.start);
                } else {
                    continue;
                }
                is_cell |= block.lines.len() == 1 && other.lines.len() == 1;
            }
            ((column.0.min(block.start), column.1.max(block.end)), is_cell)
        })
        .collect();
    for (block, (column, is_cell)) in blocks.iter_mut().zip(places) {
        block.column = column;
        block.is_cell = is_cell;
    }
}

/// True if the last line ends with a hyphen that divides a word. Removes the hyphen; the rest of the word must follow.
fn join_divided(text: &mut String, next: &str) -> bool {
    let Some(start) = text.strip_suffix(['-', '\u{ad}', '\u{2010}']) else { return false };
    let is_divided = start.ends_with(char::is_alphabetic) && next.starts_with(char::is_lowercase);
    if is_divided {
        text.truncate(start.len());
    }
    is_divided
}

/// The numbers of the blocks in reading order. The blocks are sorted from top to bottom.
fn reading_order(blocks: &[Block]) -> Vec<usize> {
    let is_before = |one: &Block, other: &Block| {
        if one.is_above(other) {
            return true;
        }
        // To the left, unless a block across both columns is below the other one and above this one.
        let is_left = one.end <= other.start + 0.05 * (other.end - other.start);
        let is_row = one.is_cell && other.is_cell;
        is_left
            && (!is_row || one.is_beside(other))
            && !blocks.iter().any(|between| other.is_above(between) && between.is_above(one))
            || (is_row && !one.is_beside(other) && one.top < other.top)
    };
    let mut order = Vec::with_capacity(blocks.len());
    let mut is_done = vec![false; blocks.len()];
    for first in 0..blocks.len() {
        // A stack of blocks and of the next block to compare with.
        let mut waiting: Vec<(usize, usize)> = vec![(first, 0)];
        match is_done.get_mut(first) {
            Some(is_done) if !*is_done => *is_done = true,
            _ => continue,
        }
        while let Some((at, next)) = waiting.pop() {
            let earlier = blocks.get(at).and_then(|block| {
                (next..blocks.len()).find(|other| {
                    *other != at
                        && is_done.get(*other) == Some(&false)
                        && blocks.get(*other).is_some_and(|other| is_before(other, block))
                })
            });
            match earlier {
                Some(earlier) => {
                    waiting.push((at, earlier + 1));
                    waiting.push((earlier, 0));
                    if let Some(is_done) = is_done.get_mut(earlier) {
                        *is_done = true;
                    }
                }
                None => order.push(at),
            }
        }
    }
    order
}

/// Ends the line `last` before `line`. A longer step also leaves an empty line.
fn separate(text: &mut String, last: &Line, line: &Line) {
    let em = last.em.max(line.em);
    let down = line.base - last.base;
    if last.turn != line.turn || down < -0.5 * em || down > 2.2 * em {
        end_line(text, 2);
    } else if down.abs() > 0.5 * em || line.start < last.start {
        end_line(text, 1);
    } else if !text.ends_with(char::is_whitespace) {
        text.push_str(if line.start > last.end + 1.5 * em { "  " } else { " " });
    }
}

fn end_line(text: &mut String, ends: usize) {
    text.truncate(text.trim_end().len());
    if !text.is_empty() {
        text.push_str(if ends == 1 { "\n" } else { "\n\n" });
    }
}
