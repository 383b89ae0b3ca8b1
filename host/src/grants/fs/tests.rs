//! Tests of granted directories without WebAssembly: which paths can be granted, and what can be opened below them.

use std::os::unix::fs::{PermissionsExt as _, symlink};
use std::path::Path;

use rustix::io::Errno;
use wasmtime_wasi::WasiCtxBuilder;
use wasmtime_wasi::p2::bindings::filesystem::types::ErrorCode;

use super::descriptor::Dir;
use super::directory_entries::DirectoryEntryStream;
use super::granted_directory::{DirectoryUnavailable, GrantedDirectory, open_error};
use super::kind::FsMountState;
use super::resolve::{FileKind, PathResolver, ResolveError};
use super::*;
use crate::grants::ambient::Ambient;
use crate::grants::editor::GrantEditor as _;
use crate::grants::grant::{CallScope, Grant as _};
use crate::grants::{CallRecord, DedicatedThread};
use crate::model::{Consent, DecisionKind, MountName};

fn ambient(base: &std::path::Path) -> Ambient {
    Ambient {
        base: base.to_owned(),
        home: Some(base.join("home")),
        reserved: vec![base.join("plugins")],
        ..Ambient::default()
    }
}

fn granted(guest: &str, host: &str) -> FsConfig {
    FsConfig([(guest.to_owned(), config::DirectoryConfig { path: host.into(), ask: false })].into())
}

fn configure(base: &std::path::Path, guest: &str, host: &str) -> Result<FsMountState, String> {
    Fs::configure(&granted(guest, host), &ambient(base)).map_err(|error| error.to_string())
}

/// Grants the directory `name` below `base`.
fn directory(base: &Path, name: &str) -> GrantedDirectory {
    GrantedDirectory::open("/d", Path::new(name), false, &ambient(base)).unwrap()
}

fn root_of(base: &Path, name: &str) -> Dir {
    Dir::of_root(&directory(base, name).root(false).unwrap())
}

fn resolver(dir: &Dir) -> PathResolver<'_> {
    PathResolver { root: &dir.root, base: &dir.file, may_block: false }
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
    assert!(error("/n", "nowhere").contains("\"nowhere\": it does not exist"));
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

    assert_eq!(at("sub/file").unwrap(), FileKind::File);
    assert_eq!(at("sub").unwrap(), FileKind::Directory);
    assert_eq!(at("inside").unwrap(), FileKind::File);
    assert_eq!(at("sub/../sub/file").unwrap(), FileKind::File);
    for path in ["../secret", "sub/../../secret", "/etc/passwd", "outside", "absolute", ".."] {
        assert!(matches!(at(path), Err(ResolveError::Outside)), "{path}: {:?}", at(path));
    }
    for path in ["fifo", "socket"] {
        assert!(matches!(at(path), Err(ResolveError::Special)), "{path}");
    }
    assert!(matches!(at("loop"), Err(ResolveError::Failed(ErrorCode::Loop))));
    assert!(matches!(at(""), Err(ResolveError::Failed(ErrorCode::NoEntry))));
    assert!(matches!(at("a\0b"), Err(ResolveError::Failed(ErrorCode::Invalid))));
    assert!(matches!(open("inside", false, false), Err(ResolveError::Failed(ErrorCode::Loop))));
    assert!(matches!(open("sub/file", true, true), Err(ResolveError::Failed(ErrorCode::NotDirectory))));
    // `lookup` finds files that `open` refuses, but nothing outside of the directory.
    let look =
        |path: &str, follow| resolver(&dir).lookup(path, follow, false).map(|(_, stat)| stat.st_mode & 0o170_000);
    assert_eq!(
        (look("fifo", true), look("inside", true), look("inside", false)),
        (Ok(0o010_000), Ok(0o100_000), Ok(0o120_000))
    );
    for path in ["../secret", "outside", "absolute", "..", "/", "sub/../.."] {
        assert_eq!(look(path, true), Err(ResolveError::Outside), "{path}");
    }
    assert_eq!(look("outside/", false), Err(ResolveError::Outside));
    assert_eq!(look("sub/file/", true), Err(ResolveError::Failed(ErrorCode::NotDirectory)));
}

#[test]
fn only_links_that_stay_below_are_readable() {
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
        let read = symlinks::read(&dir, name, false);
        assert_eq!(read, if is_told { Ok(target.to_owned()) } else { Err(ResolveError::Outside) }, "{name}");
    }
    // From a directory below, links may lead up to the granted directory, not only to the opened one.
    let (file, _) = resolver(&dir).open("a", true, true).unwrap();
    let inner = dir.child("a", file);
    assert_eq!(symlinks::read(&inner, "up", false).unwrap(), "../x");
    assert_eq!(symlinks::read(&inner, "b/out", false), Err(ResolveError::Outside));
    let long = "a/".repeat(400);
    let (file, _) = resolver(&dir).open("a", true, true).unwrap();
    assert_eq!(symlinks::read(&dir.child(&long, file), "up", false), Err(ResolveError::Outside));
    assert_eq!(symlinks::read(&dir, "a", false), Err(ResolveError::Failed(ErrorCode::Invalid)));
}

