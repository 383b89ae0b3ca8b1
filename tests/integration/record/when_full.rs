//! `audit = { when-full = "refuse" }`: no request is served while the record cannot be written.

use std::io::Read as _;

use belljar_tests::{Era, wait_until};
use rustix::fs::{CWD, FileType, Mode, mknodat};

use crate::support::{empty, stdout_and_stderr};

#[test]
fn a_full_disk_stops_the_requests_if_the_operator_wants_that() {
    let site = empty();
    site.mount_as("guest_fixture", "fixture.wasm");
    site.config("audit = { to = \"/dev/full\", when-full = \"refuse\" }\n");
    let mut client = site.stdio(Era::Stateless);
    let refusal = wait_until("a refusal", || match client.read("belljar://fixture/static-text") {
        Ok(answer) => Err(answer.to_string()),
        Err(error) => Ok(error),
    });
    assert_eq!(refusal.data["kind"], "unavailable", "{refusal}");
    assert!(refusal.message.contains("audit.when-full = \"refuse\"") && !refusal.message.contains("/dev"), "{refusal}");
    // Lists are requests, too, and need no call.
    client.request("resources/list", serde_json::json!({})).unwrap_err();
    assert!(client.close().status.success());
}

#[test]
fn requests_are_served_again_when_the_record_can_be_written() {
    let site = empty();
    site.mount_as("guest_fixture", "fixture.wasm");
    site.config("audit = { to = \"fifo\", when-full = \"refuse\" }\n[limits]\ntime = \"60s\"\n");
    mknodat(CWD, site.path("fifo"), FileType::Fifo, Mode::RUSR | Mode::WUSR, 0).unwrap();
    let mut reader = std::fs::File::options().read(true).write(true).open(site.path("fifo")).unwrap();
    let mut client = site.stdio(Era::Stateless);
    // The FIFO fills up, because nobody reads it.
    wait_until("a refusal", || {
        let refused = (0..50).any(|_| client.read("belljar://fixture/static-text").is_err());
        if refused { Ok(()) } else { Err("all served") }
    });
    let reading = std::thread::spawn(move || {
        let mut bytes = vec![0; 1 << 16];
        while reader.read(&mut bytes).is_ok_and(|count| !bytes[..count].ends_with(b"END\n")) {}
    });
    wait_until("an answer", || client.read("belljar://fixture/static-text").map(drop));
    assert!(client.close().status.success());
    std::fs::write(site.path("fifo"), "END\n").unwrap();
    reading.join().unwrap();
}

#[test]
fn a_wrong_setting_is_explained() {
    let site = empty();
    for (text, part) in [
        ("audit = { when-full = \"wait\" }", "audit.when-full"),
        ("audit = { file = \"x\" }", "audit.file"),
        ("audit = 5", "or { to = \"FILE\", when-full = \"refuse\" }"),
    ] {
        site.config(&format!("{text}\n"));
        let output = site.run(&["check"]);
        let said = stdout_and_stderr(&output);
        assert!(!output.status.success() && said.contains(part), "{text}: {said}");
    }
}
