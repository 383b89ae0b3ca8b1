//! The second wall. Before the first thread starts and the first guest runs, this process drops every privilege that it
//! does not need. A guest that breaks out of the engine then finds little more than its grants.
//!
//! The kernel enforces the wall from then on, for this process and all processes that it starts:
//!
//! - no new privileges and no core dumps;
//! - by Landlock: only the files listed here, TCP connections only to granted ports, no listening, no signals to other
//!   processes;
//! - by a filter of system calls ([`filter`]): no change of modes, owners, times and attributes, no Unix sockets, and
//!   no access to other processes.
//!
//! The wall cannot be lowered. So every path that must be opened by name later is listed in this file.
//!
//! The wall has two gaps. The existence, size and times of every path are visible. If any mount holds an HTTP grant,
//! datagrams can be sent to any address, because DNS uses them.
//!
//! The process stays "dumpable". Otherwise it could not open its own `/proc/self/pagemap`: the engine would have to
//! clear all memory, at a multiple of the cost. Also, its user could not see its descriptors.

use std::fmt;
use std::fs::File;
use std::io;
use std::path::{Path, PathBuf};
use std::time::Duration;

mod filter;

use landlock::{
    ABI, Access as _, AccessFs, AccessNet, BitFlags, LandlockStatus, NetPort, PathBeneath, RestrictionStatus, Ruleset,
    RulesetAttr as _, RulesetCreatedAttr as _, RulesetError, RulesetStatus, Scope,
};
use rustix::io::Errno;
use rustix::process::{Resource, Rlimit, setrlimit};
use rustix::thread::{CapabilitySet, capabilities, set_capabilities};
use tokio::runtime::Runtime;

use super::keys::Keys;
use super::{directories, huge_pages, log, record, record_file, shipped};
use crate::catalog::loader::LandlockScope;
use crate::config::{Audit, Config, Wall};
use crate::grants::system::drop_capabilities;
use crate::limits::processors;
use filter::{FilterError, Sockets};

/// Restrictions that older kernels lack, each with the first Landlock ABI that has it. Linux 6.12 has all of them.
const SINCE: [(i32, &str); 4] = [
    (3, "shortening files"),
    (4, "TCP connections and listening"),
    (5, "commands to devices"),
    (6, "signals and abstract Unix sockets"),
];

/// The actions that are not restricted without the filter of system calls.
const UNFILTERED: &str = "changes of modes, owners, times and attributes of files, and rare system calls";

/// The cache of the dynamic loader, which the compiler process needs at its start.
const LOADER_CACHE: &str = "/etc/ld.so.cache";

/// System directories of libraries. For a library there, its whole directory is allowed, so that the compiler process
/// still starts after an update of the library.
const LIBRARIES: [&str; 3] = ["/lib", "/lib64", "/usr"];

/// How much of the wall is enforced.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(crate) enum WallStatus {
    /// The complete wall.
    Full { abi: i32 },
    /// The kernel's Landlock is older, the filter of system calls is missing, or other threads were already running.
    Partial { abi: i32, missing: Vec<&'static str> },
    /// No Landlock. Holds the reason.
    None(String),
    /// The configuration has `wall = "off"`.
    Off,
}

impl WallStatus {
    /// The status as one word, for JSON.
    pub(crate) fn word(&self) -> &'static str {
        match self {
            Self::Full { .. } => "full",
            Self::Partial { .. } => "partial",
            Self::None(_) => "none",
            Self::Off => "off",
        }
    }

    /// The kernel's Landlock ABI, if it is used.
    pub(crate) fn abi(&self) -> Option<i32> {
        match self {
            Self::Full { abi } | Self::Partial { abi, .. } => Some(*abi),
            Self::None(_) | Self::Off => None,
        }
    }

    /// True if the process can reach only the listed files and ports.
    pub(super) fn is_enforced(&self) -> bool {
        matches!(self, Self::Full { .. } | Self::Partial { .. })
    }

    /// The status after an attempt to raise the filter of system calls.
    fn with_filter(self, filter: Result<(), FilterError>) -> Self {
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

    /// The actions that are not restricted.
    pub(crate) fn missing(&self) -> &[&'static str] {
        match self {
            Self::Partial { missing, .. } => missing,
            _ => &[],
        }
    }
}

