//! The masking of secrets: `grants::secrets`.

use std::sync::Arc;

use base64::Engine as _;
use base64::engine::general_purpose::{STANDARD, URL_SAFE_NO_PAD};
use belljar::grants::secrets::{Redactor, Secret, SecretTemplate, Secrets, StreamRedactor};
use zeroize::Zeroizing;

use crate::input::Fields;

fn secret(name: &str, value: &str) -> Option<Arc<Secret>> {
    Secret::new(name, Zeroizing::new(value.to_owned())).ok().map(Arc::new)
}

/// Masks a text that contains a secret in any spelling. The result must have the same length and not contain the secret, for
/// one piece and for many. Fields: two secrets, the spelling of the first, the text before and after it, sizes of pieces.
pub(super) fn redactor(bytes: &[u8]) {
    let mut fields = Fields::of(bytes);
    let (value, other) = (fields.text(), fields.text());
    let (how, before, after, sizes) = (fields.bytes(), fields.text(), fields.text(), fields.bytes());
    // Skip secrets that are a part of the mask: masking cannot hide them.
    if value.contains('*') || other.contains('*') {
        return;
    }
    let Some(first) = secret("first", &value) else { return };
    let redactor = Redactor::new([Some(first), secret("other", &other)].iter().flatten()).expect("one at least");
    let redactor = Arc::new(redactor);
    let (mode, how) = how.split_first().map_or((0, how), |(mode, how)| (*mode, how));
    let around = [before.as_bytes(), value.as_bytes(), after.as_bytes()].concat();
    let spelt = spelt(&value, how);
    let text = match mode {
        b'B' => STANDARD.encode(&around),
        b'U' => URL_SAFE_NO_PAD.encode(&around),
        b'h' => around.iter().map(|byte| format!("{byte:02x}")).collect(),
        b'H' => around.iter().map(|byte| format!("{byte:02X}")).collect(),
        _ => format!("{before}{spelt}{after}"),
    };
    let survives = |masked: &[u8]| {
        let masked = String::from_utf8_lossy(masked);
        let decoded = match mode {
            b'B' => STANDARD.decode(masked.replace('*', "A")).expect("only characters were replaced"),
            b'U' => URL_SAFE_NO_PAD.decode(masked.replace('*', "A")).unwrap_or_default(),
            b'h' | b'H' => {
                let masked = masked.replace('*', "0");
                let pairs = masked.as_bytes().chunks(2).map(|pair| std::str::from_utf8(pair).expect("digits"));
                pairs.map(|pair| u8::from_str_radix(pair, 16).expect("digits")).collect()
            }
            _ => return masked.contains(&spelt),
        };
        decoded.windows(value.len()).any(|window| window == value.as_bytes())
    };
    // A cut text must be masked too: the output for any length is a prefix of the output for the whole.
    let (all, max) = (redactor.excerpt(&text, usize::MAX >> 1), usize::from(sizes.first().copied().unwrap_or(9)));
    let cut = redactor.excerpt(&text, max);
    assert!(all.starts_with(cut.strip_suffix('…').unwrap_or(&cut)), "{text:?} at {max}: {cut:?} of {all:?}");
    let mut whole = text.clone();
    redactor.mask(&mut whole);
    // Sanitising the masked text must not reveal the secret.
    let shown = belljar::model::text::line(&whole);
    let mut again = shown.clone();
    redactor.mask(&mut again);
    assert_eq!(again, shown, "{text:?} shows a secret when it is cleaned");
    let mut whole = text.clone().into_bytes();
    redactor.mask_bytes(&mut whole);
    let whole = String::from_utf8_lossy(&whole).into_owned();
    assert!(!survives(whole.as_bytes()), "{text:?} -> {whole:?}");
    let mut pieces = StreamRedactor::new(Arc::clone(&redactor));
    let (mut rest, mut passed) = (text.as_bytes(), Vec::new());
    let mut sizes = sizes.iter().map(|size| usize::from(*size % 64)).chain([1, 7, 64]).cycle();
    while !rest.is_empty() {
        let (piece, tail) = rest.split_at(sizes.next().unwrap_or(1).min(rest.len()));
        passed.extend(pieces.push(piece));
        rest = tail;
    }
    passed.extend(pieces.finish());
    assert_eq!(passed.len(), text.len());
    assert!(!survives(&passed), "{text:?} in pieces -> {:?}", String::from_utf8_lossy(&passed));
}

/// Writes each character in one of its spellings. `how` selects them in turn.
fn spelt(value: &str, how: &[u8]) -> String {
    let mut how = how.iter().chain([&0]).cycle();
    let mut text = String::new();
    for c in value.chars() {
        let percent = |upper: bool| -> String {
            let mut buffer = [0; 4];
            let bytes = c.encode_utf8(&mut buffer).bytes();
            bytes.map(|byte| if upper { format!("%{byte:02X}") } else { format!("%{byte:02x}") }).collect()
        };
        let one = match how.next().unwrap_or(&0) % 10 {
            1 => percent(true),
            2 => percent(false),
            3 => c.encode_utf16(&mut [0; 2]).iter().map(|unit| format!("\\u{unit:04x}")).collect(),
            4 if c.is_ascii_punctuation() => format!("\\{c}"),
            5 if c == ' ' => "+".to_owned(),
            6 => format!("&#{};", u32::from(c)),
            7 => format!("&#x{:X};", u32::from(c)),
            8 => match c {
                '&' => "&amp;".to_owned(),
                '<' => "&lt;".to_owned(),
                '>' => "&gt;".to_owned(),
                '"' => "&quot;".to_owned(),
                '\'' => "&#39;".to_owned(),
                _ => c.to_string(),
            },
            9 => match c {
                '"' | '\\' => format!("\\{c}"),
                _ => c.to_string(),
            },
            _ => c.to_string(),
        };
        text.push_str(&one);
    }
    text
}

/// Texts with names of secrets. Filling must replace each name by its value, or report a missing one.
pub(super) fn filling(bytes: &[u8]) {
    let text = crate::input::text(bytes);
    let Ok(template) = SecretTemplate::try_from(text.clone()) else {
        assert!(text.contains("${secret:"), "{text:?} is refused, and names no secret");
        return;
    };
    let names = template.secret_names();
    assert_eq!(template.has_secrets(), text.contains("${secret:"), "{text:?}");
    let value = |name: &str| format!("<<{name}>> of the operator");
    let secrets = names.iter().filter_map(|name| secret(name, &value(name)));
    let (filled, used) = template.fill(&Secrets::from_secrets(secrets)).unwrap_or_else(|why| panic!("{text:?}: {why}"));
    let expected =
        names.iter().fold(text.clone(), |text, name| text.replace(&format!("${{secret:{name}}}"), &value(name)));
    assert_eq!(*filled, expected);
    assert_eq!(used.iter().map(|secret| secret.name()).collect::<Vec<_>>(), names);
    if let Some(first) = names.first() {
        let why = template.fill(&Secrets::default()).err().map(|why| why.to_string()).unwrap_or_default();
        assert!(why.contains(first) && why.contains("[secrets]"), "{why:?}");
    }
}
