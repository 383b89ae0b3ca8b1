//! `belljar dev`: builds, serves and follows the provider that somebody is writing.
//!
//! What is called is called as `serve` does it: through the same gateway, with the same limits, in the same sandbox. Two things
//! differ. Whoever builds a component trusts it, so that its grants are not bound to its bytes; and compilers need the machine,
//! so that the second wall is not raised.

mod log;
mod recipe;
mod shown;
mod terminal;
mod tree;

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

use super::keys::{Keys, Shared};
use super::{Failure, Where, new, open, serve, spelling};
use crate::audit::Sink;
use crate::catalog::reload::{Loader, Next, Pace};
use crate::catalog::watch::Watcher;
use crate::config::lock::Pins;
use crate::config::{Config, FILE};
use crate::gateway::Gateway;
use crate::mcp::Handler;
use crate::mcp::cursor::Cursors;
use crate::model::error::show_bytes;
use crate::transport;
use recipe::{Build, Recipe};
use terminal::Wanted;
use tree::Tree;

/// How long threads may take to end after everything was ended.
const END: Duration = Duration::from_secs(1);

/// Builds in a row that may find the same files changed when they end, before it is the build that changes them.
const REPEATS: u32 = 2;

/// What `--help` shows below the flags.
pub(super) const HELP: &str = "It is built by what lies in DIR: Cargo.toml, package.json with a \"build\" script, Makefile; or by --build. DIR's belljar.toml says where the
component is left (plugins = ...) and what it is granted; the component may change without \"belljar trust\". Each save builds anew, and a
build that fails leaves the last good component served. Calls have the limits that they have in \"belljar serve\", in the same sandbox; but
compilers need the machine, so the second wall around the process is not raised here.

Examples:
  belljar dev .
  belljar dev ~/src/tides --http 127.0.0.1:8808
  echo 'read hello.txt' | belljar dev .";

/// What the author can ask for now.
#[derive(Clone)]
enum Phase {
    /// The first build runs.
    First,
    /// Nothing was ever served.
    Nothing,
    /// Whatever was good last is served.
    Serving(Arc<Gateway>),
}

/// Where the project is, and what is said of it.
struct Place {
    dir: PathBuf,
    at: Where,
    /// Whether there has to be a configuration.
    is_named: bool,
    /// Where belljar itself listens.
    own: SocketAddr,
}

impl Place {
    /// The configuration as it is now.
    fn read(&self) -> Result<Config, Failure> {
        let (path, given) = open::given(&self.at)?;
        if given.file.is_none() && self.is_named {
            return Err(Failure::Failed(format!("there is no configuration \"{}\"", path.display())));
        }
        let mut config = Config::read(given)?;
        open::furnish(&mut config, std::slice::from_ref(&self.own))?;
        config.pins = Pins::Off;
        Ok(config)
    }
}

/// What is served, once something is.
struct Served {
    gateway: Arc<Gateway>,
    loader: Loader,
    /// When the component was built that is being loaded.
    loading: Option<Instant>,
}

struct Session {
    place: Place,
    recipe: Recipe,
    config: Arc<Config>,
    tree: Tree,
    watcher: Option<Watcher>,
    pace: Pace,
    building: Option<Build>,
    /// Files that were found changed when the last build ended, and how many builds in a row that was so.
    remade: (BTreeSet<PathBuf>, u32),
    served: Option<Served>,
    listener: Option<StdListener>,
    phase: watch::Sender<Phase>,
    /// Who waits for a build.
    waiting: Vec<oneshot::Sender<()>>,
    stop: CancellationToken,
    is_good: bool,
}

/// What there is to do.
enum Event {
    Changed,
    Due,
    Built(Result<(), String>),
    Loaded(Next),
    Wanted(Option<Wanted>),
    Stop,
}

