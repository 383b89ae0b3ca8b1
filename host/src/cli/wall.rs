//! The second wall: before the first thread is started and the first guest runs, this process gives up whatever it does
//! not need, so that a guest that broke out of the engine would find little more than its grants.
//!
//! What the kernel keeps from then on, for this process and all that it starts: no new privileges, no core dumps; by Landlock
//! no file but those named here, no TCP connection but to granted ports, no listening and no signal to any process outside; and by
//! a filter of system calls ([`filter`]) no change of modes, owners, times and attributes, no Unix socket, nothing of other
//! processes. Nothing takes that back; so whatever must be opened by name later has a line here.
//!
//! What is let through all the same: whether a path exists, and its size and times, can be seen; and datagrams can be sent to
//! any address, where any mount holds an HTTP grant (name servers are asked by them).
//!
//! The process stays "dumpable": otherwise it could not open its own `/proc/self/pagemap` (the engine would clear
//! memory blindly, at a multiple of the cost), and whoever runs it could not see its descriptors.

use std::fmt;
use std::fs::File;
use std::num::NonZero;
use std::os::unix::fs::OpenOptionsExt;
use std::path::{Path, PathBuf};
use std::time::Duration;

mod filter;

use landlock::{
    ABI, Access as _, AccessFs, AccessNet, BitFlags, LandlockStatus, NetPort, PathBeneath, RestrictionStatus, Ruleset,
    RulesetAttr as _, RulesetCreatedAttr as _, RulesetError, RulesetStatus, Scope,
};
use rustix::process::{Resource, Rlimit, setrlimit};
use tokio::runtime::Runtime;

use super::keys::Keys;
use super::{Failure, log, open, record_file};
use crate::catalog::reload::Within;
use crate::config::{Audit, Config, Wall};
use filter::Sockets;

/// What a kernel with an older ABI does not restrict, with the first ABI that does. Linux 6.12 has all of it.
const SINCE: [(i32, &str); 4] = [
    (3, "shortening files"),
    (4, "TCP connections and listening"),
    (5, "commands to devices"),
    (6, "signals and abstract Unix sockets"),
];

/// What is not restricted where the filter of system calls cannot be had.
const UNFILTERED: &str = "changes of modes, owners, times and attributes of files, and rare system calls";

/// What our own program is made of besides itself.
const LOADER_CACHE: &str = "/etc/ld.so.cache";

/// Where systems keep libraries: what lies beside ours may be read too, so that an update does not stop the compiler.
const LIBRARIES: [&str; 3] = ["/lib", "/lib64", "/usr"];

/// How much of the wall stands.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(super) enum Standing {
    /// All of it.
    Full { abi: i32 },
    /// The kernel's Landlock is older, or threads had been started by somebody else.
    Partial { abi: i32, missing: Vec<&'static str> },
    /// No Landlock.
    None(String),
    /// The operator wants none.
    Off,
}

impl Standing {
    /// One word.
    pub(super) fn word(&self) -> &'static str {
        match self {
            Self::Full { .. } => "full",
            Self::Partial { .. } => "partial",
            Self::None(_) => "none",
            Self::Off => "off",
        }
    }

    /// The kernel's Landlock ABI, where it is used.
    pub(super) fn abi(&self) -> Option<i32> {
        match self {
            Self::Full { abi } | Self::Partial { abi, .. } => Some(*abi),
            Self::None(_) | Self::Off => None,
        }
    }

    /// Whether files and ports that are not named are out of reach.
    fn shuts(&self) -> bool {
        matches!(self, Self::Full { .. } | Self::Partial { .. })
    }

    /// The same beside a filter of system calls, or without one.
    fn with_filter(self, filter: Result<(), String>) -> Self {
        let Err(why) = filter else { return self };
        tracing::warn!("second wall: system calls are not filtered ({why})");
        match self {
            Self::Full { abi } => Self::Partial { abi, missing: vec![UNFILTERED] },
            Self::Partial { abi, mut missing } => {
                missing.push(UNFILTERED);
                Self::Partial { abi, missing }
            }
            other => other,
        }
    }

    /// What is not restricted.
    pub(super) fn missing(&self) -> &[&'static str] {
        match self {
            Self::Partial { missing, .. } => missing,
            _ => &[],
        }
    }
}

