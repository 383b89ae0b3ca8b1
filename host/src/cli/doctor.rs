//! `belljar doctor`: looks for what is wrong with a set-up, and says the cure of each finding. Changes nothing.

mod clients;
mod configuration;
mod finding;
mod machine;

use std::process::ExitCode;

use serde_json::json;

use super::{output, table};
use crate::server::failure::Failure;
use crate::server::location::LocationArgs;
use crate::server::log;
use finding::{FindingState, SetupFinding};

/// The help of `doctor`.
pub(super) const HELP: &str = "Examples:
  belljar doctor
  belljar doctor --config ~/belljar.toml --json

It looks at the kernel, the second wall, directories, disk and clock, the configuration with its
components and paths, the belljar that `belljar up` started, the files of MCP clients, and the
tools of provider's authors. `belljar check` loads every component, and says more of each.";

/// Prints all findings. The exit code is 1 if something does not work.
pub(super) fn run(at: &LocationArgs, is_json: bool) -> Result<ExitCode, Failure> {
    log::start("off");
    let (config, mut all) = configuration::findings(at);
    all.extend(clients::findings());
    all.extend(machine::directories(config.as_ref()));
    all.extend(machine::clock());
    all.extend(machine::tools());
    // Last: it restricts this process.
    all.extend(machine::kernel());
    if is_json {
        let one = |one: &SetupFinding| {
            let state = word(one.state);
            json!({ "area": one.area, "state": state, "what": one.what, "cure": one.cure })
        };
        output::print_json(&json!({
            "version": env!("CARGO_PKG_VERSION"), "findings": all.iter().map(one).collect::<Vec<_>>(),
        }))?;
    } else {
        table::print(&format!("belljar {}\n{}", env!("CARGO_PKG_VERSION"), text_of(&all)))?;
    }
    let is_fine = all.iter().all(|one| one.state != FindingState::Bad);
    Ok(if is_fine { ExitCode::SUCCESS } else { ExitCode::FAILURE })
}

fn word(state: FindingState) -> &'static str {
    match state {
        FindingState::Good => "ok",
        FindingState::Warning => "warning",
        FindingState::Bad => "problem",
    }
}

fn text_of(all: &[SetupFinding]) -> String {
    let width = table::width(all.iter().map(|one| one.area), usize::MAX);
    let style = |state| match state {
        FindingState::Good => table::GOOD,
        FindingState::Warning => table::WARN,
        FindingState::Bad => table::BAD,
    };
    let mut out = String::new();
    for one in all {
        out += &format!(
            "{}  {}  {}\n",
            table::padded(style(one.state), word(one.state), 7),
            table::padded(table::FAINT, one.area, width),
            one.what
        );
        if let Some(cure) = &one.cure {
            out += &format!("{:7}  {:width$}  {}\n", "", "", table::styled(table::NAME, cure));
        }
    }
    let count = |state| all.iter().filter(|one| one.state == state).count();
    let (bad, warnings) = (count(FindingState::Bad), count(FindingState::Warning));
    out + &match (bad, warnings) {
        (0, 0) => "Everything is fine.\n".to_owned(),
        (0, _) => format!("Nothing is broken. Warnings: {warnings}.\n"),
        _ => format!("Problems: {bad}. Warnings: {warnings}.\n"),
    }
}
