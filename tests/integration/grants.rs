//! Grants of files, of HTTP origins, of servers, of databases and of facts about the machine: with a grant, without a grant,
//! and attempts to reach more than the grant allows.

pub(crate) mod database;
mod files;
pub(crate) mod http;
mod no_network;
mod oauth;
mod postgres;
pub(crate) mod system;
mod tcp;