pub(super) fn run(
    dir: &Path,
    build: Option<&str>,
    config: Option<&Path>,
    http: Option<SocketAddr>,
) -> Result<ExitCode, Failure> {
    log::start();
    http.as_ref().map_or(Ok(()), serve::check_address)?;
    #[expect(clippy::disallowed_methods, reason = "the author's project")]
    let dir = std::fs::canonicalize(dir)
        .map_err(|error| Failure::Failed(format!("cannot open the project \"{}\": {error}", dir.display())))?;
    let recipe = build.map_or_else(|| Recipe::find(&dir), |command| Ok(Recipe::given(&dir, command)));
    let recipe = recipe.map_err(Failure::Misused)?;
    let listener = http.map_or_else(|| listen(&dir), serve::listen)?;
    let own = listener.local_addr()?;
    let path = config.map_or_else(|| dir.join(FILE), Path::to_owned);
    let plugins = (!path.exists()).then(|| dir.join(recipe.leaves));
    let at = Where { plugins, config: Some(path), place: None, may_lack: false };
    // Where the author types, and where belljar was told to work, may be two directories.
    let is_here = std::path::absolute(".").is_ok_and(|here| here == dir) && config.is_none();
    match is_here {
        true => spelling::as_typed(&Where { config: None, ..at.clone() }),
        false => spelling::from_anywhere(&at, true),
    }
    let place = Place { at, is_named: config.is_some(), own, dir };
    let config = Arc::new(place.read()?);
    let runtime = tokio::runtime::Builder::new_multi_thread().enable_all().build()?;
    let mut gateway = None;
    let is_good = runtime.block_on(async {
        let mut session = Session::new(place, recipe, config, listener);
        let ended = session.run().await;
        gateway = session.served.as_ref().map(|served| Arc::clone(&served.gateway));
        ended.map(|()| session.is_good)
    });
    gateway.iter().for_each(|gateway| gateway.end_calls(END));
    runtime.shutdown_timeout(END);
    Ok(if is_good? { ExitCode::SUCCESS } else { ExitCode::FAILURE })
}

/// Ports for projects that name none: below those that systems give away.
const PORTS: std::ops::Range<u16> = 20_000..30_000;

/// Listens on the project's own port, so that clients find it again at each start; on a free one where that is taken.
fn listen(dir: &Path) -> Result<StdListener, Failure> {
    let digest = blake3::hash(dir.as_os_str().as_bytes());
    let number = digest.as_bytes().iter().take(8).fold(0u64, |number, byte| number << 8 | u64::from(*byte));
    let offset = u16::try_from(number % u64::try_from(PORTS.len()).unwrap_or(1)).unwrap_or_default();
    let here = std::net::Ipv4Addr::LOCALHOST;
    serve::listen((here, PORTS.start + offset).into()).or_else(|failure| {
        tell(&format!("{}; a free port is taken instead (--http 127.0.0.1:PORT names one)", failure.why()));
        serve::listen((here, 0).into())
    })
}

/// To whoever develops; answers to commands go to standard output.
fn tell(text: &str) {
    crate::cli::log::say(text);
}

/// Waits for a build, if one runs.
async fn built(building: Option<&mut Build>) -> Result<(), String> {
    match building {
        Some(build) => build.ended().await,
        None => pending().await,
    }
}

/// Goes on with what is being loaded, if anything is served.
async fn step(served: Option<&mut Served>) -> Next {
    match served {
        Some(served) => served.loader.step().await,
        None => pending().await,
    }
}

impl Session {
    fn new(place: Place, recipe: Recipe, config: Arc<Config>, listener: StdListener) -> Self {
        // Data that is granted and components that are built are no sources.
        let granted = config.mounts.values().flat_map(|mount| mount.grants.directories(&config.ambient));
        let skipped = granted.chain([config.plugins.clone(), config.cache.clone(), config.state.clone()]);
        let watcher = open::watcher();
        let tree = Tree::new(&place.dir, skipped.collect(), watcher.clone());
        Self {
            place,
            recipe,
            config,
            tree,
            watcher,
            pace: Pace::default(),
            building: None,
            remade: Default::default(),
            served: None,
            listener: Some(listener),
            phase: watch::Sender::new(Phase::First),
            waiting: Vec::new(),
            stop: CancellationToken::new(),
            is_good: false,
        }
    }

