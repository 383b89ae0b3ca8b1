//! Marks of what is valid once: the answered questions.

use std::time::Duration;

use futures_util::future::BoxFuture;

/// The outcome of an attempt to spend.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Spending {
    /// It was not spent before, or this process could not learn that it spent it. It is spent now.
    First,
    /// It was spent before.
    Again,
    /// Nobody knows: the store cannot be reached.
    Unknown,
}

/// Remembers what was spent.
pub trait SpentMarks: Send + Sync {
    /// Spends `number`, which is remembered for `time`. A process asks once for each, and again only after
    /// [`Spending::Unknown`].
    fn spend(&self, number: u128, time: Duration) -> BoxFuture<'_, Spending>;
}
