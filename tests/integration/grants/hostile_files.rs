//! Hostile rows about file grants. A provider tries to open a path outside of the granted directory, a special file, or
//! a file for writing. The files, links and devices are real.

use std::fs;
use std::os::unix::fs::symlink;
use std::os::unix::net::UnixListener;
use std::sync::atomic::{AtomicBool, Ordering};
use std::time::{Duration, Instant};

use belljar_tests::Site;
use rustix::fs::{CWD, FileType, Mode, RenameFlags, makedev, mknodat, renameat_with};
use rustix::mount::mount_bind;

use crate::expect::{Expect, kind, matching, text};
use crate::hung_file_system::{self, Hung, UnmountOnDrop};
use crate::row::{Guest, Row, RunMode, Stops, hostile_guest};
use crate::running_site::RowContext;
use crate::tools::{check, has_lines, in_time, line, lines_begin, listed, path, refusal, run, shown, within};

const REFUSED: &[&str] = &["/d: refused: "];

/// Switches the second wall (Landlock) off. It would also stop these attacks, and these rows must test the grants
/// alone.
const WALL_OFF: &str = "wall = \"off\"";

/// A row whose hostile guest has a granted directory, with the guest path `/d`. `fill` gets the path of the directory,
/// and creates files in it.
fn granted(
    id: &'static str,
    attack: &'static str,
    fill: impl Fn(&Site, &std::path::Path) + Send + Sync + 'static,
) -> Row {
    let directory = format!("granted-{}", id.to_lowercase());
    let config = format!("fs = {{ \"/d\" = \"{directory}\" }}");
    hostile_guest(id, attack).config(&config).prepare(move |site| {
        site.write(format!("{directory}/file.txt"), "inside");
        site.write(format!("{directory}/sub/inner.txt"), "deep inside");
        fill(site, &site.path(&directory));
    })
}

/// Adds reads with every function that opens a path, for each of `paths`.
fn with_opens(row: Row, paths: &[&str], expect: impl Fn() -> Expect) -> Row {
    paths.iter().fold(row, |row, name| {
        row.read(format!("raw/{}", path(name)), expect()).read(format!("stat/{}", path(name)), expect())
    })
}

