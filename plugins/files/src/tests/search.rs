//! Tests of the tool `search`.

use belljar_guest::{BlockBody, Context, Link, Tools as _};

use super::*;

/// The text and the links of a result.
fn search(files: &Files, arguments: &str) -> Result<(String, Vec<Link>)> {
    let result = Files::tools().call(files, "search", arguments, &Context::default())?.done().unwrap();
    let mut blocks = result.content.into_iter().map(|block| block.body);
    let Some(BlockBody::Text(text)) = blocks.next() else { panic!("no text") };
    let links = blocks.map(|block| match block {
        BlockBody::Link(link) => link,
        other => panic!("{other:?}"),
    });
    Ok((text, links.collect()))
}

fn fixture() -> Fixture {
    let fixture = Fixture::new("*.tmp");
    fixture.write("notes/a b.md", "# Bells\n\nA BELL rings.\nNo more.\nA jar has no bell, but glass.\nbell\n");
    fixture.write("notes/deep/jar.txt", "Glass breaks.\n");
    fixture.write("picture.png", b"\x89PNG\r\n\x1a\n\0\0\0\rbell");
    fixture.write("hidden.tmp", "bell");
    fixture.write(".env", "bell");
    fixture
}

#[test]
fn files_have_all_words_in_path_or_text() {
    let fixture = fixture();
    let (text, links) = search(&fixture.files, r#"{"words":"bell"}"#).unwrap();
    assert_eq!(text, "notes/a b.md\n  1: # Bells\n  3: A BELL rings.\n  5: A jar has no bell, but glass.\n");
    let expected = Link::new("notes/a%20b.md").name("a b.md").mime_type("text/markdown").size(67);
    assert_eq!(links, [expected]);
    // One word is in the path, the other one in the text.
    let (text, _) = search(&fixture.files, r#"{"words":"Glass JAR"}"#).unwrap();
    assert_eq!(text, "notes/a b.md\n  5: A jar has no bell, but glass.\nnotes/deep/jar.txt\n  1: Glass breaks.\n");
    // A binary file is found by its name only.
    assert_eq!(search(&fixture.files, r#"{"words":"picture"}"#).unwrap().0, "picture.png\n");
    assert_eq!(search(&fixture.files, r#"{"words":"picture bell"}"#).unwrap().0, "no files\n");
}

#[test]
fn paths_and_limit_narrow_the_search() {
    let fixture = fixture();
    let found = |arguments: &str| {
        let (_, links) = search(&fixture.files, arguments).unwrap();
        links.into_iter().map(|link| link.name).collect::<Vec<_>>()
    };
    assert_eq!(found(r#"{"words":"glass","paths":"*.txt"}"#), ["jar.txt"]);
    assert_eq!(found(r#"{"words":"glass","paths":"/notes/*"}"#), ["a b.md"]);
    assert_eq!(found(r#"{"words":"glass","paths":"notes/**"}"#), ["a b.md", "jar.txt"]);
    let (text, links) = search(&fixture.files, r#"{"words":"glass","limit":1}"#).unwrap();
    assert_eq!(links.len(), 1);
    assert!(text.ends_with("[files: there may be more files; narrow it with \"paths\" or more words]\n"), "{text}");
    for (arguments, expected) in [
        (r#"{"words":" "}"#, "\"words\" is empty: expected"),
        (r#"{"words":"a","limit":0}"#, "from 1 to 100"),
        (r#"{"words":"a","limit":101}"#, "from 1 to 100"),
    ] {
        let failed = search(&fixture.files, arguments);
        assert!(matches!(&failed, Err(Error::Invalid(why)) if why.contains(expected)), "{arguments}: {failed:?}");
    }
}

#[test]
fn long_lines_are_cut_around_the_word() {
    let fixture = Fixture::new("");
    fixture.write("long.txt", format!("{}needle{}", "ä ".repeat(400), " ö".repeat(400)));
    let (text, _) = search(&fixture.files, r#"{"words":"NEEDLE"}"#).unwrap();
    let line = text.lines().nth(1).unwrap();
    assert!(line.starts_with("  1: ...") && line.contains("needle") && line.ends_with("..."), "{line}");
    assert!(line.chars().count() < 220, "{line}");
}

#[test]
fn large_files_are_searched_in_part() {
    let fixture = Fixture::new("");
    fixture.write("large.txt", format!("first\n{}last\n", "x\n".repeat(600_000)));
    assert_eq!(search(&fixture.files, r#"{"words":"first"}"#).unwrap().1.len(), 1);
    assert_eq!(search(&fixture.files, r#"{"words":"last"}"#).unwrap().1.len(), 0);
}

#[test]
fn case_is_ignored_in_every_script() {
    let fixture = Fixture::new("");
    fixture.write("Größe/a.txt", "ÄPFEL und Birnen\n");
    for words in ["äpfel", "ÄPFEL", "BIRNEN", "größe", "GRÖSSE äpfel", "UND Größe"] {
        let (_, links) = search(&fixture.files, &format!("{{\"words\":\"{words}\"}}")).unwrap();
        // The capital letter of "ß" is "ẞ", not "SS".
        assert_eq!(links.len(), usize::from(!words.contains("SS")), "{words}");
    }
}

#[test]
fn the_definition_is_short() {
    let tools = Files::tools().list();
    let [tool] = tools.as_slice() else { panic!("{tools:?}") };
    let length = tool.description.len() + tool.input.as_ref().map_or(0, String::len);
    // About 120 tokens.
    assert!(length < 480, "{length}: {tool:?}");
}
