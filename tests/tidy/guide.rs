//! Checks that the tests build all examples of the guide for authors, and that the guide for teams has no others. Documentation tests compile the examples in Rust
//! (`tests/documents`). The fence of any other example must name a file that the tests build: "```python
//! sdk-guest/...". This file must contain the example.

use std::fs;

use belljar_tests::places;

use crate::assert_none;

/// The pages whose examples are built or run.
const GUIDES: [&str; 2] = ["docs/guide/providers.md", "docs/guide/teams.md"];

/// The languages of blocks that are never built: commands and output.
const PROSE: [&str; 3] = ["console", "text", "json"];

/// One fenced block: its first line, its info string, and its lines.
struct Block<'a> {
    line: usize,
    info: &'a str,
    body: Vec<&'a str>,
}

/// The fenced blocks of a page.
fn blocks(text: &str) -> Vec<Block<'_>> {
    let (mut all, mut open): (Vec<Block<'_>>, bool) = (Vec::new(), false);
    for (at, line) in text.lines().enumerate() {
        match line.trim_start().strip_prefix("```") {
            Some(_) if open => open = false,
            Some(info) => {
                open = true;
                all.push(Block { line: at + 1, info: info.trim(), body: Vec::new() });
            }
            None if open => all.last_mut().expect("a block is open").body.push(line),
            None => {}
        }
    }
    all
}

/// The violations in the blocks of `text`. `read` returns the text of a file of the repository.
fn violations(guide: &str, text: &str, read: impl Fn(&str) -> Option<String>) -> Vec<String> {
    let mut found = Vec::new();
    for block in blocks(text) {
        let at = format!("{guide}:{}", block.line);
        let why = match block.info.split_once(' ') {
            None if block.info == "rust" || PROSE.contains(&block.info) => None,
            None if block.info == "toml" => {
                block.body.join("\n").parse::<toml::Table>().err().map(|error| error.to_string())
            }
            None => Some(format!("the fence \"{}\" must name the file that contains this example", block.info)),
            Some(("rust", _)) => Some("Rust is compiled: remove the words after \"rust\"".to_owned()),
            Some((_, file)) => match read(file) {
                None => Some(format!("there is no file \"{file}\"")),
                Some(source) if is_part_of(&block.body, &source) => None,
                Some(_) => Some(format!("\"{file}\" does not contain this example")),
            },
        };
        found.extend(why.map(|why| format!("{at}: {why}")));
    }
    found
}

/// True if `source` contains these lines in sequence, all with the same additional indentation.
fn is_part_of(body: &[&str], source: &str) -> bool {
    let lines: Vec<&str> = source.lines().collect();
    let matches = |place: &[&str]| {
        let (Some(first), Some(wanted)) = (place.first(), body.first()) else { return false };
        let Some(indent) = first.strip_suffix(wanted).filter(|indent| indent.trim().is_empty()) else { return false };
        place.iter().zip(body).all(|(line, wanted)| match wanted.is_empty() {
            true => line.trim().is_empty(),
            false => line.strip_prefix(indent) == Some(wanted),
        })
    };
    lines.windows(body.len().max(1)).any(matches)
}

#[test]
fn every_example_of_the_guide_is_built() {
    let root = places::repository();
    for guide in GUIDES {
        let text = fs::read_to_string(root.join(guide)).unwrap();
        assert!(blocks(&text).len() > 8, "{guide}: a guide has examples");
        assert_none(violations(guide, &text, |file| fs::read_to_string(root.join(file)).ok()));
    }
}

#[test]
fn an_example_that_differs_from_its_file_is_found() {
    let read = |file: &str| (file == "a.py").then(|| "class A:\n    def b(self):\n\n        return 1\n".to_owned());
    let fence = |info: &str, body: &str| format!("text\n\n```{info}\n{body}\n```\n");
    for fine in [
        fence("python a.py", "def b(self):\n\n    return 1"),
        fence("rust", "x"),
        fence("console", "$ x"),
        fence("toml", "a = 1"),
    ] {
        assert_eq!(violations("a.md", &fine, read), Vec::<String>::new(), "{fine}");
    }
    for (wrong, why) in [
        (fence("python a.py", "def b(self):\n    return 2"), "does not contain"),
        (fence("python a.py", "def b(self):\n    return 1"), "does not contain"),
        (fence("python b.py", "x"), "no file \"b.py\""),
        (fence("python", "x"), "must name the file"),
        (fence("", "x"), "must name the file"),
        (fence("rust ignore", "x"), "Rust is compiled"),
        (fence("toml", "a = "), "TOML"),
    ] {
        let found = violations("a.md", &wrong, read);
        assert!(found.len() == 1 && found[0].contains(why), "{wrong}: {found:?}");
    }
}
