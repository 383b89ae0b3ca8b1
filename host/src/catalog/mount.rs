//! From a directory of files and a configuration to mounts: who is who, and why a file is not served.

use std::collections::{BTreeMap, HashMap, HashSet};
use std::io;
use std::path::PathBuf;
use std::sync::Arc;
use std::sync::atomic::AtomicU64;
use std::time::Duration;

use cap_std::fs::{Dir, MetadataExt, OpenOptions, OpenOptionsExt};
use futures_util::StreamExt;
use futures_util::stream::FuturesUnordered;
use tokio::time::Instant;

use super::kept::Slot;
use super::watch::{Reach, Watched, Watcher};
use super::{Catalog, Quarantined, Snapshot, quarantine};
use crate::admission::Gate;
use crate::config::{Ask, Cache, Config};
use crate::grants::Requested;
use crate::model::error::show_bytes;
use crate::model::{Digest, Guard, Limits, MountName, Resource, Template, text};
use crate::sandbox::{MountId, Profile, Sandbox, read_capped};

/// Components that are loaded at once. Compiling takes a core each.
const LOADING: usize = 2;

/// How often the snapshot is renewed while components are loaded.
const RENEW: Duration = Duration::from_millis(100);

/// A mount that is served.
pub struct Mount {
    /// Its name.
    pub name: MountName,
    /// The URI prefix of everything in it.
    pub base: String,
    /// The component's file name.
    pub file: String,
    /// The component's digest.
    pub digest: Digest,
    /// Which mount it is in the sandbox.
    pub id: MountId,
    /// Its turnstile and limits.
    pub gate: Gate,
    /// Whether a person may be asked for what it does not hold.
    pub ask: Ask,
    /// Whether its answers may be served again.
    pub cache: Cache,
    /// Whether a search looks into its contents.
    pub search: bool,
    /// The kinds of grants that it holds.
    pub holds: Vec<&'static str>,
    /// The kinds of grants that its component could use.
    pub uses: Vec<&'static str>,
    /// Whether its component suggests values for variables of templates.
    pub completes: bool,
    /// Whether its component tells revisions.
    pub revises: bool,
    /// Something the operator should know about its file.
    pub warning: Option<&'static str>,
    /// The host directories that it was granted, unless a look at them may stall.
    pub directories: Vec<PathBuf>,
    /// How often it was seen that what it serves changed in ways that nobody knows in detail: answers from before count no
    /// more.
    pub changes: AtomicU64,
    /// What it listed, as long as that stands: resources, and templates.
    pub lists: (Slot<Resource>, Slot<Template>),
}

impl Mount {
    /// A mount that holds nothing and whose component is nowhere: what a test or a bench starts from.
    pub fn plain(name: MountName, base: &str, limits: Limits) -> Self {
        Self {
            gate: Gate::new(name.clone(), limits),
            name,
            base: base.to_owned(),
            file: "x.wasm".to_owned(),
            digest: Digest::of(b""),
            id: MountId::none(),
            ask: Ask::Never,
            cache: Cache::default(),
            search: false,
            holds: Vec::new(),
            uses: Vec::new(),
            completes: false,
            revises: false,
            warning: None,
            directories: Vec::new(),
            changes: AtomicU64::new(0),
            lists: <_>::default(),
        }
    }

    /// Whether it was granted directories in which changes can be watched.
    pub fn has_directories(&self) -> bool {
        !self.directories.is_empty()
    }

    /// Watches the directories that it was granted. Blocks for as long as the file system takes.
    ///
    /// # Errors
    /// When one of them cannot be watched.
    pub fn watch(&self, watcher: &Watcher) -> Result<Vec<Watched>, String> {
        self.directories.iter().map(|dir| watcher.watch(dir, Reach::Deep)).collect()
    }
}

/// Whether files of this user are as good as one's own.
pub fn is_trusted(user: u32) -> bool {
    user == 0 || user == rustix::process::geteuid().as_raw()
}

/// Something in the plugin directory or the configuration that is not served.
#[derive(Clone, Debug, PartialEq, Eq, PartialOrd, Ord)]
pub struct Refused {
    /// The mount's name, or the file's where it has none; sanitised.
    pub name: String,
    /// Why, and the cure; sanitised.
    pub reason: String,
}

/// A mount to be: everything that is known before its file is read.
struct Plan<'c> {
    name: MountName,
    file: String,
    base: String,
    grants: Option<&'c Requested>,
    ask: Ask,
    cache: Cache,
    search: bool,
    /// Whether only the bytes may be loaded that its grants were given to.
    needs_pin: bool,
    limits: Limits,
}

/// A component file that was read.
pub struct Source {
    /// The bytes.
    pub bytes: Arc<[u8]>,
    /// Their digest.
    pub digest: Digest,
    /// Something the operator should know about the file.
    pub warning: Option<&'static str>,
}

