//! Grants belong to bytes: other bytes in the place of a component that holds grants are not run until the operator says
//! so, whatever becomes of the lock that remembers the first ones.

use std::fs;
use std::os::unix::fs::{MetadataExt, PermissionsExt};
use std::path::Path;
use std::process::Output;
use std::time::Duration;

use belljar_tests::client::INTERNAL;
use belljar_tests::{Client, Era, Site, Stdio, process};
use serde_json::{Value, json};

use crate::component::Hand;
use crate::place::{bare, kind, said, site};

/// A provider that answers every read with these four letters.
pub(crate) fn answering(word: &str) -> Vec<u8> {
    Hand { fields: &format!("(data (i32.const 224) \"{word}\")"), ..Hand::default() }.assemble()
}

const GRANTED: &str = "[mounts.swap]\nenv = { A = \"b\" }\n";

const URI: &str = "belljar://swap/x";

/// A site with the witness, and with a mount that holds a grant and answers `AAAA`.
fn granted() -> Site {
    let site = site(GRANTED);
    site.drop_in("swap.wasm", answering("AAAA"));
    site
}

/// The same, bound to those bytes, and with others in their place.
fn swapped() -> Site {
    let site = granted();
    assert_eq!(read(&site, &[]), Ok("AAAA".to_owned()));
    site.drop_in("swap.wasm", answering("BBBB"));
    site
}

/// Runs `belljar read`: what it read, or what it said.
fn read(site: &Site, flags: &[&str]) -> Result<String, String> {
    let output = site.run(&[&["read", URI], flags].concat());
    match output.status.success() {
        true => Ok(String::from_utf8(output.stdout).unwrap()),
        false => Err(said(&output)),
    }
}

fn lock(site: &Site) -> String {
    fs::read_to_string(site.path("belljar.lock")).unwrap()
}

/// What `belljar check --json` says, and whether it was content.
fn check(site: &Site) -> (bool, Value) {
    let output = site.run(&["check", "--json"]);
    let json = serde_json::from_slice(&output.stdout).unwrap_or_else(|_| panic!("{}", said(&output)));
    (output.status.success(), json)
}

fn digest(word: &str) -> String {
    let site = bare();
    site.drop_in("x.wasm", answering(word));
    let json = site.run_json(&["inspect", site.path("plugins/x.wasm").to_str().unwrap()]);
    json["digest"].as_str().unwrap().to_owned()
}

#[test]
fn the_first_start_binds_grants_to_the_bytes() {
    let site = granted();
    let (fine, checked) = check(&site);
    assert!(fine, "{checked}");
    assert_eq!(checked["mounts"][1]["bound"], "at-first-start", "{checked}");
    assert_eq!(checked["mounts"][0]["bound"], Value::Null, "{checked}");
    assert!(!site.path("belljar.lock").exists(), "check wrote");
    assert_eq!(read(&site, &[]), Ok("AAAA".to_owned()));
    let text = lock(&site);
    assert!(text.contains("[mounts.swap]") && text.contains(&digest("AAAA")), "{text}");
    assert!(!text.contains("clock"), "what holds nothing needs no pin: {text}");
    let meta = fs::metadata(site.path("belljar.lock")).unwrap();
    let config = fs::metadata(site.path("belljar.toml")).unwrap();
    assert_eq!(meta.mode() & 0o777, config.mode() & 0o644);
    assert_eq!(check(&site).1["mounts"][1]["bound"], "yes");
    // What holds no grants may be exchanged by whoever may write there.
    site.config("");
    for word in ["BBBB", "AAAA"] {
        site.drop_in("swap.wasm", answering(word));
        assert_eq!(read(&site, &[]), Ok(word.to_owned()));
    }
    assert_eq!(lock(&site), text, "a pin that binds nothing stays as it is");
    // And when the grant comes back, it finds the old pin.
    site.drop_in("swap.wasm", answering("BBBB"));
    site.config(GRANTED);
    assert!(read(&site, &[]).unwrap_err().contains("in quarantine"));
}

/// Reads the mount over and over; counts what is answered.
fn reads(client: &mut Client<Stdio>, word: &str) -> usize {
    (0..20).filter(|_| client.read(URI).is_ok_and(|read| read["contents"][0]["text"] == word)).count()
}

