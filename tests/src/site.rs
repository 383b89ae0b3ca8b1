//! A temporary directory in which belljar runs. It has its own plugins, configuration, state and cache, and uses no files
//! or variables of this machine.

use std::ffi::{OsStr, OsString};
use std::fs;
use std::os::unix::fs::DirBuilderExt as _;
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
use crate::wait::wait_until;

/// The longest time of a command that ends by itself. The command may compile every component first.
const COMMAND_TIME: Duration = Duration::from_secs(120);

/// An environment variable for the build of `cargo xtask test --isolated`. It is the isolation of mounts for which the
/// configuration says nothing.
const ISOLATION: &str = "BELLJAR_ISOLATION";

/// A temporary directory, removed when this value is dropped.
#[derive(Debug)]
pub struct Site {
    root: TempDir,
    env: Vec<(OsString, OsString)>,
}

impl Site {
    /// Creates a site with an empty directory `plugins/` and without a configuration.
    pub fn new() -> Site {
        let root = TempDir::with_prefix("belljar-").expect("a temporary directory");
        fs::create_dir(root.path().join("plugins")).expect("a new directory");
        Site { root, env: Vec::new() }
    }

    /// A path in this site.
    pub fn path(&self, relative: impl AsRef<Path>) -> PathBuf {
        self.root.path().join(relative)
    }

    /// Writes a file in this site. Creates missing directories.
    pub fn write(&self, relative: impl AsRef<Path>, bytes: impl AsRef<[u8]>) -> PathBuf {
        let path = self.path(relative);
        fs::create_dir_all(path.parent().expect("a file has a directory")).expect("a writable place");
        fs::write(&path, bytes).expect("a writable place");
        path
    }

    /// Copies a built component into the plugin directory, under its own name.
    pub fn mount(&self, stem: &str) {
        self.mount_as(stem, &format!("{stem}.wasm"));
    }

    /// Copies a built component into the plugin directory as `file`.
    ///
    /// The file appears by a rename. So a server that watches the directory never sees an incomplete file.
    pub fn mount_as(&self, stem: &str, file: &str) {
        let bytes = fs::read(places::component(stem)).expect("a readable component");
        self.drop_in(file, bytes);
    }

    /// Writes any bytes into the plugin directory as `file`, by a rename.
    pub fn drop_in(&self, file: &str, bytes: impl AsRef<[u8]>) {
        let arriving = self.write("arriving", bytes);
        fs::rename(arriving, self.path("plugins").join(file)).expect("a writable plugin directory");
    }

    /// Writes `belljar.toml`. Relative paths in this file begin in the site.
    pub fn config(&self, text: &str) {
        self.write("belljar.toml", text);
    }

    /// Sets an environment variable of the host process. Guests do not get it.
    pub fn env(&mut self, name: impl AsRef<OsStr>, value: impl AsRef<OsStr>) {
        self.env.push((name.as_ref().to_owned(), value.as_ref().to_owned()));
    }

    /// Stores compiled code, and the key that authenticates it, in `place`. Other sites can share this directory.
    pub fn share(&mut self, place: &Path) {
        self.env("XDG_CACHE_HOME", place.join("cache"));
        self.env("XDG_STATE_HOME", place.join("state"));
    }

    /// Keeps state in a directory of this site, with the key of `place`. Compiled code that the site shares through
    /// [`Site::share`] stays valid: another key would make belljar compile it again.
    pub fn own_state(&mut self, place: &Path) {
        let own = self.path("state");
        let key = Path::new("belljar/key");
        let mut directories = fs::DirBuilder::new();
        directories.recursive(true).mode(0o700).create(own.join("belljar")).expect("a writable site");
        fs::copy(place.join("state").join(key), own.join(key)).expect("a place with a key");
        self.env("XDG_STATE_HOME", own);
    }

    /// Creates `place` for [`Site::share`], with compiled code of these components. Sites that share `place` then need
    /// not compile them.
    pub fn compile(place: &Path, stems: &[&str]) {
        fs::remove_dir_all(place).ok();
        Self::compile_more(place, stems);
    }

    /// Adds compiled code of these components to `place`.
    pub fn compile_more(place: &Path, stems: &[&str]) {
        let mut site = Site::new();
        stems.iter().for_each(|stem| site.mount(stem));
        site.share(place);
        let output = site.run(&["check"]);
        assert!(output.status.success(), "{}", String::from_utf8_lossy(&output.stderr));
    }

    /// The environment of belljar. It has one variable of this machine: the search path.
    pub fn environment(&self) -> Vec<(OsString, OsString)> {
        let mut all: Vec<(OsString, OsString)> = Vec::new();
        // belljar's own directory comes first, so that tests can run the commands that belljar prints.
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
        all.extend(std::env::var_os(ISOLATION).map(|value| (ISOLATION.into(), value)));
        all.extend(self.env.iter().cloned());
        all
    }

