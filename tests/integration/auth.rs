//! Who may use the HTTP endpoint: API keys, tokens, and the front door. What each of them sees, and how often.

mod can;
mod followed_files;
mod front;
mod keys;
mod modes;
pub(crate) mod oauth;
mod principal_secrets;
mod quotas;
mod requests;
mod rules;
mod teams;
