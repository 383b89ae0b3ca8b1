//! Access tokens for requests to upstreams (OAuth 2.0): belljar gets them from an authorization server, adds them to the
//! allowed requests of a grant, and masks them. No provider sees one.
//!
//! A grant gets its tokens in one of two ways:
//!
//! - client credentials (RFC 6749, 4.4): belljar proves its own identity with a secret;
//! - a login: a person allows it once (`belljar login`, RFC 8628), and belljar stores the refresh token.

pub mod config;
pub mod device;
pub mod login_file;
pub mod login_state;
pub mod token_server;

mod endpoints;
mod response;

pub(super) mod bearer_request;
pub(super) mod checks;
pub(super) mod editor;
pub mod token_error;
pub(super) mod tokens;
