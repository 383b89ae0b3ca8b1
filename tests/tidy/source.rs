//! Rules about single Rust files: the first line, the length, and unfinished code. The other rules use [`tokens`],
//! because a rule about tokens cannot mistake a comment or a string for code.

use proc_macro2::{TokenStream, TokenTree};

use crate::{assert_none, files};

/// The most lines of a file. Files with only tests may be longer.
const LONGEST: usize = 500;

/// The tokens of a file.
pub(crate) fn tokens(path: &str, text: &str) -> TokenStream {
    // A file with a byte order mark or a `#!` line fails here. No file of the repository should have one.
    text.parse().unwrap_or_else(|error| panic!("{path} is not Rust: {error}"))
}

/// True if the file holds only tests.
pub(crate) fn is_test(path: &str) -> bool {
    path.starts_with("tests/") || path.contains("/tests/") || path.ends_with("/tests.rs")
}

fn header(path: &str, text: &str) -> Option<String> {
    // In a template, a file that only some projects have is one block. Its first line never gets into a project.
    let text = match text.split_once('\n') {
        Some((first, rest)) if first.starts_with("// belljar:if ") => rest,
        _ => text,
    };
    (!text.starts_with("//! "))
        .then(|| format!("{path}: the first line must begin with `//! ` and say what the file owns"))
}

fn length(path: &str, text: &str) -> Option<String> {
    let lines = text.lines().count();
    (lines > LONGEST && !is_test(path))
        .then(|| format!("{path}: has {lines} lines, at most {LONGEST} are allowed: split the file by its subjects"))
}

fn unfinished(path: &str, text: &str) -> Vec<String> {
    let mut found = Vec::new();
    unfinished_in(tokens(path, text), &mut |line, mark| found.push(format!("{path}:{line}: `{mark}`")));
    found
}

fn unfinished_in(tokens: TokenStream, report: &mut impl FnMut(usize, &str)) {
    let trees: Vec<_> = tokens.into_iter().collect();
    for (index, tree) in trees.iter().enumerate() {
        let line = tree.span().start().line;
        match (tree, trees.get(index + 1)) {
            (TokenTree::Ident(name), Some(TokenTree::Punct(mark))) if mark.as_char() == '!' => {
                let name = name.to_string();
                if name == "todo" || name == "unimplemented" {
                    report(line, &format!("{name}!"));
                }
            }
            (TokenTree::Punct(mark), Some(TokenTree::Group(attribute))) if mark.as_char() == '#' => {
                let text = attribute.stream().to_string();
                let applies = |word: &str| text.split(|c: char| !c.is_alphanumeric()).any(|other| other == word);
                if text.starts_with("ignore") || (text.starts_with("cfg_attr") && applies("ignore")) {
                    report(line, "#[ignore]");
                }
            }
            _ => {}
        }
        if let TokenTree::Group(group) = tree {
            unfinished_in(group.stream(), report);
        }
    }
}

#[test]
fn every_file_begins_with_a_module_comment() {
    assert_none(files(".rs").iter().filter_map(|file| header(&file.path, &file.text)));
}

#[test]
fn no_file_is_too_long() {
    assert_none(files(".rs").iter().filter_map(|file| length(&file.path, &file.text)));
}

#[test]
fn no_code_is_unfinished_and_no_test_is_ignored() {
    assert_none(files(".rs").iter().flat_map(|file| unfinished(&file.path, &file.text)));
}

#[test]
fn a_missing_header_is_found() {
    assert!(header("a.rs", "//! what\n").is_none());
    assert!(header("a.rs", "// what\n").is_some());
    assert!(header("a.rs", "").is_some());
    assert!(header("a.rs", "// belljar:if tools\n//! what\n").is_none());
    assert!(header("a.rs", "// belljar:if tools\nfn what() {}\n").is_some());
}

#[test]
fn a_long_file_is_found_outside_tests() {
    let long = "//! long\n".repeat(LONGEST + 1);
    assert!(length("host/src/a.rs", &long).is_some());
    assert!(length("host/src/a.rs", &long[9..]).is_none());
    assert!(length("tests/integration/a.rs", &long).is_none());
    assert!(length("host/src/a/tests.rs", &long).is_none());
}

#[test]
fn unfinished_code_is_found_except_in_comments_and_strings() {
    assert!(
        unfinished(
            "a.rs",
            r#"/// todo!() later
        fn a(ignore: u8) -> &'static str { let todo = 1; "unimplemented!()" }"#
        )
        .is_empty()
    );
    for text in [
        "fn a() { todo!() }",
        "fn a() { if x { std::unimplemented!(\"b\") } }",
        "#[test] #[ignore] fn a() {}",
        "mod a { #[ignore = \"slow\"] fn b() {} }",
        "#[cfg_attr(unix, ignore)] fn a() {}",
    ] {
        assert_eq!(unfinished("a.rs", text).len(), 1, "{text}");
    }
}