impl fmt::Display for Standing {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Self::Full { abi } => write!(f, "full (Landlock ABI {abi}, system calls filtered)"),
            Self::Partial { abi, missing } => {
                write!(f, "partial (Landlock ABI {abi}), without: {}", missing.join(", "))
            }
            Self::None(why) => write!(f, "none: {why}"),
            Self::Off => write!(f, "off, by wall = \"off\" in the configuration"),
        }
    }
}

/// The wall, for as long as the process lives.
pub(super) struct Raised {
    pub(super) standing: Standing,
    /// What of the configuration can still be opened; everything, where there is no wall.
    pub(super) within: Option<Within>,
    /// How many threads serve: read before, because a container's limit lies in files that are out of reach now.
    threads: Option<NonZero<usize>>,
    /// Files of procfs stay the ones that the rules name for as long as a handle of them is open.
    _pinned: Vec<File>,
}

impl Raised {
    /// Makes the runtime that serves requests: inside, because a wall is inherited by threads started after it.
    pub(super) fn runtime(&self) -> Result<Runtime, Failure> {
        let mut runtime = tokio::runtime::Builder::new_multi_thread();
        if let Some(threads) = self.threads {
            runtime.worker_threads(threads.get());
        }
        // Threads for what blocks are few and seldom: they need not wait for more.
        runtime.thread_keep_alive(Duration::from_secs(1));
        runtime.enable_all().build().map_err(|error| Failure::Failed(format!("cannot start threads: {error}")))
    }
}

/// What can still be opened by name, each with what may be done there.
type Open = Vec<(PathBuf, BitFlags<AccessFs>)>;

/// Raises the wall around this thread and every one that it starts, so it is called before there is another. `output`: a
/// file that the operator wants written.
///
/// # Errors
/// When the configuration requires a wall and this system cannot give all of it.
pub(super) fn raise(config: &Config, keys: &Keys, output: Option<&Path>) -> Result<Raised, Failure> {
    let threads = std::thread::available_parallelism().ok();
    give_up();
    let (mut standing, mut pinned) = (Standing::Off, Vec::new());
    if config.wall != Wall::Off {
        let alone = is_alone();
        standing = match enforce(&openings(config, keys, output), &ports(config), &mut pinned) {
            Ok(status) => standing_of(&status, alone),
            Err(error) => Standing::None(format!("the kernel refuses it ({})", plain(&error))),
        };
        // What cannot be connected to needs no socket; without Landlock, grants of ports come while belljar serves.
        let has_ports = !ports(config).is_empty() || !standing.shuts();
        standing = standing.with_filter(filter::raise(if has_ports { Sockets::Internet } else { Sockets::None }));
        match &standing {
            Standing::Full { .. } => tracing::info!("second wall: {standing}"),
            _ => tracing::warn!("second wall: {standing}"),
        }
    }
    if config.wall == Wall::Require && !matches!(standing, Standing::Full { .. }) {
        return Err(Failure::Failed(format!(
            "the configuration says wall = \"require\", and the second wall is {standing}; run a kernel with Landlock enabled (Linux 6.12 or newer), or set wall = \"best-effort\""
        )));
    }
    // The kernel has no rule for what was not there; that is not among them.
    let within = standing.shuts().then(|| Within { directories: granted(config), ports: ports(config) });
    log::flow();
    Ok(Raised { standing, within, threads, _pinned: pinned })
}

/// The wall of a command that needs no file but its own program.
pub(super) fn raise_bare() -> Raised {
    let threads = std::thread::available_parallelism().ok();
    give_up();
    let mut pinned = Vec::new();
    let standing = match enforce(&program(), &[], &mut pinned) {
        Ok(status) => standing_of(&status, is_alone()),
        Err(error) => Standing::None(plain(&error)),
    };
    let standing = standing.with_filter(filter::raise(Sockets::None));
    log::flow();
    Raised { standing, within: None, threads, _pinned: pinned }
}

/// Gives up core dumps and new privileges. Neither takes anything from belljar, and a wish to be without Landlock is none
/// to be without these.
fn give_up() {
    let none = Rlimit { current: Some(0), maximum: Some(0) };
    if let Err(error) = setrlimit(Resource::Core, none).and_then(|()| rustix::thread::set_no_new_privs(true)) {
        tracing::warn!("cannot give up core dumps and privileges: {error}");
    }
}