pub(crate) fn rows() -> Vec<Row> {
    let mut rows = vec![
        with_opens(
            granted("FS-01", "a provider opens paths that lead out of its directory by `..`", |_, _| {}),
            &[
                "../canary/secret.txt",
                "sub/../../canary/secret.txt",
                "./../canary/secret.txt",
                "sub//..//..//canary/secret.txt",
                "..",
                "/etc/passwd",
                "//etc/passwd",
                "/proc/self/environ",
                "",
                "a\0b",
                &("sub/../".repeat(50) + "../canary/secret.txt"),
                &"x/".repeat(250),
            ],
            || lines_begin(REFUSED),
        )
        .settings(WALL_OFF)
        .stopped_by(&["beneath"]),
        with_opens(
            granted("FS-02", "links inside a granted directory lead out of it", |site, dir| {
                let canary = site.path("canary");
                symlink(canary.join("secret.txt"), dir.join("absolute")).expect("create a symbolic link");
                symlink("../canary/secret.txt", dir.join("relative")).expect("create a symbolic link");
                symlink(&canary, dir.join("directory")).expect("create a symbolic link");
                symlink("absolute", dir.join("by-another")).expect("create a symbolic link");
                symlink("..", dir.join("up")).expect("create a symbolic link");
            }),
            &["absolute", "relative", "directory/secret.txt", "by-another", "up/canary/secret.txt"],
            || lines_begin(REFUSED),
        )
        .settings(WALL_OFF)
        .stopped_by(&["beneath"]),
        with_opens(
            granted("FS-03", "links to themselves, and a chain of sixty links", |_, dir| {
                symlink("itself", dir.join("itself")).expect("create a symbolic link");
                symlink("b", dir.join("a")).expect("create a symbolic link");
                symlink("a", dir.join("b")).expect("create a symbolic link");
                for n in 0..60 {
                    symlink(format!("chain-{}", n + 1), dir.join(format!("chain-{n}")))
                        .expect("create a symbolic link");
                }
                fs::write(dir.join("chain-60"), "the end").expect("write a file");
            }),
            &["itself", "a", "chain-0"],
            || lines_begin(REFUSED),
        )
        .stopped(Stops::Kernel("at most 40 links are followed in a path (ELOOP)")),
        granted("FS-04", "a directory becomes a link to the outside while it is opened", |_, dir| {
            fs::create_dir(dir.join("swap")).expect("create a directory");
            fs::write(dir.join("swap/secret.txt"), "inside").expect("write a file");
            symlink("../canary", dir.join("other")).expect("create a symbolic link");
        })
        .act(swaps)
        .settings(WALL_OFF)
        .stopped_by(&["beneath"]),
        granted(
            "FS-05",
            "/proc, /sys or /dev is granted; paths in these directories lead to the whole host",
            |_, dir| {
                symlink("/proc/self/root/etc/passwd", dir.join("magic")).expect("create a symbolic link");
            },
        )
        .run_mode(RunMode::Unstarted)
        .act(|context| {
            ["/proc", "/proc/self", "/sys", "/dev", "/", "/proc/../dev/shm"]
                .map(|place| refused_grant(context, place, &["never granted", "whole file system"]))
                .join("; ")
        })
        .stopped_by(&["place"]),
        granted("FS-06", "a provider opens files to create, truncate or write them", |_, _| {})
            .read(
                "alter/file%252Etxt",
                has_lines(&[
                    "open to create: not-permitted",
                    "open to create without writing: not-permitted",
                    "open to create anew: not-permitted",
                    "open to truncate: not-permitted",
                    "open to truncate without writing: not-permitted",
                    "open to write: not-permitted",
                    "open to change a directory: not-permitted",
                ]),
            )
            .read("raw/file%252Etxt", lines_begin(&["/d: read \"inside\""]))
            .stopped_by(&["read-only"]),
        granted("FS-07", "a provider renames, removes, links, and sets times and sizes", |_, _| {})
            .read("alter/file%252Etxt", no_change_done())
            .read("alter/sub", no_change_done())
            .read("raw/file%252Etxt", lines_begin(&["/d: read \"inside\""]))
            .stopped(Stops::Structure("no code of belljar changes a granted file")),
        granted("FS-10", "a file in a granted directory is a hard link to a file outside of it", |site, dir| {
            let outside = site.write("elsewhere/file", "linked");
            fs::hard_link(outside, dir.join("linked")).expect("create a hard link");
        })
        .run_mode(RunMode::Unstarted)
        .act(|context| {
            let checked = check(context);
            assert!(checked.to_string().contains("hard links, the first is \\\"linked\\\""), "{checked}");
            "belljar check warns of the hard link".to_owned()
        })
        .stopped(Stops::Structure(
            "an open cannot tell a hard link from another file; belljar check looks for hard links",
        )),
        devices(),
        granted("FS-12", "sockets and FIFOs lie in a granted directory", |_, dir| {
            make(dir, "fifo", FileType::Fifo, 0);
            drop(UnixListener::bind(dir.join("socket")).expect("bind a socket"));
        })
        .time(1500)
        .read("raw/fifo", lines_begin(&["/d: refused: not-permitted"]))
        .read("raw/socket", lines_begin(&["/d: refused: not-permitted"]))
        .stopped_by(&["special"]),
        granted("FS-14", "a grant covers belljar's own files: components, configuration, cache, keys", |site, _| {
            fs::create_dir_all(site.path("cache/belljar")).expect("create a directory");
            fs::create_dir_all(site.path("state/belljar")).expect("create a directory");
            symlink("plugins", site.path("sly")).expect("create a symbolic link");
        })
        .run_mode(RunMode::Unstarted)
        .act(|context| {
            let path_text = |name: &str| context.site().path(name).display().to_string();
            ["plugins", "", "sly"].map(|place| refused_grant(context, &path_text(place), &["belljar's own"])).join("; ")
        })
        .stopped_by(&["place"]),
        granted("FS-15", "a granted directory is removed, replaced by a link, and put back", |_, _| {})
            .run_mode(RunMode::Stdio)
            .act(replaced)
            .stopped(Stops::Structure("each call opens the path again, without following links")),
        granted("FS-16", "a file of 10 GiB is read in one read, and behind its end", |_, dir| {
            let file = fs::File::create(dir.join("sparse")).expect("create a file");
            file.set_len(10 << 30).expect("create a sparse file");
        })
        .read(
            "gorge/sparse",
            matching(|answer| match text(answer) {
                Some(text) if text.contains("read: Ok(65536)") && text.contains("read behind the end: Err") => {
                    Ok("64 KiB in one read".to_owned())
                }
                _ => Err(shown(answer)),
            }),
        )
        .stopped(Stops::Structure("one read returns at most 64 KiB")),
        hostile_guest("FS-17", "file names that are not valid UTF-8")
            .mount("files", Guest::Built("files"))
            .config("fs = { \"/\" = \"granted-fs-17\" }")
            .prepare(|site| {
                use std::os::unix::ffi::OsStrExt as _;
                let before = site.write("granted-fs-17/a.txt", "one");
                site.write("granted-fs-17/z.txt", "two");
                let odd = std::ffi::OsStr::from_bytes(b"m\xff\xfe.txt");
                fs::write(before.parent().expect("the file has a directory").join(odd), "odd")
                    .expect("write a file whose name is not UTF-8");
            })
            .run_mode(RunMode::Unstarted)
            .act(|context| {
                let line = line(context, "");
                let all = listed(&line, "resources/list", "resources", 50);
                for name in ["a.txt", "z.txt"] {
                    let uri = format!("belljar://fs-17-files/{name}");
                    assert!(all.iter().any(|entry| entry["uri"] == *uri), "{uri} is not listed: {all:?}");
                }
                "the other files are listed".to_owned()
            })
            .stopped(Stops::Structure("a name that is not valid UTF-8 is an error of that entry only")),
        granted("FS-18", "a provider or a client tries to learn paths of the host", |site, dir| {
            symlink(site.path("canary"), dir.join("link")).expect("create a symbolic link");
        })
        .act(|context| {
            let root = context.site().path("").display().to_string();
            let root = root.trim_end_matches('/');
            for reference in
                ["open/%252Fd%252Fabsent", "link/link", "cwd", "args", "readdir/%252Fd%252Flink", "panic/x", "raw/link"]
            {
                let said = shown(&context.read(reference));
                assert!(!said.contains(root), "{reference}: {said}");
            }
            "no host path in any answer".to_owned()
        })
        .stopped(Stops::Structure("guests get handles, and errors contain guest paths only")),
        granted("FS-19", "a mount opens the files of another mount that has the same guest path", |_, _| {})
            .mount("other", Guest::Built("guest_hostile"))
            .config("fs = { \"/d\" = \"granted-fs-19-other\" }")
            .act(|context| {
                let answer = context.read("raw/file%252Etxt");
                assert_eq!(text(&answer), Some("/d: read \"inside\""), "{}", shown(&answer));
                for name in ["raw/file%252Etxt", "open/%252Fd%252Ffile%252Etxt"] {
                    let other = context.read_uri(&context.uri_of("other", name));
                    assert!(text(&other).is_some_and(|text| text.contains("refused")), "{}", shown(&other));
                }
                "each mount opens only its own directory".to_owned()
            }),
    ];
    for row in &mut rows {
        if row.id == "FS-19" {
            row.stops = Stops::Structure("a call holds the handles of its own mount only");
            let prepare = row.prepare.take();
            row.prepare = Some(Box::new(move |site| {
                prepare.iter().for_each(|prepare| prepare(site));
                fs::create_dir_all(site.path("granted-fs-19-other")).expect("create a directory");
            }));
        }
    }
    rows.extend([on_record(), link_targets(), no_flushes(), kernel_mounts()]);
    rows.extend([
        no_writing("FS-08", "a file is moved from a read-only directory into a writable one"),
        no_writing("FS-09", "a file is moved between two writable directories"),
        no_writing("FS-13", "a provider fills the disk"),
    ]);
    rows
}

