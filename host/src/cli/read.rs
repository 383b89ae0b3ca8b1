//! `belljar read`: one resource, through the same gateway as a client.

use std::io::{BufRead, IsTerminal, Read as _, Write};
use std::path::Path;
use std::process::ExitCode;
use std::sync::Arc;

use base64::Engine as _;
use base64::engine::general_purpose::STANDARD;
use serde_json::{Value, json};

use super::pins::Pinning;
use super::{Failure, Where, caller, open, outside, wall};
use crate::catalog::Mount;
use crate::gateway::consent::{Asking, Choice, Question};
use crate::gateway::{Gateway, Read};
use crate::model::{Body, Contents, Reading, text};

/// More than any answer has.
const LONGEST_LINE: u64 = 1024;

pub(super) fn run(at: &Where, dev: bool, uri: &str, output: Option<&Path>, as_json: bool) -> Result<ExitCode, Failure> {
    super::progress::start("warn,rmcp=error");
    let config = open::config(at, &[], Pinning::unless_dev(dev, Pinning::Pin))?;
    let keeper = outside::start_keeper(at, &config)?;
    let wall = wall::raise(&config, output)?;
    wall.runtime()?.block_on(async {
        let opened = open::open(config, true, keeper, None)?;
        opened.gateway.loaded().await;
        super::progress::end();
        let (reading, mount) = read(&opened.gateway, uri).await?;
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

/// Reads, and asks who sits at the terminal, if someone does, for what the operator lets be asked for.
async fn read(gateway: &Gateway, uri: &str) -> Result<(Reading, Arc<Mount>), Failure> {
    let can_answer = std::io::stdin().is_terminal() && std::io::stderr().is_terminal();
    let mut answer: Option<(String, Choice)> = None;
    loop {
        let answered = answer.as_ref().map(|(state, choice)| (state.as_str(), *choice));
        match gateway.read_asking(&caller(), uri, Asking { can_answer, answered }, std::future::ready(())).await? {
            Read::Given(reading, mount) => return Ok((reading, mount)),
            Read::Asks(question) => answer = Some((question.state.clone(), prompt(&question)?)),
        }
    }
}

/// One line typed at the terminal; whatever is none of the choices is a no.
fn prompt(question: &Question) -> Result<Choice, Failure> {
    let always = if question.can_last { ", always" } else { "" };
    write!(std::io::stderr().lock(), "{question}\n[once{always}, deny] ")?;
    let mut line = String::new();
    std::io::stdin().lock().take(LONGEST_LINE).read_line(&mut line)?;
    Ok(match line.trim() {
        "once" => Choice::Once,
        "always" if question.can_last => Choice::Always,
        _ => Choice::Deny,
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
