//! What a reference stands for: a file, and behind it what of the file.

use belljar_guest::Result;
use belljar_tree::{Meta, Tree};

use crate::source;

/// What follows a table for its schema.
pub(crate) const SCHEMA: &str = "schema";

/// A file, and what of it.
#[derive(Debug)]
pub(crate) struct Place {
    pub(crate) path: String,
    pub(crate) meta: Meta,
    /// The segments behind the file, decoded.
    pub(crate) inside: Vec<String>,
}

/// The place that a reference without its query stands for.
pub(crate) fn find(tree: &Tree, encoded: &str) -> Result<Place> {
    let (path, meta, inside) = tree.find(encoded, source::is_served)?;
    Ok(Place { path, meta, inside })
}
