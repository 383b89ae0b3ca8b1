//! Tests of the order, of start positions, and of the cost of a page.

use std::fs;
use std::path::Path;

use super::*;
use crate::tree::Directory;

fn tree_of(files: &[&str]) -> (tempfile::TempDir, Tree) {
    let dir = tempfile::tempdir().unwrap();
    for file in files {
        write(dir.path(), file);
    }
    let tree = tree_at(dir.path());
    (dir, tree)
}

fn write(dir: &Path, file: &str) {
    let path = dir.join(file);
    fs::create_dir_all(path.parent().unwrap()).unwrap();
    fs::write(path, "").unwrap();
}

fn tree_at(dir: &Path) -> Tree {
    Tree::new(vec![("/files".to_owned(), Directory::at(dir).unwrap())], "").unwrap()
}

/// All files after `start`, and the number of pauses.
fn rest(tree: &Tree, start: &str, wanted: usize, budget: usize) -> (Vec<String>, usize) {
    let (mut files, mut pauses) = (Vec::new(), 0);
    let mut start = start.to_owned();
    loop {
        let mut walk = Walk::new(tree, start.clone(), wanted);
        walk.budget = budget;
        loop {
            match walk.next().unwrap() {
                Step::File(path) => files.push(path),
                Step::Paused(position) => {
                    assert!(position > start, "no progress from {start:?}");
                    start = position;
                    pauses += 1;
                    break;
                }
                Step::End => return (files, pauses),
            }
        }
    }
}

const FILES: [&str; 12] = ["a-b/1", "a.md", "a/1", "a/2/x", "a/2/y", "a/3", "a0", "b", "c/d/e/f/g", "z/1", "zz", "ä/ö"];

#[test]
fn the_order_is_the_byte_order_of_paths() {
    let (_dir, tree) = tree_of(&FILES);
    let mut sorted = FILES;
    sorted.sort_unstable();
    assert_eq!(rest(&tree, "", 100, BUDGET).0, sorted);
}

#[test]
fn a_walk_continues_from_any_position() {
    let (_dir, tree) = tree_of(&FILES);
    let positions = FILES.iter().flat_map(|file| (0..=file.len()).filter_map(|end| file.get(..end)));
    for position in positions.chain(["a/2/x0", "q", "a/2/\u{10FFFF}", "\u{10FFFF}"]) {
        let mut expected: Vec<&str> = FILES.into_iter().filter(|file| *file > position).collect();
        expected.sort_unstable();
        assert_eq!(rest(&tree, position, 100, BUDGET).0, expected, "{position:?}");
    }
}

#[test]
fn directories_with_more_entries_than_are_kept_are_read_again() {
    let files: Vec<String> = (0..500).map(|n| format!("{n:03}{}", if n % 3 == 0 { "/x" } else { "" })).collect();
    let (_dir, tree) = tree_of(&files.iter().map(String::as_str).collect::<Vec<_>>());
    let mut sorted = files;
    sorted.sort_unstable();
    assert_eq!(rest(&tree, "", 1, BUDGET).0, sorted);
}

#[test]
fn empty_and_ignored_directories_give_no_files() {
    let (dir, tree) = tree_of(&["a/1", "a/.hidden/1", ".git/config"]);
    fs::create_dir(dir.path().join("empty")).unwrap();
    assert_eq!(rest(&tree, "", 100, BUDGET).0, ["a/1"]);
}

#[test]
fn a_walk_with_few_files_pauses_and_continues() {
    let (dir, tree) = tree_of(&["m/1/2/3/x"]);
    for n in 0..60 {
        fs::create_dir_all(dir.path().join(format!("e{n}/f/g"))).unwrap();
        fs::create_dir_all(dir.path().join(format!("n/{n}"))).unwrap();
    }
    for budget in [0, 1, 7, 1000] {
        let (files, pauses) = rest(&tree, "", 1, budget);
        assert_eq!(files, ["m/1/2/3/x"]);
        assert!(pauses > 0 || budget == 1000, "{pauses} {budget}");
    }
}

#[test]
fn a_first_page_does_not_enter_later_directories() {
    let (_dir, tree) = tree_of(&["a/1", "a/2", "b/1", "c/1", "d/1", "e/1"]);
    let mut walk = Walk::new(&tree, String::new(), 2);
    assert_eq!(walk.next(), Ok(Step::File("a/1".to_owned())));
    assert_eq!(walk.next(), Ok(Step::File("a/2".to_owned())));
    assert_eq!(walk.examined, 2);
}

#[test]
fn passed_directories_are_not_entered() {
    let (_dir, tree) = tree_of(&["a/1", "a/2", "b/c/1", "b/d/1", "e/1"]);
    let mut walk = Walk::new(&tree, "b/d/".to_owned(), 10);
    assert_eq!(walk.next(), Ok(Step::File("b/d/1".to_owned())));
    assert_eq!(walk.examined, 0);
}

/// All files by pages of `size`, in one walk for each page, as a list does.
fn by_pages(tree: &Tree, size: usize) -> Vec<String> {
    let (mut files, mut start) = (Vec::new(), String::new());
    loop {
        let mut walk = Walk::new(tree, start.clone(), size);
        for _ in 0..size {
            match walk.next().unwrap() {
                Step::File(path) => files.push(path),
                Step::Paused(_) => panic!("a pause"),
                Step::End => return files,
            }
        }
        start = walk.position();
    }
}

#[test]
fn large_directories_come_in_the_order_of_the_file_system() {
    let mut files: Vec<String> = (0..40).map(|n| format!("large/{}", n * 17 % 40)).collect();
    files.extend((0..30).flat_map(|n| (0..3).map(move |m| format!("many/{n}/{m}"))));
    files.extend((0..12).flat_map(|n| (0..15).map(move |m| format!("many/large/{n}/{m}"))));
    files.extend(FILES.map(str::to_owned));
    let (_dir, mut tree) = tree_of(&files.iter().map(String::as_str).collect::<Vec<_>>());
    files.sort();
    for sorted in [1, 5, 10, 14, 20, 35, 1000] {
        tree.sorted = sorted;
        for size in [1, 2, 3, 7, 50, 1000] {
            let mut found = by_pages(&tree, size);
            if sorted == 1000 {
                assert!(found.is_sorted());
            }
            found.sort();
            assert_eq!(found, files, "{sorted} sorted, pages of {size}");
        }
    }
}

#[test]
fn a_large_directory_of_directories_pauses_and_goes_on() {
    let files: Vec<String> = (0..20).map(|n| format!("{n}/empty/{n}")).collect();
    let (_dir, mut tree) = tree_of(&files.iter().map(String::as_str).collect::<Vec<_>>());
    tree.sorted = 4;
    let (mut found, mut start) = (Vec::new(), String::new());
    loop {
        let mut walk = Walk::new(&tree, start, 1000);
        walk.budget = 3;
        start = loop {
            match walk.next().unwrap() {
                Step::File(path) => found.push(path),
                Step::Paused(position) => break position,
                Step::End => {
                    found.sort();
                    let mut files = files;
                    files.sort();
                    assert_eq!(found, files);
                    return;
                }
            }
        };
    }
}
