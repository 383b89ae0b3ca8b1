//! The one failure of a shared store.

/// The store cannot be asked now.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct StoreDown;
