//! Each way to install belljar, up to the first note.

use std::fs;
use std::os::unix::fs::PermissionsExt as _;
use std::path::{Path, PathBuf};
use std::process::{Command, Stdio};
use std::time::{Duration, Instant};

use belljar_tests::process::END;
use belljar_tests::{Client, Era, Process, places};
use serde_json::{Value, json};
use tempfile::TempDir;

use crate::common::{VERSION, output, run};
use crate::support::{COMPILED, Person, package, unpack_file};

/// The files of an installed tree that each package for a system has.
const INSTALLED: [&str; 7] = [
    "bin/belljar",
    "lib/belljar/providers/files.wasm",
    "share/man/man1/belljar.1",
    "share/man/man1/belljar-serve.1",
    "share/bash-completion/completions/belljar",
    "share/fish/vendor_completions.d/belljar.fish",
    "share/doc/belljar/LICENSE",
];

fn assert_installed(prefix: &Path) {
    for file in INSTALLED {
        assert!(prefix.join(file).metadata().is_ok_and(|file| file.len() > 0), "{file} is missing or empty");
    }
    let mode = |file: &str| prefix.join(file).metadata().unwrap().permissions().mode() & 0o777;
    assert_eq!((mode("bin/belljar"), mode("share/doc/belljar/LICENSE")), (0o755, 0o644));
}

/// The unpacked archive, and the directory in it.
fn unpacked() -> (TempDir, PathBuf) {
    let archive = package(&format!("belljar-{VERSION}-"), ".tar.gz");
    let place = unpack_file(&archive);
    let name = archive.file_name().unwrap().to_str().unwrap().strip_suffix(".tar.gz").unwrap();
    let prefix = place.path().join(name);
    (place, prefix)
}

#[test]
fn an_archive_works_where_it_is_unpacked() {
    let (_place, prefix) = unpacked();
    assert_installed(&prefix);
    assert!(prefix.join("share/zsh/site-functions/_belljar").is_file());
    Person::new(&prefix.join("bin/belljar"), None).reads_the_first_note();
}

/// The compiled code in the cache of a person.
fn cached_code(person: &Person) -> usize {
    let cache = person.home().join(".cache/belljar");
    let is_code = |entry: &walkdir::DirEntry| entry.path().extension().is_some_and(|extension| extension == "cwasm");
    walkdir::WalkDir::new(cache).into_iter().filter(|entry| is_code(entry.as_ref().unwrap())).count()
}

#[test]
fn a_large_provider_starts_without_compiling_unless_others_can_write_its_code() {
    let (_place, prefix) = unpacked();
    let compiled = prefix.join("lib/belljar/providers/compiled");
    let [code] = &fs::read_dir(&compiled).unwrap().map(|entry| entry.unwrap().path()).collect::<Vec<_>>()[..] else {
        panic!("\"{}\" has not the code of one provider", compiled.display())
    };
    let add = || {
        let person = Person::new(&prefix.join("bin/belljar"), None);
        run(&mut person.belljar(&["add", COMPILED, "--fs", "~/notes", "--yes"]));
        person
    };
    let serve = |person: &Person| Client::start(person.belljar(&["serve"]), Era::Session);
    let writable = |path: &Path| {
        let own = path.metadata().unwrap().permissions();
        fs::set_permissions(path, fs::Permissions::from_mode(own.mode() | 0o020)).unwrap();
        own
    };
    let person = add();
    let mut client = serve(&person);
    assert!(client.resources().is_empty());
    let log = client.close().stderr;
    assert_eq!(cached_code(&person), 0, "{log}");

    let own = writable(&compiled);
    let log = serve(&person).close().stderr;
    assert!(log.contains("other users can write") && log.contains("/compiled"), "{log}");
    fs::set_permissions(&compiled, own).unwrap();

    writable(code);
    let person = add();
    let mut client = serve(&person);
    // A busy machine compiles the component for longer than one listing waits.
    let deadline = Instant::now() + Duration::from_secs(300);
    while cached_code(&person) == 0 && Instant::now() < deadline {
        assert!(client.resources().is_empty());
        std::thread::sleep(Duration::from_millis(100));
    }
    let log = client.close().stderr;
    assert!(log.contains("other users can write"), "{log}");
    assert_eq!(cached_code(&person), 1, "{log}");
}