#[test]
fn other_bytes_are_not_run_before_they_are_trusted() {
    for era in [Era::Modern, Era::Older] {
        let site = granted();
        let mut client = site.stdio(era);
        assert_eq!(reads(&mut client, "AAAA"), 20);
        site.drop_in("swap.wasm", answering("BBBB"));
        let held_back = |client: &mut Client<Stdio>| match client.read(URI) {
            Ok(read) => {
                assert_eq!(read["contents"][0]["text"], "AAAA", "other bytes ran before they were trusted");
                false
            }
            Err(error) => kind(&error) == "unavailable",
        };
        assert!(crate::reload::soon(|| held_back(&mut client)), "what was exchanged is held back while it serves, too");
        assert_eq!((reads(&mut client, "AAAA"), reads(&mut client, "BBBB")), (0, 0));
        client.close();

        let mut client = site.stdio(era);
        let error = client.read(URI).unwrap_err();
        assert_eq!((error.code, kind(&error)), (INTERNAL, "unavailable"), "{error}");
        assert_eq!(error.data["mount"], "swap", "{error}");
        assert!(error.message.contains("in quarantine"), "{error}");
        assert!(error.data["hint"].as_str().unwrap().contains("belljar trust swap"), "{error}");
        assert_eq!(reads(&mut client, "BBBB"), 0, "before it is trusted");
        let uris = client.uris();
        assert!(uris.iter().all(|uri| uri.starts_with("belljar://clock/")) && !uris.is_empty(), "{uris:?}");
        assert!(client.text("belljar://clock/utc").contains("UTC"));
        let stderr = client.close().stderr;
        assert!(stderr.contains("in quarantine: its grants were given to sha256:"), "{stderr}");
        assert!(
            stderr.contains("in the listing: left out: in quarantine") && stderr.contains("belljar trust swap"),
            "{stderr}"
        );
        let records = site.audit();
        let refused = records.iter().rfind(|record| record["reference"] == URI).unwrap();
        assert_eq!(refused["mount"], "swap", "{refused}");

        let (fine, checked) = check(&site);
        assert!(!fine, "{checked}");
        let one = &checked["quarantined"][0];
        assert_eq!((&one["name"], &one["base"]), (&json!("swap"), &json!("belljar://swap/")), "{checked}");
        assert_eq!((&one["pinned"], &one["digest"]), (&json!(digest("AAAA")), &json!(digest("BBBB"))), "{checked}");
        let checked = said(&site.run(&["check"]));
        assert!(checked.contains("quarantine  swap") && checked.contains("1 in quarantine"), "{checked}");
        let listed = site.run_json(&["list"]);
        assert_eq!(listed["quarantined"][0]["name"], "swap", "{listed}");
        let listed = said(&site.run(&["list", "--mount", "swap"]));
        assert!(listed.contains("in quarantine: ") && listed.contains("belljar trust swap"), "{listed}");
        let why = read(&site, &[]).unwrap_err();
        assert!(why.contains("in quarantine") && why.contains("belljar trust swap"), "{why}");

        let before = lock(&site);
        let asked = site.run(&["trust", "swap"]);
        assert_eq!(asked.status.code(), Some(2), "{}", said(&asked));
        assert!(said(&asked).contains("--yes") && said(&asked).contains(&digest("BBBB")), "{}", said(&asked));
        assert_eq!(lock(&site), before, "it was not asked");
        let trusted = site.run(&["trust", "swap", "--yes"]);
        assert!(trusted.status.success(), "{}", said(&trusted));
        assert!(site.run(&["trust", "swap"]).status.success(), "nothing is left to be asked");
        assert_eq!(reads(&mut site.stdio(era), "BBBB"), 20, "once it is trusted");
        site.drop_in("swap.wasm", answering("AAAA"));
        assert!(read(&site, &[]).unwrap_err().contains("in quarantine"), "the old bytes are other bytes now");
    }
}

