//! Granted directories without any WebAssembly: which paths can be granted, and what can be opened below one.

use std::os::unix::fs::symlink;

use super::beneath::{Kind, Refused, open};
use super::*;

fn ambient(base: &std::path::Path) -> Ambient {
    Ambient {
        base: base.to_owned(),
        home: Some(base.join("home")),
        reserved: vec![base.join("plugins")],
        ..Ambient::default()
    }
}

fn granted(guest: &str, host: &str) -> Config {
    Config([(guest.to_owned(), config::Granted { path: host.into(), ask: false })].into())
}

fn configure(base: &std::path::Path, guest: &str, host: &str) -> Result<Mount, String> {
    Fs::configure(&granted(guest, host), &ambient(base))
}

#[test]
fn directories_are_checked_when_they_are_granted() {
    let temp = tempfile::tempdir().unwrap();
    let base = temp.path().canonicalize().unwrap();
    for dir in ["notes", "home/notes", "plugins/x"] {
        std::fs::create_dir_all(base.join(dir)).unwrap();
    }
    std::fs::write(base.join("file"), "x").unwrap();
    symlink("plugins", base.join("sly")).unwrap();

    assert!(configure(&base, "/notes", "notes").is_ok());
    assert!(configure(&base, "/", "~/notes").is_ok());
    let error = |guest: &str, host: &str| {
        configure(&base, guest, host).err().unwrap_or_else(|| panic!("{guest} = {host} was granted"))
    };
    assert!(error("notes", "notes").contains("begin with \"/\""));
    assert!(error("/a/../b", "notes").contains("dot segment"));
    assert!(error("/n", "nowhere").contains("\"nowhere\": there is none"));
    assert!(error("/n", "file").contains("not a directory"));
    assert!(error("/n", "/").contains("whole file system"));
    assert!(error("/n", "/proc/self").contains("never granted"));
    assert!(error("/n", "/dev").contains("never granted"));
    for own in ["plugins", "plugins/x", ".", "sly"] {
        assert!(error("/n", own).contains("belljar's own"), "{own}");
    }
}

#[test]
fn only_files_and_directories_below_are_opened() {
    let temp = tempfile::tempdir().unwrap();
    let root = temp.path().join("granted");
    std::fs::create_dir_all(root.join("sub")).unwrap();
    std::fs::write(root.join("sub/file"), "x").unwrap();
    std::fs::write(temp.path().join("secret"), "s").unwrap();
    symlink("sub/file", root.join("inside")).unwrap();
    symlink("../secret", root.join("outside")).unwrap();
    symlink("/etc/passwd", root.join("absolute")).unwrap();
    symlink("loop", root.join("loop")).unwrap();
    rustix::fs::mknodat(rustix::fs::CWD, root.join("fifo"), rustix::fs::FileType::Fifo, rustix::fs::Mode::RUSR, 0)
        .unwrap();
    let _socket = std::os::unix::net::UnixListener::bind(root.join("socket")).unwrap();
    let dir = std::fs::File::open(&root).unwrap();
    let at = |path: &str| open(&dir, path, true, false, false).map(|(_, kind)| kind);

    assert_eq!(at("sub/file").unwrap(), Kind::File);
    assert_eq!(at("sub").unwrap(), Kind::Directory);
    assert_eq!(at("inside").unwrap(), Kind::File);
    assert_eq!(at("sub/../sub/file").unwrap(), Kind::File);
    for path in ["../secret", "sub/../../secret", "/etc/passwd", "outside", "absolute", ".."] {
        assert!(matches!(at(path), Err(Refused::Outside)), "{path}: {:?}", at(path));
    }
    for path in ["fifo", "socket"] {
        assert!(matches!(at(path), Err(Refused::Special)), "{path}");
    }
    assert!(matches!(at("loop"), Err(Refused::Failed(ErrorCode::Loop))));
    assert!(matches!(at(""), Err(Refused::Failed(ErrorCode::NoEntry))));
    assert!(matches!(at("a\0b"), Err(Refused::Failed(ErrorCode::Invalid))));
    assert!(matches!(open(&dir, "inside", false, false, false), Err(Refused::Failed(ErrorCode::Loop))));
    assert!(matches!(open(&dir, "sub/file", true, true, false), Err(Refused::Failed(ErrorCode::NotDirectory))));
}

#[test]
fn a_replaced_directory_is_found_again() {
    let temp = tempfile::tempdir().unwrap();
    let base = temp.path().canonicalize().unwrap();
    std::fs::create_dir(base.join("notes")).unwrap();
    let mount = configure(&base, "/n", "notes").unwrap();
    let handle = || mount.places[0].handle();
    assert!(handle().is_some());
    std::fs::remove_dir(base.join("notes")).unwrap();
    std::thread::sleep(std::time::Duration::from_millis(1100));
    assert!(handle().is_none(), "the directory is gone");
    std::fs::create_dir(base.join("notes")).unwrap();
    std::fs::write(base.join("notes/new"), "x").unwrap();
    let dir = handle().expect("the directory is back");
    assert!(open(&dir, "new", true, false, false).is_ok());
    // A link that took the directory's place leads nowhere.
    std::fs::remove_file(base.join("notes/new")).unwrap();
    std::fs::remove_dir(base.join("notes")).unwrap();
    symlink("/etc", base.join("notes")).unwrap();
    std::thread::sleep(std::time::Duration::from_millis(1100));
    assert!(handle().is_none());
}

