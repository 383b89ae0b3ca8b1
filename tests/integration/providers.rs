//! The real providers of `plugins/` in the real binary, over real data. Tests compare the answers with the output of other
//! programs over the same files. The default limits of belljar must be enough for the providers.

mod calendar;
mod files;
mod git;
mod images;
mod logs;
mod mail;
mod pdf;
mod postgres;
mod sqlite;
pub(crate) mod support;
mod system;
mod tables;
mod tools;
mod web;
