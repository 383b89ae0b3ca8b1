//! The tool `search`: files by the words in their paths and texts. Reads one file after the other, up to limits of work.

use std::fmt::Write as _;
use std::time::{Duration, Instant};

use belljar_guest::{Block, Error, Link, Result, Tool, ToolResult, ToolSet, Tools, reference};
use belljar_tree::{Kind, MAX_REFERENCE_BYTES, Step, Walk, contains, name};
use serde::Deserialize;

use crate::{Files, media};

/// Files of a result when the call has no `limit`.
const FILES: usize = 20;

/// The most files of a result.
const MAX_FILES: usize = 100;

/// The most lines that are shown of one file.
const MAX_LINES: usize = 3;

/// The most characters that are shown of one line.
const MAX_CHARACTERS: usize = 200;

/// How many bytes of a file are searched.
const MAX_FILE_BYTES: u64 = 1024 * 1024;

/// How many bytes one call searches. A byte takes up to 130 units of fuel, and a call has five thousand million.
const MAX_BYTES: u64 = 16 * 1024 * 1024;

/// How many files one call looks at.
const MAX_VISITED: usize = 20_000;

/// How long one call searches: less than the host's limit for a call.
/// An hour in unit tests, which must not depend on the speed of the machine.
const TIME: Duration = Duration::from_millis(if cfg!(test) { 3_600_000 } else { 1500 });

/// The schema of [`Search`]. A text, because the code that makes schemas from types has 110 KB.
const INPUT: &str = r#"{"type":"object","properties":{"words":{"type":"string","description":"All must be in the path or the text"},"paths":{"type":"string","description":"Glob, such as notes/**/*.md"},"limit":{"type":"integer","minimum":1,"maximum":100,"description":"Most files; 20 by default"}},"required":["words"],"additionalProperties":false}"#;

/// The arguments.
#[derive(Debug, Deserialize)]
#[serde(deny_unknown_fields)]
struct Search {
    words: String,
    paths: Option<String>,
    limit: Option<usize>,
}

/// A file with all words.
struct Found {
    link: Link,
    path: String,
    /// The first lines with one of the words, with their numbers from 1.
    lines: Vec<(usize, String)>,
}

impl Tools for Files {
    fn tools() -> ToolSet<Self> {
        let search = Tool::reading("search", "Finds files by words, ignoring case. Gives paths and matching lines.");
        ToolSet::new().tool_with_schemas(search.input(INPUT), Files::search)
    }
}

impl Files {
    fn search(&self, asked: Search) -> Result<ToolResult> {
        let limit = asked.limit.unwrap_or(FILES);
        if !(1..=MAX_FILES).contains(&limit) {
            return Err(Error::invalid(format_args!("\"limit\" is {limit}: expected a number from 1 to {MAX_FILES}")));
        }
        let words: Vec<String> = asked.words.split_whitespace().map(str::to_lowercase).collect();
        if words.is_empty() {
            return Err(Error::invalid("\"words\" is empty: expected one or more words"));
        }
        let glob = asked.paths.as_deref().map(|glob| glob.trim_start_matches('/')).filter(|glob| !glob.is_empty());
        let until = Instant::now() + TIME;
        let (mut found, mut visited, mut left) = (Vec::new(), 0, MAX_BYTES);
        let mut walk = Walk::new(&self.tree, String::new(), MAX_VISITED);
        let note = loop {
            let path = match walk.next()? {
                Step::File(path) => path,
                Step::End => break None,
                Step::Paused(_) => break Some("the search stopped at a limit of directories"),
            };
            if found.len() == limit {
                break Some("there may be more files");
            }
            visited += 1;
            if visited > MAX_VISITED || left == 0 || Instant::now() > until {
                break Some("the search stopped at a limit of work");
            }
            if glob.is_none_or(|glob| is_match(glob, &path)) {
                found.extend(self.look_into(path, &words, &mut left));
            }
        };
        let mut text = String::new();
        for file in &found {
            let _ = writeln!(text, "{}", file.path);
            for (number, line) in &file.lines {
                let _ = writeln!(text, "  {number}: {line}");
            }
        }
        if found.is_empty() {
            text.push_str("no files\n");
        }
        if let Some(note) = note {
            let _ = writeln!(text, "[files: {note}; narrow it with \"paths\" or more words]");
        }
        let links = found.into_iter().map(|file| Block::link(file.link));
        Ok(ToolResult::new(std::iter::once(Block::text(text)).chain(links)))
    }

    /// The file at `path`, if it has all words. A file that cannot be read has only those of its path.
    fn look_into(&self, path: String, words: &[String], left: &mut u64) -> Option<Found> {
        let meta = self.tree.meta(&path).ok().filter(|meta| meta.kind == Kind::File)?;
        let missing: Vec<&String> = words.iter().filter(|word| !contains(&path, word)).collect();
        let length = meta.size.min(MAX_FILE_BYTES).min(*left);
        *left -= length;
        let bytes = self.tree.read(&path, length).unwrap_or_default();
        // Pictures and archives have such a byte near their beginning, text has none.
        let is_binary = bytes.iter().take(8000).any(|byte| *byte == 0);
        let text = if is_binary { "".into() } else { String::from_utf8_lossy(&bytes) };
        if !missing.iter().all(|word| contains(&text, word)) {
            return None;
        }
        let has_word = |line: &str| words.iter().any(|word| contains(line, word));
        let lines = (1..).zip(text.lines()).filter(|(_, line)| has_word(line)).take(MAX_LINES);
        let lines = lines.map(|(number, line)| (number, shortened(line, words))).collect();
        let mut link = Link::new(reference::encode(&path)).name(name(&path)).size(meta.size);
        link.mime_type = media::by_name(name(&path)).map(str::to_owned);
        (link.reference.len() <= MAX_REFERENCE_BYTES).then_some(Found { link, path, lines })
    }
}

/// True if a pattern matches a path, or the name of the file if the pattern has no `/`.
fn is_match(glob: &str, path: &str) -> bool {
    fast_glob::glob_match(glob, if glob.contains('/') { path } else { name(path) })
}

/// A line without control characters, around its first word if it is too long.
fn shortened(line: &str, words: &[String]) -> String {
    let line: String = line.trim().chars().map(|c| if c.is_control() { ' ' } else { c }).collect();
    if line.chars().count() <= MAX_CHARACTERS {
        return line;
    }
    let lower = line.to_lowercase();
    let at = words.iter().filter_map(|word| lower.find(word.as_str())).min().unwrap_or_default();
    // The position in the lowered line, which may differ by a few characters from that in the line.
    let start = lower.get(..at).map_or(0, |before| before.chars().count()).saturating_sub(MAX_CHARACTERS / 4);
    let shown: String = line.chars().skip(start).take(MAX_CHARACTERS).collect();
    let before = if start > 0 { "..." } else { "" };
    format!("{before}{shown}...")
}
