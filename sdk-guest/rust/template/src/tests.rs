//! Unit tests of the provider: plain Rust, without belljar, on a temporary directory.

use belljar_guest::Body;
// belljar:if any
use belljar_guest::Context;
// belljar:end
// belljar:if prompts
use belljar_guest::{Argument, Arguments, Message, PromptResult, Prompts as _};
// belljar:end
// belljar:if tools
use belljar_guest::{ToolResult, Tools as _};
// belljar:end

use super::*;

/// A provider that was granted a directory with these files.
fn with_files(files: &[(&str, &[u8])]) -> (tempfile::TempDir, MyProvider) {
    let dir = tempfile::tempdir().unwrap();
    files.iter().for_each(|(name, bytes)| fs::write(dir.path().join(name), bytes).unwrap());
    let provider = MyProvider { data: dir.path().into() };
    (dir, provider)
}

fn without_files() -> MyProvider {
    MyProvider { data: "/nonexistent".into() }
}

fn text(provider: &MyProvider, reference: &str) -> String {
    match &provider.read(reference).unwrap().contents[0].body {
        Body::Text(text) => text.clone(),
        Body::Blob(_) => panic!("{reference} is not text"),
    }
}

/// Every page, from the first on.
fn list(provider: &MyProvider) -> Vec<Vec<String>> {
    let (mut pages, mut cursor) = (Vec::new(), None);
    loop {
        let page = provider.list_resources(cursor.as_deref()).unwrap();
        pages.push(page.resources.into_iter().map(|one| one.reference).collect());
        cursor = page.next_cursor;
        if cursor.is_none() {
            return pages;
        }
    }
}

#[test]
fn everything_is_listed_once_in_pages_of_ten() {
    let pages = list(&without_files());
    assert_eq!(pages.iter().map(Vec::len).collect::<Vec<_>>(), [10, 4]);
    let all = pages.concat();
    assert_eq!((all[0].as_str(), all[1].as_str(), all[13].as_str()), ("hello.txt", "dot.png", "months/12"));
    let (_dir, provider) = with_files(&[("b.md", b""), ("a b.txt", b"")]);
    assert_eq!(list(&provider).concat()[14..], ["files/a%20b.txt", "files/b.md"]);
    for cursor in ["x", "", "-1", "99"] {
        let why = Error::invalid(format_args!("the cursor \"{cursor}\" is not one of this provider's"));
        assert_eq!(provider.list_resources(Some(cursor)), Err(why));
    }
}

#[test]
fn listed_resources_can_be_read() {
    let (_dir, provider) = with_files(&[("a b.txt", b"hi")]);
    for reference in list(&provider).concat() {
        assert!(provider.read(&reference).is_ok(), "{reference}");
    }
}

#[test]
fn months_are_read() {
    let provider = without_files();
    assert_eq!(text(&provider, "months/2"), r#"{"month":2,"name":"February","days":28}"#);
    assert_eq!(provider.read("months/13"), Err(Error::NotFound));
    assert_eq!(provider.read("months/0"), Err(Error::NotFound));
    assert_eq!(provider.read("months/x"), Err(Error::invalid("a month is a number from 1 to 12, not \"x\"")));
}

#[test]
fn utf_8_files_are_text_and_others_are_blobs() {
    let (_dir, provider) = with_files(&[("a.md", b"# A"), ("c.bin", b"\xff\0")]);
    assert_eq!(text(&provider, "files/a.md"), "# A");
    let blob = provider.read("files/c.bin").unwrap().contents.remove(0);
    assert_eq!(blob, Contents::blob("files/c.bin", *b"\xff\0").mime_type("application/octet-stream"));
    let all = provider.read("files/").unwrap().contents;
    assert_eq!(all.iter().map(|one| one.reference.as_str()).collect::<Vec<_>>(), ["files/a.md", "files/c.bin"]);
    for absent in ["files/b.md", "files/..%2Fa.md", "nothing", ""] {
        assert_eq!(provider.read(absent), Err(Error::NotFound), "{absent}");
    }
    let denied = Error::denied("this needs the directory \"/data\", which was not granted");
    for reference in ["files/a.md", "files/"] {
        assert_eq!(without_files().read(reference), Err(denied.clone()));
    }
    let (_dir, empty) = with_files(&[]);
    assert_eq!(empty.read("files/"), Err(Error::NotFound));
}
// belljar:if tools

#[test]
fn the_tool_counts_days() {
    let call = |arguments: &str| {
        let outcome = MyProvider::tools().call(&without_files(), "month_days", arguments, &Context::default());
        outcome.map(|outcome| outcome.done().unwrap())
    };
    for (arguments, text, structured) in [
        (r#"{"month":2,"year":2024}"#, "February 2024 has 29 days.", r#"{"month":"February","days":29}"#),
        (r#"{"month":2,"year":1900}"#, "February 1900 has 28 days.", r#"{"month":"February","days":28}"#),
        (r#"{"month":2}"#, "February has 28 days.", r#"{"month":"February","days":28}"#),
        (r#"{"month":12,"year":2000}"#, "December 2000 has 31 days.", r#"{"month":"December","days":31}"#),
    ] {
        assert_eq!(call(arguments), Ok(ToolResult::text(text).structured(structured)), "{arguments}");
    }
    assert_eq!(call(r#"{"month":13}"#), Err(Error::invalid("a month is a number from 1 to 12, not \"13\"")));
    assert!(call("{}").is_err());
}
// belljar:end
// belljar:if prompts

#[test]
fn the_prompt_plans_a_month() {
    let get = |arguments: Arguments| {
        let outcome = MyProvider::prompts().get(&without_files(), "plan_month", &arguments, &Context::default());
        outcome.map(|outcome| outcome.done().unwrap())
    };
    let plan = |text: &str| Ok(PromptResult::from(Message::user(text)).description("A plan for February"));
    let with_goal = get(Arguments::from([("month", "February"), ("goal", "rest")]));
    assert_eq!(with_goal, plan("Make a plan for February, which has 28 days. My goal: rest."));
    assert_eq!(get(Arguments::from([("month", "February")])), plan("Make a plan for February, which has 28 days."));
    let unknown = Error::invalid("a month is one of January to December, not \"Febuary\"");
    assert_eq!(get(Arguments::from([("month", "Febuary")])), Err(unknown));
}

#[test]
fn months_are_suggested() {
    let suggest = |name: &str, value: &str| {
        without_files().complete_prompt("plan_month", &Argument::new(name, value), &[]).unwrap().values
    };
    assert_eq!(suggest("month", "Ma"), ["March", "May"]);
    assert_eq!(suggest("month", "").len(), 12);
    assert_eq!(suggest("goal", "r"), [""; 0]);
}
// belljar:end
