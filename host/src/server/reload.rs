//! Applies the operator's changes while belljar serves: of the plugin directory, the configuration and the lock.
//! Notices a change, lets the helper process read the files again, and lets the loader update the catalog.

use std::path::{Path, PathBuf};
use std::sync::Arc;

use futures_util::future::pending;
use tokio::signal::unix::{Signal, SignalKind, signal};
use tokio::task::{JoinError, JoinHandle, spawn_blocking};
use tokio::time::{Instant, sleep_until};

use super::configuration::{self, CertificatesError};
use super::directories;
use super::file_changes::{self, FollowedFile, hangup, stamp, watch};
use super::front_door::LiveAuthentication;
use super::location::{self, LocationArgs, NoWorkingDirectory, ReadConfigError};
use super::privileged_helper::{HelperError, OperatorFiles, OperatorFilesError, PrivilegedHelper};
use super::server_status::{self, ServerStatus, StatusFile};
use crate::catalog::loader::{Debounce, LandlockScope, Loader, NextAction};
use crate::catalog::watch::{DirectoryWatch, Watcher, any_changed};
use crate::config::{AuthConfig, Config, ConfigInput};
use crate::gateway::Gateway;
use crate::model::{Digest, MountName};
use crate::telemetry::Sink;

/// The data that reloading needs and that must be collected before the second wall is raised.
pub(crate) struct ReloadContext {
    /// The process that reads the files that this one cannot read.
    pub(crate) helper: Arc<PrivilegedHelper>,
    /// The paths and ports that the second wall allows to this process; `None` without a wall.
    pub(crate) scope: Option<LandlockScope>,
    /// The path of the configuration, which may not exist.
    path: PathBuf,
    /// The input of [`Config::read`], without the text.
    input: ConfigInput,
    /// The directories of the configuration and the lock, and of their targets if they are links.
    config_dirs: Vec<PathBuf>,
    /// The addresses on which belljar itself listens.
    own_addresses: Vec<std::net::SocketAddr>,
    dev: bool,
    /// The status of this server, for commands that change the configuration.
    pub(crate) status: Option<Arc<StatusFile>>,
    /// The followed files: the configuration first, then the files that it names.
    followed: Vec<FollowedFile>,
    /// The authentication in force. Set by the caller.
    pub(crate) authentication: Option<LiveAuthentication>,
    /// The record, if it is in a file of the operator.
    pub(super) record: Option<Sink>,
}

/// The files for [`ReloadContext::new`]: the configuration, or the files that it names and belljar follows. Called before
/// the files are read, so that no change is missed.
///
/// # Errors
/// If the path of the configuration is unknown.
pub(crate) fn followed_files(
    at: &LocationArgs,
    config: Option<&Config>,
) -> Result<Vec<FollowedFile>, NoWorkingDirectory> {
    let paths = match config {
        None => vec![location::config_path(at)?.0],
        Some(config) => named_files(config),
    };
    Ok(paths.into_iter().map(FollowedFile::new).collect())
}

/// The files that the configuration names and belljar follows with it.
fn named_files(config: &Config) -> Vec<PathBuf> {
    let key_sets = config.auth.iter().flat_map(AuthConfig::key_set_files).cloned();
    [config.lock.clone(), config.policy_file.clone()].into_iter().chain(key_sets).collect()
}

impl ReloadContext {
    /// Collects the data. Called before the second wall is raised. `followed`: see [`followed_files`]. `own_addresses`: the
    /// addresses on which belljar itself listens.
    ///
    /// # Errors
    /// If the configuration can no longer be read.
    pub(crate) fn new(
        at: &LocationArgs,
        config: &Config,
        followed: Vec<FollowedFile>,
        own_addresses: Vec<std::net::SocketAddr>,
        dev: bool,
        helper: Arc<PrivilegedHelper>,
    ) -> Result<Self, ReadConfigError> {
        let (path, input) = location::read_config_input(at)?;
        let paths: Vec<&Path> = followed.iter().map(|file| file.path.as_path()).collect();
        let config_dirs = file_changes::directories(&paths);
        let status = ServerStatus {
            configuration: path.clone(),
            text: server_status::digest(input.file.as_ref().map(|(_, text)| text.as_str())),
            lock: config.pins.lock().map(|lock| server_status::digest(Some(&lock.to_text()))),
            follows: config.watch.reload,
            ..ServerStatus::default()
        };
        let status = StatusFile::create(&config.state, status).map(Arc::new);
        let input = ConfigInput { file: None, ..input };
        let (scope, authentication, record) = (None, None, None);
        Ok(Self {
            helper,
            scope,
            path,
            input,
            config_dirs,
            own_addresses,
            dev,
            status,
            followed,
            authentication,
            record,
        })
    }

