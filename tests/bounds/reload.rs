//! What is dropped in, exchanged, taken away or configured while belljar serves: the catalog follows, what is good is never
//! taken down by what is broken, and no read that has a right answer fails meanwhile.

use std::fs;
use std::io::Write as _;
use std::net::TcpListener;
use std::sync::atomic::{AtomicBool, AtomicUsize, Ordering};
use std::time::{Duration, Instant};

use belljar_tests::{Client, Era, RpcError, Site, Stdio, Wire};
use serde_json::Value;

use crate::place::{bare, kind, said, serve, site};
use crate::trust::answering;

/// How long a change may take to be seen. It takes a third of a second, where the machine has nothing else to do.
const SOON: Duration = Duration::from_secs(10);

/// Longer than it takes on any machine to see a change; for what must not change anything.
const LATER: Duration = Duration::from_millis(1500);

/// Whether `is` comes to be.
pub(crate) fn soon(mut is: impl FnMut() -> bool) -> bool {
    let by = Instant::now() + SOON;
    while !is() {
        if Instant::now() > by {
            return false;
        }
        std::thread::sleep(Duration::from_millis(20));
    }
    true
}

/// What a read gives: the text, or the kind of the error.
fn read<W: Wire>(client: &mut Client<W>, uri: &str) -> String {
    let told = |error: &RpcError| format!("({})", kind(error));
    match client.read(uri) {
        Ok(read) => read["contents"][0]["text"].as_str().unwrap_or_default().to_owned(),
        Err(error) => told(&error),
    }
}

/// Waits until a read gives `expected`; until then it gives what it gave.
fn becomes<W: Wire>(client: &mut Client<W>, uri: &str, expected: &str) {
    let before = read(client, uri);
    let mut last = before.clone();
    let seen = soon(|| {
        last = read(client, uri);
        assert!(last == before || last == expected, "{uri} gave {last:?}, neither {before:?} nor {expected:?}");
        last == expected
    });
    assert!(seen, "{uri} goes on giving {last:?}, not {expected:?}; {}", client.wire().diagnosis());
}

/// Reads for a while, and each time gets `expected`.
fn stays<W: Wire>(client: &mut Client<W>, uri: &str, expected: &str) {
    let until = Instant::now() + LATER;
    while Instant::now() < until {
        assert_eq!(read(client, uri), expected, "{uri}");
        std::thread::sleep(Duration::from_millis(20));
    }
}

fn logged(client: &mut Client<Stdio>, what: &str) {
    let stderr = |client: &mut Client<Stdio>| client.wire().process.stderr();
    assert!(soon(|| stderr(client).contains(what)), "no {what:?} in the log:\n{}", stderr(client));
}

const SWAP: &str = "belljar://swap/x";

fn comes_and_goes<W: Wire>(site: &Site, client: &mut Client<W>) {
    assert_eq!(read(client, SWAP), "(not-found)");
    site.drop_in("swap.wasm", answering("AAAA"));
    becomes(client, SWAP, "AAAA");
    site.drop_in("swap.wasm", answering("BBBB"));
    becomes(client, SWAP, "BBBB");
    // In place, as a copy is made that knows of no renaming.
    fs::write(site.path("plugins/swap.wasm"), answering("CCCC")).unwrap();
    becomes(client, SWAP, "CCCC");
    fs::rename(site.path("plugins/swap.wasm"), site.path("plugins/other.wasm")).unwrap();
    becomes(client, "belljar://other/x", "CCCC");
    assert_eq!(read(client, SWAP), "(not-found)", "one swap, not two");
    fs::remove_file(site.path("plugins/other.wasm")).unwrap();
    becomes(client, "belljar://other/x", "(not-found)");
    assert!(client.uris().iter().all(|uri| uri.starts_with("belljar://clock/")));
}

#[test]
fn components_come_change_and_go() {
    for era in [Era::Modern, Era::Older] {
        let site = site("");
        let mut client = site.stdio(era);
        client.text("belljar://clock/utc");
        comes_and_goes(&site, &mut client);
        let server = site.http();
        comes_and_goes(&site, &mut server.client(era));
    }
}

