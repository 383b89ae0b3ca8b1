//! From the command line to a running gateway: reads the configuration, opens belljar's own files, starts loading.

use std::fs::DirBuilder;
use std::net::SocketAddr;
use std::os::unix::fs::{DirBuilderExt, MetadataExt, OpenOptionsExt};
use std::path::{Path, PathBuf};
use std::sync::Arc;

use cap_std::fs::Dir;
use tokio::signal::unix::SignalKind;

use super::compiler::Subprocess;
use super::keys::{self, Keys};
use super::live::Live;
use super::pins::{self, Pinning};
use super::record_file::{self, RecordFile};
use super::{Failure, Where, log, open_files, store};
use crate::admission::budget::Budget;
use crate::admission::{self, Admission};
use crate::audit::Sink;
use crate::catalog::reload::{Loader, Within};
use crate::catalog::watch::Watcher;
use crate::catalog::{Catalog, mount};
use crate::config::{Audit, Config, FILE, Given};
use crate::gateway::Gateway;
use crate::gateway::consent::{Consents, Keeper};
use crate::gateway::watching::Watching;
use crate::grants::http::{Network, Settings};
use crate::grants::secrets::Secrets;
use crate::model::command;
use crate::sandbox::{CodeStore, Options, Sandbox};

/// Everything that serves, and the configuration that it came from.
pub(super) struct Opened {
    pub(super) gateway: Arc<Gateway>,
    pub(super) config: Arc<Config>,
    /// What cursors are sealed with.
    pub(super) key: [u8; 32],
}

fn variable(name: &str) -> Option<PathBuf> {
    #[expect(clippy::disallowed_methods, reason = "where the operator's files are")]
    let value = std::env::var_os(name).filter(|value| !value.is_empty())?;
    Some(value.into())
}

/// Reads the configuration that the command line names, or the one of the working directory, or none; and what is kept in
/// files that the second wall will keep from this process: the lock, secrets, what connections are made with. `own`:
/// where belljar itself listens.
pub(super) fn config(at: &Where, own: &[SocketAddr], pinning: Pinning) -> Result<Config, Failure> {
    let (path, given) = given(at)?;
    if given.file.is_none() && at.config.is_some() && !at.may_lack {
        return Err(Failure::Failed(format!("there is no configuration \"{}\"", path.display())));
    }
    let mut config = Config::read(given)?;
    furnish(&mut config, own)?;
    pins::apply(&mut config, pinning);
    Ok(config)
}

/// Reads secrets, and what connections are made with.
pub(super) fn furnish(config: &mut Config, own: &[SocketAddr]) -> Result<(), Failure> {
    config.ambient.secrets = Secrets::read(&config.secrets, &config.ambient);
    config.ambient.secrets.failures().for_each(|why| tracing::warn!("{why}"));
    if !config.ports().is_empty() {
        config.ambient.network = Some(Arc::new(network(config, own)?));
    }
    Ok(())
}

/// Where the configuration is or would be, and the working directory.
pub(super) fn place(at: &Where) -> Result<(PathBuf, PathBuf), Failure> {
    #[expect(clippy::disallowed_methods, reason = "where the operator is")]
    let directory = std::env::current_dir()
        .map_err(|error| Failure::Failed(format!("the working directory cannot be found: {error}")))?;
    Ok((directory.join(at.config.as_deref().unwrap_or(Path::new(FILE))), directory))
}

/// Where belljar keeps its state when the configuration says nothing; none without a home.
pub(super) fn state_home() -> Option<PathBuf> {
    let base = variable("XDG_STATE_HOME").filter(|path| path.is_absolute());
    Some(base.or_else(|| Some(variable("HOME")?.join(".local/state")))?.join("belljar"))
}

/// Where the configuration is or would be, and all that it is read with.
pub(super) fn given(at: &Where) -> Result<(PathBuf, Given), Failure> {
    let (path, directory) = place(at)?;
    let file = store::read(&path)?.map(|text| (path.clone(), text));
    let home = variable("HOME");
    let place = |name: &str, below: &str| {
        let base = variable(name).filter(|path| path.is_absolute()).or_else(|| Some(home.as_ref()?.join(below)));
        // Without a home there is nowhere to keep anything.
        base.unwrap_or_else(|| "/nonexistent".into()).join("belljar")
    };
    let (cache, state) = (place("XDG_CACHE_HOME", ".cache"), place("XDG_STATE_HOME", ".local/state"));
    Ok((path, Given { file, directory, plugins: at.plugins.clone(), home, cache, state }))
}

