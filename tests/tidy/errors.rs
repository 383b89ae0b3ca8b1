//! Checks that no public signature of the host has `String` as its error type, except in the module `cli`. A caller
//! cannot match on a `String`. Methods of traits and type aliases always count as public.

use std::collections::BTreeSet;

use proc_macro2::{Delimiter, TokenStream, TokenTree};

use crate::{assert_none, files, names, ranks, source};

/// Modules in which public signatures still have `String` errors. The test does not report them.
const EXCEPTIONS: [&str; 0] = [];

/// The lines of all public signatures of a file that have a `String` error.
fn lines(path: &str, text: &str) -> BTreeSet<usize> {
    let mut found = BTreeSet::new();
    if !source::is_test(path) {
        walk(source::tokens(path, text), false, &mut found);
    }
    found
}

/// Examines the items in `tokens`, and recursively in all braces, also of macros. With `in_trait`, every function
/// counts as public.
fn walk(tokens: TokenStream, in_trait: bool, found: &mut BTreeSet<usize>) {
    let trees: Vec<TokenTree> = tokens.into_iter().collect();
    let mut at = 0;
    let mut next_is_trait = false;
    while let Some(tree) = trees.get(at) {
        if let Some((name, body)) = names::inline_module(&trees[at..]) {
            if name != "tests" {
                walk(body, false, found);
            }
            at += 3;
            continue;
        }
        match tree {
            TokenTree::Ident(word) => {
                let begins = match word.to_string().as_str() {
                    "trait" => {
                        next_is_trait = true;
                        false
                    }
                    "pub" | "type" => true,
                    "fn" => in_trait,
                    _ => false,
                };
                let signature = signature(&trees[at..]);
                if begins && (has_string_error(signature) || declares_string_error(signature)) {
                    found.insert(word.span().start().line);
                }
            }
            TokenTree::Group(group) => {
                let is_body = group.delimiter() == Delimiter::Brace;
                walk(group.stream(), is_body && next_is_trait, found);
                next_is_trait &= !is_body;
            }
            _ => {}
        }
        at += 1;
    }
}

/// The tokens of a signature: the tokens before the body, the semicolon, or the comma after a field.
fn signature(trees: &[TokenTree]) -> &[TokenTree] {
    let mut depth = 0_usize;
    for (at, tree) in trees.iter().enumerate() {
        match tree {
            TokenTree::Group(group) if group.delimiter() == Delimiter::Brace => return &trees[..at],
            TokenTree::Punct(mark) => match mark.as_char() {
                ';' => return &trees[..at],
                ',' if depth == 0 => return &trees[..at],
                '<' => depth += 1,
                '>' if !is_arrow(trees, at) => depth = depth.saturating_sub(1),
                _ => {}
            },
            _ => {}
        }
    }
    trees
}

/// True if the `>` at this index ends `->` or `=>`.
fn is_arrow(trees: &[TokenTree], at: usize) -> bool {
    let before = at.checked_sub(1).map(|before| &trees[before]);
    matches!(before, Some(TokenTree::Punct(mark)) if matches!(mark.as_char(), '-' | '='))
}

/// True if the tokens contain the type `Result<_, String>`.
fn has_string_error(trees: &[TokenTree]) -> bool {
    trees.iter().enumerate().any(|(at, tree)| match tree {
        TokenTree::Ident(word) if word == "Result" => is_string(&second_argument(&trees[at + 1..])),
        TokenTree::Group(group) => has_string_error(&group.stream().into_iter().collect::<Vec<_>>()),
        _ => false,
    })
}

/// True for `type Err = String` and `type Error = String`, the error types of traits such as `FromStr`.
fn declares_string_error(trees: &[TokenTree]) -> bool {
    let words: Vec<String> = trees.iter().map(TokenTree::to_string).collect();
    match words.iter().map(String::as_str).collect::<Vec<_>>()[..] {
        ["type", "Err" | "Error", "=", .., last] => last == "String",
        _ => false,
    }
}

/// The second generic argument. `trees` begin with the `<` of the arguments. Empty if there is no second argument.
fn second_argument(trees: &[TokenTree]) -> Vec<TokenTree> {
    let (mut depth, mut commas, mut argument) = (0_usize, 0, Vec::new());
    for (at, tree) in trees.iter().enumerate() {
        match tree {
            TokenTree::Punct(mark) if mark.as_char() == '<' => depth += 1,
            TokenTree::Punct(mark) if mark.as_char() == '>' && !is_arrow(trees, at) => depth = depth.saturating_sub(1),
            TokenTree::Punct(mark) if mark.as_char() == ',' && depth == 1 => {
                commas += 1;
                continue;
            }
            _ => {}
        }
        if depth == 0 {
            break;
        }
        if commas == 1 {
            argument.push(tree.clone());
        }
    }
    argument
}

