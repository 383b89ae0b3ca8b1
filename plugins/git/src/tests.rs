//! Tests of the tools and the prompt over repositories that Git makes. `tests/integration/providers/git.rs` tests the
//! resources.

use std::path::Path;
use std::process::Command;

use belljar_guest::{Arguments, BlockBody, Body, Context, Prompts as _, Tools as _};

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
        Git::over(self.dir.path().to_path_buf()).unwrap()
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
