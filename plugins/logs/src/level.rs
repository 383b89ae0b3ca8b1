//! Finds the level of an entry in the spellings of the common log formats.

use serde_json::Value;

/// Levels in increasing severity.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord)]
pub(crate) enum Level {
    Trace,
    Debug,
    Info,
    Warn,
    Error,
    Fatal,
}

/// The names of the levels in queries and messages.
pub(crate) const NAMES: [(&str, Level); 6] = [
    ("trace", Level::Trace),
    ("debug", Level::Debug),
    ("info", Level::Info),
    ("warn", Level::Warn),
    ("error", Level::Error),
    ("fatal", Level::Fatal),
];

/// The number of bytes of a line that are searched for a bare word. A word after them is part of the
/// message.
const WINDOW: usize = 160;

impl Level {
    /// The level of a word, in upper or lower case.
    pub(crate) fn of_word(word: &str) -> Option<Level> {
        // All names of levels have 3 to 11 letters.
        if !(3..=11).contains(&word.len()) {
            return None;
        }
        Some(match word.to_ascii_lowercase().as_str() {
            "trace" | "trce" | "trc" | "verbose" | "finest" | "finer" | "silly" => Level::Trace,
            "debug" | "dbug" | "dbg" | "fine" => Level::Debug,
            "info" | "inf" | "information" | "notice" | "note" | "log" => Level::Info,
            "warn" | "warning" | "wrn" => Level::Warn,
            "error" | "err" | "eror" | "erro" | "severe" | "fail" => Level::Error,
            "fatal" | "ftl" | "critical" | "crit" | "crt" | "emerg" | "emergency" | "alert" | "panic" | "dpanic" => {
                Level::Fatal
            }
            _ => return None,
        })
    }

    /// The level of a number in JSON: syslog's 0 to 7, or pino's and bunyan's 10 to 60.
    fn of_number(number: i64) -> Option<Level> {
        Some(match number {
            0..=2 => Level::Fatal,
            3 => Level::Error,
            4 => Level::Warn,
            5 | 6 => Level::Info,
            7 => Level::Debug,
            10..=19 => Level::Trace,
            20..=29 => Level::Debug,
            30..=39 => Level::Info,
            40..=49 => Level::Warn,
            50..=59 => Level::Error,
            60 => Level::Fatal,
            _ => return None,
        })
    }

    /// The level in a field of JSON.
    pub(crate) fn of_json(value: &Value) -> Option<Level> {
        match value {
            Value::String(word) => Level::of_word(word.trim()).or_else(|| Level::of_number(word.parse().ok()?)),
            Value::Number(number) => Level::of_number(number.as_i64()?),
            _ => None,
        }
    }

    /// The level of a line of text.
    pub(crate) fn of_text(line: &str) -> Option<Level> {
        if let Some(level) = of_priority(line).or_else(|| of_glog(line)).or_else(|| of_logcat(line)) {
            return Some(level);
        }
        let window = line.get(..line.floor_char_boundary(WINDOW)).unwrap_or(line);
        // `level=...` is unambiguous, and may be anywhere in the line.
        of_key(line)
            .or_else(|| {
                words(window).find_map(|word| {
                    // A bare word counts in upper case, in brackets, or first in the line before a colon. PostgreSQL writes
                    // `LOG:`, so this word needs the colon.
                    let is_upper = word.text.bytes().all(|byte| byte.is_ascii_uppercase());
                    let is_label = word.after == Some(b':') && word.first;
                    // `2016-09-28 04:30:30, Info                  CBS`, of Windows.
                    let is_column = word.first && word.column;
                    if !(is_upper || word.enclosed || is_label || is_column) {
                        return None;
                    }
                    let level = Level::of_word(word.text)?;
                    (word.after == Some(b':') || !word.text.eq_ignore_ascii_case("log")).then_some(level)
                })
            })
            .or_else(|| of_cef(line))
    }
}

/// The priority of syslog, such as `<11>`: its lower three bits are the severity (RFC 5424, section 6.2.1).
fn of_priority(line: &str) -> Option<Level> {
    let (number, _) = line.strip_prefix('<')?.split_once('>')?;
    let number: i64 = number.parse().ok().filter(|number| (0..192).contains(number))?;
    Level::of_number(number % 8)
}

/// `E1121 10:00:00.123456`, of glog and klog.
fn of_glog(line: &str) -> Option<Level> {
    let rest = line.strip_prefix(['I', 'W', 'E', 'F'])?;
    // Month and day, perhaps after the year.
    let digits = rest.bytes().take_while(u8::is_ascii_digit).count();
    let shape = matches!(digits, 4 | 8) && rest.as_bytes().get(digits) == Some(&b' ');
    match line.as_bytes().first().filter(|_| shape)? {
        b'I' => Some(Level::Info),
        b'W' => Some(Level::Warn),
        b'E' => Some(Level::Error),
        _ => Some(Level::Fatal),
    }
}

