//! The grants of a mount belong to the digest of one component. belljar does not run a changed component with grants
//! until the operator trusts it, even if the lock file is damaged. Runs the real `belljar` commands and servers.

use std::fs;
use std::os::unix::fs::{MetadataExt, PermissionsExt};
use std::path::Path;
use std::process::Output;
use std::time::Duration;

use belljar_tests::{DEADLINE, Era, Site, process};
use serde_json::{Value, json};

use crate::server::compiler_process::{pause_compiler, resume_compiler};
use crate::support::component::HandWritten;
use crate::support::{isolated_site, kind, site, stdout_and_stderr};

/// A provider that answers every read with `word`, which has four letters.
pub(crate) fn answering(word: &str) -> Vec<u8> {
    HandWritten { fields: &format!("(data (i32.const 224) \"{word}\")"), ..HandWritten::default() }.assemble()
}

const GRANTED: &str = "[mounts.swap]\nenv = { A = \"b\" }\n";

const URI: &str = "belljar://swap/x";

/// A site with the witness, and with a mount that holds a grant and answers `AAAA`.
fn granted() -> Site {
    let site = site(GRANTED);
    site.drop_in("swap.wasm", answering("AAAA"));
    site
}

/// A site whose pinned component was replaced: after the first start, the mount's file answers `BBBB`.
fn swapped() -> Site {
    let site = granted();
    assert_eq!(read(&site, &[]), Ok("AAAA".to_owned()));
    site.drop_in("swap.wasm", answering("BBBB"));
    site
}

/// Runs `belljar read`. Returns the contents, or the error output.
fn read(site: &Site, flags: &[&str]) -> Result<String, String> {
    let output = site.run(&[&["read", URI], flags].concat());
    match output.status.success() {
        true => Ok(String::from_utf8(output.stdout).unwrap()),
        false => Err(stdout_and_stderr(&output)),
    }
}

/// The text of the lock file.
fn lock(site: &Site) -> String {
    fs::read_to_string(site.path("belljar.lock")).unwrap()
}

/// Runs `belljar check --json`. Returns true if it succeeded, and its output.
fn check(site: &Site) -> (bool, Value) {
    let output = site.run(&["check", "--json"]);
    let json = serde_json::from_slice(&output.stdout).unwrap_or_else(|_| panic!("{}", stdout_and_stderr(&output)));
    (output.status.success(), json)
}

/// The digest of the component [`answering`] with `word`.
fn digest(word: &str) -> String {
    let site = isolated_site();
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
    assert!(!site.path("belljar.lock").exists(), "check wrote a lock file");
    assert_eq!(read(&site, &[]), Ok("AAAA".to_owned()));
    let text = lock(&site);
    assert!(text.contains("[mounts.swap]") && text.contains(&digest("AAAA")), "{text}");
    assert!(!text.contains("clock"), "a mount without grants has a pin: {text}");
    let meta = fs::metadata(site.path("belljar.lock")).unwrap();
    let config = fs::metadata(site.path("belljar.toml")).unwrap();
    assert_eq!(meta.mode() & 0o777, config.mode() & 0o644);
    assert_eq!(check(&site).1["mounts"][1]["bound"], "yes");
    // The component of a mount without grants may be replaced.
    site.config("");
    for word in ["BBBB", "AAAA"] {
        site.drop_in("swap.wasm", answering(word));
        assert_eq!(read(&site, &[]), Ok(word.to_owned()));
    }
    assert_eq!(lock(&site), text, "the pin of a mount without grants is unchanged");
    // The mount gets its grant again. Its old pin still counts.
    site.drop_in("swap.wasm", answering("BBBB"));
    site.config(GRANTED);
    assert!(read(&site, &[]).unwrap_err().contains("in quarantine"));
}

#[test]
fn trust_shows_the_changes() {
    let site = isolated_site();
    site.mount_as("clock", "notes.wasm");
    site.write("data/a.md", "# A");
    site.config("[mounts.notes]\nfs = { \"/\" = \"data\" }\nenv = { A = \"b\" }\n");
    site.run(&["list"]);
    site.mount_as("files", "notes.wasm");
    let shown = stdout_and_stderr(&site.run(&["trust", "notes"]));
    for part in [
        "old      sha256:",
        "new      sha256:",
        "+ wasi:filesystem/preopens@0.2",
        "(this import can use the grant \"fs\")",
        "holds    fs: / = data (read-only)",
        "env: A",
    ] {
        assert!(shown.contains(part), "no {part:?} in {shown}");
    }
    site.drop_in("notes.wasm", "junk");
    let shown = stdout_and_stderr(&site.run(&["trust", "notes", "--yes"]));
    assert!(shown.contains("cannot be trusted: it is a text file"), "{shown}");
    let none = stdout_and_stderr(&site.run(&["trust", "absent", "--yes"]));
    assert!(none.contains("there is no component for the mount \"absent\""), "{none}");
    assert_eq!(site.run(&["trust", "No Name"]).status.code(), Some(2));
}

