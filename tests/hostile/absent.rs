//! Which rows there must be, and which of them are not run, each with the reason.

use crate::row::Row;

/// How many rows each class of the table of promises has.
const CLASSES: &[(&str, usize)] = &[
    ("CPU", 12),
    ("BLK", 12),
    ("MEM", 23),
    ("FS", 23),
    ("NET", 22),
    ("SEC", 9),
    ("CAT", 15),
    ("RES", 9),
    ("LIF", 17),
    ("MCP", 22),
    ("XPL", 12),
    ("ADV", 10),
    ("INF", 9),
    ("ASK", 5),
    ("AUD", 1),
];

const NEEDS_AUTH: &str = "needs authentication: only this machine is listened to";

/// Rows that are not run.
pub(crate) const ABSENT: &[(&str, &str)] = &[
    ("MCP-12", NEEDS_AUTH),
    ("MCP-13", NEEDS_AUTH),
    ("XPL-07", "not promised: a guest has an exact clock, and what it can tell by it of others is a documented limit"),
    ("XPL-09", "needs a host call that panics: none is known, and one would have to be built into the program"),
];

/// Rows that are neither there nor on the list of those that are not.
pub(crate) fn missing(rows: &[Row]) -> Vec<String> {
    let ids = CLASSES.iter().flat_map(|(class, count)| (1..=*count).map(move |n| format!("{class}-{n:02}")));
    let is_known = |id: &String| rows.iter().any(|row| row.id == id) || ABSENT.iter().any(|(absent, _)| absent == id);
    ids.filter(|id| !is_known(id)).collect()
}
