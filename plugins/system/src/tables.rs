//! Writes the facts of a part as a table for people.

use serde_json::Value;

use crate::markdown::{bytes, cell, escaped, percent, seconds, table};
use crate::part::Part;

/// Writes one value as a cell.
type Column = (&'static str, fn(&Value) -> String);

/// The facts of a part as Markdown.
pub(crate) fn text(part: Part, facts: &Value) -> String {
    let body = match part {
        Part::Load => load(facts),
        Part::Memory => memory(facts),
        Part::Disks => disks(facts),
        Part::Processes => processes(facts),
        Part::Services => rows(
            &facts["services"],
            &[
                ("service", |row| cell(&row["name"])),
                ("group", |row| cell(&row["group"])),
                ("memory", |row| bytes(&row["memory"])),
                ("cpu", |row| seconds(&row["cpu_seconds"])),
                ("processes", |row| cell(&row["processes"])),
            ],
        ),
        Part::Sensors => rows(
            &facts["sensors"],
            &[
                ("chip", |row| cell(&row["chip"])),
                ("sensor", |row| cell(&row["name"])),
                ("value", |row| format!("{} {}", cell(&row["value"]), cell(&row["unit"]))),
                ("high", |row| cell(&row["high"])),
                ("critical", |row| cell(&row["critical"])),
            ],
        ),
        Part::Network => rows(
            &facts["interfaces"],
            &[
                ("interface", |row| cell(&row["name"])),
                ("received", |row| bytes(&row["received_bytes"])),
                ("sent", |row| bytes(&row["sent_bytes"])),
                ("packets in", |row| cell(&row["received_packets"])),
                ("packets out", |row| cell(&row["sent_packets"])),
                ("errors", |row| sum(&row["received_errors"], &row["sent_errors"])),
                ("dropped", |row| sum(&row["received_dropped"], &row["sent_dropped"])),
            ],
        ),
        Part::Containers => rows(
            &facts["containers"],
            &[
                ("container", |row| cell(&row["id"])),
                ("runtime", |row| cell(&row["runtime"])),
                ("memory", |row| bytes(&row["memory"])),
                ("cpu", |row| seconds(&row["cpu_seconds"])),
                ("processes", |row| cell(&row["processes"])),
            ],
        ),
    };
    format!("# {}\n\n{body}{}\nas of {}\n", part.title(), notes(facts), cell(&facts["at"]))
}

/// What the table lacks.
fn notes(facts: &Value) -> String {
    let mut notes = String::new();
    if facts["available"] == false {
        notes += "\nthis system has no cgroup v2, so nothing is known\n";
    }
    if let Some(left_out) = facts["left_out"].as_u64().filter(|count| *count > 0) {
        notes += &format!("\n{left_out} more are left out\n");
    }
    notes
}

fn rows(list: &Value, columns: &[Column]) -> String {
    let names: Vec<&str> = columns.iter().map(|(name, _)| *name).collect();
    let row = |value: &Value| columns.iter().map(|(_, of)| of(value)).collect();
    table(&names, list.as_array().into_iter().flatten().map(row))
}

fn load(facts: &Value) -> String {
    let of = |name: &str, value: String| vec![name.to_owned(), value];
    let mut lines = vec![
        of("load (1, 5, 15 minutes)", cell(&facts["load"])),
        of("processors", cell(&facts["processors"])),
        of("up", seconds(&facts["uptime_seconds"])),
        of("threads", format!("{}, {} running", cell(&facts["threads"]), cell(&facts["threads_running"]))),
    ];
    for what in ["cpu", "memory", "io"] {
        if let Some(stall) = facts.pointer(&format!("/pressure/{what}/some")) {
            let share = format!("{} %, {} %", cell(&stall["avg10"]), cell(&stall["avg60"]));
            lines.push(of(&format!("some work waits for {what} (10, 60 seconds)"), share));
        }
    }
    table(&["what", "value"], lines)
}

fn memory(facts: &Value) -> String {
    let names = [
        ("total", "total"),
        ("available", "available"),
        ("free", "free"),
        ("cached", "cached"),
        ("buffers", "buffers"),
        ("shared", "shared"),
        ("kernel", "kernel"),
        ("waiting to be written", "waiting_to_be_written"),
        ("swap, total", "swap_total"),
        ("swap, free", "swap_free"),
    ];
    table(&["what", "size"], names.map(|(name, key)| vec![name.to_owned(), bytes(&facts[key])]))
}

fn disks(facts: &Value) -> String {
    let known = rows(
        &facts["disks"],
        &[
            ("mount", |row| cell(&row["mount"])),
            ("type", |row| cell(&row["type"])),
            ("size", |row| bytes(&row["total"])),
            ("used", |row| bytes(&row["used"])),
            ("free", |row| bytes(&row["available"])),
            ("use", used),
            ("read-only", |row| if row["read_only"] == true { "yes".to_owned() } else { String::new() }),
        ],
    );
    match facts["not_asked"].as_array() {
        Some(others) if !others.is_empty() => {
            let line =
                |one: &Value| format!("- {} ({}): {}\n", cell(&one["mount"]), cell(&one["type"]), cell(&one["why"]));
            format!("{known}\nWithout figures:\n\n{}", others.iter().map(line).collect::<String>())
        }
        _ => known,
    }
}

/// The use of a file system in percent, of what programs without privileges can have.
pub(crate) fn used(row: &Value) -> String {
    let (used, free) = (row["used"].as_f64(), row["available"].as_f64());
    percent(used, used.zip(free).map(|(used, free)| used + free))
}

fn processes(facts: &Value) -> String {
    let mut columns: Vec<Column> = vec![
        ("pid", |row| cell(&row["pid"])),
        ("name", |row| cell(&row["name"])),
        ("state", |row| cell(&row["state"])),
        ("user", |row| cell(&row["user"])),
        ("threads", |row| cell(&row["threads"])),
        ("memory", |row| bytes(&row["memory"])),
        ("cpu", |row| seconds(&row["cpu_seconds"])),
        ("started", |row| cell(&row["started"])),
    ];
    let has_commands = facts["processes"].as_array().into_iter().flatten().any(|row| row.get("command").is_some());
    if has_commands {
        columns.push(("command", |row| {
            let cut = if row["command_cut"] == true { " …" } else { "" };
            cell(&row["command"]) + cut
        }));
    }
    let shown = facts["processes"].as_array().map_or(0, Vec::len);
    let total =
        format!("\n{shown} of {} matching processes, {} in all\n", cell(&facts["matching"]), cell(&facts["count"]));
    rows(&facts["processes"], &columns) + &total
}

fn sum(one: &Value, other: &Value) -> String {
    match (one.as_u64(), other.as_u64()) {
        (Some(one), Some(other)) => escaped(&one.saturating_add(other).to_string()),
        _ => String::new(),
    }
}