/// `11-21 10:00:00.811  1702  2395 D WindowManager: ...` of Android's logcat, and its short form `D/WindowManager( 1702): ...`.
fn of_logcat(line: &str) -> Option<Level> {
    let of_letter = |letter: &str| {
        Some(match letter {
            "V" => Level::Trace,
            "D" => Level::Debug,
            "I" => Level::Info,
            "W" => Level::Warn,
            "E" => Level::Error,
            "F" | "A" => Level::Fatal,
            _ => return None,
        })
    };
    let bytes = line.as_bytes();
    if bytes.get(1) == Some(&b'/') {
        let (_, process) = line.get(..line.floor_char_boundary(WINDOW))?.split_once('(')?;
        let is_number = process.trim_start().starts_with(|c: char| c.is_ascii_digit());
        return of_letter(line.get(..1)?).filter(|_| is_number && process.contains("):"));
    }
    if !matches!(bytes, [_, _, b'-', _, _, b' ', _, _, b':', ..]) {
        return None;
    }
    let mut words = line.split_ascii_whitespace().skip(2);
    let mut number = || words.next().filter(|word| word.bytes().all(|byte| byte.is_ascii_digit()));
    number()?;
    number()?;
    of_letter(words.next()?)
}

/// The severity of the Common Event Format: `CEF:0|Vendor|Product|1.0|100|Name|10|...`.
fn of_cef(line: &str) -> Option<Level> {
    let (_, event) = line.get(..line.floor_char_boundary(4 * WINDOW))?.split_once("CEF:")?;
    Some(match event.split('|').nth(6)? {
        "0" | "1" | "2" | "3" | "Low" | "Unknown" => Level::Info,
        "4" | "5" | "6" | "Medium" => Level::Warn,
        "7" | "8" | "High" => Level::Error,
        "9" | "10" | "Very-High" => Level::Fatal,
        _ => return None,
    })
}

/// `level=warn`, `lvl="warn"`, `severity=WARN`.
fn of_key(line: &str) -> Option<Level> {
    memchr::memchr_iter(b'=', line.as_bytes()).find_map(|at| {
        let (before, value) = (line.get(..at)?, line.get(at + 1..)?.trim_start_matches('"'));
        if !["level", "lvl", "severity"].iter().any(|key| before.ends_with(key)) {
            return None;
        }
        let end = value.find(|c: char| !c.is_ascii_alphanumeric()).unwrap_or(value.len());
        let word = value.get(..end)?;
        Level::of_word(word).or_else(|| Level::of_number(word.parse().ok()?))
    })
}

/// A word of letters.
struct Word<'a> {
    text: &'a str,
    /// True for the first word of the line; numbers and punctuation do not count as words.
    first: bool,
    /// Between brackets of any kind: `[error]`, `[core:error]`, `(warn)`.
    enclosed: bool,
    /// Followed by two spaces, as in a table.
    column: bool,
    after: Option<u8>,
}

fn words(line: &str) -> impl Iterator<Item = Word<'_>> {
    let bytes = line.as_bytes();
    let (mut at, mut first) = (0, true);
    std::iter::from_fn(move || {
        loop {
            let start = at + bytes.get(at..)?.iter().position(|byte| is_wordy(*byte))?;
            let length = bytes.get(start..)?.iter().position(|byte| !is_wordy(*byte)).unwrap_or(bytes.len() - start);
            at = start + length;
            let text = line.get(start..at)?;
            // `local.ERROR:`, of Laravel.
            let (start, text) = match text.rsplit_once('.') {
                Some((_, last)) if bytes.get(at) == Some(&b':') && !last.is_empty() => (at - last.len(), last),
                _ => (start, text),
            };
            // Skip words with digits: IDs, addresses, times.
            if !text.bytes().all(|byte| byte.is_ascii_alphabetic()) {
                continue;
            }
            let before = start.checked_sub(1).and_then(|before| bytes.get(before)).copied();
            let closing = bytes.get(at..).and_then(|rest| rest.iter().find(|byte| **byte != b' ')).copied();
            let enclosed = matches!(before, Some(b'[' | b'(' | b'<' | b':' | b'|'))
                && matches!(closing, Some(b']' | b')' | b'>' | b'|'));
            let column = matches!(bytes.get(at..at + 2), Some(b"  "));
            let word = Word { text, first, enclosed, column, after: bytes.get(at).copied() };
            first = false;
            return Some(word);
        }
    })
}

