//! Checks that every sentence of the documents has at most 25 words. The rule covers all `.md` files of the repository.
//!
//! A sentence ends with `.`, `!`, `?`, `:` or `;` before a space. It also ends with its paragraph, list item, heading
//! or table cell. Inline code and a link count as one word each. Code blocks, comments and generated parts do not
//! count.

use std::collections::BTreeSet;

use crate::{File, assert_none, files};

/// The most words that a sentence may have.
const MOST: usize = 25;

/// A sentence that may be longer.
struct Exception {
    /// The file, from the root of the repository.
    path: &'static str,
    /// The first words of the sentence.
    start: &'static str,
    /// Why the sentence is not split.
    reason: &'static str,
}

/// The sentences that may be longer. The test fails if an exception is not needed any more.
const EXCEPTIONS: [Exception; 0] = [];

/// The generated parts of documents: the path, the mark before the part, and the mark after it.
const GENERATED: [[&str; 3]; 2] = [
    ["docs/measurements/containment.md", "<!-- table: cargo xtask hostile -->", "<!-- end of table -->"],
    [
        "docs/measurements/performance.md",
        "<!-- figures: `cargo xtask bench --publish` writes from here -->",
        "<!-- figures: to here -->",
    ],
];

/// One paragraph, heading, list item or table cell.
#[derive(Debug, PartialEq)]
struct Unit {
    /// The number of its first line.
    line: usize,
    /// Its lines, joined by spaces.
    text: String,
}

/// Splits a document into units. The end of a unit is also the end of its last sentence.
fn units(text: &str) -> Vec<Unit> {
    let mut all: Vec<Unit> = Vec::new();
    let (mut is_code, mut is_comment, mut is_joined) = (false, false, false);
    for (index, line) in text.lines().enumerate() {
        let trimmed = line.trim();
        if trimmed.starts_with("```") {
            is_code = !is_code;
            is_joined = false;
            continue;
        }
        if is_code {
            continue;
        }
        if is_comment || trimmed.starts_with("<!--") {
            is_comment = !trimmed.ends_with("-->");
            is_joined = false;
            continue;
        }
        if trimmed.is_empty() {
            is_joined = false;
        } else if trimmed.starts_with('|') {
            // A `|` within a cell is written `\|`.
            let row = trimmed.replace("\\|", "/");
            all.extend(row.split('|').map(|cell| Unit { line: index + 1, text: cell.trim().to_owned() }));
            is_joined = false;
        } else if let Some(heading) = trimmed.strip_prefix('#') {
            all.push(Unit { line: index + 1, text: heading.trim_start_matches('#').trim().to_owned() });
            is_joined = false;
        } else if let Some(item) = item(trimmed) {
            all.push(Unit { line: index + 1, text: item.to_owned() });
            is_joined = true;
        } else if let Some(unit) = all.last_mut().filter(|_| is_joined) {
            unit.text.push(' ');
            unit.text.push_str(trimmed);
        } else {
            all.push(Unit { line: index + 1, text: trimmed.to_owned() });
            is_joined = true;
        }
    }
    all.retain(|unit| unit.text.chars().any(char::is_alphanumeric));
    all
}

/// The text of a list item; `None` if the line does not begin one.
fn item(line: &str) -> Option<&str> {
    let numbered = line.trim_start_matches(|c: char| c.is_ascii_digit());
    let numbered = (numbered.len() < line.len()).then(|| numbered.strip_prefix(". ")).flatten();
    numbered.or_else(|| ["- ", "* ", "+ "].iter().find_map(|mark| line.strip_prefix(mark)))
}

/// Replaces inline code, links and addresses in `<>` by one word each.
fn simplified(text: &str) -> String {
    let mut plain = String::new();
    let mut rest = text;
    while let Some(at) = rest.find(['`', '[', '<']) {
        plain.push_str(&rest[..at]);
        let length = match &rest[at..=at] {
            "`" => code(&rest[at..]),
            "[" => link(&rest[at..]),
            _ => rest[at..].find('>').filter(|_| rest[at + 1..].starts_with("http")).map(|end| end + 1),
        };
        plain.push_str(if length.is_some() { "word" } else { &rest[at..=at] });
        rest = &rest[at + length.unwrap_or(1)..];
    }
    plain + rest
}

/// The length of the inline code at the start of `text`.
fn code(text: &str) -> Option<usize> {
    let ticks = text.len() - text.trim_start_matches('`').len();
    let (body, mark) = (&text[ticks..], &text[..ticks]);
    body.find(mark).map(|end| end + 2 * ticks)
}

/// The length of the link at the start of `text`.
fn link(text: &str) -> Option<usize> {
    let middle = text.find("](")?;
    text[middle..].find(')').map(|end| middle + end + 1)
}

