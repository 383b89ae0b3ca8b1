//! Granted directories without any WebAssembly: which paths can be granted, and what can be opened below one.

use std::os::unix::fs::symlink;

use rustix::io::Errno;
use wasmtime_wasi::p2::bindings::filesystem::types::ErrorCode;

use super::descriptor::Dir;
use super::entries::Entries;
use super::place::{Absent, Place, refusal};
use super::resolve::{Kind, Refused, Resolver};
use super::*;
use crate::grants::{OwnThread, SharedTrail};
use crate::model::MountName;

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

/// The directory `name` below `base`, granted.
fn place(base: &Path, name: &str) -> Place {
    Place::open("/d", Path::new(name), false, &ambient(base)).unwrap()
}

fn root_of(base: &Path, name: &str) -> Dir {
    Dir::of_root(&place(base, name).root(false).unwrap())
}

fn resolver(dir: &Dir) -> Resolver<'_> {
    Resolver { root: &dir.root, base: &dir.file, may_wait: false }
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
    let dir = root_of(&temp.path().canonicalize().unwrap(), "granted");
    let open = |path: &str, follow, want_dir| resolver(&dir).open(path, follow, want_dir).map(|(_, kind)| kind);
    let at = |path: &str| open(path, true, false);

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
    assert!(matches!(open("inside", false, false), Err(Refused::Failed(ErrorCode::Loop))));
    assert!(matches!(open("sub/file", true, true), Err(Refused::Failed(ErrorCode::NotDirectory))));
    // What is not opened can be looked at, and no further than what can.
    let look = |path: &str, follow| resolver(&dir).look(path, follow, false).map(|(_, stat)| stat.st_mode & 0o170_000);
    assert_eq!(
        (look("fifo", true), look("inside", true), look("inside", false)),
        (Ok(0o010_000), Ok(0o100_000), Ok(0o120_000))
    );
    for path in ["../secret", "outside", "absolute", "..", "/", "sub/../.."] {
        assert_eq!(look(path, true), Err(Refused::Outside), "{path}");
    }
    assert_eq!(look("outside/", false), Err(Refused::Outside));
    assert_eq!(look("sub/file/", true), Err(Refused::Failed(ErrorCode::NotDirectory)));
}

#[test]
fn links_are_told_that_stay_below() {
    let temp = tempfile::tempdir().unwrap();
    let base = temp.path().canonicalize().unwrap();
    std::fs::create_dir_all(base.join("granted/a/b")).unwrap();
    let dir = root_of(&base, "granted");
    let links = [
        ("plain", "x/y", true),
        ("a/up", "../x", true),
        ("a/b/up", "../../a/b/x", true),
        ("a/root", "..", true),
        ("up", "..", false),
        ("out", "../x", false),
        ("back", "../granted/a", false),
        ("a/b/out", "../../../x", false),
        ("absolute", "/x", false),
        ("behind", "no/../../home/x", false),
    ];
    for (name, target, is_told) in links {
        symlink(target, base.join("granted").join(name)).unwrap();
        let read = links::read(&dir, name, false);
        assert_eq!(read, if is_told { Ok(target.to_owned()) } else { Err(Refused::Outside) }, "{name}");
    }
    // The same from a directory that was opened below: what counts is what was granted.
    let (file, _) = resolver(&dir).open("a", true, true).unwrap();
    let inner = dir.inner("a", file);
    assert_eq!(links::read(&inner, "up", false).unwrap(), "../x");
    assert_eq!(links::read(&inner, "b/out", false), Err(Refused::Outside));
    let long = "a/".repeat(400);
    let (file, _) = resolver(&dir).open("a", true, true).unwrap();
    assert_eq!(links::read(&dir.inner(&long, file), "up", false), Err(Refused::Outside));
    assert_eq!(links::read(&dir, "a", false), Err(Refused::Failed(ErrorCode::Invalid)));
}

#[test]
fn a_file_that_the_host_keeps_shut_is_told_apart() {
    let temp = tempfile::tempdir().unwrap();
    let base = temp.path().canonicalize().unwrap();
    std::fs::create_dir(base.join("granted")).unwrap();
    let shut = base.join("granted/b.md");
    std::fs::write(&shut, "x").unwrap();
    let rights = |path: &Path, mode| std::fs::set_permissions(path, std::fs::Permissions::from_mode(mode)).unwrap();
    rights(&shut, 0o000);
    let open = || {
        // To root nothing is shut; this thread gives that up.
        if rustix::process::geteuid().is_root() {
            rights(&base, 0o755);
            let nobody = rustix::process::Uid::from_raw(65534);
            rustix::thread::set_thread_uid(nobody).unwrap();
        }
        let dir = root_of(&base, "granted");
        let opened = resolver(&dir).open("b.md", true, false).map(drop);
        let (trail, name) = (SharedTrail::default(), MountName::new("m").unwrap());
        let mut call = Call::new(Vec::new(), name, trail.clone(), OwnThread::default());
        let code = call.refuse(record::Deed::Open, "b.md", opened.unwrap_err());
        (code, trail.take())
    };
    let (code, trail) = std::thread::scope(|scope| scope.spawn(open).join().unwrap());
    assert_eq!(code, ErrorCode::Access);
    let denied = trail.first(Verdict::Denied).unwrap();
    assert_eq!(denied.what, "open b.md (permission denied on the host)");
    assert!(denied.cure.as_ref().unwrap().contains("chmod"));
}