#[test]
fn a_bundle_asks_for_directories_and_serves_them() {
    if places::lacks("node") {
        return;
    }
    let bundle = package(&format!("belljar-{VERSION}-"), ".mcpb");
    let clients = places::repository().join("tests/clients/node");
    let command = |choices: Value| -> (TempDir, Value) {
        let place = tempfile::tempdir().unwrap();
        let mut node = Command::new("node");
        node.current_dir(&clients).arg("mcpb.mjs").arg(&bundle).arg(place.path()).arg(choices.to_string());
        let command = serde_json::from_str(&run(&mut node)).unwrap();
        (place, command)
    };
    let (_place, none) = command(json!({}));
    assert_eq!(none, Value::Null, "the user has chosen no directory");
    let place = tempfile::tempdir().unwrap();
    let directories = ["My Notes", "papers"].map(|name| place.path().join(name));
    for directory in &directories {
        fs::create_dir(directory).unwrap();
        fs::write(directory.join("plan.md"), "# Plan\n").unwrap();
    }
    let (unpacked, chosen) = command(json!({ "directories": directories }));
    let program = unpacked.path().join("bin/belljar");
    assert_eq!(chosen["command"], json!(program));
    let arguments: Vec<&str> = chosen["args"].as_array().unwrap().iter().map(|one| one.as_str().unwrap()).collect();
    let person = Person::new(&program, None);
    // The second start finds what the first has written.
    for _ in 0..2 {
        let mut client = Client::start(person.belljar(&arguments), Era::Session);
        assert_eq!(client.uris(), ["belljar://my-notes/plan.md", "belljar://papers/plan.md"]);
        assert_eq!(client.text("belljar://my-notes/plan.md"), "# Plan\n");
        let ended = client.close();
        assert!(ended.status.success(), "{ended:?}");
    }
}

#[test]
fn a_debian_package_installs_below_usr() {
    if !is_installed("dpkg-deb") {
        return;
    }
    let deb = package("belljar_", ".deb");
    let root = tempfile::tempdir().unwrap();
    run(Command::new("dpkg-deb").arg("--extract").arg(&deb).arg(root.path()));
    let prefix = root.path().join("usr");
    assert_installed(&prefix);
    assert!(prefix.join("share/zsh/vendor-completions/_belljar").is_file());
    let field = |name: &str| run(Command::new("dpkg-deb").arg("--field").arg(&deb).arg(name)).trim().to_owned();
    assert_eq!(field("Package"), "belljar");
    assert_eq!(field("Version"), format!("{VERSION}-1"));
    assert_eq!(field("Architecture"), if cfg!(target_arch = "aarch64") { "arm64" } else { "amd64" });
    assert!(field("Description").starts_with("Runs untrusted WebAssembly components"), "{}", field("Description"));
    assert!(field("Maintainer").contains('@') && field("Section") == "net" && field("Priority") == "optional");
    // It fails if the archive or a field has a wrong form.
    run(Command::new("dpkg-deb").arg("--info").arg(&deb));
    let listed = run(Command::new("dpkg-deb").arg("--contents").arg(&deb));
    assert!(listed.lines().all(|line| line.contains(" root/root ") || line.contains(" 0/0 ")), "{listed}");
    Person::new(&prefix.join("bin/belljar"), None).reads_the_first_note();
}

/// True if a program of the system is there. In CI, a missing one fails the test.
#[expect(clippy::print_stderr, reason = "a skipped test says so")]
fn is_installed(program: &str) -> bool {
    let found = Command::new(program).arg("--version").output().is_ok();
    assert!(found || std::env::var("CI").as_deref() != Ok("true"), "{program} is missing, and CI skips nothing");
    if !found {
        eprintln!("skipped: {program} is not installed");
    }
    found
}

#[test]
fn pip_installs_the_wheel() {
    if places::lacks("python") {
        return;
    }
    let place = tempfile::tempdir().unwrap();
    let environment = place.path().join("environment");
    run(Command::new("python3").args(["-m", "venv"]).arg(&environment));
    let mut pip = Command::new(environment.join("bin/python"));
    pip.args(["-m", "pip", "install", "--quiet", "--disable-pip-version-check", "--no-index"]);
    run(pip.arg(package("belljar-", ".whl")));
    assert_installed(&environment);
    let shown = run(Command::new(environment.join("bin/python")).args(["-m", "pip", "show", "--files", "belljar"]));
    assert!(shown.contains(&format!("Version: {VERSION}\n")) && shown.contains("bin/belljar"), "{shown}");
    Person::new(&environment.join("bin/belljar"), None).reads_the_first_note();
}