#[test]
fn what_is_belljars_own_is_found_behind_links_and_dots() {
    let temp = tempfile::tempdir().unwrap();
    let base = temp.path().canonicalize().unwrap();
    for dir in ["jar/data", "state/belljar", "real/plugins"] {
        std::fs::create_dir_all(base.join(dir)).unwrap();
    }
    symlink("../real/plugins", base.join("jar/plugins")).unwrap();
    let own = ["jar/plugins", "jar/../state/belljar", "jar/../state/later/cache"].map(|own| base.join(own));
    let ambient = Ambient { base: base.clone(), home: None, reserved: own.into(), ..Ambient::default() };
    let configure = |host: &str| Fs::configure(&granted("/d", host), &ambient);
    assert!(configure("jar/data").is_ok());
    for own in ["real/plugins", "real", "state", "state/belljar"] {
        assert!(configure(own).err().unwrap_or_default().contains("belljar's own"), "{own}");
    }
    let hidden = configure("a\u{1b}[31m\u{202e}").err().unwrap();
    assert!(hidden.contains("\"a[31m\""), "{hidden:?}");
}

#[test]
fn entries_are_streamed_and_independent() {
    let temp = tempfile::tempdir().unwrap();
    for i in 0..100 {
        std::fs::write(temp.path().join(format!("f{i}")), "").unwrap();
    }
    let dir = std::fs::File::open(temp.path()).unwrap();
    let mut first = Entries::open(&dir).unwrap();
    assert!(first.next().is_some());
    assert_eq!(Entries::open(&dir).unwrap().filter(Result::is_ok).count(), 100);
    assert_eq!(first.count(), 99);
}

#[test]
fn a_directory_is_written_as_a_path_or_as_a_table() {
    let read = |text: &str| text.parse::<toml::Table>().unwrap()["fs"].clone().try_into::<Config>();
    let config =
        read("fs = { \"/a\" = \"x\", \"/b\" = { path = \"y\", ask = true }, \"/c\" = { path = \"z\" } }").unwrap();
    let all: Vec<_> = config.0.iter().map(|(guest, g)| (guest.as_str(), g.path.to_str().unwrap(), g.ask)).collect();
    assert_eq!(all, [("/a", "x", false), ("/b", "y", true), ("/c", "z", false)]);
    assert!(Fs::needs_consent(&config));
    for (bad, why) in [
        ("fs = { \"/a\" = { path = \"y\", aks = true } }", "unknown field `aks`, expected `path` or `ask`"),
        ("fs = { \"/a\" = { ask = true } }", "missing field `path`"),
        ("fs = { \"/a\" = 5 }", "expected a directory, or { path = \"DIR\", ask = true }"),
        ("fs = { \"/a\" = { path = \"y\", ask = \"yes\" } }", "expected a boolean"),
    ] {
        let error = read(bad).unwrap_err();
        assert!(error.message().contains(why), "{bad}: {error}");
    }
}

#[test]
fn a_directory_that_is_asked_for_first_is_withheld_until_someone_allows_it() {
    let temp = tempfile::tempdir().unwrap();
    let base = temp.path().canonicalize().unwrap();
    for dir in ["open", "shut"] {
        std::fs::create_dir(base.join(dir)).unwrap();
    }
    let given = |path: &str, ask| config::Granted { path: path.into(), ask };
    let config = Config([("/open".to_owned(), given("open", false)), ("/shut".to_owned(), given("shut", true))].into());
    let mount = Fs::configure(&config, &ambient(&base)).unwrap();
    let name = MountName::new("m").unwrap();
    let open = |consent: &[Consent]| {
        let trail = SharedTrail::default();
        let limits = crate::model::Limits::default();
        let deadline = tokio::time::Instant::now();
        let scope = Scope { mount: &name, limits: &limits, deadline, consent, trail: &trail };
        let call = Fs::open(&mount, &mut WasiCtxBuilder::new(), &scope);
        (call.dirs.iter().map(|(guest, _)| guest.to_string()).collect::<Vec<_>>(), trail.take())
    };
    let shut = Consent { grant: "fs", what: "/shut".to_owned() };
    let (dirs, trail) = open(&[]);
    assert_eq!((dirs, trail.asks()), (vec!["/open".to_owned()], std::slice::from_ref(&shut)));
    assert!(trail.first(Verdict::Denied).unwrap().cure.as_ref().unwrap().contains("[mounts.m]"));
    let (dirs, trail) = open(&[Consent { grant: "http", what: "/shut".to_owned() }, shut]);
    assert_eq!((dirs.len(), trail.asks().len(), trail.first(Verdict::Denied)), (2, 0, None));
}
