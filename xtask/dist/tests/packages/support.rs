//! The packed program, its unpacked archives, and the first note of a new user.

use std::env;
use std::fs::{self, File};
use std::io::Read;
use std::path::{Path, PathBuf};
use std::process::Command;
use std::sync::OnceLock;

use belljar_dist::{Packed, Request};
use belljar_tests::{Client, Era, places};
use tempfile::TempDir;

use crate::common::{REPOSITORY, run};

/// The namespace in the MCP registry that the tests use.
pub(crate) const NAMESPACE: &str = "io.github.example";

/// A directory for packages with this name. A run of the tests replaces the packages of the run before.
pub(crate) fn directory(name: &str) -> PathBuf {
    Path::new(env!("CARGO_TARGET_TMPDIR")).join("packages").join(name)
}

/// The provider that is packed with compiled code. It is the smallest of those.
pub(crate) const COMPILED: &str = "pdf";

/// A directory with some of the built providers. Packing all of them would take minutes, and show nothing more.
fn providers() -> PathBuf {
    static PROVIDERS: OnceLock<TempDir> = OnceLock::new();
    let directory = PROVIDERS.get_or_init(|| {
        let directory = tempfile::tempdir().unwrap();
        for name in ["files", "clock", COMPILED].map(|name| format!("{name}.wasm")) {
            fs::copy(places::target().join("plugins").join(&name), directory.path().join(&name))
                .unwrap_or_else(|error| panic!("{name}: {error}; build the providers with `cargo xtask build`"));
        }
        directory
    });
    directory.path().to_path_buf()
}

/// The request to pack the tested program and some providers into `output`.
pub(crate) fn request(output: &Path) -> Request {
    Request {
        root: places::repository(),
        programs: vec![places::host()],
        providers: providers(),
        output: output.to_path_buf(),
        namespace: Some(NAMESPACE.to_owned()),
        repository: Some(REPOSITORY.to_owned()),
    }
}

/// The packages of the tested program.
pub(crate) fn packed() -> &'static Packed {
    static PACKED: OnceLock<Packed> = OnceLock::new();
    PACKED.get_or_init(|| belljar_dist::pack(&request(&directory("one"))).unwrap_or_else(|error| panic!("{error:#}")))
}

/// The path of the only package whose name begins and ends so.
pub(crate) fn package(start: &str, end: &str) -> PathBuf {
    let names: Vec<_> = packed().files.iter().filter(|name| name.starts_with(start) && name.ends_with(end)).collect();
    let [name] = names[..] else { panic!("not one file \"{start}...{end}\": {names:?}") };
    directory("one").join(name)
}

/// An archive of a package, unpacked into a new directory.
pub(crate) fn unpack(archive: impl Read) -> TempDir {
    let place = tempfile::tempdir().unwrap();
    tar::Archive::new(archive).unpack(place.path()).unwrap();
    place
}

/// A compressed archive of a package, unpacked into a new directory.
pub(crate) fn unpack_file(path: &Path) -> TempDir {
    unpack(flate2::read::GzDecoder::new(File::open(path).unwrap()))
}

/// A person who has just installed belljar: a home with one note, and nothing else.
pub(crate) struct Person {
    home: TempDir,
    program: PathBuf,
    /// Where the shell of the person looks for programs.
    path: String,
}

impl Person {
    /// A person who runs `program`. `tools` is the directory of other programs that it needs, such as `node`.
    pub(crate) fn new(program: &Path, tools: Option<&Path>) -> Person {
        let home = tempfile::tempdir().unwrap();
        fs::create_dir(home.path().join("notes")).unwrap();
        fs::write(home.path().join("notes/plan.md"), "# Plan\n").unwrap();
        let directories = [Some(program.parent().expect("a program is in a directory")), tools];
        let path = env::join_paths(directories.into_iter().flatten()).unwrap();
        Person { home, program: program.to_path_buf(), path: path.into_string().unwrap() }
    }

    /// The home of the person.
    pub(crate) fn home(&self) -> &Path {
        self.home.path()
    }

    /// A command of the person, with an environment that has only the home and the path.
    pub(crate) fn belljar(&self, arguments: &[&str]) -> Command {
        let mut command = Command::new(&self.program);
        command.env_clear().env("HOME", self.home.path()).env("PATH", &self.path);
        command.current_dir(self.home.path()).args(arguments);
        command
    }

    /// Adds the installed provider `files`, serves it over stdio, and reads the note: two commands.
    pub(crate) fn reads_the_first_note(&self) {
        run(&mut self.belljar(&["add", "files", "--as", "notes", "--fs", "/notes=~/notes", "--yes"]));
        let mut client = Client::start(self.belljar(&["serve"]), Era::Session);
        assert_eq!(client.uris(), ["belljar://notes/plan.md"]);
        assert_eq!(client.text("belljar://notes/plan.md"), "# Plan\n");
        let ended = client.close();
        assert!(ended.status.success(), "{ended:?}");
        // The record is in its place, behind the second wall.
        let record = self.home.path().join(".local/state/belljar/record/audit.jsonl");
        let record = fs::read_to_string(&record).unwrap_or_else(|error| panic!("{error}: {}", ended.stderr));
        assert!(record.contains("\"reference\":\"plan.md\""), "{record}");
    }
}
