//! Which rows there must be, and which of them are not run, each with the reason.

use crate::row::Row;

/// How many rows each class of the table of promises has.
const CLASSES: &[(&str, usize)] = &[("CPU", 12), ("BLK", 11), ("MEM", 21), ("RES", 9), ("XPL", 11)];

const NEEDS_HTTP: &str = "needs HTTP grants: no mount can reach an upstream yet, every request is refused (NET-01)";

/// Rows that are not run.
pub(crate) const ABSENT: &[(&str, &str)] = &[
    ("BLK-03", NEEDS_HTTP),
    ("BLK-04", NEEDS_HTTP),
    ("BLK-05", NEEDS_HTTP),
    ("BLK-08", NEEDS_HTTP),
    ("BLK-09", NEEDS_HTTP),
    ("MEM-14", NEEDS_HTTP),
    ("MEM-16", NEEDS_HTTP),
    ("XPL-07", "not promised: a guest has an exact clock, and what it can tell by it of others is a documented limit"),
    ("XPL-09", "needs a host call that panics: none is known, and one would have to be built into the program"),
];

/// Rows that are neither there nor on the list of those that are not.
pub(crate) fn missing(rows: &[Row]) -> Vec<String> {
    let ids = CLASSES.iter().flat_map(|(class, count)| (1..=*count).map(move |n| format!("{class}-{n:02}")));
    let is_known = |id: &String| rows.iter().any(|row| row.id == id) || ABSENT.iter().any(|(absent, _)| absent == id);
    ids.filter(|id| !is_known(id)).collect()
}
