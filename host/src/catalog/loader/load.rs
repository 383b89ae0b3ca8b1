//! Loads components without grants. Each mount that is built from a component gets its own grants later.

use std::sync::Arc;

use super::error::BuildError;
use crate::grants::{Ambient, GrantConfig, MountGrants};
use crate::model::{Digest, MountName};
use crate::sandbox::{LoadedMount, Sandbox};

/// The most components that load at the same time while mounts are served. Each compilation occupies a core.
pub(super) const MAX_PARALLEL_LOADS: usize = 2;

/// A component to load.
pub(super) struct ComponentBytes {
    /// The first mount that uses this component. The log shows this name.
    pub(super) name: MountName,
    pub(super) bytes: Arc<[u8]>,
    /// The digest of `bytes`.
    pub(super) digest: Digest,
}

/// Loads a component. Compiles it if its code is not in the cache.
///
/// # Errors
/// When it cannot be loaded.
pub(super) async fn load(
    sandbox: &Sandbox,
    ambient: &Ambient,
    wasm: ComponentBytes,
) -> Result<LoadedMount, BuildError> {
    let ComponentBytes { name, bytes, digest } = wasm;
    let loaded = sandbox.load(&name, bytes, &digest, no_grants(ambient)?).await;
    loaded.map_err(|why| BuildError::Component(why.to_string()))
}

/// Loads a component from the cache of compiled code. `None` if it is not cached. Blocks on disk I/O.
///
/// # Errors
/// When it cannot be loaded.
pub(super) fn load_cached(
    sandbox: &Sandbox,
    ambient: &Ambient,
    name: &MountName,
    digest: &Digest,
) -> Result<Option<LoadedMount>, BuildError> {
    let loaded = sandbox.load_cached(name, digest, no_grants(ambient)?);
    loaded.map_err(|why| BuildError::Component(why.to_string()))
}

fn no_grants(ambient: &Ambient) -> Result<MountGrants, BuildError> {
    GrantConfig::default().configure(ambient).map_err(|why| BuildError::Component(why.to_string()))
}