    /// The arguments of a command: `verb`, the plugin directory, and the configuration if there is one.
    pub fn arguments(&self, verb: &[&str]) -> Vec<OsString> {
        let mut all: Vec<OsString> = verb.iter().map(OsString::from).collect();
        // `inspect` looks at one file, and takes no configuration.
        if verb.first() != Some(&"inspect") {
            let mut places: Vec<OsString> = vec!["--plugins".into(), self.path("plugins").into()];
            let config = self.path("belljar.toml");
            if config.exists() {
                places.extend(["--config".into(), config.into()]);
            }
            // What stands after the name of a tool or a prompt belongs to it.
            let end = if matches!(verb.first(), Some(&("call" | "prompt"))) { 1 } else { all.len() };
            all.splice(end..end, places);
        }
        all
    }

    /// A command that runs belljar in this site. [`Site::arguments`] adds the arguments for the site's files.
    pub fn command(&self, arguments: impl IntoIterator<Item = impl AsRef<OsStr>>) -> Command {
        let mut command = Command::new(places::host());
        command.args(arguments).env_clear().envs(self.environment()).current_dir(self.root.path());
        command
    }

    /// Starts `belljar serve` on stdio, and initializes a client of `era`.
    pub fn stdio(&self, era: Era) -> Client<Stdio> {
        Client::connect(self.silent_stdio(), era)
    }

    /// The same with sockets instead of pipes, as clients made with Node do.
    pub fn stdio_on_sockets(&self, era: Era) -> Client<Stdio> {
        Client::connect(Stdio::start_on_sockets(self.command(self.arguments(&["serve"]))), era)
    }

    /// Starts `belljar serve` on stdio, and sends nothing.
    pub fn silent_stdio(&self) -> Stdio {
        Stdio::start(self.command(self.arguments(&["serve"])))
    }

    /// Starts `belljar serve` on HTTP, on a free port.
    pub fn http(&self) -> Server {
        Server::start(self.command(self.arguments(&["serve", "--http", "127.0.0.1:0"])))
    }

    /// Runs another command to its end.
    pub fn run(&self, verb: &[&str]) -> Output {
        process::run(self.command(self.arguments(verb)), COMMAND_TIME)
    }

    /// Runs another command with `--json`, and returns its output. The command must succeed; `list` may also end with 1,
    /// because it refused a component.
    pub fn run_json(&self, verb: &[&str]) -> Value {
        let output = self.run(&[verb, &["--json"]].concat());
        let stderr = String::from_utf8_lossy(&output.stderr);
        let may_fail = verb.first() == Some(&"list") && output.status.code() == Some(1);
        assert!(output.status.success() || may_fail, "{verb:?} failed with {}:\n{stderr}", output.status);
        serde_json::from_slice(&output.stdout).unwrap_or_else(|error| {
            panic!("{verb:?} printed no JSON ({error}): {}", String::from_utf8_lossy(&output.stdout))
        })
    }

    /// What `belljar status --json` says of the belljar that `belljar up` started here.
    pub fn up_status(&self) -> Value {
        let output = process::run(self.command(["status", "--json"]), COMMAND_TIME);
        let status: Value = serde_json::from_slice(&output.stdout).expect("JSON");
        status["belljars"][0].clone()
    }

    /// The process id of the belljar that `belljar up` started here.
    pub fn up_pid(&self) -> u32 {
        let pid = self.up_status()["pid"].as_u64().expect("it serves");
        u32::try_from(pid).expect("a process id")
    }

    /// Kills the belljar that `belljar up` started here, with SIGKILL.
    pub fn kill_up(&self) {
        let pid = i32::try_from(self.up_pid()).ok().and_then(rustix::process::Pid::from_raw).expect("a process id");
        rustix::process::kill_process(pid, rustix::process::Signal::KILL).expect("the process is ours");
    }

    /// The audit records so far. The configuration must contain `audit = "audit.jsonl"`, or the full path of this file
    /// in the site.
    pub fn audit(&self) -> Vec<Value> {
        self.records("audit.jsonl")
    }

    /// The audit records in a file of the site. None if the file is missing.
    pub fn records(&self, file: &str) -> Vec<Value> {
        let text = fs::read_to_string(self.path(file)).unwrap_or_default();
        // A read during a write may end in the middle of a line.
        let complete = text.rfind('\n').map_or("", |end| &text[..end]);
        complete
            .lines()
            .map(|line| serde_json::from_str(line).unwrap_or_else(|error| panic!("audit: {error}: {line:?}")))
            .collect()
    }

    /// Waits until the audit record contains this text, and returns the whole file. belljar writes a record soon after
    /// the answer, in the order of the answers.
    pub fn audit_text_with(&self, text: &str) -> String {
        wait_until(&format!("a record with {text:?}"), || {
            let records = fs::read_to_string(self.path("audit.jsonl")).unwrap_or_default();
            if records.contains(text) { Ok(records) } else { Err(records) }
        })
    }

    /// Waits for an audit record that `is_wanted` accepts, and returns the newest one. belljar writes a record soon
    /// after the answer.
    pub fn await_record(&self, what: &str, is_wanted: impl Fn(&Value) -> bool) -> Value {
        wait_until(&format!("a record of {what}"), || {
            let mut records = self.audit();
            let found = records.iter().rposition(&is_wanted).map(|at| records.swap_remove(at));
            found.ok_or_else(|| format!("{records:?}"))
        })
    }
}

impl Default for Site {
    fn default() -> Site {
        Site::new()
    }
}
