//! The run-time part of a kind of grant: the trait [`Grant`], and the traits of the store in which grants work.

use std::path::PathBuf;
use std::sync::Arc;

use tokio::time::Instant;
use wasmtime::StoreContextMut;
use wasmtime::component::Linker;
use wasmtime_wasi::{WasiCtxBuilder, WasiView};
use wasmtime_wasi_http::WasiHttpView;
use zeroize::Zeroizing;

use super::ambient::Ambient;
use super::call_record::CallRecord;
use super::dedicated_thread::DedicatedThread;
use super::memory_directory::MemoryDirectory;
use super::network::endpoint::TcpEndpoint;
use super::secrets::{LiveSecrets, Secret};
use crate::model::{Consent, Limits, MountName};

/// What every grant needs from the store of a call.
pub trait GrantView: WasiView + WasiHttpView + Send + 'static {
    /// The record of the call's decisions and resource usage.
    fn record(&mut self) -> &CallRecord;

    /// Charges `bytes` of host memory to the call, for the handle with the number `handle`.
    ///
    /// # Errors
    /// When the call's memory limit does not allow them. The call ends with this error.
    fn charge_handle(&mut self, handle: u32, bytes: u64) -> wasmtime::Result<()>;

    /// Releases the charge of a handle that was dropped.
    fn release_handle(&mut self, handle: u32);
}

/// A store that holds the call state of the kind `G`.
pub trait HasCallState<G: Grant>: GrantView {
    /// The state that [`Grant::open`] made for this call.
    fn call_state(&mut self) -> &mut G::CallState;
}

/// Records the remaining fuel. Use this before work that may not return.
pub(crate) fn record_fuel<T: GrantView>(store: &mut StoreContextMut<'_, T>) {
    let left = store.get_fuel().unwrap_or_default();
    store.data_mut().record().fuel_left(left);
}

/// The call for which grants are opened.
#[derive(Clone, Copy)]
pub struct CallScope<'a> {
    /// The called mount.
    pub mount: &'a MountName,
    /// The limits of the call.
    pub limits: &'a Limits,
    /// The deadline of the call.
    pub deadline: Instant,
    /// The consents that a person gave for this call only.
    pub consent: &'a [Consent],
    /// The record to which decisions are added.
    pub record: &'a CallRecord,
    /// Tells whether the call has a dedicated thread, and requests one.
    pub thread: &'a DedicatedThread,
    /// The directories of files in memory that the mount's grants give. [`super::MountGrants::open`] sets them.
    pub memory: &'a [Arc<dyn MemoryDirectory>],
}

/// What calls can do to the world with some grants.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct Powers {
    /// They can change something outside of belljar, such as by a POST.
    pub can_change: bool,
    /// They can exchange data with other machines.
    pub can_reach_out: bool,
}

impl Powers {
    /// The powers of both.
    #[must_use]
    pub fn and(self, other: Self) -> Self {
        Self {
            can_change: self.can_change || other.can_change,
            can_reach_out: self.can_reach_out || other.can_reach_out,
        }
    }
}

