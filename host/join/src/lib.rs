//! Joins one MCP client to the belljar that serves all clients of a user. A process that joins passes lines on, and has no
//! engine. When that belljar ends, it connects to the next one, and the client goes on.
//!
//! The program `belljar-join` is this crate alone, so that each client costs little memory. `belljar serve` uses the
//! crate too, if that program is not installed beside it.

mod conversation;
mod greeting;
mod head;
mod lend;
mod lines;
mod location;
mod pump;
mod socket_files;
mod successor;

pub use conversation::{READING_TOOLS, SHUTTING_DOWN, is_shutting_down, refusal};
pub use greeting::{Greeting, JoinRefusal, PROTOCOL};
pub use head::client_answer_id;
pub use lend::DRAIN;
pub use location::{ConfigLocation, FILE, PlaceFile, is_private, place_files, real, state_home, variable};
pub use pump::serve_client;
pub use socket_files::{Instance, SocketFiles};
