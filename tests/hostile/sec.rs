//! What nobody may learn: the host's environment, its paths, the values of settings, its keys.

use std::fs;
use std::os::unix::fs::PermissionsExt;

use crate::expect::that;
use crate::row::{Row, Stops, Way, imp};
use crate::tools::{line, read_text, run, shown};

/// A value that only its guest may see.
const VALUE: &str = "sec-05-value-1b7e";

pub(crate) fn rows() -> Vec<Row> {
    vec![
        imp("SEC-01", "a provider reads its environment, its arguments, its directory and standard input")
            .read("env", plain("[]"))
            .read("args", plain("[]"))
            .read("cwd", plain("/"))
            .read("stdin", plain("0 bytes"))
            .stopped(Stops::Structure("nothing of belljar's own environment is passed on")),
        imp("SEC-04", "a provider panics and traps to see what the error tells")
            .shell("export RUST_BACKTRACE=full WASMTIME_BACKTRACE_DETAILS=1")
            .act(|scene| {
                let root = scene.site().path("").display().to_string();
                for reference in ["panic/x", "trap", "recurse/0", "exit/3"] {
                    let said = shown(&scene.read(reference));
                    for told in [root.trim_end_matches('/'), ".rs:", "wasm-function", "0x", "registry/src"] {
                        assert!(!said.contains(told), "{reference} tells {told:?}: {said}");
                    }
                }
                "no path, no frame".to_owned()
            })
            .stopped(Stops::Structure("a trap is told by its kind only")),
        imp("SEC-05", "somebody looks for the value of a setting where belljar tells what it does")
            .config(&format!("env = {{ TOKEN = \"{VALUE}\" }}"))
            .way(Way::Unstarted)
            .act(|scene| {
                for verb in [&["check"][..], &["check", "--json"], &["list"], &["list", "--json"], &["--help"]] {
                    let (_, said) = run(scene, verb);
                    assert!(!said.contains(VALUE), "{verb:?} tells it");
                    assert!(!verb.contains(&"check") || said.contains("TOKEN"), "{verb:?} does not name it: {said}");
                }
                let line = line(scene, "");
                let uri = scene.uri("env");
                assert!(read_text(&line, &uri).contains(VALUE), "its own guest sees it");
                let process = format!("/proc/{}", line.process.id());
                let title = fs::read(format!("{process}/cmdline")).expect("a process");
                assert!(!String::from_utf8_lossy(&title).contains(VALUE));
                assert!(!line.process.stderr().contains(VALUE), "in the log");
                let records = fs::read_to_string(scene.site().path("audit.jsonl")).unwrap_or_default();
                assert!(!records.contains(VALUE), "in the records");
                "named, never shown".to_owned()
            })
            .stopped(Stops::Structure("only names of settings are ever written")),
        imp("SEC-06", "another user of the machine reads belljar's keys and compiled code")
            .act(|scene| {
                // Where compiled code and keys are, as the processes of this suite are told.
                let environment = scene.site().environment();
                let mut seen = 0;
                for name in ["XDG_CACHE_HOME", "XDG_STATE_HOME"] {
                    let own = environment.iter().rev().find(|(key, _)| key == name).expect("a setting of the suite");
                    let own = std::path::Path::new(&own.1).join("belljar");
                    for path in
                        fs::read_dir(&own).expect("a directory").flatten().map(|entry| entry.path()).chain([own])
                    {
                        let mode = fs::metadata(&path).map_or(0, |meta| meta.permissions().mode());
                        assert_eq!(mode & 0o077, 0, "{}", path.display());
                        seen += 1;
                    }
                }
                let limits =
                    fs::read_to_string(format!("/proc/{}/limits", scene.stage.process().id())).expect("a process");
                let core = limits.lines().find(|line| line.starts_with("Max core file size")).unwrap_or_default();
                assert!(core.split_whitespace().nth(4) == Some("0"), "{core}");
                format!("{seen} files and directories, none of them for others; no core dumps")
            })
            .stopped(Stops::Kernel("files are made with mode 0600, directories with 0700")),
    ]
}

/// Exactly this text.
fn plain(wanted: &'static str) -> crate::expect::Expect {
    that(move |answer| match crate::expect::text(answer) {
        Some(text) if text == wanted => Ok(format!("\"{wanted}\"")),
        _ => Err(shown(answer)),
    })
}
