//! The run-time part of the grant `fs`.

use std::os::unix::fs::PermissionsExt;
use std::path::PathBuf;
use std::sync::Arc;

use wasmtime::component::Linker;
use wasmtime_wasi::WasiCtxBuilder;

use super::call_state::{CURES, FsCallState};
use super::config::{self, FsConfig};
use super::error::DirectoryGrantError;
use super::granted_directory::{DirectoryUnavailable, GrantedDirectory, resolve_host_path};
use super::name::Fs;
use super::root::OpenRoot;
use super::{functions, hard_links, name};
use crate::grants::ambient::Ambient;
use crate::grants::drive_timeout::run_with_timeout;
use crate::grants::grant::{CallScope, Grant, HasCallState, Powers};
use crate::grants::memory_directory::MemoryDirectory;
use crate::model::{Consent, DecisionKind, MountName, command};

/// The granted directories of a mount.
pub struct FsMountState {
    directories: Vec<GrantedDirectory>,
}

const CONSENT_CURE: &str = "a person has to consent to each read, in a client that supports elicitation (MCP 2026-07-28); to allow it permanently, run: ";

const HIDDEN: &str = "a directory that is granted by fs has the same guest path and hides it; grant the directory under another guest path";

impl FsMountState {
    /// The cure of a decision that a worker process of `mount` made. A person may paste a cure into a shell, so the words
    /// of a worker are only compared with those that belljar has. `None` if it has no such cure.
    pub(in crate::grants) fn cure_of_worker(&self, mount: &MountName, target: &str, said: &str) -> Option<String> {
        if said.starts_with(CONSENT_CURE) {
            let asks = |one: &GrantedDirectory| one.needs_consent() && *one.guest() == *target;
            return self.directories.iter().any(asks).then(|| consent_cure(mount, target));
        }
        let absent = DirectoryUnavailable::ALL.into_iter().map(|absent| absent.cure(false));
        let all = CURES.into_iter().chain([HIDDEN]).map(|cure| cure.replace("NAME", mount.as_str()));
        all.chain(absent).find(|cure| cure == said)
    }

    /// A mount with these directories.
    pub(super) fn new(directories: Vec<GrantedDirectory>) -> Self {
        Self { directories }
    }

    /// The directories.
    pub(super) fn directories(&self) -> &[GrantedDirectory] {
        &self.directories
    }
}

impl Grant for Fs {
    const NAME: &'static str = name::NAME;
    const IMPORTS: &'static [&'static str] = &["wasi:filesystem/"];
    const IS_MISSED_SILENTLY: bool = true;
    const IS_USED_IN_WORKERS: bool = true;
    type Config = FsConfig;
    type MountState = FsMountState;
    type CallState = FsCallState;
    type Error = DirectoryGrantError;

    fn link<T: HasCallState<Self>>(linker: &mut Linker<T>) -> wasmtime::Result<()> {
        functions::link(linker)
    }

    fn configure(config: &FsConfig, ambient: &Ambient) -> Result<FsMountState, DirectoryGrantError> {
        let open = |(guest, granted): (&String, &config::DirectoryConfig)| {
            GrantedDirectory::open(guest, &granted.path, granted.ask, ambient)
        };
        Ok(FsMountState { directories: config.0.iter().map(open).collect::<Result<_, _>>()? })
    }

    fn directories(config: &FsConfig, ambient: &Ambient) -> Vec<PathBuf> {
        config.0.values().filter_map(|granted| resolve_host_path(&granted.path, ambient).ok()).collect()
    }

    /// Files are read-only.
    fn powers(_: &FsConfig) -> Powers {
        Powers::default()
    }

    fn is_granted(mount: &FsMountState) -> bool {
        !mount.directories.is_empty()
    }

    fn opens_files(mount: &FsMountState) -> bool {
        Self::is_granted(mount)
    }

    /// True if a directory lies on a file system that can stall (network, FUSE, unknown), or if its path has to be
    /// opened again.
    fn may_stall(mount: &FsMountState) -> bool {
        // Ask every directory, even after the first `true`: the question can open a directory that was replaced.
        mount.directories.iter().filter(|directory| directory.needs_thread()).count() > 0
    }

    fn host_path(config: &FsConfig, name: &str, ambient: &Ambient) -> Option<PathBuf> {
        resolve_host_path(&config.0.get(name)?.path, ambient).ok()
    }

    fn warnings(mount: &FsMountState) -> Vec<String> {
        mount.directories.iter().flat_map(warnings).collect()
    }

    fn open(mount: &FsMountState, _: &mut WasiCtxBuilder, scope: &CallScope<'_>) -> FsCallState {
        let mut roots = Vec::new();
        for directory in &mount.directories {
            let consent = Consent { grant: Self::NAME.into(), target: directory.guest().to_string() };
            if directory.needs_consent() && !scope.consent.contains(&consent) {
                // Without consent the guest does not see the directory.
                let cure = || Some(consent_cure(scope.mount, &consent.target));
                scope.record.add_decision(Self::NAME, &consent.target, DecisionKind::Denied, cure);
                scope.record.request_consent(consent);
                continue;
            }
            match directory.root(scope.thread.may_block()) {
                Ok(root) => roots.push(root),
                // The guest does not see the directory. The record names the reason.
                Err(absent) => directory.record_absent(absent, scope.record),
            }
        }
        let memory = visible_memory(&roots, scope);
        FsCallState::new(roots, memory, scope.mount.clone(), scope.record.clone(), scope.thread.clone())
    }
}

/// The cure of a directory that needs a consent.
fn consent_cure(mount: &MountName, guest: &str) -> String {
    format!("{CONSENT_CURE}{}", command::line(["grant", mount.as_str(), "--fs", guest]))
}

/// The directories of files in memory that the guest sees. A granted directory hides one with the same guest path: which
/// of both a guest would open depends on its language. The record says so.
fn visible_memory(roots: &[Arc<OpenRoot>], scope: &CallScope<'_>) -> Vec<Arc<dyn MemoryDirectory>> {
    let is_visible = |dir: &&Arc<dyn MemoryDirectory>| {
        let is_hidden = roots.iter().any(|root| root.guest().trim_end_matches('/') == dir.guest());
        if is_hidden {
            let cure = || Some(HIDDEN.to_owned());
            scope.record.add_decision(dir.kind(), dir.guest(), DecisionKind::Unavailable, cure);
        }
        !is_hidden
    };
    scope.memory.iter().filter(is_visible).cloned().collect()
}

/// Warnings for the operator about one directory.
fn warnings(directory: &GrantedDirectory) -> Vec<String> {
    let Ok(root) = directory.root(false) else { return Vec::new() };
    let guest = directory.guest();
    if root.may_stall() {
        return vec![format!(
            "\"{guest}\" lies on a drive that may not answer in time; belljar does not search it for hard links"
        )];
    }
    let own = root.clone();
    let access = move || {
        let mode = own.dir().metadata().map_or(0, |meta| meta.permissions().mode());
        (mode & 0o002 != 0, hard_links::find(own.dir()))
    };
    let Ok((is_open, linked)) = run_with_timeout(root.host(), access) else {
        return vec![format!(
            "\"{guest}\" could not be searched for hard links in time: its drive is slow or does not answer"
        )];
    };
    let open = is_open.then(|| {
        format!(
            "anyone on this machine can change the files in \"{guest}\", which clients read; take away its write permission for others"
        )
    });
    let linked = linked.map(|file| {
        format!("\"{guest}\" contains hard links, the first is \"{file}\": the provider can read these files even if they also lie elsewhere")
    });
    open.into_iter().chain(linked).collect()
}
