//! The transports: stdio lines and HTTP. They cap, time and check each message before rmcp parses it.

mod error;
pub mod http;
mod limits;
mod message;
pub mod stdio;

pub use error::ServeError;
pub use limits::{DRAIN, LAST_ANSWERS_TIME};