/// The audit record contains the refusal of every function, with the purpose of the call.
fn on_record() -> Row {
    granted(
        "FS-20",
        "a provider calls functions that belljar refuses, and tries to leave no trace in the record",
        |site, dir| {
            symlink("../canary", dir.join("out")).expect("create a symbolic link");
            symlink(site.path("canary"), dir.join("absolute")).expect("create a symbolic link");
        },
    )
    .run_mode(RunMode::Stdio)
    .act(|context| {
        let calls = format!("calls/{}", path("out/secret.txt"));
        let said = context.read(&calls);
        let said = text(&said).unwrap_or_else(|| panic!("{}", shown(&said))).to_owned();
        assert!(said.lines().all(|line| line.contains("/d: refused: ")), "{said}");
        for function in ["fd-set-times", "fd-set-size", "fd-write", "fd-write-stream", "fd-append"] {
            let said = context.read(&format!("call/{function}%2Ffile%252Etxt"));
            assert_eq!(text(&said), Some("/d: refused: not-permitted"), "{function}: {}", shown(&said));
        }
        let said = context.read("call/readlink%2Fabsolute");
        assert_eq!(text(&said), Some("/d: refused: not-permitted"), "{}", shown(&said));
        let records = || fs::read_to_string(context.site().path("audit.jsonl")).unwrap_or_default();
        let wanted = [
            "open out/secret.txt",
            "stat out/secret.txt",
            "read the link out/secret.txt",
            "create the directory out/secret.txt",
            "remove the directory out/secret.txt",
            "remove the file out/secret.txt",
            "rename out/secret.txt",
            "link out/secret.txt",
            "create the link out/secret.txt",
            "set the times of out/secret.txt",
            "set the times of an open file or directory",
            "set the size of an open file",
            "write to an open file",
            "read the link absolute",
        ];
        let missing = || wanted.iter().find(|wanted| !records().contains(&format!("\"{wanted}\"")));
        within(Duration::from_secs(10), || missing().is_none());
        assert_eq!(missing(), None, "{}", records());
        assert!(
            !records().contains(&context.site().path("canary").display().to_string()),
            "the record contains a host path"
        );
        format!("{} refusals on record", wanted.len())
    })
    .stopped(Stops::Structure("belljar implements every function of the filesystem itself, and records each refusal"))
}