#[test]
fn what_changed_is_shown() {
    let site = bare();
    site.mount_as("clock", "notes.wasm");
    site.write("data/a.md", "# A");
    site.config("[mounts.notes]\nfs = { \"/\" = \"data\" }\nenv = { A = \"b\" }\n");
    site.run(&["list"]);
    site.mount_as("files", "notes.wasm");
    let shown = said(&site.run(&["trust", "notes"]));
    for part in [
        "old      sha256:",
        "new      sha256:",
        "+ wasi:filesystem/preopens@0.2",
        "(through this it can use its grant \"fs\")",
        "holds    fs: / = data (read-only)",
        "env: A",
    ] {
        assert!(shown.contains(part), "no {part:?} in {shown}");
    }
    site.drop_in("notes.wasm", "junk");
    let shown = said(&site.run(&["trust", "notes", "--yes"]));
    assert!(shown.contains("cannot be trusted: it is a text file"), "{shown}");
    let none = said(&site.run(&["trust", "absent", "--yes"]));
    assert!(none.contains("there is no component for the mount \"absent\""), "{none}");
    assert_eq!(site.run(&["trust", "No Name"]).status.code(), Some(2));
}

#[test]
fn development_compares_nothing_and_says_so() {
    let site = swapped();
    let before = lock(&site);
    assert_eq!(read(&site, &["--dev"]), Ok("BBBB".to_owned()));
    for verb in [&["list", "--dev"][..], &["check", "--dev"], &["read", URI, "--dev"]] {
        let output = site.run(verb);
        assert!(output.status.success(), "{}", said(&output));
        let stderr = String::from_utf8_lossy(&output.stderr);
        assert!(stderr.contains("warning: --dev: no component is compared"), "{verb:?}: {stderr}");
    }
    assert!(said(&site.run(&["check", "--dev"])).contains("warning  --dev"));
    assert_eq!(lock(&site), before);
    let fresh = granted();
    assert_eq!(read(&fresh, &["--dev"]), Ok("AAAA".to_owned()));
    assert!(!fresh.path("belljar.lock").exists());
    assert!(read(&site, &[]).is_err(), "it is of that run only");
}

#[test]
fn what_cannot_be_bound_is_not_served() {
    let site = granted();
    // A link to nowhere cannot be written by anyone; a directory without that right, by anyone but root.
    std::os::unix::fs::symlink("nowhere/lock", site.path("belljar.lock")).unwrap();
    let mut ways = vec!["a link to nowhere"];
    if rustix::process::geteuid().as_raw() != 0 {
        ways.push("a directory that is read-only");
    }
    for way in ways {
        if way != "a link to nowhere" {
            fs::remove_file(site.path("belljar.lock")).unwrap();
            fs::set_permissions(site.path(""), fs::Permissions::from_mode(0o555)).unwrap();
        }
        let mut client = site.stdio(Era::Modern);
        let error = client.read(URI).unwrap_err();
        assert_eq!(kind(&error), "unavailable", "{way}: {error}");
        assert!(!error.to_string().contains(site.path("").to_str().unwrap()), "{way}: {error}");
        assert!(client.text("belljar://clock/utc").contains("UTC"), "{way}");
        let stderr = client.close().stderr;
        assert!(stderr.contains("cannot be bound to its grants") && stderr.contains("belljar.lock"), "{way}: {stderr}");
        fs::set_permissions(site.path(""), fs::Permissions::from_mode(0o755)).unwrap();
    }
}

