//! `belljar audit`: filters and sums the record of calls.

mod summary;
mod verify;

use std::fs::File;
use std::io::{BufRead as _, BufReader, IsTerminal as _};
use std::path::{Path, PathBuf};
use std::process::ExitCode;
use std::time::{Duration, SystemTime};

use clap::{Args, Subcommand};
use summary::{RecordLine, Summary};

use super::output;
use crate::config::{Audit, Config};
use crate::model::text;
use crate::server::failure::Failure;
use crate::server::location::LocationArgs;
use crate::server::{configuration, log, record_file};

/// The help of `audit`.
pub(super) const HELP: &str = "Examples:
  belljar audit --since 24h
  belljar audit --mount notes --who claude --lines
  belljar audit --denied --json
  belljar audit verify

The command reads the file that the configuration names with audit = \"FILE\", or the files in the state
directory, which all configurations of this user share. It sums the lines that fit all options.";

/// The longest line that is read, in bytes. belljar writes shorter ones.
const MAX_LINE: u64 = 1 << 20;

/// The verbs of `audit`.
#[derive(Subcommand)]
enum AuditVerb {
    /// Check that no line of the record was changed, removed or inserted.
    #[command(after_help = verify::HELP)]
    Verify {
        #[command(flatten)]
        verify: verify::VerifyArgs,
    },
}

/// The options of `audit`.
#[derive(Args)]
#[command(args_conflicts_with_subcommands = true)]
pub(super) struct AuditArgs {
    #[command(subcommand)]
    verb: Option<AuditVerb>,
    #[command(flatten)]
    at: LocationArgs,
    /// Only calls of this mount.
    #[arg(long, value_name = "NAME")]
    mount: Option<String>,
    /// Only callers whose principal or client contains this text.
    #[arg(long, value_name = "TEXT")]
    who: Option<String>,
    /// Only calls in which something was refused: by a grant, by a rule, or for want of a credential.
    #[arg(long)]
    denied: bool,
    /// Only calls that failed.
    #[arg(long)]
    failed: bool,
    /// Only calls since a time (2026-11-27T08:00:00Z), or in the last hours, such as 24h or 30min.
    #[arg(long, value_name = "TIME", value_parser = since)]
    since: Option<SystemTime>,
    /// Read this file instead.
    #[arg(long, value_name = "FILE")]
    file: Option<PathBuf>,
    /// Print the lines themselves, as they are in the record.
    #[arg(long, conflicts_with = "json")]
    lines: bool,
    /// Print the sums as JSON.
    #[arg(long)]
    json: bool,
}

/// Parses a time, or the length of a time until now.
fn since(text: &str) -> Result<SystemTime, String> {
    if let Ok(time) = humantime::parse_rfc3339_weak(text) {
        return Ok(time);
    }
    let length: Duration = humantime::parse_duration(text)
        .map_err(|_| "expected a time such as 2026-11-27T08:00:00Z, or a length such as 24h or 30min".to_owned())?;
    Ok(SystemTime::now().checked_sub(length).unwrap_or(SystemTime::UNIX_EPOCH))
}

impl AuditArgs {
    /// The location arguments.
    pub(super) fn location(&mut self) -> &mut LocationArgs {
        match &mut self.verb {
            Some(AuditVerb::Verify { verify }) => &mut verify.at,
            None => &mut self.at,
        }
    }

    /// True if the call is one of those that the options select, at any time.
    fn selects(&self, line: &RecordLine<'_>) -> bool {
        let caller = line.caller.as_ref();
        self.mount.as_ref().is_none_or(|mount| line.mount.as_deref() == Some(mount))
            && self.who.as_ref().is_none_or(|who| caller.is_some_and(|caller| caller.contains(who)))
            && (!self.denied || line.is_denied())
            && (!self.failed || line.has_failed())
    }

    /// True if the line is not too old.
    fn is_recent(&self, line: &RecordLine<'_>) -> bool {
        self.since.is_none_or(|since| line.time().is_some_and(|time| time >= since))
    }
}

/// Prints what the record has.
pub(super) fn run(args: &AuditArgs) -> Result<ExitCode, Failure> {
    if let Some(AuditVerb::Verify { verify }) = &args.verb {
        return verify::run(verify);
    }
    log::start("warn");
    let mut summary = Summary::default();
    for file in &files_of(args.file.as_deref(), &args.at)? {
        read(file, |bytes| {
            let Some(line) = RecordLine::parse(bytes) else {
                summary.add_unreadable();
                return Ok(());
            };
            // A loss has no caller and no mount. It may concern any selection.
            if !args.is_recent(&line) || line.lost.is_none() && !args.selects(&line) {
                return Ok(());
            }
            summary.add(&line);
            match args.lines {
                true => output::print(&printed(bytes)),
                false => Ok(()),
            }
        })?;
    }
    match (args.json, args.lines) {
        (true, _) => output::print_json(&summary.to_json())?,
        (false, true) => {}
        (false, false) => output::print(&summary.to_text())?,
    }
    Ok(ExitCode::SUCCESS)
}

/// A line as it is in the record. In a terminal without invisible characters: somebody else may have written the file.
fn printed(line: &[u8]) -> String {
    let line = String::from_utf8_lossy(line);
    match std::io::stdout().is_terminal() {
        true => text::excerpt(&line, usize::MAX) + "\n",
        false => line.into_owned(),
    }
}

/// The file that the command line names, or the files of the record that the configuration names, oldest first.
fn files_of(named: Option<&Path>, at: &LocationArgs) -> Result<Vec<PathBuf>, Failure> {
    match named {
        Some(file) => Ok(vec![file.to_owned()]),
        None => files(&configuration::file(at)?),
    }
}

/// The files of the record that the configuration names, oldest first.
fn files(config: &Config) -> Result<Vec<PathBuf>, Failure> {
    let none = |setting: &str| {
        Failure::Failed(format!(
            "the configuration keeps the record in no file (audit = \"{setting}\"); name a file with --file FILE"
        ))
    };
    match &config.audit {
        Audit::Off => Err(none("off")),
        Audit::Stderr => Err(none("stderr")),
        Audit::File(path) => Ok(vec![path.clone()]),
        Audit::State => Ok(record_file::all(&config.state)),
    }
}

/// Calls `take` with each line of a file, with its line break.
fn read(path: &Path, mut take: impl FnMut(&[u8]) -> Result<(), Failure>) -> Result<(), Failure> {
    let shown = text::excerpt(&path.display().to_string(), 400);
    let fail = |error: std::io::Error| Failure::Failed(format!("cannot read the record \"{shown}\": {error}"));
    #[expect(clippy::disallowed_methods, reason = "the operator's record")]
    let file = File::open(path).map_err(fail)?;
    if !file.metadata().map_err(fail)?.is_file() {
        return Err(Failure::Failed(format!("\"{shown}\" is no file, so it keeps no record that can be read again")));
    }
    let (mut input, mut line) = (BufReader::new(file), Vec::new());
    loop {
        line.clear();
        std::io::Read::take(&mut input, MAX_LINE).read_until(b'\n', &mut line).map_err(fail)?;
        if line.is_empty() {
            return Ok(());
        }
        take(&line)?;
    }
}
