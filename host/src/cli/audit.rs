//! `belljar audit`: filters and sums the record of calls.

mod files;
mod summary;
mod verify;

use std::io::IsTerminal as _;
use std::path::PathBuf;
use std::process::ExitCode;
use std::time::{Duration, SystemTime};

use clap::{Args, Subcommand};
use files::{files_of, read};
use summary::{RecordLine, Summary};

use super::output;
use crate::model::text;
use crate::server::failure::Failure;
use crate::server::location::LocationArgs;
use crate::server::log;

/// The help of `audit`.
pub(super) const HELP: &str = "Examples:
  belljar audit --since 24h
  belljar audit --mount notes --who claude --lines
  belljar audit --denied --json
  belljar audit verify

The command reads the file that the configuration names with audit = \"FILE\", or the files in the state
directory, which all configurations of this user share. It sums the lines that fit all options.";

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
