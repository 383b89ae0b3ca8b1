//! A provider can open only a granted directory, and in it only regular files and directories, for reading. The kernel
//! tells the tests every file that is opened ([`Watch`]), and whether a FIFO has a reader.

use std::collections::BTreeMap;
use std::fs;
use std::os::unix::ffi::OsStrExt;
use std::os::unix::fs::{MetadataExt, symlink};
use std::os::unix::net::UnixListener;
use std::path::{Path, PathBuf};
use std::sync::atomic::{AtomicBool, AtomicU64, Ordering};

use belljar_tests::{Client, DEADLINE, Site, Stdio, Watch, wait_until_within};
use rustix::fs::{CWD, FileType, Mode, OFlags, RenameFlags, makedev, mknodat, open, renameat_with};

use crate::support::{attack_by_read, kind, serve, site};

/// The text of the files that belljar must never open.
const CANARY: &str = "canary-7f1d2c";

/// A site with a granted directory, which holds all kinds of links and special files. Beside it is a directory with a
/// canary that belljar must never open.
struct FileSite {
    site: Site,
    /// Keeps the socket file `granted/socket` in use.
    _socket: UnixListener,
    /// The special files that this machine allows the test to create.
    special: Vec<&'static str>,
}

/// Creates the site, with the mounts `hostile` and `files`. Both have the granted directory.
fn file_site() -> FileSite {
    let site = site(
        "[mounts.hostile]\ncomponent = \"hostile.wasm\"\nfs = { \"/data\" = \"granted\" }\n\
         [mounts.files]\nfs = { \"/\" = \"granted\" }\n# files.wasm\n",
    );
    for (path, text) in [
        ("granted/file.txt", "inside"),
        ("granted/sub/inner.txt", "deep inside"),
        ("outside/secret", CANARY),
        ("outside/dir/secret", CANARY),
    ] {
        site.write(path, text);
    }
    let granted = site.path("granted");
    let link = |target: &str, name: &str| symlink(target, granted.join(name)).unwrap();
    let outside = site.path("outside");
    let outside = outside.to_str().unwrap();
    // Links out of the directory.
    link("../outside/secret", "relative");
    link(&format!("{outside}/secret"), "absolute");
    link("../outside", "directory");
    link(outside, "directory-absolute");
    link("..", "up");
    link("../../../../../../../../etc/passwd", "passwd");
    link("relative", "by-another");
    link("sub/../../outside/secret", "by-a-detour");
    link("/proc/self/environ", "environ");
    link("/proc/self/root", "root");
    link("/proc/self/fd", "fds");
    link("../granted-too/secret", "sibling");
    site.write("granted-too/secret", CANARY);
    // Dangling links and loops.
    link("absent", "dangling");
    link("loop-b", "loop-a");
    link("loop-a", "loop-b");
    link("itself", "itself");
    (0..60).for_each(|n| link(&format!(".chain-{}", n + 1), &format!(".chain-{n}")));
    link("file.txt", ".chain-60");
    // Links that may be followed.
    link("file.txt", "inside");
    link("../file.txt", "sub/inside");

    let make = |name: &str, kind, device| mknodat(CWD, granted.join(name), kind, Mode::RUSR | Mode::WUSR, device);
    make("fifo", FileType::Fifo, 0).unwrap();
    let socket = UnixListener::bind(granted.join("socket")).unwrap();
    let mut special = vec!["fifo", "socket"];
    for (name, kind, device) in [
        ("zero", FileType::CharacterDevice, makedev(1, 5)),
        ("tty", FileType::CharacterDevice, makedev(5, 0)),
        ("block", FileType::BlockDevice, makedev(7, 0)),
    ] {
        match make(name, kind, device) {
            Ok(()) => special.push(name),
            #[expect(clippy::print_stderr, reason = "a skipped test must be visible in the output")]
            Err(error) => eprintln!("NOT TESTED: this machine allows no device node \"{name}\": {error}"),
        }
    }
    FileSite { site, _socket: socket, special }
}

impl FileSite {
    /// Watches the two directories that belljar must never open.
    fn canaries(&self) -> [Watch; 2] {
        ["outside", "granted-too"].map(|directory| Watch::over(self.site.path(directory)))
    }

    /// True if a process has the FIFO open for reading.
    fn fifo_has_reader(&self) -> bool {
        let flags = OFlags::WRONLY | OFlags::NONBLOCK;
        match open(self.site.path("granted/fifo"), flags, Mode::empty()) {
            Ok(_) => true,
            Err(rustix::io::Errno::NXIO) => false,
            Err(error) => panic!("the FIFO: {error}"),
        }
    }
}

