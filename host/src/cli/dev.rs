//! `belljar dev`: builds and serves the provider that its author is writing, and rebuilds it after every change.
//!
//! Calls go through the same gateway, limits and sandbox as those of `serve`. Two things differ. The author trusts
//! every build, so grants are not bound to a digest. Compilers need access to the machine, so the second wall is not
//! raised.

mod call_report;
mod log;
mod recipe;
mod sources;
mod terminal;

use std::collections::BTreeSet;
use std::io::IsTerminal;
use std::net::{SocketAddr, TcpListener as StdListener};
use std::os::unix::ffi::OsStrExt as _;
use std::path::{Path, PathBuf};
use std::process::ExitCode;
use std::sync::Arc;
use std::time::Duration;

use futures_util::future::pending;
use tokio::net::TcpListener;
use tokio::signal::unix::{SignalKind, signal};
use tokio::sync::{mpsc, oneshot, watch};
use tokio::task::block_in_place;
use tokio::time::{Instant, sleep_until};
use tokio_util::sync::CancellationToken;

use super::new;
use crate::catalog::loader::{Debounce, Loader, NextAction};
use crate::catalog::watch::Watcher;
use crate::config::lock::Pins;
use crate::config::{Config, FILE};
use crate::gateway::Gateway;
use crate::mcp::Handler;
use crate::mcp::cursor::Cursors;
use crate::model::error::show_bytes;
use crate::policy::{Evidence, authenticate};
use crate::server::failure::Failure;
use crate::server::listening::ListenError;
use crate::server::location::LocationArgs;
use crate::server::{
    configuration, directories, invocation, keys::Keys, keys::SharedCode, listening, location, startup,
};
use crate::telemetry::Sink;
use crate::transport;
use recipe::{Build, Recipe};
use sources::SourceTree;
use terminal::{Phase, TerminalRequest};

/// How long the threads of the runtime may take to end at shutdown.
const SHUTDOWN_TIMEOUT: Duration = Duration::from_secs(1);

/// How many builds in a row may end with the same changed sources. After more, the build itself seems to change them.
const MAX_REPEATS: u32 = 2;

/// The text of `--help` below the flags.
pub(super) const HELP: &str = "The build command is --build, or it follows from the files in DIR: Cargo.toml, package.json with a \"build\" script, or Makefile.
In DIR's belljar.toml, plugins = ... names the directory of the built component, and [mounts.NAME] its grants. The component may
change without \"belljar trust\". Every save starts a build. After a failed build, the last good component stays in service. Calls
have the same limits and the same sandbox as in \"belljar serve\". Compilers need access to the machine, so this command runs
without the second wall around the process.

Examples:
  belljar dev .
  belljar dev ~/src/tides --http 127.0.0.1:8808
  echo 'read hello.txt' | belljar dev .";

/// The project directory and the location of its configuration.
struct Project {
    dir: PathBuf,
    at: LocationArgs,
    /// True if `--config` names the configuration: then the file must exist.
    is_named: bool,
    /// The address on which belljar itself listens. No grant may connect to it.
    own_address: SocketAddr,
}

impl Project {
    /// Reads the current configuration.
    fn read(&self) -> Result<Config, Failure> {
        let (path, input) = location::read_config_input(&self.at)?;
        if input.file.is_none() && self.is_named {
            return Err(Failure::Failed(format!("there is no configuration \"{}\"", path.display())));
        }
        let mut config = Config::read(input)?;
        configuration::read_ambient(&mut config, std::slice::from_ref(&self.own_address))?;
        config.pins = Pins::Off;
        Ok(config)
    }
}

/// The running server, from the first build that leaves a plugin directory.
struct Server {
    gateway: Arc<Gateway>,
    loader: Loader,
    /// The end of the build whose components are being loaded.
    loading: Option<Instant>,
}

/// The state of `belljar dev`.
struct DevSession {
    project: Project,
    recipe: Recipe,
    config: Arc<Config>,
    sources: SourceTree,
    watcher: Option<Watcher>,
    debounce: Debounce,
    building: Option<Build>,
    /// The sources that had changed at the end of the last build, and the number of builds in a row with the same ones.
    changed_by_build: (BTreeSet<PathBuf>, u32),
    server: Option<Server>,
    listener: Option<StdListener>,
    phase: watch::Sender<Phase>,
    /// The `build` commands of the terminal that wait for the end of the build.
    waiting: Vec<oneshot::Sender<()>>,
    stop: CancellationToken,
    /// True if the last build succeeded and everything it made is served. It is the exit code.
    is_good: bool,
}

