//! Checks the documents against the repository: links must have a target, claims must name existing tests, and commands
//! must use existing verbs. The tests apply each rule to the documents, and to planted mistakes.
#![expect(clippy::unwrap_used, reason = "a test reports a failure by a panic")]

use std::collections::BTreeSet;
use std::fs;
use std::path::{Path, PathBuf};

/// The names of directories without documents or sources of this repository.
const FOREIGN: [&str; 7] = [".git", ".mypy_cache", ".venv", "__pycache__", "build", "node_modules", "target"];

/// The page with the claims of the README.
const CLAIMS: &str = "docs/reference/claims.md";

/// The page with the ways to be known, and the header of its table of tests.
const COMBINATIONS: (&str, &str) = ("docs/reference/authentication.md", "| combination | shown by |");

/// The header of a table of claims.
const HEADER: &str = "| claim | shown by |";

/// Links in pages of templates, as (end of the page's path, link). They are valid only in a project, into which the
/// page is copied.
const LINKS_IN_PROJECTS: [(&str, &str); 1] = [("/template/README.md", "adapter/README.md")];

/// Verbs of designs that are not implemented, as (page, verb).
const PLANNED: [(&str, &str); 1] = [("docs/design/workers.md", "work")];

/// The pages whose file paths must exist, each with the folders to which the paths are relative.
const MAPS: [(&str, &[&str]); 4] =
    [("docs/design/README.md", &["", "host/src"]), (CLAIMS, &[""]), ("CONTRIBUTING.md", &[""]), ("SECURITY.md", &[""])];

/// The page that lists the environment variables.
const VARIABLES: &str = "docs/reference/environment.md";

/// A variable that no program sets. A test uses the name, so the page does not list it.
const UNSET: &str = "BELLJAR_NO_SUCH_VARIABLE";

/// The folders whose sources may name pages.
const SOURCES: [&str; 5] = ["host", "plugins", "sdk-guest", "tests", "xtask"];

/// Names in example paths, which a reader replaces.
const EXAMPLES: [&str; 2] = ["chime", "echo"];

/// The most lines and words of the README.
const README: (usize, usize) = (200, 1300);

fn root() -> PathBuf {
    Path::new(env!("CARGO_MANIFEST_DIR")).join("../..")
}

/// The text files below `folder` whose names end with `ending`, as pairs of path (from the root) and text.
fn files(folder: &str, ending: &str) -> Vec<(String, String)> {
    let (mut found, mut folders) = (Vec::new(), vec![root().join(folder)]);
    while let Some(folder) = folders.pop() {
        for entry in fs::read_dir(folder).unwrap() {
            let path = entry.unwrap().path();
            let name = path.file_name().unwrap().to_string_lossy().into_owned();
            if path.is_dir() && !path.is_symlink() && !FOREIGN.contains(&name.as_str()) {
                folders.push(path);
            } else if name.ends_with(ending)
                && let Ok(text) = fs::read_to_string(&path)
            {
                let path = path.strip_prefix(root()).unwrap().to_string_lossy().into_owned();
                found.push((path, text));
            }
        }
    }
    found.sort();
    assert!(!found.is_empty(), "\"{folder}\" has no {ending} file");
    found
}

/// The lines of a page outside of code blocks.
fn prose(text: &str) -> String {
    let mut is_code = false;
    let outside = |line: &&str| {
        let is_fence = line.trim_start().starts_with("```");
        is_code ^= is_fence;
        !is_code && !is_fence
    };
    text.lines().filter(outside).collect::<Vec<_>>().join("\n")
}

/// The pieces of inline code.
fn code(text: &str) -> Vec<&str> {
    text.lines().flat_map(|line| line.split('`').skip(1).step_by(2)).collect()
}

