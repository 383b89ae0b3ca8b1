//! The type of this kind of grant, and its name.

/// The kind of grant `postgres`.
pub struct Postgres;

/// The configuration key under `[mounts.NAME]`, and the name in audit records.
pub(super) const NAME: &str = "postgres";
