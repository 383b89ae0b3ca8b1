//! Which ids the hostile table must have, and which attacks have no row, each with the reason.

use crate::row::Row;

/// The number of attacks in each class of the containment table.
const CLASSES: &[(&str, usize)] = &[
    ("CPU", 12),
    ("BLK", 12),
    ("MEM", 23),
    ("FS", 23),
    ("NET", 22),
    ("SEC", 16),
    ("CAT", 15),
    ("RES", 9),
    ("LIF", 17),
    ("MCP", 22),
    ("XPL", 12),
    ("ADV", 10),
    ("INF", 9),
    ("ASK", 19),
    ("AUD", 1),
    ("SKILL", 18),
    ("TOOL", 54),
    ("PROMPT", 8),
    ("VIEW", 6),
    ("PIC", 7),
    ("SYS", 8),
];

/// Further ids: attacks by many clients, and by one person on another.
const FURTHER: [&str; 4] = ["MCP-30", "MCP-31", "MCP-32", "MCP-33"];

/// The attacks without a row: the id, and the reason.
pub(crate) const ABSENT: &[(&str, &str)] = &[
    (
        "XPL-07",
        "not promised: a guest has an exact clock, so it can measure how busy other mounts keep the host; this limit is documented",
    ),
    ("XPL-09", "needs a host function that panics: none is known, and belljar would need one only for this test"),
];

/// The ids of the classes that have no row and are not in [`ABSENT`].
pub(crate) fn missing(rows: &[Row]) -> Vec<String> {
    let ids = CLASSES.iter().flat_map(|(class, count)| (1..=*count).map(move |n| format!("{class}-{n:02}")));
    let is_known = |id: &String| rows.iter().any(|row| row.id == id) || ABSENT.iter().any(|(absent, _)| absent == id);
    ids.chain(FURTHER.map(str::to_owned)).filter(|id| !is_known(id)).collect()
}
