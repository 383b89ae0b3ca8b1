//! Splits a reference into the path of a file and the segments after it.

use belljar_guest::Result;
use belljar_tree::{Meta, Tree};

use crate::source;

/// The last segment of the reference of a schema.
pub(crate) const SCHEMA: &str = "schema";

/// A file and the segments after it.
#[derive(Debug)]
pub(crate) struct Place {
    pub(crate) path: String,
    pub(crate) meta: Meta,
    /// The segments after the file, decoded.
    pub(crate) inside: Vec<String>,
}

/// The place that `encoded` names: a reference without its query component.
pub(crate) fn find(tree: &Tree, encoded: &str) -> Result<Place> {
    let (path, meta, inside) = tree.find(encoded, source::is_served)?;
    Ok(Place { path, meta, inside })
}
