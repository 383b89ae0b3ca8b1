//! Tests of the server as a process: the compiler process, Landlock, and the shutdown.

pub(crate) mod admin;
pub(crate) mod compiler_process;
mod console;
mod drain;
mod landlock;
mod one_process;