/// True if a type is `String`, with or without a path such as `std::string::String`.
fn is_string(tokens: &[TokenTree]) -> bool {
    let path = |tree: &TokenTree| match tree {
        TokenTree::Ident(_) => true,
        TokenTree::Punct(mark) => mark.as_char() == ':',
        _ => false,
    };
    matches!(tokens.last(), Some(TokenTree::Ident(last)) if last == "String") && tokens.iter().all(path)
}

/// Each public signature with a `String` error, outside of `cli`: its module, and its place with the violation.
fn found() -> Vec<(String, String)> {
    let mut all = Vec::new();
    for file in files(".rs") {
        let Some(module) = ranks::module(&file.path).and_then(|own| own.first().map(|first| (*first).to_owned()))
        else {
            continue;
        };
        if module != "cli" {
            let places = lines(&file.path, &file.text).into_iter();
            all.extend(places.map(|line| (module.clone(), format!("{}:{line}: the error type is String", file.path))));
        }
    }
    all
}

#[test]
fn no_public_signature_has_a_string_error() {
    assert_none(
        found().into_iter().filter(|(module, _)| !EXCEPTIONS.contains(&module.as_str())).map(|(_, place)| place),
    );
}

#[test]
fn each_listed_module_still_has_string_errors() {
    let found = found();
    let unneeded = EXCEPTIONS.iter().filter(|name| !found.iter().any(|(module, _)| module == **name));
    assert_none(unneeded.map(|name| format!("\"{name}\" has no `String` error any more: remove it from `EXCEPTIONS`")));
}

#[test]
fn string_errors_are_found_in_every_signature() {
    for text in [
        "pub fn a() -> Result<(), String> { b() }",
        "pub(crate) async fn a() -> Result<u8, String> {}",
        "impl A { pub(super) const fn a(&self) -> std::result::Result<Vec<(u8, u8)>, std::string::String> {} }",
        "pub(in crate::a) fn a<T>(\n    one: u8,\n    other: T,\n) -> Result<\n    BTreeMap<u8, Result<u8, Error>>,\n    String,\n>\nwhere\n    T: Copy,\n{\n}",
        "trait A { fn a(&self) -> Result<(), String>; }",
        "pub trait A: B<C> where C: D { type E; async fn a(&self) -> Result<(), String> { b() } }",
        "type A = Result<(), String>;",
        "pub(crate) type A<T> = Pin<Box<dyn Future<Output = Result<T, String>> + Send>>;",
        "impl FromStr for A { type Err = String; }",
        "impl TryFrom<B> for A { type Error = String; fn try_from(b: B) -> Result<Self, Self::Error> {} }",
        "pub fn a(b: impl Fn(&Path) -> Result<PathBuf, String>) -> A {}",
        "pub struct A { pub b: fn(&str) -> Result<(), String>, c: u8 }",
        "pub struct A(pub BTreeMap<String, Result<u8, String>>);",
        "macro_rules! a { ($b:ident) => { impl A { pub fn $b() -> Result<(), String> {} } } }",
        "mod a { pub fn b() -> Result<(), String> {} }",
    ] {
        assert_eq!(lines("host/src/a.rs", text).len(), 1, "{text}");
    }
}

#[test]
fn other_errors_are_allowed() {
    for text in [
        "pub fn a() -> Result<String, Error> { let b: Result<(), String> = c(); }",
        "pub fn a(b: String) -> Result<BTreeMap<u8, String>, Error> {}",
        "pub fn a() -> Result<Option<String>, Vec<String>> {}",
        "pub fn a() -> io::Result<String> {}",
        "fn a() -> Result<(), String> {}",
        "impl A for B { type Error = Error; fn a(&self) -> Result<(), String> {} }",
        "pub struct A { pub b: u8, c: Result<(), String> }",
        "mod tests { pub fn a() -> Result<(), String> {} }",
        "/// Result<(), String>\npub const A: &str = \"Result<(), String>\";",
    ] {
        assert_eq!(lines("host/src/a.rs", text), BTreeSet::new(), "{text}");
    }
    assert_eq!(lines("host/src/a/tests.rs", "pub fn a() -> Result<(), String> {}"), BTreeSet::new());
}