impl Source {
    /// Reads a file of `dir`: a regular one, at most `cap` bytes, not through a link. What is hashed is what is used.
    ///
    /// # Errors
    /// Says why, and the cure.
    pub fn read(dir: &Dir, file: &str, cap: u64) -> Result<Self, String> {
        let fail = |error: &io::Error| match error.kind() {
            io::ErrorKind::NotFound => format!("there is no \"{}\" in the plugin directory", text::excerpt(file, 100)),
            io::ErrorKind::PermissionDenied => "belljar may not read it; change its permissions".to_owned(),
            _ => format!("it cannot be read: {error}"),
        };
        let special =
            "it is not a regular file (a link, a FIFO, a device or a directory); put a copy of the component there";
        // Looked at before it is opened, so that no FIFO or device is touched; O_NONBLOCK and the second look are for one
        // that takes its place meanwhile.
        if !dir.symlink_metadata(file).map_err(|error| fail(&error))?.is_file() && Guard::Regular.is_on() {
            return Err(special.to_owned());
        }
        let flags = match Guard::Regular.is_on() {
            true => rustix::fs::OFlags::NONBLOCK | rustix::fs::OFlags::NOFOLLOW,
            false => rustix::fs::OFlags::empty(),
        };
        #[expect(clippy::cast_possible_wrap, reason = "open flags are small")]
        let flags = flags.bits() as i32;
        let opened =
            dir.open_with(file, OpenOptions::new().read(true).custom_flags(flags)).map_err(|error| fail(&error))?;
        let meta = opened.metadata().map_err(|error| fail(&error))?;
        if !meta.is_file() && Guard::Regular.is_on() {
            return Err(special.to_owned());
        }
        let cap = if Guard::Component.is_on() { cap } else { u64::MAX };
        if meta.len() > cap {
            return Err(format!(
                "it has {}, over the limit of {}; to allow more, set component = \"{}MiB\" under [limits]",
                show_bytes(meta.len()),
                show_bytes(cap),
                meta.len().div_ceil(1 << 20)
            ));
        }
        let bytes = read_capped(opened, cap).map_err(|error| fail(&error))?;
        let warning = if meta.mode() & 0o002 != 0 {
            Some("anyone on this machine can change the file; take away its write permission for others")
        } else if !is_trusted(meta.uid()) {
            Some("the file belongs to another user, who can change it; put a copy of your own there")
        } else {
            None
        };
        Ok(Self { digest: Digest::of(&bytes), bytes: bytes.into(), warning })
    }
}

/// Reads a file of `dir` that must be a provider.
fn look(dir: &Dir, file: &str, cap: u64) -> Result<(Source, Profile), String> {
    let source = Source::read(dir, file, cap)?;
    let profile = Profile::read(&source.bytes).map_err(|why| format!("it is {why}"))?;
    profile.check().map_err(|why| format!("it is {why}"))?;
    Ok((source, profile))
}

/// The component of a mount, read but not loaded.
pub struct Found {
    /// The mount.
    pub name: MountName,
    /// The component's file name.
    pub file: String,
    /// Its digest, and what it exports and imports; or why it is no provider.
    pub component: Result<(Digest, Profile), String>,
}

/// Reads the components of the mounts that `is_wanted` names, whether they are in the configuration or only in `dir`.
///
/// # Errors
/// When the directory cannot be read.
pub fn find(config: &Config, dir: &Dir, is_wanted: impl Fn(&MountName) -> bool) -> io::Result<Vec<Found>> {
    let (plans, _) = plan(files(dir, &mut Vec::new())?, config);
    let wanted = plans.into_iter().filter(|plan| is_wanted(&plan.name));
    let found = wanted.map(|plan| {
        let component = look(dir, &plan.file, plan.limits.component);
        let component = component.map(|(source, profile)| (source.digest, profile));
        Found { name: plan.name, file: plan.file, component }
    });
    Ok(found.collect())
}