/// An event of the main loop.
enum DevEvent {
    SourcesChanged,
    DebounceElapsed,
    Built(Result<(), String>),
    Loaded(NextAction),
    Requested(Option<TerminalRequest>),
    Stop,
}

pub(super) fn run(
    dir: &Path,
    build: Option<&str>,
    config: Option<&Path>,
    http: Option<SocketAddr>,
) -> Result<ExitCode, Failure> {
    log::start();
    http.as_ref().map_or(Ok(()), |address| listening::check_address(address, None))?;
    #[expect(clippy::disallowed_methods, reason = "the author's project")]
    let dir = std::fs::canonicalize(dir)
        .map_err(|error| Failure::Failed(format!("cannot open the project \"{}\": {error}", dir.display())))?;
    let recipe = build.map_or_else(|| Recipe::detect(&dir), |command| Ok(Recipe::from_command(&dir, command)));
    let recipe = recipe.map_err(Failure::Misused)?;
    let listener = http.map_or_else(|| listen(&dir), listening::listen)?;
    let own_address = listener.local_addr()?;
    let path = config.map_or_else(|| dir.join(FILE), Path::to_owned);
    let plugins = (!path.exists()).then(|| dir.join(recipe.output_dir));
    let at = LocationArgs { plugins, config: Some(path), place: None, is_config_optional: false };
    // Hints need no flags if the author's shell is in the project directory.
    let is_here = std::path::absolute(".").is_ok_and(|here| here == dir) && config.is_none();
    match is_here {
        true => invocation::as_typed(&LocationArgs { config: None, ..at.clone() }),
        false => invocation::from_anywhere(&at, true),
    }
    let project = Project { at, is_named: config.is_some(), own_address, dir };
    let config = Arc::new(project.read()?);
    let runtime = tokio::runtime::Builder::new_multi_thread().enable_all().build()?;
    let mut gateway = None;
    let is_good = runtime.block_on(async {
        let mut session = DevSession::new(project, recipe, config, listener);
        let ended = session.run().await;
        gateway = session.server.as_ref().map(|server| Arc::clone(&server.gateway));
        ended.map(|()| session.is_good)
    });
    gateway.iter().for_each(|gateway| gateway.end_calls(SHUTDOWN_TIMEOUT));
    runtime.shutdown_timeout(SHUTDOWN_TIMEOUT);
    Ok(if is_good? { ExitCode::SUCCESS } else { ExitCode::FAILURE })
}

/// The default ports of projects. They lie below the ephemeral ports that systems assign (32768 and above on Linux).
const PORTS: std::ops::Range<u16> = 20_000..30_000;

/// Listens on a port that is derived from the project's path, so that clients find it again after a restart. If that
/// port is in use, listens on a free one.
fn listen(dir: &Path) -> Result<StdListener, ListenError> {
    let digest = blake3::hash(dir.as_os_str().as_bytes());
    let number = digest.as_bytes().iter().take(8).fold(0u64, |number, byte| number << 8 | u64::from(*byte));
    let offset = u16::try_from(number % u64::try_from(PORTS.len()).unwrap_or(1)).unwrap_or_default();
    let here = std::net::Ipv4Addr::LOCALHOST;
    listening::listen((here, PORTS.start + offset).into()).or_else(|error| {
        tell(&format!("{error}; using a free port instead; to select a port, add --http 127.0.0.1:PORT"));
        listening::listen((here, 0).into())
    })
}

/// Writes a message for the author to standard error. Results of typed commands go to standard output.
fn tell(text: &str) {
    crate::server::log::say(text);
}

/// Waits for the end of the build. Without a build, waits forever.
async fn built(building: Option<&mut Build>) -> Result<(), String> {
    match building {
        Some(build) => build.ended().await,
        None => pending().await,
    }
}

/// Waits for the next step of the loader. Without a server, waits forever.
async fn step(server: Option<&mut Server>) -> NextAction {
    match server {
        Some(server) => server.loader.step().await,
        None => pending().await,
    }
}

impl DevSession {
    fn new(project: Project, recipe: Recipe, config: Arc<Config>, listener: StdListener) -> Self {
        // Granted directories and built components are not sources.
        let granted = config.mounts.values().flat_map(|mount| mount.grants.directories(&config.ambient));
        let skipped = granted.chain([config.plugins.clone(), config.cache.clone(), config.state.clone()]);
        let watcher = startup::watcher();
        let sources = SourceTree::new(&project.dir, skipped.collect(), watcher.clone());
        Self {
            project,
            recipe,
            config,
            sources,
            watcher,
            debounce: Debounce::default(),
            building: None,
            changed_by_build: Default::default(),
            server: None,
            listener: Some(listener),
            phase: watch::Sender::new(Phase::FirstBuild),
            waiting: Vec::new(),
            stop: CancellationToken::new(),
            is_good: false,
        }
    }

