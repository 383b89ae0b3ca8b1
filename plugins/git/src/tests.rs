//! Tests of the tools and the prompt over repositories that Git makes. `tests/integration/providers/git.rs` tests the
//! resources.

use std::path::Path;
use std::process::Command;

use belljar_guest::{Arguments, BlockBody, Body, Context, Prompts as _, Tools as _};
use serde_json::json;

use crate::log::Filter;

use super::*;

/// A repository in a temporary directory.
struct Fixture {
    dir: tempfile::TempDir,
}

impl Fixture {
    /// Three commits on `main`, a second apart: two change `a.txt`, one adds `sub/b.txt`. The tag `old` names the first.
    fn new() -> Fixture {
        let fixture = Fixture { dir: tempfile::tempdir().unwrap() };
        fixture.git(1, &["init", "--quiet", "--initial-branch=main"]);
        fixture.commit(1, "a.txt", "one\ntwo\n", "Begin\n\nWith two lines.");
        fixture.git(1, &["tag", "old"]);
        fixture.commit(2, "sub/b.txt", "b\n", "Add b");
        fixture.commit(3, "a.txt", "one\n2\n", "Change a");
        fixture
    }

    fn git(&self, seconds: u32, arguments: &[&str]) {
        let time = format!("{} +0000", 1_785_000_000 + seconds);
        let mut git = Command::new("git");
        git.arg("-C").arg(self.dir.path()).args(["-c", "user.name=A. Uthor", "-c", "user.email=a@example.com"]);
        git.args(["-c", "commit.gpgsign=false"]).args(arguments);
        let status = git.env("GIT_AUTHOR_DATE", &time).env("GIT_COMMITTER_DATE", &time).status().unwrap();
        assert!(status.success(), "{arguments:?}");
    }

    fn commit(&self, seconds: u32, path: &str, contents: &str, message: &str) {
        let place = self.dir.path().join(path);
        std::fs::create_dir_all(place.parent().unwrap_or(Path::new("/"))).unwrap();
        std::fs::write(place, contents).unwrap();
        self.git(seconds, &["add", "--all"]);
        self.git(seconds, &["commit", "--quiet", "--message", message]);
    }

    fn open(&self) -> Git {
        Git::over(&[self.dir.path().to_path_buf()], None).unwrap()
    }

    fn call(&self, name: &str, arguments: &Json) -> Result<String> {
        let result =
            Git::tools().call(&self.open(), name, &arguments.to_string(), &Context::default())?.done().unwrap();
        let [block] = result.content.as_slice() else { panic!("{result:?}") };
        match &block.body {
            BlockBody::Text(text) => Ok(text.clone()),
            other => panic!("{other:?}"),
        }
    }

    fn invalid(&self, name: &str, arguments: &Json) -> String {
        match self.call(name, arguments) {
            Err(Error::Invalid(why)) => why,
            other => panic!("{name} {arguments}: {other:?}"),
        }
    }

    /// The subjects of a log.
    fn subjects(&self, arguments: &Json) -> Vec<String> {
        let text = self.call("log", arguments).unwrap();
        text.lines().map(|line| line.split_once("A. Uthor: ").map_or(line, |(_, rest)| rest).to_owned()).collect()
    }
}

#[test]
fn a_log_is_selected_by_revision_path_text_and_limit() {
    let fixture = Fixture::new();
    assert_eq!(fixture.subjects(&json!({})), ["Change a", "Add b", "Begin"]);
    assert_eq!(fixture.subjects(&json!({ "rev": "HEAD~1" })), ["Add b", "Begin"]);
    assert_eq!(fixture.subjects(&json!({ "path": "a.txt" })), ["Change a", "Begin"]);
    assert_eq!(fixture.subjects(&json!({ "path": "/sub/" })), ["Add b"]);
    // The text may be below the subject, and case does not matter.
    assert_eq!(fixture.subjects(&json!({ "text": "TWO lines" })), ["Begin"]);
    assert_eq!(fixture.subjects(&json!({ "text": "nothing like it" })), ["no commits"]);
    assert_eq!(fixture.subjects(&json!({ "limit": 1 })), ["Change a", "[git: there are more than these 1]"]);
    let line = fixture.call("log", &json!({ "rev": "old" })).unwrap();
    assert!(line.ends_with(" 2026-07-25T17:20:01+00:00 A. Uthor: Begin\n") && line.find(' ') == Some(12), "{line}");
    let why = fixture.invalid("log", &json!({ "rev": "none" }));
    assert!(why.contains("\"rev\" is \"none\": expected a branch"), "{why}");
    assert!(fixture.invalid("log", &json!({ "limit": 0 })).contains("from 1 to 1000"));
}