/// `readlink` returns the target only for links that stay below the granted directory.
fn link_targets() -> Row {
    let shows = |name: &'static str, target: &'static str| (name, format!("/d: leads to {target:?}"));
    granted("FS-21", "the targets of links reveal paths of the host", |site, dir| {
        fs::create_dir_all(dir.join("a/b")).expect("create directories");
        let host = dir.file_name().expect("the directory has a name").to_string_lossy().into_owned();
        for (name, target) in [
            ("fine", "sub/inner.txt".to_owned()),
            ("dangling", "sub/not-yet".to_owned()),
            ("a/up", "../sub/inner.txt".to_owned()),
            ("a/dangling-up", "../sub/not-yet".to_owned()),
            ("a/b/around", "../../a/./b/../b".to_owned()),
            ("a/b/top", "../..".to_owned()),
            ("absolute", site.path("canary/secret.txt").display().to_string()),
            ("relative", "../canary/secret.txt".to_owned()),
            ("a/relative", "../../canary".to_owned()),
            ("by-its-name", format!("../{host}/file.txt")),
            ("far", format!("{}home/somebody/secret", "../".repeat(20))),
            ("a/missing", "not-there/../../../home/somebody".to_owned()),
            ("slashes", "//etc//passwd".to_owned()),
            ("up", "..".to_owned()),
        ] {
            symlink(target, dir.join(name)).expect("create a symbolic link");
        }
    })
    .act(move |context| {
        for (name, wanted) in [
            shows("fine", "sub/inner.txt"),
            shows("dangling", "sub/not-yet"),
            shows("a/up", "../sub/inner.txt"),
            shows("a/dangling-up", "../sub/not-yet"),
            shows("a/b/around", "../../a/./b/../b"),
            shows("a/b/top", "../.."),
        ] {
            let said = context.read(&format!("link/{}", path(name)));
            assert_eq!(text(&said), Some(wanted.as_str()), "{name}: {}", shown(&said));
        }
        // In a directory below the granted one, a link may lead up to the granted directory.
        let said = context.read(&format!("call/readlink-inside%2F{}", path("a/up")));
        assert_eq!(text(&said), Some("/d: leads to \"../sub/inner.txt\""), "{}", shown(&said));
        let refused = ["absolute", "relative", "a/relative", "by-its-name", "far", "a/missing", "slashes", "up"];
        for name in refused {
            let said = context.read(&format!("link/{}", path(name)));
            assert_eq!(text(&said), Some("/d: refused: not-permitted"), "{name}: {}", shown(&said));
        }
        let said = context.read("link/file%252Etxt");
        assert_eq!(text(&said), Some("/d: refused: invalid"), "{}", shown(&said));
        format!("{} targets shown, {} refused", 6, refused.len())
    })
    .settings(WALL_OFF)
    .stopped_by(&["beneath"])
}

