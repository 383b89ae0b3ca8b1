//! Isolation of calls, with the hostile guest (`tests/guests/hostile`) in the real binary: no call
//! sees another call or the host. Only the answer of a guest reaches the client.

use std::fs;

use belljar_tests::Era;

use crate::support::{assert_clean, attack_by_read, hostile_guest, kind, serve, site};

#[test]
fn a_guest_that_ends_itself_ends_only_its_call() {
    let site = hostile_guest("");
    let mut client = serve(&site);
    for reference in ["trap", "count-trap", "panic/why", "exit/0", "exit/3"] {
        let error =
            attack_by_read(&mut client, &format!("belljar://hostile/{reference}")).answer.expect_err("an error");
        assert_eq!(kind(&error), "trap", "{reference}: {error}");
        assert_eq!(error.data["mount"], "hostile", "{reference}: {error}");
        assert_clean(&error.message);
    }
    let ended = client.close();
    assert!(ended.status.success(), "{:?}", ended.status);
    // The log has the details that the client does not get.
    assert!(ended.stderr.contains("the hostile guest panics"), "{}", ended.stderr);
    ended.stderr.lines().for_each(assert_clean);
}

#[test]
fn a_guest_sees_only_the_settings_of_its_own_mount() {
    let site = site(
        "[mounts.one]\ncomponent = \"hostile.wasm\"\nenv = { ONE = \"1\" }\n\
         [mounts.two]\ncomponent = \"hostile.wasm\"\nenv = { TWO = \"2\" }\n[mounts.none]\ncomponent = \"hostile.wasm\"\n",
    );
    let mut client = serve(&site);
    for (mount, expected) in [("one", "[(\"ONE\", \"1\")]"), ("two", "[(\"TWO\", \"2\")]"), ("none", "[]")] {
        assert_eq!(client.text(&format!("belljar://{mount}/env")), expected, "{mount}");
    }
}

/// The client of every test checks each line of the stream. Here, a guest prints a forged answer to a request in
/// flight. The client must not get this answer.
#[test]
fn guest_output_never_reaches_the_client() {
    for era in Era::ALL {
        let site = site("[mounts.hostile]\ncomponent = \"hostile.wasm\"\nenv = { HOSTILE_LIST = \"print\" }\n");
        let mut client = site.stdio(era);
        assert!(client.uris().contains(&"belljar://hostile/ok".to_owned()), "{era:?}");
        for _ in 0..3 {
            assert_eq!(client.text("belljar://hostile/print/2000"), "printed", "{era:?}");
        }
        let ended = client.close();
        assert!(ended.stderr.contains("forged"), "the printed line is missing in the log: {}", ended.stderr);
        assert!(ended.status.success());
    }
}

#[test]
fn guest_output_is_cleaned_and_capped_in_the_log() {
    let site = hostile_guest("output = \"16KiB\"");
    let mut client = serve(&site);
    let before = client.wire().process.stderr().len();
    assert_eq!(client.text("belljar://hostile/print/50000000"), "printed");
    let ended = client.close();
    let log = &ended.stderr[before..];
    assert!(log.len() < 64 << 10, "{} bytes of log, but only 16 KiB of output are kept", log.len());
    assert!(log.contains("visible") && log.contains("end"), "{log}");
    for line in log.lines() {
        assert_clean(line);
    }
    // The host writes each line, and names the mount whose output the line quotes.
    for line in log.lines().filter(|line| line.contains("print print")) {
        assert!(line.contains("mount=hostile"), "{line}");
    }
    assert!(log.contains("more bytes were dropped"), "{log}");
}

/// With a line break in its output, a guest could forge a line of the host's log.
#[test]
fn a_guest_cannot_write_a_line_of_the_hosts_log() {
    let site = hostile_guest("");
    let mut client = serve(&site);
    client.read("belljar://hostile/errors/failed/controls").expect_err("an error");
    client.text("belljar://hostile/print/0");
    let ended = client.close();
    assert!(ended.stderr.contains("desrever"), "{}", ended.stderr);
    // Each line begins with the time, but the one by which a build without guards names itself.
    for line in ended.stderr.lines().filter(|line| !line.starts_with("belljar: this build is for tests")) {
        assert!(line.starts_with("20") && line.as_bytes()[10] == b'T', "{line:?}");
    }
}

/// A call must not leave files in the working directory of belljar.
#[test]
fn a_call_leaves_no_file() {
    let site = hostile_guest("");
    let listed = || {
        let mut names: Vec<_> = fs::read_dir(site.path("")).unwrap().map(|entry| entry.unwrap().file_name()).collect();
        names.sort();
        names
    };
    let mut client = serve(&site);
    let before = listed();
    for reference in ["open/new", "alter/new", "print/100", "count"] {
        client.read(&format!("belljar://hostile/{reference}")).unwrap();
    }
    assert_eq!(listed(), before);
}
