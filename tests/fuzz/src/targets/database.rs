//! A server of databases that sends any bytes, and statements of a provider: `grants::postgres`.

use belljar::grants::postgres::fuzzing;

use crate::input::Fields;

/// No bytes log in, because they cannot know the password. The guest gets no more than the server sent.
pub(super) fn server(bytes: &[u8]) {
    assert!(!fuzzing::logs_in(bytes), "a login without the password");
    let answer = fuzzing::answer(bytes);
    assert!(answer.len() <= bytes.len(), "{} of {} bytes", answer.len(), bytes.len());
    let mut rest = answer.as_slice();
    while let Some((&[tag, a, b, c, d], _)) = rest.split_first_chunk::<5>() {
        let length = u32::from_be_bytes([a, b, c, d]) as usize;
        let message = rest.get(5..=length).unwrap_or_default();
        let is_off = message.strip_prefix(b"default_transaction_read_only\0").is_some_and(|value| value != b"on\0");
        assert!(tag != b'S' || !is_off, "the session left read-only");
        rest = rest.get(length + 1..).unwrap_or_default();
    }
}

/// A statement that is forwarded begins with a word of the list, after blanks, comments and empty statements.
pub(super) fn statement(bytes: &[u8]) {
    let sql = Fields::of(bytes).text();
    if !fuzzing::is_forwarded(&sql) {
        return;
    }
    let bare = without_comments(&sql);
    let first = bare.trim_start_matches(|c: char| " \t\n\r\u{b}\u{c};(".contains(c));
    let word: String = first.chars().take_while(|c| c.is_ascii_alphanumeric() || *c == '_').collect();
    let words = [
        "", "ABORT", "BEGIN", "CLOSE", "COMMIT", "DECLARE", "END", "EXPLAIN", "FETCH", "MOVE", "ROLLBACK", "SELECT",
        "SET", "SHOW", "START", "TABLE", "VALUES", "WITH",
    ];
    assert!(words.contains(&word.to_ascii_uppercase().as_str()), "{sql:?} begins with {word:?}");
    assert!(!word.is_empty() || first.is_empty(), "{sql:?} begins with {first:?}");
}

/// Replaces the comments before the first word by blanks, character by character.
fn without_comments(sql: &str) -> String {
    let mut out = String::new();
    let chars: Vec<char> = sql.chars().collect();
    let (mut at, mut depth) = (0, 0);
    while at < chars.len() {
        let pair = (chars[at], chars.get(at + 1).copied());
        match pair {
            ('/', Some('*')) => (depth, at) = (depth + 1, at + 2),
            ('*', Some('/')) if depth > 0 => (depth, at) = (depth - 1, at + 2),
            _ if depth > 0 => at += 1,
            ('-', Some('-')) => {
                while at < chars.len() && !matches!(chars[at], '\n' | '\r') {
                    at += 1;
                }
            }
            (c, _) => {
                out.push(c);
                at += 1;
            }
        }
    }
    out
}
