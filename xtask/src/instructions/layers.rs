//! What each layer of a read costs, from the calls that callgrind counted. The figures are for people; nothing compares them.

use std::collections::BTreeMap;
use std::fmt::Write as _;

use super::callgrind::{Dump, median};

/// A table: layers, and the paths that have them.
struct Table {
    /// The layers in their order, each with the function that does its work. A layer contains no other one, but [`INSIDE`] has
    /// those that lie inside the layer before them.
    layers: &'static [(&'static str, &'static str)],
    paths: &'static [&'static str],
}

/// The layers of the process that serves clients.
const FRONT: Table = Table {
    layers: &[
        ("parse", "belljar::mcp::direct::DirectRequest::parse"),
        ("know the caller", "belljar::mcp::handler::Handler::request_context"),
        ("route", "belljar::gateway::route::<impl belljar::gateway::pipeline::Gateway>::route::{{closure}}"),
        ("authorize", "belljar::policy::live::Policy::authorize"),
        ("admit", "belljar::limits::admit::Admission::admit::{{closure}}"),
        ("execute", "belljar::sandbox::executor::Executor::execute::{{closure}}"),
        ("check", "belljar::gateway::pipeline::Gateway::check_reply"),
        ("encode", "belljar::mcp::encode_reading::answer"),
        ("record", "belljar::telemetry::sink::Sink::record"),
    ],
    paths: &["stdio, 1 KiB", "http, 1 KiB", "stdio, 1 KiB, in a worker"],
};

/// The layers of a worker.
const WORKER: Table = Table {
    layers: &[
        ("receive", "belljar::sandbox::worker::frame::MessageReader::fill::{{closure}}"),
        ("decode", "postcard::de::from_bytes"),
        ("execute", "belljar::sandbox::local::Sandbox::call_with::{{closure}}"),
        ("answer", "belljar::sandbox::worker::frame::MessageSender::send_sized"),
    ],
    paths: &["in the worker, 1 KiB"],
};

/// Layers whose cost is a part of the cost of the layer before.
const INSIDE: [&str; 1] = ["authorize"];

/// Tables of the layers: the instructions of each, and its share of the whole read. `counted` has the dumps of each path.
pub(super) fn tables(counted: &BTreeMap<String, Vec<Dump>>) -> String {
    [FRONT, WORKER].map(|table| table.filled(counted)).join("\n\n")
}

impl Table {
    fn filled(&self, counted: &BTreeMap<String, Vec<Dump>>) -> String {
        let mut table = format!("{:<20}", "layer, instructions");
        for path in self.paths {
            let _ = write!(table, " {path:>25}");
        }
        for name in self.layers.iter().map(|(name, _)| *name).chain(["the rest", "all"]) {
            let shown = if INSIDE.contains(&name) { format!("  {name}") } else { name.to_owned() };
            let _ = write!(table, "\n{shown:<20}");
            for path in self.paths {
                let dumps = counted.get(*path).map(Vec::as_slice).unwrap_or_default();
                let of =
                    |function: &str| median(dumps.iter().map(|dump| dump.calls.get(function).copied().unwrap_or(0)));
                let all = median(dumps.iter().map(|dump| dump.program + dump.library));
                let own = match self.layers.iter().find(|(layer, _)| *layer == name) {
                    Some((_, function)) => of(function),
                    None if name == "all" => all,
                    None => {
                        let outer = self.layers.iter().filter(|(layer, _)| !INSIDE.contains(layer));
                        all.saturating_sub(outer.map(|(_, function)| of(function)).sum())
                    }
                };
                let share = own * 1000 / all.max(1);
                let _ = write!(table, " {own:>16} {:>5}.{} %", share / 10, share % 10);
            }
        }
        table
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_rest_is_what_no_layer_has() {
        let calls = [("belljar::policy::live::Policy::authorize", 30), (FRONT.layers[0].1, 200), ("other", 7)];
        let calls = calls.map(|(function, cost)| (function.to_owned(), cost)).into();
        let dump = Dump { title: FRONT.paths[2].to_owned(), thread: 1, program: 900, library: 100, calls };
        let table = FRONT.filled(&[(dump.title.clone(), vec![dump])].into());
        let row = |name: &str| table.lines().find(|line| line.trim_start().starts_with(name)).unwrap().to_owned();
        for (name, expected) in
            [("parse", "200    20.0 %"), ("authorize", "30     3.0 %"), ("the rest", "800    80.0 %")]
        {
            assert!(row(name).ends_with(expected), "{table}");
        }
    }
}
