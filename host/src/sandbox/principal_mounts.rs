//! The variants of a mount whose principals have secrets of their own: the same component, with the grants of one
//! principal.

use std::sync::Arc;

use super::loaded_mount::MountRecord;
use super::principal_cache::PrincipalCache;
use crate::grants::PerPrincipalGrants;
use crate::model::ReadError;

/// The mount for a call of `principal`. It is `mount` itself if all principals share its secrets. Otherwise reads the
/// files of the principal, on a thread that may block.
///
/// # Errors
/// If the principal has no usable secret.
pub(super) async fn for_principal(mount: Arc<MountRecord>, principal: &str) -> Result<Arc<MountRecord>, ReadError> {
    if mount.grants.per_principal().is_none() {
        return Ok(mount);
    }
    let principal = principal.to_owned();
    let made = tokio::task::spawn_blocking(move || match mount.grants.per_principal() {
        None => Ok(Arc::clone(&mount)),
        Some(grants) => variant(&mount, grants, principal),
    });
    made.await.unwrap_or_else(|error| Err(ReadError::Internal(format!("the grants of a principal: {error}"))))
}

/// The variant for `principal`, with the present contents of its files.
fn variant(
    mount: &Arc<MountRecord>,
    grants: &PerPrincipalGrants,
    principal: String,
) -> Result<Arc<MountRecord>, ReadError> {
    let secrets = grants.secrets(&principal).map_err(|error| ReadError::NoPrincipalSecret {
        secret: error.name,
        file: error.file,
        is_absent: error.is_absent,
    })?;
    let digest = secrets.digest();
    if let Some(found) = mount.principals.find(&principal, &digest) {
        return Ok(found);
    }
    let own = grants
        .configure(secrets)
        .map_err(|error| ReadError::Internal(format!("the grants of \"{}\" for one principal: {error}", mount.name)))?;
    let made = Arc::new(MountRecord {
        name: mount.name.clone(),
        code: Arc::clone(&mount.code),
        grants: Arc::new(own.sharing(&mount.grants)),
        descriptors: mount.descriptors.clone(),
        log_rate: Arc::clone(&mount.log_rate),
        principals: PrincipalCache::default(),
        spare: Arc::default(),
        worker: None,
    });
    mount.principals.keep(principal, digest, Arc::clone(&made));
    Ok(made)
}
