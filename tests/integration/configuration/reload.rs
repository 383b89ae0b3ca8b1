//! Components and configuration that change while belljar serves. The catalog follows each change. A broken file
//! removes no mount, and makes no valid read fail. The tests change real files under a running server.

use std::fs;
use std::io::Write as _;
use std::net::TcpListener;
use std::sync::atomic::{AtomicBool, AtomicUsize, Ordering};
use std::time::{Duration, Instant};

use belljar_tests::{Client, Era, Site, Stdio, Wire, wait_until};

use crate::server::compiler_process::{pause_compiler, resume_compiler};
use crate::support::{isolated_site, kind, serve, site, stdout_and_stderr};
use crate::trust::digests::answering;

/// How long a test continues to read after a change that must have no effect. On an idle machine, belljar notices a
/// change in a third of a second.
const LATER: Duration = Duration::from_millis(1500);

/// The result of a read: the text, or the kind of the error in parentheses.
fn read<W: Wire>(client: &mut Client<W>, uri: &str) -> String {
    match client.read(uri) {
        Ok(read) => read["contents"][0]["text"].as_str().unwrap_or_default().to_owned(),
        Err(error) => format!("({})", kind(&error)),
    }
}

/// Waits until a read gives `expected`. Until then, each read must give the same result as the first one.
fn becomes<W: Wire>(client: &mut Client<W>, uri: &str, expected: &str) {
    let before = read(client, uri);
    wait_until(&format!("{uri} to give {expected:?}"), || {
        let text = read(client, uri);
        assert!(text == before || text == expected, "{uri} gave {text:?}, neither {before:?} nor {expected:?}");
        if text == expected { Ok(()) } else { Err(format!("{text:?}; {}", client.wire().diagnosis())) }
    });
}

/// Asserts that for [`LATER`], each read gives `expected`.
fn stays<W: Wire>(client: &mut Client<W>, uri: &str, expected: &str) {
    let until = Instant::now() + LATER;
    while Instant::now() < until {
        assert_eq!(read(client, uri), expected, "{uri}");
        std::thread::sleep(Duration::from_millis(20));
    }
}

/// Waits until the log contains `text`.
fn await_log(client: &mut Client<Stdio>, text: &str) {
    wait_until(&format!("{text:?} in the log"), || {
        let log = client.wire().process.stderr();
        log.contains(text).then_some(()).ok_or(log)
    });
}

/// A resource of the component that the tests replace.
const SWAP: &str = "belljar://swap/x";

/// Adds, replaces, renames and removes a component. Reads and lists must follow each change.
fn check_component_changes<W: Wire>(site: &Site, client: &mut Client<W>) {
    assert_eq!(read(client, SWAP), "(not-found)");
    site.drop_in("swap.wasm", answering("AAAA"));
    becomes(client, SWAP, "AAAA");
    site.drop_in("swap.wasm", answering("BBBB"));
    becomes(client, SWAP, "BBBB");
    // Write the file in place, without a rename.
    fs::write(site.path("plugins/swap.wasm"), answering("CCCC")).unwrap();
    becomes(client, SWAP, "CCCC");
    fs::rename(site.path("plugins/swap.wasm"), site.path("plugins/other.wasm")).unwrap();
    becomes(client, "belljar://other/x", "CCCC");
    assert_eq!(read(client, SWAP), "(not-found)", "the old name of the renamed file is still served");
    fs::remove_file(site.path("plugins/other.wasm")).unwrap();
    becomes(client, "belljar://other/x", "(not-found)");
    assert!(client.uris().iter().all(|uri| uri.starts_with("belljar://clock/")));
}

#[test]
fn components_are_added_changed_and_removed_while_belljar_serves() {
    for era in [Era::Stateless, Era::Session] {
        let site = site("");
        let mut client = site.stdio(era);
        client.text("belljar://clock/utc");
        check_component_changes(&site, &mut client);
        let server = site.http();
        check_component_changes(&site, &mut server.client(era));
    }
}

