//! Follows what the operator changes while belljar serves: the plugin directory, the configuration, the lock. Sees that
//! something changed, has it read again by whoever may, and has the catalog brought up to it.

use std::os::unix::fs::MetadataExt;
use std::path::{Path, PathBuf};
use std::sync::Arc;

use cap_std::fs::Dir;
use futures_util::future::pending;
use tokio::signal::unix::{Signal, SignalKind, signal};
use tokio::task::{JoinHandle, spawn_blocking};
use tokio::time::{Instant, sleep_until};

use super::outside::{Outside, Reread};
use super::serving::{self, Note, Said};
use super::{Failure, Where, open};
use crate::catalog::reload::{Loader, Next, Pace, Within};
use crate::catalog::watch::{Reach, Watched, Watcher, any_changed};
use crate::config::{Config, Given};
use crate::model::{Digest, MountName};

/// What is known before the second wall stands, and is needed behind it.
pub(super) struct Live {
    /// The process that reads what this one cannot.
    pub(super) outside: Arc<Outside>,
    /// What this process can open.
    pub(super) within: Option<Within>,
    /// The configuration, whether it is there or not, and what it is read with.
    path: PathBuf,
    given: Given,
    /// Directories in which the configuration and the lock lie, also behind a link.
    places: Vec<PathBuf>,
    /// Where belljar itself listens.
    own: Vec<std::net::SocketAddr>,
    dev: bool,
    /// What is said of this process to whoever changes the configuration.
    pub(super) note: Option<Note>,
    /// How the configuration and the lock looked when they were read.
    looks: [(Look, PathBuf); 2],
}

/// How a file looks from outside: device, inode, size, and when it was changed.
pub(super) type Look = Option<(u64, u64, u64, i64, i64)>;

/// How the configuration looks, for [`Live::new`]: before it is read, so that no change is missed.
///
/// # Errors
/// When it cannot be said where it is.
pub(super) fn look_at_configuration(at: &Where) -> Result<Look, Failure> {
    Ok(look(&open::place(at)?.0))
}

fn look(path: &Path) -> Look {
    #[expect(clippy::disallowed_methods, reason = "the operator's own files, looked at and not opened")]
    let meta = std::fs::metadata(path).ok()?;
    Some((meta.dev(), meta.ino(), meta.size(), meta.ctime(), meta.ctime_nsec()))
}

impl Live {
    /// Notes where everything is. Called before the wall stands.
    ///
    /// # Errors
    /// When the configuration can no longer be read.
    pub(super) fn new(
        at: &Where,
        (config, seen): (&Config, Look),
        own: Vec<std::net::SocketAddr>,
        dev: bool,
        outside: Arc<Outside>,
    ) -> Result<Self, Failure> {
        let (path, given) = open::given(at)?;
        let mut places = Vec::new();
        for file in [&path, &config.lock] {
            #[expect(clippy::disallowed_methods, reason = "the operator's own files, behind links of the operator's")]
            let real = std::fs::canonicalize(file).ok();
            for file in real.iter().chain([file]) {
                places.extend(file.parent().map(Path::to_owned));
            }
        }
        places.sort_unstable();
        places.dedup();
        let looks = [(seen, path.clone()), (look(&config.lock), config.lock.clone())];
        let said = Said {
            configuration: path.clone(),
            text: serving::digest(given.file.as_ref().map(|(_, text)| text.as_str())),
            lock: config.pins.lock().map(|lock| serving::digest(Some(&lock.to_text()))),
            follows: config.watch.reload,
            ..Said::default()
        };
        let note = Note::begin(&config.state, said);
        Ok(Self { outside, within: None, path, given: Given { file: None, ..given }, places, own, dev, note, looks })
    }

    /// Loads what there is, and follows what changes, for as long as belljar serves.
    pub(super) async fn run(self, loader: Loader, watcher: Option<Watcher>) {
        let config = Arc::clone(loader.config());
        let watcher = watcher.filter(|_| config.watch.reload);
        let mut following = Following {
            plugins: watch(watcher.as_ref(), std::slice::from_ref(&config.plugins)).await,
            places: watch(watcher.as_ref(), &self.places).await,
            hangups: signal(SignalKind::hangup()).ok(),
            is_there: true,
            place: look(&config.plugins).map(|(device, inode, ..)| (device, inode)),
            start: config,
            loader,
            live: self,
            components: Pace::default(),
            texts: Pace::default(),
            reading: None,
            is_wanted: false,
            pinned: Vec::new(),
        };
        // What changed since it was read and before it was watched.
        following.texts.changed(Instant::now());
        following.scan().await;
        following.say(|_| {});
        loop {
            following.turn().await;
        }
    }
}

