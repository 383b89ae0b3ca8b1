//! Grants of files and of HTTP origins: with a grant, without a grant, and attempts to reach more than the grant allows.

mod files;
pub(crate) mod http;
mod no_network;
mod oauth;
