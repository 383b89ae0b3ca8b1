//! The mounts that exist, and the mount that a URI belongs to.
//!
//! Knows names, bases and states. Must not know MCP, nor call a guest: the gateway fetches listings, and
//! `catalog::listing` checks their entries.

mod cached_entries;
mod cached_listing;
mod current;
mod defined;
mod definitions;
pub mod listing;
mod listing_memory;
pub mod loader;
pub mod mount;
mod mount_cache;
mod mount_key;
mod notice;
mod quarantine;
pub mod skills;
mod snapshot;
mod unserved;
pub mod watch;

pub use cached_entries::{EntryVerdict, ProviderPage, ServedMount};
pub use cached_listing::CachedListing;
pub use current::Catalog;
pub use defined::Defined;
pub use definitions::CachedDefinitions;
pub use listing_memory::ListingMemory;
pub use loader::{MountComponent, read_components};
pub use mount::Mount;
pub use mount_cache::{Listings, MountCache, MountCaches};
pub use mount_key::MountKey;
pub use notice::Notice;
pub use quarantine::QuarantinedMount;
pub use snapshot::{KnownOwner, KnownPlace, Snapshot};
pub use unserved::{CompilingMount, RefusedMount, UnservedMount, UnservedReason};