#[test]
fn what_is_broken_takes_nothing_down() {
    let site = site("");
    site.drop_in("swap.wasm", answering("AAAA"));
    let mut client = serve(&site);
    assert_eq!(read(&mut client, SWAP), "AAAA");
    let whole = answering("BBBB");
    let mut invalid = whole.clone();
    // The code of a function: whole as a component, and nothing that compiles.
    let at = invalid.windows(4).position(|bytes| bytes == [0x41, 0x80, 0x01, 0x0b]).expect("i32.const 128 and an end");
    invalid[at] = 0xfe;
    let broken: [(&str, &[u8]); 6] = [
        ("empty", b""),
        ("a text", b"not a component"),
        ("a core module", b"\0asm\x01\0\0\0"),
        ("another world", b"\0asm\x0d\0\x01\0"),
        ("half of one", &whole[..whole.len() / 2]),
        ("one that does not compile", &invalid),
    ];
    for (what, bytes) in broken {
        site.drop_in("swap.wasm", bytes);
        let told = client.wire().process.stderr().matches("the earlier bytes").count();
        let is_told =
            |client: &mut Client<Stdio>| client.wire().process.stderr().matches("the earlier bytes").count() > told;
        assert!(soon(|| is_told(&mut client)), "{what}: {}", client.wire().process.stderr());
        assert_eq!(read(&mut client, SWAP), "AAAA", "{what}");
        // And it can be configured although its file is broken.
        site.config("[mounts.swap]\nuri = \"s://\"\n");
        becomes(&mut client, "s://x", "AAAA");
        site.config("");
        becomes(&mut client, SWAP, "AAAA");
    }
    stays(&mut client, SWAP, "AAAA");
    site.drop_in("swap.wasm", whole);
    becomes(&mut client, SWAP, "BBBB");
    let stderr = client.close().stderr;
    assert!(!stderr.contains("panicked"), "{stderr}");
}

/// Writes a file in pieces, with more than enough time between them for each to be seen.
fn write_slowly(site: &Site, file: &str, bytes: &[u8], mut between: impl FnMut()) {
    let mut file = fs::File::create(site.path("plugins").join(file)).unwrap();
    for piece in bytes.chunks(bytes.len().div_ceil(5)) {
        file.write_all(piece).unwrap();
        let until = Instant::now() + Duration::from_millis(600);
        while Instant::now() < until {
            between();
            std::thread::sleep(Duration::from_millis(20));
        }
    }
}

#[test]
fn what_is_half_written_is_not_taken() {
    let site = site("[mounts.held]\nenv = { A = \"b\" }\n");
    for name in ["swap", "held"] {
        site.drop_in(&format!("{name}.wasm"), answering("AAAA"));
    }
    let mut client = serve(&site);
    let held = "belljar://held/x";
    for (name, uri) in [("swap", SWAP), ("held", held)] {
        let mut seen = Vec::new();
        write_slowly(&site, &format!("{name}.wasm"), &answering("BBBB"), || seen.push(read(&mut client, uri)));
        // What holds grants is held back once the other one is whole, and not before.
        let after = if name == "swap" { "BBBB" } else { "(unavailable)" };
        becomes(&mut client, uri, after);
        let old = seen.iter().take_while(|text| *text == "AAAA").count();
        assert!(old > seen.len() * 3 / 5, "{name}: {seen:?}");
        assert!(seen[old..].iter().all(|text| text == after), "{name}: {seen:?}");
    }
}

#[test]
fn grants_are_given_and_taken_while_it_serves() {
    let site = site("[mounts.imp]\ncomponent = \"imp.wasm\"\n");
    let mut client = serve(&site);
    let uri = "belljar://imp/env";
    let without = read(&mut client, uri);
    let run = |verb: &[&str]| {
        let output = site.run(verb);
        assert!(output.status.success(), "{}", said(&output));
        said(&output)
    };
    let words = run(&["grant", "imp", "--env", "WORD=first", "--yes"]);
    // The commands come back when it is so, and say who serves it.
    let pid = client.wire().process.id();
    let told = format!("Saved. The running server (pid {pid}) uses it from the next call on.");
    assert!(words.contains(&told), "{words}");
    assert_eq!(read(&mut client, uri), "[(\"WORD\", \"first\")]");
    run(&["grant", "imp", "--env", "WORD=second", "--yes"]);
    assert_eq!(read(&mut client, uri), "[(\"WORD\", \"second\")]");
    let words = run(&["revoke", "imp", "--env", "WORD", "--yes"]);
    assert!(words.contains(&told), "{words}");
    assert_eq!(read(&mut client, uri), without);
    let words = run(&["set", "mounts.imp.limits.fuel = 123456789", "--yes"]);
    assert!(words.contains(&format!("Saved. The running server (pid {pid}) has read it")), "{words}");
    client.close();
    let words = run(&["grant", "imp", "--env", "WORD=third", "--yes"]);
    assert!(words.contains("\nSaved.\n"), "nobody serves it: {words}");
}

