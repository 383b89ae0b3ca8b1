//! The reasons why a subscription is refused.

use crate::model::ReadError;

/// The reason why a URI is not watched, or a subscriber is refused.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum SubscribeError {
    /// No mount serves this URI, or it is hidden from the subscriber.
    UnknownUri,
    /// Only scopes are missing. Names all that the subscription needs.
    InsufficientScope(Vec<String>),
    /// Each principal gets other answers from the mount, so belljar cannot poll it for all.
    PerPrincipal,
    /// The given maximum is reached.
    TooMany(usize),
    /// The principal has used up a rate.
    Busy(ReadError),
}
