//! Which rows there must be, and which of them are not run, each with the reason.

use crate::row::Row;

/// How many rows each class of the table of promises has.
const CLASSES: &[(&str, usize)] = &[
    ("CPU", 12),
    ("BLK", 11),
    ("MEM", 21),
    ("FS", 19),
    ("NET", 22),
    ("SEC", 7),
    ("CAT", 13),
    ("RES", 9),
    ("LIF", 17),
    ("MCP", 22),
    ("XPL", 11),
    ("ADV", 10),
    ("INF", 8),
    ("ASK", 4),
];

const NEEDS_HTTP: &str = "needs HTTP grants: no mount can reach an upstream yet, every request is refused (NET-01)";
const NEEDS_SECRETS: &str = "needs secrets: there is nothing yet that holds one for a mount";
const NEEDS_AUTH: &str = "needs authentication: only this machine is listened to";
const NEEDS_RELOAD: &str = "needs reloading: mounts are those of the start";

/// Rows that are not run.
pub(crate) const ABSENT: &[(&str, &str)] = &[
    ("BLK-03", NEEDS_HTTP),
    ("BLK-04", NEEDS_HTTP),
    ("BLK-05", NEEDS_HTTP),
    ("BLK-08", NEEDS_HTTP),
    ("BLK-09", NEEDS_HTTP),
    ("MEM-14", NEEDS_HTTP),
    ("MEM-16", NEEDS_HTTP),
    ("NET-06", NEEDS_HTTP),
    ("NET-07", NEEDS_HTTP),
    ("NET-09", NEEDS_HTTP),
    ("NET-11", NEEDS_HTTP),
    ("NET-12", NEEDS_HTTP),
    ("NET-13", NEEDS_HTTP),
    ("NET-14", NEEDS_HTTP),
    ("NET-16", NEEDS_HTTP),
    ("NET-17", NEEDS_HTTP),
    ("NET-18", NEEDS_HTTP),
    ("NET-19", NEEDS_HTTP),
    ("NET-20", NEEDS_HTTP),
    ("NET-21", NEEDS_HTTP),
    ("SEC-02", NEEDS_SECRETS),
    ("SEC-03", NEEDS_SECRETS),
    ("SEC-07", NEEDS_SECRETS),
    ("CAT-11", "needs listings that are kept: today each list is asked for anew, and no client is told of changes"),
    ("LIF-04", "needs the lock of trusted digests; until then the bytes are those that lay there at the start"),
    ("LIF-13", NEEDS_RELOAD),
    ("LIF-14", NEEDS_RELOAD),
    ("MCP-12", NEEDS_AUTH),
    ("MCP-13", NEEDS_AUTH),
    ("MCP-20", "needs subscriptions"),
    ("XPL-07", "not promised: a guest has an exact clock, and what it can tell by it of others is a documented limit"),
    ("XPL-09", "needs a host call that panics: none is known, and one would have to be built into the program"),
    ("ADV-04", NEEDS_HTTP),
    ("INF-04", NEEDS_HTTP),
    ("INF-08", NEEDS_RELOAD),
];

/// Rows that are neither there nor on the list of those that are not.
pub(crate) fn missing(rows: &[Row]) -> Vec<String> {
    let ids = CLASSES.iter().flat_map(|(class, count)| (1..=*count).map(move |n| format!("{class}-{n:02}")));
    let is_known = |id: &String| rows.iter().any(|row| row.id == id) || ABSENT.iter().any(|(absent, _)| absent == id);
    ids.filter(|id| !is_known(id)).collect()
}