#[test]
fn a_damaged_lock_serves_nothing_that_holds_grants() {
    let site = granted();
    assert_eq!(read(&site, &[]), Ok("AAAA".to_owned()));
    let whole = lock(&site);
    let doubled = format!("{whole}\n[mounts.swap]\n");
    for (text, expected) in [
        ("", "line 1: "),
        ("junk", "line 1: "),
        (&whole[..whole.len() / 2], "line "),
        (&whole.replace("sha256:", "sha256:0"), "64 hexadecimal digits"),
        (&whole.replace("version = 1", "version = 1\nmine = 1"), "unknown field `mine`"),
        (&whole.replace("swap", "swop"), "the checksum does not fit"),
        (&doubled, "duplicate key"),
        (&whole.replace("version = 1", "version = 7"), "version 7"),
        ("\u{1b}[31m", "line 1: "),
    ] {
        fs::write(site.path("belljar.lock"), text).unwrap();
        let (fine, checked) = check(&site);
        assert!(!fine, "{expected}: {checked}");
        let reason = checked["quarantined"][0]["reason"].as_str().unwrap();
        assert!(
            reason.contains(expected) && reason.contains("line ") && reason.contains("belljar.lock"),
            "{expected}: {reason}"
        );
        assert!(!reason.contains('\u{1b}'), "{reason:?}");
        assert_eq!(checked["mounts"][0]["name"], "clock", "{checked}");
        let why = read(&site, &[]).unwrap_err();
        assert!(why.contains("unavailable") && !why.contains("panicked"), "{expected}: {why}");
        for verb in [&["trust", "swap", "--yes"][..], &["grant", "swap", "--env", "C=d", "--yes"]] {
            let output = site.run(verb);
            assert!(!output.status.success() && said(&output).contains(expected), "{verb:?}: {}", said(&output));
        }
        assert_eq!(fs::read_to_string(site.path("belljar.lock")).unwrap(), text, "it was written");
    }
    fs::remove_file(site.path("belljar.lock")).unwrap();
    assert_eq!(read(&site, &[]), Ok("AAAA".to_owned()), "as the message says");
}

/// No damage of a byte makes bytes trusted that are not.
#[test]
fn damaged_bytes_of_the_lock_trust_nothing() {
    let site = swapped();
    let whole = lock(&site).into_bytes();
    let mut random = fastrand::Rng::with_seed(4);
    for _ in 0..60 {
        let mut bytes = whole.clone();
        let at = random.usize(..bytes.len());
        bytes[at] ^= 1 << random.u32(..8);
        fs::write(site.path("belljar.lock"), &bytes).unwrap();
        let why = read(&site, &[]).expect_err("other bytes were served");
        assert!(why.contains("in quarantine") && !why.contains("panicked"), "byte {at}: {why}");
    }
}

/// A mount in quarantine keeps its names: no other mount answers in its stead.
#[test]
fn a_mount_around_one_in_quarantine_does_not_answer_for_it() {
    let site = swapped();
    site.drop_in("around.wasm", answering("OOOO"));
    let nested = "[mounts.around]\nuri = \"x://a/\"\n[mounts.swap]\nuri = \"x://a/b/\"\nenv = { A = \"b\" }\n";
    site.config(nested);
    let mut client = site.stdio(Era::Modern);
    assert_eq!(client.text("x://a/c"), "OOOO");
    let error = client.read("x://a/b/c").unwrap_err();
    assert_eq!((kind(&error), &error.data["mount"]), ("unavailable", &json!("swap")), "{error}");
}

/// Says so when it is dropped.
struct Stopped<'a>(&'a std::sync::atomic::AtomicBool);

impl Drop for Stopped<'_> {
    fn drop(&mut self) {
        self.0.store(true, std::sync::atomic::Ordering::Relaxed);
    }
}

/// While the file is exchanged over and over, what is served is what the lock has.
#[test]
fn what_is_served_is_what_was_bound() {
    let site = granted();
    let both = ["AAAA", "BBBB"].map(|word| (digest(word), word, answering(word)));
    let stop = std::sync::atomic::AtomicBool::new(false);
    let mut served = 0;
    std::thread::scope(|scope| {
        scope.spawn(|| {
            let mut n = 0;
            while !stop.load(std::sync::atomic::Ordering::Relaxed) {
                site.drop_in("swap.wasm", &both[n % 2].2);
                n += 1;
            }
        });
        // However that ends.
        let _stopped = Stopped(&stop);
        for _ in 0..30 {
            fs::remove_file(site.path("belljar.lock")).ok();
            let output = site.run(&["read", URI, "--json"]);
            let Ok(read) = serde_json::from_slice::<Value>(&output.stdout) else {
                assert!(said(&output).contains("in quarantine"), "{}", said(&output));
                continue;
            };
            let lock = lock(&site);
            let (digest, word, _) = both.iter().find(|(digest, ..)| lock.contains(digest.as_str())).unwrap();
            assert_eq!((&read["digest"], &read["contents"][0]["text"]), (&json!(digest), &json!(word)), "{lock}");
            served += 1;
        }
    });
    assert!(served > 0, "nothing was ever served");
}