#[test]
fn a_permission_error_of_the_host_is_recorded() {
    let temp = tempfile::tempdir().unwrap();
    let base = temp.path().canonicalize().unwrap();
    std::fs::create_dir(base.join("granted")).unwrap();
    let shut = base.join("granted/b.md");
    std::fs::write(&shut, "x").unwrap();
    let rights = |path: &Path, mode| std::fs::set_permissions(path, std::fs::Permissions::from_mode(mode)).unwrap();
    rights(&shut, 0o000);
    let open = || {
        // Root may open every file, so this thread gives up root.
        if rustix::process::geteuid().is_root() {
            rights(&base, 0o755);
            let nobody = rustix::process::Uid::from_raw(65534);
            rustix::thread::set_thread_uid(nobody).unwrap();
        }
        let dir = root_of(&base, "granted");
        let opened = resolver(&dir).open("b.md", true, false).map(drop);
        let (record, name) = (CallRecord::default(), MountName::new("m").unwrap());
        let mut call = FsCallState::new(Vec::new(), Vec::new(), name, record.clone(), DedicatedThread::default());
        let code = call.refuse(call_state::FileOperation::Open, "b.md", opened.unwrap_err());
        (code, record.take_decisions())
    };
    let (code, record) = std::thread::scope(|scope| scope.spawn(open).join().unwrap());
    assert_eq!(code, ErrorCode::Access);
    let denied = record.first(DecisionKind::Denied).unwrap();
    assert_eq!(denied.target, "open b.md (permission denied on the host)");
    assert!(denied.cure.as_ref().unwrap().contains("chmod"));
}

#[test]
fn refusals_do_not_fill_the_record() {
    let record = CallRecord::default();
    let mut call = FsCallState::new(
        Vec::new(),
        Vec::new(),
        MountName::new("m").unwrap(),
        record.clone(),
        DedicatedThread::default(),
    );
    for n in 0..1000 {
        call.refuse(call_state::FileOperation::Open, &format!("../{n}"), ResolveError::Outside);
        call.refuse(call_state::FileOperation::Stat, &format!("../{n}"), ResolveError::Outside);
        call.refuse(call_state::FileOperation::Stat, "absent", ResolveError::Failed(ErrorCode::NoEntry));
    }
    call.refuse_write(call_state::FileOperation::Write, "an open file");
    let record = record.take_decisions();
    let told: Vec<_> = record.decisions().iter().map(|one| (one.target.as_str(), one.times)).collect();
    assert_eq!(told.len(), 12 * 2 + 3, "{told:?}");
    assert!(told.contains(&("open ../11", 1)) && told.contains(&("stat more paths", 988)), "{told:?}");
    assert!(told.contains(&("write to more paths", 1)) && record.dropped == 0, "{told:?}");
}

#[test]
fn a_forbidden_system_call_is_named() {
    let why = |errno, is_blocked| open_error("notes", errno, is_blocked).to_string();
    for blocked in [why(Errno::NOSYS, true), why(Errno::PERM, true)] {
        assert!(blocked.contains("openat2") && blocked.contains("container runtime"), "{blocked}");
    }
    assert!(why(Errno::PERM, true).contains("seccomp"));
    assert_eq!(why(Errno::ACCESS, false), "cannot open the directory \"notes\": permission denied");
    assert!(!open_directory::is_openat2_blocked(Errno::PERM) && !open_directory::is_openat2_blocked(Errno::ACCESS));
}

#[test]
fn a_path_into_a_mount_needs_a_thread() {
    let temp = tempfile::tempdir().unwrap();
    let base = temp.path().canonicalize().unwrap();
    for dir in ["granted/inner", "other"] {
        std::fs::create_dir_all(base.join(dir)).unwrap();
    }
    std::fs::write(base.join("granted/file"), "x").unwrap();
    std::fs::write(base.join("other/file"), "x").unwrap();
    let dir = root_of(&base, "granted");
    let look = |path: &str, may_block| PathResolver { may_block, ..resolver(&dir) }.lookup(path, true, false).map(drop);
    assert_eq!((look("inner", false), look("..", false)), (Ok(()), Err(ResolveError::Outside)));
    let point = base.join("granted/inner");
    let run = |program: &str, arguments: &[&std::ffi::OsStr]| {
        std::process::Command::new(program).args(arguments).output().is_ok_and(|output| output.status.success())
    };
    if !run("mount", &["--bind".as_ref(), base.join("other").as_os_str(), point.as_os_str()]) {
        // Only root can mount.
        assert!(!rustix::process::geteuid().is_root() || !Path::new("/dev/fuse").exists());
        return;
    }
    let seen = [look("file", false), look("inner/file", false), look("inner", false), look("inner/../file", false)];
    let waited = [look("inner/file", true), look("..", true)];
    assert!(run("umount", &[point.as_os_str()]));
    let needs = Err(ResolveError::NeedsThread);
    assert_eq!(seen, [Ok(()), needs, needs, needs]);
    assert_eq!(waited, [Ok(()), Err(ResolveError::Outside)]);
    assert_eq!(look("inner", false), Ok(()));
}