/// A kind of grant, such as `fs` or `http`.
pub trait Grant: Sized + 'static {
    /// The configuration key under `[mounts.NAME]`, and the name in audit records.
    const NAME: &'static str;

    /// The WASI packages or interfaces of this kind, as prefixes of import names. A prefix outside WASI ends with the
    /// part of the version that must match: `belljar:bell/bell@0.1.`.
    const IMPORTS: &'static [&'static str];

    /// True if a guest without this grant gets no refusal: it only finds nothing, and no host function sees the
    /// attempt.
    const IS_MISSED_SILENTLY: bool = false;

    /// True if a worker process itself decides about its uses, with what the front handed over. False if the front decides
    /// about each use.
    const IS_USED_IN_WORKERS: bool = false;

    /// The TCP ports that consent can open for a call. The process sandbox (Landlock) leaves them open if a mount may
    /// ask for consent.
    const CONSENT_PORTS: &'static [u16] = &[];

    /// The configuration: the value of the key [`Grant::NAME`].
    type Config: serde::de::DeserializeOwned + schemars::JsonSchema + std::fmt::Debug + Default;

    /// The state of a mount, made once by [`Grant::configure`].
    type MountState: Send + Sync;

    /// The state of a call, made by [`Grant::open`].
    type CallState: Send;

    /// Why a configuration cannot be turned into handles.
    type Error: std::error::Error + Send + Sync + 'static;

    /// Adds or replaces host functions. Runs once per engine.
    ///
    /// # Errors
    /// When the linker refuses a definition.
    fn link<T: HasCallState<Self>>(linker: &mut Linker<T>) -> wasmtime::Result<()>;

    /// Turns the configuration into handles. Runs once per mount.
    ///
    /// # Errors
    /// States the problem of the configuration, and its cure.
    fn configure(config: &Self::Config, ambient: &Ambient) -> Result<Self::MountState, Self::Error>;

    /// Takes over what a mount has once for all principals, for grants that are made for one principal. See
    /// [`super::PerPrincipalGrants`].
    fn share(_own: &mut Self::MountState, _base: &Self::MountState) {}

    /// The host directories that calls will read, as canonical paths. The process sandbox must leave them open. Leaves
    /// out directories that [`Grant::configure`] refuses.
    fn directories(_config: &Self::Config, _ambient: &Ambient) -> Vec<PathBuf> {
        Vec::new()
    }

    /// belljar's own directories that calls change. The process sandbox must leave them open. They are not watched.
    fn own_directories(_config: &Self::Config, _ambient: &Ambient) -> Vec<PathBuf> {
        Vec::new()
    }

    /// The files and directories of the kernel that belljar reads for calls. The process sandbox must leave them readable.
    /// They are not watched, and no guest sees them.
    fn kernel_paths(_config: &Self::Config) -> Vec<PathBuf> {
        Vec::new()
    }

    /// The TCP ports that calls will connect to. The process sandbox must leave them open.
    fn ports(_config: &Self::Config) -> Vec<u16> {
        Vec::new()
    }

    /// The secrets in the mount's grants. belljar masks them in all results of the mount.
    fn secrets(_mount: &Self::MountState) -> Vec<Arc<Secret>> {
        Vec::new()
    }

    /// Secrets in the mount's grants that change while belljar runs. belljar masks their present values too.
    fn live_secrets(_mount: &Self::MountState) -> Vec<Arc<LiveSecrets>> {
        Vec::new()
    }

    /// The destinations to which calls may open a TCP connection.
    fn endpoints(_mount: &Self::MountState) -> Vec<TcpEndpoint> {
        Vec::new()
    }

    /// The directories of files in memory that calls see.
    fn memory_directories(_mount: &Self::MountState) -> Vec<Arc<dyn MemoryDirectory>> {
        Vec::new()
    }

    /// The environment variables that calls see: names and values.
    fn variables(_mount: &Self::MountState) -> Vec<(String, Zeroizing<String>)> {
        Vec::new()
    }

    /// True if the mount has a grant of this kind.
    fn is_granted(mount: &Self::MountState) -> bool;

    /// True if a call can open files by a grant of this kind.
    fn opens_files(_mount: &Self::MountState) -> bool {
        false
    }

    /// True if a host function may block in the next call. Such a call gets a dedicated thread from its start. This
    /// function itself never blocks.
    fn may_stall(_mount: &Self::MountState) -> bool {
        false
    }

    /// What calls can do to the world with the grants of this kind. Clients are told of tools by this, so a new kind must
    /// say it.
    fn powers(config: &Self::Config) -> Powers;

    /// The host path of the thing that a consent of this kind names. Show it to the local user only.
    fn host_path(_config: &Self::Config, _name: &str, _ambient: &Ambient) -> Option<PathBuf> {
        None
    }

    /// Warnings for the operator about the mount's grants. Only `belljar check` calls this: the search may take long.
    fn warnings(_: &Self::MountState) -> Vec<String> {
        Vec::new()
    }

    /// Makes the state of one call, and adds what the guest may use to `wasi`.
    fn open(mount: &Self::MountState, wasi: &mut WasiCtxBuilder, scope: &CallScope<'_>) -> Self::CallState;
}