#[test]
fn a_grant_that_takes_a_restart_says_so_to_the_operator_and_to_the_client() {
    let site = site("[mounts.notes]\ncomponent = \"files.wasm\"\nfs = { \"/a\" = \"a\" }\n");
    site.write("a/one.md", "one");
    site.write("b/two.md", "two");
    let mut client = serve(&site);
    let uri = client.uris().into_iter().find(|uri| uri.starts_with("belljar://notes/")).unwrap();
    assert_eq!(read(&mut client, &uri), "one");
    let words = said(&site.run(&["grant", "notes", "--fs", "/b=b", "--yes"]));
    assert!(words.contains("does not use it: its grant of") && words.contains("restart belljar"), "{words}");
    assert_eq!(read(&mut client, &uri), "one", "it goes on as it was");
    let words = said(&site.run(&["revoke", "notes", "--fs", "/a", "--yes"]));
    assert!(words.contains("needs a restart"), "{words}");
}

#[test]
fn a_denial_says_that_what_was_granted_since_takes_a_restart() {
    let site = site("[mounts.imp]\ncomponent = \"imp.wasm\"\nenv = { A = \"b\" }\n");
    site.write("notes/plan", "the plan");
    let mut client = serve(&site);
    let uri = "belljar://imp/need/%252Fnotes%252Fplan";
    // Whoever holds no directory finds nothing there; this provider says that it may not.
    let hint = |client: &mut Client<Stdio>| {
        let error = client.read("belljar://imp/errors/denied/plain").expect_err("a denial");
        assert_eq!(kind(&error), "denied", "{error}");
        error.data["hint"].as_str().unwrap_or_default().to_owned()
    };
    assert!(hint(&mut client).contains("belljar grant imp --fs"));
    let words = said(&site.run(&["grant", "imp", "--fs", "/notes=notes", "--yes"]));
    assert!(words.contains("needs a restart"), "{words}");
    let now = hint(&mut client);
    assert!(now.contains("restart belljar") && !now.contains(site.path("").to_str().unwrap()), "{now}");
    client.close();
    assert_eq!(read(&mut serve(&site), uri), "the plan", "after the restart");
}

#[test]
fn what_is_configured_counts_at_once() {
    let site = site("");
    site.drop_in("swap.wasm", answering("AAAA"));
    let mut client = serve(&site);
    assert_eq!(read(&mut client, SWAP), "AAAA");
    site.config("[mounts.swap]\nuri = \"s://\"\n");
    becomes(&mut client, "s://x", "AAAA");
    assert_eq!(read(&mut client, SWAP), "(not-found)");
    // One component under two names.
    site.config("[mounts.swap]\nuri = \"s://\"\n[mounts.twice]\ncomponent = \"swap.wasm\"\n");
    becomes(&mut client, "belljar://twice/x", "AAAA");
    assert_eq!(read(&mut client, "s://x"), "AAAA");
    // What is wrong changes nothing, and the log says what it is.
    for (bad, says) in [("[mounts.swap", "TOML parse error"), ("[mount.swap]", "did you mean \"mounts\"?")] {
        site.config(bad);
        logged(&mut client, says);
        assert_eq!(read(&mut client, "s://x"), "AAAA");
    }
    fs::remove_file(site.path("belljar.toml")).unwrap();
    logged(&mut client, "is gone; put it back");
    assert_eq!(read(&mut client, "s://x"), "AAAA");
    site.config("[limits]\nfuel = 10\n");
    becomes(&mut client, SWAP, "(limit)");
    site.config("calls = 7\n");
    becomes(&mut client, SWAP, "AAAA");
    logged(&mut client, "what changed in audit, calls takes a restart");
}

