//! Files: a granted directory is all that can be opened, of it only regular files and directories, and only for reading.

use std::fs;
use std::os::unix::fs::symlink;
use std::os::unix::net::UnixListener;
use std::sync::atomic::{AtomicBool, Ordering};
use std::time::{Duration, Instant};

use belljar_tests::Site;
use rustix::fs::{CWD, FileType, Mode, RenameFlags, makedev, mknodat, renameat_with};
use rustix::mount::mount_bind;

use crate::expect::{Expect, kind, text, that};
use crate::hung::{self, Ending, Hung};
use crate::row::{Guest, Row, Stops, Way, imp};
use crate::scene::Scene;
use crate::tools::{check, has_lines, line, lines_begin, listed, path, refusal, run, shown, within};

const REFUSED: &[&str] = &["/d: refused: "];

/// Without the second wall, which would stop these too: the first has to do it alone.
const ONE_WALL: &str = "wall = \"off\"";

/// A row about the imp with a directory granted as `/d`, in which `fill` has put something.
fn granted(
    id: &'static str,
    attack: &'static str,
    fill: impl Fn(&Site, &std::path::Path) + Send + Sync + 'static,
) -> Row {
    let directory = format!("granted-{}", id.to_lowercase());
    let config = format!("fs = {{ \"/d\" = \"{directory}\" }}");
    imp(id, attack).config(&config).prepare(move |site| {
        site.write(format!("{directory}/file.txt"), "inside");
        site.write(format!("{directory}/sub/inner.txt"), "deep inside");
        fill(site, &site.path(&directory));
    })
}

/// Every way of the imp to open a path.
fn opened(row: Row, paths: &[&str], expect: impl Fn() -> Expect) -> Row {
    paths.iter().fold(row, |row, name| {
        row.read(format!("raw/{}", path(name)), expect()).read(format!("stat/{}", path(name)), expect())
    })
}