    /// Opens the operator's file of the record again: a tool that rotates logs has renamed it.
    fn reopen_record(&self) {
        let Some(record) = self.record.clone() else { return };
        let helper = Arc::clone(&self.helper);
        drop(spawn_blocking(move || match helper.open_record() {
            Ok(file) => {
                record.set_writer(file);
                tracing::info!("SIGHUP: the file of the record is open again");
            }
            Err(why) => tracing::error!("SIGHUP: the record goes on in the old file: {why}"),
        }));
    }

    /// Loads all components, and then applies changes until the task is dropped.
    pub(crate) async fn run(self, loader: Loader, watcher: Option<Watcher>, gateway: Arc<Gateway>) {
        let config = Arc::clone(loader.config());
        let watcher = watcher.filter(|_| config.watch.reload);
        let mut reloader = Reloader {
            plugins: watch(watcher.as_ref(), std::slice::from_ref(&config.plugins)).await,
            config_dirs: watch(watcher.as_ref(), &self.config_dirs).await,
            hangups: signal(SignalKind::hangup()).ok(),
            plugins_exist: true,
            plugins_id: stamp(&config.plugins).map(|(device, inode, ..)| (device, inode)),
            start_config: config,
            loader,
            gateway,
            context: self,
            plugins_debounce: Debounce::default(),
            config_debounce: Debounce::default(),
            reading: None,
            is_read_again: false,
            pins_requested: Vec::new(),
            watcher,
        };
        // Checks the files once more: they may have changed after they were read and before they were watched.
        reloader.config_debounce.changed(Instant::now());
        reloader.scan().await;
        reloader.update_status(|_| {});
        loop {
            reloader.step().await;
        }
    }
}

/// Applies changes of the operator's files to the running host.
struct Reloader {
    context: ReloadContext,
    loader: Loader,
    /// The gateway that serves, for the rules of its policy.
    gateway: Arc<Gateway>,
    /// The configuration at the start. Some of its keys apply until a restart.
    start_config: Arc<Config>,
    plugins: Vec<DirectoryWatch>,
    config_dirs: Vec<DirectoryWatch>,
    hangups: Option<Signal>,
    plugins_debounce: Debounce,
    config_debounce: Debounce,
    /// The running request to the helper, if there is one.
    reading: Option<JoinHandle<Result<OperatorFiles, HelperError>>>,
    /// True if the files must be read again after the running request.
    is_read_again: bool,
    /// The components for which the helper was last asked to write pins.
    pins_requested: Vec<(MountName, Digest)>,
    /// The device and inode of the open plugin directory.
    plugins_id: Option<(u64, u64)>,
    /// True if the plugin directory existed at the last scan.
    plugins_exist: bool,
    /// `None` if changes are not followed.
    watcher: Option<Watcher>,
}

