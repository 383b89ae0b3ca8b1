//! Memory and handles: what a call takes, has the host take, and leaves behind.

use crate::expect::limit;
use crate::row::{Row, imp};

pub(crate) fn rows() -> Vec<Row> {
    vec![
        imp("MEM-01", "a provider takes memory without end, and writes to it")
            .limits("memory = \"8MiB\"")
            .read("grow/64", limit("memory"))
            .stopped_by(&["memory"]),
    ]
}