fn number(name: &str, otherwise: usize) -> usize {
    std::env::var(name).ok().and_then(|number| number.parse().ok()).unwrap_or(otherwise)
}

/// Kills a command somewhere between its start and its usual end.
fn killed(site: &Site, verb: &[&str], usual: Duration) {
    let mut command = site.command(site.arguments(verb));
    command.stdout(std::process::Stdio::null()).stderr(std::process::Stdio::null());
    let mut child = command.spawn().unwrap();
    std::thread::sleep(usual.mul_f64(fastrand::f64() * 1.2));
    child.kill().unwrap();
    child.wait().unwrap();
}

/// What lies beside the configuration that a writer left behind.
fn leftovers(directory: &Path) -> Vec<String> {
    let names = fs::read_dir(directory).unwrap().map(|entry| entry.unwrap().file_name().into_string().unwrap());
    names.filter(|name| name.ends_with(".tmp")).collect()
}

/// Killed at any moment of granting, revoking, trusting and loading: configuration and lock are whole, the old ones or the
/// new ones, and what is not trusted is not served.
#[test]
fn whoever_is_killed_leaves_whole_files() {
    let site = swapped();
    let kills = number("BELLJAR_KILLS", 60);
    let words = ["AAAA", "BBBB"];
    let is_fine = |output: &Output| output.status.success();
    let usual = {
        let began = std::time::Instant::now();
        assert!(is_fine(&site.run(&["grant", "clock", "--env", "A=b", "--yes"])));
        began.elapsed()
    };
    let configs = |site: &Site| fs::read_to_string(site.path("belljar.toml")).unwrap();
    let (mut granted, mut trusted) = (0, 0);
    for kill in 0..kills {
        site.drop_in("swap.wasm", answering(words[kill % 2]));
        let (config, pins) = (configs(&site), fs::read_to_string(site.path("belljar.lock")).unwrap_or_default());
        let variable = format!("K{kill}=v");
        let verbs: [&[&str]; 4] = [
            &["grant", "clock", "--env", &variable, "--yes"],
            &["trust", "swap", "--yes"],
            &["revoke", "clock", "--env", "A", "--yes"],
            &["list"],
        ];
        if kill % 4 == 3 {
            // A first start, which writes the lock.
            fs::remove_file(site.path("belljar.lock")).ok();
        }
        killed(&site, verbs[kill % 4], usual);
        let (after, lock) = (configs(&site), fs::read_to_string(site.path("belljar.lock")).unwrap_or_default());
        granted += usize::from(after != config);
        trusted += usize::from(lock != pins);
        let checked = site.run(&["check", "--json"]);
        let json: Value =
            serde_json::from_slice(&checked.stdout).unwrap_or_else(|_| panic!("torn: {}", said(&checked)));
        let reasons = json["quarantined"].to_string() + &json["refused"].to_string();
        assert!(!reasons.contains("line ") && json["refused"] == json!([]), "kill {kill}: {reasons}\n{lock}");
        assert!(after.starts_with("audit = ") && after.contains("[mounts.swap]"), "kill {kill}: {after}");
        if kill % 4 == 2 {
            site.run(&["grant", "clock", "--env", "A=b", "--yes"]);
        }
    }
    assert!(granted > 0 && trusted > 0, "killed too early each time: {granted} and {trusted} of {kills} were written");
    // The next writer takes away what the others left behind.
    assert!(
        is_fine(&site.run(&["trust", "swap", "--yes"]))
            && is_fine(&site.run(&["grant", "clock", "--env", "Z=z", "--yes"]))
    );
    fs::write(site.path(".belljar.lock.1.tmp"), "x").unwrap();
    site.drop_in("swap.wasm", answering("CCCC"));
    assert!(is_fine(&site.run(&["trust", "swap", "--yes"])));
    assert_eq!(leftovers(&site.path("")), Vec::<String>::new());
    let output = process::run(site.command(site.arguments(&["read", URI])), Duration::from_secs(60));
    assert_eq!(String::from_utf8_lossy(&output.stdout), "CCCC");
}