/// Decides names and bases of everything in `files` and `config`, in an order that does not depend on the directory's.
fn plan<'c>(mut files: Vec<String>, config: &'c Config) -> (Vec<Plan<'c>>, Vec<Refused>) {
    files.sort_unstable();
    let present: HashSet<&str> = files.iter().map(String::as_str).collect();
    let mut refused = Vec::new();
    let mut plans: BTreeMap<MountName, Plan<'c>> = BTreeMap::new();
    let base = |name: &MountName| format!("belljar://{name}/");
    for (name, mount) in &config.mounts {
        // A mount without a file of its own takes the file whose stem makes its name.
        let own = files.iter().find(|file| {
            file.strip_suffix(".wasm").and_then(|stem| MountName::from_stem(stem).ok()).as_ref() == Some(name)
        });
        let file = mount.component.clone().or_else(|| own.cloned()).unwrap_or_else(|| format!("{name}.wasm"));
        if !present.contains(file.as_str()) {
            refused.push(Refused {
                name: name.to_string(),
                reason: format!("there is no \"{}\" in the plugin directory; put it there, or name another with component = \"FILE.wasm\" under [mounts.{name}]", text::excerpt(&file, 100)),
            });
            continue;
        }
        plans.insert(
            name.clone(),
            Plan {
                name: name.clone(),
                file,
                base: mount.uri.clone().unwrap_or_else(|| base(name)),
                grants: Some(&mount.grants),
                ask: mount.ask,
                cache: mount.cache,
                search: mount.search,
                needs_pin: mount.needs_pin(),
                limits: mount.limits.clone(),
            },
        );
    }
    // A file that some mount names is not mounted a second time under its own name.
    let named: HashSet<String> = plans.values().map(|plan| plan.file.clone()).collect();
    for file in &files {
        if named.contains(file) {
            continue;
        }
        let stem = file.strip_suffix(".wasm").unwrap_or(file);
        match MountName::from_stem(stem) {
            Ok(name) => {
                if let Some(other) = plans.get(&name).filter(|_| Guard::Taken.is_on()) {
                    refused.push(Refused {
                        name: text::excerpt(file, 100),
                        reason: format!(
                            "its name \"{name}\" is taken by \"{}\"; rename one of the files",
                            text::excerpt(&other.file, 100)
                        ),
                    });
                } else {
                    plans.insert(
                        name.clone(),
                        Plan {
                            base: base(&name),
                            name,
                            file: file.clone(),
                            grants: None,
                            ask: Ask::Never,
                            cache: Cache::default(),
                            search: false,
                            needs_pin: false,
                            limits: config.limits.clone(),
                        },
                    );
                }
            }
            Err(reason) => refused.push(Refused { name: text::excerpt(file, 100), reason }),
        }
    }
    let mut bases: HashMap<String, MountName> = HashMap::new();
    let plans = plans
        .into_values()
        .filter(|plan| match bases.get(&plan.base) {
            None => {
                bases.insert(plan.base.clone(), plan.name.clone());
                true
            }
            Some(_) if !Guard::Taken.is_on() => true,
            Some(first) => {
                refused.push(Refused {
                    name: plan.name.to_string(),
                    reason: format!(
                        "its base \"{}\" is taken by mount \"{first}\"; give one of them another uri",
                        plan.base
                    ),
                });
                false
            }
        })
        .collect();
    (plans, refused)
}

/// The `.wasm` files of a directory. Hidden ones and other names are passed over: temporary files of editors and copies.
fn files(dir: &Dir, refused: &mut Vec<Refused>) -> io::Result<Vec<String>> {
    let mut files = Vec::new();
    for entry in dir.entries()? {
        match entry?.file_name().into_string() {
            Ok(name) if name.ends_with(".wasm") && !name.starts_with('.') => files.push(name),
            Ok(_) => {}
            Err(name) => {
                let name = text::excerpt(&name.to_string_lossy(), 100);
                if name.ends_with(".wasm") {
                    refused.push(Refused { name, reason: "its name is not UTF-8; rename it".to_owned() });
                }
            }
        }
    }
    Ok(files)
}

/// Loads everything that is in `dir` into `catalog`, publishing as it goes, and settles it.
///
/// # Errors
/// When the directory cannot be read; one bad file is not an error but a [`Refused`].
pub async fn load(config: &Config, dir: &Dir, sandbox: &Sandbox, catalog: &Catalog) -> io::Result<()> {
    let mut unnamed = Vec::new();
    let files = files(dir, &mut unnamed)?;
    let (plans, mut refused) = plan(files, config);
    refused.append(&mut unnamed);
    for Refused { name, reason } in &refused {
        tracing::warn!("\"{name}\" is not served: {reason}");
    }
    // First what is compiled already, so that no number of others holds it up.
    let (mounts, quarantined) = (Vec::new(), Vec::new());
    let mut load =
        Load { config, dir, sandbox, catalog, mounts, refused, quarantined, renewed: Instant::now(), published: 0 };
    let rest = load.all(plans, true).await;
    load.all(rest, false).await;
    load.publish();
    catalog.settle();
    sandbox.tidy();
    Ok(())
}

/// Mounts on their way into the catalog.
struct Load<'a> {
    config: &'a Config,
    dir: &'a Dir,
    sandbox: &'a Sandbox,
    catalog: &'a Catalog,
    mounts: Vec<Arc<Mount>>,
    refused: Vec<Refused>,
    quarantined: Vec<Quarantined>,
    renewed: Instant,
    /// How many of these the catalog knows.
    published: usize,
}

