//! JSON: the selected value, pretty-printed. Numbers keep their digits.
//!
//! Works on the text and builds no tree: the tree of 8 MiB would need more than the memory of a sandbox.

use std::borrow::Cow;

use belljar_guest::{Body, Error, Result};
use serde_json::value::RawValue;

use members::Kind;

mod members;

/// The type of JSON.
pub(crate) const MEDIA: &str = "application/json";

/// The most keys that an error names.
const NAMED: usize = 12;

/// The longest pretty-printed text, in bytes. A longer one stays as the server sent it. The host's limit on results has the
/// same default.
const MAX_PRETTY: usize = 8 << 20;

/// The deepest nesting. The same as that of the JSON library, and deeper values would be mostly spaces.
const MAX_DEPTH: usize = 127;

/// The selected value of a JSON text, and its media type: a string is text, anything else JSON.
pub(crate) fn read(text: &str, select: Option<&str>) -> Result<(Body, &'static str)> {
    let text = text.trim_start_matches('\u{feff}');
    let whole: &RawValue = serde_json::from_str(text).map_err(|why| {
        Error::failed(format_args!("the answer is not JSON ({why}); set kind = \"raw\" to read it unchanged"))
    })?;
    let value = match select {
        Some(pointer) => at(whole, pointer)?,
        None => whole,
    };
    if let (true, Some(_)) = (value.get().starts_with('"'), select) {
        return Ok((Body::Text(string(value.get()).into_owned()), "text/plain"));
    }
    let pretty = pretty(value.get());
    Ok((Body::Text(pretty.unwrap_or_else(|| value.get().to_owned())), MEDIA))
}

/// The value at a JSON pointer.
fn at<'j>(whole: &'j RawValue, pointer: &str) -> Result<&'j RawValue> {
    let (mut here, mut end) = (whole, 0);
    for part in pointer.split('/').skip(1) {
        let key = part.replace("~1", "/").replace("~0", "~");
        let Some(next) = members::member(here, &key) else { return Err(missing(here, pointer, end)) };
        here = next;
        end += 1 + part.len();
    }
    if pointer.is_empty() || pointer.starts_with('/') { Ok(here) } else { Err(missing(whole, pointer, 0)) }
}

/// The error for a pointer that selects no value. `end` is the end of the part that exists, and `here` its value.
fn missing(here: &RawValue, pointer: &str, end: usize) -> Error {
    let found = match members::kind(here) {
        Kind::Object { keys, count } => {
            let names: Vec<String> = keys.iter().map(|key| format!("\"{key}\"")).collect();
            let more = if count > keys.len() { ", ..." } else { "" };
            format!("an object with {}{more}", if names.is_empty() { "nothing".to_owned() } else { names.join(", ") })
        }
        Kind::Array { count } => format!("an array of {count} items"),
        Kind::Other => match here.get().as_bytes().first() {
            Some(b'"') => "a string",
            Some(b't' | b'f') => "a boolean",
            Some(b'n') => "null",
            _ => "a number",
        }
        .to_owned(),
    };
    let before = pointer.get(..end).unwrap_or_default();
    Error::failed(format_args!("the answer has nothing at \"{pointer}\" (select): at \"{before}\" it has {found}"))
}

/// A JSON string as text. Half a surrogate pair has no text, and stays an escape.
fn string(json: &str) -> Cow<'_, str> {
    let inner = json.get(1..json.len().saturating_sub(1)).unwrap_or_default();
    if !inner.contains('\\') {
        return Cow::Borrowed(inner);
    }
    serde_json::from_str::<String>(json).map_or(Cow::Borrowed(inner), Cow::Owned)
}

/// Valid JSON on lines of its own, each level indented by two spaces. `None` if this is too long or too deep.
fn pretty(json: &str) -> Option<String> {
    let bytes = json.as_bytes();
    let mut out = String::with_capacity((json.len() + json.len() / 4).min(MAX_PRETTY));
    let (mut depth, mut at) = (0, 0);
    let line = |out: &mut String, depth: usize| {
        out.push('\n');
        out.extend(std::iter::repeat_n("  ", depth));
    };
    while let Some(byte) = bytes.get(at) {
        let start = at;
        at += 1;
        match byte {
            b' ' | b'\n' | b'\r' | b'\t' => {}
            b'{' | b'[' => {
                out.push(char::from(*byte));
                let space = bytes.get(at..)?.iter().take_while(|byte| byte.is_ascii_whitespace()).count();
                if let Some(close @ (b'}' | b']')) = bytes.get(at + space) {
                    out.push(char::from(*close));
                    at += space + 1;
                } else {
                    depth += 1;
                    line(&mut out, depth);
                }
            }
            b'}' | b']' => {
                depth = depth.checked_sub(1)?;
                line(&mut out, depth);
                out.push(char::from(*byte));
            }
            b',' => {
                out.push(',');
                line(&mut out, depth);
            }
            b':' => out.push_str(": "),
            b'"' => {
                at = end_of_string(bytes, at)?;
                push_string(&mut out, json.get(start..at)?);
            }
            _ => {
                let is_end = |byte: &u8| matches!(byte, b',' | b'}' | b']' | b' ' | b'\n' | b'\r' | b'\t');
                at = bytes.iter().skip(at).position(is_end).map_or(bytes.len(), |length| at + length);
                out.push_str(json.get(start..at)?);
            }
        }
        if out.len() >= MAX_PRETTY || depth > MAX_DEPTH {
            return None;
        }
    }
    out.push('\n');
    Some(out)
}

/// The end of the string whose contents begin at `at`.
fn end_of_string(bytes: &[u8], mut at: usize) -> Option<usize> {
    loop {
        at += bytes.get(at..)?.iter().position(|byte| matches!(byte, b'"' | b'\\'))?;
        if bytes.get(at) == Some(&b'"') {
            return Some(at + 1);
        }
        at += 2;
    }
}

/// Adds a string, with characters in place of unneeded escapes.
fn push_string(out: &mut String, json: &str) {
    let has_escape = json.contains("\\u") || json.contains("\\/");
    match has_escape.then(|| serde_json::from_str::<String>(json).and_then(|text| serde_json::to_string(&text))) {
        Some(Ok(text)) => out.push_str(&text),
        _ => out.push_str(json),
    }
}

#[cfg(test)]
mod tests;