/// Splits a unit into its sentences.
fn sentences(unit: &str) -> Vec<String> {
    let text = simplified(unit);
    let mut all = vec![String::new()];
    for word in text.split_whitespace() {
        let sentence = all.last_mut().expect("the list is never empty");
        if !sentence.is_empty() {
            sentence.push(' ');
        }
        sentence.push_str(word);
        if word.trim_end_matches([')', '"', '\'', '*', '_']).ends_with(['.', '!', '?', ':', ';']) {
            all.push(String::new());
        }
    }
    all.retain(|sentence| !sentence.is_empty());
    all
}

fn words(sentence: &str) -> usize {
    sentence.split(' ').filter(|word| word.chars().any(char::is_alphanumeric)).count()
}

/// The document with empty lines in place of the generated parts, so that line numbers stay correct.
fn written(file: &File) -> String {
    let mut text = file.text.clone();
    for [path, begin, end] in GENERATED {
        if path == file.path
            && let Some((before, rest)) = text.split_once(begin)
            && let Some((generated, after)) = rest.split_once(end)
        {
            text = format!("{before}{}{after}", "\n".repeat(generated.matches('\n').count()));
        }
    }
    text
}

/// The sentences that are too long, and the exceptions that are not needed.
fn violations(files: &[File], exceptions: &[Exception]) -> Vec<String> {
    let mut needed = BTreeSet::new();
    let mut found = Vec::new();
    for file in files {
        for unit in units(&written(file)) {
            for sentence in sentences(&unit.text).into_iter().filter(|sentence| words(sentence) > MOST) {
                let fits = |one: &Exception| one.path == file.path && sentence.starts_with(one.start);
                match exceptions.iter().position(fits) {
                    Some(at) => _ = needed.insert(at),
                    None => found.push(format!("{}:{}: {} words: {sentence}", file.path, unit.line, words(&sentence))),
                }
            }
        }
    }
    let unneeded = exceptions.iter().enumerate().filter(|(at, _)| !needed.contains(at));
    found.extend(unneeded.map(|(_, one)| format!("{}: no exception is needed for \"{}\"", one.path, one.start)));
    found.extend(
        exceptions.iter().filter(|one| one.reason.is_empty()).map(|one| format!("{}: give a reason", one.path)),
    );
    found
}

#[test]
fn no_sentence_is_too_long() {
    assert_none(violations(&files(".md"), &EXCEPTIONS));
}

#[test]
fn generated_parts_exist() {
    let files = files(".md");
    let text =
        |path: &str| files.iter().find(|file| file.path == path).map(|file| file.text.as_str()).unwrap_or_default();
    let lacks = |[path, begin, end]: &&[&str; 3]| !text(path).contains(begin) || !text(path).contains(end);
    let missing = GENERATED.iter().filter(lacks);
    assert_none(missing.map(|[path, begin, end]| format!("{path} lacks \"{begin}\" or \"{end}\"")));
}

#[test]
fn a_long_sentence_is_found() {
    let many = |count: usize| vec!["word"; count].join(" ");
    let file = |text: &str| File { path: "a.md".to_owned(), text: text.to_owned() };
    let found = |text: &str| violations(&[file(text)], &[]).len();
    let (short, long) = (many(25), many(26));
    for fine in [
        format!("{short}. {short}\n"),
        format!("{short}: {short}; {short}? \"{short}!\" {short}\n"),
        format!("# {short}\n{short}\n\n- {short}\n- {short}\n1. {short}\n"),
        format!("| {short} | {short} |\n|---|---|\n| {short} | {short} |\n"),
        format!("```text\n{long}\n```\n<!-- {long} -->\n"),
        format!("{} `{long}` [{long}](a.md \"b\")", many(23)),
        format!("{} = - +", short),
    ] {
        assert_eq!(found(&fine), 0, "{fine}");
    }
    for wrong in [
        long.clone(),
        format!("- {short}\n  word"),
        format!("{short}\nword"),
        format!("| a | {long} |"),
        format!("# {long}"),
        format!("{short} `word`"),
        format!("a.b {short}"),
        format!("{short} [word](a.md)."),
    ] {
        assert_eq!(found(&wrong), 1, "{wrong}");
    }
}

#[test]
fn an_unneeded_exception_is_found() {
    let long = File { path: "a.md".to_owned(), text: format!("Long {}", "word ".repeat(25)) };
    let exception = |start, reason| [Exception { path: "a.md", start, reason }];
    assert_eq!(violations(&[long], &exception("Long word", "a quotation")), Vec::<String>::new());
    let short = File { path: "a.md".to_owned(), text: "Long word.".to_owned() };
    assert_eq!(violations(&[short], &exception("Long word", "a quotation")).len(), 1);
}
