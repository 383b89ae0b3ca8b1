//! Reads: answers and errors of providers, cached answers, and cancelled requests.

mod cache;
mod cancellation;
mod parts;
mod provider_errors;