#[test]
fn a_replaced_directory_is_found_again() {
    let temp = tempfile::tempdir().unwrap();
    let base = temp.path().canonicalize().unwrap();
    std::fs::create_dir(base.join("notes")).unwrap();
    let directory = directory(&base, "notes");
    // Like a call: ask first whether a dedicated thread is needed, and use one if so.
    let root = || {
        directory.expire_last_check();
        let needs_thread = directory.needs_thread();
        directory.root(needs_thread)
    };
    let first = root().unwrap();
    assert!(!directory.needs_thread(), "it is local, and was looked at just now");
    assert_eq!(root().unwrap().identity(), first.identity());
    std::fs::remove_dir(base.join("notes")).unwrap();
    assert_eq!(root().err(), Some(DirectoryUnavailable::Gone));
    std::fs::create_dir(base.join("notes")).unwrap();
    std::fs::write(base.join("notes/new"), "x").unwrap();
    let dir = Dir::of_root(&root().expect("the directory is back"));
    assert!(resolver(&dir).open("new", true, false).is_ok());
    // A link at the path of the directory is not followed.
    std::fs::remove_file(base.join("notes/new")).unwrap();
    std::fs::remove_dir(base.join("notes")).unwrap();
    symlink("/etc", base.join("notes")).unwrap();
    assert_eq!(root().err(), Some(DirectoryUnavailable::Replaced));
    for absent in [
        DirectoryUnavailable::Gone,
        DirectoryUnavailable::Replaced,
        DirectoryUnavailable::PermissionDenied,
        DirectoryUnavailable::DriveError,
    ] {
        assert!(
            absent.cure(true).contains("grant another") || absent.cure(true).contains("let the user"),
            "{absent:?}"
        );
    }
}

#[test]
fn own_directories_are_refused_behind_links_and_dots() {
    let temp = tempfile::tempdir().unwrap();
    let base = temp.path().canonicalize().unwrap();
    for dir in ["jar/data", "state/belljar", "real/plugins"] {
        std::fs::create_dir_all(base.join(dir)).unwrap();
    }
    symlink("../real/plugins", base.join("jar/plugins")).unwrap();
    let own = ["jar/plugins", "jar/../state/belljar", "jar/../state/later/cache"].map(|own| base.join(own));
    let ambient = Ambient { base: base.clone(), home: None, reserved: own.into(), ..Ambient::default() };
    let configure = |host: &str| Fs::configure(&granted("/d", host), &ambient).map_err(|error| error.to_string());
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
    let mut first = DirectoryEntryStream::open(&dir).unwrap();
    assert!(first.next().is_some());
    assert_eq!(DirectoryEntryStream::open(&dir).unwrap().filter(Result::is_ok).count(), 100);
    assert_eq!(first.count(), 99);
}

#[test]
fn a_directory_is_configured_as_a_path_or_as_a_table() {
    let read = |text: &str| text.parse::<toml::Table>().unwrap()["fs"].clone().try_into::<FsConfig>();
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
fn a_directory_that_asks_is_hidden_without_consent() {
    let temp = tempfile::tempdir().unwrap();
    let base = temp.path().canonicalize().unwrap();
    for dir in ["open", "shut"] {
        std::fs::create_dir(base.join(dir)).unwrap();
    }
    let given = |path: &str, ask| config::DirectoryConfig { path: path.into(), ask };
    let config =
        FsConfig([("/open".to_owned(), given("open", false)), ("/shut".to_owned(), given("shut", true))].into());
    let mount = Fs::configure(&config, &ambient(&base)).unwrap();
    let name = MountName::new("m").unwrap();
    let open = |consent: &[Consent]| {
        let record = CallRecord::default();
        let limits = crate::model::Limits::default();
        let deadline = tokio::time::Instant::now();
        let thread = DedicatedThread::default();
        let (limits, record, thread, memory) = (&limits, &record, &thread, &[]);
        let scope = CallScope { mount: &name, limits, deadline, consent, record, thread, memory };
        let call = Fs::open(&mount, &mut WasiCtxBuilder::new(), &scope);
        (call.roots().iter().map(|root| root.guest().to_owned()).collect::<Vec<_>>(), record.take_decisions())
    };
    let shut = Consent { grant: "fs".into(), target: "/shut".to_owned() };
    let (dirs, record) = open(&[]);
    assert_eq!((dirs, record.requested()), (vec!["/open".to_owned()], std::slice::from_ref(&shut)));
    assert!(record.first(DecisionKind::Denied).unwrap().cure.as_ref().unwrap().contains("belljar grant m --fs /shut"));
    let (dirs, record) = open(&[Consent { grant: "http".into(), target: "/shut".to_owned() }, shut]);
    assert_eq!((dirs.len(), record.requested().len(), record.first(DecisionKind::Denied)), (2, 0, None));
}