pub(super) fn network(config: &Config, own: &[SocketAddr]) -> Result<Network, Failure> {
    let fail = |path: &Path, why: &dyn std::fmt::Display| format!("network.ca: \"{}\": {why}", path.display());
    let ca = config.network.ca.as_deref();
    #[expect(clippy::disallowed_methods, reason = "the operator's certificates")]
    let roots = ca.map(|path| std::fs::read(path).map_err(|error| fail(path, &error))).transpose()?;
    let settings = Settings { dns: config.network.dns.clone(), roots, own: own.to_vec() };
    Ok(Network::read(&settings).map_err(|why| ca.map_or(why.clone(), |path| fail(path, &why)))?)
}

/// The directory of components.
pub(super) fn plugins(config: &Config) -> Result<Dir, Failure> {
    let path = &config.plugins;
    let dir = Dir::open_ambient_dir(path, cap_std::ambient_authority()).map_err(|error| match error.kind() {
        std::io::ErrorKind::NotFound => Failure::Failed(format!(
            "there is no plugin directory \"{}\"; create it, or name another with --plugins DIR",
            path.display()
        )),
        _ => Failure::Failed(format!("cannot open the plugin directory \"{}\": {error}", path.display())),
    })?;
    #[expect(clippy::disallowed_methods, reason = "belljar's own directory")]
    if let Ok(meta) = std::fs::metadata(path) {
        if meta.mode() & 0o002 != 0 {
            tracing::warn!(
                "anyone on this machine can put components into \"{}\"; take away its write permission for others",
                path.display()
            );
        } else if !mount::is_trusted(meta.uid()) {
            tracing::warn!(
                "\"{}\" belongs to another user, who can put components into it; make it your own",
                path.display()
            );
        }
    }
    Ok(dir)
}

/// How many files all calls together may hold open: a quarter of what the process may is left for connections, pipes and
/// belljar's own files.
fn descriptors(calls: u32) -> usize {
    let most = open_files::most();
    let all = most / 4 * 3;
    if all / u64::from(calls) < 64 {
        tracing::warn!(
            "{calls} calls at once share {all} open files; to allow more, {}",
            crate::model::error::MORE_OPEN_FILES
        );
    }
    usize::try_from(all).unwrap_or(usize::MAX)
}

/// Makes the sandbox that `config` describes.
pub(super) fn sandbox(config: &Config, cache: Option<CodeStore>) -> Result<Sandbox, Failure> {
    let calls = admission::places(config.calls);
    let descriptors = descriptors(config.calls);
    Ok(Sandbox::new(Options { calls, cache, descriptors, compiler: Arc::new(Subprocess) })?)
}

/// Opens everything and starts loading in the background. `audit`: what keeps the record. `keeper`: what keeps that a person allows something for good. `live`: what keeps the catalog as the files say.
pub(super) fn open(
    config: Config,
    keys: Keys,
    audit: Sink,
    keeper: Option<Arc<dyn Keeper>>,
    live: Option<Live>,
) -> Result<Opened, Failure> {
    let config = Arc::new(config);
    // Only what goes on serving has changes to follow.
    let watcher = live.as_ref().and_then(|_| watcher());
    let within = live.as_ref().and_then(|live| live.within.clone());
    let (opened, mut loader) = assemble((config, keys), |_| Ok(audit), keeper, within, watcher.clone())?;
    tokio::spawn(async move {
        match live {
            Some(live) => live.run(loader, watcher).await,
            None => loader.load().await,
        }
    });
    Ok(opened)
}

/// Opens what mounts are made of one file of the plugin directory, and nothing else. There are no records of it.
pub(super) fn open_only(config: Config, keys: Keys, file: &str) -> Result<Opened, Failure> {
    let (opened, loader) = assemble((Arc::new(config), keys), |_| Ok(Sink::off()), None, None, None)?;
    let mut loader = loader.only(file.to_owned());
    tokio::spawn(async move { loader.load().await });
    Ok(opened)
}

