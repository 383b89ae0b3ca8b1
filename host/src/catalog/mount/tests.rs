//! Mounts for the tests of other modules.

use super::*;

/// A mount that cannot be called.
pub(crate) fn mount(name: &str, base: &str) -> Mount {
    Mount::plain(MountName::new(name).unwrap(), base, Limits::default())
}