async fn watch(watcher: Option<&Watcher>, places: &[PathBuf]) -> Vec<Watched> {
    let Some(watcher) = watcher.cloned() else { return Vec::new() };
    let places = places.to_vec();
    let watched = spawn_blocking(move || {
        let one = |place: &PathBuf| watcher.watch(place, Reach::Flat).map_err(|why| tracing::warn!("{why}")).ok();
        places.iter().filter_map(one).collect()
    });
    watched.await.unwrap_or_default()
}

/// What of the operator's is being followed.
struct Following {
    live: Live,
    loader: Loader,
    /// What was configured at the start.
    start: Arc<Config>,
    plugins: Vec<Watched>,
    places: Vec<Watched>,
    hangups: Option<Signal>,
    components: Pace,
    texts: Pace,
    /// The operator's files are being read.
    reading: Option<JoinHandle<Result<Reread, String>>>,
    /// They are to be read once more.
    is_wanted: bool,
    /// For what the lock was asked for a pin.
    pinned: Vec<(MountName, Digest)>,
    /// The plugin directory, by device and inode, as it was opened; and whether it is there.
    place: Option<(u64, u64)>,
    is_there: bool,
}

/// What there is to do.
enum Event {
    Components,
    Texts,
    Due,
    Hangup,
    Read(Result<Reread, String>),
    Loaded(Next),
}

async fn hangup(signal: Option<&mut Signal>) {
    match signal {
        None => pending().await,
        // After the end of signals there are none.
        Some(signal) => {
            if signal.recv().await.is_none() {
                pending().await
            }
        }
    }
}

async fn read(reading: Option<&mut JoinHandle<Result<Reread, String>>>) -> Result<Reread, String> {
    match reading {
        None => pending().await,
        Some(reading) => reading.await.unwrap_or_else(|error| Err(error.to_string())),
    }
}

impl Following {
    async fn turn(&mut self) {
        let due = [self.components.due(), self.texts.due()].into_iter().flatten().min();
        let wait = async {
            match due {
                None => pending().await,
                Some(due) => sleep_until(due).await,
            }
        };
        let event = tokio::select! {
            () = any_changed(&self.plugins) => Event::Components,
            () = any_changed(&self.places) => Event::Texts,
            () = hangup(self.hangups.as_mut()) => Event::Hangup,
            result = read(self.reading.as_mut()) => Event::Read(result),
            next = self.loader.step() => Event::Loaded(next),
            () = wait => Event::Due,
        };
        let now = Instant::now();
        match event {
            Event::Components => self.components.changed(now),
            Event::Texts => self.texts.changed(now),
            Event::Loaded(Next::Step) => self.ask_for_pins(),
            Event::Loaded(Next::Scan) => self.scan().await,
            Event::Hangup => {
                tracing::info!("SIGHUP: the configuration and the components are read again");
                self.read_again();
                self.scan().await;
            }
            Event::Read(result) => self.take(result).await,
            Event::Due => {
                if self.texts.due().is_some_and(|due| due <= now) {
                    self.texts.begin();
                    // Other files lie there too: records, for one.
                    let mut is_changed = false;
                    for (old, path) in &mut self.live.looks {
                        let new = look(path);
                        is_changed |= *old != new;
                        *old = new;
                    }
                    if is_changed {
                        self.read_again();
                    }
                    self.texts.end(now, Instant::now());
                }
                if self.components.due().is_some_and(|due| due <= now) {
                    self.scan().await;
                }
            }
        }
    }

    /// Has the operator's files read, by the process outside.
    fn read_again(&mut self) {
        if self.reading.is_some() {
            self.is_wanted = true;
            return;
        }
        let (outside, dev) = (Arc::clone(&self.live.outside), self.live.dev);
        self.reading = Some(spawn_blocking(move || outside.read_again(dev)));
    }