/// Syncing a file that was only read has no effect on the disk.
fn no_flushes() -> Row {
    let hung = std::sync::Arc::new(Hung::default());
    let mounted = std::sync::Arc::clone(&hung);
    hostile_guest("FS-22", "a provider makes the kernel flush the disk again and again, through a read-only directory")
        .needs(Hung::unsupported_reason())
        .config("fs = { \"/d\" = \"granted-fs-22\" }")
        .run_mode(RunMode::Stdio)
        .prepare(move |site| {
            let directory = site.path("granted-fs-22");
            fs::create_dir(&directory).expect("create a directory");
            mounted.mount(&directory, hung_file_system::Stalls::Reads);
        })
        .act(move |context| {
            let _unmount = UnmountOnDrop(&hung);
            for function in ["fd-syncs", "fd-sync", "fd-sync-data", "fd-advise"] {
                let said = context.read(&format!("call/{function}%2Fstuck0"));
                assert_eq!(text(&said), Some("/d: done"), "{function}: {}", shown(&said));
            }
            assert_eq!((hung.flushes(), hung.waiting()), (0, 0), "(flushes, waiting reads) of the disk");
            "more than 800 calls, no flush of the disk".to_owned()
        })
        .stopped(Stops::Structure("sync, sync-data and advise do nothing"))
}

/// A grant of a directory does not include a `/proc` that is mounted inside it.
fn kernel_mounts() -> Row {
    granted("FS-23", "/proc is mounted below a granted directory", |_, dir| {
        fs::create_dir(dir.join("kernel")).expect("create a directory");
    })
    .needs(Hung::unsupported_reason())
    .act(|context| {
        let dir = context.site().path("granted-fs-23");
        let _unmount = Unmount(dir.join("kernel"));
        mount_bind("/proc", dir.join("kernel")).expect("mount /proc");
        for file in ["self/environ", "version", "", "self", "self/root/etc/passwd"] {
            let at = path(format!("kernel/{file}"));
            for reference in [format!("raw/{at}"), format!("stat/{at}"), format!("entries/{at}")] {
                let said = context.read(&reference);
                let refused = text(&said).is_some_and(|said| said.starts_with("/d: refused: "));
                assert!(refused, "{reference}: {}", shown(&said));
            }
        }
        "every path into /proc is refused".to_owned()
    })
    .settings(WALL_OFF)
    .stopped_by(&["place"])
}

/// Unmounts the path when the value is dropped, also during a panic.
struct Unmount(std::path::PathBuf);

impl Drop for Unmount {
    fn drop(&mut self) {
        rustix::mount::unmount(&self.0, rustix::mount::UnmountFlags::DETACH).ok();
    }
}

/// The text of an answer in which every attempt to change a file was refused.
fn no_change_done() -> Expect {
    matching(|answer| match text(answer) {
        Some(text) if text.lines().count() >= 15 && !text.lines().any(|line| line.ends_with(": done")) => {
            Ok(format!("{} attempts, all refused", text.lines().count()))
        }
        _ => Err(shown(answer)),
    })
}

/// Creates a special file. Returns false if this machine does not allow that.
fn make(dir: &std::path::Path, name: &str, kind: FileType, device: u64) -> bool {
    mknodat(CWD, dir.join(name), kind, Mode::RUSR | Mode::WUSR, device).is_ok()
}

/// The reason why this machine cannot test device nodes, if it allows none.
fn no_device_nodes() -> Option<&'static str> {
    let dir = tempfile::tempdir().expect("a directory");
    let is_allowed = make(dir.path(), "zero", FileType::CharacterDevice, makedev(1, 5));
    (!is_allowed).then_some("only root may create device nodes")
}

/// A row about devices.
fn devices() -> Row {
    granted("FS-11", "device nodes lie in a granted directory", |_, dir| {
        make(dir, "zero", FileType::CharacterDevice, makedev(1, 5));
        make(dir, "tty", FileType::CharacterDevice, makedev(5, 0));
        make(dir, "block", FileType::BlockDevice, makedev(7, 0));
    })
    .needs(no_device_nodes())
    .act(|context| {
        let made: Vec<&str> = ["zero", "tty", "block"]
            .into_iter()
            .filter(|name| context.site().path("granted-fs-11").join(name).exists())
            .collect();
        for name in &made {
            let said = context.read(&format!("raw/{name}"));
            assert_eq!(text(&said), Some("/d: refused: not-permitted"), "{name}: {}", shown(&said));
        }
        assert!(!made.is_empty(), "no device node was created");
        format!("{made:?} refused")
    })
    .stopped_by(&["special"])
}

