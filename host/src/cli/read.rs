//! `belljar read`: reads one resource. It uses the same gateway as MCP clients do.

use std::io::{IsTerminal, Write};
use std::path::Path;
use std::process::ExitCode;
use std::sync::Arc;

use base64::Engine as _;
use base64::engine::general_purpose::STANDARD;
use serde_json::{Value, json};

use super::host::{HostArgs, with_host};
use super::{consent, output};
use crate::catalog::Mount;
use crate::config::Config;
use crate::gateway::consent::{ConsentAnswer, ConsentInput};
use crate::gateway::{Gateway, ReadOutcome};
use crate::model::part::Part;
use crate::model::{Body, Contents, Fault, ReadError, Reading, command, text};
use crate::server::failure::Failure;
use crate::server::location::LocationArgs;
use crate::server::startup;

pub(super) fn run(
    at: &LocationArgs,
    dev: bool,
    uri: &str,
    output: Option<&Path>,
    as_json: bool,
) -> Result<ExitCode, Failure> {
    with_host(HostArgs { at, dev, output, asks: true }, async |host| {
        let (reading, mount) = read(&host.gateway, &host.config, uri).await?;
        if as_json {
            let contents: Vec<Value> = reading.contents.iter().map(to_json).collect();
            output::print_json(
                &json!({ "mount": mount.name.as_str(), "digest": mount.digest.to_string(), "contents": contents, "part": reading.part.map(|part| json!({
                    "unit": part.unit.name(), "first": part.shown().map(|shown| shown.0), "last": part.shown().map(|shown| shown.1),
                    "total": part.total, "next": next_of(&reading, &part),
                })) }),
            )?;
        } else if let Some(path) = output {
            let [only] = reading.contents.as_slice() else {
                return Err(Failure::Failed(format!(
                    "the resource has {} items, and --output writes one; use --json instead",
                    reading.contents.len()
                )));
            };
            output::write_file(path, bytes(only))?;
        } else {
            write_out(&reading.contents)?;
            if let Some((part, next)) = reading.part.and_then(|part| Some((part, next_of(&reading, &part)?))) {
                output::message(true, &format!("{part}; the next part: {}\n", command::line(["read", &next])))?;
            }
        }
        Ok(ExitCode::SUCCESS)
    })
}

/// The URI of the next part.
fn next_of(reading: &Reading, part: &Part) -> Option<String> {
    part.next_of(&reading.contents.first()?.reference)
}

/// Reads the resource. If the read needs a consent for which the configuration lets the mount ask, asks on the
/// terminal.
async fn read(gateway: &Gateway, config: &Config, uri: &str) -> Result<(Reading, Arc<Mount>), Failure> {
    let can_answer = consent::can_ask();
    let mut answer: Option<(String, ConsentAnswer)> = None;
    loop {
        let answered = answer.as_ref().map(|(state, choice)| (state.as_str(), Some(*choice)));
        match gateway
            .read_with_consent(&startup::caller(), uri, ConsentInput { can_answer, answered }, std::future::ready(()))
            .await
            .map_err(|fault| with_rules(fault, config, uri))?
        {
            ReadOutcome::Contents(reading, mount, _) => return Ok((reading, mount)),
            ReadOutcome::ConsentUnavailable(fault) => return Err(fault.into()),
            ReadOutcome::ConsentRequired(question) => {
                answer = Some((question.state.clone(), consent::ask(&question, config)?))
            }
        }
    }
}

/// The failure of a read. If the rules may hide the resource from the operator too, names the command that says so.
fn with_rules(fault: Fault, config: &Config, uri: &str) -> Failure {
    let is_hidden = matches!(fault.error, ReadError::NotFound | ReadError::NotFoundWithHint { .. });
    let failure = Failure::from(fault);
    match is_hidden && !config.rules.is_empty() {
        false => failure,
        true => {
            let cure = command::line(["can", "local", "read", uri]);
            Failure::Failed(format!("{}; the rules hold for you, too: {cure}", failure.message()))
        }
    }
}

fn bytes(contents: &Contents) -> &[u8] {
    match &contents.body {
        Body::Text(text) => text.as_bytes(),
        Body::Blob(bytes) => bytes,
    }
}

/// Writes contents unchanged to a file or pipe. For a terminal, refuses binary data and removes control characters.
fn write_out(all: &[Contents]) -> Result<(), Failure> {
    let mut out = std::io::stdout().lock();
    let to_terminal = out.is_terminal();
    let binary = all.iter().find(|contents| matches!(contents.body, Body::Blob(_)));
    if let Some(contents) = binary.filter(|_| to_terminal) {
        return Err(Failure::Failed(format!(
            "the resource is {} bytes of binary data, which a terminal cannot show; use --output FILE",
            bytes(contents).len()
        )));
    }
    output::ignore_closed_pipe(write_to(&mut out, all, to_terminal).and_then(|()| out.flush()))
}

fn write_to(out: &mut impl Write, all: &[Contents], to_terminal: bool) -> std::io::Result<()> {
    for contents in all {
        if all.len() > 1 {
            writeln!(out, "==> {} <==", contents.reference)?;
        }
        match &contents.body {
            Body::Text(text) if to_terminal => {
                for line in text.lines() {
                    writeln!(out, "{}", text::line(line))?;
                }
            }
            _ => out.write_all(bytes(contents))?,
        }
    }
    Ok(())
}

/// One item of the contents.
pub(super) fn to_json(contents: &Contents) -> Value {
    let (kind, body) = match &contents.body {
        Body::Text(text) => ("text", text.clone()),
        Body::Blob(bytes) => ("blob", STANDARD.encode(bytes)),
    };
    json!({ "uri": contents.reference, "mimeType": contents.mime_type, kind: body })
}