#[test]
fn a_broken_component_removes_no_mount() {
    let site = site("");
    site.drop_in("swap.wasm", answering("AAAA"));
    let mut client = serve(&site);
    assert_eq!(read(&mut client, SWAP), "AAAA");
    let whole = answering("BBBB");
    let mut invalid = whole.clone();
    // Damage the code of a function. The file is a component, but does not compile.
    let at = invalid.windows(4).position(|bytes| bytes == [0x41, 0x80, 0x01, 0x0b]).expect("i32.const 128 and an end");
    invalid[at] = 0xfe;
    let broken: [(&str, &[u8]); 6] = [
        ("empty", b""),
        ("a text", b"not a component"),
        ("a core module", b"\0asm\x01\0\0\0"),
        ("another version", b"\0asm\x0d\0\x01\0"),
        ("half of a component", &whole[..whole.len() / 2]),
        ("a component that does not compile", &invalid),
    ];
    for (case, bytes) in broken {
        let count = |log: &str| log.matches("the earlier bytes").count();
        let before = count(&client.wire().process.stderr());
        site.drop_in("swap.wasm", bytes);
        wait_until(&format!("a line in the log about {case}"), || {
            let log = client.wire().process.stderr();
            (count(&log) > before).then_some(()).ok_or(log)
        });
        assert_eq!(read(&mut client, SWAP), "AAAA", "{case}");
    }
    // The mount follows a change of its configuration, although its file is broken.
    site.config("[mounts.swap]\nuri = \"s://\"\n");
    becomes(&mut client, "s://x", "AAAA");
    site.config("");
    becomes(&mut client, SWAP, "AAAA");
    stays(&mut client, SWAP, "AAAA");
    site.drop_in("swap.wasm", whole);
    becomes(&mut client, SWAP, "BBBB");
    let stderr = client.close().stderr;
    assert!(!stderr.contains("panicked"), "{stderr}");
}

/// Writes a file in five pieces. Before the last one, `between` is called again and again for long enough that the
/// server sees each piece.
fn write_slowly(site: &Site, file: &str, bytes: &[u8], mut between: impl FnMut()) {
    let mut file = fs::File::create(site.path("plugins").join(file)).unwrap();
    let (begin, last) = bytes.split_at(bytes.len() / 5 * 4);
    for piece in begin.chunks(bytes.len() / 5) {
        file.write_all(piece).unwrap();
        let until = Instant::now() + Duration::from_millis(600);
        while Instant::now() < until {
            between();
            std::thread::sleep(Duration::from_millis(20));
        }
    }
    file.write_all(last).unwrap();
}

#[test]
fn a_half_written_component_is_not_loaded() {
    let site = site("[mounts.held]\nenv = { A = \"b\" }\n");
    for name in ["swap", "held"] {
        site.drop_in(&format!("{name}.wasm"), answering("AAAA"));
    }
    let mut client = serve(&site);
    // A mount with grants goes into quarantine only when the new file is complete.
    for (name, uri, after) in [("swap", SWAP, "BBBB"), ("held", "belljar://held/x", "(unavailable)")] {
        write_slowly(&site, &format!("{name}.wasm"), &answering("BBBB"), || {
            assert_eq!(read(&mut client, uri), "AAAA", "{name}");
        });
        becomes(&mut client, uri, after);
    }
}

#[test]
fn grants_are_given_and_revoked_while_belljar_serves() {
    let site = site("[mounts.hostile]\ncomponent = \"hostile.wasm\"\n");
    let mut client = serve(&site);
    let uri = "belljar://hostile/env";
    let without = read(&mut client, uri);
    let run = |verb: &[&str]| {
        let output = site.run(verb);
        assert!(output.status.success(), "{}", stdout_and_stderr(&output));
        stdout_and_stderr(&output)
    };
    let words = run(&["grant", "hostile", "--env", "WORD=first", "--yes"]);
    // The commands wait until the change is in effect, and name the servers.
    let pid = client.wire().process.id();
    let saved = format!("Saved. The running server (pid {pid}) uses it from the next call on.");
    assert!(words.contains(&saved), "{words}");
    assert_eq!(read(&mut client, uri), "[(\"WORD\", \"first\")]");
    run(&["grant", "hostile", "--env", "WORD=second", "--yes"]);
    assert_eq!(read(&mut client, uri), "[(\"WORD\", \"second\")]");
    let words = run(&["revoke", "hostile", "--env", "WORD", "--yes"]);
    assert!(words.contains(&saved), "{words}");
    assert_eq!(read(&mut client, uri), without);
    let words = run(&["set", "mounts.hostile.limits.fuel = 123456789", "--yes"]);
    assert!(words.contains(&format!("Saved. The running server (pid {pid}) has read it")), "{words}");
    client.close();
    let words = run(&["grant", "hostile", "--env", "WORD=third", "--yes"]);
    assert!(words.contains("\nSaved.\n"), "no server is running: {words}");
}