/// The same, and being looked into: by a debugger, by a core dump, through procfs.
pub(super) fn give_up_privately() {
    give_up();
    if let Err(error) = rustix::process::set_dumpable_behavior(rustix::process::DumpableBehavior::NotDumpable) {
        tracing::warn!("this process can be looked into by others of the same user: {error}");
    }
}

/// The compiler process's own wall: it has what it needs, and opens nothing more.
pub(super) fn raise_without_files() {
    // What the kernel cannot do here, the wall that was inherited does as far as it can, and that has been reported.
    let _ = enforce(&Vec::new(), &[], &mut Vec::new());
    let _ = filter::raise_strict();
}

/// The wall of the process that stays outside: it reads the operator's files in `read`, writes in `write`, starts nothing and
/// connects to nothing. Its memory, which has held secrets, is out of reach for other processes of the same user.
pub(super) fn raise_outside(read: &[PathBuf], write: &[PathBuf]) {
    give_up_privately();
    let reads = AccessFs::ReadFile | AccessFs::ReadDir;
    let writes = reads | AccessFs::WriteFile | AccessFs::Truncate | AccessFs::MakeReg | AccessFs::RemoveFile;
    let mut open: Open = read.iter().map(|path| (path.clone(), reads)).collect();
    open.extend(write.iter().map(|path| (path.clone(), writes)));
    // The kernel's and the system's limits of this wall are told of where the other is raised.
    let _ = enforce(&open, &[], &mut Vec::new());
    let _ = filter::raise_outside();
}

/// Whether this is the only thread: others that are there already stay outside.
fn is_alone() -> bool {
    #[expect(clippy::disallowed_methods, reason = "the kernel's own list of our threads")]
    let tasks = std::fs::read_dir("/proc/self/task");
    tasks.is_ok_and(|tasks| tasks.count() == 1)
}

fn standing_of(status: &RestrictionStatus, alone: bool) -> Standing {
    if status.ruleset == RulesetStatus::NotEnforced && matches!(status.landlock, LandlockStatus::Available { .. }) {
        return Standing::None("the kernel enforces nothing of it".to_owned());
    }
    standing_on(&status.landlock, alone)
}

fn standing_on(landlock: &LandlockStatus, alone: bool) -> Standing {
    let abi = match landlock {
        LandlockStatus::NotEnabled => {
            return Standing::None(
                "Landlock is not enabled in this kernel; add \"landlock\" to its lsm= parameter".to_owned(),
            );
        }
        LandlockStatus::NotImplemented => {
            return Standing::None("this kernel has no Landlock, or a container hides it".to_owned());
        }
        LandlockStatus::Available { effective_abi, kernel_abi } => kernel_abi.unwrap_or(*effective_abi as i32),
    };
    let mut missing: Vec<_> = SINCE.iter().filter(|(since, _)| *since > abi).map(|(_, what)| *what).collect();
    if !alone {
        missing.push("threads that ran before it (of a preloaded library?)");
    }
    if missing.is_empty() { Standing::Full { abi } } else { Standing::Partial { abi, missing } }
}

/// The innermost reason.
fn plain(error: &RulesetError) -> String {
    let mut inner: &dyn std::error::Error = error;
    while let Some(source) = inner.source() {
        inner = source;
    }
    inner.to_string()
}

/// Every TCP port that is connected to: those of the HTTP grants, and of the name servers for them.
fn ports(config: &Config) -> Vec<u16> {
    let servers = config.ambient.network.iter().flat_map(|network| network.dns_ports());
    config.ports().into_iter().chain(servers).collect()
}

/// Every directory that mounts are granted.
fn granted(config: &Config) -> Vec<PathBuf> {
    config.mounts.values().flat_map(|mount| mount.grants.directories(&config.ambient)).collect()
}