impl fmt::Display for WallStatus {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Self::Full { abi } => write!(f, "full (Landlock ABI {abi}, system calls filtered)"),
            Self::Partial { abi, missing } => {
                write!(f, "partial (Landlock ABI {abi}), without: {}", missing.join(", "))
            }
            Self::None(why) => write!(f, "none: {why}"),
            Self::Off => write!(f, "off, because of wall = \"off\" in the configuration"),
        }
    }
}

/// Why the process cannot run behind the wall.
#[derive(Debug, thiserror::Error)]
pub(crate) enum WallError {
    /// The configuration requires the complete wall, and this system cannot provide it.
    #[error(
        "the configuration has wall = \"require\", but the second wall is {0}; run a kernel with Landlock enabled (Linux 6.12 or newer), or set wall = \"best-effort\""
    )]
    Incomplete(WallStatus),
    /// The threads of the runtime cannot be started.
    #[error("cannot start threads: {0}")]
    Threads(io::Error),
}

/// The raised wall. It lasts as long as the process.
pub(crate) struct RaisedWall {
    pub(crate) status: WallStatus,
    /// The configured directories and ports that the wall allows; `None` if there is no wall.
    pub(crate) scope: Option<LandlockScope>,
    /// Open handles of procfs files. A Landlock rule names an inode, and procfs keeps the inode only while a handle is
    /// open.
    _pinned: Vec<File>,
}

impl RaisedWall {
    /// Creates the runtime that serves requests, with a thread for each processor. They inherit the wall, because they start
    /// after it was raised.
    pub(crate) fn runtime(&self) -> Result<Runtime, WallError> {
        self.runtime_of(processors())
    }

    /// The same, with so many threads.
    pub(crate) fn runtime_of(&self, threads: usize) -> Result<Runtime, WallError> {
        let mut runtime = tokio::runtime::Builder::new_multi_thread();
        runtime.worker_threads(threads);
        // Blocking tasks are rare, so their threads end soon.
        runtime.thread_keep_alive(Duration::from_secs(1));
        runtime.enable_all().build().map_err(WallError::Threads)
    }
}

/// The paths that can be opened by name behind the wall, each with the allowed access.
type AllowedPaths = Vec<(PathBuf, BitFlags<AccessFs>)>;

/// Raises the wall around this thread and all threads that it starts. It must be the only thread. `output`: a file that
/// the command line names for output.
///
/// # Errors
/// If the configuration requires the complete wall and this system cannot provide it.
pub(crate) fn raise(config: &Config, keys: &Keys, output: Option<&Path>) -> Result<RaisedWall, WallError> {
    // Counted now, because the wall hides the limit of a container.
    processors();
    drop_privileges();
    huge_pages::allow();
    // Only a grant `system` makes belljar read about other processes.
    if !kernel_paths(config).is_empty()
        && let Err(error) = drop_capabilities()
    {
        tracing::warn!("cannot give up the powers to see more of other processes: {error}");
    }
    let (mut status, mut pinned) = (WallStatus::Off, Vec::new());
    if config.wall != Wall::Off {
        let alone = is_single_threaded();
        status = match enforce(&allowed_paths(config, keys, output), &ports(config), &mut pinned) {
            Ok(status) => status_of(&status, alone),
            Err(error) => WallStatus::None(format!("the kernel refuses it ({})", root_cause(&error))),
        };
        // Without granted ports, no socket is needed. Without Landlock, ports may still be granted while belljar
        // serves.
        let has_ports = !ports(config).is_empty() || !status.is_enforced();
        status = status.with_filter(filter::raise(if has_ports { Sockets::Internet } else { Sockets::None }));
        match &status {
            WallStatus::Full { .. } => tracing::info!("second wall: {status}"),
            _ => tracing::warn!("second wall: {status}"),
        }
    }
    if config.wall == Wall::Require && !matches!(status, WallStatus::Full { .. }) {
        return Err(WallError::Incomplete(status));
    }
    // Directories that do not exist have no rule, and `directories` leaves them out.
    let directories = || [granted(config), kernel_paths(config), principal_secrets(config), logins(config)].concat();
    let scope =
        status.is_enforced().then(|| LandlockScope { directories: directories(), ports: ports(config), outside: None });
    log::start_writer();
    Ok(RaisedWall { status, scope, _pinned: pinned })
}

