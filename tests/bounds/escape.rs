//! A granted directory is all that can be opened, and of it only regular files and directories, for reading. The judge is
//! the kernel: it tells what was opened ([`Watch`]), and a FIFO tells whether it ever had a reader.

use std::collections::BTreeMap;
use std::fs;
use std::os::unix::ffi::OsStrExt;
use std::os::unix::fs::{MetadataExt, symlink};
use std::os::unix::net::UnixListener;
use std::path::{Path, PathBuf};
use std::sync::atomic::{AtomicBool, Ordering};
use std::time::{Duration, Instant};

use belljar_tests::{Client, Site, Stdio, Watch};
use rustix::fs::{CWD, FileType, Mode, OFlags, RenameFlags, makedev, mknodat, open, renameat_with};

use crate::place::{SLACK, attack_by_read, kind, serve, site};

const CANARY: &str = "canary-7f1d2c";

/// A granted directory with everything in it that should not be followed or opened, and beside it a directory with a
/// canary that nobody opens.
struct Cage {
    site: Site,
    _socket: UnixListener,
    /// The special files that this machine lets us make.
    special: Vec<&'static str>,
}

fn cage() -> Cage {
    let site = site(
        "[mounts.imp]\ncomponent = \"imp.wasm\"\nfs = { \"/data\" = \"granted\" }\n\
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
    // Those that lead out.
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
    // Those that lead nowhere.
    link("absent", "dangling");
    link("loop-b", "loop-a");
    link("loop-a", "loop-b");
    link("itself", "itself");
    (0..60).for_each(|n| link(&format!(".chain-{}", n + 1), &format!(".chain-{n}")));
    link("file.txt", ".chain-60");
    // And those that are fine.
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
            #[expect(clippy::print_stderr, reason = "what is not tested must be seen")]
            Err(error) => eprintln!("NOT TESTED: a device node \"{name}\" cannot be made here: {error}"),
        }
    }
    Cage { site, _socket: socket, special }
}

impl Cage {
    fn canaries(&self) -> [Watch; 2] {
        ["outside", "granted-too"].map(|directory| Watch::over(self.site.path(directory)))
    }

    /// Whether some process has the FIFO open for reading.
    fn fifo_has_reader(&self) -> bool {
        let flags = OFlags::WRONLY | OFlags::NONBLOCK;
        match open(self.site.path("granted/fifo"), flags, Mode::empty()) {
            Ok(_) => true,
            Err(rustix::io::Errno::NXIO) => false,
            Err(error) => panic!("the FIFO: {error}"),
        }
    }
}

/// A path as an argument of the imp.
fn encoded(path: &str) -> String {
    let once = |text: &str| {
        text.bytes().fold(String::new(), |all, byte| match byte {
            b'a'..=b'z' | b'A'..=b'Z' | b'0'..=b'9' | b'-' => all + &char::from(byte).to_string(),
            _ => all + &format!("%{byte:02X}"),
        })
    };
    once(&once(path))
}

/// What the imp says of an attempt on `path`.
fn attempt(client: &mut Client<Stdio>, verb: &str, path: &str) -> String {
    let attack = attack_by_read(client, &format!("belljar://imp/{verb}/{}", encoded(path)));
    assert!(attack.took < Duration::from_secs(5) + SLACK, "{verb} {path} took {:?}", attack.took);
    let result = attack.answer.unwrap_or_else(|error| panic!("{verb} {path}: {error}"));
    let said = result["contents"][0]["text"].as_str().unwrap().to_owned();
    assert!(!said.contains(CANARY), "{verb} {path}: {said}");
    said
}

