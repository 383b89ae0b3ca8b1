//! What a mount listed when it was last polled.

use crate::sandbox::MountId;

/// The state of a mount's list at its last poll.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(in crate::gateway) struct ListFingerprint {
    /// The mount whose list it is. A reloaded mount of the same name has another id.
    pub(in crate::gateway) id: MountId,
    /// The ids of the cached listings of resources and of templates.
    pub(in crate::gateway) lists: (u32, u32),
    /// A hash of the base and the entries that are served. `None` if nothing is served.
    pub(in crate::gateway) digest: Option<blake3::Hash>,
}

impl ListFingerprint {
    /// The fingerprint of an empty list, or of a mount that does not exist.
    pub(in crate::gateway) fn empty() -> Self {
        Self { id: MountId::none(), lists: (0, 0), digest: None }
    }
}

/// A mount with tools or prompts.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(in crate::gateway) struct DefiningMount {
    /// A reloaded mount of the same name has another id.
    pub(in crate::gateway) id: MountId,
    pub(in crate::gateway) base: String,
    pub(in crate::gateway) has_tools: bool,
    pub(in crate::gateway) has_prompts: bool,
}