/// A path as an argument of the hostile guest.
fn encoded(path: &str) -> String {
    let once = |text: &str| {
        text.bytes().fold(String::new(), |all, byte| match byte {
            b'a'..=b'z' | b'A'..=b'Z' | b'0'..=b'9' | b'-' => all + &char::from(byte).to_string(),
            _ => all + &format!("%{byte:02X}"),
        })
    };
    once(&once(path))
}

/// Makes the hostile guest attempt an operation on `path`, and returns its report. `verb` selects the operation.
fn attempt(client: &mut Client<Stdio>, verb: &str, path: &str) -> String {
    let attack = attack_by_read(client, &format!("belljar://hostile/{verb}/{}", encoded(path)));
    let result = attack.answer.unwrap_or_else(|error| panic!("{verb} {path}: {error}"));
    let said = result["contents"][0]["text"].as_str().unwrap().to_owned();
    assert!(!said.contains(CANARY), "{verb} {path}: {said}");
    said
}

/// Paths that lead out of the granted directory, or that a careless parser would resolve to a place outside.
const PATHS_OUTSIDE: [&str; 32] = [
    "..",
    "../outside/secret",
    "../granted-too/secret",
    "../../../../../../../../../../etc/passwd",
    "sub/../../outside/secret",
    "./../outside/secret",
    "sub/./.././../outside/secret",
    "sub//..//..//outside/secret",
    "../granted/file.txt",
    "/etc/passwd",
    "//etc/passwd",
    "/",
    "/proc/self/environ",
    "/dev/zero",
    "relative",
    "relative/",
    "absolute",
    "absolute/.",
    "directory",
    "directory/secret",
    "directory/dir/secret",
    "directory/../outside/secret",
    "directory-absolute/secret",
    "up",
    "up/outside/secret",
    "passwd",
    "by-another",
    "by-a-detour",
    "environ",
    "root/etc/passwd",
    "fds/0",
    "sibling",
];

#[test]
fn granted_files_can_be_read() {
    let files = file_site();
    let mut client = serve(&files.site);
    for (path, text) in [
        ("file.txt", "inside"),
        ("sub/inner.txt", "deep inside"),
        ("inside", "inside"),
        ("sub/inside", "inside"),
        ("sub/../file.txt", "inside"),
    ] {
        assert_eq!(attempt(&mut client, "raw", path), format!("/data: read {text:?}"), "{path}");
        assert_eq!(attempt(&mut client, "open", &format!("/data/{path}")), format!("read {text:?}"), "{path}");
    }
    assert_eq!(attempt(&mut client, "readdir", "/data/sub"), "listed [\"inner.txt\", \"inside\"]");
    assert_eq!(client.text("belljar://files/file.txt"), "inside");
    assert_eq!(client.text("belljar://files/sub/inside"), "inside");
}

#[test]
fn files_outside_the_granted_directory_are_not_opened() {
    let files = file_site();
    let mut client = serve(&files.site);
    let mut canaries = files.canaries();
    for path in PATHS_OUTSIDE {
        assert!(attempt(&mut client, "raw", path).starts_with("/data: refused: "), "{path}");
        // The size must not be visible either.
        assert!(attempt(&mut client, "stat", path).starts_with("/data: refused: "), "{path}");
        let guests = [format!("/data/{path}"), path.to_owned()];
        // The path `/data//` is the granted directory itself, so opening it is allowed.
        for guest in guests.iter().filter(|guest| *guest != "/data//") {
            assert!(attempt(&mut client, "open", guest).starts_with("refused: "), "{guest}");
            assert!(attempt(&mut client, "readdir", guest).starts_with("refused: "), "{guest}");
        }
    }
    for canary in &mut canaries {
        assert_eq!(canary.opened(), Vec::<PathBuf>::new());
    }
    assert!(client.close().status.success());
    let is_on_record = |path: &str| {
        let denies = |record: &serde_json::Value| {
            let denials = record["denials"].as_array().unwrap();
            denials.iter().any(|denial| denial["grant"] == "fs" && denial["what"] == format!("open {path}"))
        };
        assert!(files.site.audit().iter().any(denies), "the refusal of {path} is not on record");
    };
    PATHS_OUTSIDE.into_iter().for_each(is_on_record);
    // Check that the watches work: they must report an open by the test itself.
    fs::read(files.site.path("outside/secret")).unwrap();
    assert_eq!(canaries[0].opened(), [files.site.path("outside/secret")]);
}

