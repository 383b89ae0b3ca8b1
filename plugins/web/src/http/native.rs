//! Outside of a sandbox nothing is granted, and nobody is asked. Tests bring a recording instead.

use std::time::Duration;

use super::{Failure, Request, Response, Upstream};

/// Refuses everything.
#[derive(Debug)]
struct Nobody;

/// What sends requests.
pub(crate) fn upstream() -> Box<dyn Upstream> {
    Box::new(Nobody)
}

impl Upstream for Nobody {
    fn exchange(&self, requests: &[Request], _within: Option<Duration>) -> Vec<Result<Response, Failure>> {
        requests.iter().map(|_| Err(Failure::Denied)).collect()
    }
}