    /// Runs until the author types `quit`, standard input ends, or a signal arrives.
    async fn run(&mut self) -> Result<(), Failure> {
        let mut interrupt = signal(SignalKind::interrupt())?;
        let mut terminate = signal(SignalKind::terminate())?;
        let (send, mut requests) = mpsc::channel(1);
        tokio::spawn(terminal::run(self.phase.subscribe(), send));
        self.build();
        loop {
            let due = self.debounce.due().filter(|_| self.building.is_none());
            let wait = async {
                match due {
                    None => pending().await,
                    Some(due) => sleep_until(due).await,
                }
            };
            let event = tokio::select! {
                _ = interrupt.recv() => DevEvent::Stop,
                _ = terminate.recv() => DevEvent::Stop,
                request = requests.recv() => DevEvent::Requested(request),
                result = built(self.building.as_mut()) => DevEvent::Built(result),
                next = step(self.server.as_mut()) => DevEvent::Loaded(next),
                () = self.sources.changed() => DevEvent::SourcesChanged,
                () = wait => DevEvent::DebounceElapsed,
            };
            match event {
                DevEvent::SourcesChanged => self.debounce.changed(Instant::now()),
                DevEvent::DebounceElapsed => self.build_if_changed(),
                DevEvent::Built(result) => self.built(result).await?,
                DevEvent::Loaded(NextAction::Step) => self.loaded(),
                DevEvent::Loaded(NextAction::Scan) => self.scan().await,
                DevEvent::Requested(Some(TerminalRequest::Build(done))) => {
                    self.waiting.push(done);
                    if self.building.is_none() {
                        self.sources.scan();
                        self.build();
                    }
                }
                DevEvent::Stop | DevEvent::Requested(Some(TerminalRequest::Quit) | None) => break,
            }
        }
        self.stop.cancel();
        if let Some(build) = self.building.take() {
            build.end().await;
        }
        Ok(())
    }

    fn build(&mut self) {
        tell(&format!("building: {}", self.recipe.shown()));
        self.debounce.begin();
        self.building = Some(self.recipe.start());
    }

    /// Starts a build if the contents of a source changed.
    fn build_if_changed(&mut self) {
        self.debounce.begin();
        let changed = block_in_place(|| self.sources.scan());
        if let Some(first) = changed.first() {
            let more = changed.len() - 1;
            let and = if more == 0 { String::new() } else { format!(" and {more} more") };
            tell(&format!("\"{}\"{and} changed", first.display()));
            self.changed_by_build = Default::default();
            self.build();
        }
    }

    /// Handles the end of a build: loads its components, or reports why it failed.
    async fn built(&mut self, result: Result<(), String>) -> Result<(), Failure> {
        self.building = None;
        self.is_good = result.is_ok();
        match &result {
            Ok(()) => self.scan().await,
            Err(why) => {
                let then = if self.server.is_some() { "; the last good component stays in service" } else { "" };
                tell(&format!("{why}{then}"));
                let missing = block_in_place(|| new::missing_tools(&self.project.dir));
                missing.iter().for_each(|tool| tell(tool));
            }
        }
        if self.server.as_ref().is_none_or(|server| server.loading.is_none()) {
            self.phase.send_if_modified(|phase| {
                let is_first = matches!(phase, Phase::FirstBuild);
                if is_first {
                    *phase = Phase::NothingServed;
                }
                is_first
            });
        }
        // The build may have missed the sources that were saved while it ran.
        let changed = block_in_place(|| self.sources.scan());
        self.debounce.begin();
        if changed.is_empty() {
            self.changed_by_build = Default::default();
        } else {
            let (before, count) = &self.changed_by_build;
            let repeats = if changed == *before { count + 1 } else { 0 };
            self.changed_by_build = (changed, repeats);
            if repeats < MAX_REPEATS {
                self.build();
                return Ok(());
            }
            let names: Vec<String> =
                self.changed_by_build.0.iter().take(3).map(|path| format!("\"{}\"", path.display())).collect();
            tell(&format!(
                "each build changes {}; name it in .gitignore, so that it does not count as a source",
                names.join(", ")
            ));
        }
        if result.is_err() {
            self.end_waiting();
        }
        Ok(())
    }