/// Everything that is opened by name once the wall stands.
fn openings(config: &Config, keys: &Keys, output: Option<&Path>) -> Open {
    let read = AccessFs::ReadFile | AccessFs::ReadDir;
    let own = read | AccessFs::WriteFile | AccessFs::Truncate | AccessFs::MakeReg | AccessFs::RemoveFile;
    let mut open: Open = vec![(config.plugins.clone(), read)];
    open.extend(granted(config).into_iter().map(|granted| (granted, read)));
    // What is wrong with them is said where they are opened. What all configurations share is read, or made where nothing
    // runs; the installation's secret is out of reach.
    let shared = if keys.may_share() { own } else { read };
    for (dir, access) in [(config.cache.clone(), shared), (keys.own_code(config), own)] {
        if open::private_dir(&dir).is_ok() {
            open.push((dir, access));
        }
    }
    if matches!(config.audit, Audit::State) && open::private_dir(&config.state).is_ok() {
        let folder = record_file::folder(&config.state);
        if open::private_dir(&folder).is_ok() {
            open.push((folder, own));
        }
    }
    if let Audit::File(path) = &config.audit {
        // So that there is one to name.
        let _ = open::audit_file(path);
        open.push((path.clone(), AccessFs::WriteFile.into()));
    }
    if let Some(path) = output {
        // A file that is not there yet can only be allowed by its directory.
        match path.parent() {
            _ if path.exists() => open.push((path.to_owned(), AccessFs::WriteFile | AccessFs::Truncate)),
            Some(parent) if parent.as_os_str().is_empty() => {
                open.push((".".into(), AccessFs::WriteFile | AccessFs::MakeReg))
            }
            Some(parent) => open.push((parent.to_owned(), AccessFs::WriteFile | AccessFs::MakeReg)),
            None => {}
        }
    }
    open.extend(program());
    open
}

/// What our own program needs: for the engine, which asks which pages were written; for grants, which ask what is mounted
/// below them; for the compiler process, what it is loaded from.
fn program() -> Open {
    let run = AccessFs::ReadFile | AccessFs::Execute;
    let mut all: Open = vec![("/proc/self/exe".into(), run)];
    for own in ["/proc/self/pagemap", "/proc/self/mountinfo", LOADER_CACHE] {
        all.push((own.into(), AccessFs::ReadFile.into()));
    }
    #[expect(clippy::disallowed_methods, reason = "the kernel's own list of what our program is made of")]
    let maps = std::fs::read_to_string("/proc/self/maps").unwrap_or_default();
    // proc_pid_maps(5): address, rights, offset, device, inode, path.
    let code = maps.lines().filter(|line| line.split_whitespace().nth(1).is_some_and(|rights| rights.contains('x')));
    for path in code.filter_map(|line| line.find('/').and_then(|at| line.get(at..))).map(Path::new) {
        let library = path.file_name().is_some_and(|name| name.to_string_lossy().contains(".so"));
        let system = library && LIBRARIES.iter().any(|dir| path.starts_with(dir));
        // "/usr" itself is no directory of libraries.
        let beside = path.parent().filter(|parent| system && *parent != Path::new("/usr"));
        let path = beside.unwrap_or(path);
        if !all.iter().any(|(known, _)| known == path) {
            all.push((path.to_owned(), run));
        }
    }
    all
}

/// Restricts this thread to `open`, and its connections to `ports`. What is not there is not opened, and does no harm.
fn enforce(open: &Open, ports: &[u16], pinned: &mut Vec<File>) -> Result<RestrictionStatus, RulesetError> {
    let mut rules = Ruleset::default()
        // All that the newest kernels know; older ones restrict what they can.
        .handle_access(AccessFs::from_all(ABI::V9))?
        .handle_access(AccessNet::from_all(ABI::V9))?
        .scope(Scope::from_all(ABI::V9))?
        .create()?;
    for (path, access) in open {
        let mut options = std::fs::OpenOptions::new();
        options.read(true).custom_flags(i32::from_ne_bytes(rustix::fs::OFlags::PATH.bits().to_ne_bytes()));
        #[expect(clippy::disallowed_methods, reason = "a name for the kernel's rule; nothing is read")]
        let Ok(file) = options.open(path) else { continue };
        // One file system that Landlock does not know costs what lies on it, not the wall.
        if let Err(error) = (&mut rules).add_rule(PathBeneath::new(&file, *access)) {
            tracing::warn!(
                "\"{}\" is out of reach: the second wall cannot let it through ({})",
                path.display(),
                plain(&error)
            );
        }
        if path.starts_with("/proc") {
            pinned.push(file);
        }
    }
    for port in ports {
        (&mut rules).add_rule(NetPort::new(*port, AccessNet::ConnectTcp))?;
    }
    rules.restrict_self()
}

#[cfg(test)]
mod tests;
