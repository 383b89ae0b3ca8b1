//! The grant `view`: what the pages of a mount's tools may do in the browser of a person (MCP Apps).

mod editor;
mod kind;

pub use kind::{View, ViewConfig};
