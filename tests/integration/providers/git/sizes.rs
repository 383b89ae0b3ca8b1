//! The sizes that the README of `plugins/git` names.

use std::fs;

use super::{git, git_with, serve};
use crate::providers::support::empty_directory;

/// The sizes of the README, under the default limits.
#[test]
fn the_sizes_of_the_readme_are_read() {
    let work_dir = empty_directory("git-sizes");
    let repository = work_dir.join("r");
    fs::create_dir_all(&repository).unwrap();
    git(&repository, &["init", "--quiet", "--bare", "."]);
    // A directory of 30,000 files, in which 150 commits each change one; and a file of 100 MB.
    let mut stream = String::from("blob\nmark :1\ndata 1\nx\nblob\nmark :2\ndata 1\ny\n");
    let mut commit = |number: usize, changes: &str| {
        stream.push_str(&format!(
            "commit refs/heads/main\ncommitter C <c@example.com> {} +0000\ndata 6\nChange\n{changes}\n",
            1_700_000_000 + number
        ));
    };
    let all: String = (0..30_000).map(|n| format!("M 100644 :1 wide/file-{n:06}.txt\n")).collect();
    commit(0, &all);
    for n in 1..=150 {
        commit(n, &format!("M 100644 :2 wide/file-{n:06}.txt\n"));
    }
    let line = "a line of a large file\n";
    let large = line.repeat(100_000_000 / line.len());
    let last = large.len() - line.len();
    commit(151, &format!("M 100644 inline large.txt\ndata {}\n{large}\n", large.len()));
    git_with(&repository, &["-c", "fastimport.unpackLimit=0", "fast-import", "--quiet"], stream.as_bytes());
    drop(stream);
    let mut served = serve(&repository);

    let directory = served.json("tree/HEAD/wide?limit=1000");
    assert_eq!(directory["entries"].as_array().unwrap().len(), 1000);
    let after = served.json(directory["next"].as_str().unwrap());
    assert_eq!(after["entries"][0]["name"], "file-001000.txt");
    // Only the first commit has this path. The search stops at its budget, and goes on.
    let found = served.log("log?path=wide/file-029999.txt&limit=5");
    assert_eq!(found.len(), 1);
    assert_eq!(served.text(&format!("tree/HEAD/large.txt?bytes={last}-")), line);
    let part = served.text("tree/HEAD/large.txt?lines=4000000-4000001");
    assert_eq!(part, line.repeat(2));
    assert!(served.client.close().status.success());
    fs::remove_dir_all(&work_dir).unwrap();
}
