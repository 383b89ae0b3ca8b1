//! What each layer of a read costs, from the calls that callgrind counted. The figures are for people; nothing compares them.

use std::collections::BTreeMap;
use std::fmt::Write as _;
use std::fs;
use std::path::Path;

use anyhow::{Context as _, Result};

/// The layers of a read in their order, each with the function that does its work. A layer contains no other one, but
/// [`INSIDE`] has those that lie inside the layer before them.
const LAYERS: [(&str, &str); 9] = [
    ("parse", "belljar::mcp::stateless::StatelessRequest::parse"),
    ("know the caller", "belljar::mcp::handler::Handler::request_context"),
    ("route", "belljar::gateway::route::<impl belljar::gateway::pipeline::Gateway>::route::{{closure}}"),
    ("authorize", "belljar::policy::live::Policy::authorize"),
    ("admit", "belljar::limits::admit::Admission::admit::{{closure}}"),
    ("execute", "belljar::sandbox::executor::Executor::execute::{{closure}}"),
    ("check", "belljar::gateway::pipeline::Gateway::check_reply"),
    ("encode", "belljar::mcp::encode_reading::answer"),
    ("record", "belljar::telemetry::sink::Sink::record"),
];

/// Layers whose cost is a part of the cost of the layer before.
const INSIDE: [&str; 1] = ["authorize"];

/// The paths whose layers are shown.
const PATHS: [&str; 2] = ["stdio, 1 KiB", "http, 1 KiB"];

/// A table of the layers: the instructions of each, and its share of the whole read.
pub(super) fn table(dumps: &Path) -> Result<String> {
    let mut costs: BTreeMap<(&str, &str), Vec<u64>> = BTreeMap::new();
    for entry in fs::read_dir(dumps)? {
        let path = entry?.path();
        let text = fs::read_to_string(&path).with_context(|| path.display().to_string())?;
        let Some(title) = PATHS.into_iter().find(|title| is_of(&text, title)) else { continue };
        for (name, cost) in layers(&text) {
            costs.entry((title, name)).or_default().push(cost);
        }
    }
    Ok(written(&costs))
}

/// True if a dump is one of the first thread for this path.
fn is_of(text: &str, title: &str) -> bool {
    let is_titled = text.lines().any(|line| line.strip_prefix("desc: Trigger: Client Request: ") == Some(title));
    is_titled && text.lines().any(|line| line.trim_end() == "thread: 1")
}

/// The cost of each layer, and of all.
fn layers(text: &str) -> Vec<(&'static str, u64)> {
    let all = text.lines().find_map(|line| line.strip_prefix("summary: ")?.trim().parse().ok());
    let mut found: Vec<_> = LAYERS.iter().map(|(name, _)| (*name, 0)).chain([("all", all.unwrap_or(0))]).collect();
    let (mut called, mut is_call) = (None, false);
    for line in text.lines() {
        if let Some(function) = line.strip_prefix("cfn=") {
            called = LAYERS.iter().position(|(_, name)| *name == function);
        } else if line.starts_with("calls=") {
            is_call = true;
        } else if std::mem::take(&mut is_call)
            && let Some((_, sum)) = called.and_then(|layer| found.get_mut(layer))
        {
            *sum += line.split_whitespace().nth(1).and_then(|cost| cost.parse::<u64>().ok()).unwrap_or_default();
        }
    }
    found
}

fn written(costs: &BTreeMap<(&str, &str), Vec<u64>>) -> String {
    let cost = |path: &str, layer: &str| {
        let mut all = costs.get(&(path, layer)).cloned().unwrap_or_default();
        all.sort_unstable();
        all.get(all.len() / 2).copied().unwrap_or_default()
    };
    let mut table = format!("{:<20}", "layer, instructions");
    for path in PATHS {
        let _ = write!(table, " {path:>20}");
    }
    let names = LAYERS.iter().map(|(name, _)| *name).chain(["the rest", "all"]);
    for name in names {
        let _ = write!(table, "\n{:<20}", if INSIDE.contains(&name) { format!("  {name}") } else { name.to_owned() });
        for path in PATHS {
            let all = cost(path, "all");
            let parts: u64 =
                LAYERS.iter().filter(|(name, _)| !INSIDE.contains(name)).map(|(name, _)| cost(path, name)).sum();
            let own = if name == "the rest" { all.saturating_sub(parts) } else { cost(path, name) };
            let share = own * 1000 / all.max(1);
            let _ = write!(table, " {own:>11} {:>5}.{} %", share / 10, share % 10);
        }
    }
    table
}

#[cfg(test)]
mod tests {
    use super::*;

    const DUMP: &str = "thread: 1
desc: Trigger: Client Request: http, 1 KiB
summary: 1000
fn=a
10 20
cfn=belljar::policy::live::Policy::authorize
calls=2 3280
12 100
cfn=belljar::policy::live::Policy::other
calls=1 3280
12 7
fn=b
cfn=belljar::policy::live::Policy::authorize
calls=1 3280
12 30
13 5
";

    #[test]
    fn all_calls_of_a_layer_are_summed() {
        assert!(is_of(DUMP, "http, 1 KiB") && !is_of(DUMP, "http, 1"));
        let found = layers(DUMP);
        assert_eq!(found.iter().find(|(name, _)| *name == "authorize"), Some(&("authorize", 130)));
        assert_eq!(found.iter().map(|(_, cost)| cost).sum::<u64>(), 1130);
    }
}