#[test]
fn refusals_do_not_fill_the_record() {
    let trail = SharedTrail::default();
    let mut call = Call::new(Vec::new(), MountName::new("m").unwrap(), trail.clone(), OwnThread::default());
    for n in 0..1000 {
        call.refuse(record::Deed::Open, &format!("../{n}"), Refused::Outside);
        call.refuse(record::Deed::Stat, &format!("../{n}"), Refused::Outside);
        call.refuse(record::Deed::Stat, "absent", Refused::Failed(ErrorCode::NoEntry));
    }
    call.refuse_change(record::Deed::Write, "what it has opened");
    let trail = trail.take();
    let told: Vec<_> = trail.decisions().iter().map(|one| (one.what.as_str(), one.times)).collect();
    assert_eq!(told.len(), 12 * 2 + 3, "{told:?}");
    assert!(told.contains(&("open ../11", 1)) && told.contains(&("stat more paths", 988)), "{told:?}");
    assert!(told.contains(&("write to more paths", 1)) && trail.dropped == 0, "{told:?}");
}

#[test]
fn a_forbidden_system_call_is_named() {
    let why = |errno, is_blocked| refusal("notes", errno, is_blocked);
    for blocked in [why(Errno::NOSYS, true), why(Errno::PERM, true)] {
        assert!(blocked.contains("openat2") && blocked.contains("container runtime"), "{blocked}");
    }
    assert!(why(Errno::PERM, true).contains("seccomp"));
    assert_eq!(why(Errno::ACCESS, false), "cannot open the directory \"notes\": permission denied");
    assert!(!resolve::is_blocked(Errno::PERM) && !resolve::is_blocked(Errno::ACCESS));
}

#[test]
fn what_needs_a_mount_needs_a_thread() {
    let temp = tempfile::tempdir().unwrap();
    let base = temp.path().canonicalize().unwrap();
    for dir in ["granted/inner", "other"] {
        std::fs::create_dir_all(base.join(dir)).unwrap();
    }
    std::fs::write(base.join("granted/file"), "x").unwrap();
    std::fs::write(base.join("other/file"), "x").unwrap();
    let dir = root_of(&base, "granted");
    let look = |path: &str, may_wait| Resolver { may_wait, ..resolver(&dir) }.look(path, true, false).map(drop);
    assert_eq!((look("inner", false), look("..", false)), (Ok(()), Err(Refused::Outside)));
    let point = base.join("granted/inner");
    let run = |program: &str, arguments: &[&std::ffi::OsStr]| {
        std::process::Command::new(program).args(arguments).output().is_ok_and(|output| output.status.success())
    };
    if !run("mount", &["--bind".as_ref(), base.join("other").as_os_str(), point.as_os_str()]) {
        // Nobody but root can mount.
        assert!(!rustix::process::geteuid().is_root() || !Path::new("/dev/fuse").exists());
        return;
    }
    let seen = [look("file", false), look("inner/file", false), look("inner", false), look("inner/../file", false)];
    let waited = [look("inner/file", true), look("..", true)];
    assert!(run("umount", &[point.as_os_str()]));
    let needs = Err(Refused::NeedsThread);
    assert_eq!(seen, [Ok(()), needs, needs, needs]);
    assert_eq!(waited, [Ok(()), Err(Refused::Outside)]);
    assert_eq!(look("inner", false), Ok(()));
}

#[test]
fn a_replaced_directory_is_found_again() {
    let temp = tempfile::tempdir().unwrap();
    let base = temp.path().canonicalize().unwrap();
    std::fs::create_dir(base.join("notes")).unwrap();
    let place = place(&base, "notes");
    // As a call does: it asks first whether it needs a thread, and has one where it does.
    let root = || {
        std::thread::sleep(std::time::Duration::from_millis(1100));
        let needs_thread = place.needs_thread();
        place.root(needs_thread)
    };
    let first = root().unwrap();
    assert!(!place.needs_thread(), "it is local, and was looked at just now");
    assert_eq!(root().unwrap().identity(), first.identity());
    std::fs::remove_dir(base.join("notes")).unwrap();
    assert_eq!(root().err(), Some(Absent::Gone));
    std::fs::create_dir(base.join("notes")).unwrap();
    std::fs::write(base.join("notes/new"), "x").unwrap();
    let dir = Dir::of_root(&root().expect("the directory is back"));
    assert!(resolver(&dir).open("new", true, false).is_ok());
    // A link that took the directory's place leads nowhere.
    std::fs::remove_file(base.join("notes/new")).unwrap();
    std::fs::remove_dir(base.join("notes")).unwrap();
    symlink("/etc", base.join("notes")).unwrap();
    assert_eq!(root().err(), Some(Absent::Other));
    for absent in [Absent::Gone, Absent::Other, Absent::Shut, Absent::Broken] {
        assert!(absent.cure().contains("grant another") || absent.cure().contains("let the user"), "{absent:?}");
    }
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
        let thread = OwnThread::default();
        let scope = Scope { mount: &name, limits: &limits, deadline, consent, trail: &trail, thread: &thread };
        let call = Fs::open(&mount, &mut WasiCtxBuilder::new(), &scope);
        (call.roots().iter().map(|root| root.guest().to_owned()).collect::<Vec<_>>(), trail.take())
    };
    let shut = Consent { grant: "fs", what: "/shut".to_owned() };
    let (dirs, trail) = open(&[]);
    assert_eq!((dirs, trail.asks()), (vec!["/open".to_owned()], std::slice::from_ref(&shut)));
    assert!(trail.first(Verdict::Denied).unwrap().cure.as_ref().unwrap().contains("belljar grant m --fs /shut"));
    let (dirs, trail) = open(&[Consent { grant: "http", what: "/shut".to_owned() }, shut]);
    assert_eq!((dirs.len(), trail.asks().len(), trail.first(Verdict::Denied)), (2, 0, None));
}