    /// Takes over what the operator's files say, if it is right.
    async fn take(&mut self, result: Result<Reread, String>) {
        self.reading = None;
        if std::mem::take(&mut self.is_wanted) {
            self.read_again();
        }
        let text = result.as_ref().map(|reread| serving::digest(reread.text())).unwrap_or_default();
        let config = result.and_then(|reread| self.config(reread));
        match config {
            Err(why) => {
                tracing::error!("the configuration goes on as it was: {why}");
                self.live
                    .note
                    .iter_mut()
                    .for_each(|note| note.change(|said| said.refused = Some((text.clone(), why.clone()))));
            }
            Ok(config) => {
                let shut = needing_restart(&self.start, &config);
                if !shut.is_empty() {
                    tracing::warn!("what changed in {} takes a restart; until then it is as it was", shut.join(", "));
                }
                let lock = config.pins.lock().map(|lock| serving::digest(Some(&lock.to_text())));
                self.loader.set_config(Arc::new(config));
                self.scan().await;
                self.say(|said| (said.text, said.lock, said.refused) = (text, lock, None));
            }
        }
    }

    /// Says to whoever changes the configuration what is so now.
    fn say(&mut self, change: impl FnOnce(&mut Said)) {
        let Some(note) = &mut self.live.note else { return };
        let mounts = self.loader.refused().iter().map(|one| (one.name.clone(), one.reason.clone())).collect();
        note.change(|said| {
            change(said);
            said.mounts = mounts;
            said.is_walled = self.live.within.is_some();
        });
    }

    fn config(&self, reread: Reread) -> Result<Config, String> {
        let old = self.loader.config();
        if old.file.is_some() && reread.is_without_text() {
            return Err(format!(
                "\"{}\" is gone; put it back, or start belljar again without it",
                self.live.path.display()
            ));
        }
        let mut config = reread.into_config(&self.live.path, &self.live.given)?;
        config.ambient.network.clone_from(&old.ambient.network);
        if config.ambient.network.is_none() && self.live.within.is_none() && !config.ports().is_empty() {
            config.ambient.network = Some(Arc::new(open::network(&config, &self.live.own).map_err(Failure::why)?));
        }
        Ok(config)
    }

    /// Brings the catalog up to what the plugin directory holds, if that is there.
    async fn scan(&mut self) {
        self.components.begin();
        let began = Instant::now();
        if self.find_plugins() {
            self.loader.scan().await;
        }
        self.components.end(began, Instant::now());
        self.ask_for_pins();
    }

    /// Whether there is a plugin directory to look at. One that was made anew is opened.
    fn find_plugins(&mut self) -> bool {
        let path = &self.start.plugins;
        let Some((device, inode, ..)) = look(path) else {
            if std::mem::take(&mut self.is_there) {
                tracing::error!("the plugin directory \"{}\" is gone; what is loaded goes on", path.display());
            }
            return false;
        };
        if self.place == Some((device, inode)) {
            self.is_there = true;
            return true;
        }
        // A handle can be had of whatever is there; whether it can be read is seen by reading.
        let opened = Dir::open_ambient_dir(path, cap_std::ambient_authority()).and_then(|dir| {
            drop(dir.entries()?);
            Ok(dir)
        });
        match opened {
            Ok(dir) => {
                tracing::info!("the plugin directory \"{}\" is another one now", path.display());
                self.loader.set_dir(dir);
                self.place = Some((device, inode));
                self.is_there = true;
                true
            }
            Err(error) => {
                let cure = match self.live.within {
                    Some(_) => "; the second wall was raised around the one before: restart belljar",
                    None => "",
                };
                tracing::error!(
                    "the plugin directory \"{}\" was made anew, and cannot be opened ({error}){cure}; what is loaded goes on",
                    path.display()
                );
                false
            }
        }
    }

    /// A component with grants that appears for the first time is bound to them, as at the start.
    fn ask_for_pins(&mut self) {
        let lacking = self.loader.lacks_pin();
        if lacking.iter().any(|one| !self.pinned.contains(one)) {
            self.pinned = lacking;
            self.read_again();
        }
    }
}

/// The keys whose change is not taken over.
fn needing_restart(old: &Config, new: &Config) -> Vec<&'static str> {
    [
        ("plugins", old.plugins != new.plugins),
        ("cache", old.cache != new.cache),
        ("state", old.state != new.state),
        ("audit", old.audit != new.audit),
        ("wall", old.wall != new.wall),
        ("calls", old.calls != new.calls),
        ("total-memory", old.total_memory != new.total_memory),
        ("list-time", old.list_time != new.list_time),
        ("[network]", old.network != new.network),
        ("[watch]", old.watch != new.watch),
        ("tools", old.tools != new.tools),
        ("[callers]", old.callers != new.callers),
    ]
    .into_iter()
    .filter_map(|(key, is_changed)| is_changed.then_some(key))
    .collect()
}