#[test]
fn development_mode_compares_no_digests_and_warns() {
    let site = swapped();
    let before = lock(&site);
    assert_eq!(read(&site, &["--dev"]), Ok("BBBB".to_owned()));
    for verb in [&["list", "--dev"][..], &["check", "--dev"], &["read", URI, "--dev"]] {
        let output = site.run(verb);
        assert!(output.status.success(), "{}", stdout_and_stderr(&output));
        let stderr = String::from_utf8_lossy(&output.stderr);
        assert!(stderr.contains("warning: --dev: no component is compared"), "{verb:?}: {stderr}");
    }
    assert!(stdout_and_stderr(&site.run(&["check", "--dev"])).contains("warning  --dev"));
    assert_eq!(lock(&site), before);
    let fresh = granted();
    assert_eq!(read(&fresh, &["--dev"]), Ok("AAAA".to_owned()));
    assert!(!fresh.path("belljar.lock").exists());
    assert!(read(&site, &[]).is_err(), "--dev must not change later runs");
}

#[test]
fn components_that_cannot_be_bound_are_not_served() {
    let site = granted();
    // Nobody can write through a dangling symbolic link. Root can write into a read-only directory, so skip this for
    // root.
    std::os::unix::fs::symlink("nowhere/lock", site.path("belljar.lock")).unwrap();
    let mut ways = vec!["a dangling link"];
    if rustix::process::geteuid().as_raw() != 0 {
        ways.push("a read-only directory");
    }
    for way in ways {
        if way != "a dangling link" {
            fs::remove_file(site.path("belljar.lock")).unwrap();
            fs::set_permissions(site.path(""), fs::Permissions::from_mode(0o555)).unwrap();
        }
        let mut client = site.stdio(Era::Stateless);
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
fn with_a_damaged_lock_no_mount_with_grants_is_served() {
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
            assert!(
                !output.status.success() && stdout_and_stderr(&output).contains(expected),
                "{verb:?}: {}",
                stdout_and_stderr(&output)
            );
        }
        assert_eq!(fs::read_to_string(site.path("belljar.lock")).unwrap(), text, "a command changed the damaged lock");
    }
    fs::remove_file(site.path("belljar.lock")).unwrap();
    assert_eq!(read(&site, &[]), Ok("AAAA".to_owned()), "without the damaged lock, the mount is served again");
}

/// A mount in quarantine keeps its URIs. A mount with a shorter base does not serve them.
#[test]
fn uris_of_a_mount_in_quarantine_are_not_served_by_another_mount() {
    let site = swapped();
    site.drop_in("around.wasm", answering("OOOO"));
    let nested = "[mounts.around]\nuri = \"x://a/\"\n[mounts.swap]\nuri = \"x://a/b/\"\nenv = { A = \"b\" }\n";
    site.config(nested);
    let mut client = site.stdio(Era::Stateless);
    assert_eq!(client.text("x://a/c"), "OOOO");
    let error = client.read("x://a/b/c").unwrap_err();
    assert_eq!((kind(&error), &error.data["mount"]), ("unavailable", &json!("swap")), "{error}");
}

/// A trusted component is no longer in quarantine while belljar compiles it.
#[test]
fn a_trusted_component_is_reported_as_being_compiled() {
    let mut site = site(GRANTED);
    let place = site.path("shared");
    site.share(&place);
    site.mount_as("clock", "swap.wasm");
    assert!(site.run(&["list"]).status.success());
    // Compiling a small component could end before this test can stop the compiler.
    site.mount_as("guest_hostile", "swap.wasm");
    let mut client = site.stdio(Era::Session);
    assert!(client.read(URI).unwrap_err().message.contains("in quarantine"));
    let trusted = site.run(&["trust", "swap", "--yes"]);
    assert!(trusted.status.success(), "{}", stdout_and_stderr(&trusted));
    let compiler = pause_compiler(client.wire().process.id());
    let listed = client.request("resources/list", json!({})).unwrap();
    let notices = listed["_meta"]["dev.belljar/notices"].to_string();
    assert!(notices.contains("is being compiled") && !notices.contains("quarantine"), "{notices}");
    let error = client.read(URI).unwrap_err();
    assert!(error.message.contains("is being compiled"), "{error:?}");
    resume_compiler(compiler);
    client.next_notification(DEADLINE).expect("a notification that the list has changed");
    assert_eq!(client.text("belljar://swap/ok"), "fine");
}

