//! The limits of one call, of a mount, and of the whole process.

mod call_limits;
mod concurrency;
mod host_memory;
