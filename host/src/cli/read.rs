//! `belljar read`: one resource, through the same gateway as a client.

use std::io::{IsTerminal, Write};
use std::path::Path;
use std::process::ExitCode;

use base64::Engine as _;
use base64::engine::general_purpose::STANDARD;
use serde_json::{Value, json};

use super::{Failure, Where, caller, open, wall};
use crate::model::{Body, Contents, text};

pub(super) fn run(at: &Where, uri: &str, output: Option<&Path>, as_json: bool) -> Result<ExitCode, Failure> {
    super::start_log("warn,rmcp=error");
    let config = open::config(at, &[])?;
    let wall = wall::raise(&config, output)?;
    wall.runtime()?.block_on(async {
        let opened = open::open(config, true)?;
        opened.gateway.loaded().await;
        let (reading, mount) = opened.gateway.read(&caller(), uri).await?;
        if as_json {
            let contents: Vec<Value> = reading.contents.iter().map(to_json).collect();
            super::print_json(
                &json!({ "mount": mount.name.as_str(), "digest": mount.digest.to_string(), "contents": contents }),
            )?;
        } else if let Some(path) = output {
            let [only] = reading.contents.as_slice() else {
                return Err(Failure::Failed(format!(
                    "the resource has {} pieces of contents, and a file holds one; use --json",
                    reading.contents.len()
                )));
            };
            #[expect(clippy::disallowed_methods, reason = "the file that the operator named")]
            std::fs::write(path, bytes(only))
                .map_err(|error| Failure::Failed(format!("cannot write \"{}\": {error}", path.display())))?;
        } else {
            write_out(&reading.contents)?;
        }
        Ok(ExitCode::SUCCESS)
    })
}

fn bytes(contents: &Contents) -> &[u8] {
    match &contents.body {
        Body::Text(text) => text.as_bytes(),
        Body::Blob(bytes) => bytes,
    }
}

/// Writes contents as they are; to a terminal, only what cannot harm it.
fn write_out(all: &[Contents]) -> Result<(), Failure> {
    let mut out = std::io::stdout().lock();
    let to_terminal = out.is_terminal();
    for contents in all {
        if all.len() > 1 {
            writeln!(out, "==> {} <==", contents.reference)?;
        }
        match &contents.body {
            Body::Text(text) if to_terminal => {
                for line in text.lines() {
                    let kept: String =
                        line.chars().map(|c| if c == '\t' { ' ' } else { c }).filter(|c| text::is_shown(*c)).collect();
                    writeln!(out, "{kept}")?;
                }
            }
            Body::Blob(bytes) if to_terminal => {
                return Err(Failure::Failed(format!(
                    "the resource is {} bytes of binary data; use --output FILE",
                    bytes.len()
                )));
            }
            _ => out.write_all(bytes(contents))?,
        }
    }
    match out.flush() {
        Err(error) if error.kind() != std::io::ErrorKind::BrokenPipe => Err(error.into()),
        _ => Ok(()),
    }
}

fn to_json(contents: &Contents) -> Value {
    let (kind, body) = match &contents.body {
        Body::Text(text) => ("text", text.clone()),
        Body::Blob(bytes) => ("blob", STANDARD.encode(bytes)),
    };
    json!({ "uri": contents.reference, "mimeType": contents.mime_type, kind: body })
}