/// `text` without marks of emphasis, marks of code and targets of links. Spaces between words are single.
fn plain(text: &str) -> String {
    let mut words = String::new();
    let mut rest = text;
    while let Some((before, after)) = rest.split_once("](") {
        words.push_str(before);
        rest = after.split_once(')').map_or("", |(_, after)| after);
    }
    let marks = (words + rest).replace(['[', ']', '`', '*'], "");
    marks.split_whitespace().collect::<Vec<_>>().join(" ")
}

/// The claims of the tables with this header, each with the cell that names its tests.
fn claims<'a>(text: &'a str, header: &str) -> Vec<(&'a str, &'a str)> {
    let mut is_table = false;
    let mut found = Vec::new();
    for line in text.lines() {
        is_table = line == header || (is_table && line.starts_with('|'));
        let cells = line.strip_prefix("| ").and_then(|line| line.strip_suffix(" |")?.split_once(" | "));
        if is_table && line != header {
            found.extend(cells);
        }
    }
    found
}

/// True for the name of a row of the containment table: `CPU-01`.
fn is_row(name: &str) -> bool {
    name.split_once('-').is_some_and(|(class, number)| {
        class.bytes().all(|b| b.is_ascii_uppercase()) && number.len() == 2 && number.bytes().all(|b| b.is_ascii_digit())
    })
}

/// True for the name of a test function.
fn is_function(name: &str) -> bool {
    name.contains('_') && name.bytes().all(|b| b.is_ascii_lowercase() || b.is_ascii_digit() || b == b'_')
}

/// The claims that the README does not contain, and the tests that do not exist. `sources` is the Rust code of tests
/// and host.
fn unproven(claims: &[(&str, &str)], readme: &str, sources: &str) -> Vec<String> {
    let readme = plain(readme);
    let mut found = Vec::new();
    for (claim, shown) in claims {
        if !readme.contains(&plain(claim)) {
            found.push(format!("the README does not contain \"{claim}\""));
        }
        let names = code(shown);
        if names.is_empty() {
            found.push(format!("no test is named for the claim \"{claim}\""));
        }
        for name in names {
            let is_missing = (is_row(name) && !sources.contains(&format!("\"{name}\"")))
                || (is_function(name) && !sources.contains(&format!("fn {name}(")));
            if is_missing {
                found.push(format!("no test is called `{name}`: \"{claim}\""));
            }
        }
    }
    found
}

/// The fragment of a link to a heading: `#two-words` for "Two words".
fn anchor(heading: &str) -> String {
    let kept = plain(heading).to_lowercase();
    kept.chars().filter(|c| c.is_alphanumeric() || " -_".contains(*c)).collect::<String>().replace(' ', "-")
}

/// The fragments of all headings of a page.
fn anchors(text: &str) -> BTreeSet<String> {
    prose(text)
        .lines()
        .filter(|line| line.starts_with('#'))
        .map(|line| anchor(line.trim_start_matches('#').trim()))
        .collect()
}

/// The targets of the links of a page.
fn links(text: &str) -> Vec<String> {
    let text = prose(text);
    let without_code: String = text.split('`').step_by(2).collect::<Vec<_>>().join("code");
    without_code
        .split("](")
        .skip(1)
        .filter_map(|rest| rest.split_once(')'))
        .map(|(target, _)| target.to_owned())
        .collect()
}

/// The links of a page without a target. `read` returns the text of a file by its path from the root, and "" for a
/// directory.
fn dead(path: &str, text: &str, read: impl Fn(&Path) -> Option<String>) -> Vec<String> {
    let mut found = Vec::new();
    for link in links(text) {
        let is_for_projects = LINKS_IN_PROJECTS.iter().any(|(page, other)| path.ends_with(page) && link == *other);
        if link.contains("://") || is_for_projects {
            continue;
        }
        let (file, name) = link.split_once('#').unwrap_or((&link, ""));
        let target = if file.is_empty() { path.into() } else { Path::new(path).parent().unwrap().join(file) };
        let exists = read(&target).is_some_and(|text| name.is_empty() || anchors(&text).contains(name));
        if !exists {
            found.push(format!("{path}: the link \"{link}\" has no target"));
        }
    }
    found
}

