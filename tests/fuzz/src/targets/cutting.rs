//! The parts of a text that a model gets, and the variables that a URI template takes from a URI:
//! `mcp::tools::{ranges, pointer}`, `model::template`.

use belljar::mcp::tools::pointer::resolve;
use belljar::mcp::tools::ranges::{LineRange, characters, without_hidden};
use belljar::model::template::{Matcher, variables};
use belljar::model::{reference, text};
use percent_encoding::percent_decode_str;

use crate::input::Fields;
use crate::oracle;

/// Fields: an offset, a limit, lines, a pointer, the text.
pub(super) fn cutting(bytes: &[u8]) {
    let mut fields = Fields::of(bytes);
    let number = |n: u64| usize::try_from(n).unwrap_or(usize::MAX);
    let (offset, limit) = (number(fields.number()), number(fields.number()));
    let (lines, pointer, whole) = (fields.text(), fields.text(), fields.text());

    // Texts are cut between characters.
    let piece = characters(&whole, offset, limit);
    let expected: String = whole.chars().skip(offset).take(limit).collect();
    assert_eq!(piece.text, expected);
    assert_eq!((piece.length, piece.total), (expected.chars().count(), whole.chars().count()));

    if let Some(lines) = LineRange::parse(&lines) {
        let all: Vec<_> = whole.split_inclusive('\n').collect();
        let chosen = match lines {
            LineRange::Last(count) => &all[all.len().saturating_sub(count)..],
            LineRange::Span(first, last) => {
                let end = last.unwrap_or(usize::MAX).min(all.len());
                &all[(first - 1).min(end)..end]
            }
        };
        assert_eq!(lines.of(&whole), chosen.concat());
    }

    match resolve(&whole, &pointer) {
        // An empty pointer selects the whole document, unchanged.
        Ok(value) if pointer.is_empty() && !whole.trim_start().starts_with('"') => assert_eq!(value, whole.trim()),
        Ok(value) => {
            // `serde_json` must find the same value, except for digits of numbers that it does not keep.
            let read = |text: &str| serde_json::from_str::<serde_json::Value>(text).ok();
            let there = read(&whole).and_then(|whole| whole.pointer(&pointer).cloned());
            match there {
                Some(serde_json::Value::String(text)) => assert_eq!(value, text),
                Some(there) => assert_eq!(read(&value), Some(there), "{pointer:?} in {whole:?}"),
                // `serde_json` cannot parse deep documents and large numbers.
                None => assert!(read(&whole).is_none(), "{pointer:?} in {whole:?}: {value:?}"),
            }
        }
        Err(why) => oracle::assert_plain(&why.to_string(), "a refusal"),
    }

    let (shown, hidden) = without_hidden(&whole);
    for line in shown.split(['\n', '\t']) {
        oracle::assert_plain(line, "a shown line");
    }
    let ends = whole.matches("\r\n").count() + usize::from(whole.ends_with('\r'));
    assert_eq!(shown.chars().count() + hidden + ends, whole.chars().count(), "every hidden character is counted");
    assert_eq!(without_hidden(&shown), (shown.clone(), 0), "a second run changes nothing");
}

/// Fields: a template, the index of a variable, a URI, the value of another variable.
pub(super) fn matching(bytes: &[u8]) {
    let mut fields = Fields::of(bytes);
    let (relative, place, uri, other) = (fields.text(), fields.number(), fields.text(), fields.text());
    if reference::check_template(&relative).is_err() {
        return;
    }
    let template = format!("belljar://a/{relative}");
    let names = variables(&template);
    assert!(!names.is_empty() && names.iter().all(|name| relative.contains(name)), "{names:?} in {relative:?}");
    let wanted = names[usize::try_from(place).unwrap_or_default() % names.len()];
    let fixed: Vec<_> = names.iter().map(|name| ((*name).to_owned(), other.clone())).take(1).collect();
    for fixed in [&[][..], &fixed] {
        let Some(matcher) = Matcher::new(&template, wanted, fixed) else { continue };
        // Match the URI of the input, and a URI that the template expands to.
        let made = expanded(&template, &other, wanted);
        for uri in [format!("belljar://a/{uri}"), made] {
            let Some(value) = matcher.value(&uri) else { continue };
            assert!(!value.is_empty() && value.len() <= uri.len(), "{value:?} of {uri:?}");
            let decoded = percent_decode_str(&uri).decode_utf8_lossy();
            assert!(uri.contains(&value) || decoded.contains(&value), "{value:?} is not in {uri:?}");
        }
    }
    // In a simple template, expanding and matching must return the same value.
    let plain = text::excerpt(&other, 60);
    if !plain.is_empty() {
        let matcher = Matcher::new("belljar://a/{x}/{y}", "x", &[]).expect("a plain template");
        let uri = expanded("belljar://a/{x}/{y}", &plain, "x");
        assert_eq!(matcher.value(&uri).as_deref(), Some(plain.as_str()), "{uri}");
    }
}

/// Expands a template. Sets `value` for the variable `wanted` if it is alone in its expression, and `x` for all others.
fn expanded(template: &str, value: &str, wanted: &str) -> String {
    let encode = |value: &str| {
        let one = |b: u8| match b {
            b'A'..=b'Z' | b'a'..=b'z' | b'0'..=b'9' | b'-' | b'.' | b'_' | b'~' => char::from(b).to_string(),
            _ => format!("%{b:02X}"),
        };
        value.bytes().map(one).collect::<String>()
    };
    let mut out = String::new();
    let mut rest = template;
    while let Some((before, after)) = rest.split_once('{') {
        let Some((inside, behind)) = after.split_once('}') else { break };
        out.push_str(before);
        let is_wanted = inside.trim_start_matches(['+', '.', '/']) == wanted;
        out.push_str(&if is_wanted { encode(value) } else { "x".to_owned() });
        rest = behind;
    }
    out + rest
}
