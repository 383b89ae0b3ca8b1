//! Finds the paths that a Rust file uses, such as `crate::catalog::Mount` and `std::fs`. Paths in the bodies of macros
//! count, too.

use proc_macro2::{Delimiter, TokenStream, TokenTree};

use crate::source;

/// One use of a path.
#[derive(Debug, PartialEq)]
pub(crate) struct Use {
    /// The segments of the path, as written: from the crate's root (`crate`, `catalog`), or from another crate (`std`,
    /// `fs`).
    pub(crate) path: Vec<String>,
    /// The line of the path.
    pub(crate) line: usize,
    /// True if the path is in `mod tests` or in a file of tests.
    pub(crate) in_tests: bool,
}

/// Every path in a file. `module` is the path of the file's module from the root of its crate.
///
/// Resolves `super` and `self`, and splits groups (`a::{b, c}`) into single paths. An unqualified local name gives a path
/// of one segment.
pub(crate) fn uses(path: &str, text: &str, module: &[&str]) -> Vec<Use> {
    let mut found = Vec::new();
    let module = module.iter().map(|name| (*name).to_owned()).collect();
    let mut walk = PathCollector { found: &mut found, module, in_tests: source::is_test(path) };
    walk.tokens(source::tokens(path, text));
    found
}

struct PathCollector<'a> {
    found: &'a mut Vec<Use>,
    module: Vec<String>,
    in_tests: bool,
}

impl PathCollector<'_> {
    fn tokens(&mut self, tokens: TokenStream) {
        let trees: Vec<_> = tokens.into_iter().collect();
        let mut at = 0;
        while at < trees.len() {
            if let Some((name, body)) = inline_module(&trees[at..]) {
                let outer = self.in_tests;
                self.in_tests |= name == "tests";
                self.module.push(name);
                self.tokens(body);
                self.module.pop();
                self.in_tests = outer;
                at += 3;
                continue;
            }
            match &trees[at] {
                TokenTree::Ident(_) => at += self.path(&trees[at..], &[]),
                TokenTree::Group(group) => {
                    self.tokens(group.stream());
                    at += 1;
                }
                _ => at += 1,
            }
        }
    }

    /// Collects the path at the head of `trees`, with `prefix` in front. Returns the number of its tokens.
    fn path(&mut self, trees: &[TokenTree], prefix: &[String]) -> usize {
        let mut path = prefix.to_vec();
        let line = trees[0].span().start().line;
        let mut at = 0;
        loop {
            match trees.get(at) {
                Some(TokenTree::Ident(name)) => {
                    path.push(name.to_string());
                    at += 1;
                }
                Some(TokenTree::Group(group)) if group.delimiter() == Delimiter::Brace && !path.is_empty() => {
                    self.group(group.stream(), &path);
                    return at + 1;
                }
                Some(TokenTree::Punct(star)) if star.as_char() == '*' => {
                    path.push("*".to_owned());
                    at += 1;
                    break;
                }
                _ => break,
            }
            if !is_double_colon(&trees[at.min(trees.len())..]) {
                break;
            }
            at += 2;
        }
        self.collect(path, line);
        at.max(1)
    }

    /// Collects the paths in the braces after `prefix::`.
    fn group(&mut self, tokens: TokenStream, prefix: &[String]) {
        let trees: Vec<_> = tokens.into_iter().collect();
        let mut at = 0;
        while at < trees.len() {
            // Skip `as name` and commas.
            if matches!(&trees[at], TokenTree::Punct(_)) && !is_star(&trees[at]) {
                at += 1;
            } else if is_as(&trees[at]) {
                at += 2;
            } else {
                at += self.path(&trees[at..], prefix);
            }
        }
    }

    /// Resolves a path and collects it.
    fn collect(&mut self, path: Vec<String>, line: usize) {
        let mut resolved = path.as_slice();
        let mut module = self.module.clone();
        let relative = matches!(resolved.first().map(String::as_str), Some("self" | "super"));
        while let Some(("self" | "super", rest)) = resolved.split_first().map(|(head, rest)| (head.as_str(), rest)) {
            if resolved[0] == "super" {
                module.pop();
            }
            resolved = rest;
        }
        let path = if relative {
            let root = std::iter::once("crate".to_owned());
            root.chain(module).chain(resolved.iter().cloned()).collect()
        } else {
            path
        };
        self.found.push(Use { path, line, in_tests: self.in_tests });
    }
}

/// `mod name { ... }` at the head of `trees`.
pub(crate) fn inline_module(trees: &[TokenTree]) -> Option<(String, TokenStream)> {
    match trees {
        [TokenTree::Ident(keyword), TokenTree::Ident(name), TokenTree::Group(body), ..]
            if keyword == "mod" && body.delimiter() == Delimiter::Brace =>
        {
            Some((name.to_string(), body.stream()))
        }
        _ => None,
    }
}

fn is_double_colon(trees: &[TokenTree]) -> bool {
    let colon = |tree: &TokenTree| matches!(tree, TokenTree::Punct(mark) if mark.as_char() == ':');
    matches!(trees, [one, other, ..] if colon(one) && colon(other))
}

fn is_star(tree: &TokenTree) -> bool {
    matches!(tree, TokenTree::Punct(mark) if mark.as_char() == '*')
}

fn is_as(tree: &TokenTree) -> bool {
    matches!(tree, TokenTree::Ident(word) if word == "as")
}

#[test]
fn paths_are_found_and_resolved() {
    let paths = |module: &[&str], text: &str| -> Vec<String> {
        uses("host/src/a.rs", text, module)
            .iter()
            .map(|found| found.path.join("::"))
            .filter(|path| path.contains("::"))
            .collect()
    };
    assert_eq!(paths(&["a"], "use crate::b::C;"), ["crate::b::C"]);
    assert_eq!(
        paths(&["a"], "use crate::{b, c::{self, D as E}, f::*};"),
        ["crate::b", "crate::c::self", "crate::c::D", "crate::f::*"]
    );
    assert_eq!(paths(&["a", "b"], "use super::super::c; fn d() { super::e() }"), ["crate::c", "crate::a::e"]);
    assert_eq!(paths(&["a"], "mod tests { use super::*; use super::super::b; }"), ["crate::a::*", "crate::b"]);
    assert_eq!(
        paths(&["a"], "fn f() { select! { x = crate::b::g() => { std::fs::read(y) } } }"),
        ["crate::b::g", "std::fs::read"]
    );
    assert_eq!(
        paths(&["a"], "pub(crate) struct S { x: Vec<::wasmtime::Store<crate::b::T>> }"),
        ["wasmtime::Store", "crate::b::T"]
    );
    assert_eq!(paths(&["a"], "/// crate::b\nconst A: &str = \"crate::c\"; // crate::d\n"), Vec::<String>::new());
    assert_eq!(
        paths(&["a"], "use self::b::C; use std::{env, fs::File};"),
        ["crate::a::b::C", "std::env", "std::fs::File"]
    );
}