/// The verbs that follow `program` in the commands of a page: in inline code, and in blocks of the languages `console`
/// and `sh`.
fn typed(text: &str, program: &str) -> BTreeSet<String> {
    let mut lines: Vec<String> = code(&prose(text)).into_iter().map(str::to_owned).collect();
    let mut block = None;
    for line in text.lines() {
        match line.trim_start().strip_prefix("```") {
            Some(info) => block = block.is_none().then_some(info),
            None if block == Some("console") => lines.extend(line.strip_prefix("$ ").map(str::to_owned)),
            None if block == Some("sh") => lines.push(line.to_owned()),
            None => {}
        }
    }
    let mut verbs = BTreeSet::new();
    for line in lines {
        let line = line.split(" #").next().unwrap_or_default();
        for (at, _) in line.match_indices(program) {
            let before = &line[..at];
            let is_command =
                before.is_empty() || ["/", "-- ", "&& ", "| ", ": "].iter().any(|end| before.ends_with(end));
            let word = line[at + program.len()..].split(' ').next().unwrap_or_default();
            let is_verb = word.bytes().all(|b| b.is_ascii_lowercase()) && !word.is_empty();
            if is_command && is_verb {
                verbs.insert(word.to_owned());
            }
        }
    }
    verbs
}

/// The verbs of belljar, from the source of its command line.
fn verbs(source: &str) -> BTreeSet<String> {
    let (_, rest) = source.split_once("#[derive(Subcommand)]").unwrap();
    let (body, _) = rest.split_once("\n}").unwrap();
    let variant = |line: &str| {
        let name = line.strip_prefix("    ")?.strip_suffix([',', '{', '('])?.trim_end();
        name.bytes().all(|b| b.is_ascii_alphabetic()).then(|| name.to_lowercase())
    };
    body.lines().filter_map(variant).chain(["help".to_owned()]).collect()
}

/// The paths of a page that name no file. `exists` gets a path from the root.
fn missing<'a>(text: &'a str, folders: &[&str], exists: impl Fn(&Path) -> bool) -> Vec<&'a str> {
    let is_path = |word: &&str| {
        word.contains('/')
            && [".rs", ".toml", ".json", ".wit"].iter().any(|ending| word.ends_with(ending))
            && !word.contains(['*', '<', ' ', '~', '$'])
            && !EXAMPLES.iter().any(|example| word.contains(example))
    };
    let prose = code(text).into_iter().filter(is_path);
    prose.filter(|path| !folders.iter().any(|folder| exists(&Path::new(folder).join(path)))).collect()
}

fn read(path: &str) -> String {
    fs::read_to_string(root().join(path)).unwrap()
}

fn assert_none(violations: impl IntoIterator<Item = String>) {
    let all: Vec<_> = violations.into_iter().collect();
    assert!(all.is_empty(), "\n{}\n", all.join("\n"));
}

#[test]
fn each_claim_has_a_test() {
    let sources: String =
        ["tests", "host/src"].iter().flat_map(|folder| files(folder, ".rs")).map(|(_, text)| text).collect();
    let text = read(CLAIMS);
    let claims = claims(&text, HEADER);
    assert!(claims.len() > 30, "{CLAIMS} has {} claims", claims.len());
    assert_none(unproven(&claims, &read("README.md"), &sources));
    let (page, header) = COMBINATIONS;
    let text = read(page);
    let combinations = self::claims(&text, header);
    assert!(combinations.len() > 6, "{page} has {} combinations with a test", combinations.len());
    assert_none(unproven(&combinations, &text, &sources));
}

#[test]
fn each_link_has_a_target() {
    let target = |path: &Path| {
        let path = root().join(path);
        if path.is_dir() {
            Some(String::new())
        } else {
            fs::read_to_string(&path).ok().or_else(|| path.is_file().then(String::new))
        }
    };
    assert_none(files("", ".md").iter().flat_map(|(path, text)| dead(path, text, target)));
}