#[test]
fn what_is_exchanged_under_its_grants_is_held_back_until_it_is_trusted() {
    let site = site("[mounts.swap]\nenv = { A = \"b\" }\n");
    let mut client = serve(&site);
    // The first bytes that lie there are those that the grants are given to, as at a start.
    site.drop_in("swap.wasm", answering("AAAA"));
    assert!(soon(|| read(&mut client, SWAP) == "AAAA"), "{}", client.wire().process.stderr());
    let lock = fs::read_to_string(site.path("belljar.lock")).unwrap();
    site.drop_in("swap.wasm", answering("BBBB"));
    becomes(&mut client, SWAP, "(unavailable)");
    assert_eq!(fs::read_to_string(site.path("belljar.lock")).unwrap(), lock);
    site.drop_in("swap.wasm", answering("AAAA"));
    becomes(&mut client, SWAP, "AAAA");
    site.drop_in("swap.wasm", answering("CCCC"));
    becomes(&mut client, SWAP, "(unavailable)");
    let trusted = site.run(&["trust", "swap", "--yes"]);
    assert!(trusted.status.success(), "{}", said(&trusted));
    becomes(&mut client, SWAP, "CCCC");
    site.drop_in("swap.wasm", answering("AAAA"));
    becomes(&mut client, SWAP, "(unavailable)");
    // Without the grant there is nothing to be kept from.
    site.config("");
    becomes(&mut client, SWAP, "AAAA");
}

#[test]
fn what_the_wall_keeps_out_needs_a_restart_and_says_so() {
    let notes = |also: &str| format!("[mounts.notes]\ncomponent = \"files.wasm\"\nfs = {{ \"/a\" = \"a\"{also} }}\n");
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
    logged(
        &mut client,
        "needs a restart: the second wall was raised without it; restart belljar; until then it goes on as it was",
    );
    stays(&mut client, &first, "one");
    assert_eq!(paths(&mut client), before, "{one} {two}");
    // What was taken away is gone at once, whatever else is given.
    site.config("[mounts.notes]\ncomponent = \"files.wasm\"\nfs = { \"/b\" = \"b\" }\n");
    becomes(&mut client, &first, "(unavailable)");
    site.config(&notes(""));
    becomes(&mut client, &first, "one");
    client.close();
    // Without a wall, nothing is out of reach.
    site.config(&format!("wall = \"off\"\n{}", notes("")));
    let mut client = serve(&site);
    site.config(&format!("wall = \"off\"\n{}", notes(", \"/b\" = \"b\"")));
    assert!(soon(|| paths(&mut client).len() == 2), "{}", client.wire().process.stderr());
}

#[test]
fn a_plugin_directory_that_is_gone_takes_nothing_down() {
    for wall in ["best-effort", "off"] {
        let site = site("");
        site.config(&format!("wall = \"{wall}\"\n"));
        site.drop_in("swap.wasm", answering("AAAA"));
        let mut client = serve(&site);
        assert_eq!(read(&mut client, SWAP), "AAAA");
        fs::rename(site.path("plugins"), site.path("away")).unwrap();
        logged(&mut client, "is gone; what is loaded goes on");
        stays(&mut client, SWAP, "AAAA");
        fs::create_dir(site.path("plugins")).unwrap();
        site.drop_in("swap.wasm", answering("BBBB"));
        if wall == "off" {
            becomes(&mut client, SWAP, "BBBB");
            fs::remove_dir_all(site.path("plugins")).unwrap();
        } else {
            logged(&mut client, "the second wall was raised around the one before: restart belljar");
            stays(&mut client, SWAP, "AAAA");
            fs::remove_dir_all(site.path("plugins")).unwrap();
            fs::rename(site.path("away"), site.path("plugins")).unwrap();
            site.drop_in("swap.wasm", answering("CCCC"));
            becomes(&mut client, SWAP, "CCCC");
        }
    }
}