pub(crate) fn rows() -> Vec<Row> {
    let mut rows = vec![
        opened(
            granted("FS-01", "a provider asks for paths that climb out of its directory", |_, _| {}),
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
        .settings(ONE_WALL)
        .stopped_by(&["beneath"]),
        opened(
            granted("FS-02", "links inside a granted directory lead out of it", |site, dir| {
                let canary = site.path("canary");
                symlink(canary.join("secret.txt"), dir.join("absolute")).expect("a link");
                symlink("../canary/secret.txt", dir.join("relative")).expect("a link");
                symlink(&canary, dir.join("directory")).expect("a link");
                symlink("absolute", dir.join("by-another")).expect("a link");
                symlink("..", dir.join("up")).expect("a link");
            }),
            &["absolute", "relative", "directory/secret.txt", "by-another", "up/canary/secret.txt"],
            || lines_begin(REFUSED),
        )
        .settings(ONE_WALL)
        .stopped_by(&["beneath"]),
        opened(
            granted("FS-03", "links that lead to themselves, or forty times on", |_, dir| {
                symlink("itself", dir.join("itself")).expect("a link");
                symlink("b", dir.join("a")).expect("a link");
                symlink("a", dir.join("b")).expect("a link");
                for n in 0..60 {
                    symlink(format!("chain-{}", n + 1), dir.join(format!("chain-{n}"))).expect("a link");
                }
                fs::write(dir.join("chain-60"), "the end").expect("a file");
            }),
            &["itself", "a", "chain-0"],
            || lines_begin(REFUSED),
        )
        .stopped(Stops::Kernel("a path has at most 40 links (ELOOP)")),
        granted("FS-04", "a directory becomes a link to the outside while it is opened", |_, dir| {
            fs::create_dir(dir.join("swap")).expect("a directory");
            fs::write(dir.join("swap/secret.txt"), "inside").expect("a file");
            symlink("../canary", dir.join("other")).expect("a link");
        })
        .act(swaps)
        .settings(ONE_WALL)
        .stopped_by(&["beneath"]),
        granted("FS-05", "/proc, /sys or /dev is granted, where a path leads to the host itself", |_, dir| {
            symlink("/proc/self/root/etc/passwd", dir.join("magic")).expect("a link");
        })
        .way(Way::Unstarted)
        .act(|scene| {
            ["/proc", "/proc/self", "/sys", "/dev", "/", "/proc/../dev/shm"]
                .map(|place| refused_grant(scene, place, &["never granted", "whole file system"]))
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
            .read("alter/file%252Etxt", nothing_done())
            .read("alter/sub", nothing_done())
            .read("raw/file%252Etxt", lines_begin(&["/d: read \"inside\""]))
            .stopped(Stops::Structure("no code of belljar's changes a granted file")),
        granted("FS-10", "a file in a granted directory has another name outside of it", |site, dir| {
            let outside = site.write("elsewhere/file", "linked");
            fs::hard_link(outside, dir.join("linked")).expect("a hard link");
        })
        .way(Way::Unstarted)
        .act(|scene| {
            let checked = check(scene);
            assert!(checked.to_string().contains("hard links, the first is \\\"linked\\\""), "{checked}");
            "belljar check warns of it".to_owned()
        })
        .stopped(Stops::Structure("no open can tell; belljar check looks for such files")),
        special(),
        granted("FS-12", "sockets and FIFOs lie in a granted directory", |_, dir| {
            make(dir, "fifo", FileType::Fifo, 0);
            drop(UnixListener::bind(dir.join("socket")).expect("a socket"));
        })
        .time(1500)
        .read("raw/fifo", lines_begin(&["/d: refused: not-permitted"]))
        .read("raw/socket", lines_begin(&["/d: refused: not-permitted"]))
        .stopped_by(&["special"]),
        granted("FS-14", "a grant covers belljar's own files: components, configuration, cache, keys", |site, _| {
            fs::create_dir_all(site.path("cache/belljar")).expect("a directory");
            fs::create_dir_all(site.path("state/belljar")).expect("a directory");
            symlink("plugins", site.path("sly")).expect("a link");
        })
        .way(Way::Unstarted)
        .act(|scene| {
            let own = |name: &str| scene.site().path(name).display().to_string();
            ["plugins", "", "sly"].map(|place| refused_grant(scene, &own(place), &["belljar's own"])).join("; ")
        })
        .stopped_by(&["place"]),
        granted("FS-15", "a granted directory is removed, replaced by a link, and put back", |_, _| {})
            .way(Way::Stdio)
            .act(replaced)
            .stopped(Stops::Structure("each call looks at the path anew, without following links")),
        granted("FS-16", "a file of 10 GiB is read at once, and behind its end", |_, dir| {
            let file = fs::File::create(dir.join("sparse")).expect("a file");
            file.set_len(10 << 30).expect("a sparse file");
        })
        .read(
            "gorge/sparse",
            that(|answer| match text(answer) {
                Some(text) if text.contains("read: Ok(65536)") && text.contains("read behind the end: Err") => {
                    Ok("64 KiB at once".to_owned())
                }
                _ => Err(shown(answer)),
            }),
        )
        .stopped(Stops::Structure("a read gives 64 KiB at most")),
        imp("FS-17", "file names that are no UTF-8")
            .mount("files", Guest::Built("files"))
            .config("fs = { \"/\" = \"granted-fs-17\" }")
            .prepare(|site| {
                use std::os::unix::ffi::OsStrExt as _;
                let before = site.write("granted-fs-17/a.txt", "one");
                site.write("granted-fs-17/z.txt", "two");
                let odd = std::ffi::OsStr::from_bytes(b"m\xff\xfe.txt");
                fs::write(before.parent().expect("a directory").join(odd), "odd").expect("a file with an odd name");
            })
            .way(Way::Unstarted)
            .act(|scene| {
                let line = line(scene, "");
                let all = listed(&line, "resources/list", "resources", 50);
                for name in ["a.txt", "z.txt"] {
                    let uri = format!("belljar://fs-17-files/{name}");
                    assert!(all.iter().any(|entry| entry["uri"] == *uri), "{uri} is not listed: {all:?}");
                }
                "the others are listed".to_owned()
            })
            .stopped(Stops::Structure("a name that is no UTF-8 is an error of that entry only")),
        granted("FS-18", "a provider or a client tries to learn where things lie on the host", |site, dir| {
            symlink(site.path("canary"), dir.join("link")).expect("a link");
        })
        .act(|scene| {
            let root = scene.site().path("").display().to_string();
            let root = root.trim_end_matches('/');
            for reference in
                ["open/%252Fd%252Fabsent", "link/link", "cwd", "args", "readdir/%252Fd%252Flink", "panic/x", "raw/link"]
            {
                let said = shown(&scene.read(reference));
                assert!(!said.contains(root), "{reference}: {said}");
            }
            "no path of the host".to_owned()
        })
        .stopped(Stops::Structure("guests have handles, and errors name guest paths")),
        granted("FS-19", "a mount asks for the files of another one that has the same guest path", |_, _| {})
            .mount("other", Guest::Built("guest_imp"))
            .config("fs = { \"/d\" = \"granted-fs-19-other\" }")
            .act(|scene| {
                let own = scene.read("raw/file%252Etxt");
                assert_eq!(text(&own), Some("/d: read \"inside\""), "{}", shown(&own));
                for name in ["raw/file%252Etxt", "open/%252Fd%252Ffile%252Etxt"] {
                    let other = scene.read_uri(&scene.uri_of("other", name));
                    assert!(text(&other).is_some_and(|text| text.contains("refused")), "{}", shown(&other));
                }
                "the other's own directory only".to_owned()
            }),
    ];
    for row in &mut rows {
        if row.id == "FS-19" {
            row.stops = Stops::Structure("a call holds the handles of its own mount only");
            let prepare = row.prepare.take();
            row.prepare = Some(Box::new(move |site| {
                prepare.iter().for_each(|prepare| prepare(site));
                fs::create_dir_all(site.path("granted-fs-19-other")).expect("a directory");
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

/// Every function that refuses says so in the record, with what was wanted and what helps; so many of them do not fill it.
fn on_record() -> Row {
    granted("FS-20", "a provider tries functions that are refused, and hopes that nobody notices", |site, dir| {
        symlink("../canary", dir.join("out")).expect("a link");
        symlink(site.path("canary"), dir.join("absolute")).expect("a link");
    })
    .way(Way::Stdio)
    .act(|scene| {
        let calls = format!("calls/{}", path("out/secret.txt"));
        let said = scene.read(&calls);
        let said = text(&said).unwrap_or_else(|| panic!("{}", shown(&said))).to_owned();
        assert!(said.lines().all(|line| line.contains("/d: refused: ")), "{said}");
        for function in ["fd-set-times", "fd-set-size", "fd-write", "fd-write-stream", "fd-append"] {
            let said = scene.read(&format!("call/{function}%2Ffile%252Etxt"));
            assert_eq!(text(&said), Some("/d: refused: not-permitted"), "{function}: {}", shown(&said));
        }
        let said = scene.read("call/readlink%2Fabsolute");
        assert_eq!(text(&said), Some("/d: refused: not-permitted"), "{}", shown(&said));
        let records = || fs::read_to_string(scene.site().path("audit.jsonl")).unwrap_or_default();
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
            "set the times of what it has opened",
            "set the size of what it has opened",
            "write to what it has opened",
            "read the link absolute",
        ];
        let missing = || wanted.iter().find(|wanted| !records().contains(&format!("\"{wanted}\"")));
        within(Duration::from_secs(10), || missing().is_none());
        assert_eq!(missing(), None, "{}", records());
        assert!(!records().contains(&scene.site().path("canary").display().to_string()), "a host path");
        format!("{} refusals on record", wanted.len())
    })
    .stopped(Stops::Structure("every function of the filesystem is belljar's own, and those that refuse note it"))
}

/// Where links lead is told of those only that stay below.
fn link_targets() -> Row {
    let told = |name: &'static str, target: &'static str| (name, format!("/d: leads to {target:?}"));
    granted("FS-21", "what links say spells paths of the host", |site, dir| {
        fs::create_dir_all(dir.join("a/b")).expect("directories");
        let host = dir.file_name().expect("a name").to_string_lossy().into_owned();
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
            symlink(target, dir.join(name)).expect("a link");
        }
    })
    .act(move |scene| {
        for (name, wanted) in [
            told("fine", "sub/inner.txt"),
            told("dangling", "sub/not-yet"),
            told("a/up", "../sub/inner.txt"),
            told("a/dangling-up", "../sub/not-yet"),
            told("a/b/around", "../../a/./b/../b"),
            told("a/b/top", "../.."),
        ] {
            let said = scene.read(&format!("link/{}", path(name)));
            assert_eq!(text(&said), Some(wanted.as_str()), "{name}: {}", shown(&said));
        }
        // From a directory that was opened inside, a link may lead up to what was granted.
        let said = scene.read(&format!("call/readlink-inside%2F{}", path("a/up")));
        assert_eq!(text(&said), Some("/d: leads to \"../sub/inner.txt\""), "{}", shown(&said));
        let refused = ["absolute", "relative", "a/relative", "by-its-name", "far", "a/missing", "slashes", "up"];
        for name in refused {
            let said = scene.read(&format!("link/{}", path(name)));
            assert_eq!(text(&said), Some("/d: refused: not-permitted"), "{name}: {}", shown(&said));
        }
        let said = scene.read("link/file%252Etxt");
        assert_eq!(text(&said), Some("/d: refused: invalid"), "{}", shown(&said));
        format!("{} told, {} refused", 6, refused.len())
    })
    .settings(ONE_WALL)
    .stopped_by(&["beneath"])
}

/// Syncing what was only read does nothing.
fn no_flushes() -> Row {
    let hung = std::sync::Arc::new(Hung::default());
    let mounted = std::sync::Arc::clone(&hung);
    imp("FS-22", "a provider has the disk flushed again and again, by a directory that it may only read")
        .needs(Hung::is_impossible())
        .config("fs = { \"/d\" = \"granted-fs-22\" }")
        .way(Way::Stdio)
        .prepare(move |site| {
            let directory = site.path("granted-fs-22");
            fs::create_dir(&directory).expect("a directory");
            mounted.mount(&directory, hung::Stalls::Reads);
        })
        .act(move |scene| {
            let _ending = Ending(&hung);
            for function in ["fd-syncs", "fd-sync", "fd-sync-data", "fd-advise"] {
                let said = scene.read(&format!("call/{function}%2Fstuck0"));
                assert_eq!(text(&said), Some("/d: done"), "{function}: {}", shown(&said));
            }
            assert_eq!((hung.flushes(), hung.waiting()), (0, 0), "flushes, and reads ahead");
            "800 and more, none came to the disk".to_owned()
        })
        .stopped(Stops::Structure("sync, sync-data and advise do nothing"))
}

/// `/proc` is not granted by mounting it inside what is.
fn kernel_mounts() -> Row {
    granted("FS-23", "/proc is mounted below a granted directory", |_, dir| {
        fs::create_dir(dir.join("kernel")).expect("a directory");
    })
    .needs(Hung::is_impossible())
    .act(|scene| {
        let dir = scene.site().path("granted-fs-23");
        let _unmount = Unmount(dir.join("kernel"));
        mount_bind("/proc", dir.join("kernel")).expect("a mount");
        for file in ["self/environ", "version", "", "self", "self/root/etc/passwd"] {
            let at = path(format!("kernel/{file}"));
            for reference in [format!("raw/{at}"), format!("stat/{at}"), format!("entries/{at}")] {
                let said = scene.read(&reference);
                let refused = text(&said).is_some_and(|said| said.starts_with("/d: refused: "));
                assert!(refused, "{reference}: {}", shown(&said));
            }
        }
        "refused, by every path into it".to_owned()
    })
    .settings(ONE_WALL)
    .stopped_by(&["place"])
}

/// Unmounts when the row is over, however that ends.
struct Unmount(std::path::PathBuf);

impl Drop for Unmount {
    fn drop(&mut self) {
        rustix::mount::unmount(&self.0, rustix::mount::UnmountFlags::DETACH).ok();
    }
}

/// No way to change anything was found.
fn nothing_done() -> Expect {
    that(|answer| match text(answer) {
        Some(text) if text.lines().count() >= 15 && !text.lines().any(|line| line.ends_with(": done")) => {
            Ok(format!("{} ways, none open", text.lines().count()))
        }
        _ => Err(shown(answer)),
    })
}

fn make(dir: &std::path::Path, name: &str, kind: FileType, device: u64) -> bool {
    mknodat(CWD, dir.join(name), kind, Mode::RUSR | Mode::WUSR, device).is_ok()
}

/// Devices, where this machine lets us make some; else the row says so.
fn special() -> Row {
    granted("FS-11", "device nodes lie in a granted directory", |_, dir| {
        make(dir, "zero", FileType::CharacterDevice, makedev(1, 5));
        make(dir, "tty", FileType::CharacterDevice, makedev(5, 0));
        make(dir, "block", FileType::BlockDevice, makedev(7, 0));
    })
    .act(|scene| {
        let made: Vec<&str> = ["zero", "tty", "block"]
            .into_iter()
            .filter(|name| scene.site().path("granted-fs-11").join(name).exists())
            .collect();
        for name in &made {
            let said = scene.read(&format!("raw/{name}"));
            assert_eq!(text(&said), Some("/d: refused: not-permitted"), "{name}: {}", shown(&said));
        }
        if made.is_empty() { "NOT TESTED: no device can be made here".to_owned() } else { format!("{made:?} refused") }
    })
    .stopped_by(&["special"])
}

/// Swaps a directory and a link to the canary, again and again, while files are read through them.
fn swaps(scene: &Scene<'_>) -> String {
    let dir = scene.site().path("granted-fs-04");
    let stop = AtomicBool::new(false);
    let (mut inside, mut refused) = (0, 0);
    let swaps = std::thread::scope(|scope| {
        let racer = scope.spawn(|| {
            let mut swaps = 0u64;
            while !stop.load(Ordering::Relaxed) {
                renameat_with(CWD, dir.join("swap"), CWD, dir.join("other"), RenameFlags::EXCHANGE).expect("a swap");
                swaps += 1;
                if swaps.is_multiple_of(20) {
                    std::thread::sleep(Duration::from_micros(200));
                }
            }
            swaps
        });
        let mut read = || {
            let began = Instant::now();
            // A hundred, and as many more as it takes to meet both.
            while inside + refused < 100 || (inside.min(refused) < 3 && began.elapsed() < Duration::from_secs(10)) {
                let answer = scene.read(&format!("raw/{}", path("swap/secret.txt")));
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
    assert!(inside > 0 && refused > 0, "no race: {inside} inside, {refused} refused");
    format!("{inside} inside, {refused} refused, {swaps} swaps")
}

/// A configuration that grants `place` to the row's mount: why that is refused.
fn refused_grant(scene: &Scene<'_>, place: &str, why: &[&str]) -> String {
    let name = scene.name("");
    scene.site().config(&format!("[mounts.{name}]\ncomponent = \"guest_imp.wasm\"\nfs = {{ \"/d\" = {place:?} }}\n"));
    let reason = refusal(&check(scene), &name);
    assert!(why.iter().any(|why| reason.contains(why)), "{place}: {reason}");
    format!("{} refused", place.rsplit('/').next().unwrap_or_default())
}

/// Nobody can be given a directory to write to, however it is asked for.
fn no_writing(id: &'static str, attack: &'static str) -> Row {
    imp(id, attack)
        .prepare(|site| drop(site.write("writable/file", "x")))
        .way(Way::Unstarted)
        .act(|scene| {
            let name = scene.name("");
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
                let fresh = format!("[mounts.{name}]\ncomponent = \"guest_imp.wasm\"\n{grant}\n");
                scene.site().config(&fresh);
                let (fine, said) = run(scene, &["check"]);
                assert!(!fine, "{grant} is accepted: {said}");
            }
            "no configuration asks for it".to_owned()
        })
        .stopped(Stops::Structure("no grant has a way to say \"writable\""))
}

/// The directory goes, a link comes, the directory is back: never the link, and soon the directory.
fn replaced(scene: &Scene<'_>) -> String {
    let (dir, aside) = (scene.site().path("granted-fs-15"), scene.site().path("aside"));
    let said = |name: &str| {
        let answer = scene.read(&format!("raw/{}", path(name)));
        text(&answer).map_or_else(|| answer.as_ref().err().map_or("", kind).to_owned(), str::to_owned)
    };
    assert_eq!(said("file.txt"), "/d: read \"inside\"");
    fs::rename(&dir, &aside).expect("a rename");
    symlink("canary", &dir).expect("a link");
    let gone = within(Duration::from_secs(5), || {
        assert!(!said("secret.txt").contains("read"), "the link was followed");
        !said("file.txt").contains("read")
    });
    assert!(gone, "the old directory is still used");
    fs::remove_file(&dir).expect("a link");
    fs::rename(&aside, &dir).expect("a rename");
    assert!(within(Duration::from_secs(5), || said("file.txt") == "/d: read \"inside\""), "it is not found again");
    "gone, then back within 5 s".to_owned()
}
