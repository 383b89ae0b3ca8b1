//! Tests of the redactor: which texts it masks, and which it leaves alone.

use base64::Engine as _;
use base64::engine::general_purpose::{STANDARD, URL_SAFE_NO_PAD};
use data_encoding::BASE32;

use zeroize::Zeroizing;

use super::*;
use crate::grants::secrets::secret::MIN_LENGTH;

fn secret(value: &str) -> Arc<Secret> {
    Arc::new(Secret::new("s", Zeroizing::new(value.to_owned())).unwrap_or_else(|why| panic!("{why}")))
}

#[test]
fn every_usual_spelling_is_masked() {
    let value = "p@ss/w0rd+\"x\" \u{e9}&=";
    let redactor = Redactor::new([&secret(value)]).unwrap();
    let all = |bytes: &[u8]| bytes.iter().map(|b| format!("%{b:02x}")).collect::<String>();
    let mut spelt = vec![
        value.to_owned(),
        format!("Bearer {value}, and {value}"),
        percent_encoding::utf8_percent_encode(value, percent_encoding::NON_ALPHANUMERIC).to_string(),
        all(value.as_bytes()),
        all(value.as_bytes()).to_uppercase(),
        value.bytes().map(|b| format!("{b:02x}")).collect(),
        serde_json::to_string(value).unwrap(),
        "p%40ss\\/w0rd%2b\\\"x&quot;+\\u00E9&amp;=".to_owned(),
    ];
    for before in ["", "u", "us", "use", "user:"] {
        for after in ["", "!", "!!", "!!!"] {
            spelt.push(STANDARD.encode(format!("{before}{value}{after}")));
            spelt.push(URL_SAFE_NO_PAD.encode(format!("{before}{value}{after}")));
        }
    }
    for mut text in spelt {
        let (before, length) = (text.clone(), text.len());
        redactor.mask(&mut text);
        assert!(text.contains("****"), "{before}");
        assert_eq!(text.len(), length);
        // At each end, at most one character remains: one that also encodes bits of a neighbour.
        let stars = text.matches('*').count();
        assert!(before.contains("Bearer") || stars * 3 >= length * 2 || stars + 2 >= value.len(), "{before} -> {text}");
    }
    let mut other = "an ordinary sentence".to_owned();
    redactor.mask(&mut other);
    assert_eq!(other, "an ordinary sentence");
    assert!(Redactor::new([]).is_none());
}

#[test]
fn secrets_that_contain_escapes_are_masked() {
    for (value, spelt) in [
        ("back\\\\slash", vec!["back\\\\slash", "back\\\\\\\\slash", "back%5c\\u005cslash"]),
        ("a%25b%2Fc", vec!["a%25b%2Fc", "a%2525b%252Fc"]),
        ("x&amp;y&lt;z", vec!["x&amp;y&lt;z", "x&amp;amp;y&#38;lt;z"]),
        ("it's 'q' here", vec!["it&#39;s &#x27;q&#x27; here", "it&apos;s+%27q%27+here"]),
        ("key-\u{1f511}-\u{e9}", vec!["key-\\ud83d\\udd11-&#233;", "key-&#x1F511;-\\u00e9"]),
    ] {
        let redactor = Redactor::new([&secret(value)]).unwrap();
        for text in spelt {
            let mut masked = text.to_owned();
            redactor.mask(&mut masked);
            assert_eq!(masked, "*".repeat(text.len()), "{value}: {text}");
        }
    }
}

#[test]
fn a_short_secret_inside_a_long_one_leaves_nothing_visible() {
    let redactor = Arc::new(Redactor::new([&secret("12345678"), &secret("left-12345678-over")]).unwrap());
    let text = b"see left-12345678-over, 12345678 and MTIzNDU2Nzg".repeat(9);
    let mut whole = text.clone();
    assert!(redactor.mask_bytes(&mut whole));
    for size in 1..text.len() {
        let mut pieces = StreamRedactor::new(Arc::clone(&redactor));
        let mut passed: Vec<u8> = text.chunks(size).flat_map(|piece| pieces.push(piece)).collect();
        passed.extend(pieces.finish());
        assert_eq!(passed, whole, "{size}");
    }
}

/// Pseudo-random numbers, the same in each run.
fn numbers(mut state: u64) -> impl FnMut(usize) -> usize {
    move |below| {
        state = state.wrapping_mul(6_364_136_223_846_793_005).wrapping_add(1_442_695_040_888_963_407);
        usize::try_from(state >> 33).unwrap_or_default() % below.max(1)
    }
}