/// Raises the wall for a command that needs only the files of this program.
pub(crate) fn raise_for_program() -> RaisedWall {
    // Counted now, because the wall hides the limit of a container.
    processors();
    drop_privileges();
    huge_pages::allow();
    let (mut pinned, alone) = (Vec::new(), is_single_threaded());
    let status = match enforce(&program_paths(), &[], &mut pinned) {
        Ok(status) => status_of(&status, alone),
        Err(error) => WallStatus::None(root_cause(&error)),
    };
    let status = status.with_filter(filter::raise(Sockets::None));
    log::start_writer();
    RaisedWall { status, scope: None, _pinned: pinned }
}

/// Gives up core dumps and new privileges. belljar needs neither, so this also happens with `wall = "off"`.
pub(super) fn drop_privileges() {
    let none = Rlimit { current: Some(0), maximum: Some(0) };
    if let Err(error) = setrlimit(Resource::Core, none).and_then(|()| rustix::thread::set_no_new_privs(true)) {
        tracing::warn!("cannot give up core dumps and new privileges: {error}");
    }
}

/// Gives up all capabilities but one, if this process has any: a mount may be granted files of other users for reading.
pub(super) fn keep_read_capability() -> Result<(), Errno> {
    let mut held = capabilities(None)?;
    held.effective &= CapabilitySet::DAC_READ_SEARCH;
    held.permitted &= CapabilitySet::DAC_READ_SEARCH;
    held.inheritable = CapabilitySet::empty();
    set_capabilities(None, held)
}

/// [`drop_privileges`], and makes the process not "dumpable": no debugger, core dump or procfs file can show its
/// memory.
pub(crate) fn drop_privileges_and_hide_memory() {
    drop_privileges();
    if let Err(error) = rustix::process::set_dumpable_behavior(rustix::process::DumpableBehavior::NotDumpable) {
        tracing::warn!("other processes of the same user can read the memory of this one: {error}");
    }
}

/// Raises the wall of the compiler process, which opens no file.
pub(crate) fn raise_for_compiler() {
    // Errors are ignored: the process also inherits the wall of its parent, which has reported them.
    let _ = enforce(&Vec::new(), &[], &mut Vec::new());
    let _ = filter::raise_for_compiler();
}

/// Raises the wall of the launcher process, and so of the workers that it starts. It can read every file, because each
/// worker raises a wall of its own; it can write none. This must be the only thread.
pub(super) fn raise_for_launcher() -> WallStatus {
    // An error is reported by each worker.
    let _ = keep_read_capability();
    let restrict = || {
        let rules = Ruleset::default()
            .handle_access(AccessFs::from_write(ABI::V9))?
            .handle_access(AccessNet::BindTcp)?
            .scope(Scope::from_all(ABI::V9))?;
        rules.create()?.restrict_self()
    };
    let status = match restrict() {
        Ok(status) => status_of(&status, is_single_threaded()),
        Err(error) => WallStatus::None(root_cause(&error)),
    };
    status.with_filter(filter::raise_for_launcher())
}

/// Raises the wall of the helper process. It reads the directories in `read`, writes in those in `write`, starts no
/// program and opens no connection. Other processes of the same user cannot read its memory, which has held secrets.
pub(crate) fn raise_for_helper(read: &[PathBuf], write: &[PathBuf]) {
    drop_privileges_and_hide_memory();
    let reads = AccessFs::ReadFile | AccessFs::ReadDir;
    let writes = reads | AccessFs::WriteFile | AccessFs::Truncate | AccessFs::MakeReg | AccessFs::RemoveFile;
    let mut open: AllowedPaths = read.iter().map(|path| (path.clone(), reads)).collect();
    open.extend(write.iter().map(|path| (path.clone(), writes)));
    // Errors are ignored: `raise` in the server process reports the same ones.
    let _ = enforce(&open, &[], &mut Vec::new());
    let _ = filter::raise_for_helper();
}