/// The pages that the index does not link to. `pages`: their paths below the folder of the index.
fn unlisted<'a>(index: &str, pages: &[&'a str]) -> Vec<&'a str> {
    let links = links(index);
    pages.iter().filter(|page| !links.iter().any(|link| link == *page)).copied().collect()
}

#[test]
fn each_page_is_in_the_index() {
    const INDEX: &str = "README.md";
    let pages = files("docs", ".md");
    let pages: Vec<&str> =
        pages.iter().filter_map(|(path, _)| path.strip_prefix("docs/")).filter(|path| *path != INDEX).collect();
    assert_none(
        unlisted(&read("docs/README.md"), &pages)
            .into_iter()
            .map(|page| format!("docs/README.md does not list {page}")),
    );
}

#[test]
fn commands_exist() {
    let (own, xtask) = (verbs(&read("host/src/cli/verb.rs")), read("xtask/src/main.rs"));
    assert!(own.contains("serve") && own.contains("new"), "{own:?}");
    assert_none(files("", ".md").iter().flat_map(|(path, text)| {
        let is_planned = |verb: &String| PLANNED.contains(&(path.as_str(), verb.as_str()));
        let unknown = typed(text, "belljar ").into_iter().filter(|verb| !own.contains(verb) && !is_planned(verb));
        let unknown = unknown.map(|verb| format!("{path}: there is no `belljar {verb}`"));
        let of_xtask = typed(text, "cargo xtask ").into_iter().filter(|verb| !xtask.contains(&format!("\"{verb}\"")));
        unknown.chain(of_xtask.map(|verb| format!("{path}: there is no `cargo xtask {verb}`"))).collect::<Vec<_>>()
    }));
}

/// The pages that a source names: `docs/.../NAME.md`.
fn pages(source: &str) -> BTreeSet<String> {
    let is_path = |c: char| c.is_ascii_alphanumeric() || "-_./".contains(c);
    let starts = |at: usize| !source[..at].ends_with(|c: char| is_path(c) && c != '/');
    let path = |at: usize| source[at..].split(|c| !is_path(c)).next().unwrap_or_default().trim_end_matches('.');
    let all = source.match_indices("docs/").filter(|(at, _)| starts(*at)).map(|(at, _)| path(at));
    all.filter(|path| path.ends_with(".md")).map(str::to_owned).collect()
}

#[test]
fn sources_name_pages_that_exist() {
    let sources = SOURCES.iter().flat_map(|folder| files(folder, ".rs"));
    // Skip this file, because its tests use paths that do not exist.
    assert_none(sources.filter(|(path, _)| !path.starts_with("tests/documents/")).flat_map(|(path, text)| {
        let missing = pages(&text).into_iter().filter(|page| !root().join(page).exists());
        missing.map(|page| format!("{path}: there is no page \"{page}\"")).collect::<Vec<_>>()
    }));
}

#[test]
fn file_paths_in_documents_exist() {
    assert_none(MAPS.iter().flat_map(|(page, folders)| {
        let text = read(page);
        let missing = missing(&text, folders, |path| root().join(path).exists());
        missing.into_iter().map(|path| format!("{page}: there is no file \"{path}\"")).collect::<Vec<_>>()
    }));
}

/// The environment variables of belljar in a source: names that begin with `BELLJAR_`.
fn variables(source: &str) -> BTreeSet<String> {
    const PREFIX: &str = "BELLJAR_";
    let name =
        |rest: &str| rest.split(|c: char| !c.is_ascii_uppercase() && c != '_').next().unwrap_or_default().to_owned();
    source
        .split(PREFIX)
        .skip(1)
        .map(name)
        .filter(|name| !name.is_empty())
        .map(|name| PREFIX.to_owned() + &name)
        .collect()
}

