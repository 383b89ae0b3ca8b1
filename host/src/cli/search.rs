//! `belljar search`: looks for components in the indexes of the configuration.

use std::fmt::Write as _;
use std::process::ExitCode;

use belljar_fetch_protocol::{FoundComponent, SearchResult};
use clap::Args;
use serde_json::{Value, json};

use super::{output, table};
use crate::config::IndexConfig;
use crate::model::{command, text};
use crate::server::failure::Failure;
use crate::server::fetcher::Fetcher;
use crate::server::location::LocationArgs;
use crate::server::{configuration, log};

/// The help of `search`.
pub(super) const HELP: &str = "Examples:
  belljar search tides
  belljar search tides --json

It looks in the indexes under [[search.indexes]] of the configuration, and nowhere else. An index only
proposes: `belljar add` checks what it fetches. docs/guide/registries.md explains the kinds of indexes.";

/// What to do without an index.
const NO_INDEX: &str = "no index is configured, and there is no central one of components for belljar; add one to the configuration, such as:
[[search.indexes]]
json = \"https://acme.example/components.json\"   # a list that somebody keeps

[[search.indexes]]
oci = \"registry.acme.example/tools\"   # a registry that lists its repositories

[[search.indexes]]
wasm-directory = \"https://api.wasm.directory\"   # components of every kind";

/// The options of `search`.
#[derive(Args)]
pub(super) struct SearchArgs {
    #[command(flatten)]
    pub(super) at: LocationArgs,
    /// The word to look for.
    #[arg(value_name = "WORD")]
    word: String,
    /// Print JSON.
    #[arg(long)]
    json: bool,
}

/// The answer of one index.
struct Answer {
    index: String,
    result: Result<SearchResult, String>,
}

/// Searches each index. The exit code is 1 if nothing is found, or an index cannot be asked.
pub(super) fn run(args: &SearchArgs) -> Result<ExitCode, Failure> {
    let SearchArgs { at, word, json: as_json } = args;
    log::start("warn");
    let config = configuration::file(at)?;
    if config.search.is_empty() {
        return Err(Failure::Failed(NO_INDEX.to_owned()));
    }
    let fetcher = Fetcher::new(&config)?;
    let answer = |index: &IndexConfig| {
        let result = fetcher.search(index, word).map_err(|error| error.to_string());
        Answer { index: name(index), result }
    };
    let answers: Vec<Answer> = config.search.iter().map(answer).collect();
    match *as_json {
        true => output::print_json(&json!({ "indexes": answers.iter().map(Answer::to_json).collect::<Vec<_>>() }))?,
        false => table::print(&to_text(&answers, word))?,
    }
    let is_found = answers.iter().any(|answer| answer.result.as_ref().is_ok_and(|result| !result.found.is_empty()));
    let is_complete = answers.iter().all(|answer| answer.result.is_ok());
    Ok(if is_found && is_complete { ExitCode::SUCCESS } else { ExitCode::FAILURE })
}

/// The name of an index: what the configuration says.
fn name(index: &IndexConfig) -> String {
    match index {
        IndexConfig::File(path) => path.display().to_string(),
        IndexConfig::Json(at)
        | IndexConfig::Oci(at)
        | IndexConfig::WasmDirectory(at)
        | IndexConfig::McpRegistry(at) => at.clone(),
    }
}

/// The command that adds a component.
fn add(found: &FoundComponent) -> String {
    command::line(["add", &found.reference])
}

impl Answer {
    fn to_json(&self) -> Value {
        let found = |one: &FoundComponent| {
            json!({
                "name": one.name, "version": one.version, "description": one.description, "reference": one.reference,
                "add": add(one),
            })
        };
        let result = self.result.as_ref().ok();
        json!({
            "index": self.index, "error": self.result.as_ref().err(),
            "found": result.map(|result| result.found.iter().map(found).collect::<Vec<_>>()),
            "notes": result.map(|result| &result.notes),
        })
    }
}

fn to_text(answers: &[Answer], word: &str) -> String {
    let mut out = String::new();
    for Answer { index, result } in answers {
        let index = text::excerpt(index, 200);
        let result = match result {
            Ok(result) => result,
            Err(error) => {
                let _ = writeln!(out, "{}  \"{index}\": {}", table::styled(table::BAD, "failed"), text::line(error));
                continue;
            }
        };
        for one in &result.found {
            let name = table::styled(table::NAME, text::excerpt(&one.name, 100));
            let version = one.version.as_deref().map(|version| text::excerpt(version, 40)).unwrap_or_default();
            let _ = writeln!(out, "{name}  {version}  {}", table::styled(table::FAINT, text::line(&one.reference)));
            if let Some(description) = &one.description {
                let _ = writeln!(out, "  {}", text::line(description));
            }
            let _ = writeln!(out, "  {}", text::line(&add(one)));
        }
        if result.found.is_empty() {
            let _ = writeln!(out, "\"{index}\" has nothing with \"{}\".", text::excerpt(word, 100));
        }
        for note in &result.notes {
            let _ = writeln!(out, "{}  \"{index}\": {}", table::styled(table::WARN, "note"), text::line(note));
        }
    }
    out
}
