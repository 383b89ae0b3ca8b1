//! Results: what a provider answers that is not its to say, or too much of it.

use crate::expect::bad_output;
use crate::row::{Row, imp};

pub(crate) fn rows() -> Vec<Row> {
    vec![
        imp("RES-01", "an answer claims to be another resource than was asked for")
            .read("spoof/other", bad_output())
            .read("spoof/%252e%252e%2Fwitness%2Fstatic-text", bad_output())
            .read("spoof/belljar:%2F%2Fwitness%2Fstatic-text", bad_output())
            .stopped_by(&["contents-name"]),
    ]
}