/// Paths that lead out of the granted directory, or would if somebody took them apart differently.
const OUT: [&str; 32] = [
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
fn what_was_granted_can_be_read() {
    let cage = cage();
    let mut client = serve(&cage.site);
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
fn nothing_outside_is_opened() {
    let cage = cage();
    let mut client = serve(&cage.site);
    let mut canaries = cage.canaries();
    for path in OUT {
        assert!(attempt(&mut client, "raw", path).starts_with("/data: refused: "), "{path}");
        // Not even how large it is.
        assert!(attempt(&mut client, "stat", path).starts_with("/data: refused: "), "{path}");
        let guests = [format!("/data/{path}"), path.to_owned()];
        // With nothing behind it, that is the granted directory.
        for guest in guests.iter().filter(|guest| *guest != "/data//") {
            assert!(attempt(&mut client, "open", guest).starts_with("refused: "), "{guest}");
            assert!(attempt(&mut client, "readdir", guest).starts_with("refused: "), "{guest}");
        }
    }
    for canary in &mut canaries {
        assert_eq!(canary.opened(), Vec::<PathBuf>::new());
    }
    assert!(client.close().status.success());
    let denied = |what: &str| {
        let denies = |record: &serde_json::Value| {
            let denials = record["denials"].as_array().unwrap();
            denials.iter().any(|denial| denial["grant"] == "fs" && denial["what"] == format!("open {what}"))
        };
        assert!(cage.site.audit().iter().any(denies), "the refusal of {what} is not on record");
    };
    OUT.into_iter().for_each(denied);
    // The watches would have told.
    fs::read(cage.site.path("outside/secret")).unwrap();
    assert_eq!(canaries[0].opened(), [cage.site.path("outside/secret")]);
}

/// Whatever a link holds, where it leads on the host is not told.
#[test]
fn a_link_does_not_tell_the_hosts_paths() {
    let cage = cage();
    let mut client = serve(&cage.site);
    assert_eq!(attempt(&mut client, "link", "inside"), "/data: leads to \"file.txt\"");
    for path in ["absolute", "directory-absolute", "environ", "../granted/inside", "/proc/self/exe"] {
        let said = attempt(&mut client, "link", path);
        assert!(said.starts_with("/data: refused: "), "{path}: {said}");
    }
}

#[test]
fn links_without_an_end_are_errors() {
    let cage = cage();
    let mut client = serve(&cage.site);
    for path in ["loop-a", "itself", ".chain-0", "loop-a/x", "dangling"] {
        assert!(attempt(&mut client, "raw", path).starts_with("/data: refused: "), "{path}");
        assert!(attempt(&mut client, "open", &format!("/data/{path}")).starts_with("refused: "), "{path}");
    }
    let long = ["x".repeat(200), "x/".repeat(300), "sub/../".repeat(60) + "absent"];
    for path in long.iter().map(String::as_str).chain(["", "file.txt/", "file.txt/x", "sub/", "sub/.", "absent"]) {
        let said = attempt(&mut client, "raw", path);
        assert!(said.starts_with("/data: refused: "), "{path}: {said}");
    }
}

/// A FIFO has no reader, a socket no peer, a device no user; and nothing waits for them.
#[test]
fn special_files_are_not_touched() {
    let cage = cage();
    assert!(!cage.fifo_has_reader());
    let mut client = serve(&cage.site);
    let mut granted = Watch::over(cage.site.path("granted"));
    for name in &cage.special {
        let began = Instant::now();
        assert_eq!(attempt(&mut client, "raw", name), "/data: refused: not-permitted", "{name}");
        for path in [format!("/data/{name}"), format!("/data/sub/../{name}")] {
            assert!(attempt(&mut client, "open", &path).starts_with("refused: PermissionDenied"), "{path}");
        }
        let error = client.read(&format!("belljar://files/{name}")).expect_err(name);
        assert_eq!(kind(&error), "denied", "{name}: {error}");
        assert!(began.elapsed() < SLACK, "{name} took {:?}", began.elapsed());
        assert!(!cage.fifo_has_reader());
    }
    let special: Vec<PathBuf> = cage.special.iter().map(|name| cage.site.path("granted").join(name)).collect();
    // To ask the FIFO for its readers opens it, and the kernel keeps that on record too.
    let opened: Vec<_> = granted.opened().into_iter().filter(|path| special.contains(path)).collect();
    let asked = cage.site.path("granted/fifo");
    assert!(opened.iter().all(|path| *path == asked), "{opened:?}");
    assert!(client.close().status.success());
    for name in &cage.special {
        let denied = |record: &serde_json::Value| record["denials"].to_string().contains(&format!("\"open {name}\""));
        assert!(cage.site.audit().iter().any(denied), "the refusal of {name} is not on record");
    }
}

/// The provider that people use says what it refuses, and lists nothing of it.
#[test]
fn the_files_provider_lists_and_reads_only_what_is_inside() {
    let cage = cage();
    let mut canaries = cage.canaries();
    let mut client = serve(&cage.site);
    let uris = client.uris();
    let own: Vec<_> = uris.iter().filter_map(|uri| uri.strip_prefix("belljar://files/")).collect();
    assert_eq!(own, ["file.txt", "inside", "sub/inner.txt", "sub/inside"]);
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

/// Everything about a file that a change would change.
#[derive(Debug, PartialEq, Eq)]
struct State {
    mode: u32,
    links: u64,
    modified: (i64, i64),
    bytes: Vec<u8>,
}

/// The state of all that is below a directory.
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
fn nothing_can_be_changed() {
    let cage = cage();
    let before = state(&cage.site.path("granted"));
    let outside = state(&cage.site.path("outside"));
    let mut client = serve(&cage.site);
    for (path, ways) in [
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
        assert!(lines.len() >= ways, "{path}: {said}");
        let done: Vec<_> = lines.iter().filter(|line| line.ends_with(": done")).collect();
        assert!(done.is_empty(), "{path}: {done:?}");
        for way in ["open to create", "open to truncate", "open to write"] {
            assert!(lines.contains(&format!("{way}: not-permitted").as_str()), "{path}: {said}");
        }
    }
    assert_eq!(state(&cage.site.path("granted")), before);
    assert_eq!(state(&cage.site.path("outside")), outside);
}

#[test]
fn without_a_grant_there_is_no_file() {
    let site = site("[mounts.imp]\ncomponent = \"imp.wasm\"\n");
    let mut client = serve(&site);
    for path in ["x", ".", "/", "/etc/passwd", ".."] {
        assert_eq!(attempt(&mut client, "raw", path), "no directory is granted", "{path}");
        assert!(attempt(&mut client, "open", path).starts_with("refused: "), "{path}");
        assert!(attempt(&mut client, "readdir", path).starts_with("refused: "), "{path}");
    }
}

/// The same guest path in two mounts is two directories, and none in a third.
#[test]
fn a_grant_is_its_own_mounts() {
    let site = site(
        "[mounts.one]\ncomponent = \"imp.wasm\"\nfs = { \"/d\" = \"one\" }\n\
         [mounts.two]\ncomponent = \"imp.wasm\"\nfs = { \"/d\" = \"two\" }\n[mounts.none]\ncomponent = \"imp.wasm\"\n",
    );
    site.write("one/file", "of one");
    site.write("two/file", "of two");
    let mut client = serve(&site);
    for _ in 0..20 {
        for (mount, said) in
            [("one", "/d: read \"of one\""), ("two", "/d: read \"of two\""), ("none", "no directory is granted")]
        {
            assert_eq!(client.text(&format!("belljar://{mount}/raw/file")), said);
        }
    }
}

/// Exchanges `a` and `b` again and again while `work` runs.
fn racing(a: &Path, b: &Path, work: impl FnOnce()) {
    let stop = AtomicBool::new(false);
    std::thread::scope(|scope| {
        let racer = scope.spawn(|| {
            let mut exchanges = 0u64;
            while !stop.load(Ordering::Relaxed) {
                renameat_with(CWD, a, CWD, b, RenameFlags::EXCHANGE).unwrap();
                exchanges += 1;
            }
            exchanges
        });
        let result = std::panic::catch_unwind(std::panic::AssertUnwindSafe(work));
        stop.store(true, Ordering::Relaxed);
        assert!(racer.join().unwrap() > 1000, "no race took place");
        result.unwrap_or_else(|failure| std::panic::resume_unwind(failure));
    });
}

/// What is looked at is what is opened, also when somebody puts a link in its place in between.
#[test]
fn a_directory_that_becomes_a_link_meanwhile_leads_nowhere() {
    let cage = cage();
    cage.site.write("granted/swap/secret", "inside");
    symlink("../outside", cage.site.path("granted/other")).unwrap();
    let mut client = serve(&cage.site);
    let mut canaries = cage.canaries();
    let (mut read, mut refused) = (0, 0);
    racing(&cage.site.path("granted/swap"), &cage.site.path("granted/other"), || {
        for _ in 0..1500 {
            match client.text(&format!("belljar://imp/raw/{}", encoded("swap/secret"))).as_str() {
                "/data: read \"inside\"" => read += 1,
                said if said.starts_with("/data: refused") => refused += 1,
                said => panic!("{said}"),
            }
        }
    });
    for canary in &mut canaries {
        assert_eq!(canary.opened(), Vec::<PathBuf>::new(), "after {read} reads and {refused} refusals");
    }
    assert!(read > 0 && refused > 0, "{read} reads, {refused} refusals");
}

/// A FIFO that takes a file's place in between hangs nothing.
#[test]
fn a_file_that_becomes_a_fifo_meanwhile_hangs_nothing() {
    let cage = cage();
    let mut client = serve(&cage.site);
    racing(&cage.site.path("granted/file.txt"), &cage.site.path("granted/fifo"), || {
        for _ in 0..1500 {
            let said = client.text(&format!("belljar://imp/raw/{}", encoded("file.txt")));
            assert!(said == "/data: read \"inside\"" || said.starts_with("/data: refused"), "{said}");
        }
    });
}

/// A directory that is not there any more is an error of the read, and one that comes back is found again.
#[test]
fn a_granted_directory_that_is_replaced_by_a_link_leads_nowhere() {
    let cage = cage();
    let mut client = serve(&cage.site);
    assert_eq!(attempt(&mut client, "raw", "file.txt"), "/data: read \"inside\"");
    let (granted, aside) = (cage.site.path("granted"), cage.site.path("aside"));
    fs::rename(&granted, &aside).unwrap();
    symlink("outside", &granted).unwrap();
    let mut canaries = cage.canaries();
    let began = Instant::now();
    // For a moment the old directory may still be used; never the link.
    while !attempt(&mut client, "raw", "file.txt").contains("no directory") {
        assert!(!attempt(&mut client, "raw", "secret").contains("read"));
        assert!(began.elapsed() < SLACK, "the old directory is still used");
    }
    for canary in &mut canaries {
        assert_eq!(canary.opened(), Vec::<PathBuf>::new());
    }
    fs::remove_file(&granted).unwrap();
    fs::rename(&aside, &granted).unwrap();
    while attempt(&mut client, "raw", "file.txt") != "/data: read \"inside\"" {
        assert!(began.elapsed() < SLACK * 2, "the directory is not found again");
    }
}

/// A canary that could not be read by anyone would prove nothing.
#[test]
fn the_canary_can_be_read_from_outside() {
    let cage = cage();
    assert_eq!(fs::read_to_string(cage.site.path("granted/relative")).unwrap(), CANARY);
    assert_eq!(fs::read_to_string(cage.site.path("granted/directory/dir/secret")).unwrap(), CANARY);
    assert!(fs::read(cage.site.path("granted/loop-a")).is_err());
}
