//! Bodies that are left out of a result and written into its message when it is encoded.

use std::sync::{Mutex, PoisonError};

use super::bodies::{defer, encode};
use crate::model::Body;

/// The bodies that a result lacks, in their order.
#[derive(Default)]
pub(super) struct DeferredBodies(Mutex<Vec<Body>>);

impl DeferredBodies {
    /// The text for `body` in a result: a placeholder if `deferred` takes the body, else the encoded body.
    pub(super) fn text_for(deferred: Option<&Self>, body: Body) -> String {
        match deferred {
            Some(Self(bodies)) => defer(body, &mut bodies.lock().unwrap_or_else(PoisonError::into_inner)),
            None => encode(body),
        }
    }

    /// All bodies, in their order.
    pub(super) fn into_bodies(self) -> Vec<Body> {
        self.0.into_inner().unwrap_or_else(PoisonError::into_inner)
    }
}
