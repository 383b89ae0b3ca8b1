//! The grant `env`: environment variables. belljar never passes on its own environment.

mod editor;
mod kind;

pub use kind::Env;
