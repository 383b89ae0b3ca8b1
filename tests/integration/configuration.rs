//! `belljar.toml`: wrong settings are refused at the start, and changed settings take effect while belljar serves.

pub(crate) mod reload;
mod schema;
mod validation;
