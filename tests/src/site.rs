//! A place to run belljar in: a plugin directory, a configuration, state and cache of its own, and nothing of this
//! machine's.

use std::ffi::{OsStr, OsString};
use std::fs;
use std::path::{Path, PathBuf};
use std::process::{Command, Output};
use std::time::Duration;

use serde_json::Value;
use tempfile::TempDir;

use crate::client::{Client, Era};
use crate::http::Server;
use crate::places;
use crate::process;
use crate::stdio::Stdio;

/// How long a verb that ends by itself may take: it may compile every component first.
const VERB: Duration = Duration::from_secs(120);

/// A temporary place, removed with this value.
#[derive(Debug)]
pub struct Site {
    root: TempDir,
    env: Vec<(OsString, OsString)>,
}

impl Site {
    /// An empty place: `plugins/` exists and holds nothing, and there is no configuration.
    pub fn new() -> Site {
        let root = TempDir::with_prefix("belljar-").expect("a temporary directory");
        fs::create_dir(root.path().join("plugins")).expect("a new directory");
        Site { root, env: Vec::new() }
    }

    /// A path below this place.
    pub fn path(&self, relative: impl AsRef<Path>) -> PathBuf {
        self.root.path().join(relative)
    }

    /// Writes a file below this place, and the directories that lead to it.
    pub fn write(&self, relative: impl AsRef<Path>, bytes: impl AsRef<[u8]>) -> PathBuf {
        let path = self.path(relative);
        fs::create_dir_all(path.parent().expect("a file has a directory")).expect("a writable place");
        fs::write(&path, bytes).expect("a writable place");
        path
    }

    /// Drops a built component into the plugin directory under its own name.
    pub fn mount(&self, stem: &str) {
        self.mount_as(stem, &format!("{stem}.wasm"));
    }

    /// Drops a built component into the plugin directory as `file`.
    ///
    /// It arrives whole, by a rename, as a careful operator's would: a server that watches never sees half of it.
    pub fn mount_as(&self, stem: &str, file: &str) {
        let whole = fs::read(places::component(stem)).expect("a readable component");
        self.drop_in(file, whole);
    }

    /// Drops any bytes into the plugin directory as `file`.
    pub fn drop_in(&self, file: &str, bytes: impl AsRef<[u8]>) {
        let arriving = self.write("arriving", bytes);
        fs::rename(arriving, self.path("plugins").join(file)).expect("a writable plugin directory");
    }

    /// Writes `belljar.toml`. A relative path in it is one below this place.
    pub fn config(&self, text: &str) {
        self.write("belljar.toml", text);
    }

    /// Sets an environment variable of the host (never one of a guest).
    pub fn env(&mut self, name: impl AsRef<OsStr>, value: impl AsRef<OsStr>) {
        self.env.push((name.as_ref().to_owned(), value.as_ref().to_owned()));
    }

    /// Keeps compiled code, and the key that it is authenticated with, in `place`: there the next run finds them.
    pub fn share(&mut self, place: &Path) {
        self.env("XDG_CACHE_HOME", place.join("cache"));
        self.env("XDG_STATE_HOME", place.join("state"));
    }

    /// Makes `place` anew for [`Site::share`], with these components compiled, so that each of them is compiled once.
    pub fn compile(place: &Path, stems: &[&str]) {
        fs::remove_dir_all(place).ok();
        let mut site = Site::new();
        stems.iter().for_each(|stem| site.mount(stem));
        site.share(place);
        let output = site.run(&["check"]);
        assert!(output.status.success(), "{}", String::from_utf8_lossy(&output.stderr));
    }

    /// The environment that a run has: nothing of this machine's but its search path.
    pub fn environment(&self) -> Vec<(OsString, OsString)> {
        let mut all: Vec<(OsString, OsString)> = Vec::new();
        // With belljar first, as it is installed: what it prints to be typed is typed so.
        let host = places::host();
        let paths = std::env::var_os("PATH").unwrap_or_default();
        let paths = host.parent().map(Path::to_path_buf).into_iter().chain(std::env::split_paths(&paths));
        all.push(("PATH".into(), std::env::join_paths(paths).expect("paths without a colon")));
        for (name, directory) in [
            ("HOME", "home"),
            ("XDG_STATE_HOME", "state"),
            ("XDG_CACHE_HOME", "cache"),
            ("XDG_CONFIG_HOME", "configuration"),
        ] {
            all.push((name.into(), self.path(directory).into()));
        }
        all.extend(self.env.iter().cloned());
        all
    }

    /// The arguments of `verb` here: with the plugin directory, and with the configuration if there is one.
    pub fn arguments(&self, verb: &[&str]) -> Vec<OsString> {
        let mut all: Vec<OsString> = verb.iter().map(OsString::from).collect();
        // `inspect` looks at one file, and takes no configuration.
        if verb.first() != Some(&"inspect") {
            all.extend(["--plugins".into(), self.path("plugins").into()]);
            let config = self.path("belljar.toml");
            if config.exists() {
                all.extend(["--config".into(), config.into()]);
            }
        }
        all
    }

    /// A command that runs belljar here. For what [`Site::arguments`] adds, put that into `arguments`.
    pub fn command(&self, arguments: impl IntoIterator<Item = impl AsRef<OsStr>>) -> Command {
        let mut command = Command::new(places::host());
        command.args(arguments).env_clear().envs(self.environment()).current_dir(self.root.path());
        command
    }

    /// Serves on stdio, and greets as a client of `era`.
    pub fn stdio(&self, era: Era) -> Client<Stdio> {
        Client::connect(self.silent_stdio(), era)
    }

    /// Serves on stdio; nothing has been sent.
    pub fn silent_stdio(&self) -> Stdio {
        Stdio::start(self.command(self.arguments(&["serve"])))
    }

    /// Serves on HTTP, on a port that was free.
    pub fn http(&self) -> Server {
        Server::start(self.command(self.arguments(&["serve", "--http", "127.0.0.1:0"])))
    }

    /// Runs another verb to its end.
    pub fn run(&self, verb: &[&str]) -> Output {
        process::run(self.command(self.arguments(verb)), VERB)
    }

    /// Runs another verb, which must succeed, with `--json`: what it printed. For `list`, something may be refused.
    pub fn run_json(&self, verb: &[&str]) -> Value {
        let output = self.run(&[verb, &["--json"]].concat());
        let stderr = String::from_utf8_lossy(&output.stderr);
        let is_told = verb.first() == Some(&"list") && output.status.code() == Some(1);
        assert!(output.status.success() || is_told, "{verb:?} failed with {}:\n{stderr}", output.status);
        serde_json::from_slice(&output.stdout).unwrap_or_else(|error| {
            panic!("{verb:?} printed no JSON ({error}): {}", String::from_utf8_lossy(&output.stdout))
        })
    }

    /// The audit records so far, where the configuration says `audit = "audit.jsonl"` (or its full path, below here).
    pub fn audit(&self) -> Vec<Value> {
        let text = fs::read_to_string(self.path("audit.jsonl")).unwrap_or_default();
        text.lines()
            .map(|line| serde_json::from_str(line).unwrap_or_else(|error| panic!("audit: {error}: {line:?}")))
            .collect()
    }
}

impl Default for Site {
    fn default() -> Site {
        Site::new()
    }
}