#[test]
fn paths_that_name_no_file_are_errors() {
    let files = file_site();
    let mut client = serve(&files.site);
    let long = ["x".repeat(200), "x/".repeat(300), "sub/../".repeat(60) + "absent"];
    for path in long.iter().map(String::as_str).chain(["", "file.txt/", "file.txt/x", "sub/", "sub/.", "absent"]) {
        let said = attempt(&mut client, "raw", path);
        assert!(said.starts_with("/data: refused: "), "{path}: {said}");
    }
}

/// belljar must not open a FIFO, a socket or a device, and must not wait for them.
#[test]
fn special_files_are_not_touched() {
    let files = file_site();
    assert!(!files.fifo_has_reader());
    let mut client = serve(&files.site);
    let mut granted = Watch::over(files.site.path("granted"));
    for name in &files.special {
        assert_eq!(attempt(&mut client, "raw", name), "/data: refused: not-permitted", "{name}");
        for path in [format!("/data/{name}"), format!("/data/sub/../{name}")] {
            assert!(attempt(&mut client, "open", &path).starts_with("refused: PermissionDenied"), "{path}");
        }
        let error = client.read(&format!("belljar://files/{name}")).expect_err(name);
        assert_eq!(kind(&error), "denied", "{name}: {error}");
        assert!(!files.fifo_has_reader());
    }
    let special: Vec<PathBuf> = files.special.iter().map(|name| files.site.path("granted").join(name)).collect();
    // `fifo_has_reader` opens the FIFO, and the kernel reports that open too.
    let opened: Vec<_> = granted.opened().into_iter().filter(|path| special.contains(path)).collect();
    let fifo = files.site.path("granted/fifo");
    assert!(opened.iter().all(|path| *path == fifo), "{opened:?}");
    assert!(client.close().status.success());
    for name in &files.special {
        let denied = |record: &serde_json::Value| record["denials"].to_string().contains(&format!("\"open {name}\""));
        assert!(files.site.audit().iter().any(denied), "the refusal of {name} is not on record");
    }
}

/// The real provider `files` reports refused paths, and does not list them.
#[test]
fn the_files_provider_lists_and_reads_only_granted_files() {
    let files = file_site();
    let mut canaries = files.canaries();
    let mut client = serve(&files.site);
    let uris = client.uris();
    let references: Vec<_> = uris.iter().filter_map(|uri| uri.strip_prefix("belljar://files/")).collect();
    assert_eq!(references, ["file.txt", "inside", "sub/inner.txt", "sub/inside"]);
    for (reference, expected) in [
        ("relative", &["denied"][..]),
        ("absolute", &["denied"]),
        ("directory/secret", &["denied"]),
        ("up/outside/secret", &["denied"]),
        ("by-another", &["denied"]),
        ("root/etc/passwd", &["denied"]),
        ("environ", &["denied"]),
        ("loop-a", &["failed", "denied", "not-found"]),
        ("dangling", &["not-found"]),
    ] {
        let error = client.read(&format!("belljar://files/{reference}")).expect_err(reference);
        assert!(expected.contains(&kind(&error)), "{reference}: {error}");
        assert!(
            !error.to_string().contains(CANARY) && !error.to_string().contains("outside/secret")
                || reference.contains("outside"),
            "{reference}: {error}"
        );
    }
    for canary in &mut canaries {
        assert_eq!(canary.opened(), Vec::<PathBuf>::new());
    }
}

/// The attributes of a file. Every change of a file changes at least one of them.
#[derive(Debug, PartialEq, Eq)]
struct State {
    mode: u32,
    links: u64,
    modified: (i64, i64),
    bytes: Vec<u8>,
}

/// The state of all files below a directory, by path.
fn state(directory: &Path) -> BTreeMap<PathBuf, State> {
    let mut all = BTreeMap::new();
    for entry in fs::read_dir(directory).unwrap() {
        let path = entry.unwrap().path();
        let meta = fs::symlink_metadata(&path).unwrap();
        let kind = meta.file_type();
        let bytes = if kind.is_symlink() {
            fs::read_link(&path).unwrap().as_os_str().as_bytes().to_vec()
        } else if kind.is_file() {
            fs::read(&path).unwrap()
        } else {
            Vec::new()
        };
        if kind.is_dir() {
            all.extend(state(&path));
        }
        let modified = (meta.mtime(), meta.mtime_nsec());
        all.insert(path, State { mode: meta.mode(), links: meta.nlink(), modified, bytes });
    }
    all
}

