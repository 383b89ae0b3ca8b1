//! The chain of hashes: `belljar audit verify`, and the program in `docs/reference/record.md` that checks the same.

use std::fs;
use std::io::Write as _;
use std::process::{Command, Stdio};

use belljar_tests::{Era, Site, places};

use crate::support::{empty, stdout_and_stderr};

/// A site with a record of ten reads.
fn served() -> Site {
    let site = empty();
    site.mount_as("guest_fixture", "fixture.wasm");
    site.config("audit = \"audit.jsonl\"\n");
    let mut client = site.stdio(Era::Stateless);
    for _ in 0..10 {
        client.text("belljar://fixture/static-text");
    }
    assert!(client.close().status.success());
    site
}

fn lines(site: &Site) -> Vec<String> {
    fs::read_to_string(site.path("audit.jsonl")).unwrap().lines().map(str::to_owned).collect()
}

/// Whether `audit verify` finds these lines whole, and what it prints.
fn verify(site: &Site, lines: &[String]) -> (bool, String) {
    let text = lines.iter().map(|line| format!("{line}\n")).collect::<String>();
    site.write("changed.jsonl", text);
    let output = site.run(&["audit", "verify", "--file", "changed.jsonl"]);
    assert!(matches!(output.status.code(), Some(0 | 1)), "{}", stdout_and_stderr(&output));
    (output.status.success(), stdout_and_stderr(&output))
}

/// The program of the document.
fn program() -> String {
    let page = fs::read_to_string(places::repository().join("docs/reference/record.md")).unwrap();
    page.split("```python\n").nth(1).unwrap().split("```").next().unwrap().to_owned()
}

fn python_verifies(lines: &[String]) -> bool {
    let mut python = Command::new("python3");
    python.args(["-c", &program()]).stdin(Stdio::piped()).stderr(Stdio::null());
    let mut child = python.spawn().expect("python3");
    // A program that finds a fault reads no further.
    let _ = child.stdin.take().unwrap().write_all((lines.join("\n") + "\n").as_bytes());
    child.wait().unwrap().success()
}

#[test]
fn a_changed_removed_or_inserted_line_shows() {
    let site = served();
    let whole = lines(&site);
    assert!(whole.len() >= 11, "{whole:?}");
    let (is_whole, text) = verify(&site, &whole);
    assert!(is_whole && text.contains("1 chains: whole") && python_verifies(&whole), "{text}");
    let at = 5;
    let changes: [(&str, Vec<String>, &str); 4] = [
        (
            "changed",
            whole
                .iter()
                .enumerate()
                .map(|(n, line)| if n == at { line.replace("\"local\"", "\"nobody\"") } else { line.clone() })
                .collect(),
            ":6: the line was changed",
        ),
        ("removed", [&whole[..at], &whole[at + 1..]].concat(), ":6: 1 lines before this one are missing"),
        ("repeated", [&whole[..=at], &whole[at..]].concat(), ":7: the line is out of order"),
        (
            "inserted",
            [&whole[..at], &[r#"{"time":"2026-11-27T00:00:00.000Z"}"#.to_owned()], &whole[at..]].concat(),
            ":6: the line has no hash",
        ),
    ];
    for (what, lines, fault) in changes {
        let (is_whole, text) = verify(&site, &lines);
        assert!(!is_whole && text.contains("NOT whole") && text.contains(fault), "{what}: {text}");
    }
    // The program of the document finds the change, too.
    let changed: Vec<String> = whole.iter().map(|line| line.replacen("\"ok\"", "\"denied\"", 1)).collect();
    assert!(!python_verifies(&changed));
    // The text of a forged line does not reach the terminal as more than text.
    let forged = whole[0].replace("\"chain\":\"", "\"chain\":\"\\u001b[2J\\u202e");
    let (is_whole, text) = verify(&site, &[forged]);
    assert!(!is_whole && !text.contains(['\u{1b}', '\u{202e}']), "{text:?}");
}

#[test]
fn the_record_of_many_processes_and_rotated_files_is_whole() {
    let site = crate::support::isolated_site();
    site.mount_as("guest_fixture", "fixture.wasm");
    for _ in 0..3 {
        assert!(site.run(&["read", "belljar://fixture/static-text"]).status.success());
    }
    let verified = site.run_json(&["audit", "verify"]);
    assert_eq!(verified["whole"], true, "{verified}");
    assert_eq!(verified["chains"].as_array().map(Vec::len), Some(3), "{verified}");
}
