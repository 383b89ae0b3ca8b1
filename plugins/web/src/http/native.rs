//! Outside of a sandbox there are no grants, so every request is denied. Tests use a recording instead.

use std::time::Duration;

use super::{Failure, Request, Response, Upstream};

/// Denies every request.
#[derive(Debug)]
struct DenyAll;

/// The implementation of [`Upstream`] outside of a sandbox.
pub(crate) fn upstream() -> Box<dyn Upstream> {
    Box::new(DenyAll)
}

impl Upstream for DenyAll {
    fn exchange(&self, requests: &[Request], _within: Option<Duration>) -> Vec<Result<Response, Failure>> {
        requests.iter().map(|_| Err(Failure::Denied)).collect()
    }
}
