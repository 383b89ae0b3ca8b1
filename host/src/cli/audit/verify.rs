//! `belljar audit verify`: checks the chains of hashes in the record.

use std::path::{Path, PathBuf};
use std::process::ExitCode;

use clap::Args;
use serde_json::{Value, json};

use super::files::{files_of, read};
use crate::cli::output;
use crate::model::text;
use crate::server::failure::Failure;
use crate::server::location::LocationArgs;
use crate::server::log;
use crate::telemetry::{ChainCheck, ChainFault};

/// The help of `audit verify`.
pub(super) const HELP: &str = "Examples:
  belljar audit verify
  belljar audit verify --file audit.jsonl --json

Each belljar process writes a chain of lines: each line has a hash of itself and of the line before. So a changed,
removed or inserted line shows. Not shown are removed lines at the end of a chain, and a record that somebody has
written anew. To notice these, keep the number and the hash of the last line elsewhere.

Exit codes: 0 the chains are whole, 1 something was changed, 2 wrong usage.";

/// Faults that are kept by line. More are only counted.
const MAX_FAULTS: usize = 100;

/// Faults that the text shows.
const SHOWN_FAULTS: usize = 20;

/// The options of `audit verify`.
#[derive(Args)]
pub(super) struct VerifyArgs {
    #[command(flatten)]
    pub(super) at: LocationArgs,
    /// Check this file instead.
    #[arg(long, value_name = "FILE")]
    file: Option<PathBuf>,
    /// Print JSON.
    #[arg(long)]
    json: bool,
}

/// A fault, and where it is.
struct Found {
    file: PathBuf,
    line: u64,
    fault: ChainFault,
}

/// What the check found.
#[derive(Default)]
struct Report {
    check: ChainCheck,
    lines: u64,
    faults: Vec<Found>,
    /// The number of all faults.
    count: usize,
}

/// Checks the record.
pub(super) fn run(args: &VerifyArgs) -> Result<ExitCode, Failure> {
    log::start("warn");
    let mut report = Report::default();
    for file in files_of(args.file.as_deref(), &args.at)? {
        report.read(&file)?;
    }
    match args.json {
        true => output::print_json(&report.to_json())?,
        false => output::print(&report.to_text())?,
    }
    Ok(if report.count == 0 { ExitCode::SUCCESS } else { ExitCode::FAILURE })
}

impl Report {
    fn read(&mut self, file: &Path) -> Result<(), Failure> {
        let mut number = 0;
        read(file, |bytes| {
            (number, self.lines) = (number + 1, self.lines + 1);
            let line = bytes.strip_suffix(b"\n").unwrap_or(bytes);
            let checked = match std::str::from_utf8(line) {
                Ok(line) => self.check.check(line),
                Err(_) => Err(ChainFault::Foreign),
            };
            if let Err(fault) = checked {
                self.count += 1;
                if self.faults.len() < MAX_FAULTS {
                    self.faults.push(Found { file: file.to_owned(), line: number, fault });
                }
            }
            Ok(())
        })
    }

    fn to_json(&self) -> Value {
        let chains = self.check.chains();
        let chains = chains.iter().map(
            |(name, chain)| json!({ "chain": name, "first": chain.first, "last": chain.last, "hash": chain.hash }),
        );
        let faults = self.faults.iter().map(|found| {
            json!({ "file": found.file.display().to_string(), "line": found.line, "fault": found.fault.to_string() })
        });
        json!({
            "whole": self.count == 0, "lines": self.lines, "without_hash": self.check.unsealed(),
            "chains": chains.collect::<Vec<_>>(), "faults": faults.collect::<Vec<_>>(), "fault_count": self.count,
        })
    }

    fn to_text(&self) -> String {
        let mut out = Vec::new();
        let chains = self.check.chains();
        let verdict = match self.count {
            0 => "whole".to_owned(),
            count => format!("NOT whole: {count} faults"),
        };
        out.push(format!("{} lines in {} chains: {verdict}", self.lines, chains.len()));
        for found in self.faults.iter().take(SHOWN_FAULTS) {
            let file = text::excerpt(&found.file.display().to_string(), 400);
            out.push(format!("  {file}:{}: {}", found.line, found.fault));
        }
        if self.count > SHOWN_FAULTS {
            out.push(format!("  and {} more", self.count - SHOWN_FAULTS));
        }
        if self.check.unsealed() > 0 {
            out.push(format!(
                "{} lines at the beginning have no hash: an earlier version of belljar wrote them, or somebody removed it.",
                self.check.unsealed()
            ));
        }
        for (name, chain) in &chains {
            let name = text::excerpt(name, 40);
            let before = match chain.first {
                1 => String::new(),
                first => format!("; the {} lines before are in no file", first - 1),
            };
            let hash = text::excerpt(&chain.hash, 64);
            out.push(format!("chain {name}: last line {}, hash {hash}{before}", chain.last));
        }
        out.join("\n") + "\n"
    }
}
