//! The sanitising of untrusted text: `model::text`.

use belljar::model::text;

use crate::{input, oracle};

/// The first byte is the cap, in characters. The excerpt must be clean and within the cap. A second excerpt must not
/// change it. It must have all visible characters of the input, up to the cut.
pub(super) fn text(bytes: &[u8]) {
    let (max, rest) = bytes.split_first().map_or((0, bytes), |(max, rest)| (usize::from(*max), rest));
    let given = input::text(rest);
    let shown = text::excerpt(&given, max);
    oracle::assert_plain(&shown, "an excerpt");
    // With a cap of 0, the excerpt is the mark of a cut alone.
    assert!(shown.chars().count() <= max.max(1), "{shown:?} is longer than {max}");
    if max > 0 {
        assert!(text::is_clean(&shown, max), "{shown:?} is not clean");
        assert_eq!(text::excerpt(&shown, max), shown);
    }
    assert_eq!(text::cleaned(given.clone(), max) == given, text::is_clean(&given, max) || shown == given, "{given:?}");
    let line = |c: char| if matches!(c, '\n' | '\r' | '\t' | '\u{2800}') { ' ' } else { c };
    // Compare neither combining marks, because the excerpt drops excess ones, nor characters that are blank.
    let is_letter = |c: &char| (c.is_lowercase() || c.is_uppercase() || c.is_numeric()) && *c != '\u{345}';
    let visible = |c: &char| is_letter(c) || c.is_ascii_graphic() || *c == ' ';
    let expected: String = given.chars().map(line).filter(visible).collect();
    let kept: String = shown.strip_suffix('…').unwrap_or(&shown).chars().filter(visible).collect();
    assert!(expected.starts_with(&kept), "{shown:?} is not the beginning of {given:?}");
    if text::excerpt(&given, usize::MAX) == shown {
        assert_eq!(expected, shown.chars().filter(visible).collect::<String>());
    } else {
        assert!(shown.ends_with('…'), "{shown:?} does not say that it was cut");
    }
    // The quoted form must not close its quotation marks early.
    let quoted = text::quoted(&given, max);
    let inner = quoted.strip_prefix('"').and_then(|rest| rest.strip_suffix('"')).expect("quotation marks");
    let mut escaped = false;
    for c in inner.chars() {
        assert!(escaped || c != '"', "{quoted:?} has a quotation mark that is not escaped");
        escaped = c == '\\' && !escaped;
    }
    assert!(!escaped, "{quoted:?} does not end");
}