fn is_wordy(byte: u8) -> bool {
    matches!(byte, b'a'..=b'z' | b'A'..=b'Z' | b'-'..=b'9' | b'_' | 0x80..)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_usual_spellings_of_levels_are_found() {
        for (line, level) in [
            ("2026-11-21 10:00:00,123 ERROR [main] c.e.App - broken", Level::Error),
            ("2026-11-21 10:00:00 [WARN ] slow", Level::Warn),
            ("[2026-11-21T10:00:00Z] [error] broken", Level::Error),
            ("2026/11/21 10:00:00 [error] 12#12: *3 open() failed", Level::Error),
            ("[Sat Nov 21 10:00:00.123456 2026] [core:crit] [pid 1] gone", Level::Fatal),
            ("time=\"2026-11-21T10:00:00Z\" level=warning msg=\"an ERROR of others\"", Level::Warn),
            ("ts=1 lvl=eror msg=x", Level::Error),
            ("severity=DEBUG x", Level::Debug),
            ("<11>Nov 21 10:00:00 host app: broken", Level::Error),
            ("<165>1 2026-11-21T10:00:00Z host app - - - x", Level::Info),
            ("E1121 10:00:00.123456   1 a.go:1] broken", Level::Error),
            ("W1121 10:00:00.123456   1 a.go:1] slow", Level::Warn),
            ("W20261121 10:00:00.123456   1 a.cc:1] slow", Level::Warn),
            ("[2026-11-21 10:00:00] local.ERROR: broken", Level::Error),
            ("WARNING:root:slow", Level::Warn),
            ("error: could not compile", Level::Error),
            ("info: Microsoft.Hosting[0]", Level::Info),
            ("fail: Microsoft.Hosting[0]", Level::Error),
            ("E, [2026-11-21T10:00:00.123456 #1] ERROR -- : broken", Level::Error),
            ("2026-11-21 10:00:00.123 UTC [12] LOG:  ready", Level::Info),
            ("2026-11-21 10:00:00.123 UTC [12] FATAL:  no password", Level::Fatal),
            ("2026-11-21T10:00:00Z  INFO app::main: ready", Level::Info),
            ("2026-11-21T10:00:00Z TRACE x", Level::Trace),
            ("Nov 21, 2026 10:00:00 AM org.x.Y run\tSEVERE: x", Level::Error),
            ("03-17 16:13:38.811  1702  2395 D WindowManager: an ERROR of others", Level::Debug),
            ("03-17 16:13:38.811  1702  2395 E WindowManager: x", Level::Error),
            ("W/ActivityManager( 1702): slow", Level::Warn),
            ("2016-09-28 04:30:30, Info                  CBS    Loaded", Level::Info),
            ("2016-09-28 04:30:30, Error                 CSI    broken", Level::Error),
            ("Nov 21 10:00:00 host CEF:0|V|P|1.0|100|Name|8|src=1.2.3.4", Level::Error),
            ("- 1117838570 2005.06.03 R02 2005-06-03-15.42.50.363779 R02 RAS KERNEL FATAL x", Level::Fatal),
            ("2026-11-21T10:00:00.123456Z 0 [Note] [MY-010051] [Server] x", Level::Info),
        ] {
            assert_eq!(Level::of_text(line), Some(level), "{line}");
        }
    }

    #[test]
    fn words_of_a_message_are_not_levels() {
        for line in [
            "2026-11-21 10:00:00 no error found",
            "Nov 21 10:00:00 host app[1]: information is power",
            "10.0.0.1 - - [21/Nov/2026:10:00:00 +0000] \"GET /error HTTP/1.1\" 200 12",
            "2026-11-21 10:00:00 the log: nothing to warn of",
            "",
            "<999>x",
            "Everything is fine (really fine)",
        ] {
            assert_eq!(Level::of_text(line), None, "{line}");
        }
    }

    #[test]
    fn json_has_words_and_numbers() {
        for (json, level) in [
            ("\"error\"", Some(Level::Error)),
            ("\"WARNING\"", Some(Level::Warn)),
            ("50", Some(Level::Error)),
            ("30", Some(Level::Info)),
            ("3", Some(Level::Error)),
            ("\"6\"", Some(Level::Info)),
            ("70", None),
            ("9", None),
            ("true", None),
        ] {
            assert_eq!(Level::of_json(&serde_json::from_str(json).unwrap()), level, "{json}");
        }
    }

    #[test]
    fn level_names_are_in_order_of_severity() {
        assert!(NAMES.iter().map(|(_, level)| level).is_sorted());
        assert!(NAMES.iter().all(|(name, level)| Level::of_word(name) == Some(*level)));
    }
}
