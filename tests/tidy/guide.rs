//! What the provider author's guide shows is built: Rust is compiled as documentation tests (`tests/documents`), and what is of
//! another language stands, word for word, in a file that the tests build, which its fence names: "```python sdk-guest/...".

use std::fs;

use belljar_tests::places;

use crate::none;

const GUIDE: &str = "docs/providers.md";

/// Languages of what is typed or shown, and built by nobody.
const PROSE: [&str; 2] = ["console", "text"];

/// One fenced block: where it begins, its information, its lines.
struct Block<'a> {
    line: usize,
    info: &'a str,
    body: Vec<&'a str>,
}

fn blocks(text: &str) -> Vec<Block<'_>> {
    let (mut all, mut open): (Vec<Block<'_>>, bool) = (Vec::new(), false);
    for (at, line) in text.lines().enumerate() {
        match line.trim_start().strip_prefix("```") {
            Some(_) if open => open = false,
            Some(info) => {
                open = true;
                all.push(Block { line: at + 1, info: info.trim(), body: Vec::new() });
            }
            None if open => all.last_mut().expect("one is open").body.push(line),
            None => {}
        }
    }
    all
}

/// What is wrong with the blocks of `text`. `read`: a file of the repository.
fn violations(text: &str, read: impl Fn(&str) -> Option<String>) -> Vec<String> {
    let mut found = Vec::new();
    for block in blocks(text) {
        let at = format!("{GUIDE}:{}", block.line);
        let why = match block.info.split_once(' ') {
            None if block.info == "rust" || PROSE.contains(&block.info) => None,
            None if block.info == "toml" => {
                block.body.join("\n").parse::<toml::Table>().err().map(|error| error.to_string())
            }
            None => Some(format!("\"{}\" names no file in which this stands", block.info)),
            Some(("rust", _)) => Some("Rust is compiled: it needs neither a file nor an attribute".to_owned()),
            Some((_, file)) => match read(file) {
                None => Some(format!("there is no file \"{file}\"")),
                Some(source) if stands_in(&block.body, &source) => None,
                Some(_) => Some(format!("this does not stand in \"{file}\"")),
            },
        };
        found.extend(why.map(|why| format!("{at}: {why}")));
    }
    found
}

/// Whether these lines follow each other in `source`, all of them indented by as much.
fn stands_in(body: &[&str], source: &str) -> bool {
    let lines: Vec<&str> = source.lines().collect();
    let is_here = |place: &[&str]| {
        let (Some(first), Some(wanted)) = (place.first(), body.first()) else { return false };
        let Some(indent) = first.strip_suffix(wanted).filter(|indent| indent.trim().is_empty()) else { return false };
        place.iter().zip(body).all(|(line, wanted)| match wanted.is_empty() {
            true => line.trim().is_empty(),
            false => line.strip_prefix(indent) == Some(wanted),
        })
    };
    lines.windows(body.len().max(1)).any(is_here)
}

#[test]
fn the_guide_shows_what_is_built() {
    let root = places::repository();
    let text = fs::read_to_string(root.join(GUIDE)).unwrap();
    assert!(blocks(&text).len() > 8, "a guide has examples");
    none(violations(&text, |file| fs::read_to_string(root.join(file)).ok()));
}

#[test]
fn what_is_not_built_is_found() {
    let read = |file: &str| (file == "a.py").then(|| "class A:\n    def b(self):\n\n        return 1\n".to_owned());
    let fence = |info: &str, body: &str| format!("text\n\n```{info}\n{body}\n```\n");
    for fine in [
        fence("python a.py", "def b(self):\n\n    return 1"),
        fence("rust", "x"),
        fence("console", "$ x"),
        fence("toml", "a = 1"),
    ] {
        assert_eq!(violations(&fine, read), Vec::<String>::new(), "{fine}");
    }
    for (wrong, why) in [
        (fence("python a.py", "def b(self):\n    return 2"), "does not stand"),
        (fence("python a.py", "def b(self):\n    return 1"), "does not stand"),
        (fence("python b.py", "x"), "no file \"b.py\""),
        (fence("python", "x"), "names no file"),
        (fence("", "x"), "names no file"),
        (fence("rust ignore", "x"), "Rust is compiled"),
        (fence("toml", "a = "), "TOML"),
    ] {
        let found = violations(&wrong, read);
        assert!(found.len() == 1 && found[0].contains(why), "{wrong}: {found:?}");
    }
}
