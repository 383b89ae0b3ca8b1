//! The type of this kind of grant, and its name.

/// The kind of grant `system`.
pub struct System;

/// The configuration key under `[mounts.NAME]`, and the name in audit records.
pub(super) const NAME: &str = "system";

/// The guest path of the directory.
pub(super) const GUEST: &str = "/system";
