//! `belljar declare`: writes into a component what it needs, for languages whose compilers cannot. A custom section is added
//! to the end of the file, in the place of one that was added so before; nothing else in it changes.

use std::path::Path;
use std::process::ExitCode;

use wasmparser::{Chunk, Parser, Payload};

use super::{Failure, inspect, store};
use crate::grants::needs::{Need, Needs, SECTION};
use crate::sandbox::Profile;

/// What `--help` shows below the flags.
pub(super) const HELP: &str =
    "NEEDS.toml grants nothing: it is shown by inspect, check and list, and the commands in denials are made from it.

  [[fs]]
  path = \"/mail\"                    # the guest path; any = true: another one will do as well
  why = \"a directory of mailboxes\"

  [[env]]
  name = \"RECENT\"
  example = \"20\"
  optional = true                   # the provider works without it

  [[http]]
  origin = \"https://api.example\"    # left out: the operator knows which

Example:
  belljar declare build/mail.wasm needs.toml";

pub(super) fn run(file: &Path, needs: &Path) -> Result<ExitCode, Failure> {
    super::log::start("error");
    let (shown, wasm) = inspect::read(file)?;
    let (named, text) = inspect::read(needs)?;
    let declared = Needs::parse(&text).map_err(|why| Failure::Failed(format!("\"{named}\": {why}")))?;
    Profile::read(&wasm).map_err(|why| Failure::Failed(format!("\"{shown}\" is {why}")))?;
    let with = written(&wasm, &text).map_err(|why| Failure::Failed(format!("\"{shown}\": {why}")))?;
    if with != wasm {
        store::replace(&store::turn(&[file])?, file, &with, 0o644)?;
    }
    let all: Vec<String> = declared.all().iter().map(|need| format!("  {}\n", Need::shown(need))).collect();
    super::print(&format!("\"{shown}\" declares that it needs\n{}", all.concat()))?;
    Ok(ExitCode::SUCCESS)
}

/// `wasm` with the declaration at its end, and without one that it had there.
fn written(wasm: &[u8], text: &[u8]) -> Result<Vec<u8>, String> {
    let mut out = Vec::with_capacity(wasm.len().saturating_add(text.len()).saturating_add(32));
    let mut parser = Parser::new(0);
    let mut rest = wasm;
    loop {
        let parsed = parser.parse(rest, true).map_err(|error| error.to_string())?;
        let Chunk::Parsed { consumed, payload } = parsed else { return Err("it ends too early".to_owned()) };
        let mut taken = consumed;
        match &payload {
            Payload::ModuleSection { unchecked_range, .. } | Payload::ComponentSection { unchecked_range, .. } => {
                taken = consumed.saturating_add(unchecked_range.end.saturating_sub(unchecked_range.start));
            }
            Payload::End(_) => break,
            _ => {}
        }
        let (section, after) = rest.split_at_checked(taken).ok_or("a section is longer than the file")?;
        let is_ours = matches!(&payload, Payload::CustomSection(custom) if custom.name() == SECTION);
        if !is_ours {
            out.extend_from_slice(section);
        }
        rest = after;
    }
    let mut body = Vec::new();
    number(&mut body, SECTION.len());
    body.extend_from_slice(SECTION.as_bytes());
    body.extend_from_slice(text);
    out.push(0);
    number(&mut out, body.len());
    out.extend_from_slice(&body);
    Ok(out)
}

/// LEB128, as lengths are written in WebAssembly.
fn number(out: &mut Vec<u8>, mut value: usize) {
    loop {
        let low = u8::try_from(value & 0x7f).unwrap_or_default();
        value >>= 7;
        if value == 0 {
            return out.push(low);
        }
        out.push(low | 0x80);
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_declaration_takes_the_place_of_the_one_before() {
        let wasm = wat::parse_str(r#"(component (core module (func)) (component) (@custom "other" "kept"))"#).unwrap();
        let first = format!("[[fs]]\npath = '/one'\nwhy = '{}'", "x".repeat(190));
        let one = written(&wasm, first.as_bytes()).unwrap();
        let two = written(&one, b"[[fs]]\npath = '/two'").unwrap();
        let declared = |wasm: &[u8]| Profile::read(wasm).unwrap().needs.all()[0].what.clone().unwrap();
        assert_eq!((declared(&one), declared(&two)), ("/one".to_owned(), "/two".to_owned()));
        assert!(two.starts_with(&wasm) && two.len() < one.len());
        assert_eq!(written(&two, b"[[fs]]\npath = '/two'").unwrap(), two, "once more changes nothing");
        wasmparser::Validator::new().validate_all(&two).unwrap();
    }
}