#[test]
fn nothing_is_watched_where_the_operator_says_so_and_a_signal_has_all_read_again() {
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

/// A call that is under way when its grant is taken away gives nothing any more.
#[test]
fn what_is_read_with_a_grant_that_is_taken_away_is_given_to_nobody() {
    let upstream = TcpListener::bind("127.0.0.1:0").unwrap();
    let origin = format!("http://{}", upstream.local_addr().unwrap());
    let site = site(&format!(
        "[mounts.imp]\ncomponent = \"imp.wasm\"\nhttp = [{{ origin = \"{origin}\" }}]\nlimits = {{ time = \"60s\" }}\n"
    ));
    let server = site.http();
    let uri = format!("belljar://imp/reach/{}", format!("{origin}/").replace(':', "%253A").replace('/', "%252F"));
    std::thread::scope(|scope| {
        let mut client = server.client(Era::Modern);
        client.text("belljar://clock/utc");
        let reading = scope.spawn(move || client.read(&uri));
        let (mut stream, _) = upstream.accept().unwrap();
        let output = site.run(&["revoke", "imp", "--http", &origin, "--yes"]);
        assert!(said(&output).contains("uses it from the next call on"), "{}", said(&output));
        assert!(said(&output).contains("its second wall"), "{}", said(&output));
        stream.write_all(b"HTTP/1.1 200 OK\r\ncontent-length: 2\r\n\r\nok").unwrap();
        let error = reading.join().unwrap().expect_err("an answer under a grant that is gone");
        assert_eq!(kind(&error), "unavailable", "{error}");
        assert!(error.message.contains("ask again"), "{error}");
    });
}

/// How many reloads there are, with reads in flight: `BELLJAR_RELOADS=2000` for as many as the issue asks for.
fn reloads() -> usize {
    std::env::var("BELLJAR_RELOADS").ok().and_then(|count| count.parse().ok()).unwrap_or(300)
}

#[test]
#[expect(clippy::print_stderr, reason = "the figures are worth to be seen")]
fn no_read_fails_and_nothing_leaks_however_often_all_is_loaded_again() {
    let site = site("");
    let words = ["AAAA", "BBBB"];
    let both = words.map(answering);
    site.drop_in("swap.wasm", &both[0]);
    let server = site.http();
    let (is_over, reads) = (AtomicBool::new(false), AtomicUsize::new(0));
    std::thread::scope(|scope| {
        for era in [Era::Modern, Era::Older, Era::Modern, Era::Older] {
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
        let mut client = server.client(Era::Modern);
        let mut swap = |n: usize| {
            site.drop_in("swap.wasm", &both[n % 2]);
            server.process.hang_up();
            let by = Instant::now() + SOON;
            while read(&mut client, SWAP) != words[n % 2] {
                assert!(Instant::now() < by, "reload {n} is not seen: {}", server.process.stderr());
                std::thread::sleep(Duration::from_millis(1));
            }
        };
        let measure = || {
            // What was exchanged last may still be in use.
            std::thread::sleep(Duration::from_secs(1));
            (server.process.files(), server.process.mappings(), server.process.memory() >> 20)
        };
        // Ends the readers also when this panics.
        let ended = Ended(&is_over);
        (1..=50).for_each(&mut swap);
        let before = measure();
        let began = Instant::now();
        (51..=50 + reloads()).for_each(&mut swap);
        let took = began.elapsed();
        let after = measure();
        drop(ended);
        let told = format!(
            "{} reloads in {took:?}, {} reads; (files, mappings, MiB): {before:?} before, {after:?} after",
            reloads(),
            reads.load(Ordering::Relaxed)
        );
        eprintln!("{told}");
        assert!(after.0 <= before.0 + 4, "{told}");
        assert!(after.1 <= before.1 + 60, "{told}");
        assert!(after.2 <= before.2 + 24, "{told}");
    });
    assert!(reads.load(Ordering::Relaxed) > reloads());
    let stderr = server.stop().stderr;
    assert!(!stderr.contains("panicked"), "{stderr}");
}

struct Ended<'a>(&'a AtomicBool);

impl Drop for Ended<'_> {
    fn drop(&mut self) {
        self.0.store(true, Ordering::Relaxed);
    }
}

#[test]
fn a_long_compilation_holds_up_no_other_change() {
    let site = bare();
    site.mount("clock");
    let mut client = serve(&site);
    let blocks =
        "(block (br_if 0 (local.get $a)) (local.set $b (i32.mul (local.get $b) (local.get $c))))".repeat(200_000);
    let text = format!("(func $bomb (param $a i32) (local $b i32) (local $c i32) {blocks})");
    site.drop_in("bomb.wasm", crate::component::Hand { fields: &text, ..Default::default() }.assemble());
    std::thread::sleep(Duration::from_secs(1));
    let began = Instant::now();
    site.drop_in("swap.wasm", answering("AAAA"));
    becomes(&mut client, SWAP, "AAAA");
    let took = began.elapsed();
    let records: Value = Value::from(u64::try_from(took.as_millis()).unwrap());
    let bomb = read(&mut client, "belljar://bomb/x");
    assert_eq!(bomb, "(unavailable)", "the bomb was compiled before, so that this shows nothing; {records} ms");
}
