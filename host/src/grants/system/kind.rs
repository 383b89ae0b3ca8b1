//! The run-time part of the grant `system`.

use std::path::{Path, PathBuf};
use std::sync::{Arc, LazyLock};

use wasmtime::component::Linker;
use wasmtime_wasi::WasiCtxBuilder;

use super::config::SystemConfig;
use super::directory::SystemDirectory;
use super::error::SystemGrantError;
use super::front_directory::FrontSystemDirectory;
use super::name::{NAME, System};
use super::parts::SystemPart;
use super::root::SystemRoot;
use super::snapshots::SystemSnapshots;
use crate::grants::ambient::Ambient;
use crate::grants::grant::{CallScope, Grant, HasCallState, Powers};
use crate::grants::memory_directory::MemoryDirectory;
use crate::grants::network_handover::NetworkHandover;

/// One for the process: two mounts that read the same part within a second cost as much as one.
static SNAPSHOTS: LazyLock<Arc<SystemSnapshots>> =
    LazyLock::new(|| Arc::new(SystemSnapshots::new(SystemRoot::at(Path::new("/")))));

/// The directory of a mount. `None`: no part is granted.
pub struct SystemMountState(Option<Arc<dyn MemoryDirectory>>);

impl SystemMountState {
    /// The directory of a mount in a worker process, where the front makes the files.
    pub(in crate::grants) fn of_worker(handover: &NetworkHandover) -> Self {
        let own = handover.directories.iter().find(|directory| directory.kind == NAME);
        let directory = own.map(|own| {
            let names = own.names.iter().filter_map(|name| Some(SystemPart::of_file(name)?.file()));
            Arc::new(FrontSystemDirectory(names.collect())) as Arc<dyn MemoryDirectory>
        });
        Self(directory)
    }
}

impl Grant for System {
    const NAME: &'static str = NAME;
    const IMPORTS: &'static [&'static str] = &["wasi:filesystem/"];
    const IS_USED_IN_WORKERS: bool = true;
    type Config = SystemConfig;
    type MountState = SystemMountState;
    type CallState = ();
    type Error = SystemGrantError;

    /// The functions of `fs` serve the directory.
    fn link<T: HasCallState<Self>>(_: &mut Linker<T>) -> wasmtime::Result<()> {
        Ok(())
    }

    fn configure(config: &SystemConfig, _: &Ambient) -> Result<SystemMountState, SystemGrantError> {
        if config.is_empty() {
            return Ok(SystemMountState(None));
        }
        if config.has(SystemPart::CommandLines) && !config.has(SystemPart::Processes) {
            return Err(SystemGrantError::OnlyCommandLines);
        }
        let directory = SystemDirectory { granted: config.clone(), snapshots: Arc::clone(&SNAPSHOTS) };
        Ok(SystemMountState(Some(Arc::new(directory))))
    }

    fn kernel_paths(config: &SystemConfig) -> Vec<PathBuf> {
        let mut all: Vec<PathBuf> = config.0.iter().flat_map(|part| part.kernel_paths()).collect();
        all.sort();
        all.dedup();
        all
    }

    fn memory_directories(mount: &SystemMountState) -> Vec<Arc<dyn MemoryDirectory>> {
        mount.0.iter().cloned().collect()
    }

    /// The files are read-only.
    fn powers(_: &SystemConfig) -> Powers {
        Powers::default()
    }

    fn is_granted(mount: &SystemMountState) -> bool {
        mount.0.is_some()
    }

    fn open(_: &SystemMountState, _: &mut WasiCtxBuilder, _: &CallScope<'_>) {}
}