#[test]
fn a_provider_cannot_change_a_file() {
    let files = file_site();
    let before = state(&files.site.path("granted"));
    let outside = state(&files.site.path("outside"));
    let mut client = serve(&files.site);
    // The least number of operations that the hostile guest attempts on each path.
    for (path, attempts) in [
        ("file.txt", 20),
        ("sub/inner.txt", 20),
        ("inside", 20),
        ("sub", 15),
        ("relative", 15),
        ("../outside/secret", 15),
        ("up/outside/secret", 15),
    ] {
        let said = attempt(&mut client, "alter", path);
        let lines: Vec<_> = said.lines().collect();
        assert!(lines.len() >= attempts, "{path}: {said}");
        let done: Vec<_> = lines.iter().filter(|line| line.ends_with(": done")).collect();
        assert!(done.is_empty(), "{path}: {done:?}");
        for attempt in ["open to create", "open to truncate", "open to write"] {
            assert!(lines.contains(&format!("{attempt}: not-permitted").as_str()), "{path}: {said}");
        }
    }
    assert_eq!(state(&files.site.path("granted")), before);
    assert_eq!(state(&files.site.path("outside")), outside);
}

#[test]
fn without_a_grant_a_provider_can_open_no_file() {
    let site = site("[mounts.hostile]\ncomponent = \"hostile.wasm\"\n");
    let mut client = serve(&site);
    for path in ["x", ".", "/", "/etc/passwd", ".."] {
        assert_eq!(attempt(&mut client, "raw", path), "no directory is granted", "{path}");
        assert!(attempt(&mut client, "open", path).starts_with("refused: "), "{path}");
        assert!(attempt(&mut client, "readdir", path).starts_with("refused: "), "{path}");
    }
}

/// The least number of reads, and of exchanges, in a race of this file. Row FS-04 has the race of a directory that
/// becomes a link.
const RACES: u64 = 1000;

/// Exchanges the files `a` and `b` again and again, and calls `read` meanwhile. Ends after at least [`RACES`] exchanges
/// and [`RACES`] reads, as soon as `read` returns true: then the outcomes that the test needs have occurred.
fn race(a: &Path, b: &Path, mut read: impl FnMut() -> bool) {
    let (stop, exchanges) = (AtomicBool::new(false), AtomicU64::new(0));
    std::thread::scope(|scope| {
        scope.spawn(|| {
            while !stop.load(Ordering::Relaxed) {
                renameat_with(CWD, a, CWD, b, RenameFlags::EXCHANGE).unwrap();
                exchanges.fetch_add(1, Ordering::Relaxed);
            }
        });
        let work = || {
            let mut reads = 0;
            wait_until_within(DEADLINE * 3, "reads and exchanges that race", || {
                let is_enough = (0..100).fold(false, |_, _| read());
                reads += 100;
                let exchanges = exchanges.load(Ordering::Relaxed);
                let is_enough = is_enough && reads >= RACES && exchanges >= RACES;
                is_enough.then_some(()).ok_or_else(|| format!("{reads} reads, {exchanges} exchanges"))
            });
        };
        let result = std::panic::catch_unwind(std::panic::AssertUnwindSafe(work));
        stop.store(true, Ordering::Relaxed);
        result.unwrap_or_else(|failure| std::panic::resume_unwind(failure));
    });
}

/// A FIFO that replaces a file between the check and the open must not block belljar.
#[test]
fn a_file_that_becomes_a_fifo_during_a_read_blocks_no_call() {
    let files = file_site();
    let mut client = serve(&files.site);
    race(&files.site.path("granted/file.txt"), &files.site.path("granted/fifo"), || {
        let said = client.text(&format!("belljar://hostile/raw/{}", encoded("file.txt")));
        assert!(said == "/data: read \"inside\"" || said.starts_with("/data: refused"), "{said}");
        true
    });
}

/// Checks that the test itself can read the canary by the links. Otherwise the refusals above would prove nothing.
#[test]
fn the_canary_can_be_read_from_outside() {
    let files = file_site();
    assert_eq!(fs::read_to_string(files.site.path("granted/relative")).unwrap(), CANARY);
    assert_eq!(fs::read_to_string(files.site.path("granted/directory/dir/secret")).unwrap(), CANARY);
    assert!(fs::read(files.site.path("granted/loop-a")).is_err());
}
