//! Tools for models. Many clients show a model the tools of a server, but never its resources.
//!
//! The tools list, read and search resources through the gateway, under the same limits, consent and audit as other
//! requests. A result fits into a model's context window. A failure that a model can correct is a tool result with
//! `isError`; a call of an unknown tool is a JSON-RPC error.
//!
//! A result is text without `structuredContent`, so a tool has no output schema. A client that gets both forms shows
//! its model one of them, which must then be complete, or both, which costs twice the tokens. Programs use
//! `resources/list` and `resources/read`. The `_meta` of a failed result contains the data of the error.

mod arguments;
mod below;
mod call;
mod definition;
mod entry;
mod list;
mod mount;
mod page;
pub mod pointer;
pub mod ranges;
mod read;
mod search;

pub(super) use call::{call, definitions, failed, is_own};