#[test]
fn a_diff_has_all_changes_or_those_of_a_path() {
    let fixture = Fixture::new();
    let all = fixture.call("diff", &json!({ "from": "old" })).unwrap();
    assert!(all.starts_with("2 files changed\nM a.txt\nA sub/b.txt\n"), "{all}");
    assert!(all.contains("\n-two\n+2\n") && all.contains("+++ b/sub/b.txt\n@@ -0,0 +1 @@\n+b\n"), "{all}");
    for path in ["sub", "sub/b.txt"] {
        let one = fixture.call("diff", &json!({ "from": "old", "path": path })).unwrap();
        assert!(one.starts_with("1 file changed\nA sub/b.txt\n") && !one.contains("a.txt"), "{one}");
    }
    let back = fixture.call("diff", &json!({ "from": "HEAD", "to": "old", "path": "a.txt" })).unwrap();
    assert!(back.contains("\n-2\n+two\n"), "{back}");
    assert_eq!(fixture.call("diff", &json!({ "from": "old", "to": "main~2" })).unwrap(), "0 files changed\n");
    let why = fixture.invalid("diff", &json!({ "from": "old", "path": "none" }));
    assert!(why.contains("\"path\" is \"none\": expected a file or a directory"), "{why}");
    assert!(fixture.invalid("diff", &json!({ "from": "old", "to": "a..b" })).contains("a..b"));
}

#[test]
fn a_long_diff_is_cut_with_a_note() {
    let fixture = Fixture::new();
    let long: String = (0..30_000).map(|n| format!("line {n}\n")).collect();
    fixture.commit(4, "long.txt", &long, "Add a long file");
    let text = fixture.call("diff", &json!({ "from": "old" })).unwrap();
    assert!(text.contains("A long.txt") && text.contains("the diffs of 1 of these files are left out"), "{text}");
    assert!(text.len() < 100 * 1024 && text.contains("\"path\" gives those of one file"), "{}", text.len());
}

#[test]
fn a_review_has_the_commit_or_a_link_to_it() {
    let fixture = Fixture::new();
    let review = |arguments: &Arguments| {
        let result = Git::prompts().get(&fixture.open(), "review", arguments, &Context::default())?;
        Ok(result.done().unwrap().messages.into_iter().map(|message| message.block.body).collect::<Vec<_>>())
    };
    let head = review(&Arguments::default()).unwrap();
    let [BlockBody::Text(_), BlockBody::Embedded(contents)] = head.as_slice() else { panic!("{head:?}") };
    let Body::Text(text) = &contents.body else { panic!("{contents:?}") };
    assert!(text.contains("    Change a\n") && text.contains("\n-two\n+2\n"), "{text}");
    assert_eq!(contents.reference.len(), "commits/".len() + 40);
    let unknown = review(&Arguments::from([("revision", "none")]));
    assert!(matches!(&unknown, Err(Error::Invalid(why)) if why.contains("\"revision\" is \"none\"")), "{unknown:?}");
    let long: String = (0..30_000).map(|n| format!("line {n}\n")).collect();
    fixture.commit(4, "long.txt", &long, "Add a long file");
    let long = review(&Arguments::from([("revision", "main")])).unwrap();
    let [_, BlockBody::Link(link)] = long.as_slice() else { panic!("{long:?}") };
    assert!(link.reference.starts_with("commits/"), "{link:?}");
}

#[test]
fn the_newest_names_are_suggested_first() {
    let fixture = Fixture::new();
    fixture.git(5, &["branch", "another", "old"]);
    let complete = |value: &str| {
        let argument = Argument::new("revision", value);
        fixture.open().complete_prompt("review", &argument, &[]).unwrap().values
    };
    assert_eq!(complete(""), ["HEAD", "main", "another", "old"]);
    assert_eq!(complete("O"), ["old"]);
}