/// Why the new contents of the operator's files are not applied.
#[derive(Debug, thiserror::Error)]
enum ReloadError {
    /// The task that reads them was stopped.
    #[error(transparent)]
    Stopped(#[from] JoinError),
    /// The helper failed to read them.
    #[error(transparent)]
    Helper(#[from] HelperError),
    /// The configuration file with which belljar was started no longer exists.
    #[error("\"{}\" is gone; put it back, or start belljar again without it", .0.display())]
    Gone(PathBuf),
    /// The new configuration or lock is invalid.
    #[error(transparent)]
    Wrong(#[from] OperatorFilesError),
    /// The certificates that the configuration names cannot be used.
    #[error(transparent)]
    Certificates(#[from] CertificatesError),
}

/// An event of the reloader.
enum ReloadEvent {
    PluginsChanged,
    ConfigChanged,
    DebounceElapsed,
    Hangup,
    FilesRead(Result<OperatorFiles, ReloadError>),
    Loaded(NextAction),
}

async fn read(
    reading: Option<&mut JoinHandle<Result<OperatorFiles, HelperError>>>,
) -> Result<OperatorFiles, ReloadError> {
    match reading {
        None => pending().await,
        Some(reading) => Ok(reading.await??),
    }
}

impl Reloader {
    /// Waits for the next event and handles it.
    async fn step(&mut self) {
        let due = [self.plugins_debounce.due(), self.config_debounce.due()].into_iter().flatten().min();
        let wait = async {
            match due {
                None => pending().await,
                Some(due) => sleep_until(due).await,
            }
        };
        let event = tokio::select! {
            () = any_changed(&self.plugins) => ReloadEvent::PluginsChanged,
            () = any_changed(&self.config_dirs) => ReloadEvent::ConfigChanged,
            () = hangup(self.hangups.as_mut()) => ReloadEvent::Hangup,
            result = read(self.reading.as_mut()) => ReloadEvent::FilesRead(result),
            next = self.loader.step() => ReloadEvent::Loaded(next),
            () = wait => ReloadEvent::DebounceElapsed,
        };
        let now = Instant::now();
        match event {
            ReloadEvent::PluginsChanged => self.plugins_debounce.changed(now),
            ReloadEvent::ConfigChanged => self.config_debounce.changed(now),
            ReloadEvent::Loaded(NextAction::Step) => self.request_pins(),
            ReloadEvent::Loaded(NextAction::Scan) => self.scan().await,
            ReloadEvent::Hangup => {
                tracing::info!("SIGHUP: reading the configuration and the components again");
                self.context.reopen_record();
                self.read_files();
                self.scan().await;
            }
            ReloadEvent::FilesRead(result) => self.apply(result).await,
            ReloadEvent::DebounceElapsed => {
                if self.config_debounce.due().is_some_and(|due| due <= now) {
                    self.config_debounce.begin();
                    // Changes of other files in the same directories, such as the audit record, do not count.
                    let mut is_changed = false;
                    for followed in &mut self.context.followed {
                        is_changed |= followed.has_changed();
                    }
                    if is_changed {
                        self.read_files();
                    }
                    self.config_debounce.end(now, Instant::now());
                }
                if self.plugins_debounce.due().is_some_and(|due| due <= now) {
                    self.scan().await;
                }
            }
        }
    }

    /// Asks the helper process to read the operator's files.
    fn read_files(&mut self) {
        if self.reading.is_some() {
            self.is_read_again = true;
            return;
        }
        let (helper, dev) = (Arc::clone(&self.context.helper), self.context.dev);
        self.reading = Some(spawn_blocking(move || helper.read_files(dev)));
    }

    /// Applies the new configuration, if it is valid.
    async fn apply(&mut self, result: Result<OperatorFiles, ReloadError>) {
        self.reading = None;
        if std::mem::take(&mut self.is_read_again) {
            self.read_files();
        }
        let text = result.as_ref().map(|files| server_status::digest(files.text())).unwrap_or_default();
        match result.and_then(|files| self.config(files)) {
            Err(error) => {
                let why = error.to_string();
                tracing::error!("the new configuration is refused, the old one stays in force: {why}");
                if let Some(file) = &self.context.status {
                    file.update(|status| status.refused = Some((text, why)));
                }
            }
            Ok(config) => {
                let keys = needing_restart(&self.start_config, &config);
                if !keys.is_empty() {
                    tracing::warn!(
                        "the changes of {} need a restart; until then the old values apply",
                        keys.join(", ")
                    );
                }
                let lock = config.pins.lock().map(|lock| server_status::digest(Some(&lock.to_text())));
                // Before the mounts change: no new mount is served by the old rules.
                self.gateway.set_policy(config.decider());
                self.gateway.set_configuration(config.fingerprint());
                self.replace_authentication(&config);
                self.follow_named_files(&config).await;
                self.loader.set_config(Arc::new(config));
                self.scan().await;
                self.update_status(|status| (status.text, status.lock, status.refused) = (text, lock, None));
            }
        }
    }

    /// Follows the files that the new configuration names, if they are others than before.
    async fn follow_named_files(&mut self, config: &Config) {
        let named = named_files(config);
        let [_, known @ ..] = self.context.followed.as_slice() else { return };
        if known.iter().map(|file| &file.path).eq(&named) {
            return;
        }
        self.context.followed.truncate(1);
        self.context.followed.extend(named.into_iter().map(FollowedFile::new));
        let paths: Vec<&Path> = self.context.followed.iter().map(|file| file.path.as_path()).collect();
        self.context.config_dirs = file_changes::directories(&paths);
        self.config_dirs = watch(self.watcher.as_ref(), &self.context.config_dirs).await;
        // They may have changed before they were followed.
        self.read_files();
    }

    /// Tells clients the scopes of the new rules, and uses the key sets that the helper has read.
    fn replace_authentication(&self, config: &Config) {
        let Some((live, auth)) = self.context.authentication.as_ref().zip(self.start_config.auth.as_ref()) else {
            return;
        };
        if let Err(why) = live.apply(auth, config) {
            tracing::error!("the new key sets are refused, the old ones stay in use: {why}");
        }
    }

    /// Updates the status file, for commands that change the configuration.
    fn update_status(&mut self, change: impl FnOnce(&mut ServerStatus)) {
        let Some(file) = &self.context.status else { return };
        let mounts = self.loader.refused().iter().map(|one| (one.name.clone(), one.reason.clone())).collect();
        file.update(|status| {
            change(status);
            status.mounts = mounts;
            status.is_walled = self.context.scope.is_some();
        });
    }

    fn config(&self, files: OperatorFiles) -> Result<Config, ReloadError> {
        let old = self.loader.config();
        if old.file.is_some() && files.text().is_none() {
            return Err(ReloadError::Gone(self.context.path.clone()));
        }
        let mut config = files.into_config(&self.context.path, &self.context.input)?;
        config.ambient.network.clone_from(&old.ambient.network);
        config.ambient.logins.clone_from(&old.ambient.logins);
        if config.ambient.network.is_none() && self.context.scope.is_none() && !config.ports().is_empty() {
            config.ambient.network = Some(Arc::new(configuration::network(&config, &self.context.own_addresses)?));
        }
        Ok(config)
    }

    /// Updates the catalog from the plugin directory, if the directory exists.
    async fn scan(&mut self) {
        self.plugins_debounce.begin();
        let began = Instant::now();
        if self.find_plugins() {
            self.loader.scan().await;
        }
        self.plugins_debounce.end(began, Instant::now());
        self.request_pins();
    }

    /// True if the plugin directory can be scanned. Opens it if it is another directory than before.
    fn find_plugins(&mut self) -> bool {
        let path = &self.start_config.plugins;
        let Some((device, inode, ..)) = stamp(path) else {
            if std::mem::take(&mut self.plugins_exist) {
                tracing::error!(
                    "the plugin directory \"{}\" is gone; the loaded components stay in service",
                    path.display()
                );
            }
            return false;
        };
        if self.plugins_id == Some((device, inode)) {
            self.plugins_exist = true;
            return true;
        }
        // Landlock lets every directory be opened as a handle, and refuses to read its entries.
        let opened = directories::open_dir(path).and_then(|dir| {
            drop(dir.entries()?);
            Ok(dir)
        });
        match opened {
            Ok(dir) => {
                tracing::info!("the plugin directory \"{}\" was replaced by another one", path.display());
                self.loader.set_dir(dir);
                self.plugins_id = Some((device, inode));
                self.plugins_exist = true;
                true
            }
            Err(error) => {
                let cure = match self.context.scope {
                    Some(_) => "; the second wall allows only the old directory: restart belljar",
                    None => "",
                };
                tracing::error!(
                    "the plugin directory \"{}\" was replaced, and the new one cannot be opened ({error}){cure}; the loaded components stay in service",
                    path.display()
                );
                false
            }
        }
    }

    /// Asks the helper to write pins for new components with grants, as at the start.
    fn request_pins(&mut self) {
        let lacking = self.loader.unpinned();
        if lacking.iter().any(|one| !self.pins_requested.contains(one)) {
            self.pins_requested = lacking;
            self.read_files();
        }
    }
}

/// The changed keys of the configuration that take effect only after a restart.
fn needing_restart(old: &Config, new: &Config) -> Vec<&'static str> {
    [
        ("plugins", old.plugins != new.plugins),
        ("cache", old.cache != new.cache),
        ("state", old.state != new.state),
        ("audit", (&old.audit, old.when_full) != (&new.audit, new.when_full)),
        ("wall", old.wall != new.wall),
        ("isolation", old.has_workers() != new.has_workers()),
        ("calls", old.calls != new.calls),
        ("total-memory", old.total_memory != new.total_memory),
        ("list-time", old.list_time != new.list_time),
        ("[network]", old.network != new.network),
        ("[watch]", old.watch != new.watch),
        ("tools", old.tools != new.tools),
        ("[callers]", old.callers != new.callers),
        ("[auth]", old.auth != new.auth),
        ("[serve]", old.serve != new.serve),
        ("[admin]", old.admin != new.admin),
        ("[trace]", old.trace != new.trace),
        ("[replicas]", old.replicas != new.replicas),
    ]
    .into_iter()
    .filter_map(|(key, is_changed)| is_changed.then_some(key))
    .collect()
}
