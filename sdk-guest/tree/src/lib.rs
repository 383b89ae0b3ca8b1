//! The directories that a provider was granted, as one tree of files: what may be seen, in which order it is listed, and
//! by what it is known that something changed.
//!
//! Knows paths and files, and nothing of what is in them. A path is relative, decoded, without `.` and `..`, and `""` is
//! the top; with several grants the top holds one directory for each, named after its guest path. Patterns in the manner
//! of `.gitignore` leave files out; names that begin with a dot are left out to begin with.
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

mod complete;
mod ignore;
mod revision;
mod tree;
mod walk;

pub use complete::complete;
pub use revision::{Bounds, of_list};
pub use tree::{
    Directory, Entry, File, Kind, Meta, Path, Smallest, Tree, granted, granted_paths, join, name, smallest,
};
pub use walk::{Step, Walk};

/// The longest reference that the host takes: what has a longer one need not be listed.
pub const LONGEST_REFERENCE: usize = 2 * 1024;
