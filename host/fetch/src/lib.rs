//! Fetches and verifies components for belljar: from OCI registries, and from HTTPS URLs with a digest.
//!
//! The program `belljar-fetch` handles one request and ends ([`belljar_fetch_protocol`]). It is a program of its own, so that
//! a serving belljar links no client of registries, and so that bytes of strangers are parsed behind a wall of their own.

mod address;
mod artifact;
mod auth;
mod body;
mod component;
mod credentials;
mod digest;
mod directory;
mod download;
mod failure;
mod http;
mod network;
mod output;
mod prune;
mod push;
mod registry;
mod resolve;
mod revoked;
mod run;
mod search;
mod signatures;
mod source;
mod stream;
mod text;
mod upload;
mod url;
mod wall;

pub use run::run;