    /// Until the author has enough.
    async fn run(&mut self) -> Result<(), Failure> {
        let mut interrupt = signal(SignalKind::interrupt())?;
        let mut terminate = signal(SignalKind::terminate())?;
        let (send, mut wanted) = mpsc::channel(1);
        tokio::spawn(terminal::run(self.phase.subscribe(), send));
        self.build();
        loop {
            let due = self.pace.due().filter(|_| self.building.is_none());
            let wait = async {
                match due {
                    None => pending().await,
                    Some(due) => sleep_until(due).await,
                }
            };
            let event = tokio::select! {
                _ = interrupt.recv() => Event::Stop,
                _ = terminate.recv() => Event::Stop,
                wanted = wanted.recv() => Event::Wanted(wanted),
                result = built(self.building.as_mut()) => Event::Built(result),
                next = step(self.served.as_mut()) => Event::Loaded(next),
                () = self.tree.changed() => Event::Changed,
                () = wait => Event::Due,
            };
            match event {
                Event::Changed => self.pace.changed(Instant::now()),
                Event::Due => self.look(),
                Event::Built(result) => self.built(result).await?,
                Event::Loaded(Next::Step) => self.loaded(),
                Event::Loaded(Next::Scan) => self.scan().await,
                Event::Wanted(Some(Wanted::Build(done))) => {
                    self.waiting.push(done);
                    if self.building.is_none() {
                        self.tree.look();
                        self.build();
                    }
                }
                Event::Stop | Event::Wanted(Some(Wanted::Quit) | None) => break,
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
        self.pace.begin();
        self.building = Some(self.recipe.start());
    }

    /// Looks whether a source is another than before, and builds if one is.
    fn look(&mut self) {
        self.pace.begin();
        let changed = block_in_place(|| self.tree.look());
        if let Some(first) = changed.first() {
            let more = changed.len() - 1;
            let and = if more == 0 { String::new() } else { format!(" and {more} more") };
            tell(&format!("\"{}\"{and} changed", first.display()));
            self.remade = Default::default();
            self.build();
        }
    }

    /// A build has ended.
    async fn built(&mut self, result: Result<(), String>) -> Result<(), Failure> {
        self.building = None;
        self.is_good = result.is_ok();
        match &result {
            Ok(()) => self.scan().await,
            Err(why) => {
                let then = if self.served.is_some() { "; what was good before is served on" } else { "" };
                tell(&format!("{why}{then}"));
                let missing = block_in_place(|| new::missing_tools(&self.place.dir));
                missing.iter().for_each(|tool| tell(tool));
            }
        }
        if self.served.as_ref().is_none_or(|served| served.loading.is_none()) {
            self.phase.send_if_modified(|phase| {
                let is_first = matches!(phase, Phase::First);
                if is_first {
                    *phase = Phase::Nothing;
                }
                is_first
            });
        }
        // What was saved meanwhile may not be in what was built.
        let changed = block_in_place(|| self.tree.look());
        self.pace.begin();
        if changed.is_empty() {
            self.remade = Default::default();
        } else {
            let again = if changed == self.remade.0 { self.remade.1 + 1 } else { 0 };
            self.remade = (changed, again);
            if again < REPEATS {
                self.build();
                return Ok(());
            }
            let names: Vec<String> =
                self.remade.0.iter().take(3).map(|path| format!("\"{}\"", path.display())).collect();
            tell(&format!(
                "each build changes {}; name it in .gitignore, and it no longer counts as a source",
                names.join(", ")
            ));
        }
        if result.is_err() {
            self.answer();
        }
        Ok(())
    }

    /// Reads the configuration again, and has loaded what the build left.
    async fn scan(&mut self) {
        match self.place.read() {
            Ok(config) => self.config = Arc::new(config),
            Err(failure) => tell(&format!("the configuration goes on as it was: {}", failure.why())),
        }
        let dir = match open::plugins(&self.config) {
            Ok(dir) => dir,
            Err(_) => {
                self.is_good = false;
                tell(&format!(
                    "the build left no directory \"{}\"; say in belljar.toml where it leaves the component: plugins = \"DIR\"",
                    self.config.plugins.display()
                ));
                return self.answer();
            }
        };
        if self.served.is_none()
            && let Err(failure) = self.open()
        {
            self.is_good = false;
            tell(&failure.why());
            return self.answer();
        }
        if let Some(served) = &mut self.served {
            served.loading = Some(Instant::now());
            served.loader.set_config(Arc::clone(&self.config));
            served.loader.set_dir(dir);
            served.loader.scan().await;
        }
        self.loaded();
    }

    /// Puts everything together that serves, once there is something to serve.
    fn open(&mut self) -> Result<(), Failure> {
        let audit = |catalog: &Arc<_>| {
            let catalog = Arc::clone(catalog);
            Ok(Sink::written_as(move |record| shown::record(record, &catalog), crate::cli::log::Patient)?)
        };
        let keys = Keys::read(&self.place.at, &self.config, Shared::Used)?;
        let config = Arc::clone(&self.config);
        let (opened, loader) = open::assemble((config, keys), audit, None, None, self.watcher.clone())?;
        if let Some(listener) = self.listener.take() {
            let address = listener.local_addr()?;
            let listener = TcpListener::from_std(listener)?;
            let handler = Handler::new(Arc::clone(&opened.gateway), Arc::new(Cursors::new(&opened.key)), "http");
            let handler = handler.with_tools(opened.config.tools);
            let stop = self.stop.clone().cancelled_owned();
            tokio::spawn(transport::http::serve(handler, listener, transport::http::Bounds::default(), stop));
            tell(&format!("listening on http://{address}{} for MCP clients", transport::http::PATH));
        }
        if std::io::stdin().is_terminal() {
            tell("type list, templates, read REFERENCE, complete, build, help or quit");
        }
        self.served = Some(Served { gateway: opened.gateway, loader, loading: None });
        Ok(())
    }

    /// Says what came of a build, when all of it is loaded.
    fn loaded(&mut self) {
        let Some(served) = &mut self.served else { return };
        if !served.loader.is_done() {
            return;
        }
        let Some(began) = served.loading.take() else { return };
        let snapshot = served.gateway.snapshot();
        for mount in snapshot.mounts() {
            let size = self.config.plugins.join(&mount.file).metadata().map_or(0, |meta| meta.len());
            let digest: String = mount.digest.to_string().chars().take(19).collect();
            let holds = if mount.holds.is_empty() { "nothing".to_owned() } else { mount.holds.join(", ") };
            tell(&format!(
                "{} serves {} ({}, {digest}, {}, granted: {holds}, ready after {})",
                mount.file,
                mount.base,
                mount.name,
                show_bytes(size),
                shown::show_time(began.elapsed()),
            ));
        }
        for refused in snapshot.refused() {
            tell(&format!("\"{}\" is not served: {}", refused.name, refused.reason));
        }
        let nothing = snapshot.mounts().is_empty() && snapshot.refused().is_empty();
        if nothing {
            tell(&format!(
                "the build left no component (.wasm) in \"{}\"; say in belljar.toml where it leaves it: plugins = \"DIR\"",
                self.config.plugins.display()
            ));
        }
        self.is_good &= !snapshot.mounts().is_empty() && snapshot.refused().is_empty();
        let gateway = Arc::clone(&served.gateway);
        self.phase.send_if_modified(|phase| {
            let is_new = !matches!(phase, Phase::Serving(_));
            *phase = Phase::Serving(gateway);
            is_new
        });
        self.answer();
    }

    /// Tells whoever waits for a build that there is nothing more to wait for.
    fn answer(&mut self) {
        for waiting in self.waiting.drain(..) {
            let _ = waiting.send(());
        }
    }
}