#[test]
fn variables_are_listed() {
    let page = read(VARIABLES);
    let sources = ["host/src", "xtask/src", "tests"].iter().flat_map(|folder| files(folder, ".rs"));
    let is_this_test = |path: &str| path.starts_with("tests/documents/");
    let all: BTreeSet<String> =
        sources.filter(|(path, _)| !is_this_test(path)).flat_map(|(_, text)| variables(&text)).collect();
    assert!(all.len() > 10, "{all:?}");
    let is_listed = |name: &String| name == UNSET || page.contains(&format!("`{name}`"));
    assert_none(all.into_iter().filter(|name| !is_listed(name)).map(|name| format!("{VARIABLES} lacks {name}")));
}

#[test]
fn the_readme_is_short() {
    let text = read("README.md");
    let (lines, words) = (text.lines().count(), text.split_whitespace().count());
    assert!(
        lines <= README.0 && words <= README.1,
        "the README has {lines} lines and {words} words; at most {README:?}"
    );
}

#[test]
fn planted_mistakes_are_found() {
    let page = format!(
        "{HEADER}\n|---|---|\n| It **runs** | `a_test`, `CPU-01`, `cargo xtask demo` |\n\n| claim | fact |\n| x | y |\n"
    );
    let claims = claims(&page, HEADER);
    assert_eq!(claims, [("It **runs**", "`a_test`, `CPU-01`, `cargo xtask demo`")]);
    let sources = "fn a_test() {} row(\"CPU-01\")";
    assert_eq!(unproven(&claims, "[It](a.md)\n`runs`.", sources), Vec::<String>::new());
    assert_eq!(unproven(&claims, "It walks.", sources).len(), 1);
    assert_eq!(unproven(&claims, "It runs.", "").len(), 2);
    assert_eq!(unproven(&[("It runs", "nothing")], "It runs.", sources).len(), 1);

    let text =
        "# A b: `c`\n[x](#a-b-c) [y](b.md#d) [z](https://x.example) `[k](none.md)`\n```text\n[k](none.md)\n```\n";
    let read = |path: &Path| match path.to_str().unwrap() {
        "docs/a.md" => Some(text.to_owned()),
        "docs/b.md" => Some("## D\n".to_owned()),
        _ => None,
    };
    assert_eq!(dead("docs/a.md", text, read), Vec::<String>::new());
    assert_eq!(dead("docs/a.md", "[x](c.md) [y](b.md#e) [z](#f)", read).len(), 3);

    let text = "`belljar serve --x`, `/bin/belljar list`, `belljar.toml`, `x belljar none`\n```console\n$ belljar read x   # belljar none\nbelljar: no\n```\n```text\nbelljar none\n```\n";
    assert_eq!(typed(text, "belljar ").into_iter().collect::<Vec<_>>(), ["list", "read", "serve"]);
    assert_eq!(
        verbs("#[derive(Subcommand)]\nenum Verb {\n    Serve {\n        #[x]\n    },\n    List,\n}\n")
            .into_iter()
            .collect::<Vec<_>>(),
        ["help", "list", "serve"]
    );

    assert_eq!(variables("X(\"BELLJAR_A_B\") BELLJAR_ belljar").into_iter().collect::<Vec<_>>(), ["BELLJAR_A_B"]);

    assert_eq!(unlisted("[x](a/b.md)", &["a/b.md", "a/c.md"]), ["a/c.md"]);

    let named = pages("`docs/a/b.md`, ../../docs/c.md. x-docs/d.md docs/{e}.md docs/f.svg");
    assert_eq!(named.into_iter().collect::<Vec<_>>(), ["docs/a/b.md", "docs/c.md"]);

    let text = "`a/b.rs`, `a/none.rs`, `a/<b>.rs`, `a/chime.rs`, `b.rs`";
    assert_eq!(missing(text, &["", "src"], |path| path == Path::new("src/a/b.rs")), ["a/none.rs"]);
}
