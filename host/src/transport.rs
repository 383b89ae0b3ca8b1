//! The transports: stdio lines, a local socket, and HTTP. They cap, time and check each message before rmcp parses it.

mod error;
pub mod http;
mod limits;
pub mod local_socket;
mod message;
pub mod stdio;

pub use error::ServeError;
pub use limits::{DRAIN, LAST_ANSWERS_TIME};