#[test]
fn grant_and_revoke_report_that_a_restart_is_needed() {
    let site = site("[mounts.notes]\ncomponent = \"files.wasm\"\nisolation = \"none\"\nfs = { \"/a\" = \"a\" }\n");
    site.write("a/one.md", "one");
    site.write("b/two.md", "two");
    let mut client = serve(&site);
    let uri = client.uris().into_iter().find(|uri| uri.starts_with("belljar://notes/")).unwrap();
    assert_eq!(read(&mut client, &uri), "one");
    let words = stdout_and_stderr(&site.run(&["grant", "notes", "--fs", "/b=b", "--yes"]));
    assert!(words.contains("does not use it: its grant of") && words.contains("restart belljar"), "{words}");
    assert_eq!(read(&mut client, &uri), "one", "the mount has its earlier grants");
    let words = stdout_and_stderr(&site.run(&["revoke", "notes", "--fs", "/a", "--yes"]));
    assert!(words.contains("needs a restart"), "{words}");
}

#[test]
fn a_denial_names_the_restart_that_a_new_grant_needs() {
    let site = site("[mounts.hostile]\ncomponent = \"hostile.wasm\"\nisolation = \"none\"\nenv = { A = \"b\" }\n");
    site.write("notes/plan", "the plan");
    let mut client = serve(&site);
    let uri = "belljar://hostile/need/%252Fnotes%252Fplan";
    // Without the directory, this provider reports "denied".
    let hint = |client: &mut Client<Stdio>| {
        let error = client.read("belljar://hostile/errors/denied/plain").expect_err("a denial");
        assert_eq!(kind(&error), "denied", "{error}");
        error.data["hint"].as_str().unwrap_or_default().to_owned()
    };
    assert!(hint(&mut client).contains("belljar grant hostile --fs"));
    let words = stdout_and_stderr(&site.run(&["grant", "hostile", "--fs", "/notes=notes", "--yes"]));
    assert!(words.contains("needs a restart"), "{words}");
    let now = hint(&mut client);
    assert!(now.contains("restart belljar") && !now.contains(site.path("").to_str().unwrap()), "{now}");
    client.close();
    assert_eq!(read(&mut serve(&site), uri), "the plan", "after the restart");
}

#[test]
fn a_changed_configuration_takes_effect_without_a_restart() {
    let site = site("");
    site.drop_in("swap.wasm", answering("AAAA"));
    let mut client = serve(&site);
    assert_eq!(read(&mut client, SWAP), "AAAA");
    site.config("[mounts.swap]\nuri = \"s://\"\n");
    becomes(&mut client, "s://x", "AAAA");
    assert_eq!(read(&mut client, SWAP), "(not-found)");
    // Two mounts of one component.
    site.config("[mounts.swap]\nuri = \"s://\"\n[mounts.twice]\ncomponent = \"swap.wasm\"\n");
    becomes(&mut client, "belljar://twice/x", "AAAA");
    assert_eq!(read(&mut client, "s://x"), "AAAA");
    // A wrong configuration changes nothing, and the log names the error.
    for (bad, says) in [("[mounts.swap", "TOML parse error"), ("[mount.swap]", "did you mean \"mounts\"?")] {
        site.config(bad);
        await_log(&mut client, says);
        assert_eq!(read(&mut client, "s://x"), "AAAA");
    }
    fs::remove_file(site.path("belljar.toml")).unwrap();
    await_log(&mut client, "is gone; put it back");
    assert_eq!(read(&mut client, "s://x"), "AAAA");
    site.config("[limits]\nfuel = 10\n");
    becomes(&mut client, SWAP, "(limit)");
    site.config("calls = 7\n");
    becomes(&mut client, SWAP, "AAAA");
    await_log(&mut client, "the changes of audit, calls, list-time need a restart");
}

#[test]
fn a_replaced_component_with_grants_is_in_quarantine_until_it_is_trusted() {
    let site = site("[mounts.swap]\nenv = { A = \"b\" }\n");
    let mut client = serve(&site);
    // belljar binds the grants to the first component, as it does at a start.
    site.drop_in("swap.wasm", answering("AAAA"));
    becomes(&mut client, SWAP, "AAAA");
    let lock = fs::read_to_string(site.path("belljar.lock")).unwrap();
    site.drop_in("swap.wasm", answering("BBBB"));
    becomes(&mut client, SWAP, "(unavailable)");
    assert_eq!(fs::read_to_string(site.path("belljar.lock")).unwrap(), lock);
    site.drop_in("swap.wasm", answering("AAAA"));
    becomes(&mut client, SWAP, "AAAA");
    site.drop_in("swap.wasm", answering("CCCC"));
    becomes(&mut client, SWAP, "(unavailable)");
    let trusted = site.run(&["trust", "swap", "--yes"]);
    assert!(trusted.status.success(), "{}", stdout_and_stderr(&trusted));
    becomes(&mut client, SWAP, "CCCC");
    site.drop_in("swap.wasm", answering("AAAA"));
    becomes(&mut client, SWAP, "(unavailable)");
    // Without grants, a changed component needs no trust.
    site.config("");
    becomes(&mut client, SWAP, "AAAA");
}

