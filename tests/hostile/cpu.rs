//! Processor time: guests that compute for ever, wherever their code runs.

use crate::expect::limit;
use crate::row::{Row, imp};

/// More than any call here uses, so that its time ends it.
const ENDLESS: &str = "fuel = 1_000_000_000_000";

pub(crate) fn rows() -> Vec<Row> {
    vec![
        imp("CPU-01", "a provider computes for ever in a read")
            .time(400)
            .limits(ENDLESS)
            .read("spin", limit("time"))
            .stopped_by(&["fuel", "time"]),
    ]
}
