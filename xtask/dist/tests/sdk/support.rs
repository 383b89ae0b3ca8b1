//! The packed SDKs, and projects of `belljar new` with the tools of their languages.

use std::env;
use std::ffi::OsString;
use std::fs::{self, File};
use std::path::{Path, PathBuf};
use std::process::Command;
use std::sync::OnceLock;

use belljar_dist::SdkRequest;
use belljar_tests::places;
use serde_json::Value;
use tempfile::TempDir;

use crate::common::{REPOSITORY, VERSION, run};

/// The name of the projects.
const NAME: &str = "month-shelf";

/// A directory for packages with this name. A run of the tests replaces the packages of the run before.
pub(crate) fn directory(name: &str) -> PathBuf {
    Path::new(env!("CARGO_TARGET_TMPDIR")).join("sdk").join(name)
}

/// Packs the SDKs into `output`. Returns the names of the files.
pub(crate) fn pack(output: &Path) -> Vec<String> {
    let request = SdkRequest {
        root: places::repository(),
        output: output.to_path_buf(),
        repository: Some(REPOSITORY.to_owned()),
    };
    belljar_dist::pack_sdks(&request).unwrap_or_else(|error| panic!("{error:#}")).files
}

/// The names of the packages.
pub(crate) fn packed() -> &'static [String] {
    static PACKED: OnceLock<Vec<String>> = OnceLock::new();
    PACKED.get_or_init(|| pack(&directory("one")))
}

/// The path of a package. `VERSION` in its name is the version.
pub(crate) fn package(name: &str) -> PathBuf {
    let name = name.replace("VERSION", VERSION);
    assert!(packed().contains(&name), "no package \"{name}\": {:?}", packed());
    directory("one").join(name)
}

/// Unpacks a compressed archive into a directory, without the first `strip` parts of each path.
pub(crate) fn unpack(archive: &Path, directory: &Path, strip: usize) {
    let decoder = flate2::read::GzDecoder::new(File::open(archive).unwrap());
    for entry in tar::Archive::new(decoder).entries().unwrap() {
        let mut entry = entry.unwrap();
        let path: PathBuf = entry.path().unwrap().components().skip(strip).collect();
        if entry.header().entry_type().is_file() {
            let path = directory.join(path);
            fs::create_dir_all(path.parent().unwrap()).unwrap();
            entry.unpack(path).unwrap();
        }
    }
}

/// A command with the tools of the languages on its `PATH`, and with their caches.
pub(crate) fn command(program: &str) -> Command {
    // `env` looks the program up in the `PATH` that is set here.
    let mut command = Command::new("env");
    command.arg(program).env("PATH", path(&[]));
    for (name, folder) in [("GOCACHE", "go-cache"), ("ZIG_GLOBAL_CACHE_DIR", "zig-cache")] {
        command.env(name, tools().join(folder));
    }
    command
}

/// `PATH` with `first`, then the tools.
pub(crate) fn path(first: &[PathBuf]) -> OsString {
    let own = [tools().join("python/bin"), tools().join("bin")];
    let others = env::var_os("PATH").unwrap_or_default();
    env::join_paths(first.iter().cloned().chain(own).chain(env::split_paths(&others))).unwrap()
}

/// The directory of the tools.
pub(crate) fn tools() -> PathBuf {
    let tools = places::target().join("tools");
    assert!(tools.join("python").is_dir(), "{} is missing: run `cargo xtask languages` first", tools.display());
    tools
}

/// A project of `belljar new`, in a directory of its own.
pub(crate) struct Project {
    place: TempDir,
    /// The commands that `belljar new` printed.
    made: Value,
}

impl Project {
    /// Makes a project, and removes the SDK that it came with: these files and directories.
    pub(crate) fn without_sdk(language: &str, sdk: &[&str]) -> Project {
        let place = tempfile::tempdir().unwrap();
        let mut new = command(places::host().to_str().unwrap());
        new.args(["new", "--json", "--lang", language, NAME, "--dir"]).arg(place.path().join("project"));
        let made = serde_json::from_str(&run(&mut new)).unwrap();
        let project = Project { place, made };
        for name in sdk {
            let path = project.path(name);
            assert!(path.is_dir(), "the project has no directory \"{name}\", so this is not its SDK");
            fs::remove_dir_all(path).unwrap();
        }
        project
    }

    /// A path in the project.
    pub(crate) fn path(&self, name: &str) -> PathBuf {
        self.place.path().join("project").join(name)
    }

    /// A directory beside the project.
    pub(crate) fn beside(&self, name: &str) -> PathBuf {
        let path = self.place.path().join(name);
        fs::create_dir_all(&path).unwrap();
        path
    }

    /// Replaces all occurrences of a text in a file of the project.
    pub(crate) fn replace(&self, file: &str, from: &str, to: &str) {
        let path = self.path(file);
        let text = fs::read_to_string(&path).unwrap();
        assert!(text.contains(from), "{file} lacks {from:?}: {text}");
        fs::write(path, text.replace(from, to)).unwrap();
    }

    /// Writes a file of the project.
    pub(crate) fn write(&self, file: &str, text: &str) {
        fs::write(self.path(file), text).unwrap();
    }

    /// A command that runs in the project.
    pub(crate) fn command(&self, program: &str) -> Command {
        let mut command = command(program);
        command.current_dir(self.path(""));
        command
    }

    /// One of the commands that `belljar new` printed: `setup`, `build` or `test`.
    pub(crate) fn printed(&self, name: &str) -> Command {
        let words: Vec<_> = self.made[name].as_array().unwrap().iter().map(|word| word.as_str().unwrap()).collect();
        let mut command = self.command(words[0]);
        command.args(&words[1..]);
        command
    }

    /// The path of the component in the project.
    pub(crate) fn component(&self) -> &str {
        self.made["component"].as_str().unwrap()
    }
}
