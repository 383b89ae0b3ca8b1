//! The catalog: belljar loads the components of a plugin directory, compiles each one once, and serves it.

mod many_components;
mod older_interface;
