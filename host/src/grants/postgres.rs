//! The grant `postgres`: a connection to a database that is logged in already, and read-only unless the operator says
//! otherwise. The guest never has the password.
//!
//! The guest connects to the host and the port of the server by `wasi:sockets`, and speaks PostgreSQL's protocol (version
//! 3) with any client library, under any user name and without a password. belljar stands between:
//!
//! 1. It connects to the server as `tcp` does: resolves, checks the address, speaks TLS.
//! 2. It logs in with SCRAM-SHA-256 (RFC 7677), which proves that the server knows the password too. It takes no weaker
//!    method.
//! 3. It relays messages, one batch at a time, and parses each: see `relay` and `batch`.
//!
//! # How a connection stays read-only
//!
//! The session begins with `default_transaction_read_only = on`, which the server enforces for every statement. belljar
//! stops what could turn it off (`statement`): it forwards one statement for each message, because it turns simple queries
//! into prepared ones; and only statements that begin with a word of a short list. Statements of transactions stand alone.
//! A function can still change the setting for later transactions. The server reports that before the end of the batch,
//! and belljar ends the connection before it forwards another one.

mod batch;
mod cancel;
mod config;
mod connector;
mod editor;
mod error_response;
#[doc(hidden)]
pub mod fuzzing;
mod kind;
mod login;
mod name;
mod relay;
mod server;
mod startup;
mod statement;
mod wire;

pub use config::PostgresGrantConfig;
pub use kind::PostgresError;
pub use name::Postgres;
