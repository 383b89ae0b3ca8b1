//! The type of this kind of grant, and its name.

/// The kind of grant `http`.
pub struct Http;

/// The configuration key under `[mounts.NAME]`, and the name in audit records.
pub(super) const NAME: &str = "http";
