//! No call sees another, none sees the host, and none is heard but by its answer.

use std::fs;

use belljar_tests::Era;

use crate::place::{assert_clean, attack_by_read, imp, kind, serve, site};

#[test]
fn a_guest_that_ends_itself_ends_nothing_else() {
    let site = imp("");
    let mut client = serve(&site);
    for reference in ["trap", "count-trap", "panic/why", "exit/0", "exit/3"] {
        let error = attack_by_read(&mut client, &format!("belljar://imp/{reference}")).answer.expect_err("an error");
        assert_eq!(kind(&error), "trap", "{reference}: {error}");
        assert_eq!(error.data["mount"], "imp", "{reference}: {error}");
        assert_clean(&error.message);
    }
    let ended = client.close();
    assert!(ended.status.success(), "{:?}", ended.status);
    // The operator gets to know what the client is not told.
    assert!(ended.stderr.contains("the imp panics"), "{}", ended.stderr);
    ended.stderr.lines().for_each(assert_clean);
}

/// What the host was started with is the host's.
#[test]
fn a_guest_sees_nothing_of_the_host() {
    let canary = "canary-d41d8cd98f";
    let mut site = imp("");
    site.env("CANARY", canary);
    site.env("RUST_BACKTRACE", "1");
    let mut client = serve(&site);
    for (reference, expected) in [("args", "[]"), ("env", "[]"), ("cwd", "/"), ("stdin", "0 bytes")] {
        assert_eq!(client.text(&format!("belljar://imp/{reference}")), expected, "{reference}");
    }
    let root = site.path("").to_string_lossy().trim_end_matches('/').to_owned();
    for reference in ["trap", "panic", "exit/1", "recurse/0", "open/%252Fetc%252Fpasswd", "raw/x", "readdir/%252F"] {
        let said = match client.read(&format!("belljar://imp/{reference}")) {
            Ok(result) => result.to_string(),
            Err(error) => error.to_string(),
        };
        for private in [canary, &root, "/etc/passwd:", "root:", "src/", ".rs:"] {
            assert!(!said.contains(private), "{reference} tells {private:?}: {said}");
        }
    }
}

#[test]
fn a_guest_sees_its_own_settings_and_no_other_mounts() {
    let site = site(
        "[mounts.one]\ncomponent = \"imp.wasm\"\nenv = { ONE = \"1\" }\n\
         [mounts.two]\ncomponent = \"imp.wasm\"\nenv = { TWO = \"2\" }\n[mounts.none]\ncomponent = \"imp.wasm\"\n",
    );
    let mut client = serve(&site);
    for (mount, expected) in [("one", "[(\"ONE\", \"1\")]"), ("two", "[(\"TWO\", \"2\")]"), ("none", "[]")] {
        assert_eq!(client.text(&format!("belljar://{mount}/env")), expected, "{mount}");
    }
}

/// The client of every test checks each byte of the stream. Here, what is printed is itself a valid answer to a request
/// that is in flight, and that is not believed either.
#[test]
fn what_a_guest_prints_never_reaches_the_client() {
    for era in Era::ALL {
        let site = site("[mounts.imp]\ncomponent = \"imp.wasm\"\nenv = { IMP_LIST = \"print\" }\n");
        let mut client = site.stdio(era);
        assert!(client.uris().contains(&"belljar://imp/ok".to_owned()), "{era:?}");
        for _ in 0..3 {
            assert_eq!(client.text("belljar://imp/print/2000"), "printed", "{era:?}");
        }
        let ended = client.close();
        assert!(ended.stderr.contains("forged"), "the operator is not told either: {}", ended.stderr);
        assert!(ended.status.success());
    }
}

#[test]
fn what_a_guest_prints_is_cleaned_and_capped_in_the_log() {
    let site = imp("output = \"16KiB\"");
    let mut client = serve(&site);
    let before = client.wire().process.stderr().len();
    assert_eq!(client.text("belljar://imp/print/50000000"), "printed");
    let ended = client.close();
    let log = &ended.stderr[before..];
    assert!(log.len() < 64 << 10, "{} bytes of log for 16 KiB that were kept", log.len());
    assert!(log.contains("visible") && log.contains("end"), "{log}");
    for line in log.lines() {
        assert_clean(line);
    }
    // Each line is the host's, and says whose words it carries.
    for line in log.lines().filter(|line| line.contains("print print")) {
        assert!(line.contains("mount=imp"), "{line}");
    }
    assert!(log.contains("more bytes were dropped"), "{log}");
}

/// A line break in a guest's words would begin a line in the host's name.
#[test]
fn a_guest_cannot_write_a_line_of_the_hosts_log() {
    let site = imp("");
    let mut client = serve(&site);
    client.read("belljar://imp/errors/failed/controls").expect_err("an error");
    client.text("belljar://imp/print/0");
    let ended = client.close();
    assert!(ended.stderr.contains("desrever"), "{}", ended.stderr);
    // Each begins with the time.
    for line in ended.stderr.lines() {
        assert!(line.starts_with("20") && line.as_bytes()[10] == b'T', "{line:?}");
    }
}

/// Nothing is left behind by a call either, in the one place where a program might: the directory that it runs in.
#[test]
fn a_call_leaves_no_file() {
    let site = imp("");
    let listed = || {
        let mut names: Vec<_> = fs::read_dir(site.path("")).unwrap().map(|entry| entry.unwrap().file_name()).collect();
        names.sort();
        names
    };
    let mut client = serve(&site);
    let before = listed();
    for reference in ["open/new", "alter/new", "print/100", "count"] {
        client.read(&format!("belljar://imp/{reference}")).unwrap();
    }
    assert_eq!(listed(), before);
}
