//! `belljar read`: one resource, through the same gateway as a client.

use std::io::{BufRead, IsTerminal, Read as _, Write};
use std::path::Path;
use std::process::ExitCode;
use std::sync::Arc;

use base64::Engine as _;
use base64::engine::general_purpose::STANDARD;
use serde_json::{Value, json};

use super::keys::{Keys, Shared};
use super::pins::Pinning;
use super::{Failure, Where, caller, open, outside, wall};
use crate::catalog::Mount;
use crate::config::Config;
use crate::gateway::consent::{Asking, Choice, Question};
use crate::gateway::{Gateway, Read};
use crate::model::{Body, Contents, Reading, text};

/// More than any answer has.
const LONGEST_LINE: u64 = 1024;

/// How often is asked for an answer before silence is one.
const TRIES: usize = 10;

pub(super) fn run(at: &Where, dev: bool, uri: &str, output: Option<&Path>, as_json: bool) -> Result<ExitCode, Failure> {
    super::progress::start("warn,rmcp=error");
    let config = open::config(at, &[], Pinning::unless_dev(dev, Pinning::Pin))?;
    let keeper = outside::start_keeper(at, &config)?;
    let keys = Keys::read(at, &config, Shared::Used)?;
    let wall = wall::raise(&config, &keys, output)?;
    wall.runtime()?.block_on(async {
        let audit = open::audit(&config, true)?;
        let opened = open::open(config, keys, audit, keeper, None)?;
        opened.gateway.loaded().await;
        super::progress::end();
        let (reading, mount) = read(&opened.gateway, &opened.config, uri).await?;
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
async fn read(gateway: &Gateway, config: &Config, uri: &str) -> Result<(Reading, Arc<Mount>), Failure> {
    let can_answer = std::io::stdin().is_terminal() && std::io::stderr().is_terminal();
    let mut answer: Option<(String, Choice)> = None;
    loop {
        let answered = answer.as_ref().map(|(state, choice)| (state.as_str(), Some(*choice)));
        match gateway.read_asking(&caller(), uri, Asking { can_answer, answered }, std::future::ready(())).await? {
            Read::Given(reading, mount, _) => return Ok((reading, mount)),
            Read::CannotAsk(fault) => return Err(fault.into()),
            Read::Asks(question) => answer = Some((question.state.clone(), prompt(&question, config)?)),
        }
    }
}

/// What is typed at the terminal. Asked again until it is an answer; at the end of input it is a no.
fn prompt(question: &Question, config: &Config) -> Result<Choice, Failure> {
    super::log::settle();
    let mut out = std::io::stderr().lock();
    writeln!(out, "{question}")?;
    // Whoever sits here may know where a directory is; a client is told what the provider calls it, and no more.
    let granted = config.mounts.get(&question.mount);
    if let Some(place) = granted.and_then(|own| own.grants.place_of(&question.wanted, &config.ambient)) {
        writeln!(out, "On this machine that is \"{}\".", text::excerpt(&place.to_string_lossy(), 500))?;
    }
    let always = if question.can_last { ", always" } else { "" };
    for _ in 0..TRIES {
        write!(out, "[once{always}, deny] ")?;
        out.flush()?;
        let mut line = String::new();
        if std::io::stdin().lock().take(LONGEST_LINE).read_line(&mut line)? == 0 {
            break;
        }
        if let Some(choice) = typed(&line, question.can_last) {
            return Ok(choice);
        }
        let always = if question.can_last { "\"always\" (or \"a\") for good, " } else { "" };
        writeln!(
            out,
            "That is no answer: type \"once\" (or \"o\", \"yes\") for this read, {always}\"deny\" (or \"d\", \"no\")."
        )?;
    }
    writeln!(out, "No answer: denied.")?;
    Ok(Choice::Deny)
}

/// The choice that a line stands for: a word or the beginning of one, in either case. A bare "yes" is for this read.
fn typed(line: &str, can_last: bool) -> Option<Choice> {
    let word = line.trim().to_lowercase();
    let choices = [
        ("once", Choice::Once),
        ("yes", Choice::Once),
        ("always", Choice::Always),
        ("deny", Choice::Deny),
        ("no", Choice::Deny),
    ];
    let fits = |(whole, choice): &&(&str, Choice)| whole.starts_with(&word) && (can_last || *choice != Choice::Always);
    choices.iter().find(fits).filter(|_| !word.is_empty()).map(|(_, choice)| *choice)
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
    let binary = all.iter().find(|contents| matches!(contents.body, Body::Blob(_)));
    if let Some(contents) = binary.filter(|_| to_terminal) {
        return Err(Failure::Failed(format!(
            "the resource is {} bytes of binary data; use --output FILE",
            bytes(contents).len()
        )));
    }
    super::written(write_to(&mut out, all, to_terminal).and_then(|()| out.flush()))
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

fn to_json(contents: &Contents) -> Value {
    let (kind, body) = match &contents.body {
        Body::Text(text) => ("text", text.clone()),
        Body::Blob(bytes) => ("blob", STANDARD.encode(bytes)),
    };
    json!({ "uri": contents.reference, "mimeType": contents.mime_type, kind: body })
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn words_and_their_beginnings_are_answers_and_nothing_else() {
        for (line, last, choice) in [
            ("once\n", true, Some(Choice::Once)),
            ("o\n", false, Some(Choice::Once)),
            ("Y\n", false, Some(Choice::Once)),
            (" yes \r\n", true, Some(Choice::Once)),
            ("a\n", true, Some(Choice::Always)),
            ("alw\n", true, Some(Choice::Always)),
            ("always\n", false, None),
            ("a\n", false, None),
            ("n\n", true, Some(Choice::Deny)),
            ("NO\n", true, Some(Choice::Deny)),
            ("d\n", true, Some(Choice::Deny)),
            ("\n", true, None),
            ("oncee\n", true, None),
            ("ja\n", true, None),
        ] {
            assert_eq!(typed(line, last), choice, "{line:?}");
        }
    }
}