/// True if this is the only thread. The wall would not restrict other running threads.
fn is_single_threaded() -> bool {
    #[expect(clippy::disallowed_methods, reason = "the kernel's list of this process's threads")]
    let tasks = std::fs::read_dir("/proc/self/task");
    tasks.is_ok_and(|tasks| tasks.count() == 1)
}

pub(super) fn status_of(status: &RestrictionStatus, alone: bool) -> WallStatus {
    if status.ruleset == RulesetStatus::NotEnforced && matches!(status.landlock, LandlockStatus::Available { .. }) {
        return WallStatus::None("the kernel does not enforce it".to_owned());
    }
    status_on(&status.landlock, alone)
}

fn status_on(landlock: &LandlockStatus, alone: bool) -> WallStatus {
    let abi = match landlock {
        LandlockStatus::NotEnabled => {
            return WallStatus::None(
                "Landlock is not enabled in this kernel; add \"landlock\" to its lsm= parameter".to_owned(),
            );
        }
        LandlockStatus::NotImplemented => {
            return WallStatus::None("this kernel has no Landlock, or a container hides it".to_owned());
        }
        LandlockStatus::Available { effective_abi, kernel_abi } => kernel_abi.unwrap_or(*effective_abi as i32),
    };
    let mut missing: Vec<_> = SINCE.iter().filter(|(since, _)| *since > abi).map(|(_, what)| *what).collect();
    if !alone {
        missing.push("threads that were started earlier (by a preloaded library?)");
    }
    if missing.is_empty() { WallStatus::Full { abi } } else { WallStatus::Partial { abi, missing } }
}

/// The message of the innermost error.
fn root_cause(error: &RulesetError) -> String {
    let mut inner: &dyn std::error::Error = error;
    while let Some(source) = inner.source() {
        inner = source;
    }
    inner.to_string()
}

/// The TCP ports to which belljar connects: those of the HTTP grants, of the token issuers, and of the name servers.
fn ports(config: &Config) -> Vec<u16> {
    let servers = config.ambient.network.iter().flat_map(|network| network.dns_ports());
    config.ports().into_iter().chain(servers).collect()
}

/// All directories that are granted to mounts.
fn granted(config: &Config) -> Vec<PathBuf> {
    config.mounts.values().flat_map(|mount| mount.grants.directories(&config.ambient)).collect()
}

/// The files and directories of the kernel that belljar reads for mounts.
fn kernel_paths(config: &Config) -> Vec<PathBuf> {
    config.mounts.values().flat_map(|mount| mount.grants.kernel_paths()).collect()
}

/// The directories of secrets that each principal has for itself, of the mounts that use them.
fn principal_secrets(config: &Config) -> Vec<PathBuf> {
    let secrets = &config.ambient.secrets;
    config.mounts.values().flat_map(|mount| secrets.directories(mount.grants.secret_names())).collect()
}

/// The directories of logins that the grants of mounts need.
fn logins(config: &Config) -> Vec<PathBuf> {
    let mut all: Vec<PathBuf> =
        config.mounts.values().flat_map(|mount| mount.grants.own_directories(&config.ambient)).collect();
    all.dedup();
    all
}

