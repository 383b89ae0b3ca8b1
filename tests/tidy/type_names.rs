//! Checks that no two public types of the host have the same name. `pub(crate)`, `pub(super)` and `pub(in ...)` count as
//! public, because another module can name such a type.

use std::collections::BTreeMap;

use proc_macro2::{Delimiter, TokenStream, TokenTree};

use crate::{assert_none, files, names, source};

/// Names that several modules may give to a type, each with the reason. At most [`MOST_EXCEPTIONS`].
const EXCEPTIONS: [(&str, &str); 0] = [];

/// The most entries of [`EXCEPTIONS`].
const MOST_EXCEPTIONS: usize = 5;

/// The keywords that declare a type.
const KEYWORDS: [&str; 5] = ["struct", "enum", "trait", "type", "union"];

/// A public type: its name, and the file and line of its declaration.
#[derive(Debug, PartialEq)]
struct PublicType {
    name: String,
    place: String,
}

/// The public types of one file, without the types of its tests.
fn public_types(path: &str, text: &str) -> Vec<PublicType> {
    let mut found = Vec::new();
    if !source::is_test(path) {
        collect(path, source::tokens(path, text), &mut found);
    }
    found
}

/// Collects the public types of `tokens`. Declarations in the bodies of macros count too.
fn collect(path: &str, tokens: TokenStream, found: &mut Vec<PublicType>) {
    let trees: Vec<TokenTree> = tokens.into_iter().collect();
    let mut at = 0;
    while at < trees.len() {
        if let Some((name, body)) = names::inline_module(&trees[at..]) {
            if name != "tests" {
                collect(path, body, found);
            }
            at += 3;
            continue;
        }
        match &trees[at] {
            TokenTree::Ident(word) if word == "pub" => {
                if let Some(name) = declared(&trees[at + 1..]) {
                    found.push(PublicType { name, place: format!("{path}:{}", word.span().start().line) });
                }
            }
            TokenTree::Group(group) => collect(path, group.stream(), found),
            _ => {}
        }
        at += 1;
    }
}

/// The name of the type that is declared after `pub`, if `trees` begins with such a declaration.
fn declared(trees: &[TokenTree]) -> Option<String> {
    let trees = match trees {
        [TokenTree::Group(scope), rest @ ..] if scope.delimiter() == Delimiter::Parenthesis => rest,
        all => all,
    };
    let mut words = trees.iter().map(|tree| match tree {
        TokenTree::Ident(word) => Some(word.to_string()),
        _ => None,
    });
    let mut word = words.next()??;
    while ["unsafe", "auto"].contains(&word.as_str()) {
        word = words.next()??;
    }
    if !KEYWORDS.contains(&word.as_str()) {
        return None;
    }
    // In a macro, `$name` can take the place of the name. Then this is `None`.
    words.next()?
}

/// Every name that several types have, and every exception that is not needed because at most one type has the name.
fn violations(types: Vec<PublicType>, exceptions: &[(&str, &str)]) -> Vec<String> {
    let mut places: BTreeMap<String, Vec<String>> = BTreeMap::new();
    for PublicType { name, place } in types {
        places.entry(name).or_default().push(place);
    }
    places.retain(|_, places| places.len() > 1);
    let mut found = Vec::new();
    for (name, reason) in exceptions {
        if places.remove(*name).is_none() {
            found.push(format!("\"{name}\" names one type at most: remove it from the exceptions ({reason})"));
        }
    }
    found.extend(
        places.iter().map(|(name, places)| format!("\"{name}\" names {} types: {}", places.len(), places.join(", "))),
    );
    found
}

#[test]
fn no_two_public_types_of_the_host_have_the_same_name() {
    let host = files(".rs").into_iter().filter(|file| file.path.starts_with("host/src/"));
    let types = host.flat_map(|file| public_types(&file.path, &file.text)).collect();
    assert_none(violations(types, &EXCEPTIONS));
    const { assert!(EXCEPTIONS.len() <= MOST_EXCEPTIONS) };
    assert_none(
        EXCEPTIONS.iter().filter(|(_, reason)| reason.is_empty()).map(|(name, _)| format!("\"{name}\" has no reason")),
    );
}

#[test]
fn every_kind_of_public_type_is_found() {
    let names = |text: &str| -> Vec<String> {
        public_types("host/src/a.rs", text).into_iter().map(|found| found.name).collect()
    };
    for (text, expected) in [
        ("pub struct A;", vec!["A"]),
        ("pub(crate) enum B {}", vec!["B"]),
        ("pub(super) trait C {}", vec!["C"]),
        ("pub(in crate::a) type D = u8;", vec!["D"]),
        ("pub union E { a: u8 }", vec!["E"]),
        ("pub unsafe trait F {}", vec!["F"]),
        ("#[derive(Debug)] pub struct G<T>(T);", vec!["G"]),
        ("mod inner { pub struct H; }", vec!["H"]),
        ("macro_rules! m { () => { pub struct I; pub struct $name; } }", vec!["I"]),
        ("fn f() { pub struct J; }", vec!["J"]),
        ("struct K; pub fn l() {} pub mod m {} pub use n::O; pub const P: u8 = 0;", vec![]),
        ("impl Trait for Q { type Error = R; } trait S { type Error; }", vec![]),
        ("#[cfg(test)] mod tests { pub struct T; }", vec![]),
        ("// pub struct U;\nconst V: &str = \"pub struct W;\";", vec![]),
    ] {
        assert_eq!(names(text), expected, "{text}");
    }
    assert_eq!(public_types("host/src/a/tests.rs", "pub struct A;"), []);
}

#[test]
fn two_types_with_one_name_and_an_unneeded_exception_are_found() {
    let types = |sources: &[(&str, &str)]| sources.iter().flat_map(|(path, text)| public_types(path, text)).collect();
    let two = [("host/src/a.rs", "pub struct A;"), ("host/src/b.rs", "\n\npub(super) type A = u8;")];
    assert_eq!(violations(types(&two), &[]), ["\"A\" names 2 types: host/src/a.rs:1, host/src/b.rs:3"]);
    assert_eq!(violations(types(&two), &[("A", "idiom")]), Vec::<String>::new());
    let one = violations(types(&two[..1]), &[("A", "idiom")]);
    assert_eq!(one, ["\"A\" names one type at most: remove it from the exceptions (idiom)"]);
}
