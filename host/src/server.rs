//! Starts and runs the server: finds and reads the configuration, the keys and the lock, raises the second wall, starts
//! the compiler process and the helper process, follows changes while it serves, and shuts down.
//!
//! The second wall is Landlock plus a filter of system calls around this whole process. The first wall is the sandbox
//! of each call.

pub(crate) mod admin;
pub(crate) mod api_keys;
pub(crate) mod bundle;
pub(crate) mod candidate;
pub(crate) mod compiler_process;
pub(crate) mod configuration;
pub(crate) mod directories;
pub(crate) mod edit;
pub(crate) mod failure;
pub(crate) mod fetcher;
mod file_changes;
mod file_follower;
pub(crate) mod files;
pub(crate) mod front_door;
pub(crate) mod fuel_comparison;
mod huge_pages;
pub(crate) mod inherited;
pub(crate) mod invocation;
mod key_follower;
pub(crate) mod keys;
pub(crate) mod landlock;
pub(crate) mod launcher;
pub(crate) mod listening;
pub(crate) mod location;
pub(crate) mod log;
pub(crate) mod open_files;
mod packet;
pub(crate) mod pins;
pub(crate) mod privileged_helper;
pub(crate) mod processes;
pub(crate) mod publishing;
pub(crate) mod record;
pub(crate) mod record_file;
mod reload;
pub(crate) mod replicas;
pub(crate) mod serve;
pub(crate) mod server_status;
pub(crate) mod shared_socket;
pub(crate) mod shipped;
pub(crate) mod startup;
pub(crate) mod tls_files;
mod tls_follower;
mod trace_exporter;
pub(crate) mod up;
pub(crate) mod worker_process;
#[cfg(profiled)]
mod worker_profile;
mod worker_starter;
pub(crate) mod worker_wall;