/// Every spelling of `value` as a program would write it into another text.
fn carried(value: &str, pad: usize) -> Vec<String> {
    let padded = format!("{}{value}{}", "<".repeat(pad % 5), ">".repeat(pad % 3));
    let bytes = |format: fn(u8) -> String| value.bytes().map(format).collect::<String>();
    let broken = |text: String, at: usize| {
        let lines: Vec<String> = text.as_bytes().chunks(at).map(|line| String::from_utf8_lossy(line).into()).collect();
        lines.join("\r\n")
    };
    vec![
        value.to_owned(),
        value.to_ascii_uppercase(),
        value.to_ascii_lowercase(),
        value.chars().rev().collect(),
        broken(value.to_owned(), 5),
        bytes(|b| format!("%{b:02x}")),
        bytes(|b| format!("%25{b:02X}")),
        bytes(|b| format!("={b:02X}")),
        bytes(|b| format!("\\x{b:02x}")),
        bytes(|b| format!("{b:02X}")),
        bytes(|b| format!("{b:02x} ")),
        bytes(|b| format!("{b:02x}:")),
        value.chars().map(|c| format!("\\u{{{:x}}}", u32::from(c))).collect(),
        value.chars().map(|c| format!("&#{};", u32::from(c))).collect(),
        serde_json::to_string(value).unwrap(),
        STANDARD.encode(&padded),
        URL_SAFE_NO_PAD.encode(&padded),
        STANDARD.encode(&padded).to_ascii_lowercase(),
        BASE32.encode(padded.as_bytes()),
        BASE32.encode(padded.as_bytes()).to_ascii_lowercase(),
        broken(STANDARD.encode(&padded), 7),
        value.chars().flat_map(|c| [c, '\0']).collect(),
        value.chars().flat_map(|c| ['\0', c]).collect(),
        value.chars().flat_map(|c| [c, '\u{200b}']).collect(),
        value.chars().flat_map(|c| [c, '\u{fe0f}', '\x1b']).collect(),
    ]
}

#[test]
fn no_secret_is_visible_in_any_encoding() {
    const LETTERS: &[u8] = b"abcdefghijklmnopqrstuvwxyzABCDEFGHIJKLMNOPQRSTUVWXYZ0123456789-._~+/=%&\\\"'<>";
    let mut next = numbers(7);
    for round in 0..10 {
        let length = MIN_LENGTH + next(40);
        let value: String = (0..length).map(|_| char::from(LETTERS[next(LETTERS.len())])).collect();
        let redactor = Arc::new(Redactor::new([&secret(&value)]).unwrap());
        for text in carried(&value, round) {
            let around = format!("before {text} after");
            // As one field.
            let mut whole = around.clone();
            redactor.mask(&mut whole);
            let mut again = text::line(&whole);
            redactor.mask(&mut again);
            assert_eq!(again, text::line(&whole), "{value:?} shows when it is cleaned: {around:?}");
            // The mask is as long as the secret, but for letters that also encode bits of neighbours.
            assert!(whole.matches('*').count() + 4 >= value.len(), "{value:?} in {around:?}: {whole:?}");
            assert!(!whole.to_lowercase().contains(&value.to_lowercase()), "{value:?}: {whole:?}");
            // As a text shortened to each length: no part of the secret may appear at the end.
            for max in 0..around.chars().count() {
                let cut = redactor.excerpt(&around, max);
                let full = redactor.excerpt(&around, usize::MAX >> 1);
                let kept = cut.strip_suffix('…').unwrap_or(&cut);
                assert!(full.starts_with(kept), "{value:?} at {max}: {cut:?} of {full:?}");
            }
            // As a stream of pieces.
            let mut pieces = StreamRedactor::new(Arc::clone(&redactor));
            let mut passed = Vec::new();
            let mut rest = around.as_bytes();
            while !rest.is_empty() {
                let (piece, tail) = rest.split_at((1 + next(30)).min(rest.len()));
                passed.extend(pieces.push(piece));
                rest = tail;
            }
            passed.extend(pieces.finish());
            let mut bytes = around.clone().into_bytes();
            redactor.mask_bytes(&mut bytes);
            assert_eq!(String::from_utf8_lossy(&passed), String::from_utf8_lossy(&bytes), "{value:?} in pieces");
        }
    }
}

#[test]
fn secrets_that_overlap_are_masked_whole() {
    let redactor = Arc::new(Redactor::new([&secret("abcdefgh"), &secret("efghijkl")]).unwrap());
    let text = b"<abcdefghijkl> <abcdefghabcdefghijkl>";
    let mut whole = text.to_vec();
    redactor.mask_bytes(&mut whole);
    assert_eq!(whole, b"<************> <********************>");
    for size in 1..text.len() {
        let mut pieces = StreamRedactor::new(Arc::clone(&redactor));
        let mut passed: Vec<u8> = text.chunks(size).flat_map(|piece| pieces.push(piece)).collect();
        passed.extend(pieces.finish());
        assert_eq!(passed, whole, "{size}");
    }
}

#[test]
fn a_secret_of_gaps_and_hidden_characters_is_masked_too() {
    for value in [": : : : : :", "\u{ad}secret\u{ad}word", "tab less secret"] {
        let redactor = Redactor::new([&secret(value)]).unwrap();
        for given in [value.to_owned(), text::line(value), value.replace(' ', "\t")] {
            let mut masked = given.clone();
            redactor.mask(&mut masked);
            assert!(!masked.contains("secret") && masked.contains("****"), "{given:?}: {masked:?}");
        }
    }
    let redactor = Redactor::new([&secret("tab less secret")]).unwrap();
    let mut lines = "first\nsecond é\nthird".to_owned();
    redactor.mask(&mut lines);
    assert_eq!(lines, "first\nsecond é\nthird");
}
