//! Tests of pages of a directory, sorted and in the order of the file system.

use std::collections::BTreeSet;

use super::*;
use crate::tree::Directory;

fn tree_of(names: &[String]) -> (tempfile::TempDir, Tree) {
    let dir = tempfile::tempdir().unwrap();
    for name in names {
        std::fs::write(dir.path().join(name), "").unwrap();
    }
    let tree = Tree::new(vec![("/files".to_owned(), Directory::at(dir.path()).unwrap())], "*.tmp").unwrap();
    (dir, tree)
}

/// All names by pages of three, and the starts of the pages.
fn pages(tree: &Tree) -> (Vec<String>, Vec<Start>) {
    let (mut names, mut starts) = (Vec::new(), vec![Start::Beginning]);
    loop {
        let page = tree.below("", starts.last().unwrap(), 3).unwrap();
        assert!(page.entries.len() <= 3);
        names.extend(page.entries.into_iter().map(|entry| entry.name));
        let Some(next) = page.next else { return (names, starts) };
        // A cursor carries the start as a text.
        starts.push(Start::parse(&next.text()).unwrap());
    }
}

#[test]
fn a_small_directory_is_sorted_and_a_large_one_is_not_read_again() {
    let names: Vec<String> = (0..20).map(|n| format!("{}&%?.txt", n * 7 % 20)).collect();
    let (_dir, mut tree) = tree_of(&names);
    let mut sorted = names.clone();
    sorted.sort();
    assert_eq!(pages(&tree).0, sorted);
    tree.sorted = 10;
    let (found, starts) = pages(&tree);
    assert_eq!(found.len(), 20);
    assert_eq!(found.iter().collect::<BTreeSet<_>>(), names.iter().collect());
    assert!(starts.iter().skip(1).all(|start| matches!(start, Start::Position(_))), "{starts:?}");
}

#[test]
fn ignored_entries_do_not_fill_a_page_of_a_large_directory() {
    let names: Vec<String> = (0..40).map(|n| if n % 4 == 0 { n.to_string() } else { format!("{n}.tmp") }).collect();
    let (_dir, mut tree) = tree_of(&names);
    tree.sorted = 5;
    let (found, starts) = pages(&tree);
    assert_eq!((found.len(), found.iter().collect::<BTreeSet<_>>().len()), (10, 10));
    assert!(starts.len() <= 5, "{starts:?}");
}

#[test]
fn a_page_can_begin_after_any_entry() {
    let names: Vec<String> = (0..20).map(|n| n.to_string()).collect();
    let (_dir, mut tree) = tree_of(&names);
    for sorted in [5, 50] {
        tree.sorted = sorted;
        let whole = tree.below("", &Start::Beginning, 100).unwrap();
        for index in 0..19 {
            let rest = tree.below("", &whole.after(index), 100).unwrap();
            assert_eq!(rest.entries, whole.entries[index + 1..], "{index} {sorted}");
        }
    }
}

#[test]
fn a_foreign_start_is_an_error() {
    for text in ["?", "?xyz", "?-1", "?11111111111111111"] {
        assert!(matches!(Start::parse(text), Err(Error::Invalid(_))), "{text}");
    }
    assert_eq!(Start::parse("a%26b"), Ok(Start::After("a&b".to_owned())));
    assert_eq!(Start::parse(""), Ok(Start::Beginning));
}
