//! The overview: the most important figures of each granted part, with a link to the rest.

use std::fmt::Write as _;
use std::path::Path;

use belljar_guest::{Error, Result};
use serde_json::Value;

use crate::markdown::{bytes, cell, percent, seconds};
use crate::part::{self, Part};
use crate::tables::used;

/// Disks and processes in the overview.
const SHOWN: usize = 5;

pub(crate) fn text(facts: &Path) -> Result<String> {
    let mut text = "# System\n\n".to_owned();
    for part in part::granted(facts)? {
        let line = match part.read(facts) {
            Ok(found) => summary(part, &found),
            // One part that hangs does not hide the others.
            Err(Error::Unavailable(why)) => cell(&why.into()),
            Err(error) => return Err(error),
        };
        let _ = writeln!(text, "- [{}]({}): {line}", part.title(), part.word());
    }
    Ok(text + "\nEach part is JSON; `?format=table` gives a table.\n")
}

fn summary(part: Part, facts: &Value) -> String {
    let count = |key: &str| facts[key].as_array().map_or(0, Vec::len);
    match part {
        Part::Load => format!(
            "{} on {} processors; up {}",
            cell(&facts["load"]),
            cell(&facts["processors"]),
            seconds(&facts["uptime_seconds"])
        ),
        Part::Memory => format!(
            "{} of {} available; swap {} of {} free",
            bytes(&facts["available"]),
            bytes(&facts["total"]),
            bytes(&facts["swap_free"]),
            bytes(&facts["swap_total"])
        ),
        Part::Disks => {
            let mut disks: Vec<&Value> = facts["disks"].as_array().into_iter().flatten().collect();
            let share =
                |disk: &Value| disk["used"].as_f64().unwrap_or_default() / disk["total"].as_f64().unwrap_or(1.0);
            disks.sort_by(|one, other| share(other).total_cmp(&share(one)));
            let of = |disk: &&Value| format!("{} {}", cell(&disk["mount"]), used(disk));
            let fullest: Vec<String> = disks.iter().take(SHOWN).map(of).collect();
            format!("{} file systems; the fullest: {}", disks.len(), fullest.join(", "))
        }
        Part::Processes => {
            // The host lists the largest first.
            let list = facts["processes"].as_array();
            let of = |process: &Value| format!("{} {}", cell(&process["name"]), bytes(&process["memory"]));
            let largest: Vec<String> = list.into_iter().flatten().take(SHOWN).map(of).collect();
            format!("{}; the largest: {}", cell(&facts["count"]), largest.join(", "))
        }
        Part::Services if facts["available"] == false => "unknown: this system has no cgroup v2".to_owned(),
        Part::Containers if facts["available"] == false => "unknown: this system has no cgroup v2".to_owned(),
        Part::Services => format!("{} running", count("services")),
        Part::Containers => format!("{} running", count("containers")),
        Part::Network => format!("{} interfaces", count("interfaces")),
        Part::Sensors => {
            let list = facts["sensors"].as_array().into_iter().flatten();
            let hottest = list.filter(|sensor| sensor["quantity"] == "temperature").max_by(|one, other| {
                let value = |sensor: &Value| sensor["value"].as_f64().unwrap_or_default();
                value(one).total_cmp(&value(other))
            });
            let shown = hottest.map(|one| {
                let hot = one["critical"].as_f64();
                let share = percent(one["value"].as_f64(), hot);
                let of_critical = if share.is_empty() { share } else { format!(", {share} of critical") };
                format!("; the hottest: {} {} °C{of_critical}", cell(&one["name"]), cell(&one["value"]))
            });
            format!("{} values{}", count("sensors"), shown.unwrap_or_default())
        }
    }
}
