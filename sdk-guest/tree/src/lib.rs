//! The granted directories of a provider as one tree of files: the visible files, the order of the list, and revisions.
//!
//! Works with paths and metadata; of contents, it only reads parts. A path is relative, decoded, without `.` and `..`, and
//! `""` is the top. With several grants, the top has one directory for each, named after its guest path. Patterns in the
//! syntax of `.gitignore` leave files out. Names that begin with a dot are left out by default.
//!
//! ```
//! use belljar_guest::{Error, Page, Resource, Result, reference};
//! use belljar_tree::{Kind, Step, Tree, Walk};
//!
//! /// A page of all pictures.
//! fn pictures(tree: &Tree, cursor: Option<&str>) -> Result<Page> {
//!     let start = cursor.map(reference::decode).transpose()?.unwrap_or_default();
//!     let mut walk = Walk::new(tree, start, 1000).only(|name| name.ends_with(".png"));
//!     let mut found = Vec::new();
//!     loop {
//!         match walk.next()? {
//!             Step::File(path) => found.push(Resource::new(reference::encode(&path))),
//!             Step::Paused(position) => return Ok(Page::new(found).next_cursor(reference::encode(&position))),
//!             Step::End => return Ok(Page::new(found)),
//!         }
//!     }
//! }
//! ```

mod below;
mod complete;
mod contains;
mod escape;
mod ignore;
mod part;
mod revision;
mod tree;
mod walk;

pub use below::{Below, Start};
pub use complete::complete;
pub use contains::contains;
pub use part::{MAX_PART, Seekable, read_part};
pub use revision::{Bounds, list_revision};
pub use tree::{
    Directory, Entry, File, Kind, Meta, Path, Smallest, Tree, granted, granted_paths, join, name, smallest,
};
pub use walk::{Step, Walk};

/// The longest reference that the host accepts, in bytes. Resources with longer references need not be listed.
pub const MAX_REFERENCE_BYTES: usize = 2 * 1024;