impl Load<'_> {
    /// Loads these, and publishes as it goes. `compiled`: only what needs no compiling; the others are given back.
    async fn all<'c>(&mut self, plans: Vec<Plan<'c>>, compiled: bool) -> Vec<Plan<'c>> {
        let mut rest = Vec::new();
        let mut waiting = plans.into_iter();
        let mut loading = FuturesUnordered::new();
        loop {
            while loading.len() < LOADING
                && let Some(plan) = waiting.next()
            {
                loading.push(load_one(plan, self.config, self.dir, self.sandbox, compiled));
            }
            // What is loaded is published soon, also when the next one takes long.
            let due = async {
                match self.published == self.known() {
                    true => std::future::pending().await,
                    false => tokio::time::sleep_until(self.renewed + RENEW).await,
                }
            };
            let next = tokio::select! {
                biased;
                next = loading.next() => next,
                () = due => {
                    self.publish();
                    continue;
                }
            };
            let Some((plan, loaded)) = next else { break };
            match loaded {
                Ok(Some(mount)) => self.mounts.push(Arc::new(mount)),
                Ok(None) => rest.push(plan),
                Err(Reason::Quarantined(one)) => {
                    tracing::error!(mount = %one.name, "in quarantine: {}", one.reason());
                    self.quarantined.push(*one);
                }
                Err(Reason::Refused(reason)) => {
                    let file = text::excerpt(&plan.file, 100);
                    tracing::warn!(mount = %plan.name, "\"{file}\" is not served: {reason}");
                    self.refused.push(Refused { name: plan.name.to_string(), reason });
                }
            }
            if self.renewed.elapsed() >= RENEW {
                self.publish();
            }
        }
        rest
    }

    fn known(&self) -> usize {
        self.mounts.len() + self.refused.len() + self.quarantined.len()
    }

    fn publish(&mut self) {
        let snapshot = Snapshot::new(self.mounts.clone(), self.refused.clone());
        self.catalog.publish(snapshot.with_quarantined(self.quarantined.clone()));
        self.published = self.known();
        self.renewed = Instant::now();
    }
}

/// Why a mount is not served.
pub(super) enum Reason {
    /// Says why, and the cure.
    Refused(String),
    /// Its bytes may not use its grants.
    Quarantined(Box<Quarantined>),
}

impl From<String> for Reason {
    fn from(reason: String) -> Self {
        Self::Refused(reason)
    }
}

async fn load_one<'c>(
    plan: Plan<'c>,
    config: &Config,
    dir: &Dir,
    sandbox: &Sandbox,
    compiled: bool,
) -> (Plan<'c>, Result<Option<Mount>, Reason>) {
    // One file after the other is read and hashed; in between, others are served.
    tokio::task::yield_now().await;
    let loaded = try_load(&plan, config, dir, sandbox, compiled).await;
    (plan, loaded)
}

async fn try_load(
    plan: &Plan<'_>,
    config: &Config,
    dir: &Dir,
    sandbox: &Sandbox,
    compiled: bool,
) -> Result<Option<Mount>, Reason> {
    let (source, profile) = look(dir, &plan.file, plan.limits.component)?;
    // The bytes that are judged are those that are loaded: the file is not read again.
    if plan.needs_pin {
        quarantine::judge(&plan.name, &plan.base, &plan.file, &source.digest, &config.pins)?;
    }
    if compiled && !sandbox.knows(&source.digest) {
        return Ok(None);
    }
    if let Some(warning) = source.warning {
        tracing::warn!(mount = %plan.name, "{warning}");
    }
    let nothing = Requested::default();
    let held = plan.grants.unwrap_or(&nothing).configure(&config.ambient)?;
    let holds = held.kinds();
    let uses = profile.kinds();
    for useless in holds.iter().filter(|kind| !uses.contains(kind)) {
        tracing::warn!(mount = %plan.name, "holds a grant that its component cannot use: {useless}");
    }
    let all = plan.grants.map(|grants| grants.directories(&config.ambient)).unwrap_or_default();
    let directories = if held.may_stall() { Vec::new() } else { all };
    let id = sandbox.load(&plan.name, Arc::clone(&source.bytes), &source.digest, held).await?;
    Ok(Some(Mount {
        name: plan.name.clone(),
        base: plan.base.clone(),
        file: plan.file.clone(),
        digest: source.digest,
        id,
        gate: Gate::new(plan.name.clone(), plan.limits.clone()),
        ask: plan.ask,
        cache: plan.cache,
        search: plan.search,
        holds,
        uses,
        completes: profile.optional().contains(&"completion"),
        revises: profile.optional().contains(&"revisions"),
        warning: source.warning,
        directories,
        changes: AtomicU64::new(0),
        lists: <_>::default(),
    }))
}

#[cfg(test)]
pub(crate) mod tests;