#[test]
fn a_directory_that_the_second_wall_excludes_needs_a_restart() {
    let notes = |also: &str| {
        format!("[mounts.notes]\ncomponent = \"files.wasm\"\nisolation = \"none\"\nfs = {{ \"/a\" = \"a\"{also} }}\n")
    };
    let site = site(&notes(""));
    site.write("a/one.md", "one");
    site.write("b/two.md", "two");
    let mut client = serve(&site);
    let (one, two) = ("belljar://notes/a/one.md", "belljar://notes/b/two.md");
    let paths = |client: &mut Client<Stdio>| {
        let all = client.uris();
        all.into_iter().filter(|uri| uri.starts_with("belljar://notes/")).collect::<Vec<_>>()
    };
    let before = paths(&mut client);
    assert_eq!(before.len(), 1, "{before:?}");
    let first = before[0].clone();
    site.config(&notes(", \"/b\" = \"b\""));
    await_log(
        &mut client,
        "needs a restart: landlock was enforced without it; restart belljar; meanwhile the mount stays as it was",
    );
    stays(&mut client, &first, "one");
    assert_eq!(paths(&mut client), before, "{one} {two}");
    // A revoked grant ends at once, even if the same change adds another grant.
    site.config("[mounts.notes]\ncomponent = \"files.wasm\"\nisolation = \"none\"\nfs = { \"/b\" = \"b\" }\n");
    becomes(&mut client, &first, "(unavailable)");
    site.config(&notes(""));
    becomes(&mut client, &first, "one");
    client.close();
    // Without the second wall, a new directory needs no restart.
    site.config(&format!("wall = \"off\"\n{}", notes("")));
    let mut client = serve(&site);
    site.config(&format!("wall = \"off\"\n{}", notes(", \"/b\" = \"b\"")));
    wait_until("the entries of both directories", || {
        let paths = paths(&mut client);
        (paths.len() == 2).then_some(()).ok_or_else(|| format!("{paths:?}; {}", client.wire().process.stderr()))
    });
}

#[test]
fn a_missing_plugin_directory_removes_no_mount() {
    for wall in ["best-effort", "off"] {
        let site = site("");
        site.config(&format!("wall = \"{wall}\"\n"));
        site.drop_in("swap.wasm", answering("AAAA"));
        let mut client = serve(&site);
        assert_eq!(read(&mut client, SWAP), "AAAA");
        fs::rename(site.path("plugins"), site.path("away")).unwrap();
        await_log(&mut client, "is gone; the loaded components stay in service");
        stays(&mut client, SWAP, "AAAA");
        fs::create_dir(site.path("plugins")).unwrap();
        site.drop_in("swap.wasm", answering("BBBB"));
        if wall == "off" {
            becomes(&mut client, SWAP, "BBBB");
            fs::remove_dir_all(site.path("plugins")).unwrap();
        } else {
            await_log(&mut client, "the second wall allows only the old directory: restart belljar");
            stays(&mut client, SWAP, "AAAA");
            fs::remove_dir_all(site.path("plugins")).unwrap();
            fs::rename(site.path("away"), site.path("plugins")).unwrap();
            site.drop_in("swap.wasm", answering("CCCC"));
            becomes(&mut client, SWAP, "CCCC");
        }
    }
}

#[test]
fn without_watching_only_a_signal_reloads() {
    let site = site("[watch]\nreload = false\n");
    site.drop_in("swap.wasm", answering("AAAA"));
    let mut client = serve(&site);
    site.drop_in("swap.wasm", answering("BBBB"));
    stays(&mut client, SWAP, "AAAA");
    client.wire().process.hang_up();
    becomes(&mut client, SWAP, "BBBB");
    site.config("[watch]\nreload = false\n[mounts.swap]\nuri = \"s://\"\n");
    stays(&mut client, SWAP, "BBBB");
    client.wire().process.hang_up();
    becomes(&mut client, "s://x", "BBBB");
}

