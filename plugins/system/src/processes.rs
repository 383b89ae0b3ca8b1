//! Selects and sorts processes.

use std::cmp::{Ordering, Reverse};

use serde_json::Value;

use crate::query::{Query, Sort};

/// Keeps the wanted processes, in the wanted order. Adds how many match.
pub(crate) fn select(facts: &mut Value, query: &Query) {
    let Some(list) = facts.get_mut("processes").and_then(Value::as_array_mut) else { return };
    list.retain(|process| query.name.is_empty() || name(process).to_lowercase().contains(&query.name));
    let matching = list.len();
    match query.sort {
        Sort::Memory => list.sort_by_key(|process| Reverse(process["memory"].as_u64())),
        Sort::Cpu => list.sort_by(|one, other| number(other).partial_cmp(&number(one)).unwrap_or(Ordering::Equal)),
        Sort::Name => list.sort_by(|one, other| name(one).cmp(name(other))),
    }
    list.truncate(query.limit);
    facts["matching"] = matching.into();
}

/// The names of all processes, each once.
pub(crate) fn names(facts: &Value) -> Vec<String> {
    let list = facts["processes"].as_array();
    let mut names: Vec<String> = list.into_iter().flatten().map(|process| name(process).to_owned()).collect();
    names.sort_unstable();
    names.dedup();
    names
}

fn name(process: &Value) -> &str {
    process["name"].as_str().unwrap_or_default()
}

fn number(process: &Value) -> f64 {
    process["cpu_seconds"].as_f64().unwrap_or_default()
}
