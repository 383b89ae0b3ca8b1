//! Worker processes: each runs the calls of one mount, or those of all mounts without grants, behind a wall of its own. A
//! guest that breaks out of the engine finds the descriptors of its mount there, and nothing else.
//!
//! The front is belljar's own process. It runs no guest whose mount has a worker. It opens the granted directories,
//! makes the requests of calls, masks secrets, checks answers and writes the record. It believes nothing that a worker
//! says.
//!
//! - [`frame`] is the codec of the socket between both.
//! - [`message`] has the messages.
//! - [`answer_memory`] is the memory through which large bodies go.
//! - [`slot`] is the front's side: it starts a worker when a call needs it, and again after it ended.
//! - [`mount`] sends the calls of a mount there.
//! - [`serve`] is the worker's side, and [`receiving`] has its tasks that receive calls.

mod answer_memory;
#[cfg(feature = "unguarded")]
pub(super) mod attempts;
pub(super) mod frame;
pub mod fuzzing;
pub(super) mod message;
pub(super) mod mount;
pub(super) mod pending;
mod receiving;
pub(super) mod running;
pub(super) mod serve;
pub(super) mod slot;
pub(super) mod starter;