#[test]
fn the_definitions_are_short() {
    for tool in Git::tools().list() {
        let length = tool.description.len() + tool.input.as_ref().map_or(0, String::len);
        // About 150 tokens.
        assert!(length < 600, "{length}: {tool:?}");
    }
}

/// The text of a part of a resource, with its extent.
fn part(git: &Git, reference: &str, range: Option<Range>, most: u64) -> (String, Option<belljar_guest::Extent>) {
    let part = git.read_part(reference, range, most).unwrap();
    match part.contents.into_iter().next().unwrap().body {
        Body::Text(text) => (text, part.extent),
        Body::Blob(bytes) => panic!("{} bytes", bytes.len()),
    }
}

#[test]
fn a_search_without_budget_gives_each_page_a_way_on() {
    let fixture = Fixture::new();
    for n in 0..30 {
        fixture.commit(10 + n, "a.txt", &format!("{n}\n"), &format!("Again {n}"));
    }
    let git = fixture.open();
    let filter = Filter { path: Some(b"sub/b.txt".to_vec()), ..Filter::default() };
    let (mut from, mut found, mut pages) = (vec![git.commit("HEAD").unwrap()], Vec::new(), 0);
    while !from.is_empty() {
        // Each page has its own instance, and budget for one commit only.
        let page = log::page(&fixture.open().repository, &from, &filter, 10, &Budget::of_work(1)).unwrap();
        assert!(page.next.is_empty() || page.unfinished);
        found.extend(page.commits);
        from = page.next;
        pages += 1;
    }
    assert_eq!((found.len(), found[0]["subject"].as_str()), (1, Some("Add b")));
    assert!(pages > 30, "{pages}");
    // Blame names the commit at which it stopped.
    let at = (git.commit("HEAD").unwrap(), &b"sub/b.txt"[..]);
    let (text, _) = blame::text(&git.repository, at, None, &Budget::of_work(1)).unwrap();
    let next = text.split_once("continues with ").unwrap().1.trim_end_matches("]\n");
    let (reference, lines) = next.split_once('?').unwrap();
    assert_eq!((text.starts_with('>'), lines), (true, "lines=1-1"));
    let (text, extent) = part(&git, reference, Some(Range::lines(0, 1)), 10_000);
    let add = git.commit("HEAD~31").unwrap().to_hex_with_len(12).to_string();
    assert!(text.starts_with(&add) && extent.is_some_and(|extent| extent.total == Some(1)), "{text}");
}

#[test]
fn a_large_file_is_read_in_parts() {
    let fixture = Fixture::new();
    let line = |n: u32| format!("line {n} of a lärge file\n");
    let whole: String = (0..700_000).map(line).collect();
    fixture.commit(10, "large.txt", &whole, "Add a large file");
    let changed = whole.replacen("line 350000 ", "line changed ", 1);
    fixture.commit(11, "large.txt", &changed, "Change it");
    for packed in [false, true] {
        if packed {
            fixture.git(12, &["repack", "-adfq", "--depth=10"]);
        }
        let git = fixture.open();
        for (revision, whole) in [("HEAD~1", &whole), ("HEAD", &changed)] {
            let reference = format!("tree/{revision}/large.txt");
            let (text, extent) = part(&git, &reference, None, 1_000_000);
            let extent = extent.unwrap();
            assert!(whole.starts_with(&text) && text.ends_with('\n') && text.len() > 999_900);
            assert_eq!((extent.end, extent.total, extent.more), (text.len() as u64, Some(whole.len() as u64), true));
            for start in [0, 5, 18, 19, 12_345_678, whole.len() - 30] {
                let (text, extent) = part(&git, &reference, Some(Range::bytes(start as u64, start as u64 + 40)), 1_000);
                let at = usize::try_from(extent.unwrap().start).unwrap();
                assert_eq!(whole.get(at..at + text.len()), Some(text.as_str()), "{revision} {start}");
                assert!(start - at < 2 && text.len() > 28, "{revision} {start} {at}");
            }
            let (text, _) = part(&git, &reference, Some(Range::last_bytes(10)), 1_000);
            assert_eq!(text, "ärge file\n");
            match git.read_part(&reference, Some(Range::lines(600_000, 600_003)), 1_000) {
                Ok(part) => {
                    let Body::Text(text) = &part.contents[0].body else { panic!("{part:?}") };
                    assert_eq!(text, &(600_000..600_003).map(line).collect::<String>());
                    assert_eq!(
                        part.extent.map(|extent| (extent.start, extent.end, extent.more)),
                        Some((600_000, 600_003, true))
                    );
                }
                // One of two versions is a delta.
                Err(error) => assert!(packed && error.to_string().contains("?bytes="), "{error}"),
            }
        }
    }
}