/// Sets a flag when it is dropped.
struct SetOnDrop<'a>(&'a std::sync::atomic::AtomicBool);

impl Drop for SetOnDrop<'_> {
    fn drop(&mut self) {
        self.0.store(true, std::sync::atomic::Ordering::Relaxed);
    }
}

/// Another thread replaces the component all the time. belljar must serve only the component that the lock pins.
#[test]
fn served_bytes_are_the_bound_bytes() {
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
        // Stops the thread in the case of a panic, too.
        let _stop_thread = SetOnDrop(&stop);
        for _ in 0..30 {
            fs::remove_file(site.path("belljar.lock")).ok();
            let output = site.run(&["read", URI, "--json"]);
            let Ok(read) = serde_json::from_slice::<Value>(&output.stdout) else {
                assert!(stdout_and_stderr(&output).contains("in quarantine"), "{}", stdout_and_stderr(&output));
                continue;
            };
            let lock = lock(&site);
            let (digest, word, _) = both.iter().find(|(digest, ..)| lock.contains(digest.as_str())).unwrap();
            assert_eq!((&read["digest"], &read["contents"][0]["text"]), (&json!(digest), &json!(word)), "{lock}");
            served += 1;
        }
    });
    assert!(served > 0, "belljar served no read");
}

/// The number in the environment variable `name`, or `otherwise`.
fn number(name: &str, otherwise: usize) -> usize {
    std::env::var(name).ok().and_then(|number| number.parse().ok()).unwrap_or(otherwise)
}

/// Starts a command, and kills it after a random time of at most `longest`.
fn run_and_kill(site: &Site, verb: &[&str], longest: Duration) {
    let mut command = site.command(site.arguments(verb));
    command.stdout(std::process::Stdio::null()).stderr(std::process::Stdio::null());
    let mut child = command.spawn().unwrap();
    std::thread::sleep(longest.mul_f64(fastrand::f64()));
    child.kill().unwrap();
    child.wait().unwrap();
}

/// The temporary files of killed writers beside the configuration.
fn leftovers(directory: &Path) -> Vec<String> {
    let names = fs::read_dir(directory).unwrap().map(|entry| entry.unwrap().file_name().into_string().unwrap());
    names.filter(|name| name.ends_with(".tmp")).collect()
}

/// Kills `grant`, `revoke`, `trust` and `list` at random moments. The configuration and the lock must be complete
/// files, old or new. belljar must not serve an untrusted component.
#[test]
fn killed_commands_leave_whole_files() {
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
    let (mut granted, mut trusted, mut kill) = (0, 0, 0);
    // Repeat until a `grant` and a `trust` were killed after their write. Allow more time in each further round.
    while kill < kills || granted == 0 || trusted == 0 {
        assert!(
            kill < 20 * kills,
            "of {kill} killed commands, {granted} had written the configuration, {trusted} the lock"
        );
        let longest = usual.mul_f64(1.2 * (1 + kill / kills) as f64);
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
            // `list` is a start. Without a lock, it writes a new one.
            fs::remove_file(site.path("belljar.lock")).ok();
        }
        run_and_kill(&site, verbs[kill % 4], longest);
        let (after, lock) = (configs(&site), fs::read_to_string(site.path("belljar.lock")).unwrap_or_default());
        granted += usize::from(after != config);
        trusted += usize::from(lock != pins);
        let checked = site.run(&["check", "--json"]);
        let json: Value = serde_json::from_slice(&checked.stdout)
            .unwrap_or_else(|_| panic!("no JSON, perhaps of a torn file: {}", stdout_and_stderr(&checked)));
        let reasons = json["quarantined"].to_string() + &json["refused"].to_string();
        assert!(!reasons.contains("line ") && json["refused"] == json!([]), "kill {kill}: {reasons}\n{lock}");
        assert!(after.starts_with("audit = ") && after.contains("[mounts.swap]"), "kill {kill}: {after}");
        if kill % 4 == 2 {
            site.run(&["grant", "clock", "--env", "A=b", "--yes"]);
        }
        kill += 1;
    }
    // The next writer removes the temporary files.
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
