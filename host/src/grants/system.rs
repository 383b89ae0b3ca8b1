//! The grant `system`: facts about this machine, read-only. belljar collects them, and the guest sees files in memory
//! below `/system`: `load.json`, `memory.json` and so on, one for each granted part.
//!
//! The guest never gets a file of `/proc` or `/sys`. belljar reads a fixed list of them (`load` to `containers`), keeps what
//! it made for a second (`snapshots`), and serves it to all mounts. No code reads the environment of a process.

mod capabilities;
mod cgroups;
mod config;
mod containers;
mod directory;
mod disks;
mod editor;
mod error;
mod front_directory;
mod kind;
mod load;
mod memory;
mod name;
mod network;
mod parts;
mod processes;
mod root;
mod sensors;
mod services;
mod snapshots;

pub use capabilities::drop_capabilities;
pub use config::SystemConfig;
pub use editor::cure_of_file;
pub use error::SystemGrantError;
pub use kind::SystemMountState;
pub use name::System;

#[cfg(test)]
mod tests;