/// The platform of this machine, as npm names it.
const PLATFORM: &str = if cfg!(target_arch = "aarch64") { "linux-arm64" } else { "linux-x64" };

/// Installs both npm packages, as npm installs them from its registry.
fn npm(place: &Path) -> PathBuf {
    let mut npm = Command::new("npm");
    npm.current_dir(place).args(["install", "--offline", "--no-audit", "--no-fund", "--loglevel=error", "--prefix"]);
    npm.arg(place).args(["--cache", "cache"]);
    npm.arg(package(&format!("belljar-{VERSION}"), ".tgz")).arg(package(&format!("belljar-{PLATFORM}"), ".tgz"));
    run(&mut npm);
    place.join("node_modules/.bin/belljar")
}

/// The directory of the installed Node.
fn node() -> PathBuf {
    let path = run(Command::new("node").args(["--print", "process.execPath"]));
    Path::new(path.trim()).parent().unwrap().to_path_buf()
}

#[test]
fn npm_installs_the_launcher_and_the_program() {
    if places::lacks("node") {
        return;
    }
    let place = tempfile::tempdir().unwrap();
    let person = Person::new(&npm(place.path()), Some(&node()));
    person.reads_the_first_note();

    // The launcher ends as the program does.
    let direct = Person::new(&place.path().join(format!("node_modules/@belljar/{PLATFORM}/bin/belljar")), None);
    for arguments in [["--version"].as_slice(), &["read", "belljar://none/"], &["no-such-verb"]] {
        let (through, own) = (output(&mut person.belljar(arguments)), output(&mut direct.belljar(arguments)));
        assert_eq!((through.status, through.stdout), (own.status, own.stdout), "{arguments:?}");
    }
    assert_signals_are_forwarded(&person);
}

/// Kills a process if the test fails. The process has lost its parent then.
struct KillOnFailure(u32);

impl Drop for KillOnFailure {
    fn drop(&mut self) {
        if std::thread::panicking() {
            drop(Command::new("kill").args(["-KILL", &self.0.to_string()]).status());
        }
    }
}

/// Stops the launcher while it serves. The program must end with it.
fn assert_signals_are_forwarded(person: &Person) {
    let mut serve = person.belljar(&["serve", "--http", "127.0.0.1:0"]);
    serve.stdin(Stdio::null()).stdout(Stdio::null());
    let mut launcher = Process::start(serve);
    launcher.await_stderr(END, |line| line.contains("http://127.0.0.1:").then_some(()));
    let children = format!("/proc/{0}/task/{0}/children", launcher.id());
    let program: u32 = fs::read_to_string(children).unwrap().trim().parse().expect("the launcher has one child");
    let _program = KillOnFailure(program);
    run(Command::new("kill").args(["-TERM", &launcher.id().to_string()]));
    let ended = launcher.wait(END);
    assert!(!Path::new(&format!("/proc/{program}")).exists(), "the program still runs: {}", ended.stderr);
}

#[test]
fn the_launcher_names_what_is_missing() {
    if places::lacks("node") {
        return;
    }
    let place = unpack_file(&package(&format!("belljar-{VERSION}"), ".tgz"));
    let launcher = place.path().join("package/bin/belljar.js");
    let other = place.path().join("other.js");
    fs::write(&other, "Object.defineProperty(process, 'arch', { value: 'mips' });").unwrap();
    for (options, expected) in [
        (vec![], format!("the package \"@belljar/{PLATFORM}\" is not installed")),
        (vec!["--require", other.to_str().unwrap()], "no program for the platform \"linux-mips\"".to_owned()),
    ] {
        let done = output(Command::new("node").args(options).arg(&launcher).arg("serve"));
        let text = String::from_utf8_lossy(&done.stderr);
        assert!(done.status.code() == Some(1) && done.stdout.is_empty() && text.contains(&expected), "{text}");
    }
}
