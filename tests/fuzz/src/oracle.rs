//! Independent implementations of belljar's rules, which use other algorithms and none of the host's libraries.

/// Characters that steer a terminal, or hide or reorder text. This is a list; the host uses general categories of Unicode.
pub(crate) fn hides(c: char) -> bool {
    matches!(
        c,
        '\0'..='\x1f'
            | '\x7f'..='\u{9f}'
            | '\u{ad}'
            | '\u{61c}'
            | '\u{34f}'
            | '\u{115f}'
            | '\u{1160}'
            | '\u{17b4}'
            | '\u{17b5}'
            | '\u{180b}'..='\u{180f}'
            | '\u{3164}'
            | '\u{fe00}'..='\u{fe0f}'
            | '\u{ffa0}'
            | '\u{200b}'
            | '\u{200e}'
            | '\u{200f}'
            | '\u{2028}'..='\u{202e}'
            | '\u{2060}'..='\u{206f}'
            | '\u{feff}'
            | '\u{fff0}'..='\u{fffb}'
            | '\u{1bca0}'..='\u{1bca3}'
            | '\u{1d173}'..='\u{1d17a}'
            | '\u{e0000}'..='\u{e0fff}'
    )
}

/// Panics if `text` has a character that controls a terminal, or hides or reorders text.
pub(crate) fn assert_plain(text: &str, what: &str) {
    if let Some(c) = text.chars().find(|c| hides(*c)) {
        panic!("{what} carries {c:?}: {text:?}");
    }
    let is_joiner = |c: char| matches!(c, '\u{200c}' | '\u{200d}');
    let chars: Vec<char> = text.chars().collect();
    for (at, _) in chars.iter().enumerate().filter(|(_, c)| is_joiner(**c)) {
        let around = [at.checked_sub(1), Some(at + 1)].map(|at| at.and_then(|at| chars.get(at)));
        let is_bare = |c: Option<&char>| c.is_none_or(|c| is_joiner(*c) || c.is_ascii());
        assert!(!around.into_iter().all(is_bare), "{what} carries a joiner that joins nothing: {text:?}");
    }
}

/// True if clients may read `reference`: a relative reference (RFC 3986, 4.2) without dot segments and control characters.
pub(crate) fn is_lawful(reference: &str) -> bool {
    let bytes = reference.as_bytes();
    let is_known = |b: &u8| b.is_ascii_alphanumeric() || b"-._~!$&'()*+,;=:@/?%".contains(b);
    if bytes.len() > 2048 || !bytes.iter().all(is_known) || bytes.first() == Some(&b'/') {
        return false;
    }
    let end = bytes.iter().position(|b| *b == b'?').unwrap_or(bytes.len());
    let (path, query) = bytes.split_at(end);
    let first = path.iter().position(|b| *b == b'/').unwrap_or(path.len());
    if path[..first].contains(&b':') {
        return false;
    }
    let (Some(path), Some(query)) = (decode(path), decode(query)) else { return false };
    !has_dot_segment(&path) && !path.chars().chain(query.chars()).any(is_control)
}

/// True if a decoded path has a segment `.` or `..`, with `/` or `\` as separators.
pub(crate) fn has_dot_segment(path: &str) -> bool {
    let path = format!("/{}/", path.replace('\\', "/"));
    path.contains("/./") || path.contains("/../")
}

fn is_control(c: char) -> bool {
    matches!(u32::from(c), 0..=0x1f | 0x7f..=0x9f)
}

/// Percent-decodes once. `None` if an escape is invalid or the result is not UTF-8.
pub(crate) fn decode(bytes: &[u8]) -> Option<String> {
    let mut decoded = Vec::with_capacity(bytes.len());
    let mut rest = bytes;
    while let [first, tail @ ..] = rest {
        rest = tail;
        if *first != b'%' {
            decoded.push(*first);
            continue;
        }
        let [high, low, tail @ ..] = rest else { return None };
        let digit = |b: u8| char::from(b).to_digit(16);
        decoded.push(u8::try_from(digit(*high)? * 16 + digit(*low)?).ok()?);
        rest = tail;
    }
    String::from_utf8(decoded).ok()
}

/// True if `given` is `asked` or a name below it.
pub(crate) fn is_below(asked: &str, given: &str) -> bool {
    if asked == given {
        return true;
    }
    let asked = asked.split_once('?').map_or(asked, |(path, _)| path);
    let mut steps = asked.split('/').collect::<Vec<_>>();
    while steps.last() == Some(&"") {
        steps.pop();
    }
    let given: Vec<_> = given.split('/').collect();
    steps.is_empty() || (given.len() > steps.len() && given[..steps.len()] == steps[..])
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn only_lawful_references_are_accepted() {
        for good in ["", "a", "a//b", "%C3%A9.md", "a?q=1&r=%2F", "...", "%252e%252e", "x/a:b", "?q"] {
            assert!(is_lawful(good), "{good}");
        }
        for bad in ["..", "a/%2e%2E/b", "..%2fx", "..%5cx", "/x", "a#b", "a b", "%", "%ff", "%00", "a:b", "x?%0d"] {
            assert!(!is_lawful(bad), "{bad}");
        }
    }

    #[test]
    fn names_below_a_reference_are_found() {
        assert!(is_below("a", "a") && is_below("a/", "a/b") && is_below("", "x") && is_below("a?x=1", "a/b"));
        assert!(!is_below("a", "ab") && !is_below("a", "b") && !is_below("a/b", "a"));
    }
}