#[test]
fn a_directory_is_read_and_listed_by_pages() {
    let fixture = Fixture::new();
    for n in 0..25 {
        std::fs::create_dir_all(fixture.dir.path().join("many")).unwrap();
        std::fs::write(fixture.dir.path().join(format!("many/{n:02}")), "x").unwrap();
    }
    fixture.commit(10, "many/odd\u{1}name", "odd\n", "Add many");
    let git = fixture.open();
    let (mut next, mut names) = (Some("tree/HEAD/many?limit=7".to_owned()), Vec::new());
    while let Some(reference) = next {
        let page: Json = serde_json::from_str(&part(&git, &reference, None, 1 << 20).0).unwrap();
        names
            .extend(page["entries"].as_array().unwrap().iter().map(|entry| entry["name"].as_str().unwrap().to_owned()));
        next = page["next"].as_str().map(str::to_owned);
    }
    assert_eq!((names.len(), names.last().map(String::as_str)), (26, Some("\"odd\\001name\"")));
    let below = |reference: &str| {
        let page = git.list_below(reference, None).unwrap();
        page.resources.into_iter().map(|resource| resource.reference).collect::<Vec<_>>()
    };
    assert_eq!(below(""), ["", "commits/HEAD", "log", "refs", "tree/"]);
    assert_eq!(below("tree/"), ["tree/HEAD/", "tree/main/", "tree/old/"]);
    assert_eq!(below("tree/old/"), ["tree/old/a.txt"]);
    assert_eq!(below("tree/HEAD/"), ["tree/HEAD/a.txt", "tree/HEAD/many/", "tree/HEAD/sub/"]);
    let odd = below("tree/HEAD/many/").pop().unwrap();
    assert_eq!(part(&git, &odd, None, 1_000).0, "odd\n");
    assert_eq!(git.list_below("tree/HEAD/a.txt/", None), Err(Error::NotFound));
    let unknown = git.read_part("tree/HEAD/many?after=none", None, 1_000).unwrap_err();
    assert!(unknown.to_string().contains("\"none\""), "{unknown}");
}

#[test]
fn renamed_files_are_found_by_contents() {
    let fixture = Fixture::new();
    let text: String = (0..40).map(|n| format!("a line with the number {n}\n")).collect();
    fixture.commit(10, "old name.txt", &text, "Add");
    fixture.git(11, &["mv", "old name.txt", "sub/new.txt"]);
    fixture.commit(11, "sub/new.txt", &text.replace("number 7\n", "number seven\n"), "Rename");
    let git = fixture.open();
    let shown = part(&git, "diff/HEAD~1..HEAD", None, 1 << 20).0;
    assert!(shown.contains("R old name.txt -> sub/new.txt (97%)\n"), "{shown}");
    assert!(shown.contains("rename from old name.txt\nrename to sub/new.txt\n"), "{shown}");
    let apart = part(&git, "diff/HEAD~1..HEAD?renames=no", None, 1 << 20).0;
    assert!(apart.contains("D old name.txt\nA sub/new.txt\n"), "{apart}");
    let blamed = part(&git, "blame/HEAD/sub/new.txt", Some(Range::lines(6, 9)), 1 << 20).0;
    let commits: Vec<&str> = blamed.lines().map(|line| &line[..12]).collect();
    let id = |revision: &str| git.commit(revision).unwrap().to_hex_with_len(12).to_string();
    assert_eq!(commits, [id("HEAD~1"), id("HEAD"), id("HEAD~1")]);
}