/// All paths that a serving process opens by name behind the wall.
fn allowed_paths(config: &Config, keys: &Keys, output: Option<&Path>) -> AllowedPaths {
    let read = AccessFs::ReadFile | AccessFs::ReadDir;
    let own = read | AccessFs::WriteFile | AccessFs::Truncate | AccessFs::MakeReg | AccessFs::RemoveFile;
    let mut open: AllowedPaths = vec![(config.plugins.clone(), read)];
    open.extend(granted(config).into_iter().map(|granted| (granted, read)));
    let readable = |path: &Path| if path.is_dir() { read } else { AccessFs::ReadFile.into() };
    open.extend(kernel_paths(config).into_iter().map(|path| (path.clone(), readable(&path))));
    // The secret of a principal is read for each call. The other secrets were read before the wall.
    open.extend(principal_secrets(config).into_iter().map(|directory| (directory, AccessFs::ReadFile.into())));
    // Errors are reported where the directories are opened. Only a process that runs no component may write the code
    // that all configurations share. The installation's secret is not allowed.
    let shared = if keys.may_share() { own } else { read };
    for (dir, access) in [(config.cache.clone(), shared), (keys.own_code(config), own)] {
        if directories::private_dir(&dir).is_ok() {
            open.push((dir, access));
        }
    }
    open.extend(shipped::compiled_code().map(|directory| (directory, read)));
    // A server gives a new refresh token for each old one, and the new one is stored.
    for directory in logins(config) {
        let parents = directory.ancestors().take_while(|parent| parent.starts_with(&config.state)).collect::<Vec<_>>();
        if parents.into_iter().rev().all(|parent| directories::private_dir(parent).is_ok()) {
            open.push((directory, own));
        }
    }
    if matches!(config.audit, Audit::State) && directories::private_dir(&config.state).is_ok() {
        let folder = record_file::folder(&config.state);
        if directories::private_dir(&folder).is_ok() {
            open.push((folder, own));
        }
    }
    if let Audit::File(path) = &config.audit {
        // Creates the file: a rule needs an existing path.
        let _ = record::audit_file(path);
        open.push((path.clone(), AccessFs::WriteFile.into()));
    }
    if let Some(path) = output {
        // A missing file can only be allowed by a rule for its directory.
        match path.parent() {
            _ if path.exists() => open.push((path.to_owned(), AccessFs::WriteFile | AccessFs::Truncate)),
            Some(parent) if parent.as_os_str().is_empty() => {
                open.push((".".into(), AccessFs::WriteFile | AccessFs::MakeReg))
            }
            Some(parent) => open.push((parent.to_owned(), AccessFs::WriteFile | AccessFs::MakeReg)),
            None => {}
        }
    }
    open.extend(program_paths());
    open
}

/// The files that this program needs: `pagemap`, from which the engine reads which pages were written; `mountinfo`,
/// from which grants read the mounted file systems; and the executable with its libraries, for the compiler process.
fn program_paths() -> AllowedPaths {
    let run = AccessFs::ReadFile | AccessFs::Execute;
    let mut all: AllowedPaths = vec![("/proc/self/exe".into(), run)];
    for own in ["/proc/self/pagemap", "/proc/self/mountinfo", LOADER_CACHE] {
        all.push((own.into(), AccessFs::ReadFile.into()));
    }
    #[expect(clippy::disallowed_methods, reason = "the kernel's list of this program's libraries")]
    let maps = std::fs::read_to_string("/proc/self/maps").unwrap_or_default();
    // proc_pid_maps(5): address, rights, offset, device, inode, path.
    let code = maps.lines().filter(|line| line.split_whitespace().nth(1).is_some_and(|rights| rights.contains('x')));
    for path in code.filter_map(|line| line.find('/').and_then(|at| line.get(at..))).map(Path::new) {
        let library = path.file_name().is_some_and(|name| name.to_string_lossy().contains(".so"));
        let system = library && LIBRARIES.iter().any(|dir| path.starts_with(dir));
        // "/usr" itself would allow far more than libraries.
        let beside = path.parent().filter(|parent| system && *parent != Path::new("/usr"));
        let path = beside.unwrap_or(path);
        if !all.iter().any(|(known, _)| known == path) {
            all.push((path.to_owned(), run));
        }
    }
    all
}

/// Restricts this thread to the paths `open`, and its connections to `ports`. Skips paths that do not exist.
fn enforce(open: &AllowedPaths, ports: &[u16], pinned: &mut Vec<File>) -> Result<RestrictionStatus, RulesetError> {
    let mut rules = Ruleset::default()
        // All restrictions of the newest kernels. Older kernels enforce those that they know.
        .handle_access(AccessFs::from_all(ABI::V9))?
        .handle_access(AccessNet::from_all(ABI::V9))?
        .scope(Scope::from_all(ABI::V9))?
        .create()?;
    for (path, access) in open {
        let Ok(file) = directories::handle(path) else { continue };
        // A path on a file system that Landlock does not support becomes unreachable. The rest of the wall is raised.
        if let Err(error) = (&mut rules).add_rule(PathBeneath::new(&file, *access)) {
            tracing::warn!(
                "\"{}\" cannot be used: the second wall cannot allow it ({})",
                path.display(),
                root_cause(&error)
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
