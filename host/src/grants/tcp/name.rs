//! The type of this kind of grant, and its name.

/// The kind of grant `tcp`.
pub struct Tcp;

/// The configuration key under `[mounts.NAME]`, and the name in audit records.
pub(in crate::grants) const NAME: &str = "tcp";