    /// Reads the configuration again, and starts loading the components of the build.
    async fn scan(&mut self) {
        match self.project.read() {
            Ok(config) => self.config = Arc::new(config),
            Err(failure) => {
                tell(&format!("the new configuration is refused, the old one stays in force: {}", failure.message()));
            }
        }
        let dir = match directories::open_plugins(&self.config) {
            Ok(dir) => dir,
            Err(_) => {
                self.is_good = false;
                tell(&format!(
                    "the build left no directory \"{}\"; name the directory of the built component in belljar.toml: plugins = \"DIR\"",
                    self.config.plugins.display()
                ));
                return self.end_waiting();
            }
        };
        if self.server.is_none()
            && let Err(failure) = self.start_server()
        {
            self.is_good = false;
            tell(&failure.message());
            return self.end_waiting();
        }
        if let Some(server) = &mut self.server {
            server.loading = Some(Instant::now());
            server.gateway.set_policy(self.config.decider());
            server.loader.set_config(Arc::clone(&self.config));
            server.loader.set_dir(dir);
            server.loader.scan().await;
        }
        self.loaded();
    }

    /// Starts the gateway and the HTTP server.
    fn start_server(&mut self) -> Result<(), Failure> {
        let audit = |catalog: &Arc<_>| {
            let catalog = Arc::clone(catalog);
            Ok(Sink::to_writer(call_report::CallReports(catalog), crate::server::log::BlockingLogWriter)?)
        };
        let keys = Keys::read(&self.project.at, &self.config, SharedCode::Use)?;
        let config = Arc::clone(&self.config);
        let (host, loader) =
            startup::assemble(config, keys, audit, None, startup::WallAccess::default(), self.watcher.clone(), None)?;
        if let Some(listener) = self.listener.take() {
            let address = listener.local_addr()?;
            let listener = TcpListener::from_std(listener)?;
            let handler = Handler::new(
                Arc::clone(&host.gateway),
                Arc::new(Cursors::new(&host.cursor_key)),
                "http",
                authenticate(Evidence::Loopback),
            );
            let handler = handler.with_tools(host.config.tools);
            let stop = self.stop.clone().cancelled_owned();
            tokio::spawn(transport::http::serve(
                handler,
                listener,
                transport::http::FrontDoor::default(),
                CancellationToken::new(),
                stop,
            ));
            tell(&format!("listening on http://{address}{} for MCP clients", transport::http::PATH));
        }
        if std::io::stdin().is_terminal() {
            tell("commands: list, templates, read REFERENCE, complete, build, help, quit");
        }
        self.server = Some(Server { gateway: host.gateway, loader, loading: None });
        Ok(())
    }

    /// Once all components of a build are loaded, reports the mounts.
    fn loaded(&mut self) {
        let Some(server) = &mut self.server else { return };
        if !server.loader.is_done() {
            return;
        }
        let Some(began) = server.loading.take() else { return };
        let snapshot = server.gateway.snapshot();
        for mount in snapshot.mounts() {
            let size = self.config.plugins.join(&mount.file).metadata().map_or(0, |meta| meta.len());
            let digest: String = mount.digest.to_string().chars().take(19).collect();
            let holds =
                if mount.granted_kinds.is_empty() { "nothing".to_owned() } else { mount.granted_kinds.join(", ") };
            tell(&format!(
                "{} serves {} ({}, {digest}, {}, granted: {holds}, ready after {})",
                mount.file,
                mount.base,
                mount.name,
                show_bytes(size),
                call_report::show_time(began.elapsed()),
            ));
        }
        for refused in snapshot.refused() {
            tell(&format!("\"{}\" is not served: {}", refused.name, refused.reason));
        }
        let nothing = snapshot.mounts().is_empty() && snapshot.refused().is_empty();
        if nothing {
            tell(&format!(
                "the build left no component (.wasm) in \"{}\"; name the directory of the built component in belljar.toml: plugins = \"DIR\"",
                self.config.plugins.display()
            ));
        }
        self.is_good &= !snapshot.mounts().is_empty() && snapshot.refused().is_empty();
        let gateway = Arc::clone(&server.gateway);
        self.phase.send_if_modified(|phase| {
            let is_new = !matches!(phase, Phase::Serving(_));
            *phase = Phase::Serving(gateway);
            is_new
        });
        self.end_waiting();
    }

    /// Ends the `build` commands of the terminal that wait for this build.
    fn end_waiting(&mut self) {
        for waiting in self.waiting.drain(..) {
            let _ = waiting.send(());
        }
    }
}
