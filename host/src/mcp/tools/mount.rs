//! The tools' argument `mount`.

use rmcp::model::ErrorData;

use super::super::fault;
use super::super::handler::Handler;
use crate::model::MountName;
use crate::policy::Principal;

/// The expected value, as errors name it.
pub(super) const EXPECTED: &str = "the name of a mount";

/// The error of an unknown mount names at most this many known ones.
const MOUNTS_NAMED: usize = 20;

/// Refuses the name of a mount that `principal` does not know.
pub(super) async fn check(
    handler: &Handler,
    principal: &Principal,
    tool: &str,
    name: &MountName,
) -> Result<(), ErrorData> {
    let mut names = handler.gateway.all_mount_names(principal).await;
    if names.contains(name) {
        return Ok(());
    }
    names.sort();
    let shown = names.iter().take(MOUNTS_NAMED).map(|name| format!("\"{name}\"")).collect::<Vec<_>>().join(", ");
    let more = if names.len() > MOUNTS_NAMED { ", and more" } else { "" };
    Err(fault::bad_argument(&format!(
        "the argument \"mount\" of \"{tool}\" names no mount: there is no \"{name}\"; there are {shown}{more}"
    )))
}
