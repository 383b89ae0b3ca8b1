//! What all tests use.

pub(crate) mod program;
pub(crate) mod registry;
pub(crate) mod samples;
pub(crate) mod server;