/// Puts together everything that serves, and what will load it. `audit`: makes what keeps the records of what is served.
pub(super) fn assemble(
    (config, keys): (Arc<Config>, Keys),
    audit: impl FnOnce(&Arc<Catalog>) -> Result<Sink, Failure>,
    keeper: Option<Arc<dyn Keeper>>,
    within: Option<Within>,
    watcher: Option<Watcher>,
) -> Result<(Opened, Loader), Failure> {
    // A file that may not grow any more is an error of the write, as a full disk is, and not the end of everything.
    let too_large = SignalKind::from_raw(rustix::process::Signal::XFSZ.as_raw());
    let _ = tokio::signal::unix::signal(too_large);
    let dir = plugins(&config)?;
    let (cache, key) = keys.open(&config);
    let sandbox = Arc::new(sandbox(&config, cache)?);
    let budget = Budget::new(config.total_memory);
    let catalog = Arc::new(Catalog::new(Arc::clone(&budget)));
    let calls = usize::try_from(config.calls).unwrap_or(usize::MAX);
    let gateway = Arc::new(Gateway::new(
        Arc::clone(&catalog),
        Arc::clone(&sandbox),
        Admission::new(calls, budget).with_rate(config.callers),
        audit(&catalog)?,
        // What was answered is remembered by this process alone, so that its key is its own too.
        Consents::new(&keys::fresh_key(), keeper),
        Watching::new(config.watch.clone(), watcher),
        config.list_time,
    ));
    gateway.follow();
    let loader = Loader::new(dir, Arc::clone(&config), within, sandbox, catalog);
    Ok((Opened { gateway, config, key }, loader))
}

/// What tells of changes in directories. Without it, belljar looks from time to time.
pub(super) fn watcher() -> Option<Watcher> {
    Watcher::start().inspect_err(|why| tracing::warn!("changes are not noticed at once: {why}")).ok()
}

/// What keeps the record. `quiet`: records that would go to standard error are not kept.
pub(super) fn audit(config: &Config, quiet: bool) -> Result<Sink, Failure> {
    let fail =
        |what: String, error: std::io::Error| Failure::Failed(format!("cannot keep the audit record{what}: {error}"));
    let to_stderr = || match quiet {
        true => Ok(Sink::off()),
        false => Sink::to_writer(log::Patient).map_err(|error| fail(String::new(), error)),
    };
    match &config.audit {
        Audit::Off => Ok(Sink::off()),
        Audit::Stderr => to_stderr(),
        Audit::State => match RecordFile::open(&config.state) {
            Ok(file) => {
                tracing::info!("calls are on record in \"{}\"", record_file::path(&config.state).display());
                Sink::to_writer(file).map_err(|error| fail(String::new(), error))
            }
            Err(why) => {
                tracing::warn!("no audit file: {why}; set audit = \"FILE\"; until then calls are on record here");
                to_stderr()
            }
        },
        Audit::File(path) => {
            let shown = format!(" in \"{}\"", path.display());
            let file = audit_file(path).map_err(|error| match error.raw_os_error() {
                Some(code) if code == rustix::io::Errno::NXIO.raw_os_error() => Failure::Failed(format!(
                    "cannot keep the audit record{shown}: nobody reads this FIFO; start its reader first"
                )),
                _ => fail(shown, error),
            })?;
            Sink::to_writer(file).map_err(|error| fail(String::new(), error))
        }
    }
}

/// Opens the operator's audit file without waiting, whatever it is: a FIFO may have no reader, or one that does not read.
pub(super) fn audit_file(path: &Path) -> std::io::Result<std::fs::File> {
    let at_once = i32::from_ne_bytes(rustix::fs::OFlags::NONBLOCK.bits().to_ne_bytes());
    #[expect(clippy::disallowed_methods, reason = "the operator's audit file")]
    std::fs::OpenOptions::new().append(true).create(true).mode(0o600).custom_flags(at_once).open(path)
}

/// Opens a directory that only this user can use, making it where it is missing.
pub(super) fn private_dir(path: &Path) -> Result<Dir, String> {
    let fail = |error: std::io::Error| format!("\"{}\": {error}", path.display());
    DirBuilder::new().recursive(true).mode(0o700).create(path).map_err(fail)?;
    let dir = Dir::open_ambient_dir(path, cap_std::ambient_authority()).map_err(fail)?;
    let meta = cap_std::fs::MetadataExt::mode(&dir.dir_metadata().map_err(fail)?);
    let owner = cap_std::fs::MetadataExt::uid(&dir.dir_metadata().map_err(fail)?);
    if owner != rustix::process::geteuid().as_raw() {
        return Err(format!("\"{}\" belongs to another user; remove it, or name another directory", path.display()));
    }
    if meta & 0o077 != 0 {
        let quoted = command::quoted(&path.to_string_lossy());
        return Err(format!("others can use \"{}\"; run: chmod 700 {quoted}", path.display()));
    }
    Ok(dir)
}
