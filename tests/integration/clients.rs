//! Real MCP clients against the real binary.
//!
//! Each client lists all resources and templates, and reads text, a blob, a templated resource, and a resource that does not
//! exist. Each test runs over stdio and over HTTP, with each protocol version that the client supports. The expected values are
//! exact: a test fails if the client sees fewer, more or other entries.

mod consent;
pub(crate) mod expectations;
mod matrix;
mod primitives;
pub(crate) mod programs;
mod subscriptions;
mod tokens;
mod tools;
mod traces;
mod web;