/// If the operator revokes a grant during a call, the client gets an error, and not the result of the call.
#[test]
fn a_read_whose_grant_is_revoked_during_the_call_fails() {
    let upstream = TcpListener::bind("127.0.0.1:0").unwrap();
    let origin = format!("http://{}", upstream.local_addr().unwrap());
    let site = site(&format!(
        "[mounts.hostile]\ncomponent = \"hostile.wasm\"\nhttp = [{{ origin = \"{origin}\" }}]\nlimits = {{ time = \"60s\" }}\n"
    ));
    let server = site.http();
    let uri = format!("belljar://hostile/reach/{}", format!("{origin}/").replace(':', "%253A").replace('/', "%252F"));
    std::thread::scope(|scope| {
        let mut client = server.client(Era::Stateless);
        client.text("belljar://clock/utc");
        let reading = scope.spawn(move || client.read(&uri));
        let (mut stream, _) = upstream.accept().unwrap();
        let output = site.run(&["revoke", "hostile", "--http", &origin, "--yes"]);
        assert!(stdout_and_stderr(&output).contains("uses it from the next call on"), "{}", stdout_and_stderr(&output));
        assert!(stdout_and_stderr(&output).contains("The second wall"), "{}", stdout_and_stderr(&output));
        stream.write_all(b"HTTP/1.1 200 OK\r\ncontent-length: 2\r\n\r\nok").unwrap();
        let error = reading.join().unwrap().expect_err("an error, because the grant was revoked");
        assert_eq!(kind(&error), "unavailable", "{error}");
        assert!(error.message.contains("its grants changed during the call; try again"), "{error}");
    });
}

/// The number of reloads of the test below. For a longer test, set `BELLJAR_RELOADS=2000`.
fn reloads() -> usize {
    std::env::var("BELLJAR_RELOADS").ok().and_then(|count| count.parse().ok()).unwrap_or(300)
}

#[test]
fn no_read_fails_and_nothing_leaks_over_hundreds_of_reloads() {
    let site = site("");
    let words = ["AAAA", "BBBB"];
    let both = words.map(answering);
    site.drop_in("swap.wasm", &both[0]);
    let server = site.http();
    let (is_over, reads) = (AtomicBool::new(false), AtomicUsize::new(0));
    std::thread::scope(|scope| {
        for era in [Era::Stateless, Era::Session, Era::Stateless, Era::Session] {
            let (mut client, is_over, reads) = (server.client(era), &is_over, &reads);
            scope.spawn(move || {
                while !is_over.load(Ordering::Relaxed) {
                    let text = read(&mut client, SWAP);
                    assert!(words.contains(&text.as_str()), "{text}");
                    let text = read(&mut client, "belljar://clock/utc");
                    assert!(text.contains("zone: UTC"), "{text}");
                    reads.fetch_add(2, Ordering::Relaxed);
                }
            });
        }
        let mut client = server.client(Era::Stateless);
        let mut swap = |n: usize| {
            site.drop_in("swap.wasm", &both[n % 2]);
            server.process.hang_up();
            wait_until(&format!("reload {n}"), || {
                let text = read(&mut client, SWAP);
                (text == words[n % 2]).then_some(()).ok_or_else(|| format!("{text}; {}", server.process.stderr()))
            });
        };
        let measure = || (server.process.files(), server.process.mappings(), server.process.memory() >> 20);
        // Stops the reading threads, also if this closure panics.
        let stop_readers = StopOnDrop(&is_over);
        (1..=50).for_each(&mut swap);
        let before = measure();
        (51..=50 + reloads()).for_each(&mut swap);
        // belljar may still hold the last replaced component for a while.
        wait_until("as many files, mappings and MiB as before", || {
            let after = measure();
            let is_fine = after.0 <= before.0 + 4 && after.1 <= before.1 + 60 && after.2 <= before.2 + 24;
            is_fine.then_some(()).ok_or_else(|| format!("{before:?} before {} reloads, {after:?} after", reloads()))
        });
        drop(stop_readers);
    });
    assert!(reads.load(Ordering::Relaxed) > reloads());
    let stderr = server.stop().stderr;
    assert!(!stderr.contains("panicked"), "{stderr}");
}

/// Sets the flag when the value is dropped, also during a panic.
struct StopOnDrop<'a>(&'a AtomicBool);

impl Drop for StopOnDrop<'_> {
    fn drop(&mut self) {
        self.0.store(true, Ordering::Relaxed);
    }
}

#[test]
fn a_long_compilation_delays_no_other_change() {
    let site = isolated_site();
    site.mount("clock");
    let mut client = serve(&site);
    site.mount_as("guest_hostile", "large.wasm");
    let compiler = pause_compiler(client.wire().process.id());
    site.drop_in("swap.wasm", answering("AAAA"));
    becomes(&mut client, SWAP, "AAAA");
    assert_eq!(read(&mut client, "belljar://large/ok"), "(unavailable)", "its compiler is stopped");
    resume_compiler(compiler);
    becomes(&mut client, "belljar://large/ok", "fine");
}
