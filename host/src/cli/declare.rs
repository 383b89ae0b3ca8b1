//! `belljar declare`: writes into a component which grants it needs, for languages whose compilers cannot. The
//! declaration is a custom section at the end of the file. It replaces an earlier declaration; the rest of the file
//! does not change.

use super::output;
use std::path::Path;
use std::process::ExitCode;

use wasmparser::{Chunk, Parser, Payload};

use super::inspect;
use crate::grants::{Need, Needs, SECTION};
use crate::sandbox::Profile;
use crate::server::failure::Failure;
use crate::server::{files, log};

/// The text of `--help` below the flags.
pub(super) const HELP: &str =
    "NEEDS.toml grants nothing. \"belljar inspect\", \"check\" and \"list\" show the needs, and refusals suggest commands that grant
them. An example of NEEDS.toml:

  [[fs]]
  path = \"/mail\"                    # the guest path; with any = true, any other path is fine too
  why = \"a directory of mailboxes\"

  [[env]]
  name = \"RECENT\"
  example = \"20\"
  optional = true                   # the provider works without it

  [[http]]
  origin = \"https://api.example\"    # optional: without it, the operator chooses the origin

Example:
  belljar declare build/mail.wasm needs.toml";

pub(super) fn run(file: &Path, needs: &Path) -> Result<ExitCode, Failure> {
    log::start("error");
    let (shown, wasm) = inspect::read(file)?;
    let (named, text) = inspect::read(needs)?;
    let declared = Needs::parse(&text).map_err(|why| Failure::Failed(format!("\"{named}\": {why}")))?;
    Profile::read(&wasm).map_err(|why| Failure::Failed(format!("\"{shown}\" is {why}")))?;
    let with = with_declaration(&wasm, &text).map_err(|why| Failure::Failed(format!("\"{shown}\": {why}")))?;
    if with != wasm {
        files::replace(&files::lock_for_writing(&[file])?, file, &with, 0o644)?;
    }
    let all: Vec<String> = declared.all().iter().map(|need| format!("  {}\n", Need::describe(need))).collect();
    output::print(&format!("\"{shown}\" now declares that it needs:\n{}", all.concat()))?;
    Ok(ExitCode::SUCCESS)
}

/// `wasm` with the declaration `text` at its end, without an earlier declaration.
fn with_declaration(wasm: &[u8], text: &[u8]) -> Result<Vec<u8>, String> {
    let mut out = Vec::with_capacity(wasm.len().saturating_add(text.len()).saturating_add(32));
    let mut parser = Parser::new(0);
    let mut rest = wasm;
    loop {
        let parsed = parser.parse(rest, true).map_err(|error| error.to_string())?;
        let Chunk::Parsed { consumed, payload } = parsed else { return Err("the file is truncated".to_owned()) };
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
    write_leb128(&mut body, SECTION.len());
    body.extend_from_slice(SECTION.as_bytes());
    body.extend_from_slice(text);
    out.push(0);
    write_leb128(&mut out, body.len());
    out.extend_from_slice(&body);
    Ok(out)
}

/// Writes an unsigned LEB128 number, the encoding of lengths in WebAssembly.
fn write_leb128(out: &mut Vec<u8>, mut value: usize) {
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
    fn a_declaration_replaces_the_one_before() {
        let wasm = wat::parse_str(r#"(component (core module (func)) (component) (@custom "other" "kept"))"#).unwrap();
        let first = format!("[[fs]]\npath = '/one'\nwhy = '{}'", "x".repeat(190));
        let one = with_declaration(&wasm, first.as_bytes()).unwrap();
        let two = with_declaration(&one, b"[[fs]]\npath = '/two'").unwrap();
        let declared = |wasm: &[u8]| Profile::read(wasm).unwrap().needs.all()[0].name.clone().unwrap();
        assert_eq!((declared(&one), declared(&two)), ("/one".to_owned(), "/two".to_owned()));
        assert!(two.starts_with(&wasm) && two.len() < one.len());
        assert_eq!(with_declaration(&two, b"[[fs]]\npath = '/two'").unwrap(), two, "a repetition changes nothing");
        wasmparser::Validator::new().validate_all(&two).unwrap();
    }
}