/// Swaps a directory and a link to the canary, again and again, while files are read through them.
fn swaps(context: &RowContext<'_>) -> String {
    let dir = context.site().path("granted-fs-04");
    let stop = AtomicBool::new(false);
    let (mut inside, mut refused) = (0, 0);
    let swaps = std::thread::scope(|scope| {
        let racer = scope.spawn(|| {
            let mut swaps = 0u64;
            while !stop.load(Ordering::Relaxed) {
                renameat_with(CWD, dir.join("swap"), CWD, dir.join("other"), RenameFlags::EXCHANGE)
                    .expect("exchange the directory and the link");
                swaps += 1;
                if swaps.is_multiple_of(20) {
                    std::thread::sleep(Duration::from_micros(200));
                }
            }
            swaps
        });
        let mut read = || {
            let began = Instant::now();
            // At least a hundred reads, and more until both outcomes have occurred.
            while inside + refused < 100
                || (inside.min(refused) < 3 && in_time(began.elapsed(), Duration::from_secs(10)))
            {
                let answer = context.read(&format!("raw/{}", path("swap/secret.txt")));
                match text(&answer) {
                    Some("/d: read \"inside\"") => inside += 1,
                    Some(said) if said.starts_with("/d: refused") => refused += 1,
                    _ => return Err(shown(&answer)),
                }
            }
            Ok(())
        };
        let done = read();
        stop.store(true, Ordering::Relaxed);
        let swaps = racer.join().expect("the racer does not panic");
        done.unwrap_or_else(|why| panic!("{why}"));
        swaps
    });
    assert!(inside > 0 && refused > 0, "the swaps and the reads did not race: {inside} inside, {refused} refused");
    format!("{inside} inside, {refused} refused, {swaps} swaps")
}

/// Checks that belljar refuses a configuration that grants `place`, with one of the reasons `why`.
fn refused_grant(context: &RowContext<'_>, place: &str, why: &[&str]) -> String {
    let name = context.name("");
    context
        .site()
        .config(&format!("[mounts.{name}]\ncomponent = \"guest_hostile.wasm\"\nfs = {{ \"/d\" = {place:?} }}\n"));
    let reason = refusal(&check(context), &name);
    assert!(why.iter().any(|why| reason.contains(why)), "{place}: {reason}");
    format!("{} refused", place.rsplit('/').next().unwrap_or_default())
}

/// A row that asserts: belljar refuses each configuration that asks for a writable directory.
fn no_writing(id: &'static str, attack: &'static str) -> Row {
    hostile_guest(id, attack)
        .prepare(|site| drop(site.write("writable/file", "x")))
        .run_mode(RunMode::Unstarted)
        .act(|context| {
            let name = context.name("");
            for grant in [
                "fs = { \"/d\" = { path = \"writable\", write = true } }",
                "fs = { \"/d\" = { path = \"writable\", mode = \"rw\" } }",
                "fs = { \"/d\" = \"writable:rw\" }",
                "fs = { \"/d:rw\" = \"absent\" }",
                "fs-write = { \"/d\" = \"writable\" }",
                "fs = [{ host = \"writable\", guest = \"/d\", writable = true }]",
                "[mounts.NAME.fs]\n\"/d\" = \"writable\"\nwrite = true",
            ] {
                let grant = grant.replace("NAME", &name);
                let fresh = format!("[mounts.{name}]\ncomponent = \"guest_hostile.wasm\"\n{grant}\n");
                context.site().config(&fresh);
                let (fine, said) = run(context, &["check"]);
                assert!(!fine, "{grant} is accepted: {said}");
            }
            "every configuration that asks for write access is refused".to_owned()
        })
        .stopped(Stops::Structure("the configuration has no setting for write access"))
}

/// Replaces the granted directory by a link, and then by a directory. Reads must never follow the link, and must soon
/// use the new directory.
fn replaced(context: &RowContext<'_>) -> String {
    let (dir, aside) = (context.site().path("granted-fs-15"), context.site().path("aside"));
    let said = |name: &str| {
        let answer = context.read(&format!("raw/{}", path(name)));
        text(&answer).map_or_else(|| answer.as_ref().err().map_or("", kind).to_owned(), str::to_owned)
    };
    assert_eq!(said("file.txt"), "/d: read \"inside\"");
    fs::rename(&dir, &aside).expect("rename the directory");
    symlink("canary", &dir).expect("create a symbolic link");
    let gone = within(Duration::from_secs(5), || {
        assert!(!said("secret.txt").contains("read"), "the link was followed");
        !said("file.txt").contains("read")
    });
    assert!(gone, "the provider still reads the old directory");
    fs::remove_file(&dir).expect("remove the link");
    fs::rename(&aside, &dir).expect("rename the directory");
    assert!(
        within(Duration::from_secs(5), || said("file.txt") == "/d: read \"inside\""),
        "the provider does not read the new directory"
    );
    "gone, then readable again within 5 s".to_owned()
}
