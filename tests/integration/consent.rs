//! Consent: the questions that a read may ask a person, and the answers that count.

mod origins;
pub(crate) mod questions;
mod sessions;
